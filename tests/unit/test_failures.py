"""The same words for the same failure, whichever program tells it."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda.core.errors import ErrorKind, exit_code_for
from remuda.runtimes.failures import by_status, by_text, failure, old_node


@pytest.mark.parametrize(
    ("status", "message", "kind"),
    [
        (401, "", "auth"),
        (403, "forbidden", "auth"),
        (403, "You exceeded your quota", "quota"),
        (402, "", "quota"),
        (429, "slow down", "rate_limit"),
        (429, "insufficient_quota", "quota"),
        (429, "Your credit balance is too low", "quota"),
        (400, "", "model"),
        (400, "Your credit balance is too low to access the Anthropic API.", "quota"),
        (400, "You have reached your specified API usage limits.", "quota"),
        (400, "prompt is too long: 401429 tokens", "model"),
        (404, "", "model"),
        (500, "", "model"),
        (529, "Overloaded", "model"),
    ],
)
def test_what_a_status_means(status: int, message: str, kind: ErrorKind) -> None:
    assert by_status(status, message) == kind
    assert failure(message, status).kind == kind


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("API Error: 401 invalid x-api-key", "auth"),
        ("Not logged in · Please run /login", "auth"),
        ("unexpected status 401 Unauthorized", "auth"),
        ("429 Too Many Requests", "rate_limit"),
        ("Rate limit reached for gpt-5", "rate_limit"),
        ("exceeded retry limit, last status: 429 Too Many Requests", "rate_limit"),
        ("You exceeded your current quota", "quota"),
        ("You've hit your usage limit", "quota"),
        ("Reconnecting... 5/5 (unexpected status 402 Payment Required: no)", "quota"),
        ("litellm.BadRequestError: OpenAIException - Payment required", "quota"),
        ("prompt is too long for this API key: 429 tokens", "model"),
        ("This model's maximum context length is 8192 tokens", "model"),
        ("API Error: 500 Internal server error", "model"),
        ("Connection error.", "model"),
        ("fetch failed", "model"),
        ("stream disconnected before completion", "model"),
        ("no such file", None),
        ("port 14290 is busy", None),
        ("", None),
    ],
)
def test_what_words_mean(text: str, kind: ErrorKind | None) -> None:
    assert by_text(text) == kind


@pytest.mark.parametrize(
    ("text", "oldest", "said"),
    [
        ("SyntaxError: no such export\n\nNode.js v20.20.2\n", (22, 19), "20.20.2"),
        ("herdsman: Node 22.18.0: use 22.19+\n  nvm install 26", (22, 19), "22.18.0"),
        ("TypeError: a bug\n\nNode.js v22.19.0", (22, 19), None),
        ("TypeError: a bug\n\nNode.js v24.1.0", (22, 19), None),
        ("it was written for Node.js v20.20.2", (22, 19), None),
        ("", (22, 19), None),
    ],
)
def test_the_node_that_a_program_crashed_on(text: str, oldest: tuple[int, int], said: str | None) -> None:
    expected = f"it needs Node.js {oldest[0]}.{oldest[1]} or newer, not {said}" if said else None
    assert old_node(text, oldest) == expected


@given(st.text(), st.none() | st.integers(100, 599))
def test_any_message_becomes_a_failure_of_bounded_size(message: str, status: int | None) -> None:
    made = failure(message, status)
    assert made.kind in get_args(ErrorKind)
    assert 0 < len(made.message) <= 2000


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("not_installed", 6),
        ("auth", 6),
        ("start_failed", 6),
        ("timeout", 3),
        ("refused", 5),
        ("cancelled", 130),
        ("rate_limit", 1),
        ("quota", 1),
        ("crashed", 1),
        ("protocol", 1),
        ("model", 1),
    ],
)
def test_every_kind_has_its_exit_code(kind: ErrorKind, code: int) -> None:
    assert exit_code_for(kind) == code
    assert len(get_args(ErrorKind)) == 11
