"""``remuda task submit``"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from remuda.core.errors import EXIT_OK
from remuda.surfaces.cli.output import as_json as json_option
from remuda.surfaces.cli.output import write_json
from remuda.surfaces.cli.runoptions import run_options, run_request

if TYPE_CHECKING:
    from remuda.operations.task.requests import Submitted
    from remuda.operations.world import World


@click.command()
@run_options
@click.option("--key", metavar="TEXT", help="Submit once: the same key again gives the same task.")
@click.option(
    "--priority",
    type=click.IntRange(-1_000_000, 1_000_000),
    default=0,
    metavar="NUMBER",
    help="Higher goes first; default: 0.",
)
@click.option(
    "--expires",
    type=click.FloatRange(min=0, max=1e9),
    metavar="SECONDS",
    help="Drop it if it has not started by then.",
)
@click.option("--wait", is_flag=True, help="Show its events and wait for its answer, as 'remuda run' does.")
@json_option
def submit(
    key: str | None, priority: int, expires: float | None, wait: bool, as_json: bool, **given: Any
) -> int:
    """Hand PROMPT in as a task, and get its id at once.

    The task is carried out by a worker, which is started by itself where no database server is configured. It
    survives the end of this command, of the worker and of the machine. PROMPT and the options are those of
    'remuda run'; what a run would refuse is refused now.

    \b
    Examples:
      remuda task submit "write tests for utils.py"
      id=$(remuda task submit --agent claude @job.md) && remuda task wait "$id"
      remuda task submit --key nightly-42 --priority 5 --expires 3600 -  < job.md
      remuda task submit --wait "explain this repo"

    With --wait the exit code is that of the task, as of 'remuda run'; with --json one document is printed at
    the end, that of 'remuda task get'.
    """
    from remuda.operations.task.requests import SubmitRequest
    from remuda.operations.task.submitting import submit as operation
    from remuda.operations.world import open_world

    run = run_request(**given)
    world = open_world(cwd=run.cwd)
    submitted = operation(world, SubmitRequest(run=run, key=key, priority=priority, expires_in=expires))
    if submitted.advice:
        click.echo(f"remuda: {submitted.advice}", err=True)
    if wait:
        return _wait(world, submitted, as_json)
    if as_json:
        write_json(submitted)
    else:
        click.echo(submitted.id)
    return EXIT_OK


def _wait(world: World, submitted: Submitted, as_json: bool) -> int:
    from remuda.surfaces.cli.tasknames import exit_code_of
    from remuda.surfaces.cli.taskwait import finished, followed

    if as_json:
        (task,) = finished(world, (submitted.id,)).tasks
        write_json(task)
        return exit_code_of(task)
    click.echo(f"task {submitted.id}", err=True)
    return followed(world, submitted.id, 0)
