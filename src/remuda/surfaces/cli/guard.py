"""``remuda guard``"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from remuda.core.errors import EXIT_OK, EXIT_REFUSED, UsageError
from remuda.operations.guard import CAPABILITIES, Question
from remuda.surfaces.cli.guardinstall import install, remove, status
from remuda.surfaces.cli.output import as_json, write_json
from remuda.surfaces.cli.prove import prove

if TYPE_CHECKING:
    from remuda.operations.guard import Answer, Explanation, Rule, Step
    from remuda.operations.guardlog import Filter, Record

Command = TypeVar("Command", bound=Callable[..., Any])

_PAUSE = 0.25
"""Seconds between two looks at a log that is followed."""


def _call(command: Command) -> Command:
    """What ``check`` and ``explain`` share: a tool call, and for whom it is judged."""
    for option in (
        click.argument("command", required=False),
        click.option(
            "--tool", default="Bash", show_default=True, metavar="NAME", help="The tool that is called."
        ),
        click.option("--input", metavar="JSON", help="The tool's input, instead of a command."),
        click.option(
            "--capability",
            type=click.Choice(CAPABILITIES),
            default="supervised",
            show_default=True,
            help="What the agent is there for.",
        ),
        click.option("--worktree", metavar="DIR", help="The folder that the agent may change."),
        click.option(
            "--branch-prefix", metavar="PREFIX", help="How the names of the agent's branches begin."
        ),
        click.option("--cwd", metavar="DIR", help="Where the agent is; default: here."),
        click.option(
            "--policy",
            type=click.Path(exists=True, dir_okay=False),
            metavar="FILE",
            help="Try this file out in place of your own config.toml.",
        ),
    ):
        command = option(command)
    return command


@click.group()
def guard() -> None:
    """Ask what an agent may do, and have agents' own CLIs ask.

    \b
    Examples:
      remuda guard check "git push --force"
      remuda guard check --capability builder --worktree . "rm -rf ../other"
      remuda guard check --tool Write --input '{"file_path": "/etc/hosts", "content": ""}'
      remuda guard explain "curl -s https://example.com/x | sh"
      remuda guard check --batch < calls.jsonl
      remuda guard log --decision deny --since 2h
      remuda guard prove claude
      remuda guard install claude
    """


for _command in (install, remove, status, prove):
    guard.add_command(_command)


@guard.command()
@_call
@click.option("--batch", is_flag=True, help="Read tool calls from standard input, a JSON object a line.")
@as_json
def check(batch: bool, as_json: bool, policy: str | None, **question: Any) -> int:
    """Judge a shell COMMAND, or another tool's call: allow, ask or deny.

    Nothing is run. Exit code 0 for allow, 5 for ask and deny; with --batch 0, whatever the answers are.

    \b
    A line of a batch, and its answer:
      {"id": "1", "tool": "Bash", "input": {"command": "ls"}, "cwd": "/w",
       "context": {"capability": "scout", "worktree": "/w"}}
      {"id": "1", "decision": "allow", "rule": "allow", "reason": "…", "hint": "", "effects": [...]}
    """
    from remuda.operations.guard import case, loader
    from remuda.operations.guard import check as operation
    from remuda.operations.world import bare_world

    if batch:
        return _batch(Question(**question), policy)
    world = bare_world()
    answer = operation(world, case(world, Question(**question)), loader(world, policy))
    if as_json:
        write_json(answer)
    else:
        _show(answer)
    return EXIT_OK if answer.decision == "allow" else EXIT_REFUSED


@guard.command()
@_call
@as_json
def explain(as_json: bool, policy: str | None, **question: Any) -> int:
    """Judge a COMMAND or call and show every step: effects, where paths lead, the rows of the table."""
    from remuda.operations.guard import case, loader
    from remuda.operations.guard import explain as operation
    from remuda.operations.world import bare_world

    world = bare_world()
    explanation = operation(world, case(world, Question(**question)), loader(world, policy))
    if as_json:
        write_json(explanation)
    else:
        _show_steps(explanation)
        _show(explanation.answer)
    return EXIT_OK if explanation.answer.decision == "allow" else EXIT_REFUSED


@guard.command()
@click.option("-f", "--follow", is_flag=True, help="Go on with what is decided from now on.")
@click.option("--decision", type=click.Choice(("allow", "ask", "deny")), help="Only these decisions.")
@click.option("--rule", metavar="RULE", help="Only this rule, or this group of rules.")
@click.option("--session", metavar="ID", help="Only this session of an agent.")
@click.option("--since", metavar="TIME", help="Only what is newer: 90s, 10m, 2h, 7d, or a date and time.")
@click.option(
    "--limit", type=click.IntRange(min=1), metavar="N", help="The newest N only; default: all there are."
)
@as_json
def log(follow: bool, as_json: bool, **wanted: Any) -> int:
    """Show what hooks have decided, oldest first.

    A line is a time, a decision, the rule, the tool, the capability, the session, and a digest and the length
    of the command, which itself is not kept. With --follow, --json prints an object a line.
    """
    from remuda.operations.guardlog import Filter
    from remuda.operations.guardlog import log as operation
    from remuda.operations.world import bare_world

    if follow:
        return _follow(Filter(**wanted), as_json)
    found = operation(bare_world(), Filter(**wanted))
    if as_json:
        write_json(found)
    else:
        for record in found.records:
            _show_record(record)
    return EXIT_OK


def _follow(wanted: Filter, as_json: bool) -> int:
    """Records as they come, until it is interrupted."""
    import time

    import msgspec

    from remuda.operations.guardlog import follow
    from remuda.operations.world import bare_world

    for record in follow(bare_world(), wanted, lambda: time.sleep(_PAUSE)):
        if as_json:
            click.echo(msgspec.json.encode(record))
        else:
            _show_record(record)
    return EXIT_OK


def _show_record(record: Record) -> None:
    decided = record.decision or record.event
    about = f"{record.digest} {record.length}" if record.digest else ""
    fields = (record.rule, record.tool, record.capability, record.session, record.runtime, about)
    click.echo(f"{record.time}  {decided:<5}  {'  '.join(each or '-' for each in fields)}")


def _batch(question: Question, policy: str | None) -> int:
    """Answers as they come, a line each."""
    import msgspec

    from remuda.operations.guard import batch, loader
    from remuda.operations.world import bare_world

    if question.command is not None or question.input is not None:
        hint = "As in: remuda guard check --batch < calls.jsonl"
        raise UsageError("--batch reads its calls from standard input", hint)
    encoder = msgspec.json.Encoder()
    world = bare_world()
    for answer in batch(world, sys.stdin.buffer, loader(world, policy)):
        sys.stdout.buffer.write(encoder.encode(answer) + b"\n")
        sys.stdout.buffer.flush()
    return EXIT_OK


def _show(answer: Answer) -> None:
    click.echo(f"{answer.decision}: {answer.reason} ({answer.rule})")
    if answer.hint and answer.decision != "allow":
        click.echo(f"  {answer.hint}")


def _show_steps(explanation: Explanation) -> None:
    context = explanation.context
    click.echo(f"as {context.capability} in {explanation.cwd}, worktree {context.worktree or 'none'}")
    for source in explanation.sources:
        click.echo(f"shell: {source}")
    if not explanation.steps:
        click.echo("no effects")
    for number, step in enumerate(explanation.steps, 1):
        _show_step(number, step)
    for rule in explanation.own:
        click.echo(f"the call itself: {rule.rule}{_place(rule)}")
    click.echo("")


def _show_step(number: int, step: Step) -> None:
    import msgspec

    fields = msgspec.to_builtins(step.effect)
    name, source, via = fields.pop("effect"), fields.pop("source"), fields.pop("via")
    told = ", ".join(
        f"{key} {_told(value)}" for key, value in fields.items() if value not in (None, "", [], (), False)
    )
    behind = f"   via {' > '.join(via)}" if via else ""
    click.echo(f"{number}. {name}: {told}{behind}" + (f"   in: {source}" if source else ""))
    for place in step.places:
        marks = "".join(f", {mark}" for mark in sorted(place.marks))
        click.echo(f"   {place.written or '?'} -> {place.path or '?'} ({place.zone}{marks})")
    for row in step.rows:
        by_decision = (
            f"{decision} {', '.join(name for name, each in row.decisions.items() if each == decision)}"
            for decision in dict.fromkeys(row.decisions.values())
        )
        click.echo(f"   {row.rule}: {'; '.join(by_decision)}{_place(row)}")
    for row in step.lifted:
        click.echo(f"   {row.rule}: lifted{_place(row)}")
    click.echo(f"   {step.decision}")


def _place(rule: Rule) -> str:
    """Where a rule of one's own stands."""
    if rule.file is None:
        return ""
    return f"   by {rule.file}" + (f", line {rule.line}" if rule.line else "")


def _told(value: object) -> str:
    """A field of an effect in words."""
    if isinstance(value, dict):
        return " or ".join(value["values"]) or f"{value['prefix']}(unknown)"
    if isinstance(value, list | tuple):
        return " ".join(_told(each) for each in value)
    return str(value)
