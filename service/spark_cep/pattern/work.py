"""The unit of ``limits.work``: a step is some 10 ns of compiled code.

What an event costs follows from its rule and from what its key holds, not from batches or machines.
"""

from __future__ import annotations

from typing import Final

CALL: Final = 500
"""Steps of a call of Python, and of each look-back whose events it is given."""

ROW_CALL: Final = 1_000
"""Steps of a call of Python in a rule in SQL, which reads the rows that it asks for."""

HELD_EVENT: Final = 20
"""Steps of an event that a partial match has taken: with each event, perhaps the only one of its
batch, the state of the key is read and written."""

THREAD: Final = 4
"""Steps of a thread of a rule in SQL at an instruction."""

TOTAL: Final = 2
"""Steps of one more value in an aggregate of a rule in SQL."""

FOLD: Final = 40
"""Steps of one more row in what Python makes of the rows of a thread in a rule in SQL: 10 for that,
of all rows at once, and 30 to read and write the row with the state of the key."""

FOLD_CALL: Final = 400
"""The same of an aggregate of an expression, which Python computes of each row."""
