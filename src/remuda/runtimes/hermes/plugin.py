"""The plugin by which Hermes asks before every tool: its source, its manifest and what it is told.

Hermes asks by itself about edits and dangerous commands only. A plugin is called before every tool, in the
process of Hermes, and may refuse; this one refuses whatever was not allowed over the connection. One that
does not load, or that raises, would let everything pass: so it reports that it is there, and never raises.
"""

from __future__ import annotations

import hashlib

import msgspec

from remuda.runtimes.base import ScratchFile, Turn

FOLDER, NAME = "plugins", "remuda-guard"
REFUSAL = "Not permitted by Remuda."
LONGEST = 8 * 1024 * 1024
"""Characters of a call beyond which nobody is asked."""

_MANIFEST = {"name": NAME, "version": "1", "description": "Asks before every tool.", "kind": "backend"}

_SOURCE = '''\
import json
import os
import sys
from pathlib import Path

WORDS = json.loads(Path(__file__).with_name("words.json").read_text("utf-8"))
PATHS = ("read_file", "write_file", "patch", "search_files")


def settled(tool, args, task):
    """The folder that the call is about. Paths are put as Hermes reads them; a shell's state ends with the
    command, so that the next one is what it looks like."""
    from tools import approval, file_tools, terminal_tool

    base = str(file_tools._resolve_base_dir(task))
    if tool in PATHS and isinstance(args.get("path"), str):
        args["path"] = str(file_tools._resolve_path_for_task(args["path"], task))
    if tool == "patch" and args.get("mode", "replace") != "replace":
        return None
    if tool in ("terminal", "execute_code"):
        if os.environ.get("TERMINAL_ENV", "local") != "local":
            return None
        key = approval.get_current_session_key(default="") or task
        recorded = terminal_tool.get_session_cwd(key)
        if recorded and str(Path(recorded).resolve()) != base:
            return None
    return base


def allowed(tool, args, task):
    from tools.terminal_tool import _get_approval_callback

    ask = _get_approval_callback()
    if getattr(ask, "__module__", "") != "acp_adapter.permissions":
        return False
    cwd = settled(tool, args, task)
    if cwd is None:
        return False
    shown = json.dumps({"tool": tool, "cwd": cwd, "input": args})
    if len(shown) > WORDS["longest"]:
        return False
    if ask(shown, WORDS["mark"], allow_permanent=False) != "once":
        return False
    if tool == "terminal":
        args["command"] = "(\\n" + args["command"] + "\\n)"
    return True


def before(tool_name="", args=None, task_id="", **_):
    try:
        if type(args) is dict and allowed(tool_name, args, task_id or "default"):
            return None
    except BaseException:
        pass
    return {"action": "block", "message": WORDS["refusal"]}


def register(ctx):
    ctx.register_hook("pre_tool_call", before)
    print(WORDS["mark"], file=sys.stderr, flush=True)
'''


class _Words(msgspec.Struct, frozen=True):
    mark: str
    refusal: str
    longest: int


def mark(turn: Turn) -> str:
    """The word by which the plugin of this turn is known; nobody else can guess it."""
    return f"{NAME}-{hashlib.sha256(str(turn.scratch).encode()).hexdigest()[:32]}"


def files(turn: Turn, note: str) -> tuple[ScratchFile, ...]:
    """The plugin, as files of the scratch folder."""
    words = _Words(mark(turn), f"{REFUSAL} {note}", LONGEST)
    contents = (
        ("plugin.yaml", msgspec.json.encode(_MANIFEST).decode()),
        ("__init__.py", _SOURCE),
        ("words.json", msgspec.json.encode(words).decode()),
    )
    return tuple(ScratchFile(f"{FOLDER}/{NAME}/{name}", content) for name, content in contents)
