"""What settings cost in latency, in words."""

from __future__ import annotations

from spark_cep.config.settings import Settings
from spark_cep.durations import format_duration


def waits_of(settings: Settings) -> str | None:
    """What a match waits for because of settings; ``None`` where the job reads what is there and
    ends."""
    if settings.trigger.mode != "continuous":
        return None
    disorder, latency = settings.time.allowed_disorder, settings.trigger.latency
    waits = []
    if disorder:
        waits.append(f"for {format_duration(disorder)} of disorder (time.allowed_disorder)")
    if latency:
        waits.append(f"up to {format_duration(latency)} for their batch (trigger.latency)")
    return f"matches wait {' and '.join(waits)}" if waits else "matches wait for their batch alone"
