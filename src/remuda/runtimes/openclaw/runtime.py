"""OpenClaw: declaration and commands. What its flags cannot say goes into a configuration of this run."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from remuda.core.errors import RefusedError, UsageError
from remuda.runtimes.base import (
    PROMPT,
    PROMPT_FILE,
    Channel,
    Conduct,
    Feature,
    HelpCheck,
    Invocation,
    Runtime,
    ScratchFile,
    Turn,
)
from remuda.runtimes.openclaw.stream import parser

VERSION = "2026.9.6"
_CONFIG = "openclaw.json"
_MODEL = "gpt-5.4"
_READING = ["read", "ls", "find", "grep"]
_WRITING = ["write", "edit", "apply_patch"]


def _bounds(turn: Turn) -> dict[str, object]:
    """The tools that are left. OpenClaw asks nobody before it acts, so what may not be done is taken away;
    its hooks are no alternative, as ``agent exec`` does not load them."""
    if turn.access is None and turn.permission == "bypass":
        return {}
    allowed = _READING + (_WRITING if turn.access == "workspace" else [])
    tools = {
        "allow": allowed,
        "toolSearch": False,
        "fs": {"workspaceOnly": True},
        "exec": {"mode": "deny", "applyPatch": {"workspaceOnly": True}},
    }
    return {"tools": tools}


def _endpoint(turn: Turn) -> dict[str, object]:
    """Another model endpoint, as a provider of its own; without plugins, which only cost time then."""
    name = turn.model or _MODEL
    model = {
        "id": name,
        "name": name,
        "reasoning": True,
        "input": ["text"],
        "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
        "contextWindow": 200_000,
        "maxTokens": 32_000,
    }
    provider = {
        "baseUrl": f"{turn.endpoint}/v1",
        "apiKey": "remuda-endpoint-key",
        "api": "openai-completions",
        "models": [model],
    }
    return {
        "models": {"providers": {"remuda": provider}},
        "agents": {"defaults": {"model": {"primary": f"remuda/{name}"}}},
        "plugins": {"enabled": False},
    }


def own_config(environ: Mapping[str, str]) -> Path:
    """Where the user's own configuration lies."""
    if place := environ.get("OPENCLAW_CONFIG_PATH"):
        return Path(place)
    profile = environ.get("OPENCLAW_PROFILE")
    home = Path(environ.get("OPENCLAW_HOME") or environ.get("HOME") or "/")
    state = environ.get("OPENCLAW_STATE_DIR") or home / (f".openclaw-{profile}" if profile else ".openclaw")
    return Path(state) / _CONFIG


def _config(turn: Turn) -> dict[str, object]:
    """This run's configuration; nothing when the user's own will do. Where it is bounded, it is the user's
    own with the bounds on top."""
    bounds = _bounds(turn)
    if turn.endpoint is not None:
        return {**_endpoint(turn), **bounds}
    own = own_config(os.environ)
    return {"$include": str(own), **bounds} if bounds and own.is_file() else bounds


def _env(turn: Turn, config: dict[str, object]) -> dict[str, str]:
    if turn.endpoint is not None:
        return {"OPENCLAW_STATE_DIR": str(turn.scratch)}
    included = config.get("$include")
    return {"OPENCLAW_INCLUDE_ROOTS": str(Path(str(included)).resolve().parent)} if included else {}


def print_command(turn: Turn) -> Invocation:
    """One headless turn, with its state in the scratch folder: a run that is killed leaves nothing behind.
    There is no place for additional instructions, so they precede the prompt."""
    if turn.system_prompt is not None:
        raise UsageError(
            "OpenClaw has no way to replace its system prompt",
            "Use --append-system-prompt, or another agent (claude, codex).",
        )
    if turn.resume:
        raise UsageError(
            "OpenClaw begins a new session with every headless run",
            "Leave out --session, or choose an agent that continues sessions ('remuda runtimes').",
        )
    config = _config(turn)
    arguments = ["agent", "exec", "--json", "--cwd", str(turn.cwd), "--state-dir", str(turn.scratch)]
    if config:
        arguments += ["--config", str(turn.scratch / _CONFIG)]
    if turn.model and turn.endpoint is None:
        arguments += ["--model", turn.model]
    return Invocation(
        arguments=(*arguments, "--timeout", "0", *turn.extra),
        env=_env(turn, config),
        files=(ScratchFile(_CONFIG, json.dumps(config)),) if config else (),
        preamble=turn.append_system_prompt or "",
    )


def spawn_command(turn: Turn) -> Invocation:
    """The terminal interface, without a gateway. It works in a folder of its own and knows no bounds."""
    if turn.access is not None:
        raise RefusedError(
            "OpenClaw's terminal interface cannot be held to a capability",
            "Use 'remuda run', or choose another agent.",
        )
    return Invocation(arguments=("chat", *turn.extra))


RUNTIME = Runtime(
    name="openclaw",
    title="OpenClaw",
    binary="openclaw",
    install=f"npm install -g openclaw@{VERSION}",
    verified_version=VERSION,
    minimum_version="2026.9.0",
    stability="verified",
    channels=(
        Channel(
            "stdin",
            ("--message-file", "-"),
            VERSION,
            arrives="contained",
            note="with the date in front and a line about the run behind",
        ),
        Channel("tempfile", ("--message-file", PROMPT_FILE), VERSION, arrives="contained"),
        Channel("argv", ("--", PROMPT), VERSION, on_request=True, arrives="contained"),
    ),
    instruction_file="AGENTS.md",
    print_command=print_command,
    spawn_command=spawn_command,
    parser=parser,
    version_pattern=r"\d+\.\d+\.\d+",
    help_checks=(
        HelpCheck(
            ("agent", "exec", "--help"),
            (
                *("--json", "--message-file", "--config", "--cwd", "--state-dir", "--model", "--timeout"),
                "--auth-env-only",
            ),
        ),
    ),
    environment=(
        *("OPENCLAW_*", "OPENAI_*", "ANTHROPIC_*", "OPENROUTER_*", "GEMINI_*", "GOOGLE_API_KEY", "XAI_*"),
        *("MISTRAL_*", "GROQ_*", "DEEPSEEK_*", "DO_NOT_TRACK"),
    ),
    home_variable="OPENCLAW_STATE_DIR",
    quiet={"OPENCLAW_NO_AUTO_UPDATE": "1", "OPENCLAW_NO_RESPAWN": "1", "DO_NOT_TRACK": "1"},
    nested_markers=(
        *("OPENCLAW_CLI", "OPENCLAW_SHELL", "OPENCLAW_PATH_BOOTSTRAPPED", "OPENCLAW_NODE_OPTIONS_READY"),
        "OPENCLAW_WORKSPACE_DIR",
    ),
    conduct=Conduct(
        ask="silent",
        builder_writes=False,
        system_prompt=False,
        tells_thoughts=False,
        tells_tools=False,
        cache_writes=False,
        resume=False,
        leftovers=False,
    ),
    features={
        "headless": Feature("verified", "one document at the end, no stream"),
        "hooks": Feature("no", "plugin hooks are not loaded by agent exec"),
        "connection": Feature("documented", "ACP, through a running gateway only"),
        "resume": Feature("no", "every headless run is a new session"),
        "usage": Feature("verified", "no cache writes"),
        "sandbox": Feature("documented", "containers"),
    },
    notes=(
        "OpenClaw asks nobody before it acts: without a bypass it gets reading tools only.",
        "It needs Node 24.16 or later. On an older one npm installs an empty 0.0.1 unless told a version.",
        "A turn whose tools leave a process behind fails at its very end, and its answer is lost.",
        "It starts slowly: several seconds pass before it asks the model.",
    ),
)
