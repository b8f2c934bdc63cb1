"""Lines as Claude Code writes them, for tests of transcripts."""

from __future__ import annotations

import json


def answer(
    name: str,
    usage: tuple[int, int, int, int] = (10, 20, 30, 40),
    *,
    session: str = "s1",
    model: str = "claude-sonnet-4-5",
    day: int = 1,
    cost: float | None = None,
    cwd: str = "/projects/one",
) -> str:
    """An answer of the model: input, output, read from and written to a cache."""
    told = {
        "input_tokens": usage[0],
        "output_tokens": usage[1],
        "cache_read_input_tokens": usage[2],
        "cache_creation_input_tokens": usage[3],
    }
    message = {"id": f"msg_{name}", "role": "assistant", "model": model, "content": [], "usage": told}
    line = {
        "type": "assistant",
        "message": message,
        "requestId": f"req_{name}",
        "sessionId": session,
        "cwd": cwd,
        "timestamp": f"2026-11-{day:02}T12:00:00.000Z",
    }
    return json.dumps(line if cost is None else {**line, "costUSD": cost}) + "\n"


def said(text: str, **more: object) -> str:
    """A prompt of the user."""
    message = {"role": "user", "content": text}
    return (
        json.dumps({"type": "user", "message": message, "cwd": "/projects/one", "sessionId": "s1", **more})
        + "\n"
    )
