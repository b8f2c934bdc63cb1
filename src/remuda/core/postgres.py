"""The shared database as a server that many machines use."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeGuard

from remuda.core.errors import ConfigError, RemudaError
from remuda.core.schema import MIGRATIONS
from remuda.core.sql import URL, Pool, Reading, Row, StoreGoneError, Transaction, Value, migrate, not_ours

if TYPE_CHECKING:
    import psycopg

_MIGRATING = 7736432
_NO_NUL = "\ufffd"
"""What stands for a NUL, which a server's texts cannot hold; what an agent said on its end may."""

_BOUNDS = (
    "SELECT set_config('search_path', 'remuda', false), set_config('statement_timeout', '60s', false), "
    "set_config('idle_in_transaction_session_timeout', '60s', false), "
    "set_config('enable_sort', 'off', false), set_config('jit', 'off', false)"
)
"""Of every connection: nobody waits for ever for a process that froze in the middle of a transaction; and
what is wanted in order is read from an index, also while the server has no statistics yet of a table that was
just filled."""


class _PostgresTransaction:
    skip_locked = " FOR UPDATE SKIP LOCKED"

    def __init__(self, connection: psycopg.Connection[Row]) -> None:
        self._connection = connection

    def _execute(self, sql: str, values: Sequence[Value]) -> psycopg.Cursor[Row]:
        kept = [value.replace("\0", _NO_NUL) if isinstance(value, str) else value for value in values]
        return self._connection.execute(sql.replace("%", "%%").replace("?", "%s").encode(), kept)

    def rows(self, sql: str, *values: Value) -> list[Row]:
        return self._execute(sql, values).fetchall()

    def run(self, sql: str, *values: Value) -> int:
        return self._execute(sql, values).rowcount

    def now(self) -> float:
        found = self.rows("SELECT extract(epoch FROM clock_timestamp())::double precision")[0][0]
        assert isinstance(found, float)
        return found

    def alone(self, name: str) -> None:
        self.rows("SELECT pg_advisory_xact_lock(?, hashtext(?))", _MIGRATING, name)


class PostgresDatabase:
    """A server that many machines share."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._pool: Pool[psycopg.Connection[Row]] = Pool()

    def exists(self) -> bool:
        return True

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Transaction]:
        import psycopg

        try:
            connection = self._taken()
        except psycopg.Error as error:
            raise _unreachable(self.url, error) from None
        try:
            yield _PostgresTransaction(connection)
            connection.commit()
        except BaseException as error:
            connection.close()
            if _is_gone(error):
                raise _gone(self.url, error) from None
            raise
        self._pool.give(connection)

    def lasting(self) -> contextlib.AbstractContextManager[Transaction]:
        return self.transaction()

    def reading(self) -> contextlib.AbstractContextManager[Reading]:
        return self.transaction()

    def _taken(self) -> psycopg.Connection[Row]:
        while (connection := self._pool.take()) is not None:
            if not _ended(connection):
                return connection
            connection.close()
        return _connected(self.url)

    def close(self) -> None:
        self._pool.close()


def _is_gone(error: BaseException) -> TypeGuard[psycopg.Error]:
    """Whether a server went away, lost patience, or is one whose place another is taking."""
    from psycopg import errors

    lost = (errors.OperationalError, errors.InterfaceError)
    return isinstance(error, (*lost, errors.ReadOnlySqlTransaction, errors.IdleInTransactionSessionTimeout))


def _ended(connection: psycopg.Connection[Row]) -> bool:
    """Whether the server has said something to a connection that asked nothing: that it is over."""
    import select

    waiting = select.poll()
    waiting.register(connection.fileno(), select.POLLIN)
    return bool(waiting.poll(0))


def _connected(url: str) -> psycopg.Connection[Row]:
    import psycopg

    connection = psycopg.connect(
        url,
        autocommit=True,
        application_name="remuda",
        connect_timeout=10,
        keepalives_idle=20,
        keepalives_interval=5,
        keepalives_count=3,
        tcp_user_timeout=30_000,
    )
    try:
        connection.execute(_BOUNDS)
        transaction = _PostgresTransaction(connection)
        if not _current(transaction):
            with connection.transaction():
                transaction.rows("SELECT pg_advisory_xact_lock(?)", _MIGRATING)
                transaction.run("CREATE SCHEMA IF NOT EXISTS remuda")
                migrate(transaction)
        connection.autocommit = False
    except BaseException:
        connection.close()
        raise
    return connection


def _current(transaction: _PostgresTransaction) -> bool:
    """Whether the schema is up to date, found out without any right to change it."""
    if transaction.rows("SELECT to_regclass('remuda.remuda_schema')") == [(None,)]:
        return False
    return transaction.rows("SELECT version FROM remuda_schema") == [(len(MIGRATIONS),)]


def _unreachable(url: str, error: psycopg.Error) -> RemudaError:
    """Why there is no connection: the server does not answer, or answers that it will not do."""
    import psycopg

    if isinstance(error, psycopg.errors.DuplicateTable):
        return not_ours("the schema 'remuda' of the database")
    if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return _gone(url, error)
    return ConfigError(f"cannot use the database: {_said(url, error)}", f"Look at {URL}, and at its rights.")


def _gone(url: str, error: Exception) -> StoreGoneError:
    return StoreGoneError(
        f"the database does not answer: {_said(url, error)}", f"Look at the server, and at {URL}."
    )


def _said(url: str, error: Exception) -> str:
    """What a server said, on one line, without what it was asked and without any piece of a password: one
    with a letter that a URL does not take as it is can turn up as a host or a port."""
    said = next(iter(str(error).strip().splitlines()), type(error).__name__)
    hidden = re.findall(r"//[^/]*?:(.*)@", url) + re.findall(r"[?&]password=([^&]*)", url)
    for piece in {each for text in hidden for each in (text, *re.split(r"[/@:?#&=\[\]]", text)) if each}:
        said = said.replace(piece, "***")
    return said
