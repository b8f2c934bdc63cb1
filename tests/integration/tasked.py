"""A machine with tasks on it: the rehearsal agent, and a worker that starts by itself."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support import Ended, Site

from remuda.core.sqlite import SqliteDatabase

SUBMIT = ("task", "submit", "--agent", "rehearsal")
SCENARIO = """
name: tasks
rules:
  - when: {contains: hang}
    steps:
      - tool: shell
        input: {command: 'echo $$ > pid; exec sleep 300'}
      - text: "It never comes to this."
  - when: {contains: order}
    steps:
      - tool: shell
        input: {command: 'sleep 0.1; echo "$ORDER" >> order'}
      - text: "Noted."
  - when: {contains: fail}
    steps:
      - status: 400
        message: "no such model"
  - steps:
      - thought: "A prompt, it seems."
        text: "Heard {prompt}, and done."
"""


@pytest.fixture
def tasked(site: Site) -> Iterator[Site]:
    """A site whose worker ends soon after its last task, and in any case with the test."""
    (site.home / "config").mkdir(parents=True)
    (site.home / "config" / "config.toml").write_text("[tasks]\nidle = 0.5\nconcurrency = 1\n")
    site.env["REHEARSAL_SCENARIO"] = str(site.write("tasks.yaml", SCENARIO))
    assert site.remuda("trust", "add", str(site.cwd)).code == 0
    yield site
    for pid in site.processes():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)


def submitted(site: Site, *arguments: str, **env: str) -> str:
    ended = site.remuda(*SUBMIT, *arguments, **env)
    assert ended.code == 0, ended.stderr
    return ended.stdout.strip()


def got(site: Site, ident: str) -> dict[str, Any]:
    return site.remuda("task", "get", "--json", ident).json


def waited(site: Site, *idents: str) -> Ended:
    return site.remuda("task", "wait", "--timeout", "50", *idents)


def database(site: Site) -> SqliteDatabase:
    return SqliteDatabase(site.home / "state" / "dispatch.db")
