"""DBOS as it comes, as a worker: one queue that is polled every 100 ms. Started by tasks.py; prints, for each
workflow that starts, its id and when."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

import sqlalchemy
from dbos import DBOS, DBOSConfig
from sqlalchemy import event


def engine(file: str) -> sqlalchemy.Engine:
    """The same settings of SQLite as ours."""
    made = sqlalchemy.create_engine(f"sqlite:///{file}")

    def connected(connection: object, _record: object) -> None:
        connection.isolation_level = "IMMEDIATE"  # type: ignore[attr-defined]
        for pragma in ("journal_mode = WAL", "synchronous = NORMAL", "busy_timeout = 20000"):
            connection.execute(f"PRAGMA {pragma}")  # type: ignore[attr-defined]
        connection.create_function("unixepoch", -1, lambda *_: time.time())  # type: ignore[attr-defined]

    event.listen(made, "connect", connected)
    return made


def config(file: str, name: str) -> DBOSConfig:
    """No telemetry, no talk."""
    return {
        "name": "raw",
        "application_version": "1",
        "executor_id": name,
        "system_database_url": f"sqlite:///{file}",
        "system_database_engine": engine(file),
        "log_level": "CRITICAL",
        "console_log_level": "CRITICAL",
        "enable_otlp": False,
    }


@DBOS.workflow(name="started")
async def started(key: str) -> None:
    """Say when it began, and no more."""
    sys.stdout.write(f"{key} {time.time():.6f}\n")
    sys.stdout.flush()


async def main() -> None:
    DBOS(config=config(sys.argv[1], "worker"))
    DBOS.launch()
    await DBOS.register_queue_async("raw", polling_interval_sec=0.1)
    Path(sys.argv[2]).touch()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
