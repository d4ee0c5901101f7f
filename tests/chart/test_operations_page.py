"""The commands of docs/operations for Kubernetes fit what the chart makes."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from spark_cep.cli.main import app
from tests.chart.files import CHART, ROOT, one, render, tool
from tests.docs.operations_page import commands_of_alerts, procedures_on_kubernetes

VALUES = CHART / "ci" / "local-values.yaml"
COMMANDS = [
    line
    for block in [
        *(block for blocks in procedures_on_kubernetes().values() for block in blocks),
        *(blocks[1] for blocks in commands_of_alerts().values()),
    ]
    for line in block.splitlines()
    if line.strip()
]
PAGES = ("livez", "readyz", "metrics", "rules")


def _of(program: str) -> list[list[str]]:
    lines = dict.fromkeys(line for line in COMMANDS if line.startswith(f"{program} "))
    # What stands behind a pipe is tests/docs/test_alert_commands.py's.
    return [shlex.split(line.partition(" | ")[0]) for line in lines]


@pytest.fixture
def made(tmp_path: Path) -> list[dict[str, object]]:
    """What the release of the page is made of: called fraud."""
    values = tmp_path / "values.yaml"
    values.write_text(VALUES.read_text("utf-8"), "utf-8")
    return render(values, release="fraud")


def test_there_are_no_others() -> None:
    """All commands are helm's and kubectl's."""
    assert len(_of("helm")) + len(_of("kubectl")) == len(set(COMMANDS))


@pytest.mark.parametrize("command", _of("helm"), ids=" ".join)
def test_helm_takes_them(command: list[str]) -> None:
    """Every upgrade renders with its values; the other commands and their options exist."""
    _, what, release, *rest = command
    assert release == "fraud"
    if what == "upgrade":
        chart, *options = rest
        assert chart == "helm"
        options = [o for o in options if o != "--reuse-values"]
        options = [str(VALUES) if o == "values.yaml" else o for o in options]
        if "--values" not in options:
            options += ["--values", str(VALUES)]
        arguments = ["template", release, str(CHART), *options]
    else:
        arguments = [what, "--help"]
    done = subprocess.run(
        [tool("helm"), *arguments], check=False, capture_output=True, text=True, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    if what != "upgrade":
        for option in (word for word in rest if word.startswith("--")):
            assert f"{option} " in done.stdout


@pytest.mark.parametrize("command", _of("kubectl"), ids=" ".join)
def test_kubectl_finds_what_they_name(command: list[str], made: list[dict[str, object]]) -> None:
    """Names, namespace and paths are those of the rendered objects; what runs in the pod is a
    command of the service with options that it has, or moves files."""
    assert command[1:3] == ["--namespace", "cep"]
    driver = one(made, "StatefulSet", "fraud-spark-cep")
    text = " ".join(command)
    for name in re.findall(r"statefulset/(\S+)", text):
        assert name == driver["metadata"]["name"]
    pod = f"{driver['metadata']['name']}-0"
    if command[3] in {"get", "logs", "describe"}:
        (container,) = driver["spec"]["template"]["spec"]["containers"]
        port = next(p["containerPort"] for p in container["ports"] if p["name"] == "http")
        proxy = f"/api/v1/namespaces/cep/pods/{pod}:{port}/proxy"
        raw = [["get", "--raw", f"{proxy}/{page}"] for page in PAGES]
        asked = [word for word in command[3:] if not word.isdigit()]
        assert asked in [
            *raw,
            ["get", "pods"],
            ["describe", "pod", pod],
            ["logs", pod],
            ["logs", pod, "--tail"],
            ["logs", pod, "--previous", "--tail"],
        ]
        return
    if command[3] != "exec":
        assert command[3] in {"rollout", "scale", "patch", "delete", "create"}
        if command[3] == "patch":
            (template,) = driver["spec"]["volumeClaimTemplates"]
            claim = f"{template['metadata']['name']}-{driver['metadata']['name']}-0"
            assert command[4:6] == ["persistentvolumeclaim", claim]
            json.loads(command[command.index("--patch") + 1])
        if command[3] == "delete":
            assert command[4:6] == ["statefulset", driver["metadata"]["name"]]
        return
    before = [word for word in command[4 : command.index("--")] if word != "--stdin"]
    assert before == [pod]
    inside = command[command.index("--") + 1 :]
    mounts = [
        mount["mountPath"]
        for mount in driver["spec"]["template"]["spec"]["containers"][0]["volumeMounts"]
    ]
    if inside[0] == "tar":
        assert inside[inside.index("--directory") + 1] in mounts
        return
    if inside[0] in ("df", "du"):
        assert inside[-1] in mounts
        return
    if inside[0] == "mv":
        assert {str(Path(place).parent) for place in inside[1:]} <= set(mounts)
        return
    assert inside[0] == "spark-cep"
    assert inside[inside.index("--config") + 1] in mounts
    words = inside[1:3] if inside[1] == "rules" else inside[1:2]
    usage = CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": "200"}).output
    for option in (word for word in inside if word.startswith("--")):
        assert option in usage
