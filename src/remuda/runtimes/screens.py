"""What a terminal screen of an agent CLI means, told by an ordered list of rules that is data.

A rule looks at the structure of the screen's edge, where a program draws its composer and its dialogs; what a
reply quotes further up says nothing. What no rule knows is *loading*: never guess that a program is ready.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from remuda.core import tomlplaces
from remuda.core.errors import ConfigError, NotFoundError

State = Literal["dialog", "working", "ready", "loading"]
"""What a program is at: asking a question, at work, waiting for a text, or none of these that we know."""

FILE = "screens.toml"
_HINT = "Fix the file, or move it away; the manifests that come with Remuda are examples."
_REGION = re.compile(r"all|(?:top|bottom):[1-9][0-9]{0,3}")
_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~])|[\x00-\x08\x0b-\x1f\x7f]"
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_RUNTIMES = Path(__file__).parent

Keys = tuple[str, ...]
Count = Annotated[int, msgspec.Meta(ge=0)]


def _check(field: str, regex: str) -> None:
    try:
        _compiled(regex)
    except re.error as problem:
        raise ValueError(f"{field}: does not compile: {problem}") from None


@functools.lru_cache(maxsize=512)
def _compiled(regex: str) -> re.Pattern[str]:
    return re.compile(regex, re.MULTILINE)


class Terminal(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a program is worked by keys.

    ``clear`` empties a line of the composer. ``paste_limit`` is the number of bytes up to which a pasted text
    reaches the model as it is but for white space at its ends, 0 where none does. ``altered`` are characters
    that do not survive. A text that ``misread`` matches is taken for something else, a command say; one that
    begins with a character of ``disarmed`` would be, unless a space stands in front. ``beacon``: the
    submitting key may be swallowed, so it is sent again where there is no evidence. ``proof`` is what tells
    that a text has arrived. ``busy_title`` is how the terminal's title looks while the program works: no
    reply can imitate that.
    """

    submit: Keys = ("Enter",)
    interrupt: Keys = ("Escape",)
    clear: Keys = ()
    quit: str = "/exit"
    paste_limit: Count = 0
    altered: str = ""
    misread: str = ""
    disarmed: str = ""
    beacon: bool = False
    proof: Literal["transcript", ""] = ""
    busy_title: str = ""

    def __post_init__(self) -> None:
        _check("busy_title", self.busy_title)
        _check("misread", self.misread)


class Rule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A screen that is known: all that is given must hold in its region.

    ``keys`` answer a dialog with yes and ``reject`` with no. ``consent``: to answer is to decide a question
    of safety, which nobody does without the user's word. A rule with ``not_title`` does not hold where the
    terminal's title looks like that.
    """

    name: str
    state: State
    kind: str = ""
    region: str = "all"
    contains: tuple[str, ...] = ()
    some: tuple[str, ...] = msgspec.field(default=(), name="any")
    regex: str = ""
    none: tuple[str, ...] = msgspec.field(default=(), name="not")
    not_title: str = ""
    keys: Keys = ()
    reject: Keys = ()
    consent: bool = False

    def __post_init__(self) -> None:
        if not _REGION.fullmatch(self.region):
            raise ValueError("region: must be 'all', 'top:N' or 'bottom:N'")
        if not (self.contains or self.some or self.regex):
            raise ValueError("name: the rule says nothing; give contains, any or regex")
        if self.state != "dialog" and (self.kind or self.keys or self.reject or self.consent):
            raise ValueError("state: only a dialog has a kind, keys, reject or consent")
        _check("regex", self.regex)
        _check("not_title", self.not_title)


class Manifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All that is known of one program's screens; the first rule that holds decides."""

    verified: str = "unverified"
    terminal: Terminal = Terminal()
    rules: tuple[Rule, ...] = msgspec.field(default=(), name="rule")


class Screen(msgspec.Struct, frozen=True, kw_only=True):
    """What a screen means. Without a ``rule`` nothing is known of it."""

    state: State
    rule: str | None = None
    kind: str = ""
    keys: Keys = ()
    reject: Keys = ()
    consent: bool = False


def classify(manifest: Manifest, text: str, title: str = "") -> Screen:
    """What a captured screen means; the terminal's title can take a rule or a *ready* back, and is never
    enough for one. Never raises; colours and other escapes may be in the text or not."""
    lines = _lines(text)
    possible = (rule for rule in manifest.rules if not _titled(rule.not_title, title))
    rule = next((rule for rule in possible if _holds(rule, _region(rule.region, lines))), None)
    if rule is None:
        return Screen(state="loading")
    if rule.state == "ready" and _titled(manifest.terminal.busy_title, title):
        return Screen(state="working", rule="title")
    return Screen(
        state=rule.state,
        rule=rule.name,
        kind=rule.kind,
        keys=rule.keys,
        reject=rule.reject,
        consent=rule.consent,
    )


def _titled(pattern: str, title: str) -> bool:
    return bool(pattern) and _compiled(pattern).search(title) is not None


def _lines(text: str) -> list[str]:
    """The screen as rules see it: no escapes, plain spaces, nothing blank at the end of a line or of all."""
    plain = _ESCAPES.sub("", text.replace("\r\n", "\n").replace("\xa0", " "))
    lines = [line.rstrip() for line in plain.split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _region(region: str, lines: list[str]) -> str:
    edge, _, count = region.partition(":")
    part = lines if edge == "all" else lines[: int(count)] if edge == "top" else lines[-int(count) :]
    return "\n".join(part)


def _holds(rule: Rule, region: str) -> bool:
    return (
        all(word in region for word in rule.contains)
        and (not rule.some or any(word in region for word in rule.some))
        and not any(word in region for word in rule.none)
        and (not rule.regex or _compiled(rule.regex).search(region) is not None)
    )


def objection(terminal: Terminal, text: str) -> str | None:
    """Why a text cannot be pasted as it is. Control characters never can: one of them ends the paste, and
    what follows would be keys."""
    if not terminal.paste_limit:
        return "nothing that is pasted reaches the model as it is"
    if (size := len(text.encode("utf-8", "surrogatepass"))) > terminal.paste_limit:
        return f"{size} bytes are more than the {terminal.paste_limit} that can be pasted"
    if found := _CONTROL.search(text):
        return f"the control character U+{ord(found[0]):04X} cannot be pasted"
    if lost := next((char for char in text if char in terminal.altered), None):
        return f"the character U+{ord(lost):04X} would not arrive as it is"
    if terminal.misread and _compiled(terminal.misread).search(text):
        return "a text with such a beginning or end is taken for a command, or for keys"
    return None


def armoured(terminal: Terminal, text: str) -> str:
    """The text as it is to be pasted, so that its first character is no command."""
    return f" {text}" if text[:1] and text[:1] in terminal.disarmed else text


def shipped(runtime: str) -> Path:
    """Where the manifest of a built-in runtime lies."""
    return _RUNTIMES / runtime / FILE


def load(runtime: str, folder: Path) -> Manifest:
    """The manifest of a runtime. A file of the user's in ``folder`` comes first: its rules are asked before
    the shipped ones, and what it says of the terminal holds instead."""
    ours, theirs = _document(shipped(runtime)), _document(folder / f"{runtime}.toml")
    if ours is None and theirs is None:
        raise NotFoundError(
            f"nothing is known of the screens of {runtime}",
            f"Describe them in {folder / f'{runtime}.toml'}, or use a session that is not in a terminal.",
        )
    base = Manifest() if ours is None else _manifest(shipped(runtime), ours)
    if theirs is None:
        return base
    own = _manifest(folder / f"{runtime}.toml", theirs)
    return msgspec.structs.replace(
        own if ours is None else base,
        terminal=_terminal(base.terminal, own.terminal, theirs),
        rules=(*own.rules, *base.rules),
    )


def _terminal(base: Terminal, own: Terminal, document: Mapping[str, object]) -> Terminal:
    """The keys that a user's file gives, and the shipped ones."""
    given = document.get("terminal")
    names = given if isinstance(given, dict) else {}
    return msgspec.structs.replace(base, **{name: getattr(own, name) for name in names})


def _document(path: Path) -> Mapping[str, object] | None:
    import tomllib

    try:
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}", _HINT) from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: {error}", _HINT) from None
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        line = tomlplaces.line_of_syntax(str(error), text)
        raise ConfigError(f"{path}, line {line}: {error}", _HINT) from None


def _manifest(path: Path, document: Mapping[str, object]) -> Manifest:
    try:
        return msgspec.convert(document, Manifest)
    except msgspec.ValidationError as error:
        line = tomlplaces.line_of_error(str(error), path.read_text(encoding="utf-8-sig"))
        raise ConfigError(f"{path}, line {line}: {error}", _HINT) from None
