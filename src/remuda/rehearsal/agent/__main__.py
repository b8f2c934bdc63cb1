"""Entry point of ``python -m remuda.rehearsal.agent``."""

import sys

from remuda.rehearsal.agent.cli import main

sys.exit(main(sys.argv[1:]))
