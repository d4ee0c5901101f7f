"""The documentation and the JSON Schema say what the model says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from spark_cep.config import Settings
from spark_cep.config.__main__ import main
from spark_cep.config.quantities import format_size, parse_size
from spark_cep.config.reference import config_schema, render_reference, unit_of
from spark_cep.documents.shapes import Form, walk
from spark_cep.durations import DurationError, parse_duration

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
    assert definitions["Time"]["properties"]["allowed_disorder"]["default"] == "1 second"


DURATIONS = ("500 ms", "10s", " 1 Hour 30 MINUTES ", "1.5 h", "0 ms")
NO_DURATIONS = ("", "10", "10 moons", "s", "10 s and", "-1 s")


@pytest.mark.parametrize("text", [*DURATIONS, *NO_DURATIONS])
def test_schema_takes_durations(text: str) -> None:
    """What the service reads as a duration matches the schema, what it refuses does not."""
    (pattern, _) = config_schema()["$defs"]["Time"]["properties"]["allowed_disorder"]["anyOf"]
    matches = re.search(pattern["pattern"], text) is not None
    assert matches == (text in DURATIONS)
    if matches:
        parse_duration(text)
    else:
        with pytest.raises(DurationError):
            parse_duration(text)


def test_schema_takes_durations_above_zero() -> None:
    """Where a setting must be more than nothing, the schema says so, too."""
    (part, _) = config_schema()["$defs"]["Time"]["properties"]["partition_idle_after"]["anyOf"]
    (positive,) = part["allOf"]
    texts = {"0 ms": False, "0.0 s 0 ms": False, "0 s 10 ms": True}
    for text, above in texts.items():
        assert (re.search(positive["pattern"], text) is not None) == above


@pytest.mark.parametrize("text", ["64 MiB", "1kB", " 3 b ", "64", "MiB", "1.5 GiB", "1 XB"])
def test_schema_takes_sizes(text: str) -> None:
    """What the service reads as a size matches the schema, what it refuses does not."""
    (pattern, _) = config_schema()["$defs"]["StateSettings"]["properties"]["bucket_size"]["anyOf"]
    if re.search(pattern["pattern"], text):
        parse_size(text)
    else:
        with pytest.raises(ValueError, match="is not a size"):
            parse_size(text)


def test_writing_that_of_a_chart(tmp_path: Path) -> None:
    """The chart's own part stays, the settings' is renewed, with references that lead there."""
    path = tmp_path / "values.schema.json"
    own = {"properties": {"a": {}}, "definitions": {"name": {"type": "string"}, "config": {}}}
    path.write_text(json.dumps(own), "utf-8")
    assert main(["chart", str(path)]) == 0
    made = json.loads(path.read_text("utf-8"))
    assert made["properties"] == own["properties"]
    assert made["definitions"]["name"] == {"type": "string"}
    references = set(re.findall(r'"\$ref": "([^"]+)"', json.dumps(made)))
    assert all(each.startswith("#/definitions/config/$defs/") for each in references)
    names = {each.rpartition("/")[2] for each in references}
    assert names <= made["definitions"]["config"]["$defs"].keys()


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
