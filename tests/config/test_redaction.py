"""Secrets in texts: what is taken out, and what is left."""

from __future__ import annotations

import pytest

from spark_cep.config.redaction import MASK, redact_text, without_login


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("at https://user:pass@host:8081/x", f"at https://{MASK}@host:8081/x"),
        ("https://user:p@ss@host", f"https://{MASK}@host"),
        ("https://user:p/s?s#s@host", f"https://{MASK}@host"),
        ("https://:token@host", f"https://{MASK}@host"),
        ("http://a:b@one,http://c:d@two", f"http://{MASK}@one,http://{MASK}@two"),
        ("'http://a:b@one' and x@two", f"'http://{MASK}@one' and x@two"),
        ("http://host:8081/subjects/a@b", "http://host:8081/subjects/a@b"),
        ("somebody@host", "somebody@host"),
    ],
)
def test_logins_in_urls(text: str, shown: str) -> None:
    """Also of passwords with characters that a URL should not have in one."""
    assert redact_text(text) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("user:p@ss@host", f"{MASK}@host"),
        ("https://user:p@ss@host:8081", f"https://{MASK}@host:8081"),
        ("https://token@host", f"https://{MASK}@host"),
        ("http://host:8081", "http://host:8081"),
    ],
)
def test_what_was_meant_as_a_url(value: str, shown: str) -> None:
    """A scheme that is missing shows no password."""
    assert without_login(value) == shown
