"""Names that hold secrets, and masking of the secrets in a value.

Shared by the settings (pass-through maps) and the logs. Settings that are secret by type are
``SecretStr`` anyway; the names here catch what travels in maps of free keys and in messages.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from pydantic import SecretStr

MASK: Final = "**********"

_TELLING: Final = (
    r"(?i)secret|passw(or)?d|passphrase|token|credential|authorization|access[._-]?key|api[._-]?key"
    r"|account[._-]?key|jaas|keystore[._]key|key[._]pem|private[._-]?key|user[._]info"
)
_SECRET_NAME: Final = re.compile(_TELLING)
_HARMLESS_NAME: Final = re.compile(
    r"(?i)[._](file|location|path|class|credentials[._]source|endpoint[._]url|uri)$"
)
_IN_TEXT: Final = (
    re.compile(
        r"""(?i)((?:password|passwd|passphrase|secret|token)["']?\s*[=:]\s*)"(?:\\.|[^"\\])*\""""
    ),
    re.compile(
        r"""(?i)((?:password|passwd|passphrase|secret|token)["']?\s*[=:]\s*)'(?:\\.|[^'\\])*'"""
    ),
    re.compile(
        r"""(?i)((?:password|passwd|passphrase|secret|token)["']?\s*[=:]\s*)(?!\*{10})[^\s"',;})\]]+"""
    ),
    re.compile(r"(?i)(\bauthorization\s*[=:]\s*(?:basic|bearer)\s+)[^\s\"',;]+"),
    # Up to the last `@`, since a password may hold one, and also `/`, `?` or `#`; but in
    # `host:9092/path@…` no password begins.
    re.compile(r"""(://)(?![^/\s:@]*:\d{1,5}[/?#])[^/\s:@]*:(?:(?!://)[^\s"'`<>])*(?=@)"""),
)


def names_a_secret(name: str) -> bool:
    """Tell whether a setting, property or log key of this name holds a secret."""
    return bool(_SECRET_NAME.search(name)) and not _HARMLESS_NAME.search(name)


def spark_redaction_regex(hidden: Iterable[str] = ()) -> str:
    """For ``spark.redaction.regex``: what names a secret here, and the Spark settings in
    ``hidden``, which Spark shows without the prefix for Hadoop's too."""
    names = sorted(name.removeprefix("spark.hadoop.") for name in hidden)
    return "|".join([_TELLING, *(rf"\Q{name}\E" for name in names)])


def without(text: str, secrets: Iterable[str]) -> str:
    """``text`` with each of ``secrets`` masked, wherever it stands."""
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        text = text.replace(secret, MASK)
    return text


def without_login(value: str) -> str:
    """A URL, or what was meant as one, with all masked that stands before its last ``@``."""
    before, at, host = value.rpartition("@")
    scheme, separator, _ = before.partition("://")
    return f"{scheme + separator if separator else ''}{MASK}@{host}" if at else value


def redact_text(text: str) -> str:
    """``text`` without passwords in ``password=…``, JAAS entries and ``user:password@`` of URLs."""
    for pattern in _IN_TEXT:
        text = pattern.sub(rf"\g<1>{MASK}", text)
    return text


def redact(value: Any, name: str = "") -> Any:
    """``value`` with every secret masked: by type, by the key that holds it, and inside texts."""
    if isinstance(value, SecretStr) or (name and names_a_secret(name) and value is not None):
        return MASK
    if isinstance(value, str):
        return redact_text(value)
    if isinstance(value, Mapping):
        return {key: redact(item, str(key)) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [redact(item) for item in value]
    return value
