"""Address and login of the schema registry; credentials stay out of texts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit, urlunsplit

from spark_cep.errors import ConfigurationError

if TYPE_CHECKING:
    # Slow to import, and Python workers do without.
    from pathlib import Path

    from pydantic import SecretStr

    from spark_cep.config.topics import SchemaRegistry

_HIDDEN = "***"


@dataclass(frozen=True, slots=True)
class RegistrySettings:
    """``url`` may be several, comma-separated, tried in turn; user and password in it move to
    ``username`` and ``password``. ``timeout_seconds`` holds for one attempt; waits between
    attempts are random, up to a bound that doubles from ``first_wait_seconds``."""

    url: str
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    ca_file: str | None = None
    certificate_file: str | None = None
    key_file: str | None = None
    key_password: str | None = field(default=None, repr=False)
    timeout_seconds: float = 10.0
    max_attempts: int = 5
    first_wait_seconds: float = 0.5
    longest_wait_seconds: float = 10.0

    @classmethod
    def of(cls, given: SchemaRegistry) -> RegistrySettings:
        """Read the service's settings."""

        def path(file: Path | None) -> str | None:
            return None if file is None else str(file)

        def secret(value: SecretStr | None) -> str | None:
            return None if value is None else value.get_secret_value()

        return cls(
            url=given.url,
            username=given.username,
            password=secret(given.password),
            token=secret(given.bearer_token),
            ca_file=path(given.ssl_ca_file),
            certificate_file=path(given.ssl_certificate_file),
            key_file=path(given.ssl_key_file),
            key_password=secret(given.ssl_key_password),
            timeout_seconds=given.timeout / 1000,
            max_attempts=given.max_attempts,
        )

    def __post_init__(self) -> None:
        urls, logins = zip(*(_without_login(url) for url in self.url.split(",")), strict=True)
        object.__setattr__(self, "url", ",".join(urls))
        login = next((login for login in logins if login is not None), None)
        if login is not None:
            if self.username is not None:
                raise ConfigurationError("registry: user both in the URL and in username")
            object.__setattr__(self, "username", login[0])
            object.__setattr__(self, "password", login[1])
        self._check()

    def _check(self) -> None:
        if self.username is not None and self.token is not None:
            raise ConfigurationError("registry: username and token exclude each other")
        if self.password is not None and self.username is None:
            raise ConfigurationError("registry: password without username")
        if self.username is not None and ":" in self.username:
            raise ConfigurationError("registry: a username cannot contain a colon")
        if self.key_file is not None and self.certificate_file is None:
            raise ConfigurationError("registry: key_file without certificate_file")
        if self.timeout_seconds <= 0:
            raise ConfigurationError("registry: timeout_seconds must be more than 0")
        if self.max_attempts < 1:
            raise ConfigurationError("registry: max_attempts must be 1 or more")

    def client_configuration(self) -> dict[str, Any]:
        """The settings as Confluent's client takes them. Its own retries and its memory of the
        latest versions are off."""
        configuration: dict[str, Any] = {
            "url": self.url,
            "timeout": self.timeout_seconds,
            "max.retries": 0,
            "cache.latest.ttl.sec": 0,
            "ssl.ca.location": self.ca_file,
            "ssl.certificate.location": self.certificate_file,
            "ssl.key.location": self.key_file,
            "ssl.key.password": self.key_password,
        }
        if self.username is not None:
            configuration["basic.auth.user.info"] = f"{self.username}:{self.password or ''}"
        if self.token is not None:
            configuration["bearer.auth.credentials.source"] = "STATIC_TOKEN"
            configuration["bearer.auth.token"] = self.token
            # The client insists on one.
            configuration["bearer.auth.logical.cluster"] = ""
        return {name: value for name, value in configuration.items() if value is not None}

    def redact(self, text: str) -> str:
        """``text`` without this registry's secrets."""
        for secret in (self.password, self.token, self.key_password):
            if secret:
                text = text.replace(secret, _HIDDEN)
        return text


def no_registry(
    records: str,
    instead: str = "",
    form: str = "Avro with a schema id of the schema registry in front",
) -> ConfigurationError:
    """Return the error for settings without a registry that ``records``, which have this form,
    need; ``instead``: a setting with which they would not."""
    otherwise = f", or set {instead}" if instead else ""
    return ConfigurationError(
        f"registry.url is not set: {records} are {form}; set it to the registry's address, as"
        f" http://registry:8081{otherwise}"
    )


def _without_login(url: str) -> tuple[str, tuple[str, str] | None]:
    """A URL without user and password, and these."""
    parts = urlsplit(url.strip())
    if parts.scheme not in ("http", "https", "mock") or not parts.hostname:
        shown = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
        raise ConfigurationError(f"registry: {shown!r} is not a URL; allowed: http(s)://host:port")
    plain = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2])).rstrip("/")
    if parts.username is None:
        return plain, None
    return plain, (unquote(parts.username), unquote(parts.password or ""))
