"""Writes the parts of docs/ that follow from the code: the help of every verb, the configuration keys, the
runtime matrix, the guard's rules, what proves that prompts arrive in sessions.

Usage: python tools/generate_docs.py            write them
       python tools/generate_docs.py --check    exit 1 and name the files when something would change
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from unicodedata import category

import click
import msgspec
from msgspec import inspect

from remuda.core.config import Config
from remuda.core.guardconfig import RuleConfig
from remuda.guard.table import TABLE
from remuda.operations.matrix import markdown
from remuda.operations.runtimes import report
from remuda.runtimes import registry, screens
from remuda.runtimes.base import Runtime
from remuda.runtimes.cell import Place
from remuda.surfaces.cli.main import PLACES, cli

DOCS = Path(__file__).resolve().parent.parent / "docs"
HELP_WIDTH = 100
SHORTHAND = """\
## remuda NAME

`remuda claude`, `remuda codex`, `remuda copilot`, or any other runtime's name that is no verb: short for
`remuda launch NAME`. Every argument that follows, `--help` too, goes to the agent's own command line.
"""

MEANINGS = {
    "agent": "The active agent, where nothing stronger names one: see [resolver.md](resolver.md).",
    "prompt_delivery": "`auto`, `argv`, `stdin` or `tempfile`: see [prompt-delivery.md](prompt-delivery.md).",
    "guard.gates": "Commands that agents may always run, by their first words: see [guard.md](guard.md).",
    "guard.rules": "Rules of your own, a table each.",
    "guard.protect": "Further paths that agents leave alone.",
    "guard.push": "Where mergers may push to: a remote and a ref. Not for projects.",
    "guard.network": "Hosts that may be fetched from without asking. Not for projects.",
    "guard.branch_prefix": "The default of `--branch-prefix`, as in `agents/{agent}/`.",
    "environment.pass": "More variables for headless agents; `*` matches as in file names.",
    "run.timeout": "Seconds a run may take; 0 means no limit.",
    "run.idle_timeout": "Seconds of silence after which a run is ended; 0 means no limit.",
    "run.retry_patience": "Seconds an agent may retry a failing model before its first answer; "
    "unset means as long as its first retry takes, 4 to 7.",
    "run.retry_patience_midway": "The same, once the agent has begun to answer.",
    "guard.resident": "Whether hooks and guarded runs start a process that answers faster: see "
    "[guard.md](guard.md#the-resident-process).",
    "hooks.judges": "Programs that judge tool calls beside the guard, by absolute path: see "
    "[guard.md](guard.md#several-judges).",
    "hooks.precedence": "`strictest` or `documented`: whose answer counts where several judge.",
    "sessions.consent": "Kinds of dialogs that are answered for you when a session starts in a terminal: "
    "`trust`, `key`, `bypass` …: see [sessions.md](sessions.md#dialogs-and-consent).",
    "sessions.answer_within": "Seconds that you have when a tool call waits for your word; then it is no.",
    "sessions.idle_timeout": "Seconds of silence after which a turn of a connected session is interrupted; "
    "0 means no limit.",
    "sessions.abort_within": "Seconds an agent has to end an interrupted turn before it is ended itself.",
    "serve.idle": "Seconds without a request after which the process that answers hooks ends.",
    "usage.prices.NAME.input": "US dollars per million tokens, for models of this name; `*` matches as in "
    "file names: see [usage.md](usage.md#prices).",
    "usage.prices.NAME.output": "The same for output.",
    "usage.prices.NAME.cached_read": "The same for input from a cache; unset means what input costs.",
    "usage.prices.NAME.cached_write": "The same for input that is put into a cache; unset means as above.",
    "runtimes.NAME.binary": "Another program to run for this runtime: a name on `PATH`, or a path.",
    "runtimes.NAME.model": "The model to use when `--model` is not given.",
    "database_url": "Where tasks, peers and limits are kept: `postgresql://…`; unset means here, in "
    "SQLite. `REMUDA_DATABASE_URL` wins.",
    "agents.NAME.runtime": "The runtime that this agent is one of: see [agents.md](agents.md).",
    "agents.NAME.tags": "Labels by which `--tag` finds it.",
    "agents.NAME.failover_to": "The agents that take over, in this order, when it cannot.",
    "agents.NAME.sandbox": "The sandbox profile of all its runs: see [sandbox.md](sandbox.md).",
    "agents.NAME.secrets": "The scope of `remuda secrets` that it draws from; unset means its own name.",
    "agents.NAME.home": "The folder where its program keeps settings and logins, for a second account.",
    "agents.NAME.model": "Its model when `--model` is not given.",
    "agents.NAME.disabled": "Whether it is never called.",
    "agents.NAME.limits.rate": "How often it may be called, as `30/m`; also per `s`, `h`, or `10s`.",
    "agents.NAME.limits.burst": "How many calls may come at once before the rate counts.",
    "agents.NAME.limits.max_concurrent": "How many runs at a time; 0 means any number.",
    "dispatch.mode": "`auto`, `explicit`, `round-robin`, `failover`, `tag-routed`: [agents.md](agents.md).",
    "dispatch.limits.rate": "The same for agents that have no limits of their own.",
    "dispatch.limits.burst": "The same.",
    "dispatch.limits.max_concurrent": "The same.",
    "dispatch.queue_within": "Seconds that a run waits for its turn where limits hold it back.",
    "dispatch.max_depth": "How many agents may call each other in a row.",
    "dispatch.cooldown": "Seconds that an agent is left alone after a rate limit that named no time.",
    "sandboxes.NAME.extends": "The built-in profile that it starts from.",
    "sandboxes.NAME.description": "What it is for.",
    "sandboxes.NAME.paths": "Tables of `path` and `mode` (`ro`, `rw`, `none`).",
    "sandboxes.NAME.network.policy": "`none` (but the model), `loopback`, `allowlist` or `open`.",
    "sandboxes.NAME.network.allow": "Hosts of an allow-list; `.example.org` means all below it.",
    "sandboxes.NAME.limits.timeout": "Seconds after which the agent is ended; 0 means no limit.",
    "sandboxes.NAME.limits.memory": "Memory, as `2GB`.",
    "sandboxes.NAME.limits.cpu_shares": "Weight on a busy processor; 1024 is what others have.",
    "sandboxes.NAME.limits.process_count": "How many processes it may have.",
    "sandboxes.NAME.env.allow": "Variables that get in beside what the agent needs.",
    "sandboxes.NAME.env.deny": "Variables that do not, whatever else says.",
    "peer.panes": "Whether `remuda send` opens panes also outside of tmux: see [peers.md](peers.md).",
    "peer.auto_close_panes": "Whether a pane that was opened for a message closes once its task has ended.",
    "peer.auto_close_grace_seconds": "How many seconds later.",
    "tasks.concurrency": "How many tasks a worker carries out at a time.",
    "tasks.idle": "Seconds without work after which a worker that was started by itself ends.",
    "tasks.retention_days": "Days that tasks which have ended are kept.",
    "tasks.lease": "Seconds without a sign of life after which a worker counts as dead.",
}
"""What each key is for; a key without a line here, or a line without a key, is an error."""


def block(text: str, name: str, body: str) -> str:
    """A page with the text between its ``generated: name`` markers replaced."""
    pattern = rf"(<!-- generated: {name} -->\n).*?(<!-- end of {name} -->)"
    replaced, count = re.subn(pattern, lambda found: f"{found[1]}{body}\n{found[2]}", text, flags=re.DOTALL)
    if count != 1:
        raise ValueError(f"the markers of {name} are missing")
    return replaced


def table(header: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> str:
    """A Markdown table."""
    lines = [header, tuple("---" for _ in header), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', '&#124;') for cell in line)} |" for line in lines)


def cli_page() -> str:
    """The help of every verb and sub-command, as the program prints it."""
    root = _context(cli, "remuda")
    sections = ["# Command line\n", "Written by `make docs` from the program's own `--help`.\n"]
    sections.append(_section("## remuda", cli, root))
    for verb in PLACES:
        sections += _sections(cli, root, verb, 2)
    sections.append(SHORTHAND)
    return "\n".join(sections)


def _context(command: click.Command, name: str, parent: click.Context | None = None) -> click.Context:
    settings = {**command.context_settings, "terminal_width": HELP_WIDTH, "max_content_width": HELP_WIDTH}
    return click.Context(command, parent=parent, info_name=name, **settings)


def _sections(group: click.Group, parent: click.Context, name: str, level: int) -> Iterator[str]:
    command = group.get_command(parent, name)
    assert command is not None
    context = _context(command, name, parent)
    yield _section(f"{'#' * level} {context.command_path}", command, context)
    if isinstance(command, click.Group):
        for inner in command.list_commands(context):
            yield from _sections(command, context, inner, level + 1)


def _section(title: str, command: click.Command, context: click.Context) -> str:
    return f"{title}\n\n```text\n{command.get_help(context)}\n```\n"


def keys_table() -> str:
    """Every configuration key with its type, default and meaning."""
    found = dict(_keys("", Config))
    if found.keys() != MEANINGS.keys():
        raise ValueError(f"MEANINGS is out of step with Config: {sorted(found.keys() ^ MEANINGS.keys())}")
    rows = ((f"`{key}`", *found[key], MEANINGS[key]) for key in found)
    return table(("key", "type", "default", "meaning"), rows)


def _keys(prefix: str, struct: type[object]) -> Iterator[tuple[str, tuple[str, str]]]:
    info = inspect.type_info(struct)
    assert isinstance(info, inspect.StructType)
    for field in info.fields:
        key = f"{prefix}{field.encode_name}"
        match field.type:
            case (
                inspect.StructType(cls=inner)
                | inspect.UnionType(types=(inspect.StructType(cls=inner), inspect.NoneType()))
                | inspect.UnionType(types=(inspect.NoneType(), inspect.StructType(cls=inner)))
            ):
                yield from _keys(f"{key}.", inner)
            case inspect.DictType(value_type=inspect.StructType(cls=inner)):
                yield from _keys(f"{key}.NAME.", inner)
            case kind:
                yield key, (_type_name(kind), _default(field.default))


def _type_name(kind: inspect.Type) -> str:
    match kind:
        case inspect.UnionType(types=types):
            return " or ".join(_type_name(each) for each in types if not isinstance(each, inspect.NoneType))
        case inspect.StrType() | inspect.LiteralType():
            return "text"
        case inspect.BoolType():
            return "true or false"
        case inspect.StructType():
            return "tables"
        case inspect.FloatType() | inspect.IntType():
            return "number"
        case inspect.VarTupleType(item_type=item):
            return f"list of {_type_name(item)}"
    raise ValueError(f"name the type {kind} for the table")


def _default(value: object) -> str:
    if value is inspect.NODEFAULT:
        return "needed"
    return "unset" if value is None else f"`{msgspec.json.encode(value).decode()}`"


RULE_FIELDS = {
    "decision": "`allow`, `ask` or `deny`; a project has no `allow`",
    "reason": "what the agent is told",
    "capability": "for whom; without it, for all",
    "effect": "what kind of effect",
    "path": "where a file lies that is read or written, a program that is run, a repository",
    "how": "what becomes of a file that is written",
    "host": "whom the network leads to",
    "direction": "whether data is fetched or sent",
    "operation": "what git does",
    "ref": "the branches or tags that git changes",
    "kind": "what of the machine, or of what is far away, is changed",
    "variable": "the environment variable that is set or shown",
    "program": "a program by its name, or by its path",
    "argv": "a command by its words",
    "tool": "the tool that is called, by its name in the agent's CLI",
}
"""What each field of a rule is for; one without a line here, or a line without one, is an error."""


def rule_fields() -> str:
    """Every field of a rule, with its values where they are fixed."""
    info = inspect.type_info(RuleConfig)
    assert isinstance(info, inspect.StructType)
    if (names := {field.name for field in info.fields}) != RULE_FIELDS.keys():
        raise ValueError(f"RULE_FIELDS is out of step: {sorted(names ^ RULE_FIELDS.keys())}")
    rows = ((f"`{field.name}`", RULE_FIELDS[field.name], _values(field.type)) for field in info.fields)
    return table(("field", "meaning", "values"), rows)


def _values(kind: inspect.Type) -> str:
    match kind:
        case inspect.LiteralType(values=values):
            return ", ".join(f"`{each}`" for each in values)
        case inspect.UnionType(types=types):
            return next((found for each in types if (found := _values(each))), "")
    return ""


def fixed_rows() -> str:
    """The rows of the guard's table that no policy lifts."""
    rows = ((f"`{name}`", row.fixed) for name, row in TABLE.items() if row.fixed)
    return table(("rule", "why nobody lifts it"), rows)


def matrix() -> str:
    """What is claimed about each runtime that comes with Remuda."""
    return markdown(map(report, registry.all_runtimes()), installed=False)


def receipts() -> str:
    """What proves that a prompt has arrived, and what a pane takes, by runtime."""
    header = (
        "runtime",
        "connection",
        "proof of arrival",
        "pane: proof",
        "pane: up to",
        "pane: not",
        "consent",
    )
    return table(header, (_receipt(runtime) for runtime in registry.all_runtimes()))


def _receipt(runtime: Runtime) -> tuple[str, ...]:
    connect, known = runtime.connect, screens.shipped(runtime.name).exists()
    connected = (
        (f"{connect.protocol} ({connect.verified})", connect.acknowledges) if connect else ("none", "")
    )
    if not known:
        return f"`{runtime.name}`", *connected, "screens not known", "", "", ""
    manifest = screens.load(runtime.name, DOCS)
    terminal = manifest.terminal
    limit = f"{terminal.paste_limit:,} bytes" if terminal.paste_limit else "no text"
    kinds = dict.fromkeys(
        f"`{rule.kind}`" for rule in manifest.rules if rule.consent and rule.kind != "permission"
    )
    proof = f"{terminal.proof or 'none'} ({manifest.verified})"
    return f"`{runtime.name}`", *connected, proof, limit, _altered(terminal.altered), ", ".join(kinds)


def _altered(characters: str) -> str:
    """Characters by their numbers; very many of the control characters in one word."""
    controls = [each for each in characters if category(each) in ("Cc", "Cf") and each not in "\t\r"]
    many = len(controls) > 4
    single = [f"`U+{ord(each):04X}`" for each in characters if not (many and each in controls)]
    return " ".join([*single, "other control and format characters"] if many else single)


def cells() -> str:
    """What each runtime has inside a sandbox."""
    header = ("runtime", "may write", "may only read", "finds empty", "its vendor's hosts")
    return table(header, (_cell(runtime) for runtime in registry.all_runtimes()))


def _cell(runtime: Runtime) -> tuple[str, ...]:
    cell = runtime.cell
    seen = "" if cell.verified else " (unverified)"
    places = (" ".join(map(_place, found)) for found in (cell.state, cell.reads, cell.private))
    return f"`{runtime.name}`{seen}", *places, " ".join(f"`{host}`" for host in cell.hosts)


def _place(place: Place) -> str:
    """As most people have it; where only a variable names it, by that."""
    base = f"${place.variable}" if place.usual is None else f"~/{place.usual}".rstrip("/")
    return f"`{base}/{place.below}`".replace("/`", "`")


def pages() -> dict[Path, str]:
    """Every page with generated parts, as it should be."""
    names = ("configuration", "runtimes", "guard", "sessions", "sandbox-runtimes")
    configuration, runtimes, guard, sessions, sandbox = (DOCS / f"{name}.md" for name in names)
    rules = block(guard.read_text("utf-8"), "fields", rule_fields())
    return {
        DOCS / "cli.md": cli_page(),
        configuration: block(configuration.read_text("utf-8"), "keys", keys_table()),
        runtimes: block(runtimes.read_text("utf-8"), "matrix", matrix()),
        guard: block(rules, "fixed", fixed_rows()),
        sessions: block(sessions.read_text("utf-8"), "receipts", receipts()),
        sandbox: block(sandbox.read_text("utf-8"), "cells", cells()),
    }


def drifted() -> list[Path]:
    """The pages that do not say what the code says."""
    return [path for path, text in pages().items() if not path.exists() or path.read_text("utf-8") != text]


def main() -> int:
    stale = drifted()
    if sys.argv[1:] == ["--check"]:
        for path in stale:
            print(f"{path.relative_to(DOCS.parent)} is out of date: run 'make docs'", file=sys.stderr)
        return 1 if stale else 0
    for path, text in pages().items():
        path.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
