"""The trials with which the page begins: one of steps, one in SQL."""

from __future__ import annotations

from typing import Final

from spark_cep.play.assisting import problems_in
from spark_cep.play.running import played
from spark_cep.play.trial import OF_ALL, RowKind, Trial, TrialRow

_STEPS: Final = """\
# Three or more failed logins of a user, then one that succeeds.
id: brute-force
version: 1
key: user
pattern:
  - step: fail
    where: action = 'login_fail'
    times: 3+
    greedy: true
  - step: ok
    after: followed_by
    where: action = 'login_ok'
within: 1 minute
after_match: skip_past_last_event
emit:
  measures:
    failures: COUNT(fail.*)
    last_ip: LAST(ok.ip)
"""
_LOGIN: Final = """\
{
  "type": "record",
  "name": "Login",
  "fields": [
    {"name": "user", "type": "string"},
    {"name": "action", "type": {
      "type": "enum", "name": "Action", "symbols": ["login_fail", "login_ok", "logout"]
    }},
    {"name": "ip", "type": ["null", "string"], "default": null}
  ]
}
"""
_SQL: Final = """\
-- id: v-shape
-- description: A price falls twice or more, then tops its start
SELECT *
FROM ticks MATCH_RECOGNIZE (
  PARTITION BY symbol
  ORDER BY ts
  MEASURES FIRST(down.price) AS fell_to, up.price AS rose_to
  PATTERN (top down{2,} up) WITHIN INTERVAL '10' MINUTE
  DEFINE down AS price < PREV(price),
         up AS price > top.price
)
"""


def beginning() -> tuple[Trial, Trial]:
    """The trials, with events that make a match, a timeout, or neither."""
    logins = [
        ("0 s", "ann", "login_fail", "10.0.0.7"),
        ("10 s", "ann", "login_fail", "10.0.0.7"),
        ("15 s", "bob", "login_fail", "10.0.0.9"),
        ("20 s", "ann", "login_fail", "10.0.0.7"),
        ("25 s", "bob", "login_ok", "10.0.0.9"),
        ("40 s", "ann", "login_ok", "10.0.0.8"),
        ("1 minute", "carl", "login_fail", "10.0.0.5"),
        ("65 s", "carl", "login_fail", "10.0.0.5"),
        ("70 s", "carl", "login_fail", "10.0.0.5"),
    ]
    steps = [
        TrialRow(at=at, cells={"user": user, "action": action, "ip": ip})
        for at, user, action, ip in logins
    ]
    steps.append(TrialRow(RowKind.CLOCK, "3 minutes"))
    ticks = [("0 s", 30), ("1 minute", 28), ("2 minutes", 25), ("3 minutes", 33), ("4 minutes", 31)]
    prices = [TrialRow(at=at, cells={"symbol": "ACME", "price": str(price)}) for at, price in ticks]
    return (
        Trial(
            "brute-force.yaml",
            _STEPS,
            tuple(steps),
            {OF_ALL: _LOGIN},
            case="failures, then a login",
        ),
        Trial("v-shape.sql", _SQL, tuple(prices), case="down twice, then up", event_time="ts"),
    )


def run_beginning() -> None:
    """Run the trials: that loads what runs rules, or compiles it for this machine."""
    for trial in beginning():
        played(trial)


def check_beginning() -> None:
    """Check their texts: that loads what reads rules."""
    for trial in beginning():
        problems_in(trial)
