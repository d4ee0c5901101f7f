"""Events per second of the whole job, next to Flink and to Spark alone on the same topic.

The main rule of log-ins: three or more failed ones of a user, then one that succeeds, within a
minute. Payments have three rules, ``payments.yaml``, which run together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bench.comparison import Run, in_turn, profile, ratio
from bench.contenders import Course, ceiling, flink, flink_name, job
from bench.events import KNOWN_MATCHES, logins
from bench.flink_program import FlinkProgram
from bench.outputs import DisagreementError, full_line_of
from bench.payments import Amount
from bench.payments import payments as payments_stream
from bench.rules import payments_rules, write_rules
from bench.side import Side
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
        ratio("heap state, filtered", results, "ours", HEAP_FILTERED, 2.0),
        ratio("heap state, unfiltered", results, "ours", HEAP, 4.0),
        ratio("share of Spark's reading", results, "ours", "Spark alone", 0.6),
    ]
    if rocksdb_events:
        slow = Course(
            bed.filled("logins-rocksdb", logins(rocksdb_events), rocksdb_events),
            course.warm_up,
            "fails",
            course.rules,
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
    """The two main ratios: log-ins, and payments with DECIMAL amounts."""
    ours, theirs = bed.our_side(), bed.peer(program)
    course = course_over(bed, events, "fails")
    results = in_turn(
        [job(bed, ours, course), flink(bed, theirs, course), ceiling(bed, ours, course)],
        runs,
        bed.say,
    )
    _check_known(results["ours"])
    # Half of them take as long.
    of_payments = _payments(bed, (ours, theirs), Amount.DECIMAL, events // 2, runs)
    return {
        "ratios": [
            ratio("heap state, filtered", results, "ours", HEAP_FILTERED, 2.0).document(),
            ratio("share of Spark's reading", results, "ours", "Spark alone", 0.6).document(),
            of_amount(Amount.DECIMAL, of_payments),
        ],
        "profiles": {"log-ins": profile(results["ours"]), "payments": profile(of_payments["ours"])},
        "runs": runs_of(results)
        | {f"{name}, payments": one for name, one in runs_of(of_payments).items()},
    }


def payments(
    bed: TestBed, program: FlinkProgram, *, amounts: Sequence[Amount], events: int, runs: int
) -> dict[str, Any]:
    """The three rules of payments next to Flink with heap state and the expert's filters."""
    sides = bed.our_side(), bed.peer(program)
    results = {amount: _payments(bed, sides, amount, events, runs) for amount in amounts}
    return {
        "ratios": [of_amount(amount, found) for amount, found in results.items()],
        "profiles": {str(amount): profile(found["ours"]) for amount, found in results.items()},
        "runs": {str(amount): runs_of(found) for amount, found in results.items()},
    }


def of_amount(amount: Amount, results: Mapping[str, list[Run]]) -> dict[str, Any]:
    """The ratio for payments of amounts of that type."""
    name = f"payments, {amount.upper()}"
    return ratio(name, results, "ours", HEAP_FILTERED, 2.0).document()


def _payments(
    bed: TestBed, sides: tuple[Side, Side], amount: Amount, events: int, runs: int
) -> dict[str, list[Run]]:
    few = warm_up_events(events)
    course = Course(
        bed.filled(f"payments-{amount}", payments_stream(events, amount), events),
        bed.filled(f"payments-{amount}-warm-up", payments_stream(few, amount), few),
        f"payments_{amount}",
        payments_rules(bed.folder / "rules" / "payments"),
        lines=full_line_of,
        ended=True,
    )
    ours, theirs = sides
    return in_turn([job(bed, ours, course), flink(bed, theirs, course)], runs, bed.say)


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


def course_over(bed: TestBed, events: int, rule: str) -> Course:
    """The stream with ``rule``, and a short one to warm up on."""
    return _over(bed, *_topics(bed, events), rule)


def _over(bed: TestBed, topic: Topic, small: Topic, rule: str) -> Course:
    rules = write_rules(bed.folder / "rules" / rule, rule, 60_000)
    return Course(topic, small, rule, rules)


def _topics(bed: TestBed, events: int) -> tuple[Topic, Topic]:
    few = warm_up_events(events)
    return (
        bed.filled("logins", logins(events), events),
        bed.filled("logins-warm-up", logins(few), few),
    )


def warm_up_events(events: int) -> int:
    """How many are enough to warm up for runs over so many."""
    return round(min(max(events * _WARM_UP_SHARE, _WARM_UP_LEAST), _WARM_UP_MOST))


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


_KEPT = ("matches", "timeouts", "repeated_timeouts", "timeouts_of_ended", "stages", "batches")
