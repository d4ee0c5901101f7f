"""The settings as documentation: ``docs/configuration.md``, ``schemas/config.schema.json``, and the
part of ``helm/values.schema.json`` that is about them.

All are written from the model, so they cannot say anything else than the service does.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from spark_cep.config.quantities import Shown, format_size
from spark_cep.config.settings import Settings
from spark_cep.documents.shapes import FREE_KEY, Form, Shape, of_annotation, of_field, walk
from spark_cep.durations import format_duration

_HEAD: Final = """\
# Configuration

<!-- Written by `python -m spark_cep.config reference`; change the settings, not this file. -->

One YAML file, given with `--config`; every setting can also be given by an environment variable,
which wins. `schemas/config.schema.json` describes the file to editors.

```yaml
kafka:
  bootstrap_servers: broker-1:9093,broker-2:9093
  security:
    protocol: SASL_SSL
    sasl_mechanism: SCRAM-SHA-512
    username: cep
    password: {file: /run/secrets/kafka-password}
    ssl_ca_file: ca.pem
inputs:
  logins:
    topics: [logins]
    event_time: ts
registry:
  url: https://registry:8081
state:
  checkpoint: s3a://bucket/spark-cep/fraud
```

- **Unknown settings are refused**, with the nearest name. All problems are listed at once, each
  with file and line or variable.
- **Environment**: `SPARK_CEP__` and the names in capitals, joined by two underscores:
  `SPARK_CEP__KAFKA__BOOTSTRAP_SERVERS`, `SPARK_CEP__INPUTS__LOGINS__TOPICS=logins,logouts`. Lists
  take commas or JSON. Maps of free properties are given whole, as JSON
  (`SPARK_CEP__SPARK__CONF='{"spark.executor.memory": "4g"}'`), and add to the file's. Empty or
  `null` takes an optional setting away.
- **Values from elsewhere**: instead of a single value, `{file: path}` takes a file's text (without
  its last line end) and `{env: NAME}` a variable's; in the environment, append `__FILE` or `__ENV`
  to the name. What came that way is never shown in messages, and secrets are never shown at all:
  settings of type secret, and properties in maps whose name says password, secret, token or the
  like.
- **Durations** are a number and a unit: `500 ms`, `10 seconds`, `5 minutes`,
  `1 hour 30 minutes`; also `hours`, `days`, `weeks`. **Sizes** likewise: `64 MiB`, `1 GiB`.
- **Relative paths** start at the folder of the configuration file.
- TLS files are PEM.
"""


def render_reference() -> str:
    """The text of ``docs/configuration.md``."""
    parts = [_HEAD]
    for name, info in Settings.model_fields.items():
        parts.append(_section((name,), info))
    return "\n".join(parts)


def config_schema() -> dict[str, Any]:
    """The JSON Schema of the configuration file."""
    made = Settings.model_json_schema()
    for model in [made, *made["$defs"].values()]:
        model.pop("required", None)  # what the file leaves out, the environment may give
        for name, part in model.get("properties", {}).items():
            model["properties"][name] = _with_reference(part)
    for model_class in {shape.model for _, _, shape in walk(Settings) if shape.model}:
        properties = made["$defs"][model_class.__name__]["properties"]
        for name, info in model_class.model_fields.items():
            if isinstance(info.default, int) and (text := _quantity(info)):
                properties[name]["default"] = text
    made["$defs"]["ValueFromElsewhere"] = {
        "description": "A value taken from a file or an environment variable.",
        "oneOf": [
            {
                "type": "object",
                "properties": {kind: {"type": "string"}},
                "required": [kind],
                "additionalProperties": False,
            }
            for kind in ("file", "env")
        ],
    }
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **made}


def with_settings(values: Mapping[str, Any]) -> dict[str, Any]:
    """A chart's schema of values with the settings' own as its definition ``config``.

    What checks alone is kept. A chart's values may still lack inputs, of which its templates say
    more, and formats are for the service to judge. Helm's error for a duration or size that is none
    lists what would be allowed: a sentence stands among it, which the service refuses as a value.
    """
    schema = json.dumps(_checks(config_schema())).replace("#/$defs/", "#/definitions/config/$defs/")
    definitions = values["definitions"] | {"config": json.loads(schema)}
    return {**values, "definitions": definitions}


def _checks(part: Any, *, named: bool = False) -> Any:
    """A schema without what checks nothing; ``named``: its keys are names, not of its language."""
    if isinstance(part, list):
        return [_checks(each) for each in part]
    if not isinstance(part, dict):
        return part
    examples = [option["examples"][0] for option in part.get("anyOf", ()) if "examples" in option]
    if examples:
        sentence = {"const": f"text with a unit, such as {examples[0]}"}
        part = {**part, "anyOf": [*part["anyOf"], sentence]}
    return {
        key: _checks(value, named=not named and key in ("properties", "$defs"))
        for key, value in part.items()
        if named or key not in _NO_CHECKS
    }


def _section(path: tuple[str, ...], info: FieldInfo) -> str:
    shape = of_field(info)
    if shape.form is Form.MAP:
        path, shape = (*path, FREE_KEY), of_annotation(shape.item)
    needed = " Required." if info.is_required() else ""
    # Without the backslash, <name> is HTML in Markdown and is not shown.
    title = ".".join(path).replace("<", r"\<")
    lines = [f"## {title}", "", f"{info.description}{needed}", ""]
    lines += ["| setting | type | default | unit | meaning |", "| --- | --- | --- | --- | --- |"]
    lines += [
        "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in _rows(shape)
    ]
    return "\n".join([*lines, ""])


def _rows(shape: Shape, prefix: str = "") -> Iterator[tuple[str, str, str, str, str]]:
    for name, info in (shape.model.model_fields if shape.model else {}).items():
        inner = of_field(info)
        if inner.model is not None and not inner.nullable:
            yield from _rows(inner, f"{prefix}{name}.")
            continue
        setting = f"`{prefix}{name}`"
        yield setting, _type(inner), _default(info), unit_of(info), info.description or ""
        if inner.model is not None:
            yield from _rows(inner, f"{prefix}{name}.")


def unit_of(info: FieldInfo) -> str:
    """The unit of a setting: the type's, or the one it was declared with."""
    shown = _shown(of_field(info))
    if shown is not None and shown.unit:
        return shown.unit
    extra = info.json_schema_extra
    return str(extra["x-unit"]) if isinstance(extra, dict) and "x-unit" in extra else ""


def _shown(shape: Shape) -> Shown | None:
    """The name and unit that the type is shown by, where it has them."""
    return next((mark for mark in shape.marks if isinstance(mark, Shown)), None)


def _type(shape: Shape) -> str:
    kinds: list[str] = []
    if shape.form is Form.SECTION:
        kinds.append("section")
    elif shape.form is Form.LIST:
        kinds.append(f"list of {_type(of_annotation(shape.item))}s")
    elif (shown := _shown(shape)) is not None:
        kinds.append(shown.type)
    elif shape.form is Form.MAP:
        kinds.append("map")
    else:
        names = {"str": "text", "int": "number", "bool": "`true`, `false`", "Path": "path"}
        names |= {"SecretStr": "secret"}
        kinds += [names.get(kind.__name__, kind.__name__) for kind in shape.types]
    kinds += [f"`{choice}`" for choice in shape.choices]
    return ", ".join(kinds)


def _default(info: FieldInfo) -> str:
    value = info.default
    if value is PydanticUndefined:
        return "required"
    if value is None or value in ([], {}, ""):
        return ""
    return f"`{_quantity(info) or (str(value).lower() if isinstance(value, bool) else value)}`"


def _quantity(info: FieldInfo) -> str:
    """The default of a duration or size as it is written; nothing for other settings."""
    shown = _shown(of_field(info))
    if shown is not None and shown.type.startswith("duration"):
        return format_duration(info.default)
    if shown is not None and shown.type == "size":
        return format_size(info.default)
    return ""


def _with_reference(part: dict[str, Any]) -> dict[str, Any]:
    """A single value may also be taken from elsewhere."""
    part.pop("title", None)
    if "$ref" in part:
        part.pop("default", None)
    if part.get("type") in ("object", "array") or "$ref" in part:
        values = part.get("additionalProperties")
        if isinstance(values, dict) and isinstance(values.get("type"), list):
            part = {**part, "additionalProperties": {"anyOf": [values, _ELSEWHERE]}}
        return part
    about: dict[str, Any] = {key: part[key] for key in _ABOUT if key in part}
    value: dict[str, Any] = {key: item for key, item in part.items() if key not in _ABOUT}
    options = value.get("anyOf", [value])
    if any("$ref" in option or option.get("type") == "object" for option in options):
        return part
    return {**about, "anyOf": [*options, _ELSEWHERE]}


_NO_CHECKS: Final = frozenset(
    ("$schema", "title", "description", "default", "examples", "x-unit", "format", "minProperties")
)
_ABOUT: Final = ("description", "default", "x-unit")
_ELSEWHERE: Final = {"$ref": "#/$defs/ValueFromElsewhere"}
