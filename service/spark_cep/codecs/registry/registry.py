"""The schema registry, as the service needs it: schemas by id, GUID and subject; registration.

A thin layer over Confluent's client that adds what the client leaves out: retries that stop (only
for connections, HTTP 408, 429 and 5xx), a time limit, references inlined, one tree of errors, and
no credentials in any message. Not found is kept apart from not reachable: an id that the registry
does not know makes a dead letter, a registry that does not answer (RegistryUnavailableError) must
not. What waiting does not change, a login or certificate that is refused, is a ConfigurationError.
Used on the driver.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from importlib import import_module
from time import sleep as wall_sleep
from typing import Any, NamedTuple, TypeVar

from confluent_kafka.schema_registry import RegisteredSchema, Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.error import SchemaRegistryError
from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_random_exponential

from spark_cep.codecs.avro.schema import AvroSchema, check_defaults, parse
from spark_cep.codecs.protobuf.descriptors import MessageFiles, compiled_text
from spark_cep.codecs.registry.schema_ids import SchemaId, named
from spark_cep.codecs.registry.settings import RegistrySettings
from spark_cep.config.topics import SchemaRegistry
from spark_cep.errors import (
    ConfigurationError,
    RegistryError,
    RegistryUnavailableError,
    SchemaError,
    SchemaNotFoundError,
    SparkCepError,
)

_T = TypeVar("_T")

_MOST_REFERENCES = 100
#: What is not there has a code of five digits (40401, 40402, 40403); a 404 of the web server in
#: front, or for another path, has not.
_NOT_FOUND = 40400
_LOGIN = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
_PASSING = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS)


class _NoSuchPathError(RegistryError):
    """The registry has no such path."""


class SubjectVersion(NamedTuple):
    """One version of a subject; ``found``: its schema, references inlined, or why there is none
    that can be used."""

    subject: str
    version: int
    id: int
    found: AvroSchema | SchemaError

    @property
    def schema(self) -> AvroSchema:
        """Raises SchemaError where it cannot be used."""
        if isinstance(self.found, SchemaError):
            raise self.found
        return self.found


class SchemaText(NamedTuple):
    """A schema as the registry has it. ``type``: AVRO, JSON or PROTOBUF; ``references``: the texts
    of schemas that it refers to, by the names that it has for them."""

    subject: str
    version: int
    type: str
    text: str
    references: Mapping[str, str]


class Registry:
    """One registry. Schemas by id and GUID never change and are kept; subjects are asked again."""

    @classmethod
    @contextmanager
    def opened(
        cls, settings: SchemaRegistry | None, sleep: Callable[[float], None] = wall_sleep
    ) -> Iterator[Registry | None]:
        """The registry of the service's settings, if they name one, until the block ends."""
        if settings is None:
            yield None
            return
        with closing(cls(RegistrySettings.of(settings), sleep=sleep)) as registry:
            yield registry

    def __init__(
        self,
        settings: RegistrySettings,
        client: SchemaRegistryClient | None = None,
        sleep: Callable[[float], None] = wall_sleep,
    ) -> None:
        self._settings = settings
        self._schemas: dict[SchemaId, AvroSchema] = {}
        self._retrying = Retrying(
            stop=stop_after_attempt(settings.max_attempts),
            wait=wait_random_exponential(
                settings.first_wait_seconds, settings.longest_wait_seconds
            ),
            retry=retry_if_exception(_passing),
            sleep=sleep,
            reraise=True,
        )
        self._client = client or self._connect()

    def get_schema(self, schema: SchemaId) -> AvroSchema:
        """The schema with this id or GUID; ``.text`` is self-contained. Its defaults, which writers
        do not use, are not checked."""
        if schema not in self._schemas:
            what = named(schema)
            self._schemas[schema] = self._inlined(self._by_id(schema), what)
        return self._schemas[schema]

    def get_messages(self, schema: SchemaId) -> MessageFiles:
        """The Protobuf schema with this id or GUID, compiled with its references. Raises
        SchemaNotFoundError where there is none, SchemaError where it is no such schema."""
        what = named(schema)
        found = self._by_id(schema)
        if found.schema_type != "PROTOBUF":
            raise SchemaError(f"{what} is of type {found.schema_type or 'AVRO'}; allowed: PROTOBUF")
        references: dict[str, str] = {}
        try:
            self._gather(found, what, references)
        except SchemaNotFoundError as error:
            raise SchemaError(f"{what}: {error}") from None
        return compiled_text(str(found.schema_str), what, references)

    def _by_id(self, schema: SchemaId) -> Schema:
        if isinstance(schema, int):
            return self._ask(named(schema), lambda: self._client.get_schema(schema))
        try:
            return self._ask(named(schema), lambda: self._client.get_schema_by_guid(str(schema)))
        except _NoSuchPathError as error:
            # Registries before Confluent Platform 8, and others, have no GUIDs; and a GUID is what
            # anybody may write into a record.
            raise SchemaNotFoundError(f"{error} (it may be too old to have GUIDs)") from None

    def knows(self, schema: SchemaId) -> bool:
        """Return whether there is a schema with this id; what it is like is not looked at."""
        try:
            self._by_id(schema)
        except SchemaNotFoundError:
            return False
        return True

    def latest(self, subject: str) -> SubjectVersion:
        """The newest version of ``subject``."""
        return self._version(subject, None)

    def version(self, subject: str, version: int) -> SubjectVersion:
        """One version of ``subject``."""
        return self._version(subject, version)

    def text(self, subject: str, version: int | None = None) -> SchemaText:
        """The schema of one version of ``subject``, or of the newest one, of any type."""
        found = self._registered(subject, version)
        number = self._number(found.version, f"subject {subject!r}")
        references: dict[str, str] = {}
        self._gather(found.schema, f"subject {subject!r}, version {number}", references)
        text = str(found.schema.schema_str)
        return SchemaText(subject, number, found.schema.schema_type or "AVRO", text, references)

    def _gather(self, schema: Schema, what: str, found: dict[str, str]) -> None:
        """Add the texts of all schemas that a schema refers to."""
        for reference in schema.references or ():
            name, subject = str(reference.name), str(reference.subject)
            if name in found:
                continue
            if len(found) >= _MOST_REFERENCES:
                raise SchemaError(f"{what}: more than {_MOST_REFERENCES} references")
            referred = self._registered(subject, self._number(reference.version, what))
            found[name] = str(referred.schema.schema_str)
            self._gather(referred.schema, what, found)

    def ids(self, subject: str) -> list[int]:
        """The ids of all versions of ``subject``, of any type, oldest first."""
        what = f"versions of subject {subject!r}"
        numbers = self._ask(what, lambda: self._client.get_versions(subject))
        return [
            self._number(self._registered(subject, self._number(n, what)).schema_id, what)
            for n in sorted(numbers)
        ]

    def versions(self, subject: str) -> list[SubjectVersion]:
        """All versions of ``subject``, oldest first, also those whose schema cannot be used;
        ``SchemaNotFoundError`` when there is none."""
        what = f"versions of subject {subject!r}"
        numbers = self._ask(what, lambda: self._client.get_versions(subject))
        return [self._version(subject, self._number(n, what)) for n in sorted(numbers)]

    def register(self, subject: str, schema: str) -> int:
        """The id of ``schema`` under ``subject``, registering it where it is new."""
        answer = self._ask(
            f"registration under subject {subject!r}",
            lambda: self._client.register_schema(subject, Schema(schema, "AVRO")),
        )
        return self._number(answer, f"registration under subject {subject!r}")

    def lookup(self, subject: str, schema: str) -> int:
        """The id of ``schema`` under ``subject`` where registering is not allowed."""
        what = f"schema of subject {subject!r}"
        answer = self._ask(
            what, lambda: self._client.lookup_schema(subject, Schema(schema, "AVRO"))
        )
        return self._number(answer.schema_id, what)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _connect(self) -> SchemaRegistryClient:
        try:
            return SchemaRegistryClient.new_client(self._settings.client_configuration())
        except (OSError, ValueError, TypeError) as error:
            raise self._error(f"cannot be used: {error}") from None

    def _registered(self, subject: str, version: int | None) -> RegisteredSchema:
        return self._ask(
            f"subject {subject!r}, version {version or 'latest'}",
            lambda: (
                self._client.get_latest_version(subject)
                if version is None
                else self._client.get_version(subject, version)
            ),
        )

    def _version(self, subject: str, version: int | None) -> SubjectVersion:
        what = f"subject {subject!r}, version {version or 'latest'}"
        found = self._registered(subject, version)
        number, schema_id = self._number(found.version, what), self._number(found.schema_id, what)
        what = f"subject {subject!r}, version {number}"
        try:
            if schema_id not in self._schemas:
                self._schemas[schema_id] = self._inlined(found.schema, what)
            schema = replace(self._schemas[schema_id], origin=what)
            check_defaults(schema)
        except SchemaError as error:
            return SubjectVersion(subject, number, schema_id, error)
        return SubjectVersion(subject, number, schema_id, schema)

    def _inlined(self, schema: Schema, what: str) -> AvroSchema:
        done: dict[tuple[str, int], AvroSchema] = {}
        return self._resolved(schema, what, done, ())

    def _resolved(
        self,
        schema: Schema,
        what: str,
        done: dict[tuple[str, int], AvroSchema],
        trail: tuple[tuple[str, int], ...],
    ) -> AvroSchema:
        """``schema`` with its references, each fetched once."""
        if (schema.schema_type or "AVRO") != "AVRO":
            raise SchemaError(f"{what} is of type {schema.schema_type}; allowed: AVRO")
        if schema.schema_str is None:
            raise self._error(f"{what}: the answer holds no schema")
        references = []
        for reference in schema.references or ():
            subject, version = str(reference.subject), self._number(reference.version, what)
            place = (subject, version)
            if place in trail or len(done) >= _MOST_REFERENCES:
                raise SchemaError(
                    f"{what}: references in a circle, or more than {_MOST_REFERENCES} of them"
                )
            if place not in done:
                try:
                    found = self._ask(
                        f"reference {subject!r}, version {version}",
                        partial(self._client.get_version, subject, version),
                    )
                except SchemaNotFoundError as error:
                    # The schema itself is known, and asking again would not help.
                    raise SchemaError(f"{what}: {error}") from None
                done[place] = self._resolved(found.schema, what, done, (*trail, place))
            references.append(done[place])
        return parse(schema.schema_str, what, references, defaults=False)

    def _ask(self, what: str, request: Callable[[], _T]) -> _T:
        """The answer to ``request``, retried; every failure as a ``RegistryError``."""
        try:
            return self._retrying(request)
        except SchemaRegistryError as error:
            raise self._refused(what, error) from None
        except _transport_errors() as error:
            if _about_certificates(error):
                raise ConfigurationError(self._said(f"cannot be trusted: {error}")) from None
            raise self._error(
                f"cannot be reached for {what} after {self._settings.max_attempts} attempts:"
                f" {type(error).__name__}: {error}",
                RegistryUnavailableError,
            ) from None
        except (ValueError, TypeError, AttributeError, KeyError) as error:
            raise self._error(
                f"gave an answer for {what} that is not a schema registry's: {error}"
            ) from None

    def _refused(self, what: str, error: SchemaRegistryError) -> SparkCepError:
        status, code = error.http_status_code, error.error_code
        if status in _LOGIN:
            message = f"refuses {what}, for login or rights: HTTP {status}: {error.error_message}"
            return ConfigurationError(self._said(message))
        if status == HTTPStatus.NOT_FOUND and isinstance(code, int) and code >= _NOT_FOUND:
            return self._error(f"does not know {what}: {error.error_message}", SchemaNotFoundError)
        if status == HTTPStatus.NOT_FOUND:
            return self._error(
                f"answers 404 for {what}; is the path of its URL right?", _NoSuchPathError
            )
        refused = f"refuses {what}: HTTP {status}, code {code}: {error.error_message}"
        return self._error(refused, RegistryUnavailableError if _passing(error) else RegistryError)

    def _number(self, value: object, what: str) -> int:
        if not isinstance(value, int):
            raise self._error(f"gave {value!r} for {what} where a number is due")
        return value

    def _error(self, text: str, kind: type[RegistryError] = RegistryError) -> RegistryError:
        return kind(self._said(text))

    def _said(self, text: str) -> str:
        return self._settings.redact(f"schema registry {self._settings.url} {text}")


def _passing(error: BaseException) -> bool:
    """Return whether the same request may succeed a little later."""
    if isinstance(error, SchemaRegistryError):
        return error.http_status_code in _PASSING or (
            error.http_status_code >= HTTPStatus.INTERNAL_SERVER_ERROR
        )
    return isinstance(error, _transport_errors()) and not _about_certificates(error)


def _about_certificates(error: BaseException | None) -> bool:
    """Return whether TLS refused a certificate, ours or theirs."""
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError) or "CERTIFICATE" in (
            str(getattr(error, "reason", "") or "")
        ):
            return True
        error = error.__cause__ or error.__context__
    return False


def _transport_errors() -> tuple[type[Exception], ...]:
    """Failed connections, as the HTTP library under the client calls them: newer clients stand on
    httpx2, older ones on httpx."""
    found: list[type[Exception]] = []
    for library in ("httpx2", "httpx"):
        try:
            module: Any = import_module(library)
        except ImportError:
            continue
        found.append(module.TransportError)
    return tuple(found)
