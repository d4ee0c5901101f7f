"""Files of the wheel and of the sdist."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tests.wheel.installed import built_sdist, built_wheel, contents, copied, tracked

pytestmark = pytest.mark.wheel


def test_it_is_whole(wheel: Path) -> None:
    """What lies beside the modules comes along, such as the log's configuration."""
    needed = {name.removeprefix("service/") for name in tracked("service")} - {"spark_cep/schemas"}
    needed |= {f"spark_cep/{name}" for name in tracked("schemas")}
    assert {"spark_cep/pipeline/spark/log4j2.properties", "spark_cep/py.typed"} <= needed
    assert needed - contents(wheel) == set()


def test_it_has_one_name(wheel: Path) -> None:
    """Nothing else is put beside a user's own packages."""
    names = {name.partition("/")[0] for name in contents(wheel)}
    assert {name for name in names if not name.endswith(".dist-info")} == {"spark_cep"}


def test_it_is_clean(wheel: Path) -> None:
    """check-wheel-contents has no complaint."""
    check = Path(sys.executable).with_name("check-wheel-contents")
    found = subprocess.run(
        [check, "--toplevel", "spark_cep", wheel], capture_output=True, text=True, check=False
    )
    assert (found.returncode, found.stdout) == (0, f"{wheel}: OK\n"), found.stderr


def test_the_sdist_makes_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    """Also where the sdist is made of the whole repository; it holds no tests."""
    sdist = built_sdist(copied(tracked(), tmp_path / "sources"), tmp_path)
    with tarfile.open(sdist) as opened:
        folders = {name.split("/")[1] for name in opened.getnames() if name.count("/") > 1}
    assert folders == {"service"}
    assert contents(built_wheel(sdist, tmp_path)) == contents(wheel)
