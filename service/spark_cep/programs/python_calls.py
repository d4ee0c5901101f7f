"""Calls of Python from compiled loops: the address of a function, and the errors in it."""

from __future__ import annotations

import ctypes
from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

from numba import types as numba_types
from numba.experimental import function_type  # noqa: F401  registers how the protocol is typed

from spark_cep.programs.loops.expression_loop import ASK

_SIGNATURE = ctypes.CFUNCTYPE(*(ctypes.c_int64,) * 5)

Failure = TypeVar("Failure")


class PythonCalls(numba_types.WrapperAddressProtocol, Generic[Failure]):
    """The calls of one run. ``_call`` lets no exception out: what a rule's fault raises is kept in
    ``_failures``, by what it is the same for, and anything else in ``_fatal``."""

    def __init__(self) -> None:
        self._failures: dict[tuple[int, ...], Failure] = {}
        self._fatal: BaseException | None = None
        self._callback = _SIGNATURE(self._call)

    @abstractmethod
    def _call(self, number: int, row: int, node: int, more: int) -> int:
        """Compute the call with this number, at a row, for the events taken up to a node."""

    def __wrapper_address__(self) -> int:
        address = ctypes.cast(self._callback, ctypes.c_void_p).value
        assert address is not None
        return address

    def signature(self) -> Any:
        """Return the signature in Numba's types."""
        return ASK

    def failures(self) -> Iterator[Failure]:
        """Yield the failures since the last call. Raises errors that are not a rule's."""
        if self._fatal is not None:
            raise self._fatal
        found, self._failures = self._failures, {}
        yield from found.values()
