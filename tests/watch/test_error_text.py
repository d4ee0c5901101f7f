"""Texts of errors for the page."""

from __future__ import annotations

import pytest

from spark_cep.config import Observability
from spark_cep.errors import (
    KafkaUnavailableError,
    Problem,
    RegistryUnavailableError,
    RuleSetError,
    RulesTopicUnavailableError,
    SparkCepError,
)
from spark_cep.watch.error_text import error_text
from spark_cep.watch.pages import pages_of

RAW = "127.0.0.1:1/bootstrap: Connect to ipv4#127.0.0.1:1 failed"


def test_a_job_that_does_not_answer() -> None:
    """What to do, in place of what the system says."""
    pages = pages_of(Observability(), "http://127.0.0.1:1")
    with pytest.raises(SparkCepError) as error:
        pages.rules_page()
    assert "refused" in str(error.value)
    said = error_text(error.value)
    assert said.startswith("the job does not answer. Check that it runs.")
    assert "refused" not in said


@pytest.mark.parametrize(
    ("error", "begin"),
    [
        (KafkaUnavailableError(RAW), "Kafka does not answer. Check that the brokers run"),
        (RulesTopicUnavailableError([Problem(RAW)]), "Kafka does not answer. Check that"),
        (RegistryUnavailableError(RAW), "the schema registry does not answer. Check that"),
    ],
)
def test_what_a_client_says_is_not_shown(error: Exception, begin: str) -> None:
    """Nor an address of one of its connections."""
    said = error_text(error)
    assert said.startswith(begin)
    assert RAW not in said


def test_what_is_wrong_with_a_rule_is_shown_whole() -> None:
    """As its author needs it; control characters are escaped."""
    assert error_text(RuleSetError([Problem("odd\x1b")])) == "<rule>: odd\\x1b"


def test_a_defect_is_told_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    """With its traceback, and without secrets."""
    try:
        raise ValueError("password=hunter2 x")
    except ValueError as error:
        assert error_text(error) == (
            "unexpected error. The terminal in which spark-cep watch runs shows it"
        )
    written = capsys.readouterr().err
    assert "Traceback" in written
    assert "ValueError" in written
    assert "hunter2" not in written
