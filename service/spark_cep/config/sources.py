"""Sources of settings: a YAML file, and environment variables, which win.

Both are read next to the model. So text stays text (``0123`` as a password is not a number),
relative paths are resolved, ``{file: …}`` and ``{env: …}`` are replaced by what they point to, and
the line or variable of every setting is known when something is wrong with it. Problems are
collected, not raised: the reader of a configuration wants all of them. They never show a value that
is secret or came from elsewhere, and quote no line of the file where a secret may stand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import takewhile
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from pydantic import SecretStr, ValidationError

from spark_cep.config.quantities import PathMarker
from spark_cep.config.redaction import names_a_secret, redact_text, without_login
from spark_cep.documents.model_errors import HIDDEN, Explainer
from spark_cep.documents.nearest import instead, nearest
from spark_cep.documents.places import Path as SettingPath
from spark_cep.documents.reading import UNREADABLE, Document, read_documents
from spark_cep.documents.shapes import FREE_KEY, Form, Shape, shape_below, walk
from spark_cep.errors import Problem, Span

PREFIX: Final = "SPARK_CEP__"
DELIMITER: Final = "__"
MAX_FILE_BYTES: Final = 1 << 20

_REFERENCES: Final = ("file", "env")
_REFERENCE: Final = r"\{\s*(?:file|env)\s*:[^{}]*\}"
_KEY: Final = re.compile(rf"([\w.-]+)[\"']?\s*:\s*({_REFERENCE})?")
"""A key, also in text that is not YAML, and the reference behind it."""
_SECRET_NAMES: Final = ("password", "ssl_key_password", "bearer_token", "secret", "pass", "pwd")
"""What a misspelt name of a secret is near to."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The place where a value was given. ``hidden``: its text came from elsewhere and is not
    shown. ``lines``: those of its file; ``secret``: the numbers, from 0, of those that are not
    shown."""

    source: str
    span: Span | None = None
    hidden: bool = False
    lines: tuple[str, ...] = field(default=(), repr=False)
    secret: frozenset[int] = frozenset()

    @property
    def excerpt(self) -> str | None:
        """The line, unless it may hold a secret."""
        number = -1 if self.span is None else self.span.line - 1
        if number in self.secret or number not in range(len(self.lines)):
            return None
        line = self.lines[number]
        written_out = re.sub(_REFERENCE, "", line)
        return None if "@" in line or redact_text(written_out) != written_out else line


class Reader:
    """Reads all sources, the one that wins last.

    ``values`` are those of all sources together, fit for the model. ``is_readable``: there was no
    file, or it holds settings; else nothing can be said about what is missing. Without ``environ``
    the text is that of a job elsewhere: references are not followed, and nothing is missing that
    the environment may give.
    """

    def __init__(self, root: Shape, folder: Path, environ: Mapping[str, str] | None) -> None:
        self.values: dict[str, Any] = {}
        self.problems: list[Problem] = []
        self.is_readable = True
        self._root = root
        self._folder = folder
        self._environ = environ
        self._origins: dict[SettingPath, Origin] = {}
        self._faulty: set[SettingPath] = set()

    @property
    def origins(self) -> Mapping[SettingPath, Origin]:
        """The places of all that was given: sections, and the settings in them."""
        return MappingProxyType(self._origins)

    def read_defaults(self) -> None:
        """Relative paths among the defaults, which start at the configuration's folder as well."""
        for path, info, shape in walk(self._root.model) if self._root.model else ():
            if _is_place(shape) and isinstance(info.default, Path) and FREE_KEY not in path:
                self._put(path, self._text(str(info.default), shape))

    def read_file(self, file: Path) -> None:
        """The settings of a YAML file."""
        here = self._origins[()] = Origin(str(file))
        text = self._contents(file, (), here)
        if text is not None:
            self.read_text(text, str(file))
        self.is_readable = () not in self._faulty

    def read_text(self, text: str, source: str) -> None:
        """The settings of the text of a YAML file."""
        here = self._origins[()] = Origin(source, Span(1, 1))
        given = self._given(text, self._root, (), here)
        if isinstance(given, dict):
            self._put((), given)
        elif given is not None:
            self._refuse((), "this is not a mapping", here, "sections with settings")
        self.is_readable = () not in self._faulty

    def read_environment(self) -> None:
        """The settings of the environment: ``SPARK_CEP__SECTION__SETTING``."""
        environ = self._environ or {}
        chosen = [name for name in environ if name.upper().startswith(PREFIX)]
        for name in sorted(chosen, key=lambda one: (one.count(DELIMITER), one)):
            here = Origin(f"environment variable {name}")
            found = self._place(tuple(name[len(PREFIX) :].lower().split(DELIMITER)), here)
            if found is not None:
                self._put(found[0], self._variable(environ[name], *found, here))

    def explained(self, error: ValidationError) -> list[Problem]:
        """The problems that pydantic found, without those that are listed already."""
        explainer = Explainer(self._root, _name, "setting", self._shown)
        return [
            _problem(fault.message, self._origin(fault.path), fault.allowed or fault.limit)
            for fault in explainer.faults(error)
            if fault.path not in self._faulty and not (fault.is_missing and self._environ is None)
        ]

    # Where values stand, and what may be shown of them.

    def _origin(self, path: SettingPath) -> Origin:
        """The place of the setting, or else of the nearest section around it."""
        around = (path[:length] for length in range(len(path), -1, -1))
        return next((self._origins[p] for p in around if p in self._origins), Origin("environment"))

    def _shown(self, path: SettingPath, value: Any) -> Any:
        if value is None or isinstance(value, Mapping | list | tuple):
            return value
        secret = isinstance(value, SecretStr) or (path and names_a_secret(str(path[-1])))
        if secret or self._origin(path).hidden:
            return HIDDEN
        return redact_text(without_login(value)) if isinstance(value, str) else value

    def _refuse(
        self, path: SettingPath, message: str, here: Origin, allowed: str | None = None
    ) -> None:
        self._faulty.add(path)
        self.problems.append(_problem(message, here, allowed))

    # Text to values.

    def _given(self, text: str, shape: Shape, path: SettingPath, here: Origin) -> Any:
        """The values of a text, fit for the model; ``None``, and a problem, if it cannot be
        read."""
        documents = read_documents(text, here.source, path, self._is_text)
        for document in documents:
            secret = here.secret | _secret_lines(document, shape, path)
            here = replace(here, lines=document.places.lines, secret=secret)
        for document in documents:
            for place, problem in document.problems.items():
                span = here.span and problem.span
                self._refuse(place, problem.message, replace(here, span=span), problem.allowed)
        if len(documents) > 1 and path not in self._faulty:
            self._refuse(path, f"there are {len(documents)} documents", here, "one document")
        if not documents or path in self._faulty:
            return None
        return self._fit(documents[0], documents[0].data, shape, path, here)

    def _is_text(self, path: SettingPath, kind: str) -> bool:
        """Tell whether the scalar is text, so that YAML's guesses (numbers, dates) do not apply."""
        shape = shape_below(self._root, path)
        if shape is None or shape.form is not Form.VALUE:
            return kind == "timestamp" or (bool(path) and path[-1] in _REFERENCES)
        texts = any(one in (str, SecretStr, Path) for one in shape.types)
        texts = texts or any(isinstance(choice, str) for choice in shape.choices)
        if kind == "bool":
            return texts and bool not in shape.types and not _is_property(shape)
        return texts or kind == "timestamp"

    def _fit(
        self, document: Document, value: Any, shape: Shape | None, path: SettingPath, here: Origin
    ) -> Any:
        """The value of a document, fit for the model, with all that is in it."""
        at = replace(here, span=here.span and document.places.span(path, at="key"))
        if not path:  # no line is that of the whole
            at = replace(at, lines=())
        self._origins[path] = at
        if value is None:
            return UNREADABLE if path in self._faulty else _empty(shape)
        if shape is not None and shape.form is Form.VALUE:
            if isinstance(value, str):
                return self._text(value, shape)
            if _is_reference(value):
                ((kind, target),) = value.items()
                return self._referred(kind, target, shape, path, at)
        if isinstance(value, dict | list):
            entries = value.items() if isinstance(value, dict) else enumerate(value)
            fit = {
                name: self._fit(document, item, shape and shape.child(name), (*path, name), here)
                for name, item in entries
            }
            return fit if isinstance(value, dict) else list(fit.values())
        return value

    def _text(self, text: str, shape: Shape) -> str:
        """A text for a single value; relative paths start at the configuration's folder."""
        if _is_place(shape) and "://" not in text and text:
            return str(self._folder / Path(text).expanduser())
        return text

    def _referred(
        self, kind: str, target: str, shape: Shape, path: SettingPath, here: Origin
    ) -> Any:
        """The value that ``{file: …}`` or ``{env: …}`` points to; one that no setting can have
        where there is none, so that nothing is said of settings that go with it."""
        self._origins[path] = replace(here, hidden=True)
        if self._environ is None:
            self._faulty.add(path)
            return UNREADABLE
        if kind == "env":
            found = self._environ.get(target)
            if found is None:
                message = f"{_name(path)}: the environment variable {target} is not set"
                self._refuse(path, message, here)
        else:
            found = self._contents(self._folder / Path(target).expanduser(), path, here)
        if found is None:
            return UNREADABLE
        return SecretStr(found) if _is_property(shape) else self._text(found, shape)

    def _contents(self, file: Path, path: SettingPath, here: Origin) -> str | None:
        """The text of a file without its last line end; nothing, and a problem, otherwise."""
        try:
            if file.stat().st_size > MAX_FILE_BYTES:
                message = f"is larger than {MAX_FILE_BYTES:,} bytes"
            else:
                return file.read_text(encoding="utf-8").removesuffix("\n").removesuffix("\r")
        except OSError as error:
            message = f"cannot be read: {error.strerror}"
        except UnicodeDecodeError:
            message = "is not UTF-8 text"
        self._refuse(
            path, f"{_name(path)}: {file} {message}" if path else f"the file {message}", here
        )
        return None

    # Environment variables.

    def _place(
        self, path: SettingPath, here: Origin
    ) -> tuple[SettingPath, Shape, str | None] | None:
        """The path and shape that a variable's name stands for, and ``file`` or ``env`` behind
        it."""
        shape = self._root
        for depth, name in enumerate(map(str, path)):
            before, child = path[:depth], shape.child(name)
            if shape.form is Form.VALUE and depth == len(path) - 1 and name in _REFERENCES:
                return before, shape, name
            if shape.form is Form.VALUE:
                allowed = f"{_variable_name(before)}, or with __FILE or __ENV behind it"
            elif shape.form is Form.LIST or (shape.form is Form.MAP and not _has_sections(shape)):
                allowed = f"{_variable_name(before)} with the whole of it"
            elif child is None:
                names = shape.model.model_fields if shape.model else ()
                near = nearest(name, names, 0.5)
                right = _variable_name((*before, near, *path[depth + 1 :])) if near else None
                allowed = f"did you mean {right}?" if right else instead(name, names, "settings")
            else:
                shape = child
                continue
            self._refuse(path, f"unknown setting {_name(path)}", here, allowed)
            return None
        return path, shape, None

    def _variable(
        self, text: str, path: SettingPath, shape: Shape, reference: str | None, here: Origin
    ) -> Any:
        self._origins[path] = here
        if reference is not None:
            return self._referred(reference, text, shape, path, here)
        if shape.form is Form.VALUE:
            empty = shape.nullable and text in ("", "null")
            return None if empty else self._text(text, shape)
        if shape.form is Form.LIST and not text.lstrip().startswith("["):
            return [part.strip() for part in text.split(",") if part.strip()]
        return self._given(text, shape, path, here)

    def _put(self, path: SettingPath, value: Any) -> None:
        """Add what a source gives: it wins over what was given before; mappings are joined."""
        home: dict[Any, Any] = self.values
        for name in path[:-1]:
            if not isinstance(home.get(name), dict):
                home[name] = {}
            home = home[name]
        before = home.get(path[-1]) if path else home
        if isinstance(before, dict) and isinstance(value, dict):
            for name, item in value.items():
                self._put((*path, name), item)
            return
        if isinstance(before, dict | list):
            inner = [p for p in self._origins if p[: len(path)] == path and p != path]
            for gone in inner:
                del self._origins[gone]
        home[path[-1]] = value


def _name(path: SettingPath) -> str:
    return f"`{'.'.join(map(str, path))}`"


def _problem(message: str, at: Origin, allowed: str | None) -> Problem:
    return Problem(message, at.source, at.span, at.excerpt, allowed=allowed)


def _is_reference(value: Any) -> bool:
    if not isinstance(value, dict) or len(value) != 1:
        return False
    ((kind, target),) = value.items()
    return kind in _REFERENCES and isinstance(target, str)


def _secret_lines(document: Document, shape: Shape, path: SettingPath) -> frozenset[int]:
    """The numbers of the lines in which a secret may be written out. Of text that is not YAML it
    may be anywhere behind the first key that names one."""
    if document.data is UNREADABLE:
        before = takewhile(lambda line: not _names_one(line), document.places.lines)
        return frozenset(range(sum(1 for _ in before), len(document.places.lines)))
    marks = (document.places.values[each] for each in _secrets(document.data, shape, path))
    return frozenset(n for mark in marks for n in range(mark.line, mark.end_line + 1))


def _names_one(line: str) -> bool:
    return any(_may_name_one(key[1]) and not key[2] for key in _KEY.finditer(line))


def _may_name_one(name: str) -> bool:
    """Tell whether a name names a secret, or was perhaps meant to."""
    return names_a_secret(name) or nearest(name, _SECRET_NAMES) is not None


def _secrets(value: Any, shape: Shape | None, path: SettingPath) -> Iterator[SettingPath]:
    """Yield the paths of values that are secret by their type or their name."""
    if _is_reference(value):
        return
    by_type = shape is not None and SecretStr in shape.types and not _is_property(shape)
    if by_type or (path and names_a_secret(str(path[-1]))):
        yield path
    elif isinstance(value, dict | list):
        for name, item in value.items() if isinstance(value, dict) else enumerate(value):
            inner = shape and shape.child(name)
            if inner is None and isinstance(name, str) and _may_name_one(name):
                yield (*path, name)
            else:
                yield from _secrets(item, inner, (*path, name))


def _empty(shape: Shape | None) -> Any:
    """The value of a name with nothing behind it: an empty section, map or list, or null."""
    if shape is None or shape.form is Form.VALUE or shape.nullable:
        return None
    return [] if shape.form is Form.LIST else {}


def _has_sections(shape: Shape) -> bool:
    child = shape.child("")
    return child is not None and child.form is Form.SECTION


def _is_place(shape: Shape) -> bool:
    """Tell whether the value is a path that may be relative."""
    return Path in shape.types or any(isinstance(mark, PathMarker) for mark in shape.marks)


def _is_property(shape: Shape) -> bool:
    """Tell whether the value is one of a property map: a text that may be secret or not."""
    return SecretStr in shape.types and str in shape.types


def _variable_name(path: SettingPath) -> str:
    return PREFIX + DELIMITER.join(map(str, path)).upper()
