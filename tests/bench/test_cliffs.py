"""The kinds of condition without the job: streams with every type, rules, and the table."""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import fastavro
import pytest

from bench.cliff_events import Columns, all_types, cliff_logins, cliff_payments, of_two_types
from bench.cliff_kinds import KINDS, PLAIN, Kind, Shape
from bench.cliffs import Workload, chosen, write_kind
from bench.events import logins
from bench.feed import Stream
from bench.payments import payments
from bench.report import text
from spark_cep.pattern.document.loading import load_rules
from spark_cep.rules.sources.folder import read_rules
from spark_cep.testkit import RuleTest

pytestmark = pytest.mark.slow

Make = Callable[[int, Columns], Stream]
EVENTS, KEYS = 1_500, 20
Found = tuple[frozenset[str], frozenset[str]]


def decoded(stream: Stream) -> list[tuple[str | None, dict[str, Any]]]:
    """Events with their record types, where there are several."""
    schema = fastavro.parse_schema(stream.schema)
    found = []
    for _, body in stream.events:
        source = io.BytesIO(body)
        event: Any = fastavro.schemaless_reader(
            source, schema, None, return_named_type=isinstance(stream.schema, list)
        )
        assert not source.read()
        of, values = event if isinstance(event, tuple) else (None, event)
        found.append((of and of.rpartition(".")[2], values))
    return found


@cache
def few_logins(two_types: bool) -> tuple[Any, list[tuple[str | None, dict[str, Any]]]]:
    """Schema and events, of a few users."""
    stream = of_two_types(cliff_logins, EVENTS) if two_types else cliff_logins(EVENTS, all_types())
    events = decoded(stream)
    for _, event in events:
        event["user_id"] = f"user-{int(event['user_id'][5:]) % KEYS}"
        for name, value in event.items():
            # As the named branch of a union is read where names are asked for.
            event[name] = value[1] if isinstance(value, tuple) else value
    return stream.schema, events


def found_by(kind: Kind) -> Found:
    """Matches and timeouts of a kind, which is type-checked."""
    rules = [loaded.rule for one in kind.documents("user_id") for loaded in load_rules(one, "kind")]
    schema, events = few_logins(kind.types is not None)
    kit = RuleTest(rules, schema=schema, start="2023-11-14T22:00:00Z")
    for of, event in events:
        kit.send(event, at=event["ts"], of_type=of)
    kit.finish()
    assert not kit.dead_letters

    def lines(outputs: Any) -> frozenset[str]:
        return frozenset(
            str([(step, [event.number for event in taken]) for step, taken in one.steps.items()])
            for one in outputs
        )

    return lines(kit.matches), lines(kit.timeouts)


@cache
def found_by_plain(shape: Shape) -> Found:
    """What the plain rule of a shape finds."""
    return found_by(PLAIN[shape])


@pytest.mark.parametrize("make", [cliff_logins, cliff_payments])
def test_streams_are_avro_of_their_schemas(make: Make) -> None:
    """As one record type and as two, where the same events come half in each; no column has the
    name of another."""
    one, two = make(300, all_types()), of_two_types(make, 300)
    names = [field["name"] for field in one.schema["fields"]]
    assert len(names) == len(set(names))
    single, union = decoded(one), decoded(two)
    assert {of for of, _ in union} == {"Early", "Late"}
    assert [event["number"] for _, event in single] == [event["number"] for _, event in union]
    assert all((of == "Late") == (event["number"] >= 500) for of, event in union)


@pytest.mark.parametrize(("make", "plain"), [(cliff_logins, logins), (cliff_payments, payments)])
def test_the_closing_event_begins_no_match(make: Make, plain: Callable[[int], Stream]) -> None:
    """It is neither low nor high."""
    stream = make(10, all_types())
    key, body = stream.closing(1)
    assert plain(10).closing(1)[1] in body
    ((_, event),) = decoded(Stream(stream.schema, [(key, body)], stream.closing))
    assert event["grade"] == "middle"


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
def test_a_kind_finds_what_the_plain_rule_finds(kind: Kind) -> None:
    """So their speeds can be compared."""
    found = found_by(kind)
    assert all(found)
    assert found == found_by_plain(kind.shape)


@pytest.mark.parametrize("kind", PLAIN.values(), ids=lambda kind: kind.name)
def test_a_folder_of_rules_is_one_that_the_service_takes(kind: Kind, tmp_path: Path) -> None:
    """With the plain rules among which it is measured, if any."""
    count = 21 if "among" in kind.name else 1
    assert len(read_rules(write_kind(tmp_path / "rules", kind, "card.id")).rules) == count


def test_kinds_are_chosen_by_parts_of_names() -> None:
    """In their own order; a part that is in no name is refused, with what there is."""
    assert [kind.name for kind in chosen(["Upper", "bigint"])][:2] == ["BIGINT", "UPPER"]
    assert len(chosen([""])) == len(KINDS) >= 30
    with pytest.raises(ValueError, match=r"'uper'.*BIGINT"):
        chosen(["uper"])


def test_the_table_tells_what_is_slow_missing_and_wrong() -> None:
    """And has a row for each kind that was measured."""
    slow = {
        "kind": "UPPER", "workload": Workload.LOGINS, "aim": 0.5, "rate": 40_000, "plain": 100_000,
        "ratio": 0.4, "low": 0.3, "high": 0.5,
    }  # fmt: skip
    wrong = slow | {"kind": "MIN", "ratio": 0.9, "differs": "matches differ"}
    missing = {"kind": "RLIKE", "workload": Workload.LOGINS, "aim": 0.5, "refused": "no"}
    facts = {
        "version": "1", "commit": "a", "date": "2026-01-31", "cores": 2, "processor": "P",
        "memory_gib": 1, "load_before": 0,
    }  # fmt: skip
    rows = [slow, wrong, missing]
    told = text({"benchmark": "cliffs", "runs_each": 1, "facts": facts, "cliffs": rows})
    assert "1 of 2 below the goal. Not in the language: RLIKE." in told
    assert "**Other outputs than the plain rule: MIN.**" in told
    assert "| UPPER | log-ins | 40,000 | 100,000 | **0.40** | 0.30 to 0.50 | 0.5 |" in told
