"""What may stand where in a document, read from its model."""

from __future__ import annotations

import pytest

from spark_cep.documents.places import Path
from spark_cep.documents.shapes import Form, Shape, at_location, shape_below
from spark_cep.pattern.document.shape import RuleShape

RULE = Shape(Form.SECTION, RuleShape)


@pytest.mark.parametrize(
    ("location", "unknown", "path"),
    [
        (("key", "<many>", 0), False, ("key", 0)),
        (("key", "<one>"), False, ("key",)),
        (("within", "<mapping>", "max"), False, ("within", "max")),
        (("pattern", 0, "group", 1, "where"), False, ("pattern", 0, "group", 1, "where")),
        (("<one>",), True, ("<one>",)),
        (("pattern", 0, "<many>"), True, ("pattern", 0, "<many>")),
        (("emit", "measures", "<one>"), False, ("emit", "measures", "<one>")),
        (("emit", "measures", "m", "[key]"), False, ("emit", "measures", "m")),
        (("version", "int"), False, ("version",)),
        ((), False, ()),
    ],
)
def test_locations_become_paths(location: Path, unknown: bool, path: Path) -> None:
    """Without the tags of unions, which only pydantic knows; a key may be called like one."""
    assert at_location(RULE, location, unknown=unknown)[0] == path


def test_what_stands_at_a_path() -> None:
    """Nothing, where the model has nothing."""
    gap = shape_below(RULE, ("pattern", 3, "group", 0, "gap"))
    assert gap is not None
    assert (gap.form, gap.types, gap.nullable) == (Form.VALUE, (int,), True)
    assert shape_below(RULE, ("pattern", 3, "nothing", "x")) is None
