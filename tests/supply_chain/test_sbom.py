"""The jars in the SBOM; the tools themselves check the rest when they write it."""

from __future__ import annotations

from supply_chain.jars import read_lock
from supply_chain.sbom import with_jars


def test_every_pinned_jar_is_a_component() -> None:
    """With its checksum, as a dependency of the project, and those of tests marked."""
    bare = {
        "metadata": {"component": {"bom-ref": "root"}},
        "components": [{"bom-ref": "python"}],
        "dependencies": [{"ref": "root", "dependsOn": ["python"]}, {"ref": "python"}],
    }
    document = with_jars(bare)
    jars = {c["purl"]: c for c in document["components"] if c["bom-ref"] != "python"}
    pinned = {jar for group in read_lock().values() for jar in group.jars}
    assert len(jars) == len(pinned)
    assert {c["hashes"][0]["content"] for c in jars.values()} == {jar.sha256 for jar in pinned}
    assert {jar["scope"] for jar in jars.values()} == {"excluded"}
    own = next(entry for entry in document["dependencies"] if entry["ref"] == "root")
    assert own["dependsOn"] == sorted({"python", *jars})
    assert {entry["ref"] for entry in document["dependencies"]} == {"root", "python", *jars}
