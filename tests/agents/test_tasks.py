"""Tasks with the real programs: a worker is shot in the middle of a tool call, and another one goes on in the
agent's own session."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator

import pytest
from tests.agents.conftest import MakeLab
from tests.agents.lab import DONE, REMUDA, Json, Lab, shell
from tests.agents.processes import wait_until

from remuda.runtimes import registry
from remuda.runtimes.transcripts import Mark, Places, Wanted

SECONDS = "7654"
SLEEP = shell(f"echo once >> marks; sleep {SECONDS}")
PROMPT = "Leave a mark, then rest."
GONE_ON = "finish the task that you were given"


@pytest.fixture(params=["claude", "codex", "copilot", "pi"])
def lab(request: pytest.FixtureRequest, make_lab: MakeLab) -> Iterator[Lab]:
    """A lab whose workers end with it."""
    made = make_lab(registry.get(request.param))
    yield made
    told(made, "worker", "--stop")


def told(lab: Lab, *arguments: str) -> Json:
    ended = lab.call([str(REMUDA), *arguments, "--json"])
    return json.loads(ended.stdout or b"{}")  # type: ignore[no-any-return]


def sleepers(lab: Lab) -> int:
    return sum(f"sleep\0{SECONDS}\0".encode() in process.argv for process in lab.settled())


def written_down(lab: Lab) -> bool:
    """Whether the program itself has put its prompt on record: it goes on from nothing else."""
    transcripts = lab.runtime.transcripts
    assert transcripts is not None
    places = Places(environ=lab.env, kept=lab.home / "remuda" / "data" / "sessions", folders=(lab.cwd,))
    source = transcripts.find(places, Wanted(cwd=lab.cwd))
    return source is not None and any(PROMPT in text for text in transcripts.prompts(source, Mark()).texts)


def test_a_task_goes_on_in_the_agents_own_session_when_its_worker_is_shot(lab: Lab) -> None:
    assert lab.call([str(REMUDA), "trust", "add", str(lab.cwd)]).code == 0
    lab.play(SLEEP, DONE)
    submit = [str(REMUDA), "task", "submit", "--agent", lab.runtime.name, *lab.bypass]
    ended = lab.call([*submit, "--json", PROMPT])
    assert ended.code == 0, ended.stderr
    task = json.loads(ended.stdout)["id"]
    assert wait_until(lambda: sleepers(lab) > 0, lab.within(60))
    assert wait_until(lambda: written_down(lab), 60)
    [worker] = told(lab, "worker", "--status")["workers"]
    os.kill(worker["pid"], signal.SIGKILL)
    assert wait_until(lambda: sleepers(lab) == 0, 60)
    lab.play(DONE)
    waited = lab.call([str(REMUDA), "task", "wait", task], timeout=lab.within(90))
    seen = told(lab, "task", "get", task)
    assert waited.code == 0, f"{waited.stderr}\n{seen['attempts']}"
    assert seen["state"] == "succeeded"
    assert seen["result"]["text"] == "All done."
    assert len(seen["attempts"]) == 2
    assert (lab.cwd / "marks").read_text() == "once\n"
    assert any(GONE_ON in prompt for prompt in lab.prompts())
    last = [heard for heard in lab.server.heard() if heard.api][-1]
    assert any(PROMPT in text for text in last.user_texts)
