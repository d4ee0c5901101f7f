"""The rule set as Spark SQL: keys, bits, slots, and which events matter.

Everything here is text made from validated expression trees
(``service.pattern.expressions.to_spark_sql``); no rule text reaches Spark as written. Conditions
become bits of 62-bit words, so that generated code evaluates all rules in one pass over an event.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from service.compiler.formula import All as Every
from service.compiler.formula import AnyOf, Atom, Constant, Formula, Not
from service.compiler.rule_set import Condition, Partitioning, PlannedRule, Slot
from service.errors import SchemaError
from service.pattern.expressions import ColumnPath, Expression, string_literal, to_spark_sql
from service.pattern.expressions.nodes import Call, Column, Literal
from service.pattern.types import STRING, column_type
from service.pipeline.catalogue import Catalogue, EventType

WORD_BITS = 62
TYPE_COLUMN = "event_type"
#: Inputs, record type, and column.
_Compared = tuple[tuple[str, ...], str | None, ColumnPath]


@dataclass(frozen=True)
class PartitioningSql:
    """One partitioning as SQL over the decoded frame.

    ``words``: the bit mask, lowest word first. ``keep`` and ``relevant`` read the words by the
    names :func:`word`: an event must go to the matcher, and some condition of a rule is true.
    ``evaluated``: how many conditions, look-ups and rules there is code for, one by one.
    """

    number: int
    key: str | None
    words: tuple[str, ...]
    keep: str
    relevant: str
    reads: str
    slots: tuple[str, ...]
    evaluated: int


def word(partitioning: int, number: int) -> str:
    """Name of a column that holds a word of a partitioning's mask."""
    return f"bits_{partitioning}_{number}"


def record_column(event_type: EventType) -> str:
    """Name of the struct column that holds events of ``event_type``; NULL for others."""
    return f"record_{event_type.number}"


def quoted(path: Iterable[str]) -> str:
    """A column path as SQL."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in path)


def partitioning_sql(number: int, part: Partitioning, catalogue: Catalogue) -> PartitioningSql:
    """SQL of one partitioning."""
    builder = _Builder(catalogue)
    conditions = part.conditions
    starts = range(0, len(conditions), WORD_BITS)
    reads = {rule.input_bit for rule in part.rules}
    strict = {rule.input_bit for rule in part.rules if rule.plan.strict}
    others = [rule for rule in part.rules if rule.input_bit not in strict]
    words = tuple(builder.word(conditions[start : start + WORD_BITS]) for start in starts)
    keep = [*_some(number, strict), *_relevant(number, others)]
    relevant = _relevant(number, part.rules)
    return PartitioningSql(
        number=number,
        key=builder.key(part),
        words=words,
        keep=" OR ".join(keep),
        relevant=" OR ".join(relevant),
        reads=" OR ".join(_some(number, reads)),
        slots=tuple(builder.slot(slot) for slot in part.slots),
        evaluated=builder.evaluated + len(keep) + len(relevant),
    )


def columns_needed(part: Partitioning, catalogue: Catalogue) -> dict[int, set[str]]:
    """Dotted columns that the partitioning reads, by record type number."""
    needed: dict[int, set[str]] = {t.number: set() for t in catalogue.types}

    def add(events: Sequence[str], of_type: str | None, paths: Iterable[ColumnPath]) -> None:
        for event_type in types_of(catalogue, events, of_type):
            for path in paths:
                if column_type(event_type.columns, path) is not None:
                    needed[event_type.number].add(".".join(path))

    for condition in part.conditions:
        if condition.expression is not None:
            add(condition.events, condition.of_type, condition.expression.columns)
    for slot in part.slots:
        add(slot.events, slot.of_type, [slot.path])
    for rule in part.rules:
        for expression in part.key:
            add(rule.plan.rule.events, None, expression.columns)
    return needed


def types_of(catalogue: Catalogue, events: Sequence[str], of_type: str | None) -> list[EventType]:
    """The record types of inputs ``events`` (all, when empty), or those that ``of_type`` names."""
    types = catalogue.types_of(events)
    if of_type is None:
        return types
    return [t for t in types if of_type in (t.name, t.name.rpartition(".")[2])]


class _Builder:
    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        #: Conditions and look-ups that were written.
        self.evaluated = 0

    def word(self, conditions: Sequence[Condition]) -> str:
        """The bits of a word. Strings with which conditions compare one column are looked up
        together: few events have one of them, and all others are done with all of it."""
        terms = []
        compared: dict[_Compared, dict[str, int]] = {}
        for position, condition in enumerate(conditions):
            if (comparison := self._comparison(condition)) is None:
                terms.append(f"IF({self.condition(condition)}, {1 << position}L, 0L)")
            else:
                what, text = comparison
                masks = compared.setdefault(what, {})
                masks[text] = masks.get(text, 0) | 1 << position
        terms += [self._look_up(what, masks) for what, masks in compared.items()]
        self.evaluated += len(terms)
        return " | ".join(terms)

    def _look_up(self, what: _Compared, masks: Mapping[str, int]) -> str:
        """The mask of the string that a column has; 0 for all others."""
        events, of_type, path = what
        texts = ", ".join(map(string_literal, masks))
        bits = ", ".join(f"{mask}L" for mask in masks.values())
        branches = []
        for t in types_of(self._catalogue, events, of_type):
            if column_type(t.columns, path) is None:
                continue
            column = f"{record_column(t)}.{quoted(path)}"
            place = f"CAST(array_position(array({texts}), {column}) AS INT)"
            mask = bits if len(masks) == 1 else f"element_at(array({bits}), {place})"
            has_one = f"{TYPE_COLUMN} = {t.number} AND {column} IN ({texts})"
            branches.append(f"WHEN {has_one} THEN {mask}")
        return f"CASE {' '.join(branches)} ELSE 0L END" if branches else "0L"

    def _comparison(self, condition: Condition) -> tuple[_Compared, str] | None:
        """What a condition compares with which string, if it does nothing else."""
        match None if condition.expression is None else condition.expression.node:
            case Call("=", (Column(path), Literal(value=str(text)))):
                pass
            case Call("=", (Literal(value=str(text)), Column(path))):
                pass
            case _:
                return None
        types = types_of(self._catalogue, condition.events, condition.of_type)
        if {column_type(t.columns, path) for t in types} - {STRING, None}:
            return None
        return (condition.events, condition.of_type, path), text

    def condition(self, condition: Condition) -> str:
        """A two-valued SQL condition over the decoded frame."""
        types = types_of(self._catalogue, condition.events, condition.of_type)
        everything = len(types) == len(self._catalogue.types)
        if condition.expression is None:
            return f"{TYPE_COLUMN} >= 0" if everything else _is_type(types)
        branches = [
            f"({TYPE_COLUMN} = {t.number} AND {self._expression(condition.expression, t)})"
            for t in types
        ]
        return f"coalesce({' OR '.join(branches)}, false)" if branches else "false"

    def key(self, part: Partitioning) -> str | None:
        """The key as one SQL string; NULL when some part is; ``None``: one global partition."""
        if not part.key:
            return None
        inputs = {name for rule in part.rules for name in rule.plan.rule.events}
        everything = any(not rule.plan.rule.events for rule in part.rules)
        types = self._catalogue.types_of(() if everything else sorted(inputs))
        branches = []
        for t in types:
            parts = [f"CAST({self._expression(e, t)} AS STRING)" for e in part.key]
            joined = parts[0] if len(parts) == 1 else _json_array(parts)
            branches.append(f"WHEN {t.number} THEN {joined}")
        return f"CASE {TYPE_COLUMN} {' '.join(branches)} END"

    def slot(self, slot: Slot) -> str:
        """The column as SQL, NULL where an event's type does not have it."""
        found = [
            (t, kind)
            for t in types_of(self._catalogue, slot.events, slot.of_type)
            if (kind := column_type(t.columns, slot.path)) is not None
        ]
        if len({kind for _, kind in found}) > 1:
            kinds = ", ".join(f"{kind} in {t.name}" for t, kind in found)
            raise SchemaError(
                f"column {'.'.join(slot.path)} is {kinds}: give the step an of_type to say which"
            )
        columns = [f"{record_column(t)}.{quoted(slot.path)}" for t, _ in found]
        return columns[0] if len(columns) == 1 else f"coalesce({', '.join(columns)})"

    def _expression(self, expression: Expression, event_type: EventType) -> str:
        columns = event_type.columns

        def sql(path: ColumnPath) -> str:
            if column_type(columns, path) is None:
                return "NULL"
            return f"{record_column(event_type)}.{quoted(path)}"

        return f"({to_spark_sql(expression, sql, columns)})"


def _is_type(types: Sequence[EventType]) -> str:
    if not types:
        return "false"
    return f"{TYPE_COLUMN} IN ({', '.join(str(t.number) for t in types)})"


def _json_array(parts: Sequence[str]) -> str:
    """Unambiguous text of several key parts; NULL when one of them is."""
    present = " AND ".join(f"{part} IS NOT NULL" for part in parts)
    return f"IF({present}, to_json(array({', '.join(parts)})), NULL)"


def _relevant(partitioning: int, rules: Iterable[PlannedRule]) -> list[str]:
    """SQL, joined by OR: some rule wants the event. Rules that want what any of their conditions
    wants are tested together."""
    wanted, others = wanted_together(rules)
    together = [
        f"({_bit(partitioning, input_bit)} AND ({' OR '.join(_some(partitioning, bits))}))"
        for input_bit, bits in wanted.items()
    ]
    alone = [
        f"({_bit(partitioning, rule.input_bit)} AND"
        f" {_formula(rule.plan.relevant, partitioning, rule.bits)})"
        for rule in others
    ]
    return [*together, *dict.fromkeys(alone)]


def wanted_together(
    rules: Iterable[PlannedRule],
) -> tuple[dict[int, set[int]], list[PlannedRule]]:
    """The bits, by that of the inputs, of rules that want what any of their conditions wants, and
    all other rules."""
    wanted: dict[int, set[int]] = {}
    others = []
    for rule in rules:
        if (atoms := _any_of(rule.plan.relevant)) is None:
            others.append(rule)
        else:
            wanted.setdefault(rule.input_bit, set()).update(rule.bits[atom] for atom in atoms)
    return wanted, others


def _any_of(formula: Formula) -> list[int] | None:
    """The atoms of which one must be true, where that is all that a formula says."""
    match formula:
        case Atom(index):
            return [index]
        case AnyOf(operands) if all(isinstance(operand, Atom) for operand in operands):
            return [operand.index for operand in operands if isinstance(operand, Atom)]
    return None


def _masks(bits: Iterable[int]) -> dict[int, int]:
    """The mask of each word."""
    masks: dict[int, int] = {}
    for bit in sorted(bits):
        masks[bit // WORD_BITS] = masks.get(bit // WORD_BITS, 0) | 1 << bit % WORD_BITS
    return masks


def _some(partitioning: int, bits: Iterable[int]) -> list[str]:
    """SQL, joined by OR: one of the bits is set."""
    return [f"({word(partitioning, w)} & {mask}L) <> 0L" for w, mask in _masks(bits).items()]


def _bit(partitioning: int, bit: int) -> str:
    (text,) = _some(partitioning, [bit])
    return text


def _formula(formula: Formula, partitioning: int, bits: Sequence[int]) -> str:
    match formula:
        case Constant(value):
            return "true" if value else "false"
        case Atom(index):
            return _bit(partitioning, bits[index])
        case Not(operand):
            return f"NOT ({_formula(operand, partitioning, bits)})"
        case Every(operands):
            joined = " AND ".join(_formula(each, partitioning, bits) for each in operands)
            return f"({joined})"
        case AnyOf(operands):
            return "(" + " OR ".join(_formula(o, partitioning, bits) for o in operands) + ")"
    raise TypeError(f"no SQL for {formula!r}")
