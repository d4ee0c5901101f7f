"""Rules from an SQL table: ``id VARCHAR(64), version INT, pattern VARCHAR, function VARCHAR``.

These are the columns of Ververica's table of dynamic patterns. ``pattern`` holds a rule's text; of
each id the row with the highest version counts, and a row that is gone is a rule that is gone.
``function`` names a Java class there and is not read. All rows are read by one statement, so what
one transaction of a writer changes is one change.
"""

from __future__ import annotations

import re
import socket
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from typing import Any, Final
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, OperationalError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from spark_cep.config import RulesTable, without
from spark_cep.documents.reading import MOST_CHARACTERS
from spark_cep.errors import ConfigurationError, Problem, needs_extra
from spark_cep.pattern.ververica.rewriting import rule_text
from spark_cep.rules.rule_set import RuleFile
from spark_cep.rules.sources.deadline import deadline
from spark_cep.rules.sources.source import (
    MOST_ENTRIES,
    SourceEntries,
    check_count,
    not_read,
    too_large,
    unavailable,
)

_POSTGRESQL: Final = "postgresql"
_PSYCOPG: Final = "postgresql+psycopg"
_LOCKED: Final = ("SQLITE_BUSY", "SQLITE_LOCKED")
_NOT_NOW: Final = re.compile("starting up|shutting down|recovery|too many|remaining connection")
#: Characters, of which no id has so many.
_MOST_OF_ID: Final = 200
_Row = tuple[object, object, object]


class SqlTableSource:
    """The table as a source. ConfigurationError when there is no driver for the database."""

    def __init__(self, given: RulesTable) -> None:
        self._table = given.table
        self._seconds = given.timeout / 1000
        self._beside = given.ververica
        self._secret = None if given.password is None else given.password.get_secret_value()
        try:
            url = sa.make_url(given.url)
            self.name = f"table {given.table} of {url.set(query={}).render_as_string()}"
            self._engine = _engine(url.set(username=given.username, password=self._secret), given)
        except (SQLAlchemyError, ImportError) as error:
            message = f"rules.sql.url: the database cannot be reached from here: {error}"
            raise ConfigurationError(message) from error
        self._statement = _newest(given.table)
        self._rows: Sequence[_Row] | None = None
        self._entries = SourceEntries()

    def read(self) -> list[RuleFile] | None:
        """See :class:`~spark_cep.rules.sources.source.RuleSource`."""
        try:
            rows = self._asked()
        except SQLAlchemyError as error:
            error_of = unavailable if _is_unavailable(error) else not_read
            raise error_of(self._reason(error), self.name) from error
        check_count(len(rows), "rows", self.name)
        if rows == self._rows:
            return None
        self._entries.next_snapshot()
        files = [self._entry(*row) for row in rows]
        self._rows = rows
        return files

    def close(self) -> None:
        """See :class:`~spark_cep.rules.sources.source.RuleSource`."""
        self._engine.dispose()

    def _asked(self) -> list[_Row]:
        began = time.monotonic()
        try:
            return self._ask()
        except DBAPIError as error:
            if not error.connection_invalidated or time.monotonic() - began > self._seconds / 2:
                raise
        # The connection was closed since the last read, as when the server was started again.
        return self._ask()

    def _ask(self) -> list[_Row]:
        with self._engine.connect() as connection, self._limited(connection):
            if connection.dialect.name == _POSTGRESQL:
                limit = sa.func.set_config("statement_timeout", f"{self._seconds * 1000:.0f}", True)
                connection.execute(sa.select(limit))
            return [(row[0], row[1], row[2]) for row in connection.execute(self._statement)]

    @contextmanager
    def _limited(self, connection: sa.Connection) -> Iterator[None]:
        """Hang up where a server that is there says nothing; its own limit would not hold then."""
        pgconn: Any = getattr(connection.connection.driver_connection, "pgconn", None)
        if pgconn is None:
            yield
            return
        with deadline(1.5 * self._seconds, lambda: _hang_up(pgconn.socket)):
            yield

    def _entry(self, rule: object, version: object, text: object) -> RuleFile:
        name = f"{self._table}/{rule}/{version}"
        if not isinstance(rule, str) or not rule:
            return _wrong(name, "id", rule, "the rule's id", "")
        if not isinstance(version, int):
            return _wrong(name, "version", version, "a whole number", rule)
        if not isinstance(text, str):
            return _wrong(name, "pattern", text, "the rule's text", rule)
        if len(text) > MOST_CHARACTERS:
            return RuleFile(name, (), tuple(too_large(name, "column pattern").problems), rule)
        written = rule_text(rule, version, text, self._beside)
        return self._entries.entry(written, name, rule, version)

    def _reason(self, error: SQLAlchemyError) -> str:
        cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
        text = " ".join(str(cause).split())
        return without(text, [] if self._secret is None else [self._secret])


def _engine(url: sa.URL, given: RulesTable) -> sa.Engine:
    seconds = given.timeout / 1000
    if url.get_backend_name() == "sqlite":
        # Opened at each read, since another file may have been moved there; and never created.
        file = f"file:{quote(url.database or '')}?mode=ro"
        opened = partial(sqlite3.connect, file, uri=True, timeout=seconds)
        return sa.create_engine("sqlite://", creator=opened, poolclass=sa.NullPool)
    if url.drivername == _POSTGRESQL:
        url = url.set(drivername=_PSYCOPG)
    more: dict[str, Any] = {}
    if url.drivername == _PSYCOPG:
        more = {"connect_timeout": max(2, round(seconds)), "tcp_user_timeout": given.timeout}
        more["application_name"] = "spark-cep"
        with needs_extra("sql", "rules.sql.url of PostgreSQL"):
            import_module("psycopg")
    return sa.create_engine(
        url, connect_args=more, pool_size=1, max_overflow=0, pool_timeout=seconds,
        hide_parameters=True,
    )  # fmt: skip


def _newest(table: str) -> sa.Select[Any]:
    """The row of each id that no other has a higher version than; rows without id or version, too,
    which are wrong. No more of them, and of their texts, than tells that there is too much: a
    client may hold all that a server sends."""
    schema, _, name = table.rpartition(".")
    columns = ("id", "version", "pattern")
    rules = sa.table(name, *map(sa.column, columns), schema=schema or None)
    newer = rules.alias("newer")
    there_is_newer = sa.exists().where(newer.c.id == rules.c.id, newer.c.version > rules.c.version)
    cut = sa.func.substr
    rule, text = cut(rules.c.id, 1, _MOST_OF_ID), cut(rules.c.pattern, 1, MOST_CHARACTERS + 1)
    newest = sa.select(rule, rules.c.version, text).where(~there_is_newer)
    return newest.order_by(rules.c.id, rules.c.version).limit(MOST_ENTRIES + 1)


def _is_unavailable(error: SQLAlchemyError) -> bool:
    """Tell whether the database does not answer, or not now. A login that is refused, and a
    database or table that does not exist, would be so again."""
    if not isinstance(error, OperationalError):
        return isinstance(error, PoolTimeoutError) or (
            isinstance(error, DBAPIError) and error.connection_invalidated
        )
    cause: Any = error.orig
    if isinstance(cause, sqlite3.Error):
        return cause.sqlite_errorname.startswith(_LOCKED)
    # PostgreSQL's own refusal of a connection has no code here, only its severity.
    code = getattr(cause, "sqlstate", None)
    refused = code is None and "FATAL" in str(cause) and not _NOT_NOW.search(str(cause))
    return not refused


def _hang_up(file: int) -> None:
    try:
        with socket.socket(fileno=socket.dup(file)) as connection:
            connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # It is closed already.


def _wrong(name: str, column: str, found: object, allowed: str, rule: str) -> RuleFile:
    problem = Problem(f"column {column} is {found!r}", name, allowed=allowed)
    return RuleFile(name, (), (problem,), rule)
