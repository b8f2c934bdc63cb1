"""Calls commands: functions, builtins, wrappers, programs of the table, and all others."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from posixpath import basename, normpath
from shlex import quote
from typing import Literal

from msgspec.structs import replace

from remuda.guard.commands import lookup
from remuda.guard.commands.contract import Call
from remuda.guard.commands.destroying import says
from remuda.guard.commands.operands import texts
from remuda.guard.commands.urls import doubts
from remuda.guard.model import (
    UNKNOWN,
    AnyEffect,
    Command,
    Environment,
    Evaluate,
    Execute,
    Git,
    Network,
    Read,
    System,
    Unknown,
    Word,
    Write,
    literal,
)
from remuda.guard.shell import flows
from remuda.guard.shell.reader import Limits
from remuda.guard.shell.state import Data, State, known, names, opaque, unknown
from remuda.guard.shell.syntax import Node

STEPS, NESTING = 3_000, 16
SYSTEM_FOLDERS = names(
    "/bin /usr/bin /usr/local/bin /sbin /usr/sbin /usr/local/sbin /opt/homebrew/bin /opt/local/bin"
)
NOWHERE = names(
    "/dev/null /dev/stdout /dev/stderr /dev/stdin /dev/tty /dev/zero /dev/full /dev/urandom /dev/random"
)
SILENCE = known("")


class ExhaustedError(Exception):
    """The steps are used up."""


class Caller(ABC):
    """Collects effects, counts steps and calls commands. The interpreter adds the language."""

    def __init__(self) -> None:
        self.effects: dict[AnyEffect, None] = {}
        self.commands: list[Command] = []
        self.via: tuple[str, ...] = ()
        self.piece = ""
        self.steps = STEPS
        self.limits = Limits()
        self.nesting = NESTING
        self.active: tuple[str, ...] = ()
        self.locals: list[dict[str, Word | None]] = []
        self.pipes = 0

    @abstractmethod
    def run(self, node: Node, state: State) -> Data:
        """Runs a node; what it prints."""

    @abstractmethod
    def text(self, source: str, state: State) -> Data:
        """Runs a text; what it prints."""

    @abstractmethod
    def finish(self, state: State) -> None:
        """Runs what was set to run at the end."""

    # Bounds and effects

    def step(self) -> None:
        """Counts a step."""
        self.steps -= 1
        if self.steps < 0:
            raise ExhaustedError

    @contextmanager
    def deeper(self, program: str = "") -> Iterator[None]:
        """One level down, in a program that runs others."""
        self.nesting -= 1
        if self.nesting < 0:
            raise ExhaustedError
        outer = self.via
        if program:
            self.via = (*outer, program)
        yield
        self.via = outer
        self.nesting += 1

    def note(self, effect: AnyEffect, state: State) -> None:
        """Adds an effect, with absolute paths and where it comes from."""
        placed = place(effect, state.cwd)
        if placed is None:
            return
        if not placed.source and not placed.via:
            placed = replace(placed, via=self.via, source=self.piece)
        self.effects[placed] = None

    def apart(self, argv: tuple[Word, ...], state: State) -> tuple[AnyEffect, ...]:
        """The effects of a command on its own."""
        outer, self.effects = self.effects, {}
        try:
            self.invoke(argv, state.fork())
        finally:
            found, self.effects = self.effects, outer
        return tuple(found)

    # Texts

    def source(self, word: Word, state: State) -> Data:
        """Runs what a word says, in this shell."""
        if not word.values or word.pattern:
            self.note(Evaluate(language="sh", origin=word.taint), state)
            return opaque(word.taint)
        if len(word.values) == 1:
            return self.text(word.values[0], state)
        start = state.fork()
        for text in word.values:
            way = start.fork()
            self.text(text, way)
            state.join(way)
        return opaque(word.taint)

    def feed(self, data: Data, state: State) -> Data:
        """Runs what comes through a pipe or from a file that was written before."""
        if data.text is None:
            self.note(Evaluate(language="sh", origin=data.taint), state)
            return opaque(data.taint or frozenset({"unknown"}))
        return self.text(data.text, state)

    def script(self, path: Word, arguments: tuple[Word, ...], state: State) -> Data:
        """Runs a file: what is known to be in it, or a program of the project."""
        if not path.values:
            return self.source(path, state)
        for absolute in absolute_path(path, state.cwd).values:
            data = state.input if absolute in {"/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"} else None
            data = data or state.files.get(normpath(absolute))
            if data is not None or nowhere(absolute):
                return self.feed(data or opaque(UNKNOWN.taint), state)
        program = absolute_path(path, state.cwd)
        self.note(Execute(program=program, argv=arguments, kind="project"), state)
        self.suspect("sh", (path,), state, script=True)
        return opaque(frozenset({"unknown"}))

    def suspect(self, language: str, paths: tuple[Word, ...], state: State, script: bool = False) -> None:
        """Notes that one of some files, which are run, came from somewhere else just before."""
        for path in paths:
            for value in absolute_path(path, state.cwd).values:
                if origin := flows.untrusted(normpath(value), state, script):
                    self.note(Evaluate(language=language, origin=origin), state)

    # Commands

    def set(self, name: str, value: Word, state: State, declared: bool = False) -> None:
        """Gives a variable a value; ``declared``: only until the function that is running ends."""
        if declared and self.locals:
            self.locals[-1].setdefault(name, state.variables.get(name))
        state.variables[name] = value
        state.arrays.pop(name, None)
        self.note(Environment(action="set", name=name, value=value), state)

    def invoke(self, argv: tuple[Word, ...], state: State, functions: bool = True) -> Data:
        """Calls a command; what it prints."""
        self.step()
        if not argv:
            return SILENCE
        name = argv[0]
        if not name.values or name.pattern:
            return self.unnamed(name, argv[1:], state)
        if len(name.values) == 1:
            return self.command(name.values[0], argv[1:], state, functions)
        start, taint = state.fork(), name.taint
        for value in name.values:
            way = start.fork()
            taint |= self.command(value, argv[1:], way, functions).taint
            state.join(way)
        return opaque(taint)

    def unnamed(self, name: Word, arguments: tuple[Word, ...], state: State) -> Data:
        """A command whose name is not known."""
        self.commands.append(Command((name, *arguments), state.cwd, self.via, self.piece))
        folder, _, last = name.prefix.rpartition("/")
        if folder and last == "" and not name.taint & {"network", "decoder"}:
            self.note(Execute(program=name, argv=arguments), state)
        else:
            self.note(Evaluate(language="command", origin=name.taint), state)
        return opaque(name.taint)

    def command(self, name: str, arguments: tuple[Word, ...], state: State, functions: bool) -> Data:
        """Calls a command by its name: whatever that may mean here."""
        printed: Data | None = None
        if functions:
            if name in state.aliases:
                printed = self.aliased(name, arguments, state)
            bodies = state.functions.get(name, (None,))
            for body in bodies:
                if body is not None:
                    printed = self.function_call(name, body, arguments, state)
            if None not in bodies:
                return printed or SILENCE
        if name in state.remapped:
            self.invoke((state.remapped[name], *arguments), state.fork())
        data = self.program(name, arguments, state)
        return data if printed is None else Data(None, unknown(data.taint | printed.taint))

    def function_call(self, name: str, body: Node, arguments: tuple[Word, ...], state: State) -> Data:
        """Runs a function's body with its own positional parameters."""
        if name in self.active:
            self.note(Unknown(why=f"{name} calls itself"), state)
            return opaque(frozenset({"unknown"}))
        outer, positional = self.active, state.positional
        self.active, state.positional = (*outer, name), arguments
        self.locals.append({})
        with self.deeper():
            printed = self.run(body, state)
        for local, value in self.locals.pop().items():
            state.variables.pop(local, None)
            if value is not None:
                state.variables[local] = value
        self.active, state.positional = outer, positional
        return printed

    def aliased(self, name: str, arguments: tuple[Word, ...], state: State) -> Data:
        """Runs what an alias says."""
        aliases = state.aliases.pop(name)
        rest = "".join(f" {quote(word.text)}" if word.text is not None else ' "$@"' for word in arguments)
        printed = SILENCE
        for text in aliases:
            inner = state.fork()
            inner.positional = tuple(word for word in arguments if word.text is None)
            with self.deeper():
                printed = self.text(text + rest, inner)
        state.aliases[name] = aliases
        return printed

    def program(self, name: str, arguments: tuple[Word, ...], state: State) -> Data:
        """A builtin, a wrapper or a program."""
        self.commands.append(Command((literal(name), *arguments), state.cwd, self.via, self.piece))
        from remuda.guard.shell.builtins import BUILTINS

        if name in BUILTINS:
            return BUILTINS[name](self, arguments, state)
        short = self.executable(name, arguments, state)
        if not short:
            return opaque(frozenset({"unknown"}))
        from remuda.guard.shell.programs import PROGRAMS

        if short in PROGRAMS:
            return PROGRAMS[short](self, short, arguments, state)
        return self.listed(short, arguments, state, strange=short == name)

    def executable(self, name: str, arguments: tuple[Word, ...], state: State) -> str:
        """The name that the table may have for a program; a file of the project is noted as such."""
        if "/" not in name:
            return name
        path = normpath(absolute_path(literal(name), state.cwd).text or name)
        if path in state.files and not _foreign(state.files[path]):
            self.feed(state.files[path], state.child(literal(name), arguments))
        elif path.rpartition("/")[0] not in SYSTEM_FOLDERS:
            kind: Literal["project", "unknown"] = (
                "unknown" if name[0] == "/" and not _inside(path, state) else "project"
            )
            program = absolute_path(literal(name), state.cwd)
            self.note(Execute(program=program, argv=arguments, kind=kind), state)
            self.suspect("sh", (program,), state, script=True)
        return basename(path)

    def perhaps_wrapped(self, name: str, arguments: tuple[Word, ...], state: State) -> None:
        """A program that nobody knows may run the command that it is given: that counts, too."""
        from remuda.guard.shell.strangers import commands

        for place in commands(arguments):
            with self.deeper(name):
                self.invoke(arguments[place:], state.fork(), functions=False)

    def listed(self, name: str, arguments: tuple[Word, ...], state: State, strange: bool = True) -> Data:
        """A program of the table; ``strange``: one that is not in it has effects that nobody knows."""
        handler = lookup(name)
        if handler is None:
            if strange:
                self.note(Execute(program=literal(name), argv=arguments), state)
            if says(name, texts(arguments)):
                self.note(System(kind="cloud", detail=name, destroys=True), state)
            self.perhaps_wrapped(name, arguments, state)
            return opaque(state.input.taint - {"input"} | {"unknown"})

        def again(argv: tuple[Word, ...]) -> tuple[AnyEffect, ...]:
            with self.deeper(name):
                return self.apart(argv, state)

        def shell(text: str) -> tuple[AnyEffect, ...]:
            return again((literal("sh"), literal("-c"), literal(text)))

        call = Call(
            name=name,
            arguments=arguments,
            input=state.input.taint,
            input_text=state.input.text,
            environment=state.variables,
            again=again,
            shell=shell,
        )
        found = tuple(handler(call))
        for effect in found:
            self.note(effect, state)
            if isinstance(effect, Execute):
                self.suspect(name, (effect.program, *effect.argv), state)
        if any(map(_far, found)) and (why := doubts(name, texts(arguments))):
            self.note(Unknown(why=why), state)
        flows.remember(name, arguments, found, state)
        return flows.output(name, arguments, found, state)


def _far(effect: AnyEffect) -> bool:
    """Whether an effect has to do with an address that a command names."""
    return isinstance(effect, Network) or (isinstance(effect, Git) and effect.operation in {"clone", "fetch"})


def _foreign(data: Data) -> bool:
    """Whether a file says that it is for another interpreter than a shell."""
    first = (data.text or "").partition("\n")[0]
    return first.startswith("#!") and not first.endswith("sh") and "sh " not in first


def _inside(path: str, state: State) -> bool:
    root = state.root.text or state.cwd.text
    return root is not None and path.startswith(root.rstrip("/") + "/")


def absolute_path(word: Word, cwd: Word) -> Word:
    """A path with the folder that it is relative to."""
    if not word.values:
        if not word.prefix or word.prefix[0] == "/":
            return word
        folder = cwd.text
        return replace(word, prefix=f"{folder.rstrip('/')}/{word.prefix}" if folder else "")
    if all(value[:1] == "/" for value in word.values):
        return word
    if not cwd.values:
        return unknown(word.taint | cwd.taint)
    values = dict.fromkeys(
        value if value[:1] == "/" else f"{folder.rstrip('/')}/{value}"
        for value in word.values
        for folder in cwd.values
    )
    return Word(tuple(values), word.pattern or cwd.pattern, word.taint)


def place(effect: AnyEffect, cwd: Word) -> AnyEffect | None:
    """An effect with absolute paths; nothing where it only concerns the shell's own pipes and terminal."""
    if isinstance(effect, Read | Write):
        path = absolute_path(effect.path, cwd)
        if path.values and not path.pattern and all(nowhere(value) for value in path.values):
            return None
        return effect if path is effect.path else replace(effect, path=path)
    if isinstance(effect, Git):
        return replace(effect, repository=absolute_path(effect.repository, cwd))
    return effect


def nowhere(path: str) -> bool:
    """Whether a path is no file at all."""
    return path in NOWHERE or path.startswith(("/dev/fd/", "/proc/self/fd/"))
