"""The archive of classes that ``spark-cep prepare`` makes is used by sessions told of none."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from spark_cep.pipeline.spark import prepared_classes as classes
from spark_cep.pipeline.spark import session
from spark_cep.pipeline.spark.class_archive import _settings, spark_jars

_OPTIONS = "spark.driver.defaultJavaOptions"


@pytest.fixture
def java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A file that stands for Java; archives are below ``cache``."""
    file = tmp_path / "java"
    file.write_bytes(b"17")
    for check in ("check_java", "check_version"):
        monkeypatch.setattr(classes, check, lambda: file)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    return file


def _archived() -> Path:
    """The folder of an archive, which has been made now."""
    (folder,) = classes._places()
    folder.mkdir(parents=True)
    (folder / "classes.jsa").write_bytes(b"classes")
    (folder / "made-of.txt").write_text(classes._made_of(), "utf-8")
    return folder


@pytest.mark.usefixtures("java")
def test_an_archive_is_found_while_it_fits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It fits these jars in this order."""
    assert classes.prepared_classes() is None
    folder = _archived()
    assert folder.parent == tmp_path / "cache"
    assert pyspark.__version__ in folder.name
    assert classes.prepared_classes() == folder
    jars = spark_jars()
    monkeypatch.setattr(classes, "spark_jars", lambda: jars[1:])
    assert classes.prepared_classes() is None


def test_an_archive_of_another_java_is_passed_over(
    java: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So is any where there is none."""
    folder = _archived()
    java.write_bytes(b"java 21")
    assert classes.prepared_classes() is None
    java.write_bytes(b"17")
    (folder / "made-of.txt").write_text(classes._made_of(), "utf-8")
    assert classes.prepared_classes() == folder
    monkeypatch.undo()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(folder.parent))
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    assert classes.prepared_classes() is None


@pytest.mark.usefixtures("java")
def test_an_archive_that_others_can_write_is_passed_over() -> None:
    """What is in it is run."""
    folder = _archived()
    folder.chmod(0o777)
    assert classes.prepared_classes() is None


def test_its_places_are_those_of_compiled_code(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Beside the module, else the user's cache folder; each name tells Spark and its place."""
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    beside, of_user = classes._places()
    assert beside.parent == Path(classes.__file__).parent / "__pycache__"
    assert of_user == tmp_path / "spark-cep" / beside.name
    monkeypatch.setattr(pyspark, "__file__", "/another/pyspark/__init__.py")
    assert classes._places()[0].name != beside.name


@pytest.mark.parametrize(
    ("master", "told", "used"),
    [
        ("local[2]", None, "a prepared"),
        ("local[2]", "own", "own"),
        ("spark://host:7077", None, None),
    ],
)
def test_a_session_starts_with_it(
    master: str,
    told: str | None,
    used: str | None,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """Unless the setting names a folder, or executors are processes of their own."""
    for name in ("a prepared", "own"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "classes.jsa").write_bytes(b"")
    monkeypatch.setattr(session, "prepared_classes", lambda: tmp_path / "a prepared")
    monkeypatch.setattr(os, "environ", dict(os.environ))
    settings = _settings(tmp_path, tmp_path)
    spark = {"master": master, "classes_folder": None if told is None else tmp_path / told}
    settings = settings.model_copy(update={"spark": settings.spark.model_copy(update=spark)})
    options = session._conf(settings, tmp_path / "scratch")[_OPTIONS]
    expected = set() if used is None else {f"-XX:SharedArchiveFile={tmp_path / used}/classes.jsa"}
    assert {word for word in shlex.split(options) if "SharedArchive" in word} == expected


_STARTS = """
import sys
from pathlib import Path
from spark_cep.pipeline.spark.class_archive import _settings
from spark_cep.pipeline.spark.session import spark_session
settings = _settings(Path(), Path(sys.argv[1]))
settings = settings.model_copy(
    update={"spark": settings.spark.model_copy(update={"classes_folder": None})}
)
spark = spark_session(settings, Path(sys.argv[1]))
pid = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()
print(Path(f"/proc/{pid}/maps").read_text())
"""


@pytest.mark.spark
@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs Linux's /proc")
def test_what_is_made_is_mapped_by_the_next_java(tmp_path: Path) -> None:
    """Set-up has made it, by `spark-cep prepare`."""
    made = classes.prepared_classes()
    assert made is not None
    ran = subprocess.run(
        [sys.executable, "-c", _STARTS, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert f"{made}/classes.jsa" in ran.stdout, ran.stderr
