"""A rule that changed between two runs, at the level of snapshots: whose state is whose.

The state of a rule is found again by its plan's fingerprint. ``tests/e2e/test_changed_rules.py``
shows the same in the running job, with the columns of events too.
"""

from __future__ import annotations

import pytest

from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.rule_set import Partitioning, compile_rules
from spark_cep.matcher.batch.events import Names
from spark_cep.matcher.batch.input_batch import InputBatch, batches_together, reached
from spark_cep.matcher.findings.outputs import Outputs
from spark_cep.matcher.keys import KeysMatcher, KeysState
from spark_cep.matcher.snapshot.stored_keys import decode
from spark_cep.matcher.snapshot.waiting_events import decode_batch, encode_batch
from spark_cep.matcher.snapshot.written_state import encode
from spark_cep.pattern.document.loading import load_rules
from spark_cep.pipeline.state.known_rules import Translation
from tests.matcher.runs import END_OF_TIME, written
from tests.reference.local import EventReader

RULE = """\
id: r
version: 1
key: key
within: 1 minute
after_match: {skip_to_first: b}
emit: {measures: {names: COUNT(*)}}
pattern:
  - {step: a, where: "name = 'a'"}
  - {step: b, after: followed_by, where: "name = 'b'", times: 1+, gap: 1 second, until: price = 9}
  - {step: c, after: followed_by, where: "name = 'c'"}
"""
OTHER = "id: other\nkey: key\npattern: [{step: x, where: \"name = 'x'\"}]\n"

#: Changes that do not touch what a partial match means: text to replace, and by what.
HARMLESS = {
    "a description": ("version: 1", "version: 1\ndescription: text"),
    "measures": ("COUNT(*)", "LAST(a.price)"),
    "emitted events": ("emit: {", "emit: {events: all, "),
    "limits": ("version: 1", "version: 1\nlimits: {partial_matches: 3, on_limit: pause_rule}"),
    "a cooldown": ("version: 1", "version: 1\ncooldown: 1 hour"),
    "a later beginning": ("version: 1", "version: 1\neffective_from: 2030-01-01T00:00:00Z"),
    "an error on a miss": ("skip_to_first: b", "skip_to_first: b, on_miss: error"),
    "a comment": ("pattern:", "pattern:  # three steps"),
    "other time units": ("1 minute", "60 seconds"),
    "other spelling": ("name = 'a'", "( name='a' )"),
    "enabled, said": ("version: 1", "version: 1\nenabled: true"),
}

#: Changes after which old partial matches would mean something else.
TELLING = {
    "version": ("version: 1", "version: 2"),
    "id": ("id: r", "id: s"),
    "key": ("key: key", "key: [key, name]"),
    "inputs": ("version: 1", "version: 1\nevents: logins"),
    "window": ("1 minute", "2 minutes"),
    "window from previous to current": ("within: 1 minute", "within: {gap: 1 minute}"),
    "skip strategy": ("skip_to_first", "skip_to_last"),
    "target to skip to": ("skip_to_first: b", "skip_to_first: c"),
    "condition": ("name = 'c'", "name = 'd'"),
    "record type": ("step: c,", "step: c, of_type: T,"),
    "contiguity": ("step: c, after: followed_by,", "step: c, after: followed_by_any,"),
    "repetitions": ("times: 1+", "times: 2+"),
    "loop": ("times: 1+", "times: 1+, loop: consecutive"),
    "gap": ("gap: 1 second", "gap: 2 seconds"),
    "until": ("until: price = 9", "until: price = 8"),
    "name of a step": ("step: c", "step: d"),
    "optional": ("step: c,", "step: c, optional: true,"),
}


def partitioning(*texts: str) -> Partitioning:
    """The rules of one key, as one partitioning."""
    loaded = load_rules("---\n".join(texts), "rules.yaml")
    return compile_rules(one.rule for one in loaded).partitionings[0]


def changed(by: tuple[str, str]) -> str:
    """The rule with one change."""
    assert by[0] in RULE
    return RULE.replace(*by)


def fingerprint(text: str) -> str:
    """The fingerprint of the only rule."""
    return partitioning(text).rules[0].plan.fingerprint


class Job:
    """One key of rules that may be exchanged between two advances."""

    def __init__(self, *texts: str) -> None:
        self.outputs = Outputs()
        self.state, self.ahead, self._names = KeysState(), InputBatch(), Names()
        self._use(partitioning(*texts))

    def _use(self, part: Partitioning) -> None:
        # Without types, columns are values as they are.
        self._matcher = KeysMatcher(part, RecordTypes())
        self._reader = EventReader(part, RecordTypes())
        self._meaning = self._matcher.meaning()

    def advance(self, events: str, watermark: int) -> None:
        """Take in events and move to the watermark."""
        made = [self._reader.event(record, self.outputs) for record in written(events)]
        batch = InputBatch.of({"k": made}, self._names, self._matcher.slots)
        ready, self.ahead = reached(batches_together([self.ahead, batch]), watermark)
        for found in self._matcher.advance(self.state, ready, watermark, self._names):
            self.outputs.add(found.as_objects())

    def change(self, *texts: str) -> None:
        """Stop, and go on with other rules."""
        was = self._matcher.fingerprints
        (data,), ahead = encode(self.state, range(len(was))), encode_batch(self.ahead)
        before = self._meaning
        self._use(partitioning(*texts))
        now = {was.index(f): n for n, f in enumerate(self._matcher.fingerprints) if f in was}
        self.state, self.ahead = decode(data, now), decode_batch(ahead)
        translation = Translation(before, self._meaning, self._matcher.slots)
        translation.state(self.state)
        translation.batch(self.ahead)

    @property
    def instances(self) -> int:
        """For how many rules something is remembered."""
        return len(self.state.held.instances)


@pytest.mark.parametrize("change", HARMLESS)
def test_harmless_changes_keep_partial_matches(change: str) -> None:
    """They begin in one run and match in the next, however the rules around them have changed."""
    text = changed(HARMLESS[change])
    assert fingerprint(text) == fingerprint(RULE)
    job = Job(RULE)
    job.advance("a@1 b@2", 3)
    job.change(OTHER, text, OTHER.replace("other", "third"))
    if change == "a later beginning":
        assert job.instances == 1
        return
    job.advance("c@4", END_OF_TIME)
    (match,) = job.outputs.matches
    assert (match.rule_id, match.start, match.time) == ("r", 1, 4)


@pytest.mark.parametrize("change", TELLING)
def test_telling_changes_drop_partial_matches(change: str) -> None:
    """Neither a match nor a timeout comes of them, and no error; the rule begins again."""
    text = changed(TELLING[change])
    assert fingerprint(text) != fingerprint(RULE)
    job = Job(RULE)
    job.advance("a@1 b@2", 3)
    assert job.instances
    job.change(OTHER, text)
    assert job.instances == 0
    job.advance("c@4 d@5", END_OF_TIME)
    assert (job.outputs.matches, job.outputs.timeouts, job.outputs.dead_letters) == ([], [], [])


def test_each_change_has_a_fingerprint_of_its_own() -> None:
    """No two of the telling changes look alike."""
    assert len({fingerprint(changed(by)) for by in TELLING.values()}) == len(TELLING)


@pytest.mark.parametrize("policy", ["pause_rule", "drop_oldest"])
def test_a_new_version_ends_pause_and_cooldown(policy: str) -> None:
    """They are state of the old version."""
    limits = f"version: 1\ncooldown: 1 day\nlimits: {{partial_matches: 1, on_limit: {policy}}}"
    limited = RULE.replace("version: 1", limits)
    stream = "a@1 a@2" if policy == "pause_rule" else "a@1 b@2 c@3"
    for version, matches in ((1, 0), (2, 1)):
        job = Job(limited)
        job.advance(stream, 5)
        before = len(job.outputs.matches)
        job.change(limited.replace("version: 1", f"version: {version}"))
        job.advance("a@6 b@7 c@8", END_OF_TIME)
        assert len(job.outputs.matches) - before == matches
