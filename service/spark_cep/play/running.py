"""Runs a trial: by the test kit, as the test case that it is, and by the account of each key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from spark_cep.cases.document.values import relative
from spark_cep.cases.running.case_run import CaseRun, run_case
from spark_cep.cases.running.found import micros_of
from spark_cep.compiler.explain.drawing import Drawing, draw
from spark_cep.compiler.explain.row_pattern_drawing import draw_program
from spark_cep.compiler.row_pattern import plan_query
from spark_cep.compiler.steps.lowering import lower
from spark_cep.errors import Problem, RuleSetError, printable
from spark_cep.pattern.document.loading import LoadedRule
from spark_cep.pattern.tree import Rule
from spark_cep.play.frames import Frames
from spark_cep.play.reading import Schemas, case_of, chosen, rules_of, suite_of
from spark_cep.play.spans import Spans
from spark_cep.play.trial import MOST_KEYS, Trial
from spark_cep.play.view import KeyMoment, Played, RowResult, TrialProblem
from spark_cep.testkit.sent_types import columns_of
from spark_cep.why.account import Account
from spark_cep.why.text import verdict_lines


def played(trial: Trial) -> Played:
    """The result of a trial. A rule with problems has none: they are told by
    :func:`spark_cep.language.diagnostics.diagnostics`."""
    try:
        rules = rules_of(trial)
    except RuleSetError:
        return Played()
    loaded = chosen(trial, rules)
    if loaded is None:
        return Played()
    found = Played(
        tuple(rules.by_id), loaded.rule.id, drawing_of(loaded.rule), tuple(columns_of(loaded.rule))
    )
    run, problems = case_run(trial, loaded)
    if run is None:
        return replace(found, problems=tuple(problems))
    return _result(trial, found, run, problems)


def drawing_of(rule: Rule) -> Drawing:
    """The automaton of a rule, or the program of one in SQL."""
    if rule.query is None:
        return draw(lower(rule))
    return draw_program(plan_query(rule.query), f"{rule.id} version {rule.version}")


def case_run(trial: Trial, loaded: LoadedRule) -> tuple[CaseRun | None, list[TrialProblem]]:
    """The run of a trial as a test case, as far as it could be run; and what is wrong."""
    schemas = Schemas.of(trial.schemas)
    if schemas.problems:
        return None, list(schemas.problems)
    case, problems = case_of(trial, schemas)
    if case is None:
        return None, problems
    if not loaded.rule.enabled:
        help_ = "leave `enabled: false` out to try it"
        return None, [TrialProblem(f"rule {loaded.rule.id} is switched off", help=help_)]
    try:
        run = run_case(suite_of(trial, loaded, schemas, case), case)
    except RuleSetError as error:
        return None, [TrialProblem(each.message, help=each.allowed) for each in error.problems]
    return run, [] if run.problem is None else [_of_row(run.problem)]


def _result(trial: Trial, found: Played, run: CaseRun, problems: Sequence[TrialProblem]) -> Played:
    assert found.drawn is not None
    kit, start = run.kit, trial.start * 1_000
    every = kit.keys(rule=found.rule)
    keys = every[:MOST_KEYS]
    accounts = [kit.why(key, rule=found.rule).account for key in keys]
    rows = dict(enumerate(trial.event_rows))
    frames = Frames(start, found.drawn, run.events, rows, _clocks(run)).of(accounts)
    notes = [printable(f"{each.message}: {each.allowed}") for each in kit.warnings]
    if len(every) > len(keys):
        notes.append(f"the first {len(keys)} of {len(every)} keys are shown")
    return replace(
        found,
        frames=tuple(frames),
        spans=tuple(Spans(run, frames, rows).all_spans()),
        rows=dict(_rows(run, frames, rows)),
        verdicts={each.key: _verdict(each) for each in accounts},
        problems=tuple(problems),
        notes=tuple(notes),
        now=micros_of(kit.now),
    )


def _clocks(run: CaseRun) -> dict[int, int]:
    """By event, the clock when it came: the time of the newest event by then."""
    clocks, newest = {}, run.start
    for event in run.events:
        newest = max(newest, micros_of(event.time))
        clocks[event.number] = newest
    return clocks


def _rows(
    run: CaseRun, frames: Sequence[KeyMoment], rows: Mapping[int, int]
) -> Iterator[tuple[int, RowResult]]:
    by_row = {frame.row: place for place, frame in enumerate(frames) if frame.row is not None}
    letters = {each.event.number: each for each in run.kit.dead_letters}
    for event in run.events:
        row = rows[event.number]
        place = by_row.get(row)
        frame = None if place is None else frames[place]
        state = "of no key that is shown" if frame is None else frame.state
        if event.number in letters:
            state = f"dead letter: {letters[event.number].reason}"
        time = micros_of(event.time)
        key = None if frame is None else frame.key
        yield row, RowResult(state, place, key, relative(time, run.start), time)


def _verdict(account: Account) -> tuple[str, ...]:
    return (*verdict_lines(account), *account.failures)


def _of_row(problem: Problem) -> TrialProblem:
    """The problem of a step, whose line is its row."""
    row = None if problem.span is None else problem.span.line - 1
    return TrialProblem(problem.message, row, help=problem.allowed)
