"""Gemini's own traps: the kind of login, exit codes of its own, tools that are not offered, limits, an @."""

from __future__ import annotations

import pytest
from tests.agents.conftest import MakeLab
from tests.agents.lab import Ended, Lab

from remuda.core.errors import ErrorKind, exit_code_for
from remuda.rehearsal.scenario import Step
from remuda.runtimes import registry

SHELL = "run_shell_command"
KIND_OF_LOGIN = '{"security": {"auth": {"selectedType": "gemini-api-key"}}}'


@pytest.fixture
def gemini(make_lab: MakeLab) -> Lab:
    return make_lab(registry.get("gemini"))


def settings(lab: Lab, text: str) -> None:
    """Write the user's own settings."""
    file = lab.home / ".gemini" / "settings.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)


def check_start(ended: Ended, code: int, kind: ErrorKind, words: str) -> None:
    """Gemini did not start, with this exit code; the caller is told why."""
    error = ended.result.error
    assert error is not None
    assert (ended.result.exit_code, error.kind) == (code, kind), error
    assert words in error.message
    assert "\x1b" not in error.message
    assert ended.code == exit_code_for(kind)


def test_the_kind_of_login_for_another_endpoint_is_not_the_users(gemini: Lab) -> None:
    others = {"GOOGLE_GENAI_USE_GCA": "true", "GOOGLE_GENAI_USE_VERTEXAI": "true", "GOOGLE_API_KEY": "none"}
    settings(gemini, '{"security": {"auth": {"selectedType": "oauth-personal"}}}')
    ended = gemini.run("Hello.", env=others)
    assert ended.code == 0, ended.stderr
    assert gemini.arrived("Hello.")


def test_a_base_url_of_the_users_own_needs_a_kind_of_login(gemini: Lab) -> None:
    own = {
        "GOOGLE_GEMINI_BASE_URL": gemini.env.pop("REMUDA_ENDPOINT"),
        "GEMINI_API_KEY": "a-key-of-the-users",
    }
    check_start(gemini.run("Hello.", env=own), 41, "auth", "security.auth.selectedType")
    settings(gemini, KIND_OF_LOGIN)
    ended = gemini.run("Hello.", "--model", "gemini-2.5-flash", env=own)
    assert ended.code == 0, ended.stderr
    assert gemini.arrived("Hello.")


def test_no_login_at_all(gemini: Lab) -> None:
    del gemini.env["REMUDA_ENDPOINT"]
    check_start(gemini.run("Hello."), 41, "auth", "GEMINI_API_KEY")


def test_settings_that_cannot_be_read(gemini: Lab) -> None:
    del gemini.env["REMUDA_ENDPOINT"]
    settings(gemini, '{"security": ')
    check_start(gemini.run("Hello."), 52, "start_failed", str(gemini.home / ".gemini" / "settings.json"))


def test_a_folder_that_is_not_trusted(gemini: Lab) -> None:
    """Every other test runs in a folder that Gemini was never told to trust, either."""
    ended = gemini.run("Hello.", extra=("--no-skip-trust",))
    check_start(ended, 55, "start_failed", "not running in a trusted directory")


def test_a_shell_is_offered_with_a_bypass_alone(gemini: Lab) -> None:
    for options, offered in ((("--permission", "ask"), False), (gemini.bypass, True)):
        ended = gemini.run("Hello.", *options)
        assert ended.code == 0, ended.stderr
        assert (SHELL in gemini.server.heard()[-1].tools) == offered


def test_a_limit_that_passes_is_no_quota_whatever_it_is_called(gemini: Lab) -> None:
    gemini.play(Step(status=429, message="You exceeded your current quota. Please retry in 1s."))
    error = gemini.run("Hello.").result.error
    assert error is not None
    assert error.kind == "rate_limit", error


def test_a_failed_call_leaves_no_report_where_others_read(gemini: Lab) -> None:
    shared = gemini.home / "tmp"
    shared.mkdir()
    gemini.rehearse("errors")
    assert gemini.run("rehearse-401", env={"TMPDIR": str(shared)}).code == 6
    assert [path for path in shared.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("name", ["notes", "below/my-notes.md"])
def test_what_an_at_sign_names_is_added_as_noted(gemini: Lab, name: str) -> None:
    file = gemini.cwd / name
    file.parent.mkdir(exist_ok=True)
    file.write_text("What the file says.")
    ended = gemini.run("Read @notes now.")
    assert ended.code == 0, ended.stderr
    assert f"Read @{name} now.\n" in gemini.texts()
    assert "What the file says." in gemini.texts()
    assert any(note.startswith("@NAME in a prompt") for note in gemini.runtime.notes)
