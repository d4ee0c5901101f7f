"""Rules from a folder: which files, which versions, one fingerprint, all problems at once."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from spark_cep.errors import Problem, RuleSetError
from spark_cep.rules.rule_set import RuleFile, RuleSet, assemble
from spark_cep.rules.sources import folder as rules_folder
from spark_cep.rules.sources.folder import FolderSource, read_files, read_rules, stamp
from spark_cep.rules.sources.source import SourceEntries

EXAMPLES = Path(__file__).parents[3] / "examples" / "rules"


def rule(rule_id: str, version: int = 1, rest: str = "") -> str:
    """A short rule document."""
    return f"id: {rule_id}\nversion: {version}\nkey: k\n{rest}pattern: [{{step: a}}]\n"


STATEMENT = "SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY k PATTERN (a) DEFINE a AS n = 1)"


def folder(path: Path, **files: str) -> RuleSet:
    """The rules of a folder with these files; `__` in a name stands for the dot."""
    for name, text in files.items():
        (path / name.replace("__", ".")).write_text(text, encoding="utf-8")
    return read_rules(path)


def refused(path: Path, **files: str) -> list[Problem]:
    """The problems for which such a folder is refused."""
    with pytest.raises(RuleSetError) as caught:
        folder(path, **files)
    return list(caught.value.problems)


def test_examples_are_rules() -> None:
    """The example rules load, and nothing in them is warned about but what they show."""
    rules = read_rules(EXAMPLES)
    assert [one.id for one in rules.rules] == [
        "brute-force",
        "cost-timeout",
        "log-anomaly",
        "order-not-paid",
    ]
    assert rules.warnings == ()


def test_files_that_are_read(tmp_path: Path) -> None:
    """YAML, JSON and SQL files, in the order of ids; not hidden files, others, or inner folders."""
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "e.yaml").write_text("broken: [")
    rules = folder(
        tmp_path,
        z__yaml=rule("b") + "---\n" + rule("a"),
        y__yml=rule("c"),
        x__json='{"id": "d", "key": "k", "pattern": [{"step": "a"}]}',
        w__sql=f"-- id: e\n{STATEMENT}",
        v__SQL=f"-- id: f\n{STATEMENT}",
        __hidden__yaml="broken: [",
        __hidden__sql="broken",
        readme__txt="broken: [",
    )
    assert [one.id for one in rules.rules] == ["a", "b", "c", "d", "e", "f"]
    assert [one.query is not None for one in rules.rules] == [False] * 4 + [True] * 2
    assert rules.warnings == ()


def test_one_file(tmp_path: Path) -> None:
    """A file may stand for the folder."""
    (tmp_path / "a.yaml").write_text(rule("a"))
    assert [one.id for one in read_rules(tmp_path / "a.yaml").rules] == ["a"]


def test_links_are_followed(tmp_path: Path) -> None:
    """A mounted ConfigMap shows its files as links into a hidden folder."""
    data = tmp_path / "..data"
    data.mkdir()
    (data / "a.yaml").write_text(rule("a"))
    (tmp_path / "a.yaml").symlink_to(data / "a.yaml")
    assert [one.id for one in read_rules(tmp_path).rules] == ["a"]


def mount(path: Path, name: str, /, **files: str) -> None:
    """A ConfigMap's data as the kubelet puts it into a folder that is mounted: into a new folder,
    to which one link is swapped; then the links of files, then the old data goes. All files have
    the same time of their content."""
    time.sleep(0.02)  # The clock of the file system has moved since.
    data, before = path / f"..{name}", path / "..data"
    data.mkdir()
    for file, text in files.items():
        written = data / file.replace("__", ".")
        written.write_text(text, encoding="utf-8")
        os.utime(written, ns=(1, 1))
    old = before.resolve() if before.is_symlink() else None
    (path / "..data_tmp").symlink_to(data.name)
    (path / "..data_tmp").rename(before)
    for each in data.iterdir():
        if not (path / each.name).is_symlink():
            (path / each.name).symlink_to(f"..data/{each.name}")
    for link in path.iterdir():
        if not link.name.startswith(".") and not link.exists():
            link.unlink()
    if old is not None:
        shutil.rmtree(old)


def ids(path: Path) -> list[str]:
    """The rules of all files, in the order of files; none of them has a problem."""
    files = read_files(path)
    assert not any(file.problems for file in files)
    return [one.rule.id for file in files for one in file.loaded]


def test_config_map_is_swapped(tmp_path: Path) -> None:
    """Old data before, new data after, with files that come and go; the stamp is another one each
    time, also where sizes and times are equal and the disk gives out the same inodes again."""
    stamps = []
    for name in "abcde":
        mount(tmp_path, name, rules__yaml=rule(name))
        assert ids(tmp_path) == [name]
        stamps.append(stamp(tmp_path))
        assert stamp(tmp_path) == stamps[-1]
    mount(tmp_path, "f", rules__yaml=rule("e"), more__yaml=rule("f"))
    assert ids(tmp_path) == ["f", "e"]
    stamps.append(stamp(tmp_path))
    mount(tmp_path, "g", more__yaml=rule("f"))
    assert ids(tmp_path) == ["f"]
    stamps.append(stamp(tmp_path))
    assert len(set(stamps)) == 7


def test_config_map_halfway(tmp_path: Path) -> None:
    """New data is there, and the links of its files are not yet, or are still those of files that
    went: what has a link is read, a link to nothing is not there."""
    mount(tmp_path, "a", gone__yaml=rule("gone"), stays__yaml=rule("before"))
    (tmp_path / "..b").mkdir()
    (tmp_path / "..b" / "stays.yaml").write_text(rule("after"))
    (tmp_path / "..b" / "new.yaml").write_text(rule("new"))
    before = stamp(tmp_path)
    (tmp_path / "..data").unlink()
    (tmp_path / "..data").symlink_to("..b")
    assert ids(tmp_path) == ["after"]
    halfway = stamp(tmp_path)
    (tmp_path / "new.yaml").symlink_to("..data/new.yaml")
    assert ids(tmp_path) == ["new", "after"]
    assert len({before, halfway, stamp(tmp_path)}) == 3


def test_empty_folder_is_warned_about(tmp_path: Path) -> None:
    """No rules is a rule set, with a warning."""
    rules = read_rules(tmp_path)
    assert rules.rules == ()
    assert [w.message for w in rules.warnings] == ["there are no rules"]


def test_all_problems_of_all_files(tmp_path: Path) -> None:
    """Each file's problems are reported in one error, with its name."""
    problems = refused(
        tmp_path,
        a__yaml="id: a\n",
        b__yaml=rule("b") + "colour: red\n",
        c__yaml=rule("c"),
        d__yaml=rule("c"),
    )
    assert [(Path(p.source or "").name, p.message) for p in problems] == [
        ("a.yaml", "`pattern` is missing"),
        ("b.yaml", "unknown key `colour`"),
        ("d.yaml", f"version 1 of this rule is also in {tmp_path}/c.yaml:1"),
    ]


def test_unreadable_files_are_problems(tmp_path: Path) -> None:
    """A file that is not UTF-8 or too large is refused with its name, like a missing folder."""
    (tmp_path / "a.yaml").write_bytes(b"id: \xff")
    (tmp_path / "b.yaml").write_bytes(b"#" * 4_000_001)
    assert [p.message for p in refused(tmp_path)] == [
        "the file is not UTF-8: byte 4 cannot be read",
        "the file is too large",
    ]
    missing = refused(tmp_path / "none")
    assert [p.message for p in missing] == ["the rules cannot be read: No such file or directory"]


def test_names_that_are_not_utf_8(tmp_path: Path) -> None:
    """Or hold control characters: the files are read like others, and what they are called can be
    written everywhere, and is another one for each."""
    names = [b"a\xff.yaml", b"a\\udcff.yaml", b"a\n.yaml", b"a\\n.yaml"]
    for number, name in enumerate(names):
        (tmp_path / os.fsdecode(name)).write_text(rule(f"r{number}"))
    (tmp_path / os.fsdecode(b"b\xff.yaml")).write_text("id: [")
    (tmp_path / os.fsdecode(b"c\xff.yaml")).symlink_to("/etc/hostname")
    files = FolderSource(tmp_path).read() or []
    assert sorted(one.rule.id for file in files for one in file.loaded) == ["r0", "r1", "r2", "r3"]
    told = {file.name for file in files}
    told |= {one.places.source for file in files for one in file.loaded}
    told |= {str(problem.source) for file in files for problem in file.problems}
    assert len(told) == 6
    assert all(name.isprintable() and name.isascii() for name in told)


def test_an_id_that_nobody_can_write(tmp_path: Path) -> None:
    """It is wrong, and is named so that it can be."""
    problems = refused(tmp_path, a__yaml='id: "\\ud800"\nkey: k\npattern: [{step: a}]\n')
    assert [(p.rule, p.message) for p in problems] == [("?", "the text is not valid Unicode")]


def test_too_many_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of files is limited, and the limit is in the error."""
    monkeypatch.setattr("spark_cep.rules.sources.source.MOST_ENTRIES", 1)
    (problem,) = refused(tmp_path, a__yaml=rule("a"), b__yaml=rule("b"))
    assert (problem.message, problem.allowed) == ("the source holds 2 rule files", "at most 1")


def test_higher_version_replaces_lower(tmp_path: Path) -> None:
    """Of two versions the higher one runs, and the lower one is warned about."""
    rules = folder(tmp_path, a__yaml=rule("r", 2), b__yaml=rule("r", 1))
    assert [one.version for one in rules.rules] == [2]
    assert [w.message for w in rules.warnings] == [
        f"version 1 of this rule gives way to version 2 in {tmp_path}/a.yaml:1"
    ]


def test_disabled_version_gives_way(tmp_path: Path) -> None:
    """A version that is switched off leaves the rule to a lower one that is not."""
    rules = folder(tmp_path, a__yaml=rule("r", 2, "enabled: false\n"), b__yaml=rule("r", 1))
    assert [one.version for one in rules.enabled] == [1]
    assert [w.message for w in rules.warnings] == [
        (
            f"version 2 of this rule gives way to version 1 in {tmp_path}/b.yaml:1,"
            " because it is not enabled"
        )
    ]


def test_all_versions_disabled(tmp_path: Path) -> None:
    """A rule that is switched off altogether stays in the set and does not run."""
    off = "enabled: false\n"
    rules = folder(tmp_path, a__yaml=rule("r", 2, off), b__yaml=rule("r", 1, off))
    assert [one.version for one in rules.rules] == [2]
    assert rules.enabled == ()
    assert "because" not in rules.warnings[0].message


def test_fingerprint_follows_meaning(tmp_path: Path) -> None:
    """Names of files, order and layout do not change the fingerprint; a change of a rule does."""
    one, two, three = (tmp_path / name for name in ("one", "two", "three"))
    for path in (one, two, three):
        path.mkdir()
    first = folder(one, a__yaml=rule("a"), b__yaml=rule("b"))
    same = folder(
        two, z__json='{"pattern": [{"step": "a"}], "key": ["k"], "id": "b"}', y__yml=rule("a")
    )
    other = folder(three, a__yaml=rule("a"), b__yaml=rule("b", 2))
    assert first.fingerprint == same.fingerprint
    assert first.fingerprint != other.fingerprint


def test_warnings_of_rules_are_kept(tmp_path: Path) -> None:
    """What is warned about in the rules that run is in the set's warnings."""
    rules = folder(tmp_path, a__yaml=rule("a").replace("key: k\n", ""))
    assert [w.message for w in rules.warnings] == [
        "the rule has no `key`: all its events go through one partition"
    ]


def test_empty_set() -> None:
    """Nothing assembled is an empty set."""
    assert assemble([]) == RuleSet()


def test_a_change_is_taken_once_it_has_settled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two looks must find the same, and a folder that does not come to rest is left for later."""
    waits: list[float] = []

    def changes(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) in changing:
            mount(tmp_path, f"n{len(waits)}", a__yaml=rule(f"n{len(waits)}"))

    mount(tmp_path, "a", a__yaml=rule("a"))
    source = FolderSource(tmp_path, 0.25)
    assert source.read() is not None
    monkeypatch.setattr(rules_folder, "time", SimpleNamespace(sleep=changes))
    changing = {1, 2}
    assert (source.read(), waits) == (None, [])
    mount(tmp_path, "b", a__yaml=rule("b"))
    files = source.read()
    assert files is not None
    (file,) = files
    assert (file.loaded[0].rule.id, waits) == ("n2", [0.25] * 3)
    changing = set(range(4, 8))
    mount(tmp_path, "c", a__yaml=rule("c"))
    assert source.read() is None
    files = source.read()
    assert files is not None
    (file,) = files
    assert (file.loaded[0].rule.id, len(waits)) == ("n7", 8)


def test_a_folder_that_changes_while_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Is not taken: a rule that moves from file to file would be missing, and lose what it has
    begun. It is read again when it has settled."""
    mount(tmp_path, "a", x__yaml=rule("moves"), y__yaml=rule("stays"))
    source = FolderSource(tmp_path, 0)
    source.read()
    mount(tmp_path, "b", x__yaml=rule("moves"), y__yaml=rule("stays", 2))
    found: list[list[RuleFile]] = []

    def meanwhile(path: Path, entries: SourceEntries) -> list[RuleFile]:
        if not found:
            mount(tmp_path, "c", w__yaml=rule("moves"), y__yaml=rule("stays", 2))
        found.append(read_files(path, entries))
        return found[-1]

    monkeypatch.setattr(rules_folder, "read_files", meanwhile)
    assert source.read() is None
    assert source.read() is found[1]


def test_a_folder_that_comes_back(tmp_path: Path) -> None:
    """Is waited for like one that changes: what is there may be a part."""
    path = tmp_path / "rules"
    source = FolderSource(path, 0.01)
    with pytest.raises(RuleSetError, match="No such file"):
        source.read()
    path.mkdir()
    mount(path, "a", a__yaml=rule("a"))
    began = time.monotonic()
    assert source.read() is not None
    assert time.monotonic() - began >= 0.01
    assert source.read() is None
