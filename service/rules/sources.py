"""The source that the settings name."""

from __future__ import annotations

from contextlib import closing

from service.config import Settings
from service.rules.folder import FolderSource
from service.rules.rule_set import RuleSet, examine, valid
from service.rules.source import RuleSource

_SETTLE_MS = 500


def source_of(settings: Settings) -> RuleSource:
    """The source of the job's rules, not yet read."""
    rules = settings.rules
    settle = min(_SETTLE_MS, rules.refresh_interval or _SETTLE_MS)
    return FolderSource(rules.folder, settle / 1000)


def rules_of(settings: Settings) -> RuleSet:
    """The rules of the job's source, read once. RuleSetError with every problem found."""
    return valid(examined(settings))


def examined(settings: Settings) -> RuleSet:
    """The same with their problems. RuleSetError when the source cannot be read."""
    with closing(source_of(settings)) as source:
        return examine(source.read() or (), source.name)
