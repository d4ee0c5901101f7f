"""What the chart renders is what the service takes: settings, rules, ports, paths, versions."""

from __future__ import annotations

import json
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
import yaml

from spark_cep import __version__
from spark_cep.config import Settings, load
from spark_cep.config.reference import with_settings
from spark_cep.rules.sources.folder import read_rules
from tests.chart.files import CHART, EXAMPLE, PRESETS, ROOT, VALUES, one, render

MOUNTED = "/etc/spark-cep"


def _name(manifests: list[dict[str, Any]]) -> str:
    (found,) = (m["metadata"]["name"] for m in manifests if m["kind"] == "StatefulSet")
    return str(found)


def _settings(manifests: list[dict[str, Any]], folder: Path) -> Settings:
    """The rendered settings, loaded where all the files they name are there."""
    text = one(manifests, "ConfigMap", _name(manifests))["data"]["config.yaml"]
    for word in text.split():
        if word.startswith(f"{MOUNTED}/"):
            file = folder / word.removeprefix(f"{MOUNTED}/")
            file.parent.mkdir(parents=True, exist_ok=True)
            if not file.suffix and file.name == "rules":
                file.mkdir(exist_ok=True)
            else:
                file.write_text("content", "utf-8")
    config = folder / "config.yaml"
    config.write_text(text.replace(MOUNTED, str(folder)), "utf-8")
    return load(config, {"REGISTRY_TOKEN": "token"})


@pytest.mark.parametrize("values", VALUES, ids=lambda path: path.name)
def test_the_settings_are_taken(values: Path, tmp_path: Path) -> None:
    """The service loads the rendered settings and finds in them what the pod is set up for."""
    manifests = render(values)
    settings = _settings(manifests, tmp_path)
    pod = one(manifests, "StatefulSet", _name(manifests))["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports["http"] == settings.observability.metrics_port
    assert pod["terminationGracePeriodSeconds"] * 1000 >= settings.lifecycle.stop_grace + 5000
    mounts = [mount["mountPath"] for mount in container["volumeMounts"]]
    if settings.rules.source == "folder":
        assert str(settings.rules.folder).replace(str(tmp_path), MOUNTED) in mounts
    checkpoint = str(settings.state.checkpoint)
    assert "://" in checkpoint or any(checkpoint.startswith(f"{mount}/") for mount in mounts)
    assert container["args"] == ["run", "--config", f"{MOUNTED}/config.yaml"]
    if settings.spark.master.startswith("k8s://"):
        conf = settings.cluster_conf()
        assert conf["spark.driver.port"] == str(ports["driver"])
        assert conf["spark.blockManager.port"] == str(ports["block-manager"])
        assert conf["spark.kubernetes.container.image"] == container["image"]
        # Spark would mount a second volume there in the executors.
        assert "spark.local.dir" not in settings.spark.conf
        service = one(manifests, "Service", f"{_name(manifests)}-driver")
        assert conf["spark.driver.host"] == f"{service['metadata']['name']}.cep.svc"
        assert service["spec"]["selector"].items() <= _pod_labels(manifests).items()


@pytest.mark.parametrize("preset", PRESETS, ids=lambda path: path.name)
def test_presets_fit_together(preset: Path, tmp_path: Path) -> None:
    """A preset and a file of values are all that a job needs; each core has a state partition."""
    manifests = render(preset, EXAMPLE)
    settings = _settings(manifests, tmp_path)
    executors = settings.spark.executors
    if settings.spark.master.startswith("k8s://"):
        cores = executors.count * executors.cores
    else:
        cores = int(settings.spark.master.removeprefix("local[").split(",")[0])
    assert cores == settings.state.state_partitions
    driver = one(manifests, "StatefulSet", _name(manifests))
    limits = driver["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]
    assert f"| {limits['memory'].removesuffix('Gi')} GiB" in _row(preset.name)


def test_the_page_has_the_example() -> None:
    """docs/kubernetes.md shows the file as it is, and it has at most twenty lines."""
    page, text = (ROOT / "docs" / "kubernetes.md").read_text("utf-8"), EXAMPLE.read_text("utf-8")
    assert f"```yaml\n{text}```" in page
    assert len(text.splitlines()) <= 20


def _row(preset: str) -> str:
    """The row of a preset in docs/kubernetes/release.md."""
    page = (ROOT / "docs" / "kubernetes" / "release.md").read_text("utf-8")
    (row,) = (line for line in page.splitlines() if line.startswith(f"| `presets/{preset}`"))
    return row


def _pod_labels(manifests: list[dict[str, Any]]) -> dict[str, str]:
    driver = one(manifests, "StatefulSet", _name(manifests))
    labels: dict[str, str] = driver["spec"]["template"]["metadata"]["labels"]
    return labels


@pytest.mark.parametrize("values", VALUES, ids=lambda path: path.name)
def test_mounts_and_volumes_go_together(values: Path) -> None:
    """In driver, executors and tests each mount has its volume, and no path is mounted twice."""
    manifests = render(values)
    driver = one(manifests, "StatefulSet", _name(manifests))
    claims = [c["metadata"]["name"] for c in driver["spec"].get("volumeClaimTemplates", [])]
    pods = [(driver["spec"]["template"]["spec"], claims)]
    pods += [(m["spec"], []) for m in manifests if m["kind"] == "Pod"]
    pods += [
        (yaml.safe_load(m["data"]["pod.yaml"])["spec"], [])
        for m in manifests
        if m["kind"] == "ConfigMap" and "pod.yaml" in m["data"]
    ]
    assert len(pods) > 1
    for pod, claimed in pods:
        volumes = {volume["name"] for volume in pod["volumes"]} | set(claimed)
        for container in pod["containers"]:
            mounts = container["volumeMounts"]
            assert {mount["name"] for mount in mounts} <= volumes
            paths = [mount["mountPath"] for mount in mounts]
            assert len(set(paths)) == len(paths)
            assert container["securityContext"]["readOnlyRootFilesystem"]
            assert "/tmp" in paths
        assert pod["securityContext"]["runAsNonRoot"]
        assert pod["securityContext"]["runAsUser"] == 10001


@pytest.mark.parametrize("values", VALUES, ids=lambda path: path.name)
def test_the_rules_are_rules(values: Path, tmp_path: Path) -> None:
    """The examples' rules pass the check, read through links as in a mounted ConfigMap."""
    manifests = render(values)
    maps = [m for m in manifests if m["metadata"]["name"] == f"{_name(manifests)}-rules"]
    given = yaml.safe_load(values.read_text("utf-8")).get("rules", {})
    assert len(maps) == (1 if "files" in given else 0)
    for rules in maps:
        data = tmp_path / "..2026_01_01"
        data.mkdir()
        (tmp_path / "..data").symlink_to(data.name)
        for name, text in rules["data"].items():
            (data / name).write_text(text, "utf-8")
            (tmp_path / name).symlink_to(f"..data/{name}")
        assert len(read_rules(tmp_path).rules) == len(rules["data"])


def test_the_settings_are_the_service_s() -> None:
    """The schema of the values has the settings' own, as it is written from the model."""
    schema = json.loads((CHART / "values.schema.json").read_text("utf-8"))
    assert schema == with_settings(schema)
    config = schema["definitions"]["config"]
    assert set(config["properties"]) == set(Settings.model_fields)
    assert config["$defs"]["Time"]["additionalProperties"] is False


def test_every_value_is_in_the_schema() -> None:
    """No value of values.yaml is missing in its schema, at any depth that the schema closes."""
    schema = json.loads((CHART / "values.schema.json").read_text("utf-8"))

    def check(value: Any, part: dict[str, Any], at: str) -> None:
        if "$ref" in part:
            places = part["$ref"].removeprefix("#/").split("/")
            part = reduce(lambda found, place: found[place], places, schema)
        if part.get("additionalProperties") is not False or not isinstance(value, dict):
            return
        own = part.get("properties", {})
        patterns = part.get("patternProperties", {})
        for name, inner in value.items():
            assert name in own or patterns, f"{at}.{name} is not in the schema"
            check(inner, own.get(name, {}), f"{at}.{name}")

    check(yaml.safe_load((CHART / "values.yaml").read_text("utf-8")), schema, "values")


def test_the_chart_is_of_this_version() -> None:
    """``appVersion`` is the package's version: it is the image's tag."""
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text("utf-8"))
    assert chart["appVersion"] == __version__
