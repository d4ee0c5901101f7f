"""An archive of the classes that Spark's JVM loads at each start, made once, at set-up.

Without it the JVM reads, checks and links some 15,000 classes from 280 jars, half of the
processor time of a start. It stands below the folder of the connector jars, with the view of Spark
(:func:`view_of_spark`) whose path is in it. The JVM compares paths, sizes and times of the jars and
its own version with those of the archive, and starts without one that does not fit.

``python -m service.pipeline.spark.class_archive --jars FOLDER`` makes it.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import pyspark
import typer
from pyspark.sql import SparkSession

from service.config import Settings
from service.errors import StartError

_FOLDER, _ARCHIVE, _VIEW = "start", "classes.jsa", "spark"
#: What of the connectors a job uses; only names of classes, nothing of them is run.
_OF_CONNECTORS = (
    "org/apache/spark/sql/kafka010/",
    "org/apache/kafka/clients/consumer/",
    "org/apache/kafka/clients/admin/",
    "org/apache/kafka/clients/",
    "org/apache/kafka/common/",
)
#: Beginnings of Spark's jars that a job in one process cannot use: Java looks through every jar for
#: each resource that it does not find, and MLlib registers functions with each session, half a
#: second of a start. By rows: machine learning, Hive, cluster managers, Connect and the shells.
_LEFT_OUT = (
    "spark-mllib", "spark-graphx", "breeze", "spire", "algebra_", "cats-kernel", "arpack", "blas",
    "lapack", "JTransforms", "JLargeArrays",
    "spark-hive", "hive-", "datanucleus", "derby", "jdo-api", "javax.jdo", "HikariCP", "libthrift",
    "libfb303",
    "spark-kubernetes", "kubernetes-", "volcano-", "vertx-", "zjsonpatch", "spark-yarn",
    "spark-connect", "spark-pipelines", "spark-repl", "scala-compiler", "jline",
)  # fmt: skip
#: Hundreds of classes cannot be archived, generated ones above all.
_QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off"


def archive(jars: Path) -> Path | None:
    """The archive below the folder of jars, if there is one."""
    file = jars / _FOLDER / _ARCHIVE
    return file if file.is_file() else None


def spark_jars() -> list[Path]:
    """The jars of the pinned Spark that a job in one process can use, in an order that does not
    depend on the file system."""
    jars = (Path(pyspark.__file__).parent / "jars").glob("*.jar")
    return sorted(jar for jar in jars if not jar.name.startswith(_LEFT_OUT))


def view_of_spark(jars: Path, scratch: Path) -> Path:
    """The pinned Spark as ``SPARK_HOME``: below ``jars`` where an archive was made, else in
    ``scratch``. It has no more than starts a JVM, whose class path is given in full: the order of a
    folder differs between file systems, and an archive fits one order.

    It also lacks the archive of PySpark. Spark lets its Python processes import that before
    anything else, and what is imported from an archive is compiled again in each of them: 0.8 s,
    twice in each start of a query.
    """
    kept = jars / _FOLDER / _VIEW
    return kept if kept.is_dir() else _view(scratch / _VIEW)


def _view(at: Path) -> Path:
    home = Path(pyspark.__file__).parent
    (at / "jars").mkdir(parents=True)
    (at / "bin").symlink_to(home / "bin")
    for jar in (home / "jars").glob("spark-launcher_*.jar"):
        (at / "jars" / jar.name).symlink_to(jar)
    return at


def make(jars: Path) -> Path:
    """Make the archive for the jars of this folder; replaces an earlier one. StartError when the
    JVM wrote none."""
    # The session is what a job has.
    from service.pipeline.spark.jars import resolve
    from service.pipeline.spark.jvm import end_jvm
    from service.pipeline.spark.rehearsal import rehearse
    from service.pipeline.spark.session import spark_session

    folder = jars.absolute() / _FOLDER
    shutil.rmtree(folder, ignore_errors=True)
    _view(folder / _VIEW)
    fresh = folder / f"{_ARCHIVE}.new"
    with tempfile.TemporaryDirectory(prefix="spark-cep-") as scratch:
        settings = _settings(jars.absolute(), Path(scratch))
        os.environ["SPARK_SUBMIT_OPTS"] = f"-XX:ArchiveClassesAtExit={fresh} {_QUIET}"
        spark = spark_session(settings, Path(scratch))
        rehearse(spark, Path(scratch))
        _load(spark, _names(resolve("spark", jars.absolute())))
        spark.stop()
        end_jvm(seconds=300)
    if not fresh.is_file():
        raise StartError(f"{folder}: Java wrote no archive of classes")
    return fresh.rename(folder / _ARCHIVE)


def _settings(jars: Path, scratch: Path) -> Settings:
    return Settings.model_validate(
        {
            "kafka": {"bootstrap_servers": "localhost:9092"},
            "inputs": {"none": {"topics": ["none"]}},
            "registry": {"url": "http://localhost"},
            "state": {"checkpoint": str(scratch / "checkpoint"), "state_partitions": 2},
            "spark": {
                "master": "local[2]",
                "jars_folder": str(jars),
                "conf": {
                    "spark.sql.warehouse.dir": str(scratch / "warehouse"),
                },
            },
        }
    )


def _names(connectors: Iterable[Path]) -> Iterator[str]:
    for jar in connectors:
        with zipfile.ZipFile(jar) as entries:
            for name in entries.namelist():
                if name.startswith(_OF_CONNECTORS) and name.endswith(".class"):
                    yield name.removesuffix(".class").replace("/", ".")


def _load(spark: SparkSession, names: Iterable[str]) -> None:
    jvm: Any = spark._jvm  # noqa: SLF001  nothing public loads a class
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    for name in names:
        try:
            jvm.java.lang.Class.forName(name, False, loader)
        except Exception:  # noqa: BLE001, S112  of an optional dependency
            continue


def main(
    jars: Annotated[Path, typer.Option("--jars", help="The folder of the connector jars.")],
) -> None:
    """Make the archive of classes."""
    file = make(jars)
    typer.echo(f"{file}: {file.stat().st_size >> 20} MiB")


if __name__ == "__main__":
    typer.run(main)
