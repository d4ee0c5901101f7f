"""The metrics of a running job, as scraped, and the offsets of its consumer group in Kafka."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from prometheus_client.parser import text_string_to_metric_families

from spark_cep.observability import metric_names as names
from spark_cep.observability.health import Health, HealthServer
from tests.e2e.outputs import found
from tests.e2e.scenario import Scenario
from tests.e2e.schemas import field, record
from tests.e2e.stream import EVENT, Stream, at, sequence
from tests.kafka_access import KafkaAccess, Sent
from tests.promtool import promtool

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

_SECONDS = 300.0
#: In another schema, so that the query has to be restarted in between.
(MORE,) = record("e2e.Event", more=field("int", default=0))["fields"]
NEWER = {**EVENT, "fields": [*EVENT["fields"], MORE]}


@dataclass
class Page:
    """One scrape."""

    text: str

    def value(self, name: str, **labels: str) -> float | None:
        """A sample's value."""
        for family in text_string_to_metric_families(self.text):
            for sample in family.samples:
                if sample.name == name and sample.labels == labels:
                    return sample.value
        return None

    def by(self, name: str, label: str) -> dict[str, float]:
        """Values of a metric, summed up by one label."""
        found: dict[str, float] = {}
        for family in text_string_to_metric_families(self.text):
            for sample in family.samples:
                if sample.name == name:
                    value = sample.labels[label]
                    found[value] = found.get(value, 0) + sample.value
        return found


@dataclass
class Job:
    """A job that has run, and what it showed."""

    topic: str
    group: str
    values: list[bytes]
    first: Page
    last: Page
    committed: dict[int, int]


def _committed(kafka: KafkaAccess, group: str, topic: str) -> dict[int, int]:
    asked = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, n) for n in range(2)])
    admin = kafka.admin()  # must outlive the future
    (future,) = admin.list_consumer_group_offsets([asked]).values()
    return {at.partition: at.offset for at in future.result(30).topic_partitions}


def _until(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + _SECONDS
    while not condition():
        assert time.monotonic() < deadline, "timed out"
        time.sleep(0.2)


@pytest.fixture(scope="module")
def job(new_scenario: Callable[[], Scenario], kafka: KafkaAccess) -> Job:
    """Two rules, one with a condition that calls Python; records of which one is no Avro; a schema
    that comes late."""
    scenario = new_scenario()
    stream = Stream(scenario, partitions=2)
    scenario.rule(sequence("compiled", "a", "followed_by b", after_match="skip_past_last_event"))
    scenario.rule(
        {
            **sequence("called", "a", "followed_by b"),
            "pattern": [
                {"step": "a", "where": "name = 'a'"},
                {
                    "step": "b",
                    "after": "followed_by",
                    "where": "name = 'b' AND UPPER(name) <> CONCAT(LAST(a.name), 'x')",
                },
            ],
        }
    )
    group = scenario.topic("watched")
    source = {"consumer_group": group}
    observability = {"metrics_port": 0, "log_level": "warning"}
    sent = [
        stream.event("k", "a", 0, timestamp=at(1)),
        stream.event("k", "a", 1, timestamp=at(2)),
        stream.event("k", "b", 2, timestamp=at(3)),
        Sent(b"no Avro", timestamp=at(3)),
        stream.event("end", "end", 1000, timestamp=at(1001)),
        stream.event("end", "end", 1000, timestamp=at(1001), partition=1),
    ]
    stream.send(*sent)
    health = Health(60_000)
    with scenario.running(source=source, observability=observability) as service:
        server = HealthServer("127.0.0.1", 0, health, scenario.metrics.registry, service.rules_page)
        server.start()

        def scrape() -> Page:
            page = httpx.get(f"http://127.0.0.1:{server.port}/metrics", trust_env=False, timeout=60)
            assert page.status_code == 200
            return Page(page.text)

        try:
            scenario.wait_for(lambda outputs: len(outputs.matches) == 3, _SECONDS)
            _until(lambda: scrape().value("spark_cep_state_rows"))
            first = scrape()
            newer = scenario.register("events", NEWER)
            late = {"ts": at(1500), "k": "k", "name": "b", "v": 1.0, "more": 1}
            sent.append(Sent(scenario.avro(newer, late), timestamp=at(1501)))
            scenario.send("events", sent[-1])
            scenario.wait_for_records(len(sent), _SECONDS)
            committed = {0: len(sent) - 1, 1: 1}
            _until(lambda: _committed(kafka, group, stream.topic) == committed)
            _until(lambda: scrape().value("spark_cep_offset_commits_total", result="done"))
            # Looked at every few seconds only.
            _until(lambda: "python_workers" in scrape().by("spark_cep_memory_bytes", "process"))
            last = scrape()
        finally:
            server.stop()
    values = [each.value for each in sent if each.value is not None]
    return Job(stream.topic, group, values, first, last, _committed(kafka, group, stream.topic))


def test_offsets_of_the_group_are_in_kafka(job: Job) -> None:
    """What tools that watch consumer groups see: the offsets behind the last committed batch."""
    assert job.committed == {0: 6, 1: 1}
    assert (job.last.value("spark_cep_offset_commits_total", result="failed") or 0) == 0


def test_input_is_counted_once_across_a_restart_of_the_query(job: Job) -> None:
    """The batch that met the new schema was begun twice, and counts once."""
    restarts = job.last.value("spark_cep_query_restarts_total", reason="new_schema")
    assert restarts == 1
    topic = {"topic": job.topic}
    assert job.last.value("spark_cep_records_consumed_total", **topic) == len(job.values)
    size = sum(len(value) for value in job.values)
    assert job.last.value("spark_cep_consumed_bytes_total", **topic) == size
    assert job.last.value("spark_cep_dead_letters_total", reason="not_framed") == 1


def test_lag_is_nothing_when_all_is_read(job: Job) -> None:
    """In records and in seconds, for each partition."""
    for partition in ("0", "1"):
        labels = {"topic": job.topic, "partition": partition}
        assert job.last.value("spark_cep_consumer_lag_records", **labels) == 0
        assert job.last.value("spark_cep_consumer_lag_seconds", **labels) == 0


@pytest.mark.parametrize("rule", ["compiled", "called"])
def test_counts_of_a_rule(job: Job, rule: str) -> None:
    """Rules count alike, whatever computes their conditions; the skip strategy of one gives up a
    match."""
    skips = rule == "compiled"
    expected = {
        # The last one waits for the watermark.
        "spark_cep_rule_events_total": 3,
        "spark_cep_partial_matches_started_total": 2,
        "spark_cep_matches_total": 1 if skips else 2,
        "spark_cep_partial_matches_pruned_total": 1 if skips else 0,
        "spark_cep_partial_matches": 0,
    }
    assert {name: job.last.value(name, rule=rule) for name in expected} == expected
    spent = job.last.value("spark_cep_rule_processing_seconds_total", rule=rule)
    assert spent is not None
    assert 0 < spent < 60


def test_output_by_kind_and_topic(job: Job) -> None:
    """Records and bytes; late events and timeouts there were none."""
    kinds = job.last.by("spark_cep_output_records_total", "kind")
    assert {kind: count for kind, count in kinds.items() if count} == {
        "match": 3,
        "dead_letter": 1,
    }
    sizes = job.last.by("spark_cep_output_bytes_total", "kind")
    assert sizes["match"] > 100
    assert job.last.by("spark_cep_output_records_total", "topic").keys() > {
        job.topic.replace("events", "matches")
    }


def test_latency_of_matches(job: Job) -> None:
    """Every match has one; here the events are of long ago, and so is their arrival."""
    for name in ("spark_cep_match_latency_seconds", "spark_cep_decision_latency_seconds"):
        assert job.last.value(f"{name}_count") == 3
    age = time.time() - at(2) / 1000
    assert job.last.value("spark_cep_match_latency_seconds_sum") == pytest.approx(3 * age, rel=0.05)


def test_profile_of_batches(job: Job) -> None:
    """Every phase and stage has been observed; the phases once a batch that Spark has committed."""
    stages = job.last.by("spark_cep_stage_duration_seconds_count", "stage")
    assert stages.keys() == set(names.STAGES)
    assert min(stages.values()) >= 2
    phases = job.last.by("spark_cep_batch_phase_duration_seconds_count", "phase")
    assert phases.keys() == set(names.PHASES)
    assert len(set(phases.values())) == 1
    rocksdb = job.last.by("spark_cep_rocksdb_duration_seconds_count", "phase")
    assert rocksdb.keys() == set(names.ROCKSDB_PHASES)


def test_memory_of_all_processes(job: Job) -> None:
    """Driver and workers; with a local master there are no executors beside it."""
    used = job.last.by("spark_cep_memory_bytes", "process")
    assert used.keys() == {"driver_python", "driver_jvm", "python_workers"}
    assert min(used.values()) > 20 * 2**20
    heap = job.last.by("spark_cep_jvm_heap_bytes", "area")
    assert 0 < heap["used"] <= heap["max"]


def test_counters_only_go_up(job: Job) -> None:
    """From one scrape to the next, with a restart of the query in between."""
    last = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(job.last.text)
        for sample in family.samples
        if family.type == "counter"
    }
    for family in text_string_to_metric_families(job.first.text):
        for sample in family.samples:
            if family.type == "counter":
                assert last[sample.name, *sorted(sample.labels.items())] >= sample.value


def test_nothing_is_shown_that_is_not_in_the_list(job: Job) -> None:
    """The page holds the documented metrics, with those of the process, and no others."""
    known = {metric.name.removesuffix("_total") for metric in names.METRICS}
    shown = {family.name for family in text_string_to_metric_families(job.last.text)}
    assert {name for name in shown - known if not name.startswith("process_")} == set()
    assert known <= shown


def test_promtool_has_no_complaint(job: Job) -> None:
    """Names, types, units and help as Prometheus wants them."""
    assert promtool("check", "metrics", given=job.last.text) == ""


def test_matches_are_what_they_should_be(new_scenario: Callable[[], Scenario]) -> None:
    """Without offsets in Kafka the job is the same, and no group appears."""
    scenario = new_scenario()
    stream = Stream(scenario)
    scenario.rule(sequence("ab", "a", "followed_by b"))
    stream.send(("k", "a", 0), ("k", "b", 1), ("k", "end", 90))
    group = scenario.topic("never")
    source = {"commit_offsets": False, "consumer_group": group}
    matches, _ = scenario.run(source=source).of("ab")
    assert matches == [found("ab", "k", at(1), a=0, b=1)]
    admin = scenario.kafka.admin()
    groups = admin.list_consumer_groups().result(30)
    assert group not in {each.group_id for each in groups.valid}
