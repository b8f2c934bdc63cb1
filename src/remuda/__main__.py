"""The command line's entry point: ``--version``, ``--help`` and hooks come before all else is loaded."""

import io
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

_INTERRUPTED = 130


def main() -> None:
    """Run the command line and exit with its code."""
    _prepare()
    if sys.argv[1:] == ["--version"]:
        from remuda import __version__

        sys.stdout.write(f"remuda {__version__}\n")
        _leave(0)
    if sys.argv[1:] in ([], ["--help"], ["-h"]) and "_REMUDA_COMPLETE" not in os.environ:
        from remuda.surfaces.cli.overview import overview

        sys.stdout.write(overview())
        _leave(0)
    if sys.argv[1:2] == ["hook"] and not {"--help", "-h", "--path"} & set(sys.argv[2:]):
        from remuda.hooks.__main__ import main as hook

        hook(sys.argv[2:])
    import gc

    gc.disable()  # loading makes no garbage, and looking for it costs a sixth of the start
    try:
        from remuda.core import foundations

        foundations.load()
        from remuda.surfaces.cli.main import run

        code = run()
    except KeyboardInterrupt:  # while it loads
        code = _INTERRUPTED
    _leave(code)


def _prepare() -> None:
    """Open what was closed of the standard streams, for other files would come in their places. Standard
    output takes anything: a file's name need not be text, and a terminal need not know our signs."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.open(os.devnull, os.O_RDWR), "w" if number else "r"))  # noqa: PTH123, SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _leave(code: int) -> "NoReturn":
    """Exit without tearing the interpreter down, which would take longer than many a command."""
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        pass
    os._exit(code)


if __name__ == "__main__":
    main()
