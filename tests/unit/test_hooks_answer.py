"""Verdicts as agent CLIs honour them, and several judges' payloads made into one."""

from __future__ import annotations

import json

import hypothesis
import pytest
from hypothesis import strategies as st

from remuda.guard.model import Decision, Verdict
from remuda.hooks.aggregation import Precedence, aggregate
from remuda.hooks.answer import CONTEXTUAL, DIALECTS, Dialect, answer, context_answer, openings

DENY = Verdict(decision="deny", rule="git.force", reason="it pushes over others", hint="Push without force.")
TOLD = "it pushes over others (git.force). Push without force."


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_allow_is_silent_for_an_explicit_one_would_grant(dialect: Dialect) -> None:
    given = answer(Verdict(decision="allow", rule="allow", reason="fine"), dialect)
    assert (given.stdout, given.stderr, given.code) == (b"{}\n", "", 0)


def test_a_deny_for_claude_and_codex() -> None:
    given = answer(DENY, "claude")
    assert json.loads(given.stdout) == {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": TOLD,
        }
    }
    assert (given.stderr, given.code) == (f"remuda: denied: {TOLD}\n", 2)


def test_codex_is_told_the_same_as_claude() -> None:
    assert answer(DENY, "codex") == answer(DENY, "claude")


@pytest.mark.parametrize(("dialect", "decision"), [("gemini", "deny"), ("hermes", "block")])
def test_a_deny_for_gemini_and_hermes(dialect: Dialect, decision: str) -> None:
    given = answer(DENY, dialect)
    assert json.loads(given.stdout) == {"decision": decision, "reason": TOLD}
    assert (given.stderr, given.code) == (f"remuda: denied: {TOLD}\n", 2)


def test_a_deny_for_copilot() -> None:
    given = answer(DENY, "copilot")
    assert json.loads(given.stdout) == {
        "permissionDecision": "deny",
        "permissionDecisionReason": TOLD,
        "message": TOLD,
    }
    assert given.code == 2


NESTED = {"hookSpecificOutput": {"hookEventName": "UserPromptSubmit", "additionalContext": "hear"}}
CONTEXTS = {
    "claude": NESTED,
    "codex": NESTED,
    "gemini": NESTED,
    "copilot": {"additionalContext": "hear"},
    "hermes": {"context": "hear"},
}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_text_for_the_model_in_the_words_of_each_cli(dialect: Dialect) -> None:
    assert json.loads(context_answer(dialect, "UserPromptSubmit", "hear").stdout) == CONTEXTS[dialect]
    if "Stop" in CONTEXTUAL[dialect]:
        given = context_answer(dialect, "Stop", "hear")
        assert json.loads(given.stdout) == {"decision": "block", "reason": "hear"}
        assert given.code == 0


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_ask_is_a_deny_for_nobody_is_there(dialect: Dialect) -> None:
    given = answer(Verdict(decision="ask", rule="r", reason="odd"), dialect)
    assert given.code == 2
    assert (b'"block"' if dialect == "hermes" else b'"deny"') in given.stdout
    assert b'"ask"' not in given.stdout
    assert "a person would have to agree: odd (r)" in given.stderr


def test_an_ask_is_put_to_a_person_by_those_that_refuse_without_one() -> None:
    """Codex runs the tool when it is told to ask, Gemini and Hermes know no ask."""
    verdict = Verdict(decision="ask", rule="r", reason="odd", hint="Think.")
    for dialect in DIALECTS:
        given = answer(verdict, dialect, attended=True)
        if dialect in ("claude", "copilot"):
            assert (given.stderr, given.code) == ("", 0)
            assert b'"permissionDecision":"ask"' in given.stdout
            assert b"odd (r). Think." in given.stdout
        else:
            assert given == answer(verdict, dialect)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("decision", ["ask", "deny"])
def test_answers_begin_as_they_are_said_to(dialect: Dialect, decision: Decision) -> None:
    given = answer(Verdict(decision=decision, rule="r", reason='"odd"'), dialect, attended=True)
    openers = [text for code, text in openings(dialect) if code == given.code]
    assert [text for text in openers if given.stdout.decode().startswith(text)] != []


@hypothesis.given(
    st.sampled_from(("allow", "ask", "deny")), st.text(), st.text(), st.text(), st.sampled_from(DIALECTS)
)
@hypothesis.example("deny", "r", "\x1b[31m\udc80\n" * 2000, "", "copilot")
def test_no_verdict_raises(decision: Decision, rule: str, reason: str, hint: str, dialect: Dialect) -> None:
    given = answer(Verdict(decision=decision, rule=rule, reason=reason, hint=hint), dialect)
    assert isinstance(json.loads(given.stdout), dict)
    assert given.stdout.count(b"\n") == 1
    assert given.stderr.count("\n") == (decision != "allow")
    assert given.stderr.rstrip("\n").isprintable()
    assert given.code == (0 if decision == "allow" else 2)
    assert len(given.stderr.encode()) < 20_000


def test_a_long_reason_is_cut() -> None:
    given = answer(Verdict(decision="deny", rule="r", reason="x" * 9000, hint=""), "claude")
    assert len(given.stderr) < 2100
    assert "…" in given.stderr


ALLOW = {"permissionDecision": "allow", "extra": [1]}
ASK = {"permissionDecision": "ask", "permissionDecisionReason": "sure?"}
NO = {"permissionDecision": "deny", "message": "no"}
BLOCK = {"block": True, "message": "stop"}
BLOCKED = {"permissionDecision": "deny", "message": "stop"}
NOTHING: dict[str, object] = {}

TABLE = [
    # security, hooks, documented, strictest
    (ALLOW, NOTHING, ALLOW, ALLOW),
    (NO, NOTHING, NO, NO),
    (ASK, NOTHING, ASK, ASK),
    (NOTHING, ALLOW, ALLOW, ALLOW),
    (NOTHING, NO, NO, NO),
    (NOTHING, ASK, ASK, ASK),
    (NOTHING, BLOCK, BLOCKED, BLOCKED),
    (NOTHING, NOTHING, NOTHING, NOTHING),
    (NO, ALLOW, NO, NO),
    (NO, ASK, NO, NO),
    (NO, BLOCK, NO, NO),
    (ASK, ALLOW, ASK, ASK),
    (ASK, NO, ASK, ASK),
    (ASK, BLOCK, ASK, ASK),
    (ALLOW, ALLOW | {"other": 1}, ALLOW, ALLOW),
    (ALLOW, NO, ALLOW, NO),
    (ALLOW, ASK, ALLOW, ASK),
    (ALLOW, BLOCK, ALLOW, BLOCKED),
    (BLOCK, NOTHING, NOTHING, NOTHING),
    (BLOCK, ALLOW, ALLOW, ALLOW),
    ({"permissionDecision": "Deny"}, NOTHING, NOTHING, NOTHING),
    ({"permissionDecision": ["deny"]}, ASK, ASK, ASK),
    (NOTHING, {"block": "true"}, NOTHING, NOTHING),
    (None, "garbage", NOTHING, NOTHING),
]


@pytest.mark.parametrize(("security", "hook", "documented", "strictest"), TABLE)
def test_two_judges(security: object, hook: object, documented: object, strictest: object) -> None:
    assert aggregate([security], [hook], "documented") == documented
    assert aggregate([security], [hook], "strictest") == strictest
    assert aggregate([security], [hook]) == strictest


@pytest.mark.parametrize("said", [{}, {"message": ""}, {"message": 5}])
def test_a_block_without_words_gets_some(said: dict[str, object]) -> None:
    assert aggregate([], [{"block": True} | said])["message"] == "Blocked by a pre-tool-use hook."


def test_an_explicit_decision_of_any_hook_comes_before_a_block() -> None:
    assert aggregate([], [BLOCK, ASK]) == ASK
    assert aggregate([], [BLOCK, ALLOW], "documented") == ALLOW
    assert aggregate([], [BLOCK, ALLOW]) == BLOCKED


SAID = st.sampled_from((ALLOW, ASK, NO, BLOCK, NOTHING, None, 5))


@hypothesis.given(st.lists(SAID, max_size=4), st.lists(SAID, max_size=4))
def test_the_modes_differ_only_where_an_allow_would_win(security: list[object], hooks: list[object]) -> None:
    modes: tuple[Precedence, Precedence] = ("documented", "strictest")
    documented, strictest = (aggregate(security, hooks, mode) for mode in modes)
    if documented != strictest:
        assert documented["permissionDecision"] == "allow"
        assert strictest["permissionDecision"] in ("ask", "deny")
    elif strictest.get("permissionDecision") == "allow":
        assert not any(each in (ASK, NO) for each in security + hooks)
        assert BLOCK not in hooks
