"""How throughput falls with the number of rules over one stream.

The users are divided among the rules by the last digits of their ids, so that any number of rules
finds together what one rule finds: the work that events make stays, what rules cost comes on top.
Rules that no event touches are measured apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from bench.comparison import in_turn, median_rate, profile, ratio
from bench.contenders import Course, flink, job
from bench.flink_program import FlinkProgram
from bench.rules import shares, write_rules
from bench.testbed import TestBed
from bench.throughput import course_over, runs_of

_AIM = 0.4
_MINUTE_MS = 60_000


def many_rules(
    bed: TestBed,
    program: FlinkProgram,
    *,
    events: int,
    runs: int,
    counts: Sequence[int],
    peer_counts: Sequence[int],
    untouched: int,
) -> dict[str, Any]:
    """Our job with ``counts`` of rules, Flink with ``peer_counts``, which needs an operator and a
    copy of the stream for each."""
    ours, theirs = bed.our_side(), bed.peer(program)
    one = course_over(bed, events, "fails")
    contenders = [job(bed, ours, _with_rules(bed, one, n), _ours(n)) for n in counts]
    idle = replace(
        one,
        rules=write_rules(bed.folder / "rules" / "idle", "fails", _MINUTE_MS, untouched=untouched),
    )
    contenders.append(job(bed, ours, idle, _idle(untouched)))
    contenders += [
        flink(bed, theirs, _with_rules(bed, one, n), name=_theirs(n)) for n in peer_counts
    ]
    results = in_turn(contenders, runs, bed.say)
    first = _ours(counts[0])
    ratios = [
        ratio(f"{n} rules / {counts[0]}", results, _ours(n), first, _AIM if n == 100 else None)
        for n in counts[1:]
    ]
    ratios.append(
        ratio(f"{untouched} more that no event touches", results, _idle(untouched), first)
    )
    ratios += [
        ratio(f"{n} rules, next to Flink", results, _ours(n), _theirs(n))
        for n in peer_counts
        if n in counts
    ]
    seconds = {name: events / median_rate(each) for name, each in results.items()}
    return {
        "ratios": [each.document() for each in ratios],
        "rates": {
            "ours": [[n, round(median_rate(results[_ours(n)]))] for n in counts],
            "Flink": [[n, round(median_rate(results[_theirs(n)]))] for n in peer_counts],
        },
        "milliseconds_for_each_untouched_rule": round(
            (seconds[_idle(untouched)] - seconds[first]) * 1000 / untouched, 3
        ),
        "profiles": {_ours(n): profile(results[_ours(n)]) for n in counts},
        "runs": runs_of(results),
    }


def _with_rules(bed: TestBed, course: Course, count: int) -> Course:
    parts = tuple(shares(count))
    folder = bed.folder / "rules" / f"fails-{count}"
    return replace(course, shares=parts, rules=write_rules(folder, "fails", _MINUTE_MS, parts))


def _ours(count: int) -> str:
    return f"ours, {count} rules"


def _idle(untouched: int) -> str:
    return f"ours, 1 rule and {untouched} untouched"


def _theirs(count: int) -> str:
    return f"Flink, {count} rules"
