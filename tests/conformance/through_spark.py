"""The cases through the whole job: Kafka, registry and Spark, nothing left out or replaced.

Many cases share one query. Each case is a rule of its own, whose conditions accept that case's
events alone. The case is also a part of the key, so a rule that minds every event of its key
(``next``, ``consecutive``) meets none of another case.

All feeds pass side by side. A query has one watermark, which is led through all those at which an
event of some case arrives, in order; an event is sent while the watermark stands where the event's
own case had it. So it is late when it is late in its case. In between a case sees watermarks of
others and passes over such of its own as no event follows, neither of which can change its answer:
the results do not depend on how the input is cut into batches. Cases that end at different
watermarks do not share a query, because time would go on for one whose feed is over.

Time is moved by events that belong to no case. They are ahead of the watermark by the allowed
disorder, which is longer than all feeds, so that no other event can move it.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count, pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from examples.embedded import EmbeddedBroker, EmbeddedRegistry
from spark_cep.codecs.output.outputs import OFFSET_HEADER
from spark_cep.errors import RuleSetError
from spark_cep.pattern.document.loading import load_rules
from spark_cep.pattern.type_check import type_check
from spark_cep.pattern.types import record_type
from tests.conformance.answer import Answer, Taken
from tests.conformance.case import Case, Writer, document, feed
from tests.conftest import JARS
from tests.e2e.outputs import Outputs, Record
from tests.e2e.scenario import Scenario
from tests.e2e.schemas import record
from tests.kafka_access import KafkaAccess, Sent
from tests.local_spark import local_spark
from tests.reference.local import BEFORE_TIME

_CASES_IN_A_QUERY = 1000
_NO_CASE = -1
_BATCH_SECONDS = 300.0


@contextmanager
def whole_jobs() -> Iterator[Callable[[], Scenario]]:
    """A broker, a registry and Spark in a temporary folder; what makes a new job on them."""
    with (
        TemporaryDirectory(prefix="conformance-") as name,
        EmbeddedBroker(Path(name) / "broker", JARS) as broker,
        EmbeddedRegistry(Path(name) / "registry", JARS) as registry,
    ):
        folder = Path(name)
        kafka = KafkaAccess(broker.bootstrap)
        spark = local_spark(folder)
        numbers = count(1)
        try:
            yield lambda: Scenario(kafka, registry.url, spark, folder / f"job-{next(numbers)}")
        finally:
            spark.stop()


def answers(
    given: Sequence[Case], new_job: Callable[[], Scenario], written: Writer = document
) -> list[Answer]:
    """The job's answer to each case, whose rule is as ``written`` says it."""
    event = _event_schema(given)
    found = [Answer(refused=_refusal(case, event, written)) for case in given]
    together: dict[tuple[int, bool], list[int]] = defaultdict(list)
    for number, case in enumerate(given):
        if found[number].refused is None:
            together[_ending(case)].append(number)
    for numbers in together.values():
        for start in range(0, len(numbers), _CASES_IN_A_QUERY):
            chosen = {number: given[number] for number in numbers[start:][:_CASES_IN_A_QUERY]}
            _Query(chosen, event, new_job(), written).run(found)
    return found


def _last_watermark(case: Case) -> int:
    return max((item["wm"] for item in case["feed"] if "wm" in item), default=BEFORE_TIME)


def _ending(case: Case) -> tuple[int, bool]:
    """What cases must share to share a query: the last watermark. Those with no other go apart:
    they are done after a batch, and every rule of a query makes every batch of it longer."""
    watermarks = {item["wm"] for item in case["feed"] if "wm" in item}
    return _last_watermark(case), len(watermarks) > 1


def _event_schema(given: Sequence[Case]) -> dict[str, Any]:
    """The events of all cases as one Avro record; prices are whole numbers if all of them are."""
    prices = {type(item.get("price")) for case in given for item in case["feed"]}
    price = "double" if float in prices else "long"
    return record(
        "conformance.Event",
        case_id="int",
        t="long",
        id="long",
        key=["null", "string"],
        name=["null", "string"],
        price=["null", price],
    )


def _rule(number: int, case: Case, written: Writer) -> dict[str, Any]:
    """The case's rule, made blind to the events of other cases."""
    pattern = [_of_case(number, step) for step in case["pattern"]]
    rule = written({**case, "pattern": pattern})
    return {**rule, "id": f"case-{number}", "key": ["case_id", "key"]}


def _of_case(number: int, step: Mapping[str, Any]) -> dict[str, Any]:
    mine = f"case_id = {number}"
    made = dict(step)
    if step.get("group"):
        made["group"] = [_of_case(number, inner) for inner in step["group"]]
    else:
        made["where"] = f"{mine} AND ({step['where']})" if step.get("where") else mine
    if step.get("until"):
        made["until"] = f"{mine} AND ({step['until']})"
    return made


def _refusal(case: Case, event: Mapping[str, Any], written: Writer) -> str | None:
    """Why the job would not start with the case's rule; ``None`` when it would."""
    try:
        loaded = load_rules(json.dumps(_rule(0, case, written)), case["id"])
    except RuleSetError as error:
        return str(error)
    problems = type_check(loaded[0], [("", "Event", record_type(json.dumps(event)))])
    return str(RuleSetError(problems)) if problems else None


class _Query:
    """One job and the cases, by number, that it runs side by side."""

    def __init__(
        self,
        cases: Mapping[int, Case],
        event: Mapping[str, Any],
        scenario: Scenario,
        written: Writer,
    ) -> None:
        self._cases = cases
        self._scenario = scenario
        self._sent: list[tuple[int, int]] = []
        times = [item.get("wm", item.get("t")) for c in cases.values() for item in c["feed"]]
        self._disorder = max(times, default=0) - min(times, default=0) + 1
        scenario.input("events", event_time="t", event_time_unit="millis")
        self._schema = scenario.register("events", event)
        for number, case in cases.items():
            scenario.rule(_rule(number, case, written))

    def run(self, found: list[Answer]) -> None:
        """Run the job and add what it wrote to the answers in ``found``."""
        arrivals = sorted(self._arrivals().items())
        with self._scenario.running(
            time={"allowed_disorder": f"{self._disorder} ms", "max_ahead": None},
            outputs={"late_events": "all"},
            rules={"max_rules": len(self._cases)},
            state={"bucket_size": "4 KiB", "state_partitions": 2},
            trigger={"mode": "continuous", "latency": "0 ms"},
        ):
            for (_, arriving), (moves_to, _) in pairwise(arrivals):
                self._feed([*arriving, self._mover(moves_to)])
            _, after_the_last = arrivals[-1]
            self._feed(after_the_last)
        self._read(self._scenario.outputs(), found)

    def _arrivals(self) -> dict[int, list[dict[str, Any]]]:
        """The events of all cases, in order, by the watermark at which they arrive; the first and
        the last watermark in any case."""
        arrivals: dict[int, list[dict[str, Any]]] = defaultdict(list, {BEFORE_TIME: []})
        for number, case in self._cases.items():
            watermark = BEFORE_TIME
            for records, moved_to in feed(case):
                if records:
                    arrivals[watermark] += [
                        {"case_id": number, "t": record.time, **record.values} for record in records
                    ]
                if moved_to is not None:
                    watermark = max(watermark, moved_to)
        arrivals.setdefault(max(map(_last_watermark, self._cases.values())), [])
        return arrivals

    def _mover(self, watermark: int) -> dict[str, Any]:
        """The event that moves time to ``watermark``, which is one before what disorder allows."""
        time = watermark + self._disorder + 1
        return {"case_id": _NO_CASE, "t": time, "id": 0, "key": "time", "name": None, "price": None}

    def _feed(self, events: Sequence[Mapping[str, Any]]) -> None:
        """Send events and wait until the job has written what came of them."""
        scenario = self._scenario
        scenario.send("events", *(Sent(scenario.avro(self._schema, event)) for event in events))
        self._sent += [(event["case_id"], event["id"]) for event in events]
        scenario.wait_for_records(len(self._sent), _BATCH_SECONDS)

    def _read(self, outputs: Outputs, found: list[Answer]) -> None:
        for written in outputs.matches:
            found[_case_of(written)].matches.append(self._taken(written))
        for written in outputs.timeouts:
            found[_case_of(written)].timeouts.append(self._taken(written))
        for written in outputs.late:
            number, event_id = self._sent[int(written.headers[OFFSET_HEADER] or 0)]
            found[number].late.append(event_id)

    def _taken(self, written: Record) -> Taken:
        _, _, steps, time = written.found
        return {
            name: [self._sent[offset][1] for offset in offsets] for name, offsets in steps
        }, time


def _case_of(written: Record) -> int:
    return int(written.body["rule_id"].removeprefix("case-"))
