"""The messages of Codex's app server, as far as a client for one guarded turn meets them.

What comes in is decoded with patience: fields may be missing, null, or new.
"""

from __future__ import annotations

import msgspec

from remuda.runtimes.acp_frames import NULL, decode
from remuda.runtimes.codex.stream import Change, Item

INITIALIZED = b'{"method":"initialized"}\n'

ITEM_TYPES = {
    "agentMessage": "agent_message",
    "reasoning": "reasoning",
    "commandExecution": "command_execution",
    "fileChange": "file_change",
    "mcpToolCall": "mcp_tool_call",
    "webSearch": "web_search",
    "collabAgentToolCall": "collab_tool_call",
}
"""What the app server calls the things in a turn, and what they are called elsewhere."""


class Wire(msgspec.Struct, frozen=True, rename="camel"):
    """Base of what travels in parameters and results."""


class Hook(Wire, frozen=True):
    """A hook that Codex knows of, and whether it would run."""

    key: str = ""
    event_name: str = ""
    command: str | None = None
    source: str | None = None
    enabled: bool = False
    is_managed: bool | None = None
    current_hash: str = ""
    trust_status: str = ""

    @property
    def runs(self) -> bool:
        """Whether it is called at all: one that is not trusted is passed over without a word."""
        return self.enabled and (bool(self.is_managed) or self.trust_status in ("trusted", "managed"))


class HooksAt(Wire, frozen=True):
    """The hooks of one folder."""

    hooks: list[Hook] = []


class HookList(Wire, frozen=True):
    """The answer to ``hooks/list``."""

    data: list[HooksAt] = []

    @property
    def hooks(self) -> list[Hook]:
        """All of them."""
        return [hook for place in self.data for hook in place.hooks]


class Source(Wire, frozen=True):
    """Where a layer of the configuration comes from."""

    type: str = ""


class Layer(Wire, frozen=True):
    """A layer of the configuration; one that does not count says why."""

    name: Source = Source()
    disabled_reason: str | None = None


class McpServer(Wire, frozen=True, rename=None):
    """An MCP server of the user's: which of its tools have settings of their own."""

    tools: dict[str, msgspec.Raw] | None = None


class Settings(Wire, frozen=True, rename=None):
    """The configuration, as far as it matters here."""

    mcp_servers: dict[str, McpServer] | None = None


class Configuration(Wire, frozen=True):
    """The answer to ``config/read``."""

    config: Settings | None = None
    layers: list[Layer] | None = None


class Thread(Wire, frozen=True):
    """A session."""

    id: str = ""


class Policy(Wire, frozen=True):
    """The sandbox that commands run in."""

    type: str = ""


class Opened(Wire, frozen=True):
    """The answer to ``thread/start`` and ``thread/resume``: what really holds in the session."""

    thread: Thread = Thread()
    model: str | None = None
    approval_policy: msgspec.Raw = NULL
    approvals_reviewer: str = ""
    sandbox: Policy = Policy()


class Trouble(Wire, frozen=True):
    """Why something failed. While Codex tries again, only the details say."""

    message: str = ""
    additional_details: str | None = None

    @property
    def words(self) -> str:
        """All that is said about it."""
        return f"{self.message} ({self.additional_details})" if self.additional_details else self.message


class Round(Wire, frozen=True):
    """A turn, and how it ended if it has."""

    id: str = ""
    status: str = ""
    error: Trouble | None = None


class Begun(Wire, frozen=True):
    """The answer to ``turn/start``."""

    turn: Round = Round()


class Counts(Wire, frozen=True):
    """Tokens."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_input_tokens: int = 0
    cache_write_input_tokens: int = 0
    reasoning_output_tokens: int = 0


class TokenUsage(Wire, frozen=True):
    """Tokens since the session began, and those of the last answer."""

    total: Counts = Counts()
    last: Counts = Counts()


class HookEntry(Wire, frozen=True):
    """Something that a hook said."""

    text: str = ""


class HookRun(Wire, frozen=True):
    """One call of a hook; its id ends with that of the tool call."""

    id: str = ""
    event_name: str = ""
    status: str = ""
    entries: list[HookEntry] = []


class ChangeKind(Wire, frozen=True, rename=None):
    """What becomes of a file."""

    type: str = ""
    move_path: str | None = None


class FileChange(Wire, frozen=True):
    """A file that is changed."""

    path: str = ""
    kind: ChangeKind = ChangeKind()


class Thing(Wire, frozen=True):
    """A thing in a turn; which fields it has depends on its type."""

    id: str = ""
    type: str = ""
    text: str | None = None
    summary: list[str] | None = None
    content: msgspec.Raw = NULL
    command: str | None = None
    process_id: str | None = None
    aggregated_output: str | None = None
    exit_code: int | None = None
    status: str | None = None
    server: str | None = None
    tool: str | None = None
    arguments: msgspec.Raw = NULL
    result: msgspec.Raw = NULL
    error: msgspec.Raw = NULL
    query: str | None = None
    changes: list[FileChange] | None = None


class RawItem(Wire, frozen=True, rename=None):
    """What the model itself said: here, which tool it calls with what."""

    type: str = ""
    call_id: str = ""
    name: str = ""
    arguments: str = ""


class Meta(Wire, frozen=True, rename=None):
    """What Codex adds to a question that is really about a tool call."""

    codex_approval_kind: str = ""
    tool_params: msgspec.Raw = NULL


class Params(Wire, frozen=True):
    """The parameters of a notification or a request; which there are depends on the method."""

    thread_id: str | None = None
    turn_id: str | None = None
    turn: Round | None = None
    item: msgspec.Raw = NULL
    item_id: str | None = None
    run: HookRun | None = None
    error: Trouble | None = None
    token_usage: TokenUsage | None = None
    kind: str | None = None
    command: str | None = None
    cwd: str | None = None
    environment_id: str | None = None
    additional_permissions: msgspec.Raw = NULL
    network_approval_context: msgspec.Raw = NULL
    grant_root: str | None = None
    server_name: str | None = None
    request_id: int | str | None = None
    message: str | None = None
    meta: Meta | None = msgspec.field(name="_meta", default=None)


def item_of(thing: Thing) -> Item:
    """A thing as the plain output of Codex would have it."""
    return Item(
        id=thing.id,
        type=ITEM_TYPES.get(thing.type, thing.type),
        text=thing.text or "\n".join(thing.summary or decode(thing.content, list[str]) or ()),
        command=thing.command or "",
        aggregated_output=thing.aggregated_output or _served(thing),
        exit_code=thing.exit_code,
        status=thing.status or "",
        server=thing.server or "",
        tool=thing.tool or "",
        query=thing.query or "",
        changes=[Change(change.path, change.kind.type) for change in thing.changes or ()],
    )


class _Text(Wire, frozen=True):
    text: str = ""


class _Outcome(Wire, frozen=True):
    content: list[_Text] = []


def _served(thing: Thing) -> str:
    """What an MCP server answered."""
    if (error := decode(thing.error, Trouble)) is not None:
        return error.message
    outcome = decode(thing.result, _Outcome) or _Outcome()
    return "\n".join(part.text for part in outcome.content if part.text)


def shown(raw: RawItem) -> str:
    """The title of a tool call that never became a thing: its command, or its name."""
    given = decode(raw.arguments.encode(), dict[str, msgspec.Raw]) or {}
    command = decode(given.get("cmd", given.get("command", NULL)), str)
    return command or raw.name


def same(one: msgspec.Raw, other: msgspec.Raw) -> bool:
    """Whether two texts are the same JSON object; nothing at all is an empty one."""
    return (decode(one, dict[str, object]) or {}) == (decode(other, dict[str, object]) or {})
