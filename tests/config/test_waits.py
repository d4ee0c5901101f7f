"""What settings cost in latency, in words."""

from __future__ import annotations

from typing import Any

from spark_cep.config import Settings, waits_of


def settings(**sections: Any) -> Settings:
    """Those that a job must have, and ``sections``."""
    return Settings.model_validate(
        {
            "kafka": {"bootstrap_servers": "localhost:9092"},
            "inputs": {"t": {"topics": ["t"]}},
            "registry": {"url": "http://localhost"},
            "state": {"checkpoint": "/checkpoint"},
            "rules": {"folder": "/rules"},
            **sections,
        }
    )


def test_what_a_match_waits_for() -> None:
    """The settings by name, with their values."""
    given = settings(time={"allowed_disorder": "5 seconds"}, trigger={"latency": "1 minute"})
    assert waits_of(given) == (
        "matches wait for 5 seconds of disorder (time.allowed_disorder), and for their batch up to"
        " 1 minute (trigger.latency), or as long as two batches take"
    )


def test_a_job_that_ends_waits_for_nothing() -> None:
    """What is there is there."""
    assert waits_of(settings(trigger={"mode": "available_now"})) is None
