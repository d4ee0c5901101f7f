"""The job with the rights that docs/security.md lists, on a broker that grants nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from pyspark.sql import SparkSession

from examples.embedded import EmbeddedBroker
from spark_cep.config import Settings
from spark_cep.errors import ConfigurationError, RuleSetError, SparkCepError, StartError
from spark_cep.pipeline.driver.commands.kafka_checks import check_rights, check_transactions
from spark_cep.rules.overrides import Override, write_override
from spark_cep.rules.sources.configured import source_of
from tests.conftest import JARS
from tests.e2e.outputs import Outputs, found
from tests.e2e.scenario import Scenario
from tests.e2e.stream import Stream, at, sequence
from tests.kafka_access import KafkaAccess, Sent
from tests.rules.sources.test_folder import rule
from tests.rules.stores import KafkaStore, settings

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

USER, PASSWORD = "cep", "pw"
TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
TRANSACTION = ResourceType.TRANSACTIONAL_ID
LITERAL, PREFIX = ResourcePatternType.LITERAL, ResourcePatternType.PREFIXED
READ, WRITE, DESCRIBE = AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    """A broker where only who comes without login, as these tests do, may do everything."""
    settings = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    folder = tmp_path_factory.mktemp("rights")
    with EmbeddedBroker(folder, JARS, sasl=(USER, PASSWORD), settings=settings) as running:
        yield running


def _grant(
    admin: AdminClient,
    kind: ResourceType,
    name: str,
    *operations: AclOperation,
    pattern: ResourcePatternType = LITERAL,
) -> None:
    allow, principal = AclPermissionType.ALLOW, f"User:{USER}"
    bindings = [
        AclBinding(kind, name, pattern, principal, "*", operation, allow)
        for operation in operations
    ]
    for created in admin.create_acls(bindings).values():
        created.result(30)


def _kafka(broker: EmbeddedBroker) -> dict[str, Any]:
    security = {
        "protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "SCRAM-SHA-256",
        "username": USER,
        "password": PASSWORD,
    }
    return {"bootstrap_servers": broker.sasl_bootstrap, "security": security}


def test_the_listed_rights_are_enough_and_needed(
    broker: EmbeddedBroker, registry: str, spark: SparkSession, tmp_path: Path
) -> None:
    """With read rights alone the job cannot start; with the rest it runs to the end."""
    scenario = Scenario(KafkaAccess(broker.bootstrap), registry, spark, tmp_path / "job")
    scenario.rule(sequence("ab", "a", "followed_by b", within="1 minute"))
    stream = Stream(scenario)
    stream.send(("k", "a", 0), ("k", "b", 1), ("k", "x", 90))
    outputs = [scenario.topic(kind) for kind in Outputs.KINDS]
    prefix = scenario.topic("once")
    markers = f"{prefix}.commit-markers"
    scenario.kafka.create_topics(dict.fromkeys(outputs, 1))
    of_rules = {name: scenario.topic(name) for name in ("rule_status", "rule_audit")}
    overrides = scenario.topic("rule_overrides")
    compacted = (markers, of_rules["rule_status"], overrides)
    broker.create_topics(dict.fromkeys(compacted, 1), {"cleanup.policy": "compact"})
    scenario.kafka.create_topics({of_rules["rule_audit"]: 1})
    scenario.kafka.send(overrides, [Sent(b"{}", b"another")])
    sections: dict[str, Any] = {
        "kafka": _kafka(broker),
        "outputs": {
            "topics": dict(zip(Outputs.KINDS, outputs, strict=True)) | of_rules,
            "create_topics": {"enabled": False},
            "transactional_id_prefix": prefix,
        },
    }
    admin = broker.admin()
    _grant(admin, TOPIC, stream.topic, READ, DESCRIBE)
    _grant(admin, GROUP, "spark-cep", READ, DESCRIBE, pattern=PREFIX)
    with pytest.raises(SparkCepError, match=f"output topics .*{outputs[0]}.* do not exist"):
        scenario.run(**sections)
    _grant(admin, TOPIC, overrides, DESCRIBE)
    for topic in (*outputs, *of_rules.values()):
        _grant(admin, TOPIC, topic, WRITE, DESCRIBE)
    _grant(admin, TOPIC, markers, READ, WRITE, DESCRIBE)
    _grant(admin, GROUP, markers, READ, DESCRIBE)
    _grant(admin, TRANSACTION, f"{prefix}-", WRITE, DESCRIBE, pattern=PREFIX)
    with pytest.raises(RuleSetError, match=r"overrides cannot be read: .*(?i:authoriz)"):
        scenario.run(**sections)
    for topic in (overrides, of_rules["rule_status"]):
        _grant(admin, TOPIC, topic, READ, DESCRIBE)
    matches, _ = scenario.run(**sections).of("ab")
    assert matches == [found("ab", "k", at(1), a=0, b=1)]
    assert scenario.metric("spark_cep_offset_commits_total", result="failed") == 0
    assert (scenario.metric("spark_cep_offset_commits_total", result="done") or 0) >= 1

    # Without the right to a consumer group nothing but its offsets is missing.
    stream.send(("q", "a", 91), ("q", "b", 92), ("q", "x", 200))
    matches, _ = scenario.run(**sections, source={"consumer_group": "watched"}).of("ab")
    assert matches[1:] == [found("ab", "q", at(92), a=3, b=4)]
    assert (scenario.metric("spark_cep_offset_commits_total", result="failed") or 0) >= 1
    assert scenario.metric("spark_cep_offset_commits_total", result="done") == 0


def test_transactional_ids_by_prefix(broker: EmbeddedBroker) -> None:
    """The rights for exactly-once: ids with the prefix and the topic of commit markers, and no
    others."""
    admin = broker.admin()
    broker.create_topics({"once.commit-markers": 1})
    _grant(admin, TRANSACTION, "once-", WRITE, DESCRIBE, pattern=PREFIX)
    _grant(admin, TOPIC, "once.commit-markers", READ, WRITE, DESCRIBE)
    client = broker.sasl_client() | {"log_level": "0"}
    producer = Producer({**client, "transactional.id": "once-0"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce("once.commit-markers", b"1")
    producer.commit_transaction(30)
    stranger = Producer({**client, "transactional.id": "other-0"})
    with pytest.raises(KafkaException, match="TRANSACTIONAL_ID_AUTHORIZATION_FAILED"):
        stranger.init_transactions(30)


def test_rights_for_rules(broker: EmbeddedBroker) -> None:
    """Read and Describe on the topic, and nothing else; without, the source says so."""
    topic = "rules"
    store = KafkaStore(broker, topic)
    store.put("a", rule("a"))
    given = {"topic": topic, "timeout": "5 s"}
    job = settings(source="kafka", kafka=given, cluster=_kafka(broker))
    with closing(source_of(job)) as one:
        with pytest.raises(RuleSetError, match=r"the rules cannot be read: .*(?i:authoriz)"):
            one.read()
        _grant(broker.admin(), TOPIC, topic, READ, DESCRIBE)
        (file,) = one.read() or ()
    assert [each.rule.id for each in file.loaded] == ["a"]
    # Who reads rules, or what is decided about them, may not write either.
    with pytest.raises(ConfigurationError, match=r"topic rules: .* refused: .*(?i:authoriz)"):
        write_override(job.kafka, topic, "a", Override())


def test_doctor_names_the_rights_that_are_missing(broker: EmbeddedBroker) -> None:
    """Each with its topic, group or prefix, and nothing once they are granted."""
    admin, topic, group = broker.admin(), "doctor-input", "doctor-group"
    broker.create_topics({topic: 1, "cep.doctor": 1})
    job = Settings.model_validate(
        {
            "kafka": _kafka(broker),
            "inputs": {"i": {"topics": [topic]}},
            "source": {"consumer_group": group},
            "outputs": {
                "topics": {"matches": "cep.doctor"},
                "transactional_id_prefix": "examined",
                "create_topics": {"enabled": False},
            },
            "state": {"checkpoint": "/c"},
        }
    )
    existing = [topic, "cep.doctor"]
    with pytest.raises(StartError) as raised:
        check_rights(job, [topic], existing, 20)
    assert str(raised.value) == (
        "rights are missing: topic doctor-input: Read; topic cep.doctor: Write; consumer group"
        " examined.commit-markers: Read; consumer group doctor-group: Read; grant them"
        " (docs/security.md, Rights in Kafka)"
    )
    with pytest.raises(StartError, match="transactional ids with the prefix examined-"):
        check_transactions(job, 20)
    _grant(admin, TOPIC, topic, READ, DESCRIBE)
    _grant(admin, TOPIC, "cep.doctor", WRITE, DESCRIBE)
    for each in ("examined.commit-markers", group):
        _grant(admin, GROUP, each, READ, DESCRIBE)
    _grant(admin, TRANSACTION, "examined-", WRITE, DESCRIBE, pattern=PREFIX)
    assert check_rights(job, [topic], existing, 20) == "2 topics, 2 consumer groups"
    assert check_transactions(job, 20) == "ids with the prefix examined-"
