"""Rules in Python: each method says what YAML says, and is refused where YAML is."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given, settings

from spark_cep import Pattern, to_yaml
from spark_cep.errors import Problem, RuleSetError
from spark_cep.pattern.checks.validation import check_rule
from spark_cep.pattern.document.canonical import to_data
from spark_cep.pattern.document.loading import load_rules
from spark_cep.pattern.document.plain_data import load_data
from spark_cep.pattern.tree import Contiguity, Loop, Rule, Skip, Step
from tests.matcher.strategies import rules
from tests.pattern.document.test_canonical import rules as document_rules


def begin() -> Pattern:
    """A pattern of one step."""
    return Pattern.begin("a").where("x = 1")


def loop() -> Pattern:
    """A pattern of one step that loops."""
    return begin().one_or_more()


def group() -> Pattern:
    """Two steps, to be a group."""
    return Pattern.begin("p").where("x = 3").next("q").where("x = 4")


def yaml(pattern: str, rest: str = "") -> Rule:
    """The rule of a YAML text, `a` being the step that `begin` makes."""
    text = f"id: r\n{rest}\npattern: {pattern.replace('{a', '{step: a, where: x = 1')}"
    return load_rules(text, "yaml")[0].rule


def problems(make: Callable[[], object]) -> tuple[Problem, ...]:
    """What the rule is refused for."""
    with pytest.raises(RuleSetError) as caught:
        make()
    assert all(problem.source == "<python>" for problem in caught.value.problems)
    return caught.value.problems


@pytest.mark.parametrize(
    ("pattern", "written"),
    [
        (Pattern.begin("a"), "[{step: a}]"),
        (begin(), "[{a}]"),
        (begin().where("y > 2 OR z"), "[{step: a, where: x = 1 AND (y > 2 OR z)}]"),
        (begin().or_where("y > 2"), "[{step: a, where: x = 1 OR y > 2}]"),
        (
            begin().or_where("y").where("z").or_where("w"),
            "[{step: a, where: ((x = 1 OR y) AND z) OR w}]",
        ),
        (Pattern.begin("a").or_where("x = 1"), "[{a}]"),
        (begin().of_type("com.acme.Order"), "[{a, of_type: com.acme.Order}]"),
        (begin().next("b"), "[{a}, {step: b, after: next}]"),
        (begin().followed_by("b"), "[{a}, {step: b, after: followed_by}]"),
        (begin().followed_by_any("b"), "[{a}, {step: b, after: followed_by_any}]"),
        (
            begin().not_next("n").where("x = 9").followed_by("b"),
            "[{a}, {step: n, after: not_next, where: x = 9}, {step: b, after: followed_by}]",
        ),
        (
            begin().not_followed_by("n").of_type("N").followed_by("b"),
            "[{a}, {step: n, after: not_followed_by, of_type: N}, {step: b, after: followed_by}]",
        ),
        (begin().times(3), "[{a, times: 3}]"),
        (begin().times(2, 4), "[{a, times: 2..4}]"),
        (begin().times(0, 2), "[{a, times: 0..2}]"),
        (begin().times(3, gap="5 seconds"), "[{a, times: 3, gap: 5 seconds}]"),
        (begin().times(1, 3, gap=timedelta(minutes=1)), "[{a, times: 1..3, gap: 1 minute}]"),
        (begin().times_or_more(2), "[{a, times: 2+}]"),
        (begin().times_or_more(2, gap="1 ms"), "[{a, times: 2+, gap: 1 ms}]"),
        (begin().one_or_more(), "[{a, times: 1+}]"),
        (begin().one_or_more(gap="1 ms"), "[{a, times: 1+, gap: 1 ms}]"),
        (loop().consecutive(), "[{a, times: 1+, loop: consecutive}]"),
        (loop().allow_combinations(), "[{a, times: 1+, loop: combinations}]"),
        (loop().greedy().greedy(), "[{a, times: 1+, greedy: true}]"),
        (begin().greedy().times(2, 3), "[{a, times: 2..3, greedy: true}]"),
        (begin().optional().next("b"), "[{a, optional: true}, {step: b, after: next}]"),
        (begin().times(2).optional().optional(), "[{a, times: 2, optional: true}]"),
        (loop().until("x > LAST(a.x)"), "[{a, times: 1+, until: x > LAST(a.x)}]"),
        (
            begin().next("g", group()).times(2).consecutive(),
            (
                "[{a}, {step: g, after: next, times: 2, loop: consecutive, group: "
                "[{step: p, where: x = 3}, {step: q, after: next, where: x = 4}]}]"
            ),
        ),
        (
            Pattern.begin("g", group()).one_or_more().until("x = LAST(p.x)").optional(),
            (
                "[{step: g, times: 1+, until: x = LAST(p.x), optional: true, group: "
                "[{step: p, where: x = 3}, {step: q, after: next, where: x = 4}]}]"
            ),
        ),
        (
            begin()
            .followed_by("g", Pattern.begin("h", group()))
            .followed_by_any("i", Pattern.begin("c")),
            (
                "[{a}, {step: g, after: followed_by, group: [{step: h, group: "
                "[{step: p, where: x = 3}, {step: q, after: next, where: x = 4}]}]}, "
                "{step: i, after: followed_by_any, group: [{step: c}]}]"
            ),
        ),
    ],
)
def test_steps_are_those_of_yaml(pattern: Pattern, written: str) -> None:
    """Each method about steps writes the field that Flink's method of its name stands for."""
    rule = pattern.rule("r")
    assert rule == yaml(written)
    assert load_rules(to_yaml(rule), "text")[0].rule == rule


@pytest.mark.parametrize(
    ("pattern", "written"),
    [
        (begin().within("10 minutes"), "within: 10 minutes"),
        (begin().within(timedelta(minutes=10)), "within: 10 minutes"),
        (begin().within(gap="5 seconds"), "within: {gap: 5 seconds}"),
        (begin().within("1 hour", gap="1 ms"), "within: {max: 1 hour, gap: 1 ms}"),
        (begin().within(gap="1 ms").within("1 hour"), "within: {max: 1 hour, gap: 1 ms}"),
        (begin().no_skip(), "after_match: no_skip"),
        (begin().skip_to_next(), "after_match: skip_to_next"),
        (begin().skip_past_last_event(), "after_match: skip_past_last_event"),
        (begin().skip_to_first("a"), "after_match: {skip_to_first: a}"),
        (begin().skip_to_last("a"), "after_match: {skip_to_last: a}"),
        (
            begin().skip_to_first("a", error_on_miss=True),
            "after_match: {skip_to_first: a, on_miss: error}",
        ),
        (
            begin().skip_to_last("a", error_on_miss=True),
            "after_match: {skip_to_last: a, on_miss: error}",
        ),
    ],
)
def test_windows_and_strategies_are_those_of_yaml(pattern: Pattern, written: str) -> None:
    """What holds for the whole pattern stands on the rule."""
    assert pattern.rule("r") == yaml("[{a}]", written)


@pytest.mark.parametrize(
    ("fields", "written"),
    [
        ({"version": 7}, "version: 7"),
        ({"key": "k"}, "key: k"),
        ({"key": ["k", "UPPER(l)"]}, "key: [k, UPPER(l)]"),
        ({"key": ("k",)}, "key: k"),
        ({"events": "in"}, "events: in"),
        ({"events": ["in", "out"]}, "events: [in, out]"),
        ({"measures": {"n": "COUNT(a.*)"}}, "emit: {measures: {n: COUNT(a.*)}}"),
        ({"emit_events": "all"}, "emit: {events: all}"),
        ({"emit_events": ["x", "y.z"]}, "emit: {events: [x, y.z]}"),
        (
            {"limits": {"partial_matches": 3, "events": 4, "work": 5, "on_limit": "pause_rule"}},
            "limits: {partial_matches: 3, events: 4, work: 5, on_limit: pause_rule}",
        ),
        ({"limits": {"events": 4}}, "limits: {events: 4}"),
        ({"cooldown": "1 day"}, "cooldown: 1 day"),
        ({"cooldown": timedelta(days=1)}, "cooldown: 1 day"),
        ({"effective_from": "2030-01-31T01:00:00+01:00"}, "effective_from: 2030-01-31T00:00:00Z"),
        ({"effective_from": date(2030, 1, 31)}, "effective_from: 2030-01-31"),
        ({"effective_from": datetime(2030, 1, 31, 5)}, "effective_from: 2030-01-31T05:00:00Z"),
        (
            {
                "effective_from": datetime(
                    2030, 1, 31, 5, 0, 0, 250_000, timezone(timedelta(hours=1))
                )
            },
            "effective_from: 2030-01-31T04:00:00.250Z",
        ),
        (
            {"effective_from": datetime(2030, 1, 31, tzinfo=UTC)},
            "effective_from: 2030-01-31T00:00:00Z",
        ),
        ({"enabled": False}, "enabled: false"),
        (
            {"description": "a \x7f\u2028 \U0001f600 text"},
            'description: "a \\x7f\\u2028 \U0001f600 text"',
        ),
    ],
)
def test_fields_are_those_of_yaml(fields: dict[str, Any], written: str) -> None:
    """The arguments of ``rule`` are the document's fields, and stand in the canonical text."""
    rule = begin().rule("r", **fields)
    assert rule == yaml("[{a}]", written)
    assert to_yaml(rule) == to_yaml(yaml("[{a}]", written))
    assert rule.source == "<python>"


@pytest.mark.parametrize(
    ("make", "field", "message"),
    [
        (lambda: begin().times(0), "times", "`times` of `a` allows no event"),
        (lambda: begin().times(-2), "times", "`times` of `a` allows no event"),
        (lambda: begin().times(4, 2), "times", "`times` of `a` is reversed: from 4 to 2"),
        (lambda: begin().times(True), "times", "`times`: `true` is not a number of repetitions"),
        (lambda: begin().greedy(), "greedy", "`greedy` on `a`, which does not repeat"),
        (
            lambda: begin().consecutive(),
            "loop",
            "`loop: consecutive` on `a`, which does not repeat",
        ),
        (
            lambda: loop().allow_combinations().greedy(),
            "greedy",
            "`greedy` does not go with `loop: combinations` on `a`",
        ),
        (lambda: begin().times(2).until("x"), "until", "`until` on `a`, which does not loop"),
        (lambda: Pattern.begin("a").where(""), "where", "`where` is empty"),
        (lambda: Pattern.begin("a").where("").where("x"), "where", "`where` is empty"),
        (
            lambda: Pattern.begin("a").where("x = 1) OR (y = 2").where("z = 3"),
            "where",
            "')' closes nothing",
        ),
        (
            lambda: Pattern.begin("a").where(lambda event: event),  # type: ignore[arg-type]
            "where",
            "a value of type function cannot stand in a rule",
        ),
        (
            lambda: begin().where(None),  # type: ignore[arg-type]
            "where",
            "`None` cannot stand in a rule",
        ),
        (
            lambda: begin().where(3),  # type: ignore[arg-type]
            "where",
            "`where` must be text, found the number `3`",
        ),
        (lambda: loop().until("RAND() < 1"), "until", None),
        (lambda: begin().of_type("\ud800"), "of_type", "the text is not valid Unicode"),
        (
            lambda: begin().times(2, gap=timedelta(microseconds=1)),
            "gap",
            "`gap`: `0.001 ms` is not a duration",
        ),
        (
            lambda: begin().times(2, gap=5),  # type: ignore[arg-type]
            "gap",
            "`gap`: `5` is not a duration: its unit is missing",
        ),
        (
            lambda: Pattern.begin("a", group()).where("x"),
            "where",
            "`where` does not apply to the group `a`",
        ),
        (
            lambda: Pattern.begin("a", group()).times(2).greedy(),
            "greedy",
            "`greedy` does not apply to the group `a`",
        ),
        (lambda: Pattern.begin("a", group().within("1 s")), "within", "unknown key `within`"),
        (
            lambda: Pattern.begin("a", group().skip_to_next()),
            "after_match",
            "unknown key `after_match`",
        ),
        (
            lambda: Pattern.begin("s").not_next("a").where("x").times(2),
            "times",
            "`times` does not apply to the NOT step `a`",
        ),
        (
            lambda: Pattern.begin("s").not_followed_by("a").where("x"),
            "after",
            "`a` at the end of the pattern has no deadline",
        ),
        (lambda: begin().next("a"), "step", "the name `a` is given to two steps"),
    ],
)
def test_what_is_refused_names_step_and_field(
    make: Callable[[], Pattern], field: str, message: str | None
) -> None:
    """The checks of YAML refuse the same in Python, and name rule, step and field."""
    (problem,) = problems(lambda: make().rule("r", key="k"))
    assert (problem.rule, problem.step, problem.field) == ("r", "a", field)
    assert message is None or problem.message == message
    assert problem.render().startswith(f"<python>: [rule r] [step a] [field {field}] ")


@pytest.mark.parametrize(
    ("pattern", "fields", "field"),
    [
        (begin(), {"version": 0}, "version"),
        (begin(), {"version": "1"}, "version"),
        (begin(), {"key": "NOW()"}, "key"),
        (begin(), {"key": ["k", "NOW()"]}, "key"),
        (begin(), {"key": {"k"}}, "key"),
        (begin(), {"key": []}, "key"),
        (begin(), {"measures": {"n": "RAND()"}}, "emit.measures.n"),
        (begin(), {"measures": {"n": 1}}, "emit.measures.n"),
        (begin(), {"emit_events": "some"}, "emit.events"),
        (begin(), {"limits": {"partial_matches": 0}}, "limits.partial_matches"),
        (begin(), {"limits": {"partials": 3}}, "limits.partials"),
        (begin(), {"cooldown": timedelta(seconds=-1)}, "cooldown"),
        (begin(), {"cooldown": 5}, "cooldown"),
        (begin(), {"effective_from": "tomorrow"}, "effective_from"),
        (begin(), {"effective_from": object()}, "effective_from"),
        (begin(), {"enabled": "no"}, "enabled"),
        (begin().within(timedelta(0)), {}, "within.max"),
        (begin().within("ten minutes"), {}, "within"),
        (begin().within("1 s", gap="2 s"), {}, "within.gap"),
        (begin().skip_to_last("b"), {}, "after_match.skip_to_last"),
    ],
)
def test_what_is_refused_on_the_rule_names_the_field(
    pattern: Pattern, fields: dict[str, Any], field: str
) -> None:
    """Problems of the rule's own fields name it, and no line of any text."""
    (problem,) = problems(lambda: pattern.rule("r", **fields))
    assert (problem.rule, problem.step, problem.field) == ("r", None, field)
    assert ":1:" not in problem.render()


def test_all_problems_at_once() -> None:
    """Every problem of a rule is said, each under its step."""
    pattern = Pattern.begin("a").where("x =").times(0).next("b").where("NOW() = y")
    found = problems(lambda: pattern.rule("r", cooldown="1"))
    assert {(p.step, p.field) for p in found} >= {
        ("a", "where"),
        ("b", "where"),
        (None, "cooldown"),
    }


def test_an_expression_is_underlined_in_itself() -> None:
    """The excerpt is the line of the expression, and the marks stand below the part."""
    pattern = Pattern.begin("a").where("  x = 1\n  AND RAND() < y")
    (problem,) = problems(lambda: pattern.rule("r"))
    lines = problem.render().splitlines()
    assert lines[1] == "where |   AND RAND() < y"
    assert lines[2] == "              " + "^" * len("RAND()")


@pytest.mark.parametrize(
    ("again", "field", "step"),
    [
        (lambda: begin().times(2).times(3), "times", "a"),
        (lambda: loop().times_or_more(3), "times", "a"),
        (lambda: loop().consecutive().allow_combinations(), "loop", "a"),
        (lambda: loop().until("x").until("y"), "until", "a"),
        (lambda: begin().of_type("A").of_type("B"), "of_type", "a"),
        (lambda: begin().within("1 s").within("2 s"), "within.max", None),
        (lambda: begin().within(gap="1 s").within("2 s", gap="1 s"), "within.gap", None),
        (lambda: begin().skip_to_next().no_skip(), "after_match", None),
    ],
)
def test_a_field_is_said_once(again: Callable[[], Pattern], field: str, step: str | None) -> None:
    """The method that says a field a second time refuses it, so the traceback shows which."""
    (problem,) = problems(again)
    assert (problem.step, problem.field, problem.message) == (
        step,
        field,
        f"`{field}` is said twice",
    )


def test_groups_without_end_are_refused() -> None:
    """Depth is limited as in a text."""
    pattern = begin()
    for number in range(12):
        pattern = Pattern.begin(f"g{number}", pattern)
    found = problems(lambda: pattern.rule("r"))
    assert {problem.message for problem in found} == {
        "the group `g0` lies too deep",
        "the group `g1` lies too deep",
    }
    for number in range(12, 300):
        pattern = Pattern.begin(f"g{number}", pattern)
    (problem,) = problems(lambda: pattern.rule("r"))
    assert problem.message == "the document is too deep"


def test_size_is_limited_as_in_a_text() -> None:
    """What would be too large a file is too large a rule."""
    (problem,) = problems(lambda: begin().rule("r", description="x" * 1_000_000))
    assert "characters" in problem.message
    assert problem.span is None


def test_a_pattern_may_be_the_beginning_of_several() -> None:
    """No method changes the pattern it is called on, nor what was made of it before."""
    fail = Pattern.begin("fail").where("type = 'fail'").times(3)
    before = fail.rule("r")
    ok = fail.where("x = 1").greedy().followed_by("ok").where("type = 'ok'").within("1 minute")
    lock = fail.next("lock", Pattern.begin("in").where("type = 'lock'")).skip_to_next()
    assert fail.rule("r") == before
    assert [step.name for step in ok.rule("r").pattern] == ["fail", "ok"]
    assert [step.name for step in lock.rule("r").pattern] == ["fail", "lock"]
    assert lock.rule("r").pattern[0] == before.pattern[0] != ok.rule("r").pattern[0]
    assert repr(ok) == "<Pattern: begin fail, followed_by ok>"
    with pytest.raises(AttributeError):
        fail.steps = ()  # type: ignore[misc]


def built(rule: Rule) -> Rule:
    """The rule, said again by the methods of the builder."""
    pattern = _built(rule.pattern)
    within, after = rule.within, rule.after_match
    if within.max_ms is not None or within.gap_ms is not None:
        pattern = pattern.within(_duration(within.max_ms), gap=_duration(within.gap_ms))
    match after.strategy:
        case Skip.TO_NEXT:
            pattern = pattern.skip_to_next()
        case Skip.PAST_LAST_EVENT:
            pattern = pattern.skip_past_last_event()
        case Skip.TO_FIRST:
            pattern = pattern.skip_to_first(after.step or "", error_on_miss=after.error_on_miss)
        case Skip.TO_LAST:
            pattern = pattern.skip_to_last(after.step or "", error_on_miss=after.error_on_miss)
    return pattern.rule(
        rule.id,
        version=rule.version,
        key=[key.text for key in rule.key] or None,
        events=rule.events or None,
        measures={name: measure.text for name, measure in rule.emit.measures.items()},
        emit_events=rule.emit.events,
        limits={
            "partial_matches": rule.limits.partial_matches,
            "events": rule.limits.events,
            "matches": rule.limits.matches,
            "work": rule.limits.work,
            "on_limit": rule.limits.on_limit.value,
        },
        cooldown=_duration(rule.cooldown_ms),
        effective_from=to_data(rule).get("effective_from"),
        previous_version=rule.previous_version.value,
        drain_limit=_duration(rule.drain_limit_ms),
        enabled=rule.enabled,
        description=rule.description,
    )


def _built(steps: tuple[Step, ...]) -> Pattern:
    pattern = _opened(None, steps[0])
    for step in steps[1:]:
        pattern = _opened(pattern, step)
    return pattern


def _opened(pattern: Pattern | None, step: Step) -> Pattern:
    inner = _built(step.group) if step.group is not None else None
    if pattern is None:
        return _said(Pattern.begin(step.name, inner), step)
    match step.after:
        case Contiguity.NEXT:
            added = pattern.next(step.name, inner)
        case Contiguity.FOLLOWED_BY:
            added = pattern.followed_by(step.name, inner)
        case Contiguity.FOLLOWED_BY_ANY:
            added = pattern.followed_by_any(step.name, inner)
        case Contiguity.NOT_NEXT:
            added = pattern.not_next(step.name)
        case _:
            added = pattern.not_followed_by(step.name)
    return _said(added, step)


def _said(pattern: Pattern, step: Step) -> Pattern:
    if step.where is not None:
        pattern = pattern.where(step.where.text)
    if step.of_type is not None:
        pattern = pattern.of_type(step.of_type)
    if step.times is not None:
        minimum, gap = step.times.minimum, _duration(step.gap_ms)
        from_zero = step.optional and minimum == 1
        if step.times.maximum is not None:
            pattern = pattern.times(0 if from_zero else minimum, step.times.maximum, gap=gap)
        else:
            pattern = pattern.times_or_more(0 if from_zero else minimum, gap=gap)
        if step.optional and not from_zero:
            pattern = pattern.optional()
    elif step.optional:
        pattern = pattern.optional()
    if step.loop is Loop.CONSECUTIVE:
        pattern = pattern.consecutive()
    if step.loop is Loop.COMBINATIONS:
        pattern = pattern.allow_combinations()
    pattern = pattern.greedy() if step.greedy else pattern
    return pattern if step.until is None else pattern.until(step.until.text)


def _duration(ms: int | None) -> timedelta | None:
    return None if ms is None else timedelta(milliseconds=ms)


@given(rules())
@settings(max_examples=150)
def test_any_rule_can_be_said_in_python(rule: Rule) -> None:
    """Rules of the matcher's tests, by builder calls: the same rule, the same canonical text."""
    made = built(rule)
    assert made == rule
    assert to_yaml(made) == to_yaml(rule)
    assert load_rules(to_yaml(made), "text")[0].rule == rule


@given(document_rules())
@settings(max_examples=150)
def test_any_field_can_be_said_in_python(rule: Rule) -> None:
    """Rules with every field of the language, by builder calls and as plain data."""
    if check_rule(rule)[0]:
        return
    assert to_yaml(built(rule)) == to_yaml(rule)
    assert load_data(to_data(rule), "data").rule == rule


def test_warnings_are_those_of_the_text() -> None:
    """A rule from Python is warned about like its text."""
    rule = Pattern.begin("a").where("x = 1").one_or_more().greedy().rule("r")
    said = {problem.message for problem in check_rule(rule)[1]}
    assert said == {warning.message for warning in load_rules(to_yaml(rule), "text")[0].warnings}
    assert len(said) == 3


def test_what_the_package_exports() -> None:
    """Names of the package are found when asked for, and others are not."""
    import spark_cep
    from spark_cep.pattern.fluent import Pattern as Direct

    assert spark_cep.Pattern is Direct
    assert not hasattr(spark_cep, "Patern")


def test_a_number_has_a_bounded_number_of_digits() -> None:
    """Python cannot write a larger one as text."""
    with pytest.raises(RuleSetError, match="the number is too large"):
        load_data({"id": "r", "version": 16**5_000, "pattern": [{"step": "a"}]}, "<python>")
