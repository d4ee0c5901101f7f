"""The account's verdicts are the engine's, for any rule and any events."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_cep.compiler.rule_set import compile_rules
from spark_cep.matcher.findings.live import PartialMatch
from spark_cep.matcher.findings.outputs import Outputs
from spark_cep.pattern.tree import Limits, OnLimit, Rule
from spark_cep.runner.batch import RunSettings
from spark_cep.runner.runner import Runner
from spark_cep.runner.values import ValueInputs
from spark_cep.why.account import Account, EndReason
from spark_cep.why.run import why
from tests.matcher.strategies import keyed_streams, rules
from tests.reference.local import Record
from tests.why.running import batches, taken


def of_engine(rule: Rule, records: Sequence[Record]) -> tuple[Outputs, list[PartialMatch]]:
    """What the engine finds for all keys, and what is open at the end."""
    inputs = ValueInputs()
    inputs.number("", None)
    runner = Runner(compile_rules([rule]), inputs, RunSettings("maximum", key_groups=1))
    found = Outputs()
    for results in runner.run(batches(records)):
        found.add(results.outputs)
    return found, list(runner.partial_matches())


def explained(rule: Rule, key: str, records: Sequence[Record]) -> Account:
    """The account of a key."""
    inputs = ValueInputs()
    inputs.number("", None)
    return why(rule, key, inputs, batches(records), RunSettings("maximum"))


@given(rules(), st.data())
@settings(max_examples=30)
@pytest.mark.slow
def test_verdicts_are_the_engines(rule: Rule, data: st.DataObject) -> None:
    """The account finds what the engine finds, and each event is accounted for."""
    records: list[Record] = data.draw(keyed_streams(9))
    limits = data.draw(
        st.just(Limits())
        | st.builds(Limits, st.integers(1, 4), on_limit=st.sampled_from(OnLimit))
        | st.builds(Limits, matches=st.integers(1, 2), on_limit=st.sampled_from(OnLimit))
    )
    cooldown = data.draw(st.none() | st.integers(1, 6))
    rule = replace(rule, limits=limits, cooldown_ms=cooldown)
    engine, live = of_engine(rule, records)
    for key in "kl":
        account = explained(rule, key, records)
        matches = [each for each in engine.matches if each.key == key]
        timeouts = [each for each in engine.timeouts if each.key == key]
        assert account.matches == [each.match_id for each in matches]
        assert account.timeouts == [each.match_id for each in timeouts]
        # One that is held back may be alive, too, and comes behind.
        still = {taken(each.steps): each for each in reversed(live) if each.key == key}
        assert sorted(taken(each.steps) for each in account.open) == sorted(still)
        assert {each.waits_for for each in account.open} == {p.waits_for for p in still.values()}
        assert_whole(account, engine)
        ended = [each.ending for each in account.partials.values()]
        results = {each.result for each in ended if each and each.result}
        # A partial match that goes on after a match ends otherwise.
        assert results <= {*account.matches, *account.timeouts}
        # Its events may be a match that is held back, too, and so still be there.
        held = {taken(each.steps) for each in account.open if each.held_back}
        ran_out = {each.match_id for each in timeouts if taken(each.steps) not in held}
        assert ran_out <= results


def assert_whole(account: Account, engine: Outputs) -> None:
    """Each partial match begins once and ends once, and reasons are those that were counted."""
    begun: list[int] = []
    ended: list[int] = []
    for moment in account.moments:
        begun += [number for _, number in moment.started]
        for turn in moment.turns:
            begun += [number for _, number in turn.took if number != turn.partial]
            ended += [turn.partial] if turn.ending else []
            assert turn.stays or turn.took or turn.ending
    assert sorted(begun) == sorted(account.partials)
    assert len(set(ended)) == len(ended)
    reasons = {each.ending.reason for each in account.partials.values() if each.ending}
    counts = engine.counts
    assert EndReason.SKIP not in reasons or counts["r", "pruned"]
    assert (
        EndReason.LIMIT not in reasons or counts["r", "dropped"] or counts["r", "dropped_matches"]
    )


@given(rules(), st.data())
@settings(max_examples=15)
def test_what_was_foretold_has_come(rule: Rule, data: st.DataObject) -> None:
    """A step that has not taken an event has a part of its condition that is not true, and one that
    has taken it is not among those that passed it over."""
    records: list[Record] = data.draw(keyed_streams(9))
    account = explained(rule, "k", records)
    for moment in account.moments:
        for turn in moment.turns:
            took = {step for step, _ in turn.took}
            for passed in turn.passed:
                assert passed.step not in took
                assert passed.unmet
        started = {step for step, _ in moment.started}
        for passed in moment.not_started:
            assert passed.step not in started
            assert passed.unmet
