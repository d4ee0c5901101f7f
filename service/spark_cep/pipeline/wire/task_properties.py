"""What the driver tells every task of a batch, as local properties of Spark's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pyspark import SparkContext, TaskContext

from spark_cep.pipeline.wire.schema_ids import ids_in, ranges_of

#: The time at which a batch was planned, in milliseconds.
PLANNED_AT: Final = "spark_cep.planned_at"
#: The event time after which no event of the batch is late; or nothing.
LATE_UNTIL: Final = "spark_cep.late_until"
#: Which batch it is, and which one was before it.
OFFSETS: Final = "spark_cep.offsets"
OFFSETS_BEFORE: Final = "spark_cep.offsets_before"
#: The schema ids of a batch whose output is there in part, as ranges.
SCHEMA_IDS: Final = "spark_cep.schema_ids"
#: The rules of the batch, as :mod:`spark_cep.rules.plans` encodes them.
RULES: Final = "spark_cep.rules"


@dataclass(frozen=True, slots=True)
class TaskProperties:
    """``planned_at``: when the batch was planned, in ms since 1970. ``late_until``: the event time
    (ms) after which no event of the batch is late; ``None`` when that is not known. ``offsets``:
    digest of where the batch ends in its sources; ``offsets_before``: that of the batch before,
    whose state it goes on from; empty for the first batch. ``schema_ids``: the only ones that the
    batch knows, because some of its output was written so; ``None`` where nothing was written.
    ``rules``: those of the batch, encoded."""

    planned_at: int
    late_until: int | None
    offsets: str = ""
    offsets_before: str = ""
    schema_ids: frozenset[int] | None = None
    rules: str = ""

    def set_on(self, context: SparkContext) -> None:
        """Tell all tasks of the jobs that this thread starts from now on."""
        late_until = "" if self.late_until is None else str(self.late_until)
        context.setLocalProperty(PLANNED_AT, str(self.planned_at))
        context.setLocalProperty(LATE_UNTIL, late_until)
        context.setLocalProperty(OFFSETS, self.offsets)
        context.setLocalProperty(OFFSETS_BEFORE, self.offsets_before)
        known = None if self.schema_ids is None else ranges_of(self.schema_ids)
        context.setLocalProperty(SCHEMA_IDS, known)  # type: ignore[arg-type]  # None: not told
        context.setLocalProperty(RULES, self.rules)

    @classmethod
    def of_task(cls) -> TaskProperties:
        """What the driver told the task that runs here. Raises ValueError when it told nothing."""
        task = TaskContext.get()
        planned = None if task is None else task.getLocalProperty(PLANNED_AT)
        if task is None or planned is None:
            raise ValueError(f"the task was not told {PLANNED_AT}")
        late_until = task.getLocalProperty(LATE_UNTIL)
        known = task.getLocalProperty(SCHEMA_IDS)
        return cls(
            int(planned),
            int(late_until) if late_until else None,
            task.getLocalProperty(OFFSETS) or "",
            task.getLocalProperty(OFFSETS_BEFORE) or "",
            None if known is None else ids_in(known),
            task.getLocalProperty(RULES) or "",
        )
