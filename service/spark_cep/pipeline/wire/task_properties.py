"""Properties of a batch that the driver hands to its tasks, as text."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Final

#: The rules of the batch, as :mod:`spark_cep.rules.plans` encodes them.
RULES: Final = "spark_cep.rules"
#: All other properties, as JSON.
BATCH: Final = "spark_cep.batch"


@dataclass(frozen=True, slots=True)
class TaskProperties:
    """``planned_at``: when the batch was planned, in ms since 1970. ``late_until``: the event time
    (ms) after which no event of the batch is late; ``None`` when that is not known. ``offsets``:
    digest of where the batch ends in its sources; ``offsets_before``: that of the batch before,
    whose state it goes on from; empty for the first batch. ``schemas``: the only ones that the
    batch knows, as their format writes them, because some of its output was written so; ``None``
    where nothing was written. ``known_schemas``: those that its output is written with.
    ``rules``: those of the batch, encoded. ``query`` and ``batch``: Spark's id and number;
    ``first``: no batch was begun since the query was started."""

    planned_at: int
    late_until: int | None
    offsets: str = ""
    offsets_before: str = ""
    schemas: str | None = None
    rules: str = ""
    known_schemas: str = ""
    query: str = ""
    batch: int = 0
    first: bool = False

    def texts(self) -> dict[str, str]:
        """The properties by name."""
        others = asdict(self)
        return {RULES: others.pop("rules"), BATCH: json.dumps(others)}

    @classmethod
    def of(cls, text_of: Callable[[str], str | None]) -> TaskProperties:
        """Read the properties that :meth:`texts` makes, by name. Raises ValueError without any."""
        rules, others = text_of(RULES), text_of(BATCH)
        if rules is None or others is None:
            raise ValueError(f"the task has no property {BATCH}")
        return cls(rules=rules, **json.loads(others))
