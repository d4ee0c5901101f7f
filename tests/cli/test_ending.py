"""Every way in which ``spark-cep run`` can end has its last line."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from spark_cep.cli.exit_codes import ADVICE, ExitCode
from spark_cep.pipeline.spark import jvm

ROOT = Path(__file__).parents[2]
SETTINGS = """
kafka: {{bootstrap_servers: 'localhost:9'}}
inputs: {{t: {{topics: [t]}}}}
registry: {{url: 'http://localhost'}}
state: {{checkpoint: {folder}/checkpoint}}
rules: {{folder: {folder}}}
lifecycle: {{stop_grace: 1 ms}}
observability: {{log_format: json, log_level: error, metrics_port: 0}}
"""
PROGRAM = """
import sys, time
from spark_cep import errors
from spark_cep.cli import main
from spark_cep.cli.job import running
from spark_cep.pipeline.driver import service
from spark_cep.pipeline.spark import starting

class Starting:
    def __init__(self, settings, scratch, done):
        self.scratch = scratch

def run(self):
    print("a line on standard error", file=sys.stderr)
    self._observer._counted_batch = 41
    {end}

starting.StartingSpark = Starting
service.Service.run = run
running._CLOSING_SECONDS = 0
main.main()
"""
#: What happens in the run, what is sent to it, and its exit code and reason.
ENDS: dict[str, tuple[str, list[signal.Signals], ExitCode, str]] = {
    "end of input": ("return", [], ExitCode.DONE, "the end of the input is reached"),
    "stopped": (
        "self._run.stopping.requested.wait()", [signal.SIGTERM], ExitCode.DONE, "stopped as asked",
    ),
    "failed": ("raise errors.SparkCepError('no')", [], ExitCode.JOB_FAILED, "no"),
    "settings": ("raise errors.ConfigurationError('no')", [], ExitCode.CONFIGURATION, "no"),
    "rules": (
        "raise errors.RuleSetError([errors.Problem('x'), errors.Problem('y')])",
        [], ExitCode.RULES, "2 errors",
    ),
    "start": ("raise errors.StartError('no')", [], ExitCode.START_FAILED, "no"),
    "schemas": ("raise errors.SchemaError('no')", [], ExitCode.SCHEMAS, "no"),
    "state": ("raise errors.StateError('no')", [], ExitCode.STATE_REFUSED, "no"),
    "taken over": ("raise errors.TakenOverError('no')", [], ExitCode.TAKEN_OVER, "no"),
    "circuit breaker": (
        "raise errors.CircuitBreakerError('no')", [], ExitCode.CIRCUIT_BREAKER_OPEN, "no",
    ),
    "Kafka": ("raise errors.KafkaUnavailableError('no')", [], ExitCode.KAFKA_UNAVAILABLE, "no"),
    "registry": (
        "raise errors.RegistryUnavailableError('no')", [], ExitCode.REGISTRY_UNAVAILABLE, "no",
    ),
    "grace": ("raise errors.GraceError('no')", [], ExitCode.GRACE_RAN_OUT, "no"),
    "closing": (
        "time.sleep(60)", [signal.SIGTERM], ExitCode.GRACE_RAN_OUT, "the process did not end",
    ),
    "defect": ("raise LookupError('gone')", [], ExitCode.INTERNAL_ERROR, "LookupError: gone"),
}  # fmt: skip


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.slow
def test_the_last_line(end: str, tmp_path: Path) -> None:
    """Code, name, reason, what to do and the last batch, whatever the log's level; everything on
    standard output is JSON, and there is nothing on standard error."""
    ending, signals, code, reason = ENDS[end]
    config = tmp_path / "config.yaml"
    config.write_text(SETTINGS.format(folder=tmp_path), "utf-8")
    program = PROGRAM.format(end=f"print('{{}}', flush=True); {ending}")
    command = [sys.executable, "-c", program, "run", "--config", str(config)]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        for number in signals:
            process.stdout.readline()
            process.send_signal(number)
        said, errors = process.communicate(timeout=60)
    *_, last = (json.loads(line) for line in said.splitlines())
    assert process.returncode == code
    assert (last["event"], last["exit_code"], last["name"]) == ("ended", int(code), code.name)
    assert last["reason"].startswith(reason)
    assert (last["advice"], last["last_batch"]) == (ADVICE[code], 41)
    assert ("exception" in last) == (code is ExitCode.INTERNAL_ERROR)
    assert len(last.get("problems", [])) == (2 if code is ExitCode.RULES else 0)
    assert errors == ""


def test_every_exit_code_is_tried() -> None:
    """Here, but for wrong use (test_exit_codes) and those that need Spark or a second signal."""
    tried = {code for _, _, code, _ in ENDS.values()}
    elsewhere = {ExitCode.USAGE, ExitCode.ENDED_AT_ONCE, ExitCode.JAVA_ENDED}
    assert tried | elsewhere == set(ExitCode)
    assert set(ADVICE) == set(ExitCode)


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("os.kill(os.getpid(), 9)", "the Java process was killed by SIGKILL, as the kernel does"),
        ("os.kill(os.getpid(), 11)", "the Java process was killed by SIGSEGV"),
        ("sys.exit(52)", "the Java process ended with exit code 52"),
        ("time.sleep(60)", None),
    ],
)
def test_how_java_ended(
    program: str, expected: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By signal or exit code; an error that comes while it runs is left as it is."""
    from spark_cep.errors import JavaEndedError

    with subprocess.Popen([sys.executable, "-c", f"import os, sys, time; {program}"]) as process:
        monkeypatch.setattr(jvm, "_answered", [process])
        try:
            if expected is None:
                jvm.raise_if_jvm_ended(JavaEndedError("of ours"))
            else:
                process.wait(30)
                with pytest.raises(JavaEndedError, match=expected) as raised:
                    jvm.raise_if_jvm_ended(ConnectionRefusedError())
                assert isinstance(raised.value.__cause__, ConnectionRefusedError)
        finally:
            process.kill()
