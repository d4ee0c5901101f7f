"""One demo from start to end. Whatever happens on the way, nothing is left running."""

from __future__ import annotations

import fcntl
import os
import shutil
import string
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from confluent_kafka import KafkaException, Producer

from examples.demo.arrivals import Arrivals
from examples.demo.expected import expected
from examples.demo.feed import Encoder, Feed, producer_settings
from examples.demo.interruption import InterruptedDemo, Interruption
from examples.demo.job import Job
from examples.demo.live_page import LivePage, is_installed
from examples.demo.metrics import JobPages, Progress
from examples.demo.scenes import waves
from examples.demo.screen import Screen, Status
from examples.demo.servers import Servers, servers
from examples.demo.stream import TOPICS
from examples.demo.summary import Result, tables
from examples.embedded.process import free_ports
from spark_cep.errors import SparkCepError, StartError
from spark_cep.watch.result_line import line
from supply_chain.errors import DependencyError

_TEMPLATE = Path(__file__).with_name("config.yaml")
_RULES = Path(__file__).parents[1] / "rules"
_READY_SECONDS = 120.0
_QUIET_SECONDS = 2.0
_PATIENCE_SECONDS = 45.0
_METRICS_EVERY_SECONDS = 0.4
_POLL_SECONDS = 0.1
_LOOK_SECONDS = 1.0
_COPIED = "rules"
_MARK = ".spark-cep-demo"
_WAITING = (
    "results come when the watermark has passed their events; newer events move it, so those read"
    " last wait"
)


@dataclass(frozen=True)
class Options:
    """What the command line says."""

    folder: Path
    jars: Path
    keep: bool = False
    watch: bool = False
    verbose: bool = False


def run(options: Options, screen: Screen, interruption: Interruption) -> int:
    """The demo; returns the exit code: 0 as expected, 1 not so, 130 interrupted."""
    try:
        with _own_folder(options.folder):
            code = _guarded(options, screen, interruption)
            if code != 1 and not options.keep:
                _remove(options.folder)
    except SparkCepError as error:
        screen.error(f"error: {error}")
        return 1
    if options.keep or code == 1:
        screen.say(f"configuration, logs and data are in {options.folder}")
    return code


def _guarded(options: Options, screen: Screen, interruption: Interruption) -> int:
    try:
        return _demo(options, screen, interruption)
    except InterruptedDemo:
        screen.say("everything is stopped")
        return interruption.exit_code
    except (SparkCepError, DependencyError, KafkaException, OSError) as error:
        # What a Ctrl-C that reached the children did to them is not an error of theirs.
        time.sleep(_POLL_SECONDS)
        if interruption.requested:
            screen.say("everything is stopped")
            return interruption.exit_code
        screen.error(f"error: {error}")
        return 1


def _demo(options: Options, screen: Screen, interruption: Interruption) -> int:
    with ExitStack() as stack:
        try:
            code = _steps(options, screen, interruption, stack)
        except InterruptedDemo:
            screen.say("interrupted; stopping everything")
            raise
    if not (options.keep or options.watch):
        interruption.check()
    screen.say("registry and broker stopped")
    return code


def _steps(options: Options, screen: Screen, interruption: Interruption, stack: ExitStack) -> int:
    """Start, watch, compare, stop the job; ``stack`` stops the rest, in whatever way this ends."""
    screen.say("starting a Kafka broker and a schema registry")
    with screen.waiting("broker and registry"):
        up = stack.enter_context(servers(options.folder, options.jars, interruption))
    screen.say(f"broker at {up.broker.bootstrap}, registry at {up.registry.url}")
    encoder = Encoder(up.registry.url)
    stack.callback(encoder.close)
    with _blaming(up.check):
        _prepare(up, encoder, screen)
    interruption.check()
    (port,) = free_ports(1)
    config = _configuration(options, up, port)
    job, pages = Job(config, options.folder / "job"), JobPages(port)
    screen.say(
        "starting the job (Spark takes a while): " + " ".join(_shown(part) for part in job.command)
    )
    if options.verbose:
        for log in (up.broker.log, up.registry.log, job.log):
            screen.say(f"log: {_shown(log)}")
    stack.callback(job.stop, interruption)
    job.start()
    page = _page(config, options.folder / "page", stack, screen)
    with _blaming(up.check, job.check):
        with screen.waiting("Spark starts"):
            _until_ready(job, up, pages, interruption)
        code = _stream(up, job, pages, page, encoder, screen, interruption, options)
    began = time.monotonic()
    exit_code = job.stop(interruption)
    if options.watch:
        return code
    interruption.check()
    screen.say(f"the job stopped, exit code {exit_code}, {time.monotonic() - began:.1f} s")
    if exit_code != 0:
        raise StartError(f"the job should have stopped with exit code 0; see {job.log}")
    if options.keep:
        _keep(options, up, config, screen, interruption)
    return code


def _keep(
    options: Options, up: Servers, config: Path, screen: Screen, interruption: Interruption
) -> None:
    """Tell how to try rules of one's own, and wait for Ctrl-C."""
    for said in commands_to_try(_shown(config), _shown(options.folder / _COPIED)):
        screen.say(said)
    screen.say(
        f"broker at {up.broker.bootstrap}, registry at {up.registry.url}; both run until Ctrl-C",
        style="bold",
    )
    try:
        while True:
            up.check()
            interruption.sleep(_LOOK_SECONDS)
    except InterruptedDemo:
        # That is how it is meant to end.
        return


def commands_to_try(config: str, rules: str) -> Iterator[str]:
    """Yield commands for a rule of one's own over the events of the demo; paths in variables start
    at the configuration's folder."""
    yield f"look at what came out:   spark-cep tail --config {config} --from beginning --no-follow"
    yield f"and at what is set:      spark-cep config show --config {config} --given"
    yield f"change a rule, as:       {rules}/brute-force.yaml"
    yield f"check it:                spark-cep check {rules} --config {config}"
    yield f"run it over the topics:  spark-cep backtest --rules {rules} --config {config}"
    yield (
        "or as a job of its own:  SPARK_CEP__STATE__CHECKPOINT=own"
        " SPARK_CEP__OUTPUTS__TRANSACTIONAL_ID_PREFIX=own"
        f" spark-cep run --config {config}"
    )


def _page(config: Path, folder: Path, stack: ExitStack, screen: Screen) -> LivePage | None:
    """The live page, which gets ready while Spark starts; ``None`` where it is not installed."""
    if not is_installed():
        screen.say("for a live page beside the demo: pip install 'spark-cep[play]'")
        return None
    page = LivePage(config, folder)
    stack.callback(page.stop)
    page.start()
    return page


def _stream(
    up: Servers,
    job: Job,
    pages: JobPages,
    page: LivePage | None,
    encoder: Encoder,
    screen: Screen,
    interruption: Interruption,
    options: Options,
) -> int:
    """Produce everything, read what comes of it, and compare it; the exit code."""
    screen.say(f"the job is ready; metrics at {pages.address}/metrics")
    if page is not None and page.running:
        screen.say(f"watch it live in a browser: {page.address}", style="bold")
    elif page is not None:
        screen.say(f"the live page has ended; see {_shown(page.log)}")
    screen.say(_WAITING)
    arrivals = Arrivals(up.broker.bootstrap, up.registry.url)
    producer = Producer(producer_settings(up.broker.bootstrap))
    rules = options.folder / _COPIED

    def fed(number: int) -> Feed:
        return Feed(waves(number), producer, encoder, list(TOPICS), interruption, rules)

    running = _Watched(up, job, pages, fed(0), arrivals)
    try:
        result = _watch(running, screen, interruption)
        screen.show(*tables(result))
        screen.show("")
        code = _verdict(result, screen)
        if options.watch:
            _go_on(running, fed, screen, interruption)
        return code
    finally:
        arrivals.close()


def _go_on(
    running: _Watched, fed: Callable[[int], Feed], screen: Screen, interruption: Interruption
) -> None:
    """Produce the stream again and again, later each time, until Ctrl-C."""
    screen.say("the stream goes on, for the live page, until Ctrl-C", style="bold")
    try:
        for number in count(1):
            feed = fed(number)
            while not feed.done:
                interruption.check()
                running.job.check()
                running.servers.check()
                feed.tick(running.pages.progress() or Progress())
                for arrival in running.arrivals.poll(_POLL_SECONDS):
                    screen.arrived(line(arrival))
    except InterruptedDemo:
        # That is how it is meant to end.
        return


@dataclass(frozen=True)
class _Watched:
    """Everything that runs while the stream does."""

    servers: Servers
    job: Job
    pages: JobPages
    feed: Feed
    arrivals: Arrivals


def _watch(running: _Watched, screen: Screen, interruption: Interruption) -> Result:
    """Produce the stream and show what comes of it until nothing more is to come."""
    feed, arrivals = running.feed, running.arrivals
    items = [item for wave in waves() for item in wave.items]
    wanted = expected(waves())
    tombstones = Counter(item.topic for item in items if item.fields is None)
    progress, asked, news = Progress(), 0.0, time.monotonic()
    changed: set[str] = set()
    with screen.progress():
        while True:
            interruption.check()
            running.job.check()
            running.servers.check()
            for said in feed.tick(progress):
                screen.say(said, style="bold")
            for arrival in arrivals.poll(_POLL_SECONDS):
                screen.arrived(line(arrival))
                news = time.monotonic()
            now = time.monotonic()
            if now - asked >= _METRICS_EVERY_SECONDS:
                before, progress = progress, running.pages.progress() or progress
                asked = now
                if (before.read, before.watermark) != (progress.read, progress.watermark):
                    news = now
            screen.update(Status(feed.wave, feed.sent, progress, arrivals.counts))
            if not feed.done:
                news = now
            changed |= progress.changed
            result = Result(
                feed.sent, tombstones, progress, wanted, arrivals.counts, frozenset(changed)
            )
            patience = _PATIENCE_SECONDS if result.differences() else _QUIET_SECONDS
            if now - news > patience:
                return result


def _verdict(result: Result, screen: Screen) -> int:
    if result.changed:
        names = ", ".join(sorted(result.changed))
        screen.say(f"rules were changed on the page ({names}), so nothing is compared")
        return 0
    differences = result.differences()
    if not differences:
        screen.say(f"all {result.expected.total} results are as expected", style="bold green")
        return 0
    for difference in differences:
        screen.error(f"  {difference}")
    screen.say(f"{len(differences)} counts are not as expected", style="bold red")
    return 1


def _prepare(up: Servers, encoder: Encoder, screen: Screen) -> None:
    up.broker.create_topics(TOPICS)
    screen.say("created topics " + ", ".join(f"{name} ({n})" for name, n in TOPICS.items()))
    new = {schema for wave in waves() for schema in wave.registers}
    known = dict.fromkeys(item.schema for wave in waves() for item in wave.items)
    given = [f"{s.name} (id {encoder.register(s)})" for s in sorted(known, key=lambda s: s.name)
             if s not in new]  # fmt: skip
    screen.say("registered schemas " + ", ".join(given))


def _configuration(options: Options, up: Servers, port: int) -> Path:
    """Fill the template in."""
    folder = options.folder
    # A folder of its own: a rule is added to it.
    shutil.copytree(_RULES, folder / _COPIED)
    text = string.Template(_TEMPLATE.read_text("utf-8")).safe_substitute(
        bootstrap_servers=up.broker.bootstrap,
        registry_url=up.registry.url,
        rules=_COPIED,
        metrics_port=port,
    )
    config = folder / "config.yaml"
    config.write_text(text, "utf-8")
    return config


def _until_ready(job: Job, up: Servers, pages: JobPages, interruption: Interruption) -> None:
    deadline = time.monotonic() + _READY_SECONDS
    while not pages.ready():
        job.check()
        up.check()
        if time.monotonic() > deadline:
            raise StartError(f"the job was not ready within {_READY_SECONDS:.0f} s; see {job.log}")
        interruption.sleep(_POLL_SECONDS)


@contextmanager
def _blaming(*checks: Callable[[], None]) -> Iterator[None]:
    """An error that a child's end has caused is reported as that end."""
    try:
        yield
    except InterruptedDemo:
        raise
    except Exception:
        for check in checks:
            check()
        raise


@contextmanager
def _own_folder(folder: Path) -> Iterator[None]:
    """The folder, empty, and no second demo in it. A folder that no demo made is not touched."""
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()) and not (folder / _MARK).exists():
        raise StartError(f"{folder} holds files that are not of a demo; give another --folder")
    with (folder / _MARK).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StartError(f"another demo is running in {folder}") from None
        _wipe(folder)
        yield


def _remove(folder: Path) -> None:
    """Remove the folder; the live page's Spark, which ends by then, may remove files of its own at
    the same time."""
    while folder.exists():
        with suppress(FileNotFoundError):
            shutil.rmtree(folder)


def _wipe(folder: Path) -> None:
    for entry in folder.iterdir():
        if entry.name == _MARK:
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def _shown(path: str | Path) -> str:
    """A path relative to here where that is shorter."""
    text = str(path)
    return min(text, os.path.relpath(text), key=len) if Path(text).is_absolute() else text
