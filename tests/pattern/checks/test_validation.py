"""What the checks of a rule's tree refuse, what they let pass, and what they warn about."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.rule_set import compile_rules
from spark_cep.errors import RuleSetError
from spark_cep.model import Coordinates
from spark_cep.pattern.checks.validation import check_rule
from spark_cep.pattern.document.loading import load_rules
from spark_cep.pattern.expressions import parse
from spark_cep.pattern.tree import (
    AfterMatch,
    Contiguity,
    Emit,
    Limits,
    Loop,
    PreviousVersion,
    Rule,
    Skip,
    Step,
    Times,
    Within,
)
from spark_cep.pattern.types import INT, STRING, RecordType
from tests.reference.job import ReferenceJob
from tests.reference.local import Record

_SPEC = Path(__file__).parents[2] / "spec" / "invalid.toml"
_CASES: list[dict[str, Any]] = tomllib.loads(_SPEC.read_text(encoding="utf-8"))["case"]

A = Step("a", where=parse("x = 1"))
B = Step("b", after=Contiguity.FOLLOWED_BY, where=parse("x = 2"))
LOOP = Times(1, None)


def rule(*pattern: Step, **fields: Any) -> Rule:
    """A rule with a key and a window, so that it gives no warnings of its own."""
    given: dict[str, Any] = {
        "key": (parse("k"),),
        "within": Within(max_ms=1_000),
        "after_match": AfterMatch(Skip.TO_NEXT),
        **fields,
    }
    return Rule(id="r", version=1, pattern=pattern, **given)


NO_WINDOW = (
    "without a window a partial match waits for `b` for ever: each key that begins one holds state"
    " until the event comes"
)


def messages(checked: Rule) -> tuple[list[str], list[str]]:
    """The messages of the refusals and of the warnings."""
    problems, warnings = check_rule(checked)
    return [p.message for p in problems], [w.message for w in warnings]


def text(pattern: str, rest: str = "") -> str:
    """A rule document around a pattern."""
    return f"id: r\nversion: 1\nkey: k\n{rest}pattern:\n{pattern}"


@pytest.mark.parametrize("case", _CASES, ids=lambda case: str(case["name"]))
def test_invalid_pattern_is_refused_for_its_one_reason(case: dict[str, Any]) -> None:
    """Each case of the table is refused with its message, what is allowed, and a place."""
    pattern = case["pattern"].replace("[]", " []") if case["pattern"] == "[]" else case["pattern"]
    with pytest.raises(RuleSetError) as caught:
        load_rules(text(pattern, case.get("rest", "")), "case.yaml")
    assert [p.message for p in caught.value.problems] == [case["message"]]
    problem = caught.value.problems[0]
    assert problem.allowed
    assert problem.span is not None
    assert problem.excerpt is not None
    underlined = problem.excerpt[problem.span.column - 1 :][: problem.span.length]
    assert underlined.strip()


@pytest.mark.parametrize(
    "pattern",
    [
        (
            "[{step: a, times: 1+, greedy: true}, {step: b, after: next, times: 0..2},"
            " {step: c, after: next}]"
        ),
        (
            "[{step: g, times: 2, loop: combinations, group: [{step: a, times: 2+, greedy: true}]},"
            " {step: c, after: next}]"
        ),
        "[{step: g, times: 2+, until: x = 1, group: [{step: a}]}, {step: c, after: next}]",
        "[{step: a}, {step: n, after: not_next}]",
        (
            "[{step: g, group: [{step: a}, {step: o, after: next, optional: true}]},"
            " {step: n, after: not_next}, {step: c, after: next}]"
        ),
        "[{step: a}, {step: n, after: not_followed_by}, {step: o, after: next, optional: true}]",
        (
            "[{step: g, group: [{step: a, times: 1+, greedy: true}]},"
            " {step: o, after: next, optional: true}]"
        ),
        "[{step: a, times: 1, loop: consecutive}, {step: b, after: next}]",
        "[{step: a, optional: true}]",
        (
            "[{step: a}, {step: n, after: not_next}, {step: m, after: not_followed_by},"
            " {step: b, after: followed_by}]"
        ),
    ],
)
def test_what_flink_accepts_is_accepted(pattern: str) -> None:
    """Combinations close to refused ones, that Flink CEP runs."""
    assert load_rules(text("  " + pattern), "case.yaml")


def test_plain_rule_gives_no_finding() -> None:
    """A sequence with key and window is neither refused nor warned about."""
    assert messages(rule(A, B)) == ([], [])


def test_rule_from_python_names_step_without_place() -> None:
    """A rule that was never text is refused with its step and without a line."""
    problems, _ = check_rule(rule(A, replace(B, greedy=True)))
    assert [p.render() for p in problems] == [
        (
            "<rule>: [rule r] [step b] [field greedy] `greedy` on `b`, which does not repeat\n"
            "  help: `greedy` together with `times`"
        )
    ]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"cooldown_ms": 0}, "`cooldown` is 0 ms"),
        (
            {"drain_limit_ms": 5},
            "`drain_limit` has no meaning with `previous_version: restart`",
        ),
        (
            {"drain_limit_ms": 0, "previous_version": PreviousVersion.DRAIN},
            "`drain_limit` is 0 ms",
        ),
        ({"within": Within(max_ms=-1)}, "`within` is -1 ms"),
        ({"within": Within(gap_ms=0)}, "`within.gap` is 0 ms"),
        ({"limits": Limits(partial_matches=0)}, "`limits.partial_matches` is 0"),
        ({"limits": Limits(matches=10**9 + 1)}, "`limits.matches` is 1000000001"),
        ({"limits": Limits(work=0)}, "`limits.work` is 0"),
        ({"effective_from_ms": 10**15}, "`effective_from` is out of range: 10"),
        (
            {"effective_from_ms": 0, "previous_version": PreviousVersion.CARRY},
            "`previous_version: carry` has no meaning with `effective_from`",
        ),
        ({"events": ("logs", "logs")}, "the input `logs` is named twice"),
        ({"events": (" ",)}, "the name of an input is empty"),
        ({"emit": Emit(events=())}, "`emit.events` names no column"),
        ({"emit": Emit(events=("ip", "ip"))}, "the column `ip` is named twice"),
        ({"emit": Emit(events=("ip", "null"))}, "`null` is not the name of a column"),
        ({"emit": Emit(events=("1",))}, "`1` is not the name of a column"),
        ({"emit": Emit(events=("PI()",))}, "`PI()` is not the name of a column"),
        ({"emit": Emit(events=("ip +",))}, "`ip +` is not the name of a column"),
        (
            {"emit": Emit(measures=MappingProxyType({"a b": parse("1", measure=True)}))},
            "`a b` cannot be the name of a measure",
        ),
        ({"after_match": AfterMatch(Skip.TO_FIRST)}, "`skip_to_first` needs a step"),
        ({"after_match": AfterMatch(Skip.TO_NEXT, "a")}, "`skip_to_next` takes no step"),
        (
            {"after_match": AfterMatch(Skip.TO_NEXT, error_on_miss=True)},
            "`on_miss` does not apply to `skip_to_next`",
        ),
        ({"key": (parse("LAST(a.x)", steps=frozenset("a")),)}, "the key refers to steps"),
    ],
)
def test_fields_out_of_range_are_refused(fields: dict[str, Any], message: str) -> None:
    """Numbers, names and references that only Python can build are refused too."""
    problems, _ = messages(rule(A, B, **fields))
    assert len(problems) == 1
    assert problems[0].startswith(message)


def test_identity_is_checked() -> None:
    """Id and version must be usable as a name and a positive number."""
    for version in (0, 2**31):
        problems, _ = messages(replace(rule(A), id="a b", version=version))
        assert problems == ["`a b` cannot be the id of a rule", f"{version} cannot be a version"]


def test_deep_groups_are_refused() -> None:
    """Groups lie in one another only so far."""
    step = Step("g0", group=(A,))
    for depth in range(1, 12):
        step = Step(f"g{depth}", group=(step,))
    assert messages(rule(step))[0] == [
        "the group `g1` lies too deep",
        "the group `g0` lies too deep",
    ]


def test_empty_pattern_and_group_are_refused() -> None:
    """A pattern and a group have members."""
    assert messages(rule())[0] == ["the pattern is empty"]
    assert messages(rule(Step("g", group=())))[0] == ["the group `g` is empty"]


def test_rule_without_key_is_warned_about() -> None:
    """Without a key, one partition does everything."""
    assert messages(rule(A, key=()))[1] == [
        "the rule has no `key`: all its events go through one partition"
    ]


def test_greedy_last_step_is_warned_about() -> None:
    """Greedy at the end of the pattern or of its last group has no effect."""
    greedy = replace(A, times=LOOP, greedy=True)
    warning = "`greedy` has no effect on `a`: nothing follows it"
    assert messages(rule(greedy)) == ([], [warning])
    assert messages(rule(Step("g", group=(greedy,)))) == ([], [warning])
    assert messages(rule(Step("g", times=Times(2, 2), group=(greedy,)))) == ([], [])
    assert messages(rule(greedy, B)) == ([], [])


def test_a_step_whose_events_a_greedy_loop_takes_is_warned_about() -> None:
    """A rule that can never match, unless the loop ends or the step has events of its own."""
    buy = Step("buy", where=parse("x > 0"), times=Times(1, None), greedy=True)
    steps = frozenset({"buy"})
    over = Step("over", Contiguity.FOLLOWED_BY, parse("x > 0 AND SUM(buy.x) > 9", steps=steps))
    warning = (
        "`over` never takes an event: each one that fits it also fits the greedy loop `buy`, which"
        " takes it first"
    )
    assert messages(rule(buy, over)) == ([], [warning])
    assert messages(rule(replace(buy, where=None), over)) == ([], [warning])
    assert messages(rule(buy, replace(over, where=parse("x > 1")))) == ([], [warning])
    full = warning.replace("takes it first", "has priority even when it is full")
    assert messages(rule(replace(buy, times=Times(1, 3)), over)) == ([], [full])
    other = replace(over, where=parse("x > -1"))
    ended = replace(buy, until=parse("x > 100"))
    parted = replace(buy, gap_ms=500)
    exact = replace(buy, times=Times(3, 3))
    typed = replace(buy, of_type="A")
    for first, second in (
        (buy, other),
        (ended, over),
        (parted, over),
        (exact, over),
        (typed, over),
        (replace(buy, greedy=False), over),
    ):
        assert messages(rule(first, second)) == ([], [])


def test_not_step_that_gives_way_is_warned_about() -> None:
    """Both steps are named, the one in the way being the next ``not_next`` or the last."""
    n = Step("n", after=Contiguity.NOT_FOLLOWED_BY, where=parse("x = 3"))
    m, p = replace(n, name="m"), Step("p", after=Contiguity.NOT_NEXT, where=parse("x = 4"))
    warning = (
        "`{}` has no effect: the NOT step `{}` comes after it with nothing to take between them"
    )
    assert messages(rule(A, n, p, B)) == ([], [warning.format("n", "p")])
    assert messages(rule(A, n, m)) == ([], [warning.format("n", "m")])
    assert messages(rule(A, n, m, p, B))[1] == [warning.format("n", "p"), warning.format("m", "p")]
    for accepted in ((A, n, m, B), (A, p, n, B), (A, p, n), (A, n, B, p), (A, n, B, m)):
        assert messages(rule(*accepted)) == ([], [])
    between = "`n` also forbids an event between two repetitions of `a`, not only behind the last"
    assert messages(rule(replace(A, times=LOOP), n, p, B)) == ([], [between])
    looping_group = Step("g", group=(replace(A, times=LOOP),))
    assert messages(rule(looping_group, n, p, B)) == ([], [between])


def test_not_step_between_repetitions_is_warned_about() -> None:
    """Only ``not_followed_by`` directly behind a step that others may interrupt."""
    n = Step("n", after=Contiguity.NOT_FOLLOWED_BY, where=parse("x = 3"))
    p = replace(n, name="p", after=Contiguity.NOT_NEXT)
    twice = replace(A, times=Times(2, 2))
    for first in (twice, replace(A, times=Times(1, 2)), replace(A, times=LOOP)):
        (warning,) = messages(rule(first, n, B))[1]
        assert warning.startswith("`n` also forbids an event between two repetitions of `a`")
        assert len(messages(rule(first, n))[1]) == 1
    group = Step("g", group=(A, B), times=Times(2, 2))
    assert "repetitions of `g`" in messages(rule(group, n, replace(B, name="c")))[1][0]
    for silent in (
        (A, n, B),
        (twice, p, B),
        (twice, p, n, B),
        (twice, B, n),
        (replace(twice, loop=Loop.CONSECUTIVE), n, B),
    ):
        assert messages(rule(*silent)) == ([], [])


def test_endless_loop_is_warned_about() -> None:
    """A loop needs a window or `until`."""
    loop = replace(A, times=LOOP)
    warning = (
        "the loop `a` has neither a window nor `until`: its partial matches stay,"
        " with ever more events, until `limits.work` or another limit drops them"
    )
    forever: dict[str, Any] = {"within": Within(), "after_match": AfterMatch()}
    assert messages(rule(loop, B, **forever))[1] == [warning]
    assert messages(rule(replace(loop, until=parse("x = 3")), B, **forever))[1] == [NO_WINDOW]
    until = NO_WINDOW.replace("`b`", "`until`")
    assert messages(rule(replace(loop, until=parse("x = 3")), **forever))[1] == [until]
    assert messages(rule(loop, B, within=Within(gap_ms=5)))[1] == []


def test_skip_without_window_is_warned_about() -> None:
    """A skip strategy holds matches back while an earlier partial match lives."""
    skipping = rule(A, B, within=Within(), after_match=AfterMatch(Skip.PAST_LAST_EVENT))
    assert messages(skipping)[1] == [
        (
            "`skip_past_last_event` without window: an unfinished earlier partial match holds"
            " matches back"
        )
    ]


def test_cost_is_warned_about() -> None:
    """Branching at every event multiplies partial matches."""
    combinations = replace(A, times=LOOP, loop=Loop.COMBINATIONS)
    assert messages(rule(combinations, B))[1] == [
        "`combinations` in the loop `a`: each event that fits doubles the partial matches"
    ]
    any_b = replace(B, after=Contiguity.FOLLOWED_BY_ANY)
    any_c = replace(any_b, name="c")
    assert messages(rule(replace(A, times=LOOP), any_b, any_c))[1] == [
        (
            "`followed_by_any` on `b`, `c` together with a loop: partial matches multiply"
            " with every event that fits"
        )
    ]
    assert messages(rule(A, any_b, any_c))[1] == []


def test_reference_to_later_step_is_warned_about() -> None:
    """A later step has no events yet, unless a group brings it round again."""
    early = replace(A, where=parse("x > LAST(b.x)", steps=frozenset("ab")))
    warning = (
        "`where` of `a` refers to the later step `b`, which has no events yet:"
        " the reference is NULL"
    )
    assert messages(rule(early, B)) == ([], [warning])
    in_round = (
        "`where` of `a` is never true in the first round of `g`: the later step `b` has no events"
        " yet, so no round of `g` is ever complete"
    )
    assert messages(rule(Step("g", times=Times(2, 2), group=(early, B)))) == ([], [in_round])
    later = replace(A, where=parse("b.x IS NULL OR x > LAST(b.x)", steps=frozenset("ab")))
    assert messages(rule(Step("g", times=Times(2, 2), group=(later, B)))) == ([], [])
    first = "LAST(a.x) IS NULL OR x > LAST(a.x)"
    own = replace(A, where=parse(first, steps=frozenset("ab")), times=Times(2, 2))
    assert messages(rule(own, B)) == ([], [])


@pytest.mark.parametrize(
    ("where", "never"),
    [
        ("x > LAST(a.x)", True),
        ("x = 1 AND LAST(a.x, 1) < 5", True),
        ("COUNT(a.*) > 0", True),
        ("x > COALESCE(LAST(a.x), 0)", False),
        ("COUNT(a.*) < 3", False),
        ("LAST(a.x) IS NULL OR x > LAST(a.x)", False),
    ],
)
def test_a_first_event_that_never_comes_is_warned_about(where: str, never: bool) -> None:
    """The step looks back at itself, and has no event before its first."""
    own = replace(A, where=parse(where, steps=frozenset("ab")), times=Times(2, 2))
    found = messages(rule(own, B))[1]
    assert [each.startswith("`where` of `a` is never true for its first") for each in found] == (
        [True] if never else []
    )


@pytest.mark.parametrize(
    ("condition", "effect"),
    [
        ({"where": "x = NULL"}, "`b` never takes an event"),
        ({"where": "x = NULL OR x = 1"}, "this part never counts"),
        ({"until": "1 = 2", "times": LOOP}, "it never ends `b`"),
    ],
)
def test_what_is_never_true_is_warned_about(condition: dict[str, Any], effect: str) -> None:
    """With what comes of it."""
    fields: dict[str, Any] = {
        name: parse(v) if isinstance(v, str) else v for name, v in condition.items()
    }
    (found,) = messages(rule(A, replace(B, **fields)))[1]
    assert found.endswith(f", so {effect}")
    never = Step("n", after=Contiguity.NOT_FOLLOWED_BY, where=parse("x <> x"))
    (found,) = messages(rule(A, never, B))[1]
    assert found.endswith(", so `n` forbids nothing")


FORBIDDEN: list[tuple[tuple[Step, ...], str | None]] = [
    ((A, Step("n", after=Contiguity.NOT_FOLLOWED_BY, where=parse("x > 1")), B), "has no effect"),
    ((A, Step("n", after=Contiguity.NOT_FOLLOWED_BY, where=parse("x > 2")), B), None),
    ((A, Step("n", after=Contiguity.NOT_NEXT, where=parse("x > 1")), B), None),
    (
        (A, Step("n", Contiguity.NOT_NEXT, parse("x > 1")), replace(B, after=Contiguity.NEXT)),
        "never takes one",
    ),
    (
        (A, Step("n", Contiguity.NOT_FOLLOWED_BY, parse("x > 1")), B, replace(B, name="c")),
        "no match is possible",
    ),
    (
        (A, Step("n", Contiguity.NOT_FOLLOWED_BY, parse("x > 1")), replace(B, times=Times(2, 3))),
        "no match is possible",
    ),
    (
        (
            replace(A, times=Times(2, 2)),
            Step("n", Contiguity.NOT_FOLLOWED_BY, parse("x < 2")),
            B,
        ),
        "no match is possible",
    ),
    (
        (
            replace(A, times=Times(2, None), loop=Loop.CONSECUTIVE),
            Step("n", Contiguity.NOT_FOLLOWED_BY, parse("x < 2")),
            B,
        ),
        "no match is possible",
    ),
]


@pytest.mark.parametrize(("pattern", "effect"), FORBIDDEN)
def test_not_steps_that_forbid_what_is_needed(
    pattern: tuple[Step, ...], effect: str | None
) -> None:
    """They are warned about, and what is said of them is so."""
    found = messages(rule(*pattern))[1]
    said = [each for each in found if "forbids" in each and "also forbids" not in each]
    assert bool(said) is (effect is not None)
    assert effect is None or effect in said[0]
    plan = compile_rules([rule(*pattern)])
    without = compile_rules([rule(*(step for step in pattern if not step.negative))])
    types = RecordTypes((("", "E", RecordType({"k": STRING, "x": INT})),))
    same, matches = True, 0
    for values in product((1, 2), repeat=4):
        records = [
            Record(Coordinates("t", 0, n), n + 1, {"k": "k", "x": x}) for n, x in enumerate(values)
        ]
        ids = []
        for each in (plan, without):
            job = ReferenceJob(each, types)
            job.advance(records, 10_000)
            ids.append({match.match_id for match in job.outputs.matches})
        same, matches = same and ids[0] == ids[1], matches + len(ids[0])
    if effect == "has no effect":
        assert same
        assert matches
    elif effect is not None:
        assert not matches
    else:
        assert matches


def test_a_misspelt_step_is_warned_about() -> None:
    """Nobody knows without a schema that the event has no such record; a record that the key reads
    is one, and so is a name that no step is like."""
    fail = Step("fail", where=parse("x = 1"))
    for text in ("x = fial.x", "x > FIRST(fail.x) AND fial.y = 1"):
        where = parse(text, steps=frozenset({"fail"}))
        ok = Step("ok", Contiguity.NEXT, where)
        warning = "there is no step `fial`, so `fial.…` is read as a record of the event"
        assert messages(rule(fail, ok)) == ([], [warning])
        assert messages(replace(rule(fail, ok), key=(parse("fial.id"),))) == ([], [])
    other = Step("ok", Contiguity.NEXT, parse("x = user.x"))
    assert messages(rule(fail, other)) == ([], [])
    measure = parse("SUM(fial.x)", steps=frozenset({"fail"}), measure=True)
    assert messages(replace(rule(fail), emit=Emit({"m": measure})))[1] == [warning]
