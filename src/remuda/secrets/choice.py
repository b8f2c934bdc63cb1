"""Whose keys an agent gets: a pure decision about names, made account by account."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Literal

import msgspec

Source = Literal["environment", "scope", "global"]


class Chosen(msgspec.Struct, frozen=True):
    """A variable and where its value comes from."""

    name: str
    source: Source


def choose(
    accounts: Iterable[Sequence[str]],
    environment: Collection[str],
    scope: Collection[str],
    common: Collection[str],
    *,
    configured: bool,
    own: bool,
) -> tuple[Chosen, ...]:
    """For each account the keys of the first place that has any of them, so that two are never mixed.

    The order is the environment, the agent's scope, the global scope. For a ``configured`` agent its scope
    comes first, and one with an account of its ``own`` takes nothing from the environment.
    """
    inherited: tuple[Source, Collection[str]] = ("environment", () if own else environment)
    places: list[tuple[Source, Collection[str]]] = [("scope", scope), ("global", common)]
    places.insert(1 if configured else 0, inherited)
    return tuple(chosen for account in accounts for chosen in _of_account(account, places))


def _of_account(account: Sequence[str], places: Iterable[tuple[Source, Collection[str]]]) -> Iterator[Chosen]:
    for source, held in places:
        if found := [name for name in account if name in held]:
            yield from (Chosen(name, source) for name in found)
            return
