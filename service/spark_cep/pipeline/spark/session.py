"""The Spark session: what the job needs of Spark, and the user's own settings on top."""

from __future__ import annotations

import atexit
import os
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

import pyspark
from pydantic import SecretStr
from pyspark import SparkConf
from pyspark.sql import SparkSession

from spark_cep.config import Settings, reveal, spark_redaction_regex, without
from spark_cep.errors import StartError
from spark_cep.pipeline.spark.class_archive import archive, spark_jars, view_of_spark
from spark_cep.pipeline.spark.forking.fork_server import may_fork
from spark_cep.pipeline.spark.jvm import LaunchedJvm
from spark_cep.pipeline.spark.local_file_system import use_local_files
from spark_cep.pipeline.spark.local_folder import local_folder
from spark_cep.pipeline.spark.prepared_classes import prepared_classes
from spark_cep.pipeline.spark.private_api import connect, gateway

_STATE_STORE = "spark.sql.streaming.stateStore"
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
# On a local disk the default manager starts a process at each rename.
_LOCAL_CHECKPOINTS = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)
_UMASK = "spark.hadoop.fs.permissions.umask-mode"
#: Bytes that the path of a socket may have, on every system, less those of Spark's file names.
_MOST_OF_SOCKETS_FOLDER = 103 - len("/.00000000-0000-0000-0000-000000000000.sock")
_JAVA_OPTIONS = " ".join(
    [
        # Spark looks at the text of a failure with a regular expression that recurses for each of
        # its characters.
        "-Xss8m",
        # What RocksDB has given back stays with the C library: a gigabyte with much state. Java
        # before 17.0.9 does not know the option.
        "-XX:+IgnoreUnrecognizedVMOptions",
        "-XX:TrimNativeHeapInterval=10000",
        # Spark's planner is large and runs a few times a second: compiling it as eagerly as what
        # runs for each record takes a tenth of the processor for many minutes.
        "-XX:CompileThresholdScaling=4",
        # What is left of a process in which a thread found no memory may hang.
        "-XX:+ExitOnOutOfMemoryError",
        # Else Java collects all garbage once in a start because of the classes that it has loaded.
        "-XX:MetaspaceSize=256m",
    ]
)

#: G1, which works beside the batches, makes a small one longer by two fifths.
_COLLECTOR = "-XX:+UseParallelGC"
#: What a start runs through and the batches do not (parsers, the compiler of generated code,
#: lambdas) is not worth the optimizing compiler: it took a third of a start's Java time.
_DIRECTIVES = (
    f'"-XX:CompilerDirectivesFile={files("spark_cep.pipeline.spark") / "compiler_directives.json"}"'
)
#: For a command that ends after a few small queries: nothing of them is worth the optimizing
#: compiler or code of its own, and Spark's classes were verified when the archive was made.
_SHORT_JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:-BytecodeVerificationRemote"
_SHORT_CONF = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # Nobody looks at plans and metrics of it.
    "spark.sql.ui.explainMode": "simple",
    "spark.metrics.staticSources.enabled": "false",
    "spark.metrics.executorMetricsSource.enabled": "false",
}
_A_COLLECTOR = re.compile(r"-XX:\+Use\w+GC\b")
_ARENAS, _MOST_ARENAS = "MALLOC_ARENA_MAX", "2"
_JAVA_OPTIONS_OF_USERS = ("SPARK_SUBMIT_OPTS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS")


class LaunchedSpark:
    """Spark, launched when this is made, with temporary files of the driver's JVM in ``scratch`` if
    one is given. The user's ``spark.conf`` wins over everything set here.

    Executors that are processes of their own have the interpreter and this package at the same
    paths as here, and Java; whatever else they need is sent to them. ``short``: for a few small
    queries, whose first answer counts.
    """

    def __init__(
        self, settings: Settings, scratch: Path | None = None, *, short: bool = False
    ) -> None:
        self._master, self._short = settings.spark.master, short
        self._conf = _conf(settings, scratch, short=short)
        self._hidden = _hidden(settings)
        # Everybody on the machine can read arguments; what is missing there the running JVM is
        # told.
        self._told = {name: text for name, text in self._conf.items() if name not in self._hidden}
        # A user's own interpreter is started as it is, and executors elsewhere have no server.
        own = os.environ["PYSPARK_PYTHON"] != sys.executable
        alone = in_one_process(self._master) and may_have_sockets(scratch) and may_fork()
        forks = scratch if alone and not own else None
        self._jvm: LaunchedJvm | None = None
        if gateway() is None:
            with self._failures():
                self._jvm = LaunchedJvm(self._told, forks)

    def fork(self) -> None:
        """Load what Spark's Python processes need, and fork the process that they are forked from;
        nothing where they come from elsewhere. This process has one thread."""
        if self._jvm is not None:
            self._jvm.fork()

    def session(self, connected: Callable[[Any], None] = lambda _: None) -> SparkSession:
        """The session, once it is there; ``connected`` is given Java's classes by name before, as
        soon as they can be reached. StartError when it does not come."""
        builder = SparkSession.builder
        for name, text in self._conf.items():
            builder = builder.config(name, text)
        with self._failures(), ThreadPoolExecutor(1) as beside:
            connection = None if self._jvm is None else self._jvm.gateway()
            local_files = None
            if connection is not None:
                connected(connection.jvm)
                if in_one_process(self._master) and not self._short:
                    umask = self._conf.get(_UMASK)
                    local_files = beside.submit(use_local_files, connection.jvm, umask)
            given = SparkConf(loadDefaults=False).setAll(list(self._told.items()))
            connect(connection, given)
            session = builder.getOrCreate()
            if local_files is not None:
                local_files.result()
        session.sparkContext.setLogLevel("WARN")
        # State is also read and moved where no query runs: this starts Spark's coordinator of it.
        session.streams.resetTerminated()
        return session

    @contextmanager
    def _failures(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # noqa: BLE001  Spark raises all kinds
            said = without(str(error), (self._conf[name] for name in self._hidden))
            raise StartError(
                f"Spark cannot start with spark.master {self._master!r}: {said}"
            ) from None


def spark_session(settings: Settings, scratch: Path | None = None) -> SparkSession:
    """Start Spark, as :class:`LaunchedSpark` does, and wait for it."""
    return LaunchedSpark(settings, scratch).session()


def _hidden(settings: Settings) -> list[str]:
    """Names of what the user's ``spark.conf`` has as secrets."""
    return [name for name, value in settings.spark.conf.items() if isinstance(value, SecretStr)]


def _conf(settings: Settings, scratch: Path | None, *, short: bool = False) -> dict[str, str]:
    """All of Spark's settings; makes the environment ready for its launch."""
    # Otherwise some workers start with the system's Python, which lacks our packages.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    # Nothing here is for it, and each process that loads NumPy lets its threads spin for a while.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # The C library keeps what threads have freed in as many arenas as there are threads and cores.
    os.environ.setdefault(_ARENAS, _MOST_ARENAS)
    alone = in_one_process(settings.spark.master)
    classes = settings.spark.classes_folder
    if classes is None and alone:
        classes = prepared_classes()
    # The Spark of this package, not one that happens to be installed on the machine.
    home = (
        view_of_spark(classes, scratch or _temporary()) if alone else Path(pyspark.__file__).parent
    )
    os.environ["SPARK_HOME"] = str(home)
    # What the launcher of the JVM compiles it throws away at once.
    os.environ.setdefault("SPARK_LAUNCHER_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    state = settings.state
    log_config = files("spark_cep.pipeline.spark") / "log4j2.properties"
    log4j = f"-Dlog4j2.configurationFile=file:{log_config}"
    temporary = "" if scratch is None else f' "-Djava.io.tmpdir={scratch}"'
    conf = {
        "spark.driver.memory": "1g",
        "spark.driver.defaultJavaOptions": (
            f"{_JAVA_OPTIONS} {_direct_memory(local_cores(settings.spark.master))}{temporary}"
            " -XX:+UnlockDiagnosticVMOptions"
            f" {_SHORT_JAVA_OPTIONS if short else _DIRECTIVES} {log4j}"
        ),
        "spark.executor.defaultJavaOptions": (
            f"{_JAVA_OPTIONS} {_direct_memory(settings.spark.executors.cores)} {log4j}"
        ),
        f"spark.executorEnv.{_ARENAS}": _MOST_ARENAS,
        # A pandas.py in the folder where an executor was started is not the library.
        "spark.executorEnv.PYTHONSAFEPATH": "1",
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
        "spark.redaction.regex": spark_redaction_regex(_hidden(settings)),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.ansi.enabled": "false",
        # The source waits itself when there is nothing to do.
        "spark.sql.streaming.pollingDelay": "1ms",
        "spark.sql.shuffle.partitions": str(state.state_partitions),
        "spark.sql.adaptive.enabled": "false",
        # What is on its way between Java and Python, in each direction of each task, is bounded by
        # rows, each of a few KiB: Spark's own bound in bytes is checked after each row, for a
        # tenth of the job's time.
        "spark.sql.execution.arrow.maxRecordsPerBatch": "2000",
        "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
        "spark.sql.execution.pythonUDF.arrow.enabled": "true",
        "spark.python.daemon.module": "spark_cep.pipeline.spark.forking.worker_daemon",
        # Spark sets it for some operators alone, and workers that differ in a variable come from
        # daemons of their own: 300 MiB, and a second at the start.
        "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
        # Over TCP small answers of a worker wait 40 ms for an acknowledgement, in every task.
        "spark.python.unix.domain.socket.enabled": str(may_have_sockets(scratch)).lower(),
        # A larger plan becomes a broadcast, which the worker that starts the matcher cannot read.
        "spark.broadcast.UDFCompressionThreshold": "1g",
        f"{_STATE_STORE}.providerClass": _ROCKSDB,
        f"{_STATE_STORE}.rocksdb.changelogCheckpointing.enabled": "true",
        f"{_STATE_STORE}.rocksdb.boundedMemoryUsage": "true",
        f"{_STATE_STORE}.rocksdb.maxMemoryUsageMB": str(max(1, state.rocksdb_memory >> 20)),
    }
    if short:
        conf |= _SHORT_CONF
    if alone:
        # Else Spark looks up the machine's name, which need not be known to anybody.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        # Nobody else has to reach it, and what it serves holds logins and events.
        conf |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.authenticate": "true",
        }
    if local_folder(str(state.checkpoint)) is not None:
        conf["spark.sql.streaming.checkpointFileManagerClass"] = _LOCAL_CHECKPOINTS
        if alone:
            # Nobody else writes or reads the checkpoint; executors may run as another user.
            conf[_UMASK] = "077"
    conf |= settings.cluster_conf()
    conf |= {name: reveal(value) for name, value in settings.spark.conf.items()}
    conf |= {"spark.master": settings.spark.master, "spark.app.name": settings.spark.app_name}
    if alone:
        conf |= class_path(conf, spark_jars(), archive(classes))
    return conf | collectors(conf, os.environ)


def local_cores(master: str) -> int:
    """Cores that a local master works with; 1 for another, whose driver runs no tasks."""
    if not master.startswith("local"):
        return 1
    given = master.removeprefix("local").strip("[]").partition(",")[0].strip()
    return int(given or 1) if given != "*" else os.cpu_count() or 1


def _direct_memory(cores: int) -> str:
    """A batch on its way in each direction of each stage is below 100 MiB a core, also where it
    holds a record of 5 MiB; less than 256 MiB are Netty's and Java's own."""
    return f"-XX:MaxDirectMemorySize={256 + 128 * cores}m"


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


def class_path(
    conf: Mapping[str, str], jars: Sequence[Path], archive: Path | None
) -> dict[str, str]:
    """The driver's whole class path, behind what ``conf`` has of it, and the archive of classes."""
    own = conf.get("spark.driver.extraClassPath")
    found = {
        "spark.driver.extraClassPath": os.pathsep.join([*([own] if own else []), *map(str, jars)])
    }
    if archive is not None:
        options = conf["spark.driver.defaultJavaOptions"]
        option = shlex.quote(f"-XX:SharedArchiveFile={archive}")
        # One that does not fit is of no interest to anybody.
        found["spark.driver.defaultJavaOptions"] = (
            f"{options} {option} -Xlog:cds=off -Xlog:cds+dynamic=off"
        )
    return found


def in_one_process(master: str) -> bool:
    """Return whether driver and executor are one JVM."""
    return master.partition("[")[0] == "local"


def _temporary() -> Path:
    """A folder that goes with this process."""
    folder = Path(tempfile.mkdtemp(prefix="spark-cep-home-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def may_have_sockets(scratch: Path | None) -> bool:
    """Return whether Unix domain sockets can have a path in the JVM's folder for temporary
    files."""
    folder = tempfile.gettempdir() if scratch is None else scratch
    return len(os.fsencode(folder)) <= _MOST_OF_SOCKETS_FOLDER
