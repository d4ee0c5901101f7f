"""How the job goes with cores, and what state partitions cost.

One job on each number of cores, all else the same; then, on all cores, one on each number of state
partitions. The broker is not bound: on a machine with few cores it takes its part of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bench.comparison import Run, in_turn, median_rate, ratio
from bench.contenders import job
from bench.testbed import TestBed
from bench.throughput import course_over, runs_of

_FEW_PARTITIONS = 2


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
    by_partitions = [
        job(bed, side, course, f"{count} partitions", changed=with_partitions(count))
        for count in partitions
    ]
    curve = in_turn(by_partitions, runs, bed.say)
    ratios = [
        ratio(f"{n} cores / {cores[0]}", results, f"{n} cores", f"{cores[0]} cores").document()
        for n in cores[1:]
    ]
    rates = {
        "by cores": [[n, round(median_rate(results[f"{n} cores"]))] for n in cores],
        "by state partitions": [
            [n, round(median_rate(curve[f"{n} partitions"]))] for n in partitions
        ],
    }
    return {
        "ratios": ratios,
        "rates": rates,
        "milliseconds_for_each_partition_and_batch": partition_cost(
            {n: curve[f"{n} partitions"] for n in partitions}
        ),
        "runs": runs_of(results | curve),
    }


def partition_cost(runs: dict[int, list[Run]]) -> float:
    """Milliseconds that one more partition adds to a batch: the slope of a straight line."""
    points = [
        (count, run.seconds * 1000 / max(1, len(run.answer["batches"])))
        for count, each in runs.items()
        for run in each
    ]
    counts, milliseconds = zip(*points, strict=True)
    return round(float(np.polyfit(counts, milliseconds, 1)[0]), 2)
