"""Settings of traces, and levels of the log by logger."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from spark_cep.config import Observability
from spark_cep.config.traces import Traces


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"url": "collector:4318"}, "http://collector:4318/v1/traces"),
        ({"url": "http://collector:4318"}, "a host and a path"),
        ({"url": "http://me:secret@collector:4318/v1/traces"}, "without credentials"),
        (
            {"url": "http://collector:4318/v1/traces", "headers": {"Authorization": "x"}},
            "headers would travel unprotected: use https://",
        ),
    ],
)
def test_what_is_wrong_of_traces(settings: dict[str, object], said: str) -> None:
    """With what is allowed; no secret is in the message."""
    with pytest.raises(ValidationError) as caught:
        Traces.model_validate(settings)
    assert said in str(caught.value)
    assert "secret" not in str(caught.value)


def test_headers_are_secret_and_protected() -> None:
    """By TLS, or on this machine."""
    for url in ("https://collector/v1/traces", "http://127.0.0.1:4318/v1/traces"):
        traces = Traces.model_validate({"url": url, "headers": {"X-Login": "hidden"}})
        assert "hidden" not in repr(traces)


def test_levels_are_those_of_loggers() -> None:
    """Modules, libraries, Java's classes; a level that there is."""
    levels = {"spark_cep.rules": "debug", "org.apache.spark.sql.Foo$Bar": "error"}
    assert Observability.model_validate({"log_levels": levels}).log_levels == levels
    for wrong in ({"": "info"}, {"a b": "info"}, {"spark_cep": "loud"}):
        with pytest.raises(ValidationError):
            Observability.model_validate({"log_levels": wrong})
