"""The script by which ``helm test`` proves a match, on a real broker."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

from tests.chart.files import CHART
from tests.kafka_access import KafkaAccess

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

SCRIPT = CHART / "files" / "match.py"


def topics(kafka: KafkaAccess) -> set[str]:
    """The names of all topics but Kafka's own."""
    found = kafka.admin().list_topics(timeout=10).topics
    return {name for name in found if not name.startswith("__")}


def test_a_job_of_its_own_finds_a_match(kafka: KafkaAccess, tmp_path: Path) -> None:
    """Nothing is left of it, nor of a test that was killed before; topics of the release are not
    made, even if variables of its pod name them."""
    config = tmp_path / "config.yaml"
    document = {
        "kafka": {"bootstrap_servers": kafka.bootstrap},
        "inputs": {"logins": {"topics": ["helm-logins"]}},
        "outputs": {"create_topics": {"replication": 1}},
        "registry": {"url": "http://registry.invalid:8081"},
        "state": {"checkpoint": str(tmp_path / "of-the-release")},
    }
    config.write_text(yaml.safe_dump(document), "utf-8")
    before = topics(kafka)
    kafka.create_topics({"fraud-helm-test-0123abcd.events": 1})
    variables = {
        "SPARK_CEP__OUTPUTS__TOPICS__MATCHES": "helm-matches-of-the-release",
    }
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.read_text("utf-8"), str(config), "fraud", "200"],
        env={**os.environ, **variables}, capture_output=True, text=True, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "matched: " in done.stdout
    deadline = time.monotonic() + 30
    # The controller has deleted them; the broker may not know yet.
    while left := topics(kafka) - before:
        assert time.monotonic() < deadline, left
        time.sleep(0.05)
    assert not (tmp_path / "of-the-release").exists()
