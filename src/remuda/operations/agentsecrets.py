"""The secrets that an agent's process gets: those that its runtime needs, of one account, and no others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from remuda.core.environment import ENDPOINT, allowed, without
from remuda.dispatch.agents import Agent
from remuda.operations.world import World
from remuda.runtimes.base import Runtime
from remuda.secrets import choice, store

OURS = ("REMUDA_DATABASE_URL",)
"""Secrets of Remuda itself, which no agent gets."""

_SECRETS = ("*TOKEN*", "*KEY*", "*SECRET*", "*PASSWORD*", "*CREDENTIAL*", "*HEADERS*")
"""Names that may hold a secret: at a stand-in endpoint none of them is needed."""
_LIKELY = ("*_KEY", "*_TOKEN", "*_SECRET", "*_PASSWORD", "*_CREDENTIALS", "*_KEY_ID", "*_CUSTOM_HEADERS")
"""Names that do hold one, as a rule: an account's own settings are not among them."""
_SHORTEST = 8
"""Characters of a value that is looked for in a text; shorter ones are words of any text."""


def may_be_secret(names: Iterable[str]) -> list[str]:
    """Those of some variables whose names say that they may hold a secret."""
    known = (*OURS, *_SECRETS)
    return sorted(name for name in names if allowed({name.upper(): ""}, known))


def unquoted(text: str, environ: Mapping[str, str]) -> str:
    """What a program with this environment said, with names in place of the secrets in it."""
    values = {environ[name]: name for name in may_be_secret(environ)}
    for value in sorted(values, key=len, reverse=True):
        if len(value) >= _SHORTEST:
            text = text.replace(value, f"<{values[value]}>")
    return text


def secrets_for(world: World, agent: Agent, runtime: Runtime) -> Mapping[str, str]:
    """The keys of the runtime that the agent is to have, from wherever it draws them; none for a stand-in
    endpoint."""
    if world.environ.get(ENDPOINT):
        return {}
    return _keys(world, store.load(world.folders.secrets_file), agent, runtime)


def with_secrets(world: World, agent: Agent, runtime: Runtime, environ: Mapping[str, str]) -> dict[str, str]:
    """An environment for an agent that nobody watches, with its own keys and no other account's; with no
    secret at all for a stand-in endpoint."""
    if environ.get(ENDPOINT):
        return without(environ, (*OURS, *_SECRETS))
    held = store.load(world.folders.secrets_file)
    if _own_account(held, agent, runtime):
        passed = allowed(environ, world.config.environment.pass_)
        environ = {**without(environ, _LIKELY), **passed}
    return {**without(environ, (*OURS, *runtime.key_names)), **_keys(world, held, agent, runtime)}


def scrubbed(world: World, runtime: Runtime, environ: Mapping[str, str]) -> dict[str, str]:
    """What somebody wants to pass on, less what is not passed on like that: secrets of ours, the runtime's
    keys, which depend on the account, and whatever may be a secret where the endpoint is a stand-in."""
    stand_in = _SECRETS if world.environ.get(ENDPOINT) else ()
    return without(environ, (*OURS, *runtime.key_names, *stand_in))


def with_keys(world: World, agent: Agent, runtime: Runtime, environ: Mapping[str, str]) -> dict[str, str]:
    """A person's own environment, in which only the runtime's keys are those of the agent."""
    if world.environ.get(ENDPOINT):
        return without(environ, OURS)
    held = store.load(world.folders.secrets_file)
    return {**without(environ, (*OURS, *runtime.key_names)), **_keys(world, held, agent, runtime)}


def _keys(world: World, held: store.Secrets, agent: Agent, runtime: Runtime) -> dict[str, str]:
    scopes = {"scope": agent.secrets, "global": store.GLOBAL}
    chosen = choice.choose(
        runtime.keys,
        {name for name, value in world.environ.items() if value},
        held.of(agent.secrets),
        held.of(store.GLOBAL),
        configured=agent.configured,
        own=_own_account(held, agent, runtime),
    )
    return {
        each.name: world.environ[each.name]
        if each.source == "environment"
        else held.value(scopes[each.source], each.name)
        for each in chosen
    }


def _own_account(held: store.Secrets, agent: Agent, runtime: Runtime) -> bool:
    """Whether the agent has an account of its own: its configuration names a scope, or its scope has keys of
    its runtime."""
    named = agent.secrets != agent.name
    return agent.configured and (named or bool(runtime.key_names & held.of(agent.secrets).keys()))
