"""Agents by name, from the outside: who is picked, who is tried next, who is refused, and where they live."""

from __future__ import annotations

import asyncio
import json
import signal
import sqlite3
import time
from contextlib import aclosing
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.support import PYTHON, SHELL, Ended, Site, eventually, finish

from remuda.operations.requests import RunRequest
from remuda.operations.run import run
from remuda.operations.world import open_world
from remuda.sandbox import abilities

SECRET = "Xyzzy-the-prompt-that-nobody-else-may-see"
SCENARIO = """
name: fleet
rules:
  - when: {model: limited}
    steps: [{status: 429, message: "Rate limit reached. Try again in 40s."}]
  - when: {model: rude}
    steps: [{status: 429, message: "Rate limit reached.\\e[31m\\e]0;ha\\a"}]
  - when: {model: spent}
    steps: [{status: 429, code: insufficient_quota, message: "You exceeded your current quota."}]
  - when: {model: locked}
    steps: [{status: 401, message: "invalid x-api-key"}]
  - when: {model: broken}
    steps: [{status: 400, message: "a bad request"}]
  - when: {model: midway}
    steps:
      - {text: "I have begun.", tool: shell, input: {command: "echo once >> done.txt"}}
      - {status: 429, message: "Rate limit reached."}
  - when: {model: parrot}
    steps: [{text: "{prompt}"}]
  - when: {model: slow}
    steps: [{text: late, delay: 1.5}]
  - when: {model: hangs}
    steps: [{hang: true}]
  - steps: [{text: fine}]
"""
LOOKS = f"""{PYTHON}
import json, os, sys
print(json.dumps({{"type": "system", "subtype": "init", "session_id": "s"}}))
text = json.dumps({{"argv": sys.argv[1:], "env": dict(os.environ)}})
print(json.dumps({{"type": "result", "subtype": "success", "session_id": "s", "result": text}}))
"""


def fleet(site: Site, more: str = "", **models: str) -> None:
    """Agents of the rehearsal runtime, each with a model that behaves in its own way; ``a=b>c`` fails over to
    c."""
    site.env["REHEARSAL_SCENARIO"] = str(site.write("fleet.yaml", SCENARIO))
    text = more
    for name, given in models.items():
        model, _, chain = given.partition(">")
        text += f'\n[agents.{name}]\nruntime = "rehearsal"\nmodel = "{model}"\ntags = ["all"]\n'
        after = json.dumps(chain.split(",") if chain else [])
        text += f'home = "{site.folder}/homes/{name}"\nfailover_to = {after}\n'
    configure(site, text)


def configure(site: Site, text: str) -> None:
    file = site.home / "config" / "config.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def tried(ended: Ended) -> list[tuple[str, str]]:
    told = ended.result["tried"]
    assert isinstance(told, list)
    return [(each["agent"], each["error"]["kind"]) for each in told]


def statuses(site: Site, **env: str) -> dict[str, str]:
    rows = site.remuda("agents", "--json", **env).json["agents"]
    assert isinstance(rows, list)
    return {row["name"]: row["status"] for row in rows}


class TestFailover:
    @pytest.mark.parametrize(
        ("model", "kind"), [("limited", "rate_limit"), ("spent", "quota"), ("locked", "auth")]
    )
    def test_the_next_agent_answers_in_the_same_stream(self, site: Site, model: str, kind: str) -> None:
        fleet(site, a=f"{model}>b", b="good")
        ended = site.remuda("run", "--agent", "a", "--json", SECRET)
        assert ended.code == 0
        assert ended.result["text"] == "fine"
        assert tried(ended) == [("a", kind)]
        assert [event["seq"] for event in ended.events] == [*range(1, len(ended.events) + 1)]
        assert {event["agent"] for event in ended.events} == {"b"}
        assert f"a failed ({kind}): going on with b" in ended.stderr
        assert SECRET not in ended.stderr

    def test_one_that_is_not_installed_is_told_and_passed(self, site: Site) -> None:
        fleet(site, a="limited>claude,b", b="good")
        ended = site.remuda("run", "--agent", "a", "--json", "hi")
        assert tried(ended) == [("claude", "not_installed"), ("a", "rate_limit")]
        assert ended.code == 0

    def test_a_pool_that_is_not_installed_is_followed_by_its_chains(self, site: Site) -> None:
        chain = 'runtime = "codex"\ntags = ["t"]\nfailover_to = ["ok"]\n'
        fleet(site, f"[agents.c1]\n{chain}[agents.c2]\n{chain}", ok="good")
        for asked in (("--agent", "codex"), ("--tag", "t")):
            ended = site.remuda("run", *asked, "--json", "hi")
            assert (ended.code, ended.events[-1]["agent"]) == (0, "ok")
            assert tried(ended) == [("c1", "not_installed"), ("c2", "not_installed")]

    def test_what_the_next_one_cannot_do_is_its_failure_to_start(self, site: Site) -> None:
        site.program("copilot", LOOKS)
        fleet(site, a="limited>copilot,b", b="good")
        asked = ("run", "--agent", "a", "--system-prompt", "Be brief.", "--json", "hi")
        ended = site.remuda(*asked)
        assert (ended.code, ended.result["text"]) == (0, "fine")
        assert tried(ended) == [("a", "rate_limit"), ("copilot", "start_failed")]

    def test_a_model_and_arguments_are_those_of_the_first_ones_runtime(self, site: Site) -> None:
        site.program("claude", LOOKS)
        fleet(site, a="limited>claude")
        ended = site.remuda("run", "--agent", "a", "--model", "limited", "--json", "hi")
        assert tried(ended) == [("a", "rate_limit")]
        assert ended.code == 0
        assert "limited" not in json.loads(str(ended.result["text"]))["argv"]

    def test_a_program_that_does_not_start_is_passed(self, site: Site) -> None:
        fleet(site, a="limited>claude", b="good")
        site.program("claude", "#!/nonexistent/interpreter\n")
        configure(
            site,
            (site.home / "config/config.toml").read_text()
            + '\n[agents.c]\nruntime = "claude"\nfailover_to = ["b"]\n',
        )
        ended = site.remuda("run", "--agent", "c", "--json", "hi")
        assert tried(ended) == [("c", "start_failed")]
        assert ended.code == 0

    def test_one_whose_home_cannot_be_is_passed(self, site: Site) -> None:
        fleet(site, a="good>b", b="good")
        site.folder.joinpath("homes").mkdir()
        site.folder.joinpath("homes", "a").write_text("no folder\n")
        ended = site.remuda("run", "--agent", "a", "--json", "hi")
        assert (ended.code, tried(ended)) == (0, [("a", "start_failed")])

    def test_when_nobody_can_the_last_failure_is_the_result(self, site: Site) -> None:
        fleet(site, a="limited>b", b="locked")
        ended = site.remuda("run", "--agent", "a", "--json", "hi")
        assert ended.code == 6
        assert ended.error["kind"] == "auth"
        assert tried(ended) == [("a", "rate_limit")]

    def test_other_failures_do_not_lead_on(self, site: Site) -> None:
        fleet(site, a="broken>b", b="good")
        ended = site.remuda("run", "--agent", "a", "--json", "hi")
        assert (ended.code, ended.error["kind"], tried(ended)) == (1, "model", [])

    def test_explicit_means_nobody_else(self, site: Site) -> None:
        fleet(site, a="limited>b", b="good")
        ended = site.remuda("run", "--agent", "a", "--policy", "explicit", "--json", "hi")
        assert (ended.code, ended.error["kind"], tried(ended)) == (1, "rate_limit", [])

    def test_the_one_that_was_limited_cools_down_for_as_long_as_it_said(self, site: Site) -> None:
        fleet(site, a="limited>b", b="good")
        site.remuda("run", "--agent", "a", "--json", "hi")
        assert statuses(site)["a"] == "cooling down"
        rows = site.remuda("agents", "--json").json["agents"]
        assert isinstance(rows, list)
        [row] = [each for each in rows if each["name"] == "a"]
        assert "Try again in 40s" in row["reason"]
        assert row["until"].endswith("Z")
        again = site.remuda("run", "--agent", "a", "--json", "hi")
        assert tried(again) == [("a", "rate_limit")]
        assert "going on" not in again.stderr, "it was not called again"
        alone = site.remuda("run", "--agent", "a", "--policy", "explicit", "--json", "hi")
        assert alone.error["kind"] == "rate_limit", "who is named alone is called all the same"

    def test_what_a_model_said_does_not_steer_a_terminal(self, site: Site) -> None:
        fleet(site, a="rude")
        site.remuda("run", "--agent", "a", "hi")
        told = site.remuda("agents").stdout
        assert "Rate limit reached." in told
        assert not {"\x1b", "\a"} & set(told)

    def test_an_answer_ends_the_cooldown(self, site: Site) -> None:
        fleet(site, a="limited")
        site.remuda("run", "--agent", "a", "hi")
        assert statuses(site)["a"] == "cooling down"
        assert site.remuda("run", "--agent", "a", "--model", "good", "hi").stdout == "fine\n"
        assert statuses(site)["a"] == "callable"

    async def test_so_it_does_where_nobody_listens_to_the_end(self, site: Site) -> None:
        fleet(site, a="limited")
        site.remuda("run", "--agent", "a", "hi")
        asked = RunRequest(prompt="hi", agent="a", model="good")
        async with aclosing(run(open_world(site.env, site.cwd), asked, asyncio.Event())) as events:
            async for event in events:
                if event.result is not None:
                    break
        assert statuses(site)["a"] == "callable"

    def test_in_the_middle_it_ends_unless_it_may_go_on_elsewhere(self, site: Site) -> None:
        fleet(site, a="midway>b", b="parrot")
        ended = site.remuda("run", "--agent", "a", "--permission", "bypass", "--json", "Do it.")
        assert ended.error["kind"] == "rate_limit"
        assert tried(ended) == []

    def test_elsewhere_gets_the_prompt_and_what_was_done(self, site: Site) -> None:
        fleet(site, a="midway>b", b="parrot")
        ended = site.remuda(
            *("run", "--agent", "a", "--permission", "bypass", "--resume-elsewhere", "--json", "Do it.")
        )
        assert ended.code == 0
        assert tried(ended) == [("a", "rate_limit")]
        heard = ended.result["text"]
        assert isinstance(heard, str)
        assert heard.startswith("Do it.\n\nAnother agent, a, began")
        assert "I have begun." in heard
        assert "echo once >> done.txt" in heard
        assert [event["seq"] for event in ended.events] == [*range(1, len(ended.events) + 1)]
        agents = [event["agent"] for event in ended.events]
        assert (agents[0], agents[-1]) == ("a", "b")
        assert len({event["session"] for event in ended.events}) == 2
        assert (site.cwd / "done.txt").read_text() == "once\n"

    def test_the_time_limit_is_that_of_the_whole_run(self, site: Site) -> None:
        fleet(site, a="limited>b", b="hangs")
        ended = site.remuda("run", "--agent", "a", "--timeout", "10", "--json", "hi")
        assert ended.code == 3
        assert tried(ended) == [("a", "rate_limit")]


class TestTurns:
    def test_agents_of_a_runtime_and_of_a_tag_take_turns_over_all_processes(self, site: Site) -> None:
        fleet(site, a="good", b="good", c="good")
        for arguments in (
            ("--agent", "rehearsal"),
            ("--tag", "ALL"),
            ("--tag", "all", "--policy", "tag-routed"),
        ):
            begun = [site.start("run", *arguments, "--json", "hi") for _ in range(6)]
            names = sorted(str(finish(process).events[-1]["agent"]) for process in begun)
            assert names == ["a", "a", "b", "b", "c", "c"], arguments

    def test_each_keeps_to_its_own_home(self, site: Site) -> None:
        fleet(site, a="good", b="good")
        for _ in range(2):
            assert site.remuda("run", "--agent", "rehearsal", "hi").code == 0
        for name in ("a", "b"):
            home = site.folder / "homes" / name
            assert home.stat().st_mode & 0o777 == 0o700
            assert list(home.rglob("*.jsonl")), f"{name} keeps its own transcripts"
        assert not (site.folder / "rehearsal").exists()
        told = site.remuda("usage", "--json").json
        assert "rehearsal" in json.dumps(told), "and both are counted"

    def test_a_session_goes_on_with_the_agent_that_has_it(self, site: Site) -> None:
        fleet(site, a="good", b="good")
        for name in ("b", "a"):
            first = site.remuda("run", "--agent", name, "--json", "hi")
            session = str(first.events[-1]["session"])
            again = site.remuda("run", "--session", session, "--json", "more")
            assert (again.code, again.events[-1]["agent"]) == (0, name)
            named = site.remuda("run", "--agent", "rehearsal", "--session", session, "--json", "more")
            assert (named.code, named.events[-1]["agent"]) == (0, name)
            other = {"a": "b", "b": "a"}[name]
            refused = site.remuda("run", "--agent", other, "--session", session, "more")
            assert (refused.code, f"belongs to {name}, not to {other}" in refused.stderr) == (2, True)
            after = site.remuda("run", "--session", session, "--json", "more")
            assert (after.code, after.events[-1]["agent"]) == (0, name)
            for known in (session, "of-its-own"):
                tagged = site.remuda("run", "--session", known, "--tag", "all", "more")
                assert (tagged.code, "--tag" in tagged.stderr) == (2, True)

    def test_no_database_is_made_for_a_plain_run(self, site: Site) -> None:
        assert site.remuda("run", "--agent", "rehearsal", "hi").code == 0
        assert not (site.home / "state" / "dispatch.db").exists()


class TestLimits:
    def test_a_place_is_held_until_the_stream_ends(self, site: Site) -> None:
        fleet(site, "dispatch.limits.max_concurrent = 1\n", a="slow")
        first = site.start("run", "--agent", "a", "--json", "hi")
        second = site.start("run", "--agent", "a", "--json", "hi")
        ends = [finish(first).events[-1]["time"], finish(second).events[-1]["time"]]
        assert ends[0] != ends[1]
        assert slots(site) == 0

    def test_one_that_does_not_come_in_time_is_a_rate_limit_and_leads_on(self, site: Site) -> None:
        fleet(site, "", a="good>b", b="good")
        text = (
            (site.home / "config/config.toml")
            .read_text()
            .replace("[agents.b]", 'limits = {rate = "1/h", burst = 1}\n[agents.b]')
        )
        configure(site, text)
        assert tried(site.remuda("run", "--agent", "a", "--json", "hi")) == []
        assert tried(site.remuda("run", "--agent", "a", "--json", "hi")) == [("a", "rate_limit")]
        alone = site.remuda(
            *("run", "--agent", "a", "--policy", "explicit", "--queue-within", "0", "--json", "hi")
        )
        assert alone.error["kind"] == "rate_limit"
        assert statuses(site)["a"] == "callable", "a limit of ours says nothing about the agent"

    def test_who_is_not_installed_is_nobody_to_turn_to(self, site: Site) -> None:
        fleet(site, "dispatch.limits.max_concurrent = 1\n", a="slow>codex")
        first = site.start("run", "--agent", "a", "--json", "hi")
        eventually(lambda: slots(site) == 1)
        second = site.remuda("run", "--agent", "a", "--json", "hi")
        assert (finish(first).code, second.code) == (0, 0)
        assert tried(second) == [("codex", "not_installed")]

    def test_two_runs_of_one_session_do_not_take_each_others_place(self, site: Site) -> None:
        fleet(site, "dispatch.limits.max_concurrent = 2\n", a="slow")
        session = str(site.remuda("run", "--agent", "a", "--json", "hi").events[-1]["session"])
        both = [site.start("run", "--session", session, "--json", "hi") for _ in range(2)]
        for ended in map(finish, both):
            assert ended.code == 0 or "runs already" in ended.stderr
        assert slots(site) == 0

    def test_the_time_limit_holds_for_waiting_too(self, site: Site) -> None:
        fleet(site, "dispatch.limits.max_concurrent = 1\n", a="hangs")
        first = site.start("run", "--agent", "a", "--json", "hi")
        eventually(lambda: slots(site) == 1)
        started = time.monotonic()
        second = site.remuda("run", "--agent", "a", "--timeout", "0.5", "--json", "hi")
        assert (second.code, second.error["kind"]) == (3, "timeout")
        assert "--timeout" in str(second.error["message"])
        assert time.monotonic() - started < 20
        first.send_signal(signal.SIGINT)
        finish(first)

    @pytest.mark.parametrize("option", ["--timeout", "--idle-timeout", "--queue-within"])
    def test_what_is_no_number_is_no_time(self, site: Site, option: str) -> None:
        assert site.remuda("run", "--agent", "rehearsal", option, "nan", "hi").code == 2

    def test_waiting_can_be_interrupted(self, site: Site) -> None:
        fleet(site, "dispatch.limits.max_concurrent = 1\n", a="hangs")
        first = site.start("run", "--agent", "a", "--json", "hi")
        eventually(lambda: slots(site) == 1)
        second = site.start("run", "--agent", "a", "--json", "hi")
        eventually(lambda: slots(site) == 2)
        for process, left in ((second, 1), (first, 0)):
            process.send_signal(signal.SIGINT)
            ended = finish(process, 60)
            assert (ended.code, ended.error["kind"]) == (130, "cancelled")
            assert slots(site) == left
        assert site.processes() == []


def slots(site: Site) -> int:
    """How many runs hold a place, or wait for one."""
    try:
        with sqlite3.connect(site.home / "state" / "dispatch.db") as database:
            return int(database.execute("SELECT count(*) FROM slots").fetchone()[0])
    except sqlite3.OperationalError:
        return 0


class TestGate:
    @pytest.mark.parametrize("verb", [("run",), ("send", "--mode", "spawn-only")])
    def test_who_is_never_called_needs_not_pass(self, site: Site, verb: tuple[str, ...]) -> None:
        off = '[agents.off]\nruntime = "rehearsal"\nsandbox = "nosuch"\ndisabled = true\n'
        fleet(site, off, a="good>off")
        asked = ("--agent", "a", "hi") if verb == ("run",) else ("a", "hi")
        assert site.remuda(*verb, *asked).code == 0

    def test_danger_comes_first(self, site: Site) -> None:
        fleet(site, a="good")
        arguments = ("run", "--agent", "a", "--json", "--sandbox", "danger-full-access")
        refused = site.remuda(*arguments, "--unattended", "--permission", "bypass", "hi")
        assert refused.code == 5
        assert "requires --unsafe-yes confirmation. This profile bypasses all" in refused.error["message"]
        assert site.remuda(*arguments, "--unsafe-yes", "hi").code == 0

    @pytest.mark.parametrize(
        ("options", "config", "told"),
        [
            (("--sandbox", "nowhere"), "", "nowhere"),
            (("--unattended", "--permission", "bypass"), "", "not trusted yet"),
            ((), 'limits = {rate = "often"}', "expect"),
            ((), 'sandbox = "nowhere"', "nowhere"),
            ((), 'sandbox = "danger-full-access"', "requires --unsafe-yes"),
        ],
    )
    def test_who_was_named_is_refused(
        self, site: Site, options: tuple[str, ...], config: str, told: str
    ) -> None:
        fleet(site, b="good")
        text = (site.home / "config/config.toml").read_text()
        configure(site, f'{text}\n[agents.a]\nruntime = "rehearsal"\n{config}\nfailover_to = ["b"]\n')
        ended = site.remuda("run", "--agent", "a", *options, "--json", "hi")
        assert (ended.code, ended.error["kind"], tried(ended)) == (5, "refused", [])
        assert told in ended.error["message"]

    def test_a_refused_one_in_the_chain_is_never_routed_around(self, site: Site) -> None:
        fleet(site, a="good>b", c="good")
        text = (site.home / "config/config.toml").read_text()
        configure(
            site, f'{text}\n[agents.b]\nruntime = "rehearsal"\nsandbox = "nowhere"\nfailover_to = ["c"]\n'
        )
        ended = site.remuda("run", "--agent", "a", "--json", "hi")
        assert (ended.code, ended.error["kind"]) == (5, "refused")
        assert ended.events[-1]["agent"] == "b"
        assert not (site.folder / "homes").exists(), "nobody was started"

    @pytest.mark.parametrize("fails", ["exit 1", 'exec /usr/bin/bwrap --bind /nonexistent /x "$@"'])
    async def test_walls_that_cannot_be_built_after_all_lead_to_nobody_else(
        self, site: Site, monkeypatch: pytest.MonkeyPatch, fails: str
    ) -> None:
        """What turns out at the last moment is a refusal like any other; b has no walls."""
        walled = '[agents.a]\nruntime = "rehearsal"\nsandbox = "workspace"\nfailover_to = ["b"]\n'
        fleet(site, walled, b="good")
        able = replace(abilities.look(site.env), bubblewrap=str(site.program("walls", f"{SHELL}{fails}\n")))
        monkeypatch.setattr(abilities, "look", lambda _environ: able)
        asked = RunRequest(prompt="hi", agent="a")
        told = [event async for event in run(open_world(site.env, site.cwd), asked, asyncio.Event())]
        result = told[-1].result
        assert result is not None
        assert result.error is not None
        assert (told[-1].agent, result.error.kind, result.tried) == ("a", "refused", ())

    @pytest.mark.parametrize("file", ["trusted.json", "secrets.toml"])
    def test_what_cannot_be_looked_at_is_an_objection(self, site: Site, file: str) -> None:
        fleet(site, a="good>b", b="good")
        (site.home / "config" / file).mkdir()
        ended = site.remuda(
            *("run", "--agent", "a", "--unattended", "--permission", "bypass", "--json", "hi"),
            REMUDA_ENDPOINT="",
        )
        assert (ended.code, ended.error["kind"]) == (5, "refused")

    def test_a_capability_that_cannot_be_enforced_is_refused(self, site: Site) -> None:
        configure(site, '[agents.x]\nruntime = "amplifier"\n')
        site.program("amplifier", f"{SHELL}echo 0.1.0\n")
        ended = site.remuda("run", "--agent", "x", "--capability", "builder", "--json", "hi")
        assert (ended.code, ended.error["kind"]) == (5, "refused")

    def test_a_session_passes_the_same_gate(self, site: Site) -> None:
        fleet(site, a="good")
        ended = site.remuda("session", "start", "s", "--agent", "a", REMUDA_ORIGIN="a:1")
        assert ended.code == 5
        assert "would loop" in ended.stderr


class TestOrigin:
    def inner(self, site: Site, *arguments: str) -> Path:
        """An agent that calls Remuda from within, and tells how that ended."""
        command = " ".join(("remuda", "run", "--json", *arguments, "hi"))
        tail = 'json.dumps({"code": ended.returncode, "said": ended.stdout.decode()[-2000:]})'
        return site.program(
            "claude",
            f"{PYTHON}import json, os, subprocess\n"
            'print(json.dumps({"type": "system", "subtype": "init", "session_id": "s"}))\n'
            f"scrubbed = {{'PATH': {str(site.bin)!r}, 'REMUDA_HOME': {str(site.home)!r},"
            f" 'HOME': {str(site.folder)!r}}}\n"
            f"ended = subprocess.run({command!r}, shell=True, env=scrubbed, capture_output=True)\n"
            'print(json.dumps({"type": "result", "subtype": "success", "session_id": "s",'
            f' "result": {tail}}}))\n',
        )

    def called(self, site: Site, *arguments: str) -> tuple[int, str]:
        self.inner(site, *arguments)
        ended = site.remuda("run", "--agent", "claude", "--json", "go")
        text = ended.result["text"]
        assert isinstance(text, str), ended.stdout
        document = json.loads(text)
        return document["code"], document["said"]

    def test_an_agent_that_scrubs_its_environment_cannot_call_itself(self, site: Site) -> None:
        code, said = self.called(site, "--agent", "claude")
        assert code == 5
        assert "refusing to dispatch to the calling session" in said

    def test_it_may_call_another(self, site: Site) -> None:
        code, said = self.called(site, "--agent", "rehearsal")
        assert code == 0, said

    def test_nested_goes_only_so_deep(self, site: Site) -> None:
        """Each one calls the next, which tells how that ended: the fourth is refused."""
        code, said = self.called(site, "--agent", "claude", "--nested")
        assert code == 0
        assert "3 agents have called each other already" in said.replace("\\", "")

    @pytest.mark.parametrize(
        ("variable", "agent"), [("CLAUDE_CODE_SESSION_ID", "claude"), ("CODEX_THREAD_ID", "codex")]
    )
    def test_inside_of_a_runtimes_own_session_it_is_refused(
        self, site: Site, variable: str, agent: str
    ) -> None:
        site.program(agent, LOOKS)
        ended = site.remuda("run", "--agent", agent, "--json", "hi", **{variable: "x"})
        assert (ended.code, ended.error["kind"]) == (5, "refused")
        if agent == "claude":
            assert (
                site.remuda("run", "--agent", agent, "--nested", "--json", "hi", **{variable: "x"}).code == 0
            )

    def test_a_longer_chain_does_not_hide_who_is_above(self, site: Site) -> None:
        self.inner(site, "--agent", "claude")
        program = site.bin / "claude"
        program.write_text(
            program.read_text().replace("scrubbed = {", "scrubbed = {'REMUDA_ORIGIN': 'x:1/y:1', ")
        )
        ended = site.remuda("run", "--agent", "claude", "--json", "go")
        assert json.loads(str(ended.result["text"]))["code"] == 5

    def test_the_chain_is_handed_on(self, site: Site) -> None:
        site.program("claude", LOOKS)
        configure(site, '[agents.work]\nruntime = "claude"\n')
        ended = site.remuda("run", "--agent", "work", "--json", "hi", REMUDA_ORIGIN="codex:1")
        text = ended.result["text"]
        assert isinstance(text, str)
        environ = json.loads(text)["env"]
        assert environ["REMUDA_ORIGIN"] == f"codex:1/work:{ended.events[-1]['session']}"
        assert environ["REMUDA_AGENT_BINARY"] == "work"


class TestNames:
    def test_agents_are_told_with_all_that_is_configured(self, site: Site) -> None:
        site.program("claude", LOOKS)
        configure(
            site,
            '[agents.work]\nruntime = "claude"\ntags = ["fast"]\nfailover_to = ["idle"]\n'
            f'sandbox = "workspace"\nhome = "{site.folder}/w"\n'
            '[agents.idle]\nruntime = "rehearsal"\ndisabled = true\n',
        )
        rows = site.remuda("agents", "--json").json["agents"]
        assert isinstance(rows, list)
        found = {row["name"]: row for row in rows}
        assert "claude" not in found
        assert "rehearsal" not in found
        work = found["work"]
        assert (work["runtime"], work["status"], work["active"]) == ("claude", "not logged in", True)
        assert (work["tags"], work["failover_to"], work["sandbox"]) == (["fast"], ["idle"], "workspace")
        assert work["home"] == f"{site.folder}/w"
        assert (found["idle"]["status"], found["codex"]["status"]) == ("disabled", "not installed")
        assert statuses(site, ANTHROPIC_API_KEY="k")["work"] == "callable"
        assert statuses(site, REMUDA_ENDPOINT="http://127.0.0.1:1")["work"] == "callable"
        (site.folder / "w").mkdir()
        (site.folder / "w" / ".credentials.json").touch(0o000)
        assert statuses(site)["work"] == "callable"
        table = site.remuda("agents").stdout
        assert "work" in table
        assert "fast" in table

    def test_names_are_known_to_which_use_and_the_environment(self, site: Site) -> None:
        configure(site, '[agents.work]\nruntime = "claude"\n')
        assert site.remuda("use", "Work").code == 0
        assert site.remuda("which", "--json").json["agent"] == "work"
        assert site.remuda("which", REMUDA_AGENT_BINARY="work").stdout == "work\n"
        assert "work" in site.remuda("which", "--shell-snippet").stdout
        configure(site, "")
        gone = site.remuda("which", "--json").json
        assert gone["source"] == "default"

    def test_the_only_one_that_can_be_called_is_taken(self, site: Site) -> None:
        site.program("claude", LOOKS)
        configure(
            site, '[agents.work]\nruntime = "claude"\n[agents.off]\nruntime = "claude"\ndisabled = true\n'
        )
        document = site.remuda("which", "--json").json
        assert (document["agent"], document["source"]) == ("work", "sole")
        assert site.remuda("run", "--json", "hi").events[-1]["agent"] == "work"

    def test_the_default_may_have_a_name_of_its_own(self, site: Site) -> None:
        for name in ("claude", "copilot"):
            site.program(name, LOOKS)
        configure(site, '[agents.gh]\nruntime = "copilot"\n')
        assert site.remuda("run", "--json", "hi").events[-1]["agent"] == "gh"

    def test_where_nobody_is_named_the_ways_are(self, site: Site) -> None:
        for name in ("claude", "codex"):
            site.program(name, LOOKS)
        configure(site, '[agents.c1]\nruntime = "codex"\n[agents.c2]\nruntime = "codex"\n')
        for verb in (("run", "hi"), ("session", "start", "s")):
            ended = site.remuda(*verb)
            assert ended.code == 2, verb
            assert "claude×1, codex×2" in ended.stderr
            for way in ("--agent", "REMUDA_AGENT_BINARY", "remuda use", "config.toml"):
                assert way in ended.stderr
        site.program("copilot", LOOKS)
        assert site.remuda("which").stdout == "copilot\n"
        assert site.remuda("run", "--json", "hi").events[-1]["agent"] == "copilot"

    @pytest.mark.parametrize(
        ("text", "key"),
        [
            ('[agents.a]\nruntime = "clade"\n', "agents.a.runtime"),
            ('[agents.a]\nruntime = "claude"\nfailover_to = ["b"]\n', "agents.a.failover_to"),
            ('[agents."A B"]\nruntime = "claude"\n', "agents.A B"),
        ],
    )
    def test_what_is_wrong_in_the_configuration_names_its_key(self, site: Site, text: str, key: str) -> None:
        configure(site, text)
        ended = site.remuda("agents")
        assert ended.code == 2
        assert key in ended.stderr

    def test_a_disabled_one_is_not_called(self, site: Site) -> None:
        configure(site, '[agents.a]\nruntime = "rehearsal"\ndisabled = true\n')
        ended = site.remuda("run", "--agent", "a", "hi")
        assert ended.code == 6
        assert "a is disabled" in ended.stderr

    def test_launch_honours_an_agent(self, site: Site) -> None:
        site.program("claude", f'{SHELL}echo "$CLAUDE_CONFIG_DIR $REMUDA_AGENT_BINARY"\n')
        configure(site, f'[agents.work]\nruntime = "claude"\nhome = "{site.folder}/w"\n')
        assert site.remuda("launch", "work").stdout == f"{site.folder}/w work\n"
        assert site.remuda("claude").stdout == f"{site.folder}/w work\n"
        assert site.remuda("work").stdout == f"{site.folder}/w work\n"
        configure(site, '[agents.work]\nruntime = "claude"\ndisabled = true\n')
        assert site.remuda("work").code == 6

    @pytest.mark.parametrize(("sandbox", "code"), [("offline", 5), ("nosuch", 5), ("danger-full-access", 0)])
    def test_who_always_has_walls_is_not_launched_without(self, site: Site, sandbox: str, code: int) -> None:
        site.program("claude", f"{SHELL}echo started\n")
        configure(site, f'[agents.work]\nruntime = "claude"\nsandbox = "{sandbox}"\n')
        for verb in (("launch", "work"), ("work",), ("claude",)):
            ended = site.remuda(*verb)
            assert (ended.code, ended.stdout == "started\n") == (code, code == 0)

    def test_a_session_honours_an_agent_and_is_resumed_with_it(self, site: Site) -> None:
        fleet(site, a="good", b="parrot")
        assert site.remuda("session", "start", "s", "--agent", "b").code == 0
        try:
            assert (site.folder / "homes" / "b").is_dir()
            rows = site.remuda("session", "list", "--json").json["sessions"]
            assert isinstance(rows, list)
            assert [row["agent"] for row in rows] == ["b"]
            assert site.remuda("session", "stop", "s").code == 0
            assert site.remuda("session", "resume", "s").code == 0
            rows = site.remuda("session", "list", "--json").json["sessions"]
            assert isinstance(rows, list)
            assert [row["agent"] for row in rows] == ["b"]
        finally:
            site.remuda("session", "stop", "s")
