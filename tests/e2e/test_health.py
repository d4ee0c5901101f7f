"""The pages of a running job, read by an HTTP client: ready, stuck, going on, stopping."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from spark_cep.observability.health import HealthServer
from spark_cep.pipeline.driver.supervisor import Supervisor
from tests.e2e.scenario import Scenario
from tests.e2e.stream import Stream, sequence

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

_SECONDS = 240.0


def _until(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + _SECONDS
    while not condition():
        assert time.monotonic() < deadline, "timed out"
        time.sleep(0.1)


def test_a_stuck_batch_fails_liveness_until_it_goes_on(
    scenario: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not ready at first, then ready, without input too. A batch that does not end makes /livez
    fail after the limit, and the metrics say so; when it goes on, all is well. When told to stop
    the job is not ready, and alive."""
    stream = Stream(scenario)
    scenario.rule(sequence("ab", "a", "followed_by b"))
    scenario.rule({**sequence("off", "a", "followed_by b"), "enabled": False})
    go_on = threading.Event()
    go_on.set()
    before = Supervisor._before_batch

    def held(supervisor: Supervisor, batch: int) -> int | None:
        late_until = before(supervisor, batch)
        assert go_on.wait(_SECONDS)
        return late_until

    monkeypatch.setattr(Supervisor, "_before_batch", held)
    observability = {"stall_limit": "2 seconds", "metrics_port": 0, "log_level": "warning"}
    with scenario.running(observability=observability) as service:
        registry = scenario.metrics.registry
        server = HealthServer("127.0.0.1", 0, service._run.health, registry, service.rules_page)
        server.start()
        url = f"http://127.0.0.1:{server.port}"
        with httpx.Client(base_url=url, trust_env=False, timeout=10) as client:
            try:
                assert client.get("/readyz").status_code == 503
                assert client.get("/livez").json() == {"ok": True, "reason": "starting"}
                _until(lambda: client.get("/readyz").status_code == 200)
                assert scenario.metric("spark_cep_ready") == 1

                # No batch comes, and that is no fault.
                time.sleep(3)
                # A slow machine may still commit the batch of the start.
                _until(lambda: client.get("/livez").status_code == 200)

                go_on.clear()
                stream.send(("k", "a", 0))
                _until(lambda: client.get("/livez").status_code == 503)
                told = client.get("/livez").json()["reason"]
                assert told.startswith("no progress for ")
                assert told.endswith("the limit is 2 s")
                _until(lambda: (scenario.metric("spark_cep_batch_running_seconds") or 0) > 2)

                go_on.set()
                stream.send(("k", "a", 1), ("k", "x", 9))
                scenario.wait_for_records(3, _SECONDS)
                _until(lambda: client.get("/livez").status_code == 200)
                _until(lambda: scenario.metric("spark_cep_batch_running_seconds") == 0)

                page = client.get("/rules").json()
                ab, off = page["rules"]
                assert (page["time"]["watermark"] is None, page["time"]["ahead_seconds"]) == (
                    False, 0
                )  # fmt: skip
                assert len(ab.pop("fingerprint")) >= 8
                assert ab == {
                    "id": "ab",
                    "version": 1,
                    "state": "active",
                    "since_batch": 0,
                    "since_offsets": {},
                    "begins": None,
                    "reason": None,
                    "partial_matches": 2,
                }
                assert (off["id"], off["state"]) == ("off", "disabled")

                service.stop()
                answer = client.get("/readyz")
                assert (answer.status_code, answer.json()["reason"]) == (503, "stopping")
                assert client.get("/livez").status_code == 200
                assert scenario.metric("spark_cep_ready") == 0
            finally:
                go_on.set()
                server.stop()
