"""The real programs behind walls: they do their work, and whatever their tools try, the walls hold."""

from __future__ import annotations

import contextlib
import json
import shlex
import shutil
import socket
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.agents.conftest import MakeLab
from tests.agents.lab import DONE, REMUDA, Ended, Lab, shell
from tests.agents.processes import wait_until
from tests.agents.seated import consents

from remuda.rehearsal.scenario import Rule, Scenario, Step, When
from remuda.runtimes import registry

pytestmark = pytest.mark.timeout(300)
APPROVING = [runtime.name for runtime in registry.all_runtimes() if runtime.guarding.by == "approval"]
RESUMING = ["claude", "codex", "copilot", "pi"]
EVERYONE = [runtime.name for runtime in registry.all_runtimes()]
PROBE = "probe.sh"
ATTEMPTS = ("inside", "sibling", "home", "secret", "settings", "socket", "port")
DIAL = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"
SECRET = "canary-of-a-private-key"
BEFORE = {
    "hasCompletedOnboarding": True,
    "fullscreenUpsellSeenCount": 3,
    "customApiKeyResponses": {"approved": ["remuda-endpoint-key"], "rejected": []},
}
"""What Claude Code remembers of somebody who has used it before, with the same key, in other folders."""

BY_TEST = ("--auto-test", "--test-cmd", f"sh {PROBE}")
"""How a program without a shell tool runs a command: after an edit, as the project's tests."""


@pytest.fixture
def folder(agents_bin: Path) -> Iterator[Path]:
    """A private folder for one test, which is not below one for temporary files: those are an agent's own
    inside a sandbox, and a file that is written there says nothing about the walls."""
    name = Path(tempfile.mkdtemp(prefix="lab-", dir=agents_bin.parent.parent))
    yield name
    shutil.rmtree(name, ignore_errors=True)


class Listener:
    """A port on loopback that nobody is supposed to reach; counts who does."""

    def __init__(self) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._server.getsockname()[1])
        self.visits = 0
        threading.Thread(target=self._count, daemon=True).start()

    def _count(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                self._server.accept()[0].close()
                self.visits += 1

    def close(self) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()


@pytest.fixture
def listener() -> Iterator[Listener]:
    made = Listener()
    yield made
    made.close()


@pytest.fixture(params=EVERYONE)
def walled(request: pytest.FixtureRequest, make_lab: MakeLab) -> Lab:
    """A clean home for each runtime, with a private key in it."""
    return furnished(make_lab(registry.get(request.param)))


def sockets(lab: Lab) -> list[Path]:
    """Where the programs' own servers listen, who work for anybody and without walls."""
    found = [path for place in lab.runtime.cell.private if (path := place.at(lab.env))]
    return [path / "any.sock" for path in found]


@contextlib.contextmanager
def answering(places: list[Path]) -> Iterator[None]:
    """Sockets that can be reached from outside."""
    with contextlib.ExitStack() as held:
        for place in places:
            place.parent.mkdir(parents=True, exist_ok=True)
            server = held.enter_context(socket.socket(socket.AF_UNIX))
            server.bind(str(place))
            held.callback(place.unlink)
            server.listen()
        yield


def furnished(lab: Lab) -> Lab:
    private = lab.home / ".ssh" / "id_canary"
    private.parent.mkdir()
    private.write_text(SECRET)
    return lab


def planted(lab: Lab) -> list[Path]:
    """A file for each place that names programs to run: whoever can write it runs what he likes later."""
    places = [(place, place.at(lab.env)) for place in lab.runtime.cell.reads if "*" not in place.below]
    return [path if place.kind == "file" else path / "planted" for place, path in places if path]


def vanishing(lab: Lab) -> list[Path]:
    """A file for each place that is the program's own inside: what is written there is gone afterwards."""
    return [path / "planted" for place in lab.runtime.cell.private if (path := place.at(lab.env))]


def probe(lab: Lab, port: int) -> str:
    """A script that tries what walls are there against, and says how far it came. That it fails makes a
    program that runs it as a test show what it said to the model."""
    settings = " || ".join(f"echo planted >> {shlex.quote(str(path))}" for path in planted(lab)) or "false"
    dialled = (f"python3 -c {shlex.quote(DIAL)} {shlex.quote(str(path))}" for path in sockets(lab))
    commands = {
        "inside": "echo written > inside.txt",
        "sibling": "echo written > ../sibling.txt",
        "home": 'echo written > "$HOME/outside.txt"',
        "secret": 'cat "$HOME/.ssh/id_canary"',
        "settings": settings,
        "socket": " || ".join(dialled) or "false",
        "port": f"exec 3<>/dev/tcp/127.0.0.1/{port}",
    }
    tried = (
        f"if bash -c {shlex.quote(command)} 2>/dev/null; then echo {name}=yes; else echo {name}=no; fi"
        for name, command in commands.items()
    )
    lost = (f"echo planted > {shlex.quote(str(path))}" for path in vanishing(lab))
    return "\n".join((*tried, *lost, "exit 1\n"))


def attack(lab: Lab, port: int, *options: str) -> tuple[Ended, dict[str, bool]]:
    """Let the model call the probe, and hear from it how far that came."""
    lab.cwd.joinpath(PROBE).write_text(probe(lab, port))
    reply = lab.runtime.conduct.edit_reply
    if reply is None:
        lab.play(shell(f"sh {PROBE}"), DONE)
    else:
        edit = Step(text=reply.format(path="edited", content="x\n"))
        rules = (Rule((DONE,), When(contains="inside=")), Rule((edit,)))
        lab.server.set_scenario(Scenario("test", rules))
    with answering(sockets(lab)):
        ended = lab.run("Try the walls.", *lab.bypass, *options, extra=() if reply is None else BY_TEST)
    told = "\n".join(heard.body or "" for heard in lab.server.heard())
    return ended, {name: f"{name}=yes" in told for name in ATTEMPTS if f"{name}=" in told}


def traces(lab: Lab) -> list[Path]:
    """What a probe left outside of the working folder."""
    places = (lab.cwd.parent / "sibling.txt", lab.home / "outside.txt", *planted(lab), *vanishing(lab))
    return [path for path in places if path.is_file() and path.read_text() in ("written\n", "planted\n")]


def done(ended: Ended) -> bool:
    assert ended.code == 0, ended.stderr
    return ended.result.text.endswith("All done.")


def test_without_walls_the_probe_gets_everywhere(make_lab: MakeLab, listener: Listener) -> None:
    """What the other tests rely on: nothing but the walls stops it."""
    lab = furnished(make_lab(registry.get("claude")))
    _, came = attack(lab, listener.port)
    assert came == dict.fromkeys(ATTEMPTS, True)
    assert listener.visits == 1
    assert traces(lab)


def test_work_is_done_in_the_workspace_and_nowhere_else(walled: Lab, listener: Listener) -> None:
    ended, came = attack(walled, listener.port, "--sandbox", "workspace")
    assert done(ended)
    assert came == {**dict.fromkeys(ATTEMPTS, False), "inside": True, "port": True}
    assert (walled.cwd / "inside.txt").read_text() == "written\n"
    assert listener.visits == 1
    assert not traces(walled)


def test_offline_nothing_but_the_model_is_reached(walled: Lab, listener: Listener) -> None:
    ended, came = attack(walled, listener.port, "--sandbox", "offline")
    assert done(ended)
    assert came == {**dict.fromkeys(ATTEMPTS, False), "inside": True}
    assert (walled.cwd / "inside.txt").read_text() == "written\n"
    assert listener.visits == 0
    assert not traces(walled)


def test_read_only_nothing_is_written_at_all(walled: Lab, listener: Listener) -> None:
    """A program without a shell tool writes by itself: that it cannot is all there is to see."""
    ended, came = attack(walled, listener.port, "--sandbox", "read-only")
    if walled.runtime.conduct.shell:
        assert done(ended)
        assert came == {**dict.fromkeys(ATTEMPTS, False), "port": True}
    assert [path.name for path in walled.cwd.iterdir()] == [PROBE]
    assert not traces(walled)


@pytest.mark.parametrize("name", APPROVING)
def test_the_guard_judges_inside_as_it_does_outside(name: str, make_lab: MakeLab) -> None:
    lab = make_lab(registry.get(name))
    lab.play(shell("echo x > ../outside.txt"), shell("echo written > inside.txt"), DONE)
    ended = lab.run("Build.", "--capability", "builder", "--sandbox", "workspace", *lab.bypass)
    assert done(ended)
    assert not (lab.cwd.parent / "outside.txt").exists()
    assert (lab.cwd / "inside.txt").exists() == lab.runtime.conduct.builder_writes
    if lab.runtime.conduct.builder_writes:
        assert len(ended.result.refused) == 1


@pytest.mark.parametrize("name", RESUMING)
def test_a_conversation_goes_on_inside(name: str, make_lab: MakeLab) -> None:
    """What a program remembers is kept outside, and found again inside."""
    lab = make_lab(registry.get(name))
    lab.play(Step(text="A grey one."))
    begun = lab.run("Which horse?", "--sandbox", "workspace")
    assert begun.result.text == "A grey one.", begun.stderr
    lab.play(DONE)
    assert done(lab.run("Thank you.", "--session", begun.session, "--sandbox", "workspace"))
    last = [heard for heard in lab.server.heard() if heard.api][-1]
    assert "A grey one." in (last.body or "")


def test_walls_of_its_own_stand_within_ours(make_lab: MakeLab, listener: Listener) -> None:
    """Codex puts what nobody allowed into a sandbox of its own, as root too."""
    lab = furnished(make_lab(registry.get("codex")))
    lab.cwd.joinpath(PROBE).write_text(probe(lab, listener.port))
    lab.play(shell(f"sh {PROBE}"), DONE)
    assert done(lab.run("Try the walls.", "--sandbox", "workspace"))
    told = "\n".join(heard.body or "" for heard in lab.server.heard())
    assert all(f"{name}=no" in told for name in ATTEMPTS)


def verbs(lab: Lab, *arguments: str) -> Ended:
    ended = lab.call([str(REMUDA), "session", *arguments], timeout=lab.within(120))
    assert ended.code == 0, ended.stderr + ended.stdout.decode()
    return ended


@pytest.mark.parametrize("name", ["claude", "codex"])
def test_a_session_stays_inside(name: str, make_lab: MakeLab) -> None:
    lab = furnished(make_lab(registry.get(name)))
    begin = ("start", "s", "--agent", name, "--mode", "connection", "--sandbox", "workspace", *lab.bypass)
    try:
        verbs(lab, *begin)
        for number in (1, 2):
            lab.play(shell(f"echo {number} > in{number}; echo x > ../out; echo x > $HOME/out"), DONE)
            sent = verbs(lab, "send", "s", f"Write, {number}.", "--follow", "--json")
            assert sent.result.text == "All done."
            assert (lab.cwd / f"in{number}").read_text() == f"{number}\n"
    finally:
        verbs(lab, "stop", "s")
    assert not (lab.cwd.parent / "out").exists()
    assert not (lab.home / "out").exists()
    assert wait_until(lambda: not lab.settled(), 60)


@pytest.mark.parametrize("name", ["claude", "gemini"])
def test_a_folder_is_trusted_for_this_once_in_a_pane(name: str, make_lab: MakeLab) -> None:
    """They cannot write down whom they trust, for that is held: with consent, they need not ask."""
    lab = furnished(make_lab(registry.get(name)))
    (lab.home / ".claude.json").write_text(json.dumps(BEFORE))
    lab.play(shell("echo 1 > in; echo x > ../out"), DONE)
    begin = ("start", "s", "--agent", name, "--mode", "tmux", "--sandbox", "workspace", *lab.bypass)
    try:
        verbs(lab, *begin, *consents(lab))
        assert b"ready" in verbs(lab, "show", "s").stdout, verbs(lab, "screen", "s").stdout.decode()
        verbs(lab, "send", "s", "Write.")
        assert wait_until((lab.cwd / "in").exists, lab.within(60))
    finally:
        verbs(lab, "stop", "s")
    assert not (lab.cwd.parent / "out").exists()
    assert json.loads((lab.home / ".claude.json").read_text()) == BEFORE
    assert wait_until(lambda: not lab.settled(), 60)
