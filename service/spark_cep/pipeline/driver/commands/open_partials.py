"""The open partial matches of a running job, of all keys, as of its last committed batch.

As much is read as a page can show: a sample of the buckets where there are many, and in each as far
as the limit goes. :mod:`~spark_cep.pipeline.driver.commands.state_report` counts all of them, and
finds those of one key.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark_cep.config import Settings
from spark_cep.pipeline.driver.commands.state_report import committed_state, stored_entries
from spark_cep.pipeline.state.ascii_values import bytes_of
from spark_cep.pipeline.state.entries import CHANGES
from spark_cep.pipeline.state.group_format import GROUP
from spark_cep.pipeline.state.stored_group import HeldPartial, StoredGroup

_MOST_BUCKETS: Final = 64
#: The names of bases; not those of changes, or of events that wait.
_BASE: Final = "/[0-9]+$"


@dataclass(frozen=True, slots=True)
class OpenPartials:
    """Open partial matches with their keys, as of the committed ``batch``. ``is_all``: there are no
    others."""

    batch: int
    partials: list[tuple[str | None, HeldPartial]]
    is_all: bool


def read_open(
    settings: Settings, spark: SparkSession, most: int, before: OpenPartials | None = None
) -> OpenPartials:
    """Read at most ``most`` open partial matches; ``before`` is returned while no batch has been
    committed since. Raises as :func:`~spark_cep.pipeline.driver.commands.state_report.read_state`.
    """
    with committed_state(settings, spark) as (_, location, position):
        batch = position.committed
        assert batch is not None
        if before is not None and before.batch == batch:
            return before
        entries = stored_entries(spark, location, batch)
        number, name = F.col("key_group"), F.col("name")
        rows = entries.where(name.rlike(_BASE)).limit(_MOST_BUCKETS + 1)
        bases = [(row.key_group, row.name, bytes_of(row.value)) for row in rows.collect()]
        bases, is_all = bases[:_MOST_BUCKETS], len(bases) <= _MOST_BUCKETS
        named = name.isin([GROUP, *(each + CHANGES for _, each, _ in bases)])
        wanted = number.isin(sorted({each for each, *_ in bases}))
        beside = {
            (row.key_group, row.name): bytes_of(row.value)
            for row in entries.where(named & wanted).collect()
        }
        groups = {
            each: StoredGroup(value) for (each, name), value in beside.items() if name == GROUP
        }
        found: list[tuple[str | None, HeldPartial]] = []
        for of_group, base_name, base in bases:
            group, changes_name = groups[of_group], base_name + CHANGES
            changes = beside.get((of_group, changes_name))
            if changes is not None:
                changes = group.check(of_group, changes_name, changes)
            for each in group.of_all_keys(group.check(of_group, base_name, base), changes):
                if len(found) == most:
                    is_all = False
                    break
                found.append(each)
        return OpenPartials(batch, found, is_all)
