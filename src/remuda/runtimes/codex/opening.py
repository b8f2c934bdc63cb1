"""How a session with Codex's app server is opened: as a person's own, or held by the guard, which looks
before and behind whether it will hold."""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping

import msgspec

from remuda import __version__
from remuda.core.events import Failure
from remuda.runtimes import acp_frames as rpc
from remuda.runtimes.base import Guard, Turn, TurnState
from remuda.runtimes.codex import appserver as wire
from remuda.runtimes.codex import guarded
from remuda.runtimes.dialogue import RpcDialogue

_SANDBOXES = {"read-only": "readOnly", "danger-full-access": "dangerFullAccess"}


class Opening(RpcDialogue, ABC):
    """Greet and open a session. Under a guard that binds, what was asked for must hold in it."""

    def __init__(self, turn: Turn) -> None:
        super().__init__(turn, TurnState())
        guard = turn.guard
        self._guard: Guard | None = guard if guard is not None and guard.binding else None
        self.state.guard = "none" if self._guard is None else "awaited"
        self._servers: Mapping[str, wire.McpServer] = {}
        client = {"name": "remuda", "title": "Remuda", "version": __version__}
        abilities = {"experimentalApi": True}
        self._request("initialize", {"clientInfo": client, "capabilities": abilities}, self._greeted)

    def _refuse(self, reason: str) -> None:
        self._fail(Failure("refused", reason))

    def _greeted(self, _result: msgspec.Raw) -> None:
        self._outbox += wire.INITIALIZED
        if self._guard is None:
            self._ask_for_session(self._own_place())
        else:
            folder = str(self._turn.cwd)
            self._request("config/read", {"cwd": folder, "includeLayers": True}, self._configured)

    def _ask_for_session(self, place: Mapping[str, object]) -> None:
        if self._turn.resume:
            known = {"threadId": self._turn.session, "excludeTurns": True}
            self._request("thread/resume", {**known, **place}, self._opened)
        else:
            self._request("thread/start", {**place, "experimentalRawEvents": True}, self._opened)

    def _own_place(self) -> dict[str, object]:
        """A person's own session: Codex asks about every command and file, or about nothing. A session that
        is opened with a wider sandbox makes the folder trusted for good, and with it what lies there."""
        turn = self._turn
        return self._said(turn.append_system_prompt) | {
            "cwd": str(turn.cwd),
            "approvalPolicy": "never" if turn.permission == "bypass" else guarded.POLICY,
            "approvalsReviewer": "user",
            "sandbox": "read-only",
        }

    def _said(self, instructions: str | None) -> dict[str, object]:
        """Model and instructions, as far as they were given."""
        given = {
            "model": self._turn.model or None,
            "baseInstructions": self._turn.system_prompt,
            "developerInstructions": instructions,
        }
        return {name: value for name, value in given.items() if value is not None}

    # ---- under guard

    def _configured(self, result: msgspec.Raw) -> None:
        """Nothing that lies in the folder may count."""
        read = rpc.decode(result, wire.Configuration)
        if read is None or read.layers is None or read.config is None:
            self._fail(Failure("protocol", "Codex does not tell its configuration"))
        elif any(layer.name.type == "project" and not layer.disabled_reason for layer in read.layers):
            self._refuse(
                "Codex takes settings from the folder that it works in, and so the guard may not hold"
            )
        else:
            self._servers = read.config.mcp_servers or {}
            self._request("hooks/list", {"cwds": [str(self._turn.cwd)]}, self._listed)

    def _listed(self, result: msgspec.Raw) -> None:
        """Trust the one hook that is ours, and set aside those that would answer in the guard's place."""
        hooks = (rpc.decode(result, wire.HookList) or wire.HookList()).hooks
        states: dict[str, object] = {
            hook.key: {"enabled": False} for hook in hooks if hook.event_name == "permissionRequest"
        }
        ours = [hook for hook in hooks if self._ours(hook)]
        if len(ours) != 1:
            self._refuse("Codex does not know the guard's hook: its settings switch hooks off")
            return
        states[ours[0].key] = {"trusted_hash": ours[0].current_hash, "enabled": True}
        config: dict[str, object] = {"hooks.state": states}
        if self._servers:
            config["mcp_servers"] = {name: _asking(server) for name, server in self._servers.items()}
        self._ask_for_session(self._guarded_place(config))

    def _guarded_place(self, config: Mapping[str, object]) -> dict[str, object]:
        note = self._guard.note if self._guard else ""
        said = (part for part in (self._turn.append_system_prompt, note) if part)
        return self._said("\n\n".join(said)) | {
            "cwd": str(self._turn.cwd),
            "approvalPolicy": guarded.POLICY,
            "approvalsReviewer": "user",
            "sandbox": self._sandbox,
            "config": config,
        }

    @property
    def _sandbox(self) -> guarded.Sandbox:
        return guarded.sandbox_for(self._guard.capability) if self._guard else "read-only"

    def _ours(self, hook: wire.Hook) -> bool:
        command = guarded.hook_command(self._guard) if self._guard else None
        return (hook.event_name, hook.source, hook.command) == ("preToolUse", "sessionFlags", command)

    def _opened(self, result: msgspec.Raw) -> None:
        """A session is there; under guard, what was asked for must hold in it."""
        opened = rpc.decode(result, wire.Opened) or wire.Opened()
        found = (rpc.decode(opened.approval_policy, object), opened.approvals_reviewer, opened.sandbox.type)
        self.state.session, self.state.model = opened.thread.id or None, opened.model
        if not opened.thread.id:
            self._fail(Failure("start_failed", "Codex opened no session"))
        elif self._guard is None:
            self._ready()
        elif found != (guarded.POLICY, "user", _SANDBOXES[self._sandbox]):
            self._refuse("Codex does not take the approval policy of a guarded run: other settings prevail")
        else:
            self._request("hooks/list", {"threadId": opened.thread.id}, self._checked)

    def _checked(self, result: msgspec.Raw) -> None:
        """The hook is in force in this session, and nobody else answers."""
        hooks = (rpc.decode(result, wire.HookList) or wire.HookList()).hooks
        if not any(self._ours(hook) and hook.runs for hook in hooks):
            self._refuse("Codex will not run the guard's hook in this session")
        elif any(hook.event_name == "permissionRequest" and hook.runs for hook in hooks):
            self._refuse("a hook of Codex's settings would answer for tool calls in the guard's place")
        else:
            self.state.guard = "reported"
            self._ready()

    def _ready(self) -> None:
        self._blame = "model"
        self._open()


def _asking(server: wire.McpServer) -> dict[str, object]:
    """Settings by which all tools of a server ask, those that its own settings approve of as well."""
    tools = {name: {"approval_mode": "prompt"} for name in server.tools or ()}
    return {"default_tools_approval_mode": "prompt", **({"tools": tools} if tools else {})}
