"""The wheel, built once, and the environments that it is installed into."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.wheel.installed import (
    SOURCES,
    Environment,
    built_wheel,
    copied,
    installed,
    tracked,
)


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, made of what the image is made of."""
    folder = tmp_path_factory.mktemp("wheel")
    return built_wheel(copied(tracked(*SOURCES), folder / "sources"), folder)


@pytest.fixture(scope="session")
def bare_environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """The wheel without extras, beside a user's own packages ``service`` and ``schemas``."""
    folder = tmp_path_factory.mktemp("bare")
    for name in ("service", "schemas"):
        (folder / "own" / name).mkdir(parents=True)
        (folder / "own" / name / "__init__.py").write_text("OWNER = 'a user'\n", "utf-8")
    environment = Environment(folder / "venv", folder / "empty", (folder / "own",))
    environment.folder.mkdir()
    installed(wheel, environment)
    return environment


@pytest.fixture
def environment(bare_environment: Environment, tmp_path: Path) -> Environment:
    """The same for one test, which has an empty folder of its own."""
    folder = tmp_path / "empty"
    folder.mkdir()
    return Environment(bare_environment.root, folder, bare_environment.path)
