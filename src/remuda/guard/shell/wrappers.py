"""Programs that run another program: how the inner command is found in their arguments.

A row has the options (in the notation of :mod:`~remuda.guard.commands.options`), how many operands come
before the command, and what running it means beside the command itself.
"""

from __future__ import annotations

import msgspec

from remuda.guard.commands.options import Parsed, parse
from remuda.guard.model import SystemKind, Word
from remuda.guard.shell.state import joined


class Wrapper(msgspec.Struct, frozen=True):
    """How a program finds the command that it runs. ``assigns``: variables may stand before it. ``text``: an
    option whose value is given to a shell; ``joins``: all the words are. ``writes``: an option or, when it is
    a number, the operand that names a file which is written. ``opens``: without a command it is a shell."""

    options: str = ""
    skip: int = 0
    assigns: bool = False
    kind: SystemKind | None = None
    text: str = ""
    joins: bool = False
    writes: str = ""
    opens: bool = False


_SUDO = """-ABbEeHKklNnPSsiVv -C|--close-from: -D|--chdir: -g|--group: -h|--host: -p|--prompt: -R|--chroot:
    -r|--role: -T|--command-timeout: -t|--type: -U|--other-user: -u|--user: --askpass --background --edit
    --preserve-env? --set-home --login --remove-timestamp --reset-timestamp --list --non-interactive --stdin
    --preserve-groups --shell --validate --version --help"""
_SU = """-flmpP -c|--command: -g|--group: -G: -s|--shell: -w: --login --preserve-environment -l --pty
    --session-command|--command:"""

WRAPPERS: dict[str, Wrapper] = {
    "sudo": Wrapper(_SUDO, assigns=True, kind="privilege", opens=True),
    "doas": Wrapper("-Lns -C: -u:", assigns=True, kind="privilege", opens=True),
    "su": Wrapper(_SU, skip=1, kind="privilege", text="command", opens=True),
    "runuser": Wrapper(_SU + " -u|--user:", kind="privilege", text="command", opens=True),
    "pkexec": Wrapper("--user: --disable-internal-agent --keep-cwd", kind="privilege", opens=True),
    "run0": Wrapper("-u|--user: -g|--group: -D|--chdir: --*", kind="privilege", opens=True),
    "gosu": Wrapper(skip=1, kind="privilege"),
    "su-exec": Wrapper(skip=1, kind="privilege"),
    "setpriv": Wrapper("--*", kind="privilege"),
    "capsh": Wrapper("--*", kind="privilege"),
    "chroot": Wrapper("--groups: --userspec: --skip-chdir", skip=1, kind="privilege", opens=True),
    "unshare": Wrapper(
        "-cfimnprTuUCt -S|--setuid: -G|--setgid: -R|--root: -w|--wd: --map-user: --map-group: --*",
        kind="privilege",
        opens=True,
    ),
    "nsenter": Wrapper("-aCFimnpTUurwe -t|--target: -S: -G: --*", kind="privilege", opens=True),
    "systemd-run": Wrapper(
        "-dGPqrSt -E: -H: -M: -p: -u: --unit: --property: --uid: --setenv: --*", kind="service"
    ),
    "nohup": Wrapper(),
    "setsid": Wrapper("-cfw --ctty --fork --wait"),
    "nice": Wrapper("-# -n|--adjustment:"),
    "ionice": Wrapper("-t -c|--class: -n|--classdata: -p|--pid: -P|--pgid: -u|--uid: --ignore"),
    "chrt": Wrapper("-abfiorRmv -p|--pid --*", skip=1),
    "taskset": Wrapper("-ac -p|--pid --cpu-list --all-tasks", skip=1),
    "timeout": Wrapper("-fpv -k|--kill-after: -s|--signal: --preserve-status --foreground --verbose", skip=1),
    "gtimeout": Wrapper(
        "-fpv -k|--kill-after: -s|--signal: --preserve-status --foreground --verbose", skip=1
    ),
    "stdbuf": Wrapper("-i|--input: -o|--output: -e|--error:"),
    "time": Wrapper("-apvqV -f|--format: -o|--output: --append --portability --verbose", writes="output"),
    "gtime": Wrapper("-apvqV -f|--format: -o|--output: --append --portability --verbose", writes="output"),
    "caffeinate": Wrapper("-dimsu -t: -w:"),
    "unbuffer": Wrapper("-p"),
    "chronic": Wrapper("-ve"),
    "ifne": Wrapper("-n"),
    "rlwrap": Wrapper("-* --*"),
    "fakeroot": Wrapper("-l: -s: -i: -u -b: --", assigns=False),
    "catchsegv": Wrapper(),
    "setarch": Wrapper("-BFILRSTXZ3v --*", skip=0),
    "linux64": Wrapper("-* --*"),
    "linux32": Wrapper("-* --*"),
    "prlimit": Wrapper("--* -p|--pid: -o:"),
    "strace": Wrapper(
        "-cCdDfFhiknqrtTvVwxyYZz -a: -b: -e: -E: -I: -O: -o|--output: -p: -P: -s: -S: -u: -U: -X: --*",
        writes="output",
    ),
    "ltrace": Wrapper(
        "-bcCfhiLrStTV -a: -A: -D: -e: -F: -l: -n: -o|--output: -p: -s: -u: -w: -x: -X:", writes="output"
    ),
    "dbus-run-session": Wrapper("--*"),
    "xvfb-run": Wrapper("-a -l -w: -e: -f: -n: -p: -s: --auto-servernum --server-args: --*"),
    "watch": Wrapper("-bcdegtwxr -n|--interval: -q: -s: --*", joins=True),
    "flock": Wrapper("-eFnosuxv -c|--command: -E: -w|--timeout: --*", skip=1, text="command", writes="0"),
    "script": Wrapper(
        "-aefqrBkd -c|--command: -E: -I|--log-in: -O|--log-out: -m: -o: -t? -T: -F: --*",
        skip=1,
        text="command",
        writes="0",
        opens=True,
    ),
    "eatmydata": Wrapper(),
    "proxychains4": Wrapper("-q -f:"),
    "torify": Wrapper("-*"),
    "tsocks": Wrapper(),
    "faketime": Wrapper("-m -p: -f --exclude-monotonic --date-prog:", skip=1),
    "cpulimit": Wrapper("-bfiklmqrvz -l|--limit: -p|--pid: -e|--exe: -P|--path: -c|--cpu: -s: --*"),
    "daemonize": Wrapper("-av -c: -e: -o: -p: -l: -u: -E:"),
    "firejail": Wrapper("-c --*"),
    "proot": Wrapper("-0 -r|--rootfs: -b|--bind: -q: -w: -v: -i: -k: -R: -S: --*"),
    "envdir": Wrapper(skip=1),
    "setuidgid": Wrapper(skip=1, kind="privilege"),
    "envuidgid": Wrapper(skip=1, kind="privilege"),
    "softlimit": Wrapper("-a: -c: -d: -f: -l: -m: -o: -p: -r: -s: -t:"),
    "runcon": Wrapper("-c -t|--type: -u|--user: -r|--role: -l|--range: --compute", kind="privilege"),
    "systemd-inhibit": Wrapper("--what: --who: --why: --mode: --list --no-pager --no-legend"),
    "systemd-cat": Wrapper("-t|--identifier: -p|--priority: --*"),
    "dbus-launch": Wrapper("--*"),
    "hyperfine": Wrapper(
        "-w|--warmup: -m|--min-runs: -M|--max-runs: -r|--runs: -s: -p|--prepare: -c|--cleanup: -S|--shell:"
        " -n: --export-json: --export-markdown: --export-csv: -N -i --style: --*",
        joins=True,
        writes="export-json",
    ),
    "watchexec": Wrapper("-e: -w: -i: -f: -d: -s: -c -r -p -n --exts: --watch: --ignore: --*", joins=True),
    "valgrind": Wrapper("-q -v -d --*", writes="log-file"),
    "heaptrack": Wrapper("-o: -r --*"),
    "xterm": Wrapper("-e -hold -T: -title: -geometry:", kind="process", opens=True),
    "setlock": Wrapper("-nNxX", skip=1, writes="0"),
    "arch": Wrapper("-* --*"),
    **dict.fromkeys(("i386", "x86_64", "uname26", "linux", "i686"), Wrapper("-* --*")),
    "proxychains": Wrapper("-q -f:"),
    "torsocks": Wrapper("-iq"),
    "winpty": Wrapper("-X:"),
    "entr": Wrapper("-acdnprsz"),
    "toybox": Wrapper(),
    "busybox": Wrapper("--list --help --install"),
}


_MACHINES = frozenset(("x86_64", "i386", "i686", "aarch64", "arm64", "linux32", "linux64", "uname26"))
"""What ``setarch`` may be given before the command, and what may be a command by itself."""


class Inner(msgspec.Struct, frozen=True):
    """What a wrapper runs: an argv, or texts for a shell; and the variables that it sets before."""

    argv: tuple[Word, ...] = ()
    texts: tuple[Word, ...] = ()
    assigned: tuple[Word, ...] = ()
    written: tuple[Word, ...] = ()
    strange: tuple[str, ...] = ()


def unwrap(wrapper: Wrapper, arguments: tuple[Word, ...]) -> Inner:
    """Finds what a wrapper runs."""
    parsed = parse(f"{wrapper.options} +", arguments)
    operands = tuple(parsed.operands)
    texts = tuple(parsed.values(wrapper.text)) if wrapper.text else ()
    rest = operands[wrapper.skip :]
    if rest and rest[0].text in _MACHINES:
        rest = rest[1:]
    if wrapper.text == "command" and wrapper.skip and len(rest) > 1 and rest[0].text in {"-c", "--command"}:
        texts, rest = (*texts, rest[1]), ()
    assigned: list[Word] = []
    while wrapper.assigns and rest and "=" in (rest[0].text or rest[0].prefix):
        assigned.append(rest[0])
        rest = rest[1:]
    if rest and rest[0].text == "--":
        rest = rest[1:]
    if wrapper.joins and rest:
        texts, rest = (*texts, joined(rest)), ()
    return Inner(
        argv=() if texts else rest,
        texts=texts,
        assigned=tuple(assigned),
        written=_written(wrapper, parsed),
        strange=tuple(parsed.strange),
    )


def _written(wrapper: Wrapper, parsed: Parsed) -> tuple[Word, ...]:
    if wrapper.writes.isdigit():
        operands = parsed.operands[int(wrapper.writes) :][:1]
        return tuple(word for word in operands if not (word.text or "").isdigit())
    return tuple(parsed.values(wrapper.writes)) if wrapper.writes else ()
