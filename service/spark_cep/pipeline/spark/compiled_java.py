"""Classes of this package in Java, compiled by Janino, with which Spark compiles what it
generates."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any


@cache
def class_loader(java: Any, name: str) -> Any:
    """The loader of the class ``name`` of this folder, in a JVM whose classes ``java`` gives by
    name. There is one: py4j holds methods by the names of their classes."""
    compiler = java.org.codehaus.janino.SimpleCompiler()
    compiler.cook((files("spark_cep.pipeline.spark") / f"{name}.java").read_text("utf-8"))
    return compiler.getClassLoader()


def new_object(java: Any, name: str) -> Any:
    """An object of such a class."""
    return class_loader(java, name).loadClass(f"spark_cep.{name}").newInstance()
