"""Verify runtimes: hold the installed programs to what is declared about them, and keep what was seen."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from remuda.core import clock, evidence
from remuda.core.children import running
from remuda.core.environment import BASE, allowed
from remuda.core.errors import NotInstalledError, RemudaError
from remuda.core.processes import Command
from remuda.dispatch import installation
from remuda.operations.verification.enclosure import HINT, EnclosureError, entrance, place
from remuda.operations.verification.messages import (
    Begun,
    Finding,
    Message,
    Opened,
    Order,
    Subject,
    as_evidence,
)
from remuda.operations.world import World
from remuda.prompts.delivery import scratch_folder
from remuda.runtimes.base import UNVERIFIED, Runtime

__all__ = [
    "Begun",
    "Finding",
    "Message",
    "Opened",
    "RuntimeVerification",
    "Subject",
    "Tell",
    "Verification",
    "verify",
]

WORKER = "remuda.operations.verification.worker"

_ADVICE = {
    "version": "The program does not start: see to what it lacks, or install it again with '{install}'.",
    "events": "Do not rely on the events and answers of this version.",
    "usage": "Do not rely on the token counts of this version.",
    "error": "This version's failures are told as another kind: do not decide anything by that kind.",
    "resume": "Start new sessions with this version; --session does not continue one.",
    "guard": "Give this version no capability: the guard does not hold it.",
    "quiet": "This version contacts others unasked: look for its settings on telemetry and updates.",
}

Tell = Callable[[str, Message], None]
"""Hears, with the runtime's name, how the verification goes."""


class RuntimeVerification(msgspec.Struct, frozen=True, kw_only=True):
    """One runtime: what was found, what changed since the last time, and what to do about what fails."""

    name: str
    ok: bool
    path: str
    version: str | None
    verified_version: str
    seconds: float
    findings: list[Finding]
    changes: list[str]
    advice: list[str]


class Verification(msgspec.Struct, frozen=True):
    """The answer of ``remuda doctor --verify``."""

    ok: bool
    runtimes: list[RuntimeVerification]


async def verify(
    world: World, names: Sequence[str], tell: Tell, subject: Subject = "everything"
) -> Verification:
    """Verify the named runtimes, or every installed one, one after another."""
    door = entrance(world.environ)
    chosen = [each for each in _chosen(world, names) if names or _concerns(each[0], subject)]
    verified = [await _verify(world, runtime, found, door, tell, subject) for runtime, found in chosen]
    return Verification(all(one.ok for one in verified), verified)


def _concerns(runtime: Runtime, subject: Subject) -> bool:
    return subject == "everything" or runtime.guarding.by != "nothing"


def _chosen(world: World, names: Sequence[str]) -> list[tuple[Runtime, installation.Installation]]:
    runtimes = [world.herd.get(name) for name in dict.fromkeys(names)] or list(world.herd.survey().runtimes)
    places = [(runtime, installation.find(runtime, world.environ, world.config)) for runtime in runtimes]
    for runtime, found in places:
        if names and found is None:
            raise NotInstalledError(
                f"{runtime.title} is not installed: {installation.absence(runtime, world.environ)}",
                f"Install it with '{runtime.install}'.",
            )
    return [(runtime, found) for runtime, found in places if found is not None]


async def _verify(
    world: World,
    runtime: Runtime,
    found: installation.Installation,
    door: tuple[str, ...],
    tell: Tell,
    subject: Subject,
) -> RuntimeVerification:
    started = clock.now()
    with scratch_folder(world.folders.cache / "verify") as folder:
        messages = await _ordered(world, runtime, folder, door, tell, subject)
    version = next(message.version for message in messages if isinstance(message, Opened))
    findings = [message for message in messages if isinstance(message, Finding)]
    return RuntimeVerification(
        name=runtime.name,
        ok=not any(finding.verdict == "fails" for finding in findings),
        path=found.path,
        version=version,
        verified_version=runtime.verified_version,
        seconds=round(clock.now() - started, 1),
        findings=findings,
        changes=_keep(world.folders.evidence_file, runtime, version, findings) if version else [],
        advice=advice(runtime, version, findings),
    )


async def _ordered(
    world: World, runtime: Runtime, folder: Path, door: tuple[str, ...], tell: Tell, subject: Subject
) -> list[Message]:
    """Everything that a worker has told by its end."""
    settings = world.config.runtimes.get(runtime.name)
    order = Order(
        runtime=runtime.name,
        folder=str(folder.absolute()),
        config=str(world.folders.config.absolute()),
        cache=str(world.folders.cache.absolute()),
        binary=settings.binary if settings else None,
        timeout=world.config.run.timeout,
        subject=subject,
        outside=place(),
    )
    command = Command(
        argv=(*door, sys.executable, "-I", "-m", WORKER),
        env=allowed(world.environ, BASE),
        cwd=folder,
        stdin=msgspec.json.encode(order),
    )
    messages: list[Message] = []
    async with running(command) as worker:
        while (line := await worker.line()) is not None:
            if line.stream == "stdout":
                messages.append(msgspec.json.decode(line.data, type=Message))
                tell(runtime.name, messages[-1])
        code = await worker.wait()
    if code != 0 or not messages:
        raise _broken(runtime, worker.stderr_tail, bool(messages))
    return messages


def _broken(runtime: Runtime, stderr: str, opened: bool) -> RemudaError:
    """Why a worker gave up: it could not shut out the network, or it has a bug."""
    lines = [line for line in stderr.splitlines() if line.strip() and line != HINT] or ["it gave no reason"]
    if not opened:
        return EnclosureError(f"no place without a network could be made ({lines[-1]})")
    return RemudaError(
        f"the verification of {runtime.name} broke off: {lines[-1]}", "This is a bug of Remuda's."
    )


def _keep(path: Path, runtime: Runtime, version: str, findings: Sequence[Finding]) -> list[str]:
    """Store what was seen; the answer is what is no longer as it was when it was last looked at."""
    earlier = {item.what: item for item in evidence.read(path) if item.runtime == runtime.name}
    decided = [as_evidence(runtime.name, version, one) for one in findings if one.verdict != "unchecked"]
    for item in decided:
        evidence.store(path, item)
    return [
        change(before, item)
        for item in decided
        if (before := earlier.get(item.what)) and before.holds != item.holds
    ]


def change(before: evidence.Evidence, now: evidence.Evidence) -> str:
    """``usage: held on 1.0.100, fails on 1.0.102``"""
    was, is_ = ("held", "fails") if before.holds else ("failed", "holds")
    if before.version == now.version:
        return f"{now.what}: {was} on {before.version} at {before.seen_at}, {is_} now"
    return f"{now.what}: {was} on {before.version}, {is_} on {now.version}"


def advice(runtime: Runtime, version: str | None, findings: Sequence[Finding]) -> list[str]:
    """What to do about the claims that fail."""
    failing = [finding.what for finding in findings if finding.verdict == "fails"]
    if not failing:
        return []
    kinds = dict.fromkeys(what.partition(".")[0] for what in failing)
    said = [_ADVICE[kind].format(install=runtime.install) for kind in kinds if kind in _ADVICE]
    if version != runtime.verified_version != UNVERIFIED:
        said.append(f"The version that Remuda relies on is {runtime.verified_version}: '{runtime.install}'.")
    return [
        *_withdrawn(runtime, version, failing),
        *said,
        f"Look again: remuda doctor --verify {runtime.name}",
    ]


def _withdrawn(runtime: Runtime, version: str | None, failing: Sequence[str]) -> list[str]:
    """What becomes of prompts whose channel does not deliver."""
    modes = [channel.mode for channel in runtime.channels]
    left = [mode for mode in modes if f"channel.{mode}" not in failing]
    if len(left) == len(modes):
        return []
    if not left:
        return [f"Remuda gives {runtime.name} {version} no more prompts: no channel delivers them."]
    lost = " or ".join(mode for mode in modes if mode not in left)
    seen = ", which shows them to every user of this machine" if left == ["argv"] else ""
    return [f"Prompts for version {version} no longer go by {lost}; Remuda uses {' or '.join(left)}{seen}."]
