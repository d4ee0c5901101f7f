"""Operations on more than 64 bits at a time, which Numba has no words for: functions that stand in
compiled loops as instructions of LLVM."""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]  # it has no types
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

#: Bytes that :func:`plain_bytes` looks at.
PLAIN_WIDTH = 16


@intrinsic
def plain_bytes(typing: Any, data: Any, at: Any) -> Any:
    """Return how many of the ``PLAIN_WIDTH`` bytes from ``at`` on, all of which must be there, come
    before the first that is a quote, a backslash, a control character or not ASCII."""

    def generated(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        place = cgutils.gep_inbounds(builder, array.data, arguments[1])
        byte = ir.IntType(8)
        of_all = ir.VectorType(byte, PLAIN_WIDTH)
        loaded = builder.load(builder.bitcast(place, of_all.as_pointer()), typ=of_all)
        loaded.align = 1

        def each(number: int) -> Any:
            return ir.Constant(of_all, [number] * PLAIN_WIDTH)

        special = builder.or_(
            builder.icmp_signed("==", loaded, each(34)), builder.icmp_signed("==", loaded, each(92))
        )
        # What is not ASCII is below 0.
        special = builder.or_(special, builder.icmp_signed("<", loaded, each(32)))
        mask = builder.bitcast(special, ir.IntType(PLAIN_WIDTH))
        wide = builder.zext(mask, ir.IntType(64))
        wide = builder.or_(wide, ir.Constant(ir.IntType(64), 1 << PLAIN_WIDTH))
        return builder.cttz(wide, ir.Constant(ir.IntType(1), 0))

    return types.int64(data, types.int64), generated


@intrinsic
def high_product(typing: Any, one: Any, other: Any) -> Any:
    """The upper 64 of the 128 bits of a product of two unsigned numbers."""

    def generated(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        double = ir.IntType(128)
        factors = [builder.zext(each, double) for each in arguments]
        product = builder.lshr(builder.mul(*factors), ir.Constant(double, 64))
        return builder.trunc(product, ir.IntType(64))

    return types.uint64(types.uint64, types.uint64), generated


@intrinsic
def leading_zeros(typing: Any, number: Any) -> Any:
    """The number of zeros in front of the first bit of an unsigned number."""

    def generated(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctlz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), generated


@intrinsic
def double_of_bits(typing: Any, bits: Any) -> Any:
    """The double that an unsigned number's bits are."""

    def generated(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.uint64), generated
