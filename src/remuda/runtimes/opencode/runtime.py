"""OpenCode: declaration and commands. What no flag can say goes into a configuration for this run only."""

from __future__ import annotations

from typing import Literal

import msgspec

from remuda.runtimes import providers
from remuda.runtimes.base import (
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
from remuda.runtimes.opencode import guarded
from remuda.runtimes.opencode.cell import CELL
from remuda.runtimes.opencode.hooks import WIRING
from remuda.runtimes.opencode.stream import parser
from remuda.runtimes.opencode.usage import TRANSCRIPTS

VERSION = "1.18.33"
_NAME = "remuda"
_SYSTEM = "system-prompt.md"
_APPENDED = "append-system-prompt.md"
_ELSEWHERE = {
    "OPENCODE_DISABLE_MODELS_FETCH": "1",
    "OPENCODE_DISABLE_SHARE": "1",
    "npm_config_@opencode-ai:registry": "http://127.0.0.1:9",
    "npm_config_fetch_retries": "0",
}
"""With another model endpoint, OpenCode keeps to itself. It installs its plugin library whether there are
plugins or not, so that one is looked for where nobody answers."""

_Action = Literal["allow", "ask", "deny"]
_Rules = dict[str, _Action | dict[str, _Action]]


class _Agent(msgspec.Struct, frozen=True, omit_defaults=True):
    """An agent of OpenCode's: its rules come after all others, so nothing configured elsewhere lifts them."""

    mode: str = ""
    permission: _Rules = {}
    prompt: str = ""
    disable: bool = False


class _Options(msgspec.Struct, frozen=True, rename={"base_url": "baseURL", "api_key": "apiKey"}):
    base_url: str
    api_key: str = "remuda-endpoint-key"


class _Provider(msgspec.Struct, frozen=True):
    """A model provider. Its dialect is the one that counts what is written to a cache, too."""

    options: _Options
    models: dict[str, dict[str, str]]
    npm: str = "@ai-sdk/anthropic"
    name: str = _NAME


class _Experimental(msgspec.Struct, frozen=True):
    """A refused tool call is told to the model and does not end the turn. A text that is pasted stays as it
    is: behind one that is summed up on the screen, OpenCode puts a space."""

    continue_loop_on_deny: bool = True
    disable_paste_summary: bool = True


class _Config(msgspec.Struct, frozen=True, omit_defaults=True):
    """The configuration of one run, which is merged over all others."""

    experimental: _Experimental | None = None
    default_agent: str = ""
    agent: dict[str, _Agent] = {}
    instructions: tuple[str, ...] = ()
    model: str = ""
    small_model: str = ""
    enabled_providers: tuple[str, ...] = ()
    provider: dict[str, _Provider] = {}


def _reading(otherwise: _Action) -> _Rules:
    """What only reads is allowed, but for the secrets that OpenCode itself guards."""
    guarded: dict[str, _Action] = {
        "*": "allow",
        "*.env": otherwise,
        "*.env.*": otherwise,
        "*.env.example": "allow",
    }
    plain: _Rules = dict.fromkeys(("glob", "grep", "list", "lsp", "skill", "todowrite"), "allow")
    return {"*": otherwise, "read": guarded, **plain}


def _bound(turn: Turn) -> bool:
    """Whether every tool has to ask the guard."""
    return turn.guard is not None and turn.guard.binding


def _rules(turn: Turn) -> _Rules:
    """The turn's permissions, none for a bypass. With a guard every tool asks; agents below this one have
    rules of their own, so there are none."""
    if _bound(turn):
        return {"*": "ask", "task": "deny"}
    return {} if turn.permission == "bypass" else _reading("ask")


def _agents(turn: Turn) -> dict[str, _Agent]:
    """An agent of our own where rules or a system prompt need one. The prompt's text stays in its file."""
    rules = _rules(turn)
    prompt = "" if turn.system_prompt is None else f"{{file:{turn.scratch / _SYSTEM}}}"
    agents = {_agent(turn): _Agent("primary", rules, prompt)} if rules or prompt else {}
    return agents if not _bound(turn) else {**agents, "title": _Agent(disable=True)}


def _agent(turn: Turn) -> str:
    """Our agent's name; for a guarded turn nobody has settings for it."""
    return _NAME if not _bound(turn) else f"{_NAME}-{turn.scratch.name}"


def _config(turn: Turn) -> _Config:
    agents = _agents(turn)
    config = _Config(
        experimental=_Experimental(),
        default_agent=_agent(turn) if agents else "",
        agent=agents,
        instructions=() if turn.append_system_prompt is None else (str(turn.scratch / _APPENDED),),
        model=_model(turn),
    )
    return config if turn.endpoint is None else _elsewhere(config, turn.endpoint)


def _elsewhere(config: _Config, endpoint: str) -> _Config:
    """The configuration with another model endpoint, and with no way to any other."""
    provider = _Provider(_Options(f"{endpoint}/v1"), {config.model.removeprefix(f"{_NAME}/"): {}})
    return msgspec.structs.replace(
        config, small_model=config.model, enabled_providers=(_NAME,), provider={_NAME: provider}
    )


def _model(turn: Turn) -> str:
    if turn.endpoint is None:
        return turn.model or ""
    return f"{_NAME}/{turn.model or 'claude-sonnet-4-5'}"


def _one_model(turn: Turn) -> Turn:
    """OpenCode fails when it is told two models: one in the caller's own arguments replaces ours."""
    for number, argument in enumerate(turn.extra[:-1]):
        if argument in ("-m", "--model"):
            rest = (*turn.extra[:number], *turn.extra[number + 2 :])
            return msgspec.structs.replace(turn, model=turn.extra[number + 1], extra=rest)
    return turn


def _invocation(turn: Turn, *leading: str) -> Invocation:
    texts = ((_SYSTEM, turn.system_prompt), (_APPENDED, turn.append_system_prompt))
    return Invocation(
        arguments=(*leading, *turn.extra),
        env={
            **(_ELSEWHERE if turn.endpoint else {}),
            "OPENCODE_CONFIG_CONTENT": msgspec.json.encode(_config(turn)).decode(),
        },
        files=tuple(ScratchFile(name, text) for name, text in texts if text is not None),
    )


def _flags(turn: Turn) -> tuple[str, ...]:
    """Session, model and permission. The model's flag wins over one that is configured for an agent."""
    model = _model(turn)
    return (
        *(("--session", turn.session) if turn.resume else ()),
        *(("--model", model) if model else ()),
        *(("--auto",) if turn.permission == "bypass" else ()),
    )


def print_command(turn: Turn) -> Invocation:
    """One headless turn with a JSON event stream. Only the log tells the model and failures that are retried;
    without a title, OpenCode would ask the model for one."""
    turn = _one_model(turn)
    title = () if turn.resume else ("--title", "Remuda")
    logs = ("--print-logs", "--log-level", "INFO")
    return _invocation(turn, "run", "--format", "json", "--thinking", *logs, *title, *_flags(turn))


def spawn_command(turn: Turn) -> Invocation:
    """The terminal interface."""
    turn = _one_model(turn)
    return _invocation(turn, *_flags(turn))


def connect_command(turn: Turn) -> Invocation:
    """The Agent Client Protocol over stdin and stdout."""
    return _invocation(_one_model(turn), "acp", "--print-logs", "--log-level", "INFO")


def guarded_command(turn: Turn) -> Invocation:
    """A connection on which every tool asks, without the project's settings and without plugins."""
    invocation = _invocation(turn, "acp", "--pure", "--print-logs", "--log-level", "INFO")
    env = {**invocation.env, "OPENCODE_DISABLE_PROJECT_CONFIG": "1"}
    return msgspec.structs.replace(invocation, env=env)


RUNTIME = Runtime(
    name="opencode",
    title="OpenCode",
    binary="opencode",
    install="npm install -g opencode-ai",
    verified_version=VERSION,
    minimum_version="1.18.0",
    stability="verified",
    channels=(
        Channel("stdin", (), VERSION, note="byte for byte; on the command line OpenCode puts it in quotes"),
    ),
    instruction_file="AGENTS.md",
    print_command=print_command,
    spawn_command=spawn_command,
    connect=Connect(
        protocol="acp",
        command=connect_command,
        connection=guarded.connection,
        acknowledges="the first update of the turn, a question in it, or its result",
        verified=VERSION,
    ),
    parser=parser,
    transcripts=TRANSCRIPTS,
    cell=CELL,
    guarding=Guarding(
        by="approval",
        command=guarded_command,
        channel=Channel("connection", (), VERSION, note="ACP; byte for byte"),
        objection=guarded.objection,
        instructions=("AGENTS.md", "CLAUDE.md"),
        note="ACP, as an agent all of whose tools ask; no agents below it, no plugins",
    ),
    wiring=WIRING,
    help_checks=(
        HelpCheck(
            ("run", "--help"),
            (
                *("--format", "--thinking", "--title", "--session", "--auto", "--model"),
                *("--print-logs", "--log-level"),
            ),
        ),
        HelpCheck(("--help",), ("opencode acp",)),
    ),
    environment=(
        *("OPENCODE_*", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"),
        *("ANTHROPIC_*", "OPENAI_*", "GEMINI_API_KEY", "GOOGLE_*", "OPENROUTER_API_KEY", "AWS_PROFILE"),
        *("AWS_REGION", "AWS_BEARER_TOKEN_BEDROCK", "AZURE_*", "GROQ_API_KEY", "MISTRAL_API_KEY"),
        *("XAI_API_KEY", "DEEPSEEK_API_KEY"),
    ),
    keys=(
        *(("OPENCODE_API_KEY",), providers.ANTHROPIC, providers.OPENAI, providers.GOOGLE),
        *providers.OTHERS,
        *(providers.AZURE, ("AWS_BEARER_TOKEN_BEDROCK",)),
    ),
    quiet={"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_LSP_DOWNLOAD": "1"},
    within=("OPENCODE",),
    nested_markers=("OPENCODE", "OPENCODE_PID", "OPENCODE_PRINT_LOGS", "OPENCODE_LOG_LEVEL"),
    conduct=Conduct(startup=6.0),
    features={
        "headless": Feature("verified"),
        "hooks": Feature("verified", "plugins; one that does not load is passed over without a word"),
        "connection": Feature("verified", "ACP; also an HTTP server"),
        "resume": Feature("verified", "the session id cannot be chosen"),
        "usage": Feature("verified", "cached input is counted apart, whatever the provider"),
        "sandbox": Feature("no", "permission rules only"),
    },
    notes=(
        "OpenCode has no home of its own to move: XDG_CONFIG_HOME, XDG_DATA_HOME, XDG_STATE_HOME and "
        "XDG_CACHE_HOME move its files.",
        "Models are named provider/model.",
        "With a provider of your own, OpenCode fetches its list of models, and its plugin library from npm.",
        "Where ripgrep (rg) is missing, its search tools download it on their first use.",
        "A project's plugins are run whatever is switched off, so no guarded run starts where it has some.",
        "Remuda sets OPENCODE_CONFIG_CONTENT; a value of your own is not used.",
    ),
)
