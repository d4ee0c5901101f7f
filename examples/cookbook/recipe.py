"""Recipes of the cookbook: a folder each, with the text, rules, schema and test cases."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from spark_cep.cases.document.files import Suite, suites
from spark_cep.cases.running.outcome import CaseOutcome, outcome

COOKBOOK: Final = Path(__file__).parent
GROUPS: Final = {
    "fraud": "Fraud",
    "security": "Security",
    "iot": "Devices and sensors",
    "operations": "Operations",
    "commerce": "Commerce",
}
"""The groups of recipes: folders, each with the title of its page."""
TEXT: Final = "recipe.md"
SECTIONS: Final = ("Shows", "Why it is written this way", "Cost", "Variations")
"""The sections of a recipe's text; there may be none about its cost."""


@dataclass(frozen=True)
class Recipe:
    """One recipe. ``sections``: its text by heading."""

    folder: Path
    title: str
    problem: str
    sections: Mapping[str, str]

    @property
    def name(self) -> str:
        """The name of the recipe and of its folder."""
        return self.folder.name

    @property
    def group(self) -> str:
        """The folder of its group."""
        return self.folder.parent.name

    @property
    def techniques(self) -> list[str]:
        """The techniques that it shows."""
        return [each.strip() for each in self.sections["Shows"].split(",")]

    @cached_property
    def suites(self) -> list[Suite]:
        """The rules with their cases. The first is the rule that has the recipe's name."""
        found = suites([self.folder], {})
        return sorted(found, key=lambda each: not each.file.path.stem.startswith(f"{self.name}."))

    @property
    def rule_files(self) -> list[Path]:
        """The file of each rule."""
        return [
            suite.file.path.with_name(suite.file.path.name.removesuffix(".cases.yaml") + suffix)
            for suite in self.suites
            for suffix in [".yaml" if suite.rules[0].rule.query is None else ".sql"]
        ]

    @cached_property
    def example(self) -> CaseOutcome:
        """The outcome of the first case, which the page shows."""
        first = self.suites[0]
        return outcome(first, first.file.cases[0])

    def other_outcomes(self) -> list[CaseOutcome]:
        """The outcomes of the other cases of all its rules."""
        _, *others = ((suite, case) for suite in self.suites for case in suite.file.cases)
        return [outcome(suite, case) for suite, case in others]


def recipes() -> list[Recipe]:
    """All recipes, group by group, in the order of their names."""
    return [read(file.parent) for group in GROUPS for file in sorted(_texts(COOKBOOK / group))]


def _texts(group: Path) -> list[Path]:
    return list(group.glob(f"*/{TEXT}"))


def read(folder: Path) -> Recipe:
    """The recipe in a folder. ValueError where its text does not have the form of the others."""
    text = (folder / TEXT).read_text("utf-8")
    head, *parts = re.split(r"^## (.+)\n", text, flags=re.MULTILINE)
    title, _, problem = head.partition("\n")
    names, bodies = parts[::2], parts[1::2]
    wanted = [each for each in SECTIONS if each != "Cost" or each in names]
    if not title.startswith("# ") or names != wanted:
        message = f"{folder / TEXT}: its headings are {names} behind `{title}`; {wanted} are wanted"
        raise ValueError(message)
    sections = {name: body.strip() for name, body in zip(names, bodies, strict=True)}
    return Recipe(folder, title.removeprefix("# "), problem.strip(), sections)
