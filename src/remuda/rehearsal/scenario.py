"""Scenario files: what the scripted model says to whom, as YAML turned into typed records."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from remuda.rehearsal.exchange import Ask, Usage

Seconds = Annotated[float, Meta(ge=0)]
Times = Annotated[int, Meta(ge=1)]
Status = Annotated[int, Meta(ge=400, le=599)]

_BUILTIN = Path(__file__).parent / "scenarios"


class ScenarioError(Exception):
    """A scenario that cannot be used; the message names the file, the place in it, and what is wrong."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class When(Struct, frozen=True, forbid_unknown_fields=True):
    """Which requests a rule is for; everything given must hold. `model` may be a glob."""

    contains: str | None = None
    regex: str | None = None
    model: str | None = None

    def __post_init__(self) -> None:
        if self.regex is not None:
            try:
                re.compile(self.regex)
            except re.error as problem:
                raise ValueError(f"regex does not compile: {problem}") from problem

    def matches(self, ask: Ask) -> bool:
        """Whether a request is one of these."""
        return (
            (self.contains is None or self.contains in ask.prompt)
            and (self.regex is None or re.search(self.regex, ask.prompt) is not None)
            and (self.model is None or self.model == ask.model or fnmatchcase(ask.model, self.model))
        )


class Call(Struct, frozen=True, forbid_unknown_fields=True):
    """A tool call; the tool `shell` stands for whatever shell tool the request offers."""

    tool: str
    input: dict[str, object] = {}


class Step(Struct, frozen=True, forbid_unknown_fields=True):
    """One answer of the model, or a fault in place of one.

    `status`, `drop` and `hang` make a fault: it happens `times` times (without end when not given) before the
    steps after it are reached.
    """

    text: str | None = None
    thought: str = ""
    tool: str | None = None
    input: dict[str, object] = {}
    tools: tuple[Call, ...] = ()
    usage: Usage = Usage()
    status: Status | None = None
    message: str | None = None
    code: str = ""
    headers: dict[str, str] = {}
    times: Times | None = None
    delay: Seconds = 0
    pace: Seconds = 0
    drop: bool = False
    hang: bool = False

    def __post_init__(self) -> None:
        if self.tool is not None and self.tools:
            raise ValueError("a step has either `tool` or `tools`, not both")
        if self.input and self.tool is None:
            raise ValueError("`input` needs a `tool`")
        answers = self.text is not None or bool(self.calls)
        if answers == (self.status is not None or self.hang):
            raise ValueError("a step has one of: an answer (`text`, `tool`, `tools`), `status`, `hang`")
        if self.status is not None and self.hang:
            raise ValueError("a step has either `status` or `hang`, not both")
        if self.status is None and (self.message is not None or self.code or self.headers):
            raise ValueError("`message`, `code` and `headers` belong to a `status`")
        if self.drop and not answers:
            raise ValueError("`drop` needs an answer to cut short")
        if self.times is not None and not self.is_fault:
            raise ValueError("`times` belongs to a fault: `status`, `drop` or `hang`")

    @property
    def is_fault(self) -> bool:
        """Whether the caller gets no usable answer from this step."""
        return self.status is not None or self.drop or self.hang

    @property
    def calls(self) -> tuple[Call, ...]:
        """The tool calls of this step, however they were written."""
        return (Call(self.tool, self.input),) if self.tool is not None else self.tools


class Rule(Struct, frozen=True, forbid_unknown_fields=True):
    """The steps to go through for the requests that `when` is about."""

    steps: Annotated[tuple[Step, ...], Meta(min_length=1)]
    when: When = When()


class Scenario(Struct, frozen=True, forbid_unknown_fields=True):
    """A script for the model: the first rule that matches a request answers it."""

    name: str
    rules: tuple[Rule, ...]


def builtin_names() -> list[str]:
    """The scenarios that come with Remuda."""
    return sorted(path.stem for path in _BUILTIN.glob("*.yaml"))


def load_scenario(source: str | Path) -> Scenario:
    """Load a scenario from a file, or a built-in one by its name."""
    builtin = isinstance(source, str) and source in builtin_names()
    path = _BUILTIN / f"{source}.yaml" if builtin else Path(source)
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as problem:
        raise ScenarioError(f"{path}: not UTF-8 text") from problem
    except OSError as problem:
        names = ", ".join(builtin_names())
        reason = problem.strerror or "cannot be read"
        raise ScenarioError(f"{path}: {reason}. Give a readable file or one of: {names}") from problem
    return parse_scenario(text, str(path))


def parse_scenario(text: str, origin: str) -> Scenario:
    """Turn YAML text into a scenario; `origin` names it in errors."""
    import yaml

    try:
        document = yaml.safe_load(text)
    except yaml.MarkedYAMLError as problem:
        mark = problem.problem_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}" if mark else "unknown place"
        raise ScenarioError(f"{origin}: {place}: not valid YAML: {problem.problem}") from problem
    except (yaml.YAMLError, ValueError, RecursionError) as problem:
        raise ScenarioError(f"{origin}: not valid YAML") from problem
    try:
        return msgspec.convert(document, Scenario)
    except msgspec.ValidationError as problem:
        raise ScenarioError(f"{origin}: {problem}") from problem
