"""Versions of a rule that are published between two batches: what the key group finds is what it
finds where the last of them alone was published."""

from __future__ import annotations

from typing import Any

import pytest

from spark_cep.pattern.document.loading import LoadedRule, examine_rules
from spark_cep.pipeline.driver.rules.batch_rules import BatchRules, CompiledRules
from spark_cep.rules.change import next_rules
from spark_cep.rules.overrides import Overrides
from spark_cep.rules.rule_set import RuleFile, RuleSet, assemble
from tests.pipeline.driver.test_drained_rules import Log
from tests.pipeline.match.test_carry import TYPES, record, taken
from tests.pipeline.match.test_key_group import Store

RULE = """
id: r
version: {version}
key: key
within: 1 h
previous_version: {how}
pattern:
  - {{step: p, where: "name = 'a'"}}
  - {{step: q, after: followed_by, where: "name = 'b'"}}
  - {{step: r, after: followed_by, where: "name = '{third}'"}}
"""


def version(number: int, how: str) -> tuple[LoadedRule, ...]:
    """Each ends with another event: from the third on a version is one that nothing completes."""
    third = {1: "c", 7: "d"}.get(number, f"none {number}")
    loaded, problems = examine_rules(RULE.format(version=number, how=how, third=third), "r.yaml")
    assert problems == []
    return tuple(loaded)


class Job:
    """A key group under the rules that the driver gives each batch."""

    def __init__(self) -> None:
        log: Any = Log()
        first = CompiledRules.of(assemble(version(1, "restart")), TYPES)
        self.rules = BatchRules(
            log, None, first, None, Overrides(), lambda *_: None, lambda *_: None
        )
        self.store = Store(first.plan, TYPES)
        #: Versions, and how many partial matches ended without output.
        self.ended: list[tuple[int, int]] = []
        self._batch = self._offset = 0

    def publish(self, number: int, how: str) -> None:
        """A version in the place of the one that is wanted."""
        wanted, ran = self.rules.wanted_and_ran
        change = next_rules(
            wanted.rules, [RuleFile("r.yaml", version(number, how))], lambda _: (), ran=ran,
            most=10, allow_empty=False, fingerprints=self.rules.meanings,
        )  # fmt: skip
        assert change.rejected == ()
        assert self.rules.want(change.rules, Overrides(), ran)

    def batch(self, names: str, keys: str = "kl") -> RuleSet:
        """A batch with these events of each key; returns its rules."""
        rules = self.rules.of(self._batch, dict)
        self.store.change(rules.plan, TYPES)
        records = []
        for name in names:
            for key in keys:
                records.append(record(self._offset, 1_000 * (self._offset + 1), name, key))
                self._offset += 1
        self.store.advance(records, 1_000 * self._offset)
        self.ended += [(number, live) for _, number, live in self.store.gone if live]
        self.rules.drained(dict.fromkeys(self.store.drained, 1), 1)
        self._batch += 1
        return rules.rules


def found(how: str, several: list[int]) -> Any:
    """What is found, and what partial matches end, with these versions between two batches."""
    job = Job()
    job.batch("ab")
    for number in several:
        job.publish(number, how)
    job.batch("a" if how == "carry" else "")
    for names in "bcd", "abcd":
        job.batch(names)
    return taken(job.store), job.ended, job.store.live_versions


@pytest.mark.parametrize("how", ["carry", "drain"])
def test_five_versions_between_two_batches(how: str) -> None:
    """An open partial match is carried over to the last one, or drains and completes, and nothing
    ends."""
    matches, ended, live = found(how, [2, 3, 4, 5, 6, 7])
    assert (matches, ended, live) == found(how, [7])
    assert ended == []
    first = [(v, offsets) for v, offsets in matches if offsets[0] in (0, 1)]
    completes = 7 if how == "carry" else 1
    assert [v for v, _ in first if v == completes] == [completes] * len(first)
    assert len(first) >= 2


def test_versions_that_each_had_a_batch() -> None:
    """The fifth that drains ends the oldest, with what it holds; versions that no batch had end
    nothing more."""
    job = Job()
    job.batch("ab")
    for number in range(2, 6):
        job.publish(number, "drain")
        job.batch("ab")
    assert job.ended == []
    job.publish(6, "drain")
    job.publish(7, "drain")
    rules = job.batch("c")
    assert [each.rule.version for each in rules.draining] == [2, 3, 4, 5]
    assert job.ended == [(1, 2)]
