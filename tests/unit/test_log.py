"""Structured log lines that leak nothing."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remuda.core import log


@pytest.fixture
def configured(capsys: pytest.CaptureFixture[str]) -> Iterator[pytest.CaptureFixture[str]]:
    logger = logging.getLogger("remuda")
    before = (logger.handlers, logger.level, logger.propagate)
    yield capsys
    logger.handlers, logger.level, logger.propagate = before


def test_a_warning_is_one_json_line_with_its_fields(configured: pytest.CaptureFixture[str]) -> None:
    log.configure()
    log.warn("something\nodd", value="é\n\x1b[31m", number=3)
    line = configured.readouterr().err
    assert line.count("\n") == 1
    assert line.isascii()
    assert "\x1b" not in line
    document = json.loads(line)
    assert (document["level"], document["message"], document["number"]) == ("warning", "something\nodd", 3)
    assert document["value"] == "é\n\x1b[31m"
    assert {"time", "logger"} <= document.keys()


def test_information_is_only_shown_when_asked_for(configured: pytest.CaptureFixture[str]) -> None:
    log.configure()
    logging.getLogger("remuda").info("quiet")
    log.configure(logging.INFO)
    logging.getLogger("remuda").info("loud")
    assert [json.loads(line)["message"] for line in configured.readouterr().err.splitlines()] == ["loud"]


@given(st.text(min_size=5))
def test_a_redacted_value_tells_its_length_only(value: str) -> None:
    assert log.redacted(value) == f"<{len(value.encode('utf-8', 'replace'))} bytes>"


def test_redacting_never_fails() -> None:
    for value in ("\ud800", "\udc80", "\0", "a\udfffb"):
        assert log.redacted(value).endswith(" bytes>")
