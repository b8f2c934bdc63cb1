"""The durable engine behind tasks: a thin port over DBOS, which remembers how far a task has come.

Which worker gets a task is for our own queue to say; the engine makes the two steps of one task happen, also
when the worker dies between them. It keeps ids and outcomes, never a prompt or a text. DBOS is imported
nowhere else.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from remuda.core.clock import now, rfc3339
from remuda.core.files import PRIVATE, locked
from remuda.core.sql import StoreGoneError

if TYPE_CHECKING:
    from dbos import DBOSConfig
    from sqlalchemy import Engine as SqlEngine

VERSION = "1"
"""Changes with the steps: a worker carries on only what it would have begun in the same way."""

FILE = "engine.db"
"""The engine's own file beside ours: two writers that do not wait for each other."""

_NAME = "remuda"
_QUICK = 0.2
_DAY = 86400.0
_PAGE = 500
_SLOW = 3600.0
_OVER = frozenset({"SUCCESS", "ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED"})


class Steps(Protocol):
    """What is done for a task. A step that was finished is not done again; one that was cut off by the end of
    the worker is, by another one, and finds out for itself how far it had come."""

    async def carry_out(self, task: str) -> str:
        """Call the agent; how that ended. Cancelling it leaves the task to another worker."""

    async def settle(self, task: str, outcome: str) -> None:
        """Give the task its final state."""

    def leave(self, task: str) -> None:
        """Nothing more is done for the task in this process."""


class Engine:
    """The engine in one worker. There is one in a process: DBOS keeps state of its own."""

    def __init__(self, url: str, worker: str, steps: Steps) -> None:
        self._url = url
        self._worker = worker
        self._steps = steps
        self._file = _file(url)
        self._expected: set[str] = set()
        self._queue = asyncio.Lock()

    async def launch(self) -> None:
        """Make the engine ready, inside the event loop that the steps are to run in."""
        from dbos import DBOS
        from sqlalchemy.exc import SQLAlchemyError

        DBOS(config=self._config())

        @DBOS.step(name="carry_out")
        async def carry_out(task: str) -> str:
            return await self._steps.carry_out(task)

        @DBOS.step(name="settle")
        async def settle(task: str, outcome: str) -> None:
            await self._steps.settle(task, outcome)

        @DBOS.workflow(name="task")
        async def workflow(task: str) -> None:
            try:
                await self._arrived(task)
                await settle(task, await carry_out(task))
            finally:
                self._steps.leave(task)

        self._workflow = workflow
        DBOS.listen_queues([self._worker])
        _calm()
        with self._alone():
            try:
                DBOS.launch()
            except SQLAlchemyError as error:
                hint = "Try again."
                if self._file is not None:
                    hint += f" If that does not help, move {self._file} away: tasks are kept in another file."
                raise StoreGoneError(
                    f"the engine of tasks cannot use its database: {type(error).__name__}", hint
                ) from None

    def _alone(self) -> AbstractContextManager[object]:
        """DBOS makes its tables in a file without minding another one that does so at the same time."""
        return locked(self._file.with_suffix(".lock")) if self._file else nullcontext()

    def _config(self) -> DBOSConfig:
        config: DBOSConfig = {
            "name": _NAME,
            "application_version": VERSION,
            "executor_id": self._worker,
            "log_level": "CRITICAL",
            "console_log_level": "CRITICAL",
            "enable_otlp": False,
            "use_listen_notify": False,
            "notification_listener_polling_interval_sec": _SLOW,
            "scheduler_polling_interval_sec": _SLOW,
            "sys_db_pool_size": 5,
        }
        if self._file is not None:
            config["system_database_url"] = f"sqlite:///{self._file}"
            config["system_database_engine"] = _sqlite(self._file)
        else:
            config["system_database_url"] = f"postgresql+psycopg://{self._url.partition('://')[2]}"
        return config

    async def begin(self, task: str, *, again: bool) -> None:
        """Begin the steps of a task in this process or, where another worker or an earlier claim has begun
        them, go on with them."""
        from dbos import DBOS, SetWorkflowID

        if again and await self._goes_on(task):
            return
        with SetWorkflowID(task):
            await DBOS.start_workflow_async(self._workflow, task)

    async def _goes_on(self, task: str) -> bool:
        from dbos import DBOS

        status = await DBOS.get_workflow_status_async(task)
        if status is None:
            return False
        if status.status in _OVER:
            await DBOS.delete_workflow_async(task)
            return False
        async with self._queue:
            if not self._expected:
                await DBOS.register_queue_async(self._worker, polling_interval_sec=_QUICK)
            self._expected.add(task)
            await DBOS.resume_workflow_async(task, queue_name=self._worker)
        return True

    async def _arrived(self, task: str) -> None:
        """A task that was taken over has come through our queue, which is only there, and only looked at,
        while one is awaited."""
        from dbos import DBOS

        if task in self._expected:
            async with self._queue:
                self._expected.discard(task)
                if not self._expected:
                    await DBOS.delete_queue_async(self._worker)

    async def older(self, days: float) -> list[str]:
        """Tasks that were begun so many days ago and of which something is still kept, the oldest."""
        from dbos import DBOS

        end = rfc3339(now() - days * _DAY)
        found = await DBOS.list_workflows_async(
            end_time=end, limit=_PAGE, load_input=False, load_output=False
        )
        return [each.workflow_id for each in found]

    async def forget(self, tasks: Sequence[str]) -> None:
        """Delete what is kept of tasks that are gone."""
        from dbos import DBOS

        await DBOS.delete_workflows_async(list(tasks))

    async def bury(self, worker: str) -> None:
        """Delete the queue of a worker that died."""
        from dbos import DBOS

        await DBOS.delete_queue_async(worker)

    def close(self) -> None:
        """Let go of everything, without waiting for steps that are under way: they stay as they are."""
        from dbos import DBOS

        DBOS.destroy(destroy_registry=True)


def _file(url: str) -> Path | None:
    """The engine's file, where ours is one."""
    prefix = "sqlite:///"
    return Path(url.removeprefix(prefix)).with_name(FILE) if url.startswith(prefix) else None


def _sqlite(file: Path) -> SqlEngine:
    """A file as DBOS needs it: writers wait for each other, and the clock has fractions of a second also with
    a SQLite that does not know them."""
    import sqlalchemy
    from sqlalchemy import event

    file.touch(mode=PRIVATE)
    engine = sqlalchemy.create_engine(f"sqlite:///{file}")

    def connected(connection: Any, _record: object) -> None:
        connection.isolation_level = "IMMEDIATE"
        for pragma in (
            "journal_mode = WAL",
            "synchronous = NORMAL",
            "busy_timeout = 20000",
            "foreign_keys = ON",
        ):
            connection.execute(f"PRAGMA {pragma}")
        connection.create_function("unixepoch", -1, lambda *_: time.time())

    event.listen(engine, "connect", connected)
    return engine


def _calm() -> None:
    """DBOS looks at a queue of its own every second, which nothing of ours ever enters. There is no public
    way to say so; a DBOS that is built otherwise looks as often as it likes."""
    with suppress(ImportError, AttributeError):
        from dbos._dbos import _get_or_create_dbos_registry

        _get_or_create_dbos_registry().get_internal_queue()._polling_interval_sec = _SLOW
