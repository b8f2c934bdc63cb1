"""The app server's protocol as a state machine: greet, look whether the guard will hold, open the session,
look again, prompt, and answer for every tool call until the turn has ended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from remuda import __version__
from remuda.core.events import AnyUpdate, Failure, ToolCall, Usage, tool_output
from remuda.guard.model import Verdict
from remuda.hooks.answer import told
from remuda.runtimes import acp_frames as rpc
from remuda.runtimes.base import Guard, Turn, TurnState
from remuda.runtimes.codex import appserver as wire
from remuda.runtimes.codex import guarded
from remuda.runtimes.codex.approvals import about, answer_to, call_of
from remuda.runtimes.codex.stream import TOOLS, called, completed
from remuda.runtimes.dialogue import RpcDialogue
from remuda.runtimes.failures import failure

_SANDBOXES = {"read-only": "readOnly", "danger-full-access": "dangerFullAccess"}
_RUNNING = ("item/commandExecution/outputDelta", "item/commandExecution/terminalInteraction")
_NO_SANDBOX = "bwrap: "
"""How the output of a command begins that never ran, for want of namespaces."""

_NOT_UNDERSTOOD = Verdict(
    decision="deny", rule="codex.unknown", reason="the guard does not understand what Codex asks for"
)


class GuardedParser(RpcDialogue):
    """One guarded turn over the app server's standard streams."""

    def __init__(self, turn: Turn, prompt: str, guard: Guard) -> None:
        super().__init__(TurnState(guard="awaited"))
        self._turn, self._prompt, self._guard = turn, prompt, guard
        self._round = ""
        self._servers: Mapping[str, wire.McpServer] = {}
        self._things: dict[str, wire.Thing] = {}
        self._verdicts: dict[str, Verdict] = {}
        self._titles: dict[str, str] = {}
        self._started: set[str] = set()
        self._before: Usage | None = None
        client = {"name": "remuda", "title": "Remuda", "version": __version__}
        abilities = {"experimentalApi": True}
        self._request("initialize", {"clientInfo": client, "capabilities": abilities}, self._greeted)

    def hear(self, line: bytes) -> None:
        """Standard error tells nothing that the connection does not."""

    def _refuse(self, reason: str) -> None:
        self._fail(Failure("refused", reason))

    def _take(self, frame: rpc.Frame) -> Iterable[AnyUpdate]:
        if self._over:
            return ()
        if frame.method is not None and frame.id is not None:
            self._answer(frame.id, frame.method, _params(frame))
        elif frame.method is not None:
            return self._notice(frame.method, _params(frame))
        elif frame.error is not None and frame.id in (self._ident, None):
            self._fail(failure(frame.error.message, default=self._blame))
        elif frame.id == self._ident and frame.result != rpc.NOTHING:
            self._then(frame.result)
        else:
            self.state.skipped += 1
        return ()

    # ---- before the prompt

    def _greeted(self, _result: msgspec.Raw) -> None:
        self._outbox += wire.INITIALIZED
        self._request("config/read", {"cwd": str(self._turn.cwd), "includeLayers": True}, self._configured)

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
        place = self._place(config)
        if self._turn.resume:
            known = {"threadId": self._turn.session, "excludeTurns": True}
            self._request("thread/resume", known | place, self._opened)
        else:
            self._request("thread/start", place | {"experimentalRawEvents": True}, self._opened)

    def _place(self, config: Mapping[str, object]) -> dict[str, object]:
        turn, guard = self._turn, self._guard
        said = (part for part in (turn.append_system_prompt, guard.note) if part)
        place: dict[str, object] = {
            "cwd": str(turn.cwd),
            "approvalPolicy": guarded.POLICY,
            "approvalsReviewer": "user",
            "sandbox": guarded.sandbox_for(guard.capability),
            "developerInstructions": "\n\n".join(said),
            "config": config,
        }
        if turn.model:
            place["model"] = turn.model
        if turn.system_prompt is not None:
            place["baseInstructions"] = turn.system_prompt
        return place

    def _ours(self, hook: wire.Hook) -> bool:
        command = guarded.hook_command(self._guard)
        return (hook.event_name, hook.source, hook.command) == ("preToolUse", "sessionFlags", command)

    def _opened(self, result: msgspec.Raw) -> None:
        """A session is there; what was asked for must hold in it."""
        opened = rpc.decode(result, wire.Opened) or wire.Opened()
        sandbox = _SANDBOXES[guarded.sandbox_for(self._guard.capability)]
        found = (rpc.decode(opened.approval_policy, object), opened.approvals_reviewer, opened.sandbox.type)
        if not opened.thread.id:
            self._fail(Failure("start_failed", "Codex opened no session"))
        elif found != (guarded.POLICY, "user", sandbox):
            self._refuse("Codex does not take the approval policy of a guarded run: other settings prevail")
        else:
            self.state.session, self.state.model = opened.thread.id, opened.model
            self._request("hooks/list", {"threadId": opened.thread.id}, self._checked)

    def _checked(self, result: msgspec.Raw) -> None:
        """The hook is in force in this session, and nobody else answers: now the prompt."""
        hooks = (rpc.decode(result, wire.HookList) or wire.HookList()).hooks
        if not any(self._ours(hook) and hook.runs for hook in hooks):
            self._refuse("Codex will not run the guard's hook in this session")
        elif any(hook.event_name == "permissionRequest" and hook.runs for hook in hooks):
            self._refuse("a hook of Codex's settings would answer for tool calls in the guard's place")
        else:
            self.state.guard = "reported"
            self._blame, self._prompted = "model", True
            said = [{"type": "text", "text": self._prompt}]
            self._request("turn/start", {"threadId": self.state.session, "input": said}, self._begun)

    def _begun(self, result: msgspec.Raw) -> None:
        self._round = (rpc.decode(result, wire.Begun) or wire.Begun()).turn.id

    # ---- what Codex asks

    def _answer(self, ident: rpc.Id, method: str, asked: wire.Params) -> None:
        """Answer a request: as the guard judges what is asked for, and no to all else."""
        item = about(method, asked, self._things, self._verdicts)
        thing = self._things.get(item or "")
        call = call_of(method, asked, thing, str(self._turn.cwd))
        verdict = self._guard.judge(call) if call is not None else _NOT_UNDERSTOOD
        granted = verdict.decision == "allow"
        if item is not None:
            self._verdicts[item] = verdict
        if not granted and (thing is None or wire.item_of(thing).type not in TOOLS):
            self.state.refused.append(asked.command or method)
        answer = answer_to(method, granted)
        if answer is None:
            self._outbox += rpc.rejection(ident, rpc.METHOD_NOT_FOUND, "this client does not offer that")
        else:
            self._outbox += rpc.reply(ident, answer)

    # ---- what Codex tells

    def _notice(self, method: str, news: wire.Params) -> Iterable[AnyUpdate]:
        match method:
            case "item/started" | "item/completed":
                thing = rpc.decode(news.item, wire.Thing)
                if thing is None:
                    self._refuse("Codex tells of something that the guard does not understand")
                    return ()
                return self._began(thing) if method == "item/started" else self._done(thing)
            case "hook/completed" if news.run is not None:
                return self._blocked(news.run)
            case "rawResponseItem/completed":
                raw = rpc.decode(news.item, wire.RawItem) or wire.RawItem()
                if raw.type == "function_call":
                    self._titles[raw.call_id] = wire.shown(raw)
            case "error" if news.error is not None:
                self.state.trouble = failure(news.error.words)
            case "thread/tokenUsage/updated" if news.token_usage and news.turn_id == self._round:
                self._count(news.token_usage)
            case "turn/completed" if news.turn is not None and news.thread_id == self.state.session:
                self._ended(news.turn)
            case _ if method in _RUNNING and not self._allowed(news.item_id or ""):
                self._trip()
        return ()

    def _began(self, thing: wire.Thing) -> Iterable[AnyUpdate]:
        """A thing that begins. A command that asks has no process yet."""
        item = wire.item_of(thing)
        self._things[thing.id] = thing
        if item.type not in TOOLS:
            return ()
        if thing.process_id is not None and not self._allowed(thing.id):
            self._trip()
        self.state.trouble = None
        self._started.add(item.id)
        return (called(item),)

    def _done(self, thing: wire.Thing) -> Iterable[AnyUpdate]:
        """A thing that is complete. A tool call that has run must have asked before."""
        item = wire.item_of(thing)
        self._things[thing.id] = thing
        verdict = self._verdicts.get(item.id)
        if item.type in TOOLS and verdict is not None and verdict.decision != "allow":
            item = msgspec.structs.replace(item, status="declined", aggregated_output=told(verdict))
        elif item.type in TOOLS and item.status != "declined" and not self._passes(thing):
            self._trip()
        elif item.status == "failed" and item.aggregated_output.startswith(_NO_SANDBOX):
            reason = item.aggregated_output.partition("\n")[0][:200]
            self._fail(
                Failure(
                    "start_failed",
                    f"Codex's own sandbox does not work here, and so no command runs: {reason}",
                )
            )
        self.state.trouble = None
        return completed(self.state, item, self._started)

    def _passes(self, thing: wire.Thing) -> bool:
        """Whether a tool call may have run. Codex lets a model look up what MCP servers have without asking,
        and calls that a tool call of theirs: the guard judges it afterwards."""
        if thing.type != "mcpToolCall" or thing.id in self._verdicts:
            return self._allowed(thing.id)
        call = call_of("mcpServer/elicitation/request", wire.Params(), thing, str(self._turn.cwd))
        return call is not None and self._guard.judge(call).decision == "allow"

    def _settled(self, thing: wire.Thing) -> bool:
        """Whether a tool call that nobody asked about did nothing, or was looked at when it was complete."""
        return thing.status == "declined" or thing.type == "mcpToolCall"

    def _allowed(self, ident: str) -> bool:
        verdict = self._verdicts.get(ident)
        return verdict is not None and verdict.decision == "allow"

    def _trip(self) -> None:
        self._refuse("Codex ran a tool without asking the guard, and was stopped")

    def _blocked(self, run: wire.HookRun) -> Iterator[AnyUpdate]:
        """The hook has refused a tool call, which then never becomes a thing."""
        if run.event_name != "preToolUse" or run.status != "blocked":
            return
        ident = run.id.rpartition(":")[2]
        name = self._titles.get(ident, "a tool")
        self.state.refused.append(name)
        self.state.trouble = None
        yield ToolCall(tool_call_id=ident, title=name, kind="other", status="in_progress")
        yield tool_output(ident, "failed", "\n".join(entry.text for entry in run.entries))

    def _count(self, tokens: wire.TokenUsage) -> None:
        """The tokens of this turn: what was counted before it is left out."""
        total, last = _usage(tokens.total), _usage(tokens.last)
        if self._before is None:
            self._before = _less(total, last)
        self.state.usage = _less(total, self._before)

    def _ended(self, turn: wire.Round) -> None:
        """The end of the turn. What has begun must have asked, be it complete or not."""
        self._over = True
        begun = (self._things[ident] for ident in self._started)
        if any(thing.id not in self._verdicts and not self._settled(thing) for thing in begun):
            self._trip()
        elif turn.status == "completed":
            self.state.stop_reason = "end_turn"
        elif turn.status == "interrupted":
            self.state.failure = Failure("cancelled", "Codex broke the turn off")
        else:
            self.state.failure = failure(turn.error.words if turn.error else "")


def _params(frame: rpc.Frame) -> wire.Params:
    return rpc.decode(frame.params, wire.Params) or wire.Params()


def _asking(server: wire.McpServer) -> dict[str, object]:
    """Settings by which all tools of a server ask, those that its own settings approve of as well."""
    tools = {name: {"approval_mode": "prompt"} for name in server.tools or ()}
    return {"default_tools_approval_mode": "prompt", **({"tools": tools} if tools else {})}


def _usage(counts: wire.Counts) -> Usage:
    return Usage(
        counts.input_tokens,
        counts.output_tokens,
        counts.cached_input_tokens,
        counts.cache_write_input_tokens,
        counts.reasoning_output_tokens,
    )


def _less(more: Usage, less: Usage) -> Usage:
    pairs = zip(msgspec.structs.astuple(more), msgspec.structs.astuple(less), strict=True)
    return Usage(*(max(0, a - b) for a, b in pairs))
