"""Values of output records as data, for commands that show them: Avro by the schemas of the
registry, JSON as it stands."""

from __future__ import annotations

import json
from io import BytesIO
from typing import Any, Final
from uuid import UUID

import fastavro
from confluent_kafka import Message

from spark_cep.codecs.avro.schema import without_defaults
from spark_cep.codecs.output.schemas import schema_text
from spark_cep.codecs.registry.framing import Framed, locate
from spark_cep.codecs.registry.registry import Registry
from spark_cep.errors import SchemaError, SchemaNotFoundError

#: Own records are read as their newest schema, whatever version wrote them.
_CONTRACTS: Final = {
    "sparkcep.v1.Match": "match",
    "sparkcep.v1.MatchRow": "match-row",
    "sparkcep.v1.Timeout": "timeout",
    "sparkcep.v1.DeadLetter": "dead-letter",
}


class UndecodedError(Exception):
    """The value is not what can be decoded; the text says why."""


class RecordDecoder:
    """Decodes values of records; ``registry`` knows the schemas that wrote them, if there is
    one."""

    def __init__(self, registry: Registry | None) -> None:
        self._registry = registry
        self._writers: dict[int | UUID, Any] = {}
        self._readers: dict[str, Any] = {}

    def decoded(self, message: Message, wanted: str | None = None) -> Any:
        """The value of a record; ``wanted``: the full name of the only Avro record that it may be.

        Raises UndecodedError with the reason, RegistryUnavailableError.
        """
        value = message.value() or b""
        headers: Any = message.headers() or ()  # as the client is typed, they may be a mapping
        if wanted is None and value.lstrip()[:1] == b"{":
            return _json(value)
        try:
            framed = locate(value, headers)
            writer = self._writer(framed.schema)
        except (SchemaError, SchemaNotFoundError) as error:
            raise UndecodedError(str(error)) from error
        name = str(writer.get("name", writer["type"])) if isinstance(writer, dict) else "no record"
        if wanted is not None and name != wanted:
            raise UndecodedError(f"its schema is {name}, not {wanted}")
        return self._body(framed, writer, self._reader(name))

    @staticmethod
    def _body(framed: Framed, writer: Any, reader: Any) -> Any:
        try:
            return fastavro.schemaless_reader(BytesIO(framed.body), writer, reader)
        except Exception as error:  # fastavro raises many kinds, and anybody may write
            raise UndecodedError(f"the body does not fit its schema, {framed.schema}") from error

    def _writer(self, schema: int | UUID) -> Any:
        if self._registry is None:
            raise SchemaNotFoundError("there is no registry in the settings, which has its schema")
        if schema not in self._writers:
            text = without_defaults(self._registry.get_schema(schema)).text
            # Of a topic with several record types it is a union.
            self._writers[schema] = fastavro.parse_schema(json.loads(text))
        return self._writers[schema]

    def _reader(self, name: str) -> Any:
        if name not in _CONTRACTS:
            return None
        if name not in self._readers:
            contract: Any = _CONTRACTS[name]
            self._readers[name] = fastavro.parse_schema(json.loads(schema_text(contract)))
        return self._readers[name]


def _json(value: bytes) -> Any:
    try:
        return json.loads(value)
    except ValueError as error:
        raise UndecodedError(f"it begins like JSON, and is none: {error}") from error
