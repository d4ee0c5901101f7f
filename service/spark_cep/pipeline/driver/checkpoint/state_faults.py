"""Spark's reports of state and checkpoints that it cannot use, as errors that say what to do.

Spark names such errors by class; some come from Hadoop or the system and are known by their words.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from spark_cep.errors import RESTORE, StateError

_SPACE = "make room, and start again: the batch is repeated, nothing is lost"
OTHER_JOB = (
    "the checkpoint is of another job or of another version of the service: give this job a"
    " checkpoint of its own, or run the version that wrote it"
)


@dataclass(frozen=True, slots=True)
class _Fault:
    """``pattern`` finds it in Spark's report; ``what`` and ``remedy`` make the message."""

    pattern: str
    what: str
    remedy: str


# The first that is found counts: the more a line says of the cause, the earlier it stands.
_FAULTS = (
    _Fault(
        r"No space left on device|Disk quota exceeded|File too large",
        "there is no room left for the checkpoint or for Spark's own files",
        _SPACE,
    ),
    _Fault(
        r"Read-only file system|\(Permission denied\)|AccessControlException",
        "the checkpoint or Spark's own folder cannot be written",
        "correct its permissions, and start again: the batch is repeated, nothing is lost",
    ),
    _Fault(
        r"STREAMING_CHECKPOINT_MISSING_METADATA_FILE",
        "the checkpoint's file `metadata` is missing",
        RESTORE,
    ),
    _Fault(
        r"STREAMING_STATEFUL_OPERATOR_MISSING_STATE_DIRECTORY",
        "the checkpoint's folder `state` is missing or empty",
        RESTORE,
    ),
    _Fault(
        r"STREAMING_UNFINISHED_REPARTITION_DETECTED",
        "the checkpoint is in the middle of a rescale",
        "run `spark-cep rescale` with the same --partitions to its end",
    ),
    _Fault(
        r"STATE_STORE_CHECKPOINT_LOCATION_NOT_EMPTY|CHECKPOINT_LOCATION_NOT_EMPTY",
        "the checkpoint has state, and no record of how far it was read",
        RESTORE,
    ),
    _Fault(
        r"STATE_STORE_(?:KEY|VALUE)_SCHEMA_NOT_COMPATIBLE|STATE_STORE_INVALID_"
        r"|STATE_STORE_COLUMN_FAMILY_SCHEMA_INCOMPATIBLE"
        r"|STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA"
        r"|STATE_STORE_OPERATOR_|INVALID_CHANGE_LOG_READER_VERSION|MALFORMED_LOG_FILE",
        "the checkpoint's state is of another form",
        OTHER_JOB,
    ),
    _Fault(
        r"CANNOT_LOAD_STATE_STORE|CHECKPOINT_FILE_CHECKSUM_VERIFICATION_FAILED|ChecksumException"
        r"|STATE_STORE_ROW_CHECKSUM_VERIFICATION_FAILED|ROW_FORMAT_VALIDATION_FAILURE"
        r"|Incomplete log file|BATCH_METADATA_NOT_FOUND|STDS_\w+|CANNOT_READ_\w+_FILE\w*"
        r"|batch \d+ doesn't exist|Log file was malformed"
        r"|terminated with exception: (?:Unexpected (?:end-of-input|character)|Unrecognized token)",
        "a file of the checkpoint is missing or damaged",
        RESTORE,
    ),
)
_CAUSE = re.compile(r"^Caused by: .+", re.MULTILINE)
_FILE = re.compile(r"(?:file:)?(?:[a-z0-9]+:/)?/[^\s,;:'\"()\[\]]+")


def state_fault(report: str, location: str) -> StateError | None:
    """The error for a report of Spark about a query on the checkpoint at ``location``; ``None``
    when it is about something else."""
    for fault in _FAULTS:
        found = re.search(fault.pattern, report)
        if found is None:
            continue
        end = report.find("\n", found.end())
        line = report[report.rfind("\n", 0, found.start()) + 1 : end if end >= 0 else None].strip()
        file = _file(report, line, location)
        causes = [text.strip() for text in _CAUSE.findall(report)]
        cause = "\n  ".join(["", line, *causes[-1:]])
        return StateError(f"{fault.what} ({file or location}): {fault.remedy}{cause}")
    return None


def _file(report: str, line: str, location: str) -> str | None:
    """The file below the checkpoint that the report speaks of, its nearest line first."""
    root = location.removeprefix("file:").rstrip("/")
    for text in (line, report):
        for name in _FILE.findall(text):
            if f"{root}/" in name:
                return str(name).rstrip(".")
    return None
