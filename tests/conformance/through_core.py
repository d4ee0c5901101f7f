"""The cases through rule loading, compiler and both engines of the matcher, in this process.

The state is written to bytes and read back after every watermark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from service.compiler.record_types import RecordTypes
from service.compiler.rule_set import RuleSetPlan
from service.errors import RuleSetError
from service.matcher.engines import Engine
from service.matcher.local import LocalJob
from service.model import TakenEvent
from service.pattern.types import BIGINT, DOUBLE, STRING, RecordType
from tests.conformance.answer import Answer, compare
from tests.conformance.case import Case, feed, plan_of

#: What a feed's events hold.
TYPES = RecordTypes(
    (
        (
            "",
            "Event",
            RecordType({"id": BIGINT, "key": STRING, "name": STRING, "price": DOUBLE}),
        ),
    )
)


def answers(given: Sequence[Case]) -> list[Answer]:
    """The core's answer to each case."""
    return [_answer(case) for case in given]


def difference(case: Case) -> str | None:
    """How the core's answer differs from Flink's; ``None`` when it does not."""
    return compare(case, _answer(case))


def _answer(case: Case) -> Answer:
    """The core's answer to a case: that of the engine that differs from Flink, if one does."""
    try:
        plan = plan_of(case)
    except RuleSetError as error:
        return Answer(refused=str(error))
    answers = [_answer_of(engine, plan, case) for engine in Engine]
    return next((answer for answer in answers if compare(case, answer)), answers[0])


def _answer_of(engine: Engine, plan: RuleSetPlan, case: Case) -> Answer:
    job = LocalJob(plan, TYPES, engine=engine)
    for records, watermark in feed(case):
        job.advance(records, job.watermark if watermark is None else watermark)
        job.reload()
    return Answer(
        [(_ids(match.steps), match.time) for match in job.outputs.matches],
        [(_ids(timeout.steps), timeout.deadline) for timeout in job.outputs.timeouts],
        [event.at.offset for event in job.late],
    )


def _ids(steps: Mapping[str, Sequence[TakenEvent]]) -> dict[str, list[int]]:
    return {name: [event.at.offset for event in events] for name, events in steps.items()}
