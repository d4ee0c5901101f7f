"""Rules that are added, paused and resumed on a page: as their commands and their source do it."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Final

from confluent_kafka import Producer

from spark_cep.codecs.formats import record_format
from spark_cep.codecs.registry.registry import Registry
from spark_cep.config import RulesTopic, Settings, reveal
from spark_cep.errors import ConfigurationError, printable
from spark_cep.pattern.document.loading import LoadedRule, load_rules
from spark_cep.pipeline.driver.kafka.cluster import Cluster
from spark_cep.pipeline.driver.rules.job_plan import check_rules
from spark_cep.rules.rule_set import RuleSet
from spark_cep.rules.topic_writer import write_records
from spark_cep.watch.overrides import pause, resume

_NAME: Final = "the rule"
_REASON: Final = "paused on the page of spark-cep watch"


class RuleChanges:
    """Changes the rules of the job with these settings."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def pause(self, rule: str) -> str:
        """Pause a rule. All functions return a sentence, and raise an error of spark-cep's where
        the change cannot be made."""
        return pause(self._settings, rule, None, _REASON, "")

    def resume(self, rule: str) -> str:
        """Resume a rule."""
        return resume(self._settings, rule, "")

    def add(self, text: str, ids: Collection[str]) -> str:
        """Add a rule to the job's source, once it is checked as the job will check it. ``ids``: of
        the rules that the job has."""
        loaded = self._checked(text, ids)
        rules = self._settings.rules
        if rules.source == "folder":
            place = str(_written(rules.folder, loaded.rule.id, text))
        elif rules.kafka is not None:
            place = self._produced(rules.kafka, loaded.rule.id, text)
        else:
            raise ConfigurationError(
                f"rules.source is {rules.source}, to which this page does not write: add the rule"
                " there; allowed are folder and kafka"
            )
        return f"rule {loaded.rule.id} is written to {place}; the job begins it with a next batch"

    def _checked(self, text: str, ids: Collection[str]) -> LoadedRule:
        found = load_rules(text, _NAME)
        if len(found) != 1:
            raise ConfigurationError(f"{_NAME}: there are {len(found)}; one is added at a time")
        (loaded,) = found
        if loaded.rule.id in ids:
            raise ConfigurationError(
                f"the job has a rule {printable(loaded.rule.id)} already: give this one another id;"
                " a rule is changed where it is from"
            )
        settings = self._settings
        with Registry.opened(settings.registry) as registry:
            schemas = record_format(settings, registry, Cluster(settings).topics())
            check_rules(RuleSet((loaded,)), schemas, ends=settings.trigger.ends)
        return loaded

    def _produced(self, topic: RulesTopic, rule: str, text: str) -> str:
        properties = {name: reveal(value) for name, value in topic.properties.items()}
        config = {**self._settings.kafka.producer_config(), **properties, "log_level": 0}
        records = [(rule.encode(), text.encode())]
        write_records(Producer(config), topic.topic, records, ConfigurationError)
        return f"topic {topic.topic}"


def _written(folder: Path, rule: str, text: str) -> Path:
    """Write the file of a rule, whose id is a name of letters, digits, `_`, `-` and `.`."""
    file = folder / f"{rule}.yaml"
    try:
        with file.open("x", encoding="utf-8") as new:
            new.write(text)
    except FileExistsError:
        raise ConfigurationError(f"{file}: there is such a file already") from None
    except OSError as error:
        raise ConfigurationError(f"{file}: cannot be written: {error.strerror}") from error
    return file
