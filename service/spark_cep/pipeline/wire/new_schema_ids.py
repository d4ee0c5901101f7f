"""Unknown schema ids: a decoding task fails with them, and the driver learns them.

The failure must end the batch before anything of it is written, and of an exception in a Python
worker only its text reaches the driver. So the ids are encoded in it, between fixed brackets and
with their number in front: what was cut short is refused, not taken for fewer ids.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_MARKER: Final = "SPARK_CEP_NEW_SCHEMA_IDS"
_ENCODED: Final = re.compile(rf"{_MARKER}<([1-9]\d*):(\d+(?:,\d+)*)>")


class NewSchemaIdsError(Exception):
    """Records with schema ids that the plan does not know; its text carries the ids."""

    def __init__(self, ids: Iterable[int]) -> None:
        super().__init__(encode_ids(ids))


def encode_ids(ids: Iterable[int]) -> str:
    """Schema ids as text that stands for them in any report."""
    several = sorted(set(ids))
    return f"{_MARKER}<{len(several)}:{','.join(map(str, several))}>"


def decode_ids(report: str) -> tuple[int, ...]:
    """The ids in the report of a failed batch, in order; none in that of another failure.

    Raises ValueError when ids are announced and not whole.
    """
    for found in _ENCODED.finditer(report):
        ids = tuple(map(int, found[2].split(",")))
        if len(ids) == int(found[1]):
            return ids
    at = report.find(f"{_MARKER}<")
    if at >= 0:
        raise ValueError(
            f"a task failed for new schema ids, which its report does not hold whole:"
            f" {report[at : at + 100]!r}; expected {_MARKER}<number:id,id,…>"
        )
    return ()
