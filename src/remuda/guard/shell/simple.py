"""Reads simple commands: assignments, words, redirections and here-documents."""

from __future__ import annotations

import re
from abc import abstractmethod

from remuda.guard.shell.lexer import HereDocument, Lexer
from remuda.guard.shell.reader import UnreadableError
from remuda.guard.shell.syntax import Assignment, Function, Node, Redirect, Simple, Text, Token

DECLARATIONS = frozenset({"declare", "typeset", "local", "export", "readonly"})
_REDIRECT = re.compile(r"(?:(\d+|\{[A-Za-z_]\w*\})?(<<<|<<-|<<|<>|<&|>>|>\||>&|<|>))|()(&>>|&>)", re.ASCII)
_TARGET = re.compile(r"([A-Za-z_]\w*)(\[|\+?=)", re.ASCII)
CALLABLE = re.compile(r"[ \t]*\([ \t]*\)")


class SimpleCommands(Lexer):
    """The simple commands of a text."""

    @abstractmethod
    def definition(self) -> Node:
        """The body of a function."""

    def lines(self) -> None:
        """Steps over blanks, comments and newlines, and over the here-documents that begin after them."""
        self.blanks()
        while self.char() == "\n":
            self.at += 1
            self.documents()
            self.space()
            self.blanks()

    def simple(self) -> Node:
        """A simple command, or a function's definition."""
        start = self.at
        words: list[Token | Assignment] = []
        assignments: list[Assignment] = []
        redirects: list[Redirect] = []
        while True:
            self.blanks()
            if self.redirect(redirects):
                continue
            declares = bool(words) and isinstance(words[0], Token) and words[0].bare in DECLARATIONS
            if (not words or declares) and (assignment := self.assignment()):
                (words if words else assignments).append(assignment)
                continue
            token = self.token()
            if not token.parts:
                break
            words.append(token)
            if len(words) == 1 and not assignments and (match := CALLABLE.match(self.source, self.at)):
                return self.named(token, match.end())
        if not (words or assignments or redirects):
            raise UnreadableError(f"{self.char() or 'the end'} stands where a command should")
        source = self.source[start : self.at].strip()
        return Simple(tuple(words), tuple(assignments), tuple(redirects), source)

    def named(self, token: Token, at: int) -> Node:
        """A function's definition, behind its name and parentheses."""
        if token.bare is None:
            raise UnreadableError("a function has no name")
        self.at = at
        self.lines()
        return Function(token.bare, self.definition())

    def assignment(self) -> Assignment | None:
        """An assignment, if there is one here."""
        if not (match := _TARGET.match(self.source, self.at)):
            return None
        start, self.at = self.at, match.end()
        subscript = None
        operator = match[2]
        if operator == "[":
            subscript = self.subscript()
            operator = "+=" if self.starts("+=") else "="
            if subscript is None or not self.starts(operator):
                self.at = start
                return None
            self.at += len(operator)
        append = operator == "+="
        if self.char() == "(" and subscript is None:
            return self.array(match[1], append)
        return Assignment(match[1], self.token(), subscript=subscript, append=append)

    def subscript(self) -> Token | None:
        """What stands in brackets behind a name; nothing when that is a mere pattern."""
        depth = self.limits.depth
        try:
            token = self.expression("]")
        except UnreadableError:
            self.limits.depth = depth
            if self.limits.nodes < 0:
                raise
            return None
        self.at += 1
        return token

    def array(self, name: str, append: bool) -> Assignment:
        """The items of an array, in parentheses, maybe each with its key."""
        self.at += 1
        items: list[Token] = []
        keys: list[Token] = []
        self.lines()
        while self.char() != ")":
            if (key := self.key()) is not None:
                keys.append(key)
            token = self.token()
            if not token.parts and key is None:
                raise UnreadableError("an array has no end")
            items.append(token)
            self.lines()
        self.at += 1
        return Assignment(name, items=tuple(items), keys=tuple(keys), append=append)

    def key(self) -> Token | None:
        """``[key]=`` before an item of an array."""
        if self.char() != "[":
            return None
        start = self.at
        self.at += 1
        key = self.subscript()
        if key is None or not self.starts(("=", "+=")):
            self.at = start
            return None
        self.at += 1 if self.starts("=") else 2
        return key

    def redirect(self, redirects: list[Redirect]) -> bool:
        """Reads a redirection, if there is one here."""
        match = _REDIRECT.match(self.source, self.at)
        if not match or (match[2] in {"<", ">"} and self.source.startswith("(", match.end())):
            return False
        self.at = match.end()
        operator = match[2] or match[4]
        self.blanks()
        token = self.token()
        if not token.parts:
            raise UnreadableError("a redirection has no target")
        if operator in {"<<", "<<-"}:
            token = self.here(token, operator)
            operator = "<<"
        redirects.append(Redirect(operator, token, match[1] or ""))
        return True

    def here(self, token: Token, operator: str) -> Token:
        """A here-document whose body comes later."""
        delimiter = ""
        quoted = False
        for part in token.parts:
            if not isinstance(part, Text):
                raise UnreadableError("the end of a here-document is not plain")
            delimiter += part.text
            quoted = quoted or part.quoted
        document = HereDocument(delimiter, quoted, operator == "<<-", [])
        self.awaited.append(document)
        return Token((document,))

    # Here-documents

    def documents(self) -> None:
        """Reads the bodies of the here-documents that the line before asked for."""
        for document in self.awaited:
            text = self.body(document)
            if document.quoted:
                document.parts.append(Text(text, quoted=True))
            else:
                document.parts.extend(self.child(text).document())
        self.awaited = []

    def finish_documents(self) -> None:
        """At the end of the text a here-document without a body is empty."""
        if self.char() == "":
            self.awaited = []

    def body(self, document: HereDocument) -> str:
        """The lines up to the delimiter, or to the end of the text."""
        self.spend()
        lines: list[str] = []
        while self.at < len(self.source):
            end = self.source.find("\n", self.at)
            line = self.source[self.at :] if end < 0 else self.source[self.at : end]
            self.at = len(self.source) if end < 0 else end + 1
            if document.indented:
                line = line.lstrip("\t")
            if line == document.delimiter:
                return "".join(lines)
            lines.append(line + "\n" if end >= 0 else line)
        return "".join(lines)
