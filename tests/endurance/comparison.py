"""What the job has written, held against the matcher without Spark.

Untouched rules: against the core with these rules alone, so nothing around them can count. Rules
that change: against one key group without Spark, without crashes and without other keys' groups,
that is given the rule sets of the audit topic, each with the records from where its first batch
begins. Both get only the records that rules read, and the watermark of all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from bench.outputs import committed_messages
from bench.soak.comparison import Name, digest_of, digest_of_body, reader
from bench.soak.stream import PARTITIONS, TOPIC
from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.rule_set import compile_rules
from spark_cep.matcher.findings.outputs import Outputs
from spark_cep.model import Match, Timeout
from spark_cep.pattern.types import INT, STRING, RecordType
from spark_cep.rules.plans import plan_for
from spark_cep.rules.rule_set import RuleSet
from spark_cep.rules.topic_records import Decision, SetBegins, audit_record, rule_sets
from tests.endurance.author import UNTOUCHED
from tests.endurance.stream import ALLOWED_DISORDER_MS, SCHEMA, Stream
from tests.pipeline.match.test_key_group import Store
from tests.reference.local import LocalJob

_TYPES = RecordTypes(
    (("", SCHEMA["name"], RecordType({"user": STRING, "kind": STRING, "v": INT})),)
)
_BUCKET_SIZE = 64 << 10
#: Records of a partition that are taken up together.
_CUT = 50_000


@dataclass(frozen=True)
class Epoch:
    """A rule set and the offsets that its batches have read, by partition."""

    rules: RuleSet
    begins: dict[int, int]
    ends: dict[int, int]

    def cuts(self) -> Iterator[tuple[dict[int, int], dict[int, int]]]:
        """The offsets in pieces."""
        widest = max(self.ends[n] - self.begins[n] for n in range(PARTITIONS))
        pieces = max(1, -(-widest // _CUT))
        at = [
            {n: self.begins[n] + (self.ends[n] - self.begins[n]) * piece // pieces
             for n in range(PARTITIONS)}
            for piece in range(pieces + 1)
        ]  # fmt: skip
        yield from pairwise(at)


def audited(
    bootstrap: str, topic: str, job: str
) -> tuple[list[tuple[SetBegins, RuleSet]], list[Decision]]:
    """The rule sets of a job, by its audit topic, and the decisions that led to them."""
    values = (message.value() or b"" for message in committed_messages(bootstrap, topic))
    records = [one for one in map(audit_record, values) if one is not None and one.job == job]
    sets = [each for _, each in sorted(rule_sets(records).items())]
    return sets, [one for one in records if isinstance(one, Decision)]


def epochs(sets: Iterable[tuple[SetBegins, RuleSet]], ends: dict[int, int]) -> Iterator[Epoch]:
    """The rule sets with what was read under each; ``ends``: where the last one ends."""
    several = [(rules, _whole(begins.offsets.get(TOPIC, {}))) for begins, rules in sets]
    following = [*(offsets for _, offsets in several[1:]), _whole(ends)]
    for (rules, offsets), end in zip(several, following, strict=True):
        yield Epoch(rules, offsets, end)


def _whole(offsets: dict[int, int]) -> dict[int, int]:
    return {number: offsets.get(number, 0) for number in range(PARTITIONS)}


def expected(stream: Stream, history: Iterable[Epoch]) -> Iterator[tuple[Name, bytes]]:
    """Every match and timeout that there must be once, with its digest."""
    alone: LocalJob | None = None
    changing: Store | None = None
    for epoch in history:
        several = [*epoch.rules.rules, *(each.rule for each in epoch.rules.draining)]
        shadow = {(rule.id, rule.version) for rule in several if rule.shadow}
        others = _of(epoch.rules, untouched=False)
        if alone is None:
            own = _of(epoch.rules, untouched=True)
            alone = LocalJob(compile_rules(own.enabled), _TYPES)
            changing = Store(plan_for(others, _TYPES), _TYPES, _BUCKET_SIZE)
        assert changing is not None
        changing.change(plan_for(others, _TYPES), _TYPES)
        for begins, ends in epoch.cuts():
            records = stream.useful(begins, ends)
            newest = stream.newest(ends)
            watermark = changing.watermark
            if len(newest) == PARTITIONS:
                watermark = max(watermark, min(newest.values()) - ALLOWED_DISORDER_MS - 1)
            if newest:
                # How long a version drains counts from the newest event.
                changing.newest = max(changing.newest, *newest.values())
            alone.advance(records, watermark)
            changing.advance(records, watermark)
            for job in (alone, changing):
                assert not job.late
                assert not job.outputs.dead_letters
                yield from _named(job.outputs, shadow)
                job.outputs = Outputs()


def _of(rules: RuleSet, *, untouched: bool) -> RuleSet:
    def own(rule: str) -> bool:
        return rule.startswith(UNTOUCHED) is untouched

    return replace(
        rules,
        loaded=tuple(one for one in rules.loaded if own(one.rule.id)),
        draining=tuple(one for one in rules.draining if own(one.rule.id)),
        carried=tuple(one for one in rules.carried if own(one.rule.id)),
    )


def _named(outputs: Outputs, shadow: set[tuple[str, int]]) -> Iterator[tuple[Name, bytes]]:
    both: list[Match | Timeout] = [*outputs.matches, *outputs.timeouts]
    for one in both:
        kind = "match" if isinstance(one, Match) else "timeout"
        version = one.rule_id, one.rule_version
        yield (
            (_kind(one.rule_id, kind, shadow=version in shadow), one.match_id),
            digest_of(one),
        )


def _kind(rule: str, kind: str, *, shadow: bool) -> str:
    group = "shadow" if shadow else UNTOUCHED if rule.startswith(UNTOUCHED) else "changing"
    return f"{group} {kind}"


def written(bootstrap: str, topics: Iterable[str], shadow: str) -> Iterator[tuple[Name, bytes]]:
    """Every committed match and timeout of ``topics``, of which one is that of shadow rules."""
    readers = {"match": reader("match"), "timeout": reader("timeout")}
    for topic in topics:
        for message in committed_messages(bootstrap, topic):
            headers = dict(message.headers() or [])
            kind = "match" if headers["spark-cep-kind"] == b"match" else "timeout"
            body = readers[kind](message.value())
            name = _kind(body["rule_id"], kind, shadow=topic == shadow)
            yield (name, body["match_id"]), digest_of_body(kind, body)
