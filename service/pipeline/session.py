"""The Spark session: what the job needs of Spark, and the user's own settings on top."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

import pyspark
from pydantic import SecretStr
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from service.codecs.record_bytes import MOST_TEXT
from service.config import Settings, on_kubernetes, reveal, spark_redaction_regex, without
from service.errors import DependencyError, StartError
from service.pipeline.checkpoint_files import is_local
from service.pipeline.jars import fetch, resolve
from service.pipeline.spark_output import taken_in

_STATE_STORE = "spark.sql.streaming.stateStore"
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
# On a local disk the default manager starts a process at each rename.
_LOCAL_CHECKPOINTS = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)
# A few bytes of garbage can claim a text of two gigabytes or an array of two thousand million
# items, for which Avro's decoder makes room before it reads. The user's own options come after.
_AVRO_LIMITS = {
    "bytes.maxLength": MOST_TEXT,
    "string.maxLength": MOST_TEXT,
    "collectionItems.maxLength": 4 * 2**20,
}
#: Bytes that the path of a socket may have, on every system, less those of Spark's file names.
_MOST_OF_SOCKETS_FOLDER = 103 - len("/.00000000-0000-0000-0000-000000000000.sock")
_JAVA_OPTIONS = " ".join(
    [
        # The decoder calls itself for each level of a recursive type.
        "-Xss8m",
        # Avro's fast reader keeps each schema that it ever met, and Spark parses the schemas anew
        # in each batch.
        "-Dorg.apache.avro.fastread=false",
        # What RocksDB has given back stays with the C library: a gigabyte with much state. Java
        # before 17.0.9 does not know the option.
        "-XX:+IgnoreUnrecognizedVMOptions",
        "-XX:TrimNativeHeapInterval=10000",
        # Spark's planner is large and runs a few times a second: compiling it as eagerly as what
        # runs for each record takes a tenth of the processor for many minutes.
        "-XX:CompileThresholdScaling=4",
        # With ten rules Spark's generated method has 8,000 bytes, above which Java interprets it.
        "-XX:-DontCompileHugeMethods",
        *(f"-Dorg.apache.avro.limits.{name}={most}" for name, most in _AVRO_LIMITS.items()),
    ]
)

#: For throughput: G1 gives each fetch of the Kafka client regions of its own and goes through the
#: heap again and again.
_COLLECTOR = "-XX:+UseParallelGC"
_A_COLLECTOR = re.compile(r"-XX:\+Use\w+GC\b")
_JAVA_OPTIONS_OF_USERS = ("SPARK_SUBMIT_OPTS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS")


def spark_session(settings: Settings, scratch: Path | None = None) -> SparkSession:
    """Start Spark, with temporary files of the driver's JVM in ``scratch`` if one is given. The
    user's ``spark.conf`` wins over everything set here.

    Executors that are processes of their own have the interpreter and this package at the same
    paths as here, and Java; jars and whatever else they need is sent to them.
    """
    # Otherwise some workers start with the system's Python, which lacks our packages.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # The pinned Spark, not one that happens to be installed.
    os.environ["SPARK_HOME"] = str(_spark_home(settings.spark.master, scratch))
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    # Nothing here is for it, and each process that loads NumPy lets its threads spin for a while.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    jars = connector_jars(settings.spark.jars_folder)
    state = settings.state
    hidden = [name for name, v in settings.spark.conf.items() if isinstance(v, SecretStr)]
    log4j = f"-Dlog4j2.configurationFile=file:{files('service.pipeline') / 'log4j2.properties'}"
    temporary = "" if scratch is None else f' "-Djava.io.tmpdir={scratch}"'
    # Pods have the image's own jars.
    sent = "local:" if on_kubernetes(settings.spark.master) else ""
    conf = {
        "spark.jars": ",".join(f"{sent}{jar}" for jar in jars),
        "spark.driver.defaultJavaOptions": f"{_JAVA_OPTIONS}{temporary}",
        "spark.executor.defaultJavaOptions": f"{_JAVA_OPTIONS} {log4j}",
        "spark.driver.extraJavaOptions": log4j,
        # Lines say which query and batch they are of.
        "spark.log.structuredLogging.enabled": "true",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Spark keeps what a UI would show, also without one: plans of a thousand batches, as text.
        "spark.sql.ui.retainedExecutions": "20",
        "spark.ui.retainedJobs": "50",
        "spark.ui.retainedStages": "100",
        "spark.ui.retainedTasks": "2000",
        # Otherwise files of a shuffle go only when a collection finds that nothing needs them.
        "spark.sql.classic.shuffleDependency.fileCleanup.enabled": "true",
        # And so does what Spark knows of past stages.
        "spark.cleaner.periodicGC.interval": "5min",
        "spark.redaction.regex": spark_redaction_regex(hidden),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.ansi.enabled": "false",
        "spark.sql.shuffle.partitions": str(state.state_partitions),
        "spark.sql.adaptive.enabled": "false",
        # By default Spark looks at the bytes of a batch after every row, and that takes longer than
        # making it. So few rows stay below a column's most, 1 GiB, also where each is a megabyte.
        "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
        "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
        "spark.sql.execution.pythonUDF.arrow.enabled": "true",
        "spark.python.daemon.module": "service.pipeline.worker_daemon",
        # Over TCP small answers of a worker wait 40 ms for an acknowledgement, in every task.
        "spark.python.unix.domain.socket.enabled": str(may_have_sockets(scratch)).lower(),
        # A larger plan becomes a broadcast, which the worker that starts the matcher cannot read.
        "spark.broadcast.UDFCompressionThreshold": "1g",
        "spark.sql.streaming.minBatchesToRetain": str(state.min_batches_to_retain),
        f"{_STATE_STORE}.providerClass": _ROCKSDB,
        f"{_STATE_STORE}.rocksdb.changelogCheckpointing.enabled": "true",
        f"{_STATE_STORE}.rocksdb.boundedMemoryUsage": "true",
        f"{_STATE_STORE}.rocksdb.maxMemoryUsageMB": str(max(1, state.rocksdb_memory >> 20)),
        f"{_STATE_STORE}.minDeltasForSnapshot": str(state.snapshot_after_batches),
        f"{_STATE_STORE}.maintenanceInterval": f"{state.maintenance_interval}ms",
    }
    if is_local(state.checkpoint):
        conf["spark.sql.streaming.checkpointFileManagerClass"] = _LOCAL_CHECKPOINTS
    conf |= settings.cluster_conf()
    conf |= {name: reveal(value) for name, value in settings.spark.conf.items()}
    conf |= {"spark.master": settings.spark.master, "spark.app.name": settings.spark.app_name}
    conf |= collectors(conf, os.environ)
    builder = SparkSession.builder
    for name, text in conf.items():
        builder = builder.config(name, text)
    try:
        _start_jvm({name: text for name, text in conf.items() if name not in hidden})
        session = builder.getOrCreate()
    except Exception as error:  # noqa: BLE001  Spark raises all kinds
        said = without(str(error), (conf[name] for name in hidden))
        raise StartError(
            f"Spark cannot start with spark.master {settings.spark.master!r}: {said}"
        ) from None
    session.sparkContext.setLogLevel("WARN")
    # State is also read and moved where no query runs: this starts Spark's coordinator of it.
    session.streams.resetTerminated()
    return session


def collectors(conf: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """The Java options of ``conf``, with a garbage collector where the user has chosen none: Java
    does not start with two."""
    chosen = {
        "driver": [environment.get(name, "") for name in _JAVA_OPTIONS_OF_USERS],
        "executor": [],
    }
    found = {}
    for process, options in chosen.items():
        default = conf[f"spark.{process}.defaultJavaOptions"]
        extra = conf.get(f"spark.{process}.extraJavaOptions", "")
        if not any(_A_COLLECTOR.search(each) for each in (default, extra, *options)):
            found[f"spark.{process}.defaultJavaOptions"] = f"{default} {_COLLECTOR}"
    return found


def _spark_home(master: str, scratch: Path | None) -> Path:
    """The pinned Spark; where nobody but this machine asks for it, a view of it in ``scratch``, or
    in a folder for temporary files, that lacks the archive of PySpark.

    Spark lets its Python processes import the archive before anything else, and what is imported
    from an archive is compiled anew in each of them: 0.8 s, twice in each start of a query.
    """
    home = Path(pyspark.__file__).parent
    if not master.startswith("local"):
        return home
    if scratch is None:
        scratch = Path(tempfile.mkdtemp(prefix="spark-cep-home-"))
        atexit.register(shutil.rmtree, scratch, ignore_errors=True)
    view = scratch / "spark"
    view.mkdir()
    for name in ("bin", "jars"):
        (view / name).symlink_to(home / name)
    return view


def may_have_sockets(scratch: Path | None) -> bool:
    """Whether Unix domain sockets can have a path in the JVM's folder for temporary files."""
    folder = tempfile.gettempdir() if scratch is None else scratch
    return len(os.fsencode(folder)) <= _MOST_OF_SOCKETS_FOLDER


def _start_jvm(conf: Mapping[str, str]) -> None:
    """Start the JVM, whose arguments everybody on the machine can read, with ``conf`` alone.

    By itself Spark would start it with all settings; what is missing here is given to the running
    JVM.
    """
    given = SparkConf(loadDefaults=False).setAll(list(conf.items()))
    gateway = None
    if SparkContext._gateway is None:  # noqa: SLF001
        with taken_in() as output:
            gateway = launch_gateway(  # type: ignore[no-untyped-call]
                given, {"stdout": output, "stderr": output}
            )
    # The only way to a session that shares the JVM; the version of PySpark is pinned.
    SparkContext._ensure_initialized(gateway=gateway, conf=given)  # noqa: SLF001


def connector_jars(folder: Path | None) -> list[Path]:
    """The pinned connector jars: from ``folder``, or fetched once into the user's cache."""
    if folder is not None:
        return resolve("spark", folder)
    cache = Path.home() / ".cache" / "spark-cep" / "jars"
    try:
        return resolve("spark", cache)
    except DependencyError:
        return fetch(["spark"], cache)
