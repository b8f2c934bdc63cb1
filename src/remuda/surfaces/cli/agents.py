"""``remuda agents``"""

from __future__ import annotations

import click

from remuda.surfaces.cli.output import as_json, draw, table, write_json


@click.command()
@as_json
def agents(as_json: bool) -> None:
    """List the agents that can be called, and why the others cannot."""
    from remuda.operations.agents import agents as operation
    from remuda.operations.world import open_world

    answer = operation(open_world())
    if as_json:
        write_json(answer)
        return
    drawn = table("", "agent", "runtime", "status", "")
    for agent in answer.agents:
        drawn.add_row(
            "*" if agent.active else "", agent.name, agent.runtime, agent.status, agent.path or agent.reason
        )
    draw(drawn)
