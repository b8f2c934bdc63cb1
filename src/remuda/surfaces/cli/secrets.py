"""``remuda secrets``"""

from __future__ import annotations

import sys

import click

from remuda.surfaces.cli.output import as_json, draw, table, write_json

_LONGEST = 64 * 1024

_SCOPE = click.option(
    "--scope", default="global", metavar="NAME", help="The agent's scope; 'global' is everybody's."
)


@click.group()
def secrets() -> None:
    """Keep the keys of agents' accounts, by scope.

    An agent gets the keys that its runtime needs, from its own scope (the 'secrets' of its configuration, or
    else its name) and then from 'global', and no others. A value is read from standard input or at a hidden
    prompt; it is never an argument, and is never shown again.

    \b
    Examples:
      remuda secrets set ANTHROPIC_API_KEY --scope work
      pass show work/anthropic | remuda secrets set ANTHROPIC_API_KEY --scope work
      remuda secrets set OPENAI_API_KEY --from-env OPENAI_API_KEY
      remuda secrets list
      remuda secrets remove ANTHROPIC_API_KEY --scope work
    """


@secrets.command("set")
@click.argument("key")
@click.argument("value", nargs=-1, metavar="")
@_SCOPE
@click.option("--from-env", metavar="VAR", help="Take the value of this variable.")
@click.option("--keyring", is_flag=True, help="Keep the value in the system's keyring.")
def set_secret(key: str, value: tuple[str, ...], scope: str, from_env: str | None, keyring: bool) -> None:
    """Keep a value under a name, which is that of the variable it is for."""
    from remuda.operations.secrets import from_variable, keep, takers
    from remuda.operations.world import open_world

    if value:
        raise click.UsageError("a value is never an argument: every user of the machine could read it")
    world = open_world()
    secret = from_variable(world, from_env) if from_env else _asked_for(key)
    path = keep(world, key, secret, scope=scope, keyring=keyring)
    click.echo(f"kept {key} for {scope} ({path})", err=True)
    if not takers(world, key):
        click.echo(f"no runtime takes {key}, so no agent will get it", err=True)


def _asked_for(key: str) -> str:
    """A value that is typed unseen, or all of standard input without the line end."""
    if sys.stdin.isatty():
        value: str = click.prompt(f"Value of {key}", hide_input=True, err=True)
        return value
    data = sys.stdin.buffer.read(_LONGEST + 1)
    try:
        return data.decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise click.UsageError("the value is not UTF-8") from None


@secrets.command("list")
@click.option("--scope", metavar="NAME", help="Only this scope.")
@as_json
def list_secrets(scope: str | None, as_json: bool) -> None:
    """Show the names of all secrets, and nothing else of them."""
    from remuda.operations.secrets import secrets as listed
    from remuda.operations.world import open_world

    answer = listed(open_world(), scope)
    if as_json:
        write_json(answer)
        return
    if not answer.secrets:
        click.echo("no secrets are kept", err=True)
        return
    rows = table("scope", "key", "kept in")
    for each in answer.secrets:
        rows.add_row(each.scope, each.key, each.kept)
    draw(rows)


@secrets.command("remove")
@click.argument("key")
@_SCOPE
def remove_secret(key: str, scope: str) -> None:
    """Forget a value, in the keyring too."""
    from remuda.operations.secrets import forget
    from remuda.operations.world import open_world

    forget(open_world(), key, scope=scope)
    click.echo(f"forgot {key} of {scope}", err=True)
