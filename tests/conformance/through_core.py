"""The cases through rule loading, compiler, batch runner and naive matcher, in this process.

The state is written to bytes and read back after every watermark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spark_cep.compiler.record_types import RecordTypes
from spark_cep.errors import RuleSetError
from spark_cep.model import TakenEvent
from spark_cep.pattern.types import BIGINT, DOUBLE, STRING, RecordType
from tests.conformance.answer import Answer, compare
from tests.conformance.case import Case, Writer, document, feed, plan_of
from tests.reference.job import ReferenceJob
from tests.runner.job import RunnerJob

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


def answers(given: Sequence[Case], written: Writer = document) -> list[Answer]:
    """The core's answer to each case, written as a rule by ``written``."""
    return [_answer(case, written) for case in given]


def difference(case: Case, written: Writer = document) -> str | None:
    """How the core's answer differs from Flink's; ``None`` when it does not."""
    return compare(case, _answer(case, written))


def _answer(case: Case, written: Writer) -> Answer:
    """The core's answer to a case; the reference's, if that differs from Flink's."""
    try:
        plan = plan_of(case, written)
    except RuleSetError as error:
        return Answer(refused=str(error))
    jobs = RunnerJob(plan, TYPES), ReferenceJob(plan, TYPES)
    answers = [_answer_of(job, case) for job in jobs]
    return next((answer for answer in answers if compare(case, answer)), answers[0])


def _answer_of(job: RunnerJob | ReferenceJob, case: Case) -> Answer:
    for records, watermark in feed(case):
        job.advance(records, job.watermark if watermark is None else watermark)
        if isinstance(job, RunnerJob):
            job.reload()
    return Answer(
        [(_ids(match.steps), match.time) for match in job.outputs.matches],
        [(_ids(timeout.steps), timeout.deadline) for timeout in job.outputs.timeouts],
        [event.at.offset for event in job.late],
    )


def _ids(steps: Mapping[str, Sequence[TakenEvent]]) -> dict[str, list[int]]:
    return {name: [event.at.offset for event in events] for name, events in steps.items()}
