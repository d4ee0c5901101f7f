"""A run of Python values with one clock: the batch runner, called as its reference
(:class:`tests.reference.local.LocalJob`) is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.rule_set import RuleSetPlan
from spark_cep.matcher.findings.live import PartialMatch
from spark_cep.matcher.findings.outputs import Outputs
from spark_cep.model import LateEvent
from spark_cep.pipeline.match.watermark import BEGINNING
from spark_cep.runner.batch import Batch, RunSettings
from spark_cep.runner.runner import Runner
from spark_cep.runner.values import ValueInputs, ValueRecord, records_of
from tests.reference.local import Record

_NOTHING_KNOWN = RecordTypes()
_SETTINGS = RunSettings(late_events="all", key_groups=1)


class RunnerJob:
    """A rule set with its state. Records are given in arrival order."""

    def __init__(self, plan: RuleSetPlan, types: RecordTypes = _NOTHING_KNOWN) -> None:
        self.plan = plan
        self.watermark = BEGINNING
        self.outputs = Outputs()
        self.late: list[LateEvent] = []
        self._inputs = ValueInputs(types)
        self._runner = Runner(plan, self._inputs, _SETTINGS)

    def advance(self, records: Iterable[Record], watermark: int) -> None:
        """Take in ``records``; those at or before the watermark so far are late. Then move on."""
        known = len(self._inputs)
        values = [
            ValueRecord.of(
                record.at,
                self._inputs.number(record.input, record.type),
                record.time * 1_000 + record.micros,
                record.values,
            )
            for record in records
        ]
        if len(self._inputs) > known:
            self._runner.use(self.plan, self._inputs)
        self.watermark = max(self.watermark, watermark)
        found = self._runner.apply(Batch(records_of(values), watermark=self.watermark))
        self.outputs.add(found.outputs)
        self.late += found.late

    def partial_matches(self) -> Iterator[PartialMatch]:
        """The live partial matches."""
        return self._runner.partial_matches()

    def reload(self) -> None:
        """Go on from what is stored, as a restart does."""
        state = self._runner.snapshot()
        self._runner = Runner(self.plan, self._inputs, _SETTINGS, state)
