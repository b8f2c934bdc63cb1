"""Python code that is part of a command: reads it, and follows what is plain.

Every call must be one that is known to be pure, or one whose effects are known; anything else is code that
cannot be read.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator

from remuda.guard.commands.contract import Call
from remuda.guard.commands.operands import names, written
from remuda.guard.commands.pycalls import PURE, called, is_path, value_of, word
from remuda.guard.model import AnyEffect, Environment, Evaluate, Execute, Read, literal

LONGEST, MOST_NODES = 20_000, 3_000
BUILTINS = names(
    """
    print len str int float bool list dict set tuple range enumerate zip map filter sorted reversed sum min
    max abs round any all repr ascii chr ord hex oct bin type isinstance issubclass iter next hash id format
    divmod pow slice bytes bytearray complex frozenset object super callable dir vars help input memoryview
    property staticmethod classmethod exit quit hasattr Exception ValueError KeyError TypeError RuntimeError
    SystemExit StopIteration OSError
    """
)
CLOSED = names(
    "eval exec compile __import__ getattr setattr delattr globals locals breakpoint __builtins__ builtins"
)
MODULES = names(
    """
    os sys json re math itertools functools collections datetime time string textwrap random statistics
    decimal fractions hashlib base64 binascii struct operator typing enum dataclasses pprint copy difflib
    unicodedata html urllib csv io calendar uuid platform sysconfig locale ast tokenize keyword bisect heapq
    zlib shlex fnmatch ipaddress glob pathlib importlib tomllib xml configparser argparse inspect traceback
    types warnings subprocess shutil requests http tempfile contextlib site secrets hmac codecs abc array
    numbers cmath colorsys graphlib logging pkgutil posixpath stat errno zoneinfo gettext queue timeit trace
    gc dis symtable
    """
)
"""Modules of the standard library whose functions are looked at one by one."""
STRANGE = names(
    """
    socket ctypes multiprocessing ftplib smtplib telnetlib webbrowser asyncio threading signal pty code pickle
    marshal shelve dbm sqlite3 runpy imp zipimport cffi mmap fcntl resource select selectors ssl socketserver
    poplib imaplib nntplib xmlrpc wsgiref venv ensurepip distutils setuptools pip tarfile zipfile gzip bz2
    lzma fileinput cProfile profile pdb concurrent sched crypt pwd grp spwd nis syslog readline rlcompleter
    tkinter turtle builtins atexit
    """
)
DUNDERS = names(
    "__name__ __version__ __file__ __doc__ __init__ __main__ __all__ __path__ __annotations__ __len__"
)


class Code:
    """A module's tree with the names that it gives to things."""

    def __init__(self, tree: ast.Module) -> None:
        self.nodes = list(ast.walk(tree))
        self.imported: dict[str, str] = {}
        self.foreign: set[str] = set()
        self.defined: set[str] = set()
        self.values: dict[str, ast.expr | None] = {}
        for node in self.nodes:
            self._collect(node)

    def _collect(self, node: ast.AST) -> None:
        if isinstance(node, ast.Import):
            for alias in node.names:
                self.imported[alias.asname or alias.name.partition(".")[0]] = (
                    alias.name if alias.asname else alias.name.partition(".")[0]
                )
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                self.imported[alias.asname or alias.name] = f"{node.module or ''}.{alias.name}"
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            self.defined.add(node.name)
        elif (
            isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)
        ):
            name = node.targets[0].id
            self.values[name] = None if name in self.values else node.value

    def dotted(self, node: ast.AST) -> str:
        """The full name of what an expression names, or nothing."""
        if isinstance(node, ast.Name):
            return self.imported.get(node.id, node.id)
        if isinstance(node, ast.Attribute):
            above = self.dotted(node.value)
            return f"{above}.{node.attr}" if above else ""
        return ""

    def root(self, node: ast.AST) -> str:
        """The module or name that an expression begins with."""
        while isinstance(node, ast.Attribute | ast.Call | ast.Subscript):
            node = node.func if isinstance(node, ast.Call) else node.value
        return self.imported.get(node.id, node.id).partition(".")[0] if isinstance(node, ast.Name) else ""


def scan(source: str, call: Call) -> Iterator[AnyEffect]:
    """The effects of a text of Python."""
    opaque = Evaluate(language="python")
    if len(source) > LONGEST:
        yield opaque
        return
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
        code = Code(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        yield opaque
        return
    if len(code.nodes) > MOST_NODES:
        yield opaque
        return
    yield from _imports(code)
    callees = {id(node.func) for node in code.nodes if isinstance(node, ast.Call)}
    keyed = {id(node.value) for node in code.nodes if isinstance(node, ast.Subscript | ast.Attribute)}
    for node in code.nodes:
        if isinstance(node, ast.Call):
            yield from _call(code, node, call)
        elif isinstance(node, ast.Subscript) and code.dotted(node.value) == "os.environ":
            key = value_of(code, node.slice)
            yield Environment(action="show" if isinstance(node.ctx, ast.Load) else "set", name=key or "*")
        elif isinstance(node, ast.Name | ast.Attribute) and not (
            id(node) in keyed and code.dotted(node) == "os.environ"
        ):
            yield from _mention(code, node, id(node) in callees)


def _imports(code: Code) -> Iterator[AnyEffect]:
    for module in sorted({name.partition(".")[0] for name in code.imported.values()}):
        if module in STRANGE or module == "":
            yield Evaluate(language="python")
        elif module not in MODULES:
            code.foreign.add(module)
            yield Execute(program=literal(module), argv=(literal("python"), literal(module)), kind="project")


INNER = names("os _os sys _sys subprocess shutil io builtins posix importlib socket pty ctypes")
"""Modules that others have inside, and that nobody reaches that way for a good reason."""


def _mention(code: Code, node: ast.Name | ast.Attribute, is_called: bool) -> Iterator[AnyEffect]:
    """A name that is used for something else than a call."""
    dotted = code.dotted(node)
    last = dotted.rpartition(".")[2] or (node.attr if isinstance(node, ast.Attribute) else node.id)
    hidden = (last.startswith("__") and last not in DUNDERS) or dotted == "sys.modules"
    hidden = hidden or (isinstance(node, ast.Attribute) and node.attr in INNER)
    if hidden or (isinstance(node, ast.Name) and node.id in CLOSED):
        yield Evaluate(language="python")
    elif dotted in {"os.environ", "os.environb"}:
        yield Environment(action="show", name="*")
    elif not is_called and isinstance(node.ctx, ast.Load) and called(dotted) is not None:
        yield Evaluate(language="python")


def _call(code: Code, node: ast.Call, call: Call) -> Iterator[AnyEffect]:
    function = node.func
    dotted = code.dotted(function)
    handler = (
        called(dotted) if isinstance(function, ast.Name) or dotted.partition(".")[0] in MODULES else None
    )
    method = called(f".{function.attr}") if isinstance(function, ast.Attribute) else None
    if handler is not None:
        yield from handler(code, node, call)
    elif code.root(function) in code.foreign:
        return
    elif isinstance(function, ast.Attribute) and function.attr in {"write", "read"} and _is_document(code):
        yield from _document(code, node, function.attr)
    elif method is not None and not (dotted in PURE or _is_text_method(code, function)):
        yield from method(code, node, call)
    elif not _is_pure(code, function, dotted):
        yield Evaluate(language="python")


def _is_document(code: Code) -> bool:
    """Whether there may be objects about that write to, or read from, a path which is given to a method."""
    return any(name.partition(".")[0] in {"xml", "configparser"} for name in code.imported.values())


def _document(code: Code, node: ast.Call, method: str) -> Iterator[AnyEffect]:
    given = [argument for argument in node.args[:1] if not isinstance(argument, ast.Call)]
    for argument in given:
        path = word(code, argument)
        yield from written(path, "truncate") if method == "write" else (Read(path=path),)


def _is_text_method(code: Code, function: ast.expr) -> bool:
    """``replace`` is a method of texts too, and of paths only when it is called on one."""
    return (
        isinstance(function, ast.Attribute)
        and function.attr == "replace"
        and not is_path(code, function.value)
    )


def _is_pure(code: Code, function: ast.expr, dotted: str) -> bool:
    if isinstance(function, ast.Name):
        return function.id in BUILTINS or function.id in code.defined or _known(dotted)
    if isinstance(function, ast.Attribute):
        root = dotted.partition(".")[0]
        return _known(dotted) if root in code.imported.values() or root in MODULES else True
    return isinstance(function, ast.Lambda)


def _known(dotted: str) -> bool:
    """Whether a function of the standard library is pure: by its own name, or by its module's."""
    if dotted in PURE:
        return True
    module = dotted
    while "." in module:
        module = module.rpartition(".")[0]
        if f"{module}.*" in PURE:
            return True
    return False
