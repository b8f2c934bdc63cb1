"""Walls by Landlock, for machines without bubblewrap: a process gives up what it may touch, for good, and
then becomes the agent.

Landlock itself knows files, signals and abstract sockets. Sockets in the file system, by which other programs
could be made to do what the agent may not, are kept shut by a system call filter. Runs without any packages.
"""

import ctypes
import errno
import os
import platform
import signal
import struct
import time
from typing import NamedTuple

from remuda.sandbox.spec import Rule

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_NO_NEW_PRIVILEGES, _DIE_WITH_PARENT, _SECCOMP, _DROP_BOUND, _AMBIENT = 38, 1, 22, 24, 47
_AMBIENT_CLEAR, _FILTER, _VERSION, _BENEATH, _ADOPT = 4, 2, 1, 1, 36
_ABSTRACT, _SIGNALS, _SCOPES = 1, 2, 6
_JOIN_SESSION, _CAPABILITIES = 1, 0x20080522

_EXECUTE, _WRITE, _READ, _READ_FOLDER, _TRUNCATE, _DEVICE = 1 << 0, 1 << 1, 1 << 2, 1 << 3, 1 << 14, 1 << 15
_NEW_DEVICES = 1 << 6 | 1 << 11
_ALL = (1 << 16) - 1
_READ_ONLY = _EXECUTE | _READ | _READ_FOLDER
_CHANGE = _ALL & ~_NEW_DEVICES
_OF_FILES = _EXECUTE | _WRITE | _READ | _TRUNCATE | _DEVICE

_BETWEEN = 0.01
_UNIX = 1
_STREAM, _PACKETS, _KIND = 1, 5, 0xF
_LOAD, _AND, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x06
_NUMBER, _MACHINE, _FIRST, _SECOND = 0, 4, 16, 24
_ALLOWED, _REFUSED = 0x7FFF0000, 0x00050000


class Machine(NamedTuple):
    """How a kind of machine numbers system calls: itself, its first foreign number, ``socket`` and
    ``socketpair``, ``keyctl``, and those that lead to what others share: rings, keys, memory, semaphores and
    queues."""

    audit: int
    foreign: int
    socket: int
    socketpair: int
    keyctl: int
    shared: tuple[int, ...]


MACHINES = {
    "x86_64": Machine(0xC000003E, 0x40000000, 41, 53, 250, (425, 248, 249, 250, 29, 30, 64, 68, 240)),
    "aarch64": Machine(0xC00000B7, 0xFFFFFFFF, 198, 199, 219, (425, 217, 218, 219, 194, 196, 190, 186, 180)),
}


def start(rules: "tuple[Rule, ...]", argv: "list[str]", *, terminal: bool) -> int:
    """Start a program that may touch nothing else; its process number. It ends when we do, and what it leaves
    behind becomes ours."""
    parent = os.getpid()
    _must(ctypes.CDLL(None, use_errno=True).prctl(_ADOPT, 1, 0, 0, 0))
    pid = os.fork()
    if pid:
        return pid
    try:
        if not terminal:
            os.setsid()
        libc = ctypes.CDLL(None, use_errno=True)
        _must(libc.prctl(_DIE_WITH_PARENT, signal.SIGKILL, 0, 0, 0))
        if os.getppid() != parent:
            os._exit(1)
        part()
        restrict(libc, rules)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        os.execvp(argv[0], argv)  # noqa: S606 - a shell has no business here
    except OSError as error:
        os.write(2, f"remuda: the sandbox cannot be built: {error.strerror or error}\n".encode())
    finally:
        os._exit(125)


def end_orphans() -> None:
    """End what a program has left behind, and what that leaves."""
    while True:
        try:
            ended, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not ended:
            for child in _children(os.getpid()):
                os.kill(child, signal.SIGKILL)
            time.sleep(_BETWEEN)


def _children(parent: int) -> "list[int]":
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):  # noqa: PTH208 - no pathlib here
        try:
            with open(f"/proc/{name}/stat", "rb") as stream:  # noqa: PTH123
                fields = stream.read().rpartition(b")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == parent:
            found.append(int(name))
    return found


def part() -> None:
    """Leave what no other wall keeps from an agent, in this process and all that it starts: the keys of the
    user's session and, where the kernel can do that, the abstract sockets of others."""
    if platform.machine() not in MACHINES:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    joined = libc.syscall(MACHINES[platform.machine()].keyctl, _JOIN_SESSION, None)
    if joined < 0 and ctypes.get_errno() not in (errno.ENOSYS, errno.EPERM):
        _must(joined)
    if version() >= _SCOPES:
        _must(libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
        attributes = struct.pack("=QQQ", 0, 0, _ABSTRACT)
        _enforce(libc, _ruleset(libc, attributes))


def version() -> int:
    """The version of Landlock's interface; 0 where the kernel has none, it is turned off, or this kind of
    machine is not known."""
    if platform.machine() not in MACHINES:
        return 0
    libc = ctypes.CDLL(None, use_errno=True)
    return max(0, int(libc.syscall(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION))))


def restrict(libc: ctypes.CDLL, rules: "tuple[Rule, ...]") -> None:
    """Give up everything that no rule leaves, in this process and all that it starts."""
    ruleset = _ruleset(libc, struct.pack("=QQQ", _ALL, 0, _ABSTRACT | _SIGNALS))
    for rule in rules:
        _grant(libc, ruleset, rule)
    for capability in range(64):
        libc.prctl(_DROP_BOUND, capability, 0, 0, 0)
    libc.prctl(_AMBIENT, _AMBIENT_CLEAR, 0, 0, 0)
    _must(libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
    _must(libc.capset(struct.pack("=Ii", _CAPABILITIES, 0), bytes(24)))
    _enforce(libc, ruleset)
    _shut_sockets(libc)


def _ruleset(libc: ctypes.CDLL, attributes: bytes) -> int:
    return _must(libc.syscall(_CREATE, attributes, ctypes.c_size_t(len(attributes)), ctypes.c_uint32(0)))


def _enforce(libc: ctypes.CDLL, ruleset: int) -> None:
    _must(libc.syscall(_RESTRICT, ctypes.c_int(ruleset), ctypes.c_uint32(0)))
    os.close(ruleset)


def _grant(libc: ctypes.CDLL, ruleset: int, rule: Rule) -> None:
    handle = os.open(rule.path, os.O_PATH | os.O_CLOEXEC)
    try:
        access = _CHANGE if rule.writable else _READ_ONLY
        if not os.path.isdir(f"/proc/self/fd/{handle}"):  # noqa: PTH112 - no pathlib here
            access &= _OF_FILES
        beneath = struct.pack("=Qi", access, handle)
        _must(libc.syscall(_ADD, ctypes.c_int(ruleset), ctypes.c_int(_BENEATH), beneath, ctypes.c_uint32(0)))
    finally:
        os.close(handle)


def _shut_sockets(libc: ctypes.CDLL) -> None:
    """Refuse sockets of the file system, and the second way to make sockets."""
    program = b"".join(filter_lines(MACHINES[platform.machine()]))
    lines = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("=H6xQ", len(program) // 8, ctypes.addressof(lines))
    _must(libc.prctl(_SECCOMP, _FILTER, header, 0, 0))


def filter_lines(machine: Machine) -> "list[bytes]":
    """The filter: calls of another kind of machine do not exist, nor do those that lead to what others share;
    a socket in the file system is refused, and so is a pair whose ends could still be led to one."""
    first = len(machine.shared) + 4
    refused, missing, allowed = range(first + 8, first + 11)
    steps = (
        (_LOAD, _MACHINE),
        (_EQUAL, machine.audit, 2, missing),
        (_LOAD, _NUMBER),
        (_AT_LEAST, machine.foreign, missing, 4),
        *((_EQUAL, call, missing, at + 1) for at, call in enumerate(machine.shared, 4)),
        (_EQUAL, machine.socket, first + 1, first + 3),
        (_LOAD, _FIRST),
        (_EQUAL, _UNIX, refused, allowed),
        (_EQUAL, machine.socketpair, first + 4, allowed),
        (_LOAD, _SECOND),
        (_AND, _KIND),
        (_EQUAL, _STREAM, allowed, first + 7),
        (_EQUAL, _PACKETS, allowed, refused),
        (_RETURN, _REFUSED | errno.EACCES),
        (_RETURN, _REFUSED | errno.ENOSYS),
        (_RETURN, _ALLOWED),
    )
    return [_line(at, *step) for at, step in enumerate(steps)]


def _line(at: int, code: int, value: int, *ways: int) -> bytes:
    """A line of a filter, with the lines that it leads to: if so, if not."""
    then, otherwise = (way - at - 1 for way in ways) if ways else (0, 0)
    return struct.pack("=HBBI", code, then, otherwise, value)


def _must(answer: int) -> int:
    if answer < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return answer
