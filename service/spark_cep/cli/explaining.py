"""``spark-cep explain``: chooses rules, compiles them, and shows them in words or drawn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console
from rich.text import Text

from spark_cep.cli.checking import check_types, read_existing
from spark_cep.cli.forms import RuleForm
from spark_cep.compiler.explain.drawing import Drawing, draw
from spark_cep.compiler.explain.explanation import Explanation, Section, explain
from spark_cep.compiler.explain.mermaid_text import mermaid_text
from spark_cep.compiler.explain.row_pattern_drawing import draw_program
from spark_cep.compiler.explain.row_pattern_explanation import explain_query
from spark_cep.compiler.explain.wording import condition_name
from spark_cep.compiler.plan import LookBackAtom, Plan
from spark_cep.compiler.record_types import RecordTypes
from spark_cep.compiler.row_pattern import RowPatternPlan, plan_query
from spark_cep.compiler.rule_set import slots_of
from spark_cep.compiler.steps.lowering import lower
from spark_cep.documents.nearest import instead
from spark_cep.errors import (
    ConfigurationError,
    Problem,
    needs_extra,
    printable,
    printable_lines,
)
from spark_cep.matcher.row_pattern.lowering import RowPatternLimits
from spark_cep.matcher.row_pattern.lowering import lower as lower_row_pattern
from spark_cep.matcher.steps.look_back_programs import program
from spark_cep.pattern.document.loading import LoadedRule
from spark_cep.pattern.expressions.canonical import expression as expression_of
from spark_cep.pattern.several_types import InputRecord
from spark_cep.pattern.sql import load_query
from spark_cep.pattern.sql.query import Query
from spark_cep.pattern.tree import Rule
from spark_cep.pattern.type_check import type_warnings, with_columns_of
from spark_cep.rules.rule_set import RuleSet


@dataclass(frozen=True, slots=True)
class RulesToExplain:
    """The chosen rules with their plans. ``warnings``: what was found about the file or folder,
    and is not part of one rule's explanation."""

    rules: tuple[tuple[LoadedRule, Plan | RowPatternPlan], ...]
    record_types: tuple[InputRecord, ...]
    warnings: tuple[Problem, ...]

    def warnings_outside(self, form: RuleForm) -> tuple[Problem, ...]:
        """The warnings that ``form`` does not show itself."""
        if form is RuleForm.TEXT:
            return self.warnings
        return (*self.warnings, *(w for loaded, _ in self.rules for w in loaded.warnings))


def rules_to_explain(path: Path, chosen: Sequence[str], schemas: Sequence[Path]) -> RulesToExplain:
    """The rules of ``path`` whose ids are ``chosen``, all of them when none is.

    Raises ConfigurationError when there is no such file, folder or rule, RuleSetError with every
    problem of the rules.
    """
    rule_set = read_existing(path)
    rules = [_rule(rule_set, rule_id, path) for rule_id in dict.fromkeys(chosen)]
    rules = rules or list(rule_set.loaded)
    types = check_types(rules, schemas) if schemas else ()
    if types:
        rules = [
            replace(one, warnings=(*one.warnings, *type_warnings(one, types))) for one in rules
        ]
        rules = [with_columns_of(one, types) for one in rules]
    of_rules = {id(warning) for loaded in rule_set.loaded for warning in loaded.warnings}
    return RulesToExplain(
        rules=tuple((loaded, _plan(loaded.rule)) for loaded in rules),
        record_types=tuple(types),
        warnings=tuple(w for w in rule_set.warnings if id(w) not in of_rules),
    )


def _plan(rule: Rule) -> Plan | RowPatternPlan:
    return lower(rule) if rule.query is None else plan_query(rule.query)


def _rule(rule_set: RuleSet, rule_id: str, path: Path) -> LoadedRule:
    by_id = {loaded.rule.id: loaded for loaded in rule_set.loaded}
    if rule_id in by_id:
        return by_id[rule_id]
    raise ConfigurationError(
        f"{path}: there is no rule `{rule_id}`\n  help: {instead(rule_id, by_id, 'rules')}"
    )


def written(rules: RulesToExplain, form: RuleForm) -> str:
    """The rules in one of the forms, as text with a line end; a blank line separates several,
    and are clusters of one drawing. ConfigurationError when a drawing's package is missing."""
    match form:
        case RuleForm.DOT:
            with needs_extra("dot", "explain --format dot"):
                from spark_cep.compiler.explain.dot_text import dot_text

            return dot_text([_drawing(*each) for each in rules.rules])
        case RuleForm.MERMAID:
            return mermaid_text([_drawing(*each) for each in rules.rules])
        case RuleForm.PLAN:
            texts = [printable_lines(str(plan)) for _, plan in rules.rules]
        case RuleForm.TEXT:
            texts = [str(_explanation(loaded, plan, rules)) for loaded, plan in rules.rules]
    return "\n\n".join(texts) + "\n"


def _drawing(loaded: LoadedRule, plan: Plan | RowPatternPlan) -> Drawing:
    if isinstance(plan, Plan):
        return draw(plan)
    return draw_program(plan, f"{loaded.rule.id} version {loaded.rule.version}")


def show(rules: RulesToExplain, console: Console) -> None:
    """Print the rules in words: what :func:`written` gives, with headings in bold on a terminal."""
    sections = [
        Text("\n").join([Text(section.heading, style="bold"), *map(Text, section.lines)])
        for loaded, plan in rules.rules
        for section in _explanation(loaded, plan, rules).sections
    ]
    console.print(Text("\n\n").join(sections))


def _explanation(
    loaded: LoadedRule, plan: Plan | RowPatternPlan, rules: RulesToExplain
) -> Explanation:
    calls: Iterable[tuple[str, str]]
    if isinstance(plan, RowPatternPlan):
        explained = explain_query(loaded.rule, plan, loaded.warnings)
        calls = _called_in_sql(plan.query, _types(loaded.rule, rules.record_types))
    else:
        explained = explain(plan, loaded.warnings)
        calls = _called(plan, _types(loaded.rule, rules.record_types))
    *others, warnings = explained.sections
    known = bool(rules.record_types)
    computed = Section("Computed by Python", tuple(_computed(calls, types_are_known=known)))
    return Explanation((*others, computed, warnings))


def _computed(calls: Iterable[tuple[str, str]], *, types_are_known: bool) -> Iterator[str]:
    """Lines on the ``calls``: the condition that each is a part of, and its text."""
    found = list(calls)
    if not found:
        yield "  nothing: every condition that looks back is compiled"
    elif types_are_known:
        for condition, part in found:
            yield f"  of {condition}  {printable(part)}"
    else:
        yield "  that depends on the types of what looks back: give --schema to know"


def _types(rule: Rule, record_types: Sequence[InputRecord]) -> RecordTypes:
    return RecordTypes(
        tuple(
            (events, name, columns)
            for events in rule.events or ("",)
            for _, name, columns in record_types
        )
    )


def _called_in_sql(query: Query, types: RecordTypes) -> Iterator[tuple[str, str]]:
    """The parts of the conditions that read other rows for which there is no compiled operation."""
    typed = load_query(query.text, query.source, types.of((), None))
    for variable, part in lower_row_pattern(plan_query(typed), RowPatternLimits()).calls:
        yield variable, part.canonical


def _called(plan: Plan, types: RecordTypes) -> Iterator[tuple[str, str]]:
    """The parts of the conditions that look back for which there is no compiled operation."""
    slots = {(s.events, s.of_type, s.path): number for number, s in enumerate(slots_of(plan))}
    for number, atom in enumerate(plan.atoms):
        if isinstance(atom, LookBackAtom):
            for call in program(atom, plan, slots, types).calls:
                yield condition_name(number), expression_of(call.node).canonical


def save(text: str, file: Path) -> None:
    """Write ``text`` to ``file``; raises ConfigurationError when that cannot be done."""
    try:
        file.write_text(text, "utf-8")
    except OSError as error:
        raise ConfigurationError(f"{file}: cannot be written: {error.strerror}") from error
