"""What may stand at the cursor."""

from __future__ import annotations

import pytest

from spark_cep.language.answers import NameKind
from spark_cep.language.completions import completions
from spark_cep.pattern.document.loading import load_rules
from tests.language.opened import opened

STEPS = "id: r\nkey: user_id\npattern:\n  - {step: fail}\n"
STATEMENT = "-- id: r\nSELECT * FROM payments MATCH_RECOGNIZE (\n  "


def offered(text: str, name: str = "r.yaml", *kinds: NameKind) -> list[str]:
    """The labels of what may stand at the cursor; of these kinds, if any."""
    found = completions(*opened(text, name))
    return [each.label for each in found if not kinds or each.kind in kinds]


def written(text: str, label: str, name: str = "r.yaml") -> str:
    """The text once a completion has been taken, `¦` behind what it wrote."""
    document, position = opened(text, name)
    (edit,) = (each.edit for each in completions(document, position) if each.label == label)
    start, end = document.offset(edit.range.start), document.offset(edit.range.end)
    return f"{document.text[:start]}{edit.text}¦{document.text[end:]}"


@pytest.mark.parametrize(
    ("text", "some", "none"),
    [
        ("¦", ["id", "pattern", "sql"], ["step"]),
        ("id: r\nwi¦", ["within"], ["id"]),
        ("id: r\npattern: []\n¦", ["within"], ["sql", "ververica"]),
        ("id: r\nsql: x\n¦", ["limits"], ["pattern", "key", "sql"]),
        ("id: r\nwithin:\n  ¦", ["max", "gap", "10 seconds"], ["id"]),
        ("pattern:\n  - ¦", ["step"], ["id"]),
        ("pattern:\n  - step: a\n    ¦\n    times: 2", ["where", "after"], ["step"]),
        ("pattern:\n- step: a\n  wh¦\n- step: b", ["where"], ["step"]),
        ("pattern:\n  - {step: a, ¦}", ["where"], ["step"]),
        ("pattern:\n  - {step: a, group: [{¦", ["step", "where"], ["id"]),
        ('{"id": "r", "pattern": [{"step": "a", "¦', ["where"], ["step"]),
        ("emit: {¦", ["measures", "events"], []),
        ("id: r\n---\n¦", ["id"], []),
    ],
)
def test_keys(text: str, some: list[str], none: list[str]) -> None:
    """Those of the mapping at the cursor, without those that are there, or cannot stand there."""
    found = offered(text)
    assert set(some) <= set(found)
    assert not set(none) & set(found)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("pattern:\n  - {step: a, after: ¦}", ["next", "followed_by", "followed_by_any",
                                              "not_next", "not_followed_by"]),
        ("pattern:\n  - step: a\n    loop: rel¦", ["relaxed", "consecutive", "combinations"]),
        ("pattern:\n  - step: a\n    greedy: ¦\n", ["true", "false"]),
        ("mode: ¦", ["live", "shadow"]),
        ("limits: {on_limit: ¦", ["drop_oldest", "reject_new", "pause_rule"]),
        ("within: 10 ¦", ["ms", "seconds", "minutes", "hours", "days", "weeks"]),
        ("within: {gap: 5 mi¦}", ["ms", "seconds", "minutes", "hours", "days", "weeks"]),
        ("cooldown: ¦", ["10 seconds", "5 minutes", "1 hour", "1 day"]),
        (STEPS + "after_match: {skip_to_last: ¦}", ["fail"]),
        (STEPS + "emit: {events: [¦]}", ["user_id", "amount", "kind", "ts", "place"]),
    ],
)  # fmt: skip
def test_values(text: str, values: list[str]) -> None:
    """Words of the key, units, names of steps and columns."""
    kinds = (NameKind.VALUE, NameKind.UNIT, NameKind.STEP, NameKind.COLUMN)
    assert offered(text, "r.yaml", *kinds) == values


COLUMNS = ["user_id", "amount", "kind", "ts", "place"]


@pytest.mark.parametrize(
    ("condition", "columns", "steps"),
    [
        ("¦", COLUMNS, ["fail", "ok"]),
        ("amount > 1 AND ¦", COLUMNS, ["fail", "ok"]),
        ("ABS(am¦", COLUMNS, ["fail", "ok"]),
        ("fail.¦", COLUMNS, []),
        ("COUNT(fail.¦", COLUMNS, []),
        ("place.¦", ["city"], []),
        ("LAST(fail.place.c¦", ["city"], []),
        ("amount.¦", [], []),
        ("nothing.¦", [], []),
        ("amount > 'text ¦", [], []),
    ],
)
def test_names(condition: str, columns: list[str], steps: list[str]) -> None:
    """Columns and steps; behind a dot the columns of what stands before it."""
    text = STEPS + f"  - step: ok\n    after: followed_by\n    where: {condition}"
    assert offered(text, "r.yaml", NameKind.COLUMN) == columns
    assert offered(text, "r.yaml", NameKind.STEP) == steps


@pytest.mark.parametrize(
    ("condition", "symbols"),
    [
        ("kind = '¦'", ["CARD", "CASH"]),
        ("kind = ¦", ["'CARD'", "'CASH'"]),
        ("kind <> CA¦", ["'CARD'", "'CASH'"]),
        ("kind IN ('CARD', '¦", ["CARD", "CASH"]),
        ("kind NOT IN (¦", ["'CARD'", "'CASH'"]),
        ("LAST(fail.kind) = '¦", ["CARD", "CASH"]),
        ("fail.kind = '¦", ["CARD", "CASH"]),
        ("user_id = '¦", []),
        ("kind > '¦", []),
        ("CONCAT('¦", []),
    ],
)
def test_symbols(condition: str, symbols: list[str]) -> None:
    """Of the enum that a text is compared with."""
    text = STEPS + f'  - step: ok\n    after: followed_by\n    where: "{condition}'
    assert offered(text, "r.yaml", NameKind.VALUE) == symbols


def test_functions() -> None:
    """With their signatures; those over events only where there are some."""
    found = {each.label: each for each in completions(*opened(STEPS + "emit: {measures: {n: ¦"))}
    assert found["SUBSTRING"].detail == "SUBSTRING(STRING, INT[, INT]) → STRING"
    assert found["SUBSTRING"].edit.text == "SUBSTRING("
    assert "`'bcd'`" in found["SUBSTRING"].documentation
    assert found["COUNT"].kind is NameKind.FUNCTION
    assert "PREV" not in found
    of_key = offered("key: ¦")
    assert "COALESCE" in of_key
    assert "COUNT" not in of_key


@pytest.mark.parametrize("before", ["ts > TIMESTAMP '2026-01-01' + INTERVAL 5 ", "INTERVAL '1' "])
def test_units_of_intervals(before: str) -> None:
    """Behind a number."""
    text = STEPS + f'  - step: ok\n    where: "{before}¦"'
    assert {"MINUTES", "DAYS", "YEARS"} <= set(offered(text, "r.yaml", NameKind.UNIT))


@pytest.mark.parametrize(
    ("clauses", "some", "none"),
    [
        ("¦", ["PARTITION BY", "MEASURES", "PATTERN"], ["amount", "FROM"]),
        ("PARTITION BY ¦", ["user_id", "MEASURES"], ["PARTITION BY"]),
        ("MEASURES a.¦ AS x PATTERN (a b)", ["amount"], ["a", "PATTERN"]),
        ("MEASURES ¦ PATTERN (a b+)", ["a", "b", "PREV", "CLASSIFIER", "amount"], ["PERMUTE"]),
        ("AFTER MATCH SKIP ¦ PATTERN (a b)", ["PAST LAST ROW", "a", "b"], ["amount"]),
        ("PATTERN (¦) DEFINE a AS x, b AS y", ["a", "b"], ["amount", "DEFINE"]),
        ("PATTERN (a b) ¦", ["WITHIN", "DEFINE"], ["amount", "MEASURES"]),
        ("PATTERN (a b) DEFINE a AS amount > 1, ¦", ["b"], ["a"]),
        ("PATTERN (a b) DEFINE a AS amount > 1 AND ¦", ["amount", "a", "b", "PREV"], []),
        ("PATTERN (a b) DEFINE a AS kind = '¦", ["CARD", "CASH"], ["amount"]),
        ("PATTERN (a) WITHIN INTERVAL '1' ¦", ["HOURS"], ["amount"]),
        ("PATTERN (a) -- am¦", [], ["amount"]),
    ],
)
@pytest.mark.parametrize("in_yaml", [False, True])
def test_statements(clauses: str, some: list[str], none: list[str], in_yaml: bool) -> None:
    """In a file of its own, and in a document."""
    text, name = STATEMENT + clauses, "r.sql"
    if in_yaml:
        lines = text.split("\n")[1:]
        text, name = "id: r\nsql: |\n  " + "\n  ".join(lines), "r.yaml"
    found = offered(text, name)
    assert set(some) <= set(found)
    assert not set(none) & set(found)


def test_the_fields_of_a_statement() -> None:
    """They stand in the comment at its beginning."""
    assert "previous_version" in offered("-- id: r\n-- ¦\nSELECT", "r.sql")
    assert "pattern" not in offered("-- id: r\n-- ¦\nSELECT", "r.sql")
    assert offered("-- id: r\n-- mode: ¦\nSELECT", "r.sql") == ["live", "shadow"]


@pytest.mark.parametrize("sign", ["#", "--"])
def test_codes(sign: str) -> None:
    """Those that a comment may allow."""
    found = offered(f"{sign} spark-cep: allow no-key, no¦\nid: r")
    assert {"no-key", "no-window"} <= set(found)
    assert offered("# another comment ¦\nid: r") == []


def test_cases() -> None:
    """Keys, and names of the rules that they test."""
    rule = "id: pay\nkey: user_id\npattern: [{step: one}]\nemit: {measures: {n: COUNT(*)}}\n"
    rules = tuple(load_rules(rule, "r"))

    def labels(text: str) -> list[str]:
        document, position = opened(text, "r.cases.yaml", rules)
        return [each.label for each in completions(document, position)]

    assert "cases" in labels("¦")
    assert {"case", "events", "expect"} <= set(labels("cases:\n  - ¦"))
    case = "cases:\n  - case: one\n"
    assert labels(f"{case}    rule: ¦") == ["pay"]
    assert labels(f"{case}    events:\n      - send: {{¦") == COLUMNS
    assert labels(f"{case}    expect: {{matches: [{{steps: {{¦") == ["one"]
    assert labels(f"{case}    expect: {{matches: [{{measures: {{¦") == ["n"]
    # In the document of a rule, too.
    inside = f"{rule}{case}    expect: {{matches: [{{steps: {{¦"
    assert offered(inside) == ["one"]


def test_settings() -> None:
    """Keys and values of a configuration."""
    assert "bootstrap_servers" in offered("kafka:\n  ¦")
    assert "SASL_SSL" in offered("kafka:\n  security:\n    protocol: ¦")
    assert {"topics", "event_time"} <= set(offered("kafka: {}\ninputs:\n  logins:\n    ¦"))


@pytest.mark.parametrize(
    ("text", "label", "after"),
    [
        ("id: r\nwi¦", "within", "id: r\nwithin: ¦"),
        ("id: r\npa¦tte: x", "pattern", "id: r\npattern¦: x"),
        ("id: r\nli¦", "limits", "id: r\nlimits:¦"),
        ('{"id": "r", "wi¦"}', "within", '{"id": "r", "within¦"}'),
        ("pattern: [{step: a, after: ne¦}]", "next", "pattern: [{step: a, after: next¦}]"),
        ("key: us¦", "user_id", "key: user_id¦"),
        (STEPS + "emit: {measures: {n: fa¦", "fail", STEPS + "emit: {measures: {n: fail.¦"),
        (STATEMENT + "PATTERN (a) DEFINE ¦", "a", STATEMENT + "PATTERN (a) DEFINE a AS ¦"),
    ],
)
def test_what_is_written(text: str, label: str, after: str) -> None:
    """In place of the word at the cursor, with what belongs behind it."""
    name = "r.sql" if text.startswith("--") else "r.yaml"
    assert written(text, label, name) == after
