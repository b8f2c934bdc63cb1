"""Reads words: quotes, expansions, substitutions and here-documents.

It follows bash's own rules instead of guessing, and gives up on what it does not know: a text that bash takes
differently must never look harmless here.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod

from remuda.guard.shell.escapes import ansi
from remuda.guard.shell.reader import Limits, Reader, UnreadableError
from remuda.guard.shell.syntax import Arithmetic, Node, Parameter, Substitution, Text, Token

_PLAIN = re.compile(r"[^ \t\n;&|<>()'\"\\$`]+")
_LITERAL = re.compile(r"[^\"\\$`]+")
_OPERAND = re.compile(r"[^'\"\\$`}/:()\]\[<>]+")
_NAME = re.compile(r"[A-Za-z_]\w*|\d+|[@*#?$!-]", re.ASCII)
_OPERATOR = re.compile(r":[-=?+]|[-=?+]|##?|%%?|/[/#%]?|\^\^?|,,?|@[A-Za-z]|:")
_SINGLE_NAME = re.compile(r"[A-Za-z_]\w*|[0-9@*#?$!-]", re.ASCII)
_PATTERNS = ("#", "%", "/", "^", ",")


class HereDocument(Node, frozen=True, gc=False):
    """The body of a here-document, which comes after the line that asks for it."""

    delimiter: str
    quoted: bool
    indented: bool
    parts: list[Node]


class Lexer(Reader, ABC):
    """The words of a text. ``awaited`` are here-documents whose bodies come with the next line."""

    def __init__(self, source: str, limits: Limits) -> None:
        super().__init__(source, limits)
        self.awaited: list[HereDocument] = []

    @abstractmethod
    def script(self) -> Node:
        """Commands up to the end of the text, or to a parenthesis."""

    def child(self, source: str) -> Lexer:
        """Reads a text inside this one, within the same bounds."""
        return type(self)(source, self.limits)

    # Words

    def token(self) -> Token:
        """The word that begins here."""
        parts: list[Node] = []
        while self.part(parts):
            self.spend()
        return Token(tuple(parts))

    def part(self, parts: list[Node]) -> bool:
        """Reads the next part of a word; false at its end."""
        if match := _PLAIN.match(self.source, self.at):
            self.at = match.end()
            add(parts, match[0])
            if match[0][-1] in "?*+@!" and self.char() == "(":
                self.extended(parts)
            return True
        char = self.char()
        if char and char in "<>" and self.char(1) == "(":
            self.at += 2
            parts.append(Substitution(self.commands(), direction=char))
            return True
        return bool(char) and char in "'\"\\$`" and self.special(parts, quoted=False)

    def special(self, parts: list[Node], quoted: bool) -> bool:
        """Reads a quote, an escape, an expansion or a substitution."""
        char = self.char()
        if char == "'":
            add(parts, self.until("'"), quoted=True)
        elif char == '"':
            self.double(parts)
        elif char == "\\":
            self.escape(parts)
        elif char == "`":
            parts.append(Substitution(self.backticks(quoted), quoted))
        else:
            self.dollar(parts, quoted)
        return True

    def escape(self, parts: list[Node]) -> None:
        """A backslash outside quotes."""
        follower = self.char(1)
        self.at += 2
        if follower != "\n":
            add(parts, follower or "\\", quoted=True)

    def double(self, parts: list[Node]) -> None:
        """A text in double quotes."""
        self.at += 1
        add(parts, "", quoted=True)
        while (char := self.char()) != '"':
            if not char:
                raise UnreadableError('a closing " is missing')
            self.literal(parts, '$`"\\')
        self.at += 1

    def literal(self, parts: list[Node], escapable: str) -> None:
        """The next piece of a text in which only backslash, dollar and backtick are special."""
        self.spend()
        if match := _LITERAL.match(self.source, self.at):
            self.at = match.end()
            add(parts, match[0], quoted=True)
        elif self.char() == "\\":
            follower = self.char(1)
            self.at += 2
            if follower != "\n":
                add(parts, follower if follower and follower in escapable else "\\" + follower, quoted=True)
        elif self.char() == '"':
            self.at += 1
            add(parts, '"', quoted=True)
        else:
            self.special(parts, quoted=True)

    def document(self) -> list[Node]:
        """The whole text as the body of a here-document."""
        parts: list[Node] = []
        while self.at < len(self.source):
            self.literal(parts, "$`\\")
        return parts

    def extended(self, parts: list[Node]) -> None:
        """An extended glob, of which only the beginning has been read."""
        self.enter()
        add(parts, "(")
        self.at += 1
        while (char := self.char()) != ")":
            if not char or char in "\n;&<>'\"$`:":
                raise UnreadableError("a pattern is not understood")
            if char in " \t|(":
                self.at += 1
                add(parts, char)
            else:
                self.part(parts)
        self.at += 1
        add(parts, ")")
        self.leave()

    # Expansions

    def dollar(self, parts: list[Node], quoted: bool) -> None:
        """Whatever a dollar sign begins."""
        self.at += 1
        self.join()
        char = self.char()
        if char == "(":
            parts.append(self.parenthesis(quoted))
        elif char == "{":
            self.at += 1
            parts.append(self.braces(quoted))
        elif char == "[":
            self.at += 1
            parts.append(Arithmetic(self.expression("]"), quoted))
            self.at += 1
        elif char == "'" and not quoted:
            add(parts, self.ansi(), quoted=True)
        elif char == '"' and not quoted:
            self.double(parts)
        elif match := _SINGLE_NAME.match(self.source, self.at):
            self.at = match.end()
            parts.append(Parameter(match[0], quoted))
        else:
            add(parts, "$", quoted=quoted)

    def ansi(self) -> str:
        """A text between ``$'`` and ``'``."""
        start = end = self.at + 1
        while (char := self.source[end : end + 1]) != "'":
            if not char:
                raise UnreadableError("a closing ' is missing")
            end += 2 if char == "\\" else 1
        self.at = end + 1
        return ansi(self.source[start:end])

    def parenthesis(self, quoted: bool) -> Node:
        """``$((…))`` where it can be one, else ``$(…)``."""
        if self.starts("(("):
            expression = self.arithmetic()
            if expression is not None:
                return Arithmetic(expression, quoted)
        self.at += 1
        return Substitution(self.commands(), quoted)

    def arithmetic(self) -> Token | None:
        """The expression between ``((`` and ``))``, or nothing when these are two parentheses."""
        start, depth, awaited = self.at, self.limits.depth, self.awaited
        self.at += 2
        try:
            expression = self.expression(")")
            if self.starts("))"):
                self.at += 2
                return expression
        except UnreadableError:
            if self.limits.nodes < 0:
                raise
        self.at, self.limits.depth, self.awaited = start, depth, awaited
        return None

    def expression(self, end: str) -> Token:
        """An arithmetic expression up to a closing character, which is not read."""
        self.enter()
        parts: list[Node] = []
        level = 0
        while (char := self.char()) != end or level:
            self.spend()
            if not char or (char in "#{}" and not self.source[self.at - 1].isdigit()):
                raise UnreadableError("an expression has no end")
            level += (char in "([") - (char in ")]")
            if char in "$`\\" or (char == "'" and end == "]"):
                self.special(parts, quoted=True)
            else:
                self.at += 1
                add(parts, char if char != '"' else "", quoted=True)
        self.leave()
        return Token(tuple(parts))

    def commands(self) -> Node:
        """Commands up to a closing parenthesis, which is read too."""
        self.enter()
        awaited, self.awaited = self.awaited, []
        script = self.script()
        if self.awaited:
            raise UnreadableError("a here-document has no body")
        self.awaited = awaited
        self.expect(")")
        self.leave()
        return script

    def backticks(self, quoted: bool) -> Node:
        """Commands between backticks, in which backslashes lose a level first."""
        self.enter()
        self.at += 1
        text: list[str] = []
        while (char := self.char()) != "`":
            if not char:
                raise UnreadableError("a closing backtick is missing")
            follower = self.char(1)
            if char == "\\" and follower and follower in ('$`\\"' if quoted else "$`\\"):
                self.at += 1
                char = follower
            text.append(char)
            self.at += 1
        self.at += 1
        inner = self.child("".join(text))
        script = inner.script()
        if inner.at < len(inner.source):
            raise UnreadableError("a parenthesis too many")
        self.leave()
        return script

    def braces(self, quoted: bool) -> Parameter:
        """``${…}``, of which the beginning has been read."""
        self.enter()
        prefix = ""
        if self.char() in {"!", "#"} and _NAME.match(self.source, self.at + 1) and self.char(1) not in "-?":
            prefix = self.char()
            self.at += 1
        if not (match := _NAME.match(self.source, self.at)):
            raise UnreadableError("an expansion has no name")
        self.at = match.end()
        subscript = None
        if self.char() == "[":
            self.at += 1
            subscript = self.expression("]")
            self.at += 1
        operator, operands = self.operation(quoted)
        if prefix == "!" and operator in {"*", "@"}:
            operator = "names"
        elif prefix == "#":
            if operator:
                raise UnreadableError("an expansion is not understood")
            operator = "length"
        self.leave()
        return Parameter(match[0], quoted, operator, operands, subscript, indirect=prefix == "!")

    def operation(self, quoted: bool) -> tuple[str, tuple[Token, ...]]:
        """The operator of an expansion and what it works with, up to its closing brace."""
        if self.char() == "}":
            self.at += 1
            return "", ()
        if self.char() in {"*", "@"} and self.char(1) == "}":
            self.at += 2
            return self.source[self.at - 2], ()
        if not (match := _OPERATOR.match(self.source, self.at)):
            raise UnreadableError("an expansion is not understood")
        self.at = match.end()
        operator = match[0]
        divider = {":": ":", "/": "/"}.get(operator[0]) if operator not in {":-", ":=", ":?", ":+"} else None
        quotes = not quoted or operator.startswith(_PATTERNS)
        operands = [self.operand(quoted, quotes, divider)]
        while self.char() == divider:
            self.at += 1
            operands.append(self.operand(quoted, quotes, None))
        self.expect("}")
        return operator, tuple(operands)

    def operand(self, quoted: bool, quotes: bool, divider: str | None) -> Token:
        """A word of an expansion, in which blanks and operators are text."""
        parts: list[Node] = []
        while (char := self.char()) != "}" and (divider is None or char != divider):
            self.spend()
            if not char:
                raise UnreadableError("an expansion has no end")
            if match := _OPERAND.match(self.source, self.at):
                self.at = match.end()
                add(parts, match[0], quoted=quoted)
            elif char == "\\" and quoted:
                self.literal(parts, '$`"\\}')
            elif char in '"\\$`' or (char == "'" and quotes):
                self.special(parts, quoted and char != '"')
            elif char in "<>" and self.char(1) == "(" and not quoted:
                self.part(parts)
            else:
                self.at += 1
                add(parts, char, quoted=quoted)
        return Token(tuple(parts))


def add(parts: list[Node], text: str, quoted: bool = False) -> None:
    """Appends text to a word, to its last part where that is of the same kind."""
    if parts and isinstance(last := parts[-1], Text) and last.quoted == quoted:
        parts[-1] = Text(last.text + text, quoted)
    else:
        parts.append(Text(text, quoted))
