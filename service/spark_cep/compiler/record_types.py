"""The record types that events may be of, as far as expressions need them.

Types decide what SQL gives: whether a sum overflows INT or BIGINT, how many digits a decimal has.
The machine binds its expressions with the types that Spark reads, so that both agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spark_cep.compiler.plan import Plan
from spark_cep.pattern.expressions import ALL_STEPS
from spark_cep.pattern.several_types import InputRecord, merged
from spark_cep.pattern.types import RecordType


@dataclass(frozen=True)
class RecordTypes:
    """Record types, each from the input that it is read of. Empty: nothing is known."""

    known: tuple[InputRecord, ...] = ()

    def of(self, events: Sequence[str], of_type: str | None) -> RecordType | None:
        """Return the columns that an event of inputs ``events`` (all, when empty) and record type
        ``of_type`` may have."""
        found = [
            columns
            for name, record, columns in self.known
            if (not events or name in events)
            and (of_type is None or of_type in (record, record.rpartition(".")[2]))
        ]
        return merged(list(dict.fromkeys(found))) if found else None

    def by_step(self, plan: Plan) -> dict[str, RecordType]:
        """Return, for each step and for ``ALL_STEPS``, the columns that its events may have."""
        events = plan.rule.events
        steps = {step: self.of(events, plan.type_of(step)) for step in plan.steps}
        steps[ALL_STEPS] = self.of(events, None)
        return {step: columns for step, columns in steps.items() if columns is not None}
