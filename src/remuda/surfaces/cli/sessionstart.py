"""``remuda session start`` and ``resume``"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from remuda.core.errors import EXIT_OK
from remuda.surfaces.cli.output import as_json, write_json
from remuda.surfaces.cli.runoptions import CAPABILITIES, read_prompt, variables
from remuda.surfaces.cli.sessionnames import ENDED, named
from remuda.surfaces.cli.sessionsend import do, receipt_for, say, told, world_of
from remuda.surfaces.cli.values import AGENTS, AMOUNT, PROFILES, TAGS

if TYPE_CHECKING:
    from remuda.operations.session.speaking import Session
    from remuda.operations.world import World

_WAIT = click.option(
    "--wait",
    type=AMOUNT,
    default=120.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait until it takes prompts.",
)
_CONSENT = click.option(
    "--consent",
    multiple=True,
    metavar="KIND",
    help="Answer this kind of dialog for me (trust, bypass, key …); repeatable.",
)


@click.command()
@click.argument("name")
@click.option(
    "--agent",
    metavar="NAME",
    shell_complete=AGENTS,
    help="The agent; default: the active one ('remuda which').",
)
@click.option("--tag", metavar="LABEL", shell_complete=TAGS, help="An agent that carries this label.")
@click.option("--nested", is_flag=True, help="Let the agent that asks be called itself.")
@click.option(
    "--mode",
    type=click.Choice(("auto", "connection", "tmux")),
    default="auto",
    show_default=True,
    help="connection: over the agent's protocol; tmux: its terminal interface; auto: the first that it has.",
)
@click.option("--prompt", metavar="TEXT", help="A first prompt: the text, - for standard input, or @file.")
@click.option("--model", metavar="NAME", help="The model, as the agent calls it.")
@click.option(
    "--capability",
    type=click.Choice(CAPABILITIES),
    help="What the agent is for, and so may do: every tool call is judged by that (connections only).",
)
@click.option("--worktree", type=Path, metavar="DIR", help="The folder a guarded agent may change.")
@click.option("--branch-prefix", metavar="PREFIX", help="How a guarded agent's branches have to be called.")
@click.option("--unproven", is_flag=True, help="Start although the guard is not proven on this version.")
@click.option(
    "--permission",
    type=click.Choice(("ask", "bypass")),
    default="ask",
    show_default=True,
    help="ask: tool calls that need approval are judged by the guard, then put to you; bypass: none ask.",
)
@click.option(
    "--sandbox",
    metavar="PROFILE",
    shell_complete=PROFILES,
    help="Wall the whole agent in: workspace, read-only, offline …",
)
@click.option("--unsafe-yes", is_flag=True, help="Confirm the sandbox danger-full-access, which is none.")
@click.option("--append-system-prompt", metavar="TEXT", help="Add to the agent's system prompt.")
@click.option("--cwd", type=Path, metavar="DIR", help="The folder to work in; default: this one.")
@click.option(
    "--idle-timeout",
    type=AMOUNT,
    metavar="SECONDS",
    help="Interrupt a turn in which nothing is heard for so long (connections only).",
)
@click.option("--env", multiple=True, metavar="KEY=VALUE", help="A variable for the agent; repeatable.")
@_CONSENT
@_WAIT
@as_json
def start(
    name: str,
    mode: str,
    prompt: str | None,
    env: tuple[str, ...],
    consent: tuple[str, ...],
    wait: float,
    as_json: bool,
    **options: object,
) -> int:
    """Start a session called NAME, and wait until it takes prompts.

    Questions of safety that an agent asks at its start (do you trust this folder?) are only answered for you
    with --consent, or with 'sessions.consent' in the configuration; otherwise you are told, and can answer
    them in 'remuda session attach'.
    """
    import msgspec

    from remuda.operations.requests import RunRequest
    from remuda.operations.session.requests import StartRequest
    from remuda.operations.session.starting import start as operation

    text = "" if prompt is None else read_prompt(prompt)
    run = msgspec.convert({**options, "prompt": text, "env": variables(env)}, RunRequest)
    request = msgspec.convert(
        {"name": name, "mode": mode, "consent": consent, "wait": wait, "run": run}, StartRequest
    )
    world = world_of(run.cwd)
    started = do(operation(world, request, say))
    return _begun(world, started, text, as_json)


@click.command()
@named(ENDED)
@click.option("--env", multiple=True, metavar="KEY=VALUE", help="A variable for the agent; repeatable.")
@_CONSENT
@_WAIT
@as_json
def resume(name: str, env: tuple[str, ...], consent: tuple[str, ...], wait: float, as_json: bool) -> int:
    """Take up a session that has ended: after a crash, a stop or a reboot.

    The agent continues the conversation that it had. Prompts that were accepted and never sent are sent now.
    Variables that were given with --env are not kept, and have to be given again.
    """
    from remuda.operations.session.starting import ResumeRequest
    from remuda.operations.session.starting import resume as operation

    world = world_of()
    asked = ResumeRequest(name=name, wait=wait, consent=consent, env=variables(env))
    return _begun(world, do(operation(world, asked, say)), "", as_json)


def _begun(world: World, begun: Session, prompt: str, as_json: bool) -> int:
    """Tell of a session that has begun, and send its first prompt."""
    from remuda.operations.session.looking import Begun, seen
    from remuda.operations.session.panes import capture

    receipt = None
    if prompt and begun.state == "ready":
        receipt = do(receipt_for(world, begun.id, prompt, quiet=True))
    usable = begun.state in ("ready", "working", "waiting")
    shown = capture(world, begun) if begun.mode == "tmux" and not usable else None
    if as_json:
        write_json(Begun(session=seen(begun), receipt=receipt, screen=shown))
    else:
        click.echo(f"{begun.name} is {begun.state} ({begun.runtime}, {begun.mode}, {begun.id})")
        if receipt is not None:
            click.echo(told(receipt))
    if usable:
        return EXIT_OK
    if shown and not as_json:
        click.echo("\n".join(line for line in shown.splitlines() if line.strip()), err=True)
    say(f"it is not ready yet. Look with 'remuda session screen {begun.name}', answer with 'attach'.")
    return 1
