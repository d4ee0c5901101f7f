"""Who may read the pages: TLS and a login, through real clients."""

from __future__ import annotations

import base64
import socket
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from spark_cep.config import Observability
from spark_cep.errors import ConfigurationError
from spark_cep.observability.access import Access, access_to
from spark_cep.observability.health import Health, HealthServer
from spark_cep.observability.metrics import Metrics
from tests.certificates import Authority, encrypted

SECRET = "pa:ss wörd"

Start = Callable[..., HealthServer]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts servers, and stops them all."""
    running: list[HealthServer] = []

    def begin(host: str = "127.0.0.1", **settings: Any) -> HealthServer:
        access = access_to(Observability.model_validate(settings))
        health = Health(60_000)
        server = HealthServer(host, 0, health, Metrics().registry, list, access)
        health.ready()
        server.start()
        running.append(server)
        return server

    yield begin
    for server in running:
        server.stop()


def get(url: str, header: str = "", trust: Path | None = None) -> tuple[int, str, str]:
    """Status, body and what login is asked for; ``trust``: the authority's file."""
    headers = {"Authorization": header} if header else {}
    request = urllib.request.Request(url, headers=headers)  # noqa: S310 - our own server
    context = ssl.create_default_context(cafile=trust) if url.startswith("https") else None
    try:
        with urllib.request.urlopen(request, timeout=10, context=context) as answer:  # noqa: S310
            return answer.status, answer.read().decode(), ""
    except urllib.error.HTTPError as error:
        with error:
            asked = error.headers.get("WWW-Authenticate", "")
            return error.code, error.read().decode(), asked


def basic(name: str, password: str) -> str:
    """The header of a login."""
    return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()


def test_a_login_is_needed_for_all_but_the_probes(start: Start) -> None:
    """Pages are for those who log in, unknown ones too; probes answer everybody."""
    server = start(username="prometheus", password=SECRET)
    for page in ("/metrics", "/rules", "/nowhere", "/livez/..", "/livez/metrics"):
        status, body, asked = get(f"http://127.0.0.1:{server.port}{page}")
        assert (status, asked) == (401, 'Basic realm="spark-cep", charset="UTF-8"'), page
        assert "spark_cep" not in body
    assert get(f"http://127.0.0.1:{server.port}/livez")[0] == 200
    assert get(f"http://127.0.0.1:{server.port}/readyz")[0] == 200
    login = basic("prometheus", SECRET)
    assert get(f"http://127.0.0.1:{server.port}/metrics", login)[0] == 200
    assert get(f"http://127.0.0.1:{server.port}/rules", login.replace("Basic", "basic"))[0] == 200


@pytest.mark.parametrize(
    "header",
    [
        "Basic",
        "Basic ",
        "Basic !!!",
        "Basic a",
        "Bearer " + base64.b64encode(f"a:{SECRET}".encode()).decode(),
        f"Basic a:{SECRET}".encode().decode("latin-1"),
        basic("a", ""),
        basic("", SECRET),
        basic("a", SECRET + "x"),
        basic("a", SECRET[:-1]),
        basic("b", SECRET),
        basic("a", SECRET.upper()),
        basic("a", SECRET) + "AAAA",
    ],
)
def test_other_logins_are_refused(start: Start, header: str) -> None:
    """Whatever is not name and password exactly is refused as no login is."""
    server = start(username="a", password=SECRET)
    assert get(f"http://127.0.0.1:{server.port}/metrics", header)[0] == 401


def test_pages_under_tls(start: Start, tmp_path: Path) -> None:
    """Who trusts the authority reads; who does not, and who speaks plain HTTP, gets nothing; and
    the next one is answered all the same."""
    authority = Authority(tmp_path)
    server_side = authority.identity("pages")
    server = start(
        ssl_certificate_file=server_side.certificate,
        ssl_key_file=server_side.key,
        username="a",
        password=SECRET,
    )
    url = f"https://127.0.0.1:{server.port}"
    assert get(f"{url}/metrics", basic("a", SECRET), authority.file)[0] == 200
    assert get(f"{url}/metrics", trust=authority.file)[0] == 401
    other = Authority(tmp_path / "other")
    with pytest.raises(urllib.error.URLError, match="CERTIFICATE_VERIFY_FAILED"):
        get(f"{url}/livez", trust=other.file)
    with pytest.raises((urllib.error.URLError, ConnectionError)):
        get(f"http://127.0.0.1:{server.port}/livez")
    assert get(f"{url}/livez", trust=authority.file)[0] == 200


def test_a_handshake_that_does_not_end_blocks_nobody(
    start: Start, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """One client that only connects and one that breaks off: others are answered, and the error
    output stays empty."""
    authority = Authority(tmp_path)
    server_side = authority.identity("pages")
    server = start(ssl_certificate_file=server_side.certificate, ssl_key_file=server_side.key)
    with socket.create_connection(("127.0.0.1", server.port)) as silent:
        with socket.create_connection(("127.0.0.1", server.port)) as broken:
            broken.sendall(b"\x16\x03\x01garbage")
        url = f"https://127.0.0.1:{server.port}/livez"
        assert get(url, trust=authority.file)[0] == 200
        silent.sendall(b"\x16")
    server.stop()
    assert capfd.readouterr().err == ""


def test_old_protocols_are_refused(start: Start, tmp_path: Path) -> None:
    """Nothing older than TLS 1.2 is spoken."""
    server_side = Authority(tmp_path).identity("pages")
    access = access_to(
        Observability.model_validate(
            {"ssl_certificate_file": server_side.certificate, "ssl_key_file": server_side.key}
        )
    )
    assert access.tls is not None
    assert access.tls.minimum_version == ssl.TLSVersion.TLSv1_2


def test_an_encrypted_key(start: Start, tmp_path: Path) -> None:
    """A key with a password works with it; without, or with another, the settings are named."""
    authority = Authority(tmp_path)
    server_side = authority.identity("pages")
    key = encrypted(server_side.key, "correct horse")
    files = {"ssl_certificate_file": server_side.certificate, "ssl_key_file": key}
    server = start(**files, ssl_key_password="correct horse")
    assert get(f"https://127.0.0.1:{server.port}/livez", trust=authority.file)[0] == 200
    for wrong in ({}, {"ssl_key_password": "battery staple"}):
        with pytest.raises(ConfigurationError, match=r"observability\.ssl_certificate_file") as no:
            access_to(Observability.model_validate({**files, **wrong}))
        assert "battery" not in str(no.value)


def test_a_certificate_without_its_key_is_refused(tmp_path: Path) -> None:
    """A key that belongs to another certificate, and a file that is no PEM."""
    authority = Authority(tmp_path)
    one, two = authority.identity("one"), authority.identity("two")
    no_pem = tmp_path / "nothing"
    no_pem.write_text("nothing")
    for certificate, key in (
        (one.certificate, two.key),
        (no_pem, one.key),
        (one.certificate, no_pem),
    ):
        given = {"ssl_certificate_file": certificate, "ssl_key_file": key}
        with pytest.raises(ConfigurationError, match="cannot be used") as refused:
            access_to(Observability.model_validate(given))
        assert str(key) in str(refused.value)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"username": "a"}, "username and password go together"),
        ({"password": "p"}, "username and password go together"),
        ({"username": "a:b", "password": "p"}, "a colon cannot stand in the name"),
        ({"username": "a", "password": ""}, "an empty password keeps nobody out"),
        ({"ssl_certificate_file": __file__}, "ssl_certificate_file and ssl_key_file go together"),
    ],
)
def test_half_an_access_is_refused(settings: dict[str, Any], said: str) -> None:
    """What would leave the pages more open than it looks is refused."""
    with pytest.raises(ValidationError, match=said):
        Observability.model_validate(settings)


def test_without_settings_the_pages_are_open(start: Start) -> None:
    """No TLS and no login, as before; and only where they are told to listen."""
    assert access_to(Observability()) == Access()
    server = start(host="127.0.0.1")
    assert get(f"http://127.0.0.1:{server.port}/metrics")[0] == 200
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.2", server.port), timeout=5)
