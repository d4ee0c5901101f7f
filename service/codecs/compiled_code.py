"""All code that Numba compiles, made ready before the first batch needs it."""

from __future__ import annotations

import numpy as np

from service.codecs.result_columns import encode_results
from service.errors import StartError
from service.matcher.columnar import kernel
from service.matcher.columnar.events import EventTable, Names
from service.matcher.columnar.results import ResultKind, Results


def prepare() -> None:
    """Compile everything, or load what was compiled before.

    Raises StartError when it would have to be kept in a cache that cannot be written.
    """
    try:
        kernel.prepare()
        encode_results(_nothing(), 0, 0)
    except OSError as error:
        raise StartError(
            "the folder of compiled code (NUMBA_CACHE_DIR, or the module's own) holds none for"
            f" this processor and version, and cannot be written: {error}"
        ) from error


def _nothing() -> Results:
    i64, i32 = np.zeros(0, np.int64), np.zeros(0, np.int32)
    return Results(
        ResultKind.MATCH, (), (), Names(), i32, i64, i64, np.zeros(0, np.uint8), i64, i32,
        EventTable.empty(),
    )  # fmt: skip
