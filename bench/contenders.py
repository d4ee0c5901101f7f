"""Who runs: our job, Spark alone, and Flink, each over a topic of the test bed."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench.comparison import Contender, Run
from bench.outputs import (
    DisagreementError,
    Found,
    LineOf,
    found_by_job,
    found_by_peer,
    line_of,
    without_ended,
)
from bench.side import Side
from bench.testbed import OUTPUTS, TestBed, Topic, equal_batches, output_topic
from spark_cep.config.engine import Source

MINUTE_MS = 60_000
#: As the service comes.
BATCH: int = Source.model_fields["max_offsets_per_trigger"].default


class RefusedError(Exception):
    """The service refuses the rules of a course; the message is its own."""


@dataclass(frozen=True)
class Course:
    """What is run over: the topic, and a small one to warm up on. ``rule`` with its window, one for
    each of ``shares``; ``rules`` is the folder of ours. ``statement``: of Flink SQL, for Flink in
    place of ``rule``. ``lines``: what is compared of each output; ``ended``: timeouts of partial
    matches that a match has ended do not count; ``timeouts``: whether any do."""

    topic: Topic
    warm_up: Topic
    rule: str
    rules: Path
    within_ms: int = MINUTE_MS
    shares: tuple[str, ...] = ("",)
    batch: int = BATCH
    statement: str = ""
    lines: LineOf = line_of
    ended: bool = False
    timeouts: bool = True


def job(
    bed: TestBed,
    side: Side,
    course: Course,
    name: str = "ours",
    *,
    cores: int | None = None,
    changed: Mapping[str, Mapping[str, Any]] | None = None,
) -> Contender:
    """Our job."""

    def run_over(topic: Topic, read: bool) -> Run:
        run = bed.next_run(name)
        batch = equal_batches(topic.records, course.batch)
        settings = bed.settings(
            run, topic.name, course.rules, batch=batch, cores=cores, changed=changed
        )
        answer = side.ask({"do": "run", "settings": settings})
        if "refused" in answer:
            raise RefusedError(answer["refused"])
        _check_read(name, answer, topic)
        if answer["late"] or answer["dead_letters"]:
            raise RuntimeError(f"{name}: {answer['late']} late, {answer['dead_letters']} dead")
        found = None
        topics = {kind: output_topic(run, kind) for kind in OUTPUTS}
        if read:
            matches, timeouts = topics["matches"], topics["timeouts"]
            found = found_by_job(bed.broker.bootstrap, matches, timeouts, course.lines)
            if course.ended and (more := without_ended(found)[1]):
                raise DisagreementError(f"{name} wrote {more} timeouts of what a match had ended")
            if not course.timeouts:
                found = replace(found, timeouts=frozenset())
        bed.forget([*topics.values(), f"{run}.commit-markers"])
        shutil.rmtree(settings["state"]["checkpoint"], ignore_errors=True)
        return Run(topic.records, answer["seconds"], answer, found)

    return _contender(name, course, run_over, compared=True, once=True)


def ceiling(bed: TestBed, side: Side, course: Course, name: str = "Spark alone") -> Contender:
    """Spark reading the topic into nothing."""

    def run_over(topic: Topic, _read: bool) -> Run:
        run = bed.next_run("ceiling")
        batch = equal_batches(topic.records, course.batch)
        settings = bed.settings(run, topic.name, course.rules, batch=batch)
        answer = side.ask({"do": "ceiling", "settings": settings})
        _check_read(name, answer, topic)
        return Run(topic.records, answer["seconds"], answer)

    return _contender(name, course, run_over, compared=False, once=True)


def counting(
    bed: TestBed,
    side: Side,
    course: Course,
    name: str,
    changed: Mapping[str, Mapping[str, Any]],
    *,
    in_python: bool = False,
) -> Contender:
    """Spark alone counting as many rows as the topic has, which it makes itself, into nothing, in
    as many batches: its shuffle and its state store, and with ``in_python`` its way to a Python
    operator and back."""

    def run_over(topic: Topic, _read: bool) -> Run:
        run = bed.next_run("counting")
        batch = equal_batches(topic.records, course.batch)
        settings = bed.settings(run, topic.name, course.rules, batch=batch, changed=changed)
        batches = -(-topic.records // batch)
        request = {"do": "counting", "batches": batches, "in_python": in_python}
        answer = side.ask({**request, "settings": settings})
        return Run(answer["events"], answer["seconds"], answer)

    return _contender(name, course, run_over, compared=False, once=True)


def flink(
    bed: TestBed,
    side: Side,
    course: Course,
    *,
    state: str = "hashmap",
    filtered: bool = True,
    name: str | None = None,
) -> Contender:
    """The peer."""
    name = name or flink_name(state, filtered)

    def run_over(topic: Topic, read: bool) -> Run:
        run = bed.next_run(f"flink-{state}")
        request = bed.request(
            run,
            topic.name,
            course.rule,
            within_ms=course.within_ms,
            statement=course.statement,
            state=state,
            filtered=filtered,
            shares=course.shares,
        )
        answer = side.ask(request)
        _check_read(name, answer, topic)
        found: Found | None = found_by_peer(bed.broker.bootstrap, run) if read else None
        if found is not None and course.ended:
            found, answer["timeouts_of_ended"] = without_ended(found)
        bed.forget([run])
        shutil.rmtree(request["checkpoint_folder"], ignore_errors=True)
        # In Flink's favour: a job that has ended waits for its next checkpoint to commit.
        seconds = answer.get("seconds_to_last_output", answer["seconds"])
        return Run(topic.records, seconds, answer, found)

    return _contender(name, course, run_over, compared=True, once=False)


def flink_name(state: str, filtered: bool) -> str:
    """How a way of running Flink is called in figures."""
    kind = {"hashmap": "heap", "rocksdb": "RocksDB"}[state]
    return f"Flink, {kind}, {'filtered' if filtered else 'unfiltered'}"


def _contender(
    name: str, course: Course, run_over: Callable[[Topic, bool], Run], *, compared: bool, once: bool
) -> Contender:
    return Contender(
        name,
        run=lambda: run_over(course.topic, compared),
        warm_up=lambda: run_over(course.warm_up, False),
        once=once,
    )


def _check_read(name: str, answer: Mapping[str, Any], topic: Topic) -> None:
    if answer["events"] != topic.records:
        raise RuntimeError(
            f"{name} read {answer['events']:,} of {topic.records:,} records of {topic.name}"
        )
