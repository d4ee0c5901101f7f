"""Questions of decoding tasks to the registry: few, quick, and repeated after a while."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from spark_cep.codecs.registry import schema_lookup
from spark_cep.codecs.registry.schema_lookup import (
    FORGOTTEN_AFTER_SECONDS,
    LARGEST_REGISTERED,
    SchemaLookup,
)
from spark_cep.codecs.registry.settings import RegistrySettings

MOST = 50


class Registry(ThreadingHTTPServer):
    """Knows some ids; ``status``: what it answers for others."""

    known: frozenset[int] = frozenset()
    status = 404
    #: So many questions are answered together, if they come within a while.
    together: threading.Barrier | None = None

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.asked: list[int] = []
        self.url = f"http://127.0.0.1:{self.server_port}"


class _Answer(BaseHTTPRequestHandler):
    server: Registry

    def do_GET(self) -> None:
        schema_id = int(self.path.split("?")[0].rpartition("/")[2])
        self.server.asked.append(schema_id)
        if self.server.together is not None:
            with suppress(threading.BrokenBarrierError):
                self.server.together.wait(5)
        known = schema_id in self.server.known
        told: Any = {"schema": '"string"'} if known else {"error_code": 40403, "message": "no"}
        body = json.dumps(told).encode()
        self.send_response(200 if known else self.server.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing is printed."""


@pytest.fixture
def registry() -> Iterator[Registry]:
    """One that this process has not asked before."""
    with Registry() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def ask(registry: Registry, *ids: int, most: int = MOST) -> schema_lookup.Answers:
    """A task's question."""
    return SchemaLookup(RegistrySettings(registry.url)).ask(Counter(ids), most)


def test_an_id_that_is_not_known_is_asked_for_once_in_a_while(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One question for all records, batches and tasks; after a while the id may be registered."""
    assert ask(registry, 7, 7, 8).open == frozenset()
    assert sorted(registry.asked) == [7, 8]
    registry.known = frozenset({7})
    assert ask(registry, 7, 8) == schema_lookup.Answers(frozenset(), frozenset(), 0)
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + FORGOTTEN_AFTER_SECONDS + 1)
    assert ask(registry, 7, 8).open == {7}
    assert sorted(registry.asked) == [7, 7, 8, 8]


def test_ids_are_asked_for_together(registry: Registry) -> None:
    """A registry that takes its time answers several at once."""
    registry.together = threading.Barrier(8)
    ask(registry, *range(100, 108))
    assert not registry.together.broken


def test_of_many_ids_those_with_the_most_records_are_asked_for(registry: Registry) -> None:
    """Made-up ids come once each, those of a producer again and again."""
    found = ask(registry, *range(1, 200), 150, 150, 160, most=10)
    assert (len(registry.asked), found.asked) == (10, 10)
    assert {150, 160} <= set(registry.asked)
    assert len(found.not_asked) == 189


def test_what_the_registry_does_not_answer_stays_open(registry: Registry) -> None:
    """The driver finds out why; nothing is taken for unknown, and few questions are asked."""
    registry.status = 503
    assert ask(registry, *range(1, 41)).open == frozenset(range(1, 41))
    assert len(registry.asked) <= 8
    registry.status = 404
    assert ask(registry, *range(1, 41)).open == frozenset()


def test_a_registry_that_is_not_there() -> None:
    """As one that does not answer."""
    nobody = SchemaLookup(RegistrySettings("http://127.0.0.1:9"))
    assert nobody.ask(Counter([1]), MOST).open == {1}


def test_what_is_no_id_is_not_asked_for(registry: Registry) -> None:
    """Four bytes hold numbers that no registry gives."""
    assert ask(registry, LARGEST_REGISTERED + 1).open == frozenset()
    assert registry.asked == []


def test_what_is_remembered_is_bounded(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest goes."""
    monkeypatch.setattr(schema_lookup, "_MOST_REMEMBERED", len(schema_lookup._unknown) + 3)
    ask(registry, *range(1, 31))
    assert len(schema_lookup._unknown) == schema_lookup._MOST_REMEMBERED
