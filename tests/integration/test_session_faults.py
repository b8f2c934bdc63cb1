"""Sessions whose processes are shot at random: no orphan, no lost row, no wrong state at the next look.

Few rounds by default; ``REMUDA_FAULTS=200`` makes as many of them, and ``REMUDA_FAULT_SEED`` repeats a run.
"""

from __future__ import annotations

import os
import random
import subprocess
import time

import pytest
from tests.integration.sessions import DONE, SLOW, Stable, shell
from tests.integration.sessions import stable as stable
from tests.support import alive, eventually, kill

from remuda.core.identity import lives
from remuda.core.reaper import marked
from remuda.rehearsal.scenario import Step
from remuda.sessions import store

ROUNDS = int(os.environ.get("REMUDA_FAULTS", "16"))
SEED = int(os.environ.get("REMUDA_FAULT_SEED", "20261118"))


class Shooter:
    """Starts sessions, talks to them, and kills whatever chance names at the moment that it names."""

    def __init__(self, stable: Stable, chance: random.Random) -> None:
        self.stable, self.chance = stable, chance
        self.database = stable.site.home / "state" / "remuda.db"

    def round(self, number: int) -> str:
        """One session in a random mode, one random victim at a random time; what was done."""
        mode = self.chance.choice(("connection", "tmux"))
        victim = self.chance.choice(("command", "holder", "agent", "tmux"))
        name = f"s{number}"
        command = self._begin(name, mode)
        time.sleep(self.chance.uniform(0.0, 1.2))
        if victim != "command":
            command.wait(SLOW)
        sending = None
        if self.chance.random() < 0.6 and victim != "command":
            word = self.chance.choice(("quick", "slow", "tool"))
            sending = self.stable.site.start("session", "send", name, word, "--wait", "5")
            time.sleep(self.chance.uniform(0.0, 1.0))
        self._shoot(victim, name, command)
        for process in (command, sending):
            if process is not None:
                process.communicate(timeout=SLOW)
        return f"round {number}: {mode}, {victim}"

    def _begin(self, name: str, mode: str) -> subprocess.Popen[bytes]:
        options = ("--agent", "rehearsal", "--mode", mode, "--permission", "bypass")
        return self.stable.site.start("session", "start", name, *options)

    def _shoot(self, victim: str, name: str, command: subprocess.Popen[bytes]) -> None:
        row = store.find(self.database, name)
        targets: list[int] = []
        if victim == "command":
            targets = [command.pid]
        elif victim == "holder" and row is not None and row.holder:
            targets = [int(row.holder.split("/")[1])]
        elif victim == "agent" and row is not None and row.mark:
            targets = marked(row.mark)[:1]
        elif victim == "tmux":
            targets = self.stable.tmux_servers()[:1]
        for pid in targets:
            if alive(pid):
                kill(pid)

    def check(self, what: str) -> None:
        """What is listed is true, and nobody is left over."""
        listed = self.stable.session("list", "--all", "--json").json["sessions"]
        assert isinstance(listed, list)
        for each in listed:
            row = store.find(self.database, each["id"])
            assert row is not None, what
            if each["state"] == "exited":
                assert row.mark
                eventually(lambda mark=row.mark: not marked(mark))  # type: ignore[misc]
            else:
                assert row.holder is not None, what
                assert lives(row.holder), what


@pytest.mark.timeout(60 + 20 * ROUNDS)
def test_whatever_is_shot_the_next_look_is_true(stable: Stable) -> None:
    stable.play(
        ("slow", (Step(text="slow", delay=2),)),
        ("tool", (shell("sleep 3"), DONE)),
    )
    shooter = Shooter(stable, random.Random(SEED))
    done = []
    for number in range(ROUNDS):
        done.append(shooter.round(number))
        shooter.check(done[-1])
        if number % 4 == 3:
            stable.session("stop", *[row.id for row in store.listed(shooter.database)] or ["none"])
    known = {row.name for row in store.listed(shooter.database, all_=True)}
    missing = {f"s{number}" for number in range(ROUNDS)} - known
    assert all("command" in done[int(name[1:])] for name in missing), "a session that began is not on record"
    stable.session("gc")
    stable.session("stop", *[row.id for row in store.listed(shooter.database)] or ["none"])
    eventually(lambda: not stable.agents())
