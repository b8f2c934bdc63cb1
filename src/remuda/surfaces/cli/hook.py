"""``remuda hook``"""

from __future__ import annotations

import click


@click.command()
@click.argument("event")
@click.argument("payload", required=False, metavar="[JSON]")
@click.option(
    "--dialect",
    default="claude",
    show_default=True,
    metavar="claude|copilot",
    help="Whose answers to give; Codex takes Claude's.",
)
def hook(event: str, payload: str | None, dialect: str) -> int:
    """Answer an agent CLI's hook: judge the tool call in a payload before it runs.

    EVENT is one of session-start, session-stop, user-prompt-submit, pre-tool-use, post-tool-use, stop,
    subagent-stop and pre-compact, in any spelling. The payload comes on standard input or as an argument.
    REMUDA_CAPABILITY, REMUDA_WORKTREE, REMUDA_PROJECT_ROOT and REMUDA_BRANCH_PREFIX say who asks, and where.

    Exit code 0 and {} let the tool run, as far as the guard is concerned; exit code 2 denies, and so does
    whatever goes wrong. Events other than pre-tool-use are only put on record ('remuda guard log').

    \b
    Example:
      echo '{"tool_name": "Bash", "tool_input": {"command": "pwd"}}' | remuda hook pre-tool-use
    """
    from remuda.operations.hook import hook as operation

    return operation(event, payload, dialect)
