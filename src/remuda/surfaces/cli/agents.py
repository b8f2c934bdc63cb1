"""``remuda agents``"""

from __future__ import annotations

import click

from remuda.surfaces.cli.output import as_json, draw, table, write_json


@click.command()
@as_json
def agents(as_json: bool) -> None:
    """List the agents that can be called, and why the others cannot.

    An agent is declared in config.toml, as a runtime with an account, labels and bounds of its own; a runtime
    without one is an agent of its own name.

    \b
    Examples:
      remuda config set agents.claude-work.runtime claude
      remuda agents --json
      remuda run --tag fast "explain this repo"

    The status 'not logged in' is a guess from variables and files, and keeps no agent from being called.
    """
    from remuda.operations.agents import agents as operation
    from remuda.operations.world import open_world

    answer = operation(open_world())
    if as_json:
        write_json(answer)
        return
    drawn = table("", "agent", "runtime", "status", "tags", "then", "")
    for agent in answer.agents:
        drawn.add_row(
            "*" if agent.active else "",
            agent.name,
            agent.runtime,
            agent.status,
            " ".join(agent.tags),
            " ".join(agent.failover_to),
            agent.reason or agent.path or "",
        )
    draw(drawn)
