"""Writes a Claude Code history of a given size: the same bytes every time, with nobody's words in it.

Answers are told in two lines each, as the program does, one session in eight begins with a copy of another
one's lines, and some lines are damaged, so that whoever adds up all lines gets a wrong sum.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

MODELS = ("claude-sonnet-4-20250514", "claude-opus-4-20250514", "claude-3-5-haiku-20241022")
BEGIN = datetime(2026, 9, 1, 8, tzinfo=UTC)
SESSION_BYTES = 2_000_000
FORKED = 8
"""Every so manieth session is a fork of the one before."""

DAMAGED = 20
"""Every so manieth session has a line that breaks off."""

_WORDS = ("amble", "bridle", "canter", "corral", "fetlock", "gallop", "halter", "mane", "mustang", "paddock")


class History(NamedTuple):
    """What was written: the folder to use as CLAUDE_CONFIG_DIR, and the tokens that are truly in it."""

    folder: Path
    size: int
    answers: int
    input: int
    output: int
    cached_read: int
    cached_write: int


class Talk:
    """One session's lines, in order."""

    def __init__(self, dice: random.Random, pool: str, number: int) -> None:
        self.dice, self.pool = dice, pool
        self.session = _uuid(dice)
        self.cwd = f"/srv/project-{number % 12}"
        self.time = BEGIN + timedelta(hours=6 * number, minutes=number % 50)
        self.model = MODELS[number % len(MODELS)]
        self.counts = [0, 0, 0, 0, 0]

    def _common(self, kind: str) -> dict[str, object]:
        self.time += timedelta(milliseconds=self.dice.randrange(200, 4000))
        return {
            "parentUuid": _uuid(self.dice),
            "isSidechain": False,
            "userType": "external",
            "cwd": self.cwd,
            "sessionId": self.session,
            "version": "2.1.0",
            "gitBranch": "main",
            "type": kind,
            "uuid": _uuid(self.dice),
            "timestamp": f"{self.time:%Y-%m-%dT%H:%M:%S}.{self.time.microsecond // 1000:03d}Z",
        }

    def _words(self, size: int) -> str:
        start = self.dice.randrange(len(self.pool) - size)
        return self.pool[start : start + size]

    def exchange(self) -> Iterator[str]:
        """What a tool or a person said, and the model's answer to it in two lines."""
        tool = {"type": "tool_result", "tool_use_id": f"toolu_{_uuid(self.dice)}"}
        said = {**tool, "content": self._words(self.dice.randrange(200, 7000))}
        yield _line({**self._common("user"), "message": {"role": "user", "content": [said]}})
        usage = {
            "input_tokens": self.dice.randrange(3, 2000),
            "cache_creation_input_tokens": self.dice.randrange(0, 9000),
            "cache_read_input_tokens": self.dice.randrange(0, 150000),
            "output_tokens": self.dice.randrange(1, 3000),
            "service_tier": "standard",
        }
        self.counts = [a + b for a, b in zip(self.counts, (1, *list(usage.values())[:4]), strict=True)]  # type: ignore[operator]
        message = {
            "id": f"msg_{_uuid(self.dice)}",
            "type": "message",
            "role": "assistant",
            "model": self.model,
        }
        request = f"req_{_uuid(self.dice)}"
        for block in (
            {"type": "text", "text": self._words(self.dice.randrange(100, 900))},
            {"type": "tool_use", "name": "Bash", "input": {"command": self._words(200)}},
        ):
            told = {**message, "content": [block], "stop_reason": None, "usage": usage}
            yield _line({**self._common("assistant"), "message": told, "requestId": request})


def _uuid(dice: random.Random) -> str:
    text = f"{dice.getrandbits(128):032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def _line(document: dict[str, object]) -> str:
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False) + "\n"


def write(folder: Path, size: int) -> History:
    """Write sessions until they come to so many bytes."""
    dice = random.Random(20261118)
    pool = " ".join(dice.choice(_WORDS) for _ in range(150_000)).replace("mane ", 'say \\"hay\\"\n\tübermut ')
    written, number, earlier = 0, 0, ""
    totals = [0, 0, 0, 0, 0]
    while written < size:
        talk = Talk(dice, pool, number)
        lines = [earlier] if number % FORKED == FORKED - 1 else []
        length = sum(map(len, lines))
        while length < SESSION_BYTES:
            told = list(talk.exchange())
            lines += told
            length += sum(map(len, told))
        if number % DAMAGED == 0:
            lines.insert(len(lines) // 2, lines[-1][:200] + "\n")
        path = folder / "projects" / talk.cwd.replace("/", "-") / f"{talk.session}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        written += path.write_bytes("".join(lines).encode())
        earlier = "".join(lines[:300])
        totals = [a + b for a, b in zip(totals, talk.counts, strict=True)]
        number += 1
    answers, plain, cached_write, cached_read, output = totals
    return History(folder, written, answers, plain, output, cached_read, cached_write)
