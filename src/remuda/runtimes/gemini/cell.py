"""Gemini: what it needs inside a sandbox."""

from __future__ import annotations

from remuda.runtimes.cell import Cell, Place

_HOME = ("", "GEMINI_CLI_HOME")
_PROGRAMS = ("extensions", "commands", "policies", "skills", "agents", "acknowledgments", "tmp/bin")

CELL = Cell(
    state=(Place(*_HOME, ".gemini"),),
    reads=(
        Place(*_HOME, ".gemini/settings.json", kind="file", blank="{}\n"),
        Place(*_HOME, ".gemini/trustedFolders.json", kind="file", blank="{}\n"),
        Place(*_HOME, ".gemini/.env", kind="file", blank=""),
        Place(*_HOME, ".gemini/GEMINI.md", kind="file", blank=""),
        *(Place(*_HOME, f".gemini/{folder}") for folder in _PROGRAMS),
    ),
    private=(Place(*_HOME, ".gemini/history"),),
    trusting={"GEMINI_CLI_TRUST_WORKSPACE": "true"},
    hosts=(
        *("generativelanguage.googleapis.com", "aiplatform.googleapis.com", "cloudcode-pa.googleapis.com"),
        *("oauth2.googleapis.com", "www.googleapis.com"),
    ),
    verified=True,
)
