"""Sessions of the real programs, by the verbs that people use: over connections and in panes."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from tests.agents.conftest import MakeLab
from tests.agents.lab import DONE, REMUDA, Ended, Lab, arrives, shell
from tests.agents.processes import wait_until
from tests.agents.seated import consents, seat

from remuda.core.errors import EXIT_REFUSED
from remuda.rehearsal.scenario import Rule, Scenario, Step, When
from remuda.runtimes import registry, screens

pytestmark = [pytest.mark.timeout(600), pytest.mark.usefixtures("nothing_left")]
SLOW = 60.0
LONG = "python3 -c 'import time; time.sleep(250)'"
CONNECTED = [runtime.name for runtime in registry.all_runtimes() if runtime.connect is not None]
PASTED = {name: screens.load(name, Path("/nonexistent")).terminal.paste_limit for name in registry.names()}
SEEN = [name for name in registry.names() if PASTED[name]]


@pytest.fixture(params=CONNECTED)
def connected(request: pytest.FixtureRequest, make_lab: MakeLab) -> Lab:
    """A clean home for each runtime that converses."""
    return make_lab(registry.get(request.param))


@pytest.fixture(params=SEEN)
def seated(request: pytest.FixtureRequest, make_lab: MakeLab) -> Lab:
    """A home that was used before, for each runtime with a terminal interface that is known."""
    lab = make_lab(registry.get(request.param))
    seat(lab)
    return lab


def session(lab: Lab, *arguments: str, stdin: bytes = b"") -> Ended:
    return lab.call([str(REMUDA), "session", *arguments], stdin, timeout=lab.within(120))


def shown(lab: Lab, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(session(lab, "show", name, "--json").stdout)
    return found


def state(lab: Lab, name: str) -> str:
    return str(shown(lab, name)["session"]["state"])


def reaches(lab: Lab, name: str, wanted: str) -> bool:
    return wait_until(lambda: state(lab, name) == wanted, lab.within(SLOW))


def play(lab: Lab, **rules: tuple[Step, ...]) -> None:
    made = tuple(Rule(steps, When(contains=word)) for word, steps in rules.items())
    lab.server.set_scenario(Scenario("test", (*made, Rule((DONE,)))))


def start(lab: Lab, mode: str, *options: str) -> Ended:
    begun = session(lab, "start", "s", "--agent", lab.runtime.name, "--mode", mode, *options)
    assert begun.code == 0, begun.stderr + session(lab, "screen", "s").stdout.decode()
    return begun


def heard(lab: Lab, text: str, arrival: str = "contained") -> bool:
    sent = lab.runtime.disarm(text)
    return any(arrives(arrival, each, sent) for each in lab.prompts())  # type: ignore[arg-type]


def test_a_connected_session_lives_through_its_verbs(connected: Lab) -> None:
    lab = connected
    play(lab, horse=(Step(text="A grey one."),), wait=(shell(LONG), DONE))
    start(lab, "connection", *lab.bypass)
    receipt = json.loads(session(lab, "send", "s", "Which horse?", "--json").stdout)
    assert (receipt["channel"], receipt["bytes"]) == (lab.runtime.connect.protocol, 12)  # type: ignore[union-attr]
    assert reaches(lab, "s", "ready")
    followed = session(lab, "send", "s", "Which horse again?", "--follow", "--json")
    assert followed.code == 0, followed.stderr
    assert followed.result.text.strip() == "A grey one."
    if lab.runtime.conduct.shell:
        session(lab, "send", "s", "please wait")
        assert reaches(lab, "s", "working")
        assert session(lab, "interrupt", "s").code == 0
        assert state(lab, "s") == "ready"
    assert session(lab, "stop", "s").code == 0
    assert state(lab, "s") == "exited"
    assert wait_until(lambda: not lab.settled(), 60)
    variables = [option for option in lab.bypass if option.startswith("--env")]
    resumed = [session(lab, "resume", "s", *variables)]
    while (
        resumed[-1].code == EXIT_REFUSED and len(resumed) < 20
    ):  # too young a session: Gemini, in its first minute
        time.sleep(5)
        resumed.append(session(lab, "resume", "s", *variables))
    assert resumed[-1].code == 0, resumed[-1].stderr
    assert session(lab, "send", "s", "Which horse was it?", "--follow").code == 0
    assert session(lab, "stop", "s").code == 0


def test_a_pane_is_started_spoken_to_interrupted_and_stopped(seated: Lab) -> None:
    lab = seated
    play(lab, horse=(Step(text="A grey one.", delay=3),), wait=(Step(text="Late.", delay=200),))
    start(lab, "tmux", *consents(lab), *lab.bypass)
    assert state(lab, "s") == "ready"
    receipt = json.loads(session(lab, "send", "s", "Which horse?", "--json").stdout)
    assert (receipt["channel"], receipt["bytes"]) == ("tmux", len(lab.runtime.disarm("Which horse?")))
    assert receipt["proof"].startswith("transcript")
    assert wait_until(lambda: heard(lab, "Which horse?"), lab.within(SLOW))
    assert reaches(lab, "s", "ready")
    assert "A grey one." in session(lab, "screen", "s", "--history").stdout.decode()
    session(lab, "send", "s", "please wait")
    assert reaches(lab, "s", "working")
    assert session(lab, "interrupt", "s").code == 0
    assert reaches(lab, "s", "ready")
    assert session(lab, "stop", "s").code == 0
    assert wait_until(lambda: not lab.settled(), 60)


@pytest.mark.parametrize("name", [name for name in registry.names() if not PASTED[name]])
def test_a_pane_that_nothing_is_known_of_takes_no_text(name: str, make_lab: MakeLab) -> None:
    lab = make_lab(registry.get(name))
    start(lab, "tmux", *consents(lab))
    refused = session(lab, "send", "s", "Which horse?")
    assert refused.code == 2
    assert "nothing that is pasted" in refused.stderr
    assert session(lab, "stop", "s").code == 0


def test_a_pane_takes_what_it_promises_and_nothing_else(seated: Lab) -> None:
    lab = seated
    terminal = screens.load(lab.runtime.name, lab.home).terminal
    start(lab, "tmux", *consents(lab), *lab.bypass)
    size = min(200 * 1024, terminal.paste_limit)
    line = "Line {} with 'quotes' \"double\" $HOME `id` \\ and more\n"
    text = "".join(line.format(number) for number in range(size // 40))[: size - 16].rstrip() + " the end."
    sent = session(lab, "send", "s", "-", "--json", stdin=text.encode())
    assert sent.code == 0, sent.stderr
    assert wait_until(lambda: heard(lab, text), lab.within(SLOW))
    for refused in (text + "x" * terminal.paste_limit, *(f"a{each}b" for each in terminal.altered)):
        assert session(lab, "send", "s", "-", stdin=refused.encode()).code == 2
    assert session(lab, "stop", "s").code == 0
