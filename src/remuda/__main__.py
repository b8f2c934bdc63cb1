"""The command line's entry point: answers ``--version`` before anything is imported."""

import sys


def main() -> None:
    """Run the command line and exit with its code."""
    if sys.argv[1:] == ["--version"]:
        from remuda import __version__

        sys.stdout.write(f"remuda {__version__}\n")
        return
    from remuda.surfaces.cli.main import run

    sys.exit(run())


if __name__ == "__main__":
    main()
