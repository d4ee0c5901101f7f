"""The soak's own parts: the stream, the comparison, and what is called flat."""

from __future__ import annotations

import json
import math
import random
from collections import Counter

import pytest

from bench.soak.comparison import compare, expected
from bench.soak.flatness import Watched, trend
from bench.soak.report import markdown
from bench.soak.run import RULES_FILE, Options, Result
from bench.soak.stream import PARTITIONS, Fate, Stream
from spark_cep.compiler.rule_set import compile_rules
from spark_cep.pattern.document.loading import load_rules
from tests.reference.local import LocalJob, Record

STREAM = Stream(start_ms=1_700_000_000_000, rate=200, late_from=1_000, count=6_000)
FIGURE = Watched("memory", "MiB", floor=1.0)
HOURS = [second / 3600 for second in range(0, 900, 5)]


def test_a_record_is_a_function_of_its_number() -> None:
    """Made again it is the same; partitions and offsets go up without gaps; some are late and
    some broken, and late only from where it was said."""
    first, again = ([*STREAM.records(0, STREAM.count)] for _ in range(2))
    assert first == again
    places = [planned.at for planned in [*first, *STREAM.end()]]
    for partition in range(PARTITIONS):
        offsets = [at.offset for at in places if at.partition == partition]
        assert offsets == list(range(STREAM.count // PARTITIONS + 1))
    fates = Counter(planned.fate for planned in first)
    assert fates.keys() == set(Fate)
    assert all(p.fate is not Fate.LATE for p in first[: STREAM.late_from])


def test_the_comparison_expects_what_the_core_finds() -> None:
    """In shards and cuts as in one go."""
    plan = compile_rules(one.rule for one in load_rules(RULES_FILE.read_text(), "rules"))
    job = LocalJob(plan)
    events = [p for p in STREAM.records(0, STREAM.count) if p.fate is Fate.EVENT]
    job.advance((Record(p.at, p.event["ts"], p.event) for p in events), 0)
    job.advance([], STREAM.end_ms)
    ids = {("match", match.match_id) for match in job.outputs.matches}
    ids |= {("timeout", timeout.match_id) for timeout in job.outputs.timeouts}
    found = [name for name, _ in expected(STREAM, plan)]
    assert {name for name in found if name[0] in ("match", "timeout")} == ids
    assert {match.rule_id for match in job.outputs.matches} == {
        planned.rule.id for planned in plan.plans
    }
    assert len(found) == len(set(found))


def test_what_differs_is_told_apart() -> None:
    """Lost, twice, wrong, not expected."""
    wanted = [(("match", name), b"same") for name in "abcd"]
    found = [
        (("match", "a"), b"same"),
        (("match", "b"), b"same"),
        (("match", "b"), b"same"),
        (("match", "c"), b"other"),
        (("match", "x"), b"same"),
    ]
    verdict = compare(wanted, found)
    assert verdict.examples == {
        "twice": ["match b"],
        "wrong": ["match c"],
        "unexpected": ["match x"],
        "lost": ["match d"],
    }
    assert not verdict.clean
    assert compare(wanted, wanted).clean


@pytest.mark.parametrize(
    ("growth", "noise", "flat"),
    [(0, 2, True), (200, 2, False), (-200, 2, True), (5, 2, True), (0.5, 0.01, True)],
)
def test_what_is_flat(growth: float, noise: float, flat: bool) -> None:
    """Growth an hour of a figure of 100 MiB with noise; less is always flat."""
    source = random.Random(1)
    values = [100 + growth * hour + source.gauss(0, noise) for hour in HOURS]
    found = trend(FIGURE, HOURS, values)
    assert found.flat is flat
    assert found.low <= found.slope <= found.high
    assert found.slope == pytest.approx(growth, abs=10 * noise)


def test_outliers_and_bursts() -> None:
    """One spike is nothing; of what is freed in bursts the lows count, and lows that grow show."""
    spike = [100.0] * len(HOURS)
    spike[90:95] = [5_000.0] * 5
    assert trend(FIGURE, HOURS, spike).flat
    minima = Watched("old", "MiB", floor=1.0, of_minima=True)
    saw = [50.0 + 10 * (number % 6) for number in range(len(HOURS))]
    assert trend(minima, HOURS, saw).flat
    leak = [value + 100 * hour for value, hour in zip(saw, HOURS, strict=True)]
    assert trend(minima, HOURS, leak).flat is False


def test_too_little_to_say() -> None:
    """A few samples give no verdict."""
    found = trend(FIGURE, HOURS[:3], [1.0, 2.0, 3.0])
    assert found.flat is None
    assert math.isnan(found.slope)


def test_a_result_is_json_and_a_table() -> None:
    """Counts by kind of output are there in both."""
    verdict = compare([(("match", "a"), b""), (("late", "b"), b"")], [(("match", "a"), b"")])
    result = Result(
        Options(minutes=1, rate=2, kill_every=3), 120, 12, 4, 1, [0],
        [trend(FIGURE, HOURS, [1.0] * len(HOURS))], verdict, 30.0, [(10.0, "SIGKILL")],
    )  # fmt: skip
    document = json.loads(json.dumps(result.document()))
    assert document["verdict"]["lost"] == {"late": 1}
    assert (document["flat"], document["outputs_equal"]) == (True, False)
    table = markdown(result)
    assert "| late | 1 | 0 | 1 | 0 | 0 | 0 |" in table
    assert "| memory | MiB | 1 | +0 | +0 to +0 | flat |" in table
