"""The characters of JSON, and the kind of the value that begins at one of them."""

from __future__ import annotations

from spark_cep.codecs.json.loops.layout_tables import (
    OF_ARRAY,
    OF_BOOLEAN,
    OF_NUMBER,
    OF_OBJECT,
    OF_TEXT,
    OF_WHOLE,
)
from spark_cep.codecs.json.loops.scalars import number_at, whole
from spark_cep.columns.compilation import compiled, inlined

QUOTE, COMMA, COLON, MINUS = 34, 44, 58, 45
OPEN_OBJECT, CLOSE_OBJECT, OPEN_ARRAY, CLOSE_ARRAY = 123, 125, 91, 93
NULL, TRUE, FALSE = 110, 116, 102


@inlined
def behind_space(data, at, end):
    """The place of the next byte that is no space."""
    while at < end and data[at] <= 32:
        byte = data[at]
        if byte != 32 and byte != 10 and byte != 13 and byte != 9:
            break
        at += 1
    return at


@compiled
def behind_word(data, at, end):
    """The place behind ``null``, ``true`` or ``false``, whichever begins here; -1: none does."""
    first = data[at]
    if first == FALSE:
        if (
            at + 5 <= end and data[at + 1] == 97 and data[at + 2] == 108 and data[at + 3] == 115
            and data[at + 4] == 101
        ):  # fmt: skip
            return at + 5
    elif first == TRUE:
        if at + 4 <= end and data[at + 1] == 114 and data[at + 2] == 117 and data[at + 3] == 101:
            return at + 4
    elif (
        first == NULL and at + 4 <= end and data[at + 1] == 117 and data[at + 2] == 108
        and data[at + 3] == 108
    ):  # fmt: skip
        return at + 4
    return -1


@compiled
def choice_of(data, at, end):
    """The kind of the value that begins here, among those of a union; -1: it is none."""
    first = data[at]
    if first == QUOTE:
        return OF_TEXT
    if first in (TRUE, FALSE):
        return OF_BOOLEAN
    if first == OPEN_OBJECT:
        return OF_OBJECT
    if first == OPEN_ARRAY:
        return OF_ARRAY
    behind, below, number, count, power = number_at(data, at, end)
    if behind < 0:
        return -1
    _, fits = whole(below, number, count, power, 63)
    return OF_WHOLE if fits else OF_NUMBER
