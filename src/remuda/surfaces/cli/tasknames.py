"""The argument that names a task, what a shell offers for it, and the exit code of its end."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

import click

from remuda.core.errors import EXIT_FAILED, EXIT_OK, exit_code_for
from remuda.surfaces.cli.values import completing

if TYPE_CHECKING:
    from remuda.operations.task.requests import TaskShown
    from remuda.operations.world import World

_T = TypeVar("_T")


def world_of() -> World:
    """The world as this process finds it."""
    from remuda.operations.world import open_world

    return open_world()


def _recent() -> list[str]:
    from remuda.operations.task.looking import recent

    return recent(world_of())


_KNOWN = completing(_recent)


def named(**settings: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The argument ID: a task's id, or the beginning of one."""
    return click.argument("ident", metavar=settings.pop("metavar", "ID"), shell_complete=_KNOWN, **settings)


def several() -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The argument ID…: one or more tasks."""
    return click.argument("idents", metavar="ID…", nargs=-1, required=True, shell_complete=_KNOWN)


def told(work: Coroutine[Any, Any, _T], ids: str) -> _T:
    """Carry out what only looks on; a person who leaves is told that the task does not. Nobody waits for a
    thread that asks a database which does not answer: the loop is not closed."""
    import asyncio

    try:
        return asyncio.Runner().run(work)
    except KeyboardInterrupt:
        work.close()  # it may not even have begun
        click.echo(f"\nThe task goes on; 'remuda task wait {ids}' is there again,", err=True)
        click.echo(f"'remuda task cancel {ids}' ends it.", err=True)
        raise


def exit_code_of(task: TaskShown) -> int:
    """What a task's end means to a script: 0 if it succeeded, and else the code of its error."""
    from remuda.surfaces.cli.output import exit_code

    if task.state == "succeeded":
        return EXIT_OK
    if task.result is not None and task.result.error is not None:
        return exit_code(task.result)
    return exit_code_for(task.error.kind) if task.error else EXIT_FAILED
