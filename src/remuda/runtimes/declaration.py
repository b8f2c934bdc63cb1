"""What a runtime's TOML file may say. Unknown keys are refused, so that a typing error is noticed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec

from remuda.core.events import ToolKind
from remuda.runtimes.base import PROMPT, PROMPT_FILE, UNVERIFIED, Arrival, Conduct, HelpCheck, Mode
from remuda.runtimes.shapes import Counts, Shape

PLACES = ("cwd", "endpoint", "file", "keep", "model", "scratch", "session")
"""What can be filled in where ``{…}`` stands in an argument, a variable or a file."""

DERIVED = ("refuses", "resume", "model_choice", "system_prompt", "append_system_prompt")
"""What follows from the groups that a file has, and so is not declared a second time."""

_PLACE = re.compile(r"\{([a-z_]+)\}")


class _Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The common ground of all tables."""


class Part(_Strict, frozen=True, kw_only=True):
    """A piece of a command: arguments, variables, and private files in the turn's scratch folder."""

    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = {}
    files: Mapping[str, str] = {}

    def texts(self) -> Iterator[str]:
        """Everything in which places can be filled in."""
        yield from (*self.arguments, *self.environment.values(), *self.files.values())


Group = tuple[str, ...] | Part
"""A piece of a command that only some turns need: a list of arguments, or a table for more than those."""


class CommandTable(_Strict, frozen=True, kw_only=True):
    """A command: what always belongs to it, and what a turn may add.

    A permission or an access without its group is one that the program cannot be held to, so asking for it is
    refused. An empty group says that the program does it by itself.
    """

    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = {}
    new_session: Group | None = None
    resume: Group | None = None
    model: Group | None = None
    ask: Group | None = None
    bypass: Group | None = None
    read: Group | None = None
    workspace: Group | None = None
    system_prompt_file: Group | None = None
    append_system_prompt_file: Group | None = None

    def always(self) -> Part:
        """What every turn needs."""
        return Part(arguments=self.arguments, environment=self.environment)

    def groups(self) -> Iterator[tuple[str, Part]]:
        """The groups that are there, by name."""
        for name in self.__struct_fields__[2:]:
            group = getattr(self, name)
            if group is not None:
                yield name, part(group)


class VersionTable(_Strict, frozen=True, kw_only=True):
    """How to read the version, and which one is known to work."""

    arguments: tuple[str, ...] = ("--version",)
    pattern: str = r"\d+\.\d+\.\d+(?:[\w.-]*\w)?"
    verified: str = UNVERIFIED
    minimum: str = "0"


class ChannelTable(_Strict, frozen=True, kw_only=True):
    """A prompt channel; ``verified`` is the version on which it was seen to deliver byte for byte."""

    mode: Mode
    arguments: tuple[str, ...] = ()
    verified: str | None = None
    on_request: bool = False
    arrives: Arrival = "exact"
    note: str = ""


class ConductTable(Conduct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the program behaves where programs differ."""


class HelpTable(HelpCheck, frozen=True, forbid_unknown_fields=True):
    """Flags that the file relies on, and the help page that must mention them."""


class SandboxTable(_Strict, frozen=True, kw_only=True):
    """What the program needs inside a sandbox. ``home`` is its folder below the user's home, or wherever
    ``home_variable`` says; it may write there, but for what is ``held``: files, with what each begins with
    where it is missing, and folders, which end with a slash."""

    home: str
    held: Mapping[str, str] = {}
    environment: Mapping[str, str] = {}
    hosts: tuple[str, ...] = ()


class ScreenTable(_Strict, frozen=True, kw_only=True):
    """How one state of the terminal interface is recognised; the first rule that matches counts.

    ``keys`` answer a dialog; with ``consent`` only after a person has agreed.
    """

    state: Literal["dialog", "working", "ready", "loading"]
    contains: tuple[str, ...] = ()
    regex: tuple[str, ...] = ()
    not_: tuple[str, ...] = msgspec.field(default=(), name="not")
    keys: tuple[str, ...] = ()
    consent: bool = True


class Declaration(_Strict, frozen=True, kw_only=True):
    """A whole file."""

    name: str
    title: str
    binary: str
    install: str
    stream: Shape
    channels: tuple[ChannelTable, ...]
    headless: CommandTable
    interactive: CommandTable = CommandTable()
    endpoint: Part | None = None
    version: VersionTable = VersionTable()
    counts: Counts = "turn"
    tools: Mapping[str, ToolKind] = {}
    disarm: str = ""
    environment: tuple[str, ...] = ()
    keys: tuple[tuple[str, ...], ...] = ()
    quiet: Mapping[str, str] = {}
    nested_markers: tuple[str, ...] = ()
    home_variable: str | None = None
    instruction_file: str = "AGENTS.md"
    patience: float = 4.0
    trouble: tuple[str, ...] = ()
    conduct: ConductTable = ConductTable()
    help: tuple[HelpTable, ...] = ()
    sandbox: SandboxTable | None = None
    screens: tuple[ScreenTable, ...] = ()
    notes: tuple[str, ...] = ()


def _strays(table: SandboxTable | None) -> Iterator[str]:
    for place in (table.home, *table.held) if table is not None else ():
        parts = place.strip("/").split("/")
        if place.startswith("/") or not all(parts) or {".", ".."} & {*parts}:
            yield f"{place!r} is no path below the home - at `$.sandbox`"


def part(group: Group) -> Part:
    """A group in its long form."""
    return group if isinstance(group, Part) else Part(arguments=group)


def faults(declared: Declaration) -> Iterator[str]:
    """What is wrong with a file although every value has the right type, each with its place."""
    if not declared.channels:
        yield "a runtime needs at least one prompt channel - at `$.channels`"
    for number, channel in enumerate(declared.channels):
        if fault := _channel_fault(channel, declared.stream):
            yield f"{fault} - at `$.channels[{number}]`"
    for name, table in (("headless", declared.headless), ("interactive", declared.interactive)):
        yield from _unknown_places(f"$.{name}", table.always())
        for group, its in table.groups():
            yield from _unknown_places(f"$.{name}.{group}", its)
    yield from _strays(declared.sandbox)
    if declared.endpoint is not None:
        yield from _unknown_places("$.endpoint", declared.endpoint)
    patterns = {"version.pattern": declared.version.pattern}
    patterns |= {f"trouble[{number}]": pattern for number, pattern in enumerate(declared.trouble)}
    for place, pattern in patterns.items():
        if fault := _regex_fault(pattern):
            yield f"{fault} - at `$.{place}`"
    for number, screen in enumerate(declared.screens):
        yield from (f"{fault} - at `$.screens[{number}]`" for fault in _screen_faults(screen))


def _channel_fault(channel: ChannelTable, shape: Shape) -> str | None:
    needed = {"argv": PROMPT, "tempfile": PROMPT_FILE}.get(channel.mode)
    if needed and not any(needed in argument for argument in channel.arguments):
        return f"the arguments of a channel of mode {channel.mode} need {needed}"
    if (channel.mode == "connection") != (shape == "acp"):
        return 'mode "connection" and stream "acp" belong together'
    return None


def _unknown_places(where: str, its: Part) -> Iterator[str]:
    for name in (name for text in its.texts() for name in _PLACE.findall(text)):
        if name not in PLACES:
            known = ", ".join(f"{{{place}}}" for place in PLACES)
            yield f"nothing is known as {{{name}}}, only {known} - at `{where}`"
    if bad := next((name for name in its.files if "/" in name or name.startswith(".")), None):
        yield f"{bad!r} is not a plain file name - at `{where}.files`"


def _screen_faults(screen: ScreenTable) -> Iterator[str]:
    if not screen.contains and not screen.regex:
        yield "a screen needs contains or regex"
    if screen.keys and screen.state != "dialog":
        yield "only a dialog has keys"
    yield from filter(None, map(_regex_fault, screen.regex))


def _regex_fault(pattern: str) -> str | None:
    try:
        re.compile(pattern)
    except re.error as error:
        return f"this is not a regular expression ({error})"
    return None


def filled(text: str, places: Mapping[str, str]) -> str:
    """A text with its places filled in."""
    return _PLACE.sub(lambda found: places.get(found[1], found[0]), text)
