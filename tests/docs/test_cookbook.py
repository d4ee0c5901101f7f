"""Cases of the cookbook pass, its rules are valid, and its pages are those of its recipes."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from typer.testing import CliRunner

from examples.cookbook.pages import PICTURES, drawings, written_files
from examples.cookbook.pictures import mark
from examples.cookbook.recipe import Recipe, recipes
from spark_cep.cli.authoring.checking import check_rules
from spark_cep.cli.main import app

RECIPES = recipes()


@cache
def drawn() -> dict[Path, str]:
    """The drawing of each rule, by the path of its picture."""
    return drawings(RECIPES)


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.name)
def test_recipe(recipe: Recipe) -> None:
    """Its rules are valid for its schema, without a warning, and its cases pass."""
    report = check_rules(recipe.rule_files, None, list(recipe.folder.glob("*.avsc")))
    assert (report.problems, report.warnings) == ((), ())
    outcomes = [recipe.example, *recipe.other_outcomes()]
    assert [line for each in outcomes if not each.passed for line in each.lines()] == []
    found = [each.run.kit for each in outcomes]
    assert found[0].matches or found[0].timeouts, "the first case shows what is found"
    assert not all(kit.matches for kit in found), "a case shows what is not"


def test_pages_are_in_step() -> None:
    """`python -m examples.cookbook.pages` writes them, and the files of events, again."""
    assert len(RECIPES) >= 30
    for path, text in written_files(RECIPES).items():
        assert path.read_text("utf-8") == text, path.name


def test_pictures_are_in_step() -> None:
    """Each picture is of its rule as it is, there are no others, and all of them are small."""
    assert set(PICTURES.iterdir()) == set(drawn())
    for path, dot in drawn().items():
        assert path.read_text("utf-8").startswith(mark(dot)), path.name
    sizes = [path.stat().st_size for path in drawn()]
    assert max(sizes) < 60_000
    assert sum(sizes) < 800_000


def test_names_are_unique() -> None:
    """No two rules have one id, so all of them can lie in one folder of a job."""
    ids = [rule.stem for recipe in RECIPES for rule in recipe.rule_files]
    assert len(set(ids)) == len(ids)


def test_events_are_read_by_other_commands() -> None:
    """Files of events give a back-test the match of the first case."""
    (recipe,) = [each for each in RECIPES if each.name == "double-charge"]
    (events,) = recipe.folder.glob("*.jsonl")
    rule, schema = recipe.rule_files[0], events.with_suffix(".avsc")
    command = ["backtest", "--rules", rule, "--input", events, "--schema", schema]
    result = CliRunner().invoke(app, list(map(str, command)))
    assert "Matches: 1, late events: 0, dead letters: 0" in result.output
