"""Which agent is active: names, precedence, explanations, and the launcher context file."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Collection
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda.core.errors import NotFoundError, RefusedError, RemudaError
from remuda.core.ids import ulid
from remuda.dispatch.launcher_context import PLACE, Content, judge, persist, repo_root
from remuda.dispatch.names import Rejected, check_name
from remuda.dispatch.resolve import DEFAULT, Inputs, Resolution, remember, resolve
from remuda.dispatch.shell_twin import shell_snippet

NAMES = ("amplifier", "claude", "codex", "copilot", "rehearsal")
NOW = 1_777_435_975.0


class Warnings(list[tuple[str, dict[str, object]]]):
    """Collects warnings, and can be called like the log."""

    def __call__(self, message: str, **fields: object) -> None:
        self.append((message, fields))


@pytest.fixture
def warnings() -> Warnings:
    return Warnings()


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository in which a launcher context, were there one above, would not be seen."""
    (tmp_path / "repo/.git").mkdir(parents=True)
    return tmp_path / "repo"


def inputs(repo: Path, **changes: object) -> Inputs:
    plain = Inputs(cwd=repo, environ={}, names=NAMES, installed=list, sticky=repo.parent / "active_agent")
    return msgspec.structs.replace(plain, **changes)


def write_context(folder: Path, document: object, mtime: float = NOW) -> Path:
    path = folder / PLACE
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document))
    os.utime(path, (mtime, mtime))
    return path


def outcomes(resolution: Resolution) -> dict[str, str]:
    return {report.source: report.outcome for report in resolution.explain}


class TestNames:
    @pytest.mark.parametrize("raw", ["claude", "  claude ", "CLAUDE", "Claude "])
    def test_case_and_outer_spaces_are_forgiven(self, raw: str) -> None:
        assert check_name(raw, NAMES) == "claude"

    @pytest.mark.parametrize("raw", ["", " ", "      "])
    def test_empty_means_unset(self, raw: str) -> None:
        assert check_name(raw, NAMES) is None

    @pytest.mark.parametrize(
        ("raw", "reason"),
        [
            ("claude\n", "forbidden_character"),
            ("\tclaude", "forbidden_character"),
            ("claude\x7f", "forbidden_character"),
            ("cla\0ude", "forbidden_character"),
            ("bin/claude", "forbidden_character"),
            ("bin\\claude", "forbidden_character"),
            ("..claude", "forbidden_character"),
            ("c" * 33, "too_long"),
            ("é" * 17, "too_long"),
            ("c" * 32, "unknown_name"),
            ("cla ude", "inner_whitespace"),
            ("claude\u00a0", "inner_whitespace"),
            ("cla\u2003ude", "inner_whitespace"),
            ("claud", "unknown_name"),
            ("claude2", "unknown_name"),
            ("claude.", "unknown_name"),
            ("cl\u0430ude", "unknown_name"),
            ("\ud800", "unknown_name"),
        ],
    )
    def test_anything_else_is_refused_with_a_fixed_word(self, raw: str, reason: str) -> None:
        assert check_name(raw, NAMES) == Rejected(reason)

    def test_case_folding_is_ascii_only(self) -> None:
        assert check_name("\u212aelvin", ["kelvin"]) == Rejected("unknown_name")

    @given(raw=st.text())
    def test_the_answer_is_a_name_or_a_word_that_does_not_repeat_the_value(self, raw: str) -> None:
        match check_name(raw, NAMES):
            case None:
                assert not raw.strip(" ")
            case Rejected(reason):
                assert reason in {"forbidden_character", "too_long", "inner_whitespace", "unknown_name"}
            case name:
                assert name == raw.strip(" ").lower()
                assert name in NAMES


class TestPrecedence:
    def test_each_source_yields_to_the_one_before_it(self, repo: Path, warnings: Warnings) -> None:
        write_context(repo, {"launcher": "codex"})
        remember(repo.parent / "active_agent", "amplifier")
        environ = {"REMUDA_AGENT_BINARY": "claude", "AMPLIHACK_AGENT_BINARY": "amplifier"}
        given_all = inputs(
            repo, explicit="codex", environ=environ, config_agent="claude", installed=lambda: ["codex"]
        )
        seen = []

        def answer() -> str:
            resolution = resolve(given_all, now=NOW, warn=warnings)
            seen.append(resolution.source)
            return resolution.agent

        assert answer() == "codex"
        given_all = msgspec.structs.replace(given_all, explicit=None)
        assert answer() == "claude"
        del environ["REMUDA_AGENT_BINARY"]
        assert answer() == "amplifier"
        environ.clear()
        assert answer() == "codex"
        (repo / PLACE).unlink()
        assert answer() == "amplifier"
        (repo.parent / "active_agent").unlink()
        assert answer() == "claude"
        given_all = msgspec.structs.replace(given_all, config_agent=None)
        assert answer() == "codex"
        given_all = msgspec.structs.replace(given_all, installed=lambda: ["codex", "claude"])
        assert answer() == DEFAULT == "copilot"
        assert seen == [report.source for report in resolve(given_all, warn=warnings).explain]
        assert warnings == []

    @pytest.mark.parametrize("name", ["gpt", "claud", "a/b", "", "  "])
    def test_a_wrong_explicit_name_is_an_error_that_lists_the_names(self, repo: Path, name: str) -> None:
        with pytest.raises(NotFoundError, match="amplifier, claude, codex, copilot, rehearsal") as caught:
            resolve(inputs(repo, explicit=name, environ={"REMUDA_AGENT_BINARY": "claude"}))
        assert caught.value.exit_code == 4

    def test_an_explicit_name_is_normalised(self, repo: Path) -> None:
        assert resolve(inputs(repo, explicit=" Codex ")).agent == "codex"

    @pytest.mark.parametrize(
        ("programs", "agent", "source"),
        [
            ([], "copilot", "default"),
            (["claude"], "claude", "sole"),
            (["claude", "rehearsal"], "claude", "sole"),
            (["rehearsal"], "copilot", "default"),
            (["claude", "codex"], "copilot", "default"),
            (["claude", "gpt"], "claude", "sole"),
        ],
    )
    def test_the_only_one_installed(self, repo: Path, programs: list[str], agent: str, source: str) -> None:
        resolution = resolve(inputs(repo, installed=lambda: programs))
        assert (resolution.agent, resolution.source) == (agent, source)


class TestWarnings:
    def test_each_refused_value_is_warned_about_once_and_not_shown(
        self, repo: Path, warnings: Warnings
    ) -> None:
        environ = {"REMUDA_AGENT_BINARY": "sk-secret", "AMPLIHACK_AGENT_BINARY": "sk/secret"}
        (repo.parent / "active_agent").write_text("sk secret\n")
        resolution = resolve(inputs(repo, environ=environ, config_agent="s" * 40), warn=warnings)
        assert resolution.source == "default"
        message = "ignored an invalid agent name"
        assert warnings == [
            (message, {"source": "REMUDA_AGENT_BINARY", "reason": "unknown_name", "value": "<9 bytes>"}),
            (
                message,
                {"source": "AMPLIHACK_AGENT_BINARY", "reason": "forbidden_character", "value": "<9 bytes>"},
            ),
            (message, {"source": "sticky", "reason": "inner_whitespace", "value": "<9 bytes>"}),
            (message, {"source": "config", "reason": "too_long", "value": "<40 bytes>"}),
        ]

    def test_an_unusable_file_is_named_with_its_reason(self, repo: Path, warnings: Warnings) -> None:
        path = write_context(repo, {"launcher": "sk-secret"})
        (repo.parent / "active_agent").mkdir()
        resolve(inputs(repo), now=NOW, warn=warnings)
        assert warnings == [
            (
                "ignored an unusable file",
                {"source": "launcher_context", "reason": "unknown_name", "path": str(path)},
            ),
            (
                "ignored an unusable file",
                {
                    "source": "sticky",
                    "reason": "not_a_regular_file",
                    "path": str(repo.parent / "active_agent"),
                },
            ),
        ]

    def test_what_lies_behind_the_winner_is_not_warned_about(self, repo: Path, warnings: Warnings) -> None:
        write_context(repo, [])
        resolve(inputs(repo, explicit="claude", config_agent="gpt"), full=True, warn=warnings)
        assert warnings == []


class TestExplanation:
    def test_every_source_accounts_for_itself(self, repo: Path, warnings: Warnings) -> None:
        stale = write_context(repo / "a", {"launcher": "codex"}, NOW - 86400)
        broken = write_context(repo / "a/b", "nonsense")
        good = write_context(repo, {"launcher": "claude"})
        environ = {"REMUDA_AGENT_BINARY": "gpt"}
        given_some = inputs(
            repo, cwd=repo / "a/b", environ=environ, config_agent="codex", installed=lambda: ["codex"]
        )
        resolution = resolve(given_some, full=True, now=NOW, warn=warnings)
        sticky = str(repo.parent / "active_agent")
        report = {"value": None, "path": None, "reason": None}
        assert msgspec.to_builtins(resolution) == {
            "agent": "claude",
            "source": "launcher_context",
            "explain": (
                {**report, "source": "explicit", "outcome": "unset"},
                {**report, "source": "REMUDA_AGENT_BINARY", "outcome": "rejected", "reason": "unknown_name"},
                {**report, "source": "AMPLIHACK_AGENT_BINARY", "outcome": "unset"},
                {
                    **report,
                    "source": "launcher_context",
                    "outcome": "rejected",
                    "path": str(broken),
                    "reason": "not_an_object",
                },
                {
                    **report,
                    "source": "launcher_context",
                    "outcome": "stale",
                    "path": str(stale),
                    "reason": "stale",
                },
                {
                    **report,
                    "source": "launcher_context",
                    "outcome": "won",
                    "path": str(good),
                    "value": "claude",
                },
                {**report, "source": "sticky", "outcome": "unset", "path": sticky},
                {**report, "source": "config", "outcome": "lost", "value": "codex"},
                {**report, "source": "sole", "outcome": "lost", "value": "codex"},
                {**report, "source": "default", "outcome": "lost", "value": "copilot"},
            ),
        }

    def test_without_need_nothing_is_looked_up(self, repo: Path) -> None:
        def installed() -> Collection[str]:
            raise AssertionError("nobody asked")

        resolution = resolve(inputs(repo, environ={"REMUDA_AGENT_BINARY": "claude"}, installed=installed))
        assert outcomes(resolution)["sole"] == "unchecked"
        assert outcomes(resolution)["launcher_context"] == "unchecked"

    def test_it_can_always_be_written_as_json(self, repo: Path, warnings: Warnings) -> None:
        odd = repo / os.fsdecode(b"\xff")
        odd.mkdir()
        write_context(odd, {"launcher": "\ud800"})
        resolution = resolve(inputs(odd), full=True, now=NOW, warn=Warnings())
        assert json.loads(msgspec.json.encode(resolution))["agent"] == "copilot"


class TestLauncherContext:
    def test_what_is_written_is_read_back(self, repo: Path, warnings: Warnings) -> None:
        session = ulid()
        path = persist(repo, "codex", session, repo / "a", NOW, "1.2.3")
        assert json.loads(path.read_bytes()) == {
            "launcher": "codex",
            "session_id": session,
            "cwd": str(repo / "a"),
            "started_at": "2026-04-29T04:12:55Z",
            "amplihack_version": "1.2.3",
            "remuda_version": "1.2.3",
        }
        assert path == repo / PLACE
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert path.read_bytes().startswith(b'{\n  "launcher"')
        assert [entry.name for entry in path.parent.iterdir()] == [path.name]
        assert resolve(inputs(repo), now=NOW, warn=warnings).agent == "codex"
        assert warnings == []

    def test_it_is_replaced(self, repo: Path) -> None:
        write_context(repo, {"launcher": "claude"}).chmod(0o644)
        path = persist(repo, "codex", ulid(), repo, NOW, "1")
        assert json.loads(path.read_bytes())["launcher"] == "codex"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600

    @pytest.mark.parametrize("link", [".claude", ".claude/runtime", str(PLACE)])
    def test_a_link_that_leads_out_is_refused(self, repo: Path, link: str) -> None:
        outside = repo.parent / "outside"
        outside.mkdir()
        (repo / link).parent.mkdir(parents=True, exist_ok=True)
        (repo / link).symlink_to(outside / "file" if link.endswith("json") else outside)
        with pytest.raises(RefusedError):
            persist(repo, "codex", ulid(), repo, NOW, "1")
        assert list(outside.iterdir()) == []

    def test_a_link_that_stays_inside_is_followed(self, repo: Path, warnings: Warnings) -> None:
        (repo / "settings").mkdir()
        (repo / ".claude").symlink_to("settings")
        persist(repo, "codex", ulid(), repo, NOW, "1")
        assert (repo / ".claude").is_symlink()
        assert resolve(inputs(repo), now=NOW, warn=warnings).agent == "codex"

    def test_a_circular_link_is_refused(self, repo: Path) -> None:
        (repo / ".claude").symlink_to(".claude")
        with pytest.raises(RemudaError):
            persist(repo, "codex", ulid(), repo, NOW, "1")

    def test_a_folder_that_cannot_be_made_is_a_typed_error(self, repo: Path) -> None:
        (repo / ".claude").write_text("a file")
        with pytest.raises(RemudaError, match="cannot write"):
            persist(repo, "codex", ulid(), repo, NOW, "1")

    def test_the_repository_root(self, repo: Path, tmp_path: Path) -> None:
        (repo / "a/b").mkdir(parents=True)
        assert repo_root(repo / "a/b") == repo
        (repo / "a/.git").write_text("gitdir: elsewhere\n")
        assert repo_root(repo / "a/b") == repo / "a"
        assert repo_root(tmp_path) == tmp_path

    @pytest.mark.parametrize(
        ("age", "verdict"),
        [(0, "codex"), (86399.9, "codex"), (86400, Rejected("stale")), (-1e6, "codex")],
    )
    def test_a_day_is_the_limit_for_the_file(self, age: float, verdict: str | Rejected) -> None:
        assert judge(Content(b'{"launcher":"codex"}', NOW - age), NAMES, NOW) == verdict

    @pytest.mark.parametrize(
        ("started_at", "verdict"),
        [
            ("2026-04-29T04:12:55Z", "codex"),
            ("2026-04-28T04:12:56Z", "codex"),
            ("2026-04-28T04:12:55Z", Rejected("stale")),
            ("2026-04-28T06:12:55+02:00", Rejected("stale")),
            ("2026-04-28T04:12:55+02:00", Rejected("stale")),
            ("2026-04-28T04:12:55-02:00", "codex"),
            ("2026-04-28 04:12:55", Rejected("unknown_age")),
        ],
    )
    def test_a_day_is_the_limit_for_its_start(self, started_at: str, verdict: str | Rejected) -> None:
        document = json.dumps({"launcher": "codex", "started_at": started_at}).encode()
        assert judge(Content(document, NOW), NAMES, NOW) == verdict

    @pytest.mark.parametrize(
        ("data", "reason"),
        [
            (b"", "bad_json"),
            (b"\xef\xbb\xbf{}", "byte_order_mark"),
            (b"\xff", "not_utf8"),
            (b"[" * 65, "nested_too_deeply"),
            (b"[]", "not_an_object"),
            (b'{"a":1,"a":1}', "duplicate_key"),
            (b"{}", "no_launcher"),
            (b'{"launcher":""}', "no_launcher"),
            (b'{"launcher":"gpt"}', "unknown_name"),
            (b'{"launcher":"codex","x":NaN}', "bad_json"),
        ],
    )
    def test_reasons(self, data: bytes, reason: str) -> None:
        assert judge(Content(data, NOW), NAMES, NOW) == Rejected(reason)


class TestAnythingGoesIn:
    @given(data=st.binary() | st.text().map(lambda text: json.dumps({"launcher": text}).encode()))
    def test_any_bytes_are_judged(self, data: bytes) -> None:
        verdict = judge(Content(data, NOW), NAMES, NOW)
        assert isinstance(verdict, Rejected) or verdict in NAMES

    @given(
        environ=st.dictionaries(
            st.sampled_from(("REMUDA_AGENT_BINARY", "AMPLIHACK_AGENT_BINARY")),
            st.text() | st.sampled_from(NAMES),
        ),
        config_agent=st.none() | st.text(),
        programs=st.lists(st.sampled_from(NAMES) | st.text()),
    )
    def test_the_answer_is_always_a_known_name(
        self, environ: dict[str, str], config_agent: str | None, programs: list[str]
    ) -> None:
        everything = inputs(
            Path("/nonexistent/folder"),
            environ=environ,
            config_agent=config_agent,
            installed=lambda: programs,
        )
        resolution = resolve(everything, full=True, warn=Warnings())
        assert resolution.agent in NAMES
        assert sum(report.outcome == "won" for report in resolution.explain) == 1


class TestShellSnippet:
    def test_the_values_are_filled_in(self) -> None:
        program = shell_snippet(["claude", "codex"], {"claude": "claude-code"}, "codex")
        assert "names='claude codex'" in program
        assert "programs='claude=claude-code'" in program
        assert "default='codex'" in program

    @pytest.mark.parametrize(
        ("names", "binaries", "default"),
        [
            (["it's"], {}, "claude"),
            (["Claude"], {}, "claude"),
            (["claude"], {"claude": "my claude"}, "claude"),
            (["claude"], {"claude": "$(id)"}, "claude"),
            (["claude"], {}, "c" * 33),
            (["claude\n"], {}, "claude"),
        ],
    )
    def test_only_plain_words_go_in(self, names: list[str], binaries: dict[str, str], default: str) -> None:
        with pytest.raises(ValueError, match="shell program"):
            shell_snippet(names, binaries, default)

    def test_the_parser_can_stand_between_single_quotes(self) -> None:
        program = shell_snippet(["claude"], {}, "claude")
        start = program.index("function fail")
        assert "'" not in program[start : program.index("\n    '\n", start)]
