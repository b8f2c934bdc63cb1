"""A later run continues the same conversation."""

from __future__ import annotations

from tests.agents.lab import Ended, Lab

from remuda.core.errors import exit_code_for
from remuda.rehearsal.scenario import Step


def test_a_session_is_resumed(lab: Lab) -> None:
    lab.play(Step(text="Answer alpha."))
    first = lab.run("Question one.")
    assert first.code == 0, first.stderr
    native = first.result.runtime_session
    assert native
    if not lab.runtime.conduct.resume:
        refused = lab.run("Question two.", "--session", first.session)
        assert refused.code == exit_code_for("refused"), refused.stderr
        assert refused.result.error is not None
        assert "cannot continue a session" in refused.result.error.message
        return

    def resumed(session: str) -> Ended:
        ended = lab.run("Question two.", "--session", session)
        assert ended.code == 0, ended.stderr
        assert ended.result.runtime_session == native
        body = [heard.body for heard in lab.server.heard() if heard.api][-1] or ""
        assert body.index("Question one.") < body.index("Answer alpha.") < body.rindex("Question two.")
        return ended

    assert resumed(first.session).session == first.session
    assert resumed(native).session == first.session
    if lab.runtime.conduct.own_sessions:
        lab.env["REMUDA_HOME"] += "-that-never-saw-the-session"
        assert resumed(native).session != first.session


def test_what_a_session_is_resumed_as_stays_its_agent(lab: Lab) -> None:
    first = lab.run("Question one.")
    other = "codex" if lab.runtime.name != "codex" else "claude"
    command = ["--agent", other, "--session", first.session]
    ended = lab.call([*lab.command()[:3], *command, "-"], b"Question two.")
    assert ended.code == 2
    assert f"belongs to {lab.runtime.name}" in ended.stderr
