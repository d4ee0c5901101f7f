"""Trials of tests."""

from __future__ import annotations

from spark_cep.play.trial import RowKind, Trial, TrialRow

PAIR = """\
id: pair
key: user
pattern:
  - step: a
    where: kind = 'a'
  - step: b
    after: followed_by
    where: kind = 'b' AND n > a.n
within: 1 minute
"""
NOT = """\
id: unpaid
key: user
pattern:
  - step: order
    where: kind = 'order'
  - step: paid
    after: not_followed_by
    where: kind = 'paid'
within: 1 minute
"""
SQL = """\
-- id: rise
SELECT * FROM ticks MATCH_RECOGNIZE (
  PARTITION BY user ORDER BY ts
  MEASURES LAST(up.n) AS top
  PATTERN (low up{2,}) WITHIN INTERVAL '1' HOUR
  DEFINE up AS n > PREV(n)
)
"""


def event(at: str, user: str = "ann", **cells: object) -> TrialRow:
    """An event of a user."""
    return TrialRow(
        at=at, cells={"user": user, **{name: str(value) for name, value in cells.items()}}
    )


def clock(at: str) -> TrialRow:
    """A move of the clock."""
    return TrialRow(RowKind.CLOCK, at)


def trial(text: str, *rows: TrialRow, file: str = "rule.yaml") -> Trial:
    """A trial of a rule."""
    return Trial(file, text, rows)
