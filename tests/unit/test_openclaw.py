"""What OpenClaw is given and what it says at the end."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda.core.errors import RefusedError, UsageError
from remuda.core.events import Usage, message
from remuda.runtimes.base import Invocation, Parser, Turn
from remuda.runtimes.openclaw.runtime import absence, own_config, print_command, spawn_command
from remuda.runtimes.openclaw.stream import parser

TURN = Turn(cwd=Path("/work"), scratch=Path("/scratch"), keep=Path("/keep"), session="s", endpoint="http://e")
ANSWER = {
    "ok": True,
    "status": "ok",
    "final": "Done {}.\n}",
    "payloads": [{"text": "Done.", "mediaUrl": None}],
    "usage": {"input": 90, "output": 5, "cacheRead": 10, "cacheWrite": 0, "total": 105, "cost": {"total": 0}},
    "costUsd": 0.5,
    "model": "m",
    "provider": "remuda",
    "sessionId": "s-1",
}
FAILED = {"ok": False, "status": "error", "error": {"message": "Invalid config", "kind": "exception"}}


def turn(**changes: object) -> Turn:
    return msgspec.structs.replace(TURN, **changes)


def tools(invocation: Invocation) -> object:
    (file,) = invocation.files
    return json.loads(file.content).get("tools", {}).get("allow")


def listen(document: object, indent: int | None = 2, *log: bytes) -> tuple[Parser, list[object]]:
    listener = parser(TURN, "")
    for line in log:
        listener.hear(line)
    lines = json.dumps(document, indent=indent).encode().splitlines()
    return listener, [update for line in (b"Noise", *lines) for update in listener.feed(line)]


@pytest.mark.parametrize("indent", [None, 2])
def test_the_document_at_the_end(indent: int | None) -> None:
    listener, updates = listen(ANSWER, indent)
    state = listener.state
    assert updates == [message(str(ANSWER["final"]))]
    assert (state.text, state.stop_reason, state.session, state.model) == (
        ANSWER["final"],
        "end_turn",
        "s-1",
        "m",
    )
    assert (state.usage, state.cost_usd, state.skipped) == (Usage(100, 5, 10), 0.5, 1)


def test_anthropic_does_not_count_what_was_cached() -> None:
    assert listen({**ANSWER, "provider": "anthropic"})[0].state.usage == Usage(90, 5, 10)


@pytest.mark.parametrize(
    ("document", "log", "kind"),
    [
        (FAILED, (), "start_failed"),
        (FAILED, (b"[model-fetch] response provider=x status=401 elapsedMs=3",), "auth"),
        (
            FAILED,
            (b"[agent/embedded] embedded run agent end: isError=true rawError=429 exceeded your quota",),
            "quota",
        ),
        (FAILED, (b"\x1b[33m[model-fetch] error name=TypeError message=fetch failed\x1b[39m",), "model"),
        ({**FAILED, "status": "timeout"}, (), "timeout"),
        (None, (b"openclaw: Node 20.20.2: node:sqlite is unavailable; use 24.16+/26.1+",), "start_failed"),
    ],
)
def test_a_failure(document: object, log: tuple[bytes, ...], kind: str) -> None:
    failure = listen(document, 2, *log)[0].state.failure
    assert failure is not None
    assert failure.kind == kind


def test_two_failures_are_given_another_chance_and_three_are_not() -> None:
    listener = parser(TURN, "")
    for number, troubled in ((1, False), (2, False), (3, True)):
        listener.hear(b"[model-fetch] response provider=x status=500 elapsedMs=3")
        assert listener.state.trouble is not None
        listener.hear(b"transient same-model retry %d/8 for x reason=server_error: delayMs=785" % number)
        assert (listener.state.trouble is not None) == troubled


@given(
    st.lists(
        st.sampled_from([b"{", b"}", b"{}", b"{\xff}", b'{"usage": 5}', b"", b"[]", b'{"final": "x"'])
        | st.binary()
    )
)
def test_nothing_upsets_it(lines: list[bytes]) -> None:
    listener = parser(TURN, "")
    for line in lines:
        assert msgspec.json.encode(list(listener.feed(line)))
        listener.hear(line)
    listener.finish(None)


def test_only_the_tools_that_are_allowed_are_left() -> None:
    reading = ["read", "ls", "find", "grep"]
    assert tools(print_command(turn())) == reading
    assert tools(print_command(turn(access="read", permission="bypass"))) == reading
    assert tools(print_command(turn(access="workspace"))) == [*reading, "write", "edit", "apply_patch"]
    assert tools(print_command(turn(permission="bypass"))) is None


def written(invocation: Invocation) -> dict[str, dict[str, object]]:
    return {file.name: json.loads(file.content) for file in invocation.files}


def test_a_run_lies_on_top_of_the_users_own_configuration(tmp_path: Path) -> None:
    mine = tmp_path / "mine.json"
    own = turn(
        endpoint=None, environ={"OPENCLAW_CONFIG_PATH": str(mine), "OPENCLAW_INCLUDE_ROOTS": "/theirs"}
    )
    assert "$include" not in written(print_command(own))["openclaw.json"]
    mine.write_text("{}")
    invocation = print_command(msgspec.structs.replace(own, permission="bypass"))
    assert written(invocation)["openclaw.json"]["$include"] == str(mine)
    assert invocation.env["OPENCLAW_INCLUDE_ROOTS"] == f"/theirs:{tmp_path}"
    assert "$include" not in written(print_command(turn(environ=own.environ)))["openclaw.json"]


def test_bounds_are_not_joined_with_the_users_own(tmp_path: Path) -> None:
    mine = tmp_path / ".openclaw" / "openclaw.json"
    mine.parent.mkdir()
    mine.write_text("{}")
    own = turn(endpoint=None, environ={"HOME": str(tmp_path)})
    reading, writing = (print_command(msgspec.structs.replace(own, access=a)) for a in ("read", "workspace"))
    assert written(reading)["own.json"] == {"$include": str(mine), "tools": None}
    assert written(reading)["openclaw.json"]["$include"] == "./own.json"
    assert written(writing)["own.json"]["agents"] == {"entries": None}
    assert written(writing)["openclaw.json"]["agents"] == {"entries": {}}


def test_where_the_users_own_configuration_lies() -> None:
    for environ, place in (
        ({"HOME": "/h"}, "/h/.openclaw/openclaw.json"),
        ({"HOME": "/h", "OPENCLAW_PROFILE": "p"}, "/h/.openclaw-p/openclaw.json"),
        ({"HOME": "/h", "OPENCLAW_STATE_DIR": "/s"}, "/s/openclaw.json"),
        ({"HOME": "/h", "OPENCLAW_CONFIG_PATH": "/c.json"}, "/c.json"),
    ):
        assert own_config(environ) == Path(place)


def test_what_it_cannot_do_is_said() -> None:
    with pytest.raises(UsageError):
        print_command(turn(system_prompt="x"))
    with pytest.raises(RefusedError):
        print_command(turn(resume=True))
    with pytest.raises(RefusedError):
        spawn_command(turn(access="read"))


def test_a_session_on_a_terminal_keeps_its_state_with_it() -> None:
    plain = spawn_command(turn(endpoint=None))
    assert plain.arguments == ("chat", "--session", TURN.session)
    assert not plain.keeps
    elsewhere = spawn_command(turn(endpoint="http://127.0.0.1:1"))
    (file,) = elsewhere.kept
    assert elsewhere.env["OPENCLAW_STATE_DIR"] == str(TURN.keep)
    assert json.loads(file.content)["models"]["providers"]["remuda"]["baseUrl"] == "http://127.0.0.1:1/v1"


@pytest.mark.parametrize(
    ("text", "told"), [('{"version": "0.0.1"}', True), ('{"version": "2026.9.6"}', False)]
)
def test_the_empty_package_is_told_from_none(tmp_path: Path, text: str, told: bool) -> None:
    package = tmp_path / "lib" / "node_modules" / "openclaw"
    package.mkdir(parents=True)
    environ = {"PATH": f"/nowhere:{tmp_path / 'bin'}"}
    for content in ("", "[]", "\xff"):
        (package / "package.json").write_text(content, "latin-1")
        assert absence(environ) is None
    (package / "package.json").write_text(text)
    assert ("openclaw 0.0.1" in (absence(environ) or "")) == told


def test_the_log_tells_whether_the_model_has_answered() -> None:
    listener = parser(TURN, "")
    line = b"[provider-transport-fetch] [model-fetch] response provider=p model=m status=%d elapsedMs=9"
    listener.hear(line % 429)
    assert listener.state.trouble is not None
    listener.hear(b"[agent/embedded] transient same-model retry 1/9 reason=rate_limit: delayMs=77000")
    assert listener.state.trouble is not None, "nobody waits so long"
    listener.hear(b"[agent/embedded] transient same-model retry 1/9 reason=rate_limit: delayMs=985")
    assert (listener.state.trouble, listener.state.answered) == (None, False)
    listener.hear(line % 200)
    listener.hear(line % 429)
    assert listener.state.trouble is not None
    assert listener.state.answered
