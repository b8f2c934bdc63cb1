"""Programs that make, change, move and remove files."""

from __future__ import annotations

import re
from collections.abc import Iterator

from remuda.guard.commands.contract import Call, Table
from remuda.guard.commands.operands import (
    HERE,
    NOWHERE,
    assignment,
    base,
    either,
    join,
    with_suffix,
    written,
)
from remuda.guard.commands.options import Parsed, parse
from remuda.guard.commands.rows import operands, options, role, table
from remuda.guard.model import UNKNOWN, AnyEffect, How, Network, Read, System, Unknown, Word, Write, literal

ROWS = """\
mkdir => c*
    -pvZ -m|--mode: --parents --verbose --context?
mkfifo => c*
    -m|--mode: -Z --context?
rmdir => d*
    -pv --parents --verbose --ignore-fail-on-non-empty
unlink => d
    --help
shred => d*
    -fuvxz -n|--iterations: -s|--size: --force --remove? --verbose --exact --zero --random-source:r
touch => c*
    -acfhm -d|--date: -t: -r|--reference:n --time: --no-create --no-dereference -A:
truncate => w*
    -co -s|--size: -r|--reference:n --no-create --io-blocks
fallocate => w
    -cdinpvxz -l|--length: -o|--offset: --*
tee => w*
    -ip --ignore-interrupts --output-error?
sponge => w*
    -a
chown chgrp => - m*
    -cfhvRHLP --changes --silent --quiet --verbose --dereference --no-dereference --recursive --from:
    --preserve-root --no-preserve-root
chattr => - m*
    -RVf -v: -p:
setfacl => m*
    -bkRLPdn -m: -x: -M:r -X:r --modify: --remove: --remove-all --recursive --set: --restore:! --default
setfattr => m*
    -h -n: -v: -x: --name: --value: --remove: --restore:!
sd => - - e*
    -n: -f: -p --preview! -F -s --*
strip ranlib indent => e*
    -o:w -R: -K: -N: --remove-section: --keep-symbol: -* --*
objcopy => r w
    -I: -O: -B: -j: -R: -* --*
cpp => r w
    -o:w -I: -D: -U: -include:r -MF:w -* --*
autopep8 autoflake pyupgrade => e*
    -* --*
tidy => r*
    -o:w -m! -f:w -config:r -* --*
htpasswd => e
    -* --*
ipcrm lp lpr => !*
    -* --*
dos2unix unix2dos mac2unix todos fromdos => e*
    -* --*
sync => n*
    -df --data --file-system
code cursor zed subl => n*
    -r -n -g -d -w --*
open xdg-open => !*
    -* --*
trash trash-put gio-trash srm => d*
    -* --*
rename prename => ! e*
    -* --*
shar => r*
    -o:w --*
"""

TEMPORARY = "/tmp"  # noqa: S108
COPY_OPTIONS = """
    -abdfHiLlnPpRrsuvxZ --archive --attributes-only --backup? --copy-contents --debug --dereference --force
    --interactive --link --no-clobber --no-dereference --no-preserve: --one-file-system --parents --preserve?
    --recursive --reflink? --remove-destination --sparse: --strip-trailing-slashes --symbolic-link
    -S|--suffix: -t|--target-directory: -T|--no-target-directory --update? --verbose --keep-directory-symlink
    --context? --exchange -c --no-copy
"""
INSTALL_OPTIONS = """
    -bcCDpsvZ --backup? --compare -d|--directory -g|--group: -m|--mode: -o|--owner: --preserve-timestamps
    --strip --strip-program:! -S|--suffix: -t|--target-directory: -T|--no-target-directory --verbose
    --context?
"""
LINK_OPTIONS = """
    -bdFfiLnPrvw --backup? --directory --force --interactive --logical --no-dereference --physical --relative
    -s|--symbolic -S|--suffix: -t|--target-directory: -T|--no-target-directory --verbose
"""
REMOVE_OPTIONS = """
    -divxPW -f|--force -I --interactive? --one-file-system --no-preserve-root --preserve-root?
    -r|-R|--recursive --dir --verbose
"""
RSYNC_OPTIONS = """
    -e|--rsh: --rsync-path:! -n|--dry-run --delete --delete-before --delete-during --delete-delay
    --delete-after --delete-excluded --del --remove-source-files --files-from:r --exclude-from:r
    --include-from:r --exclude: --include: -f|--filter: --log-file:w --write-batch:w --only-write-batch:w
    --read-batch:r --backup-dir:c --partial-dir:c -T|--temp-dir:c --password-file:r --daemon! --config:!
    --chmod: --chown: --bwlimit: --port: -B: --max-size: --min-size: --timeout: --info: --compare-dest:n
    --copy-dest:r --link-dest:r --suffix: -M: -* --*
"""


def remove(call: Call) -> Iterator[AnyEffect]:
    """``rm``: with everything below when recursive."""
    parsed = parse(REMOVE_OPTIONS, call.arguments)
    yield from options(call, parsed)
    how: How = "delete-tree" if parsed.has("recursive") else "delete"
    for word in parsed.operands:
        yield from written(word, how, follows=False, forced=parsed.has("force"))


def _split(parsed: Parsed) -> tuple[list[Word], Word | None, bool]:
    """Sources, destination, and whether that is a folder for sure."""
    words = parsed.operands
    if folder := parsed.value("target-directory"):
        return words, folder, True
    if len(words) < 2:
        return words, None, False
    last = words[-1]
    known = len(words) > 2 or any(value.endswith("/") or value in {".", ".."} for value in last.values)
    return words[:-1], last, known


def destinations(parsed: Parsed) -> Iterator[tuple[Word, Word]]:
    """Each source with the path that it comes to be, or the two that it may be."""
    sources, target, folder = _split(parsed)
    if target is None:
        return
    for source in sources:
        below = join(target, base(source))
        if parsed.has("no-target-directory"):
            yield source, target
        else:
            yield source, below if folder else either(target, below)


def copy(call: Call) -> Iterator[AnyEffect]:
    """``cp``, ``install`` and ``scp`` between local files."""
    parsed = parse(INSTALL_OPTIONS if call.name == "install" else COPY_OPTIONS, call.arguments)
    yield from options(call, parsed)
    if parsed.has("directory"):
        yield from operands(call, "c*", parsed.operands)
        return
    for source, target in destinations(parsed):
        yield Read(path=source)
        if parsed.has("l", "link", "s", "symbolic-link"):
            yield Write(path=target, how="link", follows=False, target=source)
        elif target.text not in NOWHERE:
            yield Write(
                path=target,
                how="truncate",
                forced=parsed.has("f", "force", "remove-destination"),
                copies=source if _keeps_links(parsed) else None,
            )


def _keeps_links(parsed: Parsed) -> bool:
    """Whether links are copied as links."""
    if parsed.has("L", "dereference"):
        return False
    return parsed.has("a", "archive", "d", "P", "no-dereference", "r", "R", "recursive")


def move(call: Call) -> Iterator[AnyEffect]:
    """``mv``: the source is gone afterwards."""
    parsed = parse(COPY_OPTIONS, call.arguments)
    yield from options(call, parsed)
    for source, target in destinations(parsed):
        yield Write(path=source, how="rename", follows=False)
        if target.text not in NOWHERE:
            yield Write(path=target, how="truncate", copies=source)


def link(call: Call) -> Iterator[AnyEffect]:
    """``ln``: a hard link is one more name of a file, which thereby changes."""
    parsed = parse(LINK_OPTIONS, call.arguments)
    yield from options(call, parsed)
    pairs = list(destinations(parsed)) or [(word, base(word)) for word in parsed.operands]
    for source, target in pairs:
        if parsed.has("symbolic"):
            yield Write(path=target, how="link", follows=False, target=source)
        else:
            yield Write(path=source, how="mode")
            yield Write(path=target, how="link", follows=False)


def tee(call: Call) -> Iterator[AnyEffect]:
    """``tee`` and ``sponge``: written anew, unless they append."""
    parsed = parse("-a|--append -ip --ignore-interrupts --output-error?", call.arguments)
    yield from options(call, parsed)
    yield from operands(call, "a*" if parsed.has("append") else "w*", parsed.operands)


def dd(call: Call) -> Iterator[AnyEffect]:
    """``dd``: operands are assignments."""
    for word in call.arguments:
        name, value = assignment(word) or ("", word)
        if name == "of":
            yield from written(value, "truncate")
        elif name == "if":
            yield Read(path=value)
        elif name not in {
            "bs",
            "ibs",
            "obs",
            "cbs",
            "count",
            "skip",
            "seek",
            "iseek",
            "oseek",
            "conv",
            "status",
        } | {
            "iflag",
            "oflag",
        }:
            yield Unknown(why=f"dd has an operand that is not known: {word.text or 'a variable'}")


def split(call: Call) -> Iterator[AnyEffect]:
    """``split``: writes files whose names begin with the second operand."""
    parsed = parse(
        "-# -a: -b: -C: -l: -n: -t: -dexu --additional-suffix: --bytes: --lines: --line-bytes: --number:"
        " --filter:x --separator: --numeric-suffixes? --hex-suffixes? --suffix-length: --elide-empty-files"
        " --unbuffered --verbose",
        call.arguments,
    )
    yield from options(call, parsed)
    yield from operands(call, "r", parsed.operands[:1])
    prefix = parsed.operands[1] if len(parsed.operands) > 1 else literal("x")
    yield Write(path=Word(with_suffix(prefix, "*").values, pattern=True, taint=prefix.taint), how="truncate")


def csplit(call: Call) -> Iterator[AnyEffect]:
    """``csplit``: writes files whose names begin with a prefix."""
    parsed = parse(
        "-kqsz -b: -n: -f|--prefix: --suffix-format: --digits: --keep-files --quiet --silent"
        " --elide-empty-files --suppress-matched",
        call.arguments,
    )
    yield from options(call, parsed)
    yield from operands(call, "r", parsed.operands[:1])
    prefix = parsed.value("prefix") or literal("xx")
    yield Write(path=Word(with_suffix(prefix, "*").values, pattern=True, taint=prefix.taint), how="truncate")


def chmod(call: Call) -> Iterator[AnyEffect]:
    """``chmod``: a mode may look like an option."""
    words = [
        w for w in call.arguments if not (w.text and w.text[0] == "-" and set(w.text[1:]) <= set("rwxXst,"))
    ]
    moded = len(words) < len(call.arguments)
    if any(re.match(r"[ug]*\+[rwxX]*s|[246][0-7]{3}$", word.text or "") for word in call.arguments):
        yield System(kind="privilege", detail="a program that runs as its owner")
    parsed = parse(
        "-cfvRHLPh --changes --silent --quiet --verbose --recursive --reference:n --preserve-root", words
    )
    yield from options(call, parsed)
    yield from operands(call, "m*" if moded or parsed.has("reference") else "- m*", parsed.operands)


def mktemp(call: Call) -> Iterator[AnyEffect]:
    """``mktemp``: a file or folder, among the temporary ones unless a template says otherwise."""
    parsed = parse("-dqt -u|--dry-run -p|--tmpdir? --directory --quiet --suffix:", call.arguments)
    yield from options(call, parsed)
    if parsed.has("dry-run"):
        return
    folder = parsed.value("tmpdir") or (
        literal(TEMPORARY) if not parsed.operands or parsed.has("tmpdir", "t") else None
    )
    template = Word(("tmp.*",), pattern=True)
    for word in parsed.operands[:1]:
        template = Word(
            tuple(value.rstrip("X") + "*" for value in word.values), pattern=True, taint=word.taint
        )
    yield from written(join(folder, template), "create")


def mknod(call: Call) -> Iterator[AnyEffect]:
    """``mknod``: a pipe, or a device."""
    yield from role(call, "c", call.arguments[0] if call.arguments else HERE)
    if not any(word.text == "p" for word in call.arguments):
        yield Unknown(why="mknod makes a device")


def rsync(call: Call) -> Iterator[AnyEffect]:
    """``rsync``: copies below a folder, here or on another host."""
    parsed = parse(RSYNC_OPTIONS, call.arguments)
    yield from options(call, parsed)
    if (shell := parsed.value("rsh")) and (shell.text or "").split(" ")[0] != "ssh":
        yield from role(call, "x", shell)
    for source in parsed.operands[:-1]:
        if host := remote(source):
            yield Network(direction="get", host=host)
        else:
            yield Read(path=source)
            if parsed.has("remove-source-files"):
                yield Write(path=source, how="delete-tree", forced=True)
    if len(parsed.operands) < 2 or parsed.has("dry-run"):
        return
    target = parsed.operands[-1]
    if host := remote(target):
        yield Network(direction="send", host=host)
        return
    yield from _synchronised(parsed, target)
    if any(option.name.startswith("del") for option, _ in parsed.given):
        yield Write(path=target, how="delete-tree", forced=True)


def _synchronised(parsed: Parsed, target: Word) -> Iterator[AnyEffect]:
    """What ``rsync`` leaves in a local folder: copies of each source, or of what is in it."""
    keeps = parsed.has("a", "archive", "l", "links") and not parsed.has("L", "copy-links")
    for source in parsed.operands[:-1]:
        inside = any(value.endswith("/") for value in source.values)
        path = target if inside else either(target, join(target, base(source)))
        copied = UNKNOWN if remote(source) else source
        yield Write(path=path, how="create", copies=copied if keeps else None)


def remote(word: Word) -> Word | None:
    """The host of ``host:path`` or ``rsync://host/path``."""
    text = word.values[0] if word.values else word.prefix
    if "://" in text:
        return literal(text.partition("://")[2].partition("/")[0].rpartition("@")[2])
    host, colon, _ = text.partition(":")
    return literal(host.rpartition("@")[2]) if colon and "/" not in host else None


TABLE: Table = {
    **table(ROWS),
    "rm": remove,
    "cp": copy,
    "install": copy,
    "ditto": copy,
    "mv": move,
    "ln": link,
    "link": link,
    "tee": tee,
    "sponge": tee,
    "dd": dd,
    "split": split,
    "csplit": csplit,
    "chmod": chmod,
    "mknod": mknod,
    "mktemp": mktemp,
    "rsync": rsync,
}
