"""``remuda session show``"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from remuda.surfaces.cli.output import write_json

if TYPE_CHECKING:
    from remuda.operations.session.showing import Shown
    from remuda.operations.world import World


async def show_session(world: World, name: str, as_json: bool) -> None:
    """Print all that is known of a session."""
    from remuda.operations.session.showing import show

    shown = await show(world, name)
    if as_json:
        write_json(shown)
        return
    for label, value in _lines(shown):
        click.echo(f"{label:<12}{value}")


def _lines(shown: Shown) -> list[tuple[str, str]]:
    session = shown.session
    lines = [
        ("name", session.name or "-"),
        ("id", session.id),
        ("agent", f"{session.agent} ({session.mode})"),
        ("state", f"{session.state}, known from {session.source}, {session.age:.0f} s ago"),
        ("folder", session.cwd),
        ("started", session.started_at),
    ]
    if session.ended_at:
        lines.append(("ended", f"{session.ended_at} {session.failure or ''}".rstrip()))
    if session.runtime_session:
        lines.append(("its own id", session.runtime_session))
    if shown.usage is not None:
        usage = shown.usage
        cached = f" (+{usage.cached_read_tokens} cached)" if usage.cached_read_tokens else ""
        cost = "no cost known" if usage.cost_usd is None else f"${usage.cost_usd:.4f}"
        lines.append(("usage", f"{usage.input_tokens} tokens in{cached}, {usage.output_tokens} out, {cost}"))
    lines += [("waits", f"{each.id}: {each.tool}: {each.title} ({each.reason})") for each in shown.questions]
    lines += [("message", f"{each.id} {each.state}, {each.bytes} bytes") for each in shown.messages]
    return lines
