"""A producer of many messages at a time, with transactions or without."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from ctypes import c_int, c_void_p
from typing import Any, Final

import numpy as np
from confluent_kafka import KafkaError, KafkaException

from spark_cep.columns.compilation import I64
from spark_cep.columns.vectors import Bytes
from spark_cep.errors import OutputError
from spark_cep.pipeline.librdkafka.library import (
    LIBRARY,
    TEXT_SIZE,
    addresses,
    client,
    configuration,
    raised,
    refused,
)
from spark_cep.pipeline.librdkafka.loops.produce_loop import (
    COPIED,
    FUNCTIONS,
    message_arguments,
    produce,
)
from spark_cep.pipeline.librdkafka.messages import Messages

_PRODUCER: Final = 0
_QUEUED_AND_IN_FLIGHT: Final = 3
_WAIT_MS: Final = 500
_FUNCTIONS: Final = addresses(FUNCTIONS)
#: Of rd_kafka_message_t: the topic.
_TOPIC: Final = 8

_Delivered = ctypes.CFUNCTYPE(None, c_void_p, c_void_p, c_void_p)


class Producer:
    """``config``: librdkafka's properties of a producer. ``failed`` is called for each message
    that was not delivered, with its topic and the error, while :meth:`flush` waits.

    Raises KafkaException when librdkafka or the brokers refuse what is asked. Times are seconds.
    """

    def __init__(
        self,
        config: Mapping[str, Any],
        failed: Callable[[str, KafkaError], None] | None = None,
    ) -> None:
        self._client: Any = None
        self._topics: dict[str, int] = {}
        made = configuration({**config, "delivery.report.only.error": True})
        if failed is not None:
            # Kept for as long as librdkafka may call it. ctypes prints what is raised there, and it
            # goes no further. No record is lost by that: librdkafka itself does not commit a
            # transaction of which a message is not delivered; `failed` only keeps the reason.
            self._delivered = _Delivered(lambda _, message, __: failed(*_failure(message)))
            LIBRARY.rd_kafka_conf_set_dr_msg_cb(made, self._delivered)
        self._client = client(_PRODUCER, made)

    def __del__(self) -> None:
        if self._client is not None:
            LIBRARY.rd_kafka_destroy(self._client)
            self._client = None

    def produce(self, messages: Messages) -> None:
        """Hand messages on, waiting while librdkafka's queue is full. Raises OutputError when one
        is refused, KafkaException when no message is taken any more."""
        arguments = message_arguments(messages.most_headers)
        topics = np.array([self._topic(name) for name in messages.topics], np.int64)
        row = 0
        while True:
            row, error = _produced(self._client, arguments, row, topics, messages)
            if not error:
                return
            try:
                raised(error)
            except KafkaException as refusal:
                if refusal.args[0].code() == KafkaError._QUEUE_FULL:
                    LIBRARY.rd_kafka_poll(self._client, _WAIT_MS)
                    continue
                if refusal.args[0].fatal():
                    raise
                topic = messages.topics[messages.topic[row]]
                why = f"a record for {topic} is refused: {refusal.args[0].str()}"
                raise OutputError(why) from refusal

    def produce_to(self, topic: str, partition: int, key: bytes, value: bytes) -> None:
        """One message to a partition."""
        handle = self._topic(topic)
        sent = LIBRARY.rd_kafka_produce(
            handle, partition, COPIED, value, len(value), key, len(key), None
        )
        if sent:
            code = LIBRARY.rd_kafka_last_error()
            text = ctypes.create_string_buffer(TEXT_SIZE)
            if code == KafkaError._FATAL:
                # The error before it says why no message is taken any more.
                code = LIBRARY.rd_kafka_fatal_error(self._client, text, TEXT_SIZE)
            raise refused(code, text.value)

    def flush(self, seconds: float) -> int:
        """Wait for acknowledgements; how many are missing."""
        LIBRARY.rd_kafka_flush(self._client, round(seconds * 1000))
        return int(LIBRARY.rd_kafka_outq_len(self._client))

    def purge(self) -> None:
        """Drop what is not acknowledged."""
        LIBRARY.rd_kafka_purge(self._client, _QUEUED_AND_IN_FLIGHT)

    def ask_for(self, topic: str, seconds: float) -> None:
        """Wait until a broker has answered, with what it knows of a topic."""
        found = c_void_p()
        milliseconds = round(seconds * 1000)
        code = LIBRARY.rd_kafka_metadata(
            self._client, 0, self._topic(topic), ctypes.byref(found), milliseconds
        )
        if code:
            raise refused(code)
        LIBRARY.rd_kafka_metadata_destroy(found)

    def init_transactions(self, seconds: float) -> None:
        """Fence all others of the transactional id, and undo what they have not committed."""
        raised(LIBRARY.rd_kafka_init_transactions(self._client, round(seconds * 1000)))

    def begin_transaction(self) -> None:
        """Begin a transaction that has all records produced from now on."""
        raised(LIBRARY.rd_kafka_begin_transaction(self._client))

    def commit_transaction(self, seconds: float) -> None:
        """Wait until all of it is committed; an error that is retriable is no end of it."""
        raised(LIBRARY.rd_kafka_commit_transaction(self._client, round(seconds * 1000)))

    def abort_transaction(self, seconds: float) -> None:
        """Undo it."""
        raised(LIBRARY.rd_kafka_abort_transaction(self._client, round(seconds * 1000)))

    def _topic(self, name: str) -> int:
        if name not in self._topics:
            made = LIBRARY.rd_kafka_topic_new(self._client, name.encode(), None)
            if not made:
                raise refused(LIBRARY.rd_kafka_last_error())
            self._topics[name] = made
        return self._topics[name]


def produce_nothing() -> None:
    """Call the compiled loop, with no message."""
    nothing = Messages.of_records([])
    _produced(0, message_arguments(0), 0, np.zeros(0, np.int64), nothing)


def _produced(
    client: int, arguments: I64, first: int, topics: I64, messages: Messages
) -> tuple[int, int]:
    m = messages
    row, error = produce(
        client, _FUNCTIONS, arguments, arguments.ctypes.data, first, topics, _read_only(m.topic),
        *_column(m.keys), _read_only(m.key),
        *_column(m.values), _read_only(m.value),
        _read_only(m.group), _read_only(m.group_ends),
        *_column(m.names), _read_only(m.name),
        *_column(m.texts), _read_only(m.text),
        m.own_name, *_column(m.own),
    )  # fmt: skip
    return int(row), int(error)


def _column(column: Bytes) -> tuple[int, I64]:
    return int(column.data.ctypes.data), _read_only(column.places)


def _read_only(numbers: I64) -> I64:
    """The loop is compiled for one kind of arrays."""
    seen = numbers.view()
    seen.flags.writeable = False
    return seen


def _failure(message: int) -> tuple[str, KafkaError]:
    topic = c_void_p.from_address(message + _TOPIC).value
    # Where a message that was read has the text of its error, this one has what was to be sent.
    error = KafkaError(c_int.from_address(message).value)
    return LIBRARY.rd_kafka_topic_name(topic).decode(), error
