"""``remuda completion``"""

from __future__ import annotations

import click

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script for SHELL.

    \b
    bash:  eval "$(remuda completion bash)"      in ~/.bashrc
    zsh:   eval "$(remuda completion zsh)"       in ~/.zshrc
    fish:  remuda completion fish > ~/.config/fish/completions/remuda.fish
    """
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(ctx.find_root().command, {}, "remuda", "_REMUDA_COMPLETE").source())
