"""What the driver tells every task of a batch, as local properties of Spark's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pyspark import SparkContext, TaskContext

#: The time at which a batch was planned, in milliseconds.
PLANNED_AT: Final = "spark_cep.planned_at"
#: The event time after which no event of the batch is late; or nothing.
LATE_UNTIL: Final = "spark_cep.late_until"


@dataclass(frozen=True, slots=True)
class TaskProperties:
    """``planned_at``: when the batch was planned, in ms since 1970. ``late_until``: the event time
    (ms) after which no event of the batch is late; ``None`` when that is not known."""

    planned_at: int
    late_until: int | None

    def set_on(self, context: SparkContext) -> None:
        """Tell all tasks of the jobs that this thread starts from now on."""
        late_until = "" if self.late_until is None else str(self.late_until)
        context.setLocalProperty(PLANNED_AT, str(self.planned_at))
        context.setLocalProperty(LATE_UNTIL, late_until)

    @classmethod
    def of_task(cls) -> TaskProperties:
        """What the driver told the task that runs here. Raises ValueError when it told nothing."""
        task = TaskContext.get()
        planned = None if task is None else task.getLocalProperty(PLANNED_AT)
        if task is None or planned is None:
            raise ValueError(f"the task was not told {PLANNED_AT}")
        late_until = task.getLocalProperty(LATE_UNTIL)
        return cls(int(planned), int(late_until) if late_until else None)
