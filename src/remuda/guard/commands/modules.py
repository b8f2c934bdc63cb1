"""``python -m``: modules of the library that do something of their own."""

from __future__ import annotations

from collections.abc import Iterator

from remuda.guard.commands.contract import Call
from remuda.guard.commands.operands import names, written
from remuda.guard.commands.rows import operands
from remuda.guard.model import AnyEffect, Evaluate, Execute, Read, System, Word, literal

PURE_MODULES = names("this platform sysconfig site calendar tokenize ast dis keyword timeit pydoc tabnanny")


def module(call: Call, words: list[Word]) -> Iterator[AnyEffect]:
    """``python -m``: modules of the library by name, others are the project's."""
    name, rest = words[0].text, words[1:]
    if name is None:
        yield Evaluate(language="python", origin=words[0].taint)
    elif name in {
        "pip",
        "uv",
        "pytest",
        "ruff",
        "mypy",
        "black",
        "poetry",
        "build",
        "twine",
        "pipx",
        "coverage",
        "tox",
    }:
        yield from call.again((literal(name), *rest))
    elif name == "json.tool":
        files = [word for word in rest if (word.text or "x")[0] != "-" or word.text == "-"]
        yield from operands(call, "r w", files)
    elif name in {"venv", "virtualenv"}:
        yield from operands(call, "c*", [word for word in rest if (word.text or "x")[0] != "-"])
    elif name == "http.server":
        yield System(kind="network", detail="python -m http.server")
    elif name in {"ensurepip"}:
        yield System(kind="package", detail="python -m ensurepip")
    elif name in {"zipfile", "tarfile"}:
        yield from _archive(rest)
    elif name not in PURE_MODULES:
        yield Execute(program=literal(name), argv=tuple(words), kind="project")


def _archive(rest: list[Word]) -> Iterator[AnyEffect]:
    action = rest[0].text if rest else "-l"
    if action in {"-l", "--list", "-t", "--test"}:
        yield from (Read(path=word) for word in rest[1:])
    elif action in {"-e", "--extract"}:
        yield from (Read(path=word) for word in rest[1:2])
        yield from written(rest[2] if len(rest) > 2 else literal("."), "create")
    else:
        yield from (item for word in rest[1:2] for item in written(word, "truncate"))
