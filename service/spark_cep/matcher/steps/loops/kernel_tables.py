"""The tables that the kernel works on: arrays of records, and how they belong together."""

from __future__ import annotations

from typing import NamedTuple

from spark_cep.columns.compilation import I32, I64, Table, record

NO_SKIP, TO_NEXT, PAST_LAST_EVENT, TO_FIRST, TO_LAST = 0, 1, 2, 3, 4
DROP_OLDEST, REJECT_NEW, PAUSE_RULE = 0, 1, 2
UNCHANGED, STOPS, TAKES = 1, 2, 4
PASS = -1
SKIP_FAILED, LIMIT_REACHED, MATCH_LIMIT_REACHED, WORK_LIMIT_REACHED = 0, 1, 2, 3
#: Of what is held beyond the limit of work, so much more is dropped, one part of so many, that it
#: is not counted again at each event.
SPARE_PART = 8

#: A rule. A missing duration is ``FOREVER``, a missing time ``NEVER``; ``tables`` go on at its
#: ``first_state``, ``first_condition`` and ``first_accumulator``; ``distinct`` accumulators are of
#: COUNT(DISTINCT). Of work, ``most_cost`` is the most of a partial match, ``held_cost`` that of an
#: event that one has taken.
RULE = record(
    window="i8", cooldown="i8", effective_from="i8", most_partials="i8", most_events="i8",
    most_matches="i8", start="i4", first_state="i4", first_condition="i4", conditions="i4",
    skip="i4", skip_step="i4", on_limit="i4", first_accumulator="i4", accumulators="i4",
    distinct="i4", error_on_miss="u1", step_gaps="u1", sparse="u1", most_work="i8", most_cost="i8",
    held_cost="i8",
)  # fmt: skip
#: What an accumulator takes: see :data:`spark_cep.programs.loops.expression_loop.LOOK`.
ACCUMULATOR = record(function="i4", step="i4", column="i4", offset="i4", double="u1")
#: See :mod:`spark_cep.matcher.steps.loops.accumulators`; ``next`` of those that are spare.
TOTALS = record(next="i4", mark="i4")
#: A state of a plan; see :class:`spark_cep.compiler.plan.State`.
STATE = record(gap="i8", taking_gap="i8", absence="u1", live="u1", final="u1")
#: What an event does to a partial match: rows of ``MOVE``.
OUTCOME = record(first_move="i4", end_move="i4", flags="u1")
#: See :class:`spark_cep.matcher.steps.transitions.Move`.
MOVE = record(step="i4", target="i4", completes="u1")
#: A kind of event, by what is true of it for a rule. The outcome for a state and the answers of the
#: rule's iterative conditions is at ``first_outcome + (state << conditions) + answers``, the mask
#: of those that matter at ``first_asked + state``, and so is what these cost. Of a ``sparse`` rule,
#: one with many of them, it is in the table of ``ANSWERED``, at the hash of ``first_outcome +
#: state`` and the answers.
CLASS = record(first_outcome="i4", first_asked="i4")
ANSWERED = record(state="i8", answers="i8", outcome="i4")
#: An event that touches an instance's rule.
FEED = record(event="i4", event_class="i4")
#: An instance: what it is given (places in ``FEED`` and among the partial and finished matches) and
#: what it remembers, before the run and after. ``held``: how many events partial and finished
#: matches have taken before the run.
INSTANCE = record(
    first_event="i8", end_event="i8", first_partial="i8", end_partial="i8", first_finished="i8",
    end_finished="i8", deadline="i8", quiet="i8", events_bound="i8", rule="i4", partials="i4",
    finished="i4", paused="u1", limited="u1", held="i8",
)  # fmt: skip
#: A partial match. ``same``, ``totals`` and ``outcome`` are the kernel's own.
PARTIAL = record(
    deadline="i8", state="i4", first="i4", last="i4", same="i4", totals="i4", outcome="i4"
)
#: A complete match that waits for the skip strategy.
FINISHED = record(time="i8", first="i4", last="i4")
#: An event taken, behind ``previous`` (``NONE`` for the first). The fields behind ``matched`` are
#: the kernel's own.
NODE = record(
    previous="i4", step="i4", event="i4", matched="i4", mark="i4", taking="i4", child="i4",
    sibling="i4", standing="i4", partial="i4",
)  # fmt: skip
MATCH = record(time="i8", instance="i4", first="i4", last="i4")
TIMEOUT = record(deadline="i8", instance="i4", first="i4", last="i4", matched="u1")
FAILURE = record(detail="i8", work="i8", instance="i4", kind="i4", event="i4", last="i4")
#: Counts per rule: events, partial matches that they were tested against (with those that might
#: begin), partial matches begun, those and complete ones that the skip strategy ended, those
#: dropped by a limit, and matches dropped by a limit.
TALLY = record(
    events="i8", tested="i8", started="i8", pruned="i8", dropped="i8", dropped_matches="i8"
)
#: Where a run stands, what the open instance is like, how full the tables are and must be. One row.
CONTROL = record(
    **dict.fromkeys(
        (
            "instance", "position", "watermark", "drain_at", "most_moves",
            "open", "deadline", "quiet", "paused", "limited", "events_bound", "pruned",
            "serial", "first_node", "live_nodes", "collections",
            "first_match", "first_timeout", "first_failure",
            "nodes", "partials", "following", "finished", "matches", "timeouts", "failures",
            "kept_partials", "kept_finished",
            "need_nodes", "need_partials", "need_finished", "need_matches", "need_timeouts",
            "need_failures", "need_kept_partials", "need_kept_finished",
            "totals", "spare_totals", "first_spare", "branches", "overworked", "opening",
            "held_bound", "need_totals", "need_accumulators", "need_branches",
            "unresolved_state", "unresolved_answers",
        ),
        "i8",
    )
)  # fmt: skip


class Plans(NamedTuple):
    """The rules: tables of ``RULE``, ``STATE``, ``OUTCOME``, ``MOVE`` and ``CLASS``, and what
    ``CLASS`` says is in ``outcome_of``, ``answered``, ``asked`` and ``costs``; ``ACCUMULATOR``."""

    rules: Table
    states: Table
    outcomes: Table
    moves: Table
    classes: Table
    outcome_of: I32
    answered: Table
    asked: I64
    costs: I64
    accumulators: Table


class Work(NamedTuple):
    """The input of a run: times of all events, ``FEED``, ``INSTANCE``, and the partial and finished
    matches of the state."""

    time_of: I64
    feed: Table
    instances: Table
    held: Table
    held_finished: Table


class Tables(NamedTuple):
    """The output of a run."""

    nodes: Table
    partials: Table
    following: Table
    finished: Table
    event_mark: I32
    matches: Table
    timeouts: Table
    failures: Table
    tallies: Table
    kept_partials: Table
    kept_finished: Table
    stack: Table
    path: I32
    totals: Table
    accumulators: Table
    branches: Table
