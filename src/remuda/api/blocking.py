"""An asynchronous stream for programs that are not asynchronous."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import AsyncIterator, Generator

from remuda.core.events import Event


def iterate(events: AsyncIterator[Event]) -> Generator[Event]:
    """An asynchronous stream as a blocking one. Its loop runs in a thread, so that deadlines hold while the
    consumer is busy."""
    passed: queue.Queue[Event | BaseException | None] = queue.Queue()
    loop = asyncio.new_event_loop()

    async def pump() -> None:
        try:
            async for event in events:
                passed.put(event)
            passed.put(None)
        except BaseException as error:  # handed to the consumer, whatever it is
            passed.put(error)

    task = loop.create_task(pump())
    thread = threading.Thread(target=loop.run_until_complete, args=(task,), daemon=True)
    thread.start()
    try:
        while (item := passed.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join()
        loop.close()
