"""The rules of the pages in docs/coming-from find what the pages say."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from spark_cep.testkit import RuleTest
from tests.docs.example_tables import DAY, cell, schema, tables, value

PAGES = Path(__file__).parents[2] / "docs" / "coming-from"
#: Pages that show patterns side by side, and the language of the other side.
LANGUAGES = {
    "eql": "eql",
    "esper": "sql",
    "flink-cep": "java",
    "flink-sql": "sql",
    "sigma": "yaml",
}
_SECTION = re.compile(r"^### (.+?)\n(.*?)(?=^##|\Z)", re.MULTILINE | re.DOTALL)
_WARNING = re.compile(r"`spark-cep check` warns \(\[`([a-z-]+)`")
_RULE = re.compile(r"^As a rule:\n\n```(yaml|sql)\n(.*?)```", re.MULTILINE | re.DOTALL)


def _patterns(page: str) -> dict[str, str]:
    text = (PAGES / f"{page}.md").read_text("utf-8")
    return dict(_SECTION.findall(text.split("\n## Patterns side by side\n")[1].split("\n## ")[0]))


EXAMPLES = {
    f"{page}: {title}": text for page in LANGUAGES for title, text in _patterns(page).items()
}


@pytest.mark.parametrize("example", EXAMPLES)
def test_a_rule_finds_what_its_page_says(example: str, tmp_path: Path) -> None:
    """The events of the page give its matches and, where it lists them, its timeouts."""
    ((language, rule),) = _RULE.findall(EXAMPLES[example])
    expected = {
        kind: [{name: cell(value(each)) for name, each in row.items()} for row in rows]
        for kind, rows in tables(EXAMPLES[example]).items()
    }
    events = tables(EXAMPLES[example])["Events"]
    del expected["Events"]
    path = tmp_path / f"rule.{language}"
    path.write_text(rule, "utf-8")
    kit = RuleTest(path, start=DAY, schema=schema(events))
    assert [each.code for each in kit.warnings] == _WARNING.findall(EXAMPLES[example])
    for event in events:
        values = {name: value(each) for name, each in event.items()}
        kit.send(values, at=values["ts"])
        kit.advance_to(values["ts"])
    kit.finish()
    found: dict[str, list[dict[str, Any]]] = {
        "Matches": [{"key": m.key, **m.measures, "at": m.time} for m in kit.matches],
        "Timeouts": [
            {
                "key": each.key,
                "steps": " ".join(f"{name} {len(taken)}" for name, taken in each.steps.items()),
                "at": each.deadline,
            }
            for each in kit.timeouts
        ],
    }
    shown = {
        kind: [{name: cell(each.get(name)) for name in (rows or [{}])[0]} for each in found[kind]]
        for kind, rows in expected.items()
    }
    assert "Matches" in expected
    assert shown == expected, kit.explain()
    assert (kit.dead_letters, kit.late) == ([], [])


@pytest.mark.parametrize("page", LANGUAGES)
def test_each_pattern_stands_beside_the_other_language(page: str) -> None:
    """A page has six patterns or more, each in its own language before the rule."""
    patterns = _patterns(page)
    assert len(patterns) >= 6
    for title, text in patterns.items():
        theirs, _ = text.split("\nAs a rule:\n")
        assert f"```{LANGUAGES[page]}\n" in theirs, title
