"""The command line's entry point: answers ``--version`` before anything is imported."""

import os
import sys


def main() -> None:
    """Run the command line and exit with its code."""
    if sys.argv[1:] == ["--version"]:
        from remuda import __version__

        sys.stdout.write(f"remuda {__version__}\n")
        return
    from remuda.surfaces.cli.main import run

    _leave(run())


def _leave(code: int) -> None:
    """Exit without tearing the interpreter down, which would take longer than many a command."""
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        pass
    os._exit(code)


if __name__ == "__main__":
    main()
