"""Programs of row patterns: the plan of a rule in SQL.

``generation`` turns the pattern into a ``program``; ``distinction`` says, for each place in it,
what of a thread's past the conditions ahead can tell apart; ``plan`` is all of it together.
"""

from spark_cep.compiler.row_pattern.plan import RowPatternPlan, plan_query, plan_rule

__all__ = ["RowPatternPlan", "plan_query", "plan_rule"]
