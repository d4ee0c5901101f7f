"""Secrets of the configuration are nowhere that others can look, while the real command runs."""

from __future__ import annotations

import base64
import json
import os
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from examples.embedded.process import free_ports
from tests.certificates import encrypted
from tests.conftest import ROOT
from tests.e2e.command import Command, running
from tests.e2e.outputs import Outputs, found
from tests.e2e.scenario import Scenario
from tests.e2e.stream import Stream, at, sequence
from tests.guarded_registry import guarded_registry
from tests.kafka_access import KafkaAccess
from tests.secure_broker import PASSWORD, SecureBroker, secure_broker

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

REGISTRY, PAGES, KEY, CLIENT_KEY = (f"marker-{n}-9d1c" for n in ("reg", "pages", "key", "client"))
STORE, S3, INNOCENT = (f"marker-{n}-9d1c" for n in ("store", "s3", "innocent"))
SECRETS = (PASSWORD, REGISTRY, PAGES, KEY, CLIENT_KEY, STORE, S3, INNOCENT)
LOGINS = (f"cep:{REGISTRY}", f"prometheus:{PAGES}")


def leaks(data: bytes | str) -> list[str]:
    """The secrets that stand in ``data``: plainly, in quotes, or in base64."""
    text = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
    forms = {
        form: secret
        for secret in SECRETS
        for form in (
            secret,
            json.dumps(secret)[1:-1],
            repr(secret)[1:-1],
            base64.b64encode(secret.encode()).decode().rstrip("="),
        )
    }
    forms |= {base64.b64encode(login.encode()).decode().rstrip("="): login for login in LOGINS}
    return sorted({secret for form, secret in forms.items() if form in text})


def test_the_search_finds_what_it_looks_for() -> None:
    """Each secret in each form is found, and nothing where there is nothing."""
    for secret in SECRETS:
        assert leaks(f"x {secret} y") == [secret]
        assert leaks(json.dumps({"a": secret}).encode()) == [secret]
        assert leaks(base64.b64encode(secret.encode())) == [secret]
    assert leaks(base64.b64encode(LOGINS[0].encode())) == [LOGINS[0]]
    assert leaks("marker") == []


@dataclass(frozen=True)
class Job:
    """A running command with every kind of secret, and how to look at it."""

    scenario: Scenario
    document: dict[str, Any]
    command: Command
    authority: Path
    ui: str
    secrets: Path

    def page(self, path: str) -> str:
        """A page of the service, read with the login."""
        url = f"https://127.0.0.1:{self.document['observability']['metrics_port']}{path}"
        login = base64.b64encode(LOGINS[1].encode()).decode()
        request = urllib.request.Request(url, headers={"Authorization": f"Basic {login}"})
        context = ssl.create_default_context(cafile=self.authority)
        try:
            with urllib.request.urlopen(request, timeout=10, context=context) as answer:  # noqa: S310
                return str(answer.read().decode())
        except urllib.error.HTTPError as error:
            with error:
                return error.read().decode()
        except OSError:
            return ""

    def spark(self, path: str) -> str:
        """A page of Spark's own user interface."""
        with urllib.request.urlopen(f"{self.ui}{path}", timeout=30) as answer:  # noqa: S310
            return str(answer.read().decode())


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureBroker]:
    """The broker."""
    with secure_broker(tmp_path_factory.mktemp("secure")) as running_broker:
        yield running_broker


@pytest.fixture(scope="module")
def guarded(secure: SecureBroker, registry: str) -> Iterator[str]:
    """The registry behind TLS and a login."""
    identity = secure.authority.identity("registry")
    with guarded_registry(registry, identity, ("cep", REGISTRY)) as url:
        yield url


@pytest.fixture(scope="module")
def job(
    secure: SecureBroker, guarded: str, registry: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Job]:
    """The command, with secrets from the file, from files and from variables, everything logged,
    and Spark showing all that it shows."""
    folder = tmp_path_factory.mktemp("job")
    scenario = Scenario(KafkaAccess(secure.broker.bootstrap), registry, None, folder)
    scenario.rule(sequence("ab", "a", "followed_by b"))
    stream = Stream(scenario)
    stream.send(("k", "a", 0), ("k", "b", 1), stream.broken(), ("k", "x", 90))
    secrets = tmp_path_factory.mktemp("secrets")
    (secrets / "registry").write_text(f"{REGISTRY}\n", "utf-8")
    pages = secure.authority.identity("pages")
    pages_port, ui_port = free_ports(2)
    kafka = secure.login(
        password={"env": "CEP_TEST_KAFKA_PASSWORD"},
        ssl_certificate_file=str(secure.client.certificate),
        ssl_key_file=str(encrypted(secure.client.key, CLIENT_KEY)),
        ssl_key_password=CLIENT_KEY,
    )
    (folder / "events").mkdir()
    document = scenario.document(
        kafka=kafka
        | {
            "source_properties": {"ssl.keystore.password": STORE},
            "sink_properties": {"ssl.keystore.password": STORE},
        },
        registry={
            "url": guarded,
            "username": "cep",
            "password": {"file": str(secrets / "registry")},
            "ssl_ca_file": str(secure.authority.file),
        },
        trigger={"mode": "continuous", "latency": "100 ms"},
        spark={
            "master": "local[2]",
            "conf": {
                "spark.driver.memory": "1g",
                "spark.local.dir": str(folder / "scratch"),
                "spark.sql.warehouse.dir": str(folder / "warehouse"),
                "spark.ui.enabled": True,
                "spark.ui.port": ui_port,
                "spark.eventLog.enabled": True,
                "spark.eventLog.dir": str(folder / "events"),
                "spark.eventLog.compress": False,
                "spark.hadoop.fs.s3a.secret.key": S3,
                "spark.hadoop.fs.innocent.name": {"env": "CEP_TEST_INNOCENT"},
            },
        },
        observability={
            "metrics_host": "127.0.0.1",
            "metrics_port": pages_port,
            "ssl_certificate_file": str(pages.certificate),
            "ssl_key_file": str(encrypted(pages.key, KEY)),
            "ssl_key_password": KEY,
            "username": "prometheus",
            "password": PAGES,
            "log_level": "debug",
            "log_format": "json",
        },
    )
    ui = f"http://127.0.0.1:{ui_port}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CEP_TEST_KAFKA_PASSWORD", PASSWORD)
        patch.setenv("CEP_TEST_INNOCENT", INNOCENT)
        with running(folder, document) as command:
            made = Job(scenario, document, command, secure.authority.file, ui, secrets)
            command.wait_for(lambda: len(scenario.outputs().dead_letters) == 1)
            command.wait_for(lambda: '"ok": true' in made.page("/readyz"))
            yield made


def _processes(session: int) -> dict[int, str]:
    """The arguments of every process of a session."""
    found_arguments = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            status = (entry / "stat").read_text("utf-8").rpartition(")")[2].split()
            arguments = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if int(status[3]) == session:
            found_arguments[int(entry.name)] = arguments.replace(b"\0", b" ").decode()
    return found_arguments


def test_the_secrets_are_used(job: Job) -> None:
    """The job works with them, so what follows looks at the right ones."""
    outputs: Outputs = job.scenario.outputs()
    assert outputs.of("ab")[0] == [found("ab", "k", at(1), a=0, b=1)]
    assert 'spark_cep_matches_total{rule="ab"} 1.0' in job.page("/metrics")
    environment = json.loads(job.spark(f"{_application(job)}/environment"))
    hadoop = dict(environment["hadoopProperties"])
    assert "fs.s3a.secret.key" in hadoop
    assert "fs.innocent.name" in hadoop


def test_no_secret_in_process_arguments(job: Job) -> None:
    """Driver, JVM and Python workers: everybody on the machine can read their arguments."""
    arguments = _processes(os.getsid(job.command._process.pid))
    everything = "\n".join(arguments.values())
    assert "spark_cep.cli.main" in everything
    assert "org.apache.spark.deploy.SparkSubmit" in everything
    assert "pyspark.daemon" in everything or "pyspark/daemon" in everything
    assert leaks(everything) == []


@pytest.mark.parametrize("path", ["/metrics", "/rules", "/livez", "/readyz", "/nowhere"])
def test_no_secret_on_the_pages(job: Job, path: str) -> None:
    """What the service shows of itself."""
    text = job.page(path)
    assert text
    assert leaks(text) == []


def _application(job: Job) -> str:
    applications = json.loads(job.spark("/api/v1/applications"))
    return f"/api/v1/applications/{applications[0]['id']}"


def test_no_secret_in_sparks_interface(job: Job) -> None:
    """Environment, plans, jobs and executors, as data and as pages."""
    application = _application(job)
    shown = {
        path: job.spark(path)
        for path in (
            f"{application}/environment",
            f"{application}/sql?details=true&planDescription=true",
            f"{application}/jobs",
            f"{application}/stages?details=true",
            f"{application}/allexecutors",
            "/environment/",
            "/SQL/",
            "/StreamingQuery/",
            "/jobs/",
        )
    }
    plans = shown[f"{application}/sql?details=true&planDescription=true"]
    assert "MicroBatchScan" in plans
    assert {path: leaks(text) for path, text in shown.items() if leaks(text)} == {}


def test_no_secret_in_topics(job: Job) -> None:
    """Matches, timeouts, late events, dead letters: values, keys and headers."""
    topics = [job.scenario.topic(kind) for kind in Outputs.KINDS]
    records = job.scenario.kafka.read(*topics)
    assert records
    for record in records:
        pairs = cast("list[tuple[str, bytes | None]]", record.headers() or [])
        headers = [value for _, value in pairs]
        for part in (record.key(), record.value(), *headers):
            assert leaks(part or b"") == []


def test_no_secret_in_logs_and_files(job: Job) -> None:
    """Standard output and error, checkpoint, Spark's scratch folder and event log; once more when
    the job has ended, which is when event logs are whole."""
    files = _scanned(job)
    assert any("checkpoint" in name for name in files)
    assert any("events" in name for name in files)
    code, _ = job.command.terminate()
    assert code == 0
    _scanned(job)


def _scanned(job: Job) -> set[str]:
    config = job.scenario.folder / "config.yaml"
    seen = set()
    for file in job.scenario.folder.rglob("*"):
        if not file.is_file() or file == config:
            continue
        try:
            content = file.read_bytes()
        except FileNotFoundError:  # Spark removes what it no longer needs
            continue
        assert leaks(content) == [], file
        seen.add(str(file.relative_to(job.scenario.folder)))
    return seen


WRONG_STARTS: dict[str, tuple[dict[str, Any], int]] = {
    "kafka-password": ({"kafka": {"security": {"password": REGISTRY}}}, 3),
    "registry-password": ({"registry": {"password": S3}}, 3),
    "registry-url": ({"registry": {"url": f"https://cep:{S3}@127.0.0.1:1"}}, 3),
    "key-password": ({"kafka": {"security": {"ssl_key_password": S3}}}, 3),
    "pages-key": ({"observability": {"ssl_key_password": S3}}, 3),
    "kind": ({"kafka": {"security": {"password": [S3]}}}, 3),
    "spark": ({"spark": {"master": "nonsense"}}, 5),
}


@pytest.mark.parametrize(("change", "code"), WRONG_STARTS.values(), ids=WRONG_STARTS)
def test_no_secret_in_the_words_of_a_failing_start(
    job: Job, tmp_path: Path, change: dict[str, Any], code: int
) -> None:
    """Each ends with its exit code and a message."""
    document = json.loads(json.dumps(job.document))
    document["observability"]["metrics_port"] = free_ports(1)[0]
    document["spark"]["conf"]["spark.ui.port"] = free_ports(1)[0]
    _merge(document, change)
    config = tmp_path / "config.yaml"
    config.write_text(yaml.safe_dump(document), "utf-8")
    environment = os.environ | {
        "CEP_TEST_KAFKA_PASSWORD": PASSWORD,
        "CEP_TEST_INNOCENT": INNOCENT,
    }
    done = subprocess.run(
        [sys.executable, "-m", "spark_cep.cli.main", "run", "--config", str(config)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert leaks(done.stdout + done.stderr) == [], done.stdout + done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["exit_code"] == code
    assert done.stderr == ""
    assert done.returncode == code, done.stderr


def _merge(document: dict[str, Any], change: dict[str, Any]) -> None:
    for name, value in change.items():
        if isinstance(value, dict) and isinstance(document.get(name), dict):
            _merge(document[name], value)
        else:
            document[name] = value
