"""``remuda worker``"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from remuda.core.errors import EXIT_FAILED, EXIT_OK, UsageError
from remuda.surfaces.cli.values import AMOUNT

if TYPE_CHECKING:
    from remuda.operations.worker import WorkStatus


@click.command()
@click.option("--agents", metavar="NAMES", help="Only tasks for these agents (comma between them).")
@click.option("--tags", metavar="TAGS", help="Only tasks for these tags (comma between them).")
@click.option(
    "--slots", type=click.IntRange(1, 1000), metavar="N", help="Tasks at a time (tasks.concurrency)."
)
@click.option(
    "--grace",
    type=AMOUNT,
    metavar="SECONDS",
    help="How long tasks have to end, when told to.",
)
@click.option("--once", is_flag=True, help="End when nothing is left to do.")
@click.option("--on-demand", is_flag=True, hidden=True)
@click.option("--status", is_flag=True, help="Show the workers and what waits.")
@click.option("--stop", is_flag=True, help="End the workers on this machine, and wait until they have.")
@click.option("--json", "as_json", is_flag=True, help="The status as one JSON document.")
def worker(
    agents: str | None,
    tags: str | None,
    slots: int | None,
    grace: float | None,
    once: bool,
    on_demand: bool,
    status: bool,
    stop: bool,
    as_json: bool,
) -> int:
    """Carry tasks out, until you end it.

    On one machine you need none: 'remuda task submit' starts one that ends by itself. Where a PostgreSQL
    server keeps the tasks (REMUDA_DATABASE_URL), start one on each machine that is to work. Of a worker that
    dies, others take over what it had begun: an agent that can goes on in its session, and a prompt is never
    given twice.

    A first TERM or Ctrl-C takes nothing new and lets tasks end (--grace); what does not is left to another
    worker. A second one ends it at once.

    \b
    Examples:
      remuda worker
      remuda worker --agents claude-work,codex --slots 2
      remuda worker --once
      remuda worker --status --json
      remuda worker --stop
    """
    from remuda.operations import worker as operation
    from remuda.operations.world import open_world

    world = open_world()
    if status or stop or as_json:
        if once or on_demand or agents or tags or slots is not None or grace is not None:
            raise UsageError("--status and --stop stand alone", "Call it without the other options.")
        if stop:
            click.echo(f"{operation.stop(world)} have ended", err=True)
        if status or as_json:
            _show(operation.status(world), as_json=as_json)
        return EXIT_OK
    request = operation.WorkRequest(
        agents=_names(agents), tags=_names(tags), slots=slots, once=once, on_demand=on_demand, grace=grace
    )
    return EXIT_OK if operation.work(world, request, _announce) else EXIT_FAILED


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(name.strip() for name in (text or "").split(",") if name.strip())


def _announce(ident: str) -> None:
    click.echo(f"worker {ident} is ready   (Ctrl-C ends it)", err=True)


def _show(status: WorkStatus, *, as_json: bool) -> None:
    import msgspec

    if as_json:
        click.echo(msgspec.json.encode(status))
        return
    for each in status.workers:
        life = "has died" if not each.alive else "works" if each.slots else "ends"
        only = ", ".join((*each.agents, *(f"tag {tag}" for tag in each.tags))) or "anything"
        click.echo(
            f"{each.id}  {each.host}, process {each.pid}, {life}: {each.running} of {each.slots}  ({only})"
        )
    click.echo(f"{status.queued} waiting, {status.running} running, {len(status.workers)} workers")
