"""Annotations of rules: what their texts may name, and the words for what they may not."""

from __future__ import annotations

import pytest

from spark_cep.errors import RuleSetError
from spark_cep.pattern.document.canonical import to_yaml
from spark_cep.pattern.document.loading import load_rules

RULE = """\
id: r
key: user_id
pattern:
  - {step: a, where: x = 1}
emit:
  measures: {total: a.x, key: a.x}
annotations:
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("runbook: 'https://w/{totl}'", "did you mean `total`? fields and measures of a match"),
        ("runbook: 'https://w/{}'", "names ``, which a match does not have"),
        ("runbook: 'https://w/{total'", "has a `{` without its `}`"),
        ("runbook: 'https://w/}'", "a brace that is meant as such is written twice"),
        ("runbook: 'https://w/{total:>9}'", "the placeholder `{total…}` has a format"),
        ("runbook: 'https://w/{total!r}'", "the placeholder `{total…}` has a format"),
        ("runbook: 'https://w/{total.__class__}'", "names `total.__class__`"),
        ("runbook: 'https://w/{key}'", "is both a field and a measure"),
        ("run-book: 'https://w'", "`run-book` cannot be the name of an annotation"),
        ("runbook: ''", "`runbook` is empty"),
        ("runbook: 5", "`runbook` must be text"),
    ],
)
def test_what_is_wrong_is_said_at_its_place(text: str, said: str) -> None:
    """With the line of the annotation, and what to write instead."""
    with pytest.raises(RuleSetError) as caught:
        load_rules(f"{RULE}  {text}\n", "rules.yaml")
    assert said in str(caught.value)
    assert "rules.yaml:8:" in str(caught.value)


def test_a_rule_with_annotations_is_written_and_read_again() -> None:
    """Its canonical text has them."""
    text = f"{RULE}  runbook: 'https://w/{{rule_id}}?n={{total}}'\n  note: 'a {{{{brace}}}}'\n"
    (loaded,) = load_rules(text, "rules.yaml")
    assert loaded.rule.annotations == {
        "runbook": "https://w/{rule_id}?n={total}",
        "note": "a {{brace}}",
    }
    (again,) = load_rules(to_yaml(loaded.rule), "again.yaml")
    assert again.rule == loaded.rule


def test_rows_carry_none() -> None:
    """A statement with ALL ROWS PER MATCH is refused with them."""
    text = (
        "id: r\nannotations: {runbook: 'https://w'}\nsql: |\n  SELECT * FROM t MATCH_RECOGNIZE ("
        "PARTITION BY k ORDER BY ts ALL ROWS PER MATCH PATTERN (a) DEFINE a AS v = 1)\n"
    )
    with pytest.raises(RuleSetError, match="ONE ROW PER MATCH, whose records carry them"):
        load_rules(text, "rules.yaml")
