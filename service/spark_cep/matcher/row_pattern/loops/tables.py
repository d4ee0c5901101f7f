"""The tables that the compiled loops work on: arrays of records, and how they belong together."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spark_cep.columns.compilation import I64, Table, record

Flags = NDArray[np.uint8]

LABEL, SPLIT, JUMP, START, END, SAVE, DONE = range(7)
#: An instruction. ``first``: the variable of LABEL, where SPLIT and JUMP go; ``second``: where
#: SPLIT goes rather not. The rows of ``DISTINCTION`` say what tells threads apart there.
INSTRUCTION = record(
    code="i4", first="i4", second="i4", first_distinction="i4", end_distinction="i4"
)
#: The condition of a variable: ``bits`` that must be set, and the rest as ``TEST``; those up to
#: ``end_near`` read nothing but rows at a distance. ``cost``: the steps of work of a row whose bits
#: are set; ``restored``: those of each row that a thread has taken, for what Python makes of them.
VARIABLE = record(
    bits="i8", first_test="i4", end_test="i4", end_near="i4", cost="i4", restored="i4"
)
OF_BIT, OF_PROGRAM, OF_PYTHON, OF_ALL, OF_ANY, PAST_NO, PAST_YES = range(7)
#: A part of a condition, which leaves an answer (``NO``, ``YES``, ``OPEN``) on a stack: a bit, a
#: condition of ``expression_loop``, a call of Python; or what AND and OR make of the last two.
#: Where the last answer decides them, the test of that number comes next.
TEST = record(operand="i8", code="i4")
NO, YES, OPEN = 0, 1, 2

# Where a row is counted from.
FROM_CURRENT, FROM_START, FROM_REGISTER = range(3)
# What is read of it; the others need no row.
COLUMN, CLASSIFIER, NUMBER, AGGREGATE = range(4)
#: A value that a program reads of the past, or of rows to come. ``place`` is one of the three
#: above, ``word`` that of a register, or the number of an aggregate.
LOAD = record(code="i4", place="i4", word="i4", offset="i4", shift="i4", column="i4")

LAST_ROWS, FIRST_ROWS, TRACE = range(3)
#: What a thread keeps of its rows of a set of variables, in ``words`` numbers from ``word`` on: the
#: numbers of the last or first rows, or a trace that is the same for the same rows.
REGISTER = record(kind="i4", variables="i4", word="i4", words="i4")
#: An aggregate that a thread keeps of its rows of a set of variables: one of
#: :mod:`spark_cep.programs.loops.aggregate_loop`, of a column (``NONE``: of the rows).
RUNNING = record(function="i4", variables="i4", column="i4", double="u1")

SAME_WORDS, SAME_ROWS, SAME_LABELS = range(3)
#: See :class:`spark_cep.compiler.row_pattern.distinction.Distinction`; ``word``: of the register
#: with the rows, or with their trace. ``last``: 1 for the last ``count`` rows, 0 for the first, -1:
#: all.
DISTINCTION = record(kind="i4", word="i4", count="i4", variables="i4", shift="i4", last="i4")
#: A row beyond the match that measures read: of ``variables`` (``NONE``: of all).
AHEAD = record(variables="i4", offset="i4", shift="i4", first="u1", final="u1")

ONE_ROW, SHOW_EMPTY, OMIT_EMPTY, WITH_UNMATCHED = range(4)
TO_NEXT_ROW, PAST_LAST_ROW, TO_FIRST, TO_LAST = range(4)
#: One row: what of the clause and of the limits the loops need. ``within``: ``FOREVER`` for none.
#: ``first_bits``: a row that has none of them begins no match; 0: any row may. ``words`` of the
#: registers of a thread; ``keeps``: whether it keeps any, or aggregates. ``near``: whether a failed
#: attempt says that later ones fail from the same instruction and row. ``ahead``: whether
#: conditions read rows behind theirs, so that an attempt may be open where it cannot match any
#: more. Steps of work: ``step`` of a thread at an instruction, ``span`` of a row where they are not
#: counted one by one, ``restored`` of a row that a thread has taken, for its registers.
CLAUSE = record(
    within="i8", most_rows="i8", most_threads="i8", most_work="i8", reach="i8", first_bits="i8",
    step="i8", span="i8", restored="i8", rows="i4", skip="i4", target="i4", words="i4", keeps="u1",
    near="u1", ahead="u1",
)  # fmt: skip

COUNTED, OPEN = 1, 2
#: A key. Rows are numbered from the first that it ever had; those from ``first`` on are kept.
#: ``attempt`` is 1 where one is under way; ``found``, ``dropped`` and ``limit`` (1: rows, 2:
#: threads, 3: work) are of that. Nodes count from the key's first. ``tried``: how many ``TRIED``.
#: ``frontier`` is the newest row that an attempt has seen, ``work`` what attempts have cost since,
#: those that deadlines have ended included; ``searched``: whether the rows behind the start of one
#: that has failed were counted since (``COUNTED``), and a later one might match (``OPEN``).
KEY = record(
    **dict.fromkeys(
        (
            "first", "rows", "matches", "covered", "next_start", "time", "start", "next_row",
            "threads", "nodes", "tried", "frontier", "work",
        ),
        "i8",
    ),
    **dict.fromkeys(
        (
            "attempt", "limit", "found", "found_node", "found_length", "dropped", "dropped_node",
            "dropped_length", "searched",
        ),
        "i4",
    ),
)  # fmt: skip
#: One way through the program; ``node`` is the last label or edge of an exclusion, ``length`` the
#: rows taken, ``slot`` the row of its registers.
THREAD = record(at="i4", node="i4", length="i4", slot="i4")
#: A row taken as a variable, or ``EDGE``, behind ``previous``.
NODE = record(previous="i4", label="i4")
EDGE = -1
#: An instruction that attempts have come to before a row and not before the next one, or before
#: that and not before the row; ``NONE`` ends a row. Rows stand from the last to the first.
TRIED = record(at="i4")
#: Of a key so many at most are kept: those of the last rows.
MOST_KEPT_TRIED = 1 << 16
#: Where the threads of an attempt stood before the row at ``place``: ``count`` rows of
#: ``STANDING``; ``nodes``: how many nodes there were then.
STOOD = record(place="i8", attempt="i8", nodes="i8", count="i8")
STANDING = record(at="i4", node="i4")
#: A thread that was seen at an instruction, and the one before it in its list.
SEEN = record(at="i4", node="i4", length="i4", slot="i4", next="i4")

#: Of the bits of a row: no match may begin at it.
CLOSED = 1 << 62

MATCH, UNMATCHED, TIMED_OUT, GIVEN_UP, SKIP_FAILED = range(5)
ROWS_LIMIT, THREADS_LIMIT, WORK_LIMIT = 1, 2, 3
#: Of the rows that an attempt has seen before it is given up, so many are tried as a start behind
#: it, evenly: all of a few. To begin at each of very many again would take the square of their
#: number; so a row costs at most so many times what it costs otherwise.
TRIED_AGAIN = 16
#: None is tried where the limit of threads was met and rows times that limit are more than this:
#: one row would cost all of that at once.
MOST_AGAIN = 500_000
TARGET_ABSENT, TO_MATCH_START = 0, 1
#: What was found. ``row`` is the place of row number ``first`` among all rows, ``labels`` that of
#: its variables among all labels; ``detail``: deadline, limit or fault. ``number``: of a match, or
#: how many rows a timeout does not list; the variables of those that it lists stand before their
#: places, counted from its first.
RESULT = record(
    first="i8", number="i8", row="i8", labels="i8", detail="i8", key="i4", length="i4", kind="i4"
)
#: A label of a row that an exclusion has is higher by this.
EXCLUDED = 1 << 16

#: Where a run stands. One row. ``failed``: the last attempt has.
#: ``repeated``: instructions times rows of an attempt up to which it is rather made again than
#: stored where it has been; ``tried_from``: the row from which it is noted of the one under way.
#: ``attempts`` were begun so far; ``attempt`` is the number of the one under way, ``before`` that
#: of the one that it may go on as (0: none), which has ended before the row ``before_end`` with
#: ``before_nodes``. ``mixed``: the hash of what distinctions from ``mixed_of`` on read of the
#: registers in ``mixed_slot``.
CONTROL = record(
    **dict.fromkeys(
        (
            "key", "open", "closed", "watermark", "first_row", "base", "end", "threads", "nodes",
            "slots", "serial", "results", "labels", "kept_threads", "kept_nodes", "first_thread",
            "first_node", "drain_at", "ended", "known", "number", "start", "failed",
            "first_tried", "kept_tried", "repeated", "tried_from", "attempts", "attempt", "before",
            "before_end", "before_nodes", "mixed", "mixed_slot", "mixed_of",
        ),
        "i8",
    )
)  # fmt: skip


class ProgramTables(NamedTuple):
    """A plan: tables of ``INSTRUCTION``, ``VARIABLE``, ``TEST``, ``LOAD``, ``REGISTER``,
    ``RUNNING``, ``DISTINCTION``, ``AHEAD`` and ``CLAUSE``; ``sets`` of variables, a row each; and
    the numbers that the variables' names have among the texts of the run."""

    instructions: Table
    variables: Table
    tests: Table
    loads: Table
    registers: Table
    aggregates: Table
    distinctions: Table
    ahead: Table
    clause: Table
    sets: Flags
    names: I64


class Rows(NamedTuple):
    """The rows of all keys: ``at`` has those of a key together, in order, as places in the other
    arrays; ``ends`` by key where they end."""

    at: I64
    ends: I64
    time: I64
    micros: I64
    bits: I64


class RowPatternWork(NamedTuple):
    """Keys, with what they remember, and tables of the attempt under way. ``kept`` has for each
    node the number of what Python keeps of the rows up to it, 0 for nothing.

    ``tried`` has a bit for each instruction before a row that an attempt has come to; the row of
    the table is that of the row with number ``tried_of``, in the order of all keys' rows.
    ``stood`` and ``standing``: where threads stood before the last rows.
    """

    keys: Table
    held_threads: Table
    held_nodes: Table
    held_tried: Table
    threads: Table
    following: Table
    stack: Table
    seen: Table
    heads: I64
    nodes: Table
    moved: I64
    kept: I64
    registers: NDArray[np.int64]
    accumulators: Table
    answers: I64
    values: Table
    one: I64
    other: I64
    tried: NDArray[np.uint64]
    tried_of: I64
    stood: Table
    standing: Table


class Out(NamedTuple):
    """The output of a run: ``RESULT`` with the labels, and the new state of the keys."""

    results: Table
    labels: NDArray[np.int32]
    kept_threads: Table
    kept_nodes: Table
    kept_tried: Table
