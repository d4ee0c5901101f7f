"""Every error of Kafka's clients and brokers, and whether asking again may help.

For the brokers' errors Apache Kafka decides (``org.apache.kafka.common.protocol.Errors``): those
whose exception is a RetriableException are waited for. A few more are, each with its reason below.
The errors of librdkafka itself, whose names begin with ``_``, have no such list.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum, auto
from typing import Final

from confluent_kafka import KafkaError

from spark_cep.errors import KafkaUnavailableError, SparkCepError


class ErrorKind(Enum):
    """The meaning of an error for the request."""

    #: No error: the end of a partition, or what a client tells of itself.
    NOTICE = auto()
    #: The brokers answer, and are not ready: a leader moves, a coordinator loads, a disk fails.
    RETRIABLE = auto()
    #: The topic or partition is not known: not yet, not everywhere, or not any more.
    UNKNOWN_TOPIC = auto()
    #: No broker answers, or none in time.
    UNREACHABLE = auto()
    #: The transaction must be undone; its batch may be written again.
    ABORTED = auto()
    #: The login is refused.
    LOGIN = auto()
    #: TLS: a certificate, a key, or no TLS at all.
    TLS = auto()
    #: The offset is not in the partition any more.
    DELETED = auto()
    #: A newer producer has the transactional id.
    FENCED = auto()
    #: The brokers refuse the request: rights, a limit, a configuration, a version.
    REFUSED = auto()
    #: The client cannot go on, or was asked for what it cannot do.
    FATAL = auto()


#: Kinds that asking again may help.
_MAY_PASS: Final = frozenset(
    {ErrorKind.RETRIABLE, ErrorKind.UNKNOWN_TOPIC, ErrorKind.UNREACHABLE, ErrorKind.ABORTED}
)

_NAMES: Final[Mapping[ErrorKind, str]] = {
    ErrorKind.NOTICE: """
        NO_ERROR _PARTITION_EOF _NODE_UPDATE _ASSIGN_PARTITIONS _REVOKE_PARTITIONS _NOOP _NO_OFFSET
    """,
    # Not retriable for Kafka: UNKNOWN, which an overloaded broker answers, as brokers do with
    # errors that are newer than the request.
    ErrorKind.RETRIABLE: """
        INVALID_MSG LEADER_NOT_AVAILABLE NOT_LEADER_FOR_PARTITION REPLICA_NOT_AVAILABLE
        COORDINATOR_LOAD_IN_PROGRESS COORDINATOR_NOT_AVAILABLE NOT_COORDINATOR NOT_ENOUGH_REPLICAS
        NOT_ENOUGH_REPLICAS_AFTER_APPEND NOT_CONTROLLER CONCURRENT_TRANSACTIONS KAFKA_STORAGE_ERROR
        FETCH_SESSION_ID_NOT_FOUND INVALID_FETCH_SESSION_EPOCH LISTENER_NOT_FOUND
        FENCED_LEADER_EPOCH UNKNOWN_LEADER_EPOCH OFFSET_NOT_AVAILABLE PREFERRED_LEADER_NOT_AVAILABLE
        ELIGIBLE_LEADERS_NOT_AVAILABLE ELECTION_NOT_NEEDED UNSTABLE_OFFSET_COMMIT
        THROTTLING_QUOTA_EXCEEDED INCONSISTENT_TOPIC_ID SHARE_SESSION_NOT_FOUND
        INVALID_SHARE_SESSION_EPOCH SHARE_SESSION_LIMIT_REACHED UNKNOWN
        _BAD_MSG _PARTIAL _UNDERFLOW _QUEUE_FULL _ISR_INSUFF _WAIT_COORD _WAIT_CACHE _IN_PROGRESS
        _PREV_IN_PROGRESS _OUTDATED _INTR _RETRY
    """,
    ErrorKind.UNKNOWN_TOPIC: """
        UNKNOWN_TOPIC_OR_PART UNKNOWN_TOPIC_ID _UNKNOWN_TOPIC _UNKNOWN_PARTITION
    """,
    # Not retriable for Kafka: BROKER_NOT_AVAILABLE, and REBOOTSTRAP_REQUIRED, after which the
    # client connects anew. _NOENT says, of offsets, that a partition has no leader.
    ErrorKind.UNREACHABLE: """
        REQUEST_TIMED_OUT BROKER_NOT_AVAILABLE NETWORK_EXCEPTION REBOOTSTRAP_REQUIRED
        _FAIL _TRANSPORT _RESOLVE _MSG_TIMED_OUT _ALL_BROKERS_DOWN _TIMED_OUT _TIMED_OUT_QUEUE
        _UNKNOWN_BROKER _DESTROY_BROKER _NOENT
    """,
    # Not retriable for Kafka within the transaction.
    ErrorKind.ABORTED: "TRANSACTION_ABORTABLE",
    ErrorKind.LOGIN: """
        UNSUPPORTED_SASL_MECHANISM ILLEGAL_SASL_STATE SASL_AUTHENTICATION_FAILED _AUTHENTICATION
    """,
    ErrorKind.TLS: "_SSL",
    ErrorKind.DELETED: "OFFSET_OUT_OF_RANGE _AUTO_OFFSET_RESET _LOG_TRUNCATION",
    ErrorKind.FENCED: """
        INVALID_PRODUCER_EPOCH INVALID_PRODUCER_ID_MAPPING PRODUCER_FENCED _FENCED
    """,
    ErrorKind.REFUSED: """
        INVALID_MSG_SIZE MSG_SIZE_TOO_LARGE STALE_CTRL_EPOCH OFFSET_METADATA_TOO_LARGE
        TOPIC_EXCEPTION RECORD_LIST_TOO_LARGE INVALID_REQUIRED_ACKS ILLEGAL_GENERATION
        INCONSISTENT_GROUP_PROTOCOL INVALID_GROUP_ID UNKNOWN_MEMBER_ID INVALID_SESSION_TIMEOUT
        REBALANCE_IN_PROGRESS INVALID_COMMIT_OFFSET_SIZE TOPIC_AUTHORIZATION_FAILED
        GROUP_AUTHORIZATION_FAILED CLUSTER_AUTHORIZATION_FAILED INVALID_TIMESTAMP
        UNSUPPORTED_VERSION TOPIC_ALREADY_EXISTS INVALID_PARTITIONS INVALID_REPLICATION_FACTOR
        INVALID_REPLICA_ASSIGNMENT INVALID_CONFIG INVALID_REQUEST UNSUPPORTED_FOR_MESSAGE_FORMAT
        POLICY_VIOLATION OUT_OF_ORDER_SEQUENCE_NUMBER DUPLICATE_SEQUENCE_NUMBER INVALID_TXN_STATE
        INVALID_TRANSACTION_TIMEOUT TRANSACTION_COORDINATOR_FENCED
        TRANSACTIONAL_ID_AUTHORIZATION_FAILED SECURITY_DISABLED OPERATION_NOT_ATTEMPTED
        LOG_DIR_NOT_FOUND UNKNOWN_PRODUCER_ID REASSIGNMENT_IN_PROGRESS
        DELEGATION_TOKEN_AUTH_DISABLED DELEGATION_TOKEN_NOT_FOUND DELEGATION_TOKEN_OWNER_MISMATCH
        DELEGATION_TOKEN_REQUEST_NOT_ALLOWED DELEGATION_TOKEN_AUTHORIZATION_FAILED
        DELEGATION_TOKEN_EXPIRED INVALID_PRINCIPAL_TYPE NON_EMPTY_GROUP GROUP_ID_NOT_FOUND
        TOPIC_DELETION_DISABLED UNSUPPORTED_COMPRESSION_TYPE STALE_BROKER_EPOCH MEMBER_ID_REQUIRED
        GROUP_MAX_SIZE_REACHED FENCED_INSTANCE_ID NO_REASSIGNMENT_IN_PROGRESS
        GROUP_SUBSCRIBED_TO_TOPIC INVALID_RECORD RESOURCE_NOT_FOUND DUPLICATE_RESOURCE
        UNACCEPTABLE_CREDENTIAL INCONSISTENT_VOTER_SET INVALID_UPDATE_VERSION FEATURE_UPDATE_FAILED
        PRINCIPAL_DESERIALIZATION_FAILURE FENCED_MEMBER_EPOCH UNRELEASED_INSTANCE_ID
        UNSUPPORTED_ASSIGNOR STALE_MEMBER_EPOCH MISMATCHED_ENDPOINT_TYPE UNSUPPORTED_ENDPOINT_TYPE
        UNKNOWN_CONTROLLER_ID UNKNOWN_SUBSCRIPTION_ID TELEMETRY_TOO_LARGE INVALID_REGISTRATION
        INVALID_RECORD_STATE FENCED_STATE_EPOCH INVALID_VOTER_KEY DUPLICATE_VOTER VOTER_NOT_FOUND
        INVALID_REGULAR_EXPRESSION STREAMS_INVALID_TOPOLOGY STREAMS_INVALID_TOPOLOGY_EPOCH
        STREAMS_TOPOLOGY_FENCED
        _UNSUPPORTED_FEATURE
    """,
    ErrorKind.FATAL: """
        _BAD_COMPRESSION _DESTROY _CRIT_SYS_RESOURCE _FS _INVALID_ARG _UNKNOWN_GROUP
        _EXISTING_SUBSCRIPTION _CONFLICT _STATE _UNKNOWN_PROTOCOL _NOT_IMPLEMENTED
        _KEY_SERIALIZATION _VALUE_SERIALIZATION _KEY_DESERIALIZATION _VALUE_DESERIALIZATION
        _READ_ONLY _INVALID_TYPE _PURGE_QUEUE _PURGE_INFLIGHT _FATAL _INCONSISTENT
        _GAPLESS_GUARANTEE _MAX_POLL_EXCEEDED _NOT_CONFIGURED _APPLICATION _ASSIGNMENT_LOST
        _INVALID_DIFFERENT_RECORD
    """,
}
#: The table: the kind of each error, by librdkafka's name of it.
KINDS: Final[Mapping[str, ErrorKind]] = {
    name: kind for kind, names in _NAMES.items() for name in names.split()
}


def kind_of(error: KafkaError) -> ErrorKind:
    """The kind of an error. One that librdkafka does not know yet is waited for, up to the usual
    limit, unless the client says that it is fatal."""
    known = KINDS.get(error.name())
    if known is None:
        return ErrorKind.FATAL if error.fatal() else ErrorKind.RETRIABLE
    return known


def may_pass(error: KafkaError) -> bool:
    """Return whether asking again may help."""
    return bool(error.retriable()) or kind_of(error) in _MAY_PASS


def unavailable_or(
    refused: Callable[[str], SparkCepError], error: KafkaError, message: str
) -> SparkCepError:
    """KafkaUnavailableError where asking again may help, and ``refused`` otherwise."""
    return KafkaUnavailableError(message) if may_pass(error) else refused(message)
