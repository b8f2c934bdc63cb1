"""Package managers and build tools: what is the project's, what is the whole machine's, what goes public."""

from __future__ import annotations

from collections.abc import Iterator

from remuda.guard.commands.contract import Call, Handler, Table
from remuda.guard.commands.destroying import empties
from remuda.guard.commands.operands import HERE, names, texts, written
from remuda.guard.commands.options import parse
from remuda.guard.commands.packagetables import (
    BEFORE,
    GLOBAL,
    PROJECT_TOOLS,
    PUBLISHING,
    SYSTEM_QUERIES,
    VERBS,
)
from remuda.guard.commands.rows import role
from remuda.guard.commands.verbs import Found, Tool, dry, find, of_kind
from remuda.guard.model import UNKNOWN, AnyEffect, Evaluate, Execute, Network, System, Word, Write, literal

RUN_OPTIONS = """
    + -p:! -c:! --package:! --call:! --with: --from: --python: --directory: --env-file:r --extra: --group:
    -* --*
"""


def project(call: Call) -> Iterator[AnyEffect]:
    """A program that runs or is configured by the project's own code."""
    if (
        any(text in {"--version", "-V", "--help"} for text in texts(call.arguments)[:1])
        and len(call.arguments) == 1
    ):
        return
    if not PUBLISHING.get(call.name, frozenset()).isdisjoint(texts(call.arguments)):
        yield System(kind="publish", detail=call.name)
    for command in parse("-x:x --exec:x -* --*", call.arguments).values("x", "exec"):
        if call.name == "nodemon":
            yield from role(call, "x", command)
    if empties(call.name, texts(call.arguments)):
        yield System(kind="database", detail=call.name, destroys=True)
    if call.name in {"make", "gmake"}:
        yield from _makefile(call)
    yield Execute(program=literal(call.name), argv=(literal(call.name), *call.arguments), kind="project")


def _makefile(call: Call) -> Iterator[AnyEffect]:
    """``make``: rules that come through a pipe, or by way of an option, are nobody's."""
    parsed = parse("-f: --file: --makefile: -C: -I: -j? -l? -o: -W: --eval: -* --*", call.arguments)
    files = parsed.values("f", "file", "makefile")
    for word in parsed.operands:
        if (word.text or "").startswith(("SHELL=", ".SHELLFLAGS=", "MAKE=")):
            yield from call.shell((word.text or "").partition("=")[2])
    if parsed.has("eval") or any(file.text in {"-", "/dev/stdin", "/dev/fd/0"} for file in files):
        yield Evaluate(language="make", origin=call.input - {"input"})


def manager(call: Call) -> Iterator[AnyEffect]:
    """A package manager of a language."""
    name = ALIASES.get(call.name, call.name)
    found = find(VERBS[name], BEFORE.get(name, "-* --*"), call.arguments)
    if found.words and found.words[0].text in {"--help", "-h"} and found.verb:
        return
    if not found.verb:
        yield from _bare(call, name, found)
    elif found.kind == "install":
        yield from _install(call, name, found)
    elif found.kind == "run":
        yield from _run(call, found)
    elif found.kind == "settings":
        if set(texts(found.words)) & {"-w", "-u"}:
            yield System(kind="package", detail=f"{call.name} {found.verb}")
    elif found.kind == "publish" and dry(found.words):
        yield from project(call)
    elif found.verb in {"config/get", "get"} and _names_a_key(found.words):
        yield System(kind="credential", detail=f"{call.name} config")
    elif not found.kind and name in {"yarn", "pnpm", "bun", "poetry", "rake", "gradle"}:
        yield from project(call)
    else:
        yield from of_kind(call, Tool(verbs="", changes="package", host=name), found)


ALIASES = {
    "pip3": "pip", "pipenv": "poetry", "pdm": "poetry", "hatch": "poetry", "rye": "poetry", "yarnpkg": "yarn",
    "mamba": "conda", "micromamba": "conda", "bundler": "bundle",
}  # fmt: skip


def _names_a_key(words: list[Word]) -> bool:
    return any(
        part in text.lower() for text in texts(words) for part in ("auth", "token", "password", "secret")
    )


def _bare(call: Call, name: str, found: Found) -> Iterator[AnyEffect]:
    """Without a verb: some then install, others show how they are used."""
    if name in {"yarn", "bundle"} and not any(
        text in {"--version", "-v", "--help", "-h"} for text in texts(call.arguments)
    ):
        yield from _install(call, name, found)


def _install(call: Call, name: str, found: Found) -> Iterator[AnyEffect]:
    """Brings packages: into the project, or for all projects."""
    words = texts(call.arguments)
    detail = f"{call.name} {found.verb}"
    yield Network(direction="get", host=literal(f"the registry of {name}"))
    if GLOBAL & set(words) or any(word.startswith("--location=global") for word in words):
        yield System(kind="package", detail=detail)
        return
    parsed = parse(
        "-C: --prefix: --cwd: --dir: --target: -t: --root: --manifest-path: -r: -g -* --*", call.arguments
    )
    folder = parsed.value("C", "prefix", "cwd", "dir", "target", "root")
    if name in {"pip", "conda", "gem"} and folder is None:
        yield Write(path=UNKNOWN, how="create")
    else:
        yield from written(folder or HERE, "edit")
    yield Execute(program=literal(call.name), argv=(literal(call.name), *call.arguments), kind="project")


def _run(call: Call, found: Found) -> Iterator[AnyEffect]:
    """Runs a program that a package brings (``npm exec``, ``npx``, ``uv run``)."""
    parsed = parse(RUN_OPTIONS, found.words)
    words = parsed.operands
    if parsed.has("p", "c", "package", "call") or not words:
        yield Execute(program=literal(call.name), argv=call.arguments)
        return
    program = (words[0].text or "").rpartition("@")[0] or words[0].text or ""
    if empties(program, texts(words[1:])):
        yield System(kind="database", detail=program, destroys=True)
    if program in PROJECT_TOOLS:
        yield Execute(program=words[0], argv=tuple(words), kind="project")
    elif call.name in {"npx", "uvx", "pipx", "bunx", "pnpx"} or (
        call.name[:6] != "bundle"
        and found.verb
        in {
            "exec",
            "dlx",
            "x",
            "tool/run",
        }
    ):
        yield Execute(program=words[0], argv=tuple(words))
    else:
        yield from call.again(tuple(words))


def runner(call: Call) -> Iterator[AnyEffect]:
    """``npx``, ``uvx`` and others that are nothing but a runner."""
    if texts(call.arguments)[:1] not in ([], ["--version"], ["--help"]):
        yield from _run(call, Found("exec", "run", list(call.arguments), parse("", [])))


def system(call: Call) -> Iterator[AnyEffect]:
    """A package manager of the machine: shows packages, or changes them."""
    words = [word for word in texts(call.arguments) if word]
    queries = names(SYSTEM_QUERIES[call.name])
    first = next((word for word in words if word[0] != "-"), "")
    flags = {word for word in words if word[0] == "-"}
    simulated = flags & {
        "--dry-run",
        "-s",
        "--simulate",
        "--just-print",
        "--assume-no",
    } and call.name.startswith("apt")
    if first in queries or any(flag[:2] in queries or flag in queries for flag in flags) or simulated:
        return
    if words and (first or call.name in {"dpkg", "rpm", "pacman"}):
        lost = first in REMOVING or bool(flags & {"-R", "-Rns", "-r", "-P", "-e", "--purge", "--erase"})
        yield System(kind="package", detail=f"{call.name} {first}".strip(), destroys=lost)


REMOVING = names("remove purge autoremove uninstall erase rm del zap unmerge autopurge")


def ldconfig(call: Call) -> Iterator[AnyEffect]:
    """``ldconfig``: renews the cache of libraries, unless it only shows it."""
    if texts(call.arguments)[:1] not in (["-p"], ["--print-cache"]):
        yield System(kind="package", detail="ldconfig")


def compiler(call: Call) -> Iterator[AnyEffect]:
    """A compiler: writes what ``-o`` names, or something into the folder."""
    words = texts(call.arguments)
    if (
        set(words) & {"--version", "-v", "-fsyntax-only", "-E", "-M", "-MM", "--help", "-dumpversion"}
        and "-o" not in words
    ):
        return
    target: Word = HERE
    for at, word in enumerate(words):
        if word == "-o" and at + 1 < len(words):
            target = call.arguments[at + 1]
        elif word.startswith("-o") and len(word) > 2:
            target = literal(word[2:])
    if call.arguments or call.name == "as":
        yield from written(target, "truncate" if target is not HERE else "create")
    if any(word.startswith(("-fplugin", "-Xclang", "-wrapper", "-B", "@", "-specs")) for word in words):
        yield Execute(program=literal(call.name), argv=call.arguments, kind="project")


COMPILERS = names(
    "gcc g++ cc c++ clang clang++ tcc rustc gfortran javac ghc ld as nasm yasm bison yacc flex lex"
)
_HANDLERS: dict[str, Handler] = {
    **dict.fromkeys((*VERBS, *ALIASES), manager),
    **dict.fromkeys(("npx", "uvx", "bunx", "pnpx"), runner),
    **dict.fromkeys(SYSTEM_QUERIES, system),
    "ldconfig": ldconfig,
    **dict.fromkeys(COMPILERS, compiler),
}
TABLE: Table = {**dict.fromkeys(PROJECT_TOOLS, project), **_HANDLERS}
