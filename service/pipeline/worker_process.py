"""What a Python worker of Spark does once, so that it need not be done for each task."""

from __future__ import annotations

import gc

#: By then a worker has run all kinds of tasks that it gets, and has imported what they need.
_LAST = 5
_tasks = 0


def task_begins() -> None:
    """To be called at the beginning of a task.

    After each task Spark's worker collects garbage in full (``pyspark.daemon``), for which Python
    walks through everything that the loaded modules hold: 0.1 s. What is there as one of the first
    tasks begins is left out from then on; the collection before it leaves nothing that is dead.
    """
    global _tasks  # noqa: PLW0603  of the process, as what it counts
    _tasks += 1
    if 1 < _tasks <= _LAST:
        gc.freeze()
