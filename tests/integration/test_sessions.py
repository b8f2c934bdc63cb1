"""Sessions that last, with the rehearsal agent: over its connection and in a pane."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.integration.sessions import DONE, SLOW, Stable, shell
from tests.integration.sessions import stable as stable
from tests.support import alive, eventually, kill

from remuda.rehearsal.scenario import Step
from remuda.sessions import store

MODES = ("connection", "tmux")
both = pytest.mark.parametrize("mode", MODES)


@both
def test_it_outlives_the_command_that_started_it_and_answers_prompts_with_a_receipt(
    stable: Stable, mode: str
) -> None:
    begun = stable.start("one", "--prompt", "the first", "--json", mode=mode)
    assert begun.code == 0, begun.stderr
    assert begun.json["session"]["state"] == "ready"  # type: ignore[index]
    assert begun.json["receipt"]["bytes"] == len("the first")  # type: ignore[index]
    receipt = stable.session("send", "one", "a second\nwith 漢字", "--json").json
    assert receipt["channel"] == ("tmux" if mode == "tmux" else "stream-json")
    assert receipt["proof"]
    eventually(lambda: stable.state("one") == "ready")
    assert stable.heard() == ["the first", "a second\nwith 漢字"]
    shown = stable.seen("one")
    assert shown["usage"]["answers"] == 2
    assert shown["session"]["source"].startswith("screen" if mode == "tmux" else "protocol")
    assert stable.session("stop", "one").code == 0
    assert stable.state("one") == "exited"
    assert stable.seen("one")["session"]["failure"] is None
    assert not stable.agents()


def test_a_keeper_that_hangs_is_ended_with_all_that_it_started(stable: Stable) -> None:
    stable.play(("long", (shell("echo $$ > pid; exec sleep 300"), DONE)))
    stable.start("one", "--permission", "bypass")
    stable.session("send", "one", "a long one")
    eventually((stable.cwd / "pid").exists, SLOW)
    keeper, tool = stable.holder("one"), int((stable.cwd / "pid").read_text())
    os.kill(keeper, signal.SIGSTOP)
    ended = stable.session("stop", "one")
    assert (ended.code, ended.stdout) == (0, "one is exited\n"), ended.stderr
    assert "did not answer" in stable.seen("one")["session"]["failure"]
    assert not any(map(alive, (keeper, tool)))
    assert not stable.agents()


@both
@pytest.mark.parametrize("size", [64 * 1024, 200 * 1024])
def test_a_long_text_arrives_byte_for_byte(stable: Stable, mode: str, size: int) -> None:
    stable.start("one", mode=mode)
    line = "tab\there 'quotes' \"double\" $HOME `id` \\ 漢字 🐎 \u2028 end\n"
    text = (line * (size // len(line.encode()) + 1))[:size].rstrip() + "."
    sent = stable.session("send", "one", "-", stdin=text.encode())
    assert sent.code == 0, sent.stderr
    eventually(lambda: stable.heard() == [text], SLOW)


@both
def test_a_long_turn_is_seen_interrupted_and_followed_by_another(stable: Stable, mode: str) -> None:
    stable.play(("long", (shell("echo $$ > pid; exec sleep 300"), DONE)))
    stable.start("one", "--permission", "bypass", mode=mode)
    stable.session("send", "one", "a long one")
    eventually((stable.cwd / "pid").exists, SLOW)
    eventually(lambda: stable.state("one") == "working", SLOW)
    pid = int((stable.cwd / "pid").read_text())
    ended = stable.session("interrupt", "one", "--json")
    assert ended.code == 0, ended.stderr
    assert ended.json["state"] == "ready"
    assert not alive(pid)
    assert stable.session("send", "one", "another").code == 0
    eventually(lambda: "another" in stable.heard())


def test_the_guard_answers_first_then_a_person_and_then_nobody(stable: Stable) -> None:
    stable.play(
        ("fine", (shell("echo fine > fine.txt"), DONE)),
        ("bad", (shell("git push --force; echo bad > bad.txt"), DONE)),
        ("unsure", (shell('X=echo; eval "$Y"; echo asked > asked.txt'), DONE)),
    )
    stable.start("one")
    for word in ("fine", "bad"):
        assert stable.session("send", "one", word, "--follow").code == 0
    assert (stable.cwd / "fine.txt").exists()
    assert not (stable.cwd / "bad.txt").exists()
    for verb, runs in (("reject", False), ("approve", True)):
        stable.session("send", "one", "unsure")
        eventually(lambda: stable.state("one") == "waiting")
        (question,) = stable.seen("one")["questions"]
        assert "eval" in question["title"]
        assert stable.session(verb, "one").code == 0
        eventually(lambda: stable.state("one") == "ready")
        assert (stable.cwd / "asked.txt").exists() == runs
    assert stable.session("approve", "one").code == 2


def test_a_question_that_nobody_answers_is_answered_with_no(stable: Stable) -> None:
    (stable.site.home / "config").mkdir(parents=True)
    (stable.site.home / "config" / "config.toml").write_text("[sessions]\nanswer_within = 0.5\n")
    stable.play(("unsure", (shell('eval "$Y"; echo asked > asked.txt'), DONE)))
    stable.start("one")
    answer = stable.session("send", "one", "unsure", "--follow", "--json")
    assert answer.code == 0
    assert any("question" in event for event in answer.events)
    assert answer.result["refused"] or "nobody answered" in answer.stdout
    assert not (stable.cwd / "asked.txt").exists()


def test_a_capability_holds_over_a_connection_and_is_refused_in_a_pane(stable: Stable) -> None:
    stable.play(("write", (shell("echo x > written.txt"), DONE)))
    assert stable.start("one", "--capability", "scout").code == 0
    assert stable.session("send", "one", "write it", "--follow").code == 0
    assert not (stable.cwd / "written.txt").exists()
    refused = stable.start("two", "--capability", "scout", mode="tmux")
    assert refused.code == 5
    assert "--mode connection" in refused.stderr
    assert stable.session("list", "--json").json["sessions"][0]["name"] == "one"  # type: ignore[index]


def test_a_dialog_is_only_answered_with_consent(stable: Stable) -> None:
    asked = stable.start("one", "--env", "REHEARSAL_DIALOG=trust", mode="tmux")
    assert asked.code == 1
    assert stable.state("one") == "dialog"
    assert "trust" in stable.session("screen", "one").stdout
    agreed = stable.start("two", "--env", "REHEARSAL_DIALOG=trust", "--consent", "trust", mode="tmux")
    assert agreed.code == 0, agreed.stderr
    assert stable.state("two") == "ready"
    assert stable.state("one") == "dialog"


@both
def test_names_are_exact(stable: Stable, mode: str) -> None:
    for name in ("b1", "b10"):
        assert stable.start(name, mode=mode).code == 0
    assert stable.start("b1", mode=mode).code == 2
    stable.session("stop", "b1")
    assert stable.state("b10") == "ready"
    assert stable.state("b1") == "exited"
    assert stable.start("b1", mode=mode).code == 0
    for wrong in ("", "-x", "a b", "a:b", "x" * 65, "a/b"):
        assert stable.session("start", "--agent", "rehearsal", "--", wrong).code == 2
    assert stable.session("send", "b", "hello").code == 4


def test_prompts_wait_for_their_turn_and_are_told_so(stable: Stable) -> None:
    stable.play(("slow", (Step(text="slow", delay=1.5),)))
    stable.start("one")
    first = stable.site.start("session", "send", "one", "a slow one", "--json")
    eventually(lambda: stable.state("one") == "working")
    second = stable.session("send", "one", "the next", "--json")
    assert second.code == 0
    assert first.wait(SLOW) == 0
    eventually(lambda: stable.heard() == ["a slow one", "the next"])
    first.communicate()


def test_a_failing_model_fails_the_turn_and_not_the_session(stable: Stable) -> None:
    stable.play(("bad", (Step(status=401, message="invalid key"),)))
    stable.start("one")
    failed = stable.session("send", "one", "bad", "--follow", "--json")
    assert (failed.code, failed.error["kind"]) == (6, "auth")
    assert stable.state("one") == "ready"
    assert stable.session("send", "one", "another", "--follow").code == 0


def test_what_was_accepted_and_not_sent_is_sent_after_a_crash_and_once(stable: Stable) -> None:
    stable.play(("slow", (Step(text="slow", delay=60),)))
    stable.start("one")
    assert stable.session("send", "one", "a slow one").code == 0
    waiting = stable.site.start("session", "send", "one", "the next")
    database, ident = stable.site.home / "state" / "remuda.db", stable.row("one").id
    eventually(lambda: store.messages(database, ident, ("queued",)))
    kill(stable.holder("one"))
    assert waiting.wait(SLOW) != 0
    waiting.communicate()
    eventually(lambda: not stable.agents())
    seen = stable.seen("one")["session"]
    assert seen["state"] == "exited"
    assert "killed" in seen["failure"]
    stable.play()
    assert stable.session("resume", "one").code == 0
    eventually(lambda: stable.heard().count("the next") == 1)
    eventually(lambda: stable.state("one") == "ready")
    assert stable.heard().count("a slow one") == 1


@both
def test_a_killed_agent_ends_its_session_at_the_next_look(stable: Stable, mode: str) -> None:
    stable.play(("long", (shell("exec sleep 300"), DONE)))
    stable.start("one", "--permission", "bypass", mode=mode)
    stable.session("send", "one", "a long one")
    keeper = stable.holder("one")
    for pid in stable.agents():
        if mode == "tmux" or pid != keeper:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    eventually(lambda: stable.state("one") == "exited")
    assert stable.seen("one")["session"]["failure"].startswith("crashed")
    eventually(lambda: not stable.agents())
    assert stable.session("send", "one", "hello").code == 2


def test_a_killed_tmux_server_ends_its_sessions_at_the_next_look(stable: Stable) -> None:
    for name in ("one", "two"):
        assert stable.start(name, mode="tmux").code == 0
    kill(stable.tmux_server())
    listed = stable.session("list", "--all", "--json").json["sessions"]
    assert [each["state"] for each in listed] == ["exited", "exited"]  # type: ignore[attr-defined,index]
    eventually(lambda: not stable.agents())
    assert stable.session("resume", "one").code == 0
    assert stable.state("one") == "ready"


@both
def test_a_session_is_resumed_with_what_was_said(stable: Stable, mode: str) -> None:
    stable.start("one", mode=mode)
    stable.session("send", "one", "remember the horse")
    eventually(lambda: stable.state("one") == "ready")
    ident = stable.row("one").id
    stable.session("stop", "one")
    assert stable.session("resume", "one").code == 0
    assert stable.row("one").id == ident
    stable.session("send", "one", "what was it?")
    eventually(lambda: len(stable.heard()) == 2)
    assert "remember the horse" in "".join(stable.server.heard()[-1].user_texts)


def test_another_boot_is_another_machine(stable: Stable) -> None:
    """A process of the same number after a reboot is not the one that held the session."""
    stable.start("one")
    row = stable.row("one")
    assert row.holder is not None
    boot, pid, started = row.holder.split("/")
    database = stable.site.home / "state" / "remuda.db"
    other = f"{boot[::-1]}/{pid}/{started}"
    store.change(database, row.id, lambda now: type(now)(**{**_fields(now), "holder": other}))
    assert stable.state("one") == "exited"
    eventually(lambda: not [pid for pid in stable.agents() if pid != int(row.holder.split("/")[1])])  # type: ignore[union-attr]
    os.kill(int(pid), signal.SIGTERM)
    eventually(lambda: not alive(int(pid)))


def _fields(row: store.Session) -> dict[str, object]:
    return {name: getattr(row, name) for name in row.__struct_fields__}


@both
def test_no_prompt_is_on_a_command_line_or_in_a_file_for_others(stable: Stable, mode: str) -> None:
    stable.play(("canary", (Step(text="slow", delay=2),)))
    stable.start("one", "--env", "SECRET=planted-secret-value", mode=mode)
    sending = stable.site.start("session", "send", "one", "-", stdin=subprocess.PIPE)
    assert sending.stdin is not None
    sending.stdin.write(b"a canary-word in the prompt")
    sending.stdin.close()
    sending.stdin = None
    eventually(lambda: stable.state("one") == "working", SLOW)
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                line = (folder / "cmdline").read_bytes()
            except OSError:
                continue
            assert b"canary-word" not in line
            assert b"planted-secret" not in line
    sending.communicate(timeout=SLOW)
    for path in stable.site.home.rglob("*"):
        if path.is_file() and not path.is_symlink() and "cache" not in path.parts:
            assert path.stat().st_mode & 0o077 == 0, path


def test_gc_puts_in_order_what_was_left(stable: Stable) -> None:
    stable.start("one")
    stable.start("two", mode="tmux")
    mark = stable.row("one").mark
    kill(stable.holder("one"))
    stray = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(300)"], env={**os.environ, "REMUDA_MARK": str(mark)}
    )
    cleared = stable.session("gc", "--json").json
    assert cleared["ended"] == ["one"]
    stray.wait(SLOW)
    assert stable.state("two") == "ready"
    stable.session("stop", "two")
    assert set(stable.session("gc", "--older-than", "0", "--json").json["forgotten"]) == {"one", "two"}  # type: ignore[call-overload]
    assert stable.session("list", "--all", "--json").json["sessions"] == []
    assert not list((stable.site.home / "data" / "sessions").iterdir())


def test_a_headless_run_that_was_killed_is_not_shown_as_running(stable: Stable) -> None:
    stable.play(("long", (Step(text="late", delay=60),)))
    run = stable.site.start("run", "--agent", "rehearsal", "a long one")
    eventually(lambda: stable.session("list", "--json").json["sessions"])
    run.kill()
    run.communicate()
    assert stable.session("list", "--json").json["sessions"] == []
    (ended,) = stable.session("list", "--all", "--json").json["sessions"]  # type: ignore[misc]
    assert (ended["mode"], ended["state"]) == ("headless", "exited")


def test_a_shell_completes_the_names_of_sessions_without_looking_at_them(stable: Stable) -> None:
    def complete(words: str) -> list[str]:
        index = str(len(words.split(" ")) - 1)
        ended = stable.site.remuda(_REMUDA_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=index)
        return [line.partition(",")[2] for line in ended.stdout.split()]

    assert complete("remuda session send ") == []
    for name in ("fix", "fetch", "other"):
        assert stable.start(name).code == 0
    stable.session("stop", "fetch")
    kill(stable.holder("other"))
    assert complete("remuda session send ") == ["other", "fix"]
    for verb in ("show", "attach", "stop", "interrupt", "approve", "screen"):
        assert complete(f"remuda session {verb} f") == ["fix"]
    assert complete("remuda session stop fix o") == ["other"]
    assert complete("remuda session resume ") == ["fetch"]
    assert complete("remuda session send fix ") == []
    assert stable.row("other").state == "ready"
    stable.session("stop", "fix", "other")
    for left in (stable.site.home / "state").glob("remuda.db*"):
        left.unlink()
    (stable.site.home / "state" / "remuda.db").write_text("no database")
    assert complete("remuda session send ") == []
    (stable.site.home / "state" / "remuda.db").unlink()


@pytest.mark.parametrize(
    ("shown", "state"),
    [("anything", "loading"), ("question ? y to trust this folder ? n to leave", "dialog")],
)
def test_a_captured_screen_is_classified(stable: Stable, shown: str, state: str) -> None:
    told = stable.session("screen", "--runtime", "rehearsal", "--classify", stdin=shown.encode()).json
    assert told["state"] == state
    assert (told["rule"] is None) == (state == "loading")
    assert stable.session("screen", "--runtime", "rehearsal").code == 2
    assert stable.session("screen", "one", "--classify").code == 4
    assert stable.session("screen", "--classify", "--runtime", "nobody").code == 4
