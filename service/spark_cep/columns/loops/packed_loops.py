"""Compiled loops over packed columns (see :mod:`spark_cep.columns.packed_columns`).

``ends``: where the rows of each block end; ``at``: where to write in each block. ``starts``: where
the rows of each block start, and the end of the last.
"""

from __future__ import annotations

import numpy as np

from spark_cep.columns.compilation import NONE, compiled, inlined
from spark_cep.columns.loops.byte_loops import place_of
from spark_cep.columns.loops.text_hash import little_endian

#: What a column's tag says beside its kind: whether NULLs are marked, or all of it is NULL.
SOME_NULL, ALL_NULL = 4, 8
KIND = 3
#: Kinds of which a column has bytes behind its numbers, which are their lengths then.
WITH_BYTES = 2
#: Format and number of columns, and bytes of the count of a table's rows.
HEADER, COUNT = 3, 4


@compiled
def _width_of(span):
    if span == np.uint64(0):
        return 0
    if span < np.uint64(1 << 8):
        return 1
    if span < np.uint64(1 << 16):
        return 2
    if span < np.uint64(1 << 32):
        return 4
    return 8


@compiled
def _signed_width(value):
    if value == 0:
        return 0
    if -(1 << 7) <= value < 1 << 7:
        return 1
    if -(1 << 15) <= value < 1 << 15:
        return 2
    if -(1 << 31) <= value < 1 << 31:
        return 4
    return 8


@compiled
def _put(out, at, value, width):
    for place in range(width):
        out[at + place] = np.uint8(value >> np.uint64(8 * place) & np.uint64(0xFF))
    return at + width


@inlined
def _byte(value, place):
    return np.uint8(value >> np.uint64(8 * place) & np.uint64(0xFF))


@inlined
def _put_number(out, at, value, width):
    """Write a number of one of the widths: without a loop those that nearly all have."""
    if width == 1:
        out[at] = _byte(value, 0)
    elif width == 2:
        out[at], out[at + 1] = _byte(value, 0), _byte(value, 1)
    elif width == 4:
        out[at], out[at + 1] = _byte(value, 0), _byte(value, 1)
        out[at + 2], out[at + 3] = _byte(value, 2), _byte(value, 3)
    else:
        _put(out, at, value, width)


@inlined
def _number_at(data, at, width):
    """Read a number of one of the widths: without a loop those that nearly all have."""
    found = np.uint64(data[at])
    if width == 2:
        found |= np.uint64(data[at + 1]) << np.uint64(8)
    elif width == 4:
        found |= np.uint64(data[at + 1]) << np.uint64(8)
        found |= np.uint64(data[at + 2]) << np.uint64(16)
        found |= np.uint64(data[at + 3]) << np.uint64(24)
    elif width != 1:
        found = little_endian(data, at, width)
    return found


@compiled
def measure(values, starts, tables, ends, least, width, sizes):
    """Compute for each column and block the least value, the bytes of a value's distance from it,
    and the bytes that :func:`write_numbers` writes. The values of a column begin at its place in
    ``starts``; ``ends`` is by the table that it is of."""
    for column in range(len(starts)):
        row, first = starts[column], starts[column]
        for block in range(ends.shape[1]):
            end = first + ends[tables[column], block]
            count, of_block = end - row, values[row:end]
            row = end
            low = high = of_block[0] if count else np.int64(0)
            # In one loop the compiler would take one value at a time.
            for value in of_block:
                low = min(low, value)
            for value in of_block:
                high = max(high, value)
            least[column, block] = low
            # Beyond 2⁶³ the difference wraps, and wraps back when it is read.
            wide = _width_of(np.uint64(high) - np.uint64(low))
            width[column, block] = wide
            sizes[column, block] = 1 + _signed_width(low) + count * wide


@compiled
def write_numbers(values, starts, tables, ends, least, width, out, at):
    """Both widths in one byte, the least value, and each value's distance from it; ``at`` moves
    behind them."""
    for column in range(len(starts)):
        row, first = starts[column], starts[column]
        for block in range(ends.shape[1]):
            low, wide, place = least[column, block], width[column, block], at[column, block]
            of_low = _signed_width(low)
            out[place] = np.uint8(wide | of_low << 4)
            place = _put(out, place + 1, np.uint64(low), of_low)
            end = first + ends[tables[column], block]
            if wide:
                while row < end:
                    _put_number(out, place, np.uint64(values[row]) - np.uint64(low), wide)
                    place += wide
                    row += 1
            row = end
            at[column, block] = place


@compiled
def write_nulls(nulls, ends, tags, out, at):
    """A bit for each row of the blocks whose tag says so."""
    row = 0
    for block in range(len(ends)):
        if tags[block] & SOME_NULL:
            first, place = row, at[block]
            while row < ends[block]:
                if nulls[row]:
                    out[place + (row - first) // 8] |= np.uint8(1 << (row - first) % 8)
                row += 1
        row = ends[block]


@compiled
def write_bytes(data, places, nulls, ends, out, at):
    """The bytes of each value that is not NULL."""
    row = 0
    for block in range(len(ends)):
        place = at[block]
        while row < ends[block]:
            if not nulls[row]:
                start = places[row] >> 32
                for source in range(start, start + (places[row] & 0xFFFFFFFF)):
                    out[place] = data[source]
                    place += 1
            row += 1


@compiled
def _signed(data, at, width):
    value = np.int64(little_endian(data, at, width))
    if 0 < width < 8 and value >> (8 * width - 1):
        value -= np.int64(1) << (8 * width)
    return value


@compiled
def locate(data, starts, tables, tags, nulls_at, least, width, numbers_at, bytes_at, counts):
    """Find the columns of each block, as tables by column and block. ``tables`` maps columns to
    tables; ``counts`` has the rows by table and block. Returns the number of the first block that
    is damaged, or -1."""
    for block in range(len(starts) - 1):
        at, end = starts[block], starts[block + 1]
        columns = np.int64(little_endian(data, at + 1, 2))
        at += HEADER
        for table in range(len(counts)):
            counts[table, block] = np.int64(little_endian(data, at, COUNT))
            at += COUNT
        for column in range(columns):
            if at + 2 > end:
                return block
            tag, rows = data[at], counts[tables[column], block]
            tags[column, block] = tag
            at += 1
            nulls_at[column, block] = at
            if tag & SOME_NULL:
                at += (rows + 7) // 8
            if at + 1 > end:
                return block
            wide, of_low = np.int64(data[at] & 15), np.int64(data[at] >> 4)
            at += 1
            if wide > 8 or of_low > 8 or at + of_low + rows * wide > end:
                return block
            low = _signed(data, at, of_low)
            at += of_low
            least[column, block] = low
            width[column, block] = wide
            numbers_at[column, block] = at
            if tag & KIND >= WITH_BYTES:
                lengths_at = at
                at += rows * wide
                bytes_at[column, block] = at
                if wide == 0:
                    if low < 0 or (low and rows > (end - at) // low):
                        return block
                    at += low * rows
                for row in range(rows if wide else 0):
                    # A length below 0, or whose sum wraps, is larger than all that is left.
                    length = np.uint64(low) + little_endian(data, lengths_at + row * wide, wide)
                    if length > np.uint64(end - at):
                        return block
                    at += np.int64(length)
            else:
                at += rows * wide
        if at != end:
            return block
    return -1


@compiled
def read_numbers(data, numbers_at, least, width, starts, rows, out):
    """The numbers of some rows, which are in ascending order, of some columns of a table."""
    for column in range(len(out)):
        block = 0
        for number in range(len(rows)):
            row = rows[number]
            while row >= starts[block + 1]:
                block += 1
            wide = width[column, block]
            value = np.uint64(least[column, block])
            if wide:
                at = numbers_at[column, block] + (row - starts[block]) * wide
                value += _number_at(data, at, wide)
            out[column, number] = np.int64(value)


@compiled
def read_nulls(data, nulls_at, tags, starts, rows, out):
    """Read which of these rows are NULL."""
    block = 0
    for number in range(len(rows)):
        row = rows[number]
        while row >= starts[block + 1]:
            block += 1
        tag, place = tags[block], row - starts[block]
        out[number] = tag & ALL_NULL != 0
        if tag & SOME_NULL:
            out[number] = data[nulls_at[block] + place // 8] >> (place % 8) & 1


@compiled
def read_sums(data, numbers_at, least, width, base, starts, rows, out):
    """For these rows, the sum of the numbers of the rows before each in its block, and what
    ``base`` says of the block."""
    block, passed, total = -1, np.int64(0), np.int64(0)
    for number in range(len(rows)):
        row = rows[number]
        while row >= starts[block + 1]:
            block += 1
            passed, total = starts[block], base[block]
        wide, low, at = width[block], least[block], numbers_at[block]
        if wide:
            while passed < row:
                above = little_endian(data, at + (passed - starts[block]) * wide, wide)
                total += low + np.int64(above)
                passed += 1
        else:
            total += low * (row - passed)
            passed = row
        out[number] = total


@compiled
def choose(
    data, numbers_at, least, width, starts, counts_of, owners, chosen, begins, rows, sizes, of_first
):  # fmt: skip
    """The rows of each table that belong to the ``chosen`` rows of the first, all in ascending
    order. A table's rows belong to those of the table that is its number in ``owners``, a lower
    one, as many as the column ``counts_of`` of that table says. They are written to ``rows``, those
    of a table from ``begins`` on; ``sizes`` has how many they are, and ``of_first`` how many belong
    to each of the first table. Returns the first table with other rows than there are; ``NONE``:
    there is none."""
    sizes[0] = len(chosen)
    for table in range(1, len(counts_of)):
        column, owner = counts_of[table], owners[table]
        first, end = begins[table], starts[table, starts.shape[1] - 1]
        at, block, passed, total, behind = first, -1, 0, 0, 0
        key, of_key = 0, 0
        for number in range(sizes[owner]):
            if owner:
                row = rows[begins[owner] + number]
                while of_key == of_first[owner, key]:
                    key, of_key = key + 1, 0
                of_key += 1
            else:
                row, key = chosen[number], number
            while row >= starts[owner, block + 1]:
                block += 1
                passed, total = starts[owner, block], starts[table, block]
            wide, low = width[column, block], least[column, block]
            count, place = low, numbers_at[column, block]
            if wide:
                while passed < row:
                    above = little_endian(
                        data, place + (passed - starts[owner, block]) * wide, wide
                    )
                    total += low + np.int64(above)
                    passed += 1
                above = little_endian(data, place + (row - starts[owner, block]) * wide, wide)
                count += np.int64(above)
            else:
                total += low * (row - passed)
                passed = row
            # Each before the next, so that all together are no more than there are.
            if count < 0 or total < behind or count > end - total:
                return table
            behind = total + count
            for belonging in range(total, behind):
                rows[at] = belonging
                at += 1
            of_first[table, key] += count
        sizes[table] = at - first
    return NONE


@compiled
def read_chosen(
    data, numbers_at, least, width, starts, tables, linked, begins, rows, sizes, of_first, ends, out
):  # fmt: skip
    """The numbers of columns in the rows that :func:`choose` gave; those of a column end in ``out``
    at ``ends``. The numbers of a column that is ``linked`` to a table are those of rows of it, from
    the first on that belong to the same row of the first table, and are written as places among all
    of the chosen ones; in a column that is linked to its own table, they are of rows before, or
    ``NONE``. Returns the place in ``out`` of the first that is none of these; ``NONE``: there is no
    such number."""
    for column in range(len(tables)):
        table, block = tables[column], 0
        place = ends[column] - sizes[table]
        for number in range(begins[table], begins[table] + sizes[table]):
            row = rows[number]
            while row >= starts[table, block + 1]:
                block += 1
            wide = width[column, block]
            value = np.uint64(least[column, block])
            if wide:
                at = numbers_at[column, block] + (row - starts[table, block]) * wide
                value += _number_at(data, at, wide)
            out[place] = np.int64(value)
            place += 1
        target = linked[column]
        if target == NONE:
            continue
        own = target == table
        place, first = ends[column] - sizes[table], 0
        for key in range(of_first.shape[1]):
            for each in range(of_first[table, key]):
                number = out[place]
                if not own or number != NONE:
                    if number < 0 or number >= (each if own else of_first[target, key]):
                        return place
                    out[place] = first + number
                place += 1
            first += of_first[target, key]
    return NONE


@compiled
def search(
    data, nulls_at, tags, numbers_at, least, width, bytes_at, starts, secret, texts, table, firsts,
    of_null, rows, numbers,
):  # fmt: skip
    """The rows whose bytes are a text that ``byte_loops.number_texts`` has met, and its number for
    each; ``of_null``: the number of NULL, -1: not one of them. Returns how many they are."""
    found = 0
    for block in range(len(starts) - 1):
        wide, low, at = width[block], least[block], numbers_at[block]
        place, tag = bytes_at[block], tags[block]
        for row in range(starts[block], starts[block + 1]):
            length, of_block = low, row - starts[block]
            if wide:
                length += np.int64(little_endian(data, at + of_block * wide, wide))
            null = tag & ALL_NULL != 0
            if tag & SOME_NULL:
                null = data[nulls_at[block] + of_block // 8] >> (of_block % 8) & 1 != 0
            number = of_null
            if not null:
                number = table[place_of(secret, data, place, length, texts, table, firsts)]
                place += length
            if number >= 0:
                rows[found], numbers[found] = row, number
                found += 1
    return found
