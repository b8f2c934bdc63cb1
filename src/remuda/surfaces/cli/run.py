"""``remuda run``"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

import click

from remuda.core.errors import UsageError

if TYPE_CHECKING:
    from remuda.core.events import Event, Result
    from remuda.operations.requests import RunRequest
    from remuda.operations.run import Run
    from remuda.operations.world import World

CAPABILITIES = ("scout", "reviewer", "lead", "coordinator", "builder", "merger", "supervised")


def _text(path: str | Path, what: str) -> str:
    """A file's text, exactly; line ends are not translated."""
    try:
        data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
        return data.decode("utf-8")
    except OSError as error:
        raise UsageError(f"cannot read {what} {path}: {error.strerror}", "Check the path.") from None
    except UnicodeDecodeError:
        raise UsageError(f"{what} is not valid UTF-8", "Convert it to UTF-8 first.") from None


def read_prompt(argument: str) -> str:
    """The prompt itself, ``-`` for standard input, ``@file`` for a file (``@@`` for a literal ``@``)."""
    if argument == "-":
        return _text("-", "the prompt")
    if argument.startswith("@@"):
        return argument[1:]
    if argument.startswith("@"):
        return _text(argument[1:], "the prompt file")
    return argument


def _system_prompt(text: str | None, file: Path | None, name: str) -> str | None:
    if text is not None and file is not None:
        raise UsageError(f"--{name} and --{name}-file exclude each other", "Give one of them.")
    return _text(file, f"the --{name}-file") if file else text


def variables(pairs: tuple[str, ...]) -> dict[str, str]:
    for pair in pairs:
        if not pair.partition("=")[0] or "=" not in pair:
            raise UsageError("--env takes KEY=VALUE", "For example: --env RUST_LOG=debug")
    return {name: value for name, _, value in (pair.partition("=") for pair in pairs)}


@click.command(context_settings={"ignore_unknown_options": False})
@click.argument("prompt")
@click.argument("extra", nargs=-1, type=click.UNPROCESSED, metavar="[-- ARGUMENTS…]")
@click.option("--agent", metavar="NAME", help="The agent to run; default: the active one ('remuda which').")
@click.option("--model", metavar="NAME", help="The model, as the agent calls it.")
@click.option(
    "--capability",
    type=click.Choice(CAPABILITIES),
    help="What the agent is for, and so may do: every tool call is judged by that.",
)
@click.option(
    "--worktree", type=Path, metavar="DIR", help="The folder a guarded agent may change; default: --cwd."
)
@click.option(
    "--branch-prefix", metavar="PREFIX", help="How the names of a guarded agent's branches have to begin."
)
@click.option("--unproven", is_flag=True, help="Run although the guard is not proven on this version.")
@click.option(
    "--permission",
    type=click.Choice(("ask", "bypass")),
    default="ask",
    show_default=True,
    help="ask: what needs approval is refused, for nobody is there; bypass: the agent does not ask.",
)
@click.option("--system-prompt", metavar="TEXT", help="Replace the agent's system prompt.")
@click.option("--system-prompt-file", type=Path, metavar="FILE", help="… with the text of a file.")
@click.option("--append-system-prompt", metavar="TEXT", help="Add to the agent's system prompt.")
@click.option("--append-system-prompt-file", type=Path, metavar="FILE", help="… the text of a file.")
@click.option("--cwd", type=Path, metavar="DIR", help="The folder to work in; default: this one.")
@click.option("--session", metavar="ID", help="Continue an earlier session.")
@click.option(
    "--timeout", type=click.FloatRange(min=0), metavar="SECONDS", help="End the run after this time."
)
@click.option("--idle-timeout", type=click.FloatRange(min=0), metavar="SECONDS", help="… after this silence.")
@click.option("--env", multiple=True, metavar="KEY=VALUE", help="A variable for the agent; repeatable.")
@click.option("--json", "as_json", is_flag=True, help="Print the events as JSON lines.")
def run(
    prompt: str,
    extra: tuple[str, ...],
    as_json: bool,
    env: tuple[str, ...],
    system_prompt: str | None,
    system_prompt_file: Path | None,
    append_system_prompt: str | None,
    append_system_prompt_file: Path | None,
    **options: object,
) -> int:
    """Run an agent on PROMPT and wait for its answer.

    PROMPT is the text itself, - for standard input, or @file for a file. The answer goes to standard output,
    progress to standard error. What follows -- is passed to the agent's own command line.

    \b
    Examples:
      remuda run "explain this repo"
      git diff | remuda run --agent claude --capability reviewer -
      remuda run --agent codex --permission bypass @task.md -- --search

    Exit codes: 0 done, 1 the agent failed, 2 wrong usage, 3 timed out, 4 not found, 5 refused by policy,
    6 not installed, not logged in or not startable, 130 interrupted.
    """
    import msgspec

    from remuda.operations.requests import RunRequest

    request = msgspec.convert(
        {
            **options,
            "prompt": read_prompt(prompt),
            "env": variables(env),
            "extra": extra,
            "system_prompt": _system_prompt(system_prompt, system_prompt_file, "system-prompt"),
            "append_system_prompt": _system_prompt(
                append_system_prompt, append_system_prompt_file, "append-system-prompt"
            ),
        },
        RunRequest,
    )
    return _run(request, as_json)


class _Interrupts:
    """Catches the signals that ask us to end from the first moment on, while the event loop loads too."""

    def __init__(self) -> None:
        self._seen = False
        self._tell: Callable[[], object] | None = None
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._note)

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self._seen = True
        if self._tell:
            self._tell()

    def tell(self, how: Callable[[], object]) -> None:
        """Pass them on from now on, those that have come already included."""
        self._tell = how
        if self._seen:
            how()


def _run(request: RunRequest, as_json: bool) -> int:
    """Start the agent, then load what is needed to follow it: the two take their time side by side."""
    from remuda.operations import proving
    from remuda.operations.run import begin
    from remuda.operations.world import open_world

    world = open_world(cwd=request.cwd)
    if runtime := proving.due(world, request):
        import asyncio

        asyncio.run(proving.prove(world, runtime, lambda text: click.echo(f"remuda: {text}", err=True)))
    interrupts = _Interrupts()
    with begin(world, request) as begun:
        import asyncio
        import gc

        gc.enable()
        return asyncio.run(_follow(world, begun, interrupts, as_json))


async def _follow(world: World, begun: Run, interrupts: _Interrupts, as_json: bool) -> int:
    """Show the events and turn the result into an exit code. The first Ctrl-C asks the agent to end."""
    import asyncio

    from remuda.operations.run import follow
    from remuda.surfaces.cli.progress import JsonLines, Progress

    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    interrupts.tell(lambda: loop.call_soon_threadsafe(stop.set))
    show = JsonLines() if as_json else Progress(sys.stderr)
    last: Event | None = None
    async with aclosing(follow(world, begun, stop)) as events:
        async for event in events:
            show.event(event)
            last = event
    assert last is not None
    assert last.result is not None
    return _exit_code(last.result)


def _exit_code(result: Result) -> int:
    from remuda.core.errors import EXIT_OK, exit_code_for
    from remuda.core.processes import killed_by

    if result.error is None:
        return EXIT_OK
    if result.error.kind == "crashed" and result.exit_code is not None and killed_by(result.exit_code):
        return result.exit_code
    return exit_code_for(result.error.kind)
