"""The scripted model's mind, pure: which step answers a request, and what the step says."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence

import msgspec

from remuda.rehearsal.exchange import Ask, Fault, Reply, Tool, ToolCall
from remuda.rehearsal.scenario import Call, Rule, Scenario, Step

SHELL = "shell"
SHELL_TOOLS = frozenset(
    {
        "Bash",
        "bash",
        "shell",
        "shell_command",
        "exec",
        "exec_command",
        "run_shell_command",
        "terminal",
        "execute",
    }
)
"""The names agent CLIs give their shell tool."""

UNSCRIPTED = Step(text="Heard {prompt_bytes} bytes.")
WITHOUT_TOOLS = Step(text="Rehearsal")
WITHOUT_SHELL = Step(text="The scenario calls for a shell tool, and this request offers none.")

Place = tuple[int, int]
Claim = Callable[[Place, int], bool]
"""Asks for one of the `n` times a fault may happen at a place (rule, step); false once they are used up."""

_PLACEHOLDER = re.compile(r"\{(prompt|prompt_bytes|tool_result)\}")


def choose(scenario: Scenario, ask: Ask, claim: Claim) -> Step:
    """The step that answers a request, as a pure function of the request and of the faults still to come."""
    for number, rule in enumerate(scenario.rules):
        if rule.when.matches(ask):
            return _playable(_choose_step(rule, number, ask.turn, claim), ask)
    return UNSCRIPTED


def _choose_step(rule: Rule, number: int, turn: int, claim: Claim) -> Step:
    """Turn n is answered by the n-th step that is no fault, once the faults before it have happened."""
    answered = 0
    for index, step in enumerate(rule.steps):
        if not step.is_fault:
            if answered == turn:
                return step
            answered += 1
        elif answered == turn and (step.times is None or claim((number, index), step.times)):
            return step
    texts = [step for step in rule.steps if not step.is_fault and not step.calls]
    return texts[-1] if texts else UNSCRIPTED


def _playable(step: Step, ask: Ask) -> Step:
    """Replace a tool step that the request leaves no way to play, as in the side calls made for titles."""
    if step.is_fault or not step.calls:
        return step
    if not ask.tools:
        return WITHOUT_TOOLS
    wants_shell = any(call.tool == SHELL for call in step.calls)
    return WITHOUT_SHELL if wants_shell and _shell(ask.tools) is None else step


def fault(step: Step) -> Fault | None:
    """The error a step answers with, if it does."""
    if step.status is None:
        return None
    plain = Fault(step.status, code=step.code, headers=step.headers)
    return plain if step.message is None else msgspec.structs.replace(plain, message=step.message)


def reply(step: Step, ask: Ask, ident: str) -> Reply:
    """What a step says to this request."""
    calls = tuple(
        _fit(call, ask.tools, f"{ident}_{number}") for number, call in enumerate(step.calls) if ask.tools
    )
    return Reply(
        id=ident,
        text=_fill(step.text or "", ask),
        thought=step.thought,
        calls=calls,
        usage=step.usage,
        stop="tools" if calls else "end",
    )


def _fill(text: str, ask: Ask) -> str:
    values = {
        "prompt": ask.prompt,
        "prompt_bytes": str(len(ask.prompt.encode("utf-8", "surrogatepass"))),
        "tool_result": ask.tool_results[-1] if ask.tool_results else "",
    }
    return _PLACEHOLDER.sub(lambda found: values[found[1]], text)


def _shell(tools: Sequence[Tool]) -> Tool | None:
    return next((tool for tool in tools if tool.name in SHELL_TOOLS), None)


def _fit(call: Call, tools: Sequence[Tool], ident: str) -> ToolCall:
    """Address a call to a tool of the request; any name but `shell` goes out as written, offered or not."""
    if call.tool == SHELL and (shell := _shell(tools)):
        return _encode(ident, shell, _shell_input(call.input, shell))
    named = next((tool for tool in tools if tool.name == call.tool), Tool(call.tool))
    return _encode(ident, named, call.input)


def _encode(ident: str, tool: Tool, arguments: dict[str, object]) -> ToolCall:
    return ToolCall(ident, tool.name, msgspec.json.encode(arguments).decode(), tool.namespace)


def _shell_input(given: dict[str, object], shell: Tool) -> dict[str, object]:
    """Name and shape the command as the tool's schema wants it, and describe it where it asks for that."""
    rest = {key: value for key, value in given.items() if key != "command"}
    key = "cmd" if "cmd" in shell.properties else "command"
    command = given.get("command", "")
    if shell.properties.get(key) == "array":
        command = command if isinstance(command, list) else ["bash", "-c", str(command)]
    elif isinstance(command, list):
        command = shlex.join(map(str, command))
    described = {"description": "Rehearsal step"} if "description" in shell.properties else {}
    return {key: command, **described, **rest}
