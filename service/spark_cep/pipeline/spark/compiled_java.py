"""Classes of this package in Java, compiled by Janino, with which Spark compiles what it
generates."""

from __future__ import annotations

from importlib.resources import files
from typing import Any


def class_loader(java: Any, name: str) -> Any:
    """The loader of the class ``name`` of this folder, in a JVM whose classes ``java`` gives by
    name."""
    compiler = java.org.codehaus.janino.SimpleCompiler()
    compiler.cook((files("spark_cep.pipeline.spark") / f"{name}.java").read_text("utf-8"))
    return compiler.getClassLoader()
