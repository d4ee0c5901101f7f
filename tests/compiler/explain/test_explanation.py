"""Rules explained: what the text says of steps, states, events, bounds and warnings.

After an intended change, ``REWRITE_GOLDEN=1 python -m pytest tests/compiler`` writes the files in
``tests/golden/explanations`` again.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given

from spark_cep.compiler.explain.explanation import Explanation, explain
from spark_cep.compiler.explain.state_bounds import bounds, events_of_match
from spark_cep.compiler.explain.wording import condition_name, repetition
from spark_cep.compiler.plan import EventAtom
from spark_cep.compiler.steps.lowering import lower
from spark_cep.pattern.document.loading import load_rules
from spark_cep.pattern.tree import Loop, Rule, Step, Times, walk
from tests.compiler.test_plan_text import RULES
from tests.matcher.strategies import rules

GOLDEN = Path(__file__).parents[2] / "golden" / "explanations"
EXPLAINED = ("strict", "loop", "until", "group", "not_middle", "not_end", "look_back")
A = "{step: a, where: \"name = 'a'\"}"


def _explained(text: str) -> Explanation:
    """The explanation of the rule whose fields besides id are ``text``."""
    (loaded,) = load_rules(f"id: r\n{text}", "r.yaml")
    return explain(lower(loaded.rule), loaded.warnings)


def _section(text: str, heading: str) -> str:
    found = [s for s in _explained(text).sections if s.heading.startswith(heading)]
    assert len(found) == 1
    return "\n".join(found[0].lines)


@pytest.mark.parametrize("name", EXPLAINED)
def test_explanation_text(name: str) -> None:
    """The whole text for some kinds of pattern."""
    (loaded,) = load_rules(f"id: {name}\nkey: key\n{RULES[name]}", f"{name}.yaml")
    text = f"{explain(lower(loaded.rule), loaded.warnings)}\n"
    golden = GOLDEN / f"{name}.txt"
    if os.environ.get("REWRITE_GOLDEN"):
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


def test_no_golden_explanation_is_left_over() -> None:
    """Each file belongs to a rule."""
    assert {file.stem for file in GOLDEN.iterdir()} == set(EXPLAINED)


@given(rules())
def test_every_condition_stands_at_a_step(rule: Rule) -> None:
    """Each step is there, and each numbered condition at the steps that have it, in its place."""
    plan = lower(rule)
    steps = {s.heading: s for s in explain(plan).sections}["Steps"].lines
    for step in walk(rule.pattern):
        assert any(line.lstrip().startswith(f"{step.name}: ") for line in steps)
    for number, atom in enumerate(plan.atoms):
        place = "on the event" if isinstance(atom, EventAtom) else "looks back"
        label = f"{condition_name(number)} {place}  "
        assert any(line.lstrip().startswith(label) for line in steps)


@given(rules())
def test_every_state_and_edge_is_explained(rule: Rule) -> None:
    """Each state has its line, each edge its line below."""
    plan = lower(rule)
    states = {s.heading: s for s in explain(plan).sections}["States and edges"].lines
    assert len(states) == sum(1 + len(state.edges) for state in plan.states)
    for state in plan.states:
        assert any(line.startswith(f"  {state.number} {state.label}") for line in states)


def test_head_says_what_holds_for_the_whole_rule() -> None:
    """Identity, key, inputs, window, skip strategy, cooldown, and when and whether it runs."""
    text = f"""version: 7
description: "first line\\nand \\e[31m red"
events: [one, two]
key: [user_id, region]
enabled: false
effective_from: 2030-01-31T00:00:00Z
within: {{max: 1 hour 30 minutes, gap: 500 ms}}
after_match: {{skip_to_last: a, on_miss: error}}
cooldown: 10 seconds
pattern: [{A}]
"""
    head = _section(text, "Rule r, version 7")
    assert "first line\\nand \\x1b[31m red" in head
    for label, value in {
        "key": "user_id, region",
        "inputs": "one, two",
        "window": "less than 1 hour 30 minutes from the first event to the last,"
        " less than 500 ms from one event to the next",
        "after a match": "skip_to_last a, an error when there is no such event",
        "cooldown": "10 seconds",
        "effective from": "2030-01-31T00:00:00Z",
        "enabled": "no: the rule does not run",
    }.items():
        assert f"  {label:<14}  {value}" in head.splitlines()


def test_head_says_what_is_missing() -> None:
    """No key, no inputs, no window, no cooldown."""
    head = _section(f"pattern: [{A}]", "Rule r").splitlines()
    assert "  key            none: all events go through one partition" in head
    assert "  inputs         the only one that is configured" in head
    assert "  window         none" in head
    assert "  cooldown       none" in head


SIGNED = 'key: k\npattern: [{step: a, of_type: Trade, where: "ABS(cost) > 1 AND b.c = 2"}]'


def test_a_condition_is_shown_as_it_is_compared() -> None:
    """In its canonical text, with the record type that it is asked of."""
    text = str(_explained(SIGNED))
    assert "c1 on the event  type is Trade and ABS(cost) > 1 AND b.c = 2" in text


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        (f"[{A}]", "Events that have a key, and on which this is true:\n    name = 'a'\n"),
        ("[{step: a}]", "All events that have a key: no condition on the event alone"),
        (
            f"[{A}, {{step: b, after: followed_by, where: x > LAST(a.x)}}]",
            "All events that have a key: no condition on the event alone rules one out.",
        ),
        (
            f"[{A}, {{step: b, after: next, where: x > 1}}]",
            "All events that have a key, whatever they hold: the plan is strict.",
        ),
    ],
)
def test_which_events_reach_the_matcher(pattern: str, said: str) -> None:
    """Those on which a condition may be true; all, where a condition says nothing of the event
    alone; all, where an event between matters."""
    assert said in _section(f"key: k\npattern: {pattern}", "Events")


def test_strict_states_are_named() -> None:
    """Those in which an event that fits nothing matters, no others."""
    text = f"""key: k
events: logins
pattern:
  - {A}
  - {{step: b, after: followed_by, where: x > 1}}
  - {{step: c, after: next, where: x > 2}}
"""
    said = _section(text, "Events")
    assert "All events of logins that have a key" in said
    assert "    2 c" in said.splitlines()
    assert "    1 b" not in said.splitlines()


def _bounds(text: str) -> dict[str, list[str]]:
    (loaded,) = load_rules(f"id: r\nkey: k\n{text}", "r")
    found: dict[str, list[str]] = {}
    for bound in bounds(lower(loaded.rule)):
        found.setdefault(bound.name, []).append(bound.text)
    return found


def test_what_begins_and_splits_partial_matches() -> None:
    """Every first step that may be, and each step that makes several of one."""
    found = _bounds("""
pattern:
  - {step: a, where: x = 1, optional: true}
  - {step: b, after: followed_by_any, where: x = 2}
  - {step: c, after: followed_by, where: x = 3, times: 2..4, loop: combinations}
  - {step: d, after: followed_by, where: x = 4, times: 1+, greedy: true}
""")
    assert found["begins"] == ["at each event that `a` or `b` accepts"]
    assert found["splits"] == [
        "`a`, optional: one goes on with it, one without it",
        "`b`, followed_by_any: an event that fits is both taken and passed over",
        "`c`, combinations: a repetition is both taken and passed over",
        "`c`, a loop: from repetition 2 on, one goes on in it, one leaves it",
    ]
    assert _bounds(f"pattern: [{A}]")["splits"] == ["at no step"]


def test_what_ends_partial_matches() -> None:
    """Window, gap, `until` and NOT steps; or nothing."""
    found = _bounds("""
within: {max: 1 minute, gap: 5 seconds}
pattern:
  - {step: a, where: x = 1, times: 1+, until: x = 9}
  - {step: n, after: not_followed_by, where: x = 2}
  - {step: m, after: followed_by, where: x = 3}
  - {step: o, after: not_next, where: x = 4}
""")
    assert found["ends"] == [
        "1 minute after its first event",
        "5 seconds after the last event taken",
        "the loop `a`, by an event that its `until` accepts",
        "at an event that the NOT step `n` or `o` accepts",
    ]
    assert _bounds(f"pattern: [{A}]")["ends"] == ["at no deadline: the rule has no window"]


def test_what_is_held() -> None:
    """Limits, matches held back, columns once each, original bytes."""
    found = _bounds("""
within: 1 minute
after_match: skip_to_next
limits: {partial_matches: 5000, events: 7, on_limit: pause_rule}
pattern:
  - {step: a, of_type: trade}
  - {step: b, after: followed_by, where: "price > LAST(a.price) AND price < 9 * LAST(a.price)"}
emit: {events: all, measures: {sum: SUM(a.price)}}
""")
    (limits,) = found["limits"]
    assert limits == (
        "5,000 partial matches, 7 distinct events, 1,000 matches of one event,"
        " beyond that pause_rule"
    )
    assert found["held back"] == [
        "a match, while a partial match that began earlier lives: less than 1 minute"
    ]
    assert found["columns"] == ["price, price (of trade)"]
    assert found["original bytes"] == ["kept with each event taken"]
    without = _bounds(f"after_match: skip_to_next\npattern: [{A}]")
    assert without["held back"] == ["a match, while a partial match that began earlier lives"]
    assert without["columns"] == ["none"]
    assert without["original bytes"] == ["not kept"]


@pytest.mark.parametrize(
    ("pattern", "least", "most"),
    [
        (f"[{A}]", 1, 1),
        (f"[{A}, {{step: b, after: followed_by, times: 2..4}}]", 3, 5),
        (f"[{A}, {{step: b, after: followed_by, times: 0..4}}]", 1, 5),
        (f"[{A}, {{step: b, after: followed_by, times: 3+}}]", 4, None),
        (f"[{A}, {{step: g, after: next, times: 2..3, group: [{A.replace('a,', 'c,')}]}}]", 3, 4),
        (f"[{{step: g, times: 1+, group: [{A}]}}]", 1, None),
        (f"[{A}, {{step: n, after: not_next, where: x = 1}}]", 1, 1),
    ],
)
def test_events_of_a_match(pattern: str, least: int, most: int | None) -> None:
    """The least and the most events, through repetitions, groups, optional steps and NOTs."""
    (loaded,) = load_rules(f"id: r\npattern: {pattern}", "r")
    assert events_of_match(loaded.rule.pattern) == (least, most)


def test_an_endless_match_names_its_loops() -> None:
    """Where the pattern sets no bound, the loops are named; where it does, the number."""
    found = _bounds(f"pattern: [{A}, {{step: b, after: followed_by, times: 3+}}]")
    assert found["events"] == ["a match takes 4 or more; `b` may repeat without end"]
    found = _bounds(f"pattern: [{A}, {{step: b, after: followed_by, optional: true}}]")
    assert found["events"] == ["a match takes 1 to 2, a partial match holds no more"]


@pytest.mark.parametrize(
    ("step", "said"),
    [
        (Step("a"), "once"),
        (Step("a", optional=True), "once or not at all"),
        (Step("a", times=Times(3, 3)), "3 times, relaxed"),
        (Step("a", times=Times(1, 1)), "once"),
        (Step("a", times=Times(1, 2)), "1 to 2 times, relaxed"),
        (Step("a", times=Times(1, 2), optional=True), "up to 2 times, or not at all, relaxed"),
        (Step("a", times=Times(2, 2), optional=True), "2 times, or not at all, relaxed"),
        (Step("a", times=Times(1, None)), "once or more, relaxed"),
        (Step("a", times=Times(1, None), optional=True), "any number of times, relaxed"),
        (
            Step("a", times=Times(2, None), loop=Loop.COMBINATIONS, gap_ms=1500),
            "2 times or more, any combination, less than 1 second 500 ms apart",
        ),
        (
            Step("a", times=Times(2, None), loop=Loop.CONSECUTIVE, greedy=True),
            "2 times or more, consecutive, greedy",
        ),
    ],
)
def test_repetitions_in_words(step: Step, said: str) -> None:
    """How often, how close, how greedily."""
    assert repetition(step) == said


def test_warnings_are_the_ones_of_the_check() -> None:
    """What `check` warns about stands at the end, with its place."""
    said = _section(f"after_match: skip_to_next\npattern: [{A}]", "Warnings")
    assert "r.yaml:1:5: [rule r] the rule has no `key`" in said
    assert "`skip_to_next` without window" in said
    assert _section(f"key: k\npattern: [{A}]", "Warnings") == "  none"
