"""Archives: what is packed is read, where it is unpacked is written."""

from __future__ import annotations

from collections.abc import Iterator

from remuda.guard.commands.contract import Call, Table
from remuda.guard.commands.files import remote
from remuda.guard.commands.operands import HERE, join, names, with_suffix, written
from remuda.guard.commands.options import Parsed, parse
from remuda.guard.commands.rows import operands, options, role
from remuda.guard.model import UNKNOWN, AnyEffect, Network, Read, Unknown, Word, Write, literal

TAR_OPTIONS = """
    -A|--catenate -c|--create -d|--diff -r|--append -t|--list -u|--update -x|--extract --get --delete
    --concatenate --compare --test-label -f|--file: -C|--directory: -T|--files-from:r -X|--exclude-from:r
    -I|--use-compress-program:x --to-command:x --checkpoint? --checkpoint-action: -F|--info-script:x
    --new-volume-script:x --rsh-command:! --rmt-command:! -P|--absolute-names -O|--to-stdout --remove-files
    --index-file:w -g|--listed-incremental:w --volno-file:w --exclude: --transform: --xform: --owner: --group:
    --mode: --mtime: -b: -L: -N: -V: -K: -H: --format: --strip-components: --one-top-level? -S -z -j -J -Z -a
    -v -w -p -k -m -l -h -i -n -o -R -s -U -W -B -G -M --*
"""
UNZIP_READS = names("l t v Z z p c")
PACKERS = {
    "gzip": ".gz", "bzip2": ".bz2", "xz": ".xz", "zstd": ".zst", "lzma": ".lzma", "lz4": ".lz4",
    "brotli": ".br",
    "compress": ".Z", "pigz": ".gz", "pbzip2": ".bz2", "pixz": ".xz", "lzop": ".lzo",
}  # fmt: skip
UNPACKERS = names("gunzip bunzip2 unxz unzstd unlzma unlz4 uncompress unpigz unbrotli")


def tar(call: Call) -> Iterator[AnyEffect]:
    """``tar``: options may come without a dash, and some of them run commands."""
    words = list(call.arguments)
    if words and words[0].text and not words[0].text.startswith("-"):
        words[:1] = _bundled(words)
    parsed = parse(TAR_OPTIONS, words)
    yield from options(call, parsed)
    for action in parsed.values("checkpoint-action"):
        kind, _, command = (action.text or "exec=").partition("=")
        if kind == "exec":
            yield from role(call, "x", literal(command))
    if parsed.has("absolute-names") and parsed.has("extract", "get"):
        yield Unknown(why="tar unpacks to the paths that are in the archive")
    yield from _archive(parsed)
    yield from _members(parsed)


def _bundled(words: list[Word]) -> list[Word]:
    """Letters without a dash take their values from the words that follow, in order."""
    letters = words[0].text or ""
    taken: list[Word] = []
    for letter in letters:
        taken.append(literal(f"-{letter}"))
        if letter in "fCTXIbLNVKHFg" and len(words) > 1:
            taken.append(words.pop(1))
    return taken


def unpacked(folder: Word) -> Write:
    """What an archive leaves in a folder: files, folders and links that nobody has seen yet."""
    return Write(path=folder, how="create", copies=UNKNOWN)


def _archive(parsed: Parsed) -> Iterator[AnyEffect]:
    reads = parsed.has("extract", "get", "list", "diff", "compare", "test-label")
    for archive in parsed.values("file"):
        if archive.text == "-":
            continue
        if (host := remote(archive)) and not parsed.has("force-local"):
            yield Network(direction="get" if reads else "send", host=host)
        elif reads:
            yield Read(path=archive)
        else:
            yield from written(archive, "truncate" if parsed.has("create") else "edit")


def _members(parsed: Parsed) -> Iterator[AnyEffect]:
    folder = parsed.value("directory")
    if parsed.has("extract", "get"):
        if not parsed.has("to-stdout"):
            yield unpacked(parsed.value("one-top-level") or folder or HERE)
    elif parsed.has("create", "append", "update"):
        for word in parsed.operands:
            yield Read(path=join(folder, word))
            if parsed.has("remove-files"):
                yield from written(join(folder, word), "delete-tree", follows=False, forced=True)


def zip_(call: Call) -> Iterator[AnyEffect]:
    """``zip``: the first operand is the archive. ``-TT`` names a program that tests it."""
    if any((word.text or word.prefix).startswith(("-TT", "--unzip-command")) for word in call.arguments):
        yield Unknown(why="zip runs a program to test the archive")
    parsed = parse(
        "-# -b: -n: -i: -x: -t: -tt: -O|--output-file:w -P: -TT:! --unzip-command:! -m -r -q -v -j -9 -u -f"
        " -d -g -D -X -y -e -l -A -F -T -o -s: -* --*",
        call.arguments,
    )
    yield from options(call, parsed)
    yield from operands(call, "e r*", parsed.operands)
    if parsed.has("m", "move"):
        yield from operands(call, "t*", parsed.operands[1:])


def unzip(call: Call) -> Iterator[AnyEffect]:
    """``unzip``: below a folder, unless it only lists or prints."""
    parsed = parse("-d: -x: -P: -O: -I: -lvtzZpcqnofjuCLaUVXDKM12hs", call.arguments)
    yield from options(call, parsed)
    yield from operands(call, "r", parsed.operands)
    if not any(option.name in UNZIP_READS for option, _ in parsed.given) and parsed.operands:
        yield unpacked(parsed.value("d") or HERE)


def zipinfo(call: Call) -> Iterator[AnyEffect]:
    """``zipinfo``: shows what is in an archive."""
    yield from operands(call, "r", parse("-x: -* --*", call.arguments).operands)


def pack(call: Call) -> Iterator[AnyEffect]:
    """``gzip`` and its kin: a file is replaced by another one, unless that goes to standard output."""
    parsed = parse(
        "-# -c|--stdout -d|--decompress -k|--keep -t|--test -l|--list -S|--suffix: -o|--output:w -D:r -T:"
        " -B: -M: -p: -m -f|--force -nNqrvzeiC --to-stdout --uncompress --rm --*",
        call.arguments,
    )
    yield from options(call, parsed)
    for word in parsed.operands:
        yield Read(path=word)
        if parsed.has("stdout", "to-stdout", "test", "list", "output"):
            continue
        unpacks = call.name in UNPACKERS or parsed.has("decompress", "uncompress")
        suffix = PACKERS.get(call.name, "")
        yield from written(word if unpacks else with_suffix(word, suffix), "create")
        if not parsed.has("keep") and call.name not in {"zstd", "unzstd", "lz4", "brotli"}:
            yield from written(word, "delete", follows=False)


def seven(call: Call) -> Iterator[AnyEffect]:
    """``7z``, ``rar``, ``jar``, ``ar``, ``cpio`` and others that name an action by their first word."""
    action = call.arguments[0].text or "" if call.arguments else ""
    parsed = parse("-* --*", call.arguments[1:])
    letters = set(action.lstrip("-"))
    if letters & {"l", "t"} and not letters & {"x", "a", "u", "c"}:
        yield from operands(call, "r*", parsed.operands)
    elif letters & {"x", "e"} and not letters & {"a", "c"}:
        yield from operands(call, "r*", parsed.operands[:1])
        folder = next((v.text[2:] for v in call.arguments if v.text and v.text.startswith("-o")), ".")
        yield unpacked(literal(folder or "."))
    else:
        yield from operands(call, "e r*", parsed.operands)


def cpio(call: Call) -> Iterator[AnyEffect]:
    """``cpio``: out to standard output, in to the folder, or through to another one."""
    parsed = parse(
        "-o|--create -i|--extract -p|--pass-through -t|--list -F|--file: -O: -I:r -D: -H: -R: -E:r -C:"
        " --to-stdout --rsh-command:! -* --*",
        call.arguments,
    )
    yield from options(call, parsed)
    for archive in (*parsed.values("file"), *parsed.values("O")):
        yield from role(call, "r" if parsed.has("extract") else "w", archive)
    if parsed.has("extract") and not parsed.has("list", "to-stdout"):
        yield unpacked(parsed.value("D") or HERE)
    elif parsed.has("pass-through"):
        yield from operands(call, "c", parsed.operands[-1:])


TABLE: Table = {
    "tar": tar,
    "gtar": tar,
    "bsdtar": tar,
    "zip": zip_,
    "unzip": unzip,
    "zipinfo": zipinfo,
    **dict.fromkeys(PACKERS, pack),
    **dict.fromkeys(UNPACKERS, pack),
    **dict.fromkeys(("7z", "7za", "7zr", "rar", "unrar", "jar", "ar"), seven),
    "cpio": cpio,
}
