"""Properties of a batch that the driver hands to its tasks, as text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

#: The time at which a batch was planned, in milliseconds.
PLANNED_AT: Final = "spark_cep.planned_at"
#: The event time after which no event of the batch is late; or nothing.
LATE_UNTIL: Final = "spark_cep.late_until"
#: Which batch it is, and which one was before it.
OFFSETS: Final = "spark_cep.offsets"
OFFSETS_BEFORE: Final = "spark_cep.offsets_before"
#: The schemas of a batch whose output is there in part.
SCHEMAS: Final = "spark_cep.schemas"
#: The rules of the batch, as :mod:`spark_cep.rules.plans` encodes them.
RULES: Final = "spark_cep.rules"


@dataclass(frozen=True, slots=True)
class TaskProperties:
    """``planned_at``: when the batch was planned, in ms since 1970. ``late_until``: the event time
    (ms) after which no event of the batch is late; ``None`` when that is not known. ``offsets``:
    digest of where the batch ends in its sources; ``offsets_before``: that of the batch before,
    whose state it goes on from; empty for the first batch. ``schemas``: the only ones that the
    batch knows, as their format writes them, because some of its output was written so; ``None``
    where nothing was written.
    ``rules``: those of the batch, encoded."""

    planned_at: int
    late_until: int | None
    offsets: str = ""
    offsets_before: str = ""
    schemas: str | None = None
    rules: str = ""

    def texts(self) -> dict[str, str | None]:
        """The properties by name; ``None``: not set."""
        return {
            PLANNED_AT: str(self.planned_at),
            LATE_UNTIL: "" if self.late_until is None else str(self.late_until),
            OFFSETS: self.offsets,
            OFFSETS_BEFORE: self.offsets_before,
            SCHEMAS: self.schemas,
            RULES: self.rules,
        }

    @classmethod
    def of(cls, text_of: Callable[[str], str | None]) -> TaskProperties:
        """Read the properties that :meth:`texts` makes, by name. Raises ValueError without any."""
        planned = text_of(PLANNED_AT)
        if planned is None:
            raise ValueError(f"the task has no property {PLANNED_AT}")
        late_until = text_of(LATE_UNTIL)
        return cls(
            int(planned),
            int(late_until) if late_until else None,
            text_of(OFFSETS) or "",
            text_of(OFFSETS_BEFORE) or "",
            text_of(SCHEMAS),
            text_of(RULES) or "",
        )
