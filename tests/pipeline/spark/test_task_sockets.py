"""Sockets of tasks that have ended, which Java would keep in mind until it ends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_cep.pipeline.spark.compiled_java import class_loader
from spark_cep.pipeline.spark.private_api import jvm
from spark_cep.pipeline.spark.rehearsal import rehearse

pytestmark = pytest.mark.spark


def _paths(java: Any) -> set[str]:
    """The files that Java will delete at its exit."""
    files = java.java.lang.Class.forName("java.io.DeleteOnExitHook").getDeclaredField("files")
    files.setAccessible(True)
    return {str(path) for path in files.get(None)}


def test_java_forgets_the_sockets_of_a_batch(spark: SparkSession, tmp_path: Path) -> None:
    """Each stateful task has one, and a job that runs for months must not keep their paths."""
    java = jvm(spark)
    rehearse(spark, tmp_path)
    # The read of the state, behind the last batch, asks a process for Python's sources.
    sockets = [path for path in _paths(java) if path.endswith(".sock")]
    assert len([path for path in sockets if not Path(path).exists()]) <= 1


def test_an_executor_forgets_what_is_deleted(spark: SparkSession, tmp_path: Path) -> None:
    """Its tasks give their rows, and what is there or is no socket is still deleted at the end."""
    java = jvm(spark)
    there, gone, no_socket = (str(tmp_path / name) for name in ("a.sock", "b.sock", "c"))
    Path(there).touch()
    for path in (there, gone, no_socket):
        java.java.io.File(path).deleteOnExit()
    made = {there, gone, no_socket}
    assert made <= _paths(java)
    forgetting = class_loader(java, "Batches").loadClass("spark_cep.Batches$SocketsForgotten")
    rows = java.java.util.ArrayList([1, 2]).iterator()
    assert forgetting.newInstance().call(rows).next() == 1
    assert made & _paths(java) == {there, no_socket}
