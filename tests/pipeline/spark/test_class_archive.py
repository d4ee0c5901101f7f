"""The driver's class path, and the archive of classes that fits it or is ignored."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pyspark
import pytest

from spark_cep.pipeline.spark.class_archive import archive, spark_jars, view_of_spark
from spark_cep.pipeline.spark.session import class_path
from supply_chain.java import find_java

_OPTIONS = "spark.driver.defaultJavaOptions"
_PATH = "spark.driver.extraClassPath"


@pytest.mark.java
def test_an_archive_that_is_damaged_is_ignored(tmp_path: Path) -> None:
    """Java starts, and says nothing of it."""
    (tmp_path / "classes.jsa").write_bytes(b"no archive" * 1000)
    options = class_path({_OPTIONS: "-Xss8m"}, [], archive(tmp_path))[_OPTIONS].split()
    assert any(option.endswith("classes.jsa") for option in options)
    plain = subprocess.run([find_java(), "-version"], capture_output=True, check=True)
    told = subprocess.run([find_java(), *options, "-version"], capture_output=True, check=True)
    # Java shares no classes then, not even its own.
    assert (told.stdout, told.stderr) == (b"", plain.stderr.replace(b", sharing", b""))


def test_without_an_archive_java_is_told_of_none(tmp_path: Path) -> None:
    """Options stay as they were."""
    assert _OPTIONS not in class_path({_OPTIONS: "-Xss8m"}, [], archive(tmp_path))


def test_the_class_path_is_given_in_full_and_in_order() -> None:
    """What the user has of it comes first; then Spark's jars, by name, and before them those in
    which Spark looks for classes in each batch."""
    jars = spark_jars()
    found = class_path({_PATH: "/own.jar"}, jars, None)[_PATH].split(os.pathsep)
    assert found == ["/own.jar", *map(str, jars)]
    first = [jar for jar in jars if jar.name.startswith(("spark-", "scala-library"))]
    assert jars == [*sorted(first), *sorted(set(jars) - set(first))]
    assert {"scala-library-2", "spark-core_2"} < {jar.name.partition(".")[0] for jar in first}
    names = [jar.name.rpartition("-")[0] for jar in jars]
    assert {"spark-sql_2.13", "hadoop-client-runtime", "rocksdbjni"} < set(names)
    assert not [name for name in names if name.startswith(("spark-mllib", "hive-", "kubernetes-"))]


def test_the_view_of_spark_is_kept_where_an_archive_was_made(tmp_path: Path) -> None:
    """Its path is part of what an archive fits; elsewhere it goes with the scratch folder."""
    kept = tmp_path / "classes" / "spark"
    view = view_of_spark(tmp_path / "classes", tmp_path / "scratch")
    assert view == tmp_path / "scratch" / "spark"
    assert (view / "bin" / "spark-submit").is_file()
    assert [jar.name.startswith("spark-launcher_") for jar in (view / "jars").iterdir()] == [True]
    kept.mkdir(parents=True)
    (kept / "bin").symlink_to(Path(pyspark.__file__).parent / "bin")
    assert view_of_spark(tmp_path / "classes", tmp_path / "scratch") == kept


def test_the_view_of_another_spark_is_not_used(tmp_path: Path) -> None:
    """Another version's launcher would start the pinned jars."""
    kept = tmp_path / "classes" / "spark"
    kept.mkdir(parents=True)
    (kept / "bin").symlink_to(tmp_path)
    assert view_of_spark(tmp_path / "classes", tmp_path / "scratch") == tmp_path / "scratch/spark"
