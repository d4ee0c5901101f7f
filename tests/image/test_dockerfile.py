"""The Dockerfile keeps what is promised of the image, as far as it shows without an engine."""

from __future__ import annotations

import importlib
import re
import shlex
from pathlib import Path

from spark_cep.config import load
from tests.config.test_load import MINIMAL, write

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8")
INSTALL = (ROOT / "image" / "install.sh").read_text("utf-8")
_LAST_STEPS = ("compile_kernel", "archive_classes", "remove_the_rest")


def instructions() -> list[tuple[str, str]]:
    """Each instruction with its text, lines joined, comments left out."""
    lines = [line for line in DOCKERFILE.splitlines() if not line.lstrip().startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    made = [line.partition(" ") for line in joined.splitlines() if line.strip()]
    return [(name, " ".join(text.split())) for name, _, text in made]


def of(name: str) -> list[str]:
    """The texts of all instructions of one kind."""
    return [text for kind, text in instructions() if kind == name]


def environment() -> dict[str, str]:
    """The variables of the image."""
    pairs = [word.partition("=") for text in of("ENV") for word in shlex.split(text)]
    return {name: value for name, _, value in pairs}


def test_the_base_is_pinned() -> None:
    """By digest, and every stage stands on it."""
    (base,) = [text for text in of("ARG") if text.startswith("BASE=")]
    assert re.fullmatch(r"BASE=docker\.io/library/debian:[-\w.]+@sha256:[0-9a-f]{64}", base)
    assert of("FROM") == ["${BASE} AS runtime", "runtime AS build", "runtime"]


def test_the_last_stage_runs_as_nobody_special() -> None:
    """A numeric user, who exists, for Kubernetes' runAsNonRoot and for Hadoop."""
    last = instructions()[[kind for kind, _ in instructions()].index("FROM") :]
    (user,) = [text for kind, text in last if kind == "USER"]
    system = (ROOT / "image" / "system.sh").read_text("utf-8")
    (number,) = re.findall(r"USER_ID=(\d+)", system)
    assert user == f"{number}:{number}"
    assert int(number) > 9999
    after = [kind for kind, _ in last][[kind for kind, _ in last].index("USER") :]
    assert not {"RUN", "COPY", "ADD"} & set(after)


def test_every_step_is_a_script() -> None:
    """Which is there, can be executed, and stops at the first error."""
    for text in of("RUN"):
        path, *_ = [word for word in text.split() if word.startswith("/")]
        script = ROOT / "image" / Path(path).name
        assert script.stat().st_mode & 0o111, script
        assert "\nset -euo pipefail\n" in script.read_text("utf-8")


def test_nothing_is_installed_without_its_hash() -> None:
    """No packages; and no tool to install is left."""
    for line in INSTALL.splitlines():
        if " install " in line and "PIP[@]" in line:
            assert "--require-hashes" in line or "--no-deps" in line, line
    assert "uninstall --yes setuptools pip" in INSTALL


def test_the_archive_of_classes_is_made_of_the_jars_that_stay() -> None:
    """With the packages, the connectors and the kernel at their places."""
    *_, compiled, archived, removed = [line for line in INSTALL.splitlines() if line in _LAST_STEPS]
    assert (compiled, archived, removed) == _LAST_STEPS
    assert 'spark_cep.pipeline.spark.class_archive --into "$TARGET/classes"' in INSTALL


def test_what_runs_is_what_was_installed() -> None:
    """Entry point, health check and command are at their places."""
    entry, check, command = of("ENTRYPOINT"), of("HEALTHCHECK"), of("CMD")
    assert entry == ['["/usr/bin/tini", "-s", "--", "/opt/spark-cep/entrypoint"]']
    assert 'image/entrypoint.sh" "$TARGET/entrypoint' in INSTALL
    assert "/opt/spark-cep/livez.py" in check[0]
    assert 'image/livez.py" "$TARGET/livez.py' in INSTALL
    assert command == ['["spark-cep", "run", "--config", "/etc/spark-cep/config.yaml"]']
    assert "TARGET=/opt/spark-cep\n" in INSTALL


def test_the_variables_mean_something(tmp_path: Path) -> None:
    """The folder of classes is a setting, the locator a class, the kernel is for all processors."""
    variables = environment()
    ours = {name: value for name, value in variables.items() if name.startswith("SPARK_CEP__")}
    settings = load(write(tmp_path, MINIMAL), ours)
    assert settings.spark.classes_folder == Path("/opt/spark-cep/classes")
    module, _, name = variables["NUMBA_CACHE_LOCATOR_CLASSES"].rpartition(".")
    assert hasattr(importlib.import_module(module), name)
    assert variables["NUMBA_CPU_NAME"] == "generic"
    assert variables["NUMBA_CACHE_DIR"].startswith("/opt/spark-cep/")


def test_the_port_is_the_settings_default(tmp_path: Path) -> None:
    """EXPOSE and the health check name the port that the pages have by default."""
    port = str(load(write(tmp_path, MINIMAL), {}).observability.metrics_port)
    assert of("EXPOSE") == [port]
    assert f'"{port}")' in (ROOT / "image" / "livez.py").read_text("utf-8")


def test_the_build_sees_what_it_needs_and_no_more() -> None:
    """The context is an allow-list of what the scripts read."""
    lines = (ROOT / ".dockerignore").read_text("utf-8").split("\n")
    assert "*" in lines
    allowed = {line[1:] for line in lines if line.startswith("!")}
    needed = {"pyproject.toml", "README.md", "LICENSE", "service", "schemas"}
    assert allowed == needed | {"image", "requirements-runtime.lock"}
    assert f"{{{','.join(sorted(needed, key=_order))}}}" in INSTALL
    assert all((ROOT / name).exists() for name in allowed)


def _order(name: str) -> int:
    return ["pyproject.toml", "README.md", "LICENSE", "service", "schemas"].index(name)


def test_oci_labels() -> None:
    """What a registry shows; version, revision, date and source are given when it is built."""
    (labels,) = of("LABEL")
    for name in ("title", "description", "licenses", "version", "revision", "created", "source"):
        assert f"org.opencontainers.image.{name}=" in labels
    arguments = {text.partition("=")[0] for text in of("ARG")}
    assert {"VERSION", "REVISION", "CREATED", "SOURCE"} <= arguments
