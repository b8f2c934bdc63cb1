"""``find`` and ``fd``: what they run, delete and write for the files that they find."""

from __future__ import annotations

import re
from collections.abc import Iterator

from remuda.guard.commands.contract import Call, Table
from remuda.guard.commands.operands import HERE, either, join, names, texts, written
from remuda.guard.commands.options import parse
from remuda.guard.commands.rows import options, strange
from remuda.guard.model import UNKNOWN, AnyEffect, Read, Unknown, Word, literal

TESTS_WITH_VALUE = names(
    """
    -name -iname -path -ipath -wholename -iwholename -regex -iregex -regextype -lname -ilname -type -xtype
    -size -mtime -atime -ctime -mmin -amin -cmin -newer -anewer -cnewer -newermt -perm -user -group -uid -gid
    -links -inum -samefile -maxdepth -mindepth -fstype -printf -used -context -D -files0-from -since
    """
)
PLAIN = names(
    """
    -print -print0 -ls -prune -quit -depth -d -xdev -mount -follow -daystart -noleaf -empty -executable
    -readable -writable -nouser -nogroup -true -false -not -a -o -and -or -warn -nowarn -ignore_readdir_race
    -H -L -P -E -X -s -noignore_readdir_race ! ( ) , -O0 -O1 -O2 -O3
    """
)
RUNS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
WRITES = {"-fprint": 1, "-fprint0": 1, "-fls": 1, "-fprintf": 2}


def find(call: Call) -> Iterator[AnyEffect]:
    """Walks the expression; what is found is everything below the starting points that has the given name."""
    words = list(call.arguments)
    start = _starts(words)
    found = _found(start, words)
    yield from (Read(path=word, names=True) for word in start)
    at = 0
    while at < len(words):
        text = words[at].text or ""
        if text in RUNS:
            end = _end(words, at + 1)
            yield from _run(call, words[at + 1 : end], found)
            at = end
        elif text in WRITES:
            yield from written(words[at + 1] if at + 1 < len(words) else UNKNOWN, "truncate")
            at += WRITES[text]
        elif text == "-delete":
            yield from written(found, "delete-tree", follows=False, forced=True)
        elif text in TESTS_WITH_VALUE or text[:6] == "-newer":
            at += 1
        elif (text[:1] == "-" and text not in PLAIN) or not words[at].values:
            yield strange(call.name, text or "one that cannot be told")
        at += 1


def _starts(words: list[Word]) -> list[Word]:
    """The starting points, which are taken from the front."""
    while words and words[0].text in {"-H", "-L", "-P", "-E", "-X", "-s"}:
        words.pop(0)
    starts = []
    while words and (words[0].text or "x")[0] not in "-!(),":
        starts.append(words.pop(0))
    return starts or [HERE]


def _found(starts: list[Word], words: list[Word]) -> Word:
    """What may be found: the starting points themselves only where no test rules them out."""
    start = either(*starts)
    if not start.values:
        return UNKNOWN
    branches = _branches(words)
    filters = [_filter(branch) for branch in branches]
    if all(filters):
        values = tuple(pattern for patterns in filters for pattern in patterns)
        return Word(join(start, Word(values)).values, pattern=True, taint=start.taint)
    everything = join(start, literal("**")).values
    if "-mindepth" in texts(words) or all(_files_only(branch) for branch in branches):
        return Word(everything, pattern=True, taint=start.taint)
    return Word((*start.values, *everything), pattern=True, taint=start.taint)


def _branches(words: list[Word]) -> list[list[Word]]:
    """The parts of an expression that stand for themselves."""
    branches: list[list[Word]] = [[]]
    for word in words:
        if word.text in {"-o", "-or", ","}:
            branches.append([])
        else:
            branches[-1].append(word)
    return branches


def _filter(words: list[Word]) -> list[str]:
    """The patterns, below a starting point, of what one part may find; none when it may be anything."""
    for at, word in enumerate(words[:-1]):
        denied = at and words[at - 1].text in {"!", "-not"}
        if word.text in {"-name", "-iname"} and not denied and words[at + 1].values:
            return [f"**/{value}" for value in words[at + 1].values]
        if word.text in {"-path", "-wholename"} and not denied and words[at + 1].values:
            fixed = [re.split(r"[*?\[]", value)[0].rpartition("/")[0] for value in words[at + 1].values]
            return [f"{folder.removeprefix('./')}/**" for folder in fixed if folder.strip("./")]
    return []


def _files_only(words: list[Word]) -> bool:
    """Whether only files are found, so that the starting point is none of it, or nothing is done."""
    typed = any(w.text == "-type" and words[at + 1].text == "f" for at, w in enumerate(words[:-1]))
    return typed or "-prune" in texts(words)


def _end(words: list[Word], start: int) -> int:
    """Where the command of ``-exec`` ends."""
    for at in range(start, len(words)):
        if words[at].text in {";", "\\;"} or (words[at].text == "+" and words[at - 1].text == "{}"):
            return at
    return len(words)


def _run(call: Call, argv: list[Word], found: Word) -> Iterator[AnyEffect]:
    if not argv:
        yield Unknown(why="find runs a command that is not there")
        return
    yield from call.again(tuple(_filled(word, found) for word in argv))


def _filled(word: Word, found: Word) -> Word:
    """A word with ``{}`` replaced by what is found."""
    if word.text == "{}":
        return found
    if not any("{}" in value for value in word.values):
        return word
    if not found.values:
        return UNKNOWN
    values = tuple(value.replace("{}", name) for value in word.values for name in found.values)
    return Word(values, pattern=True, taint=word.taint | found.taint)


FD_OPTIONS = """
    -HIuULasiFp0l -1 -d|--max-depth: -t|--type: -e|--extension: -E|--exclude: -S|--size: -g|--glob -c|--color:
    -j|--threads: -o|--owner: -C|--base-directory: --min-depth: --exact-depth: --changed-within:
    --changed-before: --format: --max-results: --search-path: -q --and: --* -x|--exec -X|--exec-batch -*
"""


def fd(call: Call) -> Iterator[AnyEffect]:
    """``fd``: a pattern, folders, and a command for what is found."""
    words = list(call.arguments)
    at = next(
        (i for i, w in enumerate(words) if w.text in {"-x", "-X", "--exec", "--exec-batch"}), len(words)
    )
    parsed = parse(FD_OPTIONS, words[:at])
    yield from options(call, parsed)
    yield from (Read(path=word, names=True) for word in parsed.operands[1:])
    argv = words[at + 1 :]
    if not argv:
        return
    everything = Word(("**",), pattern=True)
    found = either(*(join(start, everything) for start in parsed.operands[1:] or [HERE]))
    filled = tuple(_filled(word, found) for word in argv)
    yield from call.again(filled if any("{" in (w.text or "") for w in argv) else (*filled, found))


TABLE: Table = {"find": find, "gfind": find, "fd": fd, "fdfind": fd, "bfs": find}
