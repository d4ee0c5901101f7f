"""Types of expressions, and what is wrong with them against the events' schemas."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from spark_cep.documents.nearest import listed, nearest
from spark_cep.pattern.expressions.canonical import name
from spark_cep.pattern.expressions.checking.constants import constant_of, written_as
from spark_cep.pattern.expressions.checking.unreadable import unreadable_column
from spark_cep.pattern.expressions.functions import FUNCTIONS, LAMBDAS, element
from spark_cep.pattern.expressions.functions.aggregation import AGGREGATES, PICKS, ROW_AGGREGATES
from spark_cep.pattern.expressions.functions.withheld import WITHHELD
from spark_cep.pattern.expressions.nodes import (
    ALL_STEPS,
    ARITHMETIC,
    COMPARISONS,
    Call,
    Cast,
    ClassifierAt,
    Column,
    ColumnAt,
    ColumnPath,
    Expression,
    Lambda,
    Literal,
    LookBack,
    MatchNumber,
    Member,
    Node,
    Reference,
    RowAggregate,
    RowReference,
    RowValue,
    Span,
    Variable,
)
from spark_cep.pattern.expressions.problems import ExpressionError, TextProblem
from spark_cep.pattern.expressions.values import type_rules as rules
from spark_cep.pattern.several_types import AnyRecord
from spark_cep.pattern.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DAY_TIME,
    KAFKA,
    KAFKA_COLUMNS,
    STRING,
    TIMESTAMP,
    UNKNOWN,
    YEAR_MONTH,
    ArrayType,
    DecimalType,
    RecordType,
    SqlType,
    column_type,
    is_of_kafka,
)

_OF_TIMES = "a time plus or minus an interval (INTERVAL 5 MINUTES), or a time minus a time"
_MOST_HINTS = 100
_OF_ONE_TYPE = (
    "a column of one type in all record types that the rule means: `of_type` on its steps, or fewer"
    " inputs in `events`"
)
_OVER_CONDITIONS = frozenset({"AND", "OR", "NOT", "IS TRUE", "IS FALSE"})
_OVER_COMPARABLE = COMPARISONS | {"IN", "BETWEEN"}


def check_types(
    e: Expression, event: RecordType | None, steps: Mapping[str, RecordType]
) -> SqlType:
    """The expression's type; ``ExpressionError`` with all problems.

    ``event`` is the schema of the event under test (in a measure: of every event), ``None`` when
    it is not known; ``steps`` the schemas of the steps' events. What is not known is not checked.
    """
    typing = Typing(event, steps)
    kind = typing.type_of(e.node)
    if kind == YEAR_MONTH:
        message = "years and months are only added to a date or timestamp, or subtracted from one"
        typing.problems.append(TextProblem(message, e.node.span))
    if typing.problems:
        raise ExpressionError(
            [_with_fix(each, typing.constants, e.text) for each in dict.fromkeys(typing.problems)]
        )
    return kind


def _with_fix(
    problem: TextProblem, constants: Mapping[TextProblem, tuple[Span, str]], text: str
) -> TextProblem:
    """The problem with its text as it is meant, where a constant is written in another form."""
    if problem not in constants:
        return problem
    (start, end), (at, written) = problem.span, constants[problem]
    return problem._replace(fix=text[start : at[0]] + written + text[at[1] : end])


class Typing:
    """The types of one expression's nodes; every node is looked at once.

    A column that ``event`` does not have is a problem, and of the type ``missing``.
    """

    def __init__(
        self,
        event: RecordType | None = None,
        steps: Mapping[str, RecordType] | None = None,
        missing: SqlType = UNKNOWN,
    ) -> None:
        self.problems: list[TextProblem] = []
        #: Of some of them, the constant that is meant otherwise, and how it is written then.
        self.constants: dict[TextProblem, tuple[Span, str]] = {}
        self._event = event
        self._missing = missing
        self._steps = steps or {}
        self._known: dict[int, tuple[Node, SqlType]] = {}
        self._variables: dict[str, SqlType] = {}

    def type_of(self, node: Node) -> SqlType:
        """The type of a node's value; ``UNKNOWN`` where it is not known."""
        known = self._known.get(id(node))
        if known is None:
            known = self._known[id(node)] = (node, self._infer(node))
        return known[1]

    def stored_type(self, node: Node) -> SqlType:
        """Return the type as ``type_of`` does, but FLOAT for a value that is stored so and only
        read as DOUBLE."""
        if isinstance(node, Column):
            return self._field(node.path, self._event) or self._missing
        if isinstance(node, Member):
            return self._member(node, report=False)
        if isinstance(node, Variable):
            return self._variables.get(node.name, UNKNOWN)
        if isinstance(node, Call) and node.operator in ("[]", "ELEMENT_AT"):
            container = self.type_of(node.arguments[0])
            if isinstance(container, ArrayType):
                return container.element
            return getattr(container, "value", UNKNOWN)
        return self.type_of(node)

    def _near(self, word: str, known: Iterable[str]) -> str | None:
        """Suggest the known name for a misspelt one, in the first problems of an expression."""
        return nearest(word, known) if len(self.problems) < _MOST_HINTS else None

    def _refuse(self, message: str, span: Span, allowed: str | None = None) -> SqlType:
        self.problems.append(TextProblem(message, span, allowed))
        return UNKNOWN

    def _infer(self, node: Node) -> SqlType:
        match node:
            case Literal(type=kind):
                return kind
            case Column(path=path, span=span):
                return self._column(path, span)
            case Reference(look_back=look_back, span=span):
                return self._look_back(look_back, span)
            case RowReference(value=value, span=span):
                return self._row_value(value, span)
            case Member():
                return rules.as_read(self._member(node, report=True))
            case Cast(operand=operand, target=target, span=span):
                refusal = rules.cast_refusal(self.type_of(operand), target)
                return target if refusal is None else self._refuse(refusal, span)
            case Variable(name=variable):
                return rules.as_read(self._variables.get(variable, UNKNOWN))
            case Lambda(body=body):
                return self.type_of(body)
            case Call():
                return self._call(node)

    @staticmethod
    def _field(path: ColumnPath, record: RecordType | None) -> SqlType | None:
        return None if record is None else column_type(record, path)

    def _column(self, path: ColumnPath, span: Span) -> SqlType:
        if self._event is None:
            return UNKNOWN
        if isinstance(self._event, AnyRecord):
            several = self._event.several_types(path)
            if several is not None:
                return self._refuse(f"column {name(path)} is {several}", span, _OF_ONE_TYPE)
        kind = self._field(path, self._event)
        if kind is not None:
            problem = unreadable_column(path, kind, span)
            if problem is not None:
                self.problems.append(problem)
                return UNKNOWN
            return rules.as_read(kind)
        if is_of_kafka(self._event, path):
            allowed = ", ".join(f"{KAFKA}.{each}" for each in KAFKA_COLUMNS.fields)
            self._refuse(f"{name(path)} is none of Kafka's columns; allowed: {allowed}", span)
            return self._missing
        record, depth = self._event, 0
        while isinstance(inner := record.fields.get(path[depth]), RecordType):
            record, depth = inner, depth + 1
        near = self._near(path[depth], record.fields)
        if depth or len(path) == 1 or path[0] in record.fields:
            shown = name(path)
            hint = f"; did you mean {name((*path[:depth], near))}?" if near else ""
            function = path[0].upper()
            if not near and function in WITHHELD:
                # Some of them SQL calls without brackets.
                hint = f"; the function {function} is not allowed: {WITHHELD[function]}"
            if len(path) == 1 and path[0] in self._steps:
                column = name((path[0], next(iter(self._event.fields), "column")))
                hint = f"; {path[0]} is a step: {column}, or COUNT({name(path)}.*) for how often"
            columns = listed([*record.fields], like=path[0])
            texts = f"columns: {columns}; a text in single quotes: '{path[0]}'"
            remedy = None if near or len(path) > 1 else texts
            self._refuse(f"the event has no column {shown}{hint}", span, remedy)
            return self._missing
        step = self._near(path[0], [step for step in self._steps if step != ALL_STEPS])
        hints = [f"column {near}" if near else "", f"step {step}" if step else ""]
        guess = " or ".join(filter(None, hints))
        question = f"; did you mean {guess}?" if guess else ""
        self._refuse(
            f"{name(path)}: {path[0]} is neither a column of the event nor a step{question}", span
        )
        return self._missing

    def _member(self, node: Member, *, report: bool) -> SqlType:
        kind = self.type_of(node.operand)
        if rules.is_open(kind):
            return UNKNOWN
        if not isinstance(kind, RecordType):
            return self._refuse(f"{kind} has no fields", node.span) if report else UNKNOWN
        if node.name in kind.fields:
            return kind.fields[node.name]
        if not report:
            return UNKNOWN
        near = self._near(node.name, kind.fields)
        hint = f"; did you mean {near}?" if near else ""
        return self._refuse(f"there is no field {node.name}{hint}", node.span)

    def _look_back(self, look_back: LookBack, span: Span) -> SqlType:
        function, argument = look_back.function, look_back.argument
        record = self._steps.get(look_back.step)
        if record is None and look_back.step == ALL_STEPS:
            record = self._event
        kind: SqlType = UNKNOWN
        if argument is not None:
            inner = Typing(record, self._steps)
            kind = inner.type_of(argument.node)
            self.problems += inner.problems
        if function in PICKS:
            return kind
        result = AGGREGATES[function].result(kind)
        return self._refuse(f"{function} {result}", span) if isinstance(result, str) else result

    def _row_value(self, value: RowValue, span: Span) -> SqlType:
        match value:
            case MatchNumber():
                return BIGINT
            case ClassifierAt():
                return STRING
            case ColumnAt(path=path):
                return self._column(path, span)
            case RowAggregate(function=function, arguments=arguments):
                if not arguments:
                    return BIGINT
                kinds = [self.type_of(argument.node) for argument in arguments]
                result = ROW_AGGREGATES[function].result(*kinds)
                if isinstance(result, str):
                    return self._refuse(f"{function} {result}", span)
                return result

    def _call(self, node: Call) -> SqlType:
        operator = node.operator
        if operator in LAMBDAS:
            return self._over_elements(node)
        kinds = [self.type_of(argument) for argument in node.arguments]
        if operator in _OVER_CONDITIONS:
            for argument, kind in zip(node.arguments, kinds, strict=True):
                self._condition(kind, argument.span, operator)
            return BOOLEAN
        if operator in _OVER_COMPARABLE:
            first, *others = zip(kinds, node.arguments, strict=True)
            fit = [self._compare(first, other, node.span) for other in others]
            if operator == "IN" and all(fit):
                self._common(kinds, node.span)
            return BOOLEAN
        if operator in ARITHMETIC or operator in ("NEGATE", "LIKE", "ILIKE", "IS NULL"):
            return self._operator(node, kinds)
        if operator in ("CASE", "CASE OF"):
            return self._case(node, kinds)
        return self._function(node, kinds)

    def _operator(self, node: Call, kinds: list[SqlType]) -> SqlType:
        operator, span, first = node.operator, node.span, kinds[0]
        if operator == "IS NULL":
            return BOOLEAN
        if operator in ("LIKE", "ILIKE"):
            if first != STRING and not rules.is_open(first):
                return self._refuse(f"{operator} needs a STRING, not {first}", span)
            return BOOLEAN
        if operator == "NEGATE":
            if rules.is_number(first) or rules.is_open(first) or first == DAY_TIME:
                return first
            return self._refuse(f"- needs a number, not {first}", span)
        result = rules.arithmetic_type(operator, first, kinds[1], node.arguments)
        if result is None:
            message = f"{first} {operator} {kinds[1]} cannot be computed"
            if {DATE, TIMESTAMP, DAY_TIME, YEAR_MONTH} & {first, kinds[1]}:
                return self._refuse(message, span, _OF_TIMES)
            return self._refuse(f"{message}; both must be numbers", span)
        return result

    def _function(self, node: Call, kinds: list[SqlType]) -> SqlType:
        operator, span = node.operator, node.span
        if operator in ("GREATEST", "LEAST"):
            fit = [self._comparable(kinds[0], kind, span) for kind in kinds[1:]]
            if not all(fit):
                return UNKNOWN
        if operator in ("COALESCE", "GREATEST", "LEAST"):
            return self._common(kinds, span)
        if operator == "ARRAY":
            return ArrayType(self._common(kinds, span))
        if operator == "NULLIF":
            self._comparable(kinds[0], kinds[1], span)
            return kinds[0]
        result = element(kinds) if operator == "[]" else FUNCTIONS[operator].result(kinds)
        if isinstance(result, str):
            shown = "" if operator == "[]" else f"{operator}: "
            return self._refuse(f"{shown}{result}", span)
        if operator == "ROUND" and isinstance(result, DecimalType):
            return _rounded(result, node)
        return result

    def _over_elements(self, node: Call) -> SqlType:
        """A function with a lambda, whose parameter is of the type of the array's elements."""
        array, test = node.arguments
        kind = self.type_of(array)
        around = self._variables
        if isinstance(test, Lambda):
            item = kind.element if isinstance(kind, ArrayType) else UNKNOWN
            self._variables = {**around, test.parameter: item}
        try:
            return self._function(node, [kind, self.type_of(test)])
        finally:
            self._variables = around

    def _case(self, node: Call, kinds: list[SqlType]) -> SqlType:
        start = 1 if node.operator == "CASE OF" else 0
        branches = range(start, len(kinds) - 1, 2)
        for index in branches:
            if start:
                self._comparable(kinds[0], kinds[index], node.arguments[index].span)
            else:
                self._condition(kinds[index], node.arguments[index].span, "WHEN")
        return self._common([*(kinds[index + 1] for index in branches), kinds[-1]], node.span)

    def _condition(self, kind: SqlType, span: Span, where: str) -> None:
        if kind != BOOLEAN and not rules.is_open(kind):
            self._refuse(f"{where} needs a condition, not {kind}", span)

    def _compare(self, left: tuple[SqlType, Node], right: tuple[SqlType, Node], span: Span) -> bool:
        """Compare two operands; the problem says how to write the one that is text."""
        pairs = ((left, right), (right, left))
        texts = [(node, other) for (kind, node), (other, _) in pairs if kind == STRING]
        hints = [written_as(node, other) for node, other in texts]
        fits = self._comparable(left[0], right[0], span, next(filter(None, hints), None))
        for node, other in texts if not fits else ():
            written = constant_of(node, other)
            if written is not None:
                self.constants[self.problems[-1]] = node.span, written
        return fits

    def _comparable(
        self, left: SqlType, right: SqlType, span: Span, hint: str | None = None
    ) -> bool:
        if rules.comparable(left, right):
            return True
        if STRING in (left, right) and hint is None:
            hint = "cast one of them"
        if DAY_TIME in (left, right) and any(map(rules.is_number, (left, right))):
            hint = "a duration in place of the number, such as INTERVAL 60 SECONDS"
        self._refuse(f"{left} cannot be compared with {right}", span, hint)
        return False

    def _common(self, kinds: list[SqlType], span: Span) -> SqlType:
        common = rules.common_type(kinds)
        if common is None:
            shown = ", ".join(dict.fromkeys(map(str, kinds)))
            return self._refuse(f"these types do not go together: {shown}", span)
        return common


def round_digits(node: Call) -> int:
    """The number of digits of a ROUND, always a literal."""
    digits = node.arguments[-1]
    return digits.value if isinstance(digits, Literal) and isinstance(digits.value, int) else 0


def _rounded(kind: DecimalType, node: Call) -> DecimalType:
    scale = min(kind.scale, round_digits(node))
    return DecimalType(min(38, kind.precision - kind.scale + 1 + scale), scale)
