"""Servers that tests of rule sources share, and may take away."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from examples.embedded import EmbeddedBroker
from tests.certificates import Authority
from tests.conftest import JARS
from tests.postgres import Postgres, postgres
from tests.rules.served import Served


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    """A broker that may go away."""
    with EmbeddedBroker(tmp_path_factory.mktemp("broker"), JARS) as running:
        yield running


@pytest.fixture(scope="session")
def server() -> Iterator[Postgres]:
    """A PostgreSQL that may go away."""
    with postgres() as running:
        yield running


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    """One that only this test trusts."""
    return Authority(tmp_path / "authority")


@pytest.fixture
def served(authority: Authority) -> Iterator[Served]:
    """A web server with a certificate under the authority."""
    running = Served(authority.identity("server"))
    running.start()
    yield running
    running.stop()
