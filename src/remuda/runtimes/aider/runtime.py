"""Aider: declaration and commands."""

from __future__ import annotations

import json
import os
from pathlib import Path

from remuda.core.errors import NotFoundError, RefusedError, UsageError
from remuda.runtimes import providers
from remuda.runtimes.aider.cell import CELL
from remuda.runtimes.aider.stream import parser
from remuda.runtimes.aider.usage import ABOUT, HISTORY, TRANSCRIPTS, About
from remuda.runtimes.base import (
    PROMPT,
    PROMPT_FILE,
    Channel,
    Conduct,
    Feature,
    Guarding,
    HelpCheck,
    Invocation,
    Runtime,
    ScratchFile,
    Turn,
)

VERSION = "0.86.2"
_INSTRUCTIONS = "instructions.md"
_SETTINGS = "model-settings.yml"
_METADATA = "model-metadata.json"
_GIT = "gitconfig"

_QUIET = (
    *("--no-show-model-warnings", "--no-check-update", "--no-show-release-notes", "--no-analytics"),
    *("--no-gitignore", "--no-auto-commits", "--no-dirty-commits", "--map-tokens=0"),
)
"""No questions at the start, no traces in the repository."""

_HEADLESS = (
    *(*_QUIET, "--no-pretty", "--no-stream", "--no-fancy-input"),
    *("--analytics-log=/dev/stdout", "--llm-history-file=/dev/stdout"),
)
"""Plain output with exact token counts; both logs go where we read."""

_ALWAYS = ("--yes-always", "--no-suggest-shell-commands", "--no-detect-urls", "--disable-playwright")
"""Without --yes-always the end of its input is a yes to everything, with it a no to shell commands."""

_LOOK_ONLY = ("--chat-mode=ask", "--dry-run", "--load=", "--test-cmd=", "--no-notifications")
"""Replies are not applied, and no command of a configuration file is run. --dry-run alone would still stage
files."""

_PROJECT_SETTINGS = (".aider.conf.yml", ".env", ".aider.model.settings.yml", ".aider.model.metadata.json")
"""The files of a project that are settings for Aider."""

_GIT_FALLBACK = "[user]\n\tname = aider\n\temail = aider@localhost\n[include]\n\tpath = /etc/gitconfig\n"
"""Aider writes a made-up author into the repository's configuration where git knows none."""


def _bound(turn: Turn) -> tuple[str, ...]:
    """What aider may do. It edits or it does not: nothing holds its edits below the working folder."""
    if turn.access == "workspace":
        raise RefusedError(
            "Aider cannot be held to its working folder: it edits any file that the model names",
            "Use another agent for this capability, or run Aider with --permission bypass and no capability.",
        )
    return () if turn.permission == "bypass" and turn.access is None else _LOOK_ONLY


def _endpoint(turn: Turn) -> tuple[tuple[str, ...], tuple[ScratchFile, ...]]:
    """Another model endpoint. As parameters of every request it also wins over a project's .env file, and a
    model that is described needs no look at the price list on the network."""
    model = turn.model or ("gpt-5.4" if turn.endpoint is not None else None)
    chosen = () if model is None else (f"--model={model}",)
    if turn.endpoint is None or model is None:
        return chosen, ()
    to = {
        "api_base": f"{turn.endpoint}/v1",
        "api_key": "remuda-endpoint-key",
        "custom_llm_provider": "openai",
        "max_retries": 0,
    }
    settings = [{"name": "aider/extra_params", "extra_params": to}]
    metadata = {model: {"litellm_provider": "openai", "mode": "chat"}}
    files = (ScratchFile(_SETTINGS, json.dumps(settings)), ScratchFile(_METADATA, json.dumps(metadata)))
    arguments = (
        *(*chosen, f"--weak-model={model}", f"--editor-model={model}"),
        f"--model-settings-file={turn.scratch / _SETTINGS}",
        f"--model-metadata-file={turn.scratch / _METADATA}",
    )
    return arguments, files


def _instructions(turn: Turn) -> tuple[tuple[str, ...], tuple[ScratchFile, ...]]:
    if turn.system_prompt is not None:
        raise UsageError(
            "Aider has no way to replace its system prompt",
            "Use --append-system-prompt, or another agent (claude, codex).",
        )
    if turn.append_system_prompt is None:
        return (), ()
    path = turn.scratch / _INSTRUCTIONS
    return (f"--read={path}",), (ScratchFile(path.name, turn.append_system_prompt),)


def _history(turn: Turn) -> tuple[str, ...]:
    """Aider has no sessions: a conversation is the file that it is told to read and to go on with."""
    path = turn.keep / HISTORY
    if turn.resume and not path.is_file():
        raise NotFoundError(
            "there is no earlier conversation of this Aider session", "Start a new one without --session."
        )
    restore = ("--restore-chat-history",) if turn.resume else ()
    return (f"--chat-history-file={path}", f"--input-history-file={turn.scratch / 'input.history'}", *restore)


def _top(cwd: Path) -> Path | None:
    """The top folder of the repository that a folder belongs to."""
    return next((folder for folder in (cwd, *cwd.parents) if (folder / ".git").exists()), None)


def _git(cwd: Path) -> tuple[str, ...]:
    """Outside a repository aider would make one."""
    return () if _top(cwd) else ("--no-git",)


def print_command(turn: Turn) -> Invocation:
    """One headless turn. What bounds it comes last, so that nothing before can lift it."""
    model, model_files = _endpoint(turn)
    instructions, instruction_files = _instructions(turn)
    return Invocation(
        arguments=(
            *(*_HEADLESS, *_git(turn.cwd), *_history(turn), *model, *instructions),
            *(*turn.extra, *_ALWAYS, *_bound(turn)),
        ),
        env={
            "COLUMNS": "9999",
            "BROWSER": "true",
            "GIT_CONFIG_SYSTEM": str(turn.scratch / _GIT),
        },
        files=(*model_files, *instruction_files, ScratchFile(_GIT, _GIT_FALLBACK)),
        keeps=True,
        kept=(ScratchFile(ABOUT, About(turn.session, str(turn.cwd)).text),),
    )


def spawn_command(turn: Turn) -> Invocation:
    """The terminal interface, in which aider asks before it acts. It does not stream: in the middle of an
    answer nothing on its screen would tell that it is not done."""
    model, model_files = _endpoint(turn)
    instructions, instruction_files = _instructions(turn)
    bound = _bound(turn) if turn.access is not None else ()
    bypass = ("--yes-always",) if turn.permission == "bypass" else ()
    return Invocation(
        arguments=(
            *(*_QUIET, "--no-stream", *_git(turn.cwd), *_history(turn), *model, *instructions),
            *(*bypass, *turn.extra, *bound),
        ),
        env={"GIT_CONFIG_SYSTEM": str(turn.scratch / _GIT)},
        files=(*model_files, *instruction_files, ScratchFile(_GIT, _GIT_FALLBACK)),
        keeps=True,
        kept=(ScratchFile(ABOUT, About(turn.session, str(turn.cwd)).text),),
    )


def objection(turn: Turn) -> str | None:
    """What Aider reads from a project as its own settings: they can have commands run at its start, and a
    .env file sets any variable, for the programs that Aider runs as well. Nothing keeps Aider from reading
    them."""
    found = _top(turn.cwd)
    for place in dict.fromkeys((turn.cwd, found) if found else (turn.cwd,)):
        for name in _PROJECT_SETTINGS:
            if os.path.lexists(place / name):
                return f"Aider would take {place / name} for settings of its own"
    return None


def disarm(prompt: str) -> str:
    """Aider runs a leading slash as a command of its own and a leading bang in a shell; a space in front
    keeps both text."""
    return f" {prompt}" if prompt.startswith(("/", "!")) else prompt


RUNTIME = Runtime(
    name="aider",
    title="Aider",
    binary="aider",
    install="uv tool install aider-chat",
    verified_version=VERSION,
    minimum_version="0.86.0",
    stability="verified",
    channels=(
        Channel(
            *("tempfile", (f"--message-file={PROMPT_FILE}",), VERSION),
            arrives="contained",
            note="a reminder of the edit format follows; every kind of line end becomes a line feed",
        ),
        Channel("argv", (f"--message={PROMPT}",), VERSION, on_request=True, arrives="contained"),
    ),
    instruction_file="CONVENTIONS.md",
    print_command=print_command,
    spawn_command=spawn_command,
    parser=parser,
    transcripts=TRANSCRIPTS,
    cell=CELL,
    guarding=Guarding(
        by="removal",
        objection=objection,
        note="it answers and applies nothing; capabilities that write are refused, and so are projects with "
        "settings of Aider's or a .env file",
    ),
    disarm=disarm,
    help_checks=(
        HelpCheck(
            ("--help",),
            (
                *("--message", "--message-file", "--model", "--chat-mode", "--yes-always", "--dry-run"),
                *("--suggest-shell-commands", "--detect-urls", "--disable-playwright", "--auto-commits"),
                *("--dirty-commits", "--analytics-log", "--llm-history-file", "--chat-history-file"),
                *("--restore-chat-history", "--read", "--model-settings-file", "--model-metadata-file"),
            ),
        ),
    ),
    environment=(
        *("AIDER_*", "LITELLM_*", "OPENAI_*", "ANTHROPIC_*", "OPENROUTER_*", "GEMINI_*", "DEEPSEEK_*"),
        *("AZURE_*", "GROQ_*", "XAI_*", "MISTRAL_*", "OLLAMA_*", "LM_STUDIO_*", "VERTEXAI_*"),
    ),
    keys=(providers.ANTHROPIC, providers.OPENAI, providers.GOOGLE, *providers.OTHERS, providers.AZURE),
    quiet={
        "AIDER_CHECK_UPDATE": "false",
        "AIDER_ANALYTICS": "false",
        "AIDER_SHOW_RELEASE_NOTES": "false",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    },
    nested_markers=("OR_APP_NAME", "OR_SITE_URL"),
    conduct=Conduct(
        ask="silent",
        refuses=frozenset({"workspace"}),
        edit_reply="{path}\n```\n{content}```\n",
        builder_writes=False,
        own_sessions=False,
        system_prompt=False,
        tells_thoughts=False,
        cache_reads=False,
        cache_writes=False,
        startup=5.0,
    ),
    patience=2.0,
    features={
        "headless": Feature("verified"),
        "hooks": Feature("no", "aider has no tools: it applies the edits in the model's reply"),
        "connection": Feature("no"),
        "resume": Feature("verified", "from a Markdown history: headings and quotations in replies get lost"),
        "usage": Feature("verified", "without the side calls that summarise a long history"),
        "sandbox": Feature("no", "capabilities that write are refused"),
    },
    notes=(
        "Aider edits only with --permission bypass; otherwise it answers and applies nothing.",
        "The repository map is off, as it leaves a cache in the repository: '-- --map-tokens 1024' adds it.",
        "Commits are left to you: '-- --auto-commits' lets aider make them. New files are staged.",
        "A project's .env and .aider.conf.yml are aider's own configuration: trust the project, or use a "
        "capability, which refuses to run there.",
    ),
)
