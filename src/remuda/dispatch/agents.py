"""The agents that can be named: those of the configuration, and every runtime that has none there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from remuda.core.dispatchconfig import AgentConfig, LimitsConfig
from remuda.core.errors import ConfigError, NotFoundError, UsageError
from remuda.runtimes import registry
from remuda.runtimes.herd import Herd

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")


class Agent(msgspec.Struct, frozen=True, kw_only=True):
    """A named, configured instance of a runtime. ``secrets`` is the scope that it draws from."""

    name: str
    runtime: str
    tags: tuple[str, ...] = ()
    failover_to: tuple[str, ...] = ()
    sandbox: str | None = None
    secrets: str = ""
    home: Path | None = None
    model: str | None = None
    disabled: bool = False
    limits: LimitsConfig | None = None
    configured: bool = False


class Roster(msgspec.Struct, frozen=True):
    """Agents by name. It is a collection of the names that a request may give: an agent's, or a runtime's."""

    herd: Herd
    configured: Mapping[str, AgentConfig]

    def __contains__(self, name: object) -> bool:
        return name in self.configured or name in self.herd

    def __iter__(self) -> Iterator[str]:
        """All agents: those of the configuration, and the runtimes that have none there."""
        taken = {each.runtime for each in self.configured.values()}
        return iter(sorted({*self.configured, *(name for name in self.herd if name not in taken)}))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def get(self, name: str) -> Agent:
        """The agent of this name; a runtime's name means its only agent."""
        found = self.named(name)
        if len(found) > 1:
            raise UsageError(
                f"{name} has {len(found)} agents: {', '.join(each.name for each in found)}",
                "Name one of them.",
            )
        return found[0]

    def named(self, name: str) -> tuple[Agent, ...]:
        """The agent of this name, or all agents of the runtime of this name. A runtime without a configured
        one is an agent of its own name."""
        if given := self.configured.get(name):
            return (_agent(name, given, self),)
        mine = [each for each, given in sorted(self.configured.items()) if given.runtime == name]
        if mine:
            return tuple(_agent(each, self.configured[each], self) for each in mine)
        if name in self.herd:
            return (Agent(name=name, runtime=name, secrets=name),)
        raise NotFoundError(f"there is no agent named {name!r}", f"The agents are: {', '.join(self)}.")

    def tagged(self, tag: str) -> tuple[Agent, ...]:
        """The agents that carry a tag, whatever its case."""
        found = (self.get(name) for name in self)
        return tuple(each for each in found if tag.lower() in {label.lower() for label in each.tags})


def _agent(name: str, given: AgentConfig, roster: Roster) -> Agent:
    """An agent as it is configured; what cannot be names its key."""
    if fault := _fault(name, given, roster):
        raise ConfigError(f"agents.{name}{fault[0]}", fault[1])
    return Agent(
        name=name,
        runtime=given.runtime,
        tags=given.tags,
        failover_to=given.failover_to,
        sandbox=given.sandbox,
        secrets=given.secrets or name,
        home=_home(given.home) if given.home else None,
        model=given.model,
        disabled=given.disabled,
        limits=given.limits,
        configured=True,
    )


def _home(text: str) -> Path:
    """A home as a path; one of a user that does not exist stays as it is written."""
    try:
        return Path(text).expanduser()
    except RuntimeError:
        return Path(text)


def _fault(name: str, given: AgentConfig, roster: Roster) -> tuple[str, str] | None:
    """What is wrong with an agent, from its key on, and what to do about it."""
    herd = roster.herd
    if not _NAME.fullmatch(name):
        return ": this is no name for an agent", "Use up to 32 small letters, digits, dashes or underscores."
    if given.runtime not in herd:
        return (
            f".runtime: there is no runtime named {given.runtime!r}",
            f"Known runtimes: {', '.join(herd)}.",
        )
    if name != given.runtime and name in registry.names():
        return f": {name} is a runtime, and this agent is one of {given.runtime}", "Give it another name."
    if not all(tag.strip() == tag and tag for tag in given.tags):
        return ".tags: a tag is a word", "Leave out those that are empty, and spaces around them."
    if given.home and not _home(given.home).is_absolute():
        return ".home: this is no absolute path", "Begin it with / or ~/."
    if unknown := [each for each in given.failover_to if each not in roster]:
        return (
            f".failover_to: there is no agent named {unknown[0]!r}",
            f"The agents are: {', '.join(roster)}.",
        )
    return None
