"""How a task ends, and what is known of one that another worker had begun."""

from __future__ import annotations

import msgspec

from remuda.core.events import Event, Failure, MessageChunk, Result, Work
from remuda.core.sql import Database
from remuda.dispatch.tasks import events, store
from remuda.dispatch.tasks.model import Attempt, Claimed, Ending, Task, begun
from remuda.dispatch.tasks.scheduling import Outcome
from remuda.operations.requests import RunRequest
from remuda.operations.world import World
from remuda.sessions.job import envelope

_PAGE = 500
_MOST = 256 * 1024
"""Characters of an unfinished answer that are kept."""

_NO_START = frozenset({"start_failed", "crashed", "protocol", "not_installed"})


def outcome(result: Result, *, cancelled: bool) -> Outcome:
    """What a result makes of a task."""
    if result.error is None:
        return Outcome("succeeded")
    return Outcome("cancelled" if cancelled and result.error.kind == "cancelled" else "failed")


def refused_resumption(result: Result) -> bool:
    """Whether an agent that said nothing at all could not take up its session again."""
    return result.error is not None and result.error.kind in _NO_START


def told(database: Database, claimed: Claimed) -> Outcome | None:
    """The outcome that an earlier attempt has already told, when its worker died before it could settle."""
    if not claimed.task.last_seq or begun(claimed.earlier) is None:
        return None
    last = _last(database, claimed.task)
    if last is None or last.result is None:
        return None
    return outcome(last.result, cancelled=claimed.task.cancel is not None)


def _last(database: Database, task: Task) -> Event | None:
    found = events.after(database, task.id, task.last_seq - 1, 1)
    return found[0] if found else None


def ending(world: World, database: Database, ident: str, told: Outcome) -> tuple[Ending, tuple[Event, ...]]:
    """The final state and, where no agent gave the result, an event that does."""
    task, attempts = store.get(database, ident)
    last = _last(database, task) if task.last_seq else None
    if last is not None and last.result is not None and not told.reason:
        return _ended(told, last.result, task.session), ()
    earlier = begun(attempts)
    result = Result(
        stop_reason="cancelled" if told.state == "cancelled" else "error",
        text=_text_so_far(database, task),
        usage=None,
        cost_usd=None,
        exit_code=None,
        error=Failure(told.kind or "crashed", _said(told, earlier)),
        work=_work(world, earlier),
    )
    session, agent = (earlier.session or "", earlier.agent) if earlier else ("", task.agent or "")
    return _ended(told, result, task.session), (envelope(session, agent, 0, result=result),)


def _ended(told: Outcome, result: Result, session: str | None) -> Ending:
    return Ending(
        state=told.state,
        result=msgspec.json.encode(result).decode(),
        error_kind=result.error.kind if result.error else None,
        error=result.error.message if result.error else None,
        session=session,
    )


def _said(told: Outcome, earlier: Attempt | None) -> str:
    """Why, and for a task that was cut off how a person can go on."""
    if told.state != "interrupted" or earlier is None or not earlier.session:
        return told.reason
    return (
        f"{told.reason}; {earlier.agent} was called in session {earlier.session}: "
        f"look at it, and go on with 'remuda run --session {earlier.session} …'"
    )


def _work(world: World, earlier: Attempt | None) -> Work | None:
    """What the agent has left in a worktree of its own, if it had one here."""
    from remuda.operations.isolation import records_folder
    from remuda.operations.worktrees import hand_back

    if earlier is None or not earlier.session or not records_folder(world).is_dir():
        return None
    return hand_back(world, earlier.session)


def _text_so_far(database: Database, task: Task) -> str:
    text, seq = "", 0
    while page := events.after(database, task.id, seq, _PAGE):
        pieces = [event.update.content.text for event in page if isinstance(event.update, MessageChunk)]
        text, seq = "".join((text, *pieces))[-_MOST:], page[-1].seq
    return text


def resumable(world: World, claimed: Claimed, request: RunRequest) -> bool:
    """Whether the agent of an earlier attempt can go on in its session, here."""
    earlier = begun(claimed.earlier)
    if earlier is None or earlier.agent not in world.roster:
        return False
    return session_of(world, earlier, request) is not None


def session_of(world: World, earlier: Attempt, request: RunRequest) -> str | None:
    """The session to go on with: ours, which knows the folder, or the agent's own where the worker died
    before ours was on record; None where the agent cannot do that. An isolated run has only ours: by its own
    the agent would go on outside of its worktree."""
    from remuda.sessions import store as sessions

    conduct = world.herd.get(world.roster.get(earlier.agent).runtime).conduct
    if not conduct.resume:
        return None
    if earlier.session and sessions.find(world.folders.database, earlier.session):
        return earlier.session
    return earlier.runtime_session if conduct.own_sessions and not request.isolated else None
