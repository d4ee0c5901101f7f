"""The account's verdicts are the engine's, for any rule in SQL and any rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.rule_set import compile_rules
from spark_cep.matcher.findings.outputs import Outputs
from spark_cep.model import Coordinates
from spark_cep.pattern.tree import Limits, Rule
from spark_cep.pattern.types import BIGINT, STRING, RecordType
from spark_cep.runner.batch import RunSettings
from spark_cep.runner.runner import Runner
from spark_cep.runner.values import ValueInputs
from spark_cep.why.account import Account, EndReason
from spark_cep.why.run import why
from tests.matcher.row_pattern.clauses import CONDITIONS, clauses, statement_and_clause
from tests.reference.local import Record
from tests.row_pattern_oracle import Clause
from tests.sql_rules import sql_rule
from tests.why.running import END, batches, taken

EVENT = RecordType({"ts": BIGINT, "v": BIGINT, "k": STRING})
TYPES = RecordTypes((("t", "Event", EVENT),))
MANY = settings(
    max_examples=100, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)


def inputs() -> ValueInputs:
    """The only record type."""
    known = ValueInputs(TYPES)
    known.number("t", "Event")
    return known


#: Patterns whose attempts live for several rows, in several ways.
LONG = ["A B+ C", "A+ B C?", "A (B | C)+ A", "(A | B)* C C", "A B* {- C+ -} A", "PERMUTE(A, B, C)"]


@st.composite
def long_ways(draw: st.DrawFn) -> tuple[str, Clause]:
    """A clause with one of these."""
    several = st.sampled_from(list(CONDITIONS))
    return statement_and_clause(
        draw(st.sampled_from(LONG)),
        draw(st.dictionaries(st.sampled_from("ABC"), several, min_size=1, max_size=3)),
        draw(st.sampled_from(["PAST LAST ROW", "TO NEXT ROW"])),
        draw(st.sampled_from(["ONE ROW PER MATCH", "ALL ROWS PER MATCH"])),
        draw(st.none() | st.integers(2, 9)),
        draw(st.sampled_from([0, 0, 1])),
    )


@st.composite
def sql_rules(draw: st.DrawFn) -> Rule:
    """A rule with a key, WITHIN, WHERE and limits, or without."""
    text, _ = draw(clauses(timed=draw(st.booleans())) | long_ways())
    text = text.replace("(ORDER BY ts", "(PARTITION BY k ORDER BY ts")
    if draw(st.integers(0, 3)) == 0:
        text = text.replace("FROM t", "FROM (SELECT * FROM t WHERE v < 2)")
    limits = draw(st.just(Limits()) | st.builds(Limits, st.integers(1, 6)))
    return replace(sql_rule(text, EVENT), limits=limits)


@st.composite
def rows(draw: st.DrawFn) -> list[Record]:
    """Rows of two keys, some at one time, in the order of application."""
    time = 0
    found: list[Record] = []
    for number in range(draw(st.integers(0, 10))):
        time += draw(st.integers(0, 3))
        values = {"ts": time, "v": draw(st.integers(0, 2)), "k": draw(st.sampled_from("kkl"))}
        found.append(Record(Coordinates("t", 0, number), time, values, "t", "Event"))
    return found


def of_engine(rule: Rule, records: Sequence[Record], end: int) -> tuple[Outputs, list[str]]:
    """What the engine finds for key ``k``, and the open ways and complete matches at the end."""
    plan, settings_ = compile_rules([rule], TYPES), RunSettings("maximum", key_groups=1)
    runner, found = Runner(plan, inputs(), settings_), Outputs()
    for results in runner.run(batches(records, end)):
        found.add(results.outputs)
    live = [each for each in runner.partial_matches() if each.key == "k" and each.steps]
    return found, sorted({taken(each.steps) for each in live})


def ids(outputs: Outputs) -> list[str]:
    """The ids of matches of key ``k``, of whatever form, in order."""
    of_rows = [each.match_id for each in outputs.rows if each.key == "k" and each.match_id]
    return list(
        dict.fromkeys([*(each.match_id for each in outputs.matches if each.key == "k"), *of_rows])
    )


@given(sql_rules(), rows(), st.booleans())
@MANY
@pytest.mark.slow
def test_verdicts_are_the_engines(rule: Rule, records: list[Record], ends: bool) -> None:
    """The account finds what the engine finds, and each way begins once and ends once."""
    end = END if ends else max((each.time for each in records), default=0)
    engine, live = of_engine(rule, records, end)
    account = why(rule, "k", inputs(), batches(records, end), RunSettings("maximum"))
    assert account.matches == ids(engine)
    assert account.timeouts == [each.match_id for each in engine.timeouts if each.key == "k"]
    assert sorted({taken(each.steps) for each in account.open}) == live
    assert_whole(rule, account, engine)


def assert_whole(rule: Rule, account: Account, engine: Outputs) -> None:
    """Each way begins once and ends once; reasons are those that the engine gives."""
    begun: list[int] = []
    ended: list[int] = []
    for moment in account.moments:
        begun += [number for _, number in moment.started]
        for turn in moment.turns:
            begun += [number for _, number in turn.took if number != turn.partial]
            ended += [turn.partial] if turn.ending else []
            assert turn.stays or turn.took or turn.ending
            if turn.ending:
                events = account.partials[turn.partial].steps.values()
                first = min(each.time for taken in events for each in taken)
                over = rule.within.max_ms is not None and first + rule.within.max_ms <= moment.time
                assert (turn.ending.reason is EndReason.WINDOW) == (
                    over and turn.ending.reason is not EndReason.MATCH
                )
            if turn.ending and turn.ending.reason is EndReason.CONTIGUITY and moment.event:
                # Something stood in the way of each variable that could have come next.
                assert all(each.unmet for each in turn.passed)
    assert sorted(begun) == sorted(account.partials)
    assert len(set(ended)) == len(ended)
    endings = [each.ending for each in account.partials.values() if each.ending]
    results = {each.result for each in endings if each.result}
    assert results <= {*account.matches, *account.timeouts}
    # A match without rows has no way.
    taking = [each.match_id for each in engine.matches if each.key == "k" and each.steps]
    taking += [
        each.match_id for each in engine.rows if each.key == "k" and each.variable and each.match_id
    ]
    assert {*taking} <= results
    reasons = {each.reason for each in endings}
    letters = {each.reason for each in engine.dead_letters}
    assert EndReason.LIMIT not in reasons or "limit_reached" in letters
