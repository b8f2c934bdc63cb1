"""``remuda task``"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from remuda.surfaces.cli.output import as_json, draw, table, write_json, write_text
from remuda.surfaces.cli.tasknames import named, several, world_of
from remuda.surfaces.cli.tasksubmit import submit
from remuda.surfaces.cli.taskwait import wait, watch
from remuda.surfaces.cli.values import AGENTS, AMOUNT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from remuda.operations.task.requests import TaskShown

STATES = ("queued", "running", "succeeded", "failed", "cancelled", "interrupted", "expired")


@click.group()
def task() -> None:
    """Hand tasks in that outlive everything, and follow them.

    A task is a run that is on record before it starts: it survives the end of the command that handed it in,
    of the worker that carries it out and of the machine. It is carried out once; where that was cut off, the
    agent's session is resumed, or the task ends as interrupted, with what is known.

    \b
    Examples:
      remuda task submit "write tests for utils.py"
      remuda task list
      remuda task watch 01M7
      remuda task get --json 01M7
      remuda task cancel 01M7

    An ID may be shortened to its beginning.
    """


@task.command()
@named()
@click.option("--prompt", is_flag=True, help="With its prompt.")
@as_json
def get(ident: str, prompt: bool, as_json: bool) -> None:
    """Show a task: its state, its attempts, and its result.

    \b
    Examples:
      remuda task get 01M7
      remuda task get --json 01M7 | jq -r .result.text
    """
    from remuda.operations.task.looking import get as operation

    shown = operation(world_of(), ident, prompt=prompt)
    if as_json:
        write_json(shown)
        return
    for label, value in _lines(shown):
        write_text(f"{label:<12}{value}")
    if shown.result is not None and shown.result.text:
        click.echo()
        write_text(shown.result.text)


def _lines(shown: TaskShown) -> Iterator[tuple[str, str]]:
    yield "id", shown.id
    yield "state", f"{shown.state} (to be cancelled)" if _is_ending(shown) else shown.state
    yield "agent", shown.agent or f"tag {shown.tag}"
    yield "folder", shown.cwd or "-"
    for label, value in (
        ("key", shown.key),
        ("priority", str(shown.priority) if shown.priority else None),
        ("submitted", shown.created_at),
        ("expires", shown.expires_at),
        ("started", shown.started_at),
        ("ended", shown.ended_at),
        ("session", shown.session),
        ("error", f"{shown.error.kind}: {shown.error.message}" if shown.error else None),
        ("events", str(shown.last_seq)),
        ("prompt", shown.prompt),
    ):
        if value is not None:
            yield label, value
    for each in shown.attempts:
        yield f"attempt {each.number}", f"{each.agent or '-'}, {each.outcome or each.phase}, by {each.worker}"


def _is_ending(shown: TaskShown) -> bool:
    return shown.state == "running" and shown.cancel is not None


@task.command("list")
@click.option("--state", "states", type=click.Choice(STATES), multiple=True, help="Only these; repeatable.")
@click.option("--agent", metavar="NAME", shell_complete=AGENTS, help="Only those for this agent.")
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True, metavar="NUMBER")
@click.option("--before", metavar="ID", help="Go on where an earlier list ended.")
@as_json
def list_(states: tuple[str, ...], agent: str | None, limit: int, before: str | None, as_json: bool) -> None:
    """List tasks, the newest first.

    \b
    Examples:
      remuda task list
      remuda task list --state queued --state running --json
    """
    import msgspec

    from remuda.operations.task.looking import listed
    from remuda.operations.task.requests import ListRequest

    asked = {"states": states, "agent": agent, "limit": limit, "before": before}
    found = listed(world_of(), msgspec.convert(asked, ListRequest))
    if as_json:
        write_json(found)
        return
    if not found.tasks:
        click.echo("There is no such task. Hand one in with 'remuda task submit'.", err=True)
        return
    drawn = table("id", "state", "agent", "submitted", "ended", "error")
    for each in found.tasks:
        error = each.error.kind if each.error else ""
        who = each.agent or f"tag {each.tag}"
        drawn.add_row(each.id, each.state, who, each.created_at, each.ended_at or "", error)
    draw(drawn)
    if found.next:
        click.echo(f"There are more: --before {found.next}", err=True)


@task.command()
@several()
@as_json
def cancel(idents: tuple[str, ...], as_json: bool) -> None:
    """Cancel tasks: one that waits never starts, the agent of one that runs is ended.

    \b
    Examples:
      remuda task cancel 01M7
      remuda task cancel 01M7 && remuda task wait 01M7
    """
    from remuda.operations.task.cancelling import Cancelled
    from remuda.operations.task.cancelling import cancel as operation

    world = world_of()
    ended = [operation(world, ident) for ident in idents]
    if as_json:
        write_json(Cancelled(ended))
        return
    for each in ended:
        word = "is being cancelled" if _is_ending(each) else f"is {each.state}"
        click.echo(f"{each.id} {word}")


@task.command()
@click.option(
    "--older-than",
    type=AMOUNT,
    metavar="DAYS",
    help="Forget tasks that ended before that; default: tasks.retention_days.",
)
@as_json
def gc(older_than: float | None, as_json: bool) -> None:
    """Forget tasks that ended long ago, with their prompts, events and results.

    \b
    Examples:
      remuda task gc
      remuda task gc --older-than 7
    """
    from remuda.operations.task.looking import gc as operation

    cleared = operation(world_of(), older_than)
    if as_json:
        write_json(cleared)
        return
    click.echo(f"{cleared.forgotten} old tasks were forgotten.")


for command in (submit, wait, watch):
    task.add_command(command)
