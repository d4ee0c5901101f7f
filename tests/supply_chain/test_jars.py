"""The lock of jars: what it says, and what happens when a folder does not hold it."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from supply_chain import jar_download, jars
from supply_chain.errors import DependencyError
from supply_chain.jars import Coordinates, Group, Jar
from supply_chain.java import find_java

LOCK = """
[small]
about = "Two files."
roots = ["org.example:one:1.0", "org.example:two:2.0:all@tar.gz"]
transitive = false
jars = [
  { group = "org.example", name = "one", version = "1.0", sha256 = "HASH1" },
  { group = "org.example", name = "two", version = "2.0", classifier = "all", \
extension = "tar.gz", sha256 = "HASH2" },
]
"""


@pytest.fixture
def pinned(monkeypatch: pytest.MonkeyPatch) -> Group:
    """A lock of two small files instead of the real one."""
    text = LOCK.replace("HASH1", hashlib.sha256(b"one").hexdigest())
    groups = jars.read_lock(text.replace("HASH2", hashlib.sha256(b"two").hexdigest()))
    monkeypatch.setattr(jars, "read_lock", lambda: groups)
    return groups["small"]


@pytest.fixture
def full(pinned: Group, tmp_path: Path) -> Path:
    """A folder that holds what is pinned."""
    for jar, content in zip(pinned.jars, (b"one", b"two"), strict=True):
        (tmp_path / jar.at.file_name).write_bytes(content)
    return tmp_path


def test_the_lock_has_its_groups_with_whole_checksums() -> None:
    """The shipped lock parses; every jar has a SHA-256."""
    groups = jars.read_lock()
    assert list(groups) == ["bench", "broker", "registry", "docs"]
    checksums = [jar.sha256 for group in groups.values() for jar in group.jars]
    assert all(len(bytes.fromhex(checksum)) == 32 for checksum in checksums)


def test_the_lock_pins_what_its_roots_name() -> None:
    """Each root stands among its group's jars, and a closed group has no other jar."""
    for group in jars.read_lock().values():
        roots = [Coordinates.parse(root) for root in group.roots]
        pinned = [jar.at for jar in group.jars]
        assert set(roots) <= set(pinned)
        assert group.transitive or roots == pinned


def test_no_two_pinned_files_share_a_name_unless_they_are_the_same() -> None:
    """All groups can be in one folder."""
    seen: dict[str, Jar] = {}
    for group in jars.read_lock().values():
        for jar in group.jars:
            assert seen.setdefault(jar.at.file_name, jar) == jar


def test_the_rendered_lock_reads_back_as_the_same_groups() -> None:
    """What ``lock`` writes is what the service reads."""
    groups = jars.read_lock()
    assert jars.read_lock(jars.rendered(groups.values())) == groups


def test_a_malformed_lock_is_refused_by_name() -> None:
    """A row that lacks a field names the group."""
    with pytest.raises(DependencyError, match="group 'small' is malformed"):
        jars.read_lock(LOCK.replace('version = "1.0", ', ""))


@pytest.mark.parametrize("text", ["one", "a:b", "a:b:c:d:e", "a:b:c@"])
def test_coordinates_need_group_name_and_version(text: str) -> None:
    """Anything else than group:name:version[:classifier][@extension] is refused."""
    with pytest.raises(DependencyError, match="is not group:name:version"):
        Coordinates.parse(text)


def test_a_full_folder_resolves_to_its_files_in_order(full: Path) -> None:
    """The paths come in the lock's order, named as in a Maven repository."""
    names = [path.name for path in jars.resolve("small", full)]
    assert names == ["one-1.0.jar", "two-2.0-all.tar.gz"]


def test_a_different_file_is_refused_with_both_checksums(full: Path) -> None:
    """The error names the jar, what was expected, what was found and how to fetch it."""
    (full / "one-1.0.jar").write_bytes(b"other")
    with pytest.raises(DependencyError) as refused:
        jars.resolve("small", full)
    text = str(refused.value)
    assert "one-1.0.jar" in text
    assert "two-2.0" not in text
    assert hashlib.sha256(b"one").hexdigest() in text
    assert hashlib.sha256(b"other").hexdigest() in text
    assert f"python -m supply_chain fetch-jars small --into {full}" in text


@pytest.mark.usefixtures("pinned")
def test_every_missing_file_is_named(tmp_path: Path) -> None:
    """A folder that is not there reports all jars at once."""
    with pytest.raises(DependencyError, match=r"(?s)2 of the 2 .*one-1\.0\.jar.*two-2\.0-all"):
        jars.resolve("small", tmp_path / "nowhere")


def test_an_unknown_group_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    """A misspelled group lists what exists."""
    with pytest.raises(DependencyError, match="'sparks'; groups: bench, broker, registry"):
        jars.resolve("sparks", tmp_path)


def test_fetch_leaves_a_full_folder_alone(full: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is downloaded, and no Java is needed, when all is there and right."""
    monkeypatch.setattr(jar_download, "_download", lambda *_, **__: pytest.fail("downloads"))
    assert jar_download.fetch(["small"], full) == jars.resolve("small", full)


def test_fetch_replaces_only_what_is_wrong(full: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One broken jar is downloaded, verified and put in place; no scratch folder stays."""
    asked = []

    def download(
        roots: list[Coordinates], scratch: Path, *_: object, **__: object
    ) -> dict[Coordinates, Path]:
        asked.extend(roots)
        (scratch / "x").write_bytes(b"one")
        return {roots[0]: scratch / "x"}

    monkeypatch.setattr(jar_download, "_download", download)
    (full / "one-1.0.jar").write_bytes(b"broken")
    jar_download.fetch(["small"], full)
    assert [at.file_name for at in asked] == ["one-1.0.jar"]
    assert (full / "one-1.0.jar").read_bytes() == b"one"
    assert sorted(path.name for path in full.iterdir()) == [
        ".lock",
        "one-1.0.jar",
        "two-2.0-all.tar.gz",
    ]


def test_a_wrong_download_never_gets_its_final_name(
    pinned: Group, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A download with another checksum is refused and leaves nothing."""

    def download(
        roots: list[Coordinates], scratch: Path, *_: object, **__: object
    ) -> dict[Coordinates, Path]:
        (scratch / "x").write_bytes(b"evil")
        return dict.fromkeys(roots, scratch / "x")

    monkeypatch.setattr(jar_download, "_download", download)
    with pytest.raises(DependencyError, match=f"expected sha256 {pinned.jars[0].sha256}"):
        jar_download.fetch(["small"], tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]


def _java(folder: Path, version: str) -> dict[str, str]:
    java = folder / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    java.chmod(0o755)
    return {"JAVA_HOME": str(folder)}


def test_java_home_wins(tmp_path: Path) -> None:
    """The java of JAVA_HOME is taken."""
    assert find_java(_java(tmp_path, "21.0.1")) == tmp_path / "bin" / "java"


@pytest.mark.parametrize(("version", "told"), [("11.0.2", "Java 11"), ("1.8.0_392", "Java 8")])
def test_an_old_java_is_refused(tmp_path: Path, version: str, told: str) -> None:
    """The error says which version was found and which is needed."""
    with pytest.raises(DependencyError, match=f"{told}; needed is 17 or newer"):
        find_java(_java(tmp_path, version))


def test_a_missing_java_is_refused(tmp_path: Path) -> None:
    """The error says where it was looked for."""
    with pytest.raises(DependencyError, match="no java was found by PATH"):
        find_java({"PATH": str(tmp_path)})
