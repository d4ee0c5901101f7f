"""The documentation and the JSON Schema say what the model says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from service.config import Settings
from service.config.__main__ import main
from service.config.quantities import format_size, parse_size
from service.config.reference import config_schema, render_reference, unit_of
from service.documents.shapes import Form, walk

ROOT = Path(__file__).parents[2]


def test_reference_is_up_to_date() -> None:
    """docs/configuration.md is what the model gives."""
    assert (ROOT / "docs/configuration.md").read_text() == render_reference()


def test_schema_is_up_to_date() -> None:
    """schemas/config.schema.json is what the model gives."""
    assert json.loads((ROOT / "schemas/config.schema.json").read_text()) == config_schema()


def test_every_setting_is_described() -> None:
    """Every setting has a description that ends like a sentence; every number but a port a unit."""
    for path, info, shape in walk(Settings):
        assert (info.description or "").endswith("."), path
        if (
            shape.form is Form.VALUE
            and int in shape.types
            and not path[-1].endswith("port")
            and path[-1] != "version"
        ):
            assert unit_of(info), path


def test_schema_lets_values_come_from_elsewhere() -> None:
    """Single values, and those in property maps, may be a file or variable; sections may not."""
    definitions = config_schema()["$defs"]
    elsewhere = {"$ref": "#/$defs/ValueFromElsewhere"}
    assert elsewhere in definitions["Security"]["properties"]["password"]["anyOf"]
    assert elsewhere in definitions["Time"]["properties"]["allowed_disorder"]["anyOf"]
    values = definitions["Spark"]["properties"]["conf"]["additionalProperties"]
    assert elsewhere in values["anyOf"]
    assert definitions["Time"]["properties"]["allowed_disorder"]["default"] == "10 seconds"


def test_printing(capsys: pytest.CaptureFixture[str]) -> None:
    """The module prints either document, and its usage otherwise."""
    assert main(["reference"]) == 0
    assert capsys.readouterr().out == render_reference()
    assert main(["schema"]) == 0
    assert json.loads(capsys.readouterr().out) == config_schema()
    assert main([]) == 2


def test_sizes() -> None:
    """Sizes are read in binary and decimal units and written in the largest that fits."""
    assert [parse_size(text) for text in ("64 MiB", "1kB", "3 B")] == [64 * 2**20, 1000, 3]
    assert [format_size(size) for size in (64 * 2**20, 1000, 0)] == ["64 MiB", "1000 B", "0 B"]
    for text in ("64", "MiB", "1.5 GiB", "1 XB"):
        with pytest.raises(ValueError, match="is not a size"):
            parse_size(text)
