"""All code that Numba compiles, made ready before the first batch needs it."""

from __future__ import annotations

import numpy as np

from service.codecs.record_bytes import copy_texts
from service.codecs.record_layout import LayoutWriter
from service.codecs.result_columns import encode_results
from service.compiler.record_types import RecordTypes
from service.errors import StartError
from service.matcher.columnar import kernel
from service.matcher.columnar.event_masks import event_masks
from service.matcher.columnar.events import EventTable, Names
from service.matcher.columnar.lanes import Lanes
from service.matcher.columnar.results import ResultKind, Results
from service.matcher.columnar.text_hash import text_hashes


def prepare() -> None:
    """Compile everything, or load what was compiled before.

    Raises StartError when it would have to be kept in a cache that cannot be written.
    """
    try:
        kernel.prepare()
        encode_results(_nothing(), 0, 0)
        _decode_nothing()
    except OSError as error:
        raise StartError(
            "the folder of compiled code (NUMBA_CACHE_DIR, or the module's own) holds none for"
            f" this processor and version, and cannot be written: {error}"
        ) from error


def _decode_nothing() -> None:
    """As for one batch without records, whose bytes and ends may not be written to."""
    data, ends = np.frombuffer(bytes(1), np.uint8), np.frombuffer(bytes(4), np.int32)
    flags, longs = np.zeros(0, bool), np.zeros(0, np.int64)
    read = LayoutWriter().written(0).read(data, ends, flags.view(np.uint8))
    masks = event_masks(RecordTypes(), (), 1, Lanes())
    masks.of(np.zeros(0, np.int32), data, read.wholes, read.doubles, read.nulls)
    copy_texts(data, longs, flags, data.copy(), ends.copy())
    text_hashes(data, ends, longs)


def _nothing() -> Results:
    i64, i32 = np.zeros(0, np.int64), np.zeros(0, np.int32)
    return Results(
        ResultKind.MATCH, (), (), Names(), i32, i64, i64, np.zeros(0, np.uint8), i64, i32,
        EventTable.empty(),
    )  # fmt: skip
