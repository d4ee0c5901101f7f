"""Calls of Python from compiled loops: the address of a function, and the errors in it."""

from __future__ import annotations

import ctypes
from abc import abstractmethod
from typing import Any, NamedTuple

from numba import types as numba_types
from numba.experimental import function_type  # noqa: F401  registers how the protocol is typed
from numba.extending import typeof_impl

from spark_cep.programs.loops.expression_loop import ASK

#: Made anew, as Numba does for each call of a loop, the type takes longer than a small batch.
_TYPE = numba_types.FunctionType(ASK)
_SIGNATURE = ctypes.CFUNCTYPE(*(ctypes.c_int64,) * 5)


class CallFailure(NamedTuple):
    """A call that could not be computed: its number, the place of its event, and why."""

    call: int
    event: int
    error: str


class PythonCalls(numba_types.WrapperAddressProtocol):
    """The calls of one run. No exception gets out: what a rule's fault raises is kept as a failure,
    and the loop is given ``_failed``; anything else is raised when failures are asked for."""

    _failed: int

    def __init__(self) -> None:
        self._failures: dict[tuple[int, ...], CallFailure] = {}
        self._fatal: BaseException | None = None
        self._callback = _SIGNATURE(self._call)

    @abstractmethod
    def _compute(self, number: int, row: int, node: int, more: int) -> int:
        """Return the loop's answer to the call with this number, at a row, for the events taken up
        to a node."""

    @abstractmethod
    def _failed_at(self, row: int, node: int) -> tuple[int, ...]:
        """The place of the event, and what else tells failures of one call apart."""

    def _call(self, number: int, row: int, node: int, more: int) -> int:
        try:
            try:
                return self._compute(number, row, node, more)
            except Exception as error:  # noqa: BLE001  a rule's fault must not stop the job
                at = self._failed_at(row, node)
                self._failures[number, *at] = CallFailure(number, at[0], repr(error))
        except BaseException as error:  # noqa: BLE001  it must not be lost in the compiled loop
            self._fatal = error
        return self._failed

    def __wrapper_address__(self) -> int:
        address = ctypes.cast(self._callback, ctypes.c_void_p).value
        assert address is not None
        return address

    def signature(self) -> Any:
        """Return the signature in Numba's types."""
        return ASK

    def close(self) -> None:
        """Let go of everything. A callback and its object know each other: all that a run works on
        would stay until Python looks for cycles, which a task does not wait for."""
        vars(self).clear()

    def failures(self) -> list[CallFailure]:
        """Return the failures since the last call. Raises errors that are not a rule's."""
        if self._fatal is not None:
            raise self._fatal
        found, self._failures = self._failures, {}
        return list(found.values())


@typeof_impl.register(PythonCalls)
def _type_of(_calls: PythonCalls, _context: Any) -> Any:
    return _TYPE
