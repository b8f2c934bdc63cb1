"""``remuda guard install``, ``remove`` and ``status``"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from remuda.core.errors import EXIT_OK
from remuda.surfaces.cli.output import as_json, write_json

if TYPE_CHECKING:
    from remuda.operations.guardinstall import Outcomes
    from remuda.operations.guardstatus import RuntimeStanding, Standing

Command = TypeVar("Command", bound=Callable[..., Any])

_RUNTIMES = click.argument("runtimes", nargs=-1, metavar="[RUNTIME]...")


def _where(command: Command) -> Command:
    """What ``install`` and ``remove`` share."""
    for option in (
        _RUNTIMES,
        click.option(
            "--scope",
            type=click.Choice(("user", "project")),
            default="user",
            show_default=True,
            help="All sessions of yours, or those in the project around this folder.",
        ),
        click.option("--dry-run", is_flag=True, help="Change nothing; show what would change."),
        as_json,
    ):
        command = option(command)
    return command


@click.command()
@_where
@click.option(
    "--trust", is_flag=True, help="Agree to the hooks, where the agent's CLI asks for that (codex)."
)
def install(as_json: bool, **request: Any) -> int:
    """Put the guard into the settings of agent CLIs, for sessions of your own.

    Without a RUNTIME, of all that are installed. The guard is then asked before every tool call, as for the
    capability 'supervised'. All that was in the settings stays; 'remuda guard remove' takes the guard out.

    \b
    Examples:
      remuda guard install claude --dry-run
      remuda guard install codex --trust
    """
    from remuda.operations.guardinstall import Request
    from remuda.operations.guardinstall import install as operation
    from remuda.operations.world import open_world

    return _shown(operation(open_world(), Request(**request)), as_json)


@click.command()
@_where
def remove(as_json: bool, **request: Any) -> int:
    """Take the guard out of the settings of agent CLIs, without a trace.

    A file that nobody else has changed is byte for byte what it was before; from any other, only the guard's
    own entries go.
    """
    from remuda.operations.guardinstall import Request
    from remuda.operations.guardinstall import remove as operation
    from remuda.operations.world import open_world

    return _shown(operation(open_world(), Request(**request)), as_json)


@click.command()
@_RUNTIMES
@as_json
def status(runtimes: tuple[str, ...], as_json: bool) -> int:
    """Show where the guard is installed, and what keeps it from being asked."""
    from remuda.operations.guardstatus import status as operation
    from remuda.operations.world import open_world

    found = operation(open_world(), runtimes)
    if as_json:
        write_json(found)
    else:
        for each in found.runtimes:
            _show(each)
    return EXIT_OK


def _shown(done: Outcomes, as_json: bool) -> int:
    if as_json:
        write_json(done)
        return EXIT_OK
    would = "would be " if done.dry_run else ""
    for each in done.outcomes:
        told = each.state if each.state in ("unchanged", "skipped") else f"{would}{each.state}"
        click.echo(f"{each.runtime} ({each.scope}): {told}")
        for file in each.files:
            click.echo(file.diff if done.dry_run else f"  {file.path}", nl=not done.dry_run)
        for note in each.notes:
            click.echo(f"  note: {note}", err=True)
    return EXIT_OK


def _show(each: RuntimeStanding) -> None:
    present = f" {each.version}" if each.version else "" if each.present else " (not on this machine)"
    if each.why_not:
        click.echo(f"{each.runtime}{present}: {each.why_not}")
    for standing in each.scopes:
        _show_standing(f"{each.runtime}{present}, {standing.scope}", standing)
    if each.proof:
        held = "held" if each.proof.holds else "did not hold"
        click.echo(f"  on {each.proof.version} the hook {held} ({each.proof.seen_at}): {each.proof.how}")


def _show_standing(name: str, standing: Standing) -> None:
    words = {"yes": "installed", "no": "not installed", "partly": "partly installed"}
    click.echo(f"{name}: {words.get(standing.installed, 'its settings cannot be understood')}")
    if standing.installed == "no":
        return
    click.echo(f"  hook program: {standing.program}")
    for problem in standing.problems:
        click.echo(f"  problem: {problem}")
    if standing.condition:
        click.echo(f"  note: {standing.condition}")
