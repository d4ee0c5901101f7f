"""Operations that Numba lacks: compiled loops read and copy memory at an address, and call
functions of C.

An address, and each argument of a function, is a word of 64 bits.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

BYTE, INT, WORD = (ir.IntType(bits) for bits in (8, 32, 64))
NOTHING = ir.VoidType()


def _native(result: Any, count: int, code: Any) -> Any:
    """Return a function of ``count`` words for compiled loops, made of the instructions in
    ``code``."""

    @intrinsic
    def made(_context: Any, *_arguments: Any) -> Any:
        def instructions(_: Any, builder: Any, _signature: Any, given: Any) -> Any:
            unpacked = cgutils.unpack_tuple(builder, given[0], count)
            return code(builder, *unpacked)

        words = types.UniTuple(types.int64, count)
        return result(words), instructions

    return made


def _reading(kind: Any) -> Any:
    def code(builder: Any, address: Any) -> Any:
        found = builder.load(builder.inttoptr(address, kind.as_pointer()))
        return found if kind is WORD else builder.sext(found, WORD)

    return _native(types.int64, 1, code)


def calling(returned: Any, count: int) -> Any:
    """Return a function for compiled loops that calls the function at an address with ``count``
    words and returns ``returned``."""

    def code(builder: Any, function: Any, *given: Any) -> Any:
        kind = ir.FunctionType(returned, [WORD] * count)
        found = builder.call(builder.inttoptr(function, kind.as_pointer()), given)
        return builder.sext(found, WORD) if returned is INT else found

    return _native(types.void if returned is NOTHING else types.int64, 1 + count, code)


def _copying(builder: Any, to: Any, source: Any, size: Any) -> Any:
    target, origin = (builder.inttoptr(each, BYTE.as_pointer()) for each in (to, source))
    cgutils.raw_memcpy(builder, target, origin, size, 1)


word_at, int_at, byte_at = map(_reading, (WORD, INT, BYTE))
copy = _native(types.void, 3, _copying)
