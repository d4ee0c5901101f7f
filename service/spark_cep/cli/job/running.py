"""``spark-cep run``: starts the service, hears signals, and ends the process in time."""

from __future__ import annotations

import gc
import os
import sys
import threading
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, NoReturn

import typer

from spark_cep import __version__
from spark_cep.cli.ending import Ending
from spark_cep.cli.exit_codes import ExitCode
from spark_cep.cli.job.running_over_files import run_over_files
from spark_cep.cli.job.signals import StopSignals
from spark_cep.cli.terminal import (
    Verbosity,
    configure_logs,
    out,
    print_error,
    show_cursor,
    verbosity,
)
from spark_cep.cli.trying.events import GivenEventTimes, GivenSchemas
from spark_cep.config import Settings, load
from spark_cep.observability.logs import as_json, configure, identify, logger, new_run_id
from spark_cep.observability.standard_error import take_in_exceptions, take_in_standard_error
from spark_cep.observability.start_clock import Phase, StartClock, of_this_process

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from spark_cep.observability.health import Health
    from spark_cep.pipeline.driver.service import Service
    from spark_cep.pipeline.spark.starting import StartingSpark

_log = logger(__name__)
_OVER_FILES: Final = "Over files"
_CLOSING_SECONDS = 5.0
"""The time that closing may take beyond the grace period of the batch in flight."""
_LAST_LINE_SECONDS = 1.0
"""The time that the last line may take when the process is ended at once."""
_SECOND_SIGNAL = "a second signal came"


def run(
    config: Annotated[
        Path | None,
        typer.Option("--config", "-c", help="The settings, a YAML file.", dir_okay=False),
    ] = None,
    files: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            "-i",
            metavar="[INPUT=]FILE|FOLDER",
            help="Read these files instead, in this process, and show the results. Kafka, Spark"
            " and the registry are not required; nothing is written.",
            rich_help_panel=_OVER_FILES,
        ),
    ] = None,
    rules: Annotated[
        Path | None,
        typer.Option(
            "--rules",
            "-r",
            help="A rule file, or a folder of rule files; default: the rules of --config.",
            rich_help_panel=_OVER_FILES,
        ),
    ] = None,
    schema: GivenSchemas = None,
    event_time: GivenEventTimes = None,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print one JSON object per line.", rich_help_panel=_OVER_FILES),
    ] = False,
) -> None:
    """Run the job until SIGTERM or Ctrl-C; a second signal ends it immediately. With --input, run
    the rules over files instead, for a first look."""
    if files:
        run_over_files(files, config, rules, schema, event_time, as_json=as_json)
        return
    if rules or schema or event_time or as_json:
        raise typer.BadParameter("--rules, --schema, --event-time and --json go with --input")
    if config is None:
        raise typer.BadParameter("give --config, or --input to run over files")
    _run_service(config)


def _run_service(config: Path) -> None:
    # Nothing of what a start imports and makes goes before its end.
    gc.disable()
    start = of_this_process()
    ending = Ending()
    signals = StopSignals(lambda: _end(ending, ExitCode.ENDED_AT_ONCE, _SECOND_SIGNAL))
    configure()
    try:
        settings = load(config)
        configure_logs(settings.observability)
        run_id = new_run_id()
        identify(run_id)
        # Java and Spark, which come next, take seconds.
        _log.info("starting", version=__version__, config=str(config))
        _run(settings, run_id, start, ending, signals)
    except Exception as error:  # noqa: BLE001  reported, whatever it is
        if not as_json():
            print_error(error)
        sys.exit(ending.failed(error))


def _end(ending: Ending, code: ExitCode, reason: str) -> NoReturn:
    """End this process, whatever it does. Its Java process ends with it."""
    # In a thread: this one may hold the log's lock, or nobody may read what is written.
    last_line = threading.Thread(target=ending.log, args=(code, reason), daemon=True)
    last_line.start()
    last_line.join(_LAST_LINE_SECONDS)
    show_cursor()
    # Not Python's own exit: it would wait for threads and report their exceptions.
    os._exit(code)


def _run(
    settings: Settings, run_id: str, start: StartClock, ending: Ending, signals: StopSignals
) -> None:
    # Spark is slow to import, and `check` does without it. What is not needed to launch Java waits.
    from spark_cep.pipeline.driver.lifecycle.scratch import scratch_folder
    from spark_cep.pipeline.spark.jvm import end_jvm
    from spark_cep.pipeline.spark.starting import StartingSpark

    try:
        with scratch_folder(settings) as scratch:
            # First of all, since nothing else takes as long, and before the first thread.
            spark = StartingSpark(settings, scratch, start.meanwhile)
            # What is for people stands on standard error itself.
            (take_in_standard_error if as_json() else take_in_exceptions)()
            service = _serve(settings, run_id, start, spark, ending, signals)
    finally:
        end_jvm()
    ending.done("stopped as asked" if service.told_to_stop else "the end of the input is reached")


def _serve(
    settings: Settings,
    run_id: str,
    start: StartClock,
    spark: StartingSpark,
    ending: Ending,
    signals: StopSignals,
) -> Service:
    from spark_cep.observability.access import access_to
    from spark_cep.observability.health import Health, HealthServer
    from spark_cep.observability.metrics import Metrics
    from spark_cep.pipeline.driver.service import Service
    from spark_cep.pipeline.spark.jvm import end_jvm, kill_jvm, raise_if_jvm_ended

    observability = settings.observability
    metrics = Metrics(observability.max_rule_labels)
    health = Health(observability.stall_limit, pages=observability.pages_url)
    service = Service(settings, metrics, health, spark=spark, start=start, run_id=run_id)
    start.done(Phase.IMPORTS)
    gc.freeze()
    gc.enable()
    ending.last_batch = lambda: service.last_batch
    server: HealthServer | None = None
    if observability.metrics_port:
        server = HealthServer(
            observability.metrics_host,
            observability.metrics_port,
            health,
            metrics.registry,
            service.rules_page,
            access_to(observability),
        )
        server.start()

    def work() -> None:
        try:
            service.run()
        except Exception as error:
            raise_if_jvm_ended(error)
            raise
        finally:
            end_jvm()
            # Last, so that probes are answered until the end.
            if server is not None:
                server.stop()

    def end(code: ExitCode, reason: str) -> None:
        kill_jvm()
        _end(ending, code, reason)

    signals.at_once = lambda: end(ExitCode.ENDED_AT_ONCE, _SECOND_SIGNAL)
    with _live_view(metrics.registry, health):
        signals.run(
            work,
            stop=service.stop,
            patience_seconds=settings.lifecycle.stop_grace / 1000 + _CLOSING_SECONDS,
            too_late=lambda: end(
                ExitCode.GRACE_RAN_OUT,
                "the process did not end within lifecycle.stop_grace and"
                f" {_CLOSING_SECONDS:g} s for closing",
            ),
        )
    return service


def _live_view(registry: CollectorRegistry, health: Health) -> AbstractContextManager[None]:
    """The view of the job below its log, where that is on a terminal and people want it."""
    from spark_cep.cli.job.live_view import LiveView, shown

    on_terminal = out.is_terminal and not out.is_dumb_terminal and not as_json()
    if not on_terminal or verbosity.get() is not Verbosity.NORMAL:
        return nullcontext()
    return shown(LiveView(registry, lambda: health.readiness().reason), out)
