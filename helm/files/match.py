"""Prove a match from end to end: ``match.py CONFIG PREFIX SECONDS``.

A small job of its own runs here, with the Kafka of CONFIG and nothing else of it: topics whose
names begin with PREFIX, a rule, a checkpoint in a folder for temporary files. Two events are
written, and their match is read back as committed. The topics are deleted at the end, and those of
a test that was killed when the next one begins. Topics, rules and checkpoint of the release are not
touched. Exit code 1 when there is no match, or a topic cannot be deleted.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path

import yaml
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from spark_cep.config import Settings, load

KINDS = ("matches", "timeouts", "match_rows", "late", "dead_letters", "shadow")
SCHEMA = {
    "type": "record",
    "name": "Event",
    "fields": [
        {"name": "user", "type": "string"},
        {"name": "kind", "type": "string"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ],
}
RULE = {
    "id": "helm-test",
    "key": "user",
    "pattern": [
        {"step": "first", "where": "kind = 'first'"},
        {"step": "second", "after": "followed_by", "where": "kind = 'second'"},
    ],
    "within": "1 minute",
}
ASK_SECONDS = 30


def document(config: Path, prefix: str, folder: Path) -> dict[str, object]:
    """The settings of the test's job."""
    given = yaml.safe_load(config.read_text("utf-8"))
    create = {"partitions": 1}
    replication = ((given.get("outputs") or {}).get("create_topics") or {}).get("replication")
    if replication is not None:
        create["replication"] = replication
    topics: dict[str, object] = {kind: f"{prefix}.{kind}" for kind in KINDS}
    return {
        "kafka": given["kafka"],
        "inputs": {
            "events": {
                "topics": [f"{prefix}.events"],
                "format": "json",
                "reader_schema": {"file": str(folder / "event.avsc")},
                "event_time": "at",
            }
        },
        "outputs": {
            "format": "json",
            "topics": {**topics, "rule_status": None, "rule_audit": None},
            "create_topics": create,
            "transactional_id_prefix": prefix,
        },
        "source": {"commit_offsets": False, "starting_offsets": "earliest"},
        "state": {
            "checkpoint": str(folder / "checkpoint"),
            "state_partitions": 1,
            "rocksdb_memory": "64 MiB",
        },
        "spark": {
            "app_name": prefix,
            "master": "local[1]",
            "conf": {
                "spark.driver.memory": "512m",
                "spark.driver.host": "127.0.0.1",
                "spark.driver.bindAddress": "127.0.0.1",
            },
        },
        "trigger": {"mode": "available_now", "at_end_of_input": "decide"},
        "lifecycle": {"startup_limit": "1 minute", "outage_limit": "1 minute"},
        "rules": {"folder": str(folder / "rules"), "overrides_topic": None},
        "observability": {"metrics_port": 0},
    }


def environment() -> dict[str, str]:
    """The variables of this process without those that would change other settings."""
    ours = ("SPARK_CEP__KAFKA__", "SPARK_CEP__SPARK__CLASSES_FOLDER")
    return {
        name: value
        for name, value in os.environ.items()
        if not name.upper().startswith("SPARK_CEP__") or name.upper().startswith(ours)
    }


def send_events(settings: Settings, admin: AdminClient, topic: str, replication: int) -> None:
    """Make the topic of the events, and write two."""
    new = NewTopic(topic, num_partitions=1, replication_factor=replication)
    admin.create_topics([new], request_timeout=ASK_SECONDS)[topic].result()
    producer = Producer({**settings.kafka.producer_config(), "message.timeout.ms": 30_000})
    failed: list[object] = []

    def delivered(error: object, _record: object) -> None:
        if error is not None:
            failed.append(error)

    now = round(time.time() * 1000)
    for number, kind in enumerate(("first", "second")):
        value = json.dumps({"user": "helm", "kind": kind, "at": now + number})
        producer.produce(topic, value.encode(), on_delivery=delivered)
    left = producer.flush(ASK_SECONDS)
    if failed or left:
        raise RuntimeError(f"{topic} did not take the events: {failed or 'no answer'}")


def read_match(settings: Settings, topic: str, seconds: float) -> dict[str, object] | None:
    """The first match that is committed, if it comes in time."""
    consumer = Consumer(settings.kafka.consumer_config(topic))
    try:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            record = consumer.poll(1)
            if record is not None and record.error() is None:
                return dict(json.loads(record.value() or b"{}"))
    finally:
        consumer.close()
    return None


def delete_topics(admin: AdminClient, prefix: str) -> list[str]:
    """Delete all topics that begin so. Those that could not be deleted, and why."""
    topics = [
        name for name in admin.list_topics(timeout=ASK_SECONDS).topics if name.startswith(prefix)
    ]
    failed = []
    for name, done in (
        admin.delete_topics(topics, request_timeout=ASK_SECONDS) if topics else {}
    ).items():
        try:
            done.result()
        except KafkaException as error:
            failed.append(f"{name}: {error}")
    return failed


def main(config: Path, name: str, seconds: float) -> int:
    """Whether there was a match, and nothing is left of the test, as an exit code."""
    end = time.monotonic() + seconds
    prefix = f"{name}-helm-test-"
    own = f"{prefix}{uuid.uuid4().hex[:8]}"
    folder = Path(tempfile.mkdtemp())
    (folder / "rules").mkdir()
    (folder / "rules" / "rule.yaml").write_text(yaml.safe_dump(RULE), "utf-8")
    (folder / "event.avsc").write_text(json.dumps(SCHEMA), "utf-8")
    file = folder / "config.yaml"
    file.write_text(yaml.safe_dump(document(config, own, folder)), "utf-8")
    settings = load(file, environment())
    admin = AdminClient(settings.kafka.admin_config())
    delete_topics(admin, prefix)
    left = match = None
    try:
        replication = settings.outputs.create_topics.replication
        send_events(settings, admin, f"{own}.events", replication)
        command = [sys.executable, "-m", "spark_cep.cli.main", "run", "--config", str(file)]
        job = subprocess.run(
            command, env=environment(), capture_output=True, text=True, check=False,
            timeout=max(1.0, end - time.monotonic()),
        )  # fmt: skip
        print(job.stdout[-20_000:], job.stderr[-5_000:], sep="")
        if job.returncode:
            print(f"the job ended with exit code {job.returncode}", file=sys.stderr)
            return 1
        match = read_match(settings, f"{own}.matches", max(10.0, end - time.monotonic()))
    except subprocess.TimeoutExpired as late:
        print(f"no end within {seconds:.0f} s: {str(late.stdout)[-20_000:]}", file=sys.stderr)
        return 1
    finally:
        left = delete_topics(admin, prefix)
        for each in left:
            print(f"not deleted: {each}", file=sys.stderr)
    if match is None or match.get("rule_id") != RULE["id"] or match.get("key") != "helm":
        print(f"no match was committed; found {match}", file=sys.stderr)
        return 1
    print(f"matched: {match['match_id']}, committed to {own}.matches")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2], float(sys.argv[3])))
