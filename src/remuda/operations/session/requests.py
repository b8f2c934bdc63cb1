"""What is asked about sessions, and how it is told to their keepers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

import msgspec

from remuda.core.errors import UsageError
from remuda.operations.requests import RunRequest

Wanted = Literal["auto", "connection", "tmux"]
"""How a session is to be held: ``auto`` takes the connection where the runtime has one."""

Held = Literal["connection", "tmux"]
"""How it is held."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class StartRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A session to be started, or resumed when ``run.session`` names one.

    ``run`` is what it has in common with a run; its prompt may be empty. ``consent`` are the kinds of dialogs
    that may be answered for the user, beside those of the configuration. ``wait`` is how many seconds to wait
    until it takes prompts. One that is ``opened`` for a message may close by itself after it (``closes``).
    """

    name: str
    mode: Wanted = "auto"
    consent: tuple[str, ...] = ()
    wait: float = 120.0
    opened: bool = False
    closes: bool = False
    run: RunRequest


def check_name(name: str) -> str:
    """A name by which a session can be called."""
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} is no name for a session",
            "Use up to 64 letters, digits, dots, dashes or underscores.",
        )
    return name


_HOMES = ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")


def written(request: StartRequest, mode: Held, home: str | None) -> str:
    """A request as text, with the mode that was found for it. Prompts and variables are left out, for they
    are of one time only and may be secret, but for those that say where the agent keeps its sessions."""
    kept_names = (*_HOMES, home)
    env = {name: value for name, value in request.run.env.items() if name in kept_names}
    lasting = msgspec.structs.replace(request.run, prompt="", env=env, session=None)
    kept = msgspec.structs.replace(request, mode=mode, run=lasting)
    return msgspec.json.encode(kept, enc_hook=str).decode()


def read(text: str | bytes) -> StartRequest:
    """A request from its text."""
    return msgspec.json.decode(text, type=StartRequest, dec_hook=path)


def path(_wanted: type, value: object) -> Path:
    return Path(str(value))
