"""What the guard allows is run for real, in a throw-away world, and must not have changed what it may not.

REMUDA_ORACLE_COUNT and REMUDA_ORACLE_SEED run more commands, or others.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

ORACLE = Path(__file__).parents[2] / "tools" / "guard_oracle.py"
COUNT = int(os.environ.get("REMUDA_ORACLE_COUNT", "300"))
SEED = os.environ.get("REMUDA_ORACLE_SEED", "1")


class Wrong(msgspec.Struct):
    capability: str
    command: str
    changed: list[str]


class Outcome(msgspec.Struct):
    commands: int
    allowed: dict[str, int]
    wrong: list[Wrong]


def consult(*arguments: str) -> Outcome:
    found = subprocess.run([sys.executable, ORACLE, *arguments], capture_output=True, text=True)
    if found.returncode:
        pytest.fail(f"the oracle needs namespaces for mounts, processes and network: {found.stderr.strip()}")
    return msgspec.json.decode(found.stdout, type=Outcome)


@pytest.mark.timeout(300 + 2 * COUNT)
def test_what_is_allowed_changes_nothing_that_it_may_not() -> None:
    outcome = consult("--seed", SEED, "--count", str(COUNT))
    assert outcome.wrong == []
    assert outcome.commands == COUNT
    assert outcome.allowed["scout"] > COUNT / 5, "too few for the outcome to mean anything"
    assert outcome.allowed["builder"] > outcome.allowed["scout"]


@pytest.mark.parametrize(
    ("command", "scout", "builder"),
    [
        ("cat a.txt; git status", [], []),
        ("touch new; echo x >> ../README.md", ["w/README.md", "w/one/new"], ["w/README.md"]),
        ("git commit -qam x", ["w/.git/refs/heads/mine/task"], []),
        (
            "git push -q origin HEAD:refs/heads/other",
            ["remote.git/refs/heads/other"],
            ["remote.git/refs/heads/other"],
        ),
        ("touch -d yesterday a.txt; chmod 600 a.txt", ["w/one/a.txt"], []),
        ("ln -sfn /etc link_root", ["w/one/link_root"], []),
        ("(sleep 2; touch late) & touch ~/x", ["home/x"], ["home/x"]),
        ("touch /tmp/remuda-oracle-leak /etc/remuda-oracle-leak /dev/shm/remuda-oracle-leak", [], []),
    ],
)
def test_the_oracle_sees_what_changes_and_holds_the_rest(
    command: str, scout: list[str], builder: list[str]
) -> None:
    """Run whatever the guard says: what is outside the world cannot be changed at all."""
    outcome = consult("--command", command)
    changed = {each.capability: each.changed for each in outcome.wrong}
    assert set(scout) <= set(changed.get("scout", []))
    assert bool(scout) == bool(changed.get("scout"))
    assert set(builder) <= set(changed.get("builder", []))
    assert bool(builder) == bool(changed.get("builder"))
    assert not Path("/tmp/remuda-oracle-leak").exists()
