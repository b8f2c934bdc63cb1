"""What a capability makes of a run: who judges its tool calls, which way it goes, whether it may at all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from remuda.core import evidence, log
from remuda.core.errors import RefusedError, UsageError
from remuda.dispatch import installation
from remuda.dispatch.capability import access_for, capability_of, note
from remuda.guard.loading import Loader
from remuda.guard.model import Capability, Context, Verdict
from remuda.guard.own import Policy
from remuda.hooks import audit, staging
from remuda.hooks.judging import recording_judge
from remuda.operations.instructions import project_instructions
from remuda.operations.requests import Plan, RunRequest
from remuda.operations.world import World
from remuda.runtimes.base import Channel, Guard, Invocation, Judge, Parser, Runtime, Turn
from remuda.runtimes.dialogue import one_turn

CLAIM, HOOK_CLAIM = "guard.run", "guard.hook"
"""What the evidence for guarded runs is called, and for hooks in a program's own settings."""


class Way(msgspec.Struct, frozen=True):
    """How a turn is carried out. Without a channel of its own, the prompt takes the usual one."""

    command: Callable[[Turn], Invocation]
    parser: Callable[[Turn, str], Parser]
    channel: Channel | None = None


def way_of(runtime: Runtime, turn: Turn) -> Way:
    """The usual way, or for a guarded turn the one on which nothing runs unasked."""
    guarding, connect = runtime.guarding, runtime.connect
    if turn.guard is None or guarding.command is None or connect is None:
        return Way(runtime.print_command, runtime.parser)
    return Way(
        guarding.command,
        lambda turn, prompt: one_turn(connect.connection(turn), prompt),
        guarding.channel,
    )


def bounded(
    world: World,
    request: RunRequest,
    plan: Plan,
    found: installation.Installation,
    turn: Turn,
    *,
    attended: bool = False,
) -> Turn:
    """The turn with the bounds of its capability; a capability that cannot be enforced is refused. Where it
    is ``attended``, a person decides what the guard leaves open."""
    capability = capability_of(request.capability)
    if capability is None:
        return turn
    runtime = plan.runtime
    _check_enforceable(runtime, capability)
    _check_proof(world, request, runtime, found)
    bound = (
        _guarded(world, request, plan, capability, turn, attended=attended)
        if runtime.guarding.by == "approval"
        else _reduced(request, plan, capability, turn)
    )
    if objection := runtime.guarding.objection(bound):
        raise RefusedError(f"{objection}, and so the guard would not hold", "Change that, then run it again.")
    return bound


def check_capability(world: World, request: RunRequest, name: str) -> None:
    """Refuse a capability that a runtime cannot be held to; whether that was seen on the installed version is
    looked at when it is about to start."""
    if capability := capability_of(request.capability):
        _check_enforceable(world.herd.get(name), capability)


def _check_enforceable(runtime: Runtime, capability: Capability) -> None:
    way = runtime.guarding.by
    if way == "nothing" or (way == "removal" and access_for(capability) is None):
        raise _unenforceable(runtime, capability)


def _unenforceable(runtime: Runtime, capability: Capability) -> RefusedError:
    return RefusedError(
        f"{runtime.title} cannot be held to the capability {capability}",
        "Use another agent ('remuda runtimes' tells which can), or leave out --capability.",
    )


def _guarded(
    world: World, request: RunRequest, plan: Plan, capability: Capability, turn: Turn, *, attended: bool
) -> Turn:
    """Every tool call asks the guard."""
    if request.extra:
        raise UsageError(
            "a guarded run takes no arguments for the agent's own command line: they could lift the guard",
            "Leave out what follows --, or leave out --capability.",
        )
    context, judge = _judge(world, request, plan, capability, turn, attended=attended)
    guard = Guard(
        capability=capability,
        judge=judge,
        hooks=_staged(world, plan.runtime),
        note=note(capability, context.worktree or str(plan.cwd), context.branch_prefix),
    )
    instructions = project_instructions(plan.cwd, plan.runtime.guarding.instructions)
    return msgspec.structs.replace(
        turn,
        guard=guard,
        environ={**turn.environ, **_told_to_hooks(world, context)},
        append_system_prompt="\n\n".join(filter(None, (instructions, turn.append_system_prompt))) or None,
    )


def supervised(world: World, request: RunRequest, plan: Plan, turn: Turn) -> Turn:
    """A person's own session: what the program itself asks about is judged first, and then put to them. One
    that is to ask nothing has no guard."""
    if request.permission == "bypass":
        return turn
    _, judge = _judge(world, request, plan, "supervised", turn, attended=True)
    guard = Guard(
        capability="supervised",
        judge=judge,
        hooks=staging.hooks_folder(world.folders.data) / plan.runtime.name,
        note="",
        binding=False,
    )
    return msgspec.structs.replace(turn, guard=guard)


def _judge(
    world: World, request: RunRequest, plan: Plan, capability: Capability, turn: Turn, *, attended: bool
) -> tuple[Context, Judge]:
    """Who judges, and by what."""
    context = Context(
        capability=capability,
        worktree=str((request.worktree or plan.cwd).absolute()),
        branch_prefix=request.branch_prefix,
        home=turn.environ.get("HOME"),
        agent=plan.runtime.name,
        protected=world.folders.guarded,
    )
    policy = _policy(world, plan, context)
    context = context if policy is None else policy.completed(context)
    judge = recording_judge(
        context,
        audit.place(world.folders),
        runtime=plan.runtime.name,
        session=plan.session,
        policy=policy,
        attended=attended,
    )
    return context, judge


def _staged(world: World, runtime: Runtime) -> Path:
    """The folder of the runtime's hook programs, which are put there where a guarded run needs them."""
    if runtime.guarding.needs_hooks and runtime.wiring is not None:
        from remuda.operations.serve import ensure

        staging.stage(world.folders.data, runtime.name, runtime.wiring.dialect, world.herd)
        ensure(world)
    return staging.hooks_folder(world.folders.data) / runtime.name


def _told_to_hooks(world: World, context: Context) -> dict[str, str]:
    """The environment by which a hook program in the agent's own settings judges as this run does."""
    said = {
        "REMUDA_HOME": world.environ.get("REMUDA_HOME"),
        "REMUDA_CAPABILITY": context.capability,
        "REMUDA_WORKTREE": context.worktree,
        "REMUDA_BRANCH_PREFIX": context.branch_prefix,
    }
    return {name: value for name, value in said.items() if value}


def _policy(world: World, plan: Plan, context: Context) -> Policy | None:
    """The policy of this run, which stays what it is now, whatever the agent does to the files. A run without
    a policy that can be read does not start."""
    policy = Loader(str(world.folders.config_file), context.home).load(str(plan.cwd.absolute()), context)
    if isinstance(policy, Verdict):
        raise RefusedError(f"{policy.reason} ({policy.rule})", "Correct that line, then run it again.")
    return policy


def _reduced(request: RunRequest, plan: Plan, capability: Capability, turn: Turn) -> Turn:
    """Tools are taken away, for nobody could judge them."""
    if request.worktree is not None and request.worktree.resolve() != plan.cwd.resolve():
        raise RefusedError(
            f"{plan.runtime.title} can only be held to the folder that it works in, which is {plan.cwd}",
            "Work in the worktree itself: --cwd instead of --worktree.",
        )
    return msgspec.structs.replace(turn, access=access_for(capability))


def _check_proof(
    world: World, request: RunRequest, runtime: Runtime, found: installation.Installation
) -> None:
    """A guard that was not seen to hold on exactly this version is none. A built-in agent is our own work."""
    if runtime.built_in:
        return
    version = installation.known_version(runtime, found, world.folders.cache)
    proof = evidence.latest(world.folders.evidence_file, runtime.name, version).get(CLAIM)
    if proof is not None and proof.holds:
        return
    seen = f"was seen to fail: {proof.how}" if proof else "was never seen to hold"
    message = f"on {runtime.title} {version or '(unknown version)'} the guard {seen}"
    if request.unproven:
        log.warn(message, agent=runtime.name)
        return
    raise RefusedError(message, f"Look with 'remuda guard prove {runtime.name}', or insist with --unproven.")
