"""Quality gates: commands that a project is checked with, and that may run whoever asks.

A gate is a list of words. A command is one when it begins with these words, in a folder of the worktree, and
comes to running the same program; what else it does (a redirection, a changed variable) is judged as ever.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from remuda.guard.model import AnyEffect, Command, Execute, Word
from remuda.guard.rules import SYSTEM_FOLDERS, Scene

OWN_CODE = frozenset(("execute.project",))
ANY_PROGRAM = frozenset(("execute.project", "execute.unknown"))


class Gate(msgspec.Struct, frozen=True):
    """A gate: its words, the folder they are meant in, and the rows it lifts."""

    words: tuple[str, ...]
    base: str
    origin: str
    lifts: frozenset[str] = OWN_CODE


def passes(gate: Gate, effect: Execute, effects: Sequence[AnyEffect], scene: Scene) -> bool:
    """Whether running a program is what a gate stands for."""
    called = [command for command in scene.commands if _begins(gate, command, effect, scene)]
    return any(_alike(gate, command, effect, effects, scene) for command in called)


def _begins(gate: Gate, command: Command, effect: Execute, scene: Scene) -> bool:
    """Whether an effect may come from a command that begins with the words of a gate, in the worktree."""
    if command.source != effect.source or command.via != effect.via[: len(command.via)]:
        return False
    texts = tuple(word.text for word in command.argv[: len(gate.words)])
    if texts[1:] != gate.words[1:] or len(texts) != len(gate.words):
        return False
    if command.cwd.text is None or scene.terrain.place(command.cwd.text).zone not in ("ground", "inside"):
        return False
    name = texts[0] or ""
    if "/" in gate.words[0]:
        return "/" in name and _path(name, command.cwd.text, scene) == _path(gate.words[0], gate.base, scene)
    folder, _, last = name.rpartition("/")
    return last == gate.words[0] and (not folder or folder in SYSTEM_FOLDERS)


def _path(name: str, folder: str, scene: Scene) -> str:
    return scene.terrain.place(name if name.startswith("/") else f"{folder}/{name}").path


def _alike(gate: Gate, command: Command, effect: Execute, effects: Sequence[AnyEffect], scene: Scene) -> bool:
    """Whether an effect, and all that a gate runs, are found again among the effects of a command."""
    wanted = _runs(gate)
    near = [
        each
        for each in effects
        if isinstance(each, Execute)
        and each.source == effect.source
        and each.via[: len(command.via)] == command.via
    ]
    inner = len(command.via)
    return any(_same(each, effect, inner, scene) for each in wanted) and all(
        any(_same(each, other, inner, scene) for other in near) for each in wanted
    )


def _runs(gate: Gate) -> list[Execute]:
    """The programs that a gate comes to when it is called alone in its folder."""
    from shlex import join

    from remuda.guard.shell.interpret import effects
    from remuda.guard.shell.state import Surroundings

    where = Surroundings(cwd=gate.base, root=gate.base)
    return [each for each in effects(join(gate.words), where) if isinstance(each, Execute)]


def _same(wanted: Execute, found: Execute, inner: int, scene: Scene) -> bool:
    """Whether two effects run the same program with the same first words."""
    return (
        found.kind == wanted.kind
        and found.via[inner:] == wanted.via
        and found.argv[: len(wanted.argv)] == wanted.argv
        and _program(found.program, scene) == _program(wanted.program, scene)
    )


def _program(word: Word, scene: Scene) -> str | None:
    if word.text is None or "/" not in word.text:
        return word.text
    return scene.terrain.place(word.text).path
