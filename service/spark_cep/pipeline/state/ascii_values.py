"""Values of the state as text of ASCII characters, eight for seven bytes.

Spark's state server sends values as pickled rows (``PythonSQLUtils.toPyRow``). The pickler makes a
string of a byte array, a character at a time, and UTF-8 of that, which Python decodes: for large
values that takes longer than all else. Text of ASCII characters is copied.

What repeats in the bytes repeats in the text too, so the state store compresses it as well.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from spark_cep.columns.loops.byte_loops import read_ascii, write_ascii

_BYTES: Final = 7


def text_of(data: bytes) -> str:
    """Some bytes as text."""
    out = np.empty(len(data) + -(-len(data) // _BYTES), np.uint8)
    write_ascii(np.frombuffer(data, np.uint8), out)
    return out.tobytes().decode("ascii")


def bytes_of(text: str) -> bytes:
    """The bytes of which :func:`text_of` made ``text``."""
    out = np.empty(len(text) * _BYTES // (_BYTES + 1), np.uint8)
    read_ascii(np.frombuffer(text.encode("ascii"), np.uint8), out)
    return out.tobytes()
