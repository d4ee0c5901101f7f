"""``spark-cep explain``: chooses rules, compiles them, and shows them in words or drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console
from rich.text import Text

from spark_cep.cli.authoring.checking import check_types, read_existing, rule_named
from spark_cep.cli.authoring.computed_by_python import computed_by_python
from spark_cep.cli.authoring.forms import RuleForm
from spark_cep.compiler.explain.drawing import Drawing, draw
from spark_cep.compiler.explain.explanation import Explanation, explain
from spark_cep.compiler.explain.mermaid_text import mermaid_text
from spark_cep.compiler.explain.row_pattern_drawing import draw_program
from spark_cep.compiler.explain.row_pattern_explanation import explain_query
from spark_cep.compiler.plan import Plan
from spark_cep.compiler.row_pattern import RowPatternPlan, plan_query
from spark_cep.compiler.steps.lowering import lower
from spark_cep.errors import (
    Problem,
    needs_extra,
    printable_lines,
)
from spark_cep.pattern.document.loading import LoadedRule
from spark_cep.pattern.several_types import InputRecord
from spark_cep.pattern.tree import Rule
from spark_cep.pattern.type_check import type_warnings, with_columns_of


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
    rules = [rule_named(rule_set, rule_id, str(path)) for rule_id in dict.fromkeys(chosen)]
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


def written(rules: RulesToExplain, form: RuleForm) -> str:
    """The rules in one of the forms, as text with a line end; a blank line separates several,
    and are clusters of one drawing. ConfigurationError when a drawing's package is missing."""
    match form:
        case RuleForm.DOT:
            with needs_extra("dot", "explain --format dot"):
                from spark_cep.compiler.explain.dot_text import dot_text

            return dot_text([_drawing(*rule) for rule in rules.rules])
        case RuleForm.MERMAID:
            return mermaid_text([_drawing(*rule) for rule in rules.rules])
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
    if isinstance(plan, RowPatternPlan):
        explained = explain_query(loaded.rule, plan, loaded.warnings)
    else:
        explained = explain(plan, loaded.warnings)
    *others, warnings = explained.sections
    computed = computed_by_python(loaded.rule, plan, rules.record_types)
    return Explanation((*others, computed, warnings))
