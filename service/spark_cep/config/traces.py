"""Settings of the traces of batches."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import AfterValidator, FilePath, SecretStr, model_validator

from spark_cep.config.quantities import (
    PositiveDuration,
    SettingsSection,
    Shown,
    setting,
    url_parts,
)
from spark_cep.documents.values import contradiction, refused

_ALLOWED: Final = "http:// or https://, a host and a path, as http://collector:4318/v1/traces"
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})


def _address(url: str) -> str:
    parts = url_parts(url, _ALLOWED)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path in ("", "/"):
        raise refused(_ALLOWED)
    return url


class Traces(SettingsSection):
    """Traces of batches, sent to a collector of OpenTelemetry. Needs the extra `otel`."""

    url: Annotated[str, AfterValidator(_address), Shown("URL")] = setting(
        ..., "Address to which the collector takes traces by OTLP over HTTP, with its path."
    )
    headers: Annotated[dict[str, SecretStr], Shown("map of headers")] = setting(
        {}, "Headers of each request, as the collector's login; their values are secret."
    )
    ssl_ca_file: FilePath | None = setting(
        None, "PEM file of the authorities to trust; absent: those of the system."
    )
    timeout: PositiveDuration = setting(
        5_000, "Longest wait for the collector; spans that it does not take are dropped."
    )

    @model_validator(mode="after")
    def _protected(self) -> Traces:
        parts = url_parts(self.url, _ALLOWED)
        if self.headers and parts.scheme != "https" and parts.hostname not in _LOOPBACK:
            raise contradiction("headers would travel unprotected: use https://", "url")
        return self
