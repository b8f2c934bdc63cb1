"""Resolves the pinned requirements again: one file to run Remuda, one to develop it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COMPILE = (
    *(
        sys.executable,
        "-m",
        "uv",
        "pip",
        "compile",
        "pyproject.toml",
        "--universal",
        "--python-version",
        "3.11",
    ),
    *("--generate-hashes", "--no-header", "--no-annotate", "--quiet"),
)
FILES = {"run.txt": ("--group", "build"), "dev.txt": ("--group", "build", "--group", "dev")}

for name, groups in FILES.items():
    subprocess.run(
        [*COMPILE, *groups, "--output-file", f"requirements/{name}", *sys.argv[1:]], cwd=ROOT, check=True
    )
