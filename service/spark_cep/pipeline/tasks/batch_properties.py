"""Properties of a batch that the driver hands to its tasks as Spark's local properties."""

from __future__ import annotations

from pyspark import SparkContext, TaskContext

from spark_cep.pipeline.wire.task_properties import TaskProperties


def set_properties(context: SparkContext, properties: TaskProperties) -> None:
    """Set the properties of all tasks of the jobs that this thread starts from now on."""
    for name, text in properties.texts().items():
        context.setLocalProperty(name, text)


def properties_of_task() -> TaskProperties:
    """Return the properties of the batch of the task that runs here. Raises ValueError without
    any."""
    task = TaskContext.get()
    return TaskProperties.of((lambda _: None) if task is None else task.getLocalProperty)
