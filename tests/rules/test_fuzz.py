"""Any rule file, however damaged, is read or refused with its name: never another error.

Files are raw bytes, damaged copies of sound rules, and sound documents with odd values in odd
places. Each example goes the whole way: file, YAML, checks of types and sense, plan.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from spark_cep.compiler.rule_set import compile_rules
from spark_cep.errors import RuleSetError
from spark_cep.pattern.type_check import type_check
from spark_cep.pattern.types import BIGINT, DOUBLE, STRING, TIMESTAMP, RecordType
from spark_cep.rules.sources.folder import read_rules

EXAMPLES = Path(__file__).parents[2] / "examples" / "rules"
TEXTS = [file.read_text("utf-8") for file in sorted(EXAMPLES.glob("*.yaml"))]
DOCUMENTS = [document for text in TEXTS for document in yaml.safe_load_all(text)]
COLUMNS = {"k": STRING, "name": STRING, "v": DOUBLE, "n": BIGINT, "ts": TIMESTAMP}
TYPES = [("", "e.Event", RecordType(COLUMNS))]

fuzz = settings(
    max_examples=400,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)

ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([0, -1, 2**31, 2**63, 10**400]),
    st.floats(),
    st.text(max_size=20),
    st.sampled_from(
        ["", " ", "within", "10 seconds", "99999999999999999999 days", "-1 ms", "1..", "0+", "9..1"]
    ),
    st.sampled_from(
        ["v > LAST(a.v)", "a.v", "SUM(a.v) / 0", "((((", "'", "1 +", "\x00", "name = 'b' --", "*"]
    ),
    st.lists(st.integers(), max_size=3),
    st.dictionaries(st.text(max_size=5), st.integers(), max_size=3),
)


def judge(folder: Path, content: bytes) -> None:
    """Read the file; a refusal names it in each of its problems."""
    file = folder / "rule.yaml"
    file.write_bytes(content)
    try:
        rules = read_rules(folder)
        problems = [p for loaded in rules.loaded for p in type_check(loaded, TYPES)]
        if problems:
            raise RuleSetError(problems)
        compile_rules(rules.enabled)
    except RuleSetError as error:
        assert error.problems
        assert all(problem.source == str(file) for problem in error.problems)
        assert str(file) in str(error)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of one file, written again for each example."""
    return tmp_path_factory.mktemp("rules")


@fuzz
@given(content=st.binary(max_size=300))
def test_raw_bytes(folder: Path, content: bytes) -> None:
    """Any bytes at all."""
    judge(folder, content)


@pytest.mark.slow
@fuzz
@given(data=st.data())
def test_damaged_text(folder: Path, data: st.DataObject) -> None:
    """Sound files with pieces cut out, doubled, swapped or overwritten."""
    content = bytearray(data.draw(st.sampled_from(TEXTS)).encode())
    for _ in range(data.draw(st.integers(1, 4))):
        place = st.integers(0, max(len(content) - 1, 0))
        start, end = sorted((data.draw(place), data.draw(place)))
        end = min(end, start + 40)
        match data.draw(st.integers(0, 3)):
            case 0:
                del content[start:end]
            case 1:
                content[end:end] = content[start:end]
            case 2:
                content[start : start + 1] = data.draw(st.binary(max_size=3))
            case _:
                odd = st.text(alphabet="{}[]&*!|>'\"%@`,:-? #\n\t\x85\u2028é0", max_size=6)
                content[start:start] = data.draw(odd).encode()
    judge(folder, bytes(content))


def places(node: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The paths of all values inside a document."""
    found = [path] if path else []
    if isinstance(node, dict):
        items = list(node.items())
    else:
        items = list(enumerate(node)) if isinstance(node, list) else []
    for key, value in items:
        found += places(value, (*path, key))
    return found


@pytest.mark.slow
@fuzz
@given(data=st.data(), as_json=st.booleans())
def test_odd_values_in_odd_places(folder: Path, data: st.DataObject, as_json: bool) -> None:
    """Sound documents in which values were replaced, removed, moved or wrapped."""
    document = deepcopy(data.draw(st.sampled_from(DOCUMENTS)))
    for _ in range(data.draw(st.integers(1, 3))):
        every = places(document)
        if not every:
            break
        *path, last = data.draw(st.sampled_from(every))
        home = document
        for part in path:
            home = home[part]
        match data.draw(st.integers(0, 4)):
            case 0:
                del home[last]
            case 1:
                home[last] = [deepcopy(home[last])]
            case 2 if isinstance(home, dict):
                home[data.draw(st.text(max_size=8))] = home.pop(last)
            case 3:
                home[last] = deepcopy(data.draw(st.sampled_from(DOCUMENTS)))
            case _:
                home[last] = data.draw(ODD)
    text = json.dumps(document) if as_json else yaml.safe_dump(document, allow_unicode=True)
    judge(folder, text.encode("utf-8", "surrogatepass"))


def rule(**more: Any) -> dict[str, Any]:
    """A small sound rule, changed."""
    step = {"step": "a", "where": "v > 1"}
    return {"id": "r", "version": 1, "key": "k", "pattern": [step], **more}


def where(text: str) -> bytes:
    """A rule with this condition."""
    return json.dumps(rule(pattern=[{"step": "a", "where": text}])).encode()


def lots(levels: int) -> bytes:
    """Lists of aliases of lists of aliases: many nodes from few bytes."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [" + ", ".join([f"*a{n - 1}"] * 10) + "]" for n in range(1, levels)]
    return "\n".join(lines).encode()


def merges() -> bytes:
    """The same by merge keys."""
    lines = ["a0: &a0 {x: 1}"]
    lines += [f"a{n}: &a{n} {{<<: [" + ", ".join([f"*a{n - 1}"] * 10) + "]}" for n in range(1, 9)]
    return "\n".join(lines).encode()


BOMBS: dict[str, Callable[[], bytes]] = {
    "aliases of aliases": lambda: lots(levels=12),
    "merges of merges": merges,
    "an alias of itself": lambda: b"&a [*a]",
    "a merge of itself": lambda: b"a: &a {<<: *a}",
    "10,000 lists in one another": lambda: b"[" * 10_000 + b"]" * 10_000,
    "10,000 mappings in one another": lambda: b'{"a":' * 10_000 + b"1" + b"}" * 10_000,
    "10,000 block lists in one another": lambda: b"- " * 10_000,
    "10,000 levels by indentation": lambda: b"\n".join(b" " * n + b"a:" for n in range(1_400)),
    "a number of 100,000 digits": lambda: b"id: " + b"9" * 100_000,
    "a number of 100,000 digits in a condition": lambda: where("v > " + "9" * 100_000),
    "an exponent without end": lambda: where("v > 1e999999999"),
    "a base-60 number": lambda: b"id: " + b":".join([b"59"] * 2_000),
    "1,000,000 characters": lambda: b"x" * 1_000_000,
    "60,000 documents": lambda: b"---\na\n" * 60_000,
    "10,000 brackets in a condition": lambda: where("(" * 10_000 + "v" + ")" * 10_000 + " > 1"),
    "100,000 NOTs": lambda: where("NOT " * 100_000 + "v > 1"),
    "100,000 minus signs": lambda: where("- " * 100_000 + "v > 1"),
    "10,000 additions": lambda: where("v" + " + v" * 10_000 + " > 1"),
    "10,000 ORs": lambda: where("v > 1" + " OR v > 1" * 10_000),
    "10,000 CASEs": lambda: where(
        "CASE WHEN v > 1 THEN " * 10_000 + "1" + " END" * 10_000 + " > 0"
    ),
    "10,000 calls": lambda: where("abs(" * 10_000 + "v" + ")" * 10_000 + " > 1"),
    "a list of 50,000": lambda: where(f"n IN ({', '.join(map(str, range(50_000)))})"),
    "100,000 quotes": lambda: where("'" * 100_001),
    "a comment without end": lambda: where("/*" * 50_000),
    "10,000 steps": lambda: json.dumps(
        rule(pattern=[{"step": f"s{n}", "where": "v > 1"} for n in range(10_000)])
    ).encode(),
    "a billion repetitions": lambda: json.dumps(
        rule(pattern=[{"step": "a", "where": "v > 1", "times": 10**9}])
    ).encode(),
    "10^30 repetitions": lambda: json.dumps(
        rule(pattern=[{"step": "a", "where": "v > 1", "times": f"1..{10**30}"}])
    ).encode(),
    "a window of 10^30 days": lambda: json.dumps(rule(within=f"{10**30} days")).encode(),
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", BOMBS)
@pytest.mark.slow
def test_what_grows_without_bound_is_refused(tmp_path: Path, name: str) -> None:
    """In bounded time (the limit is a hundred times what any of them takes), by name."""
    file = tmp_path / "rule.yaml"
    file.write_bytes(BOMBS[name]())
    with pytest.raises(RuleSetError) as refused:
        compile_rules(read_rules(tmp_path).enabled)
    assert all(problem.source == str(file) for problem in refused.value.problems)
    assert len(str(refused.value)) < 500_000
