"""A running job's pages, as the commands read them: its address, certificate and login are those of
the settings."""

from __future__ import annotations

import base64
import http.client
import json
import re
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from spark_cep.config import Observability
from spark_cep.errors import (
    ConfigurationError,
    PagesUnavailableError,
    SparkCepError,
    printable,
    shortened,
)

_SECONDS: Final = 10.0
#: A hundred thousand rules, and many of them rejected.
_MOST_BYTES: Final = 256 << 20
_CERTIFICATE: Final = re.compile(
    "-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL
)


@dataclass(frozen=True, slots=True)
class RulesPage:
    """The page ``/rules``: event time, and the rules."""

    time: dict[str, Any]
    rules: list[dict[str, Any]]


@dataclass(frozen=True)
class Pages:
    """The pages of one job. ``login``: the header that has name and password."""

    url: str
    host: str
    port: int
    path: str
    tls: ssl.SSLContext | None
    login: str | None

    def rules_page(self) -> RulesPage:
        """The page ``/rules``. Raises PagesUnavailableError when nobody answers, SparkCepError when
        the answer is not that page."""
        status, page = self._get("/rules")
        if isinstance(page, dict):
            time, rules = page.get("time"), page.get("rules")
            if (
                isinstance(time, dict)
                and isinstance(rules, list)
                and all(isinstance(row, dict) and {"id", "state"} <= row.keys() for row in rules)
            ):
                return RulesPage(time, rules)
        raise self._other("/rules", status)

    def metrics(self) -> str:
        """The page ``/metrics``, in Prometheus' format; raises as :meth:`rules_page` does."""
        status, body = self._asked("/metrics")
        if status != http.HTTPStatus.OK:
            raise self._other("/metrics", status)
        return body.decode("utf-8", "replace")

    def state(self) -> str:
        """The job's state in words, as ``/readyz`` has it; raises as :meth:`rules_page` does."""
        status, verdict = self._get("/readyz")
        if isinstance(verdict, dict) and "reason" in verdict:
            return str(verdict["reason"])
        raise self._other("/readyz", status)

    def rules(self) -> list[dict[str, Any]]:
        """The rules of the page ``/rules``; raises as :meth:`rules_page` does."""
        return self.rules_page().rules

    def ready(self) -> bool:
        """Return whether the job does its work; raises as :meth:`rules_page` does."""
        status, verdict = self._get("/readyz")
        if isinstance(verdict, dict) and "ok" in verdict:
            return bool(verdict["ok"])
        raise self._other("/readyz", status)

    def _get(self, page: str) -> tuple[int, Any]:
        """Status and content of a page in JSON; ``None`` for another."""
        status, body = self._asked(page)
        try:
            return status, json.loads(body)
        except ValueError:
            return status, None

    def _asked(self, page: str) -> tuple[int, bytes]:
        """Status and content. http.client follows no redirection and knows no proxy, so the login
        goes to this address alone."""
        if self.tls is None:
            connection = http.client.HTTPConnection(self.host, self.port, timeout=_SECONDS)
        else:
            connection = http.client.HTTPSConnection(
                self.host, self.port, timeout=_SECONDS, context=self.tls
            )
        headers = {} if self.login is None else {"Authorization": self.login}
        try:
            connection.request("GET", self.path + page, headers=headers)
            answer = connection.getresponse()
            body = answer.read(_MOST_BYTES + 1)
        except ssl.SSLCertVerificationError as error:
            raise SparkCepError(
                f"{self.url}: its certificate is not trusted: {error.verify_message}; trusted is"
                " the one of observability.ssl_certificate_file, or, without that setting, what the"
                " system trusts"
            ) from None
        except (OSError, http.client.HTTPException) as error:
            why = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise PagesUnavailableError(
                f"{self.url}: no answer: {printable(why)}; is the job running, and are"
                " observability.metrics_host, metrics_port and ssl_certificate_file those that it"
                " was started with? --url gives another address"
            ) from None
        finally:
            connection.close()
        if answer.status == http.HTTPStatus.UNAUTHORIZED:
            raise SparkCepError(
                f"{self.url}{page}: the job refuses name and password; set observability.username"
                " and password to those that it was started with"
            )
        if len(body) > _MOST_BYTES:
            raise SparkCepError(f"{self.url}{page}: the answer has more than {_MOST_BYTES:,} bytes")
        return answer.status, body

    def _other(self, page: str, status: int) -> SparkCepError:
        return SparkCepError(
            f"{self.url}{page}: this is not the page of a spark-cep job (status {status}); --url"
            " gives the address of the job's pages"
        )


def pages_of(observability: Observability, url: str | None) -> Pages:
    """The pages of the job that these settings start, or of the one at ``url``. Raises
    ConfigurationError when there are none, or the address is wrong."""
    given = observability
    url = given.pages_url if url is None else url
    if url is None:
        raise ConfigurationError("observability.metrics_port is 0: the job has no pages")
    try:
        parts = urlsplit(url)
        scheme, asked, port = parts.scheme, parts.hostname, parts.port
    except ValueError:
        scheme, asked, port = "", None, None
    if scheme not in ("http", "https") or not asked or parts.username or parts.query:
        raise ConfigurationError(
            f"--url {printable(shortened(url))}: allowed is http://HOST:PORT or https://HOST:PORT;"
            " name and password are observability.username and password"
        )
    login = None
    if given.username is not None and given.password is not None:
        both = f"{given.username}:{given.password.get_secret_value()}"
        login = "Basic " + base64.b64encode(both.encode()).decode("ascii")
    tls = _trust(given.ssl_certificate_file) if scheme == "https" else None
    path = parts.path.rstrip("/").removesuffix("/rules")
    return Pages(
        f"{scheme}://{parts.netloc}{path}",
        asked,
        port or (80 if tls is None else 443),
        path,
        tls,
        login,
    )


def _trust(certificate: Path | None) -> ssl.SSLContext:
    """Trust in the job's own certificate and no other, by whatever name it is reached: it is not
    issued for 127.0.0.1 or for the end of a port-forward."""
    if certificate is None:
        return ssl.create_default_context()
    try:
        # Behind it stand those of its issuers, which sign others too.
        first = _CERTIFICATE.search(certificate.read_text("ascii", errors="replace"))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cadata=first[0] if first else "")
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"observability.ssl_certificate_file {certificate}: it cannot be used: {error};"
            " allowed: a PEM file with a certificate"
        ) from None
    context.verify_flags |= ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN
    context.check_hostname = False
    return context
