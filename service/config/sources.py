"""Where settings come from: a YAML file, and environment variables, which win.

Both sources walk their text next to the model. So text stays text (``0123`` as a password is not a
number), relative paths are resolved, ``{file: …}`` and ``{env: …}`` are replaced by what they point
to, and the line or variable of every setting is known when something is wrong with it. Problems
are collected, not raised: the reader of a configuration wants all of them.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml
from pydantic import SecretStr
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource

from service.config.problems import Origin, SettingPath, SettingProblem, unknown
from service.config.shapes import FREE_KEY, Form, Shape, names_below, walk

PREFIX: Final = "SPARK_CEP__"
DELIMITER: Final = "__"
MAX_FILE_BYTES: Final = 1 << 20
MAX_NODES: Final = 100_000
MAX_DEPTH: Final = 50
_TOO_LARGE: Final = f"more than {MAX_NODES} values, or more than {MAX_DEPTH} deep"

_REFERENCES: Final = ("file", "env")
_CONSTRUCTOR: Final = yaml.constructor.SafeConstructor


class Reader:
    """Reads texts next to the model; keeps origins and problems of everything that was read."""

    def __init__(self, root: Shape, folder: Path, environ: Mapping[str, str]) -> None:
        self.root = root
        self.folder = folder
        self.environ = environ
        self.origins: dict[SettingPath, Origin] = {}
        self.problems: list[SettingProblem] = []
        self._nodes = 0

    def parse(self, text: str, origin: Origin, path: SettingPath) -> yaml.Node | None:
        """The YAML document as nodes; nothing, and a problem, when it is not YAML."""
        try:
            return yaml.compose(text, Loader=yaml.SafeLoader)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            line = mark.line + 1 if mark is not None and origin.line is not None else origin.line
            message = f"not YAML: {error.problem or error.context}"
        except RecursionError:
            line, message = origin.line, _TOO_LARGE
        except yaml.reader.ReaderError as error:
            line, message = origin.line, f"not YAML: {error.reason}"
        self.problems.append(SettingProblem(Origin(origin.file, line), path, message))
        return None

    def value(self, node: yaml.Node, shape: Shape | None, path: SettingPath, at: Origin) -> Any:
        """The node as plain data, fit for the model. ``at`` without line: a variable."""
        self._nodes += 1
        if self._nodes > MAX_NODES or len(path) > MAX_DEPTH:
            raise TooLargeError
        here = Origin(at.file, None if at.line is None else node.start_mark.line + 1)
        self.origins[path] = here
        if isinstance(node, yaml.MappingNode):
            single = shape is None or shape.form is Form.VALUE
            reference = _reference(node) if single else None
            if reference is not None and shape is not None:
                return self.referred(*reference, shape, path, here)
            return dict(self._entries(node, shape, path, at))
        if isinstance(node, yaml.SequenceNode):
            inner = shape.child("") if shape is not None and shape.form is Form.LIST else None
            return [
                self.value(item, inner, (*path, str(index)), at)
                for index, item in enumerate(node.value)
            ]
        return self._scalar(node, shape, path, here)

    def text(self, text: str, shape: Shape) -> Any:
        """A text for a single value; relative paths start at the configuration's folder."""
        if shape.located and "://" not in text and text:
            return str(self.folder / Path(text).expanduser())
        return text

    def _entries(
        self, node: yaml.MappingNode, shape: Shape | None, path: SettingPath, at: Origin
    ) -> Iterator[tuple[str, Any]]:
        seen: set[str] = set()
        for key_node, value_node in node.value:
            line = None if at.line is None else key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                message = "found a key that is not a text"
                self.problems.append(SettingProblem(Origin(at.file, line), path, message))
                continue
            name = key_node.value
            if name in seen:
                problem = SettingProblem(Origin(at.file, line), (*path, name), "given twice")
                self.problems.append(problem)
            seen.add(name)
            child = None if shape is None else shape.child(name)
            value = self.value(value_node, child, (*path, name), at)
            at_key = self.origins[(*path, name)]
            self.origins[(*path, name)] = Origin(at.file, line, at_key.hidden)
            yield name, _empty(child) if value is None else value

    def _scalar(self, node: yaml.Node, shape: Shape | None, path: SettingPath, here: Origin) -> Any:
        if node.tag == "tag:yaml.org,2002:null":
            return None
        if shape is not None and shape.form is Form.VALUE and shape.textual:
            boolean = bool in shape.types or _is_property(shape)
            if not (boolean and node.tag == "tag:yaml.org,2002:bool"):
                return self.text(str(node.value), shape)
        try:
            value = _CONSTRUCTOR().construct_object(node, deep=True)
        except (yaml.constructor.ConstructorError, ValueError):
            self.problems.append(SettingProblem(here, path, f"cannot be read as {node.tag}"))
            return None
        return value if isinstance(value, bool | int | float | str) else str(node.value)

    def referred(
        self, kind: str, target: str, shape: Shape, path: SettingPath, here: Origin
    ) -> Any:
        """What ``{file: …}`` or ``{env: …}`` points to."""
        self.origins[path] = Origin(here.file, here.line, hidden=True)
        if kind == "env":
            found = self.environ.get(target)
            if found is None:
                message = f"the environment variable {target} is not set"
                self.problems.append(SettingProblem(here, path, message))
        else:
            found = self.contents(self.folder / Path(target).expanduser(), path, here)
        if found is None:
            return None
        return SecretStr(found) if _is_property(shape) else self.text(found, shape)

    def contents(self, file: Path, path: SettingPath, here: Origin) -> str | None:
        """The text of a file without its last line end; nothing, and a problem, otherwise."""
        try:
            if file.stat().st_size > MAX_FILE_BYTES:
                message = f"{file} is larger than {MAX_FILE_BYTES} bytes"
            else:
                return file.read_text(encoding="utf-8").removesuffix("\n").removesuffix("\r")
        except OSError as error:
            message = f"{file} cannot be read: {error.strerror}"
        except UnicodeDecodeError:
            message = f"{file} is not UTF-8 text"
        self.problems.append(SettingProblem(here, path, message))
        return None


class TooLargeError(Exception):
    """A document unfolds into more values than any configuration has."""


class Given(PydanticBaseSettingsSource):
    """What one source gave, for pydantic-settings to merge."""

    def __init__(self, settings: type[BaseSettings], values: dict[str, Any]) -> None:
        super().__init__(settings)
        self._values = values

    def get_field_value(
        self,
        field: FieldInfo,  # noqa: ARG002 - the signature is pydantic-settings'
        field_name: str,
    ) -> tuple[Any, str, bool]:
        """One section as the source gave it."""
        return self._values.get(field_name), field_name, False

    def __call__(self) -> dict[str, Any]:
        """All that the source gave."""
        return self._values


def default_paths(reader: Reader) -> dict[str, Any]:
    """Relative paths among the defaults, which start at the configuration's folder as well."""
    values: dict[str, Any] = {}
    if reader.root.model is not None:
        for path, info, shape in walk(reader.root.model):
            if shape.located and isinstance(info.default, Path) and FREE_KEY not in path:
                _put(values, path, reader.text(str(info.default), shape))
    return values


def read_file(reader: Reader, file: Path) -> dict[str, Any]:
    """The settings of a YAML file."""
    origin = Origin(str(file), 1)
    text = reader.contents(file, (), Origin(str(file)))
    node = None if text is None else reader.parse(text, origin, ())
    if node is None:
        return {}
    try:
        values = reader.value(node, reader.root, (), origin)
    except TooLargeError:
        problem = SettingProblem(Origin(str(file)), (), _TOO_LARGE)
        reader.problems.append(problem)
        return {}
    if not isinstance(values, dict):
        problem = SettingProblem(origin, (), "found no map", "sections with settings")
        reader.problems.append(problem)
        return {}
    return values


def read_environment(reader: Reader) -> dict[str, Any]:
    """The settings of the environment: ``SPARK_CEP__SECTION__SETTING``."""
    values: dict[str, Any] = {}
    chosen = [name for name in reader.environ if name.upper().startswith(PREFIX)]
    for name in sorted(chosen, key=lambda chosen_name: (chosen_name.count(DELIMITER), chosen_name)):
        path = tuple(name[len(PREFIX) :].lower().split(DELIMITER))
        origin = Origin(f"environment variable {name}")
        text = reader.environ[name]
        found = _place(reader, path, origin)
        if found is None:
            continue
        path, shape, reference = found
        reader.origins[path] = origin
        if reference:
            value = reader.referred(reference, text, shape, path, origin)
        else:
            value = _variable(reader, text, shape, path, origin)
        _put(values, path, value)
    return values


def _place(
    reader: Reader, path: SettingPath, origin: Origin
) -> tuple[SettingPath, Shape, str] | None:
    """What a variable's name stands for: path, shape, and ``file`` or ``env`` behind it."""
    shape = reader.root
    for depth, name in enumerate(path):
        if shape.form is Form.VALUE:
            if depth == len(path) - 1 and name in _REFERENCES:
                return path[:depth], shape, name
            problem = SettingProblem(
                origin, path, "unknown setting", f"{_variable_name(path[:depth])}, or with __FILE"
            )
            reader.problems.append(problem)
            return None
        if shape.form is Form.LIST or (shape.form is Form.MAP and not _named_sections(shape)):
            problem = SettingProblem(
                origin,
                path,
                "unknown setting",
                f"{_variable_name(path[:depth])} with the whole of it",
            )
            reader.problems.append(problem)
            return None
        child = shape.child(name)
        if child is None:
            names = names_below(reader.root, path[:depth])
            near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
            if near:
                right = _variable_name((*path[:depth], near[0], *path[depth + 1 :]))
                problem = SettingProblem(
                    origin,
                    path,
                    f"unknown setting, did you mean {right}?",
                    ", ".join(sorted(names)),
                )
            else:
                problem = unknown(path[: depth + 1], origin, names)
            reader.problems.append(problem)
            return None
        shape = child
    return path, shape, ""


def _variable(reader: Reader, text: str, shape: Shape, path: SettingPath, origin: Origin) -> Any:
    if shape.form is Form.VALUE:
        if shape.nullable and text in ("", "null"):
            return None
        return reader.text(text, shape)
    if shape.form is Form.LIST and not text.lstrip().startswith("["):
        return [part.strip() for part in text.split(",") if part.strip()]
    node = reader.parse(text, origin, path)
    try:
        return None if node is None else reader.value(node, shape, path, origin)
    except TooLargeError:
        reader.problems.append(SettingProblem(origin, path, _TOO_LARGE))
        return None


def _put(values: dict[str, Any], path: SettingPath, value: Any) -> None:
    for name in path[:-1]:
        inner = values.get(name)
        if not isinstance(inner, dict):
            inner = values[name] = {}
        values = inner
    old = values.get(path[-1])
    if isinstance(old, dict) and isinstance(value, dict):
        value = {**old, **value}
    values[path[-1]] = value


def _reference(node: yaml.MappingNode) -> tuple[str, str] | None:
    """``{file: path}`` or ``{env: NAME}``, if the map is one."""
    if len(node.value) != 1:
        return None
    key, target = node.value[0]
    if not isinstance(key, yaml.ScalarNode) or not isinstance(target, yaml.ScalarNode):
        return None
    return (key.value, str(target.value)) if key.value in _REFERENCES else None


def _empty(shape: Shape | None) -> Any:
    """What a name with nothing behind it means: an empty section, map or list, or null."""
    if shape is None or shape.form is Form.VALUE or shape.nullable:
        return None
    return [] if shape.form is Form.LIST else {}


def _named_sections(shape: Shape) -> bool:
    child = shape.child("")
    return child is not None and child.form is Form.SECTION


def _is_property(shape: Shape) -> bool:
    """Whether the value is one of a property map: a text that may be secret or not."""
    return SecretStr in shape.types and str in shape.types


def _variable_name(path: SettingPath) -> str:
    return PREFIX + DELIMITER.join(path).upper()
