"""The app server's protocol as a state machine: once a session is open, prompts, and an answer for every tool
call until each turn has ended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from remuda.core.events import AnyUpdate, Failure, ToolCall, Usage, tool_output
from remuda.guard.model import Verdict
from remuda.guard.tools import ToolCall as Judged
from remuda.hooks.answer import told
from remuda.runtimes import acp_frames as rpc
from remuda.runtimes.base import Turn
from remuda.runtimes.codex import appserver as wire
from remuda.runtimes.codex.approvals import about, answer_to, askable, call_of, in_words
from remuda.runtimes.codex.opening import Opening
from remuda.runtimes.codex.stream import TOOLS, called, completed
from remuda.runtimes.failures import failure

_RUNNING = ("item/commandExecution/outputDelta", "item/commandExecution/terminalInteraction")
_INTERRUPT = 0
"""The number of a request whose answer does not matter."""

_NO_BOUNDS = {"type": "dangerFullAccess"}
"""What a person has allowed runs once, as it was allowed. In a sandbox it would fail, wholly or in part, and
be run again without."""

_NO_SANDBOX = "bwrap: "
"""How the output of a command begins that never ran, for want of namespaces."""

_NOT_UNDERSTOOD = Verdict(
    decision="deny", rule="codex.unknown", reason="the guard does not understand what Codex asks for"
)
_ASK_A_PERSON = msgspec.structs.replace(_NOT_UNDERSTOOD, decision="ask")


class CodexConnection(Opening):
    """Turns over the app server's standard streams."""

    def __init__(self, turn: Turn) -> None:
        super().__init__(turn)
        self._round = ""
        self._things: dict[str, wire.Thing] = {}
        self._verdicts: dict[str, Verdict] = {}
        self._titles: dict[str, str] = {}
        self._started: set[str] = set()
        self._before: Usage | None = None

    def hear(self, line: bytes) -> None:
        """Standard error tells nothing that the connection does not."""

    def _take(self, frame: rpc.Frame) -> Iterable[AnyUpdate]:
        if self.phase == "closed":
            return ()
        if frame.method is not None and frame.id is not None:
            return self._answer(frame.id, frame.method, _params(frame))
        if frame.method is not None:
            return self._notice(frame.method, _params(frame))
        if frame.error is not None and frame.id in (self._ident, None):
            self._rejected(failure(frame.error.message, default=self._blame))
        elif frame.id == self._ident and frame.result != rpc.NOTHING:
            self._then(frame.result)
        elif frame.id != _INTERRUPT:
            self.state.skipped += 1
        return ()

    def _rejected(self, reason: Failure) -> None:
        """Codex does not take a prompt, or not even a session."""
        if self.phase == "working":
            self.state.failure = reason
            self._end()
        else:
            self._fail(reason)

    # ---- a turn, from its prompt to its end

    def _begin(self, text: str) -> None:
        self._round = ""
        self._before = None
        self._things.clear()
        self._titles.clear()
        self._started.clear()
        said = {"threadId": self.state.session, "input": [{"type": "text", "text": text}]}
        bounds = {"sandboxPolicy": _NO_BOUNDS} if self._guard is None else {}
        self._request("turn/start", {**said, **bounds}, self._begun)

    def _begun(self, result: msgspec.Raw) -> None:
        if self.phase == "working":
            self._round = (rpc.decode(result, wire.Begun) or wire.Begun()).turn.id
            self.acknowledged = True
            if self._aborting:
                self._cancel()

    def _cancel(self) -> None:
        """Interrupt the turn, as soon as it has a name."""
        if self._round:
            named = {"threadId": self.state.session, "turnId": self._round}
            self._outbox += rpc.request(_INTERRUPT, "turn/interrupt", named)

    # ---- what Codex asks

    def _answer(self, ident: rpc.Id, method: str, asked: wire.Params) -> Iterable[AnyUpdate]:
        """Answer a request: as the guard judges what is asked for, and no to all else. What the guard does
        not understand is for the person, where there is one."""
        item = about(method, asked, self._things, self._verdicts)
        thing = self._things.get(item or "")
        call = call_of(method, asked, thing, str(self._turn.cwd))

        def reply(verdict: Verdict) -> Iterable[AnyUpdate]:
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
            return ()

        if call is not None:
            return self._judge(call, reply, ident)
        if self._guard is not None or not askable(method, asked):
            return reply(_NOT_UNDERSTOOD)
        shown = Judged(method, {"command": in_words(method, asked)}, str(self._turn.cwd))
        verdict = self._verdict(shown) if self._aborting or self._turn.guard is None else _ASK_A_PERSON
        return self._settle(shown, verdict, reply, ident)

    # ---- what Codex tells

    def _notice(self, method: str, news: wire.Params) -> Iterable[AnyUpdate]:
        match method:
            case "item/started" | "item/completed":
                return self._item(method, rpc.decode(news.item, wire.Thing))
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
            case "serverRequest/resolved":
                self._withdraw(news.request_id)
            case "turn/completed" if news.turn is not None and self._is_ours(news):
                self._ended(news.turn)
            case _ if method in _RUNNING and not self._allowed(news.item_id or ""):
                self._trip()
        return ()

    def _is_ours(self, news: wire.Params) -> bool:
        """Whether the turn that is told of is the one under way."""
        ident = news.turn.id if news.turn else ""
        same = not ident or not self._round or ident == self._round
        return self.phase == "working" and news.thread_id == self.state.session and same

    def _item(self, method: str, thing: wire.Thing | None) -> Iterable[AnyUpdate]:
        if thing is not None:
            return self._began(thing) if method == "item/started" else self._done(thing)
        self.state.skipped += 1
        if self._guard is not None:
            self._refuse("Codex tells of something that the guard does not understand")
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
        elif self._guard and item.status == "failed" and item.aggregated_output.startswith(_NO_SANDBOX):
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
        guard = self._guard
        return call is not None and guard is not None and guard.judge(call).decision == "allow"

    def _settled(self, thing: wire.Thing) -> bool:
        """Whether a tool call that nobody asked about did nothing, or was looked at when it was complete."""
        return thing.status == "declined" or thing.type == "mcpToolCall"

    def _allowed(self, ident: str) -> bool:
        verdict = self._verdicts.get(ident)
        return verdict is not None and verdict.decision == "allow"

    def _trip(self) -> None:
        """A tool has run that nobody was asked about, which in a person's own session may be."""
        if self._guard is not None:
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
        begun = (self._things[ident] for ident in self._started)
        unasked = any(thing.id not in self._verdicts and not self._settled(thing) for thing in begun)
        if unasked and self._guard is not None:
            self._trip()
            return
        if turn.status == "completed":
            self.state.stop_reason = "end_turn"
        elif turn.status == "interrupted":
            self.state.failure = Failure("cancelled", "Codex broke the turn off")
        else:
            self.state.failure = failure(turn.error.words if turn.error else "")
        self._end()


def _params(frame: rpc.Frame) -> wire.Params:
    return rpc.decode(frame.params, wire.Params) or wire.Params()


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
