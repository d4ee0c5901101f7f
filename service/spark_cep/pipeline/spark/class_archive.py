"""An archive of the classes that Spark's JVM loads at each start, made once, at set-up.

Without it the JVM reads, checks and links some 15,000 classes from 280 jars, half of the
processor time of a start. It stands in a folder with the view of Spark (:func:`view_of_spark`)
whose path is in it. The JVM compares paths, sizes and times of the jars and its own version with
those of the archive, and starts without one that does not fit.

``python -m spark_cep.pipeline.spark.class_archive --into FOLDER`` makes it.
"""

from __future__ import annotations

import os
import shlex
import shutil
import tempfile
from pathlib import Path
from typing import Annotated

import pyspark
import typer

from spark_cep.config import Settings
from spark_cep.errors import StartError

_ARCHIVE, _VIEW = "classes.jsa", "spark"
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
#: Beginnings of the jars that come first. Spark reads the class file of each function that it sends
#: to tasks, some fifteen in a batch, and Java looks for it in one jar after the other.
_FIRST = ("spark-", "scala-library")
#: Hundreds of classes cannot be archived, generated ones above all.
_QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off"


def _home() -> Path:
    return Path(pyspark.__file__).parent


def archive(folder: Path | None) -> Path | None:
    """The archive in a folder, if there is one."""
    file = None if folder is None else folder.absolute() / _ARCHIVE
    return file if file is not None and file.is_file() else None


def spark_jars() -> list[Path]:
    """The jars of the installed Spark that a job in one process can use, in an order that does not
    depend on the file system: first those in which Spark looks for a class again in each batch."""
    jars = (_home() / "jars").glob("*.jar")
    used = (jar for jar in jars if not jar.name.startswith(_LEFT_OUT))
    return sorted(used, key=lambda jar: (not jar.name.startswith(_FIRST), jar.name))


def view_of_spark(folder: Path | None, scratch: Path) -> Path:
    """The installed Spark as ``SPARK_HOME``: in ``folder`` where an archive was made with it, else
    in ``scratch``. It has no more than starts a JVM, whose class path is given in full: the order
    of a folder differs between file systems, and an archive fits one order.

    It also lacks the archive of PySpark. Spark lets its Python processes import that before
    anything else, and what is imported from an archive is compiled again in each of them: 0.8 s,
    twice in each start of a query.
    """
    kept = None if folder is None else folder.absolute() / _VIEW
    if kept is not None and (kept / "bin").resolve() == (_home() / "bin").resolve():
        return kept
    return _view(scratch / _VIEW)


def _view(at: Path) -> Path:
    home = _home()
    (at / "jars").mkdir(parents=True)
    (at / "bin").symlink_to(home / "bin")
    for jar in (home / "jars").glob("spark-launcher_*.jar"):
        (at / "jars" / jar.name).symlink_to(jar)
    return at


def make(folder: Path) -> Path:
    """Make the archive in a folder; replaces an earlier one. StartError when the JVM wrote none."""
    # The session is what a job has.
    from spark_cep.pipeline.spark.jvm import end_jvm
    from spark_cep.pipeline.spark.rehearsal import rehearse
    from spark_cep.pipeline.spark.session import spark_session

    folder = folder.absolute()
    (folder / _ARCHIVE).unlink(missing_ok=True)
    shutil.rmtree(folder / _VIEW, ignore_errors=True)
    _view(folder / _VIEW)
    fresh = folder / f"{_ARCHIVE}.new"
    with tempfile.TemporaryDirectory(prefix="spark-cep-") as scratch:
        settings = _settings(folder, Path(scratch))
        os.environ["SPARK_SUBMIT_OPTS"] = (
            f"{shlex.quote(f'-XX:ArchiveClassesAtExit={fresh}')} {_QUIET}"
        )
        spark = spark_session(settings, Path(scratch))
        rehearse(spark, Path(scratch))
        spark.stop()
        end_jvm(seconds=300)
    if not fresh.is_file():
        raise StartError(f"{folder}: Java wrote no archive of classes")
    return fresh.rename(folder / _ARCHIVE)


def _settings(folder: Path, scratch: Path) -> Settings:
    return Settings.model_validate(
        {
            "kafka": {"bootstrap_servers": "localhost:9092"},
            "inputs": {"none": {"topics": ["none"]}},
            "registry": {"url": "http://localhost"},
            "state": {"checkpoint": str(scratch / "checkpoint"), "state_partitions": 2},
            "spark": {
                "master": "local[2]",
                "classes_folder": str(folder),
                "conf": {
                    "spark.sql.warehouse.dir": str(scratch / "warehouse"),
                },
            },
        }
    )


def main(
    folder: Annotated[Path, typer.Option("--into", help="The folder that the job is told of.")],
) -> None:
    """Make the archive of classes."""
    file = make(folder)
    typer.echo(f"{file}: {file.stat().st_size >> 20} MiB")


if __name__ == "__main__":
    typer.run(main)
