"""What the table says about effects, by capability."""

from __future__ import annotations

from typing import get_args

import pytest

from remuda.dispatch.capability import DUTIES
from remuda.guard import hosts
from remuda.guard.model import (
    UNKNOWN,
    AnyEffect,
    Capability,
    Context,
    Decision,
    Environment,
    Evaluate,
    Execute,
    Git,
    GitOperation,
    How,
    Network,
    Read,
    System,
    SystemKind,
    Tool,
    ToolKind,
    Unknown,
    Word,
    Write,
    literal,
)
from remuda.guard.paths import Terrain
from remuda.guard.policy import explain, strictest, weigh
from remuda.guard.table import COLUMNS, TABLE
from remuda.surfaces.cli.runoptions import CAPABILITIES

READERS: tuple[Capability, ...] = ("scout", "reviewer")
LEADERS: tuple[Capability, ...] = ("lead", "coordinator")
GUARDED: tuple[Capability, ...] = ("scout", "reviewer", "lead", "coordinator", "builder", "merger")


class Nothing:
    """A file system without links."""

    def link(self, path: str) -> str | None:
        return None

    def entries(self, folder: str) -> tuple[tuple[str, bool], ...]:
        return ()

    def folder(self, path: str) -> bool:
        return True


def decide(capability: Capability, *effects: AnyEffect) -> Decision:
    context = Context(
        capability=capability, worktree="/w/one", project_root="/w", home="/home/alice", branch_prefix="mine/"
    )
    weighed = weigh(effects, context, Terrain(context, "/w/one", Nothing()))
    return strictest(each.decision for each in weighed)


def write(path: str, how: How = "truncate", *, forced: bool = False, target: str | None = None) -> Write:
    return Write(
        path=literal(path), how=how, forced=forced, follows=False, target=literal(target) if target else None
    )


def read(path: str, *, names: bool = False) -> Read:
    return Read(path=literal(path), names=names)


@pytest.mark.parametrize("capability", [*READERS, *LEADERS])
@pytest.mark.parametrize("path", ["/w/one/x", "/w/x", "/tmp/x", "/home/alice/x", "/etc/x"])
def test_who_only_reads_changes_nothing(capability: Capability, path: str) -> None:
    assert decide(capability, write(path)) == "deny"
    assert decide(capability, Write(path=UNKNOWN, how="edit")) == "deny"
    assert decide(capability, read(path)) == "allow"


@pytest.mark.parametrize("capability", ["builder", "merger"])
@pytest.mark.parametrize(
    ("effect", "expected"),
    [
        (write("/w/one/x"), "allow"),
        (write("/w/one/x", "delete"), "allow"),
        (write("/w/one/x", "delete-tree", forced=True), "allow"),
        (write("/w/one", "mode"), "allow"),
        (write("/dev/null"), "allow"),
        (write("/w/x"), "deny"),
        (write("/w/two/x"), "deny"),
        (write("/home/alice/x"), "deny"),
        (write("/etc/x"), "deny"),
        (write("/dev/sda"), "deny"),
        (write("/tmp/x"), "ask"),
        (write("/w/one", "delete-tree"), "deny"),
        (write("/w/one", "rename"), "deny"),
        (write("/w", "delete-tree"), "deny"),
        (write("/w/one/.git", "delete-tree"), "deny"),
        (write("/w/one/.git/hooks/pre-commit"), "deny"),
        (write("/w/one/.claude/settings.json"), "deny"),
        (write("/w/one/.remuda/config.toml"), "deny"),
        (write("/w/one/.github/workflows/ci.yml"), "ask"),
        (write("/w/one/.env"), "allow"),
        (Write(path=UNKNOWN, how="edit"), "ask"),
        (Write(path=UNKNOWN, how="delete-tree"), "ask"),
        (Write(path=Word(("/w/one/a", "/w/two/a")), how="edit"), "deny"),
        (write("/w/one/l", "link", target="src"), "allow"),
        (write("/w/one/l", "link", target="/w"), "ask"),
    ],
)
def test_who_builds_changes_its_worktree(capability: Capability, effect: Write, expected: Decision) -> None:
    assert decide(capability, effect) == expected


def test_a_link_out_of_the_worktree_is_not_a_way_out() -> None:
    link = write("/w/one/l", "link", target="/w")
    assert decide("builder", link, Write(path=literal("/w/one/l/x"), how="create")) == "deny"
    assert decide("builder", Write(path=literal("/w/one/l/x"), how="create")) == "allow"


@pytest.mark.parametrize(
    ("effect", "expected"),
    [
        (write("/w/one/x"), "allow"),
        (write("/w/two/x"), "allow"),
        (write("/home/alice/x"), "allow"),
        (write("/x/y", "delete"), "allow"),
        (write("/x/y", "delete-tree"), "allow"),
        (write("/tmp/x", "delete-tree", forced=True), "allow"),
        (Write(path=literal("/tmp/x"), how="delete-tree", forced=True, via=("find",)), "deny"),
        (Execute(program=literal("1A=2"), argv=(literal("ls"),)), "ask"),
        (Execute(program=literal("frobnicate"), via=("xargs", "bash")), "ask"),
        (write("/etc/x"), "ask"),
        (write("/home/alice/.bashrc", "append"), "ask"),
        (write("/w/one/.claude/settings.json"), "ask"),
        (write("/x/y", "delete-tree", forced=True), "deny"),
        (write("/w/one/build", "delete-tree", forced=True), "deny"),
        (write("/etc/x", "delete"), "deny"),
        (write("/", "delete-tree"), "deny"),
        (write("/home/alice", "delete-tree"), "deny"),
        (write("/dev/sda"), "deny"),
        (Write(path=UNKNOWN, how="delete-tree", forced=True), "deny"),
        (Write(path=UNKNOWN, how="append"), "allow"),
        (Git(operation="push"), "allow"),
        (Git(operation="push", forced=True), "deny"),
        (Git(operation="discard"), "deny"),
        (Git(operation="branch", refs=(literal("any"),)), "allow"),
        (Git(operation="commit", repository=literal("/x")), "allow"),
        (System(kind="privilege"), "allow"),
        (System(kind="container"), "allow"),
        (System(kind="container", destroys=True), "ask"),
        (System(kind="power"), "deny"),
        (Execute(program=literal("frobnicate")), "allow"),
        (Evaluate(language="sh", origin=frozenset({"network"})), "deny"),
        (Network(direction="send", host=literal("x.example"), carries=frozenset({"secret"})), "deny"),
        (Tool(name="Task", kind="team"), "allow"),
        (Unknown(why="who knows"), "ask"),
    ],
)
def test_a_person_watching_stops_only_what_destroys(effect: AnyEffect, expected: Decision) -> None:
    assert decide("supervised", effect) == expected


@pytest.mark.parametrize("capability", GUARDED)
def test_secrets_are_read_by_nobody(capability: Capability) -> None:
    assert decide(capability, read("/home/alice/.ssh/id_rsa")) == "deny"
    assert decide(capability, read("/proc/self/environ")) == "deny"
    assert decide(capability, read("/w/one/.env")) == "ask"
    assert decide(capability, read("/w/one/.env.example")) == "allow"
    assert decide(capability, read("/home/alice/.ssh/id_rsa.pub")) == "allow"
    assert decide(capability, read("/home/alice/.ssh/id_rsa", names=True)) == "ask"
    assert decide(capability, read("/w/one/.env", names=True)) == "allow"


@pytest.mark.parametrize("capability", GUARDED)
@pytest.mark.parametrize(
    "effect",
    [
        Git(operation="discard"),
        Git(operation="rewrite"),
        Git(operation="remote"),
        Git(operation="execute", detail="core.pager"),
        Git(operation="push", forced=True),
        Git(operation="worktree"),
        Git(operation="tag", forced=True),
        Git(operation="commit", repository=literal("/w")),
        Evaluate(language="sh", origin=frozenset({"network"})),
        Evaluate(language="sh", origin=frozenset({"decoder", "file"})),
        Evaluate(language="sh", origin=frozenset({"unknown"})),
        Network(direction="send", host=literal("x.example")),
        Network(direction="get", host=literal("x.example"), carries=frozenset({"secret"})),
        Network(direction="get", host=literal("169.254.169.254")),
        System(kind="privilege", detail="sudo"),
        System(kind="cluster"),
        System(kind="agent"),
        Environment(action="set", name="LD_PRELOAD"),
        Environment(action="set", name="REMUDA_HOME"),
        Environment(action="set", name="GIT_PAGER", value=literal("touch x")),
        Tool(name="Task", kind="team"),
        Tool(name="AskUserQuestion", kind="interactive"),
        Tool(name="create_issue", kind="changes"),
        Tool(name="Write", kind="malformed"),
    ],
)
def test_what_no_agent_of_its_own_may_do(capability: Capability, effect: AnyEffect) -> None:
    assert decide(capability, effect) == "deny"


@pytest.mark.parametrize("capability", GUARDED)
@pytest.mark.parametrize(
    "effect",
    [
        Git(operation="read"),
        Environment(action="set", name="FOO"),
        Environment(action="set", name="PAGER", value=literal("cat")),
        Environment(action="set", name="NODE_OPTIONS", value=literal("--max-old-space-size=4096")),
        Environment(action="show", name="HOME"),
        Tool(name="TodoWrite", kind="plain"),
        Tool(name="get_issue", kind="reads"),
    ],
)
def test_what_every_agent_may_do(capability: Capability, effect: AnyEffect) -> None:
    assert decide(capability, effect) == "allow"


@pytest.mark.parametrize("capability", GUARDED)
@pytest.mark.parametrize(
    "effect",
    [
        Unknown(why="who knows"),
        Execute(program=literal("frobnicate")),
        Evaluate(language="python"),
        Environment(action="show", name="*"),
        Environment(action="show", name="GITHUB_TOKEN"),
        Environment(action="set", name="PATH"),
        Tool(name="Frobnicate", kind="unknown"),
    ],
)
def test_what_cannot_be_told_is_asked(capability: Capability, effect: AnyEffect) -> None:
    assert decide(capability, effect) == "ask"


@pytest.mark.parametrize(
    ("effect", "scout", "lead", "builder", "merger"),
    [
        (Execute(program=literal("make"), kind="project"), "ask", "ask", "allow", "allow"),
        (Network(direction="get", host=literal("x.example")), "ask", "ask", "allow", "allow"),
        (Network(direction="send", host=literal("127.0.0.1")), "ask", "ask", "allow", "allow"),
        (Git(operation="index"), "deny", "ask", "allow", "allow"),
        (Git(operation="commit", forced=True), "deny", "ask", "allow", "allow"),
        (Git(operation="merge"), "deny", "deny", "allow", "allow"),
        (Git(operation="branch", detail="switch"), "deny", "deny", "ask", "allow"),
        (Git(operation="config"), "deny", "deny", "ask", "ask"),
        (Git(operation="config", detail="global"), "deny", "deny", "deny", "deny"),
        (Execute(program=literal("/w/one/.env"), kind="project"), "ask", "ask", "ask", "ask"),
        (Git(operation="stash"), "deny", "deny", "ask", "ask"),
        (Git(operation="push"), "deny", "deny", "deny", "ask"),
        (Git(operation="branch", refs=(literal("mine/x"),)), "deny", "deny", "allow", "allow"),
        (Git(operation="branch", refs=(literal("refs/heads/mine/x"),)), "deny", "deny", "allow", "allow"),
        (Git(operation="branch", refs=(literal("other"),)), "deny", "deny", "deny", "allow"),
        (Git(operation="branch", refs=(UNKNOWN,)), "deny", "deny", "deny", "allow"),
        (Evaluate(language="sh", origin=frozenset({"file"})), "deny", "deny", "ask", "ask"),
    ],
)
def test_capabilities_differ(
    effect: AnyEffect, scout: Decision, lead: Decision, builder: Decision, merger: Decision
) -> None:
    decided = [decide(each, effect) for each in ("scout", "lead", "builder", "merger")]
    assert decided == [scout, lead, builder, merger]


def test_a_program_from_elsewhere_is_not_the_projects() -> None:
    assert decide("builder", Execute(program=literal("/w/one/run.sh"), kind="project")) == "allow"
    assert decide("builder", Execute(program=literal("/tmp/run.sh"), kind="project")) == "ask"
    assert decide("builder", Execute(program=literal("/w/two/run.sh"), kind="project")) == "ask"


def test_a_program_that_is_sent_out_of_the_worktree_is_asked_about() -> None:
    def run(*argv: str, at: str | None = "/w/one") -> Decision:
        words = tuple(map(literal, argv))
        return decide(
            "builder", Execute(program=words[0], argv=words, kind="project", at=literal(at) if at else None)
        )

    assert run("black", "/w/one/src") == "allow"
    assert run("black", "/w/two") == "ask"
    assert run("black", "..") == "ask"
    assert run("black", "..", at="/w/one/src") == "allow"
    assert run("tsc", "--outDir=../out") == "ask"
    assert run("python3", "-m", "tests", "/usr/share/x", "/dev/null", "http://x.example/y") == "allow"
    assert run("black", "..", at=None) == "allow"


def test_what_was_downloaded_is_not_run() -> None:
    download = Write(path=literal("/w/one/x.sh"), how="create", content=frozenset({"network"}))
    run = Execute(program=literal("bash"), argv=(literal("x.sh"),), kind="project")
    assert decide("builder", download) == "allow"
    assert decide("builder", run) == "allow"
    assert decide("builder", download, run) == "deny"
    assert decide("supervised", download, run) == "deny"


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        *(("localhost", "local"), ("127.0.0.1", "local"), ("127.1", "local"), ("0x7f.1", "local")),
        *(("[::1]", "local"), ("0.0.0.0", "local"), ("app.localhost", "local")),
        *(("169.254.169.254", "metadata"), ("2852039166", "metadata"), ("0xa9fea9fe", "metadata")),
        *(("169.254.43518", "metadata"), ("[::ffff:169.254.169.254]", "metadata")),
        *(("metadata.google.internal.", "metadata"), ("0251.0376.0251.0376", "metadata")),
        *(("example.com", "far"), ("127.evil.example", "far"), ("localhost.evil.example", "far")),
        *(("8.8.8.8", "far"), ("1.2.3.4.5", "far"), ("", "far"), ("256.1.1.1", "far"), ("a" * 99, "far")),
    ],
)
def test_hosts_are_known_however_they_are_spelled(host: str, expected: str) -> None:
    assert hosts.kind(host) == expected


def test_the_strictest_finding_decides() -> None:
    assert decide("builder", write("/w/one/x"), write("/tmp/x")) == "ask"
    assert decide("builder", write("/tmp/x"), write("/w/x"), write("/w/one/x")) == "deny"


def test_every_row_speaks_for_every_capability() -> None:
    assert set(COLUMNS) == set(get_args(Capability))
    for rule, row in TABLE.items():
        assert len(row.columns) == 5, rule
        for capability in COLUMNS:
            assert row.decision(capability) in ("allow", "ask", "deny")


def test_every_kind_has_a_row() -> None:
    assert {f"system.{kind}" for kind in get_args(SystemKind)} <= set(TABLE)
    assert {f"tool.{kind}" for kind in get_args(ToolKind)} - set(TABLE) == {"tool.plain", "tool.reads"}
    assert {f"git.{operation}" for operation in get_args(GitOperation)} - set(TABLE) == {"git.read"}


def test_nobody_may_more_than_a_builder_but_a_watched_agent() -> None:
    strict: dict[Decision, int] = {"allow": 0, "ask": 1, "deny": 2}
    for rule, row in TABLE.items():
        reader, builder = row.decision("scout"), row.decision("builder")
        assert strict[reader] >= strict[builder], rule
        assert strict[row.decision("lead")] <= strict[reader], rule


def test_reasons_and_hints_are_in_words() -> None:
    context = Context(capability="scout", worktree="/w/one", branch_prefix="mine/")
    terrain = Terrain(context, "/w/one", Nothing())
    for rule in TABLE:
        (weighed,) = weigh([write("/w/one/{x}")], context, terrain)
        finding = type(weighed.findings[0])(rule, "/w/{one}/%s")
        reason, hint = explain(finding, context, "/w/one")
        assert reason
        assert "{who}" not in reason + hint
        assert "{ground}" not in reason + hint


def test_every_place_that_lists_the_capabilities_lists_the_same() -> None:
    assert list(COLUMNS) == list(get_args(Capability)) == list(DUTIES) == list(CAPABILITIES)
