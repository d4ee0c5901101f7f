"""Tests of rules in one process, without Kafka and Spark: events in, a virtual clock, results out.

::

    from spark_cep.testkit import RuleTest

    def test_three_failures_then_a_login() -> None:
        kit = RuleTest("rules/brute-force.yaml")
        for _ in range(3):
            kit.send(user_id="ann", event_type="login_fail")
            kit.advance("1 second")
        kit.send(user_id="ann", event_type="login_ok")
        kit.advance("1 minute")
        assert [match.key for match in kit.matches] == ["ann"], kit.explain()

The rules are read, checked, compiled and run by the code that the service runs;
``docs/test-kit.md`` says what differs.
"""

from spark_cep.testkit.results import (
    FailedEvent,
    FoundMatch,
    FoundRow,
    FoundTimeout,
    LateArrival,
    OpenMatch,
    SentEvent,
)
from spark_cep.testkit.rule_test import RuleTest
from spark_cep.testkit.times import Instant

__all__ = [
    "FailedEvent",
    "FoundMatch",
    "FoundRow",
    "FoundTimeout",
    "Instant",
    "LateArrival",
    "OpenMatch",
    "RuleTest",
    "SentEvent",
]
