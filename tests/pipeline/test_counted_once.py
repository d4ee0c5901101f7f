"""Counts of batches on the driver, whatever becomes of the query in between."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from service.config import Settings
from service.observability.metrics import Metrics
from service.packing import pack
from service.pipeline.service import Service

REPORT = pack(
    {
        "group": 0,
        "counts": [["records", "t", "0", 7], ["rule", "matched", "abc", 2]],
        "live": {"abc": 4},
        "match_times": [[1_000, 2]],
        "clock": None,
    }
)


@pytest.fixture
def metrics() -> Metrics:
    """Metrics of their own."""
    return Metrics()


@pytest.fixture
def service(metrics: Metrics, tmp_path: Path) -> Service:
    """A service that does not run."""
    settings = Settings.model_validate(
        {
            "kafka": {"bootstrap_servers": "localhost:9092"},
            "inputs": {"t": {"topics": ["t"]}},
            "registry": {"url": "http://localhost"},
            "state": {"checkpoint": str(tmp_path / "checkpoint")},
            "rules": {"folder": str(tmp_path / "rules")},
        }
    )
    return Service(settings, metrics)


def _value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(name, labels)


def _run(service: Service, batch: int) -> None:
    service._before_batch(batch)
    service._after_batch(batch, [REPORT])


def test_a_batch_that_comes_again_is_counted_once(service: Service, metrics: Metrics) -> None:
    """Its output was committed, then the query failed and was started anew; the next one counts."""
    _run(service, 3)
    _run(service, 3)
    assert _value(metrics, "spark_cep_records_consumed_total", topic="t") == 7
    assert _value(metrics, "spark_cep_matches_total", rule="abc") == 2
    assert _value(metrics, "spark_cep_match_latency_seconds_count") == 2
    assert _value(metrics, "spark_cep_batches_total", result="done") == 1
    assert _value(metrics, "spark_cep_partial_matches", rule="abc") == 4
    _run(service, 4)
    assert _value(metrics, "spark_cep_records_consumed_total", topic="t") == 14


def test_a_batch_that_fails_is_not_counted(service: Service, metrics: Metrics) -> None:
    """It has no reports; run again, it has."""
    service._before_batch(3)
    assert (_value(metrics, "spark_cep_batch_running_seconds") or 0) > 0
    _run(service, 3)
    assert _value(metrics, "spark_cep_batches_total", result="done") == 1
    assert _value(metrics, "spark_cep_batch_running_seconds") == 0


def _progress(batch: int, **durations: int) -> dict[str, Any]:
    operators = [{"numRowsTotal": 1, "numRowsUpdated": 1, "memoryUsedBytes": 1}]
    return {
        "batchId": batch,
        "durationMs": durations,
        "stateOperators": operators,
        "sources": [
            {
                "description": "KafkaV2[Subscribe[t]]",
                "endOffset": {"t": {"0": batch}},
                "latestOffset": {"t": {"0": batch}},
            }
        ],
    }


def test_progress_of_every_batch_is_taken_once(
    service: Service, metrics: Metrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trigger that found nothing has the number of the batch to come, and does not hide it;
    batches between two looks are not missed."""
    told: list[dict[tuple[str, int], int]] = []
    service._position = SimpleNamespace(read=told.append)  # type: ignore[assignment]
    monkeypatch.setattr(service, "_look_at_memory", lambda: None)
    idle = {"latestOffset": 5, "triggerExecution": 5}
    done = {"addBatch": 100, "triggerExecution": 110}
    recent: list[dict[str, Any]] = []
    query: Any = SimpleNamespace(
        status={"isDataAvailable": True, "isTriggerActive": True, "message": "Processing"},
        lastProgress=None,
        recentProgress=recent,
    )

    def look(*progress: dict[str, Any]) -> None:
        for each in progress:
            recent.append(each)
            query.lastProgress = each
        service._look_at(query)
        service._look_at(query)

    look(_progress(0, **done))
    look(_progress(1, **idle))
    look(_progress(1, **done))
    look(_progress(2, **done), _progress(3, **done), _progress(4, **idle))
    assert _value(metrics, "spark_cep_state_rows_updated_total") == 4
    assert [offsets["t", 0] for offsets in told] == [0, 1, 2, 3]
