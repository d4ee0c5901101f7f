"""Where rules come from, as settings: one source, its section, and what is refused of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from spark_cep.config import load
from spark_cep.rules.sources.configured import source_of
from spark_cep.rules.sources.folder import FolderSource
from tests.config.test_load import MINIMAL, refusal, write

SQL = "sql: {url: 'postgresql://db/rules'"
HTTPS = "https: {url: 'https://host/rules'"


def test_a_folder_beside_the_settings(tmp_path: Path) -> None:
    """What nobody says anything of."""
    settings = load(write(tmp_path, MINIMAL), {})
    assert (settings.rules.source, settings.rules.folder) == ("folder", tmp_path / "rules")
    assert isinstance(source_of(settings), FolderSource)


def test_secrets_from_elsewhere(tmp_path: Path) -> None:
    """A password in a file, a token in a variable; neither is shown."""
    (tmp_path / "password").write_text("s3cret\n")
    text = MINIMAL + f"rules: {{source: sql, {SQL}, username: u, password: {{file: password}}}}}}\n"
    settings = load(write(tmp_path, text), {})
    assert settings.rules.sql is not None
    assert settings.rules.sql.password is not None
    assert settings.rules.sql.password.get_secret_value() == "s3cret"
    text = MINIMAL + f"rules: {{source: https, {HTTPS}, headers: {{X: {{env: A}}}}}}}}\n"
    environ = {"A": "s3cret", "SPARK_CEP__RULES__HTTPS__BEARER_TOKEN__ENV": "A"}
    by_url = load(write(tmp_path, text), environ)
    assert by_url.rules.https is not None
    assert by_url.rules.https.bearer_token is not None
    assert by_url.rules.https.bearer_token.get_secret_value() == "s3cret"
    for one in (settings, by_url):
        assert "s3cret" not in str(one) + one.model_dump_json()


@pytest.mark.parametrize(
    ("rules", "told"),
    [
        ("source: kafka", "`rules.kafka`: missing, and needed with rules.source kafka"),
        (SQL + "}", "rules.source is folder: remove this section, or set rules.source to sql"),
        (f"source: sql, {SQL}}}, {HTTPS}}}", "rules.source is sql: remove this section"),
        ("source: database", "`folder`, `kafka`, `sql` or `https`"),
        ("source: kafka, kafka: {topic: a b}", "a topic name"),
        (
            "source: kafka, kafka: {topic: t, properties: {isolation.level: read_uncommitted}}",
            "isolation.level is set by the service alone",
        ),
        ("source: sql, sql: {url: db}", "postgresql://host:5432/database"),
        ("source: sql, sql: {url: 'postgresql://u:s3cret@db/x'}", "a URL without credentials"),
        ("source: sql, sql: {url: 'mysql://db/x?passwd=s3cret'}", "a URL without secrets"),
        (f"source: sql, {SQL}, password: s3cret}}", "a password needs a username"),
        (f"source: sql, {SQL}, table: 'rules; DROP TABLE x'}}", "a name, or names with dots"),
        ("source: https, https: {url: 'ftp://host/rules'}", "https://…"),
        ("source: https, https: {url: 'https://u:s3cret@host'}", "a URL without credentials"),
        ("source: https, https: {url: 'https://h/r?private_token=s3cret'}", "without secrets"),
        (
            "source: https, https: {url: 'http://host/rules'}",
            "rules and token would travel unprotected: use https://, or set allow_http",
        ),
        (f"source: https, {HTTPS}, ssl_key_file: config.yaml}}", "go together"),
        (
            f"source: https, {HTTPS}, bearer_token: s3cret, headers: {{authorization: s3cret}}}}",
            "either bearer_token or the header Authorization",
        ),
    ],
)
def test_refusals(tmp_path: Path, rules: str, told: str) -> None:
    """Each says what is wrong and what is allowed, and shows no secret."""
    found = refusal(tmp_path, MINIMAL + f"rules: {{{rules}}}\n")
    assert told in found
    assert "s3cret" not in found


@pytest.mark.parametrize("url", ["http://localhost/r", "http://127.0.0.1:1/r", "http://[::1]/r"])
def test_this_machine_needs_no_tls(tmp_path: Path, url: str) -> None:
    """A server on the same machine, as in a test or beside the job in its pod."""
    text = MINIMAL + f"rules: {{source: https, https: {{url: '{url}'}}}}\n"
    assert load(write(tmp_path, text), {}).rules.https is not None
    elsewhere = text.replace(url, "http://host/r").replace("}}", ", allow_http: true}}")
    assert load(write(tmp_path, elsewhere), {}).rules.https is not None
