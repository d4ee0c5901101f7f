"""Classes of this package in Java, compiled by Janino, with which Spark compiles what it
generates."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from pyspark import SparkContext, SparkFiles

from spark_cep.pipeline.spark.private_api import java_context, jvm


def class_loader(java: Any, name: str) -> Any:
    """The loader of the class ``name`` of this folder, in a JVM whose classes ``java`` gives by
    name. There is one: py4j holds methods by the names of their classes."""
    return _compiled(java, name).getClassLoader()


def new_object(java: Any, name: str) -> Any:
    """An object of such a class."""
    return class_loader(java, name).loadClass(f"spark_cep.{name}").newInstance()


def send_to_executors(context: SparkContext, name: str) -> None:
    """Let executors that are processes have the class ``name`` and those in its file."""
    java, jar = java_context(context), Path(SparkFiles.getRootDirectory(), f"spark-cep-{name}.jar")
    # There is a jar where an earlier query of the context has sent it.
    if java.isLocal() or jar.exists():
        return
    with ZipFile(jar, "w") as packed:
        for each, code in _compiled(jvm(context), name).getBytecodes().items():
            packed.writestr(f"{each.replace('.', '/')}.class", code)
    java.addJar(str(jar))


@cache
def _compiled(java: Any, name: str) -> Any:
    compiler = java.org.codehaus.janino.SimpleCompiler()
    compiler.cook((files("spark_cep.pipeline.spark") / f"{name}.java").read_text("utf-8"))
    return compiler
