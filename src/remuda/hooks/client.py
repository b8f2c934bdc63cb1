"""The hook as an agent CLI should call it: ``PYTHON -I -S /path/to/client.py EVENT [JSON] [--dialect NAME]
[--runtime NAME]``.

It is a file to be run by its path, and short: what is run that way is compiled every time.
"""

import sys


def main() -> None:
    """Answer and leave. An installation that cannot even be loaded denies."""
    try:
        sys.path.append(__file__.rpartition("/remuda/hooks/")[0])
        from remuda.hooks.asking import answer

        answer(sys.argv[1:], __file__)
    except BaseException:
        import posix

        posix.write(2, b"remuda: denied: the guard cannot be started\n")
        posix._exit(2)


if __name__ == "__main__":
    main()
