"""``remuda rehearse``: a scripted model, alone or around a command."""

from __future__ import annotations

import json
import signal
import stat
import urllib.error
import urllib.request

import pytest
from tests.support import SHELL, Site, Terminal, eventually, finish, read_pid

from remuda.rehearsal.scenario import load_scenario
from remuda.rehearsal.server import RehearsalServer

INNER = ("remuda", "run", "--agent", "rehearsal", "--permission", "bypass")


def ask(url: str) -> str:
    """One question to the scripted model."""
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "four"}]}
    headers = {"content-type": "application/json", "x-api-key": "k", "anthropic-version": "2023-06-01"}
    request = urllib.request.Request(f"{url}/v1/messages", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        document = json.loads(answer.read())
    text = document["content"][0]["text"]
    assert isinstance(text, str)
    return text


def test_a_command_talks_to_the_scripted_model(site: Site) -> None:
    ended = site.remuda("rehearse", "--scenario", "demo", "--", *INNER, "greet me")
    assert (ended.code, ended.stdout) == (0, "I wrote hello.txt. It says: hello from the remuda\n")
    assert (site.cwd / "hello.txt").exists()


def test_the_exit_code_of_the_command_is_ours(site: Site) -> None:
    denied = site.remuda("rehearse", "--scenario", "errors", "--", *INNER, "rehearse-401")
    assert denied.code == 6
    assert site.remuda("rehearse", "--", "sh", "-c", "exit 41").code == 41
    assert site.remuda("rehearse", "--", "sh", "-c", "kill -9 $$").code == 137
    missing = site.remuda("rehearse", "--", "no-such-program")
    assert missing.code == 6
    assert "cannot start no-such-program" in missing.stderr


def test_the_server_lives_as_long_as_its_command(site: Site) -> None:
    ended = site.remuda("rehearse", "--", "sh", "-c", "echo $REMUDA_ENDPOINT")
    url = ended.stdout.strip()
    assert url.startswith("http://127.0.0.1:")
    with pytest.raises(urllib.error.URLError):
        ask(url)


def test_a_scenario_of_ones_own(site: Site) -> None:
    site.write("mine.yaml", "name: mine\nrules:\n  - steps:\n      - text: 'You said: {prompt}'\n")
    ended = site.remuda("rehearse", "--scenario", "mine.yaml", "--", *INNER, "hello")
    assert ended.stdout == "You said: hello\n"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("name: bad\nrules:\n  - steps: [}\n", "line 3"),
        ("name: bad\nrules:\n  - steps:\n      - txet: hi\n", "txet"),
        ("name: bad\nrules:\n  - steps:\n      - status: 200\n", "$.rules[0].steps[0].status"),
        ("[]", "object"),
    ],
)
def test_a_bad_scenario_names_its_place(site: Site, text: str, told: str) -> None:
    path = site.write("bad.yaml", text)
    ended = site.remuda("rehearse", "--scenario", str(path), "--", "sh", "-c", "echo started")
    assert (ended.code, ended.stdout) == (2, "")
    assert str(path) in ended.stderr
    assert told in ended.stderr


def test_a_missing_scenario_names_the_built_in_ones(site: Site) -> None:
    ended = site.remuda("rehearse", "--scenario", "nothing")
    assert ended.code == 2
    assert "default, demo, errors" in ended.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_server_of_its_own_until_it_is_told_to_end(site: Site, number: int) -> None:
    process = site.start("rehearse")
    assert process.stdout is not None
    url = process.stdout.readline().decode().strip()
    assert ask(url) == "Heard 4 bytes."
    process.send_signal(number)
    ended = finish(process)
    assert (ended.code, ended.stdout) == (0, "")
    assert "REMUDA_ENDPOINT=" in ended.stderr
    assert site.processes() == []
    with pytest.raises(urllib.error.URLError):
        ask(url)


def test_a_port_that_is_taken_is_told(site: Site) -> None:
    with RehearsalServer(load_scenario("default")) as server:
        port = server.url.rpartition(":")[2]
        ended = site.remuda("rehearse", "--port", port)
    assert ended.code == 2
    assert f"cannot serve on port {port}" in ended.stderr


def test_a_recording_is_private_and_complete(site: Site) -> None:
    record = site.folder / "requests.jsonl"
    site.remuda("rehearse", "--record", str(record), "--", *INNER, "hello")
    assert stat.S_IMODE(record.stat().st_mode) == 0o600
    requests = [json.loads(line) for line in record.read_text().splitlines()]
    assert len(requests) == 1
    assert "hello" in json.dumps(requests[0])


def test_a_recording_that_cannot_be_written_is_not_blamed_on_the_port(site: Site) -> None:
    ended = site.remuda(
        "rehearse", "--record", str(site.folder / "no" / "such" / "file"), "--", "sh", "-c", ":"
    )
    assert ended.code in (1, 2)
    assert "port" not in ended.stderr
    assert "no/such/file" in ended.stderr


def test_real_keys_stay_away_from_the_scripted_model(site: Site) -> None:
    site.program("claude", f"{SHELL}env >&2\nexit 1\n")
    ended = site.remuda(
        "rehearse", "--", "remuda", "run", "--agent", "claude", "hi", ANTHROPIC_AUTH_TOKEN="sk-real"
    )
    assert "sk-real" not in ended.stdout + ended.stderr


def test_ctrl_c_reaches_the_command_and_leaves_nothing(site: Site) -> None:
    argv = ["remuda", "rehearse", "--scenario", "errors", "--", *INNER, "rehearse-hang"]
    with Terminal(argv, site.cwd, site.env) as terminal:
        eventually(lambda: len(site.processes()) >= 5)
        eventually((site.home / "state" / "remuda.db").exists)
        terminal.type("\x03")
        assert terminal.end() == 130
        eventually(lambda: not site.processes())


def test_killing_the_rehearsal_outright_leaves_nothing(site: Site) -> None:
    process = site.start("rehearse", "--", "sh", "-c", "setsid sleep 300 & echo $$ > sh.pid; sleep 300")
    read_pid(site.cwd / "sh.pid")
    process.kill()
    process.communicate()
    eventually(lambda: not site.processes())


def test_a_command_of_many_processes_shares_one_server(site: Site) -> None:
    ended = site.remuda(
        "rehearse", "--", "sh", "-c", "remuda run --agent rehearsal a & remuda run --agent rehearsal bb; wait"
    )
    assert sorted(ended.stdout.splitlines()) == ["Heard 1 bytes.", "Heard 2 bytes."]
