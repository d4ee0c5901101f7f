"""``python -m examples.cookbook.pages`` writes the cookbook's pages, pictures and events.

A page has the recipes of a group. Texts and rules are those of a recipe's folder, events and
results those of its cases, as they come out when they are run. Pictures take Graphviz's ``dot``;
those of drawings that have not changed are left as they are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

from examples.cookbook.pictures import drawing, mark, picture
from examples.cookbook.recipe import COOKBOOK, GROUPS, Recipe, recipes
from examples.cookbook.stories import outcome_in_words, story
from spark_cep.cases.document.values import plain
from spark_cep.cases.running.found import micros_of
from spark_cep.event_times import instant_text

ROOT: Final = COOKBOOK.parents[1]
PAGES: Final = ROOT / "docs" / "cookbook"
PICTURES: Final = PAGES / "pictures"
_GENERATED: Final = (
    "<!-- Written by `python -m examples.cookbook.pages` from examples/cookbook. -->"
)


def written_files(all_recipes: Sequence[Recipe]) -> dict[Path, str]:
    """The text of each page, and of each file of events, by its path."""
    groups = {group: [one for one in all_recipes if one.group == group] for group in GROUPS}
    return {
        PAGES / "index.md": _lines(_index(groups, len(all_recipes))),
        **{PAGES / f"{group}.md": _lines(_page(group, of)) for group, of in groups.items()},
        **{_events_path(one): _lines(_events(one)) for one in all_recipes},
    }


def drawings(all_recipes: Iterable[Recipe]) -> dict[Path, str]:
    """The drawing of each rule as DOT text, by the path of its picture."""
    files = (rule for one in all_recipes for rule in one.rule_files)
    return {PICTURES / f"{rule.stem}.svg": drawing(rule) for rule in files}


def _lines(lines: Iterable[str]) -> str:
    return "\n".join(lines) + "\n"


def _events_path(recipe: Recipe) -> Path:
    (schema,) = recipe.folder.glob("*.avsc")
    return schema.with_suffix(".jsonl")


def _events(recipe: Recipe) -> Iterator[str]:
    """The events of the first case as JSON lines, which other commands read."""
    run = recipe.example.run
    column = str(run.case.shape.event_time)
    for event in run.events:
        values = {name: plain(value) for name, value in event.values.items()}
        yield json.dumps({**values, column: instant_text(micros_of(event.time))})


def _index(groups: dict[str, list[Recipe]], count: int) -> Iterator[str]:
    yield _GENERATED
    yield (COOKBOOK / "index.md").read_text("utf-8").replace("{count}", str(count)).rstrip()
    for group, of in groups.items():
        yield from ("", f"## {GROUPS[group]}", "", "| recipe | finds |", "| --- | --- |")
        yield from (f"| {_link(one)} | {' '.join(one.problem.split())} |" for one in of)
    techniques: dict[str, list[Recipe]] = {}
    for one in (each for of in groups.values() for each in of):
        for technique in one.techniques:
            techniques.setdefault(technique, []).append(one)
    yield from ("", "## By technique", "", "| technique | recipes |", "| --- | --- |")
    for technique in sorted(techniques, key=str.casefold):
        yield f"| {technique} | {', '.join(map(_link, techniques[technique]))} |"


def _link(recipe: Recipe, page: str | None = None) -> str:
    anchor = re.sub(r"[^\w\- ]", "", recipe.title.lower()).replace(" ", "-")
    page = f"{recipe.group}.md" if page is None else page
    return f"[{recipe.title}]({page}#{anchor})"


def _page(group: str, of: Sequence[Recipe]) -> Iterator[str]:
    yield from (_GENERATED, f"# Cookbook: {GROUPS[group].lower()}", "")
    yield from (f"- {_link(one, '')}" for one in of)
    yield from ("", "[All recipes](index.md), also by technique.")
    for one in of:
        yield from ("", f"## {one.title}", "", one.problem)
        for number, rule in enumerate(one.rule_files):
            yield from ("", *_rule(rule, is_first=number == 0))
        for name in ("Why it is written this way", "Cost"):
            if name in one.sections:
                yield from ("", f"**{name}.** {_text(one.sections[name])}")
        yield from ("", *story(one.example))
        for suite in one.suites:
            others = suite.file.cases[1 if suite is one.suites[0] else 0 :]
            yield from ("", f"Other cases of `{suite.rules[0].rule.id}`:", "")
            yield from (f"- {case.name}: {outcome_in_words(case)}" for case in others)
        yield from ("", f"**Variations**\n\n{_text(one.sections['Variations'])}")
        yield from ("", f"Files: [{one.group}/{one.name}]({_to(one.folder)})")


def _rule(file: Path, *, is_first: bool) -> Iterator[str]:
    in_sql = file.suffix == ".sql"
    if not is_first:
        yield from ("The same in SQL:" if in_sql else "The same in steps:", "")
    yield f"```{file.suffix[1:]}"
    yield file.read_text("utf-8").rstrip()
    yield from ("```", "")
    yield f"![The automaton of {file.stem}](pictures/{file.stem}.svg)"


def _to(path: Path) -> str:
    return f"../../{path.relative_to(ROOT).as_posix()}"


def _text(section: str) -> str:
    return section.replace("](../../../../docs/cookbook/", "](").replace("../../../../docs/", "../")


def write() -> None:
    """Write all pages, events and pictures, and remove pictures of rules that are gone."""
    all_recipes = recipes()
    PICTURES.mkdir(parents=True, exist_ok=True)
    for path, text in written_files(all_recipes).items():
        path.write_text(text, "utf-8")
    drawn = drawings(all_recipes)
    for path, dot in drawn.items():
        if not path.exists() or not path.read_text("utf-8").startswith(mark(dot)):
            path.write_text(picture(dot), "utf-8")
    for path in set(PICTURES.iterdir()) - set(drawn):
        path.unlink()


if __name__ == "__main__":
    write()
