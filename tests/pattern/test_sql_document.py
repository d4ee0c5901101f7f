"""Rules in SQL: the field ``sql`` of a document, and files ``*.sql``."""

from __future__ import annotations

import json
import textwrap
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_cep.errors import Problem, RuleSetError
from spark_cep.pattern.checks.sql_rule import IN_STATEMENT
from spark_cep.pattern.checks.validation import check_rule
from spark_cep.pattern.document.canonical import to_yaml
from spark_cep.pattern.document.loading import (
    LoadedRule,
    examine_rules,
    examine_sql_file,
    load_rules,
)
from spark_cep.pattern.document.plain_data import load_data
from spark_cep.pattern.document.schema import rule_schema
from spark_cep.pattern.sql import plain_text
from spark_cep.pattern.sql_types import endless as ends_of
from spark_cep.pattern.tree import Limits, PreviousVersion, Within
from tests.matcher.row_pattern.clauses import clauses

STATEMENT = """SELECT * FROM logins MATCH_RECOGNIZE (
  PARTITION BY account, site.name
  ORDER BY ts
  MEASURES COUNT(fail.*) AS failures
  PATTERN (fail{3,} ok) WITHIN INTERVAL '10' MINUTE
  DEFINE fail AS outcome = 'failed', ok AS outcome = 'success'
)
"""


def document(statement: str = STATEMENT, rest: str = "", head: str = "id: r\n") -> str:
    """A document whose statement is a block scalar."""
    return f"{head}sql: |\n{textwrap.indent(statement, '  ')}{rest}"


def load(text: str) -> LoadedRule:
    """Its only rule."""
    (loaded,) = load_rules(text, "r.yaml")
    return loaded


def problems(text: str) -> list[Problem]:
    """What is wrong with a document."""
    return examine_rules(text, "r.yaml")[1]


def underlined(problem: Problem) -> str:
    """The text at its place."""
    assert problem.span is not None
    assert problem.excerpt is not None
    start = problem.span.column - 1
    return problem.excerpt[start : start + problem.span.length]


def test_rule() -> None:
    """Inputs, key and window are those of the statement; the other fields those of all rules."""
    fields = (
        "limits: {partial_matches: 7, events: 8, work: 9}\nmode: shadow\nprevious_version: drain\n"
    )
    rule = load(document(rest=fields)).rule
    assert rule.query is not None
    assert (rule.pattern, rule.events, rule.within) == ((), ("logins",), Within(max_ms=600_000))
    assert [key.canonical for key in rule.key] == ["account", "site.name"]
    assert rule.limits == Limits(partial_matches=7, events=8, work=9)
    assert rule.shadow
    assert rule.previous_version is PreviousVersion.DRAIN
    assert not load(document()).warnings


@pytest.mark.parametrize("name", IN_STATEMENT)
def test_what_the_statement_says(name: str) -> None:
    """It cannot stand beside it, and the message says where it belongs."""
    (problem,) = problems(document(rest=f"{name}: 1 s\n"))
    assert problem.message == f"`{name}` cannot stand beside `sql`"
    assert underlined(problem) == name
    assert problem.allowed == IN_STATEMENT[name]
    schema = rule_schema()
    assert schema["dependentSchemas"]["sql"]["properties"][name] is False
    assert name in schema["properties"]


@pytest.mark.parametrize(
    ("field", "place", "message"),
    [
        ("limits: {matches: 5}", "5", "`limits.matches` does not apply to a rule in SQL"),
        (
            "limits: {on_limit: pause_rule}",
            "pause_rule",
            "`on_limit: pause_rule` does not apply to a rule in SQL",
        ),
        (
            "previous_version: carry",
            "carry",
            "`previous_version: carry` does not apply to a rule in SQL",
        ),
        ("colour: red", "colour", "unknown key `colour`"),
        ("description:", "description", "`description` has no value"),
    ],
)
@pytest.mark.parametrize("statement", [STATEMENT, "SELECT\n"], ids=["right", "wrong"])
def test_fields_that_are_refused(field: str, place: str, message: str, statement: str) -> None:
    """Where they stand, also when the statement cannot be read; that is told too."""
    found = problems(document(statement, f"{field}\n"))
    (problem,) = [each for each in found if each.message == message]
    assert underlined(problem) == place
    assert len(found) == (1 if statement == STATEMENT else 2)


def test_defaults_of_limits_may_be_said() -> None:
    """They change nothing."""
    fields = "limits: {matches: 1000, on_limit: drop_oldest}\nprevious_version: restart\n"
    assert load(document(rest=fields)).rule == load(document()).rule


WRONG = STATEMENT.replace("COUNT(fail.*)", "COUNT(fale.*)").replace("= 'success'", "= 'it")


@pytest.mark.parametrize("indent", ["  ", "        "])
@pytest.mark.parametrize("style", ["|", "|-", "|+"])
def test_places_in_a_block(indent: str, style: str) -> None:
    """All mistakes with line and column of the file, and those of other fields."""
    text = f"id: a b\nsql: {style}\n\n{textwrap.indent(WRONG, indent)}drain_limit: 1\n"
    found = problems(text)
    places = [(each.span.line, each.span.column) for each in found if each.span is not None]
    lines = text.split("\n")
    assert [line for line, _ in places] == [7, 9, 11]
    assert underlined(found[0]) == "COUNT(fale.*)"
    assert lines[6][places[0][1] - 1 :].startswith("COUNT(fale")
    assert lines[8][places[1][1] - 1 :].startswith("'it")
    assert all(each.rule == "a b" for each in found)


def test_places_in_json() -> None:
    """Columns count the escapes of the text."""
    text = json.dumps({"id": "r", "sql": STATEMENT.replace("fail.*", "fale.*")})
    (problem,) = problems(text)
    assert underlined(problem) == "COUNT(fale.*)"


def test_places_of_what_is_no_text() -> None:
    """The field, and line and column in the statement."""
    data: dict[str, Any] = {"id": "r", "sql": STATEMENT.replace("fail.*", "fale.*")}
    with pytest.raises(RuleSetError) as caught:
        load_data(data, "<python>")
    (problem,) = caught.value.problems
    assert (problem.field, problem.excerpt) == ("sql", "  MEASURES COUNT(fale.*) AS failures")
    assert underlined(problem) == "COUNT(fale.*)"
    loaded = load_data({"id": "r", "sql": STATEMENT, "drain_limit": timedelta(days=1)} | {
        "previous_version": "drain"
    }, "<python>")  # fmt: skip
    assert loaded.rule.drain_limit_ms == 86_400_000


def test_what_no_stream_can_run() -> None:
    """It is told of the rule where it stands, for a job to refuse; what comes late is warned of."""
    endless = STATEMENT.replace(" WITHIN INTERVAL '10' MINUTE", "")
    (problem,) = ends_of(load(document(endless.replace("ok)", "ok $)"))))
    assert (underlined(problem), problem.message) == (
        "$",
        "$ never holds: a stream has no last row",
    )
    (warning,) = load(document(endless.replace("ok)", "ok $)"))).warnings
    said = "a job whose input does not end refuses this rule: $ never holds"
    assert warning.message.startswith(said)
    (warning,) = load(document(endless.replace(" ok)", " ok+)"))).warnings
    assert underlined(warning) == "ok+"
    assert "a match is final only when a row comes" in warning.message


@pytest.mark.parametrize(
    ("order", "place", "message"),
    [
        ("ts DESC", "ts", "rows come in ascending order"),
    ],
)
def test_order_of_no_job(order: str, place: str, message: str) -> None:
    """It is refused whatever column has the time of events."""
    text = STATEMENT.replace("ORDER BY ts", f"ORDER BY {order}")
    (problem,) = problems(document(text))
    assert (underlined(problem), problem.message) == (place, message)


def test_longest_window() -> None:
    """Like that of all rules, at the statement."""
    (problem,) = problems(document(STATEMENT.replace("'10' MINUTE", "'40000' DAY")))
    assert problem.message == "WITHIN takes at most 5214 weeks 2 days"
    assert underlined(problem) == "INTERVAL '40000' DAY"


def test_names_of_columns() -> None:
    """They can be names of a record's fields."""
    (problem,) = problems(document(STATEMENT.replace("AS failures", 'AS "of all"')))
    assert problem.message == "`of all` cannot be the name of a column of the result"
    assert underlined(problem) == '"of all"'
    renamed = STATEMENT.replace("SELECT *", "SELECT failures AS `Größe`")
    (problem,) = problems(document(renamed))
    assert underlined(problem) == "`Größe`"


@pytest.mark.parametrize("window", ["'0' MINUTE", "'-1' MINUTE", "'0.0001' SECOND"])
def test_no_window(window: str) -> None:
    """It is told once, where it stands."""
    (problem,) = problems(document(STATEMENT.replace("'10' MINUTE", window)))
    assert problem.message == "WITHIN takes at least a millisecond"
    assert underlined(problem) == f"INTERVAL {window}"


@pytest.mark.parametrize("text", ["", "  ", "7", "[a]"])
def test_what_is_no_statement(text: str) -> None:
    """One problem, at the field."""
    (problem,) = problems(f"id: r\nsql: {text}\n")
    assert problem.span is not None
    assert problem.span.line == 2
    assert "`sql`" in problem.message


SAME = [
    STATEMENT,
    STATEMENT.replace("\n", "  \t\n\n"),
    STATEMENT.replace("\n", " -- it's a comment\n").replace("ORDER", "/* b\n\nc */ORDER"),
    f"-- first\n{STATEMENT.rstrip()};\n-- last",
    STATEMENT.replace("\n", "\r\n"),
]


@pytest.mark.parametrize("statement", SAME)
def test_canonical_text(statement: str) -> None:
    """It gives an equal rule, and the same text again; comments and blanks at ends are gone."""
    loaded = load(json.dumps({"id": "r", "sql": statement}))
    again = load(loaded.text)
    assert again.rule == loaded.rule == load(document()).rule
    assert again.text == loaded.text
    assert loaded.text.startswith("id: r\nversion: 1\nsql: |\n  SELECT * FROM logins")
    assert "comment" not in loaded.text
    assert "\n\n" not in loaded.text


def test_a_statement_of_other_meaning_is_another_rule() -> None:
    """Whatever of it is other."""
    one = load(document()).rule
    for old, new in (("10", "11"), ("failures", "n"), ("{3,}", "{3,}?"), ("'failed'", "'f'")):
        assert load(document(STATEMENT.replace(old, new))).rule != one
    all_rows = STATEMENT.replace("  PATTERN", "  ALL ROWS PER MATCH PATTERN")
    assert load(document(all_rows)).rule != one


QUOTED = "'a  \n\n  -- no comment\n /* nor this */ ;  '"


def test_what_is_quoted_stays() -> None:
    """Blanks, empty lines and what looks like a comment."""
    text = STATEMENT.replace("'failed'", QUOTED).replace("'success'", "'it''s \\' \u2028 \t'")
    assert QUOTED in plain_text(text)
    loaded = load(json.dumps({"id": "r", "sql": text}))
    again = load(to_yaml(loaded.rule))
    assert (again.rule, again.text) == (loaded.rule, loaded.text)
    assert again.rule.query is not None
    assert plain_text(again.rule.query.text) == plain_text(text)


def test_blanks_take_linear_time() -> None:
    """A statement of blanks is no trap."""
    assert plain_text(" " * 45_000 + "x" + " \n" * 20_000 + "y") == "x\ny"


def test_a_rule_without_places() -> None:
    """The checks of a tree that was never text tell the same."""
    rule = load(document(STATEMENT.replace(" ok) WITHIN INTERVAL '10' MINUTE", " ok+)"))).rule
    _, (warning,) = check_rule(rule)
    assert (underlined(warning), warning.field) == ("ok+", "sql")


# --- Files

FILE = f"""\
-- id: brute-force
-- version: 2
-- description: |
--   Three failures,
--   then success.
-- limits:
--   partial_matches: 10
/* one more comment */
{STATEMENT}"""


def examined(text: str) -> tuple[list[LoadedRule], list[Problem]]:
    """A file's rule and problems."""
    return examine_sql_file(text, "r.sql")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("begin", ["", "\ufeff", "\n\n"])
def test_file(end: str, begin: str) -> None:
    """The comment has the fields, and the rule is that of a document."""
    (loaded,), wrong = examined(begin + FILE.replace("\n", end))
    assert wrong == []
    (same,) = load_rules(loaded.text, "again")
    assert same.rule == loaded.rule
    assert loaded.rule.description == "Three failures,\nthen success.\n"
    assert (loaded.rule.id, loaded.rule.version) == ("brute-force", 2)
    assert loaded.rule.limits.partial_matches == 10
    assert loaded.rule.query == load(document()).rule.query


def test_places_in_a_file() -> None:
    """Those of fields and of the statement, all at once."""
    text = FILE.replace("version: 2", "version: x").replace("fail.*", "fale.*")
    text = text.replace("--   partial_matches", "--   partial_match").replace("'success'", "'it")
    found = examined(text)[1]
    assert [underlined(each) for each in found[:3]] == ["x", "partial_match", "COUNT(fale.*)"]
    assert found[3].message == "what is opened with ' is not closed"
    for problem in found:
        assert problem.span is not None
        assert text.split("\n")[problem.span.line - 1] == problem.excerpt
        assert (problem.source, problem.rule) == ("r.sql", "brute-force")
    assert [each.span.line for each in found if each.span] == [2, 7, 12, 14]


@pytest.mark.parametrize(
    ("comment", "place", "message"),
    [
        ("", "SELECT * FROM logins MATCH_RECOGNIZE (", "`id` is missing"),
        ("-- version: 2\n", "version: 2", "`id` is missing"),
        (
            "-- A rule.\n",
            "A rule.",
            "the comment at the file's beginning must be fields of a rule",
        ),
        ("/* id: r */\n", "/* id: r */", "`id` is missing"),
        ("-- id: r\n-- sql: x\n", "sql", "`sql` is the file itself"),
        ("-- id: r\n-- key: x\n", "key", "`key` cannot stand beside `sql`"),
        ("-- id: r\n-- id: s\n", "id", "the key `id` is given twice, first in line 1"),
        ("-- id: 'r\n", "'", "the quote that opens here is not closed"),
        ("--\tid: r\n", "\t", "a tab indents this line"),
    ],
)
def test_comments_that_are_refused(comment: str, place: str, message: str) -> None:
    """With place, line of the file and what to write; the statement is read all the same."""
    found = examined(comment + STATEMENT.replace("fail.*", "fale.*"))[1]
    assert [each.message for each in found] == [message, "there is no pattern variable fale"]
    assert underlined(found[0]) == place
    assert found[0].span is not None
    assert found[0].excerpt == (comment + STATEMENT).split("\n")[found[0].span.line - 1]


def test_a_file_is_one_statement() -> None:
    """What comes behind it is refused; a comment alone is none."""
    (problem,) = examined(f"{FILE.rstrip()};\n{STATEMENT}")[1]
    assert (underlined(problem), problem.message) == ("SELECT", "a rule is one statement")
    (problem,) = examined("-- id: r\n")[1]
    assert problem.message == "the file has no statement"


CHARACTERS = st.characters(exclude_categories=["Cs"])
fuzz = settings(max_examples=300, derandomize=True, database=None)


@given(
    st.integers(0, len(FILE)), st.integers(0, 12), st.text(CHARACTERS | st.sampled_from("\n'`\"-:"))
)
@fuzz
def test_damaged_files(at: int, length: int, other: str) -> None:
    """A file is read or refused with places in it; what is read comes back from its own text."""
    text = FILE[:at] + other + FILE[at + length :]
    loaded, wrong = examined(text)
    for problem in wrong:
        assert problem.render().startswith("r.sql")
    if not wrong:
        (again,) = load_rules(loaded[0].text, "again")
        assert (again.rule, again.text) == (loaded[0].rule, loaded[0].text)


@pytest.mark.slow
@given(clauses())
@fuzz
def test_every_clause_comes_back(made: tuple[str, object]) -> None:
    """From the canonical text, whatever the pattern."""
    text, _ = made
    loaded, _ = examine_rules(document(text), "r.yaml")
    again, _ = examine_rules(loaded[0].text, "again")
    assert (again[0].rule, again[0].text) == (loaded[0].rule, loaded[0].text)
