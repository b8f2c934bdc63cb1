"""``remuda doctor --verify``: progress while it runs, a table when it is over."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

import click

from remuda.core.errors import EXIT_FAILED, EXIT_OK
from remuda.operations.verify import Begun, Finding, Message, Opened, Subject, verify
from remuda.operations.world import open_world
from remuda.surfaces.cli.output import draw, table, write_json

if TYPE_CHECKING:
    from remuda.operations.verify import RuntimeVerification, Verification

_SIGNS = {"holds": "✓", "fails": "✗", "unchecked": "–"}


def show_verification(names: tuple[str, ...], as_json: bool, subject: Subject = "everything") -> int:
    """Verify, and show how it goes and what came of it."""
    progress = Progress()
    try:
        verification = asyncio.run(verify(open_world(), names, progress.tell, subject))
    finally:
        progress.clear()
    if as_json:
        write_json(verification)
    else:
        _show(verification)
    return EXIT_OK if verification.ok else EXIT_FAILED


class Progress:
    """Lines on standard error; on a terminal, what has begun stands there only until it has ended."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()

    def tell(self, runtime: str, message: Message) -> None:
        match message:
            case Opened(version=version):
                self._line(f"{runtime} {version or '(unknown version)'}")
            case Begun(title=title):
                if self._terminal:
                    click.echo(f"  … {title}", err=True, nl=False)
                else:
                    self._line(f"  … {title}")
            case Finding() as finding:
                self._line(f"  {_SIGNS[finding.verdict]} {finding.what}{_after(finding)}")

    def _line(self, text: str) -> None:
        self.clear()
        click.echo(text, err=True)

    def clear(self) -> None:
        """Take back the line of what has only begun."""
        if self._terminal:
            click.echo("\r\033[K", err=True, nl=False)


def _after(finding: Finding) -> str:
    """Seconds for what was run, and the reason why anything does not hold."""
    seconds = f" ({finding.seconds:.1f} s)" if finding.seconds else ""
    return seconds if finding.verdict == "holds" else f"{seconds}: {finding.how}"


def _show(verification: Verification) -> None:
    from rich.text import Text

    drawn = table("Agent", "Version", "Claim", "", "Seen")
    for runtime in verification.runtimes:
        for number, finding in enumerate(runtime.findings):
            agent = (runtime.name, runtime.version or "unknown") if number == 0 else ("", "")
            drawn.add_row(*agent, finding.what, _SIGNS[finding.verdict], Text(finding.how))
    draw(drawn)
    for runtime in verification.runtimes:
        _show_rest(runtime)
    failing = [runtime.name for runtime in verification.runtimes if not runtime.ok]
    click.echo(
        f"\nNot what is claimed: {', '.join(failing)}." if failing else "\nEverything that was checked holds."
    )


def _show_rest(runtime: RuntimeVerification) -> None:
    if runtime.changes:
        click.echo(f"\nChanged since {runtime.name} was last verified")
        for change in runtime.changes:
            click.echo(f"  {change}")
    if runtime.advice:
        click.echo(f"\nWhat to do about {runtime.name}")
        for sentence in runtime.advice:
            click.echo(f"  {sentence}")
