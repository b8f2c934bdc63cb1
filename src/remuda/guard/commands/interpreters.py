"""Interpreters: code in an argument, on standard input, in a module or in a file."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import msgspec

from remuda.guard.commands.contract import Call, Table
from remuda.guard.commands.destroying import empties
from remuda.guard.commands.modules import module
from remuda.guard.commands.operands import names, texts
from remuda.guard.commands.rows import operands, strange
from remuda.guard.model import (
    UNKNOWN,
    AnyEffect,
    Evaluate,
    Execute,
    System,
    Taint,
    Unknown,
    Word,
    literal,
)

Scan = Callable[[str, Call], Iterator[AnyEffect]]


class Interpreter(msgspec.Struct, frozen=True):
    """How an interpreter's options tell what it runs: letters and names whose value is code, those that take
    another value, those that only show something. ``modules`` are letters whose value is loaded first, or
    is a
    folder that modules are looked for in; the ``trusted`` ones do nothing by that."""

    language: str
    code: str = "e"
    module: str = ""
    valued: str = ""
    long_code: frozenset[str] = frozenset()
    long_valued: frozenset[str] = frozenset()
    shows: frozenset[str] = frozenset({"--version", "--help"})
    checks: str = ""
    long_checks: frozenset[str] = frozenset()
    long_runs: frozenset[str] = frozenset()
    loads: str = ""
    attached: str = ""
    modules: str = ""
    trusted: frozenset[str] = frozenset()


PYTHON = Interpreter(
    language="python", code="c", module="m", valued="WXQ", shows=names("--version --help -V -VV -h")
)
NODE = Interpreter(
    language="javascript",
    code="ep",
    valued="rC",
    loads="r",
    long_code=names("--eval --print"),
    long_valued=names(
        "--require --import --loader --experimental-loader --conditions --input-type --env-file --title"
    ),
    shows=names("--version --help -v -h --v8-options"),
    checks="c",
    long_checks=names("--check"),
    long_runs=names("--test --watch --run"),
)
RUBY = Interpreter(
    language="ruby",
    valued="rICxE",
    shows=names("--version --help -v -h"),
    checks="c",
    attached="KTWx0",
    modules="rI",
    trusted=names(
        "json yaml set date time csv digest fileutils pathname tmpdir pp bigdecimal erb uri optparse"
    ),
)
PERL = Interpreter(
    language="perl",
    code="eE",
    valued="",
    shows=names("--version --help -v -V -h"),
    checks="c",
    attached="MmI0lFidCx",
    modules="MmId",
    trusted=names(
        """
        strict warnings utf8 feature List::Util Data::Dumper JSON::PP POSIX Time::Local File::Basename
        File::Spec
        File::Path File::Find Scalar::Util Text::Wrap Digest::MD5 Digest::SHA MIME::Base64 Encode bigint
        bignum
        Time::HiRes Storable constant integer locale open
        """
    ),
)
PHP = Interpreter(
    language="php",
    code="rBRE",
    valued="cdtzSf",
    shows=names("--version --help -v -i -m -h --ini --info"),
    checks="l",
)
LUA = Interpreter(language="lua", valued="l", shows=names("-v"))
LOADING = names("--require --import --loader --experimental-loader")
"""Options whose value is a file that runs first."""
DEBUGGERS = names("gdb lldb")
OTHER = Interpreter(language="other", code="eEc", valued="", long_code=names("--eval --expression --print"))


class Run(msgspec.Struct):
    """What a call runs: ``code``, ``module``, ``file``, ``tests``, ``input`` or nothing; the words that are
    left, the code that options give, what they load first, and the letters of all options."""

    words: list[Word]
    kind: str = ""
    codes: list[Word] = []
    loads: list[Word] = []
    letters: set[str] = set()

    def taken(self, word: Word, attached: str) -> Word | None:
        """The value of an option: what is attached to it, or the next word."""
        if attached:
            return literal(attached) if word.values else UNKNOWN
        return self.words.pop(0) if self.words else None


def leading(interpreter: Interpreter, arguments: tuple[Word, ...]) -> Run:
    """Reads an interpreter's own options, up to what it runs."""
    run = Run(list(arguments))
    while run.words and not run.kind:
        word = run.words[0]
        text = word.text if word.values else word.prefix
        if text is None or text == "-" or not text.startswith("-"):
            break
        run.words.pop(0)
        if text == "--" or (text in interpreter.shows and not run.codes):
            run.kind = "" if text == "--" else "nothing"
            break
        _option(interpreter, run, word, text)
        if run.codes and interpreter.language == "python":
            break
    if not run.kind:
        run.kind = "code" if run.codes else "file" if run.words and run.words[0].text != "-" else "input"
    return run


def _option(interpreter: Interpreter, run: Run, word: Word, text: str) -> None:
    if text in interpreter.long_runs:
        run.kind = "tests"
    elif text in interpreter.long_checks:
        run.letters.update(interpreter.checks)
    elif not text.startswith("--"):
        _letters(interpreter, run, word, text)
    else:
        name, _, attached = text.partition("=")
        if name in interpreter.long_code:
            run.codes.append(run.taken(word, attached) or UNKNOWN)
        elif name in interpreter.long_valued and (value := run.taken(word, attached)) is not None:
            run.loads.extend([value] if name in LOADING else [])


def _letters(interpreter: Interpreter, run: Run, word: Word, text: str) -> None:
    """Reads joined letters, of which the last may take a value."""
    for place, letter in enumerate(text[1:], 2):
        attached = text[place:]
        run.letters.add(letter)
        if letter in interpreter.modules and _loads(interpreter, run, word, attached):
            return
        if letter in interpreter.attached and attached and not _bundled(letter, attached):
            return
        if letter in interpreter.code + interpreter.module + interpreter.valued:
            value = run.taken(word, attached)
            if letter in interpreter.code:
                run.codes.extend([value] if value is not None else [])
            elif letter in interpreter.module:
                run.words.insert(0, value or UNKNOWN)
                run.kind = "module"
            elif letter in interpreter.loads and value is not None:
                run.loads.append(value)
            return


def _loads(interpreter: Interpreter, run: Run, word: Word, attached: str) -> bool:
    """A module that is loaded first, or a folder that modules are looked for in."""
    if interpreter.language == "perl" and not attached:
        return False
    value = run.taken(word, attached)
    name = (value.text or "" if value is not None else "").lstrip("-:").partition("=")[0].split(" ")[0]
    if value is not None and name not in interpreter.trusted:
        run.loads.append(value)
    return True


def _bundled(letter: str, attached: str) -> bool:
    """Whether other letters follow one that may have a number attached."""
    return letter in "l0C" and not attached[0].isdigit()


def _scanner(interpreter: Interpreter) -> Scan:
    if interpreter.language == "python":
        from remuda.guard.commands.pycode import scan

        return scan
    from remuda.guard.commands import scripts

    languages = {
        one.name: one for one in (scripts.JAVASCRIPT, scripts.RUBY, scripts.PERL, scripts.PHP, scripts.LUA)
    }
    language = languages.get(interpreter.language)
    if language is None:
        return _unreadable
    return lambda source, call: scripts.scan(language, source, call)


def _unreadable(_: str, call: Call) -> Iterator[AnyEffect]:
    yield Evaluate(language=call.name)


def code_effects(interpreter: Interpreter, words: list[Word], call: Call) -> Iterator[AnyEffect]:
    """The effects of code that is given in words."""
    scan = _scanner(interpreter)
    for word in words:
        if not word.values or word.pattern:
            yield Evaluate(language=interpreter.language, origin=word.taint)
            continue
        for text in word.values:
            found = list(scan(text, call))
            yield from found
            if any(isinstance(effect, Evaluate) for effect in found):
                yield from _meant_for_a_shell(text, call)
                if _EVALUATES.search(text) and (origin := _origin(text)):
                    yield Evaluate(language=interpreter.language, origin=origin)


_EVALUATES = re.compile(r"\b(exec|eval|system|popen|Function|compile|execSync)\b")
_FETCHES = re.compile(
    r"\b(urlopen|urlretrieve|requests|urllib|httpx|fetch|https?\.get|open-uri|LWP|Net::HTTP)\b"
)
_DECODES = re.compile(r"\b(b64decode|base64|fromhex|atob|decode64|unpack|decompress|rot13|marshal)\b")


def _origin(text: str) -> frozenset[Taint]:
    """Where code gets the text from that it evaluates, when it says so."""
    found: set[Taint] = set()
    if _FETCHES.search(text):
        found.add("network")
    if _DECODES.search(text):
        found.add("decoder")
    return frozenset(found)


def _meant_for_a_shell(text: str, call: Call) -> Iterator[AnyEffect]:
    """Code that begins like a command line is judged as one, too."""
    from remuda.guard.commands import lookup

    first, _, rest = text.strip().partition(" ")
    if rest[:1] == "-" and lookup(first) is not None:
        yield from call.shell(text)


def interpret(interpreter: Interpreter, call: Call) -> Iterator[AnyEffect]:
    """The effects of calling an interpreter."""
    run = leading(interpreter, call.arguments)
    if call.name in DEBUGGERS and any(word.text in {"--args", "--"} for word in call.arguments):
        place = next(at for at, word in enumerate(call.arguments) if word.text in {"--args", "--"})
        yield from call.again(call.arguments[place + 1 :])
    for load in run.loads:
        yield Execute(program=load, argv=(load,), kind="project")
    if run.kind == "code":
        yield from code_effects(interpreter, run.codes, call)
        yield from _files(interpreter, run, call)
    elif run.kind == "module":
        yield from module(call, run.words)
    elif run.kind == "tests":
        yield Execute(program=literal(call.name), argv=call.arguments, kind="project")
    elif run.kind == "file":
        if run.letters & set(interpreter.checks):
            yield from operands(call, "r*", run.words[:1])
        else:
            if empties(_framework(run.words[0]), texts(run.words[1:])):
                yield System(kind="database", detail=call.name, destroys=True)
            yield Execute(program=run.words[0], argv=tuple(run.words), kind="project")
    elif run.kind == "input":
        yield from _input(interpreter, call)


def _framework(program: Word) -> str:
    return (program.text or "").rpartition("/")[2]


def _files(interpreter: Interpreter, run: Run, call: Call) -> Iterator[AnyEffect]:
    """Perl and Ruby run code over files, and may change them in place."""
    if interpreter.language not in {"perl", "ruby"} or not run.letters & set("npi"):
        return
    for word in run.words:
        if any(value.rstrip().endswith("|") or value.lstrip()[:1] in {"|", ">"} for value in word.values):
            yield Unknown(why=f"{call.name} opens a command as if it were a file")
    yield from operands(call, "e*" if "i" in run.letters else "r*", run.words)


def _input(interpreter: Interpreter, call: Call) -> Iterator[AnyEffect]:
    if call.input_text is not None and not call.input - {"input"}:
        yield from code_effects(interpreter, [literal(call.input_text)], call)
    elif call.input - {"input"}:
        yield Evaluate(language=interpreter.language, origin=call.input)


def _handler(interpreter: Interpreter) -> Callable[[Call], Iterator[AnyEffect]]:
    return lambda call: interpret(interpreter, call)


def deno(call: Call) -> Iterator[AnyEffect]:
    """``deno`` and ``bun`` run files, and code by ``eval``."""
    verb = call.arguments[0].text if call.arguments else ""
    if verb == "eval":
        yield from code_effects(
            NODE, [word for word in call.arguments[1:] if (word.text or "x")[0] != "-"][:1], call
        )
    elif verb in {"info", "doc", "lint", "--version", "help", "types"}:
        return
    elif verb in {"install", "upgrade", "publish", "deploy"}:
        yield System(kind="package" if verb != "publish" else "publish", detail=f"{call.name} {verb}")
    elif verb is None:
        yield strange(call.name, "a variable")
    else:
        yield Execute(program=literal(call.name), argv=call.arguments, kind="project")


_PYTHONS = [f"python{version}" for version in ("", "2", "3", *(f"3.{minor}" for minor in range(6, 16)))]
TABLE: Table = {
    **dict.fromkeys((*_PYTHONS, "pypy", "pypy3", "ipython"), _handler(PYTHON)),
    **dict.fromkeys(("node", "nodejs"), _handler(NODE)),
    **dict.fromkeys(("ruby", "jruby"), _handler(RUBY)),
    "perl": _handler(PERL),
    "php": _handler(PHP),
    **dict.fromkeys(("lua", "luajit", "lua5.1", "lua5.3", "lua5.4"), _handler(LUA)),
    **dict.fromkeys(
        names("Rscript R julia groovy scala kotlin elixir erl ghci tclsh wish gdb lldb osascript"),
        _handler(OTHER),
    ),
    **dict.fromkeys(
        names("guile racket sbcl clisp swipl octave maxima gnuplot expect pwsh powershell"), _handler(OTHER)
    ),
    "deno": deno,
}
