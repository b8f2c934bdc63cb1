"""The shell's syntax tree: tokens made of parts, and commands made of tokens."""

from __future__ import annotations

import msgspec


class Refusal(msgspec.Struct, frozen=True):
    """A text that the grammar does not take, and why."""

    why: str


class Node(msgspec.Struct, frozen=True, gc=False):
    """Anything in the tree."""


class Text(Node, frozen=True, gc=False):
    """Characters as they stand. Quoted ones mean nothing but themselves."""

    text: str
    quoted: bool = False


class Parameter(Node, frozen=True, gc=False):
    """``$name`` or ``${name…}``. ``operator`` is what follows the name (``:-``, ``#``, ``//`` …; ``length``
    for ``${#name}``, ``names`` for ``${!name*}``), ``operands`` the tokens that it works with."""

    name: str
    quoted: bool = False
    operator: str = ""
    operands: tuple[Token, ...] = ()
    subscript: Token | None = None
    indirect: bool = False


class Substitution(Node, frozen=True, gc=False):
    """A command's output in a word: ``$(…)`` and backticks; ``<(…)`` and ``>(…)`` by their direction."""

    script: Node
    quoted: bool = False
    direction: str = ""


class Arithmetic(Node, frozen=True, gc=False):
    """``$((…))``, ``((…))`` and other places where an expression is calculated."""

    expression: Token
    quoted: bool = False


class Token(Node, frozen=True, gc=False):
    """A word as it is written."""

    parts: tuple[Node, ...] = ()

    @property
    def bare(self) -> str | None:
        """The text of a word without any quotes or expansions, as reserved words must be."""
        if len(self.parts) == 1 and isinstance(part := self.parts[0], Text) and not part.quoted:
            return part.text
        return None


class Assignment(Node, frozen=True, gc=False):
    """``name=value``, ``name[subscript]+=value`` or ``name=(value …)``, whose values may have keys."""

    name: str
    value: Token = Token()
    items: tuple[Token, ...] | None = None
    keys: tuple[Token, ...] = ()
    subscript: Token | None = None
    append: bool = False


class Redirect(Node, frozen=True, gc=False):
    """A redirection. A here-document is its operator (``<<``) and its body as a token."""

    operator: str
    target: Token
    descriptor: str = ""


class Simple(Node, frozen=True, gc=False):
    """A simple command. Assignments among its words are arguments of ``export`` and its like."""

    words: tuple[Token | Assignment, ...] = ()
    assignments: tuple[Assignment, ...] = ()
    redirects: tuple[Redirect, ...] = ()
    source: str = ""


class Redirected(Node, frozen=True, gc=False):
    """A compound command with redirections."""

    body: Node
    redirects: tuple[Redirect, ...]


class Sequence(Node, frozen=True, gc=False):
    """Commands one after the other."""

    items: tuple[Node, ...] = ()


class Chain(Node, frozen=True, gc=False):
    """``left && right`` or ``left || right``."""

    left: Node
    operator: str
    right: Node


class Pipeline(Node, frozen=True, gc=False):
    """Commands that each read what the one before prints."""

    stages: tuple[Node, ...]


class Subshell(Node, frozen=True, gc=False):
    """``(…)``, or something in the background: what it changes in the shell is gone afterwards."""

    body: Node


class Branches(Node, frozen=True, gc=False):
    """``if`` and ``case``: conditions that are run, tokens that are expanded, bodies of which one may run
    (and does, when they are ``complete``)."""

    conditions: tuple[Node, ...] = ()
    tokens: tuple[Token, ...] = ()
    bodies: tuple[Node, ...] = ()
    complete: bool = False


class Loop(Node, frozen=True, gc=False):
    """A loop. ``items`` are what ``variable`` stands for in turn; none at all: the positional parameters."""

    body: Node
    condition: Node | None = None
    variable: str = ""
    items: tuple[Token, ...] | None = None


class Function(Node, frozen=True, gc=False):
    """Defines a function."""

    name: str
    body: Node


class Condition(Node, frozen=True, gc=False):
    """``[[ … ]]``: its words. ``numeric``: those that are calculated."""

    tokens: tuple[Token, ...]
    numeric: tuple[Token, ...] = ()
