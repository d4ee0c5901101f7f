"""The tables of a layout, which the compiled loop of :mod:`spark_cep.codecs.json.text_layout` reads
records by."""

from __future__ import annotations

#: Kinds of values.
(
    ANYTHING, NOTHING, BOOLEAN, WHOLE, FLOAT, DOUBLE, TEXT, SYMBOL, DATE, MILLIS, MICROS, DECIMAL,
    WIDE_DECIMAL, BASE64, RECORD, ARRAY, MAP, SEVERAL,
) = range(18)  # fmt: skip

#: Columns of a layout's nodes: the kind; the vector that the value goes to (-1: it is looked at);
#: the vector that says how a value is read that is left in place (-1: it is not), and what it says;
#: whether the value may be null; two numbers by kind; its table of names, and the table's size less
#: 1.
NODE_COLUMNS = 9
KIND, VECTOR, READER_VECTOR, READER, NULLABLE, A, B, TABLE, MASK = range(NODE_COLUMNS)
#: ``A`` of a record: its first field; of an array or a map: the node of its items; of a union: the
#: first of its ``CHOICES``; of a whole number: its bits; of a decimal: its precision; of base64:
#: its bytes, -1 for any number. ``B`` of a record: the number of its fields; of a decimal: its
#: scale.
CHOICES = 6
OF_TEXT, OF_WHOLE, OF_NUMBER, OF_BOOLEAN, OF_OBJECT, OF_ARRAY = range(CHOICES)

#: Columns of its fields: the node of the value; what is done where there is none; the constants of
#: a default, from and to; the memory that it takes; the vectors inside, from and to.
FIELD_COLUMNS = 7
NODE, ABSENT_FIELD, SET, SET_END, ADDED_BYTES, INSIDE, INSIDE_END = range(FIELD_COLUMNS)
#: Where there is no value, that is NULL, or the default, or the record cannot be read.
IS_NULL, HAS_DEFAULT, IS_NEEDED = range(3)
#: In place of 0 or 1 among the nulls: a double of which the vector has the place of its text.
LEFT = 2
