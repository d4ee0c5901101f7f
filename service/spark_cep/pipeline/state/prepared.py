"""Compiled loops of the state, made ready before the first batch needs them."""

from __future__ import annotations

import numpy as np

from spark_cep.columns.loops.byte_loops import read_ascii, write_ascii
from spark_cep.columns.texts import TextSet
from spark_cep.matcher.batch.events import Names
from spark_cep.matcher.batch.input_batch import InputBatch
from spark_cep.matcher.keys import KeysState
from spark_cep.matcher.snapshot.columns import packed_columns
from spark_cep.matcher.snapshot.stored_keys import StoredKeys
from spark_cep.matcher.snapshot.tables import LAYOUT, OF_STATE, STATE
from spark_cep.matcher.snapshot.waiting_events import decode_batch, encode_batch
from spark_cep.matcher.snapshot.written_state import encode
from spark_cep.model import Coordinates, Event


def prepare() -> None:
    """Write and read empty state, and one event that waits."""
    (block,) = encode(KeysState(), ())
    stored = StoredKeys([[block]], {})
    keys = TextSet(stored.texts(stored.rows(np.ones(1, bool))))
    keys.find(keys.texts)
    stored.find(keys)
    nothing = np.zeros(0, np.int64)
    stored.chosen(nothing)
    packed_columns(STATE, [block], OF_STATE).chosen(LAYOUT, nothing)
    ascii_, text = np.frombuffer(b"", np.uint8), np.empty(0, np.uint8)
    write_ascii(ascii_, text)
    read_ascii(ascii_, text)
    event = Event(0, Coordinates("", 0, 0), 0, (), None, None)
    decode_batch(encode_batch(InputBatch.of({None: [event]}, Names(), ())))
