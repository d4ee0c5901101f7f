"""A checkpoint from outside: who holds it, how far it has come, and whether this job may go on.

Spark's layout: ``metadata`` (the query's id), ``offsets/N`` (what batch N reads, and with how many
state partitions; written before it runs), ``commits/N`` (batch N is done), ``state`` (versions of
the state; batch N reads version N and writes N + 1). Beside it, of ours: ``rules``
(:mod:`spark_cep.pipeline.driver.rules.rule_log`) and ``clock``
(:mod:`spark_cep.pipeline.driver.checkpoint.clock_resets`).
"""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.sql import SparkSession

from spark_cep.config import Settings
from spark_cep.errors import StateError
from spark_cep.observability.logs import logger
from spark_cep.pipeline.driver.checkpoint.local_files import damaged, missing, parsed_lines
from spark_cep.pipeline.driver.checkpoint.state_faults import OTHER_JOB
from spark_cep.pipeline.driver.control.control_file import start_of, topics_of
from spark_cep.pipeline.driver.control.source_offset import Ends, SourceOffset
from spark_cep.pipeline.spark.local_folder import local_folder
from spark_cep.pipeline.spark.private_api import hadoop_conf, jvm

_log = logger(__name__)
_MANAGERS = "org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager$"
_PARTITIONS = "spark.sql.shuffle.partitions"


@contextmanager
def held(location: str, *, alone: bool = True) -> Iterator[None]:
    """Hold a checkpoint on a local disk; StateError when another process holds it and one of the
    two wants to be ``alone``. The system lets go of it when the process ends, however it ends. What
    is on other storage cannot be held: there, two jobs meet in Spark's logs, and one of them fails.
    """
    folder = local_folder(location)
    if folder is None:
        yield
        return
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        # It holds keys and events. One that is there already keeps its mode.
        folder.mkdir(mode=0o700, exist_ok=True)
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        # A file stands where the folder, or one above it, would be made.
        why = os.strerror(errno.ENOTDIR) if isinstance(error, FileExistsError) else error.strerror
        raise StateError(
            f"state.checkpoint {location}: cannot be opened: {why}; see to the folder's place and"
            " rights, and start again"
        ) from error
    try:
        try:
            # The folder itself: Spark does not start in one that has files of others.
            fcntl.flock(handle, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise StateError(
                f"state.checkpoint {location} is in use by another process: stop the job that runs"
                " on it, or give this one a checkpoint of its own"
            ) from error
        yield
    finally:
        os.close(handle)


@dataclass(frozen=True, slots=True)
class Position:
    """The position of a checkpoint.

    ``query`` is Spark's id of the query; ``batch`` is the newest batch that was planned,
    ``committed`` the newest that is done (``None``: none). ``offsets`` are by topic and partition
    where ``batch`` ends; ``partitions`` and ``key_groups`` are the numbers of state partitions and
    key groups that it has, ``committed_partitions`` and ``committed_key_groups`` those of
    ``committed``. ``topics``: Kafka's ids of the topics that were read, by name, as far as they
    are known. ``start``: where the job begins, if ``batch`` is the first one.
    """

    query: str
    batch: int
    committed: int | None
    partitions: int
    committed_partitions: int
    key_groups: int
    committed_key_groups: int
    offsets: dict[str, dict[int, int]]
    topics: dict[str, str]
    start: Ends | None

    @property
    def uncommitted(self) -> bool:
        """Tell whether the newest batch is not done."""
        return self.batch != self.committed

    @property
    def rescaling(self) -> bool:
        """Tell whether the newest batch is one of a rescale that did not come to its end."""
        return self.moving or self.splitting

    @property
    def moving(self) -> bool:
        """Tell whether the newest batch moves key groups to other state partitions, and is not
        done."""
        return self.uncommitted and self.partitions != self.committed_partitions

    @property
    def splitting(self) -> bool:
        """Tell whether the newest batch splits key groups, and is not done."""
        return self.uncommitted and self.key_groups != self.committed_key_groups


def _help(location: str) -> str:
    scheme = location.partition("://")[0]
    if scheme in ("s3", "s3n"):
        return "Spark's name for Amazon S3 is s3a://, with hadoop-aws among the jars"
    return f"is the file system of {scheme}:// among the jars? see docs/deployment.md, More jars"


class CheckpointFiles:
    """Files of a checkpoint, wherever it is: read through Hadoop's file systems, as Spark does."""

    def __init__(self, spark: SparkSession, location: str) -> None:
        java = jvm(spark)
        self.location = location
        self._path = java.org.apache.hadoop.fs.Path
        self._text = java.org.apache.commons.io.IOUtils.toString
        self._root = self._path(location)
        conf = hadoop_conf(spark)
        managers = getattr(java, _MANAGERS)
        try:
            self._files = self._root.getFileSystem(conf)
            self._manager = getattr(managers, "MODULE$").create(self._root, conf)
        except Py4JJavaError as error:
            why = error.java_exception.getMessage() or error.java_exception.toString()
            raise StateError(
                f"state.checkpoint {location}: cannot be opened: {why}; {_help(location)}"
            ) from error

    def position(self) -> Position | None:
        """The position; ``None`` when no batch was ever planned. StateError when a file of the logs
        is missing or damaged."""
        planned, done = self._batches("offsets"), self._batches("commits")
        if not planned:
            if done:
                raise missing(self.location, f"offsets/{done[-1]}")
            return None
        (query,) = self.parsed("metadata")
        batch, committed = planned[-1], done[-1] if done else None
        conf, offset = self._planned(batch)
        before, done_at = conf, offset
        if committed is not None:
            if committed not in planned:
                raise missing(self.location, f"offsets/{committed}")
            self.parsed(f"commits/{committed}", after=1)
            before, done_at = self._planned(committed)
        return Position(
            query=str(query["id"]),
            batch=batch,
            committed=committed,
            partitions=int(conf[_PARTITIONS]),
            committed_partitions=int(before[_PARTITIONS]),
            key_groups=offset.key_groups,
            committed_key_groups=done_at.key_groups,
            offsets=offset.by_topic,
            topics=topics_of(offset),
            start=start_of(offset),
        )

    def planned_at(self, batch: int) -> int:
        """The planning time of a batch, in ms since 1970. StateError as :meth:`position`."""
        head, *_ = self.parsed(f"offsets/{batch}", after=1)
        return int(head["batchTimestampMs"])

    def offset(self, batch: int) -> SourceOffset | None:
        """The offset at which a batch ends; ``None`` when it is not there: Spark deletes old ones.
        StateError when it is damaged."""
        return self._planned(batch)[1] if batch in self._batches("offsets") else None

    def files(self) -> set[str]:
        """The names of all files, as URIs."""
        found = set()
        if self._files.exists(self._root):
            each = self._files.listFiles(self._root, True)
            while each.hasNext():
                found.add(each.next().getPath().toString())
        return found

    def write(self, name: str, text: str) -> None:
        """Write a file that there is not, whole or not at all, as Spark writes its logs. Raises
        StateError when it cannot be written."""
        path = self._path(self._root, name)
        try:
            self._manager.mkdirs(path.getParent())
            stream = self._manager.createAtomic(path, False)
            try:
                stream.write(bytearray(text.encode()))
                stream.close()
            except Py4JError:
                stream.cancel()
                raise
        except Py4JError as error:
            reason = str(getattr(error, "java_exception", error))[:200]
            raise StateError(f"{self.location}/{name} cannot be written: {reason}") from error

    def delete(self, name: str) -> None:
        """Delete a file that :meth:`files` named."""
        self._files.delete(self._path(name), False)

    def names(self, log: str) -> list[str]:
        """The names of a log's files; none where there is no such folder."""
        folder = self._path(self._root, log)
        if not self._files.exists(folder):
            return []
        return [status.getPath().getName() for status in self._files.listStatus(folder)]

    def _batches(self, log: str) -> list[int]:
        return sorted(int(name) for name in self.names(log) if name.isdigit())

    def _planned(self, batch: int) -> tuple[dict[str, str], SourceOffset]:
        """Spark's settings of a batch, and where it ends."""
        head, *sources = self.parsed(f"offsets/{batch}", after=1)
        try:
            return head["conf"], SourceOffset.of_entry(sources)
        except KeyError as error:
            raise StateError(f"{self.location}/offsets/{batch}: {OTHER_JOB}") from error

    def parsed(self, name: str, after: int = 0) -> list[Any]:
        """A file's lines, each of them JSON, behind the first ``after`` ones. StateError when it is
        missing or damaged."""
        path = self._path(self._root, name)
        if not self._files.exists(path):
            raise missing(self.location, name)
        try:
            stream = self._files.open(path)
            try:
                text = self._text(stream, "UTF-8")
            finally:
                stream.close()
            return parsed_lines(text, after)
        except (Py4JError, ValueError) as error:
            raise damaged(self.location, name, error) from error


def check_position(
    position: Position | None, settings: Settings, topics: Sequence[str], ids: Mapping[str, str]
) -> None:
    """Refuse to go on where it would end in an error late, in a setting without effect, or in
    records that are never read; ``topics`` are those that are read now, ``ids`` are Kafka's of
    them. Raises StateError."""
    if position is None:
        return
    wanted, there = settings.state.state_partitions, position.partitions
    if position.splitting:
        raise StateError(
            "the checkpoint is in the middle of a rescale: run `spark-cep rescale` with the same"
            " --partitions to its end"
        )
    if position.moving:
        raise StateError(
            f"the checkpoint is in the middle of a rescale from {position.committed_partitions} to"
            f" {there} state partitions: run `spark-cep rescale --partitions {there}` to its end"
        )
    if wanted != there:
        raise StateError(
            f"state.state_partitions is {wanted}, and the checkpoint has {there}: run"
            f" `spark-cep rescale --partitions {wanted}` first, or set it back to {there}"
        )
    remade = [t for t in topics if ids.get(t) != position.topics.get(t, ids.get(t))]
    if remade and not settings.source.fail_on_data_loss:
        _log.error("input_replaced", topics=remade)
    elif remade:
        raise StateError(
            f"{', '.join(remade)}: deleted and created again since the checkpoint was written, so"
            " its offsets are not those of the records that are there now: start from a new"
            " checkpoint, or set source.fail_on_data_loss to false to go on at the old offsets"
        )
    gone = sorted(set(position.offsets) - set(topics))
    if gone and settings.source.fail_on_data_loss:
        raise StateError(
            f"the checkpoint has read {', '.join(gone)}, and the inputs are {', '.join(topics)}:"
            " if this is another job, give it a checkpoint of its own; if an input was removed,"
            " put it back, or set source.fail_on_data_loss to false to go on without it"
        )
