"""Results depend on the rule and the events alone: not on batches, watermarks, arrival, restarts,
other rules, the early filter, irrelevant events or other keys. Random rules and streams."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st

from spark_cep.compiler.rule_set import Partitioning, RuleSetPlan, compile_rules
from spark_cep.model import Coordinates
from spark_cep.pattern.tree import Rule
from tests.matcher.runs import END_OF_TIME, BothMatchers, answers
from tests.matcher.strategies import (
    DISORDER,
    arrivals,
    condition,
    keyed_streams,
    rules,
    streams,
)
from tests.oracle import Seen, UndefinedError, answer_to
from tests.reference.local import Record

pytestmark = pytest.mark.slow

#: Per property.
EXAMPLES = 150

property_of = settings(
    max_examples=EXAMPLES,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)

Results = Counter[tuple[object, ...]]


def results(job: BothMatchers, rule_id: str = "r") -> Results:
    """What a rule emitted: ids with times, as often as they were emitted."""
    found: Results = Counter()
    for match in job.outputs.matches:
        if match.rule_id == rule_id:
            found[match.match_id, match.time] += 1
    for timeout in job.outputs.timeouts:
        if timeout.rule_id == rule_id:
            found[timeout.match_id, timeout.deadline, timeout.already_matched] += 1
    assert not job.late
    return found


def job_of(*rule_set: Rule) -> BothMatchers:
    """A job that runs the rules with kernel and reference."""
    return BothMatchers(compile_rules(rule_set))


def whole(rule: Rule, records: Sequence[Record]) -> Results:
    """The results when everything comes at once and in order."""
    job = job_of(rule)
    job.advance(records, END_OF_TIME)
    return results(job)


def with_gap_and_cooldown(rule: Rule, cooldown_ms: int | None) -> Rule:
    """The rule with a cooldown."""
    return replace(rule, cooldown_ms=cooldown_ms)


ANY_RULE = st.builds(with_gap_and_cooldown, rules(), st.none() | st.none() | st.integers(1, 5))


@property_of
@given(ANY_RULE, keyed_streams())
def test_each_result_once(rule: Rule, records: list[Record]) -> None:
    """No match and no timeout is emitted twice."""
    found = whole(rule, records)
    event(f"results: {min(len(found), 5)}")
    assert set(found.values()) <= {1}


@property_of
@given(ANY_RULE, keyed_streams(), st.data())
def test_batches_do_not_matter(rule: Rule, records: list[Record], data: st.DataObject) -> None:
    """However the stream is cut, the watermark following the events or staying behind."""
    lags = data.draw(st.lists(st.integers(0, 9), min_size=len(records), max_size=len(records)))
    each = job_of(rule)
    for record, lag in zip(records, lags, strict=True):
        each.advance([record], record.time - 1 - lag)
    each.advance([], END_OF_TIME)
    assert results(each) == whole(rule, records)


@property_of
@given(ANY_RULE, keyed_streams())
def test_watermark_steps_do_not_matter(rule: Rule, records: list[Record]) -> None:
    """A watermark that moves by single milliseconds decides what one leap decides."""
    job = job_of(rule)
    job.advance(records, -10)
    for time in range(-9, 60):
        job.advance([], time)
    job.advance([], END_OF_TIME)
    assert results(job) == whole(rule, records)


@property_of
@given(ANY_RULE, keyed_streams(), st.data())
def test_arrival_does_not_matter(rule: Rule, records: list[Record], data: st.DataObject) -> None:
    """Any order of arrival within the allowed disorder, one event a batch."""
    job = job_of(rule)
    latest = -100
    for record in data.draw(arrivals(records)):
        latest = max(latest, record.time)
        job.advance([record], latest - DISORDER - 1)
    job.advance([], END_OF_TIME)
    assert results(job) == whole(rule, records)


@property_of
@given(ANY_RULE, keyed_streams(), st.data())
def test_restarts_do_not_matter(rule: Rule, records: list[Record], data: st.DataObject) -> None:
    """State written and read back between any two batches, events waiting or not."""
    job = job_of(rule)
    for record in records:
        job.advance([record], record.time - 1 - data.draw(st.integers(0, 2)))
        if data.draw(st.booleans()):
            job.reload()
    job.reload()
    job.advance([], END_OF_TIME)
    assert results(job) == whole(rule, records)


@property_of
@given(ANY_RULE, rules("other"), rules("third"), keyed_streams())
def test_other_rules_do_not_matter(
    rule: Rule, other: Rule, third: Rule, records: list[Record]
) -> None:
    """A rule alone, and among others with the same key and with none."""
    job = job_of(other, rule, replace(third, key=()))
    job.advance(records, END_OF_TIME)
    assert results(job) == whole(rule, records)


class Unfiltered(Partitioning):
    """Every event concerns every rule of its inputs."""

    def touched(self, mask: int) -> Iterator[tuple[int, int]]:
        for number, rule in enumerate(self.rules):
            if mask >> rule.input_bit & 1:
                yield number, sum(1 << i for i, bit in enumerate(rule.bits) if mask >> bit & 1)


def unfiltered_job(rule: Rule) -> BothMatchers:
    """A job in which every event reaches the rule."""
    parts = compile_rules([rule]).partitionings
    unfiltered = [Unfiltered(p.key, p.rules, p.conditions, p.slots, p.keeps_payload) for p in parts]
    return BothMatchers(RuleSetPlan(tuple(unfiltered)))


@property_of
@given(ANY_RULE, keyed_streams())
def test_the_early_filter_does_not_matter(rule: Rule, records: list[Record]) -> None:
    """Events that cannot concern a rule may be kept from it, whatever its plan."""
    job = unfiltered_job(rule)
    job.advance(records, END_OF_TIME)
    assert results(job) == whole(rule, records)


@property_of
@given(ANY_RULE, keyed_streams(), st.lists(st.tuples(st.integers(-3, 20), st.sampled_from("kl"))))
def test_irrelevant_events_do_not_matter(
    rule: Rule, records: list[Record], extra: list[tuple[int, str]]
) -> None:
    """Events on which no condition is true change nothing where no step is strict."""
    plan = compile_rules([rule]).plans[0]
    assume(not plan.strict and not plan.relevant.evaluate(0))
    between = [
        Record(Coordinates("t", 0, 1_000 + number), time, {"key": key, "name": None, "price": None})
        for number, (time, key) in enumerate(extra)
    ]
    job = unfiltered_job(rule)
    job.advance([*records, *between], END_OF_TIME)
    assert results(job) == whole(rule, records)


@property_of
@given(ANY_RULE, keyed_streams())
def test_keys_do_not_matter_to_each_other(rule: Rule, records: list[Record]) -> None:
    """All keys together give what each gives alone."""
    alone: Results = Counter()
    for key in "kl":
        alone += whole(rule, [record for record in records if record.values["key"] == key])
    assert whole(rule, records) == alone


@property_of
@given(rules(), keyed_streams())
def test_absent_key_is_one_partition(rule: Rule, records: list[Record]) -> None:
    """A rule without key gives what it gives when all events have the same key."""
    together = job_of(replace(rule, key=(condition("'k'"),)))
    together.advance(records, END_OF_TIME)
    job = job_of(replace(rule, key=()))
    job.advance(records, END_OF_TIME)
    assert _times(job) == _times(together)


def _times(job: BothMatchers) -> Iterable[tuple[int, int]]:
    # Ids contain the key, so only the times can be compared.
    matches = [(match.start, match.time) for match in job.outputs.matches]
    return sorted(matches + [(timeout.start, timeout.deadline) for timeout in job.outputs.timeouts])


@settings(property_of, max_examples=2 * EXAMPLES)
@given(rules(), streams())
def test_machine_answers_what_the_oracle_answers(rule: Rule, events: list[Seen]) -> None:
    """Random rules with groups, look-backs, gaps and skip strategies."""
    try:
        expected = answer_to(rule, events)
    except UndefinedError as reason:
        event(str(reason))
        return
    event("answered")
    assert answers(rule, {"k": events})["k"] == expected
