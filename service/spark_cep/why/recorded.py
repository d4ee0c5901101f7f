"""The account of one key over recorded events: files, or a slice of topics."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from spark_cep.pattern.document.loading import LoadedRule
from spark_cep.pattern.tree import Rule
from spark_cep.pipeline.decode.decoder_plan import DecodeOptions
from spark_cep.pipeline.decode.packing import Packing
from spark_cep.pipeline.driver.rules.job_plan import check_rules, spelled_out
from spark_cep.pipeline.wire.new_schemas import NewSchemasError
from spark_cep.recorded.events import RecordedEvents, Window
from spark_cep.recorded.merging import AtEnd
from spark_cep.rules.plans import plan_fingerprint
from spark_cep.rules.rule_set import RuleFile, RuleSet
from spark_cep.runner.batch import Batch, RunSettings
from spark_cep.why.account import Account, failure_text
from spark_cep.why.run import why
from spark_cep.why.versions import after_change

#: Dead letters of reading that are remembered.
_MOST_LETTERS = 100


@dataclass(frozen=True)
class Replacement:
    """Another version that takes the place of a rule: it has the events from the time ``at`` (ms
    since 1970) on."""

    by: LoadedRule
    at: int


def accounts_of(
    rules: RuleSet,
    key: str | None,
    events: RecordedEvents,
    settings: RunSettings,
    at_end: AtEnd = "wait",
    replacement: Replacement | None = None,
) -> list[Account]:
    """The account of ``key`` under the only rule of ``rules``, and, with a ``replacement``, under
    that one. Raises RuleSetError where one does not fit the events, ConfigurationError for what
    cannot be read."""
    loaded = _fitting(rules, events)
    if replacement is None:
        parts = partial(_without_change, events, settings, at_end)
        return [_account(loaded.rule, key, events, settings, parts)]
    by = _fitting(RuleSet((replacement.by,)), events)
    first = RuleSet((loaded,))
    known = {(loaded.rule.id, loaded.rule.version): plan_fingerprint(loaded)}
    sets = first, after_change(first, [by], known)
    parts = partial(_around, replacement.at, sets, events, settings, at_end)
    versions = {each.version: each for each in (loaded.rule, by.rule)}
    return [_account(rule, key, events, settings, parts) for rule in versions.values()]


def _fitting(rules: RuleSet, events: RecordedEvents) -> LoadedRule:
    """The only rule of a set, with the columns that it has of the events."""
    check_rules(rules, events.format, ends=True)
    (spelled,) = spelled_out([RuleFile("", rules.loaded)], events.format, RuleSet())
    (loaded,) = spelled.loaded
    return loaded


#: Yields batches and rule sets, with the dead letters of what could not be read.
_Parts = Callable[[], Iterator[tuple[Batch | RuleSet, Sequence[str]]]]


def _without_change(
    events: RecordedEvents, settings: RunSettings, at_end: AtEnd
) -> Iterator[tuple[Batch | RuleSet, Sequence[str]]]:
    for each in events.batches(settings, at_end):
        yield each.batch, [*map(failure_text, each.letters)]


def _around(
    at: int,
    sets: tuple[RuleSet, RuleSet],
    events: RecordedEvents,
    settings: RunSettings,
    at_end: AtEnd,
) -> Iterator[tuple[Batch | RuleSet, Sequence[str]]]:
    """The events before a time under one rule set, and the others under the next: as if the job had
    had the change when the watermark was there."""
    before, after = sets
    whole = events.window
    yield before, ()
    earlier = events.within(Window(whole.start, min(whole.end, at)))
    for batch, _ in _without_change(earlier, settings, "wait"):
        assert isinstance(batch, Batch)
        assert batch.watermark is not None
        yield replace(batch, watermark=min(batch.watermark, at - 1)), ()
    yield Batch((), watermark=at - 1), ()
    yield after, ()
    # All records are read again, so what cannot be read is told once.
    yield from _without_change(
        events.within(Window(max(whole.start, at), whole.end)), settings, at_end
    )


def _account(
    rule: Rule, key: str | None, events: RecordedEvents, settings: RunSettings, parts: _Parts
) -> Account:
    letters: list[str] = []

    def batches() -> Iterator[Batch | RuleSet]:
        for each, failures in parts():
            letters.extend(failures[: _MOST_LETTERS - len(letters)])
            yield each

    def inputs() -> Packing:
        return Packing(events.format, DecodeOptions(1, None, keep_all=True))

    def learnt(error: NewSchemasError) -> Packing:
        events.learn(error)
        return inputs()

    account = why(rule, key, inputs(), batches(), settings, learnt)
    account.failures = [*letters, *account.failures]
    return account
