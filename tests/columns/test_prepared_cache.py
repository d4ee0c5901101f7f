"""Compiled code that was prepared beforehand is read where nothing can be written."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import pytest
from numba.core.caching import UserProvidedCacheLocator

from spark_cep.columns.compilation import open_to_others
from spark_cep.columns.prepared_cache import PreparedCache
from spark_cep.errors import StartError
from spark_cep.pipeline import compiled_code
from spark_cep.pipeline.compiled_code import prepare
from tests.columns.python_process import told_by

ROOT = Path(__file__).parents[2]
Locate = Callable[[type[UserProvidedCacheLocator]], Any]


def _function() -> int:
    return 1


@pytest.fixture
def locate(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Locate:
    """What a kind of locator finds for a function; nothing can be written."""

    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(numba.core.config, "CACHE_DIR", str(tmp_path / "kernel"))
    (tmp_path / "kernel").mkdir()
    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    return lambda kind: kind.from_function(_function, __file__)


def test_a_folder_that_is_there_is_used(locate: Locate) -> None:
    """Numba's own locator passes over it."""
    path = Path(UserProvidedCacheLocator(_function, __file__).get_cache_path())
    path.mkdir()
    assert locate(UserProvidedCacheLocator) is None
    assert Path(locate(PreparedCache).get_cache_path()) == path


def test_a_folder_that_is_missing_is_not(locate: Locate) -> None:
    """There is nothing to read in it, and nothing to keep."""
    assert locate(PreparedCache) is None


def test_the_kernel_can_be_kept_so(tmp_path: Path) -> None:
    """The variables that the image sets reach the kernel when it is imported."""
    code = (
        "from spark_cep.matcher.steps.loops import kernel;"
        "print(type(kernel.run._cache._impl.locator).__name__, kernel.run._cache.cache_path)"
    )
    told = told_by(
        code,
        ROOT,
        NUMBA_CACHE_DIR=str(tmp_path),
        NUMBA_CACHE_LOCATOR_CLASSES=f"{PreparedCache.__module__}.{PreparedCache.__name__}",
        NUMBA_CPU_NAME="generic",
    )
    kind, path = told.split()
    assert kind == "PreparedCache"
    assert Path(path).is_relative_to(tmp_path)


@pytest.mark.parametrize("mode", [0o777, 0o775])
def test_a_folder_that_others_can_write(tmp_path: Path, mode: int) -> None:
    """Nothing in it is loaded, and the service does not start with it."""

    def run(code: str) -> str:
        return told_by(code, ROOT, NUMBA_CACHE_DIR=str(tmp_path))

    look = "from spark_cep.matcher.steps.loops import kernel; cache = kernel.run._cache;"
    folder = Path(run(f"{look} print(cache.cache_path)").strip())
    folder.chmod(mode)
    assert run(f"{look} print(cache.cache_path)").strip() == "None"
    told = run(
        "from spark_cep.pipeline.compiled_code import prepare\n"
        "from spark_cep.errors import StartError\n"
        "try: prepare()\n"
        "except StartError as error: print(error)"
    )
    assert f"the folder of compiled code {folder} can be written by other users" in told


def test_files_of_another_user(tmp_path: Path) -> None:
    """They are code that somebody else wrote; those of the administrator are trusted."""
    (tmp_path / "kernel.nbi").touch()
    assert not open_to_others.__wrapped__(tmp_path)
    if os.geteuid() != 0:
        pytest.skip("a file of another user needs the administrator's rights")
    os.chown(tmp_path / "kernel.nbi", 12345, -1)
    assert open_to_others.__wrapped__(tmp_path)


def test_code_that_cannot_be_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache for another processor or version is told from a defect."""

    def fail() -> None:
        raise OSError(errno.EROFS, "Read-only file system", "/opt/kernel")

    monkeypatch.setattr(compiled_code, "_HALVES", ((fail,),))
    with pytest.raises(StartError, match=r"NUMBA_CACHE_DIR.*Read-only file system: '/opt/kernel'"):
        prepare()


def test_code_for_which_there_is_no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other processes could not hand it over: it is compiled here."""
    loaded: list[Any] = []

    def compile_and_load() -> None:
        if not loaded:
            loaded.append(numba.njit(lambda x: x + 1))
        assert loaded[0](1) == 2

    monkeypatch.setattr(compiled_code, "_HALVES", ((compile_and_load,),))
    monkeypatch.setattr(compiled_code, "NOT_KEPT", {"run"})
    monkeypatch.setattr(compiled_code, "_compile", pytest.fail)
    prepare()
    assert loaded


def test_types_that_have_another_name_now(tmp_path: Path) -> None:
    """What another version compiled for them is compiled again."""
    source = (
        "from typing import NamedTuple\n"
        "from spark_cep.columns.compilation import compiled\n"
        "class {0}(NamedTuple):\n"
        "    number: int\n"
        "@compiled\n"
        "def number(given):\n"
        "    return given.number\n"
        "def answer():\n"
        "    return number({0}(42)), number.stats.cache_hits.total()\n"
    )

    def run() -> str:
        return told_by(
            "import versions; print(versions.answer())",
            tmp_path,
            PYTHONPATH=os.pathsep.join([str(tmp_path), str(ROOT / "service")]),
            PYTHONDONTWRITEBYTECODE="1",
        ).strip()

    for name in ("Before", "After"):
        (tmp_path / "versions.py").write_text(source.format(name), "utf-8")
        assert [run(), run()] == ["(42, 0)", "(42, 1)"]
