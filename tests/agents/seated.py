"""Homes of people who have used an agent before: what they once answered, so that a terminal can start."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from tests.agents.lab import Lab


def _claude(lab: Lab) -> None:
    """Without this its first start asks the vendor's host, even where another endpoint is set."""
    (lab.home / ".claude.json").write_text(json.dumps({"hasCompletedOnboarding": True}))


SEATS: dict[str, Callable[[Lab], None]] = {"claude": _claude}


def seat(lab: Lab) -> None:
    """Seed the home of a runtime's user, where it needs that."""
    SEATS.get(lab.runtime.name, lambda _lab: None)(lab)


def consents(lab: Lab) -> tuple[str, ...]:
    """All kinds of dialogs that a runtime's screens know, as options."""
    from remuda.runtimes import screens

    rules = screens.load(lab.runtime.name, Path("/nonexistent")).rules
    kinds = {rule.kind for rule in rules if rule.consent and rule.kind != "permission"}
    return tuple(f"--consent={kind}" for kind in sorted(kinds))
