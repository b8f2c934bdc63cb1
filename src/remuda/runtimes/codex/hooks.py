"""Codex's hooks.json, and the consent without which Codex skips what is in it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from remuda.hooks.events import FILES, Event
from remuda.runtimes.wiring import TIMEOUT, Edit, ListEntry, Site, TableValue, Wiring, command_line, folder_of

_EVENTS: dict[Event, dict[str, str]] = {
    "SessionStart": {},
    "PreToolUse": {"matcher": "*"},
    "UserPromptSubmit": {},
    "Stop": {},
    "SessionEnd": {},
}
_LAST = 3
"""Seconds that Codex gives to a hook at the end of a session; it warns of settings that ask for more."""


def _home(site: Site) -> Path:
    """Codex's own folder, by the name that Codex itself uses: a folder that is named to it, it resolves."""
    home = folder_of(site, "CODEX_HOME", ".codex")
    return home.resolve() if site.environ.get("CODEX_HOME") else home


def _file(site: Site) -> Path:
    return (site.project / ".codex" if site.scope == "project" else _home(site)) / "hooks.json"


def _group(site: Site, event: Event) -> dict[str, object]:
    command = command_line(site.hooks[event], event)
    timeout = _LAST if event == "SessionEnd" else TIMEOUT
    hook = {"type": "command", "command": command, "timeout": timeout}
    return {**_EVENTS[event], "hooks": [hook]}


def edits(site: Site) -> tuple[Edit, ...]:
    """A hook before every tool, and those by which a session is known to others and gets their messages."""
    return tuple(
        ListEntry(
            path=_file(site),
            keys=("hooks", event),
            value=_group(site, event),
            mark=str(site.hooks[event]),
        )
        for event in _EVENTS
    )


def consent(site: Site, positions: tuple[int, ...]) -> tuple[Edit, ...]:
    """What Codex itself notes when a person has reviewed the hooks: a digest for each, by its place."""
    return tuple(
        TableValue(
            path=_home(site) / "config.toml",
            keys=("hooks", "state", f"{_file(site)}:{FILES[event]}:{position}:0", "trusted_hash"),
            value=_digest(event, _group(site, event)),
        )
        for event, position in zip(_EVENTS, positions, strict=True)
    )


def _digest(event: Event, group: Mapping[str, object]) -> str:
    """As Codex computes it: of the event and the group with all defaults, keys in order, no spaces."""
    from hashlib import sha256

    hooks = group["hooks"]
    assert isinstance(hooks, list)
    whole = {"event_name": FILES[event], **group, "hooks": [{**hook, "async": False} for hook in hooks]}
    text = json.dumps(whole, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"sha256:{sha256(text.encode()).hexdigest()}"


def switched_off(site: Site) -> list[str]:
    """A feature flag, of the user or of a project that is trusted."""
    files = (_home(site) / "config.toml", site.project / ".codex" / "config.toml")
    return [f"features.hooks is off in {file}" for file in files if _feature(file) is False]


def _feature(file: Path) -> object:
    import tomllib

    try:
        features = tomllib.loads(file.read_text()).get("features")
    except (OSError, ValueError, RecursionError):
        return None
    return features.get("hooks") if isinstance(features, Mapping) else None


WIRING = Wiring(
    dialect="codex",
    edits=edits,
    consent=consent,
    switched_off=switched_off,
    condition={
        "user": "Codex skips hooks that nobody has reviewed, without a word: agree with --trust, or in the "
        "terminal interface when it says 'Hooks need review'",
        "project": "Codex skips hooks that nobody has reviewed, and those of a project that it does not "
        "trust, without a word: agree with --trust, or in the terminal interface",
    },
)
