"""The chart's files, and its rendering by helm."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
CHART = ROOT / "helm"
ALERTS = [CHART / "alerts" / name for name in ("release.yaml", "spark-cep.yaml")]
ALERT_TESTS = CHART / "alerts" / "spark-cep.test.yaml"
DASHBOARD = CHART / "dashboards" / "spark-cep.json"
EXAMPLE = ROOT / "examples" / "kubernetes" / "values.yaml"
VALUES = [*sorted((CHART / "ci").glob("*-values.yaml")), EXAMPLE]
PRESETS = sorted((CHART / "presets").glob("*.yaml"))


def tool(name: str) -> str:
    """A tool of ``make chart``; the test is skipped where it is not installed."""
    own = ROOT / ".work" / "tools" / "bin" / name
    found = str(own) if own.exists() else shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed: make chart")
    return found


def render(*values: Path, release: str = "demo") -> list[dict[str, Any]]:
    """All manifests that the chart makes of files of values, the last of which wins."""
    options = [word for each in values for word in ("--values", each)]
    made = subprocess.run(
        [tool("helm"), "template", release, CHART, "--namespace", "cep", *options],
        check=True,
        capture_output=True,
        text=True,
    )
    return [document for document in yaml.safe_load_all(made.stdout) if document]


def one(manifests: list[dict[str, Any]], kind: str, name: str) -> dict[str, Any]:
    """The manifest of this kind and name."""
    (found,) = (m for m in manifests if m["kind"] == kind and m["metadata"]["name"] == name)
    return found


def alerts() -> list[dict[str, Any]]:
    """All alert rules, of one release and of all jobs."""
    files = [yaml.safe_load(path.read_text("utf-8")) for path in ALERTS]
    return [rule for file in files for group in file["groups"] for rule in group["rules"]]


def panels() -> list[dict[str, Any]]:
    """All panels of the dashboard that show something."""
    dashboard = json.loads(DASHBOARD.read_text("utf-8"))
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]
