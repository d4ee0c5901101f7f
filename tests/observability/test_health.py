"""Health by a clock of our own, and its pages through a real HTTP client."""

from __future__ import annotations

import io
import json
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from email.message import Message

import pytest

from spark_cep.errors import StartError
from spark_cep.observability.health import Health, HealthServer, LifePhase
from spark_cep.observability.logs import configure
from spark_cep.observability.metric_names import EVENTS_RELEVANT
from spark_cep.observability.metrics import Metrics


class Clock:
    """A clock that goes when told."""

    now = 1000.0

    def __call__(self) -> float:
        """The time."""
        return self.now


@pytest.fixture
def clock() -> Clock:
    """A clock at rest."""
    return Clock()


@pytest.fixture
def health(clock: Clock) -> Health:
    """Health with a limit of a minute."""
    return Health(60_000, clock)


@pytest.fixture
def server(health: Health) -> Iterator[HealthServer]:
    """A running server on any port."""
    metrics = Metrics()
    metrics.increment(EVENTS_RELEVANT, 3)
    running = HealthServer("127.0.0.1", 0, health, metrics.registry, lambda: [{"rule": "a"}])
    running.start()
    yield running
    running.stop()


def get(
    server: HealthServer, path: str, method: str = "GET", accept: str = "*/*"
) -> tuple[int, str, Message]:
    """Status, body and headers of a page."""
    url = f"http://127.0.0.1:{server.port}{path}"
    request = urllib.request.Request(url, method=method, headers={"Accept": accept})
    try:
        with urllib.request.urlopen(request, timeout=5) as answer:  # noqa: S310 - our own server
            return answer.status, answer.read().decode(), answer.headers
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode(), error.headers


def test_an_answer_leaves_in_one_piece(
    server: HealthServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Status, headers and body: a process that ends between two pieces would cut an answer."""
    pieces: list[bytes] = []

    def send(connection: socket.socket, data: bytes) -> int:
        pieces.append(bytes(data))
        connection.sendall(data)
        return len(data)

    with socket.create_connection(("127.0.0.1", server.port), timeout=5) as client:
        monkeypatch.setattr(socket.socket, "send", send)
        client.sendall(b"GET /readyz HTTP/1.0\r\n\r\n")
        answer = client.makefile("rb").read()
    assert pieces == [answer]
    assert answer.startswith(b"HTTP/1.0 503 ")
    assert json.loads(answer.rpartition(b"\r\n\r\n")[2]) == {"ok": False, "reason": "starting"}


def test_start_is_alive_and_not_ready(health: Health, clock: Clock) -> None:
    """However long the start takes, it is alive; the start-up probe has its own patience."""
    clock.now += 3600
    assert health.live().ok
    assert not health.readiness().ok
    assert health.phase is LifePhase.STARTING


def test_the_log_says_when_it_is_ready_and_where_its_pages_are() -> None:
    """Once."""
    out = io.StringIO()
    configure("info", "json", out)
    health = Health(60_000, pages="http://127.0.0.1:9108")
    health.ready()
    health.ready()
    (line,) = map(json.loads, out.getvalue().splitlines())
    assert (line["event"], line["pages"]) == ("ready", "http://127.0.0.1:9108")


def test_liveness_follows_progress(health: Health, clock: Clock) -> None:
    """Silence beyond the limit is not alive; progress makes it alive again."""
    health.ready()
    assert health.readiness().ok
    clock.now += 60
    assert health.live().ok
    clock.now += 1
    assert not health.live().ok
    assert health.live().reason == "no progress for 61 s, the limit is 60 s"
    health.progressed()
    assert health.live().ok


def test_silence_counts_only_when_progress_is_expected(health: Health, clock: Clock) -> None:
    """While the query is rebuilt or held nothing is expected; the wait then begins again."""
    health.ready()
    health.expect_progress(expected=False)
    clock.now += 3600
    assert health.live().ok
    health.expect_progress(expected=True)
    assert health.live().ok
    clock.now += 61
    assert not health.live().ok


def test_waiting_is_alive_and_not_ready(health: Health, clock: Clock) -> None:
    """However long it takes: it says for what, at every stage of life but the last; the wait for
    progress then begins again."""
    health.waiting("Kafka at k:9092")
    assert health.readiness().reason == "starting: waits for Kafka at k:9092"
    health.ready()
    clock.now += 3600
    assert health.live().ok
    assert not health.readiness().ok
    assert health.readiness().reason == "ready: waits for Kafka at k:9092"
    health.waiting("")
    assert health.live().ok
    assert health.readiness().ok
    clock.now += 61
    assert not health.live().ok
    health.waiting("Kafka")
    health.failed("gave up")
    assert health.readiness().reason == "failed: gave up"


def test_stop_is_alive_and_not_ready(health: Health, clock: Clock) -> None:
    """Winding down takes no traffic and is not killed for taking its time; it does not return."""
    health.ready()
    health.stopping()
    health.ready()
    clock.now += 3600
    assert health.live().ok
    assert health.readiness().reason == "stopping"
    assert not health.readiness().ok


def test_failure_is_neither(health: Health) -> None:
    """A failed query is not alive, says why, and stays failed."""
    health.ready()
    health.failed("topic is gone")
    health.stopping()
    assert not health.live().ok
    assert health.live().reason == "failed: topic is gone"
    assert health.readiness().reason == "failed: topic is gone"


def test_probes_over_http(server: HealthServer, health: Health, clock: Clock) -> None:
    """Probes answer 200 or 503 with the reason as JSON."""
    assert get(server, "/livez")[0] == 200
    status, body, headers = get(server, "/readyz")
    assert (status, json.loads(body)) == (503, {"ok": False, "reason": "starting"})
    assert headers["Content-Type"] == "application/json"
    health.ready()
    assert get(server, "/readyz?verbose")[0] == 200
    clock.now += 61
    assert get(server, "/livez")[0] == 503


def test_metrics_over_http(server: HealthServer) -> None:
    """Prometheus finds the metrics, those of the process too."""
    status, body, headers = get(server, "/metrics")
    assert status == 200
    assert headers["Content-Type"].startswith("text/plain")
    assert "spark_cep_events_relevant_total 3.0" in body
    assert "process_cpu_seconds_total" in body


@pytest.mark.parametrize("version", ["zzz", "1.x", "", "1.0.0;q"])
def test_metrics_in_a_form_that_there_is_not(server: HealthServer, version: str) -> None:
    """A version that cannot be read is no reason to give no metrics."""
    accept = f"application/openmetrics-text;version={version}"
    status, body, _ = get(server, "/metrics", accept=accept)
    assert status == 200
    assert "spark_cep_events_relevant_total 3.0" in body


def test_rules_over_http(server: HealthServer) -> None:
    """The running rules are JSON."""
    status, body, _ = get(server, "/rules")
    assert (status, json.loads(body)) == (200, [{"rule": "a"}])


def test_everything_else_is_refused(server: HealthServer) -> None:
    """Other pages are not found, other methods not allowed, HEAD has no body."""
    status, body, _ = get(server, "/")
    assert status == 404
    assert "/livez" in json.loads(body)["pages"]
    status, _, headers = get(server, "/livez", "POST")
    assert (status, headers["Allow"]) == (405, "GET, HEAD")
    assert get(server, "/livez", "HEAD")[:2] == (200, "")
    assert get(server, "/metrics", "HEAD")[:2] == (200, "")


def test_a_silent_client_blocks_nobody(server: HealthServer) -> None:
    """While one connection says nothing, others are answered."""
    with socket.create_connection(("127.0.0.1", server.port)):
        assert get(server, "/livez")[0] == 200


def test_taken_port_is_said(server: HealthServer, health: Health) -> None:
    """A port that is taken is an error of the start that names it."""
    with pytest.raises(StartError, match=f"cannot listen on 127.0.0.1:{server.port}"):
        HealthServer("127.0.0.1", server.port, health, Metrics().registry)


def test_stop_frees_the_port(health: Health) -> None:
    """After a stop the port is free; stopping what never ran is harmless."""
    first = HealthServer("127.0.0.1", 0, health, Metrics().registry)
    first.start()
    port = first.port
    first.stop()
    second = HealthServer("127.0.0.1", port, health, Metrics().registry)
    second.stop()
