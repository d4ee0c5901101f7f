"""Rules from a URL: documents with ``---`` between, asked for again with their ``ETag``.

A document with a problem hides no other; a body that is no YAML is one problem, and then all rules
run on. Redirects are not followed: they could lead the token elsewhere.
"""

from __future__ import annotations

import socket
import ssl
import threading
from contextlib import suppress
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

import httpx2

from spark_cep.config import RulesUrl
from spark_cep.errors import ConfigurationError, Problem, RulesUnavailableError
from spark_cep.pattern.document.loading import LoadedRule, examine_documents
from spark_cep.rules.rule_set import RuleFile
from spark_cep.rules.sources.deadline import deadline
from spark_cep.rules.sources.source import (
    MOST_BYTES,
    check_count,
    decoded,
    not_read,
    too_large,
    unavailable,
)

_WHAT = "body"
_PASSING = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS)


class HttpsSource:
    """The URL as a source. ConfigurationError when certificates or keys cannot be used."""

    def __init__(self, given: RulesUrl) -> None:
        parts = urlsplit(given.url)
        self.name = parts._replace(query="", fragment="").geturl()
        self._url = given.url
        self._seconds = given.timeout / 1000
        try:
            self._client = httpx2.Client(
                headers=_headers(given), timeout=self._seconds, verify=_context(given)
            )
        except OSError as error:
            message = f"rules.https: certificate or key cannot be used: {error.strerror or error}"
            raise ConfigurationError(message) from error
        self._tag: str | None = None
        self._body: bytes | None = None
        self._socket: socket.socket | None = None

    def read(self) -> list[RuleFile] | None:
        """See :class:`~spark_cep.rules.sources.source.RuleSource`."""
        over = threading.Event()
        try:
            with deadline(self._seconds, lambda: self._hang_up(over)):
                answer = self._asked()
        except httpx2.HTTPError as error:
            if over.is_set():
                raise self._late() from error
            reason = str(error) or type(error).__name__
            if isinstance(error, httpx2.TransportError) and not _about_certificates(error):
                raise unavailable(reason, self.name) from error
            raise not_read(reason, self.name) from error
        if over.is_set():
            # A body without a length may have ended there.
            raise self._late()
        if answer is None:
            return None
        body, tag = answer
        if body == self._body:
            self._tag = tag
            return None
        files = _entries(decoded(body, self.name, _WHAT), self.name)
        check_count(len(files), "documents", self.name)
        self._body, self._tag = body, tag
        return files

    def close(self) -> None:
        """See :class:`~spark_cep.rules.sources.source.RuleSource`."""
        self._client.close()
        self._keep(None)

    def _late(self) -> RulesUnavailableError:
        return unavailable(f"no whole answer in {self._seconds:g} s", self.name)

    def _keep(self, connection: socket.socket | None) -> None:
        if self._socket is not None:
            self._socket.close()
        self._socket = connection

    def _connected(self, event: str, given: dict[str, Any]) -> None:
        """Keep a second handle of the connection, which TLS does not take over."""
        if event == "connection.connect_tcp.complete":
            self._keep(given["return_value"].get_extra_info("socket").dup())

    def _hang_up(self, over: threading.Event) -> None:
        over.set()
        if self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def _asked(self) -> tuple[bytes, str | None] | None:
        """The body and its tag; ``None`` when it is the one of before."""
        known = {} if self._tag is None else {"If-None-Match": self._tag}
        tracing = {"trace": self._connected}
        with self._client.stream("GET", self._url, headers=known, extensions=tracing) as answer:
            if answer.status_code == HTTPStatus.NOT_MODIFIED and known:
                return None
            if answer.status_code != HTTPStatus.OK:
                reason = f"the server answers {answer.status_code} {answer.reason_phrase}".rstrip()
                if answer.status_code in _PASSING or answer.is_server_error:
                    raise unavailable(reason, self.name)
                allowed = "200 OK; redirects are not followed" if answer.is_redirect else "200 OK"
                raise not_read(reason, self.name, allowed)
            body = bytearray()
            for chunk in answer.iter_bytes():
                body += chunk
                if len(body) > MOST_BYTES:
                    raise too_large(self.name, _WHAT)
            return bytes(body), answer.headers.get("ETag")


def _about_certificates(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return True
        error = error.__cause__ or error.__context__
    return False


def _headers(given: RulesUrl) -> dict[str, str]:
    headers = {"Accept-Encoding": "identity", "User-Agent": "spark-cep"}
    headers |= {name: value.get_secret_value() for name, value in given.headers.items()}
    if given.bearer_token is not None:
        headers["Authorization"] = f"Bearer {given.bearer_token.get_secret_value()}"
    for name, value in headers.items():
        # The client would show the value.
        if not (name + value).isascii() or not (name + value).isprintable():
            raise ConfigurationError(
                f"rules.https: the header {name!r} cannot be sent; allowed are printable"
                " characters of ASCII, without a line end"
            )
    return headers


def _context(given: RulesUrl) -> ssl.SSLContext | bool:
    if given.ssl_ca_file is None and given.ssl_certificate_file is None:
        return True
    context = ssl.create_default_context(cafile=given.ssl_ca_file)
    if given.ssl_certificate_file is not None:
        password = given.ssl_key_password
        context.load_cert_chain(
            given.ssl_certificate_file,
            given.ssl_key_file,
            # Without a password OpenSSL would ask at the terminal.
            "" if password is None else password.get_secret_value(),
        )
    return context


def _entries(text: str, name: str) -> list[RuleFile]:
    return [_entry(rule, problems, name) for rule, problems in examine_documents(text, name)]


def _entry(rule: LoadedRule | None, problems: list[Problem], name: str) -> RuleFile:
    if not problems and rule is not None:
        return RuleFile(name, (rule,), (), rule.rule.id)
    named = next((problem.rule for problem in problems if problem.rule), None)
    return RuleFile(name, () if rule is None else (rule,), tuple(problems), named)
