"""How the job goes with cores, and what state partitions cost.

One job on each number of cores, all else the same; then, on all cores, one on each number of state
partitions, and beside it Spark alone, which counts rows of its own in as many, by itself and by a
Python operator. The broker is not bound: on a machine with few cores it takes its part of them.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bench.comparison import Contender, Run, in_turn, median_rate, ratio
from bench.contenders import counting, job
from bench.testbed import TestBed
from bench.throughput import course_over, runs_of

_FEW_PARTITIONS = 2
#: Batches of a run by state partitions. The first ones open the state, start producers, and run
#: code that Java has not compiled: the later half counts.
_BATCHES = 20
_OURS, _IN_PYTHON = "ours", "Spark alone with a Python operator"
_WAYS = (_OURS, "Spark alone", _IN_PYTHON)


def scaling(
    bed: TestBed, *, events: int, runs: int, cores: Sequence[int], partitions: Sequence[int]
) -> dict[str, Any]:
    """Events per second by cores, and by state partitions."""
    course = course_over(bed, events, "fails")

    def with_partitions(count: int) -> dict[str, dict[str, Any]]:
        return {"state": {"state_partitions": count}}

    by_cores = []
    for count in cores:
        side = bed.our_side(bed.cores[:count])
        changed = with_partitions(max(_FEW_PARTITIONS, count))
        by_cores.append(job(bed, side, course, f"{count} cores", cores=count, changed=changed))
    results = in_turn(by_cores, runs, bed.say)
    side = bed.our_side()
    batches = replace(course, batch=-(-events // _BATCHES))

    def way(name: str, count: int) -> Contender:
        which, changed = f"{name}, {count} partitions", with_partitions(count)
        if name == _OURS:
            return job(bed, side, batches, which, changed=changed)
        return counting(bed, side, batches, which, changed, in_python=name == _IN_PYTHON)

    curve = in_turn([way(name, count) for count in partitions for name in _WAYS], runs, bed.say)
    ways = {
        name: {count: curve[f"{name}, {count} partitions"] for count in partitions}
        for name in _WAYS
    }
    ratios = [
        ratio(f"{n} cores / {cores[0]}", results, f"{n} cores", f"{cores[0]} cores").document()
        for n in cores[1:]
    ]
    by_cores_rates = [[n, round(median_rate(results[f"{n} cores"]))] for n in cores]
    by_partitions_rates = {
        f"by state partitions, {name}": later_rates(each) for name, each in ways.items()
    }
    return {
        "ratios": ratios,
        "rates": {"by cores": by_cores_rates, **by_partitions_rates},
        **{
            f"milliseconds_for_each_partition_and_batch, {name}": partition_cost(each)
            for name, each in ways.items()
        },
        "runs": runs_of(results | curve),
    }


def later_rates(runs: Mapping[int, Sequence[Run]]) -> list[list[int]]:
    """Events per second of later batches, medians by number of partitions."""
    rates = []
    for count, each in runs.items():
        rate = (run.events / len(run.answer["batches"]) / _later_batch(run) for run in each)
        rates.append([count, round(statistics.median(rate))])
    return rates


def partition_cost(runs: Mapping[int, Sequence[Run]]) -> float:
    """Milliseconds that one more partition adds to a later batch: the slope of a straight line."""
    points = [(count, _later_batch(run) * 1000) for count, each in runs.items() for run in each]
    counts, milliseconds = zip(*points, strict=True)
    return round(float(np.polyfit(counts, milliseconds, 1)[0]), 2)


def _later_batch(run: Run) -> float:
    """The median of the later half of a run's batches, in seconds."""
    seconds: list[float] = [batch["seconds"] for batch in run.answer["batches"]]
    return statistics.median(seconds[len(seconds) // 2 :])
