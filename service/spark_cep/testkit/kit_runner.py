"""The runner of a test, which keeps its batches to tell why rules did, or did not, match."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence

from spark_cep.columns.compilation import compilation_noticed
from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.rule_set import RuleSetPlan
from spark_cep.matcher.findings.live import PartialMatch
from spark_cep.pattern.tree import Rule
from spark_cep.pipeline.match.group_matcher import MakeMatcher
from spark_cep.pipeline.wire.control import ControlRecord
from spark_cep.rules.rule_set import RuleSet
from spark_cep.runner.batch import Batch, BatchResults, RunSettings
from spark_cep.runner.runner import Runner
from spark_cep.runner.values import ValueInputs, ValueRecord, records_of
from spark_cep.why.answer import Answer
from spark_cep.why.run import keys_seen, why
from spark_cep.why.text import ended_lines

_MOST_KEYS = 10
#: Results come in one order, so there is one key group.
_SETTINGS = RunSettings(late_events="all", key_groups=1)


def _begins() -> None:
    sys.stderr.write(
        "spark-cep: compiling for this machine, which it does once and which takes up to two"
        " minutes; `spark-cep prepare` does it beforehand\n"
    )


def _ends(seconds: float) -> None:
    sys.stderr.write(f"spark-cep: compiled in {seconds:.0f} s\n")


class KitRunner:
    """The runner of a test.

    Args:
        rules: The rules.
        plan: Their plan.
        inputs: The record types of the events, which may become more.
        matcher: What makes the matchers.
    """

    def __init__(
        self, rules: RuleSet, plan: RuleSetPlan, inputs: ValueInputs, matcher: MakeMatcher
    ) -> None:
        self._plan, self._inputs, self._matcher = plan, inputs, matcher
        with compilation_noticed(_begins, _ends):
            self._runner = Runner(plan, inputs, _SETTINGS, matcher=matcher)
        self._batches: list[tuple[Sequence[ValueRecord], int, int] | RuleSet] = [rules]

    def number(self, source: str, record: str | None) -> int:
        """The number of a record type, which the runner is told of when it is new."""
        known = len(self._inputs)
        number = self._inputs.number(source, record)
        if number == known:
            self._runner.use(self._plan, self._inputs)
        return number

    def apply(self, records: Sequence[ValueRecord], before: int, watermark: int) -> BatchResults:
        """Apply records that arrive behind the watermark ``before``, and move it to
        ``watermark``."""
        with compilation_noticed(_begins, _ends):
            results = self._runner.apply(_batch(records, before, watermark))
        self._batches.append((records, before, watermark))
        return results

    def replace(self, rules: RuleSet, plan: RuleSetPlan, types: RecordTypes) -> BatchResults:
        """Go on under other rules, of which ``plan`` is the plan, over events of these types."""
        self._plan, self._inputs.types = plan, types
        self._runner.use(plan, self._inputs)
        self._batches.append(rules)
        # They take effect with a batch.
        with compilation_noticed(_begins, _ends):
            return self._runner.apply(Batch((), watermark=self._runner.watermark))

    def restart(self) -> None:
        """Write the state to bytes, and go on with what is read of them."""
        state = self._runner.snapshot()
        self._runner = Runner(self._plan, self._inputs, _SETTINGS, state, matcher=self._matcher)

    def partial_matches(self) -> Iterable[PartialMatch]:
        """The live partial matches of all rules and keys."""
        return self._runner.partial_matches()

    def why(self, rule: Rule, key: str | None) -> Answer:
        """The account of a rule for the events of ``key``."""
        return Answer(why(rule, key, self._inputs, self._replayed()))

    def keys(self, rule: Rule) -> Sequence[str | None]:
        """The keys of a rule's events."""
        return keys_seen(rule, self._inputs, self._replayed())

    def ended_lines(self, rules: Iterable[Rule]) -> Iterator[str]:
        """Partial matches that ended without a match, and why, of the first keys."""
        for rule in rules:
            for key in self.keys(rule)[:_MOST_KEYS]:
                yield from ended_lines(why(rule, key, self._inputs, self._replayed()))

    def _replayed(self) -> Iterator[Batch | RuleSet]:
        """The batches that the runner was given, and where rules changed."""
        for each in self._batches:
            yield each if isinstance(each, RuleSet) else _batch(*each)


def _batch(records: Sequence[ValueRecord], before: int, watermark: int) -> Batch:
    return Batch(records_of(records), ControlRecord(lower_bound=before), watermark)
