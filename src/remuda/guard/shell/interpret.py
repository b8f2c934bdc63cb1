"""Follows a shell's text in every way in which it may go, and collects what it may do.

Whether a branch is taken is never asked: all of them are followed, and what they leave behind is joined.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from remuda.guard.model import AnyEffect, Command, Environment, Unknown, Word, literal
from remuda.guard.shell import redirections, words
from remuda.guard.shell.arithmetic import calculate
from remuda.guard.shell.calls import Caller, ExhaustedError
from remuda.guard.shell.grammar import parse
from remuda.guard.shell.parameters import lookup, plain, replaced
from remuda.guard.shell.reader import DEPTH
from remuda.guard.shell.state import (
    EMPTY,
    Data,
    State,
    Surroundings,
    after,
    concatenate,
    either,
    known,
    opaque,
    unknown,
    unset,
)
from remuda.guard.shell.syntax import (
    Arithmetic,
    Assignment,
    Branches,
    Chain,
    Condition,
    Function,
    Loop,
    Node,
    Pipeline,
    Redirected,
    Refusal,
    Sequence,
    Simple,
    Subshell,
    Token,
)

ROUNDS = 4
"""How often a loop's body is followed before it is given up."""

SILENCE = known("")


class Followed(msgspec.Struct, frozen=True):
    """What a text may do, and the commands that it may call for that."""

    effects: tuple[AnyEffect, ...]
    commands: tuple[Command, ...]


def effects(source: str, context: Surroundings) -> tuple[AnyEffect, ...]:
    """Everything that a text may do when a shell runs it there."""
    return follow(source, context).effects


def follow(source: str, context: Surroundings) -> Followed:
    """Follow a text as a shell would run it there. Never raises on account of the text."""
    interpreter = Interpreter()
    state = State(
        cwd=literal(context.cwd),
        home=literal(context.home) if context.home else unknown(),
        root=literal(context.root) if context.root else unknown(),
        environment=context.variables,
        input=opaque(frozenset({"input"})),
        observe=context.observe,
    )
    try:
        interpreter.text(source, state)
        interpreter.finish(state)
    except (ExhaustedError, RecursionError):
        interpreter.note(Unknown(why="it is too complicated to follow"), state)
    return Followed(tuple(interpreter.effects), tuple(interpreter.commands))


class Interpreter(Caller):
    """Walks through a tree."""

    def text(self, source: str, state: State) -> Data:
        """Runs a text; what it prints."""
        self.limits.depth = DEPTH
        node = parse(source, self.limits)
        if isinstance(node, Refusal):
            self.note(Unknown(why=f"the command cannot be read: {node.why}"), state)
            return opaque(frozenset({"unknown"}))
        with self.deeper():
            return self.run(node, state)

    def finish(self, state: State) -> None:
        """Runs what was set to run at the end."""
        for trap in state.traps:
            self.source(trap, state.fork())

    def run(self, node: Node, state: State) -> Data:
        """Runs a node; what it prints."""
        self.step()
        return WAYS[type(node)](self, node, state)

    def shell(self, state: State, shows: bool = True) -> words.Shell:
        """What the expansion of words needs."""
        return words.Shell(
            state,
            run=lambda node: self.run(node, state.fork()),
            attach=lambda node, direction: self.attach(node, direction, state),
            note=lambda effect: self.note(effect, state),
            shows=shows,
        )

    def attach(self, node: Node, direction: str, state: State) -> Word:
        """``<(…)`` and ``>(…)``: a file that is a pipe to other commands."""
        inner = state.fork()
        self.pipes += 1
        path = f"/dev/fd/{62 + self.pipes}"
        if direction == ">":
            inner.input = opaque(frozenset({"unknown"}))
            self.run(node, inner)
        else:
            state.files[path] = self.run(node, inner)
        return literal(path)

    # Lists, pipelines, branches, loops

    def sequence(self, node: Sequence, state: State) -> Data:
        """One after the other."""
        printed = SILENCE
        for item in node.items:
            printed = after(printed, self.run(item, state))
        return printed

    def chain(self, node: Chain, state: State) -> Data:
        """Either side of each operator may be the last that runs."""
        ends: list[State] = []
        printed = self.link(node, state, ends)
        for end in ends:
            state.join(end)
        return printed

    def link(self, node: Node, state: State, ends: list[State]) -> Data:
        """Runs a part of a chain as if it succeeds; ``ends`` are the states in which it may have failed."""
        if not isinstance(node, Chain):
            return self.run(node, state)
        before = state.fork()
        printed = self.link(node.left, state, ends)
        if node.operator == "&&":
            ends.append(state.fork())
            return after(printed, self.run(node.right, state))
        failed = state.fork()
        for end in (before, *ends):
            failed.join(end)
        printed = after(printed, self.run(node.right, failed))
        ends[:] = [] if _leaves(node.right) else [failed]
        return printed

    def pipeline(self, node: Pipeline, state: State) -> Data:
        """Each stage in a shell of its own, reading what the one before prints."""
        data = state.input
        for stage in node.stages:
            inner = state.fork()
            inner.input = data
            data = self.run(stage, inner)
            state.files.update(inner.files)
        return data

    def subshell(self, node: Subshell, state: State) -> Data:
        """What it changes is lost, but for files."""
        inner = state.fork()
        printed = self.run(node.body, inner)
        state.files.update(inner.files)
        return printed

    def branches(self, node: Branches, state: State) -> Data:
        """All bodies; those after a condition also in case that it had no effect."""
        for token in node.tokens:
            words.single(self.shell(state, shows=False), token)
        printed = SILENCE
        ends: list[State] = []
        for place, body in enumerate(node.bodies):
            if place < len(node.conditions):
                before = state.fork()
                printed = after(printed, self.run(node.conditions[place], state))
                way = state.fork()
                state.join(before)
            else:
                way = state.fork()
            printed = after(printed, self.run(body, way))
            if not _leaves(body):
                ends.append(way)
        if node.complete and ends:
            state.become(ends.pop())
        for end in ends:
            state.join(end)
        return printed

    def loop(self, node: Loop, state: State) -> Data:
        """The body once for all values of the variable, and again until nothing new happens."""
        if node.variable:
            self.set(node.variable, self.items(node, state), state)
        printed = SILENCE
        for turn in range(ROUNDS):
            before = state.fork()
            if node.condition is not None:
                printed = after(printed, self.run(node.condition, state))
            way = state.fork()
            printed = after(printed, self.run(node.body, way))
            state.join(way)
            if node.variable:
                state.variables[node.variable] = before.variables[node.variable]
            if not state.differs(before):
                break
            if turn:
                state.widen(before)
        else:
            self.note(Unknown(why="a loop changes too much"), state)
        return Data(None, printed.line) if printed.text != "" else printed

    def items(self, node: Loop, state: State) -> Word:
        """What a loop's variable may be."""
        ways = [state.positional] if node.items is None else words.argv(self.shell(state), node.items)
        return either(word for way in ways for word in way)

    def function(self, node: Function, state: State) -> Data:
        """Remembers it; what it does is seen when it is called."""
        state.functions[node.name] = (node.body,)
        if node.name == "command_not_found_handle":
            self.function_call(node.name, node.body, (unknown(),), state.fork())
        return SILENCE

    def condition(self, node: Condition, state: State) -> Data:
        """A test prints nothing, but its words may run commands."""
        shell = self.shell(state, shows=False)
        for token in node.tokens:
            words.single(shell, token)
        for token in node.numeric:
            calculate(shell, words.single(shell, token))
        return SILENCE

    def arithmetic(self, node: Arithmetic, state: State) -> Data:
        """``((…))``."""
        shell = self.shell(state, shows=False)
        calculate(shell, words.single(shell, node.expression))
        return SILENCE

    # Simple commands

    def redirected(self, node: Redirected, state: State) -> Data:
        """A compound command with other input and output."""
        wiring = redirections.wire(self, node.redirects, state)
        outer, state.input = state.input, wiring.input
        printed = self.run(node.body, state)
        state.input = outer
        return redirections.deliver(self, wiring, printed, state)

    def simple(self, node: Simple, state: State) -> Data:
        """Expands, redirects, assigns and calls, in this order."""
        outer, self.piece = self.piece, node.source
        shell = self.shell(state, shows=not _tests(node))
        tokens = tuple(word for word in node.words if isinstance(word, Token))
        declared = tuple(self.declared(word, state) for word in node.words if isinstance(word, Assignment))
        ways = [(*way, *declared) for way in words.argv(shell, tokens)] if tokens else []
        assigned = [self.assign(assignment, state, lasting=not ways) for assignment in node.assignments]
        wiring = redirections.wire(self, node.redirects, state)
        printed = self.called(ways, dict(assigned), wiring, state) if ways else wiring.shown
        printed = redirections.deliver(self, wiring, printed, state)
        self.piece = outer
        return printed

    def called(
        self, ways: list[words.Fields], assigned: dict[str, Word], wiring: redirections.Wiring, state: State
    ) -> Data:
        """Calls a command in every way in which its words may come out, with its own variables and input."""
        lasting = any(way and way[0].text == "exec" and len(way) == 1 for way in ways)
        outer, state.input = state.input, wiring.input
        hidden = {name: state.variables.get(name) for name in assigned}
        exported = dict(state.exported)
        state.variables.update(assigned)
        state.exported.update(dict.fromkeys(assigned, True))
        printed = SILENCE
        start = state.fork() if len(ways) > 1 else None
        for way in ways:
            inner = state if start is None else start.fork()
            printed = after(printed, self.invoke(way, inner))
            inner.last = way[-1] if way else EMPTY
            if start is not None:
                state.join(inner)
        for name, value in hidden.items():
            state.variables.pop(name, None)
            if value is not None:
                state.variables[name] = value
                state.exported[name] = exported.get(name, False)
        if not lasting:
            state.input = outer
        return printed

    def declared(self, node: Assignment, state: State) -> Word:
        """An assignment that is an argument, as the word that it is."""
        name, value = self.assign(node, state, lasting=False)
        return literal(name) if node.items is not None else concatenate(literal(f"{name}="), value)

    def assign(self, node: Assignment, state: State, lasting: bool) -> tuple[str, Word]:
        """The value of an assignment. Arrays are set; a variable only if it is ``lasting``."""
        shell = self.shell(state)
        if node.subscript is not None:
            calculate(shell, words.single(shell, node.subscript))
        for key in node.keys:
            calculate(shell, words.single(shell, key))
        if node.items is not None:
            found = tuple(word for way in words.argv(shell, node.items) for word in way)
            state.arrays[node.name] = (*state.arrays.get(node.name, ()), *found) if node.append else found
            state.variables.pop(node.name, None)
            return node.name, found[0] if found else EMPTY
        value = words.single(shell, node.value)
        if node.append:
            value = concatenate(lookup(state, node.name) or unset(), value)
        if node.subscript is not None:
            items = state.arrays.get(node.name, ())
            state.arrays[node.name] = replaced(items, plain(node.subscript), value)
        elif lasting:
            self.set(node.name, value, state)
        else:
            self.note(Environment(action="set", name=node.name, value=value), state)
        return node.name, value


def _tests(node: Simple) -> bool:
    """Whether a command only tests its words."""
    name = node.words[0].bare if node.words and isinstance(node.words[0], Token) else None
    return name in {"[", "test"}


def _leaves(node: Node) -> bool:
    """Whether nothing that comes afterwards runs after this."""
    while isinstance(node, Sequence) and node.items:
        node = node.items[-1]
    word = node.words[0] if isinstance(node, Simple) and node.words else None
    return isinstance(word, Token) and word.bare in {"exit", "return"}


WAYS: dict[type[Node], Callable[[Interpreter, Any, State], Data]] = {
    Simple: Interpreter.simple,
    Sequence: Interpreter.sequence,
    Chain: Interpreter.chain,
    Pipeline: Interpreter.pipeline,
    Subshell: Interpreter.subshell,
    Branches: Interpreter.branches,
    Loop: Interpreter.loop,
    Function: Interpreter.function,
    Condition: Interpreter.condition,
    Arithmetic: Interpreter.arithmetic,
    Redirected: Interpreter.redirected,
}
