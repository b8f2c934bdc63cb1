"""Remuda from a program, blocking and asynchronous."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support import SHELL, Site, eventually, read_pid

from remuda import AsyncRemuda, Remuda
from remuda.api import Event, RemudaError, Result

HANGS = f'{SHELL}setsid sleep 300 &\necho $$ > agent.pid\necho \'{{"type":"assistant","session_id":"s","message":{{"content":[{{"type":"text","text":"hi"}}]}}}}\'\nsleep 300\n'  # noqa: E501

TYPED = """
import asyncio
from remuda import AsyncRemuda, Remuda
from remuda.api import Event, Receipt, Result, RunOptions, Session, SessionOptions

def blocking() -> str:
    remuda = Remuda(cwd=".")
    options: RunOptions = {"agent": "rehearsal", "timeout": 30.0, "permission": "bypass"}
    last: Event | None = None
    for event in remuda.stream("hello", **options):
        last = event
    result: Result = remuda.run("hello", agent="rehearsal", env={"A": "1"})
    names: list[str] = [agent.name for agent in remuda.agents().agents]
    return remuda.which().agent + result.text + str(last) + "".join(names) + remuda.doctor().active_agent

def staying() -> str:
    options: SessionOptions = {"agent": "rehearsal", "capability": "scout"}
    session: Session = Remuda().start_session("one", mode="connection", consent=("trust",), **options)
    receipt: Receipt = session.follow_up("hello")
    questions: list[str] = [session.approve(question.id) for question in session.questions()]
    return session.ask("hello").text + receipt.proof + session.get_state().status + "".join(questions)

async def asynchronous() -> bool:
    remuda = AsyncRemuda()
    async with asyncio.timeout(1):
        await (await remuda.session("one")).reject(None, "no")
    async for event in remuda.stream("hello"):
        if event.result is not None:
            return event.result.error is None
    one, two = await asyncio.gather(remuda.run("a"), remuda.run("b"))
    return (await remuda.use("codex")).agent == one.text == two.text
"""

MISTYPED = """
from remuda import Remuda
Remuda().run("hello", agnet="rehearsal")
Remuda().run("hello", permission="always")
x: int = Remuda().run("hello").text
"""


def blocking(site: Site, **env: str) -> Remuda:
    return Remuda(cwd=site.cwd, environ={**site.env, **env})


def asynchronous(site: Site, **env: str) -> AsyncRemuda:
    return AsyncRemuda(cwd=str(site.cwd), environ={**site.env, **env})


def test_a_run_and_its_result(site: Site) -> None:
    result = blocking(site).run("hello", agent="rehearsal")
    assert isinstance(result, Result)
    assert (result.text, result.error, result.stop_reason) == ("Heard 5 bytes.", None, "end_turn")
    assert result.usage is not None
    assert result.usage.output_tokens == 22


def test_a_failure_is_a_result_and_a_wrong_request_an_error(site: Site) -> None:
    remuda = blocking(site, REHEARSAL_SCENARIO="errors")
    result = remuda.run("rehearse-401", agent="rehearsal")
    assert result.error is not None
    assert result.error.kind == "auth"
    missing = remuda.run("hi", agent="claude")
    assert missing.error is not None
    assert missing.error.kind == "not_installed"
    with pytest.raises(RemudaError, match="empty"):
        remuda.run(" ")
    with pytest.raises(RemudaError, match="no agent"):
        remuda.run("hi", agent="nobody")
    with pytest.raises(RemudaError, match="no capability"):
        list(remuda.stream("hi", agent="rehearsal", capability="king"))


def test_a_stream_of_events_ends_with_the_result(site: Site) -> None:
    remuda = blocking(site, REHEARSAL_SCENARIO="demo")
    events = list(remuda.stream("go", agent="rehearsal", permission="bypass"))
    assert all(isinstance(event, Event) for event in events)
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert [event.result is not None for event in events] == [*[False] * (len(events) - 1), True]
    assert (site.cwd / "hello.txt").exists()


def test_the_answers_of_the_other_verbs(site: Site) -> None:
    remuda = blocking(site)
    assert remuda.which().source == "default"
    assert remuda.use("codex").agent == "codex"
    assert (remuda.which().agent, remuda.which("claude").agent) == ("codex", "claude")
    assert [agent.name for agent in remuda.agents().agents if agent.active] == ["codex"]
    assert "rehearsal" in [runtime.name for runtime in remuda.runtimes().runtimes if runtime.installed]
    diagnosis = remuda.doctor()
    assert (diagnosis.ok, diagnosis.active_agent) == (False, "codex")


def test_leaving_a_blocking_stream_early_ends_the_agent(site: Site) -> None:
    site.program("claude", HANGS)
    events = blocking(site).stream("hi", agent="claude")
    assert next(events).update is not None
    assert site.processes()
    events.close()
    assert site.processes() == []


def test_a_blocking_stream_keeps_its_time_while_its_reader_is_busy(site: Site) -> None:
    site.program("claude", HANGS)
    events = blocking(site).stream("hi", agent="claude", timeout=5)
    next(events)
    eventually(lambda: not site.processes())
    [last] = events
    assert last.result is not None
    assert last.result.error is not None
    assert last.result.error.kind == "timeout"


async def test_leaving_an_asynchronous_stream_early_ends_the_agent(site: Site) -> None:
    site.program("claude", HANGS)
    events = asynchronous(site).stream("hi", agent="claude")
    async for event in events:
        assert event.update is not None
        break
    await events.aclose()
    assert site.processes() == []


@pytest.mark.parametrize("delay", [0, 0.02, 0.1, 0.5])
async def test_a_cancelled_run_leaves_nothing(site: Site, delay: float) -> None:
    site.program("claude", HANGS)
    task = asyncio.create_task(asynchronous(site, REMUDA_PROMPT_DELIVERY="argv").run("hi", agent="claude"))
    await asyncio.sleep(delay)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert site.processes() == []
    scratch = site.home / "runtime" / "scratch"
    assert not scratch.exists() or list(scratch.iterdir()) == []


async def test_a_run_under_a_deadline_of_its_caller_leaves_nothing(site: Site) -> None:
    site.program("claude", HANGS)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asynchronous(site).run("hi", agent="claude"), 0.5)
    assert site.processes() == []


async def test_runs_side_by_side(site: Site) -> None:
    remuda = asynchronous(site)
    prompts = ["a", "bb", "ccc"]
    results = await asyncio.gather(*(remuda.run(prompt, agent="rehearsal") for prompt in prompts))
    assert [result.text for result in results] == [f"Heard {len(prompt)} bytes." for prompt in prompts]
    assert len({result.runtime_session for result in results}) == 3


async def test_the_asynchronous_answers(site: Site) -> None:
    remuda = asynchronous(site)
    assert (await remuda.which()).agent == "copilot"
    assert (await remuda.use("rehearsal")).source == "sticky"
    assert (await remuda.doctor()).ok
    assert len((await remuda.agents()).agents) == len((await remuda.runtimes()).runtimes)


def test_a_program_that_is_killed_leaves_nothing(site: Site) -> None:
    site.program("claude", HANGS)
    code = "from remuda import Remuda; print(Remuda().run('hi', agent='claude'))"
    process = subprocess.Popen([sys.executable, "-c", code], cwd=site.cwd, env=site.env)
    read_pid(site.cwd / "agent.pid")
    process.kill()
    process.wait()
    eventually(lambda: not site.processes())


def _mypy(tmp_path: Path, text: str) -> subprocess.CompletedProcess[str]:
    (tmp_path / "example.py").write_text(text)
    return subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), "example.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
    )


def test_the_interface_is_typed(tmp_path: Path) -> None:
    good = _mypy(tmp_path, TYPED)
    assert good.returncode == 0, good.stdout
    bad = _mypy(tmp_path, MISTYPED)
    assert bad.stdout.count("error:") == 3, bad.stdout
