"""Diagnostics, actions and symbols of texts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from spark_cep.cli.authoring.checking import check_rules
from spark_cep.language.actions import actions
from spark_cep.language.answers import (
    Diagnostic,
    NameKind,
    Severity,
    Symbol,
    TextPosition,
    TextRange,
)
from spark_cep.language.diagnostics import diagnostics
from spark_cep.language.documents import Language, OpenDocument, language_of
from spark_cep.language.symbols import symbols
from spark_cep.pattern.document.loading import load_rules
from tests.language.opened import opened

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted(
    file
    for folder in ("rules", "sql", "ververica", "demo/rules")
    for file in (ROOT / "examples" / folder).iterdir()
    if file.suffix in (".yaml", ".sql")
)
WHOLE = TextRange(TextPosition(0, 0), TextPosition(10_000, 0))


def applied(document: OpenDocument, found: Diagnostic, title: str) -> str:
    """The text once an action has been taken."""
    (action,) = (a for a in actions(document, found.range, [found]) if a.title.startswith(title))
    text = document.text
    for edit in action.edits:
        start, end = document.offset(edit.range.start), document.offset(edit.range.end)
        text = text[:start] + edit.text + text[end:]
    return text


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.name)
def test_examples(file: Path) -> None:
    """Nothing is wrong with them."""
    text = file.read_text("utf-8")
    document = OpenDocument(str(file), text, language_of(file.name, text))
    assert diagnostics(document) == []


def test_the_same_as_check(tmp_path: Path) -> None:
    """Of each example of the page on checks: code, message, help and place."""
    page = (ROOT / "docs" / "checks.md").read_text("utf-8")
    for number, (language, text) in enumerate(
        re.findall(r"^```(yaml|sql)\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    ):
        file = tmp_path / f"{number}.{language}"
        file.write_text(text, "utf-8")
        report = check_rules([file], None, [])
        expected = {
            (each.span.line - 1, each.span.column - 1, each.code, each.message, each.allowed)
            for each in report.warnings
            if each.span is not None
        }
        document = OpenDocument(str(file), text, language_of(file.name, text))
        found = [each for each in diagnostics(document) if each.severity is Severity.WARNING]
        assert {(*each.range.start, each.code, each.message, each.help) for each in found} == (
            expected
        )


def test_types() -> None:
    """With schemas, columns and types are checked."""
    text = "id: r\nkey: user_id\npattern: [{step: a, where: amout > 'x'}]\n"
    (found,) = diagnostics(opened(text)[0])
    assert found.severity is Severity.ERROR
    assert "did you mean amount?" in found.message
    assert diagnostics(opened(text, typed=False)[0]) == []


def test_inputs() -> None:
    """Where they are known, a rule reads one of them."""
    text = "id: r\nevents: {}\nkey: k\npattern: [{{step: a}}]\n".format("payment")
    document = OpenDocument("r.yaml", text, Language.RULES, inputs=("payments", "logins"))
    (found,) = diagnostics(document)
    assert found.message == "there is no input `payment`"
    assert found.range == TextRange(TextPosition(1, 8), TextPosition(1, 15))
    sql = "-- id: r\nSELECT * FROM payment MATCH_RECOGNIZE (PARTITION BY k PATTERN (a) DEFINE"
    document = OpenDocument("r.sql", f"{sql} a AS v > 1)", Language.SQL, inputs=("payments",))
    assert "there is no input `payment`" in [each.message for each in diagnostics(document)]


def test_a_wrong_rule_beside_another() -> None:
    """The warnings of the other one are told, too."""
    text = "id: a\nkey: k\npattern: 1\n---\nid: b\npattern: [{step: x}]\n"
    found = [(each.rule, each.code) for each in diagnostics(opened(text, typed=False)[0])]
    assert found == [("a", None), ("b", "no-key")]


def test_cases_are_held_against_their_rules() -> None:
    """In their own file, and in the document of a rule."""
    rule = "id: pay\nkey: user_id\npattern: [{step: one}]\n"
    case = "cases:\n  - {case: c, events: [], expect: {matches: [{steps: {two: []}}]}}\n"
    rules = tuple(load_rules(rule, "r"))
    for document in (opened(case, "r.cases.yaml", rules)[0], opened(rule + case)[0]):
        (found,) = diagnostics(document)
        assert "two" in found.message
    assert diagnostics(opened(case, "r.cases.yaml")[0]) == []


def test_settings_of_a_job_elsewhere() -> None:
    """What the environment may give is not missing, and references are not followed."""
    text = "kafka: {bootstrap_servers: {env: BROKERS}}\nstate: {checkpont: x}\n"
    (found,) = diagnostics(opened(text, "job.yaml")[0])
    assert found.message == "unknown setting `state.checkpont`"
    assert found.range.start.line == 1


def test_related_places() -> None:
    """The other part, or step, that a warning is about."""
    text = """id: r
key: user_id
within: 1 hour
after_match: skip_past_last_event
pattern:
  - {step: pay, where: amount > 10, times: 2+, greedy: true}
  - {step: large, after: followed_by, where: amount > 1000}
---
id: s
key: user_id
pattern:
  - {step: never, where: amount > 10 AND amount < 5}
"""
    document, _ = opened(text)
    related = [one for each in diagnostics(document) for one in each.related]
    assert [(one.message, one.range.start.line) for one in related] == [
        ("the step `pay`", 5),
        ("`amount > 10`", 11),
    ]
    for one, written in zip(related, ("pay", "amount > 10"), strict=True):
        start, end = one.range
        assert document.lines[start.line][start.column : end.column] == written


def test_a_fix() -> None:
    """The preferred action writes what is meant."""
    text = "# c\nid: r\nkey: user_id\npattern: [{step: a, where: kind = NULL}]\n"
    document, _ = opened(text)
    (found,) = diagnostics(document)
    first, second = actions(document, found.range, [found])
    assert (first.preferred, second.preferred) == (True, False)
    assert applied(document, found, "Write") == text.replace("= NULL", "IS NULL")


@pytest.mark.parametrize("before", ["", "# c\n---\n# d\n\n", "id: x\nkey: k\n---\n"])
def test_allow_a_warning(before: str) -> None:
    """A comment before the rule's first key allows it, once it has a reason."""
    text = f"{before}id: r\npattern: [{{step: a}}]\n"
    document, _ = opened(text, typed=False)
    (found,) = (each for each in diagnostics(document) if each.code == "no-key")
    after = applied(document, found, "Allow")
    comment = "# spark-cep: allow no-key because REASON\n"
    assert after == text.replace("id: r", f"{comment}id: r")
    codes = [each.code for each in diagnostics(opened(after, typed=False)[0])]
    assert {"no-key", "allow-without-reason"} <= set(codes)
    said = after.replace("REASON", "there is one machine")
    codes = [each.code for each in diagnostics(opened(said, typed=False)[0])]
    assert "no-key" not in codes
    assert "allow-without-reason" not in codes


def test_allow_a_warning_of_a_statement() -> None:
    """The comment is one of SQL."""
    text = "-- id: r\nSELECT * FROM t MATCH_RECOGNIZE (MEASURES a.v AS v PATTERN (a) DEFINE"
    document, _ = opened(f"{text} a AS v = 1)", "r.sql", typed=False)
    (found,) = (each for each in diagnostics(document) if each.code == "no-key")
    after = applied(document, found, "Allow").replace("REASON", "there is one machine")
    codes = [each.code for each in diagnostics(opened(after, "r.sql", typed=False)[0])]
    assert "no-key" not in codes
    assert None not in codes


@pytest.mark.parametrize("newline", ["\n", ""])
def test_a_comment_that_allows_nothing_is_removed(newline: str) -> None:
    """With its line, if that has nothing else."""
    comment = "# spark-cep: allow no-key because x"
    text = f"{comment}\nid: r\nkey: k\npattern: [{{step: a}}] {comment}{newline}"
    for _ in range(2):
        document, _ = opened(text, typed=False)
        found = diagnostics(document)[0]
        text = applied(document, found, "Remove")
    assert text == f"id: r\nkey: k\npattern: [{{step: a}}]{newline}"


def test_no_comments_in_json() -> None:
    """There is nothing to write."""
    document, _ = opened('{"id": "r", "pattern": [{"step": "a"}]}', typed=False)
    assert actions(document, WHOLE, diagnostics(document)) == []


def outline(found: list[Symbol]) -> list[tuple[str, NameKind, list[str]]]:
    """The names of symbols, and of those in them."""
    return [(each.name, each.kind, [below.name for below in each.children]) for each in found]


def test_symbols() -> None:
    """Rules with steps and measures, cases, sections."""
    text = (
        "id: one\npattern:\n  - {step: a}\n  - {step: g, group: [{step: b}]}\n"
        "emit: {measures: {n: 1}}\n---\nid: two\npattern: [{step: c}]\n"
    )
    document, _ = opened(text)
    found = symbols(document)
    assert outline(found) == [
        ("one", NameKind.RULE, ["a", "g", "n"]),
        ("two", NameKind.RULE, ["c"]),
    ]
    assert [each.name for each in found[0].children[1].children] == ["b"]
    for each in found:
        start, end = each.name_range
        assert document.lines[start.line][start.column : end.column] == each.name
        assert each.range.start <= start
        assert end <= each.range.end
    text = "-- id: s\nSELECT * FROM t MATCH_RECOGNIZE (PATTERN (a b) DEFINE a AS v = 1, b AS v = 2)"
    assert outline(symbols(opened(text, "s.sql")[0])) == [("s", NameKind.RULE, ["a", "b"])]
    text = "cases:\n  - {case: first, events: [], expect: none}\n"
    assert outline(symbols(opened(text, "r.cases.yaml")[0])) == [("first", NameKind.CASE, [])]
    text = "kafka: {bootstrap_servers: x}\nstate: {}\n"
    found = symbols(opened(text, "job.yaml")[0])
    assert [each.name for each in found] == ["kafka", "state"]
