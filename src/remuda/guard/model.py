"""What the guard reasons with: words, effects and verdicts.

A tool call is turned into effects, each of them with where it comes from; a capability's table turns effects
into a verdict. Nothing here knows of files, of runtimes or of a shell's grammar.
"""

from __future__ import annotations

from typing import Literal

import msgspec

Taint = Literal["secret", "environment", "network", "decoder", "file", "input", "unknown"]
"""Where data comes from: a credential, the environment, the network, a decoder (base64, gzip …), a file whose
content nobody has looked at, the standard input of the whole command, or who knows where."""

NOTHING: frozenset[Taint] = frozenset()


class Word(msgspec.Struct, frozen=True):
    """A word after expansion: every text that it may have, or none at all when it may be anything.

    ``pattern``: the texts are globs, each of which may stand for any number of matching names. ``taint`` is
    where its text may come from, beside the command itself. ``prefix``: how it begins, where it may be
    anything (``--output=$X``).
    """

    values: tuple[str, ...]
    pattern: bool = False
    taint: frozenset[Taint] = NOTHING
    prefix: str = ""

    @property
    def text(self) -> str | None:
        """The text, when there is only one that it may have."""
        return self.values[0] if len(self.values) == 1 and not self.pattern else None


UNKNOWN = Word((), taint=frozenset({"unknown"}))


def literal(text: str) -> Word:
    """A word that is what it is."""
    return Word((text,))


How = Literal["create", "truncate", "append", "edit", "delete", "delete-tree", "mode", "link", "rename"]
"""What becomes of a path that is written: ``delete-tree`` takes everything below it, ``rename`` moves it
away, ``mode`` changes permissions, owner or times."""

GitOperation = Literal[
    "read", "fetch", "index", "commit", "merge", "branch", "tag", "stash", "worktree", "clone",
    "push", "remote", "discard", "rewrite", "config", "execute", "shared",
]  # fmt: skip
"""``index``: stage and unstage. ``merge``: also pull, rebase, cherry-pick, revert, am, apply --index.
``branch``: make, rename, switch to. ``discard``: what loses uncommitted work, branches, stashes or reflogs.
``rewrite``: history that others may have. ``remote``: changes on a server by other means than a push, and
remotes' settings. ``shared``: what all worktrees share, such as notes and packed refs. ``execute``: a
setting, alias or option that makes git run a program."""

SystemKind = Literal[
    "privilege", "process", "service", "schedule", "mount", "user", "device", "package", "publish",
    "container", "cluster", "cloud", "database", "power", "network", "agent", "credential",
]  # fmt: skip
"""``package``: packages of the system or of all projects. ``process``: signals to processes of others.
``agent``: another coding agent that is started, above all one that asks nobody. ``credential``: a credential
that a program shows or changes (``gh auth token``), where no path tells."""


class Effect(msgspec.Struct, frozen=True, kw_only=True, tag_field="effect"):
    """Something that a tool call may do. ``via`` are the programs it is reached through, outermost first;
    ``source`` is the piece of the command it comes from."""

    via: tuple[str, ...] = ()
    source: str = ""


class Read(Effect, frozen=True, tag="read"):
    """Reads a file or folder. ``names``: only that it is there, its entries or its metadata are shown."""

    path: Word
    names: bool = False


class Write(Effect, frozen=True, tag="write"):
    """Changes a path. ``follows``: a symbolic link at its end is followed, as by opening it. ``forced``: it
    asks nobody and minds no protection, as ``rm -f``. ``target`` is where a new symbolic link points, as
    written: relative to the folder of the link. ``content`` is where what is written comes from; ``copies``
    is
    what is copied there with all the links in it, an unknown word where that is an archive."""

    path: Word
    how: How
    follows: bool = True
    forced: bool = False
    target: Word | None = None
    content: frozenset[Taint] = NOTHING
    copies: Word | None = None


class Execute(Effect, frozen=True, tag="execute"):
    """Runs a program whose effects are its own affair: one of the project's (build, test, script), or one
    that nobody knows. ``at`` is the folder that it runs in."""

    program: Word
    argv: tuple[Word, ...] = ()
    kind: Literal["project", "unknown"] = "unknown"
    at: Word | None = None


class Evaluate(Effect, frozen=True, tag="evaluate"):
    """Runs code that cannot be read: text from ``origin`` given to an interpreter, or too hard a source."""

    language: str
    origin: frozenset[Taint] = NOTHING


class Network(Effect, frozen=True, tag="network"):
    """Talks to a host; ``carries`` is what kind of data goes out with it. A ``query`` asks a service by that
    service's own client, which neither sends nor fetches files (``gh pr view``)."""

    direction: Literal["get", "send", "query"]
    host: Word
    carries: frozenset[Taint] = NOTHING


class Git(Effect, frozen=True, tag="git"):
    """Does something to a repository. ``forced``: it overwrites or loses what is there. ``refs`` are the
    branches, tags or remote refs it changes, as far as they are named."""

    operation: GitOperation
    forced: bool = False
    refs: tuple[Word, ...] = ()
    repository: Word = literal(".")
    detail: str = ""


class System(Effect, frozen=True, tag="system"):
    """Changes the machine, a service, or something far away. ``destroys``: what is lost stays lost.
    ``adds``: it
    only makes or starts something, as people do all day."""

    kind: SystemKind
    detail: str = ""
    destroys: bool = False
    adds: bool = False


class Environment(Effect, frozen=True, tag="environment"):
    """Sets a variable for what runs afterwards (to ``value``, where that is known), or shows one (``*``: all
    of them)."""

    action: Literal["set", "show"]
    name: str
    value: Word | None = None


ToolKind = Literal["plain", "team", "interactive", "reads", "changes", "destroys", "unknown", "malformed"]
"""``plain``: nothing but the session's own bookkeeping. ``team``: other agents, tasks and messages of the
runtime's own. ``interactive``: waits for a person or leaves the session's place. ``reads``, ``changes``,
``destroys``: what a server of the user's does for the agent. ``malformed``: called so that nobody can tell
what it does."""


class Tool(Effect, frozen=True, tag="tool"):
    """A tool of a runtime or of an MCP server that is neither a shell nor a way to files or the network."""

    name: str
    kind: ToolKind


class Unknown(Effect, frozen=True, tag="unknown"):
    """Cannot be told: a sentence says why."""

    why: str


AnyEffect = Read | Write | Execute | Evaluate | Network | Git | System | Environment | Tool | Unknown


class Command(msgspec.Struct, frozen=True):
    """A program or builtin that a shell calls: its words after expansion, and the folder it is called in.
    ``via`` and ``source`` are those of its effects."""

    argv: tuple[Word, ...]
    cwd: Word
    via: tuple[str, ...] = ()
    source: str = ""


Decision = Literal["allow", "ask", "deny"]
STRICTNESS: dict[Decision, int] = {"allow": 0, "ask": 1, "deny": 2}

Capability = Literal["scout", "reviewer", "lead", "coordinator", "builder", "merger", "supervised"]


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """Who asks, and where: what a capability's table is applied to. ``protected`` are absolute folders that
    belong to the guard itself with all that is below them, such as its state and its audit."""

    capability: Capability = "supervised"
    worktree: str | None = None
    project_root: str | None = None
    agent: str | None = None
    branch_prefix: str | None = None
    home: str | None = None
    protected: tuple[str, ...] = ()


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What may become of a tool call: the rule that decided, why, and what to do instead."""

    decision: Decision
    rule: str
    reason: str
    hint: str = ""
    effects: tuple[AnyEffect, ...] = ()
