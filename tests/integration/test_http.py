"""HTTP at the socket of the resident process: as curl and as Python see it, and what hooks notice of it."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest
from tests.integration.residents import (
    FORBIDDEN,
    HARMLESS,
    Client,
    ask,
    call,
    connected,
    listening,
    pid_of,
    place,
    status,
)
from tests.support import PATIENCE, SHELL, Site, alive, eventually, finish, read_pid

Got = TypeVar("Got")
SLOW = f"{SHELL}cat > /dev/null\nsetsid sleep 300 &\necho $! > inner.pid\necho $$ > agent.pid\nsleep 300\n"
RISKY = {"run": {"prompt": "x", "agent": "rehearsal", "sandbox": "danger-full-access"}}
WRONG: tuple[tuple[str, object, int, str, str], ...] = (
    ("nothing", {}, 404, "not_found", "no operation"),
    ("a/b", {}, 404, "not_found", "POST"),
    ("which", b"{", 400, "usage", "cannot be understood"),
    ("which", b'{"agent": "\xff"}', 400, "usage", "cannot be understood"),
    ("which", [], 400, "usage", "cannot be understood"),
    ("which", {"agnet": "pi"}, 400, "usage", "agnet"),
    ("which", {"agent": "nobody"}, 404, "not_found", "no agent"),
    ("which", {"cwd": "relative"}, 400, "usage", "cwd"),
    ("which", {"cwd": "/does/not/exist"}, 400, "usage", "cwd"),
    ("which", {"environ": {"LD_PRELOAD": "/x.so"}}, 400, "usage", "LD_PRELOAD"),
    ("which", {"environ": {"REMUDA_HOME": "/elsewhere"}}, 400, "usage", "REMUDA_HOME"),
    ("which", {"environ": {"REMUDA_DATABASE_URL": "postgresql://h/x"}}, 400, "usage", "DATABASE"),
    ("run", {"agent": "rehearsal"}, 400, "usage", "prompt"),
    ("run", {"prompt": "", "agent": "rehearsal"}, 400, "usage", "empty"),
    ("run", {"prompt": "x", "agent": "rehearsal", "sandbx": "offline"}, 400, "usage", "sandbx"),
    ("task.submit", {"run": {"prompt": "x", "sandbx": "offline"}}, 400, "usage", "sandbx"),
    ("task.get", {"id": "01M7PHT545PVA44PNK2NVSWHST"}, 404, "not_found", "task"),
    ("session.show", {"session": "nobody"}, 404, "not_found", "nobody"),
    ("task.submit", RISKY, 403, "refused", "unsafe"),
    ("which/", {}, 404, "not_found", "POST"),
    ("which", {"cwd": "/" + "x" * 5000}, 400, "usage", "cwd"),
    ("which", {"cwd": "/\0"}, 400, "usage", "cwd"),
    ("which", b'{"cwd": "/\\udcff"}', 400, "usage", "cannot be understood"),
    ("which", b"[" * 100_000, 400, "usage", "cannot be understood"),
    ("which", {"environ": {"PATH": "\0"}}, 400, "usage", "no variable"),
    ("which", {"environ": {"REMUDA_=": ""}}, 400, "usage", "no variable"),
    ("run", {"prompt": "a\0b", "agent": "rehearsal"}, 400, "usage", "NUL"),
    ("run", {"prompt": "x", "timeout": -1}, 400, "usage", "timeout"),
    ("run", b'{"prompt": "x", "timeout": 1e999}', 400, "usage", "timeout"),
    ("run", b'{"prompt": "x", "timeout": NaN}', 400, "usage", "cannot be understood"),
    ("send", {"run": {"prompt": "x"}, "ready_within": -1}, 400, "usage", "ready_within"),
    ("task.submit", {"run": {"prompt": "x", "cwd": "/" + "x" * 5000}}, 409, "failed", "too long"),
    ("task.submit", {"run": {"prompt": "x"}, "priority": 2**70}, 400, "usage", "priority"),
    ("task.wait", {"ids": [], "first": True}, 400, "usage", "ids"),
    ("task.list", {"before": "\0"}, 404, "not_found", "task"),
)


def failure(answer: dict[str, object]) -> dict[str, object]:
    error = answer["error"]
    assert isinstance(error, dict)
    assert set(error) == {"kind", "message", "hint", "exit_code"}
    return error


def rss(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))


def test_curl_and_python_get_the_same(serving: Site) -> None:
    curl = shutil.which("curl")
    assert curl is not None
    argv = [
        curl,
        "-sS",
        "--unix-socket",
        str(place(serving) / "serve.sock"),
        "http://remuda/v1/which",
        "-d",
        "{}",
    ]
    said = json.loads(subprocess.run(argv, capture_output=True, check=True, timeout=60).stdout)
    assert (200, said) == call(serving, "which")
    assert said["agent"] == serving.remuda("which", "--json").json["agent"]


def test_what_the_verbs_tell_is_told(serving: Site) -> None:
    for name, key in {"agents": "agents", "runtimes": "runtimes", "session.list": "sessions"}.items():
        code, answer = call(serving, name)
        assert (code, isinstance(answer[key], list)) == (200, True), answer
    assert call(serving, "task.list")[1] == {"tasks": [], "next": None}
    assert call(serving, "peer.list")[0] == 200
    assert call(serving, "usage", {"by": "runtime"})[0] == 200


def test_a_request_has_a_folder_and_variables_of_its_own(serving: Site) -> None:
    (serving.cwd / ".remuda").mkdir()
    (serving.cwd / ".remuda" / "config.toml").write_text('agent = "pi"\n')
    assert call(serving, "which", {"cwd": str(serving.cwd)})[1]["agent"] == "pi"
    assert call(serving, "which")[1]["agent"] != "pi"
    named = {"environ": {"REMUDA_AGENT_BINARY": "codex"}}
    assert call(serving, "which", named)[1]["agent"] == "codex"
    same = {"environ": {"REMUDA_HOME": str(serving.home), "HOME": serving.env["HOME"]}}
    assert call(serving, "which", same)[0] == 200


def test_errors_have_a_status_and_a_document(serving: Site) -> None:
    for name, body, code, kind, part in WRONG:
        status, answer = call(serving, name, body)
        error = failure(answer)
        assert (status, error["kind"]) == (code, kind), (name, body, answer)
        assert part in str(error["message"]) + str(error["hint"]), (name, body, answer)


def test_other_methods_and_too_large_bodies_are_refused(serving: Site) -> None:
    assert call(serving, "which", method="GET")[0] == 405
    assert call(serving, "which", b'{"agent": "' + b"x" * (17 * 1024 * 1024) + b'"}')[0] == 413


def test_a_database_that_is_gone_is_a_503(site: Site) -> None:
    url = {"REMUDA_DATABASE_URL": "postgresql://user:canary-pass@127.0.0.1:1/none"}
    process = site.start("serve", "--keep", **url)
    eventually(lambda: listening(site))
    status, answer = call(site, "task.list")
    assert (status, failure(answer)["kind"]) == (503, "store_gone")
    assert "canary-pass" not in str(answer)
    site.remuda("serve", "--stop")
    assert "canary-pass" not in finish(process).stderr


def test_the_description_is_complete(serving: Site) -> None:
    status, described = call(serving, "openapi.json", method="GET")
    assert (status, described["openapi"]) == (200, "3.1.0")
    paths, text = described["paths"], json.dumps(described)
    assert isinstance(paths, dict)
    assert {"/v1/which", "/v1/run", "/v1/task.submit", "/v1/session.list"} <= set(paths)
    schemas = described["components"]["schemas"]  # type: ignore[index]
    for piece in text.split('"$ref": "#/components/schemas/')[1:]:
        assert piece.split('"')[0] in schemas
    assert schemas["RunBody"]["required"] == ["prompt"]


def test_a_run_is_a_stream_of_events(serving: Site) -> None:
    client = Client(serving)
    body = {"prompt": "hello", "agent": "rehearsal", "cwd": str(serving.cwd)}
    client.request("POST", "/v1/run", json.dumps(body))
    answer = client.getresponse()
    assert (answer.status, answer.getheader("content-type")) == (200, "application/x-ndjson")
    lines = [json.loads(line) for line in answer.read().splitlines()]
    assert lines[-1]["result"]["text"] == "Heard 5 bytes."
    client.request("POST", "/v1/which", "{}")
    assert client.getresponse().status == 200
    client.close()


def streaming(site: Site) -> tuple[Client, http.client.HTTPResponse]:
    """A run of an agent that never answers, and has started something that left its group."""
    site.program("claude", SLOW)
    client = Client(site)
    client.request("POST", "/v1/run", json.dumps({"prompt": "go", "agent": "claude", "cwd": str(site.cwd)}))
    answer = client.getresponse()
    assert answer.status == 200
    return client, answer


def pids(site: Site) -> list[int]:
    return [read_pid(site.cwd / name) for name in ("agent.pid", "inner.pid")]


def test_who_hangs_up_ends_the_stream_and_all_that_it_started(serving: Site) -> None:
    client, answer = streaming(serving)
    found = pids(serving)
    assert all(map(alive, found))
    answer.close()
    client.close()
    eventually(lambda: not any(map(alive, found)))
    assert call(serving, "which")[0] == 200
    eventually(lambda: call(serving, "session.list")[1] == {"sessions": []})


@pytest.mark.parametrize("way", ["stop", "kill"])
def test_when_it_ends_its_streams_end_and_leave_nothing(serving: Site, way: str) -> None:
    client, answer = streaming(serving)
    found = pids(serving)
    if way == "stop":
        assert serving.remuda("serve", "--stop").code == 0
    else:
        os.kill(pid_of(serving), signal.SIGKILL)
    with pytest.raises((http.client.HTTPException, OSError)):
        answer.read()
    client.close()
    eventually(lambda: not any(map(alive, found)))
    eventually(lambda: not status(serving)["running"])
    assert ask(serving, FORBIDDEN, REMUDA_HOOK_ENGINE="python").code == 2


def test_hooks_are_answered_while_a_stream_is_open(serving: Site) -> None:
    client, answer = streaming(serving)
    for _ in range(3):
        assert (ask(serving, FORBIDDEN).code, ask(serving, HARMLESS).code) == (2, 0)
    log = (serving.home / "state" / "guard.jsonl").read_text()
    assert (log.count('"decision":"deny"'), log.count('"decision":"allow"')) == (3, 3)
    answer.close()
    client.close()


def test_hooks_are_answered_under_many_requests(serving: Site) -> None:
    over = threading.Event()
    codes: list[int] = []

    def ask_on() -> None:
        while not over.is_set():
            codes.append(call(serving, "which", {"cwd": str(serving.cwd)})[0])

    crowd = [threading.Thread(target=ask_on) for _ in range(50)]
    for each in crowd:
        each.start()
    try:
        eventually(lambda: len(codes) >= 50)
        for _ in range(5):
            assert (ask(serving, FORBIDDEN).code, ask(serving, HARMLESS).code) == (2, 0)
    finally:
        over.set()
        for each in crowd:
            each.join()
    assert set(codes) == {200}
    assert pid_of(serving)


def test_it_loads_nothing_before_somebody_asks(serving: Site) -> None:
    pid = pid_of(serving)
    ask(serving, HARMLESS)
    maps = Path(f"/proc/{pid}/maps")
    threads = Path(f"/proc/{pid}/task")
    before = rss(pid)
    assert "_asyncio" not in maps.read_text()
    assert "_ssl" not in maps.read_text()
    eventually(lambda: len([*threads.iterdir()]) == 1)
    assert call(serving, "which")[0] == 200
    assert pid_of(serving) == pid
    assert rss(pid) > before


def dozing(site: Site, call: Callable[[], Got]) -> tuple[subprocess.Popen[bytes], Got]:
    """A resident process that ends when it had nothing to do for a second, and what came of a call that
    reached it before; one that came too late is made again."""
    process = site.start("serve", "--idle", "1")
    eventually(lambda: listening(site) or process.poll() is not None)
    try:
        return process, call()
    except OSError:
        finish(process)
        return dozing(site, call)


def test_a_stream_keeps_it_awake_and_its_end_lets_it_go(site: Site) -> None:
    site.env["REMUDA_HOOK_ENGINE"] = "auto"
    process, (client, answer) = dozing(site, lambda: streaming(site))
    time.sleep(2.5)
    assert process.poll() is None
    answer.close()
    client.close()
    assert finish(process).code == 0


def test_a_connection_that_asks_nothing_does_not_keep_it_awake(site: Site) -> None:
    process, (first, second) = dozing(site, lambda: (connected(site), connected(site)))
    with first, second:
        first.sendall(b"GET /v1/which HT")
        second.sendall(b"POST /v1/which HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
        assert second.recv(15) == b"HTTP/1.1 200 OK"
        assert finish(process).code == 0


def test_half_a_request_is_not_waited_for(serving: Site) -> None:
    with connected(serving) as peer:
        peer.settimeout(PATIENCE)
        peer.sendall(b"GET /v1/which HT")
        with contextlib.suppress(ConnectionError):
            assert peer.recv(1) == b""


def test_half_of_a_second_request_is_not_waited_for_either(serving: Site) -> None:
    client = Client(serving)
    client.request("POST", "/v1/which", "{}")
    client.getresponse().read()
    client.sock.settimeout(20)
    client.sock.sendall(b"GET /v1/which HT")
    with contextlib.suppress(ConnectionError):
        assert client.sock.recv(1) == b""
    client.close()


def test_one_that_was_started_by_a_hook_answers_too(quiet: Site) -> None:
    assert ask(quiet, FORBIDDEN).code == 2
    eventually(lambda: listening(quiet))
    assert call(quiet, "which")[0] == 200


def test_one_that_was_started_for_a_guarded_agent_is_no_part_of_that(quiet: Site) -> None:
    curl, path = shutil.which("curl"), place(quiet) / "serve.sock"
    assert ask(quiet, FORBIDDEN, REMUDA_CAPABILITY="builder", REMUDA_WORKTREE=str(quiet.cwd)).code == 2
    eventually(lambda: listening(quiet))
    asks = f"""{curl} -sS --unix-socket {path} http://remuda/v1/task.cancel -d '{{"id": "x"}}' > said"""
    quiet.program("claude", f"{SHELL}cat > /dev/null\n{asks}\n")
    client = Client(quiet)
    client.request("POST", "/v1/run", json.dumps({"prompt": "x", "agent": "claude", "cwd": str(quiet.cwd)}))
    client.getresponse().read()
    client.close()
    assert failure(json.loads((quiet.cwd / "said").read_text()))["kind"] == "not_found"


def test_messages_are_read_answered_and_acknowledged(serving: Site) -> None:
    assert call(serving, "peer.register", {"runtime": "rehearsal", "name": "me"})[1]["state"] == "online"
    sent = serving.remuda("peer", "send", "me", "how far?", "--json").json["message"]
    for _ in range(2):
        found = call(serving, "peer.inbox", {"peer": "me"})[1]["messages"]
        assert [(each["id"], each["text"]) for each in found] == [(sent, "how far?")]  # type: ignore[attr-defined]
    told = [call(serving, "peer.acknowledge", {"messages": [sent, "x"]})[1]["messages"] for _ in range(2)]
    assert told == [[sent], []]
    assert call(serving, "peer.reply", {"message": sent, "text": "half way"})[0] == 200
    replies = serving.remuda("peer", "inbox", "--json").json["messages"]
    assert [each["reply_to"] for each in replies] == [sent]  # type: ignore[union-attr]
    assert call(serving, "peer.broadcast", {"text": "main is frozen"})[1]["sent"] != []
    assert call(serving, "peer.heartbeat", {"name": "me", "state": "offline"})[1]["state"] == "offline"
    assert call(serving, "peer.post", {"to": "me", "text": "x", "kind": "reply"})[0] == 400


@contextlib.contextmanager
def opened_to_all(site: Site) -> Iterator[Path]:
    """The socket as if nothing but the check of who asks kept others away."""
    path = place(site) / "serve.sock"
    parents = [each for each in path.parents if each != Path("/") and each.stat().st_uid == os.getuid()]
    modes = {each: each.stat().st_mode for each in (path, *parents)}
    try:
        for each, mode in modes.items():
            each.chmod(mode | (0o666 if each == path else 0o055))
        yield path
    finally:
        for each, mode in modes.items():
            each.chmod(mode)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be somebody else")
def test_another_user_is_refused(serving: Site) -> None:
    code = (
        "import os, socket, sys; os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "s = socket.socket(socket.AF_UNIX); s.settimeout(10); s.connect(sys.argv[1]); print('connected')\n"
        "s.sendall(b'POST /v1/which HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: 2\\r\\n\\r\\n{}')\n"
        "print(s.recv(100))"
    )
    with opened_to_all(serving) as path:
        argv = [sys.executable, "-I", "-c", code, str(path)]
        said = subprocess.run(argv, capture_output=True, text=True, timeout=30)
    assert said.stdout.startswith("connected\n")
    assert "HTTP" not in said.stdout
    assert said.stdout.endswith("b''\n") or "ConnectionReset" in said.stderr or "BrokenPipe" in said.stderr
    assert call(serving, "which")[0] == 200


def test_who_asks_from_within_an_agent_cannot_hide_it(serving: Site) -> None:
    """The chain of agents is read from the asking process, not only from what it says."""
    chain = "a:1/b:2/c:3"
    body = json.dumps({"prompt": "x", "agent": "rehearsal", "cwd": str(serving.cwd)})
    socket_path = str(place(serving) / "serve.sock")
    argv = ["curl", "-sS", "--unix-socket", socket_path, "http://remuda/v1/run", "-d", body]
    said = subprocess.run(
        argv, capture_output=True, check=True, timeout=60, env={**os.environ, "REMUDA_ORIGIN": chain}
    )
    assert json.loads(said.stdout)["result"]["error"]["kind"] == "refused"


def test_an_agent_under_guard_may_look_and_no_more(serving: Site) -> None:
    """Its guard denies it 'remuda run'; the socket is no way around that."""
    socket_path = str(place(serving) / "serve.sock")
    # the shell has the variable, and what it starts has not
    script = 'env -i PATH="$PATH" curl -sS --unix-socket "$0" "http://remuda/v1/$1" -d "$2"; true'

    def asked(name: str, body: object) -> dict[str, object]:
        argv = ["sh", "-c", script, socket_path, name, json.dumps(body)]
        environ = {**os.environ, "REMUDA_CAPABILITY": "builder"}
        said = subprocess.run(argv, capture_output=True, check=True, timeout=60, env=environ).stdout
        found = json.loads(said)
        assert isinstance(found, dict)
        return found

    run = {"prompt": "x", "agent": "rehearsal"}
    acts: dict[str, object] = {
        "run": run,
        "task.submit": {"run": run},
        "send": {"run": run},
        "task.cancel": {"id": "x"},
        "session.stop": {"session": "x"},
    }
    for name, body in acts.items():
        assert failure(asked(name, body))["kind"] == "refused", name
    assert asked("task.list", {})["tasks"] == []
    programs = {"environ": {"PATH": str(serving.bin)}}
    assert failure(asked("runtimes", programs))["kind"] == "refused", "programs are looked for by it"


def test_who_hangs_up_at_once_is_not_taken_for_nobody(serving: Site) -> None:
    body = json.dumps({"run": {"prompt": "x", "agent": "rehearsal"}, "cwd": str(serving.cwd)}).encode()
    head = f"POST /v1/task.submit HTTP/1.1\r\nHost: remuda\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    asks = (
        "import mmap, os, socket, sys\n"
        "memory = mmap.mmap(-1, int(sys.argv[1]) << 20)\n"
        "for place in range(0, len(memory), 4096): memory[place] = 1\n"
        "peer = socket.socket(socket.AF_UNIX)\n"
        f"peer.connect({str(place(serving) / 'serve.sock')!r})\n"
        f"peer.sendall({head + body!r})\n"
        "os._exit(0)\n"
    )
    guarded = {**os.environ, "REMUDA_CAPABILITY": "builder"}
    for megabytes in (1, 1, 1, 300, 300):  # much memory takes a while to let go of, and goes first
        subprocess.run([sys.executable, "-c", asks, str(megabytes)], check=True, timeout=60, env=guarded)
    time.sleep(1)
    assert call(serving, "task.list")[1]["tasks"] == []


def test_no_prompt_is_ever_logged(site: Site) -> None:
    site.env["REMUDA_HOOK_ENGINE"] = "auto"
    process = site.start("serve", "--keep")
    eventually(lambda: listening(site))
    canary = "canary-7f3a prompt"
    assert call(site, "run", {"prompt": canary, "agent": canary})[0] == 404
    client = Client(site)
    client.request("POST", "/v1/run", json.dumps({"prompt": canary, "agent": "rehearsal", "model": 5}))
    assert canary not in client.getresponse().read().decode()
    client.close()
    site.remuda("serve", "--stop")
    ended = finish(process)
    assert canary not in ended.stderr + ended.stdout


def test_a_task_is_handed_in_and_followed(serving: Site) -> None:
    (serving.home / "config").mkdir(exist_ok=True)
    (serving.home / "config" / "config.toml").write_text("[tasks]\nidle = 1.0\n")
    asked = {"run": {"prompt": "hello", "agent": "rehearsal"}, "cwd": str(serving.cwd), "key": "one"}
    submitted = call(serving, "task.submit", asked)[1]
    assert call(serving, "task.submit", asked)[1]["id"] == submitted["id"]
    client = Client(serving)
    client.request("POST", "/v1/task.watch", json.dumps({"id": submitted["id"]}))
    lines = [json.loads(line) for line in client.getresponse().read().splitlines()]
    client.close()
    assert lines[-1]["result"]["text"] == "Heard 5 bytes."
    waited = call(serving, "task.wait", {"ids": [submitted["id"]], "timeout": 30})[1]
    assert waited["timed_out"] is False
    shown = call(serving, "task.get", {"id": submitted["id"]})[1]
    assert (shown["state"], shown["cwd"]) == ("succeeded", str(serving.cwd))
    assert serving.remuda("task", "get", str(submitted["id"]), "--json").json["state"] == "succeeded"


def test_who_hangs_up_while_waiting_leaves_no_wait_behind(site: Site) -> None:
    (site.home / "config").mkdir(parents=True)
    (site.home / "config" / "config.toml").write_text("[tasks]\nidle = 1.0\n")
    site.program("claude", SLOW)
    submitted = site.remuda("task", "submit", "go", "--agent", "claude", "--json").json
    ident, found = submitted["id"], pids(site)
    client = Client(site)
    asked = json.dumps({"ids": [ident]})
    process, _ = dozing(site, lambda: client.request("POST", "/v1/task.wait", asked))
    time.sleep(2.5)
    assert process.poll() is None
    client.close()
    assert finish(process).code == 0
    assert all(map(alive, found))
    assert site.remuda("task", "cancel", str(ident)).code == 0
    eventually(lambda: not any(map(alive, found)))
