"""Times sessions, from their start to ready and from a prompt to the model, against the bare programs.

The floor of a connection is a script that speaks the same protocol to the same program, with the arguments
and the environment that Remuda uses; that of a pane is the same program in a bare tmux, whose screen is
captured over and over. Both talk to the same scripted model. Run by run.py inside the namespace that has no
network but loopback; prints its timings as JSON.

Usage: python tools/loopback.py python bench/sessions.py AGENTS_FOLDER CACHE_FOLDER [ROUNDS]
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

from calls import Bench, Call, argv, recorded, until
from measure import Timing, Timings, cpu, ratio, wall
from overhead import place

from remuda.core.identity import pid_of
from remuda.rehearsal.scenario import load_scenario
from remuda.rehearsal.server import RehearsalServer
from remuda.runtimes import screens

AGENTS = ("rehearsal", "claude")
ROUNDS = 8
TICKS = os.sysconf("SC_CLK_TCK")
START, SEND = "start to ready", "send to the model"
_HELLO: dict[str, object] = {
    "type": "control_request",
    "request_id": "hello",
    "request": {"subtype": "initialize", "hooks": {}},
}

Measured = dict[str, dict[str, Timings]]
"""By agent and mode, then by what was measured; of each, ours and the floor."""


def spent(pid: int) -> float:
    """The CPU time of a process itself, in milliseconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * 1000 / TICKS


def ours(bench: Bench, mode: str, _call: Call) -> dict[str, Timing]:
    """A session through Remuda; CPU is that of its commands and of the keeper."""
    name, word = f"s{uuid.uuid4().hex[:8]}", f"word-{uuid.uuid4().hex}"
    consent = ("--consent=trust", "--consent=key") if mode == "tmux" else ()
    begun, _, code = bench.remuda("start", name, "--agent", bench.agent, "--mode", mode, *consent)
    if code != 0:
        raise RuntimeError(f"session start ended with exit code {code}")
    keeper = pid_of(bench.row(name).holder or "") if mode == "connection" else 0
    before = spent(keeper) if keeper else 0.0
    sent, began, code = bench.remuda("send", name, word)
    if code != 0:
        raise RuntimeError(f"session send ended with exit code {code}")
    heard = (bench.heard(word) - began) * 1000
    after = spent(keeper) if keeper else 0.0
    bench.remuda("stop", name)
    return {
        START: Timing(begun.wall, begun.cpu + before),
        SEND: Timing(heard, sent.cpu + after - before),
    }


class Conversation:
    """As little as it takes to speak with a program over its standard streams."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._input, self._output = process.stdin, process.stdout

    def say(self, what: dict[str, object]) -> None:
        self._input.write(json.dumps(what).encode() + b"\n")
        self._input.flush()

    def hear(self, wanted: str) -> None:
        """Wait for a line of a kind, and say yes to whatever is asked until then."""
        for line in self._output:
            told = json.loads(line)
            if told["type"] == wanted:
                return
            if told["type"] == "control_request":
                good = {"subtype": "success", "request_id": told["request_id"], "response": {}}
                self.say({"type": "control_response", "response": good})
        raise RuntimeError("the program ended")


def bare_connection(bench: Bench, _mode: str, call: Call) -> dict[str, Timing]:
    """The same program over the same protocol."""
    word, started, used = f"word-{uuid.uuid4().hex}", time.perf_counter(), time.process_time()
    with subprocess.Popen(
        argv(bench, call),
        env=call.env,
        cwd=bench.work,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        talk = Conversation(process)
        try:
            talk.say(_HELLO)
            talk.hear("control_response")
            ready = Timing((time.perf_counter() - started) * 1000, (time.process_time() - used) * 1000)
            began, used = time.time(), time.process_time()
            content = [{"type": "text", "text": word}]
            talk.say({"type": "user", "message": {"role": "user", "content": content}})
            talk.hear("result")
            heard = (bench.heard(word) - began) * 1000
            return {START: ready, SEND: Timing(heard, (time.process_time() - used) * 1000)}
        finally:
            process.terminate()


def bare_pane(bench: Bench, _mode: str, call: Call) -> dict[str, Timing]:
    """The same program in a tmux without anything, looked at again and again."""
    word, started = f"word-{uuid.uuid4().hex}", time.perf_counter()
    socket = bench.home / f"{uuid.uuid4().hex[:8]}.sock"  # a server that ends may still answer at its own
    manifest = screens.load(bench.agent, bench.home)
    consumed = _cpu()

    def tmux(*words: str, stdin: str = "") -> str:
        base = ("tmux", "-u", "-f", "/dev/null", "-S", str(socket))
        return subprocess.run(
            (*base, *words), env=call.env, input=stdin, capture_output=True, text=True, check=False
        ).stdout

    def ready() -> bool | None:
        return screens.classify(manifest, tmux("capture-pane", "-p", "-t", "bare")).state == "ready" or None

    variables = [part for name, value in call.env.items() for part in ("-e", f"{name}={value}")]
    size = ("-x", "200", "-y", "50")
    tmux("new-session", "-d", "-s", "bare", *size, "-c", str(bench.work), *variables, *argv(bench, call))
    try:
        until(ready)
        begun = Timing((time.perf_counter() - started) * 1000, _cpu() - consumed)
        began, consumed = time.time(), _cpu()
        tmux("load-buffer", "-", stdin=word)
        tmux("paste-buffer", "-p", "-t", "bare")
        until(lambda: word in tmux("capture-pane", "-p", "-t", "bare") or None)
        tmux("send-keys", "-t", "bare", *manifest.terminal.submit)
        heard = (bench.heard(word) - began) * 1000
        return {START: begun, SEND: Timing(heard, _cpu() - consumed)}
    finally:
        tmux("kill-server")


def _cpu() -> float:
    """What this process and those it waited for have used, in ms; finer than the ticks of ``os.times``."""
    used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used) * 1000


def measure(bench: Bench, mode: str, rounds: int) -> dict[str, Timings]:
    """Both ways in turn, in an order that changes every round. The first round is for warming up, and there
    Remuda answers the dialogs that would hold up the bare program."""
    call = recorded(bench, mode)
    ways = {"remuda": ours, "bare": bare_connection if mode == "connection" else bare_pane}
    timings: dict[str, Timings] = {what: {way: [] for way in ways} for what in (START, SEND)}
    for number in range(rounds + 1):
        for way in random.sample(list(ways), len(ways)) if number else ways:
            for what, timing in ways[way](bench, mode, call).items():
                if number:
                    timings[what][way].append(timing)
    return timings


@contextlib.contextmanager
def benches(agents_folder: Path, cache: Path) -> Iterator[Callable[[str], Bench]]:
    """Makes homes of people who have used an agent before."""
    with contextlib.ExitStack() as held:
        server = held.enter_context(RehearsalServer(load_scenario("default")))

        def make(agent: str) -> Bench:
            home = held.enter_context(place(cache))
            (home / "work").mkdir()
            (home / ".claude.json").write_text(json.dumps({"hasCompletedOnboarding": True}))
            path = os.pathsep.join((str(agents_folder), os.environ["PATH"]))
            env = {"PATH": path, "HOME": str(home), "REMUDA_HOME": str(home / "remuda"), "TERM": "xterm"}
            env |= {"REMUDA_ENDPOINT": server.url, "LANG": "C.UTF-8"}
            bench = Bench(agent, home, env, server)
            held.callback(bench.clear)
            return bench

        yield make


def modes() -> tuple[str, ...]:
    """Panes can only be measured where there is tmux."""
    return ("connection", "tmux") if shutil.which("tmux") else ("connection",)


def show(measured: Measured) -> None:
    """Print the medians, and what ours are of the floor's."""
    print(
        "\nSessions: median of interleaved runs, in ms; a multiple of the bare program's; CPU is ours alone"
    )
    print(f"  {'':44}{'remuda':>8}{'bare':>8}{'':>8}{'CPU':>8}")
    for title, kinds in measured.items():
        for what, ways in kinds.items():
            through, bare = ways["remuda"], ways["bare"]
            times = ratio(through, bare).wall
            label = f"{title}, {what} (n={len(bare)})"
            print(f"  {label:44}{wall(through):8.0f}{wall(bare):8.0f}{times:7.2f}x{cpu(through):8.0f}")


def rows(measured: Measured) -> dict[str, object]:
    """The same as a document."""
    return {
        f"{title}, {what}": {
            **{f"{way}_wall_ms": wall(timings) for way, timings in ways.items()},
            **{f"{way}_cpu_ms": cpu(timings) for way, timings in ways.items()},
            "times_bare": ratio(ways["remuda"], ways["bare"]).wall,
            "n": len(ways["bare"]),
        }
        for title, kinds in measured.items()
        for what, ways in kinds.items()
    }


def read(document: str) -> Measured:
    """The timings that `main` prints."""
    return {
        title: {
            what: {way: [Timing(*each) for each in timings] for way, timings in ways.items()}
            for what, ways in kinds.items()
        }
        for title, kinds in json.loads(document).items()
    }


def main() -> None:
    """Measure every agent in every mode, and print the timings."""
    agents_folder, cache = (Path(argument) for argument in sys.argv[1:3])
    rounds = int(sys.argv[3]) if sys.argv[3:] else ROUNDS
    measured: Measured = {}
    with benches(agents_folder, cache) as make:
        for agent in AGENTS:
            bench = make(agent)
            for mode in modes():
                measured[f"{agent}, {mode}"] = measure(bench, mode, rounds)
    print(json.dumps(measured))
    if sys.stderr.isatty():
        with contextlib.redirect_stdout(sys.stderr):
            show(measured)


if __name__ == "__main__":
    main()
