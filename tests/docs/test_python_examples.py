"""The examples of docs/python.md, docs/test-kit.md and of the README run, and give what the pages
say they give."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
RULES = ROOT / "docs" / "python.md"
KIT = ROOT / "docs" / "test-kit.md"

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path, *languages: str) -> list[tuple[str, str]]:
    """The fenced blocks of a page in these languages, in their order."""
    return [found for found in _BLOCK.findall(page.read_text("utf-8")) if found[0] in languages]


def test_rules_in_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """All Python blocks run in one session; the rule's text, and the errors, are as shown."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    shown = []
    for language, text in blocks(RULES, "python", "yaml", "text"):
        if language == "python":
            exec(compile(text, str(RULES), "exec"), names)  # noqa: S102  our own page
        else:
            shown.append(language)
            made = (
                names["to_yaml"](names["rule"]) if language == "yaml" else capsys.readouterr().out
            )
            assert text == made
    assert shown == ["yaml", "text"]
    assert Path("rules", "brute-force.yaml").read_text("utf-8") == names["to_yaml"](names["rule"])


def test_the_test_kit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All Python blocks run in one session with the page's rule; the explanation is as shown."""
    monkeypatch.chdir(tmp_path)
    ((_, rule),) = blocks(KIT, "yaml")
    Path("rules").mkdir()
    Path("rules", "brute-force.yaml").write_text(rule, "utf-8")
    names: dict[str, Any] = {}
    explained = 0
    for language, text in blocks(KIT, "python", "text"):
        if language == "python":
            exec(compile(text, str(KIT), "exec"), names)  # noqa: S102  our own page
        else:
            explained += 1
            assert text == names["kit"].explain() + "\n"
    assert explained == 1


def test_the_readme(monkeypatch: pytest.MonkeyPatch) -> None:
    """The README's example of a test passes."""
    monkeypatch.chdir(ROOT)
    ((_, text),) = blocks(ROOT / "README.md", "python")
    exec(compile(text, "README.md", "exec"), {})  # noqa: S102  our own page


def test_every_method_is_on_its_page() -> None:
    """The pages name each public method of the builder and of the test kit."""
    from spark_cep import Pattern
    from spark_cep.testkit import RuleTest

    for kind, file in ((Pattern, RULES), (RuleTest, KIT)):
        page = file.read_text("utf-8")
        for name in vars(kind):
            if not name.startswith("_") and name not in _FIELDS:
                assert re.search(rf"\.{name}\b", page), f"{kind.__name__}.{name}"


#: What the docstrings say is enough.
_FIELDS = {"steps", "window", "skipping", "rules", "now", "watermark_time", "sent"}
