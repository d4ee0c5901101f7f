"""Files as the browser, or the command line, gives them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import PurePath
from typing import Final

from spark_cep.codecs.avro.schema import AvroSchema
from spark_cep.codecs.schema_files import AVRO
from spark_cep.errors import ConfigurationError

MOST_BYTES: Final = 8 << 20
"""Most bytes of all files that are opened together."""


@dataclass(frozen=True)
class GivenFile:
    """A file's name and content."""

    name: str
    content: bytes

    @classmethod
    def of_schema(cls, name: str, schema: AvroSchema) -> GivenFile:
        """A schema file of another format as the page has schemas, which is in Avro."""
        return cls(PurePath(name).stem + AVRO, json.dumps(schema.json, indent=2).encode())

    @property
    def suffix(self) -> str:
        """The end of the name, in small letters."""
        return PurePath(self.name).suffix.lower()

    @property
    def text(self) -> str:
        """The content as text. Raises ConfigurationError."""
        try:
            return self.content.decode("utf-8-sig").replace("\r\n", "\n")
        except UnicodeDecodeError:
            raise ConfigurationError(f"{self.name}: it is not text in UTF-8") from None
