"""What the image runs: any command, or an executor by the variables of Spark's master."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ENTRYPOINT = ROOT / "image" / "entrypoint.sh"

SPARKS = {
    "SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@cep-driver.cep.svc:7078",
    "SPARK_EXECUTOR_ID": "3",
    "SPARK_EXECUTOR_CORES": "2",
    "SPARK_EXECUTOR_MEMORY": "1024m",
    "SPARK_APPLICATION_ID": "spark-0a1b",
    "SPARK_EXECUTOR_POD_IP": "10.1.2.3",
    "SPARK_EXECUTOR_POD_NAME": "cep-exec-3",
    "SPARK_RESOURCE_PROFILE_ID": "0",
}

Told = dict[str, object]


@pytest.fixture
def surroundings(tmp_path: Path) -> dict[str, str]:
    """The environment of a pod, where ``java`` tells how it was called."""
    tools = tmp_path / "bin"
    tools.mkdir()
    java = tools / "java"
    java.write_text(
        f"#!{sys.executable} -I\nimport json, os, sys\n"
        "where = {'folder': os.getcwd(), 'scratch': os.environ['TMPDIR']}\n"
        "print(json.dumps({'arguments': sys.argv[1:], **where}))\n",
        "utf-8",
    )
    java.chmod(0o755)
    scratch = tmp_path / "spark-local"
    scratch.mkdir()
    return {
        "PATH": f"{tools}:/usr/bin:/bin",
        "SPARK_HOME": "/opt/spark",
        "SPARK_LOCAL_DIRS": f"{scratch},/elsewhere",
        **SPARKS,
    }


def run(*arguments: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """The entry point, to its end."""
    return subprocess.run(
        [str(ENTRYPOINT), *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_an_executor(surroundings: dict[str, str]) -> None:
    """Java with the classpath, heap and arguments of Spark's contract, in a folder to write to."""
    done = run("executor", environment=surroundings)
    assert done.returncode == 0, done.stderr
    told: Told = json.loads(done.stdout)
    scratch = surroundings["SPARK_LOCAL_DIRS"].partition(",")[0]
    assert told == {
        "arguments": [
            f"-Djava.io.tmpdir={scratch}",
            "-Xms1024m",
            "-Xmx1024m",
            "-cp",
            "/opt/spark/jars/*",
            "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend",
            *("--driver-url", SPARKS["SPARK_DRIVER_URL"]),
            *("--executor-id", "3"),
            *("--cores", "2"),
            *("--app-id", "spark-0a1b"),
            *("--hostname", "10.1.2.3"),
            *("--resourceProfileId", "0"),
            *("--podName", "cep-exec-3"),
        ],
        "folder": scratch,
        "scratch": scratch,
    }


def test_java_options_in_their_order(surroundings: dict[str, str]) -> None:
    """By number, not by name; blanks, quotes and line ends stay inside an option."""
    options = [f"-Dn={number}" for number in range(12)]
    options[4] = "-Dpath=/a b/'c' \"d\"\n$HOME *"
    environment = surroundings | {f"SPARK_JAVA_OPT_{n}": text for n, text in enumerate(options)}
    told: dict[str, list[str]] = json.loads(run("executor", environment=environment).stdout)
    assert told["arguments"][1:13] == options


def test_the_classpath(surroundings: dict[str, str]) -> None:
    """Spark's configuration first, then what the user puts in front, then Spark."""
    environment = surroundings | {
        "SPARK_CONF_DIR": "/opt/spark/conf",
        "SPARK_CLASSPATH": "/opt/mine/*",
        "SPARK_EXTRA_CLASSPATH": "/opt/more/*",
    }
    told: dict[str, list[str]] = json.loads(run("executor", environment=environment).stdout)
    after = told["arguments"].index("-cp") + 1
    assert told["arguments"][after] == "/opt/spark/conf:/opt/mine/*:/opt/spark/jars/*:/opt/more/*"


@pytest.mark.parametrize("name", SPARKS)
def test_an_executor_without_a_driver(surroundings: dict[str, str], name: str) -> None:
    """What is missing is named."""
    done = run("executor", environment={k: v for k, v in surroundings.items() if k != name})
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"error: an executor is started by Spark alone; not set: {name}\n"


def test_nowhere_to_write(surroundings: dict[str, str]) -> None:
    """A missing folder is named."""
    done = run("executor", environment=surroundings | {"SPARK_LOCAL_DIRS": "/nowhere"})
    assert done.returncode == 2
    assert "/nowhere (SPARK_LOCAL_DIRS)" in done.stderr


def test_any_command() -> None:
    """It takes the place of the entry point, with its arguments and exit code."""
    environment = {"PATH": os.environ["PATH"]}
    command = [sys.executable, "-c", "import sys; print(sys.argv[1:]); sys.exit(9)", "a b", ""]
    done = run(*command, environment=environment)
    assert (done.returncode, done.stdout) == (9, "['a b', '']\n")


@pytest.mark.parametrize("given", [["run", "-c", "a b"], ["spark-cep", "run", "-c", "a b"]])
def test_the_service(tmp_path: Path, given: list[str]) -> None:
    """What is no program goes to spark-cep; that it is said is no harm."""
    service = tmp_path / "spark-cep"
    service.write_text('#!/bin/bash\nprintf "<%s>" "$@"\n', "utf-8")
    service.chmod(0o755)
    done = run(*given, environment={"PATH": f"{tmp_path}:/usr/bin:/bin"})
    assert (done.returncode, done.stdout) == (0, "<run><-c><a b>")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [([], "nothing to run"), (["executor", "--cores"], "takes no arguments, found: --cores")],
)
def test_wrong_use(arguments: list[str], said: str) -> None:
    """Ends with a sentence and exit code 2."""
    done = run(*arguments, environment={"PATH": os.environ["PATH"]})
    assert done.returncode == 2
    assert said in done.stderr
