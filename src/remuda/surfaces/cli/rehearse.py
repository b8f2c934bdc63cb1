"""``remuda rehearse``"""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from remuda.operations.rehearse import RehearseRequest


@click.command()
@click.option("--scenario", default="default", show_default=True, metavar="FILE", help="What the model says.")
@click.option("--port", default=0, metavar="N", help="The port to listen on; default: any free one.")
@click.option(
    "--record", type=Path, metavar="FILE", help="Append every request, prompts included, to a file."
)
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND…]")
def rehearse(scenario: str, port: int, record: Path | None, command: tuple[str, ...]) -> int:
    """Serve a scripted model on loopback, so that agents can be tried without an account.

    With a COMMAND, every agent that it runs through Remuda talks to the scripted model, and its exit code is
    returned. Without one, the server runs until Ctrl-C; point agents at it with REMUDA_ENDPOINT.

    \b
    Examples:
      remuda rehearse --scenario demo -- remuda run --agent claude --permission bypass "greet me"
      remuda rehearse --scenario my.yaml --port 8099

    \b
    A scenario is YAML; 'default', 'demo' and 'errors' are built in:
      name: greeting
      rules:
        - when: {contains: "file"}
          steps:
            - tool: shell
              input: {command: "ls"}
            - text: "The folder holds: {tool_result}"
        - steps:
            - text: "Hello!"
    """
    from remuda.operations.rehearse import RehearseRequest, around
    from remuda.operations.world import open_world

    request = RehearseRequest(scenario=scenario, port=port, record=record)
    return around(open_world(), request, command) if command else _serve(request)


def _serve(request: RehearseRequest) -> int:
    """Serve until interrupted, with a line for each request. The signals that end it are taken from the queue
    rather than handled: however early one comes, it is an orderly end."""
    from remuda.operations.rehearse import serving

    ends = {signal.SIGINT, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)
    with serving(request) as server:
        click.echo(server.url)
        click.echo(f"Use it: REMUDA_ENDPOINT={server.url} remuda run …   (Ctrl-C ends it)", err=True)
        seen = 0
        while signal.sigtimedwait(ends, 0.2) is None:
            for heard in server.heard()[seen:]:
                seen += 1
                click.echo(f"{heard.seq}: {heard.api or heard.path} -> {heard.status}", err=True)
    return 0
