"""The option and the output of ``spark-cep reset-clock``."""

from __future__ import annotations

import datetime as dt

from spark_cep.errors import ConfigurationError
from spark_cep.pipeline.driver.commands.reset_clock import SetBack
from spark_cep.pipeline.driver.observe.event_time import event_time_text

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def moment(text: str) -> int:
    """A date and time as milliseconds since 1970. ConfigurationError when it is none, or has no
    zone."""
    try:
        time = dt.datetime.fromisoformat(text)
    except ValueError:
        time = None
    if time is None or time.tzinfo is None:
        raise ConfigurationError(
            f"--to {text}: must be a date and time with its zone, such as 2026-01-31T12:00:00Z"
        )
    return (time - _EPOCH) // dt.timedelta(milliseconds=1)


def text(checkpoint: str, done: SetBack) -> str:
    """The result for people."""
    watermark = event_time_text(done.watermark) or "not known"
    if done.to is None:
        return f"{checkpoint}: the watermark, {watermark}, is not ahead; nothing to do"
    again = "" if done.written else ", as said before"
    return (
        f"{checkpoint}: the next start sets the watermark back from {watermark} to"
        f" {event_time_text(done.to)}{again}"
    )
