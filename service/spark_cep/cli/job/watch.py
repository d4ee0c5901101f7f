"""``spark-cep watch``: a local page on which a running job is watched."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from spark_cep.cli.page_options import LOOPBACK, Host, OpenBrowser, Port, say_where
from spark_cep.cli.terminal import ConfigFile, PagesUrl, ResultsFrom
from spark_cep.config import load
from spark_cep.errors import needs_extra


def watch(
    config: ConfigFile,
    url: PagesUrl = None,
    start: ResultsFrom = "now",
    allow_changes: Annotated[
        bool,
        typer.Option(
            "--allow-changes",
            help="Let everyone who can open the page add, pause and resume rules, with the"
            " permissions of this command.",
        ),
    ] = False,
    host: Host = LOOPBACK,
    port: Port = 8766,
    show: OpenBrowser = True,
) -> None:
    """Watch a running job on a local web page: records and results as they come, open partial
    matches on a drawing of the automaton, throughput, lag and latency. Read-only, unless
    --allow-changes is given. While a page is open, the checkpoint is read with a Spark session of
    its own."""
    with needs_extra("play", "spark-cep watch"):
        from spark_cep.watch.page.server import serve
    from spark_cep.cli.job.tail_text import begin_of, text_line
    from spark_cep.watch.job_feeds import JobFeeds
    from spark_cep.watch.job_watch import JobWatch
    from spark_cep.watch.pages import pages_of
    from spark_cep.watch.readers import Readers
    from spark_cep.watch.rule_changes import RuleChanges

    settings = load(config)
    model = JobWatch()
    pages = pages_of(settings.observability, url)
    feeds = JobFeeds(settings, pages, model, begin_of(start), partial(text_line, colour=False))
    readers = Readers(
        {
            "records": feeds.records,
            "results": feeds.results,
            "job's pages": feeds.job_pages,
            "checkpoint": feeds.checkpoint,
        }
    )

    changes = RuleChanges(settings) if allow_changes else None
    try:
        serve(host, port, model, readers, changes, show=show, ready=say_where)
    finally:
        feeds.close()
