"""The runtime contract: everything Remuda knows about one agent CLI, as data and a few pure functions.

A runtime builds argv lists and reads output lines; it starts nothing and writes nothing itself.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

import msgspec

from remuda.core.errors import ErrorKind
from remuda.core.events import AnyUpdate, Failure, Question, StopReason, Usage
from remuda.runtimes.cell import Cell
from remuda.runtimes.login import Logins

if TYPE_CHECKING:
    from remuda.guard.model import Capability, Verdict
    from remuda.guard.tools import ToolCall
    from remuda.runtimes.transcripts import Transcripts
    from remuda.runtimes.wiring import Wiring

Mode = Literal["argv", "stdin", "tempfile", "connection"]
"""A prompt channel: an argument, standard input, a file, or a protocol spoken over both standard streams."""

Permission = Literal["ask", "bypass"]
"""Whether the runtime asks before acting (and, with nobody there, refuses) or does not ask at all."""

Access = Literal["read", "workspace"]
"""What is left to an agent whose tool calls nobody can judge: nothing but reading, or writing below its
working folder. It is how a capability is held where a runtime's ``Guarding`` says ``removal``."""

Arrival = Literal["exact", "trimmed", "contained"]
"""How the model hears the prompt: as it is; within other text and without white space at its ends; within
other text, but itself untouched."""

UNVERIFIED = "unverified"
"""Stands for the verified version where there is none."""

PROMPT = "{prompt}"
PROMPT_FILE = "{prompt_file}"


class Channel(msgspec.Struct, frozen=True):
    """A prompt channel with its evidence: the version on which it was seen to deliver byte for byte.

    ``arguments`` go at the end of the command line. A channel that is ``on_request`` is never picked by
    itself: argv shows the prompt to every user of the machine, so it is left alone where a private channel is
    proven.
    """

    mode: Mode
    arguments: tuple[str, ...]
    verified: str | None
    on_request: bool = False
    arrives: Arrival = "exact"
    note: str = ""


Judge = Callable[["ToolCall"], "Verdict"]
"""Judges a tool call before it runs and puts the verdict on record. Never raises: what goes wrong is a deny.
An *ask* comes out of it only in a session with a person to be asked."""


class Guard(msgspec.Struct, frozen=True, kw_only=True):
    """Who answers for the tool calls of a turn.

    ``hooks`` is the folder of the hook programs that are staged for the runtime, for those that need one
    beside the connection. ``note`` tells the model what it may do, for programs that cannot pass on why a
    call was refused. Of a ``binding`` guard every tool call needs the consent, and an agent that acts without
    it is stopped; another one only answers what the program itself asks about, in a person's own session.
    """

    capability: Capability
    judge: Judge
    hooks: Path
    note: str
    binding: bool = True


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """What a runtime is to do, as far as it shapes the command line.

    ``scratch`` is a private folder that is gone after the turn; ``keep`` is one that stays with the session,
    for programs that keep no sessions of their own. ``environ`` is what the program will find in its
    environment, beside what the runtime itself puts there. With a ``guard``, every tool call needs its
    consent, whatever the ``permission``; an ``access`` bound is for programs that nobody can guard.
    """

    cwd: Path
    scratch: Path
    keep: Path
    session: str
    resume: bool = False
    model: str | None = None
    permission: Permission = "ask"
    access: Access | None = None
    guard: Guard | None = None
    system_prompt: str | None = None
    append_system_prompt: str | None = None
    endpoint: str | None = None
    environ: Mapping[str, str] = {}
    extra: tuple[str, ...] = ()


class ScratchFile(msgspec.Struct, frozen=True):
    """A private file that must lie in the scratch folder before the program starts."""

    name: str
    content: str


class Invocation(msgspec.Struct, frozen=True, kw_only=True):
    """Arguments (behind the program), environment and files that carry out a turn.

    ``preamble`` goes in front of the prompt, for runtimes that have no other place for such instructions.
    ``keeps`` asks for the session's lasting folder to be there, with the ``kept`` files in it. ``launcher``
    is a command of ours that starts the program, which follows it: for one that needs another beside it.
    """

    arguments: tuple[str, ...]
    env: Mapping[str, str] = {}
    files: tuple[ScratchFile, ...] = ()
    preamble: str = ""
    keeps: bool = False
    kept: tuple[ScratchFile, ...] = ()
    launcher: tuple[str, ...] = ()


def system_prompt_files(turn: Turn) -> tuple[tuple[str, ...], tuple[ScratchFile, ...]]:
    """Arguments and files for programs that take system prompts by ``--[append-]system-prompt-file``."""
    texts = {"system-prompt": turn.system_prompt, "append-system-prompt": turn.append_system_prompt}
    given = {name: text for name, text in texts.items() if text is not None}
    arguments = (part for name in given for part in (f"--{name}-file", str(turn.scratch / f"{name}.md")))
    return tuple(arguments), tuple(ScratchFile(f"{name}.md", text) for name, text in given.items())


class TurnState(msgspec.Struct, kw_only=True):
    """What a stream parser has learnt so far.

    ``trouble`` is a failure that the program is still trying to get over; ``failure`` is final. ``guard`` is
    what is known of the guard at work: nothing is expected of it, it has yet to report, or it has. An agent
    that acts while it is ``awaited`` is stopped. ``answered``: the model has answered, though no update tells
    what; only a program that tells nothing before its end needs it.
    """

    session: str | None = None
    model: str | None = None
    text: str = ""
    usage: Usage | None = None
    cost_usd: float | None = None
    stop_reason: StopReason | None = None
    failure: Failure | None = None
    trouble: Failure | None = None
    refused: list[str] = []
    guard: Literal["none", "awaited", "reported"] = "none"
    answered: bool = False
    skipped: int = 0


class Parser(Protocol):
    """Turns a program's output into updates, and for a connection says what to send. Total: no input makes
    it raise."""

    state: TurnState

    def feed(self, line: bytes) -> Iterable[AnyUpdate]:
        """The updates in one line of stdout."""

    def hear(self, line: bytes) -> None:
        """One line of stderr, which may tell of trouble."""

    def say(self) -> bytes | None:
        """What to write to the program's stdin now; None closes it. Only asked of a connection: at the start
        and after each line."""

    def finish(self, leftover: bytes | None) -> None:
        """The output has ended; ``leftover`` is the content of the runtime's ``leaves`` file."""


Phase = Literal["opening", "idle", "working", "closed"]
"""A connection before its first prompt can be sent, between turns, in a turn, and at its end."""


class Connection(Parser, Protocol):
    """Any number of turns with one process, as a state machine without input and output of its own.

    ``state`` is that of the turn under way, or of the last one; it is a new one when ``say`` begins the next
    turn. ``acknowledged`` tells that the program has confirmed the prompt of this turn.
    """

    phase: Phase
    acknowledged: bool

    @property
    def questions(self) -> tuple[Question, ...]:
        """What waits for a person's word."""

    def prompt(self, text: str) -> None:
        """Begin a turn with this, now or after those that are under way and before it."""

    def abort(self) -> None:
        """Ask the program to end the turn under way; prompts that wait are dropped."""

    def decide(self, question: str, allowed: bool, reason: str) -> Iterable[AnyUpdate] | None:
        """A person's word, and the updates that it brings; None when nobody waits for it any more."""

    def close(self) -> None:
        """No prompt will come any more: end once the turns that there are have ended."""


class Connect(msgspec.Struct, frozen=True, kw_only=True):
    """How to converse with a runtime over many turns.

    ``command`` starts it for a person's own session, in which the program asks by its own rules; a session
    with a capability uses ``Guarding.command``. Both speak the same ``protocol``. ``acknowledges`` says what
    tells that a prompt has arrived. ``counts``: the tokens of a turn are told. ``shuts_out``: once its key
    was refused, the program does not call the model for a while, and fails without.
    """

    protocol: Literal["acp", "app-server", "rpc", "stream-json"]
    command: Callable[[Turn], Invocation]
    connection: Callable[[Turn], Connection]
    acknowledges: str
    verified: str
    arrives: Arrival = "exact"
    counts: bool = True
    shuts_out: bool = False


class Conduct(msgspec.Struct, frozen=True, kw_only=True):
    """How a program behaves where programs differ. Tests and ``doctor --verify`` hold it to this.

    ``ask`` is what becomes of a tool that needs approval when nobody is there: it is refused and that is
    told, refused perhaps without a word, or run. ``refuses`` are the bounds that it cannot be held to: a run
    that asks for one is refused. ``edit_reply``, for a program that offers its model no tools, is the reply
    that makes it write ``{content}`` into the file ``{path}``. ``builder_writes``: a shell command may write
    below the working folder. ``bypass_as_root`` are the variables without which a bypass fails as
    root. ``model_argument`` is how a caller may name the model behind ``--``, where the headless command
    takes that. ``own_sessions``: a session that Remuda itself never saw can be resumed, too. ``drop`` is what
    becomes of a turn whose answer breaks off: it fails, or the model is asked to go on from there.
    ``leftovers``: a turn may succeed although its tools left processes behind. ``startup`` is how many
    seconds it takes on a small machine before it first calls its model.
    """

    ask: Literal["refused", "silent", "runs"] = "refused"
    refuses: frozenset[Permission | Access] = frozenset()
    edit_reply: str | None = None
    builder_writes: bool = True
    bypass_as_root: Mapping[str, str] = {}
    system_prompt: bool = True
    append_system_prompt: bool = True
    model_choice: bool = True
    model_argument: str | None = "--model"
    tells_model: bool = True
    tells_thoughts: bool = True
    tells_tools: bool = True
    usage: bool = True
    cache_reads: bool = True
    cache_writes: bool = True
    resume: bool = True
    own_sessions: bool = True
    drop: Literal["fails", "goes on"] = "fails"
    leftovers: bool = True
    startup: float = 2.0
    quota: ErrorKind = "quota"

    @property
    def shell(self) -> bool:
        """Whether the model is offered a shell."""
        return self.edit_reply is None


def nothing_objectionable(_turn: Turn) -> str | None:
    """Nothing in the folder or the settings can switch the guard off."""
    return None


class Guarding(msgspec.Struct, frozen=True, kw_only=True):
    """How a runtime is held to a capability.

    ``approval``: a connection (``Runtime.connect``) on which nothing runs until the guard has answered;
    ``command`` and ``channel`` are what such a turn uses instead of the usual ones. ``removal``: tools are
    taken away, by an ``access`` bound; the usual command does that. ``nothing``: it cannot be held, and is
    refused.
    ``objection`` says what in the turn's folder or in the user's settings would let a tool call pass by the
    guard; such a run is refused. ``needs_hooks``: hook programs stand beside the connection. ``instructions``
    are the names of the project's instruction files that the program reads by itself, but not under guard.
    """

    by: Literal["approval", "removal", "nothing"] = "nothing"
    command: Callable[[Turn], Invocation] | None = None
    channel: Channel | None = None
    objection: Callable[[Turn], str | None] = nothing_objectionable
    needs_hooks: bool = False
    instructions: tuple[str, ...] = ()
    note: str = ""


class HelpCheck(msgspec.Struct, frozen=True):
    """Flags we rely on, and the help page that must mention them."""

    arguments: tuple[str, ...]
    flags: tuple[str, ...]


class Feature(msgspec.Struct, frozen=True):
    """One claim of the runtime matrix: verified on a version, documented by the vendor, or absent."""

    state: Literal["verified", "documented", "no"]
    note: str = ""


Locate = Callable[[str, Mapping[str, str]], tuple[str, ...] | None]


def on_path(binary: str, environ: Mapping[str, str]) -> tuple[str, ...] | None:
    """Find a program on the PATH of an environment; its relative folders are passed over, for safety."""
    places = environ.get("PATH", "").split(os.pathsep)
    candidates = (
        [Path(binary)] if "/" in binary else [Path(place, binary) for place in places if place[:1] == "/"]
    )
    found = next((path for path in candidates if path.is_file() and os.access(path, os.X_OK)), None)
    return (str(found),) if found else None


def nothing_wrong(_environ: Mapping[str, str]) -> list[str]:
    """No warnings: for programs whose environment holds no trap."""
    return []


def no_trace(_environ: Mapping[str, str]) -> str | None:
    """Nothing tells why a program is not there: for those of which nothing else is ever installed."""
    return None


def unchanged(prompt: str) -> str:
    """The prompt as it is: for programs that give no meaning to its first characters."""
    return prompt


class Runtime(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of agent CLI."""

    name: str
    title: str
    binary: str
    install: str
    verified_version: str
    minimum_version: str
    stability: Literal["verified", "experimental"]
    channels: tuple[Channel, ...]
    instruction_file: str
    print_command: Callable[[Turn], Invocation]
    spawn_command: Callable[[Turn], Invocation]
    parser: Callable[[Turn, str], Parser]
    conduct: Conduct = Conduct()
    patience: float = 4.0
    """Seconds to let it retry a failing model before its first answer: its first retry must fit in."""

    connect: Connect | None = None
    guarding: Guarding = Guarding()
    wiring: Wiring | None = None
    """How its own settings call the guard, for a person's everyday sessions; None where no hook holds."""

    transcripts: Transcripts | None = None
    """Where it keeps its conversations, and what they tell; None where nobody knows."""

    cell: Cell = Cell()
    """What it needs inside a sandbox."""

    logins: Logins | None = None
    """What shows that it has a login; None where nobody knows."""

    within: tuple[str, ...] = ()
    """Variables that it gives to what it starts in a session: whoever has one is inside of it."""

    rejects: frozenset[Mode] = frozenset()
    disarm: Callable[[str], str] = unchanged
    examine: Callable[[Mapping[str, str]], list[str]] = nothing_wrong
    absence: Callable[[Mapping[str, str]], str | None] = no_trace
    """Why its program is not there, for one of which something else may have been installed."""

    built_in: bool = False
    locate: Locate = on_path
    version_arguments: tuple[str, ...] = ("--version",)
    version_pattern: str = r"\d+\.\d+\.\d+(?:[\w.-]*\w)?"
    help_checks: tuple[HelpCheck, ...] = ()
    environment: tuple[str, ...] = ()
    keys: tuple[tuple[str, ...], ...] = ()
    """The variables that hold its keys, by account: those of one group stand for the same one."""

    home_variable: str | None = None
    node: tuple[int, int] | None = None
    """The oldest Node.js that runs it, for a program that crashes on older ones."""

    quiet: Mapping[str, str] = {}
    nested_markers: tuple[str, ...] = ()
    needs_beacon: bool = False
    leaves: str | None = None
    features: Mapping[str, Feature] = {}
    notes: tuple[str, ...] = ()

    @property
    def key_names(self) -> frozenset[str]:
        """Every variable that holds a key."""
        return frozenset(name for account in self.keys for name in account)

    def channel(self, mode: Mode) -> Channel:
        """The declared channel for a mode."""
        return next(channel for channel in self.channels if channel.mode == mode)
