"""What a glob may stand for: names that are there, and names that are yet to come."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from remuda.guard.places import NAMES, marks

Entry = tuple[str, bool]
"""A name in a folder, and whether it is a symbolic link."""

Listing = Callable[[str], Iterable[Entry]]

LONGEST = 4096
"""The longest path that a kernel takes."""
MOST = 256
"""So many paths are looked at one by one."""
_DEEPEST = 8
_WILD = frozenset("*?[")


def is_glob(text: str) -> bool:
    """Whether a text has a character that stands for others."""
    return not _WILD.isdisjoint(text)


def expand(pattern: str, listing: Listing, *, removes: bool = False) -> tuple[list[str], bool]:
    """The paths that a glob may stand for and that differ in where they lead, and whether these are all.

    The glob itself is one of them and stands for every ordinary name, also for those that are yet to come.
    ``removes``: what it stands for will be gone, so ``**`` takes protected files with it; otherwise these
    count only where they are named.
    """
    parts = pattern.split("/")[1:] if len(pattern) <= LONGEST else []
    if not parts or sum(map(is_glob, parts)) > _DEEPEST:
        return [], False
    found, kept = [""], list[str]()
    for index, part in enumerate(parts):
        rest = parts[index + 1 :]
        if part == "**" and len(rest) < 2 and (removes or (rest and not is_glob(rest[0]))):
            kept += [path for folder in found for path in _protected(folder, rest, listing)]
        found = [f"{folder}/{name}" for folder in found for name in _names(folder, part, not rest, listing)]
        if len(found) > MOST:
            return [*kept, *found[:MOST]], False
    return [*kept, *found], True


def _protected(folder: str, rest: list[str], listing: Listing) -> Iterator[str]:
    """What is there of agents' settings and of git's own files, by the name that is looked for."""
    from fnmatch import fnmatchcase

    ahead, seen = [folder], 0
    while ahead and seen < MOST:
        above = ahead.pop()
        for name, _ in listing(above or "/"):
            path = f"{above}/{name}"
            if marks(tuple(path.split("/")[1:]), at_home=False) & {"guard", "repository"}:
                seen += 1
                ahead.append(path)
                if fnmatchcase(name, rest[0] if rest else "*"):
                    yield path


def _names(folder: str, part: str, last: bool, listing: Listing) -> Iterator[str]:
    """The names that a part may stand for; at the end, those that lead elsewhere or are marked."""
    yield part
    if not is_glob(part) or part == "**":
        return
    from fnmatch import fnmatchcase

    hidden = part.startswith((".", "["))
    if part.startswith(".") and fnmatchcase("..", part):
        yield ".."
    above = tuple(folder.split("/")[1:])
    for name, link in _telling(part) if "/**" in folder else listing(folder or "/"):
        matches = (hidden or not name.startswith(".")) and fnmatchcase(name, part)
        if matches and (not last or link or marks((*above, name), at_home=True)):
            yield name


def _telling(part: str) -> Iterable[Entry]:
    """Names that mean something wherever they are, for a part that does not fit just any name."""
    literal = sum(letter not in _WILD for letter in part)
    return [(name, False) for name in NAMES] if literal > 1 else []
