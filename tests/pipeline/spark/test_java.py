"""The Java that Spark needs: what is said where there is none, or an old one."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_cep.errors import StartError
from spark_cep.pipeline.spark.java import check_java, check_version


def java(home: Path, says: str, release: str | None = None) -> Path:
    """A folder of a Java that says this of its version."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho '{says}' >&2\n", "utf-8")
    program.chmod(0o755)
    if release is not None:
        (home / "release").write_text(f'IMPLEMENTOR="x"\n{release}\n', "utf-8")
    return program


def test_no_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is needed, and where it is looked for."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(StartError, match="Java 17 or newer is needed, and none was found"):
        check_java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(StartError, match=rf"JAVA_HOME is {tmp_path}, and there is no bin/java"):
        check_java()


@pytest.mark.parametrize(
    ("release", "says"),
    [
        ('JAVA_VERSION="11.0.22"', 'openjdk version "11.0.22" 2024-01-16'),
        ('JAVA_VERSION="1.8.0_392"', 'java version "1.8.0_392"'),
    ],
)
def test_an_old_java(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, release: str, says: str
) -> None:
    """Told before it is started by the file beside it, or else by itself."""
    old = "8" if "1.8" in says else "11"
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "told"))
    java(tmp_path / "told", says, release)
    with pytest.raises(StartError, match=f"Java 17 or newer is needed; .*/java is Java {old}: set"):
        check_java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "silent"))
    program = java(tmp_path / "silent", says)
    assert check_java() == program
    with pytest.raises(StartError, match=f"is Java {old}"):
        check_version()


@pytest.mark.parametrize("version", ["17.0.9", "21", "26-ea"])
def test_a_java_that_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    """Nothing is said."""
    program = java(tmp_path, f'openjdk version "{version}"', f'JAVA_VERSION="{version}"')
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(program.parent), prepend=":")
    check_java()
    check_version()
