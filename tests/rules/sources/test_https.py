"""Rules from a URL: tags, tokens, certificates, and servers that answer something else."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from spark_cep.errors import ConfigurationError, RuleSetError, RulesUnavailableError
from spark_cep.rules.change import next_rules
from spark_cep.rules.rule_set import assemble
from spark_cep.rules.sources.configured import source_of
from spark_cep.rules.sources.source import RuleSource
from tests.certificates import Authority
from tests.rules.served import TOKEN, Served
from tests.rules.sources.test_configured import versions
from tests.rules.sources.test_folder import rule
from tests.rules.stores import settings


def of(served: Served, authority: Authority, **more: Any) -> RuleSource:
    """A source of what is served."""
    given = {"url": served.url, "ssl_ca_file": str(authority.file), "bearer_token": TOKEN}
    return source_of(settings(source="https", https={**given, **more}))


@pytest.fixture
def source(served: Served, authority: Authority) -> Iterator[RuleSource]:
    """A source of rule ``a``."""
    served.body = rule("a").encode()
    with closing(of(served, authority, timeout="1 s")) as made:
        yield made


def test_what_is_unchanged_is_not_sent(served: Served, source: RuleSource) -> None:
    """The tag is that of the rules which were taken."""
    assert versions(source.read()) == {"a": 1}
    assert source.read() is None
    served.body = b"\xff"
    with pytest.raises(RuleSetError, match="the body is not UTF-8"):
        source.read()
    with pytest.raises(RuleSetError, match="the body is not UTF-8"):
        source.read()
    served.body = rule("a", 2).encode()
    assert versions(source.read()) == {"a": 2}
    assert served.answers == [200, 304, 200, 200, 200]


def test_the_same_rules_with_another_tag(served: Served, source: RuleSource) -> None:
    """They are sent once more, and the new tag is asked for from then on."""
    assert versions(source.read()) == {"a": 1}
    served.salt = "deployed again"
    assert source.read() is None
    assert source.read() is None
    assert served.answers == [200, 200, 304]


def test_a_server_without_tags(served: Served, source: RuleSource) -> None:
    """The same body is the same rules."""
    served.tagged = False
    assert versions(source.read()) == {"a": 1}
    assert source.read() is None
    assert served.answers == [200, 200]


@pytest.mark.parametrize(
    ("status", "headers", "told"),
    [
        (404, {}, "the server answers 404 Not Found"),
        (503, {}, "the server answers 503 Service Unavailable"),
        (304, {}, "the server answers 304 Not Modified"),
        (204, {}, "the server answers 204 No Content"),
        (302, {"Location": "/elsewhere"}, "redirects are not followed"),
    ],
)
def test_other_answers(
    served: Served, source: RuleSource, status: int, headers: dict[str, str], told: str
) -> None:
    """Are no rules, and none of an empty source."""
    served.status, served.headers, served.body = status, headers, b""
    with pytest.raises(RuleSetError, match=told):
        source.read()


@pytest.mark.parametrize(
    ("status", "passes"), [(408, True), (429, True), (500, True), (503, True), (401, False)]
)
def test_answers_that_may_pass(
    served: Served, source: RuleSource, status: int, *, passes: bool
) -> None:
    """Are waited for at a first start; a refusal is not."""
    served.status = status
    with pytest.raises(RuleSetError) as caught:
        source.read()
    assert isinstance(caught.value, RulesUnavailableError) is passes


def test_bodies_that_do_not_end(served: Served, source: RuleSource) -> None:
    """One is too large, one comes byte by byte, one is cut off: each is an error, and the next
    answer counts."""
    served.body = b"#" * 4_000_001
    with pytest.raises(RuleSetError, match="the body is too large"):
        source.read()
    served.body, served.pause = b"#" * 1_000, 0.1
    with pytest.raises(RuleSetError, match="no whole answer in 1 s"):
        source.read()
    served.body, served.pause, served.cut = rule("a").encode(), 0, 10
    with pytest.raises(RuleSetError, match="the rules cannot be read"):
        source.read()
    served.cut = 0
    assert versions(source.read()) == {"a": 1}


def test_a_body_that_is_no_yaml(served: Served, source: RuleSource) -> None:
    """All rules run on: it cannot be known which were meant to go."""
    served.body = f"{rule('a')}---\n{rule('b')}".encode()
    running = assemble(one for file in source.read() or () for one in file.loaded)
    served.body = b"<html>\n'"
    files = source.read()
    assert files is not None
    found = next_rules(
        running, files, lambda _: (), ran=running, most=10, allow_empty=True, fingerprints={}
    )
    assert [one.id for one in found.rules.rules] == ["a", "b"]
    assert found.rejected


def test_a_certificate_that_is_not_trusted(served: Served, tmp_path: Path) -> None:
    """Nothing is sent there."""
    with (
        closing(of(served, Authority(tmp_path / "other"))) as source,
        pytest.raises(RuleSetError, match="CERTIFICATE_VERIFY_FAILED"),
    ):
        source.read()
    assert served.answers == []


def test_a_certificate_of_the_client(authority: Authority, tmp_path: Path) -> None:
    """Where the server wants one."""
    served = Served(authority.identity("server"), trusted=str(authority.file))
    served.body = rule("a").encode()
    served.start()
    client = authority.identity("client")
    own = {"ssl_certificate_file": str(client.certificate), "ssl_key_file": str(client.key)}
    with closing(of(served, authority, **own)) as source:
        assert versions(source.read()) == {"a": 1}
    with closing(of(served, authority)) as source, pytest.raises(RuleSetError):
        source.read()
    served.stop()
    own["ssl_key_file"] = str(served_key := tmp_path / "key.pem")
    served_key.write_text("no key")
    with pytest.raises(ConfigurationError, match=r"rules\.https: certificate or key cannot be"):
        of(served, authority, **own)


def test_tokens_stay_hidden(served: Served, authority: Authority) -> None:
    """One that is refused is in no error, nor one that cannot be sent; nor the URL's query."""
    with closing(of(served, authority, bearer_token="wr0ng")) as source:
        with pytest.raises(RuleSetError, match="401 Unauthorized") as caught:
            source.read()
        assert "wr0ng" not in str(caught.value)
    for more in ({"bearer_token": "s3cret\n"}, {"headers": {"X-Key": "s3cret\u00e4"}}):
        with pytest.raises(ConfigurationError, match="cannot be sent") as refused:
            of(served, authority, **more)
        assert "s3cret" not in str(refused.value)
    with closing(of(served, authority, url=f"{served.url}?ref=main")) as source:
        assert source.name == served.url


def test_plain_http(authority: Authority) -> None:
    """On this machine, or where it is allowed."""
    served = Served(None)
    served.body = rule("a").encode()
    served.start()
    with closing(of(served, authority)) as source:
        assert versions(source.read()) == {"a": 1}
    served.stop()


BEGINNINGS = {b"X": b"HTTP/1.1 200 OK\r\nA", b"body": b"HTTP/1.1 200 OK\r\n\r\n"}


@pytest.mark.parametrize(
    "piece", [b"X", b"body", b"HTTP/1.1 103 Early Hints\r\n\r\n", b"HTTP/1.1 100 Continue\r\n\r\n"]
)
def test_answers_that_do_not_end(piece: bytes) -> None:
    """One deadline holds for the whole request, whatever the server sends to pass the time."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection, suppress(OSError):
                connection.sendall(BEGINNINGS.get(piece, piece))
                while True:
                    time.sleep(0.05)
                    connection.sendall(piece)

        sender = threading.Thread(target=answer, daemon=True)
        sender.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}/rules"
        began = time.monotonic()
        with (
            closing(
                source_of(settings(source="https", https={"url": url, "timeout": "300 ms"}))
            ) as made,
            pytest.raises(RulesUnavailableError, match=r"no whole answer in 0.3 s"),
        ):
            made.read()
        assert time.monotonic() - began < 3
        sender.join(5)
