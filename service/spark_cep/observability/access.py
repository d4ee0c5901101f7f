"""Access to the pages: TLS and a name with a password, both optional.

The password is compared in a time that does not depend on it. Neither it nor the key's password is
in any message.
"""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hmac import compare_digest
from typing import TYPE_CHECKING, Final

from spark_cep.errors import ConfigurationError

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

    from spark_cep.config import Observability

PROBES: Final = ("/livez", "/readyz")
_REFUSAL: Final = json.dumps({"error": "a name and a password are needed"}).encode() + b"\n"


@dataclass(frozen=True)
class Access:
    """Access to the pages: open, unless TLS or a login is given."""

    tls: ssl.SSLContext | None = None
    login: tuple[str, str] | None = None

    def guarded(self, pages: WSGIApplication) -> WSGIApplication:
        """``pages`` for those who log in, and probes for everybody."""
        if self.login is None:
            return pages
        fits = _checked(*self.login)

        def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
            probe = environ.get("PATH_INFO") in PROBES
            if probe or fits(environ.get("HTTP_AUTHORIZATION", "")):
                return pages(environ, start_response)
            headers = [
                ("Content-Type", "application/json"),
                ("Content-Length", str(len(_REFUSAL))),
                ("WWW-Authenticate", 'Basic realm="spark-cep", charset="UTF-8"'),
            ]
            start_response("401 Unauthorized", headers)
            return [b"" if environ["REQUEST_METHOD"] == "HEAD" else _REFUSAL]

        return answer


def access_to(observability: Observability) -> Access:
    """The access that the settings describe; ConfigurationError when certificate, key and the
    key's password do not go together."""
    given = observability
    login = None
    if given.username is not None and given.password is not None:
        login = (given.username, given.password.get_secret_value())
    return Access(_server_side(given), login)


def _server_side(given: Observability) -> ssl.SSLContext | None:
    if given.ssl_certificate_file is None:
        return None
    password = given.ssl_key_password
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(
            given.ssl_certificate_file,
            given.ssl_key_file,
            # Without any, OpenSSL would ask for one on the terminal.
            "" if password is None else password.get_secret_value(),
        )
    except OSError as error:
        raise ConfigurationError(
            f"observability.ssl_certificate_file {given.ssl_certificate_file} and ssl_key_file"
            f" {given.ssl_key_file} cannot be used: {_reason(error)}; allowed: a certificate (with"
            " its chain) and its private key as PEM files, and ssl_key_password when the key is"
            " encrypted"
        ) from None
    return context


def _reason(error: OSError) -> str:
    if isinstance(error, ssl.SSLError):
        return error.reason or "no PEM of this kind, or a wrong password"
    return error.strerror or type(error).__name__


def _checked(username: str, password: str) -> Callable[[str], bool]:
    login = base64.b64encode(f"{username}:{password}".encode())

    def fits(header: str) -> bool:
        scheme, _, given = header.strip().partition(" ")
        return compare_digest(given.strip().encode(), login) and scheme.lower() == "basic"

    return fits
