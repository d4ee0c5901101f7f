"""Canonical text: any rule that is allowed comes back equal from its own text."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_cep.pattern.checks.validation import check_rule
from spark_cep.pattern.document.canonical import to_yaml
from spark_cep.pattern.document.loading import load_rules
from spark_cep.pattern.expressions import parse
from spark_cep.pattern.tree import (
    AfterMatch,
    Contiguity,
    Emit,
    Limits,
    Loop,
    OnLimit,
    PreviousVersion,
    Rule,
    Skip,
    Step,
    Times,
    Within,
)

CONDITIONS = [
    "x = 1",
    "name = 'it''s' AND price > 1.5",
    "name LIKE '%: #{}' OR x IN (1, 2)",
    "NOT (name = 'a') AND x IS NOT NULL",
    "name = 'é\\n\U0001f600'",
    "TRUE",
    "EXISTS(items, i -> i.price > x AND i.name RLIKE '(?i)^a: \\\\d+#$')",
    "ts + INTERVAL 1 HOUR 30 MINUTES > day - INTERVAL 1 MONTH OR HOUR(ts, 'Asia/Tokyo') = 3",
    "name NOT ILIKE '%a_%' AND PI() > 3 AND 'x' = ANY(SPLIT(name, ','))",
]
LOOKING_BACK = ["x > LAST({0}.x)", "COALESCE(SUM({0}.x), 0) + x < 5", "COUNT({0}.*) < 3"]
LOOKING_BACK += ["COUNT(DISTINCT {0}.x) < 3", "SIZE(COLLECT({0}.x, 7)) > STDDEV({0}.y)"]

milliseconds = st.integers(min_value=1, max_value=36_500 * 86_400_000)
plain_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12).filter(str.strip)
conditions = st.sampled_from(CONDITIONS).map(parse)


@st.composite
def steps(draw: st.DrawFn, prefix: str = "s", depth: int = 2) -> tuple[Step, ...]:
    """Steps of every kind; many of the combinations are refused, and then not used."""
    made: list[Step] = []
    for number in range(draw(st.integers(1, 3))):
        name = f"{prefix}{number}"
        after = draw(st.sampled_from(list(Contiguity))) if number else None
        negative = after is not None and after.negative
        fields: dict[str, Any] = {"name": name, "after": after}
        group = depth > 0 and not negative and draw(st.integers(0, 3)) == 0
        if group:
            fields["group"] = draw(steps(f"{name}_", depth - 1))
        else:
            fields["where"] = draw(st.none() | conditions)
            fields["of_type"] = draw(st.none() | names)
        if not negative:
            fields |= draw(_repeating(group=group))
            if not group and draw(st.booleans()):
                text = draw(st.sampled_from(LOOKING_BACK)).format(name)
                fields["where"] = parse(text, steps=frozenset({name}))
        made.append(Step(**fields))
    return tuple(made)


@st.composite
def _repeating(draw: st.DrawFn, *, group: bool) -> dict[str, Any]:
    fields: dict[str, Any] = {"optional": draw(st.booleans())}
    if draw(st.booleans()):
        minimum = draw(st.integers(1, 4))
        maximum = draw(st.none() | st.integers(minimum, 6))
        fields["times"] = Times(minimum, maximum)
        fields["loop"] = draw(st.sampled_from(list(Loop)))
        if not group:
            fields["greedy"] = fields["loop"] is not Loop.COMBINATIONS and draw(st.booleans())
            fields["gap_ms"] = draw(st.none() | st.just(1))
        if maximum is None:
            fields["until"] = draw(st.none() | conditions)
    return fields


@st.composite
def rules(draw: st.DrawFn) -> Rule:
    """Rules that validation lets pass."""
    pattern = draw(steps())
    measures = draw(
        st.dictionaries(st.sampled_from(["total", "no", "_1"]), st.sampled_from(LOOKING_BACK))
    )
    targets = [s.name for s in pattern if s.group is None and not s.negative]
    skips: list[AfterMatch] = [AfterMatch(s) for s in list(Skip)[:3]]
    for target in targets:
        skips += [AfterMatch(s, target, miss) for s in list(Skip)[3:] for miss in (False, True)]
    own = pattern[0].name if pattern[0].group is None else f"{pattern[0].name}_0"
    words: list[Literal["all", "none"]] = ["all", "none"]
    columns = st.lists(names, min_size=1, max_size=3, unique=True).map(tuple)
    return Rule(
        id=draw(st.from_regex(r"\A[A-Za-z0-9_][A-Za-z0-9_.-]{0,9}\Z")),
        version=draw(st.integers(1, 2**31 - 1)),
        pattern=pattern,
        key=tuple(map(parse, draw(st.lists(st.sampled_from(["k", "UPPER(a.b)"]), max_size=2)))),
        events=draw(st.lists(names, max_size=3, unique=True).map(tuple)),
        within=Within(draw(st.none() | milliseconds), draw(st.none() | st.just(1))),
        after_match=draw(st.sampled_from(skips)),
        emit=Emit(
            MappingProxyType(
                {
                    name: parse(
                        text.format(own).replace(" + x", "").replace("x >", "1 >"),
                        steps=frozenset({own}),
                        measure=True,
                    )
                    for name, text in measures.items()
                }
            ),
            draw(st.one_of(st.sampled_from(words), columns)),
        ),
        limits=Limits(
            draw(st.sampled_from([1, 10_000])),
            draw(st.integers(1, 10**9)),
            draw(st.sampled_from(list(OnLimit))),
            draw(st.sampled_from([1, 1_000])),
            draw(st.sampled_from([1, 5_000_000])),
        ),
        cooldown_ms=draw(st.none() | milliseconds),
        description=draw(plain_text),
        enabled=draw(st.booleans()),
        previous_version=draw(st.sampled_from(list(PreviousVersion))),
        drain_limit_ms=draw(st.none() | milliseconds),
        effective_from_ms=draw(st.none() | st.integers(-62_135_596_800_000, 253_402_300_799_999)),
    )


@given(rules())
@settings(max_examples=300)
@pytest.mark.slow
def test_canonical_text_gives_the_same_rule(rule: Rule) -> None:
    """What is allowed survives its canonical text, which is then canonical itself."""
    if check_rule(rule)[0]:
        return
    text = to_yaml(rule)
    loaded = load_rules(text, "canonical")
    assert [one.rule for one in loaded] == [rule]
    assert to_yaml(loaded[0].rule) == text


def test_defaults_are_left_out() -> None:
    """A short rule has a short text, in the order of the language."""
    text = "id: r\nversion: 3\nkey: k\npattern:\n- step: a\n  where: x = 1\n"
    written = """
        {"pattern": [{"where": "x   =   1", "step": "a", "optional": false}],
         "limits": {"events": 100000}, "enabled": true, "key": ["k"], "version": 3, "id": "r",
         "after_match": "no_skip", "emit": {"events": "none"}}
    """
    assert to_yaml(load_rules(written, "json")[0].rule) == text


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("times: 3", "times: 3"),
        ('times: "3"', "times: 3"),
        ("times: 3..3", "times: 3"),
        ("times: 2..4", "times: 2..4"),
        ("times: 2+", "times: 2+"),
        ("times: 0+", "times: 0+"),
        ("times: 0..2", "times: 0..2"),
        ("times: 1..2, optional: true", "times: 0..2"),
        ("times: 2..4, optional: true", "times: 2..4\n  optional: true"),
    ],
)
def test_times_have_one_form(written: str, canonical: str) -> None:
    """Every way to write repetitions has one canonical form."""
    rule = load_rules(f"{{id: r, pattern: [{{step: a, {written}}}]}}", "t")[0].rule
    assert to_yaml(rule) == f"id: r\nversion: 1\npattern:\n- step: a\n  {canonical}\n"


def test_instant_is_utc() -> None:
    """Any zone comes out as UTC, with milliseconds where there are some."""
    for written in ("2030-01-31T01:00:00.250+01:00", "'2030-01-31T00:00:00.250'"):
        text = f"{{id: r, effective_from: {written}, pattern: [{{step: a}}]}}"
        rule = load_rules(text, "t")[0].rule
        assert rule.effective_from_ms == 1_896_048_000_250
        assert "effective_from: '2030-01-31T00:00:00.250Z'\n" in to_yaml(rule)


def test_date_is_its_first_instant() -> None:
    """A date without time is midnight in UTC."""
    text = "{id: r, effective_from: 2030-01-31, pattern: [{step: a}]}"
    assert "effective_from: '2030-01-31T00:00:00Z'\n" in to_yaml(load_rules(text, "t")[0].rule)
