"""OpenClaw's own traps: an empty package, an old Node.js, wrapped prompts, tools that only its configuration
holds back."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
from collections.abc import Iterator

import pytest
from tests.agents.conftest import MakeLab
from tests.agents.lab import DONE, REMUDA, Ended, Lab
from tests.agents.processes import wait_until

from remuda.rehearsal.exchange import Usage
from remuda.rehearsal.scenario import Call, Step
from remuda.runtimes import registry
from remuda.runtimes.base import Turn
from remuda.runtimes.transcripts import Mark, Places, Wanted

OLD_NODE = "openclaw: Node 20.20.2: node:sqlite is unavailable; use 24.16+/26.1+ or a build with the fix."
"""What OpenClaw says on Node.js 20, before it speaks of nvm."""

OPEN = {
    "tools": {"allow": ["*"], "fs": {"workspaceOnly": False}},
    "agents": {"entries": {"main": {"default": True, "tools": {"fs": {"workspaceOnly": False}}}}},
}
"""A configuration that holds nothing back."""


@pytest.fixture
def openclaw(make_lab: MakeLab) -> Lab:
    return make_lab(registry.get("openclaw"))


def told(lab: Lab) -> tuple[str, str, str]:
    """What a run, the doctor and the list of runtimes say about it."""
    error = lab.run("Hello.").result.error
    assert error is not None
    reports = [json.loads(lab.call([str(REMUDA), verb, "--json"]).stdout) for verb in ("doctor", "runtimes")]
    examined, listed = (
        next(one for one in report["runtimes"] if one["name"] == "openclaw") for report in reports
    )
    return error.message, "\n".join(examined["problems"]), listed["trouble"]


def install(lab: Lab, script: str | None) -> None:
    """Make this the only ``openclaw``, in a prefix of npm's own."""
    folder = lab.home / "npm" / "bin"
    folder.mkdir(parents=True)
    if script is not None:
        program = folder / "openclaw"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
    lab.env["PATH"] = f"{folder}:/usr/bin:/bin"


def test_the_empty_package_is_named(openclaw: Lab) -> None:
    """With an old Node.js, npm installs a version that has no program in it."""
    install(openclaw, None)
    package = openclaw.home / "npm" / "lib" / "node_modules" / "openclaw" / "package.json"
    package.parent.mkdir(parents=True)
    package.write_text(
        '{"name": "openclaw", "version": "0.0.1", "description": "Empty placeholder package."}'
    )
    for words in told(openclaw):
        assert "npm installed the empty openclaw 0.0.1" in words
        assert "Node.js older than 24.16" in words


def test_a_version_that_is_too_old_is_named(openclaw: Lab) -> None:
    install(openclaw, "echo 0.0.1")
    for words in told(openclaw):
        assert "version 0.0.1 is older than" in words
        assert openclaw.runtime.install in words


def test_a_node_that_is_too_old_is_named(openclaw: Lab) -> None:
    install(openclaw, f"echo '{OLD_NODE}' >&2; echo '  nvm alias default 26' >&2; exit 1")
    for words in told(openclaw):
        assert "it needs Node.js 24.16 or newer, not 20.20.2" in words


def test_a_prompt_is_untouched_within_its_wrapping(openclaw: Lab) -> None:
    """A date goes before it and a line about the run behind; a skill's name at its beginning stays a word."""
    prompt = "/weather is what $weather means.\n\n[Sun 2026-11-15 17:57 UTC] \n"
    ended = openclaw.run(prompt)
    assert ended.code == 0, ended.stderr
    (heard,) = openclaw.prompts()
    assert prompt in heard
    assert heard != prompt


def own_configuration(lab: Lab) -> None:
    """Let the user's own configuration name the model, hold nothing back, and no endpoint be asked for."""
    turn = Turn(
        cwd=lab.cwd,
        scratch=lab.home,
        keep=lab.home,
        session="",
        permission="bypass",
        endpoint=lab.env.pop("REMUDA_ENDPOINT"),
    )
    (file,) = lab.runtime.print_command(turn).files
    config = json.loads(file.content)
    own = lab.home / ".openclaw" / "openclaw.json"
    own.parent.mkdir()
    own.write_text(json.dumps({**config, **OPEN, "agents": {**config["agents"], **OPEN["agents"]}}))


@pytest.mark.parametrize(
    ("options", "left"),
    [((), []), (("--capability", "builder"), ["inside"])],
    ids=["ask", "builder"],
)
def test_the_users_own_configuration_does_not_widen_the_bounds(
    openclaw: Lab, options: tuple[str, ...], left: list[str]
) -> None:
    own_configuration(openclaw)
    places = {"inside": openclaw.cwd / "inside", "outside": openclaw.home / "outside"}
    calls = tuple(Call("write", {"path": str(place), "content": "x"}) for place in places.values())
    openclaw.play(Step(tools=calls), DONE)
    ended = openclaw.run("Write two files.", *options)
    assert ended.code == 0, ended.stderr
    assert [name for name, place in places.items() if place.exists()] == left


@contextlib.contextmanager
def own_gateway(lab: Lab) -> Iterator[None]:
    """The user's own gateway, which is there for all of the user's programs."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    file = lab.home / ".openclaw" / "openclaw.json"
    auth = {"mode": "token", "token": "a-token-of-the-users-own"}
    gateway = {"mode": "local", "port": port, "bind": "loopback", "auth": auth}
    file.write_text(json.dumps({**json.loads(file.read_text()), "gateway": gateway}))
    environ = {**lab.env, **lab.runtime.quiet, "OPENCLAW_OFFLINE": "1"}
    command = [*(lab.runtime.locate("openclaw", lab.env) or ()), "gateway", "run"]
    process = subprocess.Popen(command, env=environ, cwd=lab.home, stdout=subprocess.DEVNULL)

    def answers() -> bool:
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port), 1).close()
            return True
        return False

    try:
        assert wait_until(answers, lab.within(60))
        yield
    finally:
        process.terminate()
        process.wait(30)


@pytest.mark.timeout(400)
def test_a_session_goes_through_the_users_own_gateway(openclaw: Lab) -> None:
    """It is neither started nor ended by the session, and no second one is."""
    own_configuration(openclaw)
    openclaw.play(Step(text="A grey one."))

    def session(*arguments: str) -> Ended:
        return openclaw.call([str(REMUDA), "session", *arguments], timeout=openclaw.within(120))

    with own_gateway(openclaw):
        before = {process.pid for process in openclaw.processes()}
        begun = session("start", "s", "--agent", "openclaw", "--mode", "connection")
        assert begun.code == 0, begun.stderr
        followed = session("send", "s", "Which horse?", "--follow", "--json")
        assert followed.result.text == "A grey one.", followed.stderr
        assert session("stop", "s").code == 0
        assert wait_until(lambda: {process.pid for process in openclaw.processes()} == before, 60)
    (heard,) = openclaw.prompts()
    assert "Which horse?" in heard


def test_the_transcript_of_a_lasting_session_is_read(openclaw: Lab) -> None:
    """Headless runs keep none. What it tells is what the server counted; a long answer, which is stored
    compressed, is no exception, nor is a prompt."""
    runtime, said = openclaw.runtime, Usage(901, 31, 20, 4)
    assert runtime.transcripts is not None
    turn = Turn(
        cwd=openclaw.cwd,
        scratch=openclaw.home,
        keep=openclaw.home,
        session="",
        endpoint=openclaw.server.url,
        permission="bypass",
    )
    state = openclaw.home / ".openclaw"
    state.mkdir()
    for file in runtime.print_command(turn).files:
        (state / file.name).write_text(file.content)
    prompt = "A long prompt. é 🐎\n" * 200
    session = "11111111-2222-4333-8444-555555555555"
    command = ["openclaw", "agent", "--local", "--agent", "main", "--session-id", session, "--json"]
    openclaw.play(Step(text="A long answer. " * 200, usage=said))
    quiet = {"OPENCLAW_OFFLINE": "1", **runtime.quiet}
    ended = openclaw.call([*command, "--message", prompt], env=quiet, timeout=240)
    assert ended.code == 0, ended.stderr
    places = Places(environ=openclaw.env)
    source = runtime.transcripts.find(places, Wanted(session=session))
    assert source is not None
    (answer,) = runtime.transcripts.read(source, Mark()).answers
    assert (answer.input, answer.cached_read, answer.output) == (said.input - 20, 20, said.output)
    assert (answer.session, answer.project) == (session, str(state / "workspace"))
    (text,) = runtime.transcripts.prompts(source, Mark()).texts
    assert text.strip() == prompt.strip()
