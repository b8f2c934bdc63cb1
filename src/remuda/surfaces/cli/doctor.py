"""``remuda doctor``"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click

from remuda.core.errors import EXIT_FAILED, EXIT_OK
from remuda.surfaces.cli.output import as_json, write_json

if TYPE_CHECKING:
    from remuda.operations.doctor import Diagnosis, Examination, PromptDelivery, Terminals


@click.command()
@click.option(
    "--verify", is_flag=True, help="Run the agents, without a network, and check what is claimed of them."
)
@as_json
@click.argument("names", nargs=-1, metavar="[NAME…]")
def doctor(verify: bool, as_json: bool, names: tuple[str, ...]) -> int:
    """Examine the installation: agents, versions, flags, tmux, prompt delivery.

    Exit code 1 when something is wrong. A missing agent is not wrong, unless it is the active one.

    With --verify, the named agents (without names: every installed one) are run against the built-in model
    server, out of reach of any network: prompt channels byte for byte, events, usage, error kinds, resumed
    sessions, quietness. What is seen is kept with version and date; a channel that fails is no longer used
    on that version.
    """
    if verify:
        from remuda.surfaces.cli.verify import show_verification

        return show_verification(names, as_json)
    if names:
        raise click.UsageError(f"names go with --verify: remuda doctor --verify {' '.join(names)}")
    from remuda.operations.doctor import doctor as operation
    from remuda.operations.world import open_world

    diagnosis = asyncio.run(operation(open_world()))
    if as_json:
        write_json(diagnosis)
    else:
        _show(diagnosis)
    return EXIT_OK if diagnosis.ok else EXIT_FAILED


def _show(diagnosis: Diagnosis) -> None:
    click.echo(f"remuda {diagnosis.remuda_version}")
    click.echo(f"active agent: {diagnosis.active_agent} (from {diagnosis.active_source})\n")
    click.echo("Runtimes")
    for examination in diagnosis.runtimes:
        _show_runtime(examination)
    click.echo("")
    _show_tmux(diagnosis.tmux)
    click.echo("")
    _show_delivery(diagnosis.prompt_delivery)
    click.echo("")
    for problem in diagnosis.problems:
        click.echo(f"✗ {problem}")
    count = len(diagnosis.problems) + sum(len(runtime.problems) for runtime in diagnosis.runtimes)
    click.echo("All checks passed." if diagnosis.ok else f"{count} problem(s) found.")


def _show_runtime(runtime: Examination) -> None:
    if not runtime.installed:
        click.echo(f"  - {runtime.name}: not installed")
        for problem in runtime.problems:
            click.echo(f"      problem: {problem}")
        return
    sign = "✗" if runtime.problems else "✓"
    click.echo(f"  {sign} {runtime.name} {runtime.version or '(unknown version)'} at {runtime.path}")
    for mode, standing in runtime.channels.items():
        click.echo(f"      {mode}: {standing}")
    click.echo(f"      hooks: {runtime.hooks}; connection: {runtime.connection}")
    for problem in runtime.problems:
        click.echo(f"      problem: {problem}")
    for warning in runtime.warnings:
        click.echo(f"      warning: {warning}")


def _show_tmux(tmux: Terminals) -> None:
    click.echo("Sessions")
    if tmux.version is not None:
        click.echo(f"  {'!' if tmux.warnings else '✓'} tmux {tmux.version} at {tmux.path}")
    for warning in tmux.warnings:
        click.echo(f"    warning: {warning}")


def _show_delivery(report: PromptDelivery) -> None:
    click.echo("Prompt delivery")
    click.echo(f"  requested: {report.requested}")
    click.echo(f"  auto threshold: {report.auto_threshold} bytes")
    for runtime in report.runtimes:
        click.echo(f"  {runtime.name}")
        click.echo(f"    capabilities: {', '.join(runtime.capabilities)}")
        for note in runtime.notes:
            click.echo(f"    note: {note}")
        click.echo(f"    effective for long prompt: {runtime.effective}")
        for warning in runtime.warnings:
            click.echo(f"    warning: {warning}")
