"""``spark-cep dead-letters``: what it shows of a real topic, and of what it says that it cannot."""

from __future__ import annotations

import base64
import json
import uuid
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka import Producer
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from typer.testing import CliRunner, Result

from spark_cep.cli.exit_codes import ExitCode
from spark_cep.cli.job.tail_text import text_line
from spark_cep.cli.main import app
from spark_cep.codecs.output.avro_results import AvroResults
from spark_cep.codecs.output.outputs import OutputEncoder, OutputTopics
from spark_cep.codecs.output.schemas import schema_text
from spark_cep.codecs.registry.framing import frame
from spark_cep.config import Observability, load
from spark_cep.model import Coordinates, DeadLetter
from spark_cep.pipeline.driver.kafka import partition_reader
from spark_cep.pipeline.driver.kafka.cluster import BEGINNING
from spark_cep.watch.job_feeds import JobFeeds
from spark_cep.watch.job_watch import JobWatch
from spark_cep.watch.pages import pages_of
from tests.kafka_access import KafkaAccess, Sent

pytestmark = pytest.mark.kafka

RECORDS = 40
NOON = 1_769_860_800_000


class Letters:
    """A topic of dead letters in two partitions, as a job writes them, and what else there is."""

    def __init__(self, kafka: KafkaAccess, registry: str, folder: Path) -> None:
        self.topic = f"letters-{uuid.uuid4().hex[:8]}"
        client = SchemaRegistryClient({"url": registry})
        schema = Schema(schema_text("dead-letter"), "AVRO")
        schema_id = client.register_schema(f"{self.topic}-value", schema)
        other = Schema('{"type": "record", "name": "Other", "fields": []}', "AVRO")
        self.other_id = client.register_schema(f"{self.topic}-other", other)
        self.now = NOON
        topics = OutputTopics("m", "t", "l", self.topic, "s", "r")
        self._encoder = OutputEncoder(topics, AvroResults(0, 0, schema_id, 0), lambda: self.now)
        self.config = folder / "config.yaml"
        document: dict[str, Any] = {
            "kafka": {"bootstrap_servers": kafka.bootstrap},
            "inputs": {"logins": {"topics": ["logins"]}},
            "outputs": {"topics": {"dead_letters": self.topic}},
            "registry": {"url": registry, "max_attempts": 1},
            "state": {"checkpoint": str(folder / "checkpoint")},
        }
        self.config.write_text(yaml.safe_dump(document), "utf-8")

    def value(self, number: int, reason: str = "undecodable", **more: Any) -> bytes:
        """Of a record at this offset, a second after the one before."""
        self.now = NOON + number * 1000
        letter = DeadLetter(Coordinates("logins", 3, number), reason, "why", **more)
        return self._encoder.dead_letter(letter).value or b""

    def show(self, *options: str) -> Result:
        """The command."""
        return CliRunner().invoke(app, ["dead-letters", "--config", str(self.config), *options])

    def shown(self, *options: str) -> list[dict[str, Any]]:
        """What it shows as JSON."""
        done = self.show("--json", *options)
        assert done.exit_code == 0, done.output
        return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture(autouse=True)
def _short_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that partitions are read in several."""
    monkeypatch.setattr(partition_reader, "_FIRST_STRETCH", 4)


@pytest.fixture(scope="module")
def letters(kafka: KafkaAccess, registry: str, tmp_path_factory: pytest.TempPathFactory) -> Letters:
    """Forty of them, each in a transaction, in turns over two partitions; one more that was
    aborted, and a tenth for another reason and of a rule."""
    made = Letters(kafka, registry, tmp_path_factory.mktemp("letters"))
    kafka.create_topics({made.topic: 2})
    producer = Producer(kafka.config(**{"transactional.id": made.topic}))
    producer.init_transactions(30)
    for number in range(RECORDS + 1):
        if number % 10 == 7:
            value = made.value(number, "condition_failed", rule_id="a", step="s")
        else:
            value = made.value(number, record_key=b"u1", record_value=b"\x00\x1b[31mred" * 40)
        producer.begin_transaction()
        producer.produce(made.topic, value, b"u1", number % 2)
        if number == RECORDS:
            producer.abort_transaction(30)
        else:
            producer.commit_transaction(30)
    return made


def test_the_newest_over_all_partitions(letters: Letters) -> None:
    """As many as asked for, oldest first, and no more than there are; none of an aborted
    transaction."""
    assert [each["offset"] for each in letters.shown("--last", "5")] == [35, 36, 37, 38, 39]
    assert [each["offset"] for each in letters.shown()] == list(range(20, 40))
    assert [each["offset"] for each in letters.shown("--last", "1000")] == list(range(40))


def test_those_that_are_wanted(letters: Letters) -> None:
    """By reason, by rule, and both; none is said."""
    of_rule = [7, 17, 27, 37]
    reason = ("--reason", "condition_failed")
    assert [each["offset"] for each in letters.shown(*reason)] == of_rule
    assert [each["offset"] for each in letters.shown("--rule", "a", "-n", "2")] == of_rule[2:]
    assert letters.shown(*reason, "--rule", "b") == []
    assert (
        letters.show(*reason, "--rule", "b").stdout == f"{letters.topic} has no such dead letters\n"
    )


def test_as_text(letters: Letters) -> None:
    """Reason, coordinates, rule, and the first bytes, of which none can move the cursor."""
    done = letters.show("--last", "3")
    assert "\x1b" not in done.stdout
    lines = done.stdout.splitlines()
    assert lines[:5] == [
        "2026-01-31T12:00:37.000+00:00 condition_failed: logins, partition 3, offset 37",
        "  why",
        "  rule a, step s",
        "  key: none",
        "  value: none",
    ]
    assert lines[5] == "2026-01-31T12:00:38.000+00:00 undecodable: logins, partition 3, offset 38"
    assert lines[7] == "  key: b'u1'"
    assert lines[8].startswith(r"  value: b'\x00\x1b[31mred\x00")
    assert lines[8].endswith("... (360 bytes)")


def test_as_json(letters: Letters) -> None:
    """All fields of the schema, all bytes, and where the dead letter itself is."""
    (last,) = letters.shown("-n", "1")
    assert base64.b64decode(last.pop("record_value")) == b"\x00\x1b[31mred" * 40
    assert last == {
        "topic": "logins", "partition": 3, "offset": 39, "reason": "undecodable", "detail": "why",
        "rule_id": None, "step": None, "record_key": base64.b64encode(b"u1").decode(),
        "failed_at": "2026-01-31T12:00:39.000+00:00", "at": {"partition": 1, "offset": 38},
    }  # fmt: skip


def test_what_is_no_dead_letter(kafka: KafkaAccess, registry: str, tmp_path: Path) -> None:
    """Records of others are named, with the reason, and do not hide the dead letters."""
    letters = Letters(kafka, registry, tmp_path)
    kafka.create_topics({letters.topic: 1})
    good = letters.value(50)
    kafka.send(
        letters.topic,
        [
            Sent(b"text"), Sent(frame(letters.other_id, b"")), Sent(frame(999_999, b"")),
            Sent(None), Sent(good[:-4]), Sent(good),
        ],
    )  # fmt: skip
    done = letters.show("--last", "2")
    assert done.exit_code == 0
    assert "offset 50" in done.stdout
    warnings = done.stderr.splitlines()
    assert len(warnings) == 5
    for warning, why in zip(
        warnings,
        ["0x74, not with 0x00", "its schema is Other, not sparkcep.v1.DeadLetter", "999999",
         "the value is empty", "the body does not fit its schema"],
        strict=True,
    ):  # fmt: skip
        assert warning.startswith(f"warning: {letters.topic}, partition 0, offset ")
        assert why in warning


def test_tail_shows_them_too(letters: Letters) -> None:
    """From the beginning to the end as it is now, decoded; committed ones alone; by rule."""
    words = ["tail", "--config", str(letters.config), "--from", "beginning", "--no-follow"]
    done = CliRunner().invoke(app, [*words, "--json"])
    assert done.exit_code == 0, done.output
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert sorted(each["value"]["offset"] for each in found) == list(range(RECORDS))
    assert {(each["kind"], each["topic"], each["key"]) for each in found} == {
        ("dead_letter", letters.topic, "u1")
    }
    assert "waiting for topics that do not exist yet: cep.matches" in done.stderr
    by_rule = CliRunner().invoke(app, [*words, "--kind", "dead-letter", "--rule", "a", "-q"])
    assert by_rule.stderr == ""
    assert sorted(line.split(": ")[0].split()[-1] for line in by_rule.stdout.splitlines()) == [
        "17)", "27)", "37)", "7)",
    ]  # fmt: skip
    none = CliRunner().invoke(app, [*words, "--key", "u2"])
    assert (none.exit_code, none.stdout) == (0, "")
    late = CliRunner().invoke(app, [*words, "--kind", "late"])
    assert late.exit_code == ExitCode.CONFIGURATION
    assert "outputs.topics: none of cep.late exists" in late.stderr


def test_watch_reads_them_too(letters: Letters, tmp_path: Path) -> None:
    """As results from the beginning, and, where they are an input, the newest of each partition;
    those are read once."""
    document = yaml.safe_load(letters.config.read_text("utf-8"))
    document["inputs"]["logins"]["topics"] = [letters.topic]
    config = tmp_path / "config.yaml"
    watch, no_pages = JobWatch(), pages_of(Observability(), None)
    shown = partial(text_line, colour=False)
    with JobFeeds(load(letters.config), no_pages, watch, BEGINNING, shown).results() as read:
        while watch.results.since(0)[1] < RECORDS:
            read()
    lines, _ = watch.results.since(0)
    assert {each.kind for each in lines} == {"dead letter"}
    assert any("undecodable (partition 3, offset 8): why" in each.text for each in lines)
    # No job may read what it writes; another one may.
    document["outputs"]["topics"]["dead_letters"] = "of-another-job"
    config.write_text(yaml.safe_dump(document), "utf-8")
    with JobFeeds(load(config), no_pages, watch, BEGINNING, shown).records() as read:
        # The newest of either partition; a broker may take its time with one of them.
        for offset in (38, 39):
            newest = f"topic=logins partition=3 offset={offset} "
            while not any(newest in each.text for each in watch.records.since(0)[0]):
                read()
        lines, count = watch.records.since(0)
        assert count <= 20
        assert {each.text.split()[0] for each in lines if each.kind == "record"} == {letters.topic}
        read()
        assert watch.records.since(0)[1] == count


def test_no_such_topic(kafka: KafkaAccess, registry: str, tmp_path: Path) -> None:
    """It says so, with setting and brokers, and makes none."""
    nothing = Letters(kafka, registry, tmp_path)
    done = nothing.show()
    assert done.exit_code == ExitCode.CONFIGURATION
    assert f"outputs.topics.dead_letters: {nothing.topic} does not exist on" in done.stderr
    assert nothing.topic not in kafka.admin().list_topics(timeout=10).topics


def test_an_empty_topic(kafka: KafkaAccess, registry: str, tmp_path: Path) -> None:
    """There is nothing to show, which is no fault."""
    empty = Letters(kafka, registry, tmp_path)
    kafka.create_topics({empty.topic: 1})
    done = empty.show()
    assert (done.exit_code, done.stdout) == (0, f"{empty.topic} has no such dead letters\n")
