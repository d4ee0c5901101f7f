"""The parts of a column that are wanted, and their defaults where a record has none."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

from spark_cep.codecs.record_reader import Wanted
from spark_cep.columns.representation import Representation, representation, to_whole
from spark_cep.pattern.expressions import ColumnPath

_LONG = struct.Struct("<q")


def wanted_in(wanted: Wanted, path: ColumnPath) -> list[ColumnPath]:
    """The column ``path``, where it is ``wanted``, and all that are inside it."""
    return [column for column in wanted if column[: len(path)] == path]


def defaults_in(
    wanted: Wanted, path: ColumnPath, value: Any
) -> Iterator[tuple[int, Representation, Any]]:
    """Yield vector, representation and value of each column in ``path`` that is not NULL where the
    default of ``path`` is ``value``; a number as its vector has it, in 64 bits."""
    for column in wanted_in(wanted, path):
        found = value
        for name in column[len(path) :]:
            found = None if found is None else found[name]
        if found is None:
            continue
        vector, of = wanted[column]
        match representation(of):
            case Representation.WHOLE:
                yield vector, Representation.WHOLE, to_whole(of)(found)
            case Representation.DOUBLE:
                (bits,) = _LONG.unpack(struct.pack("<d", found))
                yield vector, Representation.DOUBLE, bits
            case other:
                yield vector, other, found
