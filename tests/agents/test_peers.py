"""Messages that reach real programs through their hooks, and panes that are opened for one."""

from __future__ import annotations

import json
import subprocess
import time
from typing import Any

import pytest
from tests.agents.conftest import MakeLab
from tests.agents.connected import connected, play, rule
from tests.agents.lab import DONE, REMUDA, Ended, Lab, shell
from tests.agents.processes import wait_until
from tests.agents.seated import seat

from remuda.rehearsal.scenario import Rule, Step
from remuda.runtimes import registry

pytestmark = [pytest.mark.timeout(300), pytest.mark.usefixtures("nothing_left")]
SLOW = 60.0


def remuda(lab: Lab, *arguments: str) -> Ended:
    return lab.call([str(REMUDA), *arguments], timeout=SLOW)


def peers(lab: Lab) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(remuda(lab, "peer", "list", "--json").stdout)["peers"]
    return [peer for peer in found if peer["runtime"] == lab.runtime.name]


HERMES = """\
model: {{default: gpt-5.4, provider: custom, base_url: {url}/v1, api_key: sk-fake, context_length: 200000}}
auxiliary: {{title_generation: {{enabled: false}}}}
security: {{tirith_enabled: false, allow_lazy_installs: false}}
"""
GEMINI = {
    "security": {"auth": {"selectedType": "gemini-api-key"}},
    "privacy": {"usageStatisticsEnabled": False},
    "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
}
TALKING = ("claude", "codex", "copilot", "opencode", "pi", "hermes")
NEXT_TURN = ("opencode", "hermes")
"""Those that take no message at the end of a turn."""


@pytest.fixture(params=TALKING)
def own(request: pytest.FixtureRequest, make_lab: MakeLab) -> Lab:
    """A person with a runtime that has Remuda's hooks."""
    lab = make_lab(registry.get(request.param))
    seat(lab)
    if request.param == "hermes":
        kept = lab.home / "kept"
        kept.mkdir(mode=0o700)
        (kept / "config.yaml").write_text(HERMES.format(url=lab.server.url))
        lab.env["HERMES_HOME"] = str(kept)
    trust = ("--trust",) if request.param == "codex" else ()
    ended = remuda(lab, "guard", "install", request.param, *trust)
    assert ended.code == 0, ended.stderr
    return lab


def told(lab: Lab, words: str) -> bool:
    """Whether the model was sent these words."""
    return any(words in (heard.body or "") for heard in lab.server.heard())


def inbox(lab: Lab, peer: str) -> list[tuple[str, str, str]]:
    letters = json.loads(remuda(lab, "peer", "inbox", peer, "--all", "--json").stdout)["messages"]
    return [(letter["state"], letter["channel"], letter["proof"]) for letter in letters]


def arrived(event: str) -> tuple[str, str, str]:
    return ("delivered", "hook", f"answered to the hook {event}")


async def test_a_session_of_a_persons_own_is_known_and_hears_messages(own: Lab) -> None:
    going, further = own.cwd / "going", own.cwd / "further"
    wait = f"touch {going}; until [ -e {further} ]; do sleep 0.1; done"
    play(own, rule("work on", shell(wait), DONE), Rule((Step(text="I see."),)))
    async with connected(own, permission="bypass") as talk:
        assert (await talk.ask("hello")).error is None
        assert await talk.until(lambda: [peer["state"] for peer in peers(own)] == ["online"])
        (peer,) = peers(own)
        assert (peer["cwd"], peer["source"]) == (str(own.cwd), "hook")
        assert peer["runtime_session"]
        sent = remuda(own, "send", own.runtime.name, "it is heliotrope", "--mode", "peer-only", "--json")
        assert json.loads(sent.stdout)["receipt"]["state"] == "queued"
        assert not told(own, "it is heliotrope")
        assert (await talk.ask("what is the word?")).error is None
        assert told(own, "it is heliotrope")
        assert inbox(own, peer["id"]) == [arrived("UserPromptSubmit")]

        working = talk.send("work on it")
        assert await talk.until(going.exists)
        assert [each["state"] for each in peers(own)] == ["busy"]
        assert remuda(own, "peer", "send", peer["id"], "or it is periwinkle").code == 0
        further.touch()
        assert (await talk.result(working)).error is None
        late = own.runtime.name in NEXT_TURN
        assert told(own, "or it is periwinkle") is not late
        assert await talk.until(lambda: [each["state"] for each in peers(own)] == ["online"])
        if late:
            assert (await talk.ask("and now?")).error is None
        assert told(own, "or it is periwinkle")
        assert inbox(own, peer["id"])[1:] == [arrived("UserPromptSubmit" if late else "Stop")]
        assert [each["id"] for each in peers(own)] == [peer["id"]]
    assert wait_until(lambda: peers(own) == [], SLOW)


class Terminal:
    """A program in a terminal of its own, as a person starts it."""

    def __init__(self, lab: Lab, *command: str, **env: str) -> None:
        self._env, self._cwd = {**lab.env, **env, "TERM": "xterm-256color"}, lab.cwd
        self._tmux = ("tmux", "-f", "/dev/null", "-S", str(lab.home / "terminal"))
        self._call("new-session", "-d", "-x", "120", "-y", "40", *command)

    def _call(self, *command: str) -> str:
        done = subprocess.run([*self._tmux, *command], env=self._env, cwd=self._cwd, capture_output=True)
        return done.stdout.decode()

    def shows(self, text: str) -> bool:
        return text in self._call("capture-pane", "-p")

    def say(self, text: str) -> None:
        """Type, and press Enter: not at its heels, or it is another key."""
        self._call("send-keys", "-l", text)
        time.sleep(0.5)
        self._call("send-keys", "Enter")

    def end(self) -> None:
        self._call("kill-server")


def test_gemini_is_known_and_hears_messages_in_a_terminal(make_lab: MakeLab) -> None:
    lab = make_lab(registry.get("gemini"))
    (lab.home / ".gemini").mkdir()
    (lab.home / ".gemini" / "settings.json").write_text(json.dumps(GEMINI))
    assert remuda(lab, "guard", "install", "gemini").code == 0
    going, further = lab.cwd / "going", lab.cwd / "further"
    wait = f"touch {going}; until [ -e {further} ]; do sleep 0.1; done"
    play(lab, rule("work on", shell(wait), DONE), Rule((Step(text="I see."),)))
    gemini = Terminal(
        *(lab, "gemini", "--skip-trust", "--approval-mode", "yolo"),
        GOOGLE_GEMINI_BASE_URL=lab.server.url,
        GEMINI_API_KEY="fake-key-of-nobody",
        GEMINI_MODEL="gemini-2.5-flash",
    )
    try:
        assert wait_until(lambda: gemini.shows("Type your message"), SLOW)
        assert wait_until(lambda: [peer["state"] for peer in peers(lab)] == ["online"], SLOW)
        (peer,) = peers(lab)
        assert remuda(lab, "peer", "send", peer["id"], "it is heliotrope").code == 0
        gemini.say("what is the word?")
        assert wait_until(lambda: told(lab, "it is heliotrope"), SLOW)
        assert wait_until(lambda: [each["state"] for each in peers(lab)] == ["online"], SLOW)
        gemini.say("work on it")
        assert wait_until(going.exists, SLOW)
        assert [(each["id"], each["state"]) for each in peers(lab)] == [(peer["id"], "busy")]
        assert remuda(lab, "peer", "send", peer["id"], "or it is periwinkle").code == 0
        further.touch()
        assert wait_until(lambda: told(lab, "or it is periwinkle"), SLOW)
        assert wait_until(lambda: [each["state"] for each in peers(lab)] == ["online"], SLOW)
        assert inbox(lab, peer["id"]) == [arrived("UserPromptSubmit"), arrived("Stop")]
        gemini.say("/quit")
        assert wait_until(lambda: peers(lab) == [], SLOW)
    finally:
        gemini.end()


@pytest.fixture
def lab(make_lab: MakeLab) -> Lab:
    made = make_lab(registry.get("claude"))
    seat(made)
    return made


def test_a_pane_of_claude_is_opened_for_a_prompt_and_closes_after_it(lab: Lab) -> None:
    lab.play(Step(text="Done with it."))
    lab.configure("[sessions]\nconsent = ['trust', 'key', 'theme', 'bypass']\n[peer]\npanes = true\n")
    ended = remuda(lab, "send", "claude", "say something", "--mode", "auto-tmux", "--json")
    assert ended.code == 0, ended.stderr
    sent = json.loads(ended.stdout)
    assert (sent["way"], sent["receipt"]["channel"], sent["receipt"]["state"]) == (
        "pane",
        "tmux",
        "delivered",
    )
    assert "say something" in lab.prompts()
    assert wait_until(lambda: peers(lab) == [], SLOW)
    assert lab.prompts().count("say something") == 1
