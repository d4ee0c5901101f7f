"""``spark-cep rules pause``, ``resume`` and ``rollback``: records for the topic of overrides.

Each keeps what the topic says of the rule beside it. The job follows within a second or two.
"""

from __future__ import annotations

import getpass
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from spark_cep.config import Settings
from spark_cep.documents.nearest import instead
from spark_cep.errors import ConfigurationError, RuleSetError, RulesUnavailableError, printable
from spark_cep.rules.overrides import (
    Override,
    Overrides,
    OverrideTopic,
    PauseOrder,
    RollbackOrder,
    write_override,
)
from spark_cep.rules.status_topic import ids_in_status

if TYPE_CHECKING:
    from spark_cep.pattern.document.loading import LoadedRule
    from spark_cep.pipeline.driver.rules.rule_log import LoggedRules


def pause(
    settings: Settings,
    rule: str,
    version: int | None,
    reason: str,
    by: str,
    *,
    even_unknown: bool = False,
) -> str:
    """Pause a rule, or one version of it. All functions return the sentence to print, and raise
    ConfigurationError for an order that makes no sense, RuleSetError and KafkaUnavailableError
    where the topic cannot be read or written.

    ConfigurationError, too, for an id that the status topic does not have, unless
    ``even_unknown``."""
    if not even_unknown:
        _check_id(settings, rule)
    order = PauseOrder(reason=reason, version=version)
    return _write(settings, rule, lambda now: now.model_copy(update={"pause": order}), by)


def _check_id(settings: Settings, rule: str) -> None:
    """Check that the job has, or rejects, a rule of this id, as far as the status topic says."""
    topic = settings.outputs.topics.rule_status
    if topic is None:
        return
    try:
        ids = ids_in_status(settings.kafka, topic, settings.spark.app_name)
    except RulesUnavailableError:
        raise
    except RuleSetError:
        return  # There is no such topic, or it may not be read: a pause must not wait for that.
    if ids and rule not in ids:
        raise ConfigurationError(
            f"{topic} has no rule {printable(rule)}: {instead(rule, sorted(ids), 'rules')}; to"
            " pause a rule before it is published, add --even-unknown"
        )


def resume(settings: Settings, rule: str, by: str) -> str:
    """Resume a rule."""
    return _write(settings, rule, lambda now: now.model_copy(update={"pause": None}), by)


def undo_rollback(settings: Settings, rule: str, by: str) -> str:
    """Follow the source again."""

    def undone(now: Override) -> Override:
        if now.rollback is None:
            raise ConfigurationError(f"rule {printable(rule)} is not rolled back")
        return now.model_copy(update={"rollback": None})

    return _write(settings, rule, undone, by)


def roll_back(
    settings: Settings, sets: Sequence[LoggedRules], rule: str, to: int | None, by: str
) -> str:
    """Run version ``to`` of a rule, by default the one that ran before the newest, as ``sets`` of
    the history have it."""
    ran: dict[int, LoadedRule] = {}
    for logged in sets:
        ran |= {one.rule.version: one for one in logged.rules.loaded if one.rule.id == rule}
    now = next((one for one in sets[-1].rules.loaded if one.rule.id == rule), None)
    if now is None:
        raise ConfigurationError(f"rule set {sets[-1].number} has no rule {printable(rule)}")
    older = sorted(version for version in ran if version < now.rule.version)
    wanted = to if to is not None else max(older, default=None)
    if wanted not in older:
        known = ", ".join(map(str, older)) or "none"
        raise ConfigurationError(
            f"rule {printable(rule)} runs in version {now.rule.version}; older ones that have run,"
            f" as far as the history goes: {known}"
        )
    order = RollbackOrder(version=wanted, instead_of=now.rule.version, rule=ran[wanted].text)

    def back(before: Override) -> Override:
        newest = before.rollback.instead_of if before.rollback is not None else 0
        kept = order.model_copy(update={"instead_of": max(order.instead_of, newest)})
        return before.model_copy(update={"rollback": kept})

    return _write(settings, rule, back, by)


def _write(settings: Settings, rule: str, change: Callable[[Override], Override], by: str) -> str:
    topic = settings.rules.overrides_topic
    if topic is None:
        raise ConfigurationError("rules.overrides_topic is null: the job follows its source alone")
    with closing(OverrideTopic(settings.kafka, topic)) as there:
        overrides = there.read() or Overrides()
    placed = overrides.by_rule.get(rule)
    now = Override() if placed is None else placed.override
    new = change(now).model_copy(update={"by": by or getpass.getuser()})
    place = write_override(settings.kafka, topic, rule, new)
    return f"written to {place}; `spark-cep rules list` shows what the job makes of it"
