"""``remuda sandbox``"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from remuda.core.errors import EXIT_OK, EXIT_REFUSED
from remuda.surfaces.cli.output import as_json, draw, table, write_json
from remuda.surfaces.cli.values import PROFILES

if TYPE_CHECKING:
    from remuda.operations.sandboxes import Shown


@click.group()
def sandbox() -> None:
    """Show the walls that an agent can be put behind, and whether they hold here.

    A profile says what an agent sees, changes, reaches and uses up. 'remuda run --sandbox PROFILE' enforces
    it on the whole agent process; one that cannot be enforced is refused. Profiles of your own are
    [sandboxes.NAME] in the configuration.

    \b
    Examples:
      remuda sandbox list
      remuda sandbox check
      remuda run --sandbox offline "tidy up this folder"
    """


@sandbox.command("list")
@as_json
def list_(as_json: bool) -> None:
    """List the profiles, and whether they can be enforced here."""
    from remuda.operations.sandboxes import listed
    from remuda.operations.world import open_world

    answer = listed(open_world())
    if as_json:
        write_json(answer)
        return
    _draw(answer.sandboxes)


def _draw(profiles: tuple[Shown, ...]) -> None:
    drawn = table("profile", "folder", "network", "enforced by", "what it means")
    for each in profiles:
        by = each.engine or ("nothing, by intent" if not each.walls else "✗ refused")
        drawn.add_row(each.name, each.workspace if each.walls else "-", each.network, by, each.description)
    draw(drawn)


@sandbox.command()
@click.argument("name", shell_complete=PROFILES)
@as_json
def show(name: str, as_json: bool) -> None:
    """Show one profile in full."""
    from remuda.operations.sandboxes import show as operation
    from remuda.operations.world import open_world

    answer = operation(open_world(), name)
    if as_json:
        write_json(answer)
        return
    drawn = table("", "")
    drawn.show_header = False
    limits = {key: getattr(answer.limits, key) for key in answer.limits.__struct_fields__}
    rows = {
        "profile": answer.name,
        "meaning": answer.description,
        "extends": answer.extends or "",
        "working folder": answer.workspace if answer.walls else "anything",
        "paths": "\n".join(f"{rule.mode:<4} {rule.path}" for rule in answer.paths),
        "network": answer.network,
        "allow": ", ".join(answer.allow),
        "limits": ", ".join(f"{key} {value:g}" for key, value in limits.items() if value),
        "variables let in": ", ".join(answer.env_allow),
        "variables kept out": ", ".join(answer.env_deny),
        "enforced by": answer.engine or "; ".join(answer.reasons) or "nothing, by intent",
    }
    for key, value in rows.items():
        if value:
            drawn.add_row(key, value)
    draw(drawn)


@sandbox.command()
@as_json
def check(as_json: bool) -> int:
    """Look at what this machine can enforce, and why something cannot be. Exit code 5 if a profile cannot."""
    from remuda.operations.sandboxes import checked
    from remuda.operations.world import open_world

    answer = checked(open_world())
    code = EXIT_OK if all(each.enforceable for each in answer.sandboxes) else EXIT_REFUSED
    if as_json:
        write_json(answer)
        return code
    for engine in answer.engines:
        click.echo(f"{'✓' if engine.works else '✗'} {engine.name}: {engine.detail}")
    click.echo(f"  limits that hold here: {', '.join(answer.limits)}")
    for each in answer.sandboxes:
        by = f"enforced by {each.engine}" if each.engine else "; ".join(each.reasons) or "no walls, by intent"
        click.echo(f"{'✓' if each.enforceable else '✗'} {each.name}: {by}")
    return code
