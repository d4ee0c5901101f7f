"""Rules from a table: which row counts, what is wrong with rows, logins, silent servers."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa

from spark_cep.errors import ConfigurationError, RuleSetError, RulesUnavailableError
from spark_cep.rules.sources.configured import source_of
from spark_cep.rules.sources.source import RuleSource
from spark_cep.rules.sources.sql_table import SqlTableSource
from tests.postgres import PASSWORD, USER, Postgres
from tests.rules.sources.test_configured import versions
from tests.rules.sources.test_folder import rule
from tests.rules.stores import PostgresStore, SqliteStore, settings


@pytest.fixture
def table(tmp_path: Path) -> SqliteStore:
    """An empty table whose columns may hold anything."""
    return SqliteStore(tmp_path / "rules.db")


@pytest.fixture
def postgres_table(server: Postgres) -> PostgresStore:
    """An empty one in PostgreSQL."""
    return PostgresStore(server, f"s{uuid.uuid4().hex[:8]}")


@pytest.fixture
def source(table: SqliteStore) -> Iterator[RuleSource]:
    """A source of the table."""
    with closing(table.source()) as made:
        yield made


def test_the_highest_version_counts(table: SqliteStore, source: RuleSource) -> None:
    """By number, whatever older rows hold; when it goes, the one before is there again."""
    table.put("a", "no rule", 2)
    table.put("a", rule("a", 10), 10)
    table.put("a", rule("a", 9), 9)
    assert versions(source.read()) == {"a": 10}
    table.execute("DELETE FROM rules WHERE version = 10")
    assert versions(source.read()) == {"a": 9}


def test_a_row_names_its_rule(table: SqliteStore, source: RuleSource) -> None:
    """Id and version of the row count where the text says nothing, and must be those of the text
    where it does."""
    plain = rule("a").replace("id: a\nversion: 1\n", "")
    table.put("a", plain, 3)
    assert versions(source.read()) == {"a": 3}
    table.put("b", rule("b", 2), 1)
    table.put("c", rule("d"), 1)
    found = [problem for file in source.read() or () for problem in file.problems]
    assert [(each.source, each.message) for each in found] == [
        ("rules/b/1", "the version is 2, and the entry stands for 1"),
        ("rules/c/1", "the id is d, and the entry stands for c"),
    ]
    assert [each.allowed for each in found] == [
        "`version: 1`, or no `version`",
        "`id: c`, or no `id`",
    ]


def test_rows_that_are_none(table: SqliteStore, source: RuleSource) -> None:
    """Columns without a value or of another type are problems of their rows."""
    table.put("good", rule("good"))
    insert = "INSERT INTO rules VALUES (?, ?, ?, 'x')"
    table.execute(insert, None, 1, "text")
    table.execute(insert, "no-version", None, "text")
    table.execute(insert, "no-pattern", 1, None)
    table.execute(insert, "bytes", 1, b"id: bytes")
    table.execute(insert, "large", 1, "#" * 1_000_001)
    files = source.read() or ()
    assert [one.rule.id for file in files for one in file.loaded] == ["good"]
    told = {str(each.source): each.message for file in files for each in file.problems}
    assert told == {
        "rules/None/1": "column id is None",
        "rules/no-version/None": "column version is None",
        "rules/no-pattern/1": "column pattern is None",
        "rules/bytes/1": "column pattern is b'id: bytes'",
        "rules/large/1": "the column pattern is too large",
    }


def test_rows_of_ververica(table: SqliteStore) -> None:
    """The pattern alone, as its own jobs have it; key and inputs are those of the settings."""
    quantifier = {"consumingStrategy": "SKIP_TILL_NEXT", "properties": ["SINGLE"]}
    condition = {"type": "AVIATOR", "expression": "n == 1"}
    node = {"name": "a", "type": "ATOMIC", "quantifier": quantifier, "condition": condition}
    graph = {"name": "a", "type": "COMPOSITE", "version": 1, "condition": None, "edges": []}
    table.put("good", json.dumps({**graph, "quantifier": quantifier, "nodes": [node]}), 3)
    node["condition"] = {"type": "GROOVY", "expression": "n == 1"}
    table.put("bad", json.dumps({**graph, "quantifier": quantifier, "nodes": [node]}), 1)
    table.given["sql"] |= {"ververica": {"key": "k"}}
    with closing(table.source()) as source:
        bad, good = source.read() or ()
    (one,) = good.loaded
    assert (one.rule.id, one.rule.version, [key.canonical for key in one.rule.key]) == (
        "good", 3, ["k"]
    )  # fmt: skip
    assert [step.name for step in one.rule.pattern] == ["a"]
    (problem,) = bad.problems
    assert (problem.source, problem.rule) == ("rules/bad/1", "bad")
    assert "Groovy is a programming language" in problem.message


def test_too_many_rows(
    table: SqliteStore, source: RuleSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number of rows is limited, and the limit is in the error."""
    monkeypatch.setattr("spark_cep.rules.sources.source.MOST_ENTRIES", 1)
    table.put("a", rule("a"))
    table.put("b", rule("b"))
    with pytest.raises(RuleSetError, match=r"holds 2 rows[\s\S]*at most 1"):
        source.read()


@pytest.mark.parametrize("kind", ["table", "postgres_table"])
def test_the_server_sends_no_more_than_is_read(
    kind: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of rows and of texts: a client may hold all of them before it gives out the first. Older
    versions do not count."""
    monkeypatch.setattr("spark_cep.rules.sources.sql_table.MOST_ENTRIES", 3)
    monkeypatch.setattr("spark_cep.rules.sources.sql_table.MOST_CHARACTERS", 100)
    store: SqliteStore | PostgresStore = request.getfixturevalue(kind)
    for version in range(1, 9):
        store.put("a", rule("a", version), version)
    store.put("b", "ä" * 200)
    store.put("c", "ä" * 100)
    counts: list[int] = []
    with closing(store.source()) as source:
        assert isinstance(source, SqlTableSource)
        told = {file.rule: [each.message for each in file.problems] for file in source.read() or ()}
        assert told.keys() == {"a", "b", "c"}
        assert (told["a"], told["b"]) == ([], ["the column pattern is too large"])
        assert [len(str(row[2])) for row in source._ask()] == [len(rule("a", 8)), 101, 100]
        for number in range(7):
            store.put(f"d{number}", rule(f"d{number}"))
        sa.event.listen(
            source._engine, "after_cursor_execute", lambda *given: counts.append(given[1].rowcount)
        )
        assert len(source._ask()) == 4
    # SQLite sends nothing before it is asked for, and counts nothing.
    assert counts[-1] == (-1 if kind == "table" else 4)


def test_a_file_is_never_made(tmp_path: Path) -> None:
    """SQLite would make an empty one."""
    given = settings(source="sql", sql={"url": f"sqlite:///{tmp_path}/none.db"})
    with closing(source_of(given)) as source, pytest.raises(RuleSetError, match="unable to open"):
        source.read()
    assert not list(tmp_path.iterdir())


def test_no_such_table(table: SqliteStore) -> None:
    """The reason is the database's own."""
    made = settings(source="sql", sql={**table.given["sql"], "table": "elsewhere"})
    with closing(source_of(made)) as source, pytest.raises(RuleSetError, match="no such table"):
        source.read()


def test_a_table_that_is_locked(table: SqliteStore) -> None:
    """May be read later, unlike one that does not exist."""
    table.put("a", rule("a"))
    table.given["sql"]["timeout"] = "1 s"
    with closing(table.source()) as source, closing(table.connection()) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        with pytest.raises(RulesUnavailableError, match="database is locked"):
            source.read()
        writer.rollback()
        assert versions(source.read()) == {"a": 1}


@pytest.mark.parametrize("url", ["nonesuch://host/db", "mysql+pymysql://host/db"])
def test_no_driver(url: str) -> None:
    """A database that cannot be spoken to from here is an error of the settings."""
    with pytest.raises(ConfigurationError, match=r"rules\.sql\.url: .*(nonesuch|pymysql)"):
        source_of(settings(source="sql", sql={"url": url}))


def test_the_driver_of_postgresql_comes_with_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it is not installed, the error names the extra."""
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(
        ConfigurationError, match=r"psycopg is not .* pip install 'spark-cep\[sql\]'"
    ):
        source_of(settings(source="sql", sql={"url": "postgresql://host/db"}))


def test_a_wrong_password_is_not_shown(postgres_table: PostgresStore) -> None:
    """Nor the right one: neither in settings nor in errors."""
    given = postgres_table.given["sql"]
    for password in ("wr0ng", PASSWORD):
        made = settings(source="sql", sql={**given, "password": password, "table": "none"})
        assert password not in str(made) + made.model_dump_json()
        with closing(source_of(made)) as source, pytest.raises(RuleSetError) as caught:
            source.read()
        assert password not in str(caught.value)
        assert password not in source.name
        wrong = "password authentication failed" if password != PASSWORD else "does not exist"
        assert wrong in str(caught.value)
        # It would be so again.
        assert not isinstance(caught.value, RulesUnavailableError)


@pytest.mark.parametrize(
    "change",
    [
        "INSERT INTO {} VALUES ('b', 1, '', 'x')",
        "UPDATE {} SET pattern = ''",
        "DELETE FROM {}",
    ],
)
def test_the_reader_is_no_author(
    server: Postgres, postgres_table: PostgresStore, change: str
) -> None:
    """With the rights that the job needs no rule can be changed."""
    postgres_table.put("a", rule("a"))
    table = postgres_table.given["sql"]["table"]
    url = sa.make_url(server.url).set(
        drivername="postgresql+psycopg", username=USER, password=PASSWORD
    )
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    with (
        engine.connect() as connection,
        pytest.raises(sa.exc.ProgrammingError, match="permission denied for table rules"),
    ):
        connection.execute(sa.text(change.format(table)))
    with closing(postgres_table.source()) as source:
        assert versions(source.read()) == {"a": 1}


def test_a_connection_that_was_closed(server: Postgres, postgres_table: PostgresStore) -> None:
    """As by a server that was started again: nobody notices."""
    postgres_table.put("a", rule("a"))
    with closing(postgres_table.source()) as source:
        assert versions(source.read()) == {"a": 1}
        server.stop()
        server.start()
        postgres_table.put("b", rule("b"))
        assert versions(source.read()) == {"a": 1, "b": 1}


def test_a_server_that_says_nothing(server: Postgres, postgres_table: PostgresStore) -> None:
    """Is not waited for without end, and read again once it speaks."""
    postgres_table.put("a", rule("a"))
    postgres_table.given["sql"]["timeout"] = "1 s"
    with closing(postgres_table.source()) as source:
        assert source.read() is not None
        (process,) = server.processes()
        os.kill(process, signal.SIGSTOP)
        try:
            began = time.monotonic()
            with pytest.raises(RulesUnavailableError, match="the rules cannot be read"):
                source.read()
            assert time.monotonic() - began < 5
        finally:
            os.kill(process, signal.SIGCONT)
        assert source.read() is None
        postgres_table.put("b", rule("b"))
        assert versions(source.read()) == {"a": 1, "b": 1}
