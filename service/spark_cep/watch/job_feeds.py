"""The feeds of a running job: its input and output topics, its pages, its checkpoint."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from prometheus_client.parser import text_string_to_metric_families

from spark_cep.codecs.registry.registry import Registry
from spark_cep.compiler.rule_set import compile_rule
from spark_cep.config import Settings
from spark_cep.errors import RuleSetError
from spark_cep.pattern.document.loading import LoadedRule
from spark_cep.pipeline.driver.commands.open_partials import OpenPartials, read_open
from spark_cep.pipeline.driver.commands.output_records import RecordDecoder
from spark_cep.pipeline.driver.commands.output_stream import Arrival, output_stream
from spark_cep.pipeline.driver.kafka.cluster import END, Cluster
from spark_cep.pipeline.driver.rules.job_plan import input_topics
from spark_cep.pipeline.spark.session import spark_session
from spark_cep.play.running import drawing_of
from spark_cep.watch.figures import read_figures
from spark_cep.watch.job_watch import JobPages, JobWatch, OpenState
from spark_cep.watch.newest_records import NewestRecords
from spark_cep.watch.pages import Pages
from spark_cep.watch.readers import Read
from spark_cep.watch.recent_lines import ShownLine
from spark_cep.watch.rules_of_batch import rules_of_batch
from spark_cep.watch.tokens import DrawnRule, Numbering

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_GROUP: Final = "spark-cep-watch"
_RECORDS_SECONDS: Final = 1.0
_RESULTS_SECONDS: Final = 0.5
_PAGES_SECONDS: Final = 0.5
#: Reading takes a third of a core at most.
_PAUSES: Final = 2.0
_STATE_SECONDS: Final = 0.5
_MOST_PARTIALS: Final = 1_000


class JobFeeds:
    """Opens the feeds of a job, and keeps what they bring in ``watch``.

    Args:
        settings: The job's.
        pages: The job's.
        watch: Where everything is kept.
        begin: From where on results are read: BEGINNING, END, or a time in milliseconds.
        shown: The line of a result.
    """

    def __init__(
        self,
        settings: Settings,
        pages: Pages,
        watch: JobWatch,
        begin: int,
        shown: Callable[[Arrival], str],
    ) -> None:
        # The checkpoint is read on this machine, wherever the job runs.
        spark = settings.spark.model_copy(update={"master": "local[1]"})
        self._settings = settings.model_copy(update={"spark": spark})
        self._pages = pages
        self._watch = watch
        self._begin = begin
        self._shown = shown
        self._session: SparkSession | None = None
        self._partials: OpenPartials | None = None
        self._numbering = Numbering()
        self._drawn: dict[tuple[str, int], DrawnRule] = {}
        #: The rules, and the newest batch under which one began, for which they are drawn.
        self._drawn_for: object = None

    @contextmanager
    def records(self) -> Iterator[Read]:
        """The newest records of the input topics."""
        cluster = Cluster(self._settings)
        topics = input_topics(self._settings, cluster.topics())
        consumer = cluster.consumer(_GROUP, **{"enable.partition.eof": True})
        try:
            with Registry.opened(self._settings.registry) as registry:
                newest = NewestRecords(cluster, consumer, RecordDecoder(registry), topics)

                def read() -> float:
                    self._watch.records.add(newest.read())
                    return _RECORDS_SECONDS

                yield read
        finally:
            consumer.close()

    @contextmanager
    def results(self) -> Iterator[Read]:
        """The records of the output topics as they come."""
        kinds = set(self._settings.outputs.topics.kinds().values())
        with output_stream(self._settings, kinds, self._begin) as stream:
            # What comes while no page is open is not read later.
            self._begin = END

            def read() -> float:
                self._watch.results.add(
                    ShownLine(each.kind, self._shown(each))
                    for each in stream.poll(_RESULTS_SECONDS)
                )
                return 0.0

            yield read

    @contextmanager
    def job_pages(self) -> Iterator[Read]:
        """The job's own pages: its state, rules and metrics."""

        def read() -> float:
            began = time.monotonic()
            rules = self._pages.rules_page()
            figures = read_figures(text_string_to_metric_families(self._pages.metrics()))
            note = rules.time.get("note")
            pages = JobPages(self._pages.state(), rules.rules, figures, note)
            self._watch.took_pages(time.monotonic(), pages)
            return _pause(began, _PAGES_SECONDS)

        yield read

    @contextmanager
    def checkpoint(self) -> Iterator[Read]:
        """The open partial matches, and the drawings of the rules."""
        if self._session is None:
            self._draw(None)
            self._watch.open = OpenState(drawn=self._drawn)
            self._session = spark_session(self._settings)
        session = self._session

        def read() -> float:
            began, is_first = time.monotonic(), self._partials is None
            self._read_state(session)
            # The first one takes longer than any other.
            return _STATE_SECONDS if is_first else _pause(began, _STATE_SECONDS)

        yield read

    def _read_state(self, session: SparkSession) -> None:
        found = read_open(self._settings, session, _MOST_PARTIALS, self._partials)
        if found is self._partials:
            return
        self._partials = found
        self._draw(found)
        tokens = self._numbering.tokens(found.partials, self._drawn)
        self._watch.open = OpenState(found.batch, tokens, self._drawn, found.is_all)

    def _draw(self, found: OpenPartials | None) -> None:
        """Draw the rules, where they are others than before."""
        rows = self._watch.pages.rules
        partials = () if found is None else found.partials
        held = {(one.rule.id, one.rule.version) for _, one in partials}
        since = [int(row.get("since_batch") or 0) for row in rows]
        known = {(row["id"], row.get("version")) for row in rows}
        drawn_for = known | held, max(since, default=0)
        if self._drawn_for == drawn_for:
            return
        self._drawn_for = drawn_for
        # The page may know a batch that was committed since.
        batch = None if found is None else max([found.batch, *since])
        rules = rules_of_batch(self._settings, batch)
        self._drawn = {(each.rule.id, each.rule.version): _drawn_rule(each) for each in rules}

    def close(self) -> None:
        """Stop what the feeds have started."""
        if self._session is not None:
            self._session.stop()


def _pause(began: float, least: float) -> float:
    """The seconds until the next reading, after one that began then."""
    return max(_PAUSES * (time.monotonic() - began), least)


def _drawn_rule(loaded: LoadedRule) -> DrawnRule:
    rule = loaded.rule
    steps: tuple[str, ...] = ()
    # One that needs the types of events to be compiled is shown with the numbers of its steps.
    with suppress(RuleSetError):
        steps = compile_rule(rule).steps
    return DrawnRule(rule.id, rule.version, drawing_of(rule), steps, loaded.text)
