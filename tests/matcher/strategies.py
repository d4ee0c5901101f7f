"""Hypothesis strategies: rules that may run, and streams of events with ties and several keys."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from spark_cep.model import Coordinates
from spark_cep.pattern.checks.validation import refusals
from spark_cep.pattern.expressions import Expression, parse
from spark_cep.pattern.tree import AfterMatch, Contiguity, Loop, Rule, Skip, Step, Times, Within
from tests.oracle import Seen
from tests.reference.local import Record

#: The most milliseconds by which an event may come after a later one.
DISORDER = 3

STEPS = frozenset("pqrstu")
POSITIVE = (Contiguity.NEXT, Contiguity.FOLLOWED_BY, Contiguity.FOLLOWED_BY_ANY)
NEGATIVE = (Contiguity.NOT_NEXT, Contiguity.NOT_FOLLOWED_BY)
TIMES = (Times(2, 2), Times(3, 3), Times(1, 2), Times(2, 3), Times(1, None), Times(2, None))

EVENT_CONDITIONS = ["name = 'a'", "name = 'b'", "name = 'c'", "name <> 'c'", "price > 2"]
LOOK_BACKS = [
    "price > LAST({0}.price)",
    "SUM({0}.price) < 6",
    "COUNT({0}.*) < 2",
    "COUNT(DISTINCT {0}.price) < 3",
    "STDDEV({0}.price) < 1.2",
    "price >= FIRST({0}.price, 1)",
    "price <> LAST({0}.price, 2)",
    "MAX({0}.name) <= name",
    "COUNT(DISTINCT {0}.price * 2) < 3",
]


def condition(text: str) -> Expression:
    """The condition, parsed where every step of the strategies may be referred to."""
    return parse(text, steps=STEPS)


@st.composite
def conditions(draw: st.DrawFn, earlier: tuple[str, ...], look_backs: bool) -> Expression:
    """A condition over the event, or also over the events of ``earlier`` steps."""
    text = draw(st.sampled_from(EVENT_CONDITIONS))
    if look_backs and earlier and draw(st.integers(0, 3)) == 0:
        looking = draw(st.sampled_from(LOOK_BACKS)).format(draw(st.sampled_from(earlier)))
        text = f"{text} {draw(st.sampled_from(['AND', 'OR']))} {looking}"
    return condition(text)


@st.composite
def _steps(
    draw: st.DrawFn,
    names: list[str],
    first: bool,
    grouped: bool,
    look_backs: bool,
    gaps: bool,
) -> tuple[Step, ...]:
    steps: list[Step] = []
    for number in range(draw(st.integers(1, 3))):
        if not names:
            break
        opens = first and number == 0
        after = None if number == 0 else draw(st.sampled_from(POSITIVE + POSITIVE + NEGATIVE))
        earlier = tuple(sorted(STEPS - set(names)))
        name = names.pop(0)
        if after is not None and after.negative:
            where = draw(conditions((), look_backs=False))
            steps.append(Step(name, after, where))
            continue
        times = draw(st.none() | st.sampled_from(TIMES))
        repeats: dict[str, Any] = {"optional": draw(st.integers(0, 3)) == 0}
        if times is not None:
            repeats |= {"times": times, "loop": draw(st.sampled_from(Loop))}
            if times.looping and draw(st.integers(0, 3)) == 0:
                repeats["until"] = draw(conditions((), look_backs=False))
        if grouped and names and draw(st.integers(0, 4)) == 0:
            names.insert(0, name)
            group = draw(_steps(names, opens, False, look_backs, False))
            steps.append(Step(f"group_{name}", after, group=group, **repeats))
            continue
        if times is not None:
            repeats["greedy"] = draw(st.integers(0, 3)) == 0
            if gaps and draw(st.booleans()):
                repeats["gap_ms"] = draw(st.integers(1, 4))
        within_loop = (*earlier, name) if times is not None else earlier
        where = draw(conditions(within_loop, look_backs=look_backs))
        steps.append(Step(name, after, where, **repeats))
    return tuple(steps)


@st.composite
def rules(
    draw: st.DrawFn,
    rule_id: str = "r",
    look_backs: bool = True,
    skips: bool = True,
    gaps: bool = True,
) -> Rule:
    """A rule that the validation accepts."""
    pattern = draw(_steps(sorted(STEPS), True, True, look_backs, gaps))
    longest = draw(st.none() | st.integers(4, 12))
    gap = draw(st.none() | st.none() | st.integers(1, 4))
    after = AfterMatch()
    if skips:
        strategies = [AfterMatch(Skip.NO_SKIP), AfterMatch(Skip.TO_NEXT)]
        strategies.append(AfterMatch(Skip.PAST_LAST_EVENT))
        for step in pattern:
            if step.group is None and not step.negative:
                strategies += [AfterMatch(Skip.TO_FIRST, step.name)]
                strategies += [AfterMatch(Skip.TO_LAST, step.name)]
        after = draw(st.sampled_from(strategies))
    rule = Rule(
        rule_id,
        1,
        pattern,
        key=(condition("key"),),
        within=Within(longest, gap),
        after_match=after,
    )
    assume(not any(refusals(rule)))
    return rule


@st.composite
def streams(draw: st.DrawFn, most: int = 9) -> list[Seen]:
    """Events of one key in the order of application, some at one time."""
    time = draw(st.integers(-3, 3))
    events = []
    for _ in range(draw(st.integers(0, most))):
        time += draw(st.integers(0, 2))
        name = draw(st.sampled_from("aabbcx"))
        price = draw(st.none() | st.integers(0, 4) if name != "x" else st.integers(0, 2))
        events.append(Seen(time, {"name": name, "price": price}))
    return events


@st.composite
def keyed_streams(draw: st.DrawFn, most: int = 6) -> list[Record]:
    """Records of several keys in the order of application, which their offsets follow."""
    events = [(key, event) for key in "kl" for event in draw(streams(most))]
    events.sort(key=lambda one: one[1].time)
    found = [
        Record(Coordinates("t", 0, number), event.time, {**event.values, "key": key})
        for number, (key, event) in enumerate(events)
    ]
    if draw(st.booleans()):
        return found
    # The order within a millisecond is not that of offsets.
    fine = [replace(each, micros=draw(st.integers(0, 3))) for each in found]
    return sorted(fine, key=lambda each: (each.time, each.micros, each.at))


@st.composite
def arrivals(draw: st.DrawFn, records: list[Record]) -> list[Record]:
    """The records in an order in which none comes later than ``DISORDER`` allows."""
    delays = draw(st.lists(st.integers(0, DISORDER), min_size=len(records), max_size=len(records)))
    order = sorted(range(len(records)), key=lambda n: records[n].time + delays[n])
    return [records[n] for n in order]
