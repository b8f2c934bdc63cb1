"""Reads commands: from a text to a syntax tree, or to a refusal.

A grammar of bash by hand: it takes what ``bash -n`` takes, but for a few things that nobody needs. A guard
must not misread a text in silence, as general parsers do with ``coproc``, with words after a redirection or
with backticks in an expansion.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from remuda.guard.shell.conditions import Conditions
from remuda.guard.shell.reader import SIZE, Limits, UnreadableError
from remuda.guard.shell.simple import CALLABLE
from remuda.guard.shell.syntax import (
    Arithmetic,
    Branches,
    Chain,
    Function,
    Loop,
    Node,
    Pipeline,
    Redirect,
    Redirected,
    Refusal,
    Sequence,
    Simple,
    Subshell,
    Token,
)

_RESERVED = re.compile(
    r"(?:if|then|elif|else|fi|for|select|while|until|do|done|case|esac|function|time|coproc|\[\[|[{}!])"
    r"(?=[\s;&|<>()]|$)"
)
_CLOSERS = frozenset({"then", "elif", "else", "fi", "do", "done", "esac", "}"})
_IN = re.compile(r"in(?=[\s;]|$)")
_TIME_FLAG = re.compile(r"(?:-p|--)(?=\s|$)")
_COPROCESS = re.compile(r"[A-Za-z_]\w*(?=[ \t]+(?:[({]|while|until|for|if|case|\[\[))", re.ASCII)


def parse(source: str, limits: Limits | None = None) -> Node | Refusal:
    """The tree of a text, or why there is none. Never raises. Texts may share their limits."""
    if len(source) > SIZE:
        return Refusal("it is too long")
    if "\0" in source:
        return Refusal("it has a NUL character")
    grammar = Grammar(source, limits or Limits())
    try:
        script = grammar.script()
        if grammar.at < len(source):
            raise UnreadableError("a parenthesis too many")
        return script
    except UnreadableError as refused:
        return Refusal(str(refused))


class Grammar(Conditions):
    """The commands of a text."""

    def script(self) -> Node:
        """Commands up to the end of the text, or to a parenthesis."""
        return self.sequence(frozenset())

    def sequence(self, ends: frozenset[str]) -> Node:
        """Commands up to one of these reserved words, which is not read."""
        self.enter()
        items: list[Node] = []
        while not self.closes(ends):
            node = self.chain()
            self.blanks()
            if self.char() == "&":
                self.at += 1
                node = Subshell(node)
            elif self.char() == ";" and not self.starts((";;", ";&")):
                self.at += 1
            elif self.char() not in {"\n", ""} and not self.closes(ends):
                raise UnreadableError(f"{self.char()} stands where it cannot")
            items.append(node)
        self.leave()
        return items[0] if len(items) == 1 else Sequence(tuple(items))

    def closes(self, ends: frozenset[str]) -> bool:
        """Whether a list of commands ends here, after blank lines."""
        self.lines()
        if self.char() in {"", ")"}:
            self.finish_documents()
            return True
        if ";;" in ends and self.starts((";;", ";&")):
            return True
        word = self.reserved()
        if word in _CLOSERS and word not in ends:
            raise UnreadableError(f"{word} stands where it cannot")
        return word in ends

    def reserved(self) -> str:
        """The reserved word here, if there is one."""
        match = _RESERVED.match(self.source, self.at)
        return match[0] if match else ""

    def keyword(self, word: str) -> None:
        """Steps over a reserved word that must come next."""
        self.lines()
        if self.reserved() != word:
            raise UnreadableError(f"{word} is missing")
        self.at += len(word)

    # Lists and pipelines

    def chain(self) -> Node:
        """Pipelines joined by ``&&`` and ``||``."""
        left = self.pipeline()
        while True:
            self.blanks()
            if not self.starts(("&&", "||")):
                return left
            operator = self.source[self.at : self.at + 2]
            self.at += 2
            self.lines()
            left = Chain(left, operator, self.pipeline())

    def pipeline(self) -> Node:
        """Commands joined by ``|``, maybe negated or timed."""
        while self.reserved() in {"!", "time"} or self.starts("!("):
            self.spend()
            timed = self.char() == "t"
            self.at += 4 if timed else 1
            self.blanks()
            while timed and _TIME_FLAG.match(self.source, self.at):
                self.at += 2
                self.blanks()
            if self.char() in {"", "\n", ";", "&", "|", ")"}:
                return Simple()
        stages = [self.command()]
        while True:
            self.blanks()
            if self.char() != "|" or self.starts("||"):
                return stages[0] if len(stages) == 1 else Pipeline(tuple(stages))
            self.at += 2 if self.char(1) == "&" else 1
            self.lines()
            stages.append(self.command())

    def command(self) -> Node:
        """One command with its redirections."""
        self.spend()
        if not (reader := self.compound()):
            return self.simple()
        self.enter()
        node = reader()
        self.leave()
        redirects: list[Redirect] = []
        self.blanks()
        while self.redirect(redirects):
            self.blanks()
        return Redirected(node, tuple(redirects)) if redirects else node

    def compound(self) -> Callable[[], Node] | None:
        """What reads the compound command here, if there is one."""
        if self.char() == "(":
            return self.parentheses
        readers: dict[str, Callable[[], Node]] = {
            "{": self.group,
            "[[": self.condition,
            "if": self.branches,
            "case": self.case,
            "for": self.loop,
            "select": self.loop,
            "while": self.repetition,
            "until": self.repetition,
            "function": self.function,
            "coproc": self.coprocess,
        }
        word = self.reserved()
        if word in _CLOSERS:
            raise UnreadableError(f"{word} stands where it cannot")
        return readers.get(word)

    # Compound commands

    def parentheses(self) -> Node:
        """``((…))`` or ``(…)``."""
        if self.starts("((") and (expression := self.arithmetic()) is not None:
            return Arithmetic(expression)
        self.at += 1
        node = Subshell(self.sequence(frozenset()))
        self.expect(")")
        return node

    def group(self) -> Node:
        """``{ …; }``."""
        self.at += 1
        node = self.sequence(frozenset({"}"}))
        self.keyword("}")
        return node

    def block(self) -> Node:
        """``do …; done``, or a group in its place."""
        self.lines()
        if self.reserved() == "{":
            return self.group()
        self.keyword("do")
        node = self.sequence(frozenset({"done"}))
        self.keyword("done")
        return node

    def branches(self) -> Node:
        """``if …; then …; fi``."""
        conditions: list[Node] = []
        bodies: list[Node] = []
        while self.reserved() in {"if", "elif"}:
            self.at += len(self.reserved())
            conditions.append(self.sequence(frozenset({"then"})))
            self.keyword("then")
            bodies.append(self.sequence(frozenset({"elif", "else", "fi"})))
        if self.reserved() == "else":
            self.at += 4
            bodies.append(self.sequence(frozenset({"fi"})))
        self.keyword("fi")
        complete = len(bodies) > len(conditions)
        return Branches(conditions=tuple(conditions), bodies=tuple(bodies), complete=complete)

    def case(self) -> Node:
        """``case … in …) …;; esac``."""
        self.at += 4
        self.blanks()
        tokens = [self.token()]
        self.lines()
        self.expect("in")
        self.lines()
        bodies: list[Node] = []
        while self.reserved() != "esac":
            self.patterns(tokens)
            bodies.append(self.sequence(frozenset({";;", "esac"})))
            while self.char() in {";", "&"}:
                self.at += 1
            self.lines()
        self.at += 4
        complete = any(token.bare == "*" for token in tokens[1:])
        return Branches(tokens=tuple(tokens), bodies=tuple(bodies), complete=complete)

    def patterns(self, tokens: list[Token]) -> None:
        """The patterns of a case, up to their parenthesis."""
        if self.char() == "(":
            self.at += 1
        while True:
            self.blanks()
            if not (token := self.token()).parts:
                raise UnreadableError("a pattern is missing")
            tokens.append(token)
            self.blanks()
            if self.char() != "|":
                return self.expect(")")
            self.at += 1

    def loop(self) -> Node:
        """``for`` and ``select``."""
        self.at += len(self.reserved())
        self.blanks()
        if self.starts("(("):
            expression = self.arithmetic()
            if expression is None:
                raise UnreadableError("a loop has no end")
            self.separator()
            return Loop(self.block(), condition=Arithmetic(expression))
        variable = self.token().bare
        if variable is None or not variable.isidentifier():
            raise UnreadableError("a loop has no variable")
        self.lines()
        items: list[Token] | None = None
        if _IN.match(self.source, self.at):
            self.at += 2
            items = self.items()
        self.separator()
        return Loop(self.block(), variable=variable, items=None if items is None else tuple(items))

    def items(self) -> list[Token]:
        """Words up to the end of the line."""
        items: list[Token] = []
        self.blanks()
        while (token := self.token()).parts:
            items.append(token)
            self.blanks()
        return items

    def separator(self) -> None:
        """A semicolon that may stand before a block."""
        self.blanks()
        if self.char() == ";":
            self.at += 1

    def repetition(self) -> Node:
        """``while`` and ``until``."""
        self.at += 5
        condition = self.sequence(frozenset({"do"}))
        return Loop(self.block(), condition=condition)

    def function(self) -> Node:
        """``function name …``."""
        self.at += len("function")
        self.blanks()
        name = self.token().bare
        if name is None:
            raise UnreadableError("a function has no name")
        if match := CALLABLE.match(self.source, self.at):
            self.at = match.end()
        self.lines()
        return Function(name, self.definition())

    def definition(self) -> Node:
        """The body of a function."""
        if not self.compound():
            raise UnreadableError("a function has no body")
        return self.command()

    def coprocess(self) -> Node:
        """``coproc [NAME] command``."""
        self.at += len("coproc")
        self.blanks()
        if match := _COPROCESS.match(self.source, self.at):
            self.at = match.end()
            self.blanks()
        return Subshell(self.command())
