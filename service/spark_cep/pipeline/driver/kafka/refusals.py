"""Why a Kafka connection does not come about, in terms of the settings.

librdkafka reports a time-out where a login or a certificate is refused, and says the reason on the
side. Such a refusal would come again, so it is told apart from a broker that is unavailable. No
message holds a secret.
"""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

from confluent_kafka import KafkaError, KafkaException

from spark_cep.errors import ConfigurationError
from spark_cep.kafka_errors import ErrorKind, kind_of

_T = TypeVar("_T")

_SECONDS: Final = 5.0
_SETTINGS: Final = {
    "ssl.ca.location": "kafka.security.ssl_ca_file",
    "ssl.ca.pem": "kafka.security.ssl_ca_file",
    "ssl.certificate.location": "kafka.security.ssl_certificate_file",
    "ssl.certificate.pem": "kafka.security.ssl_certificate_file",
    "ssl.key.location": "kafka.security.ssl_key_file (or ssl_key_password)",
    "ssl.key.pem": "kafka.security.ssl_key_file (or ssl_key_password)",
    "ssl.keystore.location": "kafka.sink_properties ssl.keystore.location (or its password)",
}
_UNTRUSTED: Final = "certificate verify failed"
_ALERT: Final = re.compile(r"alert ([a-z ]+): SSL alert number")
_NOT_TLS: Final = "connecting to a PLAINTEXT broker listener?"
_HOST_MISMATCH: Final = 62
"""OpenSSL's X509_V_ERR_HOSTNAME_MISMATCH; that of an address follows."""


def refusal(errors: Iterable[KafkaError], config: Mapping[str, Any]) -> str | None:
    """Why the broker, or the client, refuses, by the ``errors`` that a client with ``config``
    reported; ``None`` when neither did: a broker may just be unavailable."""
    found = None
    for error in errors:
        text = error.str()
        alert = _ALERT.search(text)
        if kind_of(error) is ErrorKind.LOGIN:
            found = (
                "kafka.security.username, password or sasl_mechanism: the login is refused:"
                f" {_plain(text)}"
            )
        elif _UNTRUSTED in text:
            found = _UNTRUSTED
        elif alert is not None:
            names = ("ssl.certificate.location", "ssl.certificate.pem")
            given = any(name in config for name in names)
            found = (
                "kafka.security.ssl_certificate_file: the broker refuses the client's"
                f" {'certificate' if given else 'lack of a certificate'} ({alert[1]})"
            )
        elif _NOT_TLS in text:
            found = "kafka.security.protocol: the broker does not speak TLS at this address"
    return _why_untrusted(config) if found == _UNTRUSTED else found


def _why_untrusted(config: Mapping[str, Any]) -> str:
    """Librdkafka has one text for every untrusted certificate: ask again, for the reason."""
    ca_file = config.get("ssl.ca.location")
    if ca_file:
        trusted = f"ssl_ca_file {ca_file}"
    elif "ssl.ca.pem" in config:
        trusted = "those in ssl_ca_file"
    else:
        trusted = "the system's authorities (no ssl_ca_file)"
    for server in str(config["bootstrap.servers"]).split(","):
        found = _verified(server, config)
        if found is None:
            continue
        if found.verify_code in (_HOST_MISMATCH, _HOST_MISMATCH + 2):
            return (
                f"kafka.security.ssl_check_hostname: the certificate of {server} is that of"
                f" another host: {found.verify_message}"
            )
        return (
            f"kafka.security.ssl_ca_file: the certificate of {server} is not trusted:"
            f" {found.verify_message}; trusted: {trusted}"
        )
    return f"kafka.security.ssl_ca_file: a broker's certificate is not trusted by {trusted}"


def _verified(server: str, config: Mapping[str, Any]) -> ssl.SSLCertVerificationError | None:
    host, _, port = server.rpartition(":")
    host = host.strip("[]")
    context = ssl.create_default_context(
        cafile=config.get("ssl.ca.location"), cadata=config.get("ssl.ca.pem")
    )
    context.check_hostname = config.get("ssl.endpoint.identification.algorithm", "https") != "none"
    try:
        with (
            socket.create_connection((host, int(port)), timeout=_SECONDS) as connection,
            context.wrap_socket(connection, server_hostname=host),
        ):
            return None
    except ssl.SSLCertVerificationError as error:
        return error
    except OSError:
        return None


def made(client: Callable[[], _T]) -> _T:
    """A librdkafka client; ConfigurationError when it cannot be made of its configuration."""
    try:
        return client()
    except KafkaException as error:
        text = error.args[0].str()
        setting = next((name for key, name in _SETTINGS.items() if key in text), "kafka")
        raise ConfigurationError(f"{setting}: cannot be used: {text}") from None


def _plain(text: str) -> str:
    """Librdkafka's text without its thread and timing."""
    return re.sub(r"^\S+/\S+: (SASL authentication error: )?| \(after \d+ms.*\)$", "", text)
