"""PySpark's private names that the service uses, asked of the installed version: another Spark that
lacks one, or has another signature, fails here by its name. Run on each version that the service
runs on (``make test``, ``make test-other-spark``)."""

from __future__ import annotations

import inspect
import json
import socket
import struct
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle
from pyspark.sql.streaming.stateful_processor_api_client import (
    StatefulProcessorApiClient,
    StatefulProcessorHandleState,
)
from pyspark.sql.types import LongType, StructField, StructType

from spark_cep.pipeline.spark import private_api
from spark_cep.pipeline.spark.forking.preloading import SPARKS_MODULES
from spark_cep.pipeline.spark.java_batches import JavaBatches
from spark_cep.pipeline.spark.starting import initialize_classes

#: By module: dotted names in it, and the parameters of those that are called.
NAMES: dict[str, dict[str, tuple[str, ...] | None]] = {
    "pyspark": {
        "SparkContext._gateway": None,
        "SparkContext._active_spark_context": None,
        "SparkContext._ensure_initialized": ("instance", "gateway", "conf"),
    },
    "pyspark.daemon": {"worker": ("sock", "authenticated"), "manager": ()},
    "pyspark.java_gateway": {"launch_gateway": ("conf", "popen_kwargs")},
    "pyspark.serializers": {
        "CPickleSerializer.dumps": ("self", "obj"),
        "CPickleSerializer.loads": ("self", "obj", "encoding"),
        "UTF8Deserializer.loads": ("self", "stream"),
        "read_int": ("stream",),
    },
    "pyspark.sql.pandas.types": {"from_arrow_schema": ("arrow_schema", "prefer_timestamp_ntz")},
    "pyspark.sql.session": {"SparkSession._streamingCheckpointManager": None},
    "pyspark.sql.streaming.query": {
        "StreamingCheckpointManager.repartition": (
            "self", "checkpoint_location", "num_partitions", "enforce_exactly_once_sink",
        ),
    },
    "pyspark.sql.streaming.stateful_processor_api_client": {
        "StatefulProcessorApiClient._receive_proto_message": ("self",),
        "StatefulProcessorApiClient.set_handle_state": ("self", "state"),
        "StatefulProcessorHandleState.PRE_INIT": None,
    },
    "pyspark.sql.streaming.proto.StateMessage_pb2": dict.fromkeys(
        (
            "GetValue", "MapStateCall", "RemoveKey", "StateRequest", "StateVariableRequest",
            "UpdateValue",
        )
    ),
}  # fmt: skip
CASES = [
    pytest.param(module, name, given, id=f"{module}.{name}")
    for module, names in NAMES.items()
    for name, given in names.items()
]


@pytest.mark.parametrize(("module", "name", "parameters"), CASES)
def test_a_name_is_there(module: str, name: str, parameters: tuple[str, ...] | None) -> None:
    """With the parameters that the service gives, in their order."""
    found: Any = import_module(module)
    for part in name.split("."):
        assert hasattr(found, part), f"{module}.{name} is gone: see spark_cep.pipeline.spark"
        found = inspect.getattr_static(found, part) if parameters is None else getattr(found, part)
    if parameters is not None:
        given = tuple(inspect.signature(found).parameters)
        bound = ("cls", *given) if inspect.ismethod(found) else given
        assert tuple(name for name in bound if name != "cls") == parameters


@pytest.mark.parametrize("module", SPARKS_MODULES)
def test_a_module_that_is_preloaded_is_there(module: str) -> None:
    """Python processes of Spark import it when they start."""
    assert import_module(module)


def test_the_connection_of_a_state(tmp_path: Path) -> None:
    """What the pipelined map uses of an object of Spark's."""
    address = str(tmp_path / "state")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(address)
        server.listen()
        key = StructType([StructField("label", LongType())])
        client: Any = StatefulProcessorApiClient(address, key)
        handle: Any = StatefulProcessorHandle(client)
        assert handle._statefulProcessorApiClient is client
        assert client.handle_state is StatefulProcessorHandleState.CREATED
        assert client.pickleSer.loads(client.pickleSer.dumps((1, b"a"))) == (1, b"a")
        client.sockfile.write(b"asked")
        client.sockfile.flush()
        accepted, _ = server.accept()
        with accepted:
            assert accepted.recv(5) == b"asked"
        client.sockfile.close()


def test_values_travel() -> None:
    """With functions that no module has."""
    assert private_api.unpickled(private_api.pickled(lambda: 7))() == 7


def test_types_of_rows() -> None:
    """By name and type."""
    schema = pa.schema([("label", pa.int64()), ("kind", pa.int32()), ("packet", pa.binary())])
    told = private_api.spark_type(schema).simpleString()
    assert told == "struct<label:bigint,kind:int,packet:binary>"


@pytest.mark.spark
def test_java_is_reached(spark: SparkSession) -> None:
    """Its classes, Hadoop's settings, and the connection itself."""
    java = private_api.jvm(spark)
    assert java.java.lang.Runtime.version().feature() >= 17
    assert private_api.running_jvm().java.lang.Runtime.version().feature() >= 17
    assert private_api.gateway() is not None
    assert private_api.hadoop_conf(spark).get("fs.defaultFS")


@pytest.mark.spark
def test_classes_that_a_start_initializes_are_there(spark: SparkSession) -> None:
    """A start goes on without them, and would only be slower."""
    initialize_classes(private_api.jvm(spark))


@pytest.mark.spark
def test_the_log_of_offsets(spark: SparkSession, tmp_path: Path) -> None:
    """Where a batch ends, and when it was planned."""
    stream = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
    query = (
        stream.writeStream.format("noop")
        .option("checkpointLocation", str(tmp_path))
        .trigger(once=True)
        .start()
    )
    assert query.awaitTermination(60)
    batches = JavaBatches(spark)
    log = private_api.offset_log(query)
    entry = log.get(0).get()
    planned = entry.metadataOpt().get().batchTimestampMs()
    offset = json.loads(entry.offsets().head().get().json())
    assert batches.planned(log, 0) == (planned, offset)
    assert planned > 0
    assert batches.planned(log, 1) is None
    assert batches.planned(log, -1) is None


def _stop_when(query: StreamingQuery, enough: Callable[[], bool]) -> None:
    """Stop a query when ``enough`` says so, or after a minute."""
    try:
        deadline = time.monotonic() + 60
        while not enough() and time.monotonic() < deadline:
            time.sleep(0.1)
    finally:
        query.stop()


@pytest.mark.spark
def test_a_batch_gives_the_bytes_of_its_tasks(spark: SparkSession, tmp_path: Path) -> None:
    """One row each, in the order of partitions, also of tasks without one."""
    stream = spark.readStream.format("rate-micro-batch").options(rowsPerBatch=3, numPartitions=3)
    rows = stream.load().where("value % 3 != 1").selectExpr("CAST(value AS BINARY)")
    batches = JavaBatches(spark)
    found: list[bytes] = []

    def run(frame: DataFrame, batch: int) -> None:
        assert batch == len(found)
        found.append(batches.run(frame))

    query = (
        rows.writeStream.option("checkpointLocation", str(tmp_path))
        .trigger(processingTime="0 seconds")
        .foreachBatch(run)
        .start()
    )
    _stop_when(query, lambda: len(found) >= 2)
    assert query.exception() is None
    assert found[:2] == [struct.pack(">2q", 0, 2), struct.pack(">2q", 3, 5)]


@pytest.mark.spark
def test_a_task_that_gives_two_rows_is_an_error(spark: SparkSession, tmp_path: Path) -> None:
    """Spark uses its row again, so the second one would be read twice."""
    stream = spark.readStream.format("rate-micro-batch").options(rowsPerBatch=4, numPartitions=2)
    rows = stream.load().selectExpr("CAST(value AS BINARY)")
    batches = JavaBatches(spark)
    refused: list[str] = []

    def run(frame: DataFrame, batch: int) -> None:
        with pytest.raises(Py4JJavaError) as error:
            batches.run(frame)
        refused.append(str(error.value))

    query = (
        rows.writeStream.option("checkpointLocation", str(tmp_path))
        .trigger(once=True)
        .foreachBatch(run)
        .start()
    )
    assert query.awaitTermination(60)
    assert len(refused) == 1
    assert "a task of the batch gave more than one row" in refused[0]


@pytest.mark.spark
def test_the_progress_of_a_query(spark: SparkSession, tmp_path: Path) -> None:
    """The texts of the batches that are asked for, as the public way has them."""
    stream = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
    query = (
        stream.writeStream.format("noop")
        .option("checkpointLocation", str(tmp_path))
        .trigger(processingTime="0 seconds")
        .start()
    )
    _stop_when(query, lambda: len(query.recentProgress) >= 4)
    public = query.recentProgress
    assert len(public) >= 4
    for after in (-1, 1, public[-1].batchId):
        found = private_api.progress_after(query, after)
        assert [each["batchId"] for each in found] == list(range(after + 1, len(public)))
        for each in found:
            assert each["durationMs"] == public[each["batchId"]].durationMs
            assert [source["endOffset"] for source in each["sources"]]
