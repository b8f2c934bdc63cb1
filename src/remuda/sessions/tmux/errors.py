"""What can go wrong with tmux, as errors that say the next step."""

from __future__ import annotations

from remuda.core.errors import EXIT_UNUSABLE, NotFoundError, NotInstalledError, RemudaError, UsageError

OLDEST = (3, 2)
"""The oldest tmux that has what is used here: client flags, subscriptions, ``new-session -e``."""


class TmuxError(RemudaError):
    """tmux would not do what it was asked to."""


class TmuxMissingError(NotInstalledError):
    """There is no tmux, or one that cannot be used."""


class ServerGoneError(TmuxError):
    """Remuda's tmux server is not running, or has ended in the middle of a call."""


class NoAnswerError(TmuxError):
    """The tmux server is there but does not answer."""

    exit_code = EXIT_UNUSABLE


class NoSuchSessionError(NotFoundError):
    """The tmux server has no session of this name."""


class NoSuchPaneError(NotFoundError):
    """The session has no such pane, or the pane's program is another one by now, or has ended."""


class NameTakenError(UsageError):
    """There is a session of this name already."""


def missing() -> TmuxMissingError:
    """tmux is not installed."""
    return TmuxMissingError(
        "tmux is not installed",
        "Install it (apt-get install tmux, dnf install tmux, apk add tmux, brew install tmux), "
        "or use a runtime's connection: --mode connection.",
    )


def too_old(version: str) -> TmuxMissingError:
    """The tmux that is installed lacks what is needed."""
    return TmuxMissingError(
        f"tmux {version} is too old: sessions need {OLDEST[0]}.{OLDEST[1]} or newer",
        "Upgrade tmux, or use a runtime's connection: --mode connection.",
    )


def server_gone() -> ServerGoneError:
    """The server is not there."""
    return ServerGoneError(
        "Remuda's tmux server is not running", "Its sessions have ended with it; start them again."
    )


def no_answer(seconds: float) -> NoAnswerError:
    """The server is there and silent."""
    return NoAnswerError(
        f"Remuda's tmux server did not answer within {seconds:g} seconds",
        "It may be stopped, or the machine be overloaded; try again.",
    )


def broken() -> TmuxError:
    """The client has gone; what became of the server is not known."""
    return TmuxError("the connection to Remuda's tmux server broke off", "Try again.")


def no_session(name: str) -> NoSuchSessionError:
    """No session of this name."""
    return NoSuchSessionError(
        f"there is no tmux session {name}", "`remuda session list` shows those that there are."
    )


def no_pane(session: str, pane: str) -> NoSuchPaneError:
    """No such pane, or none that runs."""
    return NoSuchPaneError(
        f"pane {pane} of tmux session {session} is not there any more, or its program has ended",
        "`remuda session list` shows the sessions that there are.",
    )


def taken(name: str) -> NameTakenError:
    """The name is in use."""
    return NameTakenError(f"there is a tmux session {name} already", "Stop it first, or choose another name.")


_GONE = (
    *("no server running", "error connecting to", "server exited", "lost server", "server-exited"),
    *("connection refused", "no sessions"),
)


def told(said: str, session: str = "", pane: str = "") -> RemudaError:
    """The error that tmux's own words stand for."""
    words = said.strip()
    low = words.lower()
    if any(sign in low for sign in _GONE):
        return server_gone()
    if "duplicate session" in low:
        return taken(session)
    if "can't find session" in low or "session not found" in low:
        return no_session(session)
    if "can't find pane" in low or "can't find window" in low or "pane has exited" in low:
        return no_pane(session, pane)
    line = words.splitlines()[0][:200] if words else "no reason given"
    return TmuxError(f"tmux refused: {line}")
