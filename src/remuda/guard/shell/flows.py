"""What programs print: exactly where that is easy, else what its lines look like and where they come from."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from posixpath import basename, dirname, normpath

from remuda.guard.globs import LONGEST
from remuda.guard.model import (
    NOTHING,
    AnyEffect,
    Environment,
    Evaluate,
    Execute,
    Network,
    Read,
    Taint,
    Unknown,
    Word,
    Write,
)
from remuda.guard.shell.state import NAME, Data, State, known, names, opaque, tainted, union, unknown

PASSING = names("cat tac sort uniq head tail grep egrep fgrep rg tee shuf nl less more sponge pv buffer")
"""Print lines of what they read, as they are."""

CHANGING = names(
    "sed awk gawk mawk tr rev cut xxd base64 base32 basenc od hexdump openssl gpg gzip gunzip zcat bunzip2"
    " bzcat xz unxz xzcat zstd zstdcat uudecode perl python python3 ruby node php jq yq fold paste iconv"
    " strings dd"
)
"""Print something else than what they read."""

NAMING = names("date whoami logname hostname uname nproc wc id arch cksum md5sum sha1sum sha256sum")
"""Print names or numbers, without a slash."""

BELOW = Word(("**",), pattern=True)
"""Any path below the folder."""

_FILE: frozenset[Taint] = frozenset({"file"})
_UNTRUSTED: frozenset[Taint] = frozenset({"network", "decoder", "input"})


def output(name: str, arguments: tuple[Word, ...], effects: tuple[AnyEffect, ...], state: State) -> Data:
    """What a program of the table prints."""
    if name in {"find", "fd"}:
        return Data(None, _found(arguments, effects))
    if name in EXACT and (data := EXACT[name](arguments, state)) is not None:
        return data
    given = frozenset(state.input.taint - {"input"})
    own = origins(effects) | tainted(arguments)
    if name in PASSING:
        if _reads(effects):
            return _listing(name, arguments, effects) or opaque(own or _FILE)
        return state.input if name in {"cat", "tee"} else Data(None, state.input.line)
    if name in CHANGING:
        return opaque(own | given | (frozenset({"decoder"}) if not _reads(effects) else _FILE))
    if (
        name in NAMING
        and not _reads(effects)
        and not (name == "date" and any("/" in (word.text or "/") for word in arguments))
    ):
        return Data(None, NAME if not own & _UNTRUSTED else unknown(own))
    return opaque(own | given or frozenset({"unknown"}))


def origins(effects: Iterable[AnyEffect]) -> frozenset[Taint]:
    """Where the output of something with these effects comes from."""
    found: set[Taint] = set()
    for effect in effects:
        if isinstance(effect, Read):
            found.add("file")
        elif isinstance(effect, Network):
            found.add("network")
        elif isinstance(effect, Environment):
            found.add("environment")
        elif isinstance(effect, Execute | Evaluate | Unknown):
            found.add("unknown")
    return frozenset(found)


def remember(name: str, arguments: tuple[Word, ...], effects: tuple[AnyEffect, ...], state: State) -> None:
    """Remembers what was written into files, where it is known or nobody should run it."""
    origin = (origins(effects) | state.input.taint - {"input"}) & _UNTRUSTED
    folder = (state.cwd.text or "").rstrip("/")
    for value in (value for word in arguments for value in word.values):
        origin |= untrusted(normpath(value if value[:1] == "/" else f"{folder}/{value}"), state)
    for effect in effects:
        if not isinstance(effect, Write) or effect.how == "mode":
            continue
        for value in effect.path.values:
            path = normpath(value if value[:1] == "/" else f"{folder}/{value}")
            state.made[path] = True
            if name == "tee" and effect.how == "truncate":
                state.files[path] = state.input
                continue
            taint = (effect.content | origin) & _UNTRUSTED
            if path in state.files or (taint and effect.how in {"create", "truncate", "append"}):
                state.files[path] = opaque(taint or _FILE)


def untrusted(path: str, state: State, script: bool = False) -> frozenset[Taint]:
    """Where a file comes from that was written just before, on its own or with the folder that it is in. Only
    for a ``script`` this may be the current folder, in which too much is of another origin."""
    if not state.files or len(path) > LONGEST:
        return NOTHING
    while path not in state.files and path.count("/") > 1:
        path = path.rpartition("/")[0]
        if path in state.cwd.values and not script:
            return NOTHING
    data = state.files.get(path)
    if data is None or data.text is not None:
        return NOTHING
    return data.taint if path.startswith("/dev/fd/") else data.taint & _UNTRUSTED


def _reads(effects: Iterable[AnyEffect]) -> bool:
    return any(isinstance(effect, Read) for effect in effects)


def _listing(name: str, arguments: tuple[Word, ...], effects: tuple[AnyEffect, ...]) -> Data | None:
    """The names of files that a search lists."""
    flags = "".join(
        word.text for word in arguments if word.text and word.text[:1] == "-" and word.text[:2] != "--"
    )
    if name not in {"grep", "egrep", "fgrep", "rg"} or ("l" not in flags and "L" not in flags):
        return None
    return Data(None, _below(effect.path for effect in effects if isinstance(effect, Read)))


def _below(paths: Iterable[Word]) -> Word:
    """Anything at or below some paths."""
    result: Word | None = None
    for path in paths:
        if not path.values:
            return unknown(path.taint)
        values = tuple(each for value in path.values for each in (value, f"{value.rstrip('/')}/**"))
        word = Word(values, pattern=True, taint=path.taint)
        result = word if result is None else union(result, word)
    return result or BELOW


def _found(arguments: tuple[Word, ...], effects: tuple[AnyEffect, ...]) -> Word:
    """What ``find`` prints: anything below where it looks, or only what has a given name."""
    texts = [word.text or "" for word in arguments]
    below = _below(effect.path for effect in effects if isinstance(effect, Read))
    names = [texts[at + 1] for at, text in enumerate(texts[:-1]) if text in {"-name", "-iname"}]
    if not names or not all(names) or not below.values or {"-o", "-or", "!", "-not", ","} & set(texts):
        return below
    folders = [value for value in below.values if value.endswith("**")]
    return Word(
        tuple(f"{folder}/{name}" for folder in folders for name in names), pattern=True, taint=below.taint
    )


# Exact outputs

Exact = Callable[[tuple[Word, ...], State], Data | None]


def _line(word: Word) -> Data:
    return known(word.text + "\n", word.taint) if word.text is not None else Data(None, word)


def _pwd(_arguments: tuple[Word, ...], state: State) -> Data | None:
    return _line(state.cwd)


def _basename(arguments: tuple[Word, ...], _state: State) -> Data | None:
    if not arguments:
        return None
    word = arguments[0]
    if not word.values or (word.text and word.text[:1] == "-"):
        return Data(None, NAME)
    suffix = arguments[1].text or "" if len(arguments) == 2 else ""
    names = [basename(value.rstrip("/")).removesuffix(suffix) for value in word.values]
    return _line(Word(tuple(dict.fromkeys(names)), word.pattern, word.taint))


def _dirname(arguments: tuple[Word, ...], _state: State) -> Data | None:
    if len(arguments) != 1 or not arguments[0].values:
        return None
    word = arguments[0]
    return _line(
        Word(
            tuple(dict.fromkeys(dirname(v.rstrip("/")) or "." for v in word.values)), word.pattern, word.taint
        )
    )


def _which(arguments: tuple[Word, ...], _state: State) -> Data | None:
    return _line(arguments[-1]) if len(arguments) == 1 else None


def _ls(arguments: tuple[Word, ...], _state: State) -> Data | None:
    if any("l" in (word.text or "") for word in arguments if (word.text or "").startswith("-")):
        return opaque(_FILE)
    line = NAME
    for word in arguments:
        if not (word.text or "").startswith("-"):
            line = union(line, word)
    return Data(None, line)


def _seq(arguments: tuple[Word, ...], _state: State) -> Data | None:
    texts = [word.text or "" for word in arguments]
    if len(texts) not in {1, 2} or not all(text.isdigit() and len(text) < 4 for text in texts):
        return Data(None, NAME)
    first, last = (1, int(texts[0])) if len(texts) == 1 else (int(texts[0]), int(texts[1]))
    return known("".join(f"{number}\n" for number in range(first, last + 1)))


def _git(arguments: tuple[Word, ...], state: State) -> Data | None:
    texts = [word.text or "" for word in arguments]
    if texts[:1] == ["rev-parse"]:
        return (
            Data(None, state.root if "--show-toplevel" in texts else NAME)
            if "--git-dir" not in texts
            else None
        )
    if texts[:1] == ["ls-files"] or "--name-only" in texts:
        return Data(None, BELOW)
    return None


def _mktemp(arguments: tuple[Word, ...], _state: State) -> Data | None:
    operands = [word for word in arguments if not (word.text or "-").startswith("-")]
    if not operands:
        return Data(None, Word(("/tmp/tmp.*",), pattern=True))  # noqa: S108
    text = operands[-1].text
    if text is None or "-p" in [word.text for word in arguments]:
        return None
    pattern = text.rstrip("X") + "*"
    return Data(None, Word((pattern if "/" in text else f"/tmp/{pattern}",), pattern=True))  # noqa: S108


def _nothing(_arguments: tuple[Word, ...], _state: State) -> Data | None:
    return known("")


EXACT: dict[str, Exact] = {
    "basename": _basename,
    "dirname": _dirname,
    "git": _git,
    "ls": _ls,
    "mktemp": _mktemp,
    "pwd": _pwd,
    "seq": _seq,
    "which": _which,
    **dict.fromkeys(
        [
            ":",
            "true",
            "false",
            "sleep",
            "wait",
            "mkdir",
            "touch",
            "rm",
            "rmdir",
            "cp",
            "mv",
            "ln",
            "chmod",
            "chown",
            "kill",
        ],
        _nothing,
    ),
}
"""What some programs print, as far as it can be told from their arguments."""
