"""Conditions that no event can meet, and conditions that another one implies.

A condition holds when it is true; NULL does not hold. Parts that must all hold are taken together:
what they say of one value (a column, a look-back, any expression over them) must leave something
over. All that is found is certain, whatever the types of the columns are; not everything is found.
Numbers count as different only where they also differ as DOUBLE, since a column may be of that
type.
"""

from spark_cep.pattern.expressions.contradictions.facts import NeverTrue
from spark_cep.pattern.expressions.contradictions.search import (
    implies,
    never_true,
    without_events,
)

__all__ = ["NeverTrue", "implies", "never_true", "without_events"]
