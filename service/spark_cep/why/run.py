"""Runs one rule over records, and writes the account of one key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from difflib import get_close_matches

from spark_cep.compiler.plan import Plan
from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.rule_set import Partitioning, compile_rule
from spark_cep.matcher.findings.live import PartialMatch
from spark_cep.matcher.keys import KeysMatcher
from spark_cep.model import Coordinates, Event
from spark_cep.pattern.tree import Rule
from spark_cep.pipeline.wire.new_schemas import NewSchemasError
from spark_cep.runner.batch import Batch, RunSettings
from spark_cep.runner.runner import Inputs, Runner
from spark_cep.why.account import Account
from spark_cep.why.ledger import Ledger
from spark_cep.why.parts import WatchedPlan
from spark_cep.why.probes import chain_of
from spark_cep.why.row_pattern.watcher import AttemptWatcher
from spark_cep.why.steps.watcher import StepWatcher
from spark_cep.why.watched import KeyInputs, SeenRecords, WatchedMatcher

_NEAREST = 5


def why(
    rule: Rule,
    key: str | None,
    inputs: Inputs,
    batches: Iterable[Batch],
    settings: RunSettings | None = None,
    learnt: Callable[[NewSchemasError], Inputs] | None = None,
) -> Account:
    """The account of the events of ``key``, as text of it stands in outputs (``None`` for a rule
    without key), under one rule. ``inputs`` are for one key group, and keep all events
    (:attr:`~spark_cep.pipeline.decode.decoder_plan.DecodeOptions.keep_all`). ``learnt`` gives those
    that know the schemas without which a batch cannot be read."""
    settings = replace(settings or RunSettings(), key_groups=1, late_events="all")
    watched = WatchedPlan.of(compile_rule(rule, inputs.types))
    ledger, types = Ledger(watched, key), inputs.types
    in_steps = isinstance(watched.plan, Plan)
    watcher: StepWatcher | AttemptWatcher
    watcher = (StepWatcher if in_steps else AttemptWatcher)(ledger, types)
    matchers: list[WatchedMatcher] = []

    def made(partitioning: Partitioning, known: RecordTypes) -> KeysMatcher:
        matchers.append(WatchedMatcher(partitioning, known, watcher))
        return matchers[-1]

    of_key = KeyInputs(inputs, key)
    runner = Runner(watched.together, of_key, settings, matcher=made)
    waiting: list[Event] = []
    late: set[Coordinates] = set()
    for batch in batches:
        seen = of_key.seen.copy()
        try:
            results = runner.apply(batch)
        except NewSchemasError as error:
            if learnt is None:
                raise
            # What was seen of the batch is seen again.
            of_key = KeyInputs(learnt(error), key, seen)
            runner.use(watched.together, of_key)
            results = runner.apply(batch)
        late.update(each.at for each in results.late)
        waiting += of_key.seen.arrived
        waiting = [event for event in waiting if event.at not in ledger.events]
        of_key.seen.arrived.clear()
    used = next((each for each in reversed(matchers) if each.last is not None), None)
    alive = {} if used is None else _alive(used, watcher, watched)
    account = ledger.close(alive, waiting, late)
    account.watermark = runner.watermark
    _tell_starts(account, of_key.seen, watched)
    return account


def keys_seen(rule: Rule, inputs: Inputs, batches: Iterable[Batch]) -> Sequence[str | None]:
    """The keys of a rule's events, of very many some, in the order of their texts."""
    of_key = KeyInputs(inputs, None)
    watched = WatchedPlan.of(compile_rule(rule, inputs.types))
    if not rule.key:
        return [None]
    for _ in Runner(watched.together, of_key, RunSettings(key_groups=1)).run(batches):
        pass
    return sorted(of_key.seen.keys)


def _alive(
    matcher: WatchedMatcher, watcher: StepWatcher | AttemptWatcher, watched: WatchedPlan
) -> dict[int, PartialMatch]:
    """The partial matches that are alive, by number."""
    assert matcher.last is not None
    live = list(matcher.live(*matcher.last))
    # One that is held back and alive, too, is shown as alive.
    live.sort(key=lambda each: not each.held_back)
    return {watcher.numbers[chain_of(watched.plan, each.steps)]: each for each in live}


def _tell_starts(account: Account, seen: SeenRecords, watched: WatchedPlan) -> None:
    """Fill in what the records of all keys tell of starts and failures."""
    starts, plan = account.starts, watched.plan
    starts.types, starts.without_key = dict(seen.types), seen.without_key
    starts.all_events = sum(seen.types.values())
    wanted = (
        [of_type for _, of_type in plan.step_types if of_type] if isinstance(plan, Plan) else []
    )
    known = {name for each in seen.types for name in (each, each.rpartition(".")[2])}
    starts.missing_types = tuple(dict.fromkeys(each for each in wanted if each not in known))
    if not starts.events and account.key is not None:
        near = get_close_matches(account.key, seen.keys, _NEAREST, 0.4)
        starts.keys_like = tuple(near or sorted(seen.keys)[:_NEAREST])
    letters = [f"{each.reason}: {each.detail}" for each in seen.letters]
    account.failures = [*letters, *account.failures]
