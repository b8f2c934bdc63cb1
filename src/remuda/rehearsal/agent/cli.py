"""The command line: options, prompt channels, and the exit code."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from remuda import __version__
from remuda.core.errors import ConfigError, RemudaError
from remuda.core.ids import ulid
from remuda.rehearsal.agent import lines, repl
from remuda.rehearsal.agent.control import Host
from remuda.rehearsal.agent.hooks import Hooks, Identity
from remuda.rehearsal.agent.loop import Agent, Setup
from remuda.rehearsal.agent.messages import Message, ToolUse
from remuda.rehearsal.agent.model import Endpoint
from remuda.rehearsal.agent.process import Interrupted, Processes
from remuda.rehearsal.agent.settings import Settings, read_settings
from remuda.rehearsal.agent.store import Transcript
from remuda.rehearsal.agent.tools import Mode

API_KEY = "REHEARSAL_API_KEY"
DIALOG = "REHEARSAL_DIALOG"
"""Set to ``trust``, an interactive session first asks whether its folder is trusted."""

SYSTEM = "You are the rehearsal agent, a small coding agent. Work in the current folder with your tools."
MODES: tuple[Mode, ...] = ("default", "bypass", "read-only")
HOOK_MODES: dict[Mode, str] = {"default": "default", "bypass": "bypassPermissions", "read-only": "plan"}
"""The words hooks know the modes by."""


class Options(argparse.Namespace):
    """The parsed command line."""

    prompt: str | None
    prompt_file: Path | None
    headless: bool
    model: str
    output_format: str
    permission_mode: Mode
    system_prompt_file: Path | None
    append_system_prompt_file: Path | None
    session_id: str | None
    resume: str | None
    settings: Path | None
    setting_sources: str
    input_format: str
    replay_user_messages: bool
    max_turns: int


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="rehearsal",
        description="A tiny coding agent for demos and tests. It asks the model at REHEARSAL_BASE_URL, or "
        "plays the scenario named by REHEARSAL_SCENARIO by itself.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--version", action="version", version=f"{__version__} (Rehearsal)")
    add("-p", "--print", action="store_true", dest="headless", help="answer one prompt and exit")
    add("--model", type=_text, default="rehearsal", help="the model to ask for")
    add("--output-format", choices=("text", "stream-json"), default="text", help="how a headless run reports")
    add("--permission-mode", choices=MODES, default="default", help="which tools run without approval")
    add("--system-prompt-file", type=Path, metavar="PATH", help="replace the system prompt")
    add("--append-system-prompt-file", type=Path, metavar="PATH", help="add to the system prompt")
    add("--settings", type=Path, metavar="FILE", help="one more settings file with hooks")
    add(
        "--setting-sources",
        choices=("user", "user,project"),
        default="user,project",
        help="whose settings count",
    )
    add(
        "--input-format",
        choices=("text", "stream-json"),
        default="text",
        help="a prompt, or a host that converses",
    )
    add("--replay-user-messages", action="store_true", help="tell the host which prompts were taken")
    add("--max-turns", type=_positive, default=50, metavar="N", help="model turns a prompt may take")
    session = parser.add_mutually_exclusive_group()
    session.add_argument("--session-id", metavar="ID", help="the id of the new session")
    session.add_argument("--resume", metavar="ID", help="continue a session")
    prompt = parser.add_mutually_exclusive_group()
    prompt.add_argument("--prompt-file", type=Path, metavar="PATH", help="read the prompt from a file")
    prompt.add_argument("prompt", nargs="?", help="the prompt; without one a headless run reads stdin")
    return parser


def _text(value: str) -> str:
    return _decode(os.fsencode(value), "the value")


def _positive(value: str) -> int:
    number = int(value)
    if number < 1:
        raise ValueError
    return number


def _decode(data: bytes, what: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise ConfigError(f"{what} is not UTF-8 text") from None


def _read(path: Path, what: str) -> str:
    try:
        return _decode(path.read_bytes(), what)
    except OSError as error:
        raise ConfigError(f"cannot read {what} {path}: {error.strerror or 'unknown error'}") from None


def _prompt(options: Options, host: Host | None, *, interactive: bool) -> str | None:
    """The prompt by the one channel in use; stdin only counts where no other is."""
    if host is not None:
        prompt = host.prompt() or ""
    elif options.prompt is not None:
        prompt = _decode(os.fsencode(options.prompt), "the prompt")
    elif options.prompt_file is not None:
        prompt = _read(options.prompt_file, "the prompt file")
    elif interactive:
        return None
    else:
        prompt = _decode(sys.stdin.buffer.read(), "the prompt on stdin")
    if not prompt.strip():
        raise ConfigError("the prompt is empty", "give it as an argument, with --prompt-file, or on stdin")
    return prompt


def _system(options: Options) -> str:
    system = SYSTEM
    if options.system_prompt_file is not None:
        system = _read(options.system_prompt_file, "the system prompt file")
    if options.append_system_prompt_file is not None:
        system += "\n\n" + _read(options.append_system_prompt_file, "the system prompt file")
    return system


def _settings(options: Options, home: Path, cwd: Path) -> Settings:
    paths = [home / "settings.json"]
    if "project" in options.setting_sources:
        paths.append(cwd / ".rehearsal" / "settings.json")
    if options.settings is not None:
        if not options.settings.is_file():
            raise ConfigError(f"there is no settings file {options.settings}")
        paths.append(options.settings)
    return read_settings(paths, _complain)


def _session(options: Options, home: Path) -> tuple[Transcript, list[Message] | None]:
    """The transcript to write to, and the conversation that it continues, if it does."""
    if options.resume is not None:
        transcript = Transcript(home, options.resume)
        return transcript, transcript.load()
    transcript = Transcript(home, ulid() if options.session_id is None else options.session_id)
    transcript.begin()
    return transcript, None


@contextlib.contextmanager
def _endpoint(environ: Mapping[str, str]) -> Iterator[Endpoint]:
    """The model given by the environment, or a scripted one in this very process."""
    key = environ.get(API_KEY, "")
    if url := environ.get("REHEARSAL_BASE_URL"):
        yield Endpoint.parse(url, key)
        return
    from remuda.rehearsal.scenario import ScenarioError, load_scenario
    from remuda.rehearsal.server import RehearsalServer

    try:
        scenario = load_scenario(environ.get("REHEARSAL_SCENARIO") or "default")
    except ScenarioError as error:
        raise ConfigError(error.message) from None
    with RehearsalServer(scenario) as server:
        yield Endpoint.parse(server.url, key)


def _host(options: Options) -> Host | None:
    """Whoever converses over the standard streams, if that was asked for."""
    if options.input_format != "stream-json":
        return None
    if not options.headless or options.output_format != "stream-json":
        raise ConfigError("--input-format stream-json needs -p and --output-format stream-json")
    return Host(sys.stdin.buffer, sys.stdout.buffer, replay=options.replay_user_messages)


def _hooks(
    options: Options, home: Path, cwd: Path, transcript: Transcript, processes: Processes, host: Host | None
) -> Hooks:
    identity = Identity(
        transcript.session_id,
        lines.shown(transcript.path),
        lines.shown(cwd),
        HOOK_MODES[options.permission_mode],
    )
    settings = _settings(options, home, cwd)
    return Hooks(settings, identity, cwd, processes, *((host.consult,) if host else ()))


def _run(options: Options, environ: Mapping[str, str], processes: Processes) -> int:
    person = _person(options)
    host = _host(options)
    prompt = _prompt(options, host, interactive=person is not None)
    cwd = Path.cwd()
    home = Path(environ.get("REHEARSAL_HOME") or Path.home() / ".rehearsal").absolute()
    setup = Setup(options.model, _system(options), options.permission_mode, options.max_turns, cwd)
    transcript, earlier = _session(options, home)
    hooks = _hooks(options, home, cwd, transcript, processes, host)
    approve = person.approve if person else host.approve if host else _nobody
    with _endpoint(environ) as endpoint, person.present() if person else contextlib.nullcontext():
        if person and environ.get(DIALOG) == "trust" and not repl.trusts(person, cwd):
            return 1
        agent = Agent(setup, endpoint, hooks, transcript, processes, _emitter(options, person), approve)
        agent.start(earlier)
        if person is not None:
            repl.converse(agent, person, prompt)
            agent.end("prompt_input_exit")
            return 0
        first = prompt or ""
        succeeded = host.converse(agent, first) if host else agent.turn(first).error is None
        agent.end("other")
        return 0 if succeeded else 1


def _person(options: Options) -> repl.Person | None:
    """Whoever sits at the terminal, if there is one and a conversation is wanted."""
    if options.headless or not sys.stdin.isatty() or not sys.stdout.isatty():
        return None
    return repl.Person(sys.stdin.fileno(), sys.stdout.fileno())


def _emitter(options: Options, person: repl.Person | None) -> lines.Emit:
    if person is not None:
        return lines.talk(person.screen.say)
    if options.output_format == "stream-json":
        return lines.stream_json(sys.stdout.buffer)
    return lines.plain(sys.stdout.buffer, sys.stderr.buffer)


def _nobody(call: ToolUse) -> str:
    """The objection to every tool that needs approval in a headless run."""
    return f"{call.name} needs approval, and nobody is there to approve it."


def _complain(message: str) -> None:
    sys.stderr.write(f"rehearsal: {message}\n")


def main(argv: Sequence[str]) -> int:
    """Run the agent; returns its exit code, or ends by the signal that stopped it."""
    environ = dict(os.environ)
    processes = Processes({name: value for name, value in environ.items() if name != API_KEY})
    try:
        processes.listen()
        return _run(_parser().parse_args(argv, Options()), environ, processes)
    except Interrupted as interruption:
        interruption.die()
        return 128 + interruption.number
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except RemudaError as error:
        _complain(str(error))
        return 1
