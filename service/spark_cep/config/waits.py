"""The latency that settings cost, in words."""

from __future__ import annotations

from spark_cep.config.settings import Settings
from spark_cep.durations import format_duration


def waits_of(settings: Settings) -> str | None:
    """Say what a match waits for because of settings; ``None`` where the job reads what is there
    and ends."""
    if settings.trigger.mode != "continuous":
        return None
    disorder = format_duration(settings.time.allowed_disorder)
    latency = format_duration(settings.trigger.latency)
    return (
        f"matches wait for {disorder} of disorder (time.allowed_disorder), and for their batch up"
        f" to {latency} (trigger.latency), or as long as two batches take"
    )
