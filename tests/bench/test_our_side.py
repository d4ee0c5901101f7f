"""Our side of the benchmark on a broker: it runs, its clock, and what it wrote."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, Producer

from bench.cliff_kinds import KINDS, Kind
from bench.cliffs import Workload, cliffs
from bench.comparison import in_turn, profile, ratio
from bench.contenders import Course, ceiling, counting, job
from bench.events import logins
from bench.kafka_log import read_log
from bench.outputs import committed_messages
from bench.rules import write_rules
from bench.testbed import TestBed, all_cores
from tests.conftest import JARS

pytestmark = [pytest.mark.kafka, pytest.mark.spark]
EVENTS = 3_000


@pytest.fixture(scope="module")
def bed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestBed]:
    """Broker and registry, on two cores."""
    folder = tmp_path_factory.mktemp("bench")
    with TestBed(folder / "bed", JARS, all_cores()[:2], lambda _: None) as made:
        yield made


def test_job_and_spark_alone_take_turns_on_one_topic(bed: TestBed) -> None:
    """Job and ceiling read all of it, twice, and Spark counts as many rows.

    The job's outputs can be read back, are there once and are the same each time; stages of the
    service and of Spark have been timed.
    """
    said: list[str] = []
    rules = write_rules(bed.folder / "rules", "open", 60_000)
    topic = bed.filled("logins", logins(EVENTS), EVENTS)
    course = Course(topic, topic, "open", rules, batch=EVENTS // 2)
    with bed.our_side() as side:
        state = {"state": {"state_partitions": 3}}
        contenders = [
            job(bed, side, course),
            ceiling(bed, side, course),
            counting(bed, side, course, "counting", state),
            counting(bed, side, course, "counting in Python", state, in_python=True),
        ]
        results = in_turn(contenders, 2, said.append)
    assert topic.records == EVENTS + 4
    for run in results.pop("counting") + results.pop("counting in Python"):
        assert [batch["rows"] for batch in run.answer["batches"]] == [run.events // 2] * 2
        assert run.events >= topic.records
    for runs in results.values():
        assert all(run.events == topic.records and run.seconds > 0 for run in runs)
    for run in results["ours"]:
        assert run.found is not None
        assert len(run.found.matches) == run.answer["matches"] > 0
        assert len(run.found.timeouts) == run.answer["timeouts"] > 0
        assert [batch["rows"] > EVENTS // 3 for batch in run.answer["batches"]][:2] == [True] * 2
    stages = {"pack", "state_read", "match", "encode", "state_write", "sink", "addBatch"}
    assert stages <= profile(results["ours"]).keys()
    assert ratio("share", results, "ours", "Spark alone").ratio > 0


def test_the_broker_tells_when_records_are_visible(bed: TestBed) -> None:
    """When their transaction has ended, by the same clock as their append, which they have, too."""
    bed.broker.create_topics({"in-a-transaction": 1})
    data = bed.broker.folder / "data"
    client = {"bootstrap.servers": bed.broker.bootstrap, "transactional.id": "t", "log_level": 0}
    producer = Producer(client)
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce("in-a-transaction", b"value", partition=0)
    producer.flush()
    open_log = read_log(data, "in-a-transaction", 0)
    assert (open_log.end, open_log.visible_end) == (1, 0)
    committing = time.time() * 1000
    producer.commit_transaction()
    # Waits for the marker, which the broker may write after its answer.
    Producer(client).init_transactions()
    (message,) = committed_messages(bed.broker.bootstrap, "in-a-transaction")
    received = time.time() * 1000
    log = read_log(data, "in-a-transaction", 0)
    assert (log.end, log.visible_end) == (2, 2)
    first = np.array([0])
    appended, visible = int(log.appended_ms(first)[0]), int(log.visible_ms(first)[0])
    assert message.timestamp() == (TIMESTAMP_LOG_APPEND_TIME, appended)
    assert appended <= committing < visible + 1
    assert visible <= received


def test_kinds_of_condition_are_measured_on_one_session(bed: TestBed) -> None:
    """Next to the plain rule, with the same outputs; records of two types come from a topic of
    their own; a rule that the service refuses is told, and the next one runs."""
    refused = Kind("random", "RAND() < 0.5", "is_high")
    measured = [KINDS["several record types"], KINDS["measure, SUM of DECIMAL"]]
    # Whatever the ratio over so few events, it is not measured again.
    kinds = [refused, *(replace(kind, aim=0.0) for kind in measured)]
    found = cliffs(bed, events=EVENTS, runs=1, kinds=kinds, workloads=[Workload.PAYMENTS])
    none, *rows = found["cliffs"]
    assert "RAND" in none["refused"]
    assert len(rows) == len(measured)
    for row in rows:
        assert "differs" not in row
        assert row["ratio"] > 0
        assert row["timeouts"] > 0
