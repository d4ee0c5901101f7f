"""Events per second of the whole job, next to Flink and to Spark alone on the same topic.

The rule: three or more failed log-ins of a user, then one that succeeds, within a minute.
"""

from __future__ import annotations

from typing import Any

from bench.comparison import Run, in_turn, median_rate, profile, ratio
from bench.contenders import Course, ceiling, flink, flink_name, job
from bench.events import KNOWN_MATCHES
from bench.flink_program import FlinkProgram
from bench.outputs import DisagreementError
from bench.rules import write_rules
from bench.testbed import TestBed, Topic

HEAP_FILTERED = flink_name("hashmap", filtered=True)
HEAP = flink_name("hashmap", filtered=False)
ROCKSDB = flink_name("rocksdb", filtered=True)
_WARM_UP_SHARE = 0.1
_WARM_UP_LEAST, _WARM_UP_MOST = 50_000, 100_000


def throughput(
    bed: TestBed, program: FlinkProgram, *, events: int, rocksdb_events: int, runs: int
) -> dict[str, Any]:
    """The ratios: to Flink with heap state with and without the expert's filter, to Spark alone,
    and, over fewer events, to Flink with RocksDB."""
    ours, theirs = bed.our_side(), bed.peer(program)
    course = course_over(bed, events, "fails")
    results = in_turn(
        [
            job(bed, ours, course),
            ceiling(bed, ours, course),
            flink(bed, theirs, course),
            flink(bed, theirs, course, filtered=False),
        ],
        runs,
        bed.say,
    )
    _check_known(results["ours"])
    ratios = [
        ratio("heap state, filtered", results, "ours", HEAP_FILTERED, 1.5),
        ratio("heap state, unfiltered", results, "ours", HEAP, 4.0),
        ratio("share of Spark's reading", results, "ours", "Spark alone", 0.6),
    ]
    if rocksdb_events:
        slow = Course(
            bed.logins("logins-rocksdb", rocksdb_events), course.warm_up, "fails", course.rules
        )
        with_rocksdb = in_turn(
            [job(bed, ours, slow), flink(bed, theirs, slow, state="rocksdb")], runs, bed.say
        )
        ratios.append(ratio("RocksDB state", with_rocksdb, "ours", ROCKSDB, 20.0))
        results |= {f"{name} ({rocksdb_events:,})": each for name, each in with_rocksdb.items()}
    return {
        "ratios": [one.document() for one in ratios],
        "profile": profile(results["ours"]),
        "runs": runs_of(results),
    }


def quick(bed: TestBed, program: FlinkProgram, *, events: int, runs: int) -> dict[str, Any]:
    """The main ratio alone."""
    ours, theirs = bed.our_side(), bed.peer(program)
    course = course_over(bed, events, "fails")
    results = in_turn(
        [job(bed, ours, course), flink(bed, theirs, course), ceiling(bed, ours, course)],
        runs,
        bed.say,
    )
    _check_known(results["ours"])
    return {
        "ratios": [
            ratio("heap state, filtered", results, "ours", HEAP_FILTERED, 1.5).document(),
            ratio("share of Spark's reading", results, "ours", "Spark alone", 0.6).document(),
        ],
        "profile": profile(results["ours"]),
        "runs": runs_of(results),
    }


def relevant(bed: TestBed, program: FlinkProgram, *, events: int, runs: int) -> dict[str, Any]:
    """A rule that needs every event, and one that looks back, next to Flink with heap state."""
    ours, theirs = bed.our_side(), bed.peer(program)
    topic, small = _topics(bed, events)
    ratios, profiles, all_runs = [], {}, {}
    for rule in ("relevant", "look_back"):
        course = _over(bed, topic, small, rule)
        results = in_turn([job(bed, ours, course), flink(bed, theirs, course)], runs, bed.say)
        name = {"relevant": "every event relevant", "look_back": "looks back"}[rule]
        ratios.append(ratio(name, results, "ours", HEAP_FILTERED, 1.5).document())
        profiles[name] = profile(results["ours"])
        all_runs[name] = runs_of(results)
    return {"ratios": ratios, "profiles": profiles, "runs": all_runs}


def delivery(bed: TestBed, *, events: int, runs: int) -> dict[str, Any]:
    """What exactly-once output costs: the same job with and without transactions."""
    side = bed.our_side()
    course = course_over(bed, events, "fails")
    ways = [job(bed, side, course, way, changed={"outputs": {"delivery": way}}) for way in _WAYS]
    results = in_turn(ways, runs, bed.say)
    return {
        "ratios": [ratio("exactly once / at least once", results, *_WAYS).document()],
        "rates": {way: round(median_rate(results[way])) for way in _WAYS},
        "profiles": {way: profile(results[way]) for way in _WAYS},
        "runs": runs_of(results),
    }


_WAYS = ("exactly_once", "at_least_once")


def course_over(bed: TestBed, events: int, rule: str) -> Course:
    """The stream with ``rule``, and a short one to warm up on."""
    return _over(bed, *_topics(bed, events), rule)


def _over(bed: TestBed, topic: Topic, small: Topic, rule: str) -> Course:
    rules = write_rules(bed.folder / "rules" / rule, rule, 60_000)
    return Course(topic, small, rule, rules)


def _topics(bed: TestBed, events: int) -> tuple[Topic, Topic]:
    few = round(min(max(events * _WARM_UP_SHARE, _WARM_UP_LEAST), _WARM_UP_MOST))
    return bed.logins("logins", events), bed.logins("logins-warm-up", few)


def _check_known(runs: list[Run]) -> None:
    for run in runs:
        known = KNOWN_MATCHES.get(run.events - 4)
        if known is not None and run.answer["matches"] != known:
            raise DisagreementError(f"{run.answer['matches']} matches, {known} are known")


def runs_of(results: dict[str, list[Run]]) -> dict[str, list[dict[str, Any]]]:
    """All runs, for JSON."""
    return {
        name: [
            {
                "events": run.events,
                "seconds": round(run.seconds, 3),
                "seconds_to_end": round(run.answer["seconds"], 3),
                **{what: count for what, count in run.answer.items() if what in _KEPT},
            }
            for run in runs
        ]
        for name, runs in results.items()
    }


_KEPT = ("matches", "timeouts", "repeated_timeouts", "stages", "batches")
