"""The ``remuda`` command: a table of verbs, each imported only when it is called."""

from __future__ import annotations

from importlib import import_module
from typing import NamedTuple

import click

from remuda import __version__
from remuda.core.errors import EXIT_FAILED, EXIT_INTERRUPTED, RemudaError

HELP = """Run any AI coding agent, safely, from one place.

\b
  remuda run "explain this repo"        run the active agent and wait for its answer
  remuda run --agent codex -            … another one, with the prompt from standard input
  remuda claude                         launch an agent interactively
  remuda which --explain                which agent is active, and why
  remuda doctor                         what is installed and what is wrong
"""


class Verb(NamedTuple):
    """A verb's name, where its command lives, and its line in the overview."""

    name: str
    place: str
    summary: str


VERBS = (
    Verb("run", "run:run", "Run an agent on a prompt and wait for its answer."),
    Verb("launch", "launch:launch", "Launch an agent interactively in this terminal."),
    Verb("claude", "launch:claude", "Launch Claude Code."),
    Verb("codex", "launch:codex", "Launch Codex."),
    Verb("copilot", "launch:copilot", "Launch GitHub Copilot CLI."),
    Verb("which", "which:which", "Show which agent is active, and why."),
    Verb("use", "which:use", "Make an agent your default."),
    Verb("agents", "agents:agents", "List the agents that can be called."),
    Verb("runtimes", "runtimes:runtimes", "List the supported agent CLIs and what is proven about each."),
    Verb("doctor", "doctor:doctor", "Examine the installation and say what to do."),
    Verb("rehearse", "rehearse:rehearse", "Serve a scripted model, to try agents without an account."),
    Verb("config", "config:config", "Show and change the configuration."),
    Verb("completion", "completion:completion", "Print the shell completion script."),
)


class VerbGroup(click.Group):
    """Looks verbs up in the table; the overview needs no verb's module."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [verb.name for verb in VERBS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        verb = next((verb for verb in VERBS if verb.name == cmd_name), None)
        if verb is None:
            return None
        module, _, attribute = verb.place.partition(":")
        command = getattr(import_module(f"remuda.surfaces.cli.{module}"), attribute)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Verbs"):
            formatter.write_dl([(verb.name, verb.summary) for verb in VERBS])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError:
            from difflib import get_close_matches

            near = get_close_matches(args[0], [verb.name for verb in VERBS])
            hint = f" Did you mean '{near[0]}'?" if near else ""
            raise click.UsageError(f"There is no verb {args[0]!r}.{hint}", ctx) from None


@click.group(cls=VerbGroup, help=HELP, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="remuda", message="%(prog)s %(version)s")
@click.option("-v", "--verbose", is_flag=True, help="Show informational log lines on standard error.")
def cli(verbose: bool) -> None:
    import logging

    from remuda.core import log

    log.configure(logging.INFO if verbose else logging.WARNING)


def run(arguments: list[str] | None = None) -> int:
    """Run one command line. Expected errors are one line and a hint; bugs are a traceback."""
    try:
        code = cli.main(args=arguments, prog_name="remuda", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except RemudaError as error:
        click.echo(f"remuda: {error.message}", err=True)
        if error.hint:
            click.echo(f"  {error.hint}", err=True)
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return EXIT_INTERRUPTED
    except OSError as error:
        place = f" {error.filename}" if error.filename else ""
        click.echo(f"remuda: the system refused{place}: {error.strerror}", err=True)
        return EXIT_FAILED
    return code if isinstance(code, int) else 0
