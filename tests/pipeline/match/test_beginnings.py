"""A rule that comes while the job runs begins at an event time behind all that was read before."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_cep.compiler.rule_set import compile_rule, plan_together
from spark_cep.compiler.steps.lowering import lower
from spark_cep.matcher.findings.outputs import Outputs
from spark_cep.pattern.document.loading import load_rules
from spark_cep.pattern.tree import Rule
from tests.matcher.runs import END_OF_TIME
from tests.matcher.strategies import rules
from tests.pipeline.match.test_drain import (
    SQL_CLAUSES,
    SQL_TYPES,
    Stream,
    in_sql,
    many_batches,
    record,
)
from tests.pipeline.match.test_key_group import (
    LEFT,
    Store,
    findings,
    property_of,
    without_payload,
)
from tests.reference.local import LocalJob

ABSENCE = """
id: r
version: {}
previous_version: {}
key: key
within: 10 ms
pattern:
  - {{step: c, where: "name = 'c'"}}
  - {{step: d, after: not_followed_by, where: "name = 'd'"}}
"""
_SHOWN = ("events", "tested")


def absence(version: int = 1, previous: str = "restart") -> Rule:
    """``c`` without a ``d`` behind it."""
    return load_rules(ABSENCE.format(version, previous), "r.yaml")[0].rule


@pytest.mark.parametrize("kept", ["steps", "sql"])
def test_what_was_read_before_is_not_needed(kept: str) -> None:
    """A ``d`` waits that the rule has not seen; the ``c`` before it, which comes in time, is not
    the rule's either. Behind the newest event it sees all."""
    other = LEFT if kept == "steps" else in_sql(SQL_CLAUSES[0])
    store = Store(plan_together([compile_rule(other, SQL_TYPES)]), SQL_TYPES)
    store.advance([record(0, 1, "d")], -5)
    both = [compile_rule(other, SQL_TYPES), lower(absence())]
    store.change(plan_together(both), SQL_TYPES)
    store.advance([record(1, 0, "c")], 0)
    store.advance([record(2, 2, "c"), record(3, 20, "c"), record(4, 25, "d")], 19)
    store.advance([], 100)
    found = [match for match in store.outputs.matches if match.rule_id == "r"]
    assert [(match.time, match.steps["c"][0].at.offset) for match in found] == [(12, 2)]


def test_the_first_rules_have_all_events() -> None:
    """A job begins at the beginning."""
    store = Store(plan_together([lower(absence())]))
    store.advance([record(0, -3, "c")], 100)
    assert [match.time for match in store.outputs.matches] == [7]


def test_a_version_that_carries_over_begins_with_the_one_before() -> None:
    """It may see what that was to see, and no more."""
    one, two = absence(), absence(2, "carry")
    left = lower(LEFT)
    store = Store(plan_together([left]))
    store.advance([record(0, 30, "d")], 0)
    store.change(plan_together([left, lower(one)]))
    store.advance([], 1)
    store.change(plan_together([left, lower(two)], carried=[lower(one)]))
    store.advance([record(1, 5, "c"), record(2, 40, "c")], 35)
    store.advance([], 100)
    assert [match.time for match in store.outputs.matches if match.rule_id == "r"] == [50]


def alone(rule: Rule, stream: Stream, begins: int) -> Outputs:
    """What a rule finds with the events from the event time ``begins`` on."""
    job = LocalJob(plan_together([compile_rule(rule, SQL_TYPES)]), SQL_TYPES)
    for records, watermark in stream:
        job.advance([each for each in records if each.time >= begins], watermark)
    return job.outputs


@pytest.mark.slow
@property_of
@given(
    st.one_of(st.sampled_from([*map(in_sql, SQL_CLAUSES)]), rules("r")), many_batches(), st.data(),
    st.sampled_from([1, 1 << 26]),
)  # fmt: skip
def test_equal_to_the_rule_alone_from_its_beginning(
    rule: Rule, stream: Stream, data: st.DataObject, slice_bytes: int
) -> None:
    """Wherever it comes, whatever waits then, and however the stream is cut."""
    change = data.draw(st.integers(0, len(stream) - 1))
    left, plan = lower(LEFT), compile_rule(rule, SQL_TYPES)
    store = Store(plan_together([left]), SQL_TYPES, slice_bytes=slice_bytes)
    begins = -END_OF_TIME
    for place, (records, watermark) in enumerate(stream):
        if place == change:
            store.change(plan_together([left, plan]), SQL_TYPES)
            begins = store.newest + 1 if place else begins
        store.advance(records, watermark)
    expected = alone(rule, stream, begins)
    for outputs in (store.outputs, expected):
        outputs.counts = Counter(
            {what: n for what, n in outputs.counts.items() if what[1] not in _SHOWN}
        )
    assert without_payload(findings(store.outputs, "r")) == without_payload(findings(expected, "r"))
