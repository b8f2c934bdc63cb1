"""JavaScript, Ruby, Perl, PHP and Lua that are part of a command.

Nothing is parsed here. Code is pure when every name in it is one that does no harm; what deletes, writes or
runs something is followed when its argument is a plain text; anything else is code that cannot be read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from remuda.guard.commands.contract import Call
from remuda.guard.commands.operands import LONGEST, names, written
from remuda.guard.model import UNKNOWN, AnyEffect, Environment, Evaluate, Execute, How, Read, Word, literal


class Language(msgspec.Struct, frozen=True):
    """What is known of a language: harmless names, functions that run a text, change or read a path, and the
    patterns of its comments and of what always makes it unreadable."""

    name: str
    harmless: frozenset[str]
    runs: frozenset[str]
    writes: dict[str, How]
    reads: frozenset[str] = frozenset()
    comment: str = r"#[^\n]*"
    closed: str = r"(?!)"
    ticks: bool = False
    variables: str = r"[$@%&]\w+"
    keys: str = r"(?!)"
    fields: str = r"(?!)"
    environment: str = r"(?!)"


JAVASCRIPT = Language(
    name="javascript",
    harmless=names(
        """
        console log error warn info table dir JSON parse stringify Math Object keys values entries assign
        fromEntries Array from isArray of String Number Boolean Date now BigInt Symbol RegExp Map Set Promise
        all resolve Error TypeError parseInt parseFloat isNaN isFinite Infinity NaN undefined null true false
        typeof instanceof new const let var function return if else for while do break continue switch case
        default try catch finally throw of in async await class extends this void delete yield process version
        versions platform arch argv cwd uptime memoryUsage hrtime exit stdout stderr write require length push
        pop shift unshift map filter reduce forEach some every find findIndex includes indexOf join split
        slice splice concat sort reverse replace replaceAll match matchAll test trim trimStart trimEnd
        toUpperCase toLowerCase padStart padEnd repeat startsWith endsWith charAt charCodeAt codePointAt
        fromCharCode toString toFixed toISOString toJSON getTime getFullYear getMonth getDate hasOwnProperty
        has get set add size name message stack then path os util url basename dirname extname resolve
        relative sep cpus totalmem freemem hostname type release inspect format URL searchParams PI max min
        floor ceil round abs random pow sqrt sum flat flatMap at v8 node dependencies devDependencies scripts
        items
        """
    ),
    runs=names("exec execSync"),
    writes={
        "rmSync": "delete-tree",
        "rm": "delete-tree",
        "rmdirSync": "delete-tree",
        "unlinkSync": "delete",
        "unlink": "delete",
        "rmdir": "delete",
        "writeFileSync": "truncate",
        "writeFile": "truncate",
        "appendFileSync": "append",
        "appendFile": "append",
        "mkdirSync": "create",
        "mkdir": "create",
        "renameSync": "rename",
        "truncateSync": "truncate",
        "chmodSync": "mode",
        "createWriteStream": "truncate",
    },
    reads=names("readFileSync readdirSync existsSync statSync readFile lstatSync"),
    comment=r"//[^\n]*|/\*.*?\*/",
    closed=r"\b(eval|Function|constructor|__proto__|import|fetch|WebAssembly|globalThis|Reflect|Proxy|binding|dlopen)\b"
    r"|`[^`]*\$\{|\]\s*\(",
    variables=r"(?<=[(,=:&|!?])\s*/(?:\\.|[^/\\\n])+/[gimsuy]*(?=[\s,.);])",
    fields=r"\.\w+\b(?!\s*\()",
    keys=r"\b\w+(?=\s*:)",
    environment=r"process\.env\b(?:\.(\w+))?",
)
RUBY = Language(
    name="ruby",
    harmless=names(
        """
        puts print p pp printf require json yaml set date time each map select reject to_s to_i to_f to_a to_h
        join split upcase downcase capitalize length size count sum max min sort sort_by reverse uniq first
        last do end if else elsif unless while until then def return nil true false and or not in case when
        begin rescue ensure yield times upto step inspect format strip chomp gsub sub tr include start_with
        end_with empty keys values sleep RUBY_VERSION ARGV STDIN gets read readlines Time now Date today Math
        sqrt JSON parse generate pretty_generate File join basename dirname extname exist Integer Float String
        Array Hash new chars lines zip flatten group_by
        """
    ),
    runs=names("system exec spawn popen"),
    writes={
        "rm_rf": "delete-tree",
        "rm_r": "delete-tree",
        "remove_dir": "delete-tree",
        "rmtree": "delete-tree",
        "rm": "delete",
        "rm_f": "delete",
        "delete": "delete",
        "unlink": "delete",
        "rmdir": "delete",
        "mkdir": "create",
        "mkdir_p": "create",
        "write": "truncate",
        "touch": "create",
        "binwrite": "truncate",
        "mv": "rename",
        "rename": "rename",
    },
    reads=names("readlines read foreach"),
    closed=r"\b(eval|instance_eval|class_eval|send|public_send|__send__|method|const_get|Kernel|IO|Process|fork|syscall"
    r"|open|load|require_relative|Object|binding|define_method)\b|%x",
    ticks=True,
    variables=r"(?!)",
    environment=r"\bENV\b(?:\[['\"](\w+)['\"]\])?",
)
PERL = Language(
    name="perl",
    harmless=names(
        """
        print say printf if unless else elsif and or not my our local foreach for while until last next split
        join length uc lc ucfirst lcfirst sprintf scalar sort keys values push pop shift unshift reverse map
        grep substr index chomp chop BEGIN END exit int abs defined undef hex oct ord chr sum max min strict
        warnings use feature List Util JSON PP Data Dumper sqrt localtime time exists delete wantarray return
        sub eq ne lt gt le ge cmp x STDIN STDOUT STDERR s y tr m g i n qw q qr
        """
    ),
    runs=names("system exec"),
    writes={
        "unlink": "delete",
        "rmtree": "delete-tree",
        "remove_tree": "delete-tree",
        "rmdir": "delete",
        "mkdir": "create",
        "rename": "rename",
    },
    closed=r"\b(eval|qx|open|do|require|syscall|kill|fork|chmod|chown|symlink|link|socket|glob|readpipe|sysopen|opendir)\b"
    r"|@\{|\$\{\s*\\|[>|]\s*['\"]",
    ticks=True,
    variables=r"[$@%]\{?\^?\w+\}?|\$[&_./,;0-9!]|\b[smy]/(?:\\.|[^/\\\n])*/(?:(?:\\.|[^/\\\n])*/)?[gimsxor]*(?![e\w])"
    r"|/(?:\\.|[^/\\\n])+/[gimsxo]*(?!\w)",
    environment=r"\$ENV\{['\"]?(\w+)['\"]?\}|%ENV",
)
PHP = Language(
    name="php",
    harmless=names(
        """
        echo print printf sprintf var_dump print_r json_encode json_decode count strlen strtoupper strtolower
        explode implode substr str_replace preg_match preg_replace in_array array_map array_filter array_keys
        array_values sort date time phpversion PHP_VERSION PHP_EOL PHP_OS true false null if else elseif
        foreach for while as function return intval floatval strval trim isset empty range max min round floor
        ceil abs exit number_format
        """
    ),
    runs=names("system exec shell_exec passthru popen proc_open"),
    writes={
        "unlink": "delete",
        "rmdir": "delete",
        "file_put_contents": "truncate",
        "mkdir": "create",
        "touch": "create",
        "rename": "rename",
        "copy": "truncate",
    },
    reads=names("file_get_contents file readfile"),
    comment=r"#[^\n]*|//[^\n]*|/\*.*?\*/",
    closed=r"\b(eval|assert|create_function|call_user_func\w*|include\w*|require\w*|fopen|curl_\w+|mail|dl|pcntl_\w+)\b"
    r"|\$\w+\s*\(|\$\{",
    ticks=True,
)
LUA = Language(
    name="lua",
    harmless=names(
        """
        print string format rep sub upper lower len gsub gmatch find math floor ceil sqrt max min pi random
        table concat insert remove sort pairs ipairs tostring tonumber type local function end if then else
        elseif for while do repeat until return nil true false and or not in _VERSION os time date clock
        select unpack
        """
    ),
    runs=names("execute popen"),
    writes={},
    comment=r"--[^\n]*",
    closed=r"\b(load|loadstring|dofile|loadfile|require|io|debug|package|setmetatable|_G|_ENV)\b",
)

_TEXT = r"\s*\(?\s*(?:[\w.:]{1,60}\s*\(\s*)?(?P<quote>['\"`])(?P<text>(?:\\.|(?!(?P=quote)).)*)(?P=quote)"
_MORE = r"\s*,\s*(?P<quote>['\"])(?P<text>(?:\\.|(?!(?P=quote)).)*)(?P=quote)"
_STRING = r"'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\"|`[^`]*`"
_DECLARED = (
    r"\b(?:const|let|var|local|function|def|my)\s+[$@%]?(\w+)",
    r"[{\[]([\w\s,:$]*)[}\]]\s*=(?![=>])",
    r"\(([\w\s,$]*)\)\s*=>",
    r"(?<!\w)(\w+)\s*=>",
    r"function\s*\w*\s*\(([\w\s,$]*)\)",
    r"\|([\w\s,]+)\|",
    r"(?:^|[;\n])\s*([a-z_]\w*)\s*=(?![=~>])",
)
"""Where names are given to variables and parameters, in any of the languages."""
_LIBRARIES = names(
    "fs path os util url crypto assert events buffer querystring string_decoder zlib readline perf_hooks"
    " timers child_process json yaml set date time fileutils pathname tmpdir"
)
"""Libraries that are harmless to load: what is called in them is looked at."""


def scan(language: Language, source: str, call: Call) -> Iterator[AnyEffect]:
    """The effects of a text in one of these languages."""
    opaque = Evaluate(language=language.name)
    if len(source) > LONGEST:
        yield opaque
        return
    plain = re.sub(rf"({_STRING})|{language.comment}", lambda match: match[1] or " ", source, flags=re.DOTALL)
    yield from (
        Environment(action="show", name=match[1] or "*") for match in re.finditer(language.environment, plain)
    )
    yield from _functions(language, plain, call)
    bare = re.sub(_STRING, lambda match: _inner(match[0]), plain, flags=re.DOTALL)
    if _doubtful(language, source, plain, bare):
        yield opaque
    if (language.ticks and "`" in plain) or re.search(language.closed, bare):
        yield from _ticks(plain, call) if language.ticks else ()
        yield opaque
    elif _strange(language, plain, bare):
        yield opaque


def _doubtful(language: Language, source: str, plain: str, bare: str) -> bool:
    """Whether something dangerous is named where it may be taken for text: behind a regular expression,
    another way to quote, or a comment, what is code and what is text cannot be told without parsing."""
    if plain == source and not re.search(r"/|<<|%[a-zA-Z({\[]|\b(q|qq|qw|qr|m|s|y|tr)\b", bare):
        return False
    dangerous = language.runs | frozenset(language.writes) | {"spawn", "spawnSync", "execFile", "require"}
    hidden = set(re.findall(r"\w+", source)) - set(re.findall(r"\w+", bare))
    return not dangerous.isdisjoint(hidden) or re.search(language.closed, source) is not None


def _strange(language: Language, plain: str, bare: str) -> bool:
    """Whether there is a name that nobody knows."""
    bare = re.sub(language.keys, " ", re.sub(language.environment, " ", bare))
    if "require" not in bare or re.search(r"require\s*\(?\s*['\"][./]", plain):
        bare = re.sub(language.fields, " ", bare)
    bare = re.sub(language.variables, " ", bare)
    known = language.harmless | language.runs | language.reads | frozenset(language.writes)
    unknown = {name for name in re.findall(r"[A-Za-z_]\w*", bare) if name not in known}
    return bool(unknown - _declared(plain))


def _declared(source: str) -> set[str]:
    """The variables, parameters and functions of the text itself."""
    groups = [group for pattern in _DECLARED for group in re.findall(pattern, source)]
    return {name for group in groups for name in re.findall(r"\w+", group)}


def _inner(text: str) -> str:
    """What code may be inside a string: that of an interpolation."""
    if text[:1] != '"':
        return " "
    return text[1:-1] if re.search(r"[@$]\{", text) else " ".join(re.findall(r"#\{([^}]*)\}", text))


def _functions(language: Language, source: str, call: Call) -> Iterator[AnyEffect]:
    """Calls of functions that run, write or read what they are given."""
    given = re.compile(_TEXT, flags=re.DOTALL)
    for match in re.finditer(r"(?<![\w$])[A-Za-z_]\w*", re.sub(_STRING, _masked, source, flags=re.DOTALL)):
        name, argument = match[0], given.match(source, match.end())
        text = argument["text"] if argument else None
        path = UNKNOWN if text is None else Word((text,), pattern=bool(set(text) & set("*?[")))
        if name in language.runs:
            yield from _run(language, source, argument, call)
        elif name in language.writes:
            how = language.writes[name]
            yield from written(path, how, follows=not how.startswith("delete"), forced=True)
        elif name in language.reads and text is not None:
            yield Read(path=path)
        elif name == "require":
            yield from _library(text)
        elif name in {"spawn", "spawnSync", "execFile", "execFileSync", "fork"}:
            yield Evaluate(language="sh")


def _run(language: Language, source: str, argument: re.Match[str] | None, call: Call) -> Iterator[AnyEffect]:
    """A text that is run; outside JavaScript more texts behind it are the arguments of a program."""
    if argument is None:
        yield Evaluate(language="sh")
        return
    words, rest = [argument["text"]], source[argument.end() :]
    while language is not JAVASCRIPT and (more := re.match(_MORE, rest, flags=re.DOTALL)):
        words.append(more["text"])
        rest = rest[more.end() :]
    if language is not JAVASCRIPT and re.match(r"\s*(,|=>|\.|\+)", rest):
        yield Evaluate(language="sh")
    yield from call.shell(words[0]) if len(words) == 1 else call.again(tuple(map(literal, words)))


def _masked(match: re.Match[str]) -> str:
    return match[0][0] + " " * (len(match[0]) - 2) + match[0][-1]


def _library(text: str | None) -> Iterator[AnyEffect]:
    """A library or a file that code loads."""
    if text is None:
        yield Evaluate(language="javascript")
    elif text.endswith(".json"):
        yield Read(path=literal(text))
    elif text.removeprefix("node:") not in _LIBRARIES:
        yield Execute(program=literal(text), argv=(literal(text),), kind="project")


def _ticks(source: str, call: Call) -> Iterator[AnyEffect]:
    for text in re.findall(r"`([^`]*)`", source):
        yield from call.shell(text)
