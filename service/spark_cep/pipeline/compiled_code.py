"""All code that Numba compiles, made ready before the first batch needs it."""

from __future__ import annotations

import subprocess
import sys
from contextlib import ExitStack

import numpy as np

from spark_cep.codecs.avro.record_cutting import RecordCutter
from spark_cep.codecs.avro.record_layout import LayoutWriter
from spark_cep.codecs.avro.schema import parse
from spark_cep.codecs.json.text_layout import prepare as prepare_json
from spark_cep.codecs.output.prepared import prepare as prepare_output
from spark_cep.codecs.protobuf.reader import prepare as prepare_protobuf
from spark_cep.columns.column_vectors import ColumnVectors
from spark_cep.columns.compilation import (
    NOT_KEPT,
    OPEN_FOLDERS,
    all_kept,
    compiled_elsewhere,
    is_loaded_by,
)
from spark_cep.columns.loops.text_hash import place_hashes
from spark_cep.columns.vectors import no_texts
from spark_cep.compiler.record_types import RecordTypes
from spark_cep.errors import StartError
from spark_cep.matcher.row_pattern.prepared import prepare as prepare_row_patterns
from spark_cep.matcher.steps.matcher import prepare as prepare_matcher
from spark_cep.pipeline.librdkafka.producer import produce_nothing
from spark_cep.pipeline.read.ranges import read_nothing
from spark_cep.pipeline.state.prepared import prepare as prepare_state
from spark_cep.programs.event_masks import event_masks
from spark_cep.programs.loops.event_mask_loops import relevant_events


def prepare() -> None:
    """Load everything, and compile first what is missing.

    Raises StartError when it would have to be kept in a cache that cannot be written, or in one
    that other users can write.
    """
    _check_folders()
    try:
        with all_kept():
            if not is_loaded_by(_load):
                if not NOT_KEPT:
                    _compile()
                _load()
    except OSError as error:
        raise StartError(
            "the folder of compiled code (NUMBA_CACHE_DIR, or the module's own) holds none for"
            f" this processor and version, and cannot be written: {error}"
        ) from error


def is_there() -> bool:
    """Load everything, and return whether nothing is missing. Raises StartError when it is in a
    cache that other users can write."""
    _check_folders()
    return is_loaded_by(_load)


def _check_folders() -> None:
    if OPEN_FOLDERS:
        raise StartError(
            f"the folder of compiled code {min(OPEN_FOLDERS)} can be written by other users, or"
            " holds files of theirs, and what is in it is run: remove it, and make it with a mode"
            " like 0755 (chmod go-w), or set NUMBA_CACHE_DIR to a folder of this user's own"
        )


def _decode_nothing() -> None:
    """Compile the decoder with a batch without records, whose bytes are read-only."""
    nothing = no_texts()
    layouts = LayoutWriter(ColumnVectors()).written([], [[]])
    read = layouts.read(nothing, nothing, np.zeros(0, np.int32))
    RecordCutter.of(parse('"string"', "nothing")).cut(b"", 0, b"")
    masks = event_masks(RecordTypes(), (), 1, ColumnVectors())
    words = masks.of(np.zeros(0, np.int32), nothing.data, read.wholes, read.doubles, read.nulls)
    none, pairs = np.zeros(0, np.int64), np.zeros((0, 2), np.int64)
    relevant_events(words, 0, none, pairs, pairs, np.zeros((0, 2), np.bool_))
    nothing.compacted()
    place_hashes(*nothing.pool, nothing.nulls, np.zeros(0, np.int64))


#: What two processes compile beside each other, for about as long.
_HALVES = (
    (prepare_matcher, _decode_nothing, prepare_json),
    (
        prepare_row_patterns,
        prepare_output,
        prepare_protobuf,
        prepare_state,
        read_nothing,
        produce_nothing,
    ),
)


def _load() -> None:
    for half in _HALVES:
        for part in half:
            part()


def _compile() -> None:
    """Compile in processes of their own, whose memory is free afterwards. What they could not, they
    leave to this one."""
    children = []
    with compiled_elsewhere(), ExitStack() as stack:
        for half in range(len(_HALVES)):
            command = [sys.executable, "-m", __name__, str(half)]
            silent = subprocess.DEVNULL
            child = subprocess.Popen(command, stdin=silent, stdout=silent, stderr=silent)
            stack.enter_context(child)
            stack.callback(child.kill)
            children.append(child)
        for child in children:
            child.wait()


if __name__ == "__main__":
    with all_kept():
        for part in _HALVES[int(sys.argv[1])]:
            part()
