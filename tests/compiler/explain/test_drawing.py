"""Plans drawn: nothing is left out, and whatever a condition holds, the text stays well-formed.

After an intended change, ``REWRITE_GOLDEN=1 python -m pytest tests/compiler`` writes the files in
``tests/golden/drawings`` again.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_cep.compiler.explain.dot_text import dot_text
from spark_cep.compiler.explain.drawing import Drawing, DrawnEdge, DrawnState, draw
from spark_cep.compiler.explain.mermaid_text import mermaid_states, mermaid_text
from spark_cep.compiler.plan import Action, StateKind
from spark_cep.compiler.steps.lowering import lower
from spark_cep.pattern.document.loading import load_rules
from spark_cep.pattern.tree import Rule
from tests.compiler.drawn_text import Drawn, read_dot, read_mermaid
from tests.compiler.test_plan_text import plan_of
from tests.matcher.strategies import rules

GOLDEN = Path(__file__).parents[2] / "golden" / "drawings"
DRAWN = ("loop", "look_back", "not_end", "strict")
WRITERS = {"dot": (dot_text, read_dot), "mmd": (mermaid_text, read_mermaid)}
DOT = shutil.which("dot")

NASTY = (
    '<b>bold</b> "quoted" \\ \\n \\" #35; &lt; a|b [c] {d} (e); %%{init: {}}%%',
    "*starred* _underscored_ `code` ~~struck~~ $$x$$ fa:fa-ban @{shape: x}",
    "https://x.org www.x.org me@x.org style a: #b; classDef a:#b; end",
    "ünï 中文 🙂 a--b ==> -.-> 1. - + \\",
    "<looks like HTML>",
)


@pytest.mark.parametrize("suffix", WRITERS)
@pytest.mark.parametrize("name", DRAWN)
def test_drawn_text(name: str, suffix: str) -> None:
    """The texts for Graphviz and Mermaid of some kinds of pattern."""
    text = WRITERS[suffix][0]([draw(plan_of(name))])
    golden = GOLDEN / f"{name}.{suffix}"
    if os.environ.get("REWRITE_GOLDEN"):
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


def test_no_golden_drawing_is_left_over() -> None:
    """Each file belongs to a rule and a writer."""
    assert {file.name for file in GOLDEN.iterdir()} == {f"{n}.{s}" for n in DRAWN for s in WRITERS}


def _of(drawings: list[Drawing]) -> Drawn:
    drawn = Drawn()
    for number, drawing in enumerate(drawings):
        drawn.titles.append(drawing.title)
        for state in drawing.states:
            drawn.states[f"r{number}s{state.number}"] = "\n".join(state.lines)
        if drawing.notes:
            drawn.states[f"r{number}notes"] = "\n".join(drawing.notes)
        drawn.edges += [
            (f"r{number}s{edge.source}", f"r{number}s{edge.target}", edge.label)
            for edge in drawing.edges
        ]
    return drawn


@given(st.lists(rules(), min_size=1, max_size=2))
def test_every_state_and_edge_is_drawn(some: list[Rule]) -> None:
    """Both texts hold each state and each edge of the plans once, with its action, no others."""
    plans = [lower(rule) for rule in some]
    drawings = [draw(plan) for plan in plans]
    for plan, drawing in zip(plans, drawings, strict=True):
        assert [s.number for s in drawing.states] == [s.number for s in plan.states]
        assert [(e.source, e.target, e.action) for e in drawing.edges] == [
            (state.number, edge.target, edge.action)
            for state in plan.states
            for edge in state.edges
        ]
        assert all(edge.label.startswith(edge.action.value) for edge in drawing.edges)
    for write, read in WRITERS.values():
        assert read(write(drawings)) == _of(drawings)


def _drawing_of(text: str) -> Drawing:
    """A drawing with ``text`` wherever text can stand."""
    states = tuple(
        DrawnState(n, kind, (f"{n} {text}", text or "x")) for n, kind in enumerate(StateKind)
    )
    edges = tuple(DrawnEdge(0, 1, action, f"take if {text}") for action in Action)
    return Drawing(f"title {text}", states, edges, (f"c0: {text}", f"c1: {text}"))


@pytest.mark.parametrize("text", NASTY)
@pytest.mark.parametrize("suffix", WRITERS)
def test_signs_of_the_drawing_languages_are_only_text(text: str, suffix: str) -> None:
    """Quotes, brackets, entities, Markdown and directives come out as they were."""
    write, read = WRITERS[suffix]
    assert read(write([_drawing_of(text)])) == _of([_drawing_of(text)])


@given(st.text(st.characters(exclude_categories=("C", "Z"), include_characters=" ")))
def test_any_text_can_be_a_label(text: str) -> None:
    """Whatever printable text stands in a label, it is read back unchanged."""
    text = text.strip()
    for write, read in WRITERS.values():
        assert read(write([_drawing_of(text)])) == _of([_drawing_of(text)])


@pytest.mark.skipif(DOT is None, reason="the program `dot` is not installed")
@pytest.mark.parametrize("text", NASTY)
def test_graphviz_takes_the_text(text: str) -> None:
    """``dot`` itself reads the text without a complaint."""
    assert DOT is not None
    written = dot_text([_drawing_of(text), draw(plan_of("look_back"))])
    done = subprocess.run([DOT, "-Tsvg"], input=written, capture_output=True, text=True, check=True)
    assert not done.stderr


def test_conditions_are_numbered_when_one_is_long() -> None:
    """Short conditions stand on the edges; with a long one all are numbers, and a legend."""
    short = draw(plan_of("relaxed"))
    assert short.edges[0].label == "take if name = 'a'"
    assert not short.notes
    long = draw(plan_of("look_back"))
    assert long.edges[0].label == "take if c1 and c4"
    assert long.notes[1] == "c1: type is trade"
    assert len(long.notes) == len(plan_of("look_back").atoms)


def test_control_characters_are_escapes() -> None:
    """What could move a terminal's cursor or turn the text round is shown as an escape."""
    text = """id: r
key: k
pattern: [{step: a, where: "name = '\\e[2J\\u202e\\n'"}]
"""
    (edge,) = draw(lower(load_rules(text, "r")[0].rule)).edges
    assert edge.label == "take if name = '\\x1b[2J\\u202e\\n'"


def test_states_say_when_they_run_out() -> None:
    """Gaps, absences and violated NOTs are to be seen on the states."""
    lines = [state.lines for state in draw(plan_of("loop")).states]
    assert ("2 b:1", "out of time 5 seconds after the last event") in lines
    lines = [state.lines for state in draw(plan_of("not_end")).states]
    assert ("0 a", "start") in lines
    assert ("2 b:1", "a match at the deadline") in lines
    assert ("3 n", "a match at the deadline") in lines
    assert ("4 n", "the partial match ends") in lines


def test_a_gap_does_not_end_the_wait_for_absence() -> None:
    """Behind a loop with a gap, a NOT at the end is decided by the window; both are shown."""
    text = """id: r
key: k
within: 1 minute
pattern:
  - {step: a, where: "x = 1", times: 2+, gap: 5 seconds}
  - {step: n, after: not_followed_by, where: "x = 2"}
"""
    plan = lower(load_rules(text, "r")[0].rule)
    notes = [state.lines[1:] for state in draw(plan).states]
    assert (
        "a match at the deadline",
        "takes nothing from 5 seconds after the last event on",
    ) in notes


def test_notes_name_window_and_strategy() -> None:
    """What holds for the whole rule stands beside the states."""
    drawing = draw(plan_of("loop"))
    assert drawing.title == "loop version 1"
    window, skip, *conditions = drawing.notes
    assert window.startswith("window: less than 1 minute from the first event to the last, less")
    assert skip == "after a match: skip_to_last b"
    assert len(conditions) == len(plan_of("loop").atoms)


def test_states_and_edges_alone() -> None:
    """For the page to try rules: the same states and edges, loops of what passes without words."""
    states = tuple(DrawnState(n, StateKind.NORMAL, (f"{n}",)) for n in (0, 1))
    edges = (
        DrawnEdge(0, 1, Action.TAKE, "take if c0"),
        DrawnEdge(0, 0, Action.IGNORE, "ignore if not c0"),
    )
    assert mermaid_states(Drawing("r", states, edges, ("a note",))).splitlines() == [
        "flowchart LR",
        '    r0s0("0")',
        '    r0s1("1")',
        '    r0s0 ==>|"take if c0"| r0s1',
        "    r0s0 -.-> r0s0",
    ]
