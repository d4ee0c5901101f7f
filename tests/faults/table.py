"""The table of a long run, and what is wrong in it."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from spark_cep.cli.exit_codes import ExitCode
from tests.faults.trial import Score

#: How the command may end where nobody has told it to, by kind of fault: with its JVM. A Python
#: process that is killed ends nothing: Spark runs tasks again, and the query is started again where
#: the process that plans the input was lost. Nor do brokers that are harmed.
ENDS: dict[str, set[int]] = {"jvm": {int(ExitCode.JAVA_ENDED)}}
_COLUMNS = (
    "fault",
    "runs",
    "faults",
    "starts",
    "ends",
    "rule sets",
    "compared",
    "lost",
    "twice",
    "wrong",
)


def table(scores: Sequence[Score]) -> Table:
    """A line for each kind of fault. ``ends``: of the command, where nobody had told it to."""
    made = Table()
    for column in _COLUMNS:
        made.add_column(column, justify="left" if column == "fault" else "right")
    for fault in dict.fromkeys(score.fault for score in scores):
        own = [score for score in scores if score.fault == fault]
        both = [c for s in own for c in (s.comparison, s.undisturbed) if c is not None]
        figures = (
            len(own),
            sum(s.faults for s in own),
            sum(s.starts for s in own),
            sum(len(s.ends or ()) for s in own),
            sum(s.changes for s in own),
            sum(c.compared for c in both),
            sum(c.lost for c in both),
            sum(c.twice for c in both),
            sum(c.wrong for c in both),
        )
        made.add_row(fault, *map(str, figures))
    return made


def what_is_wrong(scores: Sequence[Score]) -> list[str]:
    """A sentence for each run without a fault, whose output differs, that compared nothing, or in
    which the command ended as it must not."""
    found = [] if scores else ["no run: no kind of fault has this name"]
    for score in scores:
        if not score.faults:
            found.append(f"{score.fault}: the input ended before the first fault")
        for of, comparison in (
            ("the matcher", score.comparison),
            ("an undisturbed run", score.undisturbed),
        ):
            if comparison is None or not comparison.compared:
                found.append(f"{score.fault}: nothing was compared with {of}")
            elif not comparison.equal:
                found.append(f"{score.fault}: not as {of}: {comparison}")
        bad = set(score.ends or ()) - ENDS.get(score.fault, set())
        if bad:
            found.append(f"{score.fault}: the command ended with {sorted(bad)}")
    return found
