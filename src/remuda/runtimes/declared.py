"""A runtime from a TOML file: the same contract as an adapter's, made of data alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path

import msgspec

from remuda.core.errors import ConfigError, RefusedError, UsageError
from remuda.runtimes import shapes
from remuda.runtimes.base import (
    Channel,
    Conduct,
    Connect,
    Feature,
    Guarding,
    Invocation,
    Runtime,
    ScratchFile,
    Turn,
)
from remuda.runtimes.cell import Cell, Place
from remuda.runtimes.declaration import (
    DERIVED,
    CommandTable,
    Declaration,
    Group,
    Part,
    faults,
    filled,
    part,
)

_HINT = "Fix the file, or move it away; docs/tutorial-runtime.md explains every key."
_MUTE = {
    "tells_model": False,
    "tells_thoughts": False,
    "tells_tools": False,
    "usage": False,
    "cache_reads": False,
    "cache_writes": False,
}
"""What plain text cannot tell."""


def load(path: Path) -> Runtime:
    """The runtime that a file declares; whatever is wrong is an error that names file and place."""
    return build(read(path))


def read(path: Path) -> Declaration:
    """A file as it is written, checked."""
    import tomllib

    try:
        document = tomllib.loads(path.read_bytes().decode("utf-8-sig"))
        declared = msgspec.convert(document, Declaration)
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}", _HINT) from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise ConfigError(f"{path}: {error}", _HINT) from None
    if fault := next(chain(_misnamed(path, declared), _repeated(document), faults(declared)), None):
        raise ConfigError(f"{path}: {fault}", _HINT)
    return declared


def _misnamed(path: Path, declared: Declaration) -> Iterator[str]:
    if declared.name != path.stem:
        yield f"the name must be that of the file, {path.stem!r} - at `$.name`"


def _repeated(document: Mapping[str, object]) -> Iterator[str]:
    conduct = document.get("conduct")
    for key in DERIVED:
        if isinstance(conduct, dict) and key in conduct:
            yield f"this follows from the groups of [headless] - at `$.conduct.{key}`"


def build(declared: Declaration) -> Runtime:
    """A declaration as a runtime. Nobody but its author has tried it, so it is experimental."""
    version, conduct = declared.version, _conduct(declared)
    return Runtime(
        name=declared.name,
        title=declared.title,
        binary=declared.binary,
        install=declared.install,
        verified_version=version.verified,
        minimum_version=version.minimum,
        stability="experimental",
        channels=tuple(
            Channel(c.mode, c.arguments, c.verified, c.on_request, c.arrives, c.note)
            for c in declared.channels
        ),
        instruction_file=declared.instruction_file,
        print_command=lambda turn: _invocation(declared, declared.headless, turn),
        spawn_command=lambda turn: _invocation(declared, declared.interactive, turn),
        parser=shapes.parser(declared.stream, declared.counts, declared.tools, declared.trouble),
        connect=_connect(declared),
        cell=_cell(declared),
        conduct=conduct,
        guarding=Guarding(by="removal" if {"read", "workspace"} - conduct.refuses else "nothing"),
        patience=declared.patience,
        disarm=lambda prompt: f" {prompt}" if prompt[:1] in tuple(declared.disarm) else prompt,
        version_arguments=version.arguments,
        version_pattern=version.pattern,
        help_checks=declared.help,
        environment=declared.environment,
        keys=declared.keys,
        home_variable=declared.home_variable,
        quiet=declared.quiet,
        nested_markers=declared.nested_markers,
        features=_features(declared, conduct),
        notes=declared.notes,
    )


def _cell(declared: Declaration) -> Cell:
    """What it needs inside a sandbox. Nothing of its own is there where nothing is said."""
    table, variable = declared.sandbox, declared.home_variable
    if table is None:
        return Cell()
    held = (
        Place(table.home, variable, path.rstrip("/"))
        if path.endswith("/")
        else Place(table.home, variable, path, kind="file", blank=blank)
        for path, blank in table.held.items()
    )
    return Cell(
        state=(Place(table.home, variable),),
        reads=tuple(held),
        env=table.environment,
        hosts=table.hosts,
    )


def _connect(declared: Declaration) -> Connect | None:
    """A program that speaks the Agent Client Protocol can do so for many turns."""
    if declared.stream != "acp":
        return None
    return Connect(
        protocol="acp",
        command=lambda turn: _invocation(declared, declared.headless, turn),
        connection=shapes.connection(declared.counts, declared.tools, declared.trouble),
        acknowledges="the first update of the turn, a question in it, or its result",
        verified=declared.version.verified,
    )


def _conduct(declared: Declaration) -> Conduct:
    """What is declared, what follows from the groups, and what the output's shape cannot tell."""
    table = declared.headless
    bounds = {"ask": table.ask, "bypass": table.bypass, "read": table.read, "workspace": table.workspace}
    return msgspec.structs.replace(
        declared.conduct,
        refuses=frozenset(name for name, group in bounds.items() if group is None),
        resume=table.resume is not None,
        model_choice=table.model is not None,
        system_prompt=table.system_prompt_file is not None,
        append_system_prompt=True,
        **(_MUTE if declared.stream == "text" else {}),
    )


def _features(declared: Declaration, conduct: Conduct) -> dict[str, Feature]:
    """The claims that a file makes by what it declares."""
    claims = {
        "headless": True,
        "connection": declared.stream == "acp",
        "resume": conduct.resume,
        "usage": conduct.usage,
    }
    return {name: Feature("documented" if claimed else "no") for name, claimed in claims.items()}


def _invocation(declared: Declaration, table: CommandTable, turn: Turn) -> Invocation:
    """The parts of the command that a turn needs, in the order of the file's keys, filled in."""
    files: list[ScratchFile] = []
    arguments: list[str] = []
    env: dict[str, str] = {}
    keeps = False
    for piece, text in _pieces(declared, table, turn):
        file = f"part-{len(files)}.md"
        if text is not None:
            files.append(ScratchFile(file, text))
        places = {**_places(turn), "file": str(turn.scratch / file)}
        arguments += (filled(argument, places) for argument in piece.arguments)
        env |= {name: filled(value, places) for name, value in piece.environment.items()}
        files += (ScratchFile(name, filled(content, places)) for name, content in piece.files.items())
        keeps = keeps or any("{keep}" in text for text in piece.texts())
    unplaced = table.append_system_prompt_file is None
    return Invocation(
        arguments=(*arguments, *turn.extra),
        env=env,
        files=tuple(files),
        preamble=(turn.append_system_prompt or "") if unplaced else "",
        keeps=keeps,
    )


def _places(turn: Turn) -> dict[str, str]:
    return {
        "cwd": str(turn.cwd),
        "endpoint": turn.endpoint or "",
        "keep": str(turn.keep),
        "model": turn.model or "",
        "scratch": str(turn.scratch),
        "session": turn.session,
    }


def _pieces(declared: Declaration, table: CommandTable, turn: Turn) -> Iterator[tuple[Part, str | None]]:
    """Each piece of the command, with the text of the file that it needs."""
    title = declared.title
    yield table.always(), None
    if turn.resume:
        yield _given(table.resume, f"{title} cannot continue a session"), None
    elif table.new_session is not None:
        yield part(table.new_session), None
    yield _bound(title, table, turn), None
    if turn.model:
        yield _given(table.model, f"{title} has no choice of models"), None
    if turn.system_prompt is not None:
        group = _given(table.system_prompt_file, f"{title} has no way to replace its system prompt")
        yield group, turn.system_prompt
    if turn.append_system_prompt is not None and table.append_system_prompt_file is not None:
        yield part(table.append_system_prompt_file), turn.append_system_prompt
    if turn.endpoint is not None:
        yield _given(declared.endpoint, f"{title} cannot be pointed at another model endpoint"), None


def _given(group: Group | None, otherwise: str) -> Part:
    """A group that the turn needs."""
    if group is None:
        raise UsageError(otherwise, "Leave that option out, or add its group to the runtime's file.")
    return part(group)


def _bound(title: str, table: CommandTable, turn: Turn) -> Part:
    """The group that holds the program to its access, which wins over a bypass, or to its permission."""
    bounds = {"ask": table.ask, "bypass": table.bypass, "read": table.read, "workspace": table.workspace}
    wanted = turn.access or turn.permission
    group = bounds[wanted]
    if group is None:
        raise RefusedError(
            f"{title} cannot be held to {wanted!r}: its file has no such group",
            "Use another permission, capability or agent.",
        )
    return part(group)
