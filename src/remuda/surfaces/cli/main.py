"""The ``remuda`` command: a table of verbs, each imported only when it is called."""

from __future__ import annotations

from importlib import import_module

import click

from remuda import __version__
from remuda.core.errors import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_USAGE, RemudaError, of_system
from remuda.surfaces.cli.overview import AGENTS, VERBS, overview

PLACES = {name: place for name, place, _ in VERBS}


class VerbGroup(click.Group):
    """Looks verbs up in the table, so that a verb's module is only imported when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*PLACES, *AGENTS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in PLACES:
            return _shorthand(cmd_name)
        module, _, attribute = PLACES[cmd_name].partition(":")
        command = getattr(import_module(f"remuda.surfaces.cli.{module}"), attribute)
        assert isinstance(command, click.Command)
        return command

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write(overview())

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError:
            from difflib import get_close_matches

            near = get_close_matches(args[0], self.list_commands(ctx))
            hint = f" Did you mean '{near[0]}'?" if near else ""
            raise click.UsageError(f"There is no verb {args[0]!r}.{hint}", ctx) from None


def _shorthand(name: str) -> click.Command | None:
    """The verb that launches the agent or runtime of this name, if there is one."""
    from remuda.operations.world import can_be_launched
    from remuda.surfaces.cli.launch import shorthand

    return shorthand(name) if can_be_launched(name) else None


@click.group(cls=VerbGroup, context_settings={"help_option_names": ["-h", "--help"]})
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
        _complain(error.message, error.hint)
        return error.exit_code
    except UnicodeEncodeError:
        _complain(
            "an argument, a variable or the folder's path is not valid UTF-8", "Convert it to UTF-8 first."
        )
        return EXIT_USAGE
    except (click.Abort, KeyboardInterrupt):
        return EXIT_INTERRUPTED
    except OSError as error:
        _complain(of_system(error).message)
        return EXIT_FAILED
    return code if isinstance(code, int) else 0


def _complain(message: str, hint: str = "") -> None:
    """What went wrong, and the next step; not in characters that steer a terminal, whoever they are from."""
    from remuda.surfaces.cli.progress import printable

    text = f"remuda: {message}\n  {hint}" if hint else f"remuda: {message}"
    click.echo(printable(text, keep="\n\t"), err=True)
