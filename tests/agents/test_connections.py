"""Conversations of many turns, on every runtime that has them: what arrives, who is asked, what ends."""

from __future__ import annotations

import json
import os
import signal
import time
import uuid

import pytest
from tests.agents.conftest import MakeLab
from tests.agents.connected import ABORTED, Talk, by_word, connected, play, rule, said, verdict
from tests.agents.guarded import repository
from tests.agents.lab import DONE, Lab, shell
from tests.agents.processes import carrying, wait_until

from remuda.core.events import Result
from remuda.rehearsal.scenario import Step
from remuda.runtimes import registry
from remuda.runtimes.base import Permission
from remuda.sessions.live import LostError, Patience

CONNECTING = [runtime.name for runtime in registry.all_runtimes() if runtime.connect is not None]
SLUGGISH = [name for name in CONNECTING if registry.get(name).conduct.startup > 15]
"""Programs that take too long to start to be started anew for each of these tests."""

GUARDED = [name for name in CONNECTING if registry.get(name).guarding.by == "approval"]
PERMISSIONS: tuple[Permission, ...] = ("ask", "bypass")
SOON = 10.0
pytestmark = pytest.mark.timeout(400)
WORDS = {401: "invalid api key", 500: "internal error"}
"""What a model server says when it fails: not every program tells the status."""


@pytest.fixture(params=[name for name in CONNECTING if name not in SLUGGISH])
def talking(request: pytest.FixtureRequest, make_lab: MakeLab) -> Lab:
    """A runtime that converses."""
    return make_lab(registry.get(request.param))


@pytest.fixture(params=SLUGGISH)
def sluggish(request: pytest.FixtureRequest, make_lab: MakeLab) -> Lab:
    """… and takes its time to start."""
    return make_lab(registry.get(request.param))


@pytest.fixture(params=GUARDED)
def guarded(request: pytest.FixtureRequest, make_lab: MakeLab) -> Lab:
    """… and can be held to a capability."""
    return make_lab(registry.get(request.param))


def tells_late(lab: Lab) -> bool:
    """Whether only the answer to a prompt tells that it has arrived."""
    return lab.runtime.connect is not None and lab.runtime.connect.protocol == "acp"


def shuts_out(lab: Lab) -> bool:
    """Whether the model is not called any more once it refused the key."""
    return lab.runtime.connect is not None and lab.runtime.connect.shuts_out


def removing(lab: Lab, name: str) -> Step:
    """A step that removes a folder, which is there: every program that asks at all asks about that."""
    (lab.cwd / name).mkdir()
    return shell(f"rm -rf {name}")


def check(result: Result, text: str, tokens: int, lab: Lab) -> None:
    """A turn that went well, and cost what its answer cost."""
    assert result.error is None, result
    assert (result.text, result.stop_reason) == (text, "end_turn")
    assert lab.runtime.connect is not None
    if lab.runtime.conduct.usage and lab.runtime.connect.counts:
        assert result.usage is not None
        assert (result.usage.input_tokens, result.usage.output_tokens) == (tokens, tokens + 1), result.usage


async def test_two_turns_in_one_process(talking: Lab) -> None:
    play(
        talking,
        rule("First one", said("One.", 101)),
        rule("Second one", said("Two.", 205)),
        rule("Third one", said("Three.", 307)),
    )
    async with connected(talking) as talk:
        first, second = talk.send("First one: hello."), talk.send("Second one: again.")
        check(await talk.result(first), "One.", 101, talking)
        session = talk.live.runtime_session
        check(await talk.result(second), "Two.", 205, talking)
        assert first.arrived.done()
        assert second.arrived.done()
        assert talk.heard("First one: hello.")
        assert talk.heard("Second one: again.")
        assert talk.live.get_state().status == "idle"
        assert session
        assert talk.live.runtime_session == session
        assert "First one: hello." in talk.last_request
    assert await_nothing_left(talking)
    async with connected(talking, resume=session) as talk:
        check(await talk.ask("Third one: I am back."), "Three.", 307, talking)
        assert talk.live.runtime_session == session
        assert "Second one: again." in talk.last_request


def await_nothing_left(lab: Lab) -> bool:
    """Whether no process is left."""
    return wait_until(lambda: not lab.processes(), SOON)


@pytest.mark.parametrize("size", [64, 200])
async def test_long_prompts_arrive(talking: Lab, size: int) -> None:
    async with connected(talking) as talk:
        await long_prompt(talk, size)


async def long_prompt(talk: Talk, size: int) -> None:
    """A prompt of so many KiB arrives as it is."""
    line = 'A line of a long prompt, with 漢字, "quotes", \\ and a 🐎 in it. '
    text = "Long one.\n" + (line * (size * 1024 // len(line.encode()) + 1)) + "\nThe end."
    play(talk.lab, rule("Long one", said("Long.", 11)))
    check(await talk.ask(text), "Long.", 11, talk.lab)
    assert talk.heard(text)


async def test_the_guard_answers_what_the_program_asks(talking: Lab) -> None:
    async with connected(talking, by_word) as talk:
        await guarded_questions(talk)


async def guarded_questions(talk: Talk) -> None:
    """The guard's word counts, either way."""
    talking = talk.lab
    play(
        talking,
        rule("Do it", removing(talking, "allow-1"), DONE),
        rule("Never", removing(talking, "deny-1"), DONE),
    )
    assert (await talk.ask("Do it.")).error is None
    assert not (talking.cwd / "allow-1").exists()
    result = await talk.ask("Never do it.")
    assert (talking.cwd / "deny-1").exists()
    assert result.refused
    assert talk.failed_calls
    assert (await talk.ask("Do it.")).error is None


async def test_a_person_is_asked(talking: Lab) -> None:
    async with connected(talking, by_word) as talk:
        await asked_person(talk)


async def asked_person(talk: Talk) -> None:
    """A person's word counts, either way."""
    talking = talk.lab
    play(
        talking,
        rule("Yes", removing(talking, "ask-yes"), DONE),
        rule("No", removing(talking, "ask-no"), DONE),
    )
    yes = talk.send("Yes, please.")
    question = await talk.question()
    assert "rm -rf ask-yes" in question.title
    assert (talking.cwd / "ask-yes").exists()
    assert talk.live.decide(question.id, True, "go on")
    assert not talk.live.decide(question.id, False, "too late")
    assert (await talk.result(yes)).error is None
    assert not (talking.cwd / "ask-yes").exists()
    no = talk.send("No, thank you.")
    question = await talk.question()
    assert talk.live.decide(question.id, False, "the person does not want that")
    result = await talk.result(no)
    assert (talking.cwd / "ask-no").exists()
    assert result.refused
    assert not talk.live.questions


async def aborted(talk: Talk, prompt: str, started: str | None) -> Result:
    """A turn that is aborted once its tool or its answer is under way."""
    sent = talk.send(prompt)
    if started is None:
        assert await talk.until(lambda: any(prompt in heard for heard in talk.lab.prompts()))
        assert tells_late(talk.lab) or await talk.until(sent.arrived.done, SOON)
    else:
        assert await talk.until((talk.lab.cwd / started).exists), talk.told
    began = time.monotonic()
    talk.live.abort()
    assert not talk.live.questions
    result = await talk.result(sent)
    assert time.monotonic() - began < ABORTED
    assert result.error is not None
    assert (result.error.kind, result.stop_reason) == ("cancelled", "cancelled")
    return result


async def test_an_abort_ends_the_turn_and_not_the_conversation(talking: Lab) -> None:
    async with connected(talking) as talk:
        await three_aborts(talk)


async def three_aborts(talk: Talk) -> None:
    """A tool, an answer and a question are broken off, and the conversation goes on."""
    talking = talk.lab
    nap = f"600.{uuid.uuid4().int % 10**9:09}"
    play(
        talking,
        rule("Afterwards", said("Still here.", 11)),
        rule("Long tool", shell(f"touch allow-nap.txt; sleep {nap}"), DONE),
        rule("Slow answer", Step(text="word " * 200, pace=0.5)),
        rule("Parked", removing(talking, "ask-1"), DONE),
    )
    await aborted(talk, "Long tool, please.", "allow-nap.txt")
    assert await talk.until(lambda: not carrying(nap), SOON)
    check(await talk.ask("Afterwards, one."), "Still here.", 11, talking)
    await aborted(talk, "Slow answer, please.", None)
    sent = talk.send("Parked one.")
    question = await talk.question()
    talk.live.abort()
    assert (await talk.result(sent)).stop_reason == "cancelled"
    assert not talk.live.decide(question.id, True, "too late")
    check(await talk.ask("Afterwards, two."), "Still here.", 11, talking)
    assert (talking.cwd / "ask-1").exists()


async def test_a_program_that_is_killed_is_missed_at_once(talking: Lab) -> None:
    play(talking, rule("Slow answer", Step(text="word " * 200, pace=0.5)))
    async with connected(talking) as talk:
        sent, waits = talk.send("Slow answer, please."), talk.send("And another.")
        assert await talk.until(lambda: any("Slow answer" in heard for heard in talking.prompts()))
        began = time.monotonic()
        os.kill(talk.child.pid, signal.SIGKILL)
        result = await talk.result(sent)
        assert time.monotonic() - began < SOON
        assert result.error is not None
        assert result.error.kind == "crashed"
        with pytest.raises(LostError):
            await talk.result(waits)
        assert talk.live.get_state().status == "error"
    assert await_nothing_left(talking)


@pytest.mark.parametrize(("status", "kind"), [(401, "auth"), (500, "model")])
async def test_a_failing_model_fails_the_turn_only(talking: Lab, status: int, kind: str) -> None:
    async with connected(talking, patience=impatience(talking)) as talk:
        await failing_model(talk, status, kind)


def impatience(lab: Lab) -> Patience:
    """As a run has it with a model that fails."""
    return Patience(abort=ABORTED, trouble=lab.runtime.patience)


async def failing_model(talk: Talk, status: int, kind: str) -> None:
    """A turn fails, and the next one does not, unless the program says no by itself for a while."""
    play(
        talk.lab,
        rule("Afterwards", said("Well again.", 11)),
        rule("Fails", Step(status=status, message=WORDS[status])),
    )
    result = await talk.ask("Fails, this one.")
    assert result.error is not None
    assert result.error.kind == kind, result.error
    afterwards = await talk.ask("Afterwards.")
    if kind == "auth" and shuts_out(talk.lab):
        assert afterwards.error is not None
        assert afterwards.error.kind == kind, afterwards.error
    else:
        check(afterwards, "Well again.", 11, talk.lab)


async def test_a_sluggish_program_does_all_that_in_one_conversation(sluggish: Lab) -> None:
    async with connected(sluggish, by_word, patience=impatience(sluggish)) as talk:
        await long_prompt(talk, 200)
        await guarded_questions(talk)
        await asked_person(talk)
        await three_aborts(talk)
        await failing_model(talk, 500, "model")
        await failing_model(talk, 401, "auth")
        os.kill(talk.child.pid, signal.SIGKILL)
        assert await talk.until(lambda: talk.live.get_state().status == "error", SOON)
    assert await_nothing_left(sluggish)


async def test_a_capability_holds_in_every_turn(guarded: Lab) -> None:
    """Under guard every call asks, in the second turn as in the first; what is to be asked about waits."""
    play(
        guarded,
        rule("Inside", shell("echo x > allow-1.txt"), DONE),
        rule("Outside", shell("echo x > ../outside.txt"), DONE),
        rule("Perhaps", shell("echo x > ask-1.txt"), DONE),
        rule("A nap", shell("echo x > allow-nap.txt; sleep 600"), DONE),
    )
    writes = guarded.runtime.conduct.builder_writes
    async with connected(guarded, capability="builder") as talk:
        assert (await talk.ask("Inside, first.")).error is None
        assert (guarded.cwd / "allow-1.txt").exists() == writes
        await talk.ask("Outside, then.")
        assert not (guarded.cwd.parent / "outside.txt").exists()
        if not writes:
            return
        sent = talk.send("Perhaps.")
        question = await talk.question()
        assert talk.live.decide(question.id, True, "go on")
        assert (await talk.result(sent)).error is None
        assert (guarded.cwd / "ask-1.txt").exists()
        await aborted(talk, "A nap, then.", "allow-nap.txt")
        (guarded.cwd / "allow-1.txt").unlink()
        assert (await talk.ask("Inside, again.")).error is None
        assert (guarded.cwd / "allow-1.txt").exists()


# ---- a person's own session, program by program


async def test_a_folder_is_not_made_trusted_by_talking_in_it(make_lab: MakeLab) -> None:
    """Codex marks a folder as trusted in which it may do anything, and then starts what lies there."""
    lab = make_lab(registry.get("codex"))
    server = f"""[mcp_servers.own]\ncommand = "/bin/sh"\nargs = ["-c", "touch {lab.home}/started"]\n"""
    repository(lab, {".codex/config.toml": server})
    play(lab, rule("Do it", shell("echo x > a.txt; sleep 0.1; false"), DONE))
    for permission in PERMISSIONS:
        async with connected(lab, permission=permission) as talk:
            assert (await talk.ask("Do it.")).error is None
            assert (lab.cwd / "a.txt").exists()
            (lab.cwd / "a.txt").unlink()
    assert not (lab.home / "started").exists()
    settings = lab.home / ".codex" / "config.toml"
    assert not settings.exists() or "trusted" not in settings.read_text()


async def test_what_a_person_has_granted_beforehand_is_not_asked_about(make_lab: MakeLab) -> None:
    """Claude Code's own settings count, and its own hooks run."""
    lab = make_lab(registry.get("claude"))
    hook = {"type": "command", "command": f"touch {lab.home}/hooked"}
    settings = {
        "permissions": {"allow": ["Bash(touch:*)"], "deny": ["Bash(mkdir:*)"]},
        "hooks": {"UserPromptSubmit": [{"hooks": [hook]}]},
    }
    (lab.home / ".claude").mkdir()
    (lab.home / ".claude" / "settings.json").write_text(json.dumps(settings))
    play(
        lab,
        rule("Granted", shell("touch deny-1.txt"), DONE),
        rule("Denied", shell("mkdir allow-1"), DONE),
        rule("Open", shell("echo x > ask-1.txt"), DONE),
    )
    async with connected(lab) as talk:
        assert (await talk.ask("Granted.")).error is None
        assert (lab.cwd / "deny-1.txt").exists()
        assert (await talk.ask("Denied.")).refused
        assert not (lab.cwd / "allow-1").exists()
        sent = talk.send("Open.")
        question = await talk.question()
        assert (question.tool, question.title) == ("Bash", "echo x > ask-1.txt")
        assert talk.live.decide(question.id, False, "no")
        assert (await talk.result(sent)).refused == ("Bash",)
        assert (lab.home / "hooked").exists()


async def test_a_persons_own_extensions_are_there(make_lab: MakeLab) -> None:
    """Pi loads them beside ours: their tools are offered, and ask; their questions are for the person."""
    lab = make_lab(registry.get("pi"))
    folder = lab.home / ".pi" / "agent" / "extensions"
    folder.mkdir(parents=True)
    (folder / "own.js").write_text(OWN_EXTENSION)
    play(lab, rule("Own", Step(tool="ask_stamp", input={"ink": "blue"}), DONE))
    async with connected(lab, lambda call: verdict("ask" if call.tool == "ask_stamp" else "allow")) as talk:
        sent = talk.send("Own one.")
        question = await talk.question()
        assert question.tool == "ask_stamp"
        assert talk.live.decide(question.id, True, "yes")
        assert await talk.until(lambda: talk.live.questions and talk.live.questions[0] != question)
        (second,) = talk.live.questions
        assert "Stamp it?" in second.title
        assert talk.live.decide(second.id, True, "yes")
        assert (await talk.result(sent)).error is None
    assert "stamped in blue: true" in (lab.server.heard()[-1].body or "")


OWN_EXTENSION = """
export default (pi) => {
  pi.registerTool({
    name: "ask_stamp",
    label: "Stamp",
    description: "Stamps",
    parameters: { type: "object", properties: { ink: { type: "string" } }, required: ["ink"] },
    async execute(_id, { ink }, _signal, _update, ctx) {
      const sure = await ctx.ui.confirm("Stamp it?", "With ink.");
      return { content: [{ type: "text", text: `stamped in ${ink}: ${sure}` }], details: {} };
    },
  });
};
"""
