"""What the audit topic holds tells which rules any batch had."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from spark_cep.errors import RuleSetError
from spark_cep.pattern.document.loading import LoadedRule, load_rules
from spark_cep.rules.pauses import Pause
from spark_cep.rules.rule_set import DrainingVersion, RuleSet, assemble
from spark_cep.rules.schemas import schema_text
from spark_cep.rules.topic_records import (
    MOST_TEXT_BYTES,
    AuditRecord,
    SetBegins,
    StatusRecord,
    audit_records,
    rule_sets,
    too_large,
)

_RULE = (
    "id: {0}\nversion: {1}\nenabled: {2}\nkey: k\nwithin: 1 s\n"
    "pattern: [{{step: a, where: n = {1}}}]\n"
)
_READER: TypeAdapter[AuditRecord] = TypeAdapter(AuditRecord)
_SCHEMAS = Path(__file__).parents[2] / "schemas"


#: What a rule set is made of, rather than the set, whose text fills pages: rules with version,
#: whether they are on, and the versions that they carry over; versions that drain, how long and
#: until when they begin; pauses, and from where records end those of the job itself.
_SETS = st.tuples(
    st.dictionaries(
        st.sampled_from("abcd"),
        st.tuples(st.integers(1, 3), st.booleans(), st.sampled_from([(), (9,), (9, 8)])),
    ),
    st.dictionaries(
        st.sampled_from([("e", 1), ("e", 2), ("f", 1)]),
        st.tuples(st.none() | st.integers(1, 2), st.none() | st.just(7)),
    ),
    st.dictionaries(st.sampled_from("abcd"), st.sampled_from([None, 1, 2])),
    st.sampled_from([None, 7]),
)
_Made = tuple[
    dict[str, tuple[int, bool, tuple[int, ...]]],
    dict[tuple[str, int], tuple[int | None, int | None]],
    dict[str, int | None],
    int | None,
]


def _loaded(rule: str, version: int, *, on: bool = True) -> LoadedRule:
    (one,) = load_rules(_RULE.format(rule, version, str(on).lower()), f"{rule}.yaml")
    return one


def _set(made: _Made) -> RuleSet:
    chosen, drains, pauses, ends = made
    rules = replace(
        assemble(_loaded(rule, version, on=on) for rule, (version, on, _) in chosen.items()),
        draining=tuple(
            DrainingVersion(_loaded(*version), *drains[version]) for version in sorted(drains)
        ),
        carried=tuple(
            _loaded(rule, version)
            for rule, (_, _, versions) in sorted(chosen.items())
            for version in versions
        ),
    )
    return rules.pausing(
        {rule: Pause("why", "who", version, ends) for rule, version in pauses.items()}
    )


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


@given(st.lists(_SETS, min_size=1, max_size=4), st.lists(_SETS, max_size=2))
@pytest.mark.slow
def test_every_set_can_be_rebuilt(made: list[_Made], others: list[_Made]) -> None:
    """Rules, versions, what is switched off, and pauses, also those of the job itself; with the
    batch that is the first. An older checkpoint of the job has its own."""
    sets = [*map(_set, made)]
    found = rule_sets([*_records([*map(_set, others)], "older"), *_records(sets)])
    assert [rules.fingerprint for _, rules in found.values()] == [each.fingerprint for each in sets]
    assert [rules.paused for _, rules in found.values()] == [
        {rule: replace(pause, lifted_from=None) for rule, pause in each.paused.items()}
        for each in sets
    ]
    assert [begins.batch for begins, _ in found.values()] == [
        7 * number for number in range(1, len(sets) + 1)
    ]


def test_a_checkpoint_that_was_put_back() -> None:
    """From an older copy: what is decided then counts, and the sets after the copy are gone."""
    one, two, three, other = (assemble([_loaded(rule, 1, on=True)]) for rule in "abcd")
    line = _records([one, two, three])
    of_other = [each for each in _records([one, other]) if each.rule_set == 2]
    found = rule_sets([*line, *of_other])
    assert [rules.fingerprint for _, rules in found.values()] == [
        one.fingerprint,
        other.fingerprint,
    ]


def test_a_missing_record_is_noticed() -> None:
    """The record of a set has its fingerprint."""
    (one,) = load_rules(_RULE.format("a", 1, "true"), "a.yaml")
    records = [each for each in _records([assemble([one])]) if isinstance(each, SetBegins)]
    with pytest.raises(RuleSetError, match="rule set 1 of job are missing"):
        rule_sets(records)


def test_what_a_record_holds() -> None:
    """Four of the largest rules that may run, and why one is paused; a larger rule is refused."""
    (small,) = load_rules(_RULE.format("a", 1, "true"), "a.yaml")

    def rule(version: int, length: int) -> LoadedRule:
        text = '"' + length * "\\té" + '"'
        described = _RULE.format("a", version, "true") + f"description: {text}\n"
        return load_rules(described, "a.yaml")[0]

    room = MOST_TEXT_BYTES - len(json.dumps(small.text)) - 100
    versions = [rule(number, room // 5) for number in range(5, 0, -1)]
    assert not too_large(versions[0])
    newest, *carried = versions
    after = replace(assemble([newest]), carried=tuple(carried))
    common = {"job": "j", "history": "h", "rule_set": 2, "batch": 1}
    sizes = [len(record.value()) for _, record in audit_records(common, {}, RuleSet(), after)]
    assert 900_000 < max(sizes) < 990_000
    (problem,) = too_large(rule(1, room // 4))
    assert "240,000 bytes" in problem.render()


def test_keys_of_the_status_topic() -> None:
    """Each version of a rule has one, and what is rejected has another."""
    keys = {
        StatusRecord(job="j", rule_id="a", rule_version=version, state=state).key()
        for version, state in ((1, "active"), (1, "paused"), (2, "active"), (None, "rejected"))
    }
    assert len(keys) == 3


@pytest.mark.parametrize("kind", ["audit", "override", "status"])
def test_the_public_schemas(kind: str) -> None:
    """They are those of the records."""
    assert (_SCHEMAS / f"rule-{kind}.schema.json").read_text("utf-8") == schema_text(kind)
