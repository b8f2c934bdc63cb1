"""``remuda which`` and ``remuda use``"""

from __future__ import annotations

import click

from remuda.surfaces.cli.output import as_json, draw, table, write_json
from remuda.surfaces.cli.values import AGENTS


@click.command()
@click.option("--explain", is_flag=True, help="Show every source, its value, and why it won or lost.")
@click.option("--shell-snippet", is_flag=True, help="Print the resolver as a POSIX shell program.")
@as_json
def which(explain: bool, shell_snippet: bool, as_json: bool) -> None:
    """Show which agent is active here.

    \b
    The first valid source wins:
      REMUDA_AGENT_BINARY, AMPLIHACK_AGENT_BINARY   the environment
      launcher_context                              the agent last launched in this repository
      sticky                                        'remuda use NAME'
      config                                        agent = "…" in config.toml
      sole                                          the only agent that can be called
      default                                       copilot; 'remuda run' takes it only if it is installed
    """
    from remuda.operations.agents import snippet
    from remuda.operations.agents import which as operation
    from remuda.operations.world import open_world

    if shell_snippet:
        click.echo(snippet(open_world()), nl=False)
        return
    resolution = operation(open_world(), full=explain or as_json)
    if as_json:
        write_json(resolution)
    elif explain:
        drawn = table("source", "value", "outcome", "reason", "file")
        for row in resolution.explain:
            drawn.add_row(row.source, row.value or "-", row.outcome, row.reason or "", row.path or "")
        draw(drawn)
    else:
        click.echo(resolution.agent)


@click.command()
@click.argument("name", shell_complete=AGENTS)
def use(name: str) -> None:
    """Make the agent NAME your default wherever no stronger source speaks ('remuda which --explain')."""
    from remuda.operations.agents import use as operation
    from remuda.operations.world import open_world

    active = operation(open_world(), name)
    click.echo(f"{name.strip().lower()} is now your default agent.", err=True)
    if active.source != "sticky":
        click.echo(f"Here, {active.agent} is active nevertheless: {active.source} is stronger.", err=True)
