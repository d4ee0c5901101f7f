"""What every source of rules does, whatever holds them."""

from __future__ import annotations

import gc
import json
import weakref
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from spark_cep.errors import RuleSetError
from spark_cep.pattern.document.loading import LoadedRule
from spark_cep.rules.change import next_rules
from spark_cep.rules.rule_set import RuleFile, RuleSet, assemble
from spark_cep.rules.sources.source import RuleSource
from tests.rules.sources.test_folder import rule
from tests.rules.stores import (
    FolderStore,
    HttpsStore,
    KafkaStore,
    PostgresStore,
    SqliteStore,
    Store,
)

KINDS = ["folder", pytest.param("kafka", marks=pytest.mark.kafka), "sqlite", "postgresql", "https"]


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """An empty one of each kind."""
    name = f"t{request.node.callspec.indices['store']}{abs(hash(request.node.name))}"
    match request.param:
        case "folder":
            return FolderStore(tmp_path / "rules")
        case "kafka":
            return KafkaStore(request.getfixturevalue("broker"), name)
        case "sqlite":
            return SqliteStore(tmp_path / "rules & more#.db")
        case "postgresql":
            return PostgresStore(request.getfixturevalue("server"), name)
        case _:
            running = request.getfixturevalue("served")
            return HttpsStore(running, tmp_path / "authority" / "authority.pem")


@pytest.fixture
def source(store: Store) -> Iterator[RuleSource]:
    """A source that has not read yet."""
    with closing(store.source()) as made:
        yield made


def versions(files: object) -> dict[str, int]:
    """The rules of a snapshot without problems."""
    assert isinstance(files, list)
    assert not [problem for file in files for problem in file.problems]
    return {one.rule.id: one.rule.version for file in files for one in file.loaded}


def after(running: RuleSet, files: list[RuleFile], *, allow_empty: bool = False) -> RuleSet:
    """The rules that run next."""
    return next_rules(
        running,
        files,
        lambda _: (),
        ran=running,
        most=1000,
        allow_empty=allow_empty,
        fingerprints={},
    ).rules


def test_whole_snapshots(store: Store, source: RuleSource) -> None:
    """All that there is at first; then only what is other than before, and all of it. One who comes
    later sees the same."""
    store.put("a", rule("a"))
    store.put("b", rule("b"))
    assert versions(source.read()) == {"a": 1, "b": 1}
    assert source.read() is None
    store.put("c", rule("c"))
    assert versions(source.read()) == {"a": 1, "b": 1, "c": 1}
    store.put("a", rule("a", 2), 2)
    store.remove("b")
    assert versions(source.read()) == {"a": 2, "c": 1}
    assert source.read() is None
    with closing(store.source()) as other:
        assert versions(other.read()) == {"a": 2, "c": 1}


def test_a_bad_entry_hides_no_other(store: Store, source: RuleSource) -> None:
    """It is there with its place; what ran of it runs on, until it is right again or gone."""
    store.put("bad", rule("bad"))
    store.put("good", rule("good"))
    running = assemble(one for file in source.read() or () for one in file.loaded)
    store.put("bad", rule("bad", 2, "colour: red\n"), 2)
    store.put("good", rule("good", 2), 2)
    store.put("new", rule("new"))
    files = list(source.read() or ())
    (problem,) = [problem for file in files for problem in file.problems]
    assert (problem.source, problem.rule) == (store.place("bad"), "bad")
    assert problem.message == "unknown key `colour`"
    running = after(running, files)
    assert {one.id: one.version for one in running.rules} == {"bad": 1, "good": 2, "new": 1}
    store.remove("bad")
    running = after(running, list(source.read() or ()))
    assert [one.id for one in running.rules] == ["good", "new"]


def test_away_and_back(store: Store, source: RuleSource) -> None:
    """A source that does not answer is an error that names it; it is none of an empty source. Only
    a file that is not there is taken for a wrong setting. What changed meanwhile is seen when it is
    back."""
    store.put("a", rule("a"))
    assert versions(source.read()) == {"a": 1}
    store.away()
    try:
        with pytest.raises(RuleSetError, match=r"the rules cannot be read: .") as caught:
            source.read()
        with closing(store.source()) as other, pytest.raises(RuleSetError):
            other.read()
    finally:
        store.back()
    (problem,) = caught.value.problems
    assert problem.source == source.name
    assert type(caught.value) is store.when_unavailable
    assert source.read() is None
    store.put("b", rule("b"))
    assert versions(source.read()) == {"a": 1, "b": 1}


def test_suddenly_empty(store: Store, source: RuleSource) -> None:
    """A source without rules says so; that all go is believed where the settings allow it."""
    store.put("a", rule("a"))
    running = assemble(one for file in source.read() or () for one in file.loaded)
    store.remove("a")
    files = source.read()
    assert files == []
    assert after(running, []) == running
    assert after(running, [], allow_empty=True).rules == ()
    store.put("a", rule("a"))
    assert versions(source.read()) == {"a": 1}


def test_any_text(store: Store, source: RuleSource) -> None:
    """Characters of every kind and size, and JSON."""
    text = "Ünïcødé – 漢字 🚨 'quoted' \"twice\" \\ 100% :name $1 {x} -- ; ?"
    store.put("a", rule("a", 1, f"description: |-\n  {text}\n"))
    step = {"step": "a", "where": "name = 'Ä 🚨' OR name LIKE '%:x%'"}
    store.put("b", json.dumps({"id": "b", "version": 1, "key": "k", "pattern": [step]}, indent=1))
    files = source.read()
    assert versions(files) == {"a": 1, "b": 1}
    assert files is not None
    told = {one.rule.id: one for file in files for one in file.loaded}
    assert told["a"].rule.description == text
    assert step["where"] in told["b"].text


def test_what_did_not_change_is_kept(store: Store, source: RuleSource) -> None:
    """And not read again; what has changed is let go with the snapshot after the next, for a text
    may hold a thousand rules."""
    if isinstance(store, HttpsStore):
        pytest.skip("of one body with line numbers, all is read")
    store.put("same", rule("same"))
    seen: dict[str, weakref.ref[LoadedRule]] = {}
    for version in range(1, 5):
        store.put("new", rule("new", version), version)
        for file in source.read() or ():
            (one,) = file.loaded
            name = f"{one.rule.id} {one.rule.version}"
            assert seen.setdefault(name, weakref.ref(one))() is one
        del file, one
    gc.collect()
    gone = [name for name, found in seen.items() if found() is None]
    assert gone == ["new 1", "new 2"]


def test_large(store: Store, source: RuleSource) -> None:
    """Hundreds of rules, and one of hundreds of thousands of characters."""
    for number in range(300):
        store.put(f"r{number}", rule(f"r{number}"))
    store.put("large", rule("large") + "#" * 400_000)
    assert len(versions(source.read())) == 301
    store.put("r7", rule("r7", 2), 2)
    assert versions(source.read())["r7"] == 2


def test_rules_in_sql(store: Store, source: RuleSource) -> None:
    """Every source holds documents with `sql`; what is wrong has its place."""
    statement = "sql: |\n  SELECT * FROM t MATCH_RECOGNIZE (\n    PARTITION BY k PATTERN (a {0})"
    text = f"id: in-sql\n{statement}\n    DEFINE a AS n = 1)\n"
    store.put("in-sql", text.format("b"))
    store.put("steps", rule("steps"))
    assert versions(source.read()) == {"in-sql": 1, "steps": 1}
    store.put("in-sql", text.format("b").replace("DEFINE a", "DEFINE c"))
    (problem,) = [problem for file in source.read() or () for problem in file.problems]
    assert (problem.source, problem.rule) == (store.place("in-sql"), "in-sql")
    assert problem.message == "`c` is not in the pattern"
    assert problem.excerpt == "    DEFINE c AS n = 1)"
