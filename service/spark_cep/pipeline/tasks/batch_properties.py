"""What the driver tells every task of a batch, by way of Spark's local properties."""

from __future__ import annotations

from pyspark import SparkContext, TaskContext

from spark_cep.pipeline.wire.task_properties import TaskProperties


def tell_tasks(context: SparkContext, properties: TaskProperties) -> None:
    """Tell all tasks of the jobs that this thread starts from now on."""
    for name, text in properties.told().items():
        context.setLocalProperty(name, text)  # type: ignore[arg-type]  # None: not told


def told_to_task() -> TaskProperties:
    """What the driver told the task that runs here. Raises ValueError when it told nothing."""
    task = TaskContext.get()
    return TaskProperties.of(_nothing if task is None else task.getLocalProperty)


def _nothing(_: str) -> None:
    return None
