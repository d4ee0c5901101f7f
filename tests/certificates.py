"""Certificate authorities made for a test, and what they sign: PEM files and Java's key stores."""

from __future__ import annotations

import ipaddress
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)
from cryptography.x509.oid import NameOID

_DAY = timedelta(days=1)
STORE_PASSWORD = "changeit"
LOOPBACK = ("127.0.0.1", "localhost")


@dataclass(frozen=True)
class Identity:
    """A certificate and its private key, as PEM files; :attr:`both` holds key and certificate."""

    certificate: Path
    key: Path
    both: Path
    key_store: Path


class Authority:
    """One authority that a test trusts, or does not."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._name = _name(name)
        self._key = ec.generate_private_key(ec.SECP256R1())
        now = datetime.now(UTC)
        self._certificate = (
            x509.CertificateBuilder()
            .subject_name(self._name)
            .issuer_name(self._name)
            .public_key(self._key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - 30 * _DAY)
            .not_valid_after(now + _DAY)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_signs_certificates(), critical=True)
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False
            )
            .sign(self._key, hashes.SHA256())
        )
        self.file = folder / f"{name}.pem"
        self.file.write_bytes(self._certificate.public_bytes(Encoding.PEM))

    def identity(
        self,
        name: str,
        *,
        hosts: Sequence[str] = LOOPBACK,
        expired: bool = False,
        store_password: str = STORE_PASSWORD,
    ) -> Identity:
        """A certificate for ``hosts`` under this authority, and its key (PKCS#8)."""
        key = ec.generate_private_key(ec.SECP256R1())
        end = datetime.now(UTC) + (-_DAY if expired else _DAY)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(_name(name))
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(end - 3 * _DAY)
            .not_valid_after(end)
            .add_extension(x509.SubjectAlternativeName([_host(h) for h in hosts]), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
                critical=False,
            )
            .sign(self._key, hashes.SHA256())
        )
        certificate_text = certificate.public_bytes(Encoding.PEM)
        key_text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        made = Identity(
            *(self._folder / f"{name}.{end}" for end in ("crt.pem", "key.pem", "both.pem", "p12"))
        )
        made.certificate.write_bytes(certificate_text)
        made.key.write_bytes(key_text)
        made.both.write_bytes(key_text + certificate_text)
        made.key_store.write_bytes(
            pkcs12.serialize_key_and_certificates(
                name.encode(),
                key,
                certificate,
                [self._certificate],
                BestAvailableEncryption(store_password.encode()),
            )
        )
        return made


def encrypted(key: Path, password: str) -> Path:
    """The key, encrypted."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("needs the command openssl to encrypt a private key")
    file = key.with_suffix(".encrypted.pem")
    command = [openssl, "pkcs8", "-topk8", "-v1", "PBE-SHA1-3DES", "-in", str(key)]
    command += ["-out", str(file), "-passout", "stdin"]
    subprocess.run(command, input=f"{password}\n", check=True, text=True, capture_output=True)
    return file


def _name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _signs_certificates() -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=True,
        encipher_only=False,
        decipher_only=False,
    )
