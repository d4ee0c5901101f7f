"""What holds rules, for each kind of source, from its author's side: write, remove, take away."""

from __future__ import annotations

import sqlite3
import time
from abc import ABC, abstractmethod
from contextlib import closing
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from confluent_kafka import Producer

from examples.embedded import EmbeddedBroker
from spark_cep.config import Settings
from spark_cep.errors import RuleSetError, RulesTopicUnavailableError, RulesUnavailableError
from spark_cep.rules.sources.configured import source_of
from spark_cep.rules.sources.source import RuleSource
from tests.postgres import PASSWORD, USER, Postgres
from tests.rules.served import TOKEN, Served

CREATE = (
    "CREATE TABLE {} (id VARCHAR(64), version INT, pattern {},"
    " function VARCHAR(512), PRIMARY KEY (id, version))"
)


def settings(**rules: Any) -> Settings:
    """Of a job whose section ``rules`` is this."""
    return Settings.model_validate(
        {
            "kafka": {"bootstrap_servers": "localhost:9092", **rules.pop("cluster", {})},
            "inputs": {"i": {"topics": ["t"]}},
            "registry": {"url": "http://localhost"},
            "state": {"checkpoint": "/nowhere"},
            "rules": {"refresh_interval": "20 ms", **rules},
        }
    )


class Store(ABC):
    """``given``: the section ``rules`` of the settings that read it; ``when_unavailable``: the
    error of a read."""

    when_unavailable: type[RuleSetError] = RulesUnavailableError

    def __init__(self, **given: Any) -> None:
        self.given = given

    def source(self) -> RuleSource:
        """A source that has not read yet."""
        return source_of(settings(**self.given))

    @abstractmethod
    def put(self, rule: str, text: str, version: int = 1) -> None:
        """Write a rule, over its older version."""

    @abstractmethod
    def remove(self, rule: str) -> None:
        """The rule is gone."""

    @abstractmethod
    def place(self, rule: str) -> str:
        """What problems of the rule call the place of it."""

    @abstractmethod
    def away(self) -> None:
        """It cannot be read."""

    @abstractmethod
    def back(self) -> None:
        """It can be read again."""


class FolderStore(Store):
    """A file for each rule."""

    when_unavailable = RuleSetError

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        super().__init__(folder=str(folder))
        self._folder = folder

    def put(self, rule: str, text: str, version: int = 1) -> None:
        file = self._folder / f"{rule}.yaml"
        if file.exists():
            time.sleep(0.02)  # The clock of the file system has moved since.
        file.write_text(text, "utf-8")

    def remove(self, rule: str) -> None:
        (self._folder / f"{rule}.yaml").unlink()

    def place(self, rule: str) -> str:
        return str(self._folder / f"{rule}.yaml")

    def away(self) -> None:
        self._folder.rename(self._folder.with_name("away"))

    def back(self) -> None:
        self._folder.with_name("away").rename(self._folder)


class KafkaStore(Store):
    """A record for each rule."""

    when_unavailable = RulesTopicUnavailableError

    def __init__(self, broker: EmbeddedBroker, topic: str) -> None:
        super().__init__(
            source="kafka",
            kafka={"topic": topic, "timeout": "3 s"},
            cluster={"bootstrap_servers": broker.bootstrap},
        )
        self._broker = broker
        self._topic = topic
        self._offsets: dict[str, int] = {}
        broker.create_topics({topic: 1}, {"cleanup.policy": "compact"})
        self.producer = Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})

    def put(self, rule: str, text: str, version: int = 1) -> None:
        self.send(rule.encode(), text.encode())

    def send(
        self, key: bytes | None, value: bytes | None, producer: Producer | None = None
    ) -> None:
        """A record, which the broker has."""
        chosen = producer or self.producer
        chosen.produce(self._topic, value, key, on_delivery=self._delivered)
        assert chosen.flush(30) == 0

    def _delivered(self, error: Any, message: Any) -> None:
        assert error is None, error
        self._offsets[(message.key() or b"").decode("utf-8", "replace")] = message.offset()

    def remove(self, rule: str) -> None:
        self.send(rule.encode(), None)

    def place(self, rule: str) -> str:
        return f"{self._topic}/0/{self._offsets[rule]}"

    def away(self) -> None:
        self._broker.pause()

    def back(self) -> None:
        self._broker.resume()


class SqliteStore(Store):
    """A row for each version of a rule, in a file."""

    when_unavailable = RuleSetError

    def __init__(self, file: Path) -> None:
        super().__init__(source="sql", sql={"url": f"sqlite:///{file}"})
        self._file = file
        self._versions: dict[str, int] = {}
        self.execute(CREATE.format("rules", "TEXT"))

    def execute(self, statement: str, *values: object) -> None:
        """In a transaction of its own."""
        with closing(self.connection()) as connection, connection:
            connection.execute(statement, values)

    def connection(self) -> sqlite3.Connection:
        """That of a writer."""
        return sqlite3.connect(self._file)

    def put(self, rule: str, text: str, version: int = 1) -> None:
        self._versions[rule] = version
        self.execute("INSERT OR REPLACE INTO rules VALUES (?, ?, ?, 'x')", rule, version, text)

    def remove(self, rule: str) -> None:
        self.execute("DELETE FROM rules WHERE id = ?", rule)

    def place(self, rule: str) -> str:
        return f"rules/{rule}/{self._versions[rule]}"

    def away(self) -> None:
        self._file.rename(self._file.with_suffix(".away"))

    def back(self) -> None:
        self._file.with_suffix(".away").rename(self._file)


class PostgresStore(Store):
    """The same in PostgreSQL, in a schema, read by a role with a password."""

    def __init__(self, server: Postgres, schema: str) -> None:
        login = {"username": USER, "password": PASSWORD, "table": f"{schema}.rules"}
        super().__init__(source="sql", sql={"url": server.url, "timeout": "3 s", **login})
        self._server = server
        self._table = f"{schema}.rules"
        self._versions: dict[str, int] = {}
        server.execute(
            f"CREATE SCHEMA {schema}",
            CREATE.format(self._table, "VARCHAR"),
            f"GRANT USAGE ON SCHEMA {schema} TO {USER}",
            f"GRANT SELECT ON {self._table} TO {USER}",
        )

    def put(self, rule: str, text: str, version: int = 1) -> None:
        self._versions[rule] = version
        row = sa.text(
            f"INSERT INTO {self._table} VALUES (:id, :version, :text, 'x')"
            " ON CONFLICT (id, version) DO UPDATE SET pattern = :text"
        )
        self._server.execute(row.bindparams(id=rule, version=version, text=text))

    def remove(self, rule: str) -> None:
        gone = sa.text(f"DELETE FROM {self._table} WHERE id = :id")
        self._server.execute(gone.bindparams(id=rule))

    def place(self, rule: str) -> str:
        return f"{self._table}/{rule}/{self._versions[rule]}"

    def away(self) -> None:
        self._server.stop()

    def back(self) -> None:
        self._server.start()


class HttpsStore(Store):
    """A document for each rule, in one body."""

    def __init__(self, served: Served, authority: Path) -> None:
        given = {"url": served.url, "ssl_ca_file": str(authority), "bearer_token": TOKEN}
        super().__init__(source="https", https={**given, "timeout": "3 s"})
        self._served = served
        self._texts: dict[str, str] = {}

    def put(self, rule: str, text: str, version: int = 1) -> None:
        self._texts[rule] = text
        self._write()

    def remove(self, rule: str) -> None:
        del self._texts[rule]
        self._write()

    def _write(self) -> None:
        self._served.body = "\n---\n".join(self._texts.values()).encode()

    def place(self, rule: str) -> str:
        return self._served.url

    def away(self) -> None:
        self._served.stop()

    def back(self) -> None:
        self._served.start()
