"""The log of rule sets, written as the job writes it and read with and without Spark."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_cep.pattern.document.loading import load_rules
from spark_cep.pipeline.driver.checkpoint.files import CheckpointFiles
from spark_cep.pipeline.driver.checkpoint.local_files import LocalFiles
from spark_cep.pipeline.driver.rules.rule_log import LoggedRules, RuleHistory, RuleLog
from spark_cep.rules.pauses import Pause
from spark_cep.rules.rule_set import DrainingVersion, assemble

pytestmark = pytest.mark.spark

_RULE = "id: a\nversion: {0}\nkey: k\nwithin: 1 s\npattern: [{{step: a, where: n = 'ä{0}'}}]\n"


def test_both_readers_see_what_the_job_wrote(spark: SparkSession, tmp_path: Path) -> None:
    """Also where a set was logged again; beside the files are Hadoop's checksums."""
    log = RuleLog(CheckpointFiles(spark, str(tmp_path)))
    written = [
        LoggedRules(batch, number, assemble(load_rules(_RULE.format(number), "a.yaml")))
        for number, batch in ((1, 0), (2, 9), (3, 10))
    ]
    for each in written:
        log.write(each)
    pauses = {"b": Pause("too many dead letters", "circuit breaker", 3, 7, "topic")}
    drains = DrainingVersion(load_rules(_RULE.format(2), "a.yaml")[0], 5_000, 70)
    of_b = load_rules(_RULE.format(3).replace("id: a", "id: b"), "b.yaml")
    rules = replace(
        assemble([*written[-1].rules.loaded, *of_b]),
        draining=(drains,),
        carried=(drains.loaded,),
        paused=pauses,
    )
    fingerprints = {("a", 1): "one", ("gone", 7): "other"}
    aside = {"digest": "why"}
    again = LoggedRules(10, 3, rules, attempts=2, set_aside=aside, fingerprints=fingerprints)
    log.write(again)
    assert (tmp_path / "rules" / ".9.crc").exists()
    for files in (CheckpointFiles(spark, str(tmp_path)), LocalFiles(tmp_path)):
        found = RuleHistory(files).history()
        assert [each.batch for each in found] == [0, 9, 10]
        assert [each.number for each in found] == [1, 2, 3]
        expected = [*(each.rules.rules for each in written[:2]), rules.rules]
        assert [each.rules.rules for each in found] == expected
        assert [(d.rule, *d.time) for d in found[-1].rules.draining] == [(drains.rule, 5_000, 70)]
        assert [one.rule for one in found[-1].rules.carried] == [drains.rule]
        assert found[-1].rules.fingerprint == rules.fingerprint
        assert (found[-1].attempts, found[-1].set_aside) == (2, {"digest": "why"})
        assert [each.fingerprints for each in found] == [{}, {}, fingerprints]
        assert [each.rules.paused for each in found] == [{}, {}, pauses]
    log.forget_after(9)
    assert [each.batch for each in RuleHistory(LocalFiles(tmp_path)).history()] == [0, 9]
