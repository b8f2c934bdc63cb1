"""OpenClaw: declaration and commands. What its flags cannot say goes into a configuration of this run."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from remuda.core.errors import RefusedError, UsageError
from remuda.runtimes import providers
from remuda.runtimes.base import (
    PROMPT,
    PROMPT_FILE,
    Channel,
    Conduct,
    Connect,
    Feature,
    Guarding,
    HelpCheck,
    Invocation,
    Runtime,
    ScratchFile,
    Turn,
)
from remuda.runtimes.login import ANY_KEY, OTHERS, Logins
from remuda.runtimes.openclaw.cell import CELL, GATEWAY
from remuda.runtimes.openclaw.connected import connection
from remuda.runtimes.openclaw.stream import NODE, parser
from remuda.runtimes.openclaw.usage import TRANSCRIPTS, state_folder

VERSION = "2026.9.6"
_CONFIG = "openclaw.json"
_OWN = "own.json"
_EMPTY = "0.0.1"
_MODEL = "gpt-5.4"
_READING = ["read", "ls", "find", "grep"]
_WRITING = ["write", "edit", "apply_patch"]
_FLEETING: dict[str, object] = {"session": {"maintenance": {"mode": "warn", "maxDiskBytes": False}}}
"""No upkeep of a state that is gone after the run: OpenClaw would start several threads for it."""

_ASKING: dict[str, object] = {
    "tools": {
        "allow": [*_READING, "exec"],
        "toolSearch": False,
        "fs": {"workspaceOnly": True},
        "exec": {"mode": "ask"},
    }
}
"""Tools of which the one that may do harm asks. Those that write ask nobody, and so are left out."""

_SILENT = {"OPENCLAW_LOG_LEVEL": "silent"}
"""Its log would be written over its own screen."""

_TELLING = {"OPENCLAW_DEBUG_MODEL_TRANSPORT": "1"}
"""Has the log tell of calls of the model that succeed, too, by their status: nothing else tells before the
end that anything was done."""


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
    """Where the user's own configuration is to be found."""
    if place := environ.get("OPENCLAW_CONFIG_PATH"):
        return Path(place)
    return state_folder(environ) / _CONFIG


def _bounded(turn: Turn, own: Path) -> tuple[ScratchFile, ...]:
    """The user's own configuration with the bounds on top. What it says of tools is taken out first, as lists
    would be joined; so are its agents where there is writing, as what is said of one of them goes first."""
    writing = turn.access == "workspace"
    without: dict[str, object] = {"agents": {"entries": None}} if writing else {}
    anew: dict[str, object] = {"agents": {"entries": {}}} if writing else {}
    return (
        ScratchFile(_OWN, json.dumps({"$include": str(own), "tools": None, **without})),
        ScratchFile(_CONFIG, json.dumps({"$include": f"./{_OWN}", **_FLEETING, **anew, **_bounds(turn)})),
    )


def _configuration(turn: Turn, own: Path | None) -> tuple[ScratchFile, ...]:
    """This run's configuration, in files: another endpoint's, or what lies on top of the user's own."""
    bounds = _bounds(turn)
    if own is not None and bounds:
        return _bounded(turn, own)
    base = _endpoint(turn) if turn.endpoint is not None else {"$include": str(own)} if own else {}
    return (ScratchFile(_CONFIG, json.dumps({**base, **_FLEETING, **bounds})),)


def _env(turn: Turn, own: Path | None) -> dict[str, str]:
    """Nothing is downloaded into a folder that is gone after the run; nor is anything of the user's read or
    written where another endpoint is asked for."""
    if turn.endpoint is not None:
        return {"OPENCLAW_OFFLINE": "1", "OPENCLAW_STATE_DIR": str(turn.scratch)}
    if own is None:
        return {"OPENCLAW_OFFLINE": "1"}
    roots = filter(None, (turn.environ.get("OPENCLAW_INCLUDE_ROOTS"), str(own.resolve().parent)))
    return {"OPENCLAW_OFFLINE": "1", "OPENCLAW_INCLUDE_ROOTS": os.pathsep.join(roots)}


def print_command(turn: Turn) -> Invocation:
    """One headless turn, with its state in the scratch folder: a run that is killed leaves nothing behind.
    There is no place for additional instructions, so they precede the prompt."""
    if turn.system_prompt is not None:
        raise UsageError(
            "OpenClaw has no way to replace its system prompt",
            "Use --append-system-prompt, or another agent (claude, codex).",
        )
    if turn.resume:
        raise RefusedError(
            "OpenClaw cannot continue a session: every headless run is a new one",
            "Leave out --session, or choose an agent that continues sessions ('remuda runtimes').",
        )
    own = None if turn.endpoint is not None else own_config(turn.environ)
    own = own if own and own.is_file() else None
    arguments = ["agent", "exec", "--json", "--cwd", str(turn.cwd), "--state-dir", str(turn.scratch)]
    if turn.model and turn.endpoint is None:
        arguments += ["--model", turn.model]
    return Invocation(
        arguments=(*arguments, "--config", str(turn.scratch / _CONFIG), "--timeout", "0", *turn.extra),
        env={**_env(turn, own), **_TELLING},
        files=_configuration(turn, own),
        preamble=turn.append_system_prompt or "",
    )


def spawn_command(turn: Turn) -> Invocation:
    """The terminal interface, without a gateway. It works in a folder of its own, asks nobody and knows no
    bounds; where another endpoint is asked for, its state stays with the session."""
    if turn.access is not None:
        raise RefusedError(
            "OpenClaw's terminal interface cannot be held to a capability",
            "Use 'remuda run', or choose another agent.",
        )
    arguments = ("chat", "--session", turn.session, *turn.extra)
    if turn.endpoint is None:
        return Invocation(arguments=arguments, env=_SILENT)
    config = json.dumps({**_endpoint(turn), **_bounds(turn)})
    return Invocation(
        arguments=arguments,
        env={**_SILENT, "OPENCLAW_OFFLINE": "1", "OPENCLAW_STATE_DIR": str(turn.keep)},
        keeps=True,
        kept=(ScratchFile(_CONFIG, config),),
    )


def _gateway(turn: Turn) -> dict[str, object]:
    """The configuration of a gateway for one session: it works in the session's folder, puts nothing of its
    own there, and keeps its log to itself."""
    defaults: dict[str, object] = {
        "model": {"primary": f"remuda/{turn.model or _MODEL}"},
        "workspace": str(turn.cwd),
        "skipBootstrap": True,
    }
    return {
        **_endpoint(turn),
        "agents": {"defaults": defaults},
        "cron": {"enabled": False},
        "logging": {"file": str(turn.scratch / "gateway.log")},
        **({} if turn.permission == "bypass" else _ASKING),
    }


def connect_command(turn: Turn) -> Invocation:
    """The Agent Client Protocol. Where another endpoint is asked for, a gateway of the session's own stands
    behind it, whose state stays with the session; otherwise it is the user's gateway, which goes by its own
    rules."""
    if turn.system_prompt is not None or turn.append_system_prompt is not None:
        raise UsageError(
            "OpenClaw takes no instructions of yours over its connection",
            "Put them into the first prompt, or use another agent.",
        )
    if turn.endpoint is None and turn.model:
        raise UsageError(
            "OpenClaw's gateway decides on the model",
            "Leave out --model, or change it with 'openclaw models set'.",
        )
    if turn.endpoint is None:
        return Invocation(arguments=("acp", *turn.extra))
    config = json.dumps(_gateway(turn))
    return Invocation(
        launcher=(sys.executable, "-I", str(GATEWAY), str(turn.scratch / _CONFIG)),
        arguments=("--", "acp", *turn.extra),
        env={"OPENCLAW_OFFLINE": "1", "OPENCLAW_SKIP_CHANNELS": "1", "OPENCLAW_STATE_DIR": str(turn.keep)},
        files=(ScratchFile(_CONFIG, config),),
        keeps=True,
    )


class _Package(msgspec.Struct, frozen=True):
    version: str = ""


def _packages(environ: Mapping[str, str]) -> Iterator[str]:
    """The versions that npm installed beside the folders of programs."""
    for place in environ.get("PATH", "").split(os.pathsep):
        with contextlib.suppress(OSError, msgspec.MsgspecError, UnicodeDecodeError):
            package = Path(place).parent / "lib" / "node_modules" / "openclaw" / "package.json"
            yield msgspec.json.decode(package.read_bytes(), type=_Package).version


def absence(environ: Mapping[str, str]) -> str | None:
    """That npm installed the one version which any Node.js will do for: it has no program in it."""
    if _EMPTY not in _packages(environ):
        return None
    oldest = ".".join(map(str, NODE))
    return (
        f"npm installed the empty openclaw {_EMPTY}, as it does with a Node.js older than {oldest}: "
        f"get a newer one, then openclaw@{VERSION}"
    )


RUNTIME = Runtime(
    name="openclaw",
    title="OpenClaw",
    binary="openclaw",
    install=f"npm install -g openclaw@{VERSION}",
    verified_version=VERSION,
    minimum_version="2026.9.0",
    node=NODE,
    absence=absence,
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
    connect=Connect(
        protocol="acp",
        command=connect_command,
        connection=connection,
        acknowledges="the first update of the turn, a question in it, or its result",
        verified=VERSION,
        arrives="contained",
        counts=False,
        shuts_out=True,
    ),
    parser=parser,
    transcripts=TRANSCRIPTS,
    cell=CELL,
    guarding=Guarding(by="removal"),
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
    keys=(providers.ANTHROPIC, providers.OPENAI, providers.GOOGLE, *providers.OTHERS),
    home_variable="OPENCLAW_STATE_DIR",
    logins=Logins(
        variables=(*ANY_KEY, "OPENCLAW_CONFIG_PATH"),
        home=".openclaw",
        files=("openclaw.json", "credentials", "agents"),
        elsewhere=(*OTHERS, ".clawdbot", ".moltbot"),
    ),
    quiet={"OPENCLAW_NO_AUTO_UPDATE": "1", "OPENCLAW_NO_RESPAWN": "1", "DO_NOT_TRACK": "1"},
    within=("OPENCLAW_SHELL",),
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
        startup=20.0,
    ),
    features={
        "headless": Feature("verified", "one document at the end, no stream"),
        "hooks": Feature("no", "plugin hooks are not loaded by agent exec"),
        "connection": Feature("verified", "ACP, through its gateway"),
        "resume": Feature("no", "every headless run is a new session"),
        "usage": Feature("verified", "no cache writes"),
        "sandbox": Feature("documented", "containers"),
    },
    notes=(
        "OpenClaw asks nobody before it acts: without a bypass it gets reading tools only.",
        "Bounds on its tools were seen to hold in its own agent loop, not in others that it can start.",
        "It needs Node.js 24.16 or newer. On an older one npm installs an empty 0.0.1 unless told a version.",
        "In a run, its tools find and grep need fd and ripgrep on the PATH: nothing is downloaded.",
        "A turn whose tools leave a process behind fails at its very end, and its answer is lost.",
        "It starts slowly: several seconds pass before it asks the model.",
        "Its connection goes through the gateway that you run ('openclaw gateway run'): that gateway's own "
        "configuration says what may be done and what is asked about. Where none runs, use --mode tmux.",
        "With another endpoint, a connected session has a gateway of its own, which takes half a minute or "
        "more to start. Without a bypass it reads, and asks about commands; those that redirect their output "
        "it refuses by itself.",
    ),
)
