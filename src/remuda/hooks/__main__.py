"""``python -I -m remuda.hooks EVENT [JSON] [--dialect NAME] [--runtime NAME]``: ``remuda hook``, with less to
load."""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: "Sequence[str]") -> None:
    """Answer and leave. An installation that cannot even be loaded denies."""
    code = 2
    try:
        from remuda.hooks.program import main as program

        code = program(arguments)
    except BaseException:
        os.write(2, b"remuda: denied: the guard cannot be started\n")
    os._exit(code)


if __name__ == "__main__":
    main(sys.argv[1:])
