"""What stands beside a sandbox while it is there: its ways out, its bounds, and whoever passes signals on.

Runs without any packages. The agent's processes get a polite signal first; where this process dies, the walls
fall in on everything inside (bubblewrap's ``--die-with-parent``).
"""

import marshal
import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from typing import NoReturn

    from remuda.sandbox.ways import Ways

    ToldEgress = tuple[int, tuple[tuple[str, int, bool], ...], str]
    ToldNetwork = tuple[tuple[int, ...], bool, ToldEgress | None]
else:
    import _signal as signal

_PASSED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
_GRACE = 2.0
_LOOK = 1.0
"""Seconds between two looks at which ports of the machine are listened at."""

_SETUID = 0o4000
"""A program with rights of its own loses them where nothing may get new ones."""

_FAILED = 125
"""The exit code that says that no agent was started."""


class Told:
    """What a file says; see ``spec.Spec``, which is not imported, for that takes its time."""

    def __init__(
        self,
        command: "tuple[str, ...]",
        held: "tuple[str, ...]",
        rules: "tuple[tuple[str, bool], ...]",
        inside: "tuple[str, ...]",
        terminal: bool,
        network: "ToldNetwork | None",
        hooks: "tuple[str, str] | None",
        cgroups: "tuple[tuple[str, str, tuple[tuple[str, str], ...]], ...]",
        timeout: float,
    ) -> None:
        self.command, self.held, self.rules, self.inside = command, held, rules, inside
        self.terminal = terminal
        self.network, self.hooks, self.cgroups, self.timeout = network, hooks, cgroups, timeout


def run(place: str, argv: "list[str]") -> "NoReturn":
    """Start what a file describes, with an agent's command in it, and end with its exit code."""
    with open(place, "rb") as stream:  # noqa: PTH123 - no pathlib here
        spec = Told(*marshal.load(stream))  # noqa: S302 - it was written by ourselves, for our user only
    os.unlink(place)  # noqa: PTH108
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD, *_PASSED})
    try:
        code = _bounded(spec, argv)
    except OSError as error:
        os.write(2, f"remuda: the sandbox cannot be built: {error.strerror or error}\n".encode())
        code = _FAILED
    os._exit(code)


def _bounded(spec: Told, argv: "list[str]") -> int:
    if not spec.cgroups:
        return _attended(spec, argv)
    from remuda.sandbox import cgroups
    from remuda.sandbox.spec import Cgroup

    wanted = tuple(Cgroup(*each) for each in spec.cgroups)
    try:
        cgroups.enter(wanted)
        return _attended(spec, argv)
    finally:
        cgroups.leave(wanted)


def _attended(spec: Told, argv: "list[str]") -> int:
    if spec.hooks:
        from remuda.sandbox.hookrelay import attend_hooks

        attend_hooks(*spec.hooks)
    wall = Wall(spec, argv)
    try:
        outside = wall.open_ways()
        wall.let_go()
        return wall.wait(outside)
    except BaseException:
        wall.kill()
        raise


class Wall:
    """A running sandbox. The agent waits until it is let go."""

    def __init__(self, spec: Told, argv: "list[str]") -> None:
        self._spec = spec
        self._end = time.monotonic() + spec.timeout if spec.timeout else None
        self._gate: int | None = None
        self._first: int | None = None
        if spec.command:
            self._wall(argv)
        else:
            from remuda.sandbox.landlock import start
            from remuda.sandbox.spec import Rule

            rules = tuple(Rule(*each) for each in spec.rules)
            self._pid = start(rules, [*spec.inside, *argv], terminal=spec.terminal)

    def _wall(self, argv: "list[str]") -> None:
        """Have bubblewrap build its walls; the agent waits behind them."""
        spec = self._spec
        told, tells = os.pipe()
        waits, self._gate = os.pipe()
        for handle in (tells, waits):
            os.set_inheritable(handle, True)
        options = ("--info-fd", str(tells), "--block-fd", str(waits))
        program, *rest = spec.command
        if os.geteuid() == 0 or not os.stat(program).st_mode & _SETUID:  # noqa: PTH116
            from remuda.sandbox.landlock import part

            part()
        self._pid = os.posix_spawn(
            program,
            [program, *options, *rest, "--", *spec.inside, *argv],
            os.environ,
            setsigmask=[],
            setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],
            setpgroup=0,
        )
        os.close(tells)
        os.close(waits)
        self._first = _told(told)

    def open_ways(self) -> "Ways | None":
        """Make the ports that lead out of the sandbox."""
        if self._first is None or not self._spec.network or not any(self._spec.network):
            return None
        from remuda.sandbox.spec import named
        from remuda.sandbox.ways import Ways

        return Ways(named(self._spec.network), self._first)

    def let_go(self) -> None:
        """The agent may start."""
        if self._first is not None and self._spec.held:
            from remuda.sandbox.vigil import keep_watch

            keep_watch(self._first, self._spec.held)
        if self._gate is not None:
            os.write(self._gate, b"!")
            os.close(self._gate)

    def kill(self) -> None:
        """End everything inside at once: first whoever waits behind the walls, for bubblewrap would let it go
        when we are gone."""
        for pid in (self._first, self._pid):
            try:
                if pid is not None:
                    os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        os.waitpid(self._pid, 0)
        self._sweep()

    def wait(self, ways: "Ways | None") -> int:
        """Pass signals on until the sandbox ends; its exit code, 128+n where signal n ended it."""
        awaited = {signal.SIGCHLD, *_PASSED}
        while True:
            pid, status = os.waitpid(self._pid, os.WNOHANG)
            if pid:
                self._sweep()
                code = os.waitstatus_to_exitcode(status)
                return 128 - code if code < 0 else code
            if ways:
                ways.look()
            info = signal.sigtimedwait(awaited, self._pause())
            if info is not None and info.si_signo != signal.SIGCHLD:
                self._tell(info.si_signo)
            elif self._end is not None and time.monotonic() >= self._end:
                self._stop()

    def _sweep(self) -> None:
        """End what an agent left behind where no walls fall in on it."""
        if not self._spec.command:
            from remuda.sandbox.landlock import end_orphans

            end_orphans()

    def _pause(self) -> float:
        longest = _LOOK if self._spec.network and self._spec.network[1] else 3600.0
        return longest if self._end is None else max(0.0, min(longest, self._end - time.monotonic()))

    def _stop(self) -> None:
        """The time is over: ask, and soon after end it."""
        os.write(2, b"remuda: the sandbox's time is over\n")
        self._tell(signal.SIGTERM)
        end = time.monotonic() + _GRACE
        while time.monotonic() < end:
            signal.sigtimedwait({signal.SIGCHLD}, 0.1)
            if os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                break
        else:
            os.kill(self._pid, signal.SIGKILL)
        self._end = None

    def _tell(self, number: int) -> None:
        """Signal every process inside but the first, which holds them together."""
        if self._first is None:
            os.killpg(self._pid, number)
            return
        for pid in _housemates(self._first):
            try:
                handle = os.pidfd_open(pid)
            except OSError:
                continue
            try:
                if _house(pid) == _house(self._first):
                    signal.pidfd_send_signal(handle, number)
            except OSError:
                pass
            finally:
                os.close(handle)


def _told(handle: int) -> int | None:
    """The first process inside, as bubblewrap tells it; None where it gave up."""
    with os.fdopen(handle, "rb") as stream:
        said = stream.read()
    number = said.partition(b'"child-pid"')[2].lstrip(b" :").split(b",")[0].split(b"}")[0].strip()
    return int(number) if number.isdigit() else None


def _house(pid: int) -> int:
    """What tells apart the worlds that processes live in."""
    return os.stat(f"/proc/{pid}/ns/pid").st_ino  # noqa: PTH116


def _housemates(first: int) -> "list[int]":
    """The processes that live in one world with the first."""
    try:
        wanted = _house(first)
    except OSError:
        return []
    found = []
    for name in os.listdir("/proc"):  # noqa: PTH208
        if name.isdigit() and int(name) != first:
            try:
                if _house(int(name)) == wanted:
                    found.append(int(name))
            except OSError:
                continue
    return found
