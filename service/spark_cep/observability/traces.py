"""Traces for a collector of OpenTelemetry: off unless the settings name one.

A trace is written when it is over, so the job waits for nobody: spans go out in a thread of their
own, 2,048 at most wait there, and those that the collector does not take are dropped. The id of a
trace can be known before, for exemplars.

OpenTelemetry is imported where a collector is named, and nowhere else.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Final

from spark_cep import __version__
from spark_cep.config.quantities import revealed
from spark_cep.errors import needs_extra
from spark_cep.observability.logs import logger

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
    from opentelemetry.trace import Tracer

    from spark_cep.config.traces import Traces

EXTRA: Final = "otel"
LAST_SPANS_SECONDS: Final = 2.0
"""How long the end of a run waits for the collector to take the last spans."""

_log = logger(__name__)

Value = str | int | float | bool


@dataclass(frozen=True, slots=True)
class TraceSpan:
    """A piece of work, from and to in nanoseconds since 1970; ``children`` are parts of it.
    ``failed``: it did not end as it should."""

    name: str
    start: int
    end: int
    attributes: Mapping[str, Value] = field(default_factory=dict)
    children: Sequence[TraceSpan] = ()
    failed: bool = False


def new_trace() -> str:
    """Return the id of a trace that is still to be written: 32 hexadecimal digits."""
    return secrets.token_hex(16)


class TraceWriter:
    """Writes traces of one run. ``service`` names the application, ``run`` is its id;
    ``processor`` makes what takes the spans, at the first one: processes that are forked before
    must not have its thread."""

    def __init__(self, processor: Callable[[], SpanProcessor], service: str, run: str) -> None:
        self._processor = processor
        self._resource = {
            "service.name": service,
            "service.version": __version__,
            "service.instance.id": run,
        }
        self._trace_id = 0
        self._provider: TracerProvider | None = None
        with needs_extra(EXTRA, "observability.traces"):
            import_module("opentelemetry.sdk.trace")

    def write(self, trace: str, root: TraceSpan) -> None:
        """Write a trace under its id. All are written by the same thread."""
        self._trace_id = int(trace, 16)
        if self._provider is None:
            self._provider = self._new_provider()
        self._write(self._provider.get_tracer("spark_cep", __version__), root)

    def close(self) -> None:
        """Send what waits, for two seconds at most."""
        if self._provider is not None:
            # With a collector that does not answer, each request takes its whole time.
            closing = threading.Thread(target=self._provider.shutdown, daemon=True)
            closing.start()
            closing.join(LAST_SPANS_SECONDS)

    def _new_provider(self) -> TracerProvider:
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
        from opentelemetry.sdk.trace.sampling import ALWAYS_ON

        ids = RandomIdGenerator()
        ids.generate_trace_id = lambda: self._trace_id  # type: ignore[method-assign]  # known before
        provider = TracerProvider(
            sampler=ALWAYS_ON,
            resource=Resource.create(self._resource),
            id_generator=ids,
            shutdown_on_exit=False,
        )
        provider.add_span_processor(self._processor())
        return provider

    def _write(self, tracer: Tracer, root: TraceSpan) -> None:
        from opentelemetry.context import Context
        from opentelemetry.trace import Status, StatusCode, set_span_in_context

        def write(span: TraceSpan, context: Context) -> None:
            written = tracer.start_span(
                span.name, context, attributes=span.attributes, start_time=span.start
            )
            for child in span.children:
                write(child, set_span_in_context(written, context))
            if span.failed:
                written.set_status(Status(StatusCode.ERROR))
            written.end(span.end)

        write(root, Context())


def trace_writer(traces: Traces, service: str, run: str) -> TraceWriter:
    """The writer that sends to the collector of the settings. ConfigurationError where the packages
    for it are not installed."""
    with needs_extra(EXTRA, "observability.traces"):
        import_module("opentelemetry.exporter.otlp.proto.http.trace_exporter")
    return TraceWriter(lambda: _sending(traces), service, run)


def _sending(traces: Traces) -> SpanProcessor:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult

    class Exporter(OTLPSpanExporter):
        """Says once that the collector takes no spans, and once that it does again."""

        failing = False

        def export(self, spans: Sequence[object]) -> SpanExportResult:
            result = super().export(spans)  # type: ignore[arg-type]  # as they came
            failing = result is not SpanExportResult.SUCCESS
            if failing and not self.failing:
                _log.warning("traces_not_taken", url=traces.url, spans=len(spans))
            elif self.failing and not failing:
                _log.info("traces_taken_again", url=traces.url)
            self.failing = failing
            return result

    exporter = Exporter(
        endpoint=traces.url,
        headers=revealed(traces.headers),
        certificate_file=None if traces.ssl_ca_file is None else str(traces.ssl_ca_file),
        timeout=traces.timeout / 1000,
    )
    return BatchSpanProcessor(exporter)
