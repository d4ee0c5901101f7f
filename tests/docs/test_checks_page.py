"""docs/checks.md has each code with its meaning, an example that has it, and one that has not."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from spark_cep.cli.exit_codes import ExitCode
from spark_cep.cli.main import app
from spark_cep.codecs.avro.reader_schemas import record_names
from spark_cep.codecs.avro.schema import parse
from spark_cep.pattern.check_codes import Code
from spark_cep.pattern.document.allowed import unused_comments
from spark_cep.pattern.document.loading import examine_rules, examine_sql_file
from spark_cep.pattern.type_check import type_check, type_warnings
from spark_cep.pattern.types import record_type

PROJECT = Path(__file__).parents[2]
PAGE = (PROJECT / "docs" / "checks.md").read_text("utf-8")
SECTIONS = dict(re.findall(r"^### (\S+)\n(.*?)(?=^###? |\Z)", PAGE, re.MULTILINE | re.DOTALL))
_ERRORS = re.compile(
    r"^\$ cat (fast-logins\.yaml)\n(.*?)^\$ spark-cep (check .*?)\n(.*?)^```$.*?"
    r"^\$ spark-cep (check .*?)\n(.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_EXAMPLE = re.compile(r"^```(yaml|sql)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def codes(language: str, text: str, schema: Any) -> list[str | None]:
    """The codes of the warnings about a rule that may run."""
    examine = examine_sql_file if language == "sql" else examine_rules
    (loaded,), problems = examine(text, "rule")
    assert problems == []
    warnings = list(loaded.warnings)
    if schema is not None:
        parsed = parse(schema, "schema")
        (name,) = record_names(parsed)
        types = [("", name, record_type(parsed.text))]
        assert type_check(loaded, types) == []
        warnings += type_warnings(loaded, types)
    silenced = frozenset(each.code for each in loaded.silenced if each.code is not None)
    warnings += unused_comments(loaded.allowed, silenced, loaded.places, typed=schema is not None)
    assert all(warning.allowed for warning in warnings)
    return [warning.code for warning in warnings]


def test_the_table() -> None:
    """Each code once, in the order of the sections, with its meaning."""
    rows = re.findall(r"^\| \[`(.+?)`\]\(#(.+?)\) \| (.+) \|$", PAGE, re.MULTILINE)
    assert [(name, anchor) for name, anchor, _ in rows] == [(name, name) for name in SECTIONS]
    assert {name: means for name, _, means in rows} == {code.value: code.means for code in Code}


@pytest.mark.parametrize("code", Code)
def test_an_example(code: Code) -> None:
    """The first example has the code and no other, the one instead of it has none."""
    text = SECTIONS[code]
    schemas = re.findall(r"^```json\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    schema = json.loads(schemas[0]) if schemas else None
    assert (schema is not None) is code.needs_types
    wrong, right = _EXAMPLE.findall(text)
    found = codes(wrong[0], wrong[1], schema)
    assert code in found
    if code not in (Code.ALLOW_WITHOUT_REASON, Code.UNKNOWN_CODE):
        # These two leave what they would allow.
        assert set(found) == {code.value}
    assert codes(right[0], right[1], schema) == []


def test_the_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rule with three errors is refused as the page shows; then the one with a wrong column."""
    found = _ERRORS.search((PROJECT / "docs" / "checks" / "run.md").read_text("utf-8"))
    assert found
    file, wrong, command, shown, typed, with_schema = found.groups()
    monkeypatch.chdir(tmp_path)
    schema = PROJECT / "examples" / "demo" / "schemas" / "login-event-3.avsc"
    Path(schema.name).write_text(schema.read_text("utf-8"), "utf-8")
    lines = wrong.replace("folowed_by", "followed_by").replace("fial", "fail").splitlines()
    lines[4] = lines[4].replace("event_type", "event_typ")
    right = "\n".join(f"{line} minutes" if line == "within: 10" else line for line in lines)
    for rule, arguments, errors in ((wrong, command, shown), (right, typed, with_schema)):
        Path(file).write_text(rule, "utf-8")
        result = CliRunner().invoke(app, arguments.split(), env={"COLUMNS": "200"})
        assert result.exit_code == ExitCode.RULES
        assert result.stderr == errors
