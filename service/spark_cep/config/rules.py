"""The rule set: where rules come from, how often they are read, how many there may be."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Final, Literal
from urllib.parse import parse_qsl, urlsplit

from pydantic import AfterValidator, FilePath, SecretStr, model_validator

from spark_cep.config.quantities import (
    PositiveDuration,
    Properties,
    SettingsSection,
    Shown,
    check_pair,
    setting,
    url_parts,
)
from spark_cep.config.redaction import names_a_secret
from spark_cep.config.topics import DottedName, Topic
from spark_cep.documents.values import contradiction, refused

_ALLOWED_DATABASES: Final = "a URL as postgresql://host:5432/database or sqlite:////folder/file.db"
_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
_READERS_OWN: Final = (
    "auto.offset.reset",
    "enable.auto.commit",
    "enable.partition.eof",
    "isolation.level",
)


def _without_secrets(url: str, allowed: str) -> str:
    parts = url_parts(url, allowed)
    if any(names_a_secret(name) for name, _ in parse_qsl(parts.query)):
        raise refused("a URL without secrets; they have settings of their own")
    return parts.scheme


def _database(url: str) -> str:
    if not _without_secrets(url, _ALLOWED_DATABASES) or "://" not in url:
        raise refused(_ALLOWED_DATABASES)
    return url


def _address(url: str) -> str:
    if _without_secrets(url, "https://…") not in ("http", "https") or not urlsplit(url).hostname:
        raise refused("https://…")
    return url


class RulesTopic(SettingsSection):
    """Rules as records of a compacted topic, by default of the cluster in `kafka`."""

    topic: Topic = setting(
        ...,
        "Topic of one partition, with `cleanup.policy=compact`. A record's key is the rule's id, "
        "its value the rule's text; a record without value removes the rule.",
    )
    properties: Properties = setting(
        {},
        "Further properties of the librdkafka consumer that reads the topic; they win over "
        "`kafka`, also `bootstrap.servers`.",
    )
    timeout: PositiveDuration = setting(
        10_000, "Longest wait for an answer, and until what is new has been read."
    )

    @model_validator(mode="after")
    def _right_client(self) -> RulesTopic:
        for name in self.properties:
            if name in _READERS_OWN:
                raise contradiction(f"{name} is set by the service alone", "properties")
        return self


class RulesTable(SettingsSection):
    """Rules as rows of a table with the columns `id`, `version`, `pattern` and `function`."""

    url: Annotated[str, AfterValidator(_database), Shown("URL")] = setting(
        ...,
        "Address of the database, as `postgresql://host:5432/database` or "
        "`sqlite:////folder/file.db`; others that SQLAlchemy knows need their driver installed.",
    )
    username: str | None = setting(None, "Name to log in with.")
    password: SecretStr | None = setting(None, "Password to log in with.")
    table: DottedName = setting("rules", "Table, as `table` or `schema.table`.")
    ververica: Annotated[dict[str, Any], Shown("map of fields of a rule")] = setting(
        {},
        "What rules have whose `pattern` is the JSON of Ververica's dynamic CEP, as `key`, "
        "`events` and `emit`: the JSON says nothing of them.",
    )
    timeout: PositiveDuration = setting(10_000, "Longest wait for an answer.")

    @model_validator(mode="after")
    def _whole_login(self) -> RulesTable:
        if self.password is not None and self.username is None:
            raise contradiction("a password needs a username", "password")
        return self


class RulesUrl(SettingsSection):
    """Rules as a document at a URL, asked for again with its `ETag`."""

    url: Annotated[str, AfterValidator(_address), Shown("URL")] = setting(
        ..., "Address of the rules: YAML documents with `---` between, or JSON."
    )
    allow_http: bool = setting(
        False,
        "Whether `url` may be `http://` with another host than this one: rules and token then "
        "travel unprotected.",
    )
    bearer_token: SecretStr | None = setting(None, "Token for HTTP bearer authentication.")
    headers: Annotated[dict[str, SecretStr], Shown("map of headers")] = setting(
        {}, "Further headers of each request; their values are secret."
    )
    ssl_ca_file: FilePath | None = setting(
        None, "PEM file of the authorities to trust; absent: those of the system."
    )
    ssl_certificate_file: FilePath | None = setting(
        None, "PEM file of the client's certificate and its chain."
    )
    ssl_key_file: FilePath | None = setting(None, "PEM file of the client's private key.")
    ssl_key_password: SecretStr | None = setting(None, "Password of an encrypted private key.")
    timeout: PositiveDuration = setting(10_000, "Longest wait for an answer.")

    @model_validator(mode="after")
    def _protected(self) -> RulesUrl:
        parts = urlsplit(self.url)
        if parts.scheme != "https" and parts.hostname not in _LOOPBACK and not self.allow_http:
            raise contradiction(
                "rules and token would travel unprotected: use https://, or set allow_http", "url"
            )
        check_pair(self, "ssl_certificate_file", "ssl_key_file")
        if self.bearer_token is not None and any(
            name.lower() == "authorization" for name in self.headers
        ):
            raise contradiction("either bearer_token or the header Authorization", "headers")
        return self


class Rules(SettingsSection):
    """The rule set."""

    source: Literal["folder", "kafka", "sql", "https"] = setting(
        "folder",
        "Where rules come from: files of `folder`, records of a topic (`kafka`), rows of a table "
        "(`sql`) or a URL (`https`). The section of that name is needed, and no other.",
    )
    folder: Path = setting(
        Path("rules"), "Folder of rule files (`.yaml`, `.yml`, `.json`, `.sql`)."
    )
    kafka: RulesTopic | None = setting(None, "The topic, with source `kafka`.")
    sql: RulesTable | None = setting(None, "The table, with source `sql`.")
    https: RulesUrl | None = setting(None, "The URL, with source `https`.")
    max_rules: int = setting(1000, "Most rules that are accepted.", unit="rules", ge=1, le=100_000)
    refresh_interval: PositiveDuration | None = setting(
        1_000,
        "How often the source is read while the job runs. A change counts from the next batch "
        "on; one of the folder once two looks have seen the same. `null`: rules are read at the "
        "start alone. With `trigger.mode: available_now` they always are.",
    )
    overrides_topic: Topic | None = setting(
        "cep.rule-overrides",
        "Compacted topic of one partition in which `spark-cep rules pause`, `resume` and "
        "`rollback` write what is decided beside the source; on the cluster of the output. "
        "`null`: nothing is.",
    )
    allow_empty: bool = setting(
        False,
        "Whether all rules may go while the job runs. If not, a source that is empty, or would "
        "leave no rule, is taken for a mistake, and the rules that there were run on.",
    )

    @model_validator(mode="after")
    def _one_source(self) -> Rules:
        for name in ("kafka", "sql", "https"):
            given = getattr(self, name) is not None
            if given and self.source != name:
                raise contradiction(
                    f"rules.source is {self.source}: remove this section, or set rules.source to "
                    f"{name}",
                    name,
                )
            if self.source == name and not given:
                raise contradiction(f"missing, and needed with rules.source {name}", name)
        return self
