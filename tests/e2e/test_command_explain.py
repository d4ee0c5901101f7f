"""``spark-cep explain``: what it shows, in which form, and how it refuses."""

from __future__ import annotations

import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner, Result

from spark_cep.cli.authoring.explaining import rules_to_explain, show, written
from spark_cep.cli.authoring.forms import RuleForm
from spark_cep.cli.main import app
from spark_cep.compiler.steps.lowering import lower
from spark_cep.pattern.document.loading import load_rules
from tests.compiler.drawn_text import read_dot, read_mermaid

ONE = """id: one
key: user
pattern:
  - {step: a, where: "ABS(cost) > 1"}
  - {step: b, after: followed_by, where: cost > LAST(a.cost)}
"""
TWO = """id: two
pattern:
  - {step: c, where: kind = 'c'}
"""
SCHEMA = """{"type": "record", "name": "Sale", "fields": [
  {"name": "user", "type": "string"}, {"name": "cost", "type": "int"}]}
"""


def _invoke(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["explain", *map(str, arguments)])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with two rules in two files."""
    given = tmp_path / "given"
    given.mkdir()
    (given / "one.yaml").write_text(ONE, "utf-8")
    (given / "two.yaml").write_text(TWO, "utf-8")
    return given


def test_a_rule_is_explained(folder: Path) -> None:
    """Exit code 0; steps, states, what is evaluated where, bounds; nothing on standard error."""
    result = _invoke(folder / "one.yaml")
    assert result.exit_code == 0
    assert not result.stderr
    for part in (
        "Rule one, version 1\n",
        "  a: once\n",
        "on the event  ABS(cost) > 1\n",
        "looks back  cost > LAST(a.cost)\n",
        "      take, go to 1 b  if ABS(cost) > 1\n",
        "What a key may hold\n",
    ):
        assert part in result.stdout


def test_a_folder_is_explained_rule_by_rule(folder: Path) -> None:
    """All rules in the order of their ids, each with its own warnings and no other's."""
    result = _invoke(folder)
    one, two = result.stdout.split("\n\nRule two")
    assert one.startswith("Rule one")
    assert "the rule has no `key`" in two
    assert "the rule has no `key`" not in one


def test_rules_of_one_file_are_explained(tmp_path: Path) -> None:
    """So are several rules of a file; one of them when it is asked for."""
    file = tmp_path / "both.yaml"
    file.write_text(f"{ONE}---\n{TWO}", "utf-8")
    assert _invoke(file).stdout.count("fingerprint") == 2
    result = _invoke(file, "--rule", "two")
    assert result.stdout.startswith("Rule two")
    assert result.stdout.count("fingerprint") == 1


def test_a_rule_is_chosen_by_its_id(folder: Path) -> None:
    """``--rule`` may be given several times; the rules come in that order, each once."""
    result = _invoke(folder, "--rule", "two", "--rule", "one", "--rule", "two", "--format", "plan")
    plans = [line for line in result.stdout.splitlines() if line.startswith("plan ")]
    assert plans == ["plan two, no_skip", "plan one, no_skip"]


def test_an_unknown_rule_names_the_nearest(folder: Path) -> None:
    """Exit code 3, the nearest id and all that there are."""
    result = _invoke(folder, "--rule", "onne")
    assert result.exit_code == 3
    assert (
        "there is no rule `onne`\n  help: did you mean `one`? rules here: one, two" in result.stderr
    )
    assert "did you mean" not in _invoke(folder, "--rule", "zzz").stderr


def test_the_plan_is_its_own_text(folder: Path) -> None:
    """``--format plan`` is what the plan prints."""
    plan = lower(load_rules(ONE, "r")[0].rule)
    assert _invoke(folder / "one.yaml", "--format", "plan").stdout == f"{plan}\n"


@pytest.mark.parametrize(("form", "read"), [("dot", read_dot), ("mermaid", read_mermaid)])
def test_rules_are_drawn(folder: Path, form: str, read: object) -> None:
    """Each rule is a part of one drawing; warnings go to standard error, for nothing shows them."""
    result = _invoke(folder, "--format", form)
    assert result.exit_code == 0
    drawn = read(result.stdout)  # type: ignore[operator]
    assert drawn.titles == ["one version 1", "two version 1"]
    assert "warning: " in result.stderr
    assert "the rule has no `key`" in result.stderr


@pytest.mark.parametrize("form", ["text", "dot", "mermaid", "plan"])
def test_output_goes_to_a_file(folder: Path, tmp_path: Path, form: str) -> None:
    """The file holds what would have been printed, and nothing is."""
    file = tmp_path / "written"
    result = _invoke(folder, "--format", form, "--output", file)
    assert result.exit_code == 0
    assert not result.stdout
    assert file.read_text("utf-8") == _invoke(folder, "--format", form).stdout


def test_a_file_that_cannot_be_written_is_named(folder: Path, tmp_path: Path) -> None:
    """Exit code 3 and the reason."""
    result = _invoke(folder, "--output", tmp_path / "nowhere" / "file")
    assert result.exit_code == 3
    assert "cannot be written: the folder " in result.stderr


def test_headings_stand_out_on_a_terminal(folder: Path) -> None:
    """On a terminal headings are bold; everywhere else the text is plain."""
    rules = rules_to_explain(folder, [], [])
    terminal, pipe = StringIO(), StringIO()
    show(rules, Console(file=terminal, force_terminal=True, highlight=False, soft_wrap=True))
    show(rules, Console(file=pipe, highlight=False, soft_wrap=True))
    assert "\x1b[1mRule one, version 1\x1b[0m" in terminal.getvalue()
    assert pipe.getvalue() == written(rules, RuleForm.TEXT)


def test_schemas_settle_types(folder: Path, tmp_path: Path) -> None:
    """With ``--schema`` conditions are checked, and unknown columns are exit code 4."""
    schema = tmp_path / "sale.avsc"
    schema.write_text(SCHEMA, "utf-8")
    result = _invoke(folder, "--rule", "one", "--schema", schema)
    assert result.exit_code == 0
    result = _invoke(folder, "--schema", schema)
    assert result.exit_code == 4
    assert "the event has no column kind" in result.stderr


def test_a_wrong_rule_is_underlined(folder: Path) -> None:
    """Exit code 4, and the message is that of ``check``."""
    (folder / "bad.yaml").write_text("id: bad\npattern: [{step: a, where: rand() > 1}]\n", "utf-8")
    result = _invoke(folder, "--rule", "one")
    assert result.exit_code == 4
    assert not result.stdout
    assert result.stderr == CliRunner().invoke(app, ["check", str(folder)]).stderr
    assert "^^^^" in result.stderr


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """Exit code 3."""
    result = _invoke(tmp_path / "nowhere.yaml")
    assert result.exit_code == 3
    assert "no such file or folder" in result.stderr


def test_a_folder_without_rules_is_warned_about(tmp_path: Path) -> None:
    """Exit code 0 and the warning of ``check``."""
    result = _invoke(tmp_path)
    assert result.exit_code == 0
    assert "there are no rules" in result.stderr


def test_neither_spark_nor_kafka_is_loaded(folder: Path) -> None:
    """The command does without the modules that make a start slow."""
    program = f"""
import sys
from typer.testing import CliRunner
from spark_cep.cli.main import app
assert CliRunner().invoke(app, ["explain", {str(folder)!r}, "--format", "dot"]).exit_code == 0
assert not {{"pyspark", "pyarrow", "pandas", "confluent_kafka"}} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", program], check=True, cwd=Path(__file__).parents[2])


SQL = """-- id: rising
SELECT * FROM sales MATCH_RECOGNIZE (
  PARTITION BY user ORDER BY cost
  ALL ROWS PER MATCH
  PATTERN (a b+ c)
  DEFINE b AS Cost > PREV(cost)
)
"""


def test_rules_in_sql_are_explained(folder: Path, tmp_path: Path) -> None:
    """In words, with the columns of the schema, beside rules with steps; in each other form."""
    (folder / "three.sql").write_text(SQL, "utf-8")
    schema = tmp_path / "sale.avsc"
    schema.write_text(SCHEMA, "utf-8")
    result = _invoke(folder, "--rule", "rising", "--schema", schema)
    assert result.exit_code == 0
    assert "B, once or more, as often as possible: a row where cost > PREV(" in result.stdout
    assert "  cost  the column cost\n" in result.stdout
    both = _invoke(folder).stdout
    assert both.index("Rule one") < both.index("Rule rising") < both.index("Rule two")
    assert "and all other columns of the input" in both
    plan = _invoke(folder / "three.sql", "--format", "plan").stdout
    assert plan.startswith("row pattern A B+ C\n")
    assert "1 LABEL B\n  2 SPLIT 1, 3\n" in plan
    forms = (RuleForm.DOT, read_dot), (RuleForm.MERMAID, read_mermaid)
    for form, read in forms:
        text = written(rules_to_explain(folder, [], []), form)
        drawn = read(text)
        assert drawn.titles == ["one version 1", "rising version 1", "two version 1"]
        assert any(label.startswith("1 LABEL B") for label in drawn.states.values())
