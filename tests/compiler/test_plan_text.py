"""Plans as text: what the machine runs for a rule, compared with ``tests/golden/plans``.

After an intended change, ``REWRITE_GOLDEN=1 python -m pytest tests/compiler`` writes the files
again; the difference is then what to review.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from spark_cep.compiler.plan import LookBackAtom, Plan
from spark_cep.compiler.rule_set import compile_rules
from spark_cep.compiler.steps.lowering import lower
from spark_cep.pattern.document.loading import load_rules

GOLDEN = Path(__file__).parents[1] / "golden" / "plans"

SEQUENCE = """
  - {step: a, where: "name = 'a'"}
  - {step: b, after: followed_by, where: "name = 'b'"}
  - {step: c, after: followed_by, where: "name = 'c'"}
"""

RULES = {
    "relaxed": f"pattern: {SEQUENCE}",
    "strict": f"pattern: {SEQUENCE.replace('followed_by', 'next')}",
    "loop": """
within: {max: 1 minute, gap: 10 seconds}
after_match: {skip_to_last: b}
pattern:
  - {step: a, where: "name = 'a'"}
  - {step: b, after: followed_by, where: "name = 'b'", times: 2+, gap: 5 seconds}
  - {step: c, after: followed_by_any, where: "name = 'c'"}
""",
    "until": """
pattern:
  - {step: a, where: "name = 'a'", times: 1+, loop: combinations, until: "name = 'u'"}
  - {step: b, after: followed_by, where: "name = 'b'", times: 1+, loop: consecutive}
""",
    "greedy": """
pattern:
  - {step: a, where: "name = 'a'", times: 1+, greedy: true}
  - {step: b, after: followed_by, where: "name = 'b'", times: 1..2, greedy: true}
  - {step: c, after: next, where: "name = 'c'"}
""",
    "greedy_until": """
pattern:
  - {step: a, where: "name = 'a'", times: 1+, greedy: true, until: "name = 'u'"}
  - {step: c, after: followed_by, where: "name = 'c'"}
""",
    "greedy_until_optional": """
pattern:
  - {step: a, where: "name = 'a'"}
  - step: b
    after: followed_by
    where: "x > 1"
    times: 1+
    optional: true
    greedy: true
    until: "name = 'u'"
  - {step: c, after: followed_by, where: "name = 'c'"}
""",
    "optional": """
pattern:
  - {step: a, where: "name = 'a'"}
  - {step: b, after: followed_by, where: "name = 'b'", optional: true}
  - {step: c, after: followed_by, where: "name = 'c'"}
""",
    "not_middle": """
pattern:
  - {step: a, where: "name = 'a'"}
  - {step: n, after: not_followed_by, where: "name = 'n'"}
  - {step: o, after: followed_by, where: "name = 'o'", optional: true}
  - {step: c, after: followed_by, where: "name = 'c'"}
  - {step: m, after: not_next, where: "name = 'm'"}
""",
    "not_end": """
within: 1 minute
pattern:
  - {step: a, where: "name = 'a'"}
  - {step: b, after: followed_by, where: "name = 'b'", times: 1+}
  - {step: n, after: not_followed_by, where: "name = 'n'"}
""",
    "not_before_optional": """
pattern:
  - {step: a, where: "name = 'a'"}
  - {step: n, after: not_followed_by, where: "name = 'n'"}
  - {step: b, after: followed_by, where: "name = 'b'", optional: true}
  - step: g
    after: followed_by
    optional: true
    group:
      - {step: c, where: "name = 'c'", optional: true}
      - {step: d, after: followed_by, where: "name = 'd'", optional: true}
  - {step: e, after: followed_by, where: "name = 'e'"}
""",
    "group": """
pattern:
  - {step: a, where: "name = 'a'"}
  - step: g
    after: followed_by
    times: 1+
    loop: consecutive
    until: "name = 'u'"
    group:
      - {step: b, where: "name = 'b'"}
      - {step: c, after: followed_by, where: "name = 'c'", times: 2}
  - {step: d, after: followed_by, where: "name = 'd'"}
""",
    "look_back": """
pattern:
  - {step: a, of_type: trade, where: "name = 'a' AND size > 1"}
  - step: b
    after: followed_by
    of_type: trade
    where: "name = 'b' AND (price > LAST(a.price) OR urgent) AND NOT (COUNT(a.*) > 2)"
  - {step: c, after: followed_by, where: "price > LAST(a.price)"}
  - {step: d, after: followed_by, of_type: quote}
emit: {measures: {total: "SUM(a.size)"}, events: [symbol]}
""",
}


def plan_of(name: str) -> Plan:
    """The plan of one of the rules above."""
    loaded = load_rules(f"id: {name}\nkey: key\n{RULES[name]}", name)
    return lower(loaded[0].rule)


@pytest.mark.parametrize("name", RULES)
def test_plan_text(name: str) -> None:
    """States, edges, conditions, deadlines and strictness of each kind of pattern."""
    text = f"{plan_of(name)}\n"
    golden = GOLDEN / f"{name}.txt"
    if os.environ.get("REWRITE_GOLDEN"):
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


def test_no_golden_plan_is_left_over() -> None:
    """Each file belongs to a rule."""
    assert {file.stem for file in GOLDEN.iterdir()} == set(RULES)


def test_fingerprint_follows_what_gives_partials_their_meaning() -> None:
    """Id, version and plan change the fingerprint; what is done with a match does not."""
    text = f"id: r\npattern: {SEQUENCE}"
    one, again, renamed, version, described = (
        lower(load_rules(changed, "r")[0].rule).fingerprint
        for changed in (
            text,
            text,
            text.replace("id: r", "id: s"),
            text + "version: 2\n",
            text + "description: other\ncooldown: 1 s\n",
        )
    )
    assert one == again == described
    assert len({one, renamed, version}) == 3


def test_rules_share_a_partitioning_by_key() -> None:
    """Rules with one key share conditions and columns; a rule that is off takes no part."""
    documents = [
        f"id: first\nkey: key\n{RULES['look_back']}",
        f"id: second\nkey: key\n{RULES['look_back']}",
        f"id: third\nkey: [key, other]\nemit: {{events: all}}\n{RULES['relaxed']}",
        f"id: fourth\nenabled: false\nkey: other\n{RULES['relaxed']}",
    ]
    plan = compile_rules(one.rule for one in load_rules("\n---\n".join(documents), "r"))
    both, third = plan.partitionings
    assert [rule.plan.rule.id for rule in both.rules] == ["first", "second"]
    assert both.rules[0].bits == both.rules[1].bits
    assert (both.key_name, third.key_name) == ("key", "key, other")
    assert (both.keeps_payload, third.keeps_payload) == (False, True)
    assert [slot.name for slot in both.slots] == [
        "||price",
        "|trade|price",
        "|trade|size",
        "||symbol",
    ]
    assert both.conditions[0].name == "||"
    assert len(plan.plans) == 3


def test_equal_conditions_are_one_atom() -> None:
    """A condition that several steps name is evaluated once; what looks back is kept apart."""
    plan = plan_of("look_back")
    looking = [str(atom) for atom in plan.atoms if isinstance(atom, LookBackAtom)]
    assert looking == [
        "price > LAST(a.price)",
        "type is trade and price > LAST(a.price)",
        "type is trade and NOT COUNT(a.*) > 2",
    ]
    assert str(plan.event_atoms[1]) == "type is trade"
    assert plan.type_of("d") == "quote"
    assert plan.type_of("nowhere") is None
