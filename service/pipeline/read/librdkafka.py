"""Messages of one partition at a time, from librdkafka's C interface (``rdkafka.h``).

confluent-kafka, which brings librdkafka, makes a Python object of each message, which takes longer
than all that a job does with most of them. This reads with the same library, and the same
properties, but leaves messages where they are, for
:mod:`~service.pipeline.read.message_loops`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from ctypes import c_char_p, c_int, c_int32, c_int64, c_size_t, c_ssize_t, c_void_p
from typing import Any, Final

import numpy as np
from confluent_kafka import KafkaError, KafkaException, cimpl
from numpy.typing import NDArray

from service.errors import ConfigurationError
from service.pipeline.read.message_loops import FUNCTIONS, OFFSET

_CONSUMER: Final = 1
_TEXT_SIZE: Final = 512


def _library() -> ctypes.CDLL:
    # By the extension that is linked with it: so it is the same library, wherever that is.
    library = ctypes.CDLL(cimpl.__file__)
    for name, result, *given in (
        ("rd_kafka_conf_new", c_void_p),
        ("rd_kafka_conf_set", c_int, c_void_p, c_char_p, c_char_p, c_char_p, c_size_t),
        ("rd_kafka_conf_destroy", None, c_void_p),
        ("rd_kafka_new", c_void_p, c_int, c_void_p, c_char_p, c_size_t),
        ("rd_kafka_topic_new", c_void_p, c_void_p, c_char_p, c_void_p),
        ("rd_kafka_queue_new", c_void_p, c_void_p),
        ("rd_kafka_queue_destroy", None, c_void_p),
        ("rd_kafka_consume_start_queue", c_int, c_void_p, c_int32, c_int64, c_void_p),
        ("rd_kafka_consume_stop", c_int, c_void_p, c_int32),
        ("rd_kafka_consume_batch_queue", c_ssize_t, c_void_p, c_int, c_void_p, c_size_t),
        ("rd_kafka_message_errstr", c_char_p, c_void_p),
        ("rd_kafka_last_error", c_int),
    ):  # fmt: skip
        function = getattr(library, name)
        function.restype, function.argtypes = result, given
    return library


_C: Final = _library()
#: Addresses of the functions that compiled loops call.
ADDRESSES: Final[NDArray[np.int64]] = np.array(
    [ctypes.cast(getattr(_C, name), c_void_p).value for name in FUNCTIONS], np.int64
)


class PartitionClient:
    """Reads one partition at a time. ``config``: librdkafka's properties of a consumer.

    Raises KafkaException when librdkafka refuses what it is asked.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        text = ctypes.create_string_buffer(_TEXT_SIZE)
        made = _configured(config)
        self._client = _C.rd_kafka_new(_CONSUMER, made, text, _TEXT_SIZE)
        if not self._client:
            _C.rd_kafka_conf_destroy(made)
            raise _refused(_C.rd_kafka_last_error(), text.value)
        self._topics: dict[str, Any] = {}
        self._at: tuple[Any, int] | None = None
        self._queue: Any = None

    def begin(self, topic: str, partition: int, offset: int) -> None:
        """Fetch a partition from ``offset`` on, until :meth:`end`."""
        if topic not in self._topics:
            self._topics[topic] = _C.rd_kafka_topic_new(self._client, topic.encode(), None)
        handle = self._topics[topic]
        self._queue = _C.rd_kafka_queue_new(self._client)
        if _C.rd_kafka_consume_start_queue(handle, partition, offset, self._queue):
            raise _refused(_C.rd_kafka_last_error(), topic.encode())
        self._at = (handle, partition)

    def fetched(self, messages: NDArray[np.int64], timeout_ms: int) -> int:
        """How many messages there are by now; they are in ``messages``, at most as many as fit.
        Waits for the first ones. Whoever asks gives them back, with
        :func:`~service.pipeline.read.message_loops.destroy`."""
        place = messages.ctypes.data
        found = int(_C.rd_kafka_consume_batch_queue(self._queue, 0, place, len(messages)))
        if not found and timeout_ms:
            found = int(_C.rd_kafka_consume_batch_queue(self._queue, timeout_ms, place, 1))
        if found < 0:
            raise _refused(_C.rd_kafka_last_error(), b"")
        return found

    def end(self) -> None:
        """Let go of the partition, and of what was fetched of it and not asked for."""
        if self._at is not None:
            _C.rd_kafka_consume_stop(*self._at)
            self._at = None
        if self._queue is not None:
            _C.rd_kafka_queue_destroy(self._queue)
            self._queue = None


def check(config: Mapping[str, Any]) -> None:
    """Raise ConfigurationError when librdkafka refuses a property, or its value."""
    try:
        _C.rd_kafka_conf_destroy(_configured(config))
    except KafkaException as error:
        raise ConfigurationError(f"kafka.source_properties: {error.args[0].str()}") from None


def _configured(config: Mapping[str, Any]) -> Any:
    text = ctypes.create_string_buffer(_TEXT_SIZE)
    made = _C.rd_kafka_conf_new()
    # What goes wrong is raised, or comes as a message.
    for name, value in {**config, "log_level": 0}.items():
        told = str(value).lower() if isinstance(value, bool) else str(value)
        if _C.rd_kafka_conf_set(made, name.encode(), told.encode(), text, _TEXT_SIZE):
            _C.rd_kafka_conf_destroy(made)
            raise _refused(KafkaError._INVALID_ARG, text.value)  # noqa: SLF001
    return made


def error_of(message: int) -> KafkaError:
    """What is wrong, of a message that is an error."""
    (code,) = (c_int.from_address(message),)
    return KafkaError(code.value, (_C.rd_kafka_message_errstr(message) or b"").decode())


def offset_of(message: int) -> int:
    """The offset of a message."""
    return c_int64.from_address(message + OFFSET).value


def _refused(code: int, text: bytes) -> KafkaException:
    return KafkaException(KafkaError(code, text.decode("utf-8", "replace") or None))
