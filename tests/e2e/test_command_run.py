"""``spark-cep run`` as a process: killed in the middle, started again, watched, asked to stop."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from examples.embedded.process import free_ports
from spark_cep.observability.start_clock import Phase
from tests.docs.logs_page import events
from tests.e2e.command import Command, running
from tests.e2e.outputs import found
from tests.e2e.scenario import Scenario
from tests.e2e.stream import Stream, at, sequence
from tests.kafka_access import KafkaAccess

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

#: A key, which no line of the log may show.
SECRETIVE = "key-of-somebody"
BEFORE = [
    ("k", "a", 0),
    ("k", "b", 1),
    ("k", "x", 2),
    ("k", "a", 3),
    (SECRETIVE, "a", 4),
    ("k", "x", 5),
]
AFTER = [("k", "b", 6), ("k", "c", 7), ("k", "x", 300), ("k", "x", 301)]


@pytest.fixture(scope="module")
def scenario(
    kafka: KafkaAccess, registry: str, tmp_path_factory: pytest.TempPathFactory
) -> Scenario:
    """Rules that have a match before the kill, and partial matches that span it."""
    scenario = Scenario(kafka, registry, None, tmp_path_factory.mktemp("command"))
    scenario.rule(sequence("ab", "a", "followed_by b"))
    scenario.rule(sequence("abc", "a", "followed_by b", "followed_by c", within="1 minute"))
    return scenario


@pytest.fixture(scope="module")
def restarted(scenario: Scenario) -> Iterator[Command]:
    """The command after a kill -9 that hit it while it worked on the stream."""
    stream = Stream(scenario)
    document = scenario.document(
        trigger={"mode": "continuous", "latency": "100 ms"},
        source={"max_offsets_per_trigger": 2},
        spark={
            "master": "local[2]",
            "conf": {
                "spark.driver.memory": "1g",
                "spark.local.dir": str(scenario.folder / "scratch"),
                "spark.sql.warehouse.dir": str(scenario.folder / "warehouse"),
            },
        },
        observability={
            "metrics_host": "127.0.0.1",
            "metrics_port": free_ports(1)[0],
            "log_level": "info",
            "log_format": "json",
        },
    )
    stream.send(*BEFORE)
    with running(scenario.folder, document) as first:
        first.wait_for(lambda: scenario.outputs().matches)
        first.kill()
    stream.send(*AFTER)
    with running(scenario.folder, document) as second:
        second.wait_for(lambda: scenario.outputs().timeouts)
        second.wait_for(lambda: second.page("/readyz")[0] == 200)
        yield second


@pytest.mark.usefixtures("restarted")
def test_a_killed_job_goes_on_where_it_was(scenario: Scenario) -> None:
    """The same matches and timeouts as without the kill; a batch may be written twice, its ids
    are the same both times."""
    outputs = scenario.outputs()
    assert [sorted(set(each)) for each in outputs.of("ab")] == [
        [found("ab", "k", at(1), a=0, b=1), found("ab", "k", at(6), a=3, b=6)], [],
    ]  # fmt: skip
    assert [sorted(set(each)) for each in outputs.of("abc")] == [
        [found("abc", "k", at(7), a=0, b=1, c=7), found("abc", "k", at(7), a=3, b=6, c=7)],
        [found("abc", SECRETIVE, at(64), a=4)],
    ]
    assert len(set(outputs.match_ids())) == 4
    assert (outputs.late, outputs.dead_letters) == ([], [])


def test_it_answers_over_http_while_it_runs(restarted: Command) -> None:
    """Ready, alive, the rules, and metrics with counts by rule."""
    assert restarted.page("/livez")[0] == 200
    status, rules = restarted.page("/rules")
    assert status == 200
    shown = [(rule["id"], rule["version"], rule["state"]) for rule in json.loads(rules)["rules"]]
    assert shown == [("ab", 1, "active"), ("abc", 1, "active")]
    status, metrics = restarted.page("/metrics")
    assert status == 200
    assert 'spark_cep_timeouts_total{rule="abc"} 1.0' in metrics
    assert 'spark_cep_rules_loaded_info{rule="ab",version="1"} 1.0' in metrics
    assert restarted.page("/nowhere")[0] == 404


def test_each_start_says_how_long_its_phases_took(restarted: Command) -> None:
    """All phases, in order, which add up; Spark was started meanwhile."""
    starts = restarted.events("started")
    assert starts
    for each in starts:
        assert list(each["phases"]) == list(Phase)
        assert sum(each["phases"].values()) == pytest.approx(each["seconds"], abs=0.1)
        assert 0 < each["meanwhile"]["session"] < each["seconds"]


def test_sigterm_ends_it_in_good_order(restarted: Command) -> None:
    """Exit code 0 within seconds, the log says so, and nobody listens any more."""
    code, seconds = restarted.terminate()
    assert code == 0
    assert seconds < 30
    assert {"stopping", "stopped"} <= {line["event"] for line in _lines(restarted.log)}
    assert restarted.page("/livez")[0] == 0


def test_every_line_of_the_log_is_json(restarted: Command) -> None:
    """The service's own lines, Spark's, and what its workers write: with names of the list, and the
    run, query and batch that they are of. What the events hold is in none."""
    text = restarted.log.read_text("utf-8")
    assert SECRETIVE not in text
    lines = _lines(restarted.log)
    for line in lines:
        assert line.keys() >= {"timestamp", "level", "logger", "event"}, line
        assert line["run"], line
    assert {line["event"] for line in lines} <= events().keys()
    assert len({line["run"] for line in lines}) == 2
    done = [line for line in lines if line["event"] == "batch_done"]
    started = [line for line in lines if line["event"] == "query_started"]
    assert len({line["query"] for line in [*done, *started]}) == 1
    assert {"batch", "records", "seconds"} <= done[-1].keys()
    assert any(line["event"] == "spark_log" for line in lines)
    (waits,) = {line["text"] for line in lines if line["event"] == "latency_of_settings"}
    assert "up to 100 ms (trigger.latency)" in waits


def _lines(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text("utf-8").splitlines()]
