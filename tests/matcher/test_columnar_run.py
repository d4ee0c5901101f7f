"""Runs of the kernel that must make room, hand out, collect and forget: the answers stay the same.

Sizes that only much data would reach are made small, and the reference says what is right.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from spark_cep.compiler.rule_set import compile_rules
from spark_cep.matcher.steps import matcher, reporting, tables
from spark_cep.matcher.steps.loops import kernel
from spark_cep.model import Coordinates
from spark_cep.pattern.tree import Limits, OnLimit, Rule
from tests.matcher.runs import (
    END_OF_TIME,
    TYPES,
    BothMatchers,
    found_by,
    job,
    matched,
    remembered,
    written,
)
from tests.matcher.strategies import keyed_streams, rules
from tests.reference.local import LocalJob, Record

property_of = settings(
    max_examples=40,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)


@st.composite
def limited_rules(draw: st.DrawFn, rule_id: str = "r") -> Rule:
    """A rule that may cool down, begin late, and have limits of any policy."""
    rule = draw(rules(rule_id))
    rule = replace(rule, cooldown_ms=draw(st.none() | st.integers(1, 6)))
    rule = replace(rule, effective_from_ms=draw(st.none() | st.none() | st.integers(-3, 5)))
    if rule.after_match.step is not None and draw(st.booleans()):
        rule = replace(rule, after_match=replace(rule.after_match, error_on_miss=True))
    if draw(st.booleans()):
        most = Limits(
            partial_matches=draw(st.integers(1, 6)),
            events=draw(st.integers(1, 6)),
            on_limit=draw(st.sampled_from(OnLimit)),
            matches=draw(st.integers(1, 3)),
            work=draw(st.sampled_from([5, 12, 30, 5_000_000])),
        )
        rule = replace(rule, limits=most)
    return rule


#: Rules of one key, and one of no key.
RULE_SETS = st.tuples(
    limited_rules("r"),
    limited_rules("s"),
    limited_rules("global").map(lambda r: replace(r, key=())),
)


def both_in_steps(rule_set: tuple[Rule, ...], records: list[Record], data: st.DataObject) -> None:
    """Run kernel and reference over the stream in a few calls; they are compared after each."""
    both = BothMatchers(compile_rules(rule_set))
    while records:
        cut = data.draw(st.integers(1, len(records)))
        now, records = records[:cut], records[cut:]
        both.advance(now, now[-1].time - 1 - data.draw(st.integers(0, 3)))
        if data.draw(st.booleans()):
            both.reload()
    both.advance([], END_OF_TIME)
    event(f"matches: {min(len(both.outputs.matches), 3)}")


# Making room and handing out.


@pytest.mark.parametrize("drain_at", [1, 2, 3])
@pytest.mark.slow
def test_little_room(drain_at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables that have no row to spare, and findings that are handed out one by one."""
    monkeypatch.setattr(matcher, "_DRAIN_AT", drain_at)
    monkeypatch.setattr(matcher, "_ROOM", 0)
    monkeypatch.setattr(reporting, "MOST_TAKEN_EVENTS", 2 * drain_at)
    statuses: set[int] = set()
    monkeypatch.setattr(kernel, "run", noting(kernel.run, statuses))

    @property_of
    @given(RULE_SETS, keyed_streams(), st.data())
    def agree(rule_set: tuple[Rule, ...], records: list[Record], data: st.DataObject) -> None:
        both_in_steps(rule_set, records, data)

    agree()
    assert statuses == {kernel.DONE, kernel.GROW, kernel.DRAIN}


def noting(function: Any, results: set[Any]) -> Any:
    """The function, which adds its results to a set."""

    def noted(*arguments: Any) -> Any:
        result = function(*arguments)
        results.add(result)
        return result

    return noted


BRANCHING = """
within: 40 ms
limits: {partial_matches: 1000000, events: 1000000, matches: 1000000}
pattern:
  - {step: a, where: "name = 'a'"}
  - {step: b, after: followed_by_any, where: "name = 'b'", times: 1+, loop: combinations}
  - {step: c, after: followed_by, where: "price > LAST(a.price)"}
"""


@pytest.mark.slow
def test_every_table_grows() -> None:
    """Few events, of which thousands of partial matches, matches and timeouts come."""
    both = job(BRANCHING)
    both.advance(written("a=0@1 " + " ".join(f"b@{2 + n}" for n in range(11))), 13)
    ((_, _, state),) = both.rule_states()
    assert len(state.partials) > 2_000
    both.advance(written("c=1@14"), 14)
    assert len(both.outputs.matches) > 2_000
    both.advance(written("a=9@20 b@21 b@22 b@23"), END_OF_TIME)
    assert len(both.outputs.timeouts) > 2


def test_findings_come_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """No piece has more than what one event can find beyond the bound."""
    monkeypatch.setattr(matcher, "_DRAIN_AT", 10)
    sizes: list[int] = []
    findings = matcher.StepLoopRun._findings

    def noted(run: matcher.StepLoopRun) -> matcher.Findings:
        found = findings(run)
        sizes.append(len(found.match_key) + len(found.timeout_key) + len(found.failure_rule))
        return found

    monkeypatch.setattr(matcher.StepLoopRun, "_findings", noted)
    pairs = " ".join(f"a@{2 * n} b@{2 * n + 1}" for n in range(200))
    both = job("""
pattern:
  - {step: a, where: "name = 'a'"}
  - {step: b, after: next, where: "name = 'b'"}
""")
    both.advance(written(pairs), END_OF_TIME)
    assert len(both.outputs.matches) == sum(sizes) == 200
    assert max(sizes) == 10


# Nodes that nothing points to.


class Nodes:
    """How large the table of nodes was at the end of each run."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sizes: list[int] = []
        #: How many nodes the last instance's last collection left; 0 where there was none.
        self.lived: list[int] = []
        monkeypatch.setattr(matcher.StepLoopRun, "_settle", self._noted())

    def _noted(self) -> Any:
        settle = matcher.StepLoopRun._settle

        def noted(run: matcher.StepLoopRun) -> None:
            self.sizes.append(len(run._out.nodes))
            self.lived.append(int(run._controls["live_nodes"][0]))
            settle(run)

        return noted


def burst(number: int) -> Iterator[Record]:
    """Events of which 64 sequences come that soon run out of time, or are matches."""
    for n, name in enumerate("abbbbbb" + "c" * (number % 5 == 0)):
        at = Coordinates("t", 0, 100 * number + n)
        yield Record(at, 100 * number + n, {"key": "k", "name": name, "price": n})


@pytest.mark.slow
def test_nodes_are_collected_within_one_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one key, many partial matches come and go: their nodes do not pile up."""
    monkeypatch.setattr(matcher, "_DRAIN_AT", 50)  # what is found holds nodes, too
    nodes = Nodes(monkeypatch)
    bursts = 250
    both = job(BRANCHING)
    both.advance([record for number in range(bursts) for record in burst(number)], END_OF_TIME)
    assert len(both.outputs.matches) > bursts * 32
    assert len(both.outputs.timeouts) == bursts * 64
    assert max(nodes.sizes) < bursts * 64 / 2


@pytest.mark.slow
def test_collected_nodes_keep_what_is_to_be_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Partial matches, held matches and findings not handed out yet go on pointing rightly."""
    nodes = Nodes(monkeypatch)
    chance = random.Random(4)
    text = " ".join(
        f"{chance.choice('abbbbbcx')}={chance.randint(0, 9)}@{n * 2}" for n in range(800)
    )
    for skip in ("no_skip", "skip_to_next", "skip_past_last_event", "{skip_to_last: b}"):
        rule = f"after_match: {skip}\n" + BRANCHING.replace("40 ms", "24 ms").lstrip()
        both = job(rule)
        half = written(text)
        both.advance(half[:300], 590)
        both.advance(half[300:], END_OF_TIME)
        assert len(both.outputs.matches) + len(both.outputs.timeouts) > 200
        assert nodes.lived[-1] > 0


# Tables that forget.


@pytest.mark.parametrize("bound", ["MOST_ENTRIES", "_MOST_MASKS"])
@pytest.mark.slow
def test_tables_are_forgotten(bound: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Outcomes, or what a mask concerns, are resolved again in every call."""
    monkeypatch.setattr(tables, bound, 1)

    @property_of
    @given(RULE_SETS, keyed_streams(), st.data())
    def agree(rule_set: tuple[Rule, ...], records: list[Record], data: st.DataObject) -> None:
        both_in_steps(rule_set, records, data)

    agree()


@pytest.mark.parametrize(("entries", "masks"), [(50, 20), (50, 1_000), (1_000_000, 20)])
@pytest.mark.slow
def test_tables_stay_bounded(entries: int, masks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many combinations of conditions occur."""
    monkeypatch.setattr(tables, "MOST_ENTRIES", entries)
    monkeypatch.setattr(tables, "_MOST_MASKS", masks)
    both = many_rules(8)
    known = both.kernel._matchers[0]._steps.tables
    sizes = []
    for number in range(256):
        names = "".join(letter(bit) for bit in range(8) if number >> bit & 1)
        both.advance([many(number, number, names, number % 5)], number)
        sizes.append((len(known._touched), len(known._outcome)))
    assert max(touched for touched, _ in sizes) <= masks + 1
    # One call's events are resolved together, whatever they need: here at most 8 rules' states.
    assert max(outcomes for _, outcomes in sizes) <= entries + 8 * 8


# Many rules.


def letter(number: int) -> str:
    """The letter that a rule looks for."""
    return chr(0x4E00 + number)


def many_rules(count: int) -> BothMatchers:
    """Rules of one key, each with two conditions of its own."""
    texts = (
        f"id: r{n}\nkey: key\nwithin: {5 + n} ms\npattern:\n"
        f"  - {{step: a, where: \"name LIKE '%{letter(n)}%'\"}}\n"
        f'  - {{step: b, after: followed_by_any, where: "price = {n % 5}"}}\n'
        for n in range(count)
    )
    return job("---\n".join(texts))


def many(number: int, time: int, name: str, price: int, key: str = "k") -> Record:
    """An event whose name has the letters of the rules that may start with it."""
    at = Coordinates("t", 0, number)
    return Record(at, time, {"key": key, "name": name, "price": price})


def test_many_rules() -> None:
    """More conditions than a word has bits: masks of some rules, of all and of the last one."""
    both = many_rules(75)
    (part,) = both.plan.partitionings
    assert len(part.conditions) > 75
    chance = random.Random(7)
    letters = [letter(n) for n in range(75)]
    for step in range(12):
        names = [
            letters[-1],
            "".join(letters),
            "".join(chance.sample(letters, 40)),
            chance.choice(letters),
        ]
        records = [
            many(step * 10 + n, 3 * step + n, name, chance.randint(0, 5), chance.choice("kl"))
            for n, name in enumerate(names)
        ]
        both.advance(records, 3 * step)
        assert max(both.kernel._states[0].ahead.masks) >= 1 << 63
        both.reload()
    both.advance([], END_OF_TIME)
    assert {match.rule_id for match in both.outputs.matches} >= {"r0", "r74"}


# Order.


def test_topics_are_in_the_order_of_their_names() -> None:
    """Not in that in which they were met; then partitions, then offsets."""
    places = [
        Coordinates("b", 0, 7), Coordinates("b", 0, 9), Coordinates("b", 2, 1),
        Coordinates("c", 0, 0), Coordinates("é", 0, 0),
    ]  # fmt: skip
    rule = "pattern:\n" + "".join(
        f"  - {{step: s{n}{', after: next' if n else ''}, where: price = {n}}}\n" for n in range(5)
    )
    orders = list(permutations(range(5)))
    for order in orders[:: len(orders) // 20]:
        both = job(rule)
        records = [Record(places[n], 1, {"key": "k", "name": "", "price": n}) for n in order]
        both.advance(records[:2], 0)
        both.reload()
        both.advance(records[2:], 5)
        (match,) = both.outputs.matches
        assert [taken.at for steps in match.steps.values() for taken in steps] == places


@pytest.mark.slow
@property_of
@given(RULE_SETS, keyed_streams(), st.data())
def test_any_places(rule_set: tuple[Rule, ...], records: list[Record], data: st.DataObject) -> None:
    """Kernel and reference order events of several topics and partitions alike, ties and all."""
    spread = [
        replace(record, at=at)
        for number, record in enumerate(records)
        for at in [
            Coordinates(data.draw(st.sampled_from("zamü")), data.draw(st.integers(0, 1)), number)
        ]
    ]
    both_in_steps(rule_set, spread, data)


# Instances without events.


def test_rules_with_and_without_events() -> None:
    """Each rule is woken by its own events and deadlines, whatever the others of the key do."""
    both = job("""
id: slow
key: key
within: 100 ms
pattern: [{step: a, where: "name = 'a'"}, {step: b, after: followed_by, where: "name = 'b'"}]
---
id: quick
key: key
within: 10 ms
cooldown: 50 ms
pattern: [{step: a, where: "name = 'a'"}, {step: c, after: followed_by, where: "name = 'c'"}]
---
id: paused
key: key
within: 100 ms
limits: {partial_matches: 1, on_limit: pause_rule}
pattern: [{step: a, where: "name = 'a'"}, {step: d, after: followed_by, where: "name = 'd'"}]
---
id: later
key: key
effective_from: 1970-01-01T00:00:00.020Z
pattern: [{step: a, where: "name = 'a'"}, {step: b, after: followed_by, where: "name = 'b'"}]
""")
    both.advance([*written("a@0 c@5"), *written("x@0", key="l")], 5)
    kept = {plan.rule.id for _, plan, _ in both.rule_states()}
    assert kept == {"slow", "quick", "paused"}
    for time in (9, 10, 11):
        both.advance([], time)
    assert both.outputs.timeouts == []  # quick matched in time
    both.advance(written("a@21 a@22"), 22)
    both.reload()
    both.advance(written("c@25 d@26 b@30"), 30)
    assert {m.rule_id for m in both.outputs.matches} == {"slow", "quick", "later"}
    assert [m.time for m in both.outputs.matches if m.rule_id == "quick"] == [5]
    both.advance([], 200)
    # A pause has no end; a cooldown has one.
    assert {plan.rule.id for _, plan, _ in both.rule_states()} == {"paused"}
    both.advance(written("a@300 d@301 c@302"), 302)
    assert {m.rule_id for m in both.outputs.matches if m.time > 300} == {"quick"}


def test_compiled_and_called_conditions_of_one_partitioning() -> None:
    """A rule whose condition calls Python goes on next to one that is compiled, over restarts."""
    both = job("""
id: compiled
key: key
pattern: [{step: a, where: "name = 'a'"}, {step: b, after: next, where: price > LAST(a.price)}]
---
id: called
key: key
pattern:
  - {step: a, where: "name = 'a'"}
  - {step: b, after: next, where: "LAST(a.price + 0) < price"}
""")
    (of_key,) = both.kernel._matchers
    assert [call.rule for call in of_key._steps.tables.calls] == [1]
    both.advance(written("a=1@1 b=2@2 a=5@3"), 3)
    both.reload()
    assert {plan.rule.id for _, plan, _ in both.kernel.rule_states()} == {"compiled", "called"}
    both.advance(written("b=7@4"), END_OF_TIME)
    assert matched(both) == [("a0 b1", 2), ("a0 b1", 2), ("b0 a2", 4), ("b0 a2", 4)]


def test_no_events() -> None:
    """Nothing comes and nothing is remembered, at any watermark."""
    one = LocalJob(job(BRANCHING).plan, TYPES)
    for watermark in (-5, 0, END_OF_TIME):
        one.advance([], watermark)
    assert found_by(one) == ([], [], [], {})
    assert remembered(one) == {}
