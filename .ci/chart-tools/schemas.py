"""Schemas for kubeconform: ``schemas.py WHEEL FOLDER_OF_CRDS INTO``.

Kubernetes' come from the package kubernetes-validate, which keeps what they share in a file beside
them; those of custom resources are in their definitions. Fields that no schema names are errors.
"""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path
from typing import Any, ClassVar

import yaml

#: The oldest version that the chart allows, and the newest that there are schemas of.
VERSIONS = ("1.27.0", "1.37.0")


def kubernetes(wheel: Path, into: Path) -> None:
    """The schemas of each version, in a folder of its own."""
    with zipfile.ZipFile(wheel) as archive:
        for version in VERSIONS:
            folder = into / f"v{version}"
            folder.mkdir(parents=True, exist_ok=True)
            inside = f"/kubernetes-json-schema/v{version}-local-strict/"
            names = [name for name in archive.namelist() if inside in name]
            if not names:
                raise SystemExit(f"error: {wheel} has no schemas of Kubernetes {version}")
            for name in names:
                text = archive.read(name).decode()
                # The package refers to the shared file by a path of its own server.
                text = text.replace(
                    '"/api/_definitions.json#', f'"{folder.as_uri()}/_definitions.json#'
                )
                (folder / Path(name).name).write_text(text, "utf-8")


class _Loader(yaml.SafeLoader):
    """YAML as Kubernetes reads it: ``=`` is a text."""

    yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {
        first: kept
        for first, kept in yaml.SafeLoader.yaml_implicit_resolvers.items()
        if first != "="
    }


def custom(folder: Path, into: Path) -> None:
    """The schemas of custom resources, by kind, group and version."""
    into.mkdir(parents=True, exist_ok=True)
    for file in folder.glob("*.yaml"):
        spec = yaml.load(file.read_text("utf-8"), _Loader)["spec"]  # noqa: S506  a SafeLoader
        group = spec["group"].split(".")[0]
        for version in spec["versions"]:
            schema = _closed(version["schema"]["openAPIV3Schema"])
            name = f"{spec['names']['kind'].lower()}-{group}-{version['name']}.json"
            (into / name).write_text(json.dumps(schema), "utf-8")


def _closed(schema: Any) -> Any:
    """The schema as JSON Schema, with no fields but those it names."""
    if isinstance(schema, list):
        return [_closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    made = {name: _closed(part) for name, part in schema.items()}
    if isinstance(schema.get("properties"), dict) and "additionalProperties" not in schema:
        made["additionalProperties"] = False
    if schema.get("x-kubernetes-int-or-string"):
        made.pop("anyOf", None)
        made["type"] = ["integer", "string"]
    if schema.get("format") in {"int32", "int64"}:
        del made["format"]
    return made


if __name__ == "__main__":
    kubernetes(Path(sys.argv[1]), Path(sys.argv[3]))
    custom(Path(sys.argv[2]), Path(sys.argv[3], "custom"))
