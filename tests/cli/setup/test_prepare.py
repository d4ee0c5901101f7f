"""``spark-cep prepare``: code first, then the archive of Java classes, which nobody has to have."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from spark_cep.cli.main import app
from spark_cep.errors import StartError
from spark_cep.pipeline import compiled_code
from spark_cep.pipeline.spark import prepared_classes as classes

_SETTING = "SPARK_CEP__SPARK__CLASSES_FOLDER"


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is made, by name; nothing is."""
    found: list[str] = []
    monkeypatch.delenv(_SETTING, raising=False)
    monkeypatch.setattr(compiled_code, "prepare", lambda: found.append("code"))
    monkeypatch.setattr(classes, "make_archive", lambda: found.append("archive"))
    monkeypatch.setattr(classes, "prepared_classes", lambda: None)
    return found


def _prepare(*words: str) -> Result:
    return CliRunner().invoke(app, ["prepare", *words])


def test_both_are_made(made: list[str]) -> None:
    """The code first, which commands without Java need, too."""
    ran = _prepare()
    assert (ran.exit_code, made) == (0, ["code", "archive"]), ran.output
    assert "archived in 0 s" in ran.output


def test_an_archive_that_fits_is_not_made_again(
    made: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command says so."""
    monkeypatch.setattr(classes, "prepared_classes", lambda: Path("/there"))
    ran = _prepare()
    assert (ran.exit_code, made) == (0, ["code"])
    assert "the Java classes are archived already" in ran.output


def test_none_is_made_where_there_is_another(
    made: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the option, as in the image's build, and where the environment names a folder."""
    assert (_prepare("--code-only").exit_code, made) == (0, ["code"])
    monkeypatch.setenv(_SETTING, "/opt/spark-cep/classes")
    ran = _prepare()
    assert (ran.exit_code, made) == (0, ["code", "code"])
    assert f"{_SETTING} names the folder of one" in ran.output


def test_without_java_the_code_is_made_all_the_same(
    made: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A note says what is missing; the command has not failed."""

    def refuse() -> None:
        raise StartError("Java 17 or newer is needed, and none was found")

    monkeypatch.setattr(classes, "make_archive", refuse)
    ran = _prepare()
    assert (ran.exit_code, made) == (0, ["code"])
    assert "note: no archive of Java classes" in ran.output
    assert "Java 17 or newer is needed" in ran.output


def test_a_folder_that_cannot_be_written_is_a_note(
    made: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It says which one."""
    monkeypatch.undo()
    monkeypatch.setattr(compiled_code, "prepare", lambda: made.append("code"))
    monkeypatch.delenv(_SETTING, raising=False)
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "java").write_bytes(b"")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file"))
    for check in ("check_java", "check_version"):
        monkeypatch.setattr(classes, check, lambda: tmp_path / "java")
    ran = _prepare()
    assert (ran.exit_code, made) == (0, ["code"])
    assert "no folder for it can be written" in ran.output
    assert str(tmp_path / "file") in ran.output.replace("\n", "")
