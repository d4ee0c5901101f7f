"""What Spark is told to hide, and the masking of known secrets."""

from __future__ import annotations

import re

import pytest

from spark_cep.config import spark_redaction_regex, without


@pytest.mark.parametrize(
    "name",
    [
        "kafka.sasl.jaas.config",
        "kafka.ssl.keystore.key",
        "kafka.ssl.key.password",
        "spark.hadoop.fs.s3a.access.key",
        "spark.hadoop.fs.azure.account.key.store.dfs.core.windows.net",
        "fs.azure.account.oauth2.client.secret",
        "google.private-key",
        "plain.name",
        "spark.plain.name",
    ],
)
def test_names_that_spark_hides(name: str) -> None:
    """Names that tell, and names of what was given as a secret, with Hadoop's prefix or not."""
    java = spark_redaction_regex(["spark.hadoop.plain.name"])
    assert re.search(re.sub(r"\\Q(.*?)\\E", lambda m: re.escape(m[1]), java), name)


def test_names_that_spark_shows() -> None:
    """The rest stays readable, dots are no wildcards."""
    assert r"\Qplain.name\E" in spark_redaction_regex(["spark.hadoop.plain.name"])
    assert not re.search(spark_redaction_regex(), "spark.sql.shuffle.partitions")


def test_known_secrets_are_masked() -> None:
    """Longer ones first, empty ones not at all."""
    assert without("ab abc", ["ab", "", "abc"]) == "********** **********"
