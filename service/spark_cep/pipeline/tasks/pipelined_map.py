"""A map state whose calls do not wait for one another.

PySpark's ``MapState`` sends one request, waits for its answer, and turns names and values into
rows by their schemas each time. The server behind the socket answers requests in order, however
many have come; here many are sent at once and then all answers read, which is what a batch that
touches thousands of entries needs. The messages are those of Spark's ``StateMessage.proto``.

Neither side may wait for the other to read: requests sent at once are either small (reading: the
answers, however large, find a reader) or have answers that are small (writing).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from struct import Struct
from typing import Any

from pyspark.sql.streaming.proto import StateMessage_pb2 as messages
from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle
from pyspark.sql.streaming.stateful_processor_api_client import StatefulProcessorHandleState
from pyspark.sql.types import StringType, StructField, StructType

from spark_cep.errors import StateError

_VALUE = StructType([StructField("value", StringType())])
_NAME = StructType([StructField("name", StringType())])
#: In front of each request, which is of version 0.
_VERSION_AND_LENGTH = Struct(">ii").pack
#: Requests that are sent at once, and about how many bytes.
_MOST_AT_ONCE = 128
_MOST_BYTES = 1 << 18

#: The connection of this Python worker's last task, until the next one ends.
_left_open: list[Any] = []


def _tell_nothing(state: StatefulProcessorHandleState) -> None:
    """In place of telling the server of the last state."""


class PipelinedMap:
    """The map state ``name`` of the grouping key that is at work, of text to bytes, which are kept
    as text (:mod:`~spark_cep.pipeline.state.ascii_values`)."""

    def __init__(self, handle: StatefulProcessorHandle, name: str) -> None:
        handle.getMapState(name, _NAME, _VALUE)
        self._client = handle._statefulProcessorApiClient  # noqa: SLF001  the way to its socket
        self._name = name
        self._dumps: Callable[[tuple[Any]], bytes] = self._client.pickleSer.dumps
        self._loads: Callable[[bytes], tuple[Any]] = self._client.pickleSer.loads

    def use(self, key: Any) -> None:
        """Go on with the entries of another grouping key."""
        self._client.set_implicit_key((key,))

    def get(self, names: Sequence[str]) -> list[bytes | None]:
        """The values of these names; ``None`` for those that there are not."""
        # Compiled code: Spark plans in a process that it starts with each query.
        from spark_cep.pipeline.state.ascii_values import bytes_of

        found: list[bytes | None] = []
        for start in range(0, len(names), _MOST_AT_ONCE):
            calls = [
                messages.MapStateCall(
                    stateName=self._name, getValue=messages.GetValue(userKey=self._dumps((name,)))
                )
                for name in names[start : start + _MOST_AT_ONCE]
            ]
            answers = self._ask(calls)
            found += [bytes_of(self._loads(value)[0]) if value else None for value in answers]
        return found

    def put(self, values: Sequence[tuple[str, bytes | None]]) -> None:
        """Write values, and remove the names without one."""
        from spark_cep.pipeline.state.ascii_values import text_of

        calls: list[Any] = []
        size = 0
        for name, value in values:
            key = self._dumps((name,))
            if value is None:
                removed = messages.RemoveKey(userKey=key)
                calls.append(messages.MapStateCall(stateName=self._name, removeKey=removed))
            else:
                written = messages.UpdateValue(userKey=key, value=self._dumps((text_of(value),)))
                calls.append(messages.MapStateCall(stateName=self._name, updateValue=written))
                size += len(value)
            if len(calls) >= _MOST_AT_ONCE or size >= _MOST_BYTES:
                self._ask(calls)
                calls, size = [], 0
        self._ask(calls)

    def leave_open(self) -> None:
        """Let the JVM, not Python, end the connection of this task.

        Told that the processor is closed, or that the other side is gone, Spark's state server
        (4.2) forgets its socket without closing it: one file a task, for the life of the JVM. If
        it still reads when the task ends, its thread is interrupted, which closes the socket.
        """
        client = self._client
        if client.handle_state is StatefulProcessorHandleState.PRE_INIT:
            return
        client.set_handle_state = _tell_nothing  # type: ignore[method-assign]
        _left_open[:] = [client]

    def _ask(self, calls: Sequence[Any]) -> list[bytes]:
        stream = self._client.sockfile
        receive = self._client._receive_proto_message  # noqa: SLF001  reads one answer
        for call in calls:
            request = messages.StateRequest(
                stateVariableRequest=messages.StateVariableRequest(mapStateCall=call)
            ).SerializeToString()
            stream.write(_VERSION_AND_LENGTH(0, len(request)))
            stream.write(request)
        stream.flush()
        answers = [receive() for _ in calls]
        for status, message, _ in answers:
            if status != 0:
                raise StateError(f"the state store refuses an entry of {self._name}: {message}")
        return [value for _, _, value in answers]
