"""Takes tasks in: what a run would refuse at once is refused here, before anything is on record."""

from __future__ import annotations

import msgspec

from remuda.core.errors import RefusedError, UsageError
from remuda.dispatch.tasks import store
from remuda.dispatch.tasks.model import FINAL, Submission
from remuda.operations.agents import chosen
from remuda.operations.agentsecrets import may_be_secret
from remuda.operations.gating import check_origin, pass_gate, with_origin
from remuda.operations.requests import RunRequest, check_options
from remuda.operations.routing import folder_of, possible
from remuda.operations.task.looking import opened
from remuda.operations.task.requests import Priority, Seconds, SubmitRequest, Submitted, check, packed
from remuda.operations.worker import waking
from remuda.operations.world import World
from remuda.prompts.delivery import check_prompt

_LONGEST_KEY = 200


def submit(world: World, request: SubmitRequest) -> Submitted:
    """Put a task on record and wake a worker for it. Nothing waits for the agent."""
    check("priority", Priority, request.priority)
    check("expires", Seconds | None, request.expires_in)
    run = admitted(world, request.run)
    asked = Submission(
        prompt=run.prompt,
        request=packed(run),
        agent=run.agent,
        tag=run.tag,
        key=_checked_key(request.key),
        priority=request.priority,
        expires_in=request.expires_in,
    )
    with opened(world) as database:
        task, new = store.submit(database, asked)
        advice = waking.ensure(world, database, task) if task.state not in FINAL else ""
    return Submitted(task.id, task.state, new, advice)


def admitted(world: World, request: RunRequest) -> RunRequest:
    """A request that can be carried out later, by another process, while nobody watches: whole, with its
    agent and folders named, and nothing in it that may not be kept."""
    check_prompt(request.prompt)
    check_options(request)
    cwd = folder_of(world, request)
    _check_variables(request)
    request = msgspec.structs.replace(request, unattended=True)
    return msgspec.structs.replace(
        with_origin(world, request),
        agent=_agent(msgspec.structs.replace(world, cwd=cwd), request),
        cwd=cwd,
        worktree=request.worktree and (cwd / request.worktree),
    )


def _check_variables(request: RunRequest) -> None:
    """Variables are kept for as long as the task: secrets must not be among them."""
    if found := may_be_secret(request.env):
        raise RefusedError(
            f"{', '.join(found)} may be secret, and a task is kept on record with its variables",
            "Keep it with 'remuda secrets set', which hands it to the agent when it is started.",
        )


def _agent(world: World, request: RunRequest) -> str | None:
    """The name that the task is for: who is active now, not when it is carried out; of a runtime its sole
    agent, for workers know agents by their names. A tag stays a tag."""
    everyone = possible(world, request)
    for agent in everyone:
        check_origin(world, request, agent)
        pass_gate(world, request, agent)
    if request.tag is not None:
        return None
    if request.session is not None:
        return everyone[0].name
    name = request.agent or chosen(world)
    found = world.roster.named(name)
    return found[0].name if len(found) == 1 else name


def _checked_key(key: str | None) -> str | None:
    if key is not None and not (0 < len(key) <= _LONGEST_KEY and key.isprintable()):
        raise UsageError("this is no key", f"Use 1 to {_LONGEST_KEY} printable characters.")
    return key
