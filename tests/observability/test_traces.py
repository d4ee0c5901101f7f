"""A collector of OpenTelemetry: what it gets, and that a job does without it."""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from subprocess import run
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from spark_cep.config.traces import Traces
from spark_cep.errors import ConfigurationError
from spark_cep.observability import traces
from spark_cep.observability.traces import TraceSpan, new_trace, trace_writer


class Collector(HTTPServer):
    """Takes what is sent, and answers with ``status``."""

    def __init__(self, status: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.status = status
        self.got: list[tuple[str, str | None, bytes]] = []

    @property
    def url(self) -> str:
        """The address for traces."""
        return f"http://127.0.0.1:{self.server_port}/v1/traces"


class _Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append((self.path, self.headers["X-Login"], body))
        self.send_response(self.server.status)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def collector(request: pytest.FixtureRequest) -> Iterator[Collector]:
    """A collector that answers with the status of the test."""
    server = Collector(request.param)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("collector", [200], indirect=True)
def test_spans_arrive(collector: Collector) -> None:
    """By OTLP, with the login, at the latest when the run ends."""
    settings = Traces.model_validate({"url": collector.url, "headers": {"X-Login": "secret"}})
    writer, trace = trace_writer(settings, "logins", "abc"), new_trace()
    writer.write(trace, TraceSpan("batch", 1, 3, {"spark_cep.batch": 7}, (TraceSpan("run", 1, 2),)))
    writer.close()
    ((path, login, body),) = collector.got
    assert (path, login) == ("/v1/traces", "secret")
    sent = ExportTraceServiceRequest.FromString(body).resource_spans[0].scope_spans[0].spans
    assert {span.name for span in sent} == {"batch", "run"}
    assert {span.trace_id.hex() for span in sent} == {trace}


@pytest.mark.parametrize("collector", [400], indirect=True)
def test_a_collector_that_refuses_is_told_of_once(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job's log says so, and OpenTelemetry does not; nothing is raised."""
    told: list[str] = []
    monkeypatch.setattr(traces._log, "warning", lambda name, **_: told.append(name))
    settings = Traces.model_validate({"url": collector.url})
    writer = trace_writer(settings, "logins", "abc")
    writer.write(new_trace(), TraceSpan("batch", 1, 3))
    logging.disable(logging.CRITICAL)
    try:
        writer.close()
    finally:
        logging.disable(logging.NOTSET)
    assert told == ["traces_not_taken"]


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the setting that needs it."""
    name = "opentelemetry.exporter.otlp.proto.http.trace_exporter"
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ConfigurationError, match=r"observability\.traces: .*spark-cep\[otel\]"):
        trace_writer(Traces.model_validate({"url": "http://c:4318/v1/traces"}), "logins", "abc")


def test_nothing_is_imported_unless_there_is_a_collector() -> None:
    """The module that writes traces does without OpenTelemetry until one is to be written."""
    code = (
        "import sys, spark_cep.observability.traces\n"
        "sys.exit(any(name.startswith('opentelemetry') for name in sys.modules))"
    )
    assert run([sys.executable, "-c", code], check=False).returncode == 0
