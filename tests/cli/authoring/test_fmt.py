"""``spark-cep fmt``: one form, with all comments, and nothing else changed."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from spark_cep.cli.authoring.formatting import formatted
from spark_cep.cli.main import app
from spark_cep.errors import RuleSetError
from spark_cep.pattern.document.loading import load_rules
from spark_cep.rules.sources.folder import has_cases

ROOT = Path(__file__).parents[3]

UNTIDY = """---
# Of the whole file.
id:   r     # the id

pattern:
- {step: a,where: "kind = 'x'",times: 3+}
# About b.
-   step: b
    where: >
      kind = 'y'
      AND v > 1
    after: followed_by


within:   1 minute
# Why this key.
key:
    - k     # the first
    - 'l'
version: 1



description: |
    two   # no comment

    lines
# At the end.
---
id: s
pattern:
- step: a
"""

TIDY = """# Of the whole file.
id: r       # the id
version: 1

description: |
  two   # no comment

  lines
# Why this key.
key:
  - k       # the first
  - 'l'

pattern:
  - {step: a, where: "kind = 'x'", times: 3+}
  # About b.
  - step: b
    where: >
      kind = 'y'
      AND v > 1
    after: followed_by

within: 1 minute
# At the end.
---
id: s
pattern:
  - step: a
"""


def test_the_form() -> None:
    """Order, indentation, blanks, empty lines; comments stand where they stood."""
    assert formatted(UNTIDY, "r.yaml") == TIDY


def test_it_is_idempotent() -> None:
    """What is in its form stays."""
    assert formatted(TIDY, "r.yaml") == TIDY


def test_rules_are_the_same() -> None:
    """Both texts have the same canonical text."""
    before, after = (load_rules(text, "r.yaml") for text in (UNTIDY, TIDY))
    assert [each.text for each in before] == [each.text for each in after]


@pytest.mark.parametrize(
    "file",
    [each for each in sorted((ROOT / "examples").rglob("rules/*.yaml")) if not has_cases(each)],
    ids=lambda file: file.stem,
)
def test_examples_are_in_their_form(file: Path) -> None:
    """So is every rule that we show."""
    text = file.read_text("utf-8")
    assert formatted(text, file.name) == text


@pytest.mark.parametrize(
    "line",
    [
        "v: 1_000", "v: 1:30", "v: yes", "v: 0o7", "v: 1e3", "v: ~", "v: 2026-01-31", "v: '5'",
        'v: "a\\tb"', "v: .5", "v: |-\n  a\n   b", "v: a: b" , "v: [a, b: c]",
    ],
)  # fmt: skip
def test_words_stay(line: str) -> None:
    """Whatever YAML takes them for; what is no YAML is refused with its place."""
    text = f"id: r\n{line}\n"
    if line == "v: a: b":
        with pytest.raises(RuleSetError):
            formatted(text, "r.yaml")
    else:
        assert formatted(text, "r.yaml") == text


def test_aliases_keep_their_order() -> None:
    """A text that is named must stand before its aliases."""
    text = "id: r\nwithin: &w 1 minute\nversion: 1\ncooldown: *w\n"
    assert formatted(text, "r.yaml") == text


def test_cases_come_last() -> None:
    """In a file of test cases, too, whose other keys are about all of them."""
    text = "cases:\n  - case: c\nevent_time: ts\nschemas: a.avsc\nrules: r.yaml\n"
    shown = "rules: r.yaml\nschemas: a.avsc\nevent_time: ts\ncases:\n  - case: c\n"
    assert formatted(text, "r.cases.yaml") == shown
    assert formatted(shown, "r.cases.yaml") == shown


def test_a_comment_is_not_lost() -> None:
    """Where it cannot be kept, the file is refused, with the place."""
    with pytest.raises(RuleSetError) as raised:
        formatted("id: r\nkey: [a, # first\n  b]\n", "r.yaml")
    (problem,) = raised.value.problems
    assert problem.span is not None
    assert (problem.span.line, problem.excerpt) == (2, "key: [a, # first")


def fmt(*words: str | Path, given: str | None = None) -> Result:
    """Run the command."""
    return CliRunner().invoke(app, ["fmt", *map(str, words)], input=given)


def test_files(tmp_path: Path) -> None:
    """``--check`` tells and writes nothing; without, files are written, and others left alone."""
    untidy, tidy = tmp_path / "a.yaml", tmp_path / "b.yaml"
    untidy.write_text(UNTIDY, "utf-8")
    tidy.write_text(TIDY, "utf-8")
    (tmp_path / "c.sql").write_text("SELECT", "utf-8")
    result = fmt("--check", tmp_path)
    assert result.exit_code == 1
    assert result.stderr == f"{untidy}: would be reformatted\n"
    assert untidy.read_text("utf-8") == UNTIDY
    result = fmt("--diff", "--check", untidy)
    assert "-id:   r     # the id\n+id: r       # the id\n" in result.stdout
    result = fmt(tmp_path)
    assert result.exit_code == 0
    assert untidy.read_text("utf-8") == TIDY
    assert fmt("--check", tmp_path).exit_code == 0


def test_standard_input() -> None:
    """To the standard output."""
    assert fmt("-", given=UNTIDY).stdout == TIDY
    assert fmt("--check", "-", given=UNTIDY).exit_code == 1


def test_what_it_refuses(tmp_path: Path) -> None:
    """Other files, and text that is no YAML: with its place, and the other files are written."""
    assert fmt(tmp_path / "a.sql").exit_code == 3
    (tmp_path / "a.yaml").write_text("id: [\n", "utf-8")
    (tmp_path / "b.yaml").write_text(UNTIDY, "utf-8")
    result = fmt(tmp_path)
    assert result.exit_code == 4
    assert "a.yaml:" in result.stderr
    assert (tmp_path / "b.yaml").read_text("utf-8") == TIDY
