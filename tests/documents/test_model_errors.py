"""What a model refuses, as sentences: the part, what was found, what is allowed."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from spark_cep.documents.model_errors import HIDDEN, Explainer, ModelFault
from spark_cep.documents.places import Path
from spark_cep.documents.shapes import Form, Shape
from spark_cep.documents.values import duration


class Inner(BaseModel):
    """A section with one field that must be there."""

    model_config = ConfigDict(extra="forbid")

    needed: str = Field(description="What is needed.")
    share: float = Field(0.5, gt=0, lt=1)


class Whole(BaseModel):
    """A document."""

    model_config = ConfigDict(extra="forbid")

    inner: Inner = Inner(needed="x")
    count: int = Field(1, ge=1, le=9, description="How many.")
    port: int = Field(1, le=9)
    mode: Literal["fast", "slow"] = "fast"
    on: bool = True
    name: str = Field("x", min_length=1, max_length=3)
    names: list[str] = Field([], description="Several names.")
    at: AwareDatetime | None = None
    either: int | Literal["auto"] = 1
    wait: Annotated[int, BeforeValidator(duration)] = 0


def faults(shown: Any = lambda _, value: value, **given: Any) -> list[ModelFault]:
    """What is wrong with a document of these fields."""
    name = ".".join
    explainer = Explainer(
        Shape(Form.SECTION, Whole), lambda path: name(map(str, path)), shown=shown
    )
    with pytest.raises(ValidationError) as caught:
        Whole.model_validate(given)
    return explainer.faults(caught.value)


@pytest.mark.parametrize(
    ("field", "value", "path", "message", "allowed"),
    [
        ("count", 0, ("count",), "count cannot be `0`", "from 1 to 9"),
        ("port", 10, ("port",), "port cannot be `10`", "at most 9"),
        ("count", "x", ("count",), "count must be a whole number, found `x`", None),
        ("on", [], ("on",), "on must be `true` or `false`, found a list", None),
        ("mode", "loud", ("mode",), "mode cannot be `loud`", "`fast` or `slow`"),
        ("name", "", ("name",), "name is empty", None),
        ("name", "long", ("name",), "name is too long", "at most 3"),
        ("names", [1], ("names", 0), "names.0 must be text, found the number `1`", "text; put"),
        ("inner", {}, ("inner", "needed"), "inner.needed is missing", "What is needed."),
        (
            "inner",
            {"needed": "x", "share": 20},
            ("inner", "share"),
            "inner.share cannot be `20`",
            "more than 0 and less than 1",
        ),
        ("inner", 1, ("inner",), "inner must be a mapping, found the number `1`", None),
        (
            "at",
            "2026-01-01T00:00:00",
            ("at",),
            "at must be a date and time with its zone, such as 2026-01-31T12:00:00Z, found `20",
            None,
        ),
        ("nmae", 1, ("nmae",), "unknown key nmae", "did you mean `name`? keys here: inner, count"),
        ("zzz", 1, ("zzz",), "unknown key zzz", "keys here: inner, count"),
        ("wait", 5, ("wait",), "wait: `5` is not a duration: its unit is missing", "a number and"),
        ("wait", "5 eons", ("wait",), "wait: `5 eons` is not a duration: its unit is not", "a num"),
        ("wait", "99999 days", ("wait",), "wait: `99999 days` is too long", "a number and a unit"),
    ],
)
def test_each_kind_of_fault_has_its_sentence(
    field: str, value: Any, path: Path, message: str, allowed: str | None
) -> None:
    """With the place, and with all bounds of the field, not just the one that was broken."""
    (fault,) = faults(**{field: value})
    assert fault.path == path
    assert fault.message.startswith(message)
    found = fault.allowed or fault.limit
    assert found is allowed is None or (found and allowed and found.startswith(allowed))


def test_the_members_of_a_union_are_one_fault() -> None:
    """What is allowed is what any of them allows."""
    (fault,) = faults(either="x")
    assert fault.path == ("either",)
    assert fault.limit == "`auto`"


def test_a_list_describes_its_items() -> None:
    """An item has no description of its own."""
    (fault,) = faults(names=[1])
    assert fault.description == "Several names."


def test_hidden_values_are_not_shown() -> None:
    """Whatever is wrong with them."""
    for field in ("count", "mode", "wait", "at", "on"):
        (fault,) = faults(lambda _path, _value: HIDDEN, **{field: "5 secrets"})
        assert "secrets" not in repr(fault)
        assert "a value that is not shown" in fault.message


def test_long_values_are_cut() -> None:
    """A message stays a line."""
    (fault,) = faults(mode="very " * 100)
    assert len(fault.message) < 100
