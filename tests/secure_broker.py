"""A broker whose listeners demand what clusters demand: TLS, a client's certificate, a login."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from examples.embedded import EmbeddedBroker, Listener
from tests.certificates import Authority, Identity
from tests.conftest import JARS

USER, PASSWORD = "cep", "p'a\"s\\s; word$"


@dataclass(frozen=True)
class SecureBroker:
    """The broker, its authority, and a client's certificate under it.

    Listeners: ``mutual`` (TLS, client certificate), ``login`` (TLS, SCRAM), ``expired`` and
    ``elsewhere`` (TLS with a certificate that has expired, or is for another host).
    """

    broker: EmbeddedBroker
    authority: Authority
    client: Identity
    folder: Path

    def mutual(self, **more: Any) -> dict[str, Any]:
        """The section ``kafka`` for mutual TLS; ``more`` changes its ``security``."""
        security = {
            "protocol": "SSL",
            "ssl_ca_file": str(self.authority.file),
            "ssl_certificate_file": str(self.client.certificate),
            "ssl_key_file": str(self.client.key),
        }
        return self._section("mutual", security | more)

    def login(self, listener: str = "login", **more: Any) -> dict[str, Any]:
        """The section ``kafka`` for TLS and SCRAM; ``more`` changes its ``security``."""
        security = {
            "protocol": "SASL_SSL",
            "sasl_mechanism": "SCRAM-SHA-256",
            "username": USER,
            "password": PASSWORD,
            "ssl_ca_file": str(self.authority.file),
        }
        return self._section(listener, security | more)

    def tls(self, listener: str, **more: Any) -> dict[str, Any]:
        """The section ``kafka`` for TLS alone."""
        security = {"protocol": "SSL", "ssl_ca_file": str(self.authority.file)}
        return self._section(listener, security | more)

    def _section(self, listener: str, security: dict[str, Any]) -> dict[str, Any]:
        given = {name: value for name, value in security.items() if value is not None}
        return {"bootstrap_servers": self.broker.address(listener), "security": given}


@contextmanager
def secure_broker(folder: Path) -> Iterator[SecureBroker]:
    """A running one; what it needs is made below ``folder``."""
    authority = Authority(folder / "authority")
    client = authority.identity("client")

    def side(identity: Identity, client_auth: str = "none") -> dict[str, str]:
        return {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(identity.both),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(authority.file),
            "ssl.client.auth": client_auth,
        }

    identity = authority.identity("broker")
    listeners = {
        "mutual": Listener("SSL", side(identity, "required")),
        "login": Listener("SASL_SSL", side(identity)),
        "expired": Listener("SSL", side(authority.identity("expired", expired=True))),
        "elsewhere": Listener("SSL", side(authority.identity("elsewhere", hosts=["kafka.test"]))),
    }
    sasl = (USER, PASSWORD)
    with EmbeddedBroker(folder / "broker", JARS, sasl=sasl, listeners=listeners) as broker:
        yield SecureBroker(broker, authority, client, folder)
