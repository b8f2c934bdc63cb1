"""The agent itself: prompt, answer, tool calls and their results, until the model is done."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
from msgspec import Struct

from remuda.rehearsal.agent import lines, tools
from remuda.rehearsal.agent.hooks import Hooks, Occasion
from remuda.rehearsal.agent.lines import Emit, Problem, Result
from remuda.rehearsal.agent.messages import (
    Block,
    Message,
    Request,
    Text,
    ToolResult,
    ToolUse,
    Usage,
    unanswered,
)
from remuda.rehearsal.agent.model import Endpoint, ModelError, ask
from remuda.rehearsal.agent.process import Processes
from remuda.rehearsal.agent.store import Transcript
from remuda.rehearsal.agent.tools import Mode, Outcome

MAX_TOKENS = 8192

Approve = Callable[[ToolUse], str | None]
"""Asks whoever is there whether a tool call may run; returns why it may not, or None."""


class Setup(Struct, frozen=True):
    """How a session is to run."""

    model: str
    system: str
    mode: Mode
    max_turns: int
    cwd: Path


class Agent:
    """One session: the conversation so far and everything needed to carry it on."""

    def __init__(
        self,
        setup: Setup,
        endpoint: Endpoint,
        hooks: Hooks,
        transcript: Transcript,
        processes: Processes,
        emit: Emit,
        approve: Approve,
    ) -> None:
        self._setup = setup
        self._endpoint = endpoint
        self._hooks = hooks
        self._transcript = transcript
        self._processes = processes
        self._emit = emit
        self._approve = approve
        self._offered = tools.offered(setup.mode)
        self._messages: list[Message] = []
        self._notes: list[str] = []
        self._usage = Usage()

    def start(self, earlier: list[Message] | None) -> None:
        """Introduce the session; `earlier` is the conversation it continues."""
        self._messages = list(earlier or ())
        cwd = lines.shown(self._setup.cwd)
        self._emit(lines.Session(self._transcript.session_id, self._setup.model, cwd, self._offered))
        source = "startup" if earlier is None else "resume"
        self._note(self._hooks.ask(Occasion(hook_event_name="SessionStart", source=source)).context)

    def end(self, reason: str) -> None:
        """Say goodbye to the hooks."""
        self._hooks.ask(Occasion(hook_event_name="SessionEnd", reason=reason))

    def turn(self, prompt: str) -> Result:
        """Answer one prompt and tell how that ended."""
        return self.conclude(self.answer(prompt))

    def conclude(self, result: Result | None) -> Result:
        """Tell how a turn ended; None is one that was interrupted."""
        result = result or self._result("interrupted")
        self._emit(result)
        return result

    def answer(self, prompt: str) -> Result:
        """Answer one prompt."""
        self._usage = Usage()
        verdict = self._hooks.ask(Occasion(hook_event_name="UserPromptSubmit", prompt=prompt))
        if verdict.decision == "block":
            return self._result("blocked", Problem(0, f"a hook blocked the prompt: {verdict.reason}"))
        self._note(verdict.context)
        notes = [Text(f"<system-reminder>\n{note}\n</system-reminder>") for note in self._notes]
        self._tell(*unanswered(self._messages), *notes, Text(prompt))
        self._notes = []
        try:
            return self._converse()
        except ModelError as error:
            return self._result("error", Problem(error.status, error.message))

    def _converse(self) -> Result:
        stopped_before = False
        for _ in range(self._setup.max_turns):
            message, stop_reason = self._listen()
            if message.calls:
                self._tell(*[self._handle(call) for call in message.calls])
                continue
            stop = Occasion(
                hook_event_name="Stop", stop_hook_active=stopped_before, last_assistant_message=message.text
            )
            verdict = self._hooks.ask(stop)
            if verdict.decision != "block":
                return self._result(stop_reason, text=message.text)
            stopped_before = True
            self._tell(Text(verdict.reason))
        return self._result("max_turns", Problem(0, f"stopped after {self._setup.max_turns} model turns"))

    def _listen(self) -> tuple[Message, str]:
        """The model's next message and why it ended there."""
        request = Request(
            model=self._setup.model,
            max_tokens=MAX_TOKENS,
            stream=True,
            messages=tuple(message for message in self._messages if message.content),
            system=self._setup.system,
            tools=tuple(map(tools.spec, self._offered)),
        )
        answer = ask(self._endpoint, request, self._emit)
        self._usage += answer.usage
        self._messages.append(answer.message)
        self._transcript.add_answer(answer.message, self._setup.model, answer.stop_reason, answer.usage)
        return answer.message, answer.stop_reason

    def _tell(self, *blocks: Block) -> None:
        message = Message("user", blocks)
        self._messages.append(message)
        self._transcript.add_user(message)

    def _note(self, context: str) -> None:
        """Keep what a hook wants the model to know for the next prompt."""
        if context:
            self._notes.append(context)

    def _handle(self, call: ToolUse) -> ToolResult:
        self._emit(lines.ToolCall(call.id, call.name, call.input))
        outcome = self._decide(call)
        self._emit(lines.ToolOutcome(call.id, outcome.status, outcome.output))
        return ToolResult(call.id, outcome.output, is_error=outcome.status != "completed")

    def _decide(self, call: ToolUse) -> Outcome:
        """Refuse a call, or run it."""
        if call.name not in self._offered:
            return Outcome("refused", f"There is no tool {call.name} here. Use: {', '.join(self._offered)}")
        try:
            tool = tools.parse(call.name, call.input)
        except msgspec.ValidationError as error:
            return Outcome("failed", f"The input does not fit the tool: {error}")
        about = Occasion(
            hook_event_name="PreToolUse", tool_name=call.name, tool_input=call.input, tool_use_id=call.id
        )
        verdict = self._hooks.ask(about)
        permission = tools.permission(self._setup.mode, call.name, verdict.decision)
        if permission == "refuse":
            return Outcome("refused", f"A hook blocked {call.name}: {verdict.reason}")
        if permission == "ask" and (objection := self._approve(call)):
            return Outcome("refused", f"{objection} {verdict.reason}".strip())
        return self._follow_up(about, tools.run(tool, self._setup.cwd, self._processes))

    def _follow_up(self, about: Occasion, outcome: Outcome) -> Outcome:
        """Let hooks comment on a call that succeeded; it has happened, so a block is only a remark."""
        if outcome.status != "completed":
            return outcome
        after = msgspec.structs.replace(about, hook_event_name="PostToolUse", tool_response=outcome.output)
        verdict = self._hooks.ask(after)
        remark = verdict.reason if verdict.decision == "block" else verdict.context
        return Outcome(outcome.status, f"{outcome.output}\n{remark}") if remark else outcome

    def _result(self, stop_reason: str, error: Problem | None = None, text: str = "") -> Result:
        return Result(self._transcript.session_id, self._setup.model, text, self._usage, stop_reason, error)
