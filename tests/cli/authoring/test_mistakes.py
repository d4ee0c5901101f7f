"""The mistakes that ``spark-cep check`` is there for: one run finds each, in steps and in SQL."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from spark_cep.cli.main import app

SCHEMA = {
    "type": "record",
    "name": "Payment",
    "fields": [
        {"name": "user_id", "type": "string"},
        {"name": "amount", "type": "double"},
        {"name": "hour", "type": "int"},
        {"name": "level", "type": "string"},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["CARD", "CASH"]}},
    ],
}
#: Conditions that no event meets, and the code of each.
CONDITIONS = {
    "null": ("kind = NULL", "compared-with-null"),
    "constants": ("1 = 2", "never-true"),
    "equalities": ("level = 'a' AND level = 'b'", "never-true"),
    "ranges": ("amount > 10 AND amount < 5", "never-true"),
    "equality-and-range": ("amount = 3 AND amount > 5", "never-true"),
    "between": ("hour BETWEEN 22 AND 6", "reversed-between"),
    "enum": ("kind = 'CHEQUE'", "unknown-symbol"),
    "enum-in-list": ("kind IN ('CARD', 'CHEQUE')", "unknown-symbol"),
}
CARD, CASH = "where: kind = 'CARD'", "where: kind = 'CASH'"
SKIP, WINDOW = "after_match: skip_past_last_event", "within: 1 hour"
#: Patterns, what stands beside them, and the code of each.
PATTERNS = {
    "later-step": (
        [f"step: a, {CARD} AND amount > LAST(b.amount)", f"step: b, after: followed_by, {CASH}"],
        [WINDOW, SKIP],
        "untaken-step",
    ),
    "itself": (
        ["step: a, where: amount > LAST(a.amount), times: 3, loop: consecutive"],
        [WINDOW],
        "untaken-step",
    ),
    "swallowed": (
        [
            "step: a, where: amount > 10, times: 2+, greedy: true",
            "step: b, after: followed_by, where: amount > 100",
        ],
        [WINDOW, SKIP],
        "swallowed-step",
    ),
    "not-then-same": (
        [
            f"step: a, {CARD}",
            "step: n, after: not_followed_by, where: amount > 10",
            "step: b, after: followed_by, where: amount > 100",
        ],
        [WINDOW],
        "not-then-same",
    ),
    "not-own-repetitions": (
        [f"step: a, {CARD}, times: 2", f"step: n, after: not_followed_by, {CARD}"],
        [WINDOW],
        "not-own-repetitions",
    ),
    "no-window": ([f"step: a, {CARD}", f"step: b, after: followed_by, {CASH}"], [], "no-window"),
    "no-window-next": ([f"step: a, {CARD}", f"step: b, after: next, {CASH}"], [], "no-window"),
    "no-window-consecutive": (
        [f"step: a, {CARD}, times: 2, loop: consecutive"],
        [],
        "no-window",
    ),
    "no-window-until": ([f"step: a, {CARD}, times: 2+, until: amount > 9"], [], "no-window"),
    "no-window-skip": (
        [f"step: a, {CARD}", f"step: b, after: followed_by, {CASH}"],
        [SKIP],
        "skip-without-window",
    ),
    "endless-loop": ([f"step: a, {CARD}, times: 2+"], [], "endless-loop"),
    "repeated-timeout": (
        [f"step: a, {CARD}", f"step: b, after: followed_by, {CASH}, times: 1+"],
        [WINDOW],
        "repeated-timeout",
    ),
    "repeated-timeout-any": (
        [f"step: a, {CARD}", f"step: b, after: followed_by_any, {CASH}"],
        [WINDOW],
        "repeated-timeout",
    ),
}
#: PATTERN, WITHIN and DEFINE of statements, and the code of each. Greedy loops of SQL give rows
#: back, and it has neither NOT nor timeouts after a match.
STATEMENTS = {
    "later-variable": ("a b", True, "a AS amount > LAST(b.amount), b AS amount > 2",
                       "untaken-step"),
    "itself": ("a b{3}", True, "b AS amount < LAST(b.amount, 1)", "untaken-step"),
    "no-window": ("a any*? b", False, "a AS amount > 1, b AS amount < 1", "no-window"),
    "no-window-next": ("a b", False, "a AS amount > 1, b AS amount < 1", "no-window"),
    "endless": ("a any* b", False, "a AS amount > 1, b AS amount < 1", "endless-pattern"),
}  # fmt: skip


def in_steps(rule: str, steps: list[str], beside: list[str]) -> str:
    """A rule of steps."""
    listed = "".join(f"  - {{{step}}}\n" for step in steps)
    more = "".join(f"{line}\n" for line in beside)
    return f"id: {rule}\nkey: user_id\n{more}pattern:\n{listed}"


def in_sql(rule: str, pattern: str, define: str, *, within: bool) -> str:
    """A rule in SQL."""
    window = "WITHIN INTERVAL '1' HOUR " if within else ""
    return (
        f"-- id: {rule}\nSELECT * FROM payments MATCH_RECOGNIZE (\n  PARTITION BY user_id"
        f" MEASURES a.amount AS m\n  PATTERN ({pattern}) {window}DEFINE {define}\n)\n"
    )


def test_each_mistake(tmp_path: Path) -> None:
    """Each rule has its code, and no other."""
    expected: dict[str, str] = {}
    for name, (condition, code) in CONDITIONS.items():
        expected |= {f"steps-{name}": code, f"sql-{name}": code}
        steps = [f'step: a, where: "{condition}"']
        (tmp_path / f"steps-{name}.yaml").write_text(in_steps(f"steps-{name}", steps, []), "utf-8")
        text = in_sql(f"sql-{name}", "a", f"a AS {condition}", within=True)
        (tmp_path / f"sql-{name}.sql").write_text(text, "utf-8")
    for name, (steps, beside, code) in PATTERNS.items():
        expected[f"pattern-{name}"] = code
        text = in_steps(f"pattern-{name}", steps, beside)
        (tmp_path / f"pattern-{name}.yaml").write_text(text, "utf-8")
    for name, (pattern, within, define, code) in STATEMENTS.items():
        refused = code == "endless-pattern"
        folder = tmp_path / "refused" if refused else tmp_path
        folder.mkdir(exist_ok=True)
        text = in_sql(f"statement-{name}", pattern, define, within=within)
        (folder / f"statement-{name}.sql").write_text(text, "utf-8")
        expected |= {} if refused else {f"statement-{name}": code}
    schema = tmp_path / "payment.avsc"
    schema.write_text(json.dumps(SCHEMA), "utf-8")
    assert codes(tmp_path, schema) == {rule: {code} for rule, code in expected.items()}
    # Refused, too, unless the input of the job ends.
    found = codes(tmp_path / "refused", schema)
    assert found == {"statement-endless": {"endless-pattern", "refused"}}


def codes(folder: Path, schema: Path) -> dict[str, set[str]]:
    """The codes that the command finds, by rule."""
    arguments = ["check", str(folder), "--schema", str(schema), "--format", "json"]
    results = json.loads(CliRunner().invoke(app, arguments).stdout)["results"]
    found: dict[str, set[str]] = {}
    for each in results:
        assert each["message"]
        assert each["help"]
        found.setdefault(each["rule"], set()).add(each["code"])
    return found
