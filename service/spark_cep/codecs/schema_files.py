"""Schemas in files: of Avro, JSON Schemas, and messages of ``.proto`` files."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

from spark_cep.codecs.avro.schema import AvroSchema, parse
from spark_cep.codecs.json.json_schema import from_json_schema, is_json_schema
from spark_cep.errors import ConfigurationError

AVRO: Final = ".avsc"
PROTOBUF: Final = ".proto"
_WITH_MESSAGE: Final = re.compile(r"(.+\.proto):([A-Za-z_][\w.]*)", re.IGNORECASE | re.DOTALL)


class SchemaFile(NamedTuple):
    """A file, and of a ``.proto`` file the message that events are, where it was named."""

    path: Path
    message: str | None = None

    @classmethod
    def of(cls, given: Path) -> SchemaFile:
        """The file that is given as ``FILE``, or as ``FILE.proto:MESSAGE``."""
        named = _WITH_MESSAGE.fullmatch(str(given))
        return cls(given) if named is None else cls(Path(named[1]), named[2])

    @property
    def is_protobuf(self) -> bool:
        """Return whether its name is that of a ``.proto`` file."""
        return self.path.suffix.lower() == PROTOBUF


def schemas_among(files: Iterable[Path]) -> list[Path]:
    """The schema files among those of a folder, in order: Avro's, or where it has none,
    Protobuf's."""
    listed = sorted(files)
    avro = [each for each in listed if each.suffix.lower() == AVRO]
    return avro or [each for each in listed if SchemaFile(each).is_protobuf]


def schema_of_file(given: Path, record: str | None = None) -> AvroSchema:
    """The schema of a file. ``record``: the name of a JSON Schema's record type; of a ``.proto``
    file, the message, unless it is given with the file (``FILE.proto:MESSAGE``).

    Raises SchemaError where it is no schema, ConfigurationError where it cannot be read.
    """
    path, message = file = SchemaFile.of(given)
    try:
        if file.is_protobuf:
            status = path.stat()
            return _columns(path, message or record, (status.st_mtime_ns, status.st_size))
        text = path.read_text("utf-8")
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{path}: cannot be read: it is not UTF-8") from error
    return schema_of_text(text, record, str(path))


def schema_of_text(text: str, record: str | None, origin: str) -> AvroSchema:
    """The schema that a text is: one of Avro, or a JSON Schema, whose record type is called
    ``record``. Raises SchemaError."""
    try:
        plain = json.loads(text)
    except (ValueError, RecursionError):
        plain = None
    if is_json_schema(plain):
        return from_json_schema(text, record, origin).schema
    return parse(text, origin)


@lru_cache(maxsize=100)
def _columns(path: Path, message: str | None, _stamp: tuple[int, int]) -> AvroSchema:
    """The columns of a message. The compiler takes a moment, and each test case asks."""
    # Protobuf's library is slow to import.
    from spark_cep.codecs.protobuf.descriptors import compiled_file
    from spark_cep.codecs.protobuf.message_columns import columns_of

    advice = f"name the one that events are, as {path}:MESSAGE"
    found = compiled_file(path).message_called(message, str(path), advice)
    return columns_of(found, str(path))
