"""Functions of Python's standard library by what they do."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from remuda.guard.commands.contract import Call
from remuda.guard.commands.operands import join, names, written
from remuda.guard.commands.urls import host
from remuda.guard.model import (
    UNKNOWN,
    AnyEffect,
    Environment,
    Evaluate,
    How,
    Network,
    Read,
    Taint,
    Unknown,
    Word,
    Write,
    literal,
)

if TYPE_CHECKING:
    from remuda.guard.commands.pycode import Code

Effects = Callable[["Code", ast.Call, Call], Iterator[AnyEffect]]
FILE: frozenset[Taint] = frozenset({"file"})

PURE = names(
    """
    logging.debug logging.info logging.warning logging.error logging.critical logging.exception
    logging.getLogger types.SimpleNamespace typing.NamedTuple typing.cast typing.TypeVar site.getsitepackages
    site.getusersitepackages json.* re.* math.* itertools.* functools.* collections.* datetime.* time.*
    string.* textwrap.* random.* statistics.* decimal.* fractions.* hashlib.* base64.* binascii.* struct.*
    operator.* enum.* dataclasses.* pprint.* copy.* difflib.* unicodedata.* html.* urllib.parse.* csv.*
    io.StringIO io.BytesIO io.TextIOWrapper calendar.* uuid.* platform.* sysconfig.* locale.* ast.* tokenize.*
    keyword.* bisect.* heapq.* zlib.* shlex.* fnmatch.* ipaddress.* glob.* os.path.* os.getcwd os.listdir
    os.walk os.stat os.lstat os.scandir os.cpu_count os.uname os.getpid os.getppid os.getuid os.getgid
    os.geteuid os.access os.readlink os.fspath os.strerror os.getlogin os.get_terminal_size os.cpu_count
    os.urandom os._exit os.times os.getloadavg os.isatty os.environ.* pathlib.* importlib.metadata.*
    importlib.util.find_spec importlib.resources.* tomllib.* xml.etree.* xml.dom.* configparser.* argparse.*
    inspect.* traceback.* warnings.* sys.exit sys.getsizeof sys.stdin.* sys.stdout.* sys.stderr.* sys.path.*
    sys.argv.* sys.getrecursionlimit sys.setrecursionlimit sys.getdefaultencoding sys.version_info.*
    sys.intern shutil.which shutil.disk_usage shutil.get_terminal_size tempfile.gettempdir contextlib.*
    secrets.* hmac.* codecs.encode codecs.decode abc.* array.* numbers.* cmath.* colorsys.* graphlib.*
    pkgutil.iter_modules posixpath.* stat.* errno.* zoneinfo.* gettext.* queue.* gc.* dis.* symtable.*
    http.HTTPStatus
    """
)


def value_of(code: Code, node: ast.expr | None, depth: int = 0) -> str | None:
    """The text that an expression has, where that is plain."""
    if depth > 8 or node is None:
        return None
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.Name):
        return value_of(code, code.values.get(node.id), depth + 1)
    if isinstance(node, ast.BinOp):
        left, right = value_of(code, node.left, depth + 1), value_of(code, node.right, depth + 1)
        if left is None or right is None:
            return None
        return left + right if isinstance(node.op, ast.Add) else join(literal(left), literal(right)).text
    if isinstance(node, ast.Call) and code.dotted(node.func) in {
        "pathlib.Path",
        "os.path.join",
        "str",
        "os.fspath",
    }:
        parts = [value_of(code, argument, depth + 1) for argument in node.args]
        return "/".join(str(part) for part in parts) if parts and None not in parts else None
    return None


def is_path(code: Code, node: ast.expr, depth: int = 0) -> bool:
    """Whether an expression is a path object."""
    if depth > 8:
        return True
    if isinstance(node, ast.Name):
        value = code.values.get(node.id)
        return value is not None and is_path(code, value, depth + 1)
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Div) and is_path(code, node.left, depth + 1)
    if isinstance(node, ast.Attribute):
        return node.attr == "parent"
    return isinstance(node, ast.Call) and code.dotted(node.func).startswith("pathlib.")


def word(code: Code, node: ast.expr | None) -> Word:
    """The word that an expression comes to."""
    text = value_of(code, node)
    return UNKNOWN if text is None else literal(text)


def argument(node: ast.Call, place: int, name: str = "") -> ast.expr | None:
    """An argument by its place or its name."""
    if place < len(node.args):
        return node.args[place]
    return next((keyword.value for keyword in node.keywords if keyword.arg == name), None)


def _receiver(node: ast.Call) -> ast.expr | None:
    return node.func.value if isinstance(node.func, ast.Attribute) else None


def _opens(code: Code, path: Word, mode: ast.expr | None) -> Iterator[AnyEffect]:
    text = value_of(code, mode) if mode is not None else "r"
    how: How = "truncate"
    if text is None or set(text) & set("wax+"):
        if text is not None and "w" not in text:
            how = "append" if "a" in text else "create" if "x" in text else "edit"
        yield from written(path, how)
    else:
        yield Read(path=path)


def _open(code: Code, node: ast.Call, call: Call) -> Iterator[AnyEffect]:
    if call.name == "" or any(keyword.arg in {"opener", None} for keyword in node.keywords):
        yield Evaluate(language="python")
    yield from _opens(code, word(code, argument(node, 0, "file")), argument(node, 1, "mode"))


def _open_method(code: Code, node: ast.Call, _: Call) -> Iterator[AnyEffect]:
    yield from _opens(code, word(code, _receiver(node)), argument(node, 0, "mode"))


def _writes(how: How, *, place: int | None = 0, follows: bool = True, forced: bool = False) -> Effects:
    """A function that changes the path it is given, or (without a place) the one it is called on."""

    def effects(code: Code, node: ast.Call, _: Call) -> Iterator[AnyEffect]:
        target = _receiver(node) if place is None else argument(node, place)
        yield Write(path=word(code, target), how=how, follows=follows, forced=forced)

    return effects


def _reads(code: Code, node: ast.Call, _: Call) -> Iterator[AnyEffect]:
    yield Read(path=word(code, _receiver(node)))


def _renames(*, method: bool) -> Effects:
    def effects(code: Code, node: ast.Call, _: Call) -> Iterator[AnyEffect]:
        source = _receiver(node) if method else argument(node, 0, "src")
        yield Write(path=word(code, source), how="rename", follows=False)
        yield Write(path=word(code, argument(node, 0 if method else 1, "dst")), how="create")

    return effects


def _copies(code: Code, node: ast.Call, _: Call) -> Iterator[AnyEffect]:
    yield Read(path=word(code, argument(node, 0, "src")))
    yield Write(path=word(code, argument(node, 1, "dst")), how="truncate")


def _links(code: Code, node: ast.Call, _: Call) -> Iterator[AnyEffect]:
    target = word(code, argument(node, 0, "src"))
    yield Write(path=word(code, argument(node, 1, "dst")), how="link", follows=False, target=target)


def _links_from(code: Code, node: ast.Call, _: Call) -> Iterator[AnyEffect]:
    target = word(code, argument(node, 0, "target"))
    yield Write(path=word(code, _receiver(node)), how="link", follows=False, target=target)


def _system(code: Code, node: ast.Call, call: Call) -> Iterator[AnyEffect]:
    text = value_of(code, argument(node, 0, "command"))
    if text is None:
        yield Evaluate(language="sh")
    else:
        yield from call.shell(text)


def _runs(code: Code, node: ast.Call, call: Call) -> Iterator[AnyEffect]:
    """``subprocess``: a list of words, or a text."""
    given = argument(node, 0, "args")
    given = code.values.get(given.id) if isinstance(given, ast.Name) else given
    if isinstance(given, ast.List | ast.Tuple):
        argv = tuple(word(code, part) for part in given.elts)
        yield from call.again(argv) if argv else ()
    else:
        yield from _system(code, node, call)


def _executes(code: Code, node: ast.Call, call: Call) -> Iterator[AnyEffect]:
    """``os.exec*`` and ``os.spawn*``."""
    parts = [
        part for part in node.args if not (isinstance(part, ast.Attribute) and part.attr.startswith("P_"))
    ]
    last = parts[-1] if parts else None
    listed = last.elts if isinstance(last, ast.List | ast.Tuple) else parts[1:]
    yield from call.again(tuple(word(code, part) for part in listed) or (UNKNOWN,))


def _gets(code: Code, node: ast.Call, _: Call) -> Iterator[AnyEffect]:
    sends = argument(node, 1, "data") is not None
    yield Network(direction="send" if sends else "get", host=host(word(code, argument(node, 0, "url"))))


def _downloads(code: Code, node: ast.Call, call: Call) -> Iterator[AnyEffect]:
    yield from _gets(code, ast.Call(node.func, node.args[:1], []), call)
    yield Write(path=word(code, argument(node, 1, "filename")), how="truncate")


def _sends(code: Code, node: ast.Call, _: Call) -> Iterator[AnyEffect]:
    yield Network(direction="send", host=host(word(code, argument(node, 0, "url"))), carries=FILE)


def _shows(code: Code, node: ast.Call, _: Call) -> Iterator[AnyEffect]:
    yield Environment(action="show", name=value_of(code, argument(node, 0)) or "*")


def _opaque(_: Code, __: ast.Call, ___: Call) -> Iterator[AnyEffect]:
    yield Evaluate(language="python")


def _signals(_: Code, __: ast.Call, ___: Call) -> Iterator[AnyEffect]:
    yield Unknown(why="the code sends signals to processes")


_REMOVES = _writes("delete", follows=False, forced=True)
_MAKES = _writes("create")
_SETS = _writes("mode")
CALLS: dict[str, Effects] = {
    "open": _open,
    "io.open": _open,
    "codecs.open": _open,
    "os.open": _writes("edit"),
    ".open": _open_method,
    ".read_text": _reads,
    ".read_bytes": _reads,
    ".write_text": _writes("truncate", place=None),
    ".write_bytes": _writes("truncate", place=None),
    ".unlink": _writes("delete", place=None, follows=False, forced=True),
    ".rmdir": _writes("delete", place=None, follows=False),
    ".mkdir": _writes("create", place=None),
    ".touch": _writes("create", place=None),
    ".chmod": _writes("mode", place=None),
    ".rename": _renames(method=True),
    ".replace": _renames(method=True),
    ".symlink_to": _links_from,
    ".hardlink_to": _links_from,
    **dict.fromkeys(
        [f".{name}" for name in ("extractall", "system", "popen", "fork", "Popen", "rmtree")], _opaque
    ),
    **dict.fromkeys(("operator.methodcaller", "operator.attrgetter"), _opaque),
    **dict.fromkeys(("os.remove", "os.unlink", "os.rmdir", "os.removedirs"), _REMOVES),
    "shutil.rmtree": _writes("delete-tree", follows=False, forced=True),
    **dict.fromkeys(("os.mkdir", "os.makedirs", "os.mkfifo", "os.mknod"), _MAKES),
    **dict.fromkeys(("os.chmod", "os.chown", "os.utime", "os.lchown", "shutil.chown"), _SETS),
    "os.truncate": _writes("truncate"),
    **dict.fromkeys(("os.rename", "os.replace", "os.renames", "shutil.move"), _renames(method=False)),
    **dict.fromkeys(("os.symlink", "os.link"), _links),
    **dict.fromkeys(
        (
            "shutil.copy",
            "shutil.copy2",
            "shutil.copyfile",
            "shutil.copytree",
            "shutil.copymode",
            "shutil.copystat",
        ),
        _copies,
    ),
    **dict.fromkeys(("os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput"), _system),
    **dict.fromkeys(
        (
            "subprocess.run",
            "subprocess.call",
            "subprocess.check_call",
            "subprocess.check_output",
            "subprocess.Popen",
        ),
        _runs,
    ),
    **dict.fromkeys(
        [
            f"os.{kind}{form}"
            for kind in ("exec", "spawn")
            for form in ("l", "le", "lp", "lpe", "v", "ve", "vp", "vpe")
        ],
        _executes,
    ),
    **dict.fromkeys(("urllib.request.urlopen", "requests.get", "requests.head", "requests.options"), _gets),
    **dict.fromkeys(
        ("requests.post", "requests.put", "requests.patch", "requests.delete", "requests.request"), _sends
    ),
    "urllib.request.urlretrieve": _downloads,
    "os.getenv": _shows,
    "os.environ.get": _shows,
    **dict.fromkeys(("os.kill", "os.killpg"), _signals),
    "importlib.import_module": _opaque,
}


def called(dotted: str) -> Effects | None:
    """What a function does that is not pure."""
    return CALLS.get(dotted)
