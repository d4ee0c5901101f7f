"""The CycloneDX document: Python packages as cyclonedx-bom lists them, and the pinned jars.

The jars are of demo, tests, benchmarks and the documentation site alone, and are marked so. Spark's
own jars, inside the package pyspark, are not listed one by one.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any, Final

from supply_chain.jars import Jar, read_lock

Document = dict[str, Any]

_SPEC: Final = "1.6"
_VALIDATE: Final = """\
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
wrong = JsonStrictValidator(SchemaVersion.V1_6).validate_str(sys.stdin.read())
sys.exit(f"the document is not CycloneDX 1.6: {wrong}" if wrong else 0)
"""


def of_python(lock: Path, tools: Path) -> Document:
    """The document of a lock file; the project itself is the component that it describes."""
    command = [str(tools / "cyclonedx-py"), "requirements", "--pyproject", "pyproject.toml"]
    command += ["--sv", _SPEC, "--of", "JSON", "--output-reproducible", "-o", "-", str(lock)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    document: Document = json.loads(done.stdout)
    return document


def with_jars(document: Document) -> Document:
    """The document with the pinned jars as components, each a dependency of the project."""
    components = {
        component["bom-ref"]: component
        for group in read_lock().values()
        for component in map(_component, group.jars)
    }
    root = document["metadata"]["component"]["bom-ref"]
    dependencies = {entry["ref"]: entry for entry in document.get("dependencies", [])}
    own = dependencies.setdefault(root, {"ref": root})
    own["dependsOn"] = sorted({*own.get("dependsOn", ()), *components})
    for reference in components:
        dependencies.setdefault(reference, {"ref": reference})
    return {
        **document,
        "components": [*document["components"], *(components[r] for r in sorted(components))],
        "dependencies": [dependencies[reference] for reference in sorted(dependencies)],
    }


def validate(text: str, tools: Path) -> None:
    """Raises ``subprocess.CalledProcessError`` when the text is not a valid document."""
    subprocess.run([str(tools / "python"), "-c", _VALIDATE], input=text, text=True, check=True)


def _component(jar: Jar) -> Document:
    at = jar.at
    qualifiers = [("classifier", at.classifier), ("type", at.extension)]
    query = "&".join(f"{key}={value}" for key, value in qualifiers if value and value != "jar")
    purl = f"pkg:maven/{at.group}/{at.name}@{at.version}" + (f"?{query}" if query else "")
    return {
        "type": "library",
        "bom-ref": purl,
        "group": at.group,
        "name": at.name,
        "version": at.version,
        "purl": purl,
        "scope": "excluded",
        "hashes": [{"alg": "SHA-256", "content": jar.sha256}],
    }
