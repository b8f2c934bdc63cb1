"""The gate with everything that it really looks at: each objection alone, and which one of two is told."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from pathlib import Path

import msgspec
import pytest

from remuda.core.errors import RefusedError
from remuda.dispatch.gate import CHECKS, Check
from remuda.operations.gating import pass_gate
from remuda.operations.requests import RunRequest
from remuda.operations.world import World, open_world

TOLD: dict[Check, str] = {
    "danger": "requires --unsafe-yes",
    "sandbox": "nowhere",
    "secrets": "secrets",
    "capability": "capability builder",
    "limits": 'expect "<n>/<dur>"',
    "trust": "not trusted yet",
}
PAIRS = [pair for pair in combinations(CHECKS, 2) if pair != ("danger", "sandbox")]
"""A run has one sandbox, so these two cannot both object."""


def world(folder: Path, failing: Iterable[Check]) -> World:
    """A user whose configuration is as wrong as asked for."""
    config = ['[agents.a]\nruntime = "amplifier"']
    if "limits" in failing:
        config.append('limits = {rate = "often"}')
    (folder / "config").mkdir(parents=True)
    (folder / "config" / "config.toml").write_text("\n".join(config))
    here = open_world({"REMUDA_HOME": str(folder), "PATH": "/bin", "HOME": str(folder)}, folder)
    if "secrets" in failing:
        here.folders.secrets_file.parent.mkdir(parents=True, exist_ok=True)
        here.folders.secrets_file.write_bytes(b"this is = not [ TOML or JSON")
        here.folders.secrets_file.chmod(0o600)
    return here


def request(failing: Iterable[Check]) -> RunRequest:
    asked = RunRequest(prompt="hi")
    changes: dict[Check, dict[str, object]] = {
        "danger": {"sandbox": "danger-full-access"},
        "sandbox": {"sandbox": "nowhere"},
        "capability": {"capability": "builder"},
        "trust": {"unattended": True, "permission": "bypass"},
    }
    for check in failing:
        asked = msgspec.structs.replace(asked, **changes.get(check, {}))
    return asked


def told(folder: Path, *failing: Check) -> str:
    here = world(folder, failing)
    with pytest.raises(RefusedError) as caught:
        pass_gate(here, request(failing), here.roster.get("a"))
    assert caught.value.exit_code == 5
    return caught.value.message


def test_who_objects_is_told_where_another_was_asked_for(tmp_path: Path) -> None:
    here = world(tmp_path, ("danger",))
    asked = msgspec.structs.replace(request(("danger",)), agent="first")
    with pytest.raises(RefusedError, match=r"^a: --sandbox"):
        pass_gate(here, asked, here.roster.get("a"))
    assert told(tmp_path / "other", "danger").startswith("--sandbox")


def test_what_is_in_order_passes(tmp_path: Path) -> None:
    here = world(tmp_path, ())
    pass_gate(here, request(()), here.roster.get("a"))


@pytest.mark.parametrize("check", CHECKS)
def test_each_alone(tmp_path: Path, check: Check) -> None:
    assert TOLD[check] in told(tmp_path, check)


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_of_two_the_first_is_told(tmp_path: Path, first: Check, second: Check) -> None:
    assert TOLD[first] in told(tmp_path, first, second)


def test_all_at_once(tmp_path: Path) -> None:
    assert TOLD["danger"] in told(tmp_path, *(check for check in CHECKS if check != "sandbox"))
