"""``spark-cep check``: forms of its results, comments that allow, fixes, exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from spark_cep.cli.authoring.fixing import fixed_text
from spark_cep.cli.main import app
from spark_cep.errors import Problem, Span
from spark_cep.pattern.check_codes import Code

RULE = """id: r
key: k
pattern:
  - {step: a, where: kind = NULL}   # kept
"""
STATEMENT = """-- id: s
SELECT * FROM ticks MATCH_RECOGNIZE (
  PARTITION BY k MEASURES a.v AS v PATTERN (a) DEFINE a AS v = NULL
)
"""


def check(*arguments: str | Path, given: str | None = None) -> Result:
    """Run the command."""
    return CliRunner().invoke(app, ["check", *map(str, arguments)], input=given)


@pytest.fixture
def rule(tmp_path: Path) -> Path:
    """A rule whose condition is never true."""
    file = tmp_path / "r.yaml"
    file.write_text(RULE, "utf-8")
    return file


def test_text(rule: Path) -> None:
    """The code stands behind the message."""
    result = check(rule)
    assert result.exit_code == 0
    assert result.stderr == (
        f"warning: {rule}:4:22: [rule r] [step a] `kind = NULL` is never true: it is NULL, so `a`"
        " never takes an event [compared-with-null]\n"
        "4 |   - {step: a, where: kind = NULL}   # kept\n"
        "                         ^^^^^^^^^^^\n"
        "  help: `kind IS NULL`\n\n"
    )


def test_what_is_no_rule_is_passed_over(rule: Path) -> None:
    """As in a folder: test cases and schemas, which a pattern of names may give, too."""
    cases = rule.with_name("r.cases.yaml")
    cases.write_text("cases:\n  - case: c\n    events: []\n", "utf-8")
    schema = rule.with_name("login.avsc")
    schema.write_text("{}", "utf-8")
    result = check(rule, cases, schema)
    assert result.exit_code == 0
    assert result.stdout.startswith("1 rule is valid, with 1 warning.")
    assert [line for line in result.stderr.splitlines() if line.startswith("note:")] == [
        f"note: {cases} is not checked: it has test cases, which `spark-cep test` runs",
        f"note: {schema} is not checked: it is a schema, which --schema takes",
    ]
    alone = check("--strict", cases)
    assert alone.exit_code == 0
    assert alone.stdout.startswith("0 rules are valid.")
    assert check(rule.with_name("none.cases.yaml")).exit_code == 3


@pytest.mark.parametrize(("text", "place"), [("", "1:1"), ("\n\n", "1:1"), ("-- id: s\n", "1:4")])
def test_a_file_without_a_statement(tmp_path: Path, text: str, place: str) -> None:
    """One sentence about the statement, in a line that is there."""
    file = tmp_path / "s.sql"
    file.write_text(text, "utf-8")
    result = CliRunner().invoke(app, ["check", str(file)])
    assert result.exit_code == 4
    told = [line for line in result.stderr.splitlines() if "statement" in line]
    assert len(told) == 1
    assert f"s.sql:{place}:" in told[0]
    assert told[0].endswith("the file has no statement")


def test_strict(rule: Path) -> None:
    """Warnings are errors by their exit code."""
    assert check(rule, "--strict").exit_code == 4
    rule.write_text(RULE.replace("= NULL", "IS NULL"), "utf-8")
    assert check(rule, "--strict").exit_code == 0


def test_several_paths(rule: Path, tmp_path: Path) -> None:
    """Files, folders, the standard input; a rule that two of them have is refused."""
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "s.sql").write_text(STATEMENT, "utf-8")
    result = check(rule, tmp_path / "more", "-", given="id: t\nkey: k\npattern: [{step: a}]\n")
    assert result.stdout.startswith("3 rules are valid, with 2 warnings.")
    result = check(rule, "-", given=RULE)
    assert result.exit_code == 4
    assert "<stdin>:1:5: [rule r] version 1 of this rule is also in" in result.stderr


@pytest.mark.parametrize("text", [RULE, f"---\n{RULE}", STATEMENT, STATEMENT.split("\n", 1)[1]])
def test_standard_input(text: str) -> None:
    """YAML or a statement, as it begins."""
    result = check("-", "--format", "json", given=text)
    found = json.loads(result.stdout)["results"]
    code = "refused" if text.startswith("SELECT") else "compared-with-null"
    assert [each["code"] for each in found] == [code]
    assert found[0]["file"].startswith("<stdin>")


def test_json(rule: Path) -> None:
    """Each result with its place."""
    rule.with_name("wrong.yaml").write_text("id: w\npattern: [{step: a}]\ncolour: red\n", "utf-8")
    result = check(rule.parent, "--format", "json")
    assert result.exit_code == 4
    assert result.stderr == ""
    document = json.loads(result.stdout)
    assert (document["errors"], document["warnings"]) == (1, 0)
    (wrong,) = document["results"]
    assert [wrong[name] for name in ("level", "code", "line", "rule")] == [
        "error",
        "refused",
        3,
        "w",
    ]
    rule.with_name("wrong.yaml").unlink()
    (found,) = json.loads(check(rule, "--format", "json").stdout)["results"]
    assert found == {
        "level": "warning",
        "code": "compared-with-null",
        "message": "`kind = NULL` is never true: it is NULL, so `a` never takes an event",
        "help": "`kind IS NULL`",
        "file": str(rule),
        "line": 4,
        "column": 22,
        "end_column": 33,
        "rule": "r",
        "step": "a",
        "field": None,
        "fix": "kind IS NULL",
        "related": [],
    }


def test_sarif(rule: Path) -> None:
    """As the specification has it: rules by number, regions, fixes, what is allowed as
    suppressed."""
    text = f"# spark-cep: allow no-key because it is one\n{RULE.replace('key: k', 'version: 1')}"
    rule.with_name("of a.yaml").write_text(text.replace("id: r", "id: s"), "utf-8")
    result = check(rule, rule.with_name("of a.yaml"), "--format", "sarif")
    log = json.loads(result.stdout)
    (run,) = log["runs"]
    assert (log["version"], run["columnKind"]) == ("2.1.0", "unicodeCodePoints")
    rules = run["tool"]["driver"]["rules"]
    assert {each["id"] for each in rules} == {*Code, "refused", "noted"}
    first, second, silenced = run["results"]
    for each in run["results"]:
        assert rules[each["ruleIndex"]]["id"] == each["ruleId"]
    place = first["locations"][0]["physicalLocation"]
    region = {"startLine": 4, "startColumn": 22, "endLine": 4, "endColumn": 33}
    assert place == {"artifactLocation": {"uri": str(rule)}, "region": region}
    (fix,) = first["fixes"]
    assert fix["artifactChanges"][0]["replacements"] == [
        {"deletedRegion": region, "insertedContent": {"text": "kind IS NULL"}}
    ]
    uri = second["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri.endswith("/of%20a.yaml")
    assert silenced["ruleId"] == "no-key"
    assert silenced["suppressions"] == [{"kind": "inSource", "justification": "it is one"}]


def test_github(rule: Path) -> None:
    """A command of a workflow for each result, its text escaped."""
    rule.write_text(RULE.replace("= NULL", "= NULL OR kind LIKE '5%'"), "utf-8")
    (line,) = check(rule, "--format", "github").stdout.splitlines()
    assert line == (
        f"::warning file={rule},line=4,col=22,endColumn=32,title=rule r%3A compared-with-null::"
        "`kind = NULL` is never true: it is NULL, so this part never counts%0Ahelp: `kind IS NULL`"
    )


def test_fix(rule: Path, tmp_path: Path) -> None:
    """What is meant without doubt is written, and the rest of the file stays as it is."""
    (tmp_path / "s.sql").write_text(STATEMENT.replace("\n", "\r\n"), "utf-8", newline="")
    result = check(tmp_path, "--fix", "--strict")
    assert result.exit_code == 0
    assert rule.read_text("utf-8") == RULE.replace("= NULL", "IS NULL")
    fixed = STATEMENT.replace("= NULL", "IS NULL").replace("\n", "\r\n")
    assert (tmp_path / "s.sql").read_bytes().decode() == fixed
    assert sorted(result.stderr.splitlines()) == [
        f"fixed 1 in {tmp_path / 'r.yaml'}",
        f"fixed 1 in {tmp_path / 's.sql'}",
    ]
    assert check("-", "--fix", given=RULE).exit_code == 2


def test_fix_removes_comments(rule: Path) -> None:
    """Those that allow nothing, with their line where they are alone on it."""
    comment = "# spark-cep: allow no-key because one"
    text = RULE.replace("kind = NULL", "kind IS NULL")
    rule.write_text(f"{comment}\n{text.replace('key: k', f'key: k  {comment}')}", "utf-8")
    assert check(rule, "--fix", "--strict").exit_code == 0
    assert rule.read_text("utf-8") == text


def test_places_that_have_changed_are_not_fixed() -> None:
    """A fix is for the line as it was."""
    problem = Problem("m", "f", Span(1, 5, 4), "a = NULL", fix="x")
    assert fixed_text("b = NULL", [problem]) == ("b = NULL", 0)
    assert fixed_text("a = NULL\n", [problem]) == ("a = x\n", 1)


IT = "spark-cep: allow compared-with-null because of a test"
ALLOWED: dict[str, Any] = {
    "above": f"# {IT}\n{RULE}",
    "behind": RULE.replace("# kept", f"# {IT}"),
    "one of several": f"{RULE}# spark-cep: allow no-key, compared-with-null because x\n",
    "in another document": f"{RULE}---\n# {IT}\nid: o\nkey: k\npattern: [{{step: a}}]\n",
    "in a text": RULE.replace("key: k", f"key: \"k || '# {IT}'\""),
    "in a header": STATEMENT.replace("id: s", f"id: s\n-- {IT}"),
    "in a statement": STATEMENT.replace("DEFINE", f"\n  -- {IT}\n  DEFINE"),
    "at its end": STATEMENT.replace("= NULL", f"= NULL -- {IT}"),
}


@pytest.mark.parametrize("where", ALLOWED)
def test_allowed(where: str) -> None:
    """A comment allows a code in its document."""
    found = json.loads(check("-", "--format", "json", given=ALLOWED[where]).stdout)["results"]
    codes = [each["code"] for each in found]
    told = where in ("in another document", "in a text")
    assert ("compared-with-null" in codes) is told
    assert ("unused-allow" in codes) is (where in ("one of several", "in another document"))


def test_comments_about_types_are_not_unused_without_types(tmp_path: Path) -> None:
    """Without a schema nobody knows."""
    text = "# spark-cep: allow unknown-symbol because a symbol is to come\nid: r\nkey: k\n"
    file, schema = tmp_path / "r.yaml", tmp_path / "e.avsc"
    file.write_text(f"{text}pattern: [{{step: a, where: kind = 'C'}}]\n", "utf-8")
    kind = {"type": "enum", "name": "K", "symbols": ["A", "C"]}
    fields = [{"name": "k", "type": "string"}, {"name": "kind", "type": kind}]
    schema.write_text(json.dumps({"type": "record", "name": "E", "fields": fields}), "utf-8")
    assert check(file, "--strict").exit_code == 0
    assert "[unused-allow]" in check(file, "--schema", schema).stderr
    kind["symbols"] = ["A"]
    schema.write_text(json.dumps({"type": "record", "name": "E", "fields": fields}), "utf-8")
    assert check(file, "--schema", schema, "--strict").exit_code == 0


def test_a_column_that_cannot_be_read(rule: Path) -> None:
    """The rule that uses it is refused and told what to do; others run."""
    deep = {"type": "bytes", "logicalType": "decimal", "precision": 64, "scale": 2}
    fields = [
        {"name": "k", "type": "string"},
        {"name": "kind", "type": "string"},
        {"name": "amount", "type": ["null", deep]},
        {"name": "parent", "type": ["null", "E"]},
    ]
    schema = rule.with_name("e.avsc")
    schema.write_text(json.dumps({"type": "record", "name": "E", "fields": fields}), "utf-8")
    assert check(rule, "--schema", schema).exit_code == 0
    rule.write_text(RULE.replace("kind = NULL", "amount > 5 AND parent.kind = 'a'"), "utf-8")
    errors = check(rule, "--schema", schema).stderr
    assert (
        "column amount cannot be read: DECIMAL(64, 2) is beyond a precision of 1 to 38 and a scale"
        " of 0 to the precision\n"
    ) in errors
    assert "help: a reader schema (`reader_schema` of the input) that gives the column" in errors
    assert "column parent.kind cannot be read: the type E contains itself\n" in errors
    statement = STATEMENT.replace("v = NULL", "kind = 'a'").replace("a.v AS v", "a.kind AS b")
    for text, column in (
        (statement.replace("PATTERN", "ALL ROWS PER MATCH PATTERN"), "amount"),
        (statement.replace("BY k", "BY parent"), "parent"),
        (statement.replace("kind = 'a'", "amount > 5"), "amount"),
    ):
        errors = check("-", "--schema", schema, given=text).stderr
        assert f"column {column} cannot be read" in errors
    assert check("-", "--schema", schema, given=statement).exit_code == 0
