"""Hadoop's local file system without a process for each file.

Without its native library Hadoop starts ``chmod`` for every file that it creates
(``RawLocalFileSystem.setPermission``): four times in each batch, and four times more for each state
partition. Java can set permissions itself.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Final

from pyspark.sql import SparkSession

from spark_cep.pipeline.spark.private_api import hadoop_conf, jvm

_SOURCE: Final = files("spark_cep.pipeline.spark") / "LocalFiles.java"
_CLASS: Final = "spark_cep.LocalFiles"


def use_local_files(spark: SparkSession) -> None:
    """Use the file system for all local files of this JVM from now on. Janino, with which Spark
    compiles what it generates, compiles its class."""
    java = jvm(spark)
    compiler = java.org.codehaus.janino.SimpleCompiler()
    compiler.cook(_SOURCE.read_text("utf-8"))
    conf = hadoop_conf(spark)
    conf.setClassLoader(compiler.getClassLoader())
    conf.set("fs.file.impl", _CLASS)
    # Hadoop keeps one for each scheme and user, the first that it is asked for.
    systems = java.org.apache.hadoop.fs.FileSystem
    systems.closeAll()
    systems.get(java.java.net.URI.create("file:///"), conf)
