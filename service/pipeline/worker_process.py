"""What a Python worker of Spark does once, so that it need not be done for each task."""

from __future__ import annotations

import gc
from itertools import count

#: By then a worker has run all kinds of tasks that it gets, and has imported what they need.
_LAST = 5
_tasks = count(1)


def task_begins() -> None:
    """To be called at the beginning of a task.

    After each task Spark's worker collects garbage in full (``pyspark.daemon``), for which Python
    walks through everything that the loaded modules hold: 0.1 s. What is there as one of the first
    tasks begins is left out from then on; the collection before it leaves nothing that is dead.
    """
    if 1 < next(_tasks) <= _LAST:
        gc.freeze()
