"""Sessions that are known by their hooks: they make themselves known, tell what they do, and get messages."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.integration.sessions import Stable
from tests.integration.sessions import stable as stable
from tests.postgres import SharedStore
from tests.support import Site, eventually


@pytest.fixture
def wired(stable: Stable) -> Stable:
    """A person whose rehearsal agent has Remuda's hooks."""
    installed = stable.site.remuda("guard", "install", "rehearsal")
    assert installed.code == 0, installed.stderr
    return stable


def peers(stable: Stable, *options: str, **env: str) -> list[dict[str, Any]]:
    return stable.site.remuda("peer", "list", "--json", *options, **env).json["peers"]  # type: ignore[return-value]


class Agent:
    """A person's own agent: a process that calls its hooks, and nothing else."""

    def __init__(self, site: Site, *arguments: str, **env: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _AGENT, *arguments],
            cwd=site.cwd,
            env={**site.env, **env},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._folder = str(site.cwd)

    def hook(self, event: str, **fields: object) -> dict[str, Any]:
        """Call a hook, and what it answers."""
        payload = {"session_id": "R1", "cwd": self._folder, **fields}
        return self.call(event, json.dumps(payload).encode())

    def call(self, event: str, payload: bytes, runtime: str = "claude") -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([event, payload.hex(), runtime]).encode() + b"\n")
        self._process.stdin.flush()
        code, said = json.loads(self._process.stdout.readline())
        assert code == 0
        answer = json.loads(said)
        assert isinstance(answer, dict)
        return answer

    def end(self) -> None:
        self._process.kill()
        self._process.communicate()


_AGENT = """
import json, subprocess, sys
for line in sys.stdin:
    event, payload, runtime = json.loads(line)
    argv = [sys.executable, "-m", "remuda", "hook", event, "--runtime", runtime, "--dialect", runtime]
    said = subprocess.run(argv, input=bytes.fromhex(payload), stdout=subprocess.PIPE)
    print(json.dumps([said.returncode, said.stdout.decode()]), flush=True)
"""


@pytest.fixture
def agent(stable: Stable) -> Iterator[Agent]:
    made = Agent(stable.site)
    yield made
    made.end()


def test_a_session_is_known_by_its_hooks_and_its_state_with_it(stable: Stable, agent: Agent) -> None:
    assert agent.hook("session-start") == {}
    (peer,) = peers(stable)
    assert (peer["runtime"], peer["state"], peer["source"], peer["runtime_session"]) == (
        *("claude", "online", "hook", "R1"),
    )
    for event, state in (("user-prompt-submit", "busy"), ("stop", "online")):
        agent.hook(event)
        assert [each["state"] for each in peers(stable)] == [state]
    agent.hook("session-stop")
    assert peers(stable) == []
    assert [each["id"] for each in peers(stable, "--all")] == [peer["id"]]


def test_a_message_waits_for_the_next_turn_and_is_handed_over_once(stable: Stable, agent: Agent) -> None:
    agent.hook("session-start")
    (peer,) = peers(stable)
    sent = stable.site.remuda("peer", "send", peer["name"], "the build is red\nlook at it", "--json").json
    assert sent["receipt"]["state"] == "queued"  # type: ignore[index]
    assert sent["receipt"]["channel"] == "hook"  # type: ignore[index]
    said = agent.hook("user-prompt-submit")["hookSpecificOutput"]
    assert said["hookEventName"] == "UserPromptSubmit"
    context = said["additionalContext"]
    assert "─ the build is red\n─ look at it" in context
    assert f"remuda peer reply {sent['message']}" in context
    assert "not the user's word" in context
    assert agent.hook("user-prompt-submit") == {}
    (letter,) = stable.site.remuda("peer", "inbox", peer["name"], "--all", "--json").json["messages"]  # type: ignore[misc]
    assert letter["state"] == "delivered"
    assert letter["channel"] == "hook"


def test_a_message_that_nobody_took_from_the_hook_has_not_arrived(stable: Stable, agent: Agent) -> None:
    agent.hook("session-start")
    (peer,) = peers(stable)
    stable.site.remuda("peer", "send", peer["name"], "hear me")
    nobody, outlet = os.pipe()
    os.close(nobody)
    argv = [sys.executable, "-m", "remuda", "hook", "user-prompt-submit", "--runtime", "claude"]
    payload = json.dumps({"session_id": "R1", "cwd": str(stable.cwd)}).encode()
    subprocess.run(argv, cwd=stable.cwd, env=stable.site.env, input=payload, stdout=outlet, check=True)
    os.close(outlet)
    (letter,) = stable.site.remuda("peer", "inbox", peer["name"], "--json").json["messages"]  # type: ignore[misc]
    assert (letter["text"], letter["state"], letter["deliveries"]) == ("hear me", "leased", 1)


def test_a_message_in_the_middle_of_a_turn_prolongs_it_once(stable: Stable, agent: Agent) -> None:
    agent.hook("user-prompt-submit")
    (peer,) = peers(stable)
    stable.site.remuda("peer", "send", peer["name"], "wait for me")
    assert agent.hook("stop", stop_hook_active=True) == {}
    said = agent.hook("stop")
    assert said["decision"] == "block"
    assert "wait for me" in said["reason"]
    assert [each["state"] for each in peers(stable) if each["id"] == peer["id"]] == ["busy"]
    assert agent.hook("stop") == {}
    assert [each["state"] for each in peers(stable) if each["id"] == peer["id"]] == ["online"]


def test_a_session_that_was_killed_is_gone_and_hears_what_waited_when_it_is_resumed(
    stable: Stable, agent: Agent
) -> None:
    agent.hook("user-prompt-submit")
    (peer,) = peers(stable)
    stable.site.remuda("peer", "send", peer["name"], "one more thing")
    agent.end()
    assert peer["id"] not in {each["id"] for each in peers(stable)}
    again = Agent(stable.site)
    said = again.hook("session-start", source="resume")
    assert "one more thing" in said["hookSpecificOutput"]["additionalContext"]
    assert peer["id"] in {each["id"] for each in peers(stable)}
    again.end()


def test_whoever_waits_for_a_session_that_is_killed_is_told(stable: Stable, agent: Agent) -> None:
    agent.hook("session-start")
    command = [sys.executable, "-m", "remuda", "send", "claude", "hello", "--mode", "peer-only", "--wait"]
    waiting = subprocess.Popen(command, cwd=stable.site.cwd, env=stable.site.env, stderr=subprocess.PIPE)
    (peer,) = [each for each in peers(stable) if each["runtime"] == "claude"]
    eventually(lambda: stable.site.remuda("peer", "inbox", peer["id"], "--json").json["messages"])
    agent.end()
    assert b"went away" in waiting.communicate(timeout=60)[1]
    assert waiting.returncode == 1
    letters = stable.site.remuda("peer", "inbox", peer["id"], "--all", "--json").json["messages"]
    assert [letter["state"] for letter in letters] == ["failed"]  # type: ignore[index,union-attr]


def test_a_prompt_with_a_key_is_one_message_whatever_has_become_of_its_peer(
    stable: Stable, agent: Agent
) -> None:
    agent.hook("session-start")
    send = ("send", "claude", "hello", "--mode", "peer-only", "--key", "k", "--json")
    first = stable.site.remuda(*send).json
    assert "hello" in str(agent.hook("user-prompt-submit"))
    other = Agent(stable.site)
    other.hook("session-start", session_id="R2")
    for _ in range(2):
        again = stable.site.remuda(*send).json
        assert again["message"] == first["message"]
        assert again["receipt"]["state"] == "delivered"  # type: ignore[index]
        other.end()


def test_a_session_in_a_daemon_is_there_as_long_as_its_terminal(stable: Stable) -> None:
    outer, inner = os.openpty()
    waiting = ("setsid", "--ctty", sys.executable, "-c", "input()")
    terminal = subprocess.Popen(waiting, cwd=stable.site.cwd, stdin=inner, stdout=inner)
    daemon = Agent(stable.site, "--managed-daemon")
    eventually(lambda: b"setsid" not in Path(f"/proc/{terminal.pid}/cmdline").read_bytes())
    daemon.hook("session-start")
    assert [each["runtime_session"] for each in peers(stable)] == ["R1"]
    terminal.kill()
    terminal.wait()
    assert peers(stable) == []
    daemon.hook("session-start", session_id="R2")
    daemon.hook("session-start", session_id="R3")
    assert {each["runtime_session"] for each in peers(stable)} == {"R2", "R3"}
    daemon.end()
    os.close(outer)
    os.close(inner)


def test_what_has_no_place_for_a_message_is_a_sign_of_life_only(stable: Stable, agent: Agent) -> None:
    agent.hook("session-start")
    (peer,) = peers(stable)
    stable.site.remuda("peer", "send", peer["name"], "hear me")
    assert agent.hook("user-prompt-submit", heartbeat=True) == {}
    assert agent.hook("stop", session_id="S2", extra={"platform": "subagent"}) == {}
    assert agent.hook("stop", agent_id="A1") == {}
    found = [(each["id"], each["state"]) for each in peers(stable) if each["runtime"] == "claude"]
    assert found == [(peer["id"], "busy")]
    assert "hear me" in str(agent.hook("user-prompt-submit"))


def test_copilot_says_it_in_its_own_words_and_goes_on_after_a_turn(stable: Stable, agent: Agent) -> None:
    payload = {"sessionId": "C1", "cwd": str(stable.site.cwd)}

    def hook(event: str, **fields: str) -> dict[str, Any]:
        return agent.call(event, json.dumps({**payload, **fields}).encode(), "copilot")

    hook("session-start")
    (peer,) = peers(stable)
    assert (peer["runtime"], peer["runtime_session"]) == ("copilot", "C1")
    stable.site.remuda("peer", "send", peer["name"], "hear me")
    assert "hear me" in hook("user-prompt-submit")["additionalContext"]
    for reason, there in (("complete", True), ("error", True), ("user_exit", False)):
        hook("session-stop", reason=reason)
        assert (peer["id"] in {each["id"] for each in peers(stable)}) is there


def test_a_reply_reaches_whoever_asked(stable: Stable, agent: Agent) -> None:
    agent.hook("session-start")
    (peer,) = peers(stable)
    sent = stable.site.remuda("peer", "send", peer["name"], "how far?", "--task", "T1", "--json").json
    answered = stable.site.remuda("peer", "reply", str(sent["message"]), "half way", "--json")
    assert answered.code == 0, answered.stderr
    (letter,) = stable.site.remuda("peer", "inbox", "--json").json["messages"]  # type: ignore[misc]
    assert (letter["text"], letter["reply_to"], letter["task"]) == ("half way", sent["message"], "T1")
    assert letter["sender"] == peer["name"]
    stable.site.remuda("peer", "inbox", "--take")
    assert stable.site.remuda("peer", "inbox", "--json").json["messages"] == []


@pytest.mark.parametrize(
    "payload", [b"", b"{", b"[]", b'{"session_id": 5}', b'{"session_id": ""}', b"\xff", b"null"]
)
def test_what_makes_no_sense_makes_nobody_known_and_stops_nothing(
    stable: Stable, agent: Agent, payload: bytes
) -> None:
    assert agent.call("user-prompt-submit", payload) == {}
    assert peers(stable) == []


def test_a_long_message_is_shown_by_its_beginning(stable: Stable, agent: Agent) -> None:
    agent.hook("session-start")
    (peer,) = peers(stable)
    stable.site.remuda("peer", "send", peer["name"], "-", stdin=b"x" * 20_000)
    stable.site.remuda("peer", "send", peer["name"], "second")
    first = agent.hook("user-prompt-submit")["hookSpecificOutput"]["additionalContext"]
    assert len(first) < 9_000
    assert "12000 characters more" in first
    assert "second" in agent.hook("user-prompt-submit")["hookSpecificOutput"]["additionalContext"]


def test_a_database_that_does_not_answer_stops_nobody(stable: Stable) -> None:
    payload = json.dumps({"session_id": "R1", "cwd": "/"}).encode()
    said = stable.site.remuda(
        *("hook", "stop", "--runtime", "claude"),
        stdin=payload,
        REMUDA_DATABASE_URL="postgresql://nobody@127.0.0.1:1/nothing",
    )
    assert (said.code, said.json) == (0, {})


def test_the_hooks_of_a_session_of_ours_complete_its_row(wired: Stable) -> None:
    wired.start("one", mode="tmux")
    (peer,) = [each for each in peers(wired) if each["name"] == "one"]
    eventually(lambda: peers(wired)[0]["runtime_session"])
    assert len(peers(wired)) == 1
    sent = wired.site.remuda("send", "rehearsal", "hello", "--mode", "peer-only", "--json").json
    assert sent["peer"]["id"] == peer["id"]  # type: ignore[index]
    eventually(lambda: wired.heard() == ["hello"])
    assert len(peers(wired)) == 2


def test_a_single_run_is_no_peer_and_reads_no_message(wired: Stable) -> None:
    ended = wired.site.remuda("run", "--agent", "rehearsal", "hello")
    assert ended.code == 0, ended.stderr
    assert peers(wired, "--all") == []


def test_the_other_session_of_two_is_told_and_the_one_that_sends_is_not(stable: Stable, agent: Agent) -> None:
    agent.hook("session-start")
    (one,) = peers(stable)
    alone = stable.site.remuda("send", "claude", "hello", "--mode", "peer-only", "--json")
    assert alone.code == 0, alone.stderr
    other = Agent(stable.site)
    other.hook("session-start", session_id="R2")
    assert len([each for each in peers(stable) if each["runtime"] == "claude"]) == 2
    agent.end()
    assert one["id"] not in {each["id"] for each in peers(stable)}
    other.end()


def test_on_both_databases(shared_store: SharedStore, site: Site) -> None:
    env = dict(shared_store.environ)
    agent = Agent(site, **env)
    assert agent.hook("session-start") == {}
    (peer,) = site.remuda("peer", "list", "--json", **env).json["peers"]  # type: ignore[misc]
    assert site.remuda("peer", "send", peer["id"], "over there", **env).code == 0
    said = agent.hook("user-prompt-submit")
    assert "over there" in said["hookSpecificOutput"]["additionalContext"]
    agent.end()
