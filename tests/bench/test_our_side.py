"""Our side of the benchmark on a broker: it runs, its clock, and what it wrote."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.comparison import in_turn, profile, ratio
from bench.contenders import Course, ceiling, job
from bench.rules import write_rules
from bench.testbed import TestBed, all_cores
from tests.conftest import JARS

pytestmark = [pytest.mark.kafka, pytest.mark.spark]
EVENTS = 3_000


def test_job_and_ceiling_take_turns_on_one_topic(tmp_path: Path) -> None:
    """Both read all of it, twice; the job's outputs can be read back, are there once and are the
    same each time; stages of the service and of Spark have been timed."""
    said: list[str] = []
    with TestBed(tmp_path / "bed", JARS, all_cores()[:2], said.append) as bed:
        side = bed.our_side()
        rules = write_rules(bed.folder / "rules", "open", 60_000)
        topic = bed.logins("logins", EVENTS)
        course = Course(topic, topic, "open", rules, batch=EVENTS // 2)
        results = in_turn([job(bed, side, course), ceiling(bed, side, course)], 2, said.append)
    assert topic.records == EVENTS + 4
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
