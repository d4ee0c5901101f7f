"""Rule documents: what they mean, and what is said about mistakes in them, with the place."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from spark_cep.errors import Problem, RuleSetError
from spark_cep.pattern.document.loading import examine_rules, load_rules, write_schema
from spark_cep.pattern.expressions import parse
from spark_cep.pattern.tree import (
    AfterMatch,
    Contiguity,
    Emit,
    Limits,
    Loop,
    OnLimit,
    Rule,
    Skip,
    Step,
    Times,
    Within,
)
from spark_cep.pattern.type_check import type_check
from spark_cep.pattern.types import record_type

SCHEMA_FILE = Path(__file__).parents[3] / "schemas" / "rule.schema.json"


def refused(text: str) -> list[Problem]:
    """The problems for which a text is refused."""
    with pytest.raises(RuleSetError) as caught:
        load_rules(textwrap.dedent(text), "rule.yaml")
    return list(caught.value.problems)


def rendered(text: str) -> str:
    """Those problems as people see them."""
    return "\n".join(problem.render() for problem in refused(text))


def underlined(problem: Problem) -> str:
    """The characters that a problem points at."""
    assert problem.span is not None
    assert problem.excerpt is not None
    start = problem.span.column - 1
    return problem.excerpt[start : start + problem.span.length]


FULL = """
    id: full
    version: 7
    description: Everything at once
    enabled: false
    effective_from: 2030-01-31T00:00:00Z
    events: [logins, payments]
    key: [user.id, region]
    pattern:
      - step: fail
        where: event_type = 'login_fail'
        of_type: LoginEvent
        times: 3+
        gap: 30 seconds
        loop: consecutive
        greedy: true
        until: event_type = 'reset'
      - step: none
        after: not_next
        where: event_type = 'locked'
      - step: pair
        after: followed_by
        times: 0..2
        loop: combinations
        group:
          - step: first
          - step: second
            after: followed_by_any
            optional: true
    within: {max: 1 hour, gap: 10 minutes}
    after_match: {skip_to_last: fail, on_miss: error}
    emit:
      measures:
        failures: COUNT(fail.*)
      events: [ip]
    limits: {partial_matches: 5, events: 50, work: 500, on_limit: pause_rule}
    cooldown: 1 minute
"""


def test_every_field_reaches_the_tree() -> None:
    """A document that uses the whole language gives the tree that it says."""
    loaded = load_rules(textwrap.dedent(FULL), "full.yaml")
    steps = frozenset({"fail", "first", "second"})
    assert [one.rule for one in loaded] == [
        Rule(
            id="full",
            version=7,
            description="Everything at once",
            enabled=False,
            effective_from_ms=1_896_048_000_000,
            events=("logins", "payments"),
            key=(parse("user.id"), parse("region")),
            pattern=(
                Step(
                    "fail",
                    where=parse("event_type = 'login_fail'"),
                    of_type="LoginEvent",
                    times=Times(3, None),
                    gap_ms=30_000,
                    loop=Loop.CONSECUTIVE,
                    greedy=True,
                    until=parse("event_type = 'reset'"),
                ),
                Step("none", Contiguity.NOT_NEXT, parse("event_type = 'locked'")),
                Step(
                    "pair",
                    Contiguity.FOLLOWED_BY,
                    times=Times(1, 2),
                    optional=True,
                    loop=Loop.COMBINATIONS,
                    group=(
                        Step("first"),
                        Step("second", Contiguity.FOLLOWED_BY_ANY, optional=True),
                    ),
                ),
            ),
            within=Within(3_600_000, 600_000),
            after_match=AfterMatch(Skip.TO_LAST, "fail", error_on_miss=True),
            emit=Emit({"failures": parse("COUNT(fail.*)", steps=steps, measure=True)}, ("ip",)),
            limits=Limits(5, 50, OnLimit.PAUSE_RULE, work=500),
            cooldown_ms=60_000,
        )
    ]
    assert loaded[0].rule.source == "full.yaml"


def test_json_means_the_same() -> None:
    """A JSON document, tabs and escapes included, is the YAML document."""
    document = {"id": "r", "pattern": [{"step": "a", "where": "name = '\U0001f600'"}]}
    loaded = load_rules(json.dumps(document, indent="\t"), "rule.json")
    assert loaded[0].rule == Rule("r", 1, (Step("a", where=parse("name = '\U0001f600'")),))


def test_several_documents_in_one_text() -> None:
    """`---` parts rules; empty documents are passed over."""
    rule = "id: {}\npattern: [{{step: s}}]\n"
    loaded = load_rules(f"---\n{rule.format('a')}---\n---\n{rule.format('b')}", "t")
    assert [one.rule.id for one in loaded] == ["a", "b"]


def test_aliases_and_merge_keys() -> None:
    """Anchors save writing; what a mapping says itself goes before what it merges."""
    text = """
        id: r
        pattern:
          - &base {step: a, where: x = 1, times: 2}
          - {<<: *base, step: b, after: next}
    """
    rule = load_rules(textwrap.dedent(text), "t")[0].rule
    assert rule.pattern[1] == Step("b", Contiguity.NEXT, parse("x = 1"), times=Times(2, 2))


def test_all_problems_of_all_documents_at_once() -> None:
    """Shape, expressions and structure of every document are reported together, in order."""
    problems = refused(
        """
        id: one
        colour: red
        pattern: [{step: a, where: "x = 'open"}]
        within: 5 parsecs
        ---
        id: two
        pattern:
          - {step: a, greedy: true}
          - {step: a, after: next, where: "x = "}
        """
    )
    assert [(p.rule, underlined(p)) for p in problems if "x =" not in (p.excerpt or "")] == [
        ("one", "colour"),
        ("one", "5 parsecs"),
        ("two", "true"),
    ]
    assert {p.rule for p in problems if "x =" in (p.excerpt or "")} == {"one", "two"}
    assert any(p.message == "the name `a` is given to two steps" for p in problems)


def test_misspelt_key() -> None:
    """An unknown key is underlined, and the nearest key is named."""
    assert rendered(
        """
        id: r
        pattern:
          - step: a
            wehre: x = 1
        """
    ) == (
        "rule.yaml:5:5: [rule r] [step a] unknown key `wehre`\n"
        "5 |     wehre: x = 1\n"
        "        ^^^^^\n"
        "  help: did you mean `where`? keys here: step, after, where, of_type,"
        " times, gap, loop, greedy, optional, until, group"
    )


def test_key_that_stands_elsewhere() -> None:
    """A window on a step is refused with the place where it stands."""
    (problem,) = refused("{id: r, pattern: [{step: a, within: 5 s}]}")
    assert problem.message == "unknown key `within`"
    assert (problem.allowed or "").startswith("`within` on the rule, for the whole pattern;")


def test_bad_duration() -> None:
    """A duration without a known unit is underlined, and durations are explained."""
    assert rendered(
        """
        id: r
        pattern: [{step: a}]
        within: {max: 5 minuts}
        """
    ) == (
        "rule.yaml:4:15: [rule r] `max`: `5 minuts` is not a duration: its unit is not known\n"
        "4 | within: {max: 5 minuts}\n"
        "                  ^^^^^^^^\n"
        "  help: longest time from first to last event: a number and a unit, one of ms, seconds,"
        " minutes, hours, days, weeks (10 seconds, 500 ms, 1 hour 30 minutes), at most 36500 days"
    )


def test_unknown_skip_target() -> None:
    """A skip target that is no step is underlined, and the possible ones are named."""
    assert rendered(
        """
        id: r
        pattern: [{step: a}, {step: b, after: next}]
        within: 5 minutes
        after_match: {skip_to_first: c}
        """
    ) == (
        "rule.yaml:5:30: [rule r] there is no step `c` to skip to\n"
        "5 | after_match: {skip_to_first: c}\n"
        "                                 ^\n"
        "  help: a step outside groups that takes events: a, b"
    )


def test_unclosed_quote_in_a_condition() -> None:
    """The quote that is not closed is underlined inside the condition."""
    assert rendered(
        """
        id: r
        pattern:
          - step: a
            where: x = 1 AND name = 'open
        """
    ) == (
        "rule.yaml:5:29: [rule r] [step a] a string opened with ' is not closed\n"
        "5 |     where: x = 1 AND name = 'open\n"
        "                                ^^^^^"
    )


def test_a_comment_that_cuts_a_condition() -> None:
    """A quote that YAML left open is the fault of ` #`, and the help says so."""
    (problem,) = refused(
        """
        id: r
        pattern:
          - step: a
            where: name = 'item #5'
        """
    )
    assert problem.message == "a string opened with ' is not closed"
    assert problem.allowed == "quotes around the whole value: ` #` begins a comment in YAML"


def test_one_mistake_in_a_condition_is_one_problem() -> None:
    """However many words of it are not allowed."""
    (problem,) = refused("{id: r, pattern: [{step: a, where: x > (SELECT y FROM t)}]}")
    assert (problem.message, underlined(problem)) == ("a sub-query is not allowed here", "SELECT")


@pytest.mark.parametrize("within", ["1 month", "10", "PT1M", "{max: 1 month}", "99999 days"])
def test_a_wrong_duration_gets_the_list_of_units(within: str) -> None:
    """Wherever it stands."""
    (problem,) = refused(f"{{id: r, pattern: [{{step: a}}], within: {within}}}")
    assert "one of ms, seconds, minutes, hours, days, weeks" in (problem.allowed or "")


def test_a_duration_that_is_too_long_is_called_so() -> None:
    """It is a duration, so its words are right."""
    (problem,) = refused("{id: r, pattern: [{step: a}], within: 99999 days}")
    assert problem.message == "`within`: `99999 days` is too long"


def test_what_is_right_of_wrong_rules_can_be_examined() -> None:
    """The wrong parts are left out, and a rule that is nothing without them too."""
    text = """
        id: one
        colour: red
        within: 5
        pattern: [{step: a, where: x = }, {step: b, after: nxt, where: y = 1}]
        ---
        id: two
        pattern: []
    """
    loaded, problems = examine_rules(textwrap.dedent(text), "rule.yaml")
    assert len(problems) == 5
    assert [one.rule.id for one in loaded] == ["one"]
    assert loaded[0].rule.pattern == (Step("a"), Step("b", where=parse("y = 1")))


def test_wrong_column_type() -> None:
    """A comparison of text and number is refused against the schema, and underlined."""
    text = "id: r\npattern:\n  - step: a\n    where: name > 'x' AND cost = 'ten'\n"
    fields = [{"name": "name", "type": "string"}, {"name": "cost", "type": "double"}]
    cost = record_type({"type": "record", "name": "Cost", "fields": fields})
    (problem,) = type_check(load_rules(text, "rule.yaml")[0], [("", "Cost", cost)])
    assert problem.render() == (
        "rule.yaml:4:27: [rule r] [step a] DOUBLE cannot be compared with STRING\n"
        "4 |     where: name > 'x' AND cost = 'ten'\n"
        "                              ^^^^^^^^^^^^\n"
        "  help: cast one of them"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "there is no rule"),
        ("# nothing\n", "there is no rule"),
        ("- id: r\n", "a rule must be a mapping"),
        ("id: r\n", "`pattern` is missing"),
        ("pattern: [{step: a}]\n", "`id` is missing"),
        ("{id: r, pattern: [{}]}", "`step` is missing"),
        ("{id: r, pattern: []}", "`pattern` is empty"),
        ("{id: '', pattern: [{step: a}]}", "`id` is empty"),
        ("{id: r, pattern: {step: a}}", "`pattern` must be a list, found a mapping"),
        ("{id: r, pattern: [a]}", "an item of `pattern` must be a mapping, found `a`"),
        ("{id: r, pattern: [~]}", "an item of `pattern` must be a mapping, found nothing"),
        ("{id: r, pattern: [{step: no}]}", "`step` must be text, found the boolean `false`"),
        ("{id: r, pattern: [{step: a, where: 1}]}", "`where` must be text, found the number `1`"),
        (
            "{id: 2030-01-01, pattern: [{step: a}]}",
            "`id` must be text, found the date `2030-01-01`",
        ),
        (
            "{id: r, version: '1', pattern: [{step: a}]}",
            "`version` must be a whole number, found `1`",
        ),
        ("{id: r, version: 0, pattern: [{step: a}]}", "`version` cannot be `0`"),
        *(
            (
                f"{{id: r, version: {number}, pattern: [{{step: a}}]}}",
                f"`version` cannot be `{number}`",
            )
            for number in (2**31, 2**70)
        ),
        *(
            (
                f"{{id: r, limits: {{{name}: {number}}}, pattern: [{{step: a}}]}}",
                f"`{name}` cannot be `{number}`",
            )
            for name in ("partial_matches", "events", "matches", "work")
            for number in (10**9 + 1, 2**70)
        ),
        (
            "{id: r, enabled: 1, pattern: [{step: a}]}",
            "`enabled` must be `true` or `false`, found the number `1`",
        ),
        ("{id: r, pattern: [{step: a, after: nxt}]}", "`after` cannot be `nxt`"),
        ("{id: r, after_match: skip, pattern: [{step: a}]}", "`after_match` cannot be `skip`"),
        (
            "{id: r, effective_from: soon, pattern: [{step: a}]}",
            "`effective_from`: `soon` is not a timestamp",
        ),
        (
            "{id: r, within: 10, pattern: [{step: a}]}",
            "`within`: `10` is not a duration: its unit is missing",
        ),
        (
            "{id: r, pattern: [{step: a, times: many}]}",
            "`times`: `many` is not a number of repetitions",
        ),
        (
            "{id: r, pattern: [{step: a, times: true}]}",
            "`times`: `true` is not a number of repetitions",
        ),
        ("{id: r, key: '', pattern: [{step: a}]}", "`key` is empty"),
        (
            "{id: r, effective_from: 5, pattern: [{step: a}]}",
            "`effective_from`: `5` is not a timestamp",
        ),
        (
            "{id: r, emit: {measures: [x]}, pattern: [{step: a}]}",
            "`measures` must be a mapping, found a list",
        ),
        ("{id: r, key: , pattern: [{step: a}]}", "`key` has no value"),
        ("{id: r, emit: , pattern: [{step: a}]}", "`emit` has no value"),
        ("{id: r, id: s, pattern: [{step: a}]}", "the key `id` is given twice, first in line 1"),
        ("{id: r, [1]: s, pattern: [{step: a}]}", "a key must be text"),
        ("{id: r, <<: 1, pattern: [{step: a}]}", "`<<` must name a mapping"),
        (
            "{id: !!python/name:os.system r, pattern: [{step: a}]}",
            "this tag is not allowed",
        ),
        ('{"id": "\\ud800", "pattern": [{"step": "a"}]}', "the text is not valid Unicode"),
        (
            "{id: r, effective_from: 2030-02-31, pattern: [{step: a}]}",
            "this is not a valid timestamp",
        ),
        ("{id: r", "while parsing a flow mapping, expected ',' or '}', but got '<stream end>'"),
        ("id: r\nx: \x07\n", "the character U+0007 is not allowed in YAML"),
        ("id: *x\n", "`*` begins an alias, and nothing has an anchor of that name"),
    ],
)
def test_mistake_is_named(text: str, message: str) -> None:
    """Each mistake is said in one sentence, with what is allowed and a place in the text."""
    first = refused(text)[0]
    assert first.message == message
    assert first.allowed
    assert first.span is not None or message == "there is no rule"


def test_a_comma_in_braces_is_told() -> None:
    """YAML takes `amount > 1,5` apart where it stands in braces."""
    (problem,) = refused("{id: r, key: k, pattern: [{step: a, where: amount > 1,5}]}")
    assert problem.message == "`5` has no value"
    assert (
        problem.allowed == "decimals behind a point, as 1.5; quotes around a condition with a comma"
    )


def test_schema_file_is_up_to_date() -> None:
    """The committed JSON Schema is the one that the models give."""
    assert SCHEMA_FILE.read_text(encoding="utf-8") == write_schema()


def test_schema_is_printed() -> None:
    """The command that makes the schema file prints it, and refuses other words."""
    command = [sys.executable, "-W", "error", "-m", "spark_cep.pattern.document.loading"]
    done = subprocess.run([*command, "schema"], capture_output=True, check=True, text=True)
    assert done.stdout == write_schema()
    wrong = subprocess.run([*command, "scheme"], capture_output=True, check=False, text=True)
    assert wrong.returncode == 1
    assert "usage" in wrong.stderr
