"""Texts of errors for the page: what is wrong, and what to do."""

from __future__ import annotations

import sys
import traceback

from spark_cep.config.redaction import redact_text
from spark_cep.errors import (
    KafkaUnavailableError,
    PagesUnavailableError,
    RegistryUnavailableError,
    RulesTopicUnavailableError,
    SparkCepError,
    printable_lines,
)


def error_text(error: Exception) -> str:
    """Return the text of an error for the page. An error of a library is written to standard error,
    with its traceback."""
    match error:
        case PagesUnavailableError():
            return (
                "the job does not answer. Check that it runs. If its pages are at another address,"
                " start spark-cep watch with --url"
            )
        case KafkaUnavailableError() | RulesTopicUnavailableError():
            return (
                "Kafka does not answer. Check that the brokers run, and that"
                " kafka.bootstrap_servers is their address; `spark-cep doctor` tries the connection"
            )
        case RegistryUnavailableError():
            return (
                "the schema registry does not answer. Check that it runs, and that registry.url is"
                " its address; `spark-cep doctor` tries the connection"
            )
        case SparkCepError():
            return printable_lines(str(error))
    text = "".join(traceback.format_exception(error))
    sys.stderr.write(printable_lines(redact_text(text)) + "\n")
    return "unexpected error. The terminal in which spark-cep watch runs shows it"
