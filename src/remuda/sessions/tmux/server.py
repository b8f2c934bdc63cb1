"""Remuda's own tmux server: sessions of one pane each, whose programs outlive the command that started them.

Every operation is one short tmux process that gets its commands on standard input: no argument of a process
ever holds an environment, a text or a screen. Targets are exact, and what is typed or pasted goes to the pane
with the program that is meant, or nowhere.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from remuda.core.errors import UsageError
from remuda.core.files import write_new
from remuda.core.ids import ulid
from remuda.sessions.tmux import errors, launcher, panes, protocol
from remuda.sessions.tmux.client import Client, forget_address, private_place
from remuda.sessions.tmux.panes import FORMAT, PID, Ending, Pane, Size, View

SOCKET = "tmux.sock"
"""The socket's name in the runtime folder."""

TERMINAL = "tmux-256color"
"""The terminal that a pane is; ncurses has its description since 2016."""

HISTORY = 10_000
_TYPED_AT_ONCE = 2_000
_STALE = 60.0
_LOOKS = 4
_PASTE_ENDS = ("\x1b[201~", "\x9b201~")

_OPTIONS: tuple[tuple[str, ...], ...] = (
    ("-g", "status", "off"),
    ("-s", "escape-time", "0"),
    ("-s", "exit-empty", "on"),
    ("-s", "set-clipboard", "off"),
    ("-s", "default-terminal", TERMINAL),
    ("-g", "history-limit", str(HISTORY)),
    ("-g", "default-shell", "/bin/sh"),
    ("-g", "default-command", ""),
    ("-g", "update-environment", ""),
    ("-g", "bell-action", "none"),
    ("-gw", "remain-on-exit", "on"),
    ("-gwq", "remain-on-exit-format", ""),
    ("-gwq", "allow-passthrough", "off"),
    ("-gw", "allow-rename", "off"),
    ("-gw", "automatic-rename", "off"),
)


class Attachment(msgspec.Struct, frozen=True):
    """How to hand the user's terminal to a session."""

    argv: tuple[str, ...]
    env: dict[str, str]


class Tmux:
    """The operations on Remuda's tmux server."""

    def __init__(self, socket: Path, environ: Mapping[str, str]) -> None:
        self.client = Client(socket, environ)
        self._pastes: tuple[str, ...] | None = None

    @property
    def socket(self) -> Path:
        return self.client.socket

    def new(
        self,
        name: str,
        argv: Sequence[str],
        env: Mapping[str, str],
        cwd: Path,
        size: Size = Size(),  # noqa: B008
    ) -> Pane:
        """Start a program in a session of its own; the server is started with the first one.

        The program gets exactly these arguments, without a shell, and exactly this environment, but for
        ``TERM``, which is what the pane is.
        """
        target = protocol.session_target(name)
        if not argv:
            raise UsageError("there is no program to start in the pane")
        file = self._start_file(name, argv, {**env, "TERM": TERMINAL}, cwd)
        born = "#{pane_id}|#{pane_pid}"
        program = (sys.executable, "-I", "-S", launcher.__file__, str(file))
        width, height = str(size.width), str(size.height)
        try:
            said = self._do(
                *(("set-option", *option) for option in _OPTIONS),
                ("set-option", "-g", "default-size", f"{width}x{height}"),
                (
                    "new-session",
                    "-d",
                    "-s",
                    name,
                    "-x",
                    width,
                    "-y",
                    height,
                    "-P",
                    "-F",
                    born,
                    "-c",
                    "/",
                    "--",
                    *program,
                ),
                ("set-option", "-p", "-F", "-t", target, PID, "#{pane_pid}"),
                ("set-option", "-w", "-t", target, "window-size", "manual"),
                ("resize-window", "-t", target, "-x", width, "-y", height),
                session=name,
                start=True,
            )
        except BaseException:
            file.unlink(missing_ok=True)
            raise
        pane, _, pid = said.strip().partition("|")
        return Pane(name, pane, int(pid))

    def panes(self) -> tuple[View, ...]:
        """All panes of all sessions, without their texts; none where no server runs."""
        try:
            said = self._told(("list-panes", "-a", "-F", FORMAT))
        except errors.ServerGoneError:
            return ()
        return panes.views(said)

    def sessions(self) -> tuple[str, ...]:
        """The names of all sessions."""
        return tuple(dict.fromkeys(view.pane.session for view in self.panes()))

    def find(self, name: str) -> View:
        """The pane of a session."""
        said = self._told(("list-panes", "-t", protocol.session_target(name), "-F", FORMAT), session=name)
        views = panes.views(said)
        if not views:
            raise errors.no_session(name)
        return views[0]

    def look(self, pane: Pane, *, history: bool = False, escapes: bool = False) -> View:
        """A pane with its text, both of the same moment."""
        target = protocol.pane_target(pane.session, pane.id)
        options = (*(("-S", "-") if history else ()), *(("-e",) if escapes else ()))
        said = self._told(
            ("list-panes", "-t", target, "-f", f"#{{==:#{{pane_id}},{pane.id}}}", "-F", FORMAT),
            ("capture-pane", "-p", *options, "-t", target),
            session=pane.session,
            pane=pane.id,
        )
        head, _, text = said.partition("\n")
        found = panes.row_of(head)
        if found is None or (found.view.pane.id, found.view.pane.pid) != (pane.id, pane.pid):
            raise errors.no_pane(pane.session, pane.id)
        return msgspec.structs.replace(found.view, text=text)

    def capture(self, pane: Pane, *, history: bool = False, escapes: bool = False) -> str:
        """The text of a pane as it is displayed, line by line."""
        return self.look(pane, history=history, escapes=escapes).text

    def alive(self, pane: Pane) -> bool:
        """Whether the pane is there and its program runs."""
        return any(view.pane == pane and view.ending is None for view in self.panes())

    def exit_status(self, pane: Pane) -> Ending | None:
        """How the pane's program has ended; None while it runs."""
        return self.look(pane).ending

    def watched(self, name: str) -> bool:
        """Whether somebody's terminal is attached to a session."""
        said = self._do(
            ("list-clients", "-t", protocol.session_target(name), "-F", "client #{client_control_mode}"),
            session=name,
        )
        return "client 0" in said.splitlines()

    def keys(self, pane: Pane, names: Iterable[str]) -> None:
        """Press keys, by their tmux names."""
        checked = protocol.checked_keys(names)
        if checked:
            self._guarded(pane, ("send-keys", "-t", _target(pane), "--", *checked))

    def type(self, pane: Pane, text: str) -> None:
        """Type a text, character by character, as it stands."""
        parts = (text[place : place + _TYPED_AT_ONCE] for place in range(0, len(text), _TYPED_AT_ONCE))
        if text:
            self._guarded(pane, *(("send-keys", "-l", "-t", _target(pane), "--", part) for part in parts))

    def paste(self, pane: Pane, text: str) -> None:
        """Paste a text of any length, in brackets if the program asked for them, its line ends as they are.

        A text that would end the brackets by itself is refused: what follows would be typed.
        """
        if any(end in text for end in _PASTE_ENDS):
            raise UsageError("the text holds the control sequence that ends a paste", "Remove it.")
        data = protocol.encoded(text)
        if not data:
            return
        buffer = f"remuda-{ulid()}"
        pasted = (
            ("load-buffer", "-b", buffer, "-"),
            ("paste-buffer", "-p", *self._unchanged(), "-d", "-b", buffer, "-t", _target(pane)),
        )
        self._guarded(pane, *pasted, data=data)

    def _unchanged(self) -> tuple[str, ...]:
        """The options of ``paste-buffer`` that leave every character as it is: line ends and, where tmux
        would spell them out, control characters."""
        if self._pastes is None:
            usage = self._do(("list-commands", "-F", "#{command_list_usage}", "paste-buffer"))
            self._pastes = ("-r", "-S") if "S" in usage.partition("]")[0] else ("-r",)
        return self._pastes

    def resize(self, pane: Pane, size: Size) -> None:
        """Give the pane another size."""
        self._guarded(
            pane, ("resize-window", "-t", _target(pane), "-x", str(size.width), "-y", str(size.height))
        )

    def kill(self, name: str) -> bool:
        """End a session, its pane and its program; whether there was one."""
        try:
            self._do(("kill-session", "-t", protocol.session_target(name)), session=name)
        except (errors.NoSuchSessionError, errors.ServerGoneError):
            return False
        finally:
            self._forget(f"start-{name}.*")
        return True

    def kill_server(self) -> None:
        """End the server with all its sessions, and remove its socket."""
        with contextlib.suppress(errors.ServerGoneError):
            self._do(("kill-server",))
        with contextlib.suppress(errors.ServerGoneError):
            self._do(("list-sessions",))
            return
        self._forget("start-*")
        self.socket.unlink(missing_ok=True)
        forget_address(self.socket)

    def attachment(self, name: str, *, read_only: bool = False, fit: bool = False) -> Attachment:
        """How the user's terminal is handed to a session; ``fit`` gives the pane the terminal's size."""
        target = protocol.session_target(name)
        fitting = (";", "set-option", "-w", "-t", target, "window-size", "latest") if fit else ()
        flags = ("-r",) if read_only else ()
        argv = (*self.client.argv(), "-N", "attach-session", *flags, "-t", target, *fitting)
        return Attachment(argv, self.client.terminal_environment())

    def _do(self, *commands: Sequence[str], session: str = "", pane: str = "", start: bool = False) -> str:
        """Commands, given on standard input, of which none runs behind one that failed."""
        if start:
            private_place(self.socket)
        words = ("start-server", ";", "source-file", "-") if start else ("source-file", "-")
        script = protocol.sequence(commands).encode()
        return self.client.run(words, script, session=session, pane=pane)

    def _told(self, rows: Sequence[str], *others: Sequence[str], session: str = "", pane: str = "") -> str:
        """What tmux tells about panes. Now and then it misses the end of a program until another one ends; it
        is told to look then."""
        for _ in range(_LOOKS):
            said = self._do(rows, *others, session=session, pane=pane)
            listed = said.partition("\n")[0] if others else said
            missed = {row.server for row in panes.rows(listed) if row.missed}
            if not missed:
                break
            for server in missed:
                with contextlib.suppress(OSError):
                    os.kill(server, signal.SIGCHLD)
        return said

    def _guarded(self, pane: Pane, *commands: Sequence[str], data: bytes | None = None) -> None:
        """Commands that happen only if the pane's program is the one that is meant, and runs."""
        target = _target(pane)
        condition = f"#{{&&:#{{==:#{{pane_id}}.#{{{PID}}},{pane.id}.{pane.pid}}},#{{==:#{{pane_dead}},0}}}}"
        then = protocol.sequence(
            [("copy-mode", "-q", "-t", target), *commands, ("display-message", "-p", "done")]
        )
        guarded = ("if-shell", "-F", "-t", target, condition, then)
        if data is None:
            said = self._do(guarded, session=pane.session, pane=pane.id)
        else:
            said = self.client.run(guarded, data, session=pane.session, pane=pane.id)
        if said.strip() != "done":
            raise errors.no_pane(pane.session, pane.id)

    def _forget(self, pattern: str, older: float = -1.0) -> None:
        """Remove files of programs that were ended before they had begun."""
        for stale in self.socket.parent.glob(pattern):
            with contextlib.suppress(FileNotFoundError):
                if time.time() - stale.stat().st_mtime > older:
                    stale.unlink()

    def _start_file(self, name: str, argv: Sequence[str], env: Mapping[str, str], cwd: Path) -> Path:
        """The file that tells the launcher what to become; ones that nobody took are removed."""
        words = [os.fsencode(word) for word in argv]
        variables = {os.fsencode(key): os.fsencode(value) for key, value in env.items()}
        if any(b"\0" in word for word in (*words, *variables, *variables.values())):
            raise UsageError("an argument or a variable cannot hold a NUL character")
        if any(not key or b"=" in key for key in variables):
            raise UsageError("a variable's name cannot be empty or hold an equals sign")
        private_place(self.socket)
        folder = self.socket.parent
        self._forget("start-*", older=_STALE)
        return write_new(
            folder / f"start-{name}.{ulid()}", launcher.packed(os.fsencode(cwd), words, variables)
        )


def _target(pane: Pane) -> str:
    return protocol.pane_target(pane.session, pane.id)
