"""Rules with Ververica's JSON: what they mean, and what is refused, by name and place."""

from __future__ import annotations

import copy
import json
import textwrap
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_cep.errors import Problem, RuleSetError
from spark_cep.pattern.document.loading import examine_rules, load_rules
from spark_cep.pattern.document.plain_data import load_data
from spark_cep.pattern.type_check import type_check
from spark_cep.pattern.types import STRING, RecordType
from spark_cep.pattern.ververica.rewriting import rule_text

Json = dict[str, Any]
RICH = "org.apache.flink.cep.pattern.conditions."


def quantifier(*properties: str, **more: Any) -> Json:
    """A quantifier; `SINGLE` if nothing is said."""
    said = {"consumingStrategy": "SKIP_TILL_NEXT", "properties": list(properties) or ["SINGLE"]}
    return {**said, "times": None, "untilCondition": None, **more}


def aviator(expression: str) -> Json:
    """A condition in Aviator."""
    return {"type": "AVIATOR", "expression": expression}


def java(name: str, **more: Any) -> Json:
    """A condition in Java."""
    return {"type": "CLASS", "className": name, **more}


def node(name: str, condition: Json | None = None, **more: Any) -> Json:
    """A node."""
    return {
        "name": name,
        "quantifier": quantifier(),
        "condition": condition,
        "type": "ATOMIC",
        **more,
    }


def edge(source: str, target: str, kind: str = "SKIP_TILL_NEXT") -> Json:
    """An edge."""
    return {"source": source, "target": target, "type": kind}


def graph(nodes: list[Json], edges: list[Json], **more: Any) -> Json:
    """A graph, called as its last node."""
    return {
        "name": nodes[-1]["name"],
        "quantifier": quantifier(),
        "condition": None,
        "nodes": nodes,
        "edges": edges,
        "window": None,
        "afterMatchStrategy": {"type": "NO_SKIP", "patternName": None},
        "type": "COMPOSITE",
        "version": 1,
        **more,
    }


def written(pattern: object, *, as_text: bool = False, **more: Any) -> str:
    """A rule document with a pattern."""
    said = json.dumps(pattern, indent=1) if as_text else pattern
    return json.dumps({"id": "r", "key": "k", "ververica": said, **more}, indent=1)


def said(pattern: object, **more: Any) -> str:
    """The canonical text of the rule, without id, version and key."""
    (loaded,) = load_rules(written(pattern, **more), "rule.json")
    return loaded.text.split("key: k\n")[1]


def refused(text: str) -> list[Problem]:
    """The problems for which a text is refused."""
    with pytest.raises(RuleSetError) as caught:
        load_rules(text, "rule.json")
    return list(caught.value.problems)


def underlined(problem: Problem) -> str:
    """The characters that a problem points at."""
    assert problem.span is not None
    assert problem.excerpt is not None
    start = problem.span.column - 1
    return problem.excerpt[start : start + problem.span.length]


TWO = graph(
    [node("end", aviator("action == 1")), node("start", aviator("action == 0"))],
    [edge("start", "end")],
)


def changed(**more: Any) -> Json:
    """The pattern of two nodes with other fields."""
    return {**copy.deepcopy(TWO), **more}


def one(condition: Json | None = None, **more: Any) -> Json:
    """A pattern of one node."""
    return graph([node("a", condition, **more)], [])


def test_a_whole_pattern() -> None:
    """Nodes in the order of the edges, quantifiers, conditions, window and skip strategy."""
    first = quantifier(
        *("LOOPING", "GREEDY"),
        consumingStrategy="STRICT",
        times={"from": 3, "to": 3, "windowTime": {"unit": "SECONDS", "size": 30}},
        untilCondition=aviator("action == 9"),
    )
    pattern = graph(
        [
            node("end", aviator("action == 1")),
            node("no", aviator("action == 2 && price < 3")),
            node("start", aviator("action == 0"), quantifier=first),
        ],
        [edge("no", "end", "SKIP_TILL_ANY"), edge("start", "no", "NOT_FOLLOW")],
        window={"type": "FIRST_AND_LAST", "time": {"unit": "MINUTES", "size": 10}},
        afterMatchStrategy={"type": "SKIP_TO_LAST", "patternName": "start"},
    )
    assert said(pattern) == textwrap.dedent(
        """\
        pattern:
        - step: start
          where: action = 0
          times: 3+
          gap: 30 seconds
          loop: consecutive
          greedy: true
          until: action = 9
        - step: 'no'
          after: not_followed_by
          where: action = 2 AND (price < 3 OR price IS NULL)
        - step: end
          after: followed_by_any
          where: action = 1
        within: 10 minutes
        after_match:
          skip_to_last: start
        """
    )


def test_text_and_mapping_are_one() -> None:
    """The JSON may stand in the document or be a text in it."""
    (as_mapping,) = load_rules(written(TWO), "rule.json")
    (as_text,) = load_rules(written(TWO, as_text=True), "rule.json")
    assert as_mapping.rule.pattern == as_text.rule.pattern
    assert as_mapping.text == as_text.text
    assert "ververica" not in as_text.text


@pytest.mark.parametrize(
    ("kind", "after"),
    [
        ("STRICT", "next"),
        ("SKIP_TILL_NEXT", "followed_by"),
        ("SKIP_TILL_ANY", "followed_by_any"),
        ("NOT_NEXT", "not_next"),
    ],
)
def test_edges(kind: str, after: str) -> None:
    """What each type of edge is."""
    assert f"after: {after}\n" in said(changed(edges=[edge("start", "end", kind)]))


@pytest.mark.parametrize(
    ("given_quantifier", "fields"),
    [
        (quantifier(), ""),
        (quantifier("SINGLE", "OPTIONAL"), "optional: true\n"),
        (quantifier("LOOPING"), "times: 1+\n"),
        (quantifier("TIMES", times={"from": 3, "to": 3, "windowTime": None}), "times: 3\n"),
        (quantifier("TIMES", times={"from": 2, "to": 4}), "times: 2..4\n"),
        (quantifier("TIMES", times={"from": 0, "to": 4}), "times: 0..4\n"),
        (
            quantifier("TIMES", "OPTIONAL", times={"from": 1, "to": 4}),
            "times: 0..4\n",
        ),
        (
            quantifier("LOOPING", consumingStrategy="SKIP_TILL_ANY", times={"from": 2, "to": 2}),
            "times: 2+\n  loop: combinations\n",
        ),
    ],
)
def test_quantifiers(given_quantifier: Json, fields: str) -> None:
    """What each quantifier is."""
    pattern = "pattern:\n- step: a\n"
    assert said(one(quantifier=given_quantifier)) == pattern + (f"  {fields}" if fields else "")


@pytest.mark.parametrize(
    ("unit", "length"),
    [
        ("DAYS", "2 days"),
        ("HOURS", "2 hours"),
        ("MINUTES", "2 minutes"),
        ("SECONDS", "2 seconds"),
        ("MILLISECONDS", "2 ms"),
    ],
)
def test_windows(unit: str, length: str) -> None:
    """Each unit, and the window between two events."""
    window = {"type": "PREVIOUS_AND_CURRENT", "time": {"unit": unit, "size": 2}}
    assert said(changed(window=window)).endswith(f"within:\n  gap: {length}\n")


@pytest.mark.parametrize("strategy", ["skip_to_next", "skip_past_last_event"])
def test_skip_strategies(strategy: str) -> None:
    """Those that name no node."""
    after = {"type": strategy.upper(), "patternName": None}
    assert said(changed(afterMatchStrategy=after)).endswith(f"after_match: {strategy}\n")


def test_groups_that_are_called_as_their_last_node() -> None:
    """Java calls them so; the group gets a name of its own, which no node has."""
    inner = graph([node("a"), node("b")], [edge("a", "b")], quantifier=quantifier("LOOPING"))
    pattern = graph([node("b_group"), inner], [edge("b", "b_group")])
    text = said(pattern)
    assert "- step: b_group_2\n  times: 1+\n  group:\n  - step: a\n  - step: b\n" in text
    assert "- step: b_group\n  after: followed_by\n" in text


@pytest.mark.parametrize(
    ("condition", "fields"),
    [
        (None, ""),
        (
            java(
                f"{RICH}RichAndCondition",
                nestedConditions=[
                    java(f"{RICH}SubtypeCondition", subClassName="com.example.Types$Big"),
                    aviator("a > 1"),
                    aviator("b || c"),
                ],
            ),
            "where: a > 1 AND (b OR NOT b AND c)\n  of_type: Big\n",
        ),
        (
            java(
                f"{RICH}RichOrCondition",
                nestedConditions=[aviator("a > 1"), java("com.example.Own")],
            ),
            "where: a > 1 OR price > 5\n",
        ),
        (
            java(f"{RICH}RichNotCondition", nestedConditions=[aviator("a > 1")]),
            "where: (a > 1) IS NOT TRUE\n",
        ),
        (java("com.example.Args", args=["x", "it's"]), r"where: s IN ('x', 'it\'s')" + "\n"),
        (
            {"type": "CUSTOM_ARGS", "className": "com.example.Arg", "args": "5"},
            "where: price > CAST('5' AS DOUBLE)\n",
        ),
    ],
)
def test_conditions(condition: Json | None, fields: str) -> None:
    """Aviator, Flink's own classes, and configured classes with and without arguments."""
    classes = {
        "com.example.Own": "price > 5",
        "com.example.Args": "s IN ($1, $2)",
        "com.example.Arg": "price > CAST($1 AS DOUBLE)",
    }
    text = said(one(condition), java_classes=classes)
    assert text == "pattern:\n- step: a\n" + (f"  {fields}" if fields else "")


DAY = {"type": "FIRST_AND_LAST", "time": {"unit": "DAYS", "size": 1}}
NESTED = graph([node("x"), node("y")], [edge("x", "y")])


@pytest.mark.parametrize("as_text", [False, True])
@pytest.mark.parametrize(
    ("pattern", "message", "part"),
    [
        (
            changed(edges=[]),
            "`nodes`: `end`, `start`: a graph begins with one node, to which no edge leads",
            None,
        ),
        (
            graph([node("a"), node("b"), node("c")], [edge("b", "c"), edge("c", "b")]),
            "`edges`: no edges lead from `a` to `b`",
            None,
        ),
        (
            changed(edges=[edge("start", "end"), edge("end", "start")]),
            "`edges`: none: a graph begins with one node, to which no edge leads",
            None,
        ),
        (
            changed(edges=[edge("start", "edn")]),
            "`edges[0].target`: there is no node `edn`",
            '"edn"',
        ),
        (
            graph([node("a"), node("b"), node("c")], [edge("a", "b"), edge("a", "c")]),
            "`edges[1].source`: a second edge leaves `a`",
            '"a"',
        ),
        (
            graph([node("a"), node("a")], []),
            "`nodes[1].name`: two nodes are called `a`",
            '"a"',
        ),
        (changed(type="ATOMIC"), "`type`: the outermost pattern must be `COMPOSITE`", '"ATOMIC"'),
        (
            changed(condition=aviator("a > 1")),
            "`condition`: a graph has no condition, its nodes have",
            None,
        ),
        (
            changed(afterMatchStrategy={"type": "SKIP_TO_LAST", "patternName": None}),
            "`afterMatchStrategy`: `SKIP_TO_LAST` needs `patternName`",
            None,
        ),
        (
            changed(window={**DAY, "type": "SLIDING"}),
            "`window.type` cannot be `SLIDING`",
            '"SLIDING"',
        ),
        (changed(version=2), "`version` cannot be `2`", "2"),
        (
            one(window=DAY),
            "`nodes[0].window`: an `ATOMIC` node has no `window`",
            '"window"',
        ),
        (
            graph(
                [
                    {
                        **NESTED,
                        "window": {"type": "FIRST_AND_LAST", "time": {"unit": "DAYS", "size": 1}},
                    }
                ],
                [],
            ),
            "`nodes[0].window`: a window on a nested graph is not supported: Flink ignores it",
            None,
        ),
        (
            graph([{**NESTED, "afterMatchStrategy": {"type": "SKIP_TO_NEXT"}}], []),
            "`nodes[0].afterMatchStrategy`: a nested graph has no skip strategy of its own",
            None,
        ),
        (
            graph([{**NESTED, "condition": aviator("a > 1")}], []),
            "`nodes[0].condition`: a graph has no condition, its nodes have",
            '"condition"',
        ),
        (
            one(type="COMPOSITE"),
            "`nodes[0]`: `COMPOSITE` needs `nodes` and `edges`",
            None,
        ),
        (
            one(quantifier=quantifier("TIMES")),
            "`nodes[0].quantifier`: `TIMES` needs `times`",
            None,
        ),
        (
            one(quantifier=quantifier("SINGLE", "LOOPING")),
            "`nodes[0].quantifier.properties`: `SINGLE` and `LOOPING` do not go together",
            None,
        ),
        (
            one(quantifier=quantifier("LOOPING", times={"from": 0, "to": 1})),
            "`nodes[0].quantifier.times.from`: `LOOPING` repeats 0 times",
            "0",
        ),
        (
            one(quantifier=quantifier(times={"from": 2, "to": 2})),
            (
                "`nodes[0].quantifier.times`: `times` counts with `TIMES` or `LOOPING` in"
                " `properties` alone"
            ),
            None,
        ),
        (
            one(quantifier=quantifier(consumingStrategy="STRICT")),
            (
                "`nodes[0].quantifier.consumingStrategy`: `STRICT` is about repetitions, and this"
                " node does not repeat"
            ),
            '"STRICT"',
        ),
        (
            one(quantifier=quantifier(innerConsumingStrategy="STRICT")),
            "unknown key `nodes[0].quantifier.innerConsumingStrategy`",
            '"innerConsumingStrategy"',
        ),
        (
            one(graph={"nodes": []}),
            "unknown key `nodes[0].graph`",
            '"graph"',
        ),
        (
            one(aviator("price > 1 && now() > t")),
            "`nodes[0].condition.expression`: the function now is not supported",
            "now",
        ),
        (
            one({"type": "GROOVY", "expression": "price > 1"}),
            (
                "`nodes[0].condition.type`: Groovy is a programming language, and rules run no"
                " programs"
            ),
            '"GROOVY"',
        ),
        (
            one({**aviator("a > 1"), "className": "x"}),
            "`nodes[0].condition.className`: `AVIATOR` has no `className`",
            '"className"',
        ),
        (
            one(java("com.example.Unknown")),
            "`nodes[0].condition.className`: what `com.example.Unknown` does is not known",
            '"com.example.Unknown"',
        ),
        (
            one(java("com.example.Own", args=["x"])),
            (
                "`nodes[0].condition.args`: the SQL of `com.example.Own` has no `$1`, and `args`"
                " has 1 texts"
            ),
            None,
        ),
        (
            one(java("com.example.Wrong")),
            (
                "`nodes[0].condition.className`: the SQL of `com.example.Wrong` in `java_classes`:"
                " the function RAND is not allowed: it gives another answer each time"
            ),
            '"com.example.Wrong"',
        ),
        (
            one(java(f"{RICH}RichNotCondition", nestedConditions=[])),
            "`nodes[0].condition`: `RichNotCondition` needs one condition in `nestedConditions`",
            None,
        ),
        (
            one(java(f"{RICH}SubtypeCondition")),
            "`nodes[0].condition`: `SubtypeCondition` needs `subClassName`",
            None,
        ),
        (
            one(
                java(
                    f"{RICH}RichOrCondition",
                    nestedConditions=[
                        java(f"{RICH}SubtypeCondition", subClassName="A"),
                        aviator("a > 1"),
                    ],
                )
            ),
            (
                "`nodes[0].condition.nestedConditions[0]`: `SubtypeCondition` in `RichOrCondition`"
                " is not supported"
            ),
            None,
        ),
        (
            one(
                java(
                    f"{RICH}RichAndCondition",
                    nestedConditions=[
                        java(f"{RICH}SubtypeCondition", subClassName="A"),
                        java(f"{RICH}SubtypeCondition", subClassName="B"),
                    ],
                )
            ),
            "`nodes[0].condition.nestedConditions`: an event has one type, here are `A`, `B`",
            None,
        ),
        (
            one(
                quantifier=quantifier(
                    "LOOPING",
                    untilCondition=java(f"{RICH}SubtypeCondition", subClassName="A"),
                )
            ),
            (
                "`nodes[0].quantifier.untilCondition`: `SubtypeCondition` in `untilCondition` is"
                " not supported"
            ),
            None,
        ),
        (
            changed(edges=[edge("start", "end", "NOT_FOLLOW")]),
            "`edges[0].type`: `end` at the end of the pattern has no deadline",
            None,
        ),
        (
            one(quantifier=quantifier("SINGLE", "GREEDY")),
            "`nodes[0].quantifier.properties`: `greedy` on `a`, which does not repeat",
            None,
        ),
        (graph([node("a b")], []), "`nodes[0].name`: `a b` cannot be the name of a step", '"a b"'),
    ],
)
def test_refused(pattern: Json, message: str, part: str | None, as_text: bool) -> None:
    """Each mistake is told by its path in the JSON, and underlined where it stands."""
    classes = {"com.example.Own": "price > 5", "com.example.Wrong": "RAND() > 1"}
    (problem, *others) = refused(written(pattern, as_text=as_text, java_classes=classes))
    assert (problem.message, others) == (message, [])
    assert problem.rule == "r"
    if part is not None and not as_text:
        assert underlined(problem) == part


def test_places_in_a_text_of_several_lines() -> None:
    """What is wrong in a block of text is underlined in the file."""
    block = textwrap.indent(json.dumps(one(aviator("price > 1 && now() > t")), indent=2), "  ")
    (problem,) = refused(f"id: r\nkey: k\nversion: 1\nververica: |\n{block}\n")
    assert underlined(problem) == "now"
    assert problem.span is not None
    assert problem.span.line == 4 + block[: block.index("now()")].count("\n") + 1


def test_what_schemas_refuse_names_the_place() -> None:
    """A column that there is not is told by the condition's path."""
    ((loaded,), problems) = examine_rules(written(one(aviator("prise > 1"))), "rule.json")
    assert not problems
    (problem,) = type_check(loaded, [("", "Event", RecordType({"price": STRING, "k": STRING}))])
    assert problem.message == (
        "`nodes[0].condition.expression`: the event has no column prise; did you mean price?"
    )
    assert underlined(problem) == '"prise > 1"'


def test_all_mistakes_at_once() -> None:
    """Mistakes of shape, conditions, graph and of the rule around are told together."""
    pattern = changed(window={"type": "FIRST_AND_LAST", "time": {"unit": "YEARS", "size": 0}})
    pattern["nodes"][0]["condition"] = aviator("a & b")
    text = written(pattern, within="1 minute", key="RAND()", colour="red")
    assert sorted(problem.message for problem in refused(text)) == [
        "`nodes[0].condition.expression`: operators on bits are not supported",
        "`window.time.size` cannot be `0`",
        "`window.time.unit` cannot be `YEARS`",
        "`within` stands in the JSON of `ververica`",
        "the function RAND is not allowed: it gives another answer each time",
        "unknown key `colour`",
    ]


def test_measures_of_a_wrong_pattern() -> None:
    """What refers to the steps of a pattern that is refused is not refused for that."""
    measures = {"n": "COUNT(start.*)", "last": "end.price"}
    pattern = changed(window={**DAY, "type": "SLIDING"})
    for given_pattern in (pattern, "{"):
        (problem,) = refused(written(given_pattern, emit={"measures": measures}))
        assert "window.type" in problem.message or "parsing" in problem.message
    wrong = refused(written(pattern, emit={"measures": {"n": "COUNT(strat.*)"}}))
    assert len(wrong) == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (json.dumps(TWO), "this is a pattern of Ververica's dynamic CEP without a rule around it"),
        (written(None), "`ververica` has no value"),
        (written("", as_text=False), "`ververica` has 0 patterns"),
        (written("{"), None),
        (written("[1]"), "`ververica` must be a mapping, found a list"),
        (written([1]), "`ververica` must be a mapping, found a list"),
        (written(TWO, java_classes=[]), "`java_classes` must be a mapping"),
        (written(TWO, java_classes={"a": 1}), "the SQL of `a` must be text"),
        (
            json.dumps({"id": "r", "key": "k", "java_classes": {}, "pattern": [{"step": "a"}]}),
            "`java_classes` goes with `ververica`",
        ),
    ],
)
def test_what_is_no_pattern(text: str, message: str | None) -> None:
    """The bare JSON, and what is no JSON of a pattern, says what to do."""
    messages = [problem.message for problem in refused(text)]
    assert message is None or message in messages, messages


def test_rules_of_a_program() -> None:
    """A rule that was never text has the JSON as text; its problems name the path."""
    loaded = load_data({"id": "r", "key": "k", "ververica": json.dumps(TWO)}, "<python>")
    assert [step.name for step in loaded.rule.pattern] == ["start", "end"]
    with pytest.raises(RuleSetError, match=r"nodes\[0\].condition.expression.*now is not"):
        load_data(
            {"id": "r", "key": "k", "ververica": json.dumps(one(aviator("now() > t")))}, "<python>"
        )


def test_a_row_of_the_table() -> None:
    """A row of Ververica's table becomes the text of a rule."""
    beside = {"key": "k", "events": "orders", "emit": {"events": "all"}}
    (loaded,) = load_rules(rule_text("big-orders", 3, json.dumps(TWO), beside), "row")
    assert (loaded.rule.id, loaded.rule.version, loaded.rule.events) == (
        "big-orders",
        3,
        ("orders",),
    )


@pytest.mark.parametrize("text", [written(TWO), "id: r\npattern: [{step: a}]", "{", "[1]", ""])
def test_a_row_that_has_a_rule(text: str) -> None:
    """What is not the bare JSON stays as it is."""
    assert rule_text("r", 1, text, {"key": "k"}) == text


_scalars = st.none() | st.booleans() | st.integers(-1, 3) | st.sampled_from(["", "a", "LOOPING"])
_anything = st.recursive(
    _scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["name", "type", "nodes", "edges", "times"]), inner)
    ),
    max_leaves=8,
)


@settings(max_examples=150)
@given(st.data())
@pytest.mark.slow
def test_no_json_breaks_the_reader(data: st.DataObject) -> None:
    """A pattern in which any part is anything else is a rule or refused, as text and as mapping."""
    pattern = graph(
        [node("c", aviator("a > 1")), copy.deepcopy(NESTED)],
        [edge("y", "c")],
        window=copy.deepcopy(DAY),
    )
    for _ in range(data.draw(st.integers(1, 3))):
        here: Any = pattern
        while True:
            places = list(here) if isinstance(here, dict) else range(len(here))
            if not places:
                break
            place = data.draw(st.sampled_from(list(places)))
            inside = here[place]
            if not isinstance(inside, dict | list) or data.draw(st.integers(0, 3)) == 0:
                here[place] = copy.deepcopy(data.draw(_anything))
                break
            here = inside
    for as_text in (False, True):
        loaded, problems = examine_rules(written(pattern, as_text=as_text), "rule.json")
        assert loaded or problems
