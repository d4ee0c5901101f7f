"""What the audit topic holds tells which rules any batch had."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from service.errors import RuleSetError
from service.pattern.document import load_rules
from service.rules.pauses import Pause
from service.rules.rule_set import Drain, RuleSet, assemble
from service.rules.topic_records import (
    AuditRecord,
    SetBegins,
    StatusRecord,
    audit_records,
    rule_sets,
    schema_text,
)

_RULE = (
    "id: {0}\nversion: {1}\nenabled: {2}\nkey: k\nwithin: 1 s\n"
    "pattern: [{{step: a, where: n = {1}}}]\n"
)
_READER: TypeAdapter[AuditRecord] = TypeAdapter(AuditRecord)
_SCHEMAS = Path(__file__).parents[2] / "schemas"


@st.composite
def _sets(draw: st.DrawFn) -> RuleSet:
    chosen = draw(
        st.dictionaries(st.sampled_from("abcd"), st.tuples(st.integers(1, 3), st.booleans()))
    )
    texts = [
        load_rules(_RULE.format(rule, version, str(on).lower()), f"{rule}.yaml")
        for rule, (version, on) in chosen.items()
    ]
    rules = assemble(one for each in texts for one in each)
    older = [("e", 1), ("e", 2), ("f", 1)]
    drains = [
        Drain(
            load_rules(_RULE.format(*version, "true"), "e.yaml")[0],
            draw(st.none() | st.integers(1, 2)),
            draw(st.none() | st.just(7)),
        )
        for version in draw(st.lists(st.sampled_from(older), unique=True).map(sorted))
    ]
    carried = [
        load_rules(_RULE.format(rule, version, "true"), f"{rule}.yaml")[0]
        for rule in sorted(chosen)
        for version in draw(st.sampled_from([(), (9,), (9, 8)]))
    ]
    rules = replace(rules, draining=tuple(drains), carried=tuple(carried))
    pauses = draw(st.dictionaries(st.sampled_from("abcd"), st.sampled_from([None, 1, 2])))
    return rules.pausing({rule: Pause("why", "who", version) for rule, version in pauses.items()})


def _records(sets: list[RuleSet], history: str = "h") -> list[AuditRecord]:
    """As they are read: also those that were written again, or whose set was decided again."""
    found: list[AuditRecord] = []
    before = RuleSet()
    for number, each in enumerate(sets, 1):
        for rules in (RuleSet(), each, each):
            common = {"job": "job", "history": history, "rule_set": number, "batch": 7 * number}
            records = audit_records(common, {"t": {0: 1}}, before, rules)
            found += [_READER.validate_json(record.value()) for _, record in records]
        before = each
    return found


@given(st.lists(_sets(), min_size=1, max_size=4), st.lists(_sets(), max_size=2))
def test_every_set_can_be_rebuilt(sets: list[RuleSet], others: list[RuleSet]) -> None:
    """Rules, versions, what is switched off, and pauses; with the batch that is the first. An older
    checkpoint of the job has its own."""
    found = rule_sets([*_records(others, "older"), *_records(sets)])
    assert [rules.fingerprint for _, rules in found.values()] == [each.fingerprint for each in sets]
    assert [rules.paused for _, rules in found.values()] == [each.paused for each in sets]
    assert [begins.batch for begins, _ in found.values()] == [
        7 * number for number in range(1, len(sets) + 1)
    ]


def test_a_missing_record_is_noticed() -> None:
    """The record of a set has its fingerprint."""
    (one,) = load_rules(_RULE.format("a", 1, "true"), "a.yaml")
    records = [each for each in _records([assemble([one])]) if isinstance(each, SetBegins)]
    with pytest.raises(RuleSetError, match="rule set 1 of job are missing"):
        rule_sets(records)


def test_keys_of_the_status_topic() -> None:
    """Each version of a rule has one, and what is rejected has another."""
    keys = {
        StatusRecord(job="j", rule_id="a", rule_version=version, state=state).key()
        for version, state in ((1, "active"), (1, "paused"), (2, "active"), (None, "rejected"))
    }
    assert len(keys) == 3


@pytest.mark.parametrize("kind", ["audit", "status"])
def test_the_public_schemas(kind: str) -> None:
    """They are those of the records."""
    assert (_SCHEMAS / f"rule-{kind}.schema.json").read_text("utf-8") == schema_text(kind)
