"""``spark-cep rules``: what it asks a running job, and what it reads in a checkpoint."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from spark_cep.cli.main import app
from spark_cep.cli.rules.wait import Wanted, wait_for
from spark_cep.config import Observability
from spark_cep.errors import PagesUnavailableError, Problem, Span
from spark_cep.observability.access import access_to
from spark_cep.observability.health import Health, HealthServer
from spark_cep.observability.metrics import Metrics
from spark_cep.pattern.document.loading import load_rules
from spark_cep.pipeline.driver.checkpoint.local_files import LocalFiles
from spark_cep.pipeline.driver.rules.rule_log import LoggedRules, RuleLog
from spark_cep.rules.rule_set import RuleSet, assemble
from tests.certificates import Authority

SECRET = "pa:ss wörd"
REASON = Problem(
    "unknown key `patern`", "bad.yaml", Span(3, 1, 6), "patern: []", rule="bad"
).render()


def row(rule: str, version: int = 1, state: str = "active", **more: Any) -> dict[str, Any]:
    """A rule of ``/rules``."""
    batch = 7 if state in ("active", "scheduled") else None
    shown = {"id": rule, "version": version, "state": state, "fingerprint": None}
    return {**shown, "since_batch": batch, "partial_matches": 12, **more}


def rejected(rule: str | None, reason: str = REASON) -> dict[str, Any]:
    """What of the source does not run."""
    return {"id": rule, "state": "rejected", "source": "bad.yaml", "reason": reason}


class Job:
    """The pages of a job, and settings that name them."""

    def __init__(self, folder: Path, *, ready: bool = True, **observability: Any) -> None:
        self.rules: list[dict[str, Any]] = []
        self.note: str | None = None
        self.folder = folder
        self.health = Health(60_000)
        if ready:
            self.health.ready()
        access = access_to(Observability.model_validate(observability))
        self._server = HealthServer(
            "127.0.0.1", 0, self.health, Metrics().registry, self.page, access
        )
        self.port = self._server.port
        self._server.start()
        self.config = settings(folder, metrics_port=self.port, **observability)

    def page(self) -> dict[str, Any]:
        """What ``/rules`` says."""
        return {"time": {"note": self.note}, "rules": self.rules}

    def stop(self) -> None:
        """Nobody listens any more."""
        self._server.stop()


def settings(folder: Path, refresh: str = "100 ms", **observability: Any) -> Path:
    """The file of a job's settings."""
    document = {
        "kafka": {"bootstrap_servers": "localhost:9092"},
        "inputs": {"i": {"topics": ["t"]}},
        "registry": {"url": "http://localhost"},
        "state": {"checkpoint": str(folder / "checkpoint")},
        "rules": {"folder": str(folder), "refresh_interval": refresh},
        "observability": {key: _plain(value) for key, value in observability.items()},
    }
    file = folder / "config.yaml"
    file.write_text(yaml.safe_dump(document), "utf-8")
    return file


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, Path) else value


Start = Callable[..., Job]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts jobs' pages, and stops them all."""
    jobs: list[Job] = []

    def begin(**options: Any) -> Job:
        jobs.append(Job(tmp_path, **options))
        return jobs[-1]

    yield begin
    for job in jobs:
        job.stop()


def rules(command: str, *arguments: str | Path) -> Result:
    """``spark-cep rules …``."""
    return CliRunner().invoke(app, ["rules", command, *map(str, arguments)])


def test_list(start: Start) -> None:
    """A table of what runs, then the reasons of what does not; the settings say that the job
    listens on all addresses."""
    job = start()
    paused = row("off", state="paused", reason="anna: noisy")
    new = row("new[b]", state="accepted", since_batch=None)
    job.rules = [row("ab", 3), new, paused, rejected("bad")]
    found = rules("list", "-c", job.config)
    assert found.exit_code == 0, found.stderr
    lines = [line.split() for line in found.stdout.splitlines()]
    assert ["id", "version", "state", "since", "batch", "partial", "matches", "reason"] in lines
    assert ["ab", "3", "active", "7", "12", "-"] in lines
    assert ["new[b]", "1", "accepted", "-", "12", "-"] in lines
    assert ["off", "1", "paused", "-", "12", "anna:", "noisy"] in lines
    assert found.stdout.rstrip().endswith(REASON)
    as_json = rules("list", "-c", job.config, "--json")
    assert json.loads(as_json.stdout) == job.page()
    assert "Event time" not in found.stdout
    job.note = "2 events wait for the watermark [t/0]"
    told = rules("list", "-c", job.config).stdout
    assert told.rstrip().endswith("Event time\n2 events wait for the watermark [t/0]")


def test_list_with_login_and_tls(start: Start, tmp_path: Path) -> None:
    """The settings' own certificate is trusted, though it has another name and an issuer of its
    own, and no other is; the settings' login is given."""
    authority = Authority(tmp_path / "authority")
    own = authority.identity("pages", hosts=["elsewhere.example"])
    login = {"username": "ops", "password": SECRET}
    tls: dict[str, Any] = {"ssl_certificate_file": own.certificate, "ssl_key_file": own.key}
    job = start(**login, **tls)
    job.rules = [row("ab")]
    assert json.loads(rules("list", "-c", job.config, "--json").stdout) == job.page()

    other = authority.identity("other")
    config = settings(
        tmp_path,
        metrics_port=job.port,
        ssl_certificate_file=other.certificate,
        ssl_key_file=other.key,
        **login,
    )
    refused = rules("list", "-c", config)
    assert refused.exit_code == 1
    assert "its certificate is not trusted" in refused.stderr

    config = settings(tmp_path, metrics_port=job.port, username="ops", password="other", **tls)
    refused = rules("list", "-c", config)
    assert refused.exit_code == 1
    assert "/rules: the job refuses name and password" in refused.stderr


def test_list_elsewhere(start: Start, tmp_path: Path) -> None:
    """``--url`` wins over the settings."""
    job = start()
    job.rules = [row("ab")]
    config = settings(tmp_path, metrics_port=0)
    for url in (f"http://localhost:{job.port}", f"http://127.0.0.1:{job.port}/rules"):
        found = rules("list", "-c", config, "--json", "--url", url)
        assert json.loads(found.stdout) == job.page()
    none = rules("list", "-c", config)
    assert (none.exit_code, none.stderr) == (
        3, "error: observability.metrics_port is 0: the job has no pages\n"
    )  # fmt: skip
    for url in ("localhost:1", "ftp://a", "http://", "http://a:b@c", "http://a:x"):
        wrong = rules("list", "-c", config, "--url", url)
        assert wrong.exit_code == 3
        assert f"--url {url}: allowed is http://HOST:PORT" in wrong.stderr
    foreign = rules("list", "-c", config, "--url", f"http://localhost:{job.port}/other")
    assert foreign.exit_code == 1
    assert "this is not the page of a spark-cep job (status 404)" in foreign.stderr


def test_nobody_listens(start: Start) -> None:
    """The address that was asked is named."""
    job = start()
    job.stop()
    found = rules("list", "-c", job.config)
    assert found.exit_code == 1
    assert f"http://127.0.0.1:{job.port}: no answer: Connection refused" in found.stderr


def test_wait_until_a_version_is_active(start: Start) -> None:
    """Not before: the old version, an accepted one and an old rejection are passed by."""
    job = start()
    steps = (
        [row("ab", 1), rejected("ab")],
        [row("ab", 2, "accepted")],
        [row("ab", 2), rejected("other")],
    )
    job.rules = steps[0]
    thread = threading.Thread(target=_play, args=(job, steps))
    thread.start()
    began = time.monotonic()
    found = rules("wait", "-c", job.config, "ab", "--version", "2")
    thread.join()
    assert (found.exit_code, found.stdout) == (0, "ab version 2 is active since batch 7\n")
    assert time.monotonic() - began > 0.2


def _play(job: Job, steps: tuple[list[dict[str, Any]], ...]) -> None:
    for step in steps:
        job.rules = step
        time.sleep(0.15)


def test_wait_ends_at_a_rejection(start: Start) -> None:
    """Long before the time-out, with its reason and the code of wrong rules; also where the old
    version runs on and no version was asked for."""
    job = start()
    job.rules = [row("bad"), rejected("bad")]
    for version in ([], ["--version", "2"]):
        began = time.monotonic()
        found = rules("wait", "-c", job.config, "bad", *version, "--timeout", "1 hour")
        assert (found.exit_code, found.stderr) == (4, f"{REASON}\n")
        assert time.monotonic() - began < 10
    found = rules("wait", "-c", job.config, "bad", "--version", "1")
    assert found.exit_code == 0, "this version runs, whatever else is rejected"


def test_wait_times_out(start: Start) -> None:
    """It says what there is instead, and what is rejected without a rule's name."""
    job = start()
    job.rules = [row("ab", 1), rejected(None, "bad.yaml:1:1: no YAML")]
    found = rules("wait", "-c", job.config, "ab", "--version", "2", "--timeout", "200 ms")
    assert (found.exit_code, found.stderr) == (
        1,
        "ab version 2 is not active after 200 ms: version 1 is active\n\nbad.yaml:1:1: no YAML\n",
    )
    job.rules = []
    found = rules("wait", "-c", job.config, "ab", "--timeout", "200 ms")
    assert found.stderr == "ab is not active after 200 ms: the job has no such rule\n"
    wrong = rules("wait", "-c", job.config, "ab", "--timeout", "5")
    assert wrong.exit_code == 2
    job.stop()
    away = rules("wait", "-c", job.config, "ab", "--timeout", "200 ms")
    assert away.exit_code == 1
    assert "no answer: Connection refused" in away.stderr


def test_wait_until_gone(start: Start) -> None:
    """Disabled or not there; a job that starts knows no rules, which says nothing."""
    job = start(ready=False)
    gone = "wait", "-c", job.config, "ab", "--gone", "--timeout", "200 ms"
    assert rules(*gone).exit_code == 1
    job.health.ready()
    assert rules(*gone).stdout == "ab is gone\n"
    job.rules = [row("ab", state="disabled"), rejected("ab")]
    assert rules(*gone).exit_code == 0
    job.rules = [row("ab", 2)]
    found = rules(*gone)
    assert (found.exit_code, found.stderr) == (
        1, "ab is not gone after 200 ms: version 2 is active\n"
    )  # fmt: skip
    assert rules(*gone, "--version", "1").exit_code == 0


class Scripted:
    """Pages that say one thing after the other, in a time that only waiting moves."""

    def __init__(self, *answers: list[dict[str, Any]] | None) -> None:
        self._answers = list(answers)
        self.now = 0.0

    def rules(self) -> list[dict[str, Any]]:
        """The next answer, the last one for ever."""
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if answer is None:
            raise PagesUnavailableError("away")
        return answer

    def ready(self) -> bool:
        """It is."""
        return True

    def wait(self, limit: int = 60_000, refresh: int | None = 1_000) -> tuple[bool, float]:
        """Whether rule ``ab`` came in version 2, and after how many seconds."""

        def sleep(seconds: float) -> None:
            self.now += seconds

        end = wait_for(self, Wanted("ab", 2), limit, refresh, lambda: self.now, sleep)
        return end.ok, self.now


def test_when_waiting_ends() -> None:
    """What was rejected at first counts after three looks of the job, anything new at once, and
    with no looks to come all of it; a job that is unavailable is asked again."""
    old, new = [rejected("ab", "old")], [rejected("ab", "new")]
    assert Scripted(old).wait() == (False, 3.0)
    assert Scripted(old).wait(refresh=None) == (False, 0.0)
    assert Scripted(old, new).wait() == (False, 0.5)
    assert Scripted([], old).wait() == (False, 0.5)
    assert Scripted(old, [row("ab", 2)]).wait() == (True, 0.5)
    assert Scripted(old, [row("ab", 2, "scheduled")]).wait() == (True, 0.5)
    assert Scripted(None, None, [row("ab", 2)]).wait() == (True, 1.0)
    assert Scripted([row("ab", 2, "paused")]).wait(limit=1_200) == (False, 1.2)
    with pytest.raises(PagesUnavailableError):
        Scripted(None).wait(limit=1_000)


class WrittenFiles(LocalFiles):
    """What a log needs of a checkpoint, on disk."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        (folder / "rules").mkdir(parents=True)

    def write(self, name: str, text: str) -> None:
        """As Spark does, with a checksum beside it."""
        file = Path(self.location, name)
        file.write_text(text, "utf-8")
        file.with_name(f".{file.name}.crc").write_bytes(b"crc\0")

    def delete(self, name: str) -> None:
        """By its whole name."""
        Path(name).unlink()


def rule_set(*texts: str) -> RuleSet:
    """``id version [more]`` for each rule."""
    made = []
    for text in texts:
        rule, version, *more = text.split()
        off = "enabled: false\n" if "off" in more else ""
        other = 2 if "other" in more else 1
        content = (
            f"id: {rule}\nversion: {version}\n{off}key: k\nwithin: {other} s\n"
            f"pattern: [{{step: a, where: n = {version}}}]\n"
        )
        made += load_rules(content, f"{rule}.yaml")
    return assemble(made)


@pytest.fixture
def log(tmp_path: Path) -> RuleLog:
    """The log of a checkpoint with four sets; the job has begun the last one twice."""
    files: Any = WrittenFiles(tmp_path / "checkpoint")
    log = RuleLog(files)
    log.write(LoggedRules(0, 1, rule_set("a 1", "b 1")))
    log.write(LoggedRules(9, 2, rule_set("a 2", "b 1", "c 1")))
    log.write(LoggedRules(10, 3, rule_set("a 2 other", "c 1 off", "d 1 off")))
    log.write(LoggedRules(25, 4, rule_set("a 3")))
    log.write(LoggedRules(25, 4, rule_set("a 3", "e 1"), attempts=2))
    return log


def test_history(log: RuleLog, tmp_path: Path) -> None:
    """What came, changed and went with each set, of the first one all; what was logged last of a
    set counts."""
    config = settings(tmp_path)
    found = rules("history", "-c", config)
    assert found.exit_code == 0, found.stderr
    lines = [" ".join(line.split()) for line in found.stdout.splitlines()]
    assert lines[2:] == [
        "set first batch rules came changed went",
        "1 0 2 a 1, b 1 - -",
        "2 9 3 c 1 a 1 → 2 -",
        "3 10 3 d 1 (off) a 2 (text), c 1 (off) b 1",
        "4 25 2 e 1 a 2 → 3 c 1, d 1",
    ]
    sets = json.loads(rules("history", "-c", config, "--json").stdout)
    assert [(each["number"], each["first_batch"]) for each in sets] == [
        (1, 0), (2, 9), (3, 10), (4, 25)
    ]  # fmt: skip
    assert sets[1]["changes"] == {
        "came": [{"id": "c", "version": 1, "enabled": True}],
        "changed": [{"id": "a", "from_version": 1, "version": 2, "enabled": True}],
        "went": [],
        "paused": [],
        "resumed": [],
        "draining": [],
        "drained": [],
    }


def test_history_whose_beginning_is_gone(log: RuleLog, tmp_path: Path) -> None:
    """Nothing is said of what changed with the oldest set: nobody knows."""
    (tmp_path / "checkpoint" / "rules" / "0").unlink()
    config = settings(tmp_path)
    oldest, *_ = json.loads(rules("history", "-c", config, "--json").stdout)
    assert (oldest["number"], oldest["changes"]) == (2, None)
    assert "2 9 3 ? ? ?" in " ".join(rules("history", "-c", config).stdout.split())


def test_show(log: RuleLog, tmp_path: Path) -> None:
    """A text that is the rule again."""
    config = settings(tmp_path)
    for number, version in (([], 3), (["--set", "2"], 2)):
        found = rules("show", "-c", config, "a", *number)
        (one,) = load_rules(found.stdout, "shown")
        assert (one.rule.id, one.rule.version) == ("a", version)
    unknown = rules("show", "-c", config, "b")
    assert unknown.exit_code == 2
    assert "rule set 4 has no rule b" in unknown.stderr
    unknown = rules("show", "-c", config, "b", "--set", "7")
    assert unknown.exit_code == 2
    assert "rule set 7 is not in the log" in unknown.stderr


def test_diff(log: RuleLog, tmp_path: Path) -> None:
    """A file for each rule that differs; by default between the newest two."""
    config = settings(tmp_path)
    found = rules("diff", "-c", config, "1", "2").stdout.splitlines()
    assert found[:2] == ["--- set 1/a", "+++ set 2/a"]
    assert {"-version: 1", "+version: 2"} < set(found)
    assert found[found.index("--- /dev/null") + 1] == "+++ set 2/c"
    assert not any("/b" in line for line in found)
    newest = rules("diff", "-c", config).stdout
    assert newest == rules("diff", "-c", config, "3", "4").stdout
    assert newest == rules("diff", "-c", config, "3").stdout
    assert "--- set 3/d\n+++ /dev/null\n" in newest
    assert rules("diff", "-c", config, "4", "4").stdout == ""


def test_a_log_that_is_not_there_or_damaged(log: RuleLog, tmp_path: Path) -> None:
    """The place, or the file, is named."""
    config = settings(tmp_path)
    file = tmp_path / "checkpoint" / "rules" / "9"
    for content in (b"{", b"", b"\xff", b"[]", b'{"format": 1}'):
        file.write_bytes(content)
        found = rules("history", "-c", config)
        assert found.exit_code == 7, content
        assert f"{file} is damaged (" in found.stderr
    file.write_text('{"format": 2}', "utf-8")
    assert f"{file} has format 2" in rules("history", "-c", config).stderr
    (tmp_path / "checkpoint").rename(tmp_path / "away")
    found = rules("history", "-c", config)
    assert found.exit_code == 7
    assert f"{tmp_path / 'checkpoint'}: no rules are logged there" in found.stderr
