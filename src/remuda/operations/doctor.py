"""Examine the installation: agents, versions, flags, prompt delivery. Never prints a prompt or a secret."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from collections.abc import Iterable
from pathlib import Path

import msgspec

from remuda import __version__
from remuda.core import evidence, log
from remuda.core.children import ask
from remuda.core.processes import Command
from remuda.dispatch import installation
from remuda.operations.agents import which
from remuda.operations.world import World
from remuda.prompts import selection
from remuda.runtimes.base import UNVERIFIED, HelpCheck, Runtime
from remuda.sessions.tmux import errors as tmux
from remuda.sessions.tmux.client import version

LONG_PROMPT = 64 * 1024
HELP_TIMEOUT = 20.0
_NO_PANES = "sessions in panes do not work; those over a connection do"


class DeliveryReport(msgspec.Struct, frozen=True):
    """How a long prompt would reach one runtime under the requested mode."""

    name: str
    capabilities: list[str]
    notes: list[str]
    effective: str
    warnings: list[str]


class PromptDelivery(msgspec.Struct, frozen=True):
    """The prompt-delivery section."""

    requested: str
    auto_threshold: int
    runtimes: list[DeliveryReport]


class Examination(msgspec.Struct, frozen=True):
    """One runtime's state: ``problems`` make the doctor fail, ``warnings`` do not."""

    name: str
    installed: bool
    path: str | None
    version: str | None
    verified_version: str
    channels: dict[str, str]
    hooks: str
    connection: str
    problems: list[str]
    warnings: list[str]


class Terminals(msgspec.Struct, frozen=True):
    """The tmux that sessions in panes need. To lack it is no problem: connections need none."""

    path: str | None
    version: str | None
    warnings: list[str]


class Diagnosis(msgspec.Struct, frozen=True):
    """The answer of ``remuda doctor``."""

    ok: bool
    remuda_version: str
    active_agent: str
    active_source: str
    runtimes: list[Examination]
    tmux: Terminals
    prompt_delivery: PromptDelivery
    problems: list[str]


async def doctor(world: World) -> Diagnosis:
    """Examine everything; installed programs are asked side by side."""
    active = which(world)
    herd = world.herd.survey()
    examined = list(await asyncio.gather(*(_examine(world, runtime) for runtime in herd.runtimes)))
    problems = list(herd.problems)
    if any(report.name == active.agent and not report.installed for report in examined):
        install = world.herd.get(active.agent).install
        problems.append(
            f"the active agent {active.agent} (from {active.source}) is not installed: "
            f"install it with '{install}', or choose another with 'remuda use NAME'"
        )
    return Diagnosis(
        ok=not problems and not any(report.problems for report in examined),
        remuda_version=__version__,
        active_agent=active.agent,
        active_source=active.source,
        runtimes=examined,
        tmux=await _terminals(world),
        prompt_delivery=prompt_delivery(world, herd.runtimes),
        problems=problems,
    )


async def _terminals(world: World) -> Terminals:
    program = shutil.which("tmux", path=world.environ.get("PATH") or os.defpath)
    if program is None:
        return Terminals(None, None, [f"{tmux.missing().message}: {_NO_PANES}"])
    answer = await ask(Command(argv=(program, "-V"), env={}, cwd=Path("/")), HELP_TIMEOUT)
    if answer is None or answer.returncode != 0:
        return Terminals(program, None, [f"'tmux -V' failed: {_NO_PANES}"])
    said = answer.stdout.strip().removeprefix("tmux ")
    found = version(said)
    old = found is not None and found < tmux.OLDEST
    return Terminals(program, said, [f"{tmux.too_old(said).message}; {_NO_PANES}"] if old else [])


def prompt_delivery(world: World, runtimes: Iterable[Runtime]) -> PromptDelivery:
    """The static report: capabilities, and what would happen to a long prompt."""
    requested = selection.from_env(world.environ, world.config.prompt_delivery, log.warn)
    return PromptDelivery(
        requested,
        selection.AUTO_THRESHOLD,
        [_delivery(runtime, requested) for runtime in runtimes],
    )


def _delivery(runtime: Runtime, requested: selection.Requested) -> DeliveryReport:
    capabilities = [channel.mode for channel in runtime.channels]
    notes = [f"{channel.mode}: {channel.note}" for channel in runtime.channels if channel.note]
    notes += [f"{channel.mode}: only on request" for channel in runtime.channels if channel.on_request]
    try:
        chosen = selection.select(runtime, requested, LONG_PROMPT)
    except selection.NoChannelError as error:
        return DeliveryReport(runtime.name, [*capabilities], notes, "none", [error.message])
    return DeliveryReport(runtime.name, [*capabilities], notes, chosen.mode, list(chosen.warnings))


async def _examine(world: World, runtime: Runtime) -> Examination:
    found = installation.find(runtime, world.environ, world.config)
    problems: list[str] = []
    warnings: list[str] = []
    version = installation.Version(None)
    if found is not None:
        version = await installation.version(runtime, found, world.environ, world.folders.cache)
        problems += [version.trouble] if version.trouble else await _missing_flags(world, runtime, found)
        warnings += [*_version_warnings(runtime, version.number), *runtime.examine(world.environ)]
    elif reason := runtime.absence(world.environ):
        problems.append(reason)
    known = evidence.latest(world.folders.evidence_file, runtime.name, version.number)
    hooks, connection = (runtime.features.get(name) for name in ("hooks", "connection"))
    return Examination(
        name=runtime.name,
        installed=found is not None,
        path=found.path if found else None,
        version=version.number,
        verified_version=runtime.verified_version,
        channels={c.mode: _standing(c.verified, known.get(f"channel.{c.mode}")) for c in runtime.channels},
        hooks=hooks.state if hooks else "no",
        connection=connection.state if connection else "no",
        problems=problems,
        warnings=warnings,
    )


def _standing(verified: str | None, seen: evidence.Evidence | None) -> str:
    """What backs a channel: this machine's own evidence before ours."""
    if seen is not None:
        verdict = "holds" if seen.holds else "withdrawn: it did not deliver"
        return f"{verdict} (seen here on {seen.version}, {seen.seen_at})"
    return f"verified on {verified}" if verified else "documented"


def _version_warnings(runtime: Runtime, version: str | None) -> list[str]:
    if version is None or version == runtime.verified_version:
        return []
    if runtime.verified_version == UNVERIFIED:
        return [f"no version of {runtime.name} has been verified; what is known comes from its documentation"]
    return [f"version {version} was not verified; {runtime.verified_version} was"]


async def _missing_flags(world: World, runtime: Runtime, found: installation.Installation) -> list[str]:
    """Flags that we rely on and that the program's help no longer mentions."""
    missing = await asyncio.gather(
        *(_unmentioned(world, runtime, found, check) for check in runtime.help_checks)
    )
    return [problem for problems in missing for problem in problems]


async def _unmentioned(
    world: World, runtime: Runtime, found: installation.Installation, check: HelpCheck
) -> list[str]:
    command = Command(
        argv=(*found.program, *check.arguments),
        env=installation.probe_environment(runtime, world.environ),
        cwd=Path("/"),
    )
    answer = await ask(command, HELP_TIMEOUT)
    shown = " ".join((runtime.binary, *check.arguments))
    if answer is None or answer.returncode != 0:
        return [f"'{shown}' failed{installation.because(runtime, answer)}"]
    page = f"{answer.stdout}\n{answer.stderr}"
    return [
        f"'{shown}' no longer mentions {flag}: this version may not work with Remuda"
        for flag in check.flags
        if not re.search(rf"(?<![\w-]){re.escape(flag)}(?![\w-])", page)
    ]
