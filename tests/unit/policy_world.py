"""A policy from TOML, and a file system that is only told of, to judge commands with."""

from __future__ import annotations

import tomllib

import msgspec

from remuda.core.guardconfig import GuardConfig
from remuda.guard.compiling import Ground, compiled
from remuda.guard.judge import Hearing, hear
from remuda.guard.model import Capability, Context
from remuda.guard.own import Policy
from remuda.guard.tools import ToolCall

WORKTREE, HOME = "/w/one", "/home/alice"


class Told:
    """A file system of which only some files are told."""

    def __init__(self, *files: str, links: dict[str, str] | None = None) -> None:
        self._files = files
        self._links = links or {}

    def link(self, path: str) -> str | None:
        return self._links.get(path)

    def entries(self, folder: str) -> list[tuple[str, bool]]:
        inner = folder.rstrip("/") + "/"
        names = {each[len(inner) :].partition("/")[0] for each in self._files if each.startswith(inner)}
        return [(name, inner + name in self._links) for name in sorted(names)]

    def folder(self, path: str) -> bool:
        return not self._files or any(each.startswith(path.rstrip("/") + "/") for each in self._files)


NOTHING_TOLD = Told()


def policy(text: str, *, own: bool = True, file: str = "/config.toml") -> Policy:
    """The policy that the ``[guard]`` of a file makes."""
    config = msgspec.convert(tomllib.loads(text)["guard"], GuardConfig)
    return compiled(config, Ground(file, (WORKTREE,), HOME, str, own))


def rule(**fields: object) -> str:
    """One rule, as TOML."""
    lines = [f"{name} = {msgspec.json.encode(value).decode()}" for name, value in fields.items()]
    return "\n".join(("[[guard.rules]]", *lines, ""))


def heard(
    command: str | ToolCall,
    rules: Policy | str | None,
    capability: Capability = "builder",
    observer: Told = NOTHING_TOLD,
) -> Hearing:
    """What the guard says of a command in the worktree."""
    context = Context(capability=capability, worktree=WORKTREE, home=HOME, agent="claude")
    call = ToolCall("Bash", {"command": command}, WORKTREE) if isinstance(command, str) else command
    return hear(call, context, observer, policy(rules) if isinstance(rules, str) else rules)


def verdict(
    command: str | ToolCall,
    rules: Policy | str | None,
    capability: Capability = "builder",
    observer: Told = NOTHING_TOLD,
) -> tuple[str, str]:
    """The decision, and the row it comes from."""
    found = heard(command, rules, capability, observer).verdict
    return found.decision, found.rule
