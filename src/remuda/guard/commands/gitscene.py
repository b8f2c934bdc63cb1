"""What the handlers of git's verbs work with: the call, and where the repository is."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from remuda.guard.commands.contract import Call
from remuda.guard.commands.operands import HERE, join, written
from remuda.guard.commands.options import LOOKALIKES, Parsed
from remuda.guard.commands.rows import strange
from remuda.guard.model import AnyEffect, Git, GitOperation, How, Read, Unknown, Word


class Scene(msgspec.Struct, frozen=True):
    """A call of git and the folder that it works in."""

    call: Call
    at: Word = HERE

    def does(
        self,
        operation: GitOperation,
        *,
        forced: bool = False,
        refs: tuple[Word, ...] | list[Word] = (),
        detail: str = "",
    ) -> Git:
        """An effect on this repository."""
        return Git(operation=operation, forced=forced, refs=tuple(refs), repository=self.at, detail=detail)

    def writes(self, path: Word, how: How, *, forced: bool = False) -> Iterator[AnyEffect]:
        """A change of a file, as git would do it from its folder."""
        yield from written(join(self.at, path), how, follows=how not in {"delete", "rename"}, forced=forced)

    def reads(self, path: Word) -> Iterator[AnyEffect]:
        """A file that git reads beside its own."""
        if path.text != "-":
            yield Read(path=join(self.at, path))

    def options(self, parsed: Parsed) -> Iterator[AnyEffect]:
        """What options come to that name files or are not known; git itself refuses the latter."""
        for text in parsed.strange:
            if text[:1] in LOOKALIKES or not text.startswith("-"):
                yield strange("git", text)
        for option, value in parsed.given:
            if option.role == "!":
                yield self.does("execute", detail=f"--{option.name}")
            elif value is not None and option.role == "w":
                yield from self.writes(value, "truncate")
            elif value is not None and option.role == "r":
                yield from self.reads(value)


Verb = Callable[[Scene, list[Word]], Iterator[AnyEffect]]


def unknown(detail: str) -> Unknown:
    """A verb's own verb that no table has."""
    return Unknown(why=f"git {detail} is not known")
