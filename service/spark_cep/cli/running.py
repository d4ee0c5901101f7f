"""``spark-cep run``: starts the service, hears signals, and ends the process in time."""

from __future__ import annotations

import gc
import os
import sys
import threading
from typing import TYPE_CHECKING, NoReturn

from spark_cep import __version__
from spark_cep.cli.ending import Ending
from spark_cep.cli.exit_codes import ExitCode
from spark_cep.cli.signals import StopSignals
from spark_cep.cli.terminal import ConfigFile, print_error
from spark_cep.config import Settings, load
from spark_cep.observability.logs import as_json, configure, identify, logger, new_run_id
from spark_cep.observability.standard_error import take_in_exceptions, take_in_standard_error
from spark_cep.observability.start_clock import Phase, StartClock, of_this_process

if TYPE_CHECKING:
    from spark_cep.pipeline.driver.service import Service
    from spark_cep.pipeline.spark.starting import StartingSpark

_log = logger(__name__)
_CLOSING_SECONDS = 5.0
"""The time that closing may take beyond the grace period of the batch in flight."""
_LAST_LINE_SECONDS = 1.0
"""The time that the last line may take when the process is ended at once."""
_SECOND_SIGNAL = "a second signal came"


def run(config: ConfigFile) -> None:
    """Run the service until SIGTERM or Ctrl-C; a second signal ends it immediately."""
    # Nothing of what a start imports and makes goes before its end.
    gc.disable()
    start = of_this_process()
    ending = Ending()
    signals = StopSignals(lambda: _end(ending, ExitCode.ENDED_AT_ONCE, _SECOND_SIGNAL))
    configure()
    try:
        settings = load(config)
        configure(settings.observability.log_level, settings.observability.log_format)
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
