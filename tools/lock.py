"""Resolves pinned requirements again, with hashes.

Usage: python tools/lock.py            requirements/*.txt: one file to run Remuda, one to develop it
       python tools/lock.py --agents   agents/*.txt: the agent CLIs that come from PyPI
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
UV = (sys.executable, "-m", "uv", "pip", "compile", "--quiet")
OPTIONS = ("--universal", "--python-version=3.11", "--generate-hashes", "--no-header", "--no-annotate")
GROUPS = {"run.txt": ("--group=build",), "dev.txt": ("--group=build", "--group=dev")}


def resolve(source: str, output: str, *groups: str) -> None:
    subprocess.run([*UV, *OPTIONS, *groups, source, "--output-file", output], cwd=ROOT, check=True)


if sys.argv[1:] == ["--agents"]:
    for wanted in sorted(ROOT.glob("agents/*.in")):
        resolve(f"agents/{wanted.name}", f"agents/{wanted.stem}.txt")
else:
    for name, groups in GROUPS.items():
        resolve("pyproject.toml", f"requirements/{name}", *groups)
