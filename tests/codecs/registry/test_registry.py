"""The registry client against a small HTTP server that answers from a script."""

from __future__ import annotations

import base64
import json
import ssl
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from spark_cep.codecs.registry.registry import Registry
from spark_cep.codecs.registry.settings import RegistrySettings
from spark_cep.errors import (
    ConfigurationError,
    RegistryError,
    RegistryUnavailableError,
    SchemaError,
    SchemaNotFoundError,
)

ANSWER = tuple[int, Any]
ADDRESS = {"type": "record", "name": "geo.Address", "fields": [{"name": "c", "type": "string"}]}
ORDER = {"type": "record", "name": "Order", "fields": [{"name": "to", "type": "geo.Address"}]}
GUID = UUID("00112233-4455-6677-8899-aabbccddeeff")


class Script:
    """Answers per path, used up in turn (the last one stays), and what was asked."""

    def __init__(self) -> None:
        self.answers: dict[str, list[ANSWER]] = {}
        self.asked: list[tuple[str, str, dict[str, str], str]] = []

    def next(self, path: str) -> ANSWER:
        """The next answer for a path."""
        answers = self.answers.get(path, [(404, "<html>no such page</html>")])
        return answers.pop(0) if len(answers) > 1 else answers[0]


@pytest.fixture
def script() -> Script:
    """An empty script."""
    return Script()


@pytest.fixture
def url(script: Script) -> Iterator[str]:
    """A server that follows the script."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
            script.asked.append((self.command, path, dict(self.headers), body))
            status, answer = script.next(path)
            content = (answer if isinstance(answer, str) else json.dumps(answer)).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_POST = do_GET

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing on the terminal."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def waits() -> list[float]:
    """The waits between attempts, instead of waiting."""
    return []


@pytest.fixture
def registry(url: str, waits: list[float]) -> Iterator[Registry]:
    """A registry client with three attempts that does not wait."""
    client = Registry(RegistrySettings(url, max_attempts=3), sleep=waits.append)
    yield client
    client.close()


def test_schema_by_id_is_asked_once(registry: Registry, script: Script) -> None:
    """A schema never changes under its id: it is kept."""
    script.answers["/schemas/ids/7"] = [(200, {"schema": json.dumps(ADDRESS)})]
    assert registry.get_schema(7).root == "geo.Address"
    assert registry.get_schema(7).text == registry.get_schema(7).text
    assert len(script.asked) == 1


def test_schema_by_guid(registry: Registry, script: Script) -> None:
    """A GUID from a header finds its schema too."""
    script.answers[f"/schemas/guids/{GUID}"] = [(200, {"schema": json.dumps(ADDRESS)})]
    assert registry.get_schema(GUID).root == "geo.Address"


def test_references_are_resolved(registry: Registry, script: Script) -> None:
    """A schema with references comes back self-contained."""
    reference = {"name": "geo.Address", "subject": "address", "version": 2}
    script.answers["/schemas/ids/8"] = [
        (200, {"schema": json.dumps(ORDER), "references": [reference]})
    ]
    script.answers["/subjects/address/versions/2"] = [
        (200, {"subject": "address", "version": 2, "id": 5, "schema": json.dumps(ADDRESS)})
    ]
    assert json.loads(registry.get_schema(8).text)["fields"][0]["type"] == ADDRESS


def test_references_in_a_circle(registry: Registry, script: Script) -> None:
    """References that lead back are refused, not followed for ever."""
    reference = {"name": "Order", "subject": "order", "version": 1}
    schema = {"schema": json.dumps(ORDER), "references": [reference]}
    script.answers["/schemas/ids/8"] = [(200, schema)]
    script.answers["/subjects/order/versions/1"] = [
        (200, schema | {"subject": "order", "version": 1, "id": 8})
    ]
    with pytest.raises(SchemaError, match="in a circle"):
        registry.get_schema(8)


def test_a_reference_that_is_gone(registry: Registry, script: Script) -> None:
    """The schema cannot be used; that its id were unknown would be asked again and again."""
    reference = {"name": "geo.Address", "subject": "address", "version": 2}
    schema = {"schema": json.dumps(ORDER), "references": [reference]}
    script.answers["/schemas/ids/8"] = [(200, schema)]
    script.answers["/subjects/address/versions/2"] = [
        (404, {"error_code": 40402, "message": "Version 2 not found."})
    ]
    with pytest.raises(SchemaError, match=r"schema id 8: .* does not know reference 'address'"):
        registry.get_schema(8)


def test_defaults_are_checked_for_readers_alone(registry: Registry, script: Script) -> None:
    """What is asked for by its id was written with, and its defaults are not used; the version of
    a subject may become a reader schema."""
    field = {"name": "c", "type": "string", "default": None}
    schema = {"schema": json.dumps({"type": "record", "name": "E", "fields": [field]})}
    script.answers["/schemas/ids/8"] = [(200, schema)]
    script.answers["/subjects/s/versions/1"] = [
        (200, schema | {"subject": "s", "version": 1, "id": 8})
    ]
    for _ in range(2):
        assert registry.get_schema(8).root == "E"
        found = registry.version("s", 1).found
        assert isinstance(found, SchemaError)
        assert str(found).startswith("subject 's', version 1: Default value <None>")


def test_latest_is_asked_again(registry: Registry, script: Script) -> None:
    """The latest version may change at any time."""
    script.answers["/subjects/s/versions/latest"] = [
        (200, {"subject": "s", "version": v, "id": 10 + v, "schema": json.dumps(ADDRESS)})
        for v in (1, 2)
    ]
    found = [registry.latest("s"), registry.latest("s")]
    assert [(f.version, f.id) for f in found] == [(1, 11), (2, 12)]
    registry.get_schema(11)
    assert len(script.asked) == 2


def test_version(registry: Registry, script: Script) -> None:
    """One version of a subject."""
    answer = {"subject": "s", "version": 3, "id": 4, "schema": json.dumps(ADDRESS)}
    script.answers["/subjects/s/versions/3"] = [(200, answer)]
    assert registry.version("s", 3).id == 4


def test_register_and_lookup(registry: Registry, script: Script) -> None:
    """Registration posts the schema and gives its id; so does looking it up."""
    script.answers["/subjects/s/versions"] = [(200, {"id": 42})]
    script.answers["/subjects/s"] = [(200, {"subject": "s", "version": 1, "id": 43, "schema": "x"})]
    assert registry.register("s", json.dumps(ADDRESS)) == 42
    assert registry.lookup("s", json.dumps(ADDRESS)) == 43
    assert json.loads(json.loads(script.asked[0][3])["schema"]) == ADDRESS


def test_incompatible_registration(registry: Registry, script: Script, waits: list[float]) -> None:
    """A refusal is an error with the registry's words, at once."""
    script.answers["/subjects/s/versions"] = [(409, {"error_code": 409, "message": "incompatible"})]
    with pytest.raises(RegistryError, match=r"subject 's': HTTP 409.*incompatible"):
        registry.register("s", json.dumps(ADDRESS))
    assert waits == []


def test_unknown_id(registry: Registry, script: Script, waits: list[float]) -> None:
    """An id that the registry does not know is not found, without retries."""
    script.answers["/schemas/ids/9"] = [(404, {"error_code": 40403, "message": "Schema not found"})]
    with pytest.raises(SchemaNotFoundError, match="does not know schema id 9"):
        registry.get_schema(9)
    assert waits == []


@pytest.mark.parametrize(
    "answer", ["<html>no such page</html>", {"error_code": 404, "message": "HTTP 404 Not Found"}]
)
def test_404_of_something_else(registry: Registry, script: Script, answer: Any) -> None:
    """A 404 that is not a registry's, or one for another path, must not make records dead
    letters."""
    script.answers["/schemas/ids/9"] = [(404, answer)]
    with pytest.raises(RegistryError, match="is the path of its URL right") as caught:
        registry.get_schema(9)
    assert not isinstance(caught.value, SchemaNotFoundError)


@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_passing_failures_are_retried(
    registry: Registry, script: Script, waits: list[float], status: int
) -> None:
    """A registry that is busy or restarting is asked again after a while."""
    failure = (status, {"error_code": status, "message": "busy"})
    script.answers["/schemas/ids/7"] = [failure, failure, (200, {"schema": json.dumps(ADDRESS)})]
    assert registry.get_schema(7).root == "geo.Address"
    assert len(waits) == 2


def test_retries_end(registry: Registry, script: Script, waits: list[float]) -> None:
    """After the last attempt the failure is an error, and a later call asks again."""
    script.answers["/schemas/ids/7"] = [(503, "down")]
    with pytest.raises(RegistryUnavailableError, match="HTTP 503"):
        registry.get_schema(7)
    assert len(waits) == 2
    script.answers["/schemas/ids/7"] = [(200, {"schema": json.dumps(ADDRESS)})]
    assert registry.get_schema(7).root == "geo.Address"


def test_unreachable(waits: list[float]) -> None:
    """Nobody at the address: an error that names it, after the attempts."""
    settings = RegistrySettings("http://127.0.0.1:9", max_attempts=2, timeout_seconds=1)
    with pytest.raises(
        RegistryUnavailableError, match=r"127\.0\.0\.1:9 cannot be reached .* 2 attempts"
    ):
        Registry(settings, sleep=waits.append).get_schema(7)
    assert len(waits) == 1


def test_a_certificate_of_nobody(tmp_path: Path, waits: list[float]) -> None:
    """A registry whose certificate is not trusted is asked once: it would be the same again."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + timedelta(days=1))
        .sign(key, hashes.SHA256())
    )
    pem = tmp_path / "server.pem"
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    pem.write_bytes(secret + certificate.public_bytes(Encoding.PEM))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    server = ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        settings = RegistrySettings(f"https://127.0.0.1:{server.server_address[1]}")
        with pytest.raises(ConfigurationError, match=r"cannot be trusted: .*self.signed"):
            Registry(settings, sleep=waits.append).get_schema(7)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    assert waits == []


@pytest.mark.parametrize("answer", ["<html>", [1], {"id": "x"}])
def test_not_a_registry(registry: Registry, script: Script, answer: Any) -> None:
    """An answer that is no registry's is an error, not a crash."""
    script.answers["/subjects/s/versions/latest"] = [(200, answer)]
    with pytest.raises(RegistryError):
        registry.latest("s")


def test_other_schema_types(registry: Registry, script: Script) -> None:
    """Protobuf and JSON Schema are refused by name."""
    script.answers["/schemas/ids/7"] = [(200, {"schema": "x", "schemaType": "PROTOBUF"})]
    with pytest.raises(SchemaError, match="PROTOBUF; allowed: AVRO"):
        registry.get_schema(7)


def test_basic_login(url: str, script: Script) -> None:
    """User and password, from the URL too, go into the header and nowhere else."""
    script.answers["/schemas/ids/7"] = [(200, {"schema": json.dumps(ADDRESS)})]
    settings = RegistrySettings(url.replace("//", "//me:s%40cret@"))
    Registry(settings).get_schema(7)
    expected = "Basic " + base64.b64encode(b"me:s@cret").decode()
    assert script.asked[0][2]["Authorization"] == expected
    assert settings.url == url
    assert "s@cret" not in repr(settings)


def test_token(url: str, script: Script) -> None:
    """A bearer token goes into the header."""
    script.answers["/schemas/ids/7"] = [(200, {"schema": json.dumps(ADDRESS)})]
    Registry(RegistrySettings(url, token="t0k")).get_schema(7)
    assert script.asked[0][2]["Authorization"] == "Bearer t0k"


def test_secrets_stay_out_of_errors(url: str, script: Script) -> None:
    """A registry that repeats the password does not bring it into the message."""
    script.answers["/schemas/ids/7"] = [(401, {"error_code": 401, "message": "bad me:hunter2"})]
    settings = RegistrySettings(url, username="me", password="hunter2")
    with pytest.raises(ConfigurationError, match=r"bad me:\*\*\*") as caught:
        Registry(settings).get_schema(7)
    assert "hunter2" not in str(caught.value)


def test_missing_certificate_file() -> None:
    """A TLS file that is not there is an error of the registry, before any request."""
    with pytest.raises(RegistryError, match="cannot be used"):
        Registry(RegistrySettings("https://localhost", ca_file="/nowhere/ca.pem"))


@pytest.mark.parametrize(
    ("settings", "part"),
    [
        ({"url": "ftp://me:secret@host"}, "'ftp://host' is not a URL"),
        ({"url": "registry:8081"}, "is not a URL"),
        ({"url": "http://a:b@h", "username": "c"}, "both in the URL"),
        ({"url": "http://h", "username": "c", "token": "t"}, "exclude each other"),
        ({"url": "http://h", "password": "c"}, "without username"),
        ({"url": "http://h", "username": "a:b"}, "colon"),
        ({"url": "http://h", "key_file": "k"}, "certificate_file"),
        ({"url": "http://h", "timeout_seconds": 0}, "timeout_seconds"),
        ({"url": "http://h", "max_attempts": 0}, "max_attempts"),
    ],
)
def test_settings_that_contradict(settings: dict[str, Any], part: str) -> None:
    """Wrong settings are refused, without showing secrets."""
    with pytest.raises(ConfigurationError) as caught:
        RegistrySettings(**settings)
    assert part in str(caught.value)
    assert "secret" not in str(caught.value)
