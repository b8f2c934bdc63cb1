"""Databases: whether a statement only asks, changes, or destroys."""

from __future__ import annotations

import re
from collections.abc import Iterator

from remuda.guard.commands.contract import Call, Table
from remuda.guard.commands.operands import LONGEST, names, texts, written
from remuda.guard.commands.options import Parsed, parse
from remuda.guard.commands.rows import options, role
from remuda.guard.model import AnyEffect, Evaluate, Network, Read, System, Unknown, Word, literal

ASKS = names(
    "select show describe desc explain with pragma use values table list set begin commit rollback end"
)
DESTROYS = (
    r"\b(drop|truncate|flush|purge)\b|\bdelete\s+from\s+\S+\s*(;|$)|\bupdate\s+\S+\s+set\b(?!.*\bwhere\b)"
)
ORDINARY = names("insert update delete create replace merge upsert copy")
"""What applications do all day, where nothing is lost as a whole."""
CHANGES = (
    r"\b(insert|update|delete|alter|create|grant|revoke|replace|merge|vacuum|reindex|attach|detach|call|do|copy"
    r"|rename|lock|kill)\b"
)
ESCAPES = (
    r"\binto\s+(outfile|dumpfile)\b|\bprogram\b|\bload_extension\b|\bload_file\b|\bpg_read_file\b|\blo_export\b"
    r"|\bxp_cmdshell\b|\bwritefile\b|\bedit\s*\(|\bread_csv|\bcopy\b.*\bto\b"
)

CLIENT_FILES = tuple(
    names(
        r"""
        \o \w \g \copy \i \lo .output .once .save .backup .read .import .restore .load .open .clone .archive
        .excel .log
        """
    )
)
"""How a line begins by which a client reads or writes files."""

PSQL_OPTIONS = """
    -c|--command: -f|--file: -h|--host: -U|--username: -d|--dbname: -p|--port: -v|--set: -F: -R: -T: -P:
    -o|--output:w -L|--log-file:w --variable: --pset: --field-separator: --record-separator: -l|--list -* --*
"""
MYSQL_OPTIONS = """
    -e|--execute: -h|--host: -u|--user: -D|--database: -P|--port: -S|--socket: --tee:w --init-command:
    --defaults-file:r --pager:x --default-character-set: -p? -* --*
"""
SQLITE_OPTIONS = "~ --cmd: --init:r --separator: --nullvalue: --newline: --vfs: --A -* --*"
DUMP_OPTIONS = """
    -f|--file:w -o|--out:w -r|--result-file:w --archive?w --output:w -d: -h|--host: -U|--username: -u|--user:
    -p? -P: -t: -n: -T: -F: -j: --db: --collection: --uri: -* --*
"""


def statements(text: str, call: Call) -> Iterator[AnyEffect]:
    """The effects of SQL, and of a client's own commands among it."""
    if len(text) > LONGEST:
        yield Evaluate(language="sql")
        return
    plain = re.sub(r"--[^\n]*|/\*.*?\*/", " ", text, flags=re.DOTALL)
    for line in plain.splitlines():
        yield from _client_command(line.strip(), call)
    bare = re.sub(r"'(?:[^']|'')*'", "''", plain).lower()
    bare = re.sub(r"(?m)^\s*[.\\][^\n]*$", "", bare)
    if re.search(ESCAPES, bare, flags=re.DOTALL):
        yield Unknown(why="the statement reads or writes files, or runs programs")
    if re.search(DESTROYS, bare, flags=re.DOTALL):
        yield System(kind="database", detail="a statement that destroys", destroys=True)
        return
    for statement in bare.split(";"):
        first = (statement.split() or ["select"])[0]
        pragma_sets = first == "pragma" and "=" in statement
        if first not in ASKS or pragma_sets or re.search(CHANGES, statement):
            yield System(kind="database", detail=f"a statement that changes: {first}", adds=first in ORDINARY)
            return


def _client_command(line: str, call: Call) -> Iterator[AnyEffect]:
    """Lines that the client itself acts on: ``\\!``, ``.shell``, ``.output`` and so on."""
    if line.startswith(("\\!", ".shell ", ".system ", ".sh ")):
        yield from call.shell(line.removeprefix("\\!").partition(" ")[2] or line[2:])
    elif line.startswith(CLIENT_FILES):
        yield Unknown(why="the database's client reads or writes files")


def _given(call: Call, scripts: list[Word], files: list[Word]) -> Iterator[AnyEffect]:
    """Statements in arguments, in files and on standard input."""
    for script in scripts:
        if not script.values:
            yield Evaluate(language="sql", origin=script.taint)
        for text in script.values:
            yield from statements(text, call)
    for file in files:
        yield Read(path=file)
        yield System(kind="database", detail="statements from a file")
    if scripts or files:
        return
    if call.input_text is not None and not call.input - {"input"}:
        yield from statements(call.input_text, call)
    elif call.input - {"input"}:
        yield System(kind="database", detail="statements that are not known")


def psql(call: Call) -> Iterator[AnyEffect]:
    """``psql`` and its kin."""
    parsed = parse(PSQL_OPTIONS, call.arguments)
    yield from options(call, parsed)
    if not parsed.has("list"):
        yield from _given(call, parsed.values("command"), parsed.values("file"))
    yield _asks(parsed)


def _asks(parsed: Parsed) -> Network:
    return Network(direction="get", host=parsed.value("host", "h") or literal("localhost"))


def mysql(call: Call) -> Iterator[AnyEffect]:
    """``mysql`` and its kin."""
    parsed = parse(MYSQL_OPTIONS, call.arguments)
    yield from options(call, parsed)
    yield from _given(call, parsed.values("execute", "init-command"), [])
    yield _asks(parsed)


def sqlite(call: Call) -> Iterator[AnyEffect]:
    """``sqlite3 FILE STATEMENT``: a file that is read, or changed."""
    parsed = parse(SQLITE_OPTIONS, call.arguments)
    yield from options(call, parsed)
    found = list(_given(call, parsed.operands[1:] + parsed.values("cmd"), []))
    yield from (effect for effect in found if not (isinstance(effect, System) and effect.adds))
    changes = any(isinstance(effect, System) for effect in found)
    for file in parsed.operands[:1]:
        yield from role(call, "e" if changes and not parsed.has("readonly") else "r", file)


REDIS_ASKS = names(
    """
    get mget keys scan exists type ttl pttl info ping dbsize llen lrange lindex hget hgetall hkeys hvals hlen
    hmget smembers scard sismember zrange zcard zscore zrank strlen getrange object memory time echo randomkey
    hscan sscan zscan xrange xlen xinfo pubsub command lastsave role bitcount getbit geopos latency monitor
    --version --help --scan --stat --latency --bigkeys
    """
)
REDIS_DESTROYS = names("flushall flushdb del unlink shutdown swapdb debug failover")


def redis(call: Call) -> Iterator[AnyEffect]:
    """``redis-cli``: the first word tells."""
    parsed = parse(
        "+ -h: -p: -a: -n: -u: -s: -r: -i: -d: --user: --pass: --pattern: --eval:! --rdb:w --cacert:r"
        " --cert:r --key:r -* --*",
        call.arguments,
    )
    yield from options(call, parsed)
    verb = (parsed.operands[0].text or "").lower() if parsed.operands else ""
    if verb in REDIS_ASKS or (not verb and not call.input - {"input"}):
        yield Network(direction="get", host=parsed.value("h") or literal("localhost"))
        return
    second = (parsed.operands[1].text or "").lower() if len(parsed.operands) > 1 else ""
    if verb in {"config", "client", "slowlog", "acl", "cluster", "script"} and second in {
        "get",
        "list",
        "info",
        "whoami",
        "nodes",
    }:
        return
    yield System(kind="database", detail=f"redis {verb}".strip(), destroys=verb in REDIS_DESTROYS)


MONGO_DESTROYS = (
    r"\b(drop\w*|deleteMany|deleteOne|remove|findOneAndDelete|shutdownServer|renameCollection)\s*\("
)
MONGO_ASKS = r"^[\s\w.$'\"()\[\]{},:;]*$"
MONGO_CHANGES = (
    r"\b(insert\w*|update\w*|replace\w*|create\w*|save|bulkWrite|findAndModify|findOneAnd\w+|runCommand|adminCommand|eval"
    r"|load|require|process|fs|ensureIndex|aggregate|mapReduce|copyTo|\$out|\$merge|auth|logout)\b"
)


def mongo(call: Call) -> Iterator[AnyEffect]:
    """``mongosh``: code, of which only plain queries are understood."""
    parsed = parse(
        "--eval: --host: --port: -u: -p: --file: -f: --username: --password: -* --*", call.arguments
    )
    scripts = texts(parsed.values("eval"))
    files = parsed.values("file", "f") + [
        word for word in parsed.operands if (word.text or "").endswith(".js")
    ]
    if not scripts and call.input_text is not None and not call.input - {"input"}:
        scripts = [call.input_text]
    for text in scripts:
        if len(text) > LONGEST:
            yield Evaluate(language="javascript")
        elif re.search(MONGO_DESTROYS, text):
            yield System(kind="database", detail="mongo", destroys=True)
        elif re.search(MONGO_CHANGES, text) or not re.match(MONGO_ASKS, text):
            yield System(kind="database", detail="mongo")
    if files or (call.input - {"input"}):
        yield System(kind="database", detail="statements that are not known")
    yield Network(direction="get", host=parsed.value("host") or literal("localhost"))


def dump(call: Call) -> Iterator[AnyEffect]:
    """Dumps a database to standard output or a file."""
    parsed = parse(DUMP_OPTIONS, call.arguments)
    yield from options(call, parsed)
    if call.name in {"mongodump"} and not parsed.has("out", "archive"):
        yield from written(literal("dump"), "create")
    yield _asks(parsed)


def changes(call: Call) -> Iterator[AnyEffect]:
    """Programs that do nothing but change a database."""
    words = texts(call.arguments)
    destroys = call.name.startswith("drop") or any(
        word in {"drop", "--drop", "--clean", "-c", "shutdown"} for word in words
    )
    if call.name == "mysqladmin" and set(words) & {"status", "ping", "version", "processlist", "variables"}:
        return
    yield System(kind="database", detail=call.name, destroys=destroys)


TABLE: Table = {
    **dict.fromkeys(("psql", "pgcli", "cockroach", "usql", "sqlcmd", "clickhouse-client", "snowsql"), psql),
    **dict.fromkeys(("mysql", "mariadb", "mycli"), mysql),
    **dict.fromkeys(("sqlite3", "sqlite", "duckdb", "litecli"), sqlite),
    **dict.fromkeys(("redis-cli", "valkey-cli", "keydb-cli"), redis),
    **dict.fromkeys(("mongosh", "mongo"), mongo),
    **dict.fromkeys(("pg_dump", "pg_dumpall", "mysqldump", "mariadb-dump", "mongodump", "mongoexport"), dump),
    **dict.fromkeys(
        names(
            "pg_restore mysqlimport mongorestore mongoimport dropdb createdb dropuser createuser mysqladmin"
            " pg_ctl initdb"
        ),
        changes,
    ),
    **dict.fromkeys(names("vacuumdb reindexdb clusterdb pgbench influx cqlsh"), changes),
}
