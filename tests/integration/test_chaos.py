"""Tasks while workers, agents, the resident process and the database are killed at random.

``REMUDA_CHAOS=500`` makes it 500 tasks on four workers, with two restarts of the database;
``REMUDA_CHAOS_SEED`` has it killed in another order.
"""

from __future__ import annotations

import os

import pytest
from tests.chaos import Chaos
from tests.postgres import SharedStore
from tests.support import Site

TASKS = int(os.environ.get("REMUDA_CHAOS", "40"))
SEED = int(os.environ.get("REMUDA_CHAOS_SEED", "6"))
LONG = TASKS > 100


@pytest.mark.timeout(3600 if LONG else 420)
def test_every_task_ends_once_whatever_is_killed(site: Site, shared_store: SharedStore) -> None:
    chaos = Chaos(site, shared_store, SEED, workers=4 if LONG else 3)
    try:
        ids = chaos.run(TASKS, pause=1.5, restarts=2 if LONG else 1, limit=3000 if LONG else 360)
        chaos.finish()
    finally:
        chaos.end()
    states = chaos.check(ids)
    print(f"\n{TASKS} tasks: {dict(states)}; killed: {dict(chaos.kills)}")
    assert states["succeeded"] > TASKS * 0.4
    assert chaos.accepted == TASKS // 2
