"""Shows one session whole: its state, what waits in it, and what it has used."""

from __future__ import annotations

import contextlib
from pathlib import Path

import msgspec

from remuda.core.events import Question
from remuda.operations.session import looking, panes, speaking
from remuda.operations.session.looking import Seen
from remuda.operations.world import World
from remuda.runtimes.transcripts import TranscriptSummary, Wanted
from remuda.sessions import store
from remuda.sessions.orders import GoneError
from remuda.sessions.store import Session


class Undelivered(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt that has not arrived yet, or never will."""

    id: str
    state: store.MessageState
    bytes: int
    created_at: str


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """A session, the tool calls that wait for a person, the prompts that did not arrive, and its usage as its
    own transcript tells it; None where there is none."""

    session: Seen
    questions: tuple[Question, ...]
    messages: tuple[Undelivered, ...]
    usage: TranscriptSummary | None
    transcript: str | None


async def show(world: World, word: str) -> Shown:
    """All that is known of a session."""
    session = looking.found(world, word)
    questions: list[Question] = []
    with contextlib.suppress(GoneError):
        questions = await speaking.questions(world, session)
    waiting = store.messages(world.folders.database, session.id, ("queued", "sent", "lost"))
    path, usage = _used(world, session)
    return Shown(
        session=looking.seen(session),
        questions=tuple(questions),
        messages=tuple(
            Undelivered(id=each.id, state=each.state, bytes=each.bytes, created_at=each.created_at)
            for each in waiting
        ),
        usage=usage,
        transcript=str(path) if path else None,
    )


def _used(world: World, session: Session) -> tuple[Path | None, TranscriptSummary | None]:
    """Where the session's transcript lies, and what it comes to."""
    transcripts = world.herd.get(session.runtime).transcripts
    if transcripts is None or not session.runtime_session:
        return None, None
    wanted = Wanted(session=session.runtime_session, cwd=Path(session.cwd))
    source = transcripts.find(panes.places_of(world, session), wanted)
    return (source.path, transcripts.summary_of(source)) if source else (None, None)
