"""The tools offered to the model, and who decides whether a call may run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from remuda.rehearsal.agent.lines import ToolStatus
from remuda.rehearsal.agent.messages import ToolSpec
from remuda.rehearsal.agent.process import Command, Processes

Mode = Literal["default", "bypass", "read-only"]
Permission = Literal["run", "ask", "refuse"]

BASH_SECONDS = 60.0
LONGEST = 30_000


class Outcome(Struct, frozen=True):
    """How a call ended, and what the model gets to read of it."""

    status: ToolStatus
    output: str


class Bash(Struct, frozen=True):
    """Run a shell command in the working folder."""

    command: str
    description: str = ""

    def run(self, cwd: Path, processes: Processes) -> Outcome:
        """Run the command; everything it started ends with it."""
        ended = processes.run(Command(self.command, cwd, BASH_SECONDS), merge=True)
        output = _cut(ended.stdout)
        if ended.returncode is None:
            return Outcome("failed", f"Stopped after {BASH_SECONDS:g} seconds\n{output}")
        if ended.returncode:
            return Outcome("failed", f"Exit code {ended.returncode}\n{output}")
        return Outcome("completed", output)


class Read(Struct, frozen=True):
    """Read a text file."""

    file_path: str

    def run(self, cwd: Path, _processes: Processes) -> Outcome:
        """Read the beginning of the file."""
        with (cwd / self.file_path).open("rb") as stream:
            data = stream.read(4 * LONGEST + 1)
        return Outcome("completed", _cut(data.decode("utf-8", "replace")))


class Write(Struct, frozen=True):
    """Write a text file, replacing what was there."""

    file_path: str
    content: str

    def run(self, cwd: Path, _processes: Processes) -> Outcome:
        """Write the file, and the folders it lies in."""
        path = cwd / self.file_path
        path.parent.mkdir(parents=True, exist_ok=True)
        data = self.content.encode()
        path.write_bytes(data)
        return Outcome("completed", f"Wrote {len(data)} bytes to {self.file_path}")


Tool = Bash | Read | Write
TOOLS: dict[str, type[Tool]] = {"Bash": Bash, "Read": Read, "Write": Write}
HARMLESS = frozenset({"Read"})


def offered(mode: Mode) -> tuple[str, ...]:
    """The tools the model is told about."""
    return tuple(name for name in TOOLS if mode != "read-only" or name in HARMLESS)


def spec(name: str) -> ToolSpec:
    """A tool as the model sees it; the schema follows from the tool's own fields."""
    tool = TOOLS[name]
    _, components = msgspec.json.schema_components([tool])
    return ToolSpec(name, tool.__doc__ or name, components[name])


def permission(mode: Mode, name: str, hook: Literal["none", "allow", "ask", "block"]) -> Permission:
    """Whether an offered tool may run, given the mode and what the hooks said."""
    if hook == "block":
        return "refuse"
    if hook == "ask":
        return "ask"
    return "run" if hook == "allow" or mode == "bypass" or name in HARMLESS else "ask"


def parse(name: str, arguments: dict[str, object]) -> Tool:
    """Read a call's input; raises `msgspec.ValidationError` when it does not fit the tool."""
    return msgspec.convert(arguments, TOOLS[name])


def run(tool: Tool, cwd: Path, processes: Processes) -> Outcome:
    """Run a call; what the system refuses becomes a failed outcome."""
    act: Callable[[Path, Processes], Outcome] = tool.run
    try:
        return act(cwd, processes)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else None
        return Outcome("failed", reason or "The input cannot be used: it holds a NUL byte or a bad character")


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}\n[cut after {LONGEST} characters]"
