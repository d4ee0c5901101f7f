"""The chart's metadata is as Artifact Hub reads it."""

from __future__ import annotations

import yaml

from tests.chart.files import CHART

CHANGES = {"added", "changed", "deprecated", "removed", "fixed", "security"}


def test_annotations_are_of_this_version() -> None:
    """Texts of YAML where lists are wanted; the image is the one that the chart runs."""
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text("utf-8"))
    assert all(isinstance(value, str) for value in chart["annotations"].values())
    of = {
        name.removeprefix("artifacthub.io/"): yaml.safe_load(value)
        for name, value in chart["annotations"].items()
    }
    values = yaml.safe_load((CHART / "values.yaml").read_text("utf-8"))
    (image,) = of["images"]
    assert image["image"] == f"{values['image']['repository']}:{chart['appVersion']}"
    assert set(image["platforms"]) == {"linux/amd64", "linux/arm64"}
    assert {change["kind"] for change in of["changes"]} <= CHANGES
    assert all(change["description"] for change in of["changes"])
    assert all(each["url"].startswith("https://") for each in of["recommendations"])
