"""The whole job on a listener that demands a login: source, sink and administration."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from examples.embedded import EmbeddedBroker
from service.errors import ConfigurationError
from tests.conftest import JARS
from tests.e2e.outputs import found
from tests.e2e.scenario import Scenario
from tests.e2e.stream import Stream, at, sequence
from tests.kafka_access import KafkaAccess

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

USER, PASSWORD = "cep", "p'a\"s\\s; word$"


def test_the_job_logs_in(registry: str, spark: SparkSession, tmp_path: Path) -> None:
    """With SCRAM everything works, whatever is in the password; with a
    wrong one the job says at once, without waiting, that the login is refused."""
    with EmbeddedBroker(tmp_path / "broker", JARS, sasl=(USER, PASSWORD)) as broker:
        scenario = Scenario(KafkaAccess(broker.bootstrap), registry, spark, tmp_path / "job")
        scenario.rule(sequence("ab", "a", "followed_by b", within="1 minute"))
        stream = Stream(scenario)
        stream.send(("k", "a", 0), ("k", "b", 1), ("k", "x", 90))
        security = {
            "protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "SCRAM-SHA-256",
            "username": USER,
            "password": PASSWORD,
        }
        kafka = {"bootstrap_servers": broker.sasl_bootstrap, "security": security}
        matches, _ = scenario.run(kafka=kafka).of("ab")
        assert matches == [found("ab", "k", at(1), a=0, b=1)]
        wrong = {**kafka, "security": {**security, "password": "wrong"}}
        refusal = rf"{broker.sasl_bootstrap}\) refuses the connection: .*[Aa]uthentication"
        with pytest.raises(ConfigurationError, match=refusal) as refused:
            scenario.run(kafka=wrong)
        assert "wrong" not in str(refused.value)
