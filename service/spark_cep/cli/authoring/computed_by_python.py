"""The parts of rules that Python computes, for ``spark-cep explain``: those for which there is no
compiled operation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from spark_cep.compiler.explain.explanation import Section
from spark_cep.compiler.explain.wording import condition_name
from spark_cep.compiler.plan import LookBackAtom, Plan
from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.row_pattern import RowPatternPlan, plan_query
from spark_cep.compiler.rule_set import slot_numbers, slots_of
from spark_cep.errors import printable
from spark_cep.matcher.row_pattern.lowering import RowPatternLimits
from spark_cep.matcher.row_pattern.lowering import lower as lower_row_pattern
from spark_cep.matcher.steps.look_back_programs import program
from spark_cep.pattern.expressions.canonical import expression
from spark_cep.pattern.several_types import InputRecord
from spark_cep.pattern.sql import load_query
from spark_cep.pattern.tree import Rule


def computed_by_python(
    rule: Rule, plan: Plan | RowPatternPlan, record_types: Sequence[InputRecord]
) -> Section:
    """The section of an explanation that names these parts, each with its condition."""
    inputs = rule.events or ("",)
    records = [(name, columns) for _, name, columns in record_types]
    types = RecordTypes(tuple((events, *record) for events in inputs for record in records))
    parts = list(
        _row_parts(plan, types) if isinstance(plan, RowPatternPlan) else _parts(plan, types)
    )
    lines = [f"  of {condition}  {printable(part)}" for condition, part in parts]
    if not parts:
        lines = ["  nothing: every condition that looks back is compiled"]
    elif not record_types:
        lines = ["  that depends on the types of what looks back: give --schema to know"]
    return Section("Computed by Python", tuple(lines))


def _row_parts(plan: RowPatternPlan, types: RecordTypes) -> Iterator[tuple[str, str]]:
    """The parts of conditions that read other rows, with their variables."""
    typed = load_query(plan.query.text, plan.query.source, types.of((), None))
    for variable, part in lower_row_pattern(plan_query(typed), RowPatternLimits()).calls:
        yield variable, part.canonical


def _parts(plan: Plan, types: RecordTypes) -> Iterator[tuple[str, str]]:
    """The parts of conditions that look back, with the names of the conditions."""
    slots = slot_numbers(slots_of(plan))
    for number, atom in enumerate(plan.atoms):
        if isinstance(atom, LookBackAtom):
            for call in program(atom, plan, slots, types).calls:
                yield condition_name(number), expression(call.node).canonical
