"""The type of a column that several record types have."""

from __future__ import annotations

import pytest

from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.rule_set import Slot
from spark_cep.compiler.slot_types import slot_type
from spark_cep.errors import SchemaError
from spark_cep.pattern.types import BIGINT, DOUBLE, FLOAT, INT, NULL, STRING, RecordType, SqlType


def types(*kinds: SqlType) -> RecordTypes:
    """A record type for each, all of one input."""
    return RecordTypes(
        tuple(("in", f"t.R{n}", RecordType({"x": kind})) for n, kind in enumerate(kinds))
    )


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        ((INT,), INT), ((INT, INT), INT), ((INT, BIGINT), BIGINT), ((DOUBLE, FLOAT), DOUBLE),
        ((NULL, STRING), STRING), ((NULL,), NULL), ((), NULL),
    ],
)  # fmt: skip
def test_one_type_or_the_wider_of_two(kinds: tuple[SqlType, ...], expected: SqlType) -> None:
    """What only some of them have is of their type."""
    assert slot_type(Slot(("in",), None, ("x",)), types(*kinds)) == expected


def test_others_are_refused() -> None:
    """Unless the step says which of them it means."""
    known = types(INT, STRING, DOUBLE)
    with pytest.raises(
        SchemaError, match=r"x is INT in t.R0 \(input in\), STRING in t.R1 \(input in\)"
    ):
        slot_type(Slot((), None, ("x",)), known)
    assert slot_type(Slot((), "R1", ("x",)), known) == STRING
    assert slot_type(Slot(("other",), None, ("x",)), known) == NULL
