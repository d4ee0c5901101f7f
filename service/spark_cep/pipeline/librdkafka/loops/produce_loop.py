"""The compiled loop that hands messages to librdkafka, from columns, by ``rd_kafka_produceva``
(``rdkafka.h``)."""

from __future__ import annotations

from typing import Final

import numpy as np

from spark_cep.columns.compilation import I64, compiled, inlined
from spark_cep.pipeline.librdkafka.loops.native_calls import WORD, calling

FUNCTIONS: Final = ("rd_kafka_produceva",)

#: What an ``rd_kafka_vu_t`` says (``rd_kafka_vtype_t``), and its words.
_TOPIC, _VALUE, _KEY, _FLAGS, _HEADER = 2, 4, 5, 7, 9
_WORDS: Final = 9
#: librdkafka copies keys and values (``RD_KAFKA_MSG_F_COPY``).
COPIED: Final = 2
#: Where each stands; headers are behind them.
_AT_TOPIC, _AT_VALUE, _AT_KEY, _AT_FLAGS, _FIRST_HEADER = range(5)

_produce = calling(WORD, 3)


def message_arguments(headers: int) -> I64:
    """Room for the arguments that librdkafka takes of a message with up to so many headers: an
    ``rd_kafka_vu_t`` in each row."""
    arguments = np.zeros((_FIRST_HEADER + headers, _WORDS), np.int64)
    # Types and flags are numbers of 32 bits.
    halves = arguments.view(np.int32)
    halves[[_AT_TOPIC, _AT_VALUE, _AT_KEY, _AT_FLAGS], 0] = _TOPIC, _VALUE, _KEY, _FLAGS
    halves[_AT_FLAGS, 2] = COPIED
    halves[_FIRST_HEADER:, 0] = _HEADER
    return arguments


@inlined
def _put(arguments: I64, row: int, first: int, data: int, places: I64, number: int) -> None:
    """The address and the size of a value; neither, where there is none."""
    arguments[row, first] = 0 if number < 0 else data + (places[number] >> 32)
    arguments[row, first + 1] = 0 if number < 0 else places[number] & 0xFFFFFFFF


@compiled
def produce(
    client: int, functions: I64, arguments: I64, arguments_place: int,
    first: int, topics: I64, topic: I64,
    keys: int, key_places: I64, key: I64,
    values: int, value_places: I64, value: I64,
    group: I64, group_ends: I64,
    names: int, name_places: I64, name: I64,
    texts: int, text_places: I64, text: I64,
    own_name: int, own: int, own_places: I64,
) -> tuple[int, int]:  # fmt: skip
    """Hand on the messages from number ``first`` on. Returns the number of the first one that
    librdkafka refuses, and the address of its error; or how many there are, and 0.

    ``arguments``: as of :func:`message_arguments`, at the address ``arguments_place``. ``keys``,
    ``values``, ``names``, ``texts`` and ``own`` are addresses of bytes, with places in them; for
    the others see :class:`~spark_cep.pipeline.librdkafka.messages.Messages`."""
    for row in range(first, len(topic)):
        arguments[_AT_TOPIC, 1] = topics[topic[row]]
        _put(arguments, _AT_VALUE, 1, values, value_places, value[row])
        _put(arguments, _AT_KEY, 1, keys, key_places, key[row])
        at = _FIRST_HEADER
        for header in range(group_ends[group[row]], group_ends[group[row] + 1]):
            arguments[at, 1] = names + (name_places[name[header]] >> 32)
            _put(arguments, at, 2, texts, text_places, text[header])
            at += 1
        if own_name >= 0 and own_places[row] & 0xFFFFFFFF:
            arguments[at, 1] = names + (name_places[own_name] >> 32)
            _put(arguments, at, 2, own, own_places, row)
            at += 1
        error = _produce(functions[0], client, arguments_place, at)
        if error != 0:
            return row, error
    return len(topic), 0
