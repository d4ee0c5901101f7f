"""The circuit breaker: shares, windows, the least that is judged by, and the message."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from spark_cep.codecs.output.dead_letters import REASONS
from spark_cep.codecs.record_faults import OF_RECORDS
from spark_cep.config.engine import CircuitBreakerLimits as Settings
from spark_cep.pipeline.driver.lifecycle.circuit_breaker import CircuitBreaker, Trip

BROKEN, FAILED = "undecodable", "condition_failed"


class Clock:
    """A clock that tests move."""

    def __init__(self) -> None:
        self.time = 0

    def __call__(self) -> int:
        return self.time


def breaker(**settings: object) -> tuple[CircuitBreaker, Clock]:
    """A circuit breaker and its clock."""
    clock = Clock()
    return CircuitBreaker(Settings.model_validate(settings), clock), clock


def batch(
    one: CircuitBreaker, records: int, broken: int = 0, relevant: int = 0, **failed: int
) -> list[Trip]:
    """One batch; ``failed``: dead letters by rule, as ``r``, or ``r_2`` for its version 2."""
    letters = {BROKEN: broken} if broken else {}
    of_rules = {(name[0], int(name[2:] or 1), FAILED): number for name, number in failed.items()}
    return one.batch_done(records, relevant, letters, of_rules)


def test_off_by_default() -> None:
    """Without a limit nothing trips it."""
    one, _ = breaker()
    assert batch(one, 10_000, 10_000, 10_000, r=10_000) == []


def test_above_the_share_and_not_at_it() -> None:
    """The limit itself is allowed."""
    one, _ = breaker(max_share=0.1, min_records=100)
    assert batch(one, 1000, 100) == []
    (trip,) = batch(one, 1000, 101)
    assert (trip.rule, trip.dead_letters, trip.of) == (None, 201, 2000)


def test_one_bad_record_in_a_small_batch_is_no_share() -> None:
    """Nothing is said before enough records were read, over several batches."""
    one, _ = breaker(max_share=0.1, min_records=100)
    assert batch(one, 1, 1) == []
    assert batch(one, 98, 98) == []
    assert [trip.of for trip in batch(one, 1, 1)] == [100]


def test_what_is_older_than_the_window_does_not_count() -> None:
    """A burst is forgotten after the window; the newest batch always counts."""
    one, clock = breaker(max_share=0.5, min_records=10, window="1 minute")
    assert batch(one, 9, 9) == []
    clock.time = 60_000
    assert batch(one, 9, 9) == []
    clock.time = 119_999
    assert batch(one, 10, 0) == []
    clock.time = 1_000_000
    assert [trip.of for trip in batch(one, 10, 6)] == [10]


def test_rules_have_a_share_of_their_own() -> None:
    """Dead letters of rules do not stop the job, those of records pause no rule; after it was
    told, a rule begins again."""
    one, _ = breaker(max_share=0.1, max_rule_share=0.2, min_records=10)
    assert batch(one, 100, 0, 10, a=2, b=1) == []
    (trip,) = batch(one, 100, 0, 10, a=3)
    assert (trip.rule, trip.dead_letters, trip.of) == (("a", 1), 5, 20)
    assert batch(one, 100, 0, 10) == []
    assert [trip.rule for trip in batch(one, 100, 90, 0)] == [None]


def test_versions_of_a_rule_have_shares_of_their_own() -> None:
    """One that drains trips nothing together with the one that runs beside it."""
    one, _ = breaker(max_rule_share=0.2, min_records=10)
    assert batch(one, 10, 0, 10, r_1=2, r_2=2) == []
    assert [trip.rule for trip in batch(one, 10, 0, 10, r_1=1, r_2=3)] == [("r", 2)]
    assert [trip.rule for trip in batch(one, 10, 0, 10, r_1=4, r_2=2)] == [("r", 1)]


def test_the_message() -> None:
    """Share, limit, reasons with counts, most first, and the topic."""
    one, _ = breaker(max_share=0.1, min_records=10)
    letters = {BROKEN: 600, "missing_key": 12, FAILED: 5_000}
    (trip,) = one.batch_done(1_000, 0, letters, {})
    assert trip.sentence("cep.dead-letters") == (
        "612 dead letters for 1,000 records within 5 minutes, a share of 61.20%;"
        " circuit_breaker.max_share allows 10.00%; reasons: undecodable 600, missing_key 12;"
        " see topic cep.dead-letters"
    )


def test_every_reason_is_of_a_record_or_of_a_rule() -> None:
    """The reasons that count for the job are those of the decoding stage."""
    assert OF_RECORDS < REASONS
    assert {
        "condition_failed", "measure_failed", "skip_failed", "limit_reached", "output_too_large",
    } == REASONS - OF_RECORDS  # fmt: skip


@given(
    st.lists(
        st.tuples(st.integers(0, 50_000), st.integers(0, 500), st.integers(0, 500)), max_size=30
    )
)
def test_as_counted_again(batches: list[tuple[int, int, int]]) -> None:
    """At any time it says what a sum over the batches of the window says."""
    one, clock = breaker(max_share=0.3, min_records=100, window="1 minute")
    seen: list[tuple[int, int, int]] = []
    for wait, records, broken in batches:
        clock.time += wait
        seen.append((clock.time, records, min(broken, records)))
        counts: Counter[str] = Counter()
        for at, read, letters in seen:
            if at > clock.time - 60_000:
                counts.update(read=read, letters=letters)
        expected = counts["read"] >= 100 and counts["letters"] > 0.3 * counts["read"]
        assert bool(batch(one, records, min(broken, records))) == expected
