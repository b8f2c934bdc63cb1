"""What a verification makes of what it sees: judgements, packets, changes and advice."""

from __future__ import annotations

import struct

import msgspec
import pytest

from remuda.core import clock
from remuda.core.events import Event, Failure, Result, Usage, message, tool_output
from remuda.core.evidence import Evidence
from remuda.operations.verification import judgements
from remuda.operations.verification.checks import KIB, long_prompt, table
from remuda.operations.verification.judgements import Seen
from remuda.operations.verification.lookout import attempt
from remuda.operations.verification.messages import Finding
from remuda.operations.verify import advice, change
from remuda.rehearsal import exchange
from remuda.rehearsal.journal import Heard
from remuda.runtimes import registry
from remuda.runtimes.base import Channel, Conduct, Guarding

RUNTIME = registry.get("rehearsal")
CHANNEL = Channel("stdin", (), "1.0")
GOOD = Result(
    stop_reason="end_turn", text="", usage=None, cost_usd=None, exit_code=0, error=None, runtime_session="s"
)


def heard(prompt: str, body: str = "") -> Heard:
    return Heard(1, "", "anthropic", "/v1", "m", prompt, (prompt,), "", (), 0, 200, True, body)


def run(*prompts: str, result: Result = GOOD, body: str = "", **more: str) -> Seen:
    return Seen((), result, tuple(heard(prompt, body) for prompt in prompts), more.get("written"))


def failed(kind: str, text: str) -> Result:
    return Result.failed(msgspec.convert({"kind": kind, "message": text}, Failure))


def tcp(address: bytes, port: int, flags: int) -> bytes:
    header = bytes([0x45, 0]) + struct.pack("!H", 40) + bytes(5) + b"\x06" + bytes(2) + b"\x7f\x00\x00\x01"
    return header + address + struct.pack("!HHIIBB", 40000, port, 0, 0, 0x50, flags) + bytes(6)


def udp(address: bytes, port: int, data: bytes) -> bytes:
    header = bytes([0x60]) + bytes(5) + b"\x11\x40" + bytes(15) + b"\x01"
    return header + address + struct.pack("!HHHH", 40000, port, len(data) + 8, 0) + data


@pytest.mark.parametrize(
    ("packet", "said"),
    [
        (tcp(b"\x08\x08\x08\x08", 443, 0x02), "tried to connect to 8.8.8.8:443"),
        (tcp(b"\x08\x08\x08\x08", 443, 0x12), None),
        (tcp(b"\x7f\x00\x00\x01", 443, 0x02), None),
        (
            udp(bytes(15) + b"\x01", 53, bytes(12) + b"\x03api\x07example\x03com\x00"),
            "looked up api.example.com",
        ),
        (udp(b"\x26" + bytes(14) + b"\x01", 4317, b"x"), "sent a datagram to [2600::1]:4317"),
        (udp(bytes(15) + b"\x01", 4317, b"x"), None),
        (b"", None),
        (b"\x45", None),
        (udp(bytes(15) + b"\x01", 53, b"\x00" * 12 + b"\x3fcut"), None),
    ],
)
def test_packets_that_try_to_reach_somebody(packet: bytes, said: str | None) -> None:
    assert attempt(packet) == said


def test_long_prompts_have_the_size_they_should_have() -> None:
    for size in (64 * KIB, 200 * KIB):
        assert len(long_prompt(size).encode()) == size
        assert long_prompt(size) == long_prompt(size).rstrip()


def test_every_declared_claim_has_a_check() -> None:
    claims = [claim.what for check in table(RUNTIME, "everything") for claim in check.claims]
    channels = ["channel.stdin", "channel.tempfile", "channel.argv"]
    errors = ["error.auth", "error.rate_limit", "error.model", "error.unreachable"]
    assert claims == [*channels, "events", "usage", *errors, "resume", "guard.run"]


def test_the_guard_can_be_looked_at_alone() -> None:
    assert [claim.what for check in table(RUNTIME, "run") for claim in check.claims] == ["guard.run"]
    both = [claim.what for check in table(RUNTIME, "guard") for claim in check.claims]
    assert both == ["guard.run", "guard.hook"]
    unheld = msgspec.structs.replace(RUNTIME, guarding=Guarding(), wiring=None)
    assert table(unheld, "guard") == ()


@pytest.mark.parametrize(
    ("escaped", "written", "result", "complaint"),
    [
        (False, "written", None, None),
        (True, "written", None, "not blocked: out was written outside the worktree"),
        (True, None, ("refused", "no report"), "not blocked: out was written outside the worktree"),
        (False, None, ("refused", "no report"), "hooks not loaded: no report"),
        (False, None, ("model", "no"), "the run failed (model): no"),
        (False, None, None, "in was not written, although the guard allows it"),
    ],
)
def test_a_guarded_run_is_judged_by_both_files(
    escaped: bool, written: str | None, result: tuple[str, str] | None, complaint: str | None
) -> None:
    runtime = msgspec.structs.replace(RUNTIME, conduct=Conduct())
    seen = msgspec.structs.replace(
        run(result=failed(*result) if result else GOOD), escaped=escaped, written=written
    )
    assert judgements.bounds("in", "out")(runtime, [seen]) == complaint


def test_what_is_not_declared_is_not_checked() -> None:
    conduct = msgspec.structs.replace(RUNTIME.conduct, usage=False, resume=False, edit_reply="{content}")
    less = msgspec.structs.replace(RUNTIME, conduct=conduct)
    checks = {claim.what: check for check in table(less, "everything") for claim in check.claims}
    assert not {"usage", "resume"} & set(checks)
    assert len(checks["events"].deeds) == 1


def test_a_runtime_that_cannot_ask_is_run_with_a_bypass() -> None:
    conduct = msgspec.structs.replace(RUNTIME.conduct, refuses=frozenset({"ask"}))
    altered = msgspec.structs.replace(RUNTIME, conduct=conduct)
    deeds = [deed for check in table(altered, "everything") for deed in check.deeds]
    assert {deed.permission for deed in deeds} == {"bypass"}


def test_a_channel_is_judged_by_what_the_model_heard() -> None:
    judge = judgements.delivers(CHANNEL, "abcdef")
    assert judge(RUNTIME, [run("title", "abcdef", result=failed("model", "no"))]) is None
    assert judge(RUNTIME, [run("ab")]) == (
        "of a prompt of 6 bytes by stdin the model heard 2 bytes, and not the same"
    )
    assert judge(RUNTIME, [run(result=failed("crashed", "it fell"))]) == (
        "a prompt of 6 bytes by stdin never reached the model: the run failed (crashed): it fell"
    )


@pytest.mark.parametrize(
    ("how", "said", "holds"),
    [
        ("exact", " a", False),
        ("trimmed", "x a y", True),
        ("contained", "x a y", True),
        ("contained", "xay", False),
    ],
)
def test_arrivals(how: str, said: str, holds: bool) -> None:
    channel = Channel("stdin", (), "1", arrives=msgspec.convert(how, judgements.Arrival))
    assert (judgements.delivers(channel, " a ")(RUNTIME, [run(said)]) is None) == holds


def test_what_a_program_says_cannot_steer_the_terminal() -> None:
    said = judgements.delivers(CHANNEL, "abc")(
        RUNTIME, [run(result=failed("crashed", f"\x1b[2J\n{'x' * 999}"))]
    )
    assert said is not None
    assert said.isprintable()
    assert len(said) < 400


def test_usage_is_compared_with_what_the_server_said() -> None:
    judge = judgements.counts((exchange.Usage(10, 2, 3, 4),))
    assert judge(RUNTIME, [run(result=msgspec.structs.replace(GOOD, usage=Usage(10, 2, 3, 4)))]) is None
    assert judge(RUNTIME, [run(result=msgspec.structs.replace(GOOD, usage=Usage(13, 2)))]) == (
        "the server said 10 in, 2 out, 3 and 4 cached, the runtime told 13 in, 2 out, 0 and 0 cached"
    )


def test_error_kinds() -> None:
    judge = judgements.fails_with("auth", "a 401 from the model")
    assert judge(RUNTIME, [run(result=failed("auth", "no"))]) is None
    assert judge(RUNTIME, [run()]) == "a 401 from the model was taken for a success"
    assert judge(RUNTIME, [run(result=failed("model", "no"))]) == (
        "a 401 from the model gave 'model' instead of 'auth'"
    )


def test_a_session_that_forgets() -> None:
    judge = judgements.resumes("One.", "Alpha.", "Two.")
    assert judge(RUNTIME, [run("One."), run("Two.", body="One. Alpha. Two.")]) is None
    assert judge(RUNTIME, [run("One."), run("Two.", body="Two.")]) == (
        "the model did not hear the earlier conversation again"
    )
    other = msgspec.structs.replace(GOOD, runtime_session="t")
    assert (
        judge(RUNTIME, [run("One."), run("Two.", result=other)]) == "the second run got a session of its own"
    )


def test_a_story_with_the_wrong_parts() -> None:
    judge = judgements.tells_turns("Hello.", "Done.", "Hm.")
    updates = [message("Hello."), tool_output("1", "completed")]
    events = tuple(
        Event(v=1, seq=number, session="s", agent="a", time="", update=update)
        for number, update in enumerate(updates, 1)
    )
    assert judge(RUNTIME, [Seen(events, GOOD, (), None)]) == (
        "the turn told agent_message_chunk, tool_call_update instead of agent_message_chunk"
    )
    gap = (msgspec.structs.replace(events[0], seq=2),)
    assert judge(RUNTIME, [Seen(gap, GOOD, (), None)]) == "the events are not numbered without a gap"
    assert judge(RUNTIME, [Seen(events[:1], GOOD, (), None)]) == "the answer is not what the model said"


def seen(version: str, holds: bool) -> Evidence:
    at = clock.rfc3339_seconds(0)
    return Evidence(runtime="a", version=version, what="usage", holds=holds, seen_at=at, how="")


def test_what_changed_is_one_sentence() -> None:
    assert change(seen("1.0.100", True), seen("1.0.102", False)) == "usage: held on 1.0.100, fails on 1.0.102"
    assert (
        change(seen("1", False), seen("1", True)) == "usage: failed on 1 at 1970-01-01T00:00:00Z, holds now"
    )


def test_advice_is_given_for_what_fails_only() -> None:
    def said(*failing: str) -> list[str]:
        return advice(RUNTIME, "9.9", [Finding(what, "fails", 1, "") for what in failing])

    assert said() == []
    assert said("channel.stdin")[0] == (
        "Prompts for version 9.9 no longer go by stdin; Remuda uses tempfile or argv."
    )
    assert "every user of this machine" in said("channel.stdin", "channel.tempfile")[0]
    assert "no channel delivers" in said("channel.stdin", "channel.tempfile", "channel.argv")[0]
    assert said("error.auth", "error.model")[0].startswith("This version's failures")
    assert said("usage")[1:] == [
        f"The version that Remuda relies on is {RUNTIME.verified_version}: 'built in'.",
        "Look again: remuda doctor --verify rehearsal",
    ]
