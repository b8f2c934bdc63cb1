"""What ``remuda run`` and ``remuda task submit`` can be told: the same, for they are the same request."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from remuda.core.errors import UsageError
from remuda.surfaces.cli.values import AGENTS, AMOUNT, PROFILES, TAGS

if TYPE_CHECKING:
    from remuda.operations.requests import RunRequest

POLICIES = ("auto", "explicit", "round-robin", "failover", "tag-routed")
CAPABILITIES = ("scout", "reviewer", "lead", "coordinator", "builder", "merger", "supervised")


def _text(path: str | Path, what: str) -> str:
    """A file's text, exactly; line ends are not translated."""
    try:
        data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
        return data.decode("utf-8")
    except OSError as error:
        raise UsageError(f"cannot read {what} {path}: {error.strerror}", "Check the path.") from None
    except UnicodeDecodeError:
        raise UsageError(f"{what} is not valid UTF-8", "Convert it to UTF-8 first.") from None


def read_prompt(argument: str) -> str:
    """The prompt itself, ``-`` for standard input, ``@file`` for a file (``@@`` for a literal ``@``)."""
    if argument == "-":
        return _text("-", "the prompt")
    if argument.startswith("@@"):
        return argument[1:]
    if argument.startswith("@"):
        return _text(argument[1:], "the prompt file")
    return argument


def _system_prompt(text: str | None, file: Path | None, name: str) -> str | None:
    if text is not None and file is not None:
        raise UsageError(f"--{name} and --{name}-file exclude each other", "Give one of them.")
    return _text(file, f"the --{name}-file") if file else text


def variables(pairs: tuple[str, ...]) -> dict[str, str]:
    for pair in pairs:
        if not pair.partition("=")[0] or "=" not in pair:
            raise UsageError("--env takes KEY=VALUE", "For example: --env RUST_LOG=debug")
    return {name: value for name, _, value in (pair.partition("=") for pair in pairs)}


_OPTIONS = (
    click.argument("prompt"),
    click.argument("extra", nargs=-1, type=click.UNPROCESSED, metavar="[-- ARGUMENTS…]"),
    click.option(
        "--agent",
        metavar="NAME",
        shell_complete=AGENTS,
        help="The agent to run; default: the active one ('remuda which').",
    ),
    click.option("--tag", metavar="LABEL", shell_complete=TAGS, help="Run an agent that carries this label."),
    click.option(
        "--policy", type=click.Choice(POLICIES), help="How the agent is picked; default: dispatch.mode."
    ),
    click.option("--resume-elsewhere", is_flag=True, help="Let the next agent take over in the middle, too."),
    click.option("--model", metavar="NAME", help="The model, as the agent calls it."),
    click.option(
        "--capability",
        type=click.Choice(CAPABILITIES),
        help="What the agent is for, and so may do: every tool call is judged by that.",
    ),
    click.option(
        "--worktree", type=Path, metavar="DIR", help="The folder a guarded agent may change; default: --cwd."
    ),
    click.option(
        "--branch-prefix", metavar="PREFIX", help="How the names of a guarded agent's branches have to begin."
    ),
    click.option("--unproven", is_flag=True, help="Run although the guard is not proven on this version."),
    click.option(
        "--permission",
        type=click.Choice(("ask", "bypass")),
        default="ask",
        show_default=True,
        help="ask: what needs approval is refused, for nobody is there; bypass: the agent does not ask.",
    ),
    click.option(
        "--sandbox",
        metavar="PROFILE",
        shell_complete=PROFILES,
        help="Wall the whole agent in: workspace, read-only, offline …",
    ),
    click.option("--unsafe-yes", is_flag=True, help="Confirm the sandbox danger-full-access, which is none."),
    click.option("--isolated", is_flag=True, help="Work in a git worktree, and get a branch back."),
    click.option("--unattended", is_flag=True, help="Nobody is there: a bypass needs a trusted folder."),
    click.option("--nested", is_flag=True, help="Let the agent that asks be called itself."),
    click.option("--system-prompt", metavar="TEXT", help="Replace the agent's system prompt."),
    click.option("--system-prompt-file", type=Path, metavar="FILE", help="… with the text of a file."),
    click.option("--append-system-prompt", metavar="TEXT", help="Add to the agent's system prompt."),
    click.option("--append-system-prompt-file", type=Path, metavar="FILE", help="… the text of a file."),
    click.option("--cwd", type=Path, metavar="DIR", help="The folder to work in; default: this one."),
    click.option("--session", metavar="ID", help="Continue an earlier session."),
    click.option("--timeout", type=AMOUNT, metavar="SECONDS", help="End the run after this time."),
    click.option("--idle-timeout", type=AMOUNT, metavar="SECONDS", help="… after this silence."),
    click.option(
        "--queue-within",
        type=AMOUNT,
        metavar="SECONDS",
        help="Wait so long where limits hold.",
    ),
    click.option("--env", multiple=True, metavar="KEY=VALUE", help="A variable for the agent; repeatable."),
)


def run_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the prompt and the options of a run."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def run_request(
    *,
    prompt: str,
    extra: tuple[str, ...],
    env: tuple[str, ...],
    system_prompt: str | None,
    system_prompt_file: Path | None,
    append_system_prompt: str | None,
    append_system_prompt_file: Path | None,
    **options: object,
) -> RunRequest:
    """The request that the options of a run come to."""
    import msgspec

    from remuda.operations.requests import RunRequest

    return msgspec.convert(
        {
            **options,
            "prompt": read_prompt(prompt),
            "env": variables(env),
            "extra": extra,
            "system_prompt": _system_prompt(system_prompt, system_prompt_file, "system-prompt"),
            "append_system_prompt": _system_prompt(
                append_system_prompt, append_system_prompt_file, "append-system-prompt"
            ),
        },
        RunRequest,
    )
