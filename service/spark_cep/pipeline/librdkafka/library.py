"""librdkafka itself: its functions, its properties and its errors (``rdkafka.h``).

confluent-kafka, which brings librdkafka, makes a Python object of each message, which takes longer
than all that a job does with most of them. What is here uses the same library, with the same
properties.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from ctypes import c_char_p, c_int, c_int32, c_int64, c_size_t, c_ssize_t, c_void_p
from typing import Any, Final

import numpy as np
from confluent_kafka import KafkaError, KafkaException, cimpl
from numpy.typing import NDArray

#: Bytes of what librdkafka says of a refusal.
TEXT_SIZE: Final = 512


def _library() -> ctypes.CDLL:
    # By the extension that is linked with it: so it is the same library, wherever that is.
    library = ctypes.CDLL(cimpl.__file__)
    for name, result, *given in (
        ("rd_kafka_conf_new", c_void_p),
        ("rd_kafka_conf_set", c_int, c_void_p, c_char_p, c_char_p, c_char_p, c_size_t),
        ("rd_kafka_conf_set_dr_msg_cb", None, c_void_p, c_void_p),
        ("rd_kafka_conf_destroy", None, c_void_p),
        ("rd_kafka_new", c_void_p, c_int, c_void_p, c_char_p, c_size_t),
        ("rd_kafka_destroy", None, c_void_p),
        ("rd_kafka_topic_new", c_void_p, c_void_p, c_char_p, c_void_p),
        ("rd_kafka_topic_destroy", None, c_void_p),
        ("rd_kafka_topic_name", c_char_p, c_void_p),
        ("rd_kafka_last_error", c_int),
        ("rd_kafka_fatal_error", c_int, c_void_p, c_char_p, c_size_t),
        ("rd_kafka_metadata", c_int, c_void_p, c_int, c_void_p, c_void_p, c_int),
        ("rd_kafka_metadata_destroy", None, c_void_p),
        ("rd_kafka_error_code", c_int, c_void_p),
        ("rd_kafka_error_string", c_char_p, c_void_p),
        ("rd_kafka_error_is_fatal", c_int, c_void_p),
        ("rd_kafka_error_is_retriable", c_int, c_void_p),
        ("rd_kafka_error_txn_requires_abort", c_int, c_void_p),
        ("rd_kafka_error_destroy", None, c_void_p),
        ("rd_kafka_queue_new", c_void_p, c_void_p),
        ("rd_kafka_queue_destroy", None, c_void_p),
        ("rd_kafka_consume_start_queue", c_int, c_void_p, c_int32, c_int64, c_void_p),
        ("rd_kafka_consume_stop", c_int, c_void_p, c_int32),
        ("rd_kafka_query_watermark_offsets", c_int, c_void_p, c_char_p, c_int32, c_void_p, c_void_p,
         c_int),
        ("rd_kafka_consume_batch_queue", c_ssize_t, c_void_p, c_int, c_void_p, c_size_t),
        ("rd_kafka_message_errstr", c_char_p, c_void_p),
        ("rd_kafka_produce", c_int, c_void_p, c_int32, c_int, c_char_p, c_size_t, c_char_p,
         c_size_t, c_void_p),
        ("rd_kafka_poll", c_int, c_void_p, c_int),
        ("rd_kafka_flush", c_int, c_void_p, c_int),
        ("rd_kafka_outq_len", c_int, c_void_p),
        ("rd_kafka_purge", c_int, c_void_p, c_int),
        ("rd_kafka_init_transactions", c_void_p, c_void_p, c_int),
        ("rd_kafka_begin_transaction", c_void_p, c_void_p),
        ("rd_kafka_commit_transaction", c_void_p, c_void_p, c_int),
        ("rd_kafka_abort_transaction", c_void_p, c_void_p, c_int),
    ):  # fmt: skip
        function = getattr(library, name)
        function.restype, function.argtypes = result, given
    return library


LIBRARY: Final = _library()


def addresses(names: Sequence[str]) -> NDArray[np.int64]:
    """Return the addresses of functions, for compiled loops that call them."""
    found = [ctypes.cast(getattr(LIBRARY, name), c_void_p).value for name in names]
    return np.array(found, np.int64)


def configuration(config: Mapping[str, Any]) -> Any:
    """An ``rd_kafka_conf_t``, which :func:`client` takes over. Raises KafkaException for a property
    or a value that there is not."""
    text = ctypes.create_string_buffer(TEXT_SIZE)
    made = LIBRARY.rd_kafka_conf_new()
    # What goes wrong is raised, or comes as a message.
    for name, value in {**config, "log_level": 0}.items():
        text_value = str(value).lower() if isinstance(value, bool) else str(value)
        if LIBRARY.rd_kafka_conf_set(made, name.encode(), text_value.encode(), text, TEXT_SIZE):
            LIBRARY.rd_kafka_conf_destroy(made)
            raise refused(KafkaError._INVALID_ARG, text.value)
    return made


def client(kind: int, configuration: Any) -> Any:
    """An ``rd_kafka_t``. Raises KafkaException when librdkafka refuses to make it."""
    text = ctypes.create_string_buffer(TEXT_SIZE)
    made = LIBRARY.rd_kafka_new(kind, configuration, text, TEXT_SIZE)
    if not made:
        LIBRARY.rd_kafka_conf_destroy(configuration)
        raise refused(LIBRARY.rd_kafka_last_error(), text.value)
    return made


def refused(code: int, text: bytes = b"") -> KafkaException:
    """The error of a code; ``text`` says more."""
    return KafkaException(KafkaError(code, text.decode("utf-8", "replace") or None))


def raised(error: int | None) -> None:
    """Raise what an ``rd_kafka_error_t``, which is gone then, says, if there is one."""
    if not error:
        return
    failure = KafkaError(
        LIBRARY.rd_kafka_error_code(error),
        LIBRARY.rd_kafka_error_string(error).decode("utf-8", "replace"),
        bool(LIBRARY.rd_kafka_error_is_fatal(error)),
        bool(LIBRARY.rd_kafka_error_is_retriable(error)),
        bool(LIBRARY.rd_kafka_error_txn_requires_abort(error)),
    )
    LIBRARY.rd_kafka_error_destroy(error)
    raise KafkaException(failure)


def error_of(message: int) -> KafkaError:
    """Return the error that a message reports instead of a record."""
    text = LIBRARY.rd_kafka_message_errstr(message) or b""
    return KafkaError(c_int.from_address(message).value, text.decode("utf-8", "replace"))
