"""How a run ends that was told to, and why."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_cep.config import Settings
from spark_cep.errors import CircuitBreakerError, GraceError
from spark_cep.observability.health import LifePhase
from spark_cep.pipeline.driver.lifecycle.run import Run


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A run that stops when half of ten records became dead letters."""
    settings = Settings.model_validate(
        {
            "kafka": {"bootstrap_servers": "localhost:9092"},
            "inputs": {"t": {"topics": ["t"]}},
            "registry": {"url": "http://localhost"},
            "state": {"checkpoint": str(tmp_path / "checkpoint")},
            "circuit_breaker": {"max_share": 0.5, "min_records": 10},
        }
    )
    return Run(settings)


def test_a_stop_as_asked(run: Run) -> None:
    """Health tells of it, and nothing is wrong."""
    run.stop()
    assert run.stopping.requested.is_set()
    assert run.health.phase is LifePhase.STOPPING
    run.check_end()


def test_a_batch_that_was_given_up(run: Run) -> None:
    """The grace period ran out."""
    run.stopping.grace_ran_out = True
    with pytest.raises(GraceError, match=r"lifecycle\.stop_grace"):
        run.check_end()


def test_too_many_dead_letters(run: Run) -> None:
    """The error names the topic that has them, also where the batch was given up after that."""
    run.breaker.batch_done(10, 10, {"undecodable": 6}, {})
    run.stopping.grace_ran_out = True
    with pytest.raises(CircuitBreakerError, match=r"60\.00%.*see topic cep\.dead-letters"):
        run.check_end()
