"""Files of Flink's answers, asked of the core or of the whole job, and of Trino's to
MATCH_RECOGNIZE, asked of the core.

``python -m tests.conformance FILE`` prints each case that differs and closes with
``N passed, N failed``; ``--through spark`` runs the cases through the job on Kafka and Spark,
``--written ververica`` loads them from Ververica's JSON.
"""

from tests.conformance import ververica_json
from tests.conformance.case import Case, cases, document, feed, plan_of
from tests.conformance.through_core import difference

__all__ = ["Case", "cases", "difference", "document", "feed", "plan_of", "ververica_json"]
