"""Labels of key groups against Spark's own hash."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from spark_cep.pipeline.driver.commands.state_report import key_group_of
from spark_cep.pipeline.state.key_group_labels import group_of, label

GROUPS = [*range(4_096), 2**16, 2**31 - 1]


def test_a_label_is_a_signed_long_that_holds_its_group() -> None:
    """Each is another one, and says which group it is of."""
    labels = [label(group) for group in GROUPS]
    assert [group_of(each) for each in labels] == GROUPS
    assert all(-(2**63) <= each < 2**63 for each in labels)
    assert min(labels) < 0 < max(labels)


@pytest.mark.spark
def test_spark_hashes_a_label_to_its_group(spark: SparkSession) -> None:
    """So group ``g`` is in partition ``g % partitions``; SQL finds the group as Python does."""
    frame = spark.createDataFrame([(label(group),) for group in GROUPS], "label BIGINT")
    assert [row[0] for row in frame.select(F.hash("label")).collect()] == GROUPS
    assert [row[0] for row in frame.select(key_group_of(F.col("label"))).collect()] == GROUPS


@pytest.mark.spark
@pytest.mark.parametrize("partitions", [1, 2, 3, 8, 64])
def test_a_shuffle_spreads_key_groups_evenly(spark: SparkSession, partitions: int) -> None:
    """No state partition has more than one key group more than another."""
    frame = spark.createDataFrame([(label(group),) for group in range(64)], "label BIGINT")
    spread = frame.repartition(partitions, "label").select(
        F.spark_partition_id().alias("partition"), key_group_of(F.col("label")).alias("group")
    )
    assert {row["group"]: row["partition"] for row in spread.collect()} == {
        group: group % partitions for group in range(64)
    }
