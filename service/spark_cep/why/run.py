"""Runs one rule over records, and writes the account of one key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from difflib import get_close_matches

from spark_cep.compiler.plan import Plan
from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.rule_set import Partitioning, compile_rule
from spark_cep.matcher.keys import KeysMatcher
from spark_cep.model import Coordinates, Event
from spark_cep.pattern.tree import Rule
from spark_cep.pipeline.wire.new_schemas import NewSchemasError
from spark_cep.rules.rule_set import RuleSet
from spark_cep.runner.batch import Batch, BatchResults, RunSettings
from spark_cep.runner.runner import Inputs, Runner
from spark_cep.why.account import Account, failure_text
from spark_cep.why.changes import drained, drains, replaced, take_over
from spark_cep.why.ledger import Ledger
from spark_cep.why.parts import WatchedPlan
from spark_cep.why.probes import chain_of
from spark_cep.why.row_pattern.watcher import AttemptWatcher
from spark_cep.why.steps.watcher import StepWatcher
from spark_cep.why.versions import Stage
from spark_cep.why.watched import KeyInputs, SeenRecords, WatchedMatcher

_NEAREST = 5
#: Gives inputs that know the schemas without which a batch cannot be read.
Learnt = Callable[[NewSchemasError], Inputs]


def why(
    rule: Rule,
    key: str | None,
    inputs: Inputs,
    batches: Iterable[Batch | RuleSet],
    settings: RunSettings | None = None,
    learnt: Learnt | None = None,
) -> Account:
    """The account of the events of ``key``, as text of it stands in outputs (``None`` for a rule
    without key), under one rule. ``inputs`` are for one key group, and keep all events
    (:attr:`~spark_cep.pipeline.decode.decoder_plan.DecodeOptions.keep_all`). From a rule set among
    ``batches`` on the rules are these, which ``rule`` is a version of one of; without any it runs
    from the first batch on."""
    settings = replace(settings or RunSettings(), key_groups=1, late_events="all")
    run = _WatchedRun(rule, key, inputs, settings, learnt)
    for each in batches:
        if isinstance(each, RuleSet):
            run.change(each)
        else:
            run.apply(each)
    return run.account()


class _WatchedRun:
    """A run for the account of one version of a rule, and one key."""

    def __init__(
        self,
        rule: Rule,
        key: str | None,
        inputs: Inputs,
        settings: RunSettings,
        learnt: Learnt | None,
    ) -> None:
        self._rule, self._types = rule, inputs.types
        self._settings, self._learnt = settings, learnt
        self._stage = Stage.alone(rule, self._types)
        self._ledger = Ledger(self._watched, key)
        self._watcher = self._made_watcher()
        self._of_key = KeyInputs(inputs, key)
        self._runner: Runner | None = None
        self._waiting: list[Event] = []
        self._late: set[Coordinates] = set()

    @property
    def _watched(self) -> WatchedPlan:
        assert self._stage.watched is not None
        return self._stage.watched

    def _made_watcher(self) -> StepWatcher | AttemptWatcher:
        in_steps = isinstance(self._ledger.watched.plan, Plan)
        return (StepWatcher if in_steps else AttemptWatcher)(self._ledger, self._types)

    def _matcher(self, partitioning: Partitioning, known: RecordTypes) -> KeysMatcher:
        if self._stage.watched is None:
            return KeysMatcher(partitioning, known)
        return WatchedMatcher(partitioning, known, self._watcher)

    def _use(self) -> None:
        """Let the runner run what the stage has."""
        if self._runner is None:
            self._runner = Runner(
                self._stage.plan, self._of_key, self._settings, matcher=self._matcher
            )
        else:
            self._runner.use(self._stage.plan, self._of_key)

    def change(self, rules: RuleSet) -> None:
        """Go on under other rules."""
        before, self._stage = self._stage, Stage.of(rules, self._rule, self._types)
        now = self._stage.watched
        if now is not None:
            self._ledger.watched = now
            self._watcher = self._made_watcher()
        self._of_key = replace(self._of_key, counts=now is not None)
        if self._runner is None:
            return
        self._use()
        # The change takes effect with a batch.
        self._apply(Batch((), watermark=self._runner.watermark))
        time, live = self._runner.watermark + 1, list(self._runner.partial_matches())
        if now is None and before.watched is not None:
            self._ledger.not_seen(each for each in self._waiting if each.at not in self._late)
            replaced(self._ledger, self._rule, rules, live, time)
            self._waiting = [each for each in self._waiting if each.at in self._late]
        elif now is not None and before.watched is None:
            take_over(self._ledger, live, time)
        elif self._stage.plan.draining and not before.plan.draining and self._ledger.alive:
            drains(self._ledger, rules, time)

    def apply(self, batch: Batch) -> None:
        """Apply a batch."""
        if self._runner is None:
            self._use()
        seen = self._of_key.seen.copy()
        try:
            self._apply(batch)
        except NewSchemasError as error:
            if self._learnt is None:
                raise
            # What was seen of the batch is seen again.
            self._of_key = replace(self._of_key, inputs=self._learnt(error), seen=seen)
            self._use()
            self._apply(batch)

    def _apply(self, batch: Batch) -> None:
        assert self._runner is not None
        results: BatchResults = self._runner.apply(batch)
        self._late.update(each.at for each in results.late)
        self._waiting += self._of_key.seen.arrived
        self._of_key.seen.arrived.clear()
        self._waiting = [event for event in self._waiting if event.at not in self._ledger.events]
        version = self._rule.id, self._rule.version
        gone = sum(count for *of, count in results.gone if (*of,) == version)
        if gone and self._stage.plan.draining and self._stage.watched is not None:
            drained(self._ledger, self._stage.plan, results.watermark + 1)

    def account(self) -> Account:
        """The account, at the end."""
        ledger, runner = self._ledger, self._runner
        live = [] if runner is None or self._stage.watched is None else runner.partial_matches()
        # One that is held back and alive, too, is shown as alive.
        in_order = sorted(live, key=lambda each: not each.held_back)
        by_chain = {chain_of(ledger.watched.plan, each.steps): each for each in in_order}
        alive = {number: by_chain[chain] for chain, number in ledger.alive.items()}
        account = ledger.close(alive, self._waiting, self._late)
        if runner is not None:
            account.watermark = runner.watermark
        _tell_starts(account, self._of_key.seen, ledger.watched)
        return account


def keys_seen(
    rule: Rule, inputs: Inputs, batches: Iterable[Batch | RuleSet]
) -> Sequence[str | None]:
    """The keys of a rule's events, of very many some, in the order of their texts."""
    of_key = KeyInputs(inputs, None)
    watched = WatchedPlan.of(compile_rule(rule, inputs.types))
    if not rule.key:
        return [None]
    events = (each for each in batches if isinstance(each, Batch))
    for _ in Runner(watched.together, of_key, RunSettings(key_groups=1)).run(events):
        pass
    return sorted(of_key.seen.keys)


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
    account.failures = [*map(failure_text, seen.letters), *account.failures]
