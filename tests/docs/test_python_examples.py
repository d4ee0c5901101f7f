"""The examples of docs/python.md and of the README run, and give what the page says they give."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "python.md"

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path, *languages: str) -> list[tuple[str, str]]:
    """The fenced blocks of a page in these languages, in their order."""
    return [found for found in _BLOCK.findall(page.read_text("utf-8")) if found[0] in languages]


def test_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """All Python blocks run in one session; the texts between them are what they made."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    shown = {"yaml": 0, "text": 0}
    for language, text in blocks(PAGE, "python", "yaml", "text"):
        if language == "python":
            exec(compile(text, str(PAGE), "exec"), names)  # noqa: S102  our own page
            continue
        shown[language] += 1
        if language == "yaml":
            assert text == names["to_yaml"](names["rule"])
        else:
            printed = capsys.readouterr().out
            assert text == (printed or names["kit"].explain() + "\n")
    assert shown == {"yaml": 1, "text": 2}
    assert Path("rules", "brute-force.yaml").read_text("utf-8") == names["to_yaml"](names["rule"])


def test_the_readme(monkeypatch: pytest.MonkeyPatch) -> None:
    """The README's example of a test passes."""
    monkeypatch.chdir(ROOT)
    ((_, text),) = blocks(ROOT / "README.md", "python")
    exec(compile(text, "README.md", "exec"), {})  # noqa: S102  our own page


def test_every_method_is_in_the_table() -> None:
    """The page names each public method of the builder and of the test kit."""
    from spark_cep import Pattern
    from spark_cep.testkit import RuleTest

    page = PAGE.read_text("utf-8")
    for kind in (Pattern, RuleTest):
        for name in vars(kind):
            if not name.startswith("_") and name not in _FIELDS:
                assert re.search(rf"\.{name}\b", page), f"{kind.__name__}.{name}"


#: What the docstrings say is enough.
_FIELDS = {"steps", "window", "skipping", "rules", "now", "watermark_time", "sent"}
