"""Plans as data, for processes that run a rule and need neither read nor compile it."""

from __future__ import annotations

from typing import Final, get_args

from spark_cep.compiler import formula
from spark_cep.compiler.plan import Action, AnyAtom, Edge, Plan, State, StateKind
from spark_cep.compiler.row_pattern import RowPatternPlan
from spark_cep.compiler.row_pattern.distinction import Distinction
from spark_cep.compiler.row_pattern.program import Instruction, RowPatternProgram
from spark_cep.pattern import tree, types
from spark_cep.pattern.expressions import nodes
from spark_cep.pattern.expressions.intervals import Months
from spark_cep.pattern.sql import query, row_pattern
from spark_cep.pattern.sql.statement import RowsPerMatch, SkipTo
from spark_cep.tree_data import TreeFormat

_CLASSES: Final[tuple[type, ...]] = (
    # What the author says.
    tree.Rule,
    tree.Step,
    tree.Contiguity,
    tree.Times,
    tree.Loop,
    tree.Within,
    tree.AfterMatch,
    tree.Skip,
    tree.Emit,
    tree.Limits,
    tree.OnLimit,
    tree.PreviousVersion,
    query.Query,
    query.Sort,
    query.Measure,
    query.OutputColumn,
    query.Computed,
    RowsPerMatch,
    SkipTo,
    # Expressions.
    nodes.Expression,
    *get_args(nodes.Node),
    nodes.LookBack,
    *get_args(nodes.RowValue),
    nodes.RowPosition,
    Months,
    types.PrimitiveType,
    types.DecimalType,
    types.ArrayType,
    types.MapType,
    types.RecordType,
    types.UnreadableType,
    # What the machine runs.
    Plan,
    State,
    StateKind,
    Edge,
    Action,
    *get_args(AnyAtom),
    formula.Constant,
    formula.Atom,
    formula.Not,
    formula.All,
    formula.AnyOf,
    RowPatternPlan,
    RowPatternProgram,
    *get_args(Instruction),
    Distinction,
)
PLAN_DATA: Final = TreeFormat(
    {
        **{each.__name__: each for each in _CLASSES},
        # Whose names others have, too.
        **{f"Pattern{each.__name__}": each for each in get_args(row_pattern.RowPattern)},
    }
)
