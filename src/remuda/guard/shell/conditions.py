"""Reads ``[[ … ]]``, which has a grammar of its own."""

from __future__ import annotations

from remuda.guard.shell.reader import UnreadableError
from remuda.guard.shell.simple import SimpleCommands
from remuda.guard.shell.syntax import Condition, Node, Text, Token

_CONNECTIVES = ("&&", "||", "(", ")", "<", ">")
_NAMED = frozenset({"-v", "-R"})
_NUMERIC = frozenset({"-eq", "-ne", "-lt", "-le", "-gt", "-ge"})


class Conditions(SimpleCommands):
    """The conditions of a text."""

    def condition(self) -> Node:
        """``[[ … ]]``."""
        self.at += 2
        tokens: list[Token] = []
        numeric: list[Token] = []
        while True:
            self.lines()
            if self.starts("]]"):
                self.at += 2
                return Condition(tuple(tokens), tuple(numeric))
            if self.starts(_CONNECTIVES) and not self.starts(("<(", ">(")):
                self.at += 2 if self.starts(("&&", "||")) else 1
                continue
            token = self.regex() if tokens and tokens[-1].bare == "=~" else self.token()
            if not token.parts:
                raise UnreadableError("a condition has no end")
            if tokens and tokens[-1].bare in _NAMED:
                numeric.append(token)
            if token.bare in _NUMERIC or (tokens and tokens[-1].bare in _NUMERIC):
                numeric.extend((*tokens[-1:], token) if token.bare in _NUMERIC else (token,))
            tokens.append(token)

    def regex(self) -> Token:
        """A regular expression, in which parentheses and bars are text."""
        parts: list[Node] = []
        level = 0
        while char := self.char():
            self.spend()
            if char in "(|)" or (char in "<>" and level):
                level += (char == "(") - (char == ")")
                self.at += 1
                parts.append(Text(char))
            elif level > 0 and char in " \t":
                self.at += 1
            elif char in " \t\n" or not self.part(parts):
                break
        return Token(tuple(parts))
