"""The whole job on listeners with TLS and logins: source, sink, administration and registry."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_cep.errors import ConfigurationError, SparkCepError
from tests.certificates import STORE_PASSWORD, Authority, encrypted
from tests.e2e.outputs import found
from tests.e2e.scenario import Scenario
from tests.e2e.stream import Stream, at, sequence
from tests.guarded_registry import guarded_registry
from tests.kafka_access import KafkaAccess
from tests.secure_broker import PASSWORD, SecureBroker, secure_broker

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

WRONG = "wrong-marker-7261"

Make = Callable[[SecureBroker], dict[str, Any]]


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureBroker]:
    """One broker with all kinds of listeners."""
    with secure_broker(tmp_path_factory.mktemp("secure")) as running:
        yield running


@pytest.fixture
def scenario(secure: SecureBroker, registry: str, spark: SparkSession, tmp_path: Path) -> Scenario:
    """A job with one rule and a stream that matches it once."""
    made = Scenario(KafkaAccess(secure.broker.bootstrap), registry, spark, tmp_path / "job")
    made.rule(sequence("ab", "a", "followed_by b", within="1 minute"))
    Stream(made).send(("k", "a", 0), ("k", "b", 1), ("k", "x", 90))
    return made


def _stores(secure: SecureBroker) -> dict[str, Any]:
    """A key store in PKCS#12."""
    stores = {
        "ssl.ca.location": str(secure.authority.file),
        "ssl.keystore.location": str(secure.client.key_store),
        "ssl.keystore.password": STORE_PASSWORD,
    }
    section = secure.mutual(ssl_ca_file=None, ssl_certificate_file=None, ssl_key_file=None)
    return section | {"source_properties": stores, "sink_properties": stores}


def _encrypted_key(secure: SecureBroker) -> dict[str, Any]:
    key = encrypted(secure.client.key, "key-password")
    return secure.mutual(ssl_key_file=str(key), ssl_key_password="key-password")


@pytest.mark.parametrize(
    "section",
    [
        pytest.param(lambda secure: secure.login("secure", protocol="SASL_PLAINTEXT"), id="scram"),
        pytest.param(SecureBroker.login, id="scram-over-tls"),
        pytest.param(SecureBroker.mutual, id="client-certificate"),
        pytest.param(_encrypted_key, id="encrypted-key"),
        pytest.param(_stores, id="key-stores"),
        pytest.param(
            lambda secure: secure.tls("elsewhere", ssl_check_hostname=False), id="any-host"
        ),
    ],
)
def test_the_job_runs_over(scenario: Scenario, secure: SecureBroker, section: Make) -> None:
    """Source (Java), sink and administration (librdkafka) get through, with the same settings."""
    matches, _ = scenario.run(kafka=section(secure)).of("ab")
    assert matches == [found("ab", "k", at(1), a=0, b=1)]


def _foreign(secure: SecureBroker) -> Authority:
    return Authority(secure.folder / "foreign", "foreign")


def _foreign_client(secure: SecureBroker, **more: Any) -> dict[str, Any]:
    authority = _foreign(secure) if not more else secure.authority
    client = authority.identity("stranger", **more)
    return secure.mutual(ssl_certificate_file=str(client.certificate), ssl_key_file=str(client.key))


def _wrong_key_password(secure: SecureBroker) -> dict[str, Any]:
    return _encrypted_key(secure) | secure.mutual(
        ssl_key_file=str(encrypted(secure.client.key, "key-password")), ssl_key_password=WRONG
    )


REFUSALS: dict[str, tuple[Make, type[SparkCepError], str]] = {
    "password": (
        lambda secure: secure.login(password=WRONG),
        ConfigurationError,
        r"kafka\.security\.username, password or sasl_mechanism: .*invalid credentials",
    ),
    "mechanism": (
        lambda secure: secure.login(sasl_mechanism="PLAIN"),
        ConfigurationError,
        r"sasl_mechanism: .*supported mechanisms: SCRAM-SHA-256",
    ),
    "authority": (
        lambda secure: secure.mutual(ssl_ca_file=str(_foreign(secure).file)),
        ConfigurationError,
        r"kafka\.security\.ssl_ca_file: .* is not trusted: unable to get local issuer.*foreign",
    ),
    "expired": (
        lambda secure: secure.tls("expired"),
        ConfigurationError,
        r"kafka\.security\.ssl_ca_file: .* is not trusted: certificate has expired",
    ),
    "host": (
        lambda secure: secure.tls("elsewhere"),
        ConfigurationError,
        r"kafka\.security\.ssl_check_hostname: .* is that of another host: IP address mismatch",
    ),
    "no-certificate": (
        lambda secure: secure.tls("mutual"),
        ConfigurationError,
        r"kafka\.security\.ssl_certificate_file: .*lack of a certificate",
    ),
    "foreign-client": (
        _foreign_client,
        ConfigurationError,
        r"kafka\.security\.ssl_certificate_file: the broker refuses the client's certificate",
    ),
    "expired-client": (
        lambda secure: _foreign_client(secure, expired=True),
        ConfigurationError,
        r"kafka\.security\.ssl_certificate_file: the broker refuses the client's certificate",
    ),
    "no-tls": (
        lambda secure: secure.tls("mutual") | {"bootstrap_servers": secure.broker.bootstrap},
        ConfigurationError,
        r"kafka\.security\.protocol: the broker does not speak TLS",
    ),
    "key-password": (
        _wrong_key_password,
        ConfigurationError,
        r"kafka\.security\.ssl_key_file \(or ssl_key_password\): cannot be used",
    ),
    "other-key": (
        lambda secure: secure.mutual(ssl_key_file=str(_foreign(secure).identity("x").key)),
        ConfigurationError,
        r"kafka\.security\.ssl_key_file \(or ssl_key_password\): .*key values mismatch",
    ),
}


@pytest.mark.parametrize(("section", "kind", "said"), REFUSALS.values(), ids=REFUSALS)
def test_a_refusal_names_the_setting(
    scenario: Scenario,
    secure: SecureBroker,
    section: Make,
    kind: type[SparkCepError],
    said: str,
) -> None:
    """At once, without waiting for what does not pass, and without the secret."""
    with pytest.raises(kind, match=said) as refused:
        scenario.run(kafka=section(secure))
    told = f"{refused.value} {refused.value.__cause__}"
    assert not [secret for secret in (WRONG, PASSWORD, "key-password") if secret in told]


def test_the_source_checks_certificates_itself(scenario: Scenario, secure: SecureBroker) -> None:
    """Where only the source goes to a host that the certificate does not name, the message says
    so."""
    source = {"bootstrap.servers": secure.broker.address("elsewhere")}
    section = secure.mutual() | {"source_properties": source}
    said = r"kafka\.security\.ssl_check_hostname: .* is that of another host"
    with pytest.raises(ConfigurationError, match=said):
        scenario.run(kafka=section)


def test_the_registry_behind_tls_and_a_login(
    scenario: Scenario, secure: SecureBroker, registry: str
) -> None:
    """The job finds and registers schemas; a wrong password and an authority that is not trusted
    are told apart, and neither message holds a secret."""
    login = ("cep", PASSWORD)
    with guarded_registry(registry, secure.authority.identity("registry"), login) as url:
        section = {
            "url": url,
            "username": login[0],
            "password": login[1],
            "ssl_ca_file": str(secure.authority.file),
        }
        outputs = scenario.run(kafka=secure.login(), registry=section)
        assert outputs.of("ab")[0] == [found("ab", "k", at(1), a=0, b=1)]
        for wrong, said in (
            ({"password": WRONG}, "HTTP 401"),
            ({"ssl_ca_file": str(_foreign(secure).file)}, "CERTIFICATE_VERIFY_FAILED"),
        ):
            with pytest.raises(ConfigurationError, match=said) as refused:
                scenario.run(kafka=secure.login(), registry={**section, **wrong})
            assert WRONG not in str(refused.value)
            assert PASSWORD not in str(refused.value)
