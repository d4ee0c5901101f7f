"""``spark-cep why``: what the events of a key did to the partial matches of a rule, and why."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spark_cep.cli.terminal import AsJson, compilation_shown, note, out
from spark_cep.cli.trying.events import (
    AtEnd,
    Before,
    Disorder,
    GivenEventTimes,
    GivenSchemas,
    Start,
    TimeAtEnd,
    allowed_disorder,
    recorded_events,
    rules_to_run,
)
from spark_cep.documents.nearest import listed
from spark_cep.errors import ConfigurationError

if TYPE_CHECKING:
    from spark_cep.config import Settings
    from spark_cep.pattern.document.loading import LoadedRule
    from spark_cep.why.recorded import Replacement

_CONFIG = typer.Option("--config", "-c", help="The settings of the job.", dir_okay=False)


def why(
    key: Annotated[
        str | None,
        typer.Option(
            "--key", "-k", help="The key, as shown in results; omit it for a rule without a key."
        ),
    ] = None,
    rule: Annotated[
        str | None,
        typer.Option("--rule", "-r", metavar="RULE", help="The id of the rule, or its file."),
    ] = None,
    rules: Annotated[
        Path | None,
        typer.Option(
            "--rules",
            help="A rule file, or a folder of rule files; default: the rules of the settings.",
        ),
    ] = None,
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            "-i",
            metavar="[INPUT=]FILE|FOLDER|TOPIC",
            help="Avro, JSON lines, CSV or Parquet files with events, or a topic of the settings.",
        ),
    ] = None,
    config: Annotated[Path | None, _CONFIG] = None,
    schema: GivenSchemas = None,
    event_time: GivenEventTimes = None,
    start: Start = None,
    end: Before = None,
    disorder: Disorder = None,
    at_end: AtEnd = TimeAtEnd.WAIT,
    replaced_by: Annotated[
        Path | None,
        typer.Option(
            "--replaced-by",
            metavar="FILE",
            help="Another version of the rule, which replaces it at --at.",
            dir_okay=False,
        ),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option("--at", metavar="TIME", help="Event time of the replacement (ISO 8601, UTC)."),
    ] = None,
    most: Annotated[
        int,
        typer.Option("--last", "-n", min=1, help="Show at most this many events, the last ones."),
    ] = 200,
    still_open: Annotated[
        bool,
        typer.Option(
            "--open",
            help="Show the open partial matches of the running job instead, from its checkpoint.",
        ),
    ] = False,
    checkpoint: Annotated[
        str | None,
        typer.Option(
            "--checkpoint",
            help="With --open: read this checkpoint instead of that of the settings.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show why a rule did or did not match the events of a key: what each event did to each partial
    match, which part of a condition was not true, and why partial matches ended. Runs the rule with
    the decoder and matcher of the job, without Spark."""
    from spark_cep.config import load

    settings = None if config is None else load(config)
    if still_open or checkpoint is not None:
        _show_open(settings, checkpoint, key, (rule, rules), as_json=as_json)
        return

    from spark_cep.backtest.replay import run_settings
    from spark_cep.recorded.opening import window_of
    from spark_cep.rules.rule_set import RuleSet
    from spark_cep.why.answer import Answer
    from spark_cep.why.recorded import accounts_of

    chosen = _rule(rule, rules, settings)
    if chosen.rule.key and key is None:
        raise ConfigurationError(f"rule {chosen.rule.id} has a key: say which with --key")
    if key is not None and not chosen.rule.key:
        raise ConfigurationError(f"rule {chosen.rule.id} has no key: leave --key out")
    replacement = _replacement(chosen, replaced_by, at)
    with ExitStack() as stack, compilation_shown():
        of_rule = RuleSet((chosen,))
        events = recorded_events(
            of_rule, inputs or [], settings, schema, event_time, window_of(start, end), stack
        )
        for each in events.notes:
            note(each)
        ms = None if disorder is None else allowed_disorder(disorder)
        accounts = accounts_of(
            of_rule, key, events, run_settings(settings, ms), at_end.value, replacement
        )
    answers = [Answer(each) for each in accounts]
    if as_json:
        document = answers[0].data()
        if replacement is not None:
            document["replaced_by"] = answers[-1].data()
        typer.echo(json.dumps(document, indent=2))
    else:
        typer.echo("\n\n".join(each.text(most) for each in answers))


def _replacement(
    chosen: LoadedRule, replaced_by: Path | None, at: str | None
) -> Replacement | None:
    """The version that replaces the rule, where one is given."""
    from spark_cep.recorded.opening import instant_of
    from spark_cep.why.recorded import Replacement

    if replaced_by is None and at is None:
        return None
    if replaced_by is None or at is None:
        raise ConfigurationError(
            "--replaced-by FILE and --at TIME go together: the other version of the rule, and the"
            " event time at which it takes its place"
        )
    return Replacement(_rule(chosen.rule.id, replaced_by, None), instant_of(at, "--at"))


def _show_open(
    settings: Settings | None,
    checkpoint: str | None,
    key: str | None,
    of: tuple[str | None, Path | None],
    *,
    as_json: bool,
) -> None:
    """Print the open partial matches of a key, as of the last committed batch. ``of``: of one rule,
    and where rules are."""
    from spark_cep.pipeline.spark.starting import StartingSpark

    if settings is None:
        raise ConfigurationError("--open needs the settings of the job: give --config")
    settings = settings.with_checkpoint(checkpoint)
    # It starts while the rest is imported, and ends with this process, behind the answer.
    spark = StartingSpark(settings, None, short=True)
    from spark_cep.cli.job import state_text
    from spark_cep.pipeline.driver.commands.state_report import read_key
    from spark_cep.why.times import instant_text

    report = read_key(settings, key, spark.session)
    partials, (rule, rules) = report.partials, of
    if rule is not None:
        # One that drains is not among the rules of the settings any more.
        drains = any(each.rule == rule for each in partials)
        wanted = rule if drains else _rule(rule, rules, settings).rule.id
        partials = [each for each in partials if each.rule == wanted]
    plans = state_text.plans_of(settings, report.batch)
    if as_json:
        found = [state_text.partial_data(each, plans) for each in partials]
        watermark = state_text.moment(report.watermark)
        typer.echo(json.dumps({"watermark": watermark, "partial_matches": found}, indent=2))
    else:
        known = state_text.moment(report.watermark) is not None
        watermark = instant_text(report.watermark) if known else "not yet"
        out.print(f"watermark  {watermark}", markup=False, highlight=False)
        state_text.show_of_key(partials, plans, out, key)


def _rule(rule: str | None, rules: Path | None, settings: Settings | None) -> LoadedRule:
    """The rule that is meant: by its id, or the only one of a file."""
    if rule is not None and rules is None and (file := Path(rule)).is_file():
        rule, rules = None, file
    elif rule is not None and rules is None and settings is None:
        raise ConfigurationError(
            f"--rule {rule}: there is no such file; if it is the id of a rule, give --rules or"
            " --config, too"
        )
    from spark_cep.cli.authoring.checking import rule_named

    known = rules_to_run(rules, settings)
    if rule is not None:
        return rule_named(known, rule)
    if len(known.loaded) != 1:
        raise ConfigurationError(f"say which rule with --rule: {listed(list(known.by_id))}")
    return known.loaded[0]
