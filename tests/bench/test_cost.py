"""The benchmark of costs: its shapes load, and it measures what it says."""

from __future__ import annotations

import pytest

from bench.cost import Cost, Costs, cost, table
from bench.cost_shapes import SHAPES, chosen
from spark_cep.pattern.document.loading import load_rules


def test_every_shape_is_a_rule() -> None:
    """There are 28, with names of their own."""
    assert len({shape.name for shape in SHAPES}) == len(SHAPES) == 28
    for shape in SHAPES:
        (loaded,) = load_rules(shape.document, shape.name)
        assert loaded.rule.id == shape.name


@pytest.mark.parametrize("name", ["distinct-texts", "sql-drop"])
def test_costs(name: str) -> None:
    """A shape in YAML and one in SQL, over few events."""
    (shape,) = (each for each in SHAPES if each.name == name)
    found = cost(shape, [40, 20])
    assert [each.events for each in found.costs] == [20, 40]
    assert all(each.seconds > 0 and each.slowest > 0 for each in found.costs)
    assert len(list(table([found]))) == 4


def test_growth() -> None:
    """A hundred times as long for ten times as many is the square."""
    costs = [Cost(10, 0.5, 0.1, 0), Cost(100, 50.0, 0.1, 0)]
    assert Costs(SHAPES[0], costs).growth == pytest.approx(2)
    assert Costs(SHAPES[0], costs[:1]).growth is None


def test_chosen() -> None:
    """By a part of the name."""
    assert [shape.name for shape in chosen(["sql-sum", "spread"])] == ["spread", "sql-sum"]
    with pytest.raises(ValueError, match="no shape has 'nothing' in its name; there are one-step"):
        chosen(["nothing"])
