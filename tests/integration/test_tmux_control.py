"""The connection on which tmux tells by itself what its panes do, on a real tmux."""

from __future__ import annotations

import asyncio
import os
import signal
import time

import pytest
from tests.integration.tmuxes import ENV, ROOT, server_pid

from remuda.sessions.tmux import errors
from remuda.sessions.tmux.control import TAIL, attached
from remuda.sessions.tmux.panes import Ending
from remuda.sessions.tmux.server import Tmux


async def test_output_is_pushed_and_leaving_keeps_the_session(tmux: Tmux) -> None:
    pane = tmux.new("a", ["cat"], ENV, ROOT)
    async with asyncio.timeout(60), attached(tmux.client, "a") as control:
        assert await control.command("display-message", "-p", "a\n#{session_name}") == ("a", "a")
        seen = control.written(pane.id)
        waiting = asyncio.create_task(control.more(pane.id, seen))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        await asyncio.to_thread(tmux.type, pane, "é\n")
        assert await waiting > seen
        assert await control.quiet(pane.id, 0.3, 20)
        async for heard in control.output(pane.id):
            assert heard.data.decode() == "é\r\né\r\n"
            break
        with pytest.raises(errors.TmuxError):
            await control.command("no-such-command")
        replies = await asyncio.gather(*(control.command("display-message", "-p", str(n)) for n in range(50)))
        assert replies == [(str(n),) for n in range(50)]
    assert tmux.alive(pane)


async def test_what_never_gets_quiet_is_told(tmux: Tmux) -> None:
    pane = tmux.new("a", ["sh", "-c", "while :; do echo x; sleep 0.05; done"], ENV, ROOT)
    async with asyncio.timeout(60), attached(tmux.client, "a") as control:
        assert not await control.quiet(pane.id, 5, 1)


async def test_a_flood_takes_no_memory_and_its_end_is_told(tmux: Tmux) -> None:
    pane = tmux.new("a", ["sh", "-c", "yes 0123456789 | head -c 3000000; exit 7"], ENV, ROOT)
    async with asyncio.timeout(90), attached(tmux.client, "a") as control:
        seen = 0
        while not control.ended(pane.id):
            seen = await control.more(pane.id, seen)
        kept = [heard async for heard in control.output(pane.id)]
        assert sum(len(heard.data) for heard in kept) <= TAIL
        assert await control.command("display-message", "-p", "still here") == ("still here",)
    assert tmux.exit_status(pane) == Ending(7)


async def test_a_server_that_is_killed_ends_every_wait_at_once(tmux: Tmux) -> None:
    pane = tmux.new("a", ["cat"], ENV, ROOT)
    pid = server_pid(tmux)
    async with asyncio.timeout(60), attached(tmux.client, "a") as control:
        os.kill(pid, signal.SIGSTOP)
        waits = [
            asyncio.create_task(control.command("list-sessions")),
            asyncio.create_task(control.more(pane.id, 10**9)),
            asyncio.create_task(control.quiet(pane.id, 100, 200)),
        ]
        await asyncio.sleep(0.1)
        began = time.monotonic()
        os.kill(pid, signal.SIGKILL)
        for result in await asyncio.gather(*waits, return_exceptions=True):
            assert isinstance(result, errors.ServerGoneError)
        assert time.monotonic() - began < 30
        with pytest.raises(errors.ServerGoneError):
            await control.command("list-sessions")
    with pytest.raises(errors.ServerGoneError):
        async with attached(tmux.client, "a"):
            pass


async def test_a_session_that_is_stopped_ends_its_connection_and_no_other(tmux: Tmux) -> None:
    first, second = (tmux.new(name, ["cat"], ENV, ROOT) for name in ("b1", "b10"))
    async with (
        asyncio.timeout(60),
        attached(tmux.client, "b1") as control,
        attached(tmux.client, "b10") as other,
    ):
        waiting = asyncio.create_task(control.more(first.id, 10**9))
        await asyncio.to_thread(tmux.kill, "b1")
        with pytest.raises(errors.NoSuchSessionError):
            await waiting
        assert await other.command("display-message", "-p", "#{session_name}") == ("b10",)
    with pytest.raises(errors.NoSuchSessionError):
        async with attached(tmux.client, "b"):
            pass
    assert tmux.alive(second)
