"""What tasks are told of their batch."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from spark_cep.pipeline.tasks import batch_properties
from spark_cep.pipeline.tasks.batch_properties import properties_of_task, set_properties
from spark_cep.pipeline.wire.task_properties import TaskProperties


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Local properties, as the driver sets them and a task reads them."""
    properties: dict[str, str] = {}
    task = SimpleNamespace(getLocalProperty=properties.get)
    monkeypatch.setattr(batch_properties, "TaskContext", SimpleNamespace(get=lambda: task))
    return properties


@pytest.mark.parametrize("late_until", [None, -5, 0, 1_700_000_000_000])
def test_they_come_back(told: dict[str, str], late_until: int | None) -> None:
    """Also a time of which nothing is known, and what was told of the batch before is gone."""
    context: Any = SimpleNamespace(setLocalProperty=told.__setitem__)
    set_properties(context, TaskProperties(1, 2, "a", "b"))
    sent = TaskProperties(1_700_000_000_123, late_until, "b")
    set_properties(context, sent)
    assert properties_of_task() == sent


@pytest.mark.usefixtures("told")
def test_a_task_that_was_told_nothing() -> None:
    """It does not guess."""
    with pytest.raises(ValueError, match=r"has no property spark_cep\.batch"):
        properties_of_task()
