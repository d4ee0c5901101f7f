"""Schemas that the plan does not know: a decoding task fails with them, and the driver learns them.

The failure must end the batch before anything of it is written, and of an exception in a Python
worker only its text reaches the driver. So their names are encoded in it, between fixed brackets
and with their number in front: what was cut short is refused, not taken for fewer. What a name
stands for is known to the format of the records alone
(:meth:`spark_cep.codecs.record_reader.RecordFormat.learn`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_MARKER: Final = "SPARK_CEP_NEW_SCHEMAS"
_NAME: Final = "[A-Za-z0-9_.:/+=-]+"
_ENCODED: Final = re.compile(rf"{_MARKER}<([1-9]\d*);({_NAME}(?:,{_NAME})*)>")


class NewSchemasError(Exception):
    """Records of schemas that the plan does not know; its text carries the schemas' names."""

    def __init__(self, names: Iterable[str]) -> None:
        several = sorted(set(names))
        if wrong := [name for name in several if not re.fullmatch(_NAME, name)]:
            raise ValueError(f"names of schemas are letters, digits and _.:/+=-, not {wrong[0]!r}")
        super().__init__(f"{_MARKER}<{len(several)};{','.join(several)}>")


def schemas_in(report: str) -> tuple[str, ...]:
    """The names in the report of a failed batch, in order; none in that of another failure.

    Raises ValueError when names are announced and not whole.
    """
    for found in _ENCODED.finditer(report):
        names = tuple(found[2].split(","))
        if len(names) == int(found[1]):
            return names
    at = report.find(f"{_MARKER}<")
    if at >= 0:
        raise ValueError(
            f"a task failed for new schemas, which its report does not hold whole:"
            f" {report[at : at + 100]!r}; expected {_MARKER}<number;name,name,…>"
        )
    return ()
