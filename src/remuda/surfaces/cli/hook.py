"""``remuda hook``"""

from __future__ import annotations

import click

from remuda.core.errors import EXIT_OK
from remuda.surfaces.cli.values import AGENTS


@click.command()
@click.argument("event")
@click.argument("payload", required=False, metavar="[JSON]")
@click.option(
    "--dialect",
    default="claude",
    show_default=True,
    metavar="claude|codex|copilot|gemini|hermes",
    help="Whose answers to give.",
)
@click.option("--runtime", default="", metavar="NAME", help="Whose hook this is, for the record.")
@click.option("--path", is_flag=True, help="Only print where the installed hook program is.")
@click.option(
    "--agent",
    metavar="NAME",
    shell_complete=AGENTS,
    help="With --path: of which agent; default: the active one.",
)
def hook(event: str, payload: str | None, dialect: str, runtime: str, path: bool, agent: str | None) -> int:
    """Answer an agent CLI's hook: judge the tool call in a payload before it runs.

    EVENT is one of session-start, session-stop, user-prompt-submit, pre-tool-use, post-tool-use, stop,
    subagent-stop and pre-compact, in any spelling. The payload comes on standard input or as an argument.
    REMUDA_CAPABILITY, REMUDA_WORKTREE, REMUDA_PROJECT_ROOT and REMUDA_BRANCH_PREFIX say who asks, and where.

    Exit code 0 and {} let the tool run, as far as the guard is concerned; exit code 2 denies, and so does
    whatever goes wrong. Events other than pre-tool-use are only put on record ('remuda guard log').

    \b
    Example:
      echo '{"tool_name": "Bash", "tool_input": {"command": "pwd"}}' | remuda hook pre-tool-use
      remuda hook pre-tool-use --agent claude --path
    """
    from remuda.operations.hook import hook as operation
    from remuda.operations.hook import hook_path
    from remuda.operations.world import open_world

    if path:
        click.echo(str(hook_path(open_world(), event, agent)))
        return EXIT_OK
    return operation(event, payload, dialect, runtime)
