"""The account of one key over recorded events: files, or a slice of topics."""

from __future__ import annotations

from collections.abc import Iterator

from spark_cep.pipeline.decode.decoder_plan import DecodeOptions
from spark_cep.pipeline.decode.packing import Packing
from spark_cep.pipeline.driver.rules.job_plan import check_rules, spelled_out
from spark_cep.pipeline.wire.new_schemas import NewSchemasError
from spark_cep.recorded.events import RecordedEvents
from spark_cep.recorded.merging import AtEnd
from spark_cep.rules.rule_set import RuleFile, RuleSet
from spark_cep.runner.batch import Batch, RunSettings
from spark_cep.why.account import Account
from spark_cep.why.run import why

#: Dead letters of reading that are remembered.
_MOST_LETTERS = 100


def account_of(
    rules: RuleSet,
    key: str | None,
    events: RecordedEvents,
    settings: RunSettings,
    at_end: AtEnd = "wait",
) -> Account:
    """The account of ``key`` under the only rule of ``rules``. Raises RuleSetError where it
    does not fit the events, ConfigurationError for what cannot be read."""
    check_rules(rules, events.format, ends=True)
    (spelled,) = spelled_out([RuleFile("", rules.loaded)], events.format, RuleSet())
    (loaded,) = spelled.loaded
    letters: list[str] = []

    def batches() -> Iterator[Batch]:
        for batch in events.batches(settings, at_end):
            few = batch.letters[: _MOST_LETTERS - len(letters)]
            letters.extend(f"{each.reason}: {each.detail}" for each in few)
            yield batch.batch

    def inputs() -> Packing:
        return Packing(events.format, DecodeOptions(1, None, keep_all=True))

    def learnt(error: NewSchemasError) -> Packing:
        events.learn(error)
        return inputs()

    account = why(loaded.rule, key, inputs(), batches(), settings, learnt)
    account.failures = [*letters, *account.failures]
    return account
