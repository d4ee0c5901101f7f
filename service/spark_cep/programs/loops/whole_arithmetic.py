"""Sums, differences and products of 64-bit numbers, with a flag for results beyond 64 bits.

Numba declares ``+``, ``-`` and ``*`` of signed numbers as operations that never overflow (LLVM's
``nsw``), and LLVM removes a check of the result that could only fail after an overflow. These are
LLVM's operations with an overflow flag, which it must keep.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.extending import intrinsic


def _checked(instruction: str) -> Any:
    """The function ``f(left, right)`` for compiled code. It gives the lower 64 bits of the result,
    and true where the result has more."""

    @intrinsic
    def made(_context: Any, _left: Any, _right: Any) -> Any:
        def instructions(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            both = getattr(builder, instruction)(*given)
            parts = [builder.extract_value(both, place) for place in range(2)]
            return context.make_tuple(builder, signature.return_type, parts)

        pair = (types.int64, types.boolean)
        result = types.Tuple(pair)
        return result(types.int64, types.int64), instructions

    return made


add = _checked("sadd_with_overflow")
subtract = _checked("ssub_with_overflow")
multiply = _checked("smul_with_overflow")
