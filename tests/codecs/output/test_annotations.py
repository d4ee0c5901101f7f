"""Annotations of rules in output records: texts with values of each match filled in."""

from __future__ import annotations

import json
from dataclasses import replace

from spark_cep.codecs.output.json_results import JsonResults
from spark_cep.codecs.output.outputs import OutputEncoder
from spark_cep.compiler.rule_set import compile_rules
from spark_cep.pattern.document.loading import load_rules
from tests.codecs.output.test_outputs import noon
from tests.codecs.output.test_result_columns import (
    EVENT,
    OUTPUT_TOPICS,
    RULES,
    both,
    encoder,
    in_sql,
    rows_of_letters,
    stream,
)

ANNOTATIONS = """\
annotations:
  runbook: "https://wiki.example/{rule_id}?who={key}&price={price}&{{v}}={rule_version}"
  summary: "{key}: {price} from {start} to {time} ({match_id})"
  fixed: call the bank
"""


def test_values_of_each_match_are_filled_in() -> None:
    """As objects and as columns, in Avro and in JSON; a link's values are percent-encoded, a rule
    without annotations has none beside one that has them."""
    rules = [loaded.rule for loaded in load_rules(RULES + ANNOTATIONS, "rules.yaml")]
    records = [
        replace(each, values={**each.values, "key": f"{each.values['key']}/ü&"})
        for each in stream(300)
    ]
    in_avro = both(compile_rules(rules), records, encoder())
    assert in_avro[0] == in_avro[1] != []
    encode = OutputEncoder(OUTPUT_TOPICS, JsonResults(), noon)
    as_objects, as_columns, _ = both(compile_rules(rules), records, encode)
    assert as_objects == as_columns
    values = [json.loads(record.value or b"") for record in as_columns]
    kinds = {dict(record.headers)["spark-cep-kind"] for record in as_columns}
    assert kinds == {b"match", b"timeout"}
    for value in values:
        if value["rule_id"] == "ab":
            assert value["annotations"] is None
            continue
        key, price = value["key"], value["measures"]["price"]
        time = value.get("time", value.get("deadline"))
        assert value["annotations"] == {
            "runbook": f"https://wiki.example/measured?who={_quoted(key)}&price={price}&{{v}}=1",
            "summary": f"{key}: {price} from {value['start']} to {time} ({value['match_id']})",
            "fixed": "call the bank",
        }


def _quoted(key: str) -> str:
    return key.replace("/", "%2F").replace("ü", "%C3%BC").replace("&", "%26")


def test_columns_of_a_statement_are_filled_in() -> None:
    """Of a rule in SQL: matches have the columns of its result, timeouts have none of them."""
    clause = (
        "ORDER BY ts MEASURES LAST(a.v) AS last PATTERN (a b) WITHIN INTERVAL '5' MILLISECONDS"
        " DEFINE a AS v = 1, b AS v = 2"
    )
    plan, types = in_sql(clause, EVENT)
    (one,) = plan.plans
    (rule,) = load_rules(
        "id: r\nannotations: {last: 'v is {last}.'}\nsql: |\n  "
        + ((one.rule.query and one.rule.query.text.replace("\n", "\n  ")) or ""),
        "rules.yaml",
    )
    letters = rows_of_letters([{"v": number % 3} for number in range(9)] + [{"v": 1}, {"v": 0}] * 9)
    encode = OutputEncoder(OUTPUT_TOPICS, JsonResults(), noon)
    as_objects, as_columns, _ = both(compile_rules([rule.rule], types), letters, encode, types)
    assert as_objects == as_columns
    found = {
        (
            dict(record.headers)["spark-cep-kind"],
            json.loads(record.value or b"")["annotations"]["last"],
        )
        for record in as_columns
    }
    assert found == {(b"match", "v is 1."), (b"timeout", "v is .")}
