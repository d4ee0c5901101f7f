"""The job with a master ``k8s://``: Spark makes the pods of our settings, and they do the work."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from examples.embedded.process import free_ports
from tests.e2e.command import Command, running
from tests.e2e.outputs import found
from tests.e2e.scenario import Scenario
from tests.e2e.stream import Stream, at, sequence
from tests.kafka_access import KafkaAccess
from tests.kubernetes_api import KubernetesApi, kubernetes_api

# Several JVMs start at once.
pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.timeout(900)]

STORE, LOGIN = "marker-store-31fe", "marker-login-31fe"
IMAGE = "registry.example/spark-cep:0.1.0"
SCRATCH = {"name": "spark-local-dir-1", "emptyDir": {"sizeLimit": "5Gi"}}


def template(scratch: Path) -> dict[str, Any]:
    """A template of executors' pods that brings its scratch space along."""
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"labels": {"team": "fraud"}},
        "spec": {
            "automountServiceAccountToken": False,
            "securityContext": {"runAsNonRoot": True},
            "volumes": [SCRATCH],
            "containers": [
                {
                    "name": "executor",
                    "securityContext": {"readOnlyRootFilesystem": True},
                    "resources": {"limits": {"ephemeral-storage": "1Gi"}},
                    "volumeMounts": [{"name": SCRATCH["name"], "mountPath": str(scratch)}],
                }
            ],
        },
    }


@dataclass(frozen=True)
class Run:
    """What the job asked the API for, and what it wrote."""

    api: KubernetesApi
    scenario: Scenario
    folder: Path

    @property
    def pod(self) -> dict[str, Any]:
        """The executor's pod, as Spark asked for it."""
        return self.api.created[0]

    @property
    def container(self) -> dict[str, Any]:
        """Its container."""
        made: dict[str, Any] = self.pod["spec"]["containers"][0]
        return made


@pytest.fixture(scope="module")
def run(
    kafka: KafkaAccess, registry: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Run]:
    """A job to the end of its input, with one executor."""
    folder = tmp_path_factory.mktemp("kubernetes")
    scenario = Scenario(kafka, registry, None, folder)
    scenario.rule(sequence("ab", "a", "followed_by b", within="1 minute"))
    Stream(scenario).send(("k", "a", 0), ("k", "b", 1), ("k", "a", 2), ("k", "x", 90))
    (folder / "scratch").mkdir()
    pod = folder / "pod.yaml"
    pod.write_text(yaml.safe_dump(template(folder / "scratch")), "utf-8")
    driver, blocks = free_ports(2)
    with kubernetes_api(folder, {("s3", "id"): LOGIN}) as api:
        api.add_driver("cep-0")
        document = scenario.document(
            kafka={
                "bootstrap_servers": kafka.bootstrap,
                "sink_properties": {"ssl.keystore.password": STORE},
            },
            trigger={"mode": "available_now", "at_end_of_input": "decide"},
            spark={
                "master": f"k8s://{api.url}",
                "driver": {
                    "host": "127.0.0.1",
                    "bind_address": "127.0.0.1",
                    "port": driver,
                    "block_manager_port": blocks,
                },
                "executors": {"count": 1, "cores": 2, "memory": "512 MiB"},
                "kubernetes": {
                    "namespace": "cep",
                    "image": IMAGE,
                    "image_pull_secrets": ["pull"],
                    "driver_pod": "cep-0",
                    "service_account": "cep-executor",
                    "pod_template_file": str(pod),
                    "cpu_request": "500m",
                    "cpu_limit": "2",
                    "secret_env": {"S3_ID": "s3:id"},
                    "checkpoint_claim": "cep-checkpoint",
                    "checkpoint_mount": str(folder),
                },
                "conf": {
                    "spark.driver.memory": "1g",
                    "spark.local.dir": str(folder / "scratch"),
                    "spark.sql.warehouse.dir": str(folder / "warehouse"),
                    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
                    "spark.hadoop.fs.s3a.secret.key": STORE,
                    "spark.kubernetes.executor.node.selector.pool": "streams",
                    "spark.kubernetes.executor.label.app.kubernetes.io/component": "executor",
                    "spark.kubernetes.executor.secrets.truststore": "/etc/truststore",
                    # There is no watch.
                    "spark.kubernetes.executor.enableApiWatcher": False,
                    "spark.kubernetes.executor.apiPollingInterval": "500ms",
                    "spark.kubernetes.allocation.batch.delay": "500ms",
                },
            },
        )
        with running(folder, document) as command:
            assert command.wait(400) == 0, _told(command, folder)
        yield Run(api, scenario, folder)


def _told(command: Command, folder: Path) -> str:
    logs = [file.read_text("utf-8", "replace")[-3000:] for file in folder.glob("*-exec-*.log")]
    return "\n".join([command.end_of_log(), *logs])


def test_the_executor_works(run: Run) -> None:
    """Started by the image's entry point from the pod's variables, it found the match."""
    assert run.scenario.outputs().of("ab") == (
        [found("ab", "k", at(1), a=0, b=1)],
        [found("ab", "k", at(62), a=2)],
    )
    assert len(run.api.created) == 1


def test_the_pod_is_what_the_settings_say(run: Run) -> None:
    """Names, places, sizes, and the driver's pod as its owner."""
    metadata, spec, container = run.pod["metadata"], run.pod["spec"], run.container
    assert metadata["namespace"] == "cep"
    assert metadata["labels"]["app.kubernetes.io/component"] == "executor"
    (owner,) = metadata["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"]) == ("Pod", "cep-0", "driver-uid")
    assert spec["nodeSelector"] == {"pool": "streams"}
    assert spec["imagePullSecrets"] == [{"name": "pull"}]
    assert spec["serviceAccountName"] == "cep-executor"
    assert spec["restartPolicy"] == "Never"
    assert (container["name"], container["image"], container["args"]) == (
        "executor",
        IMAGE,
        ["executor"],
    )
    assert container["resources"]["requests"] == {"cpu": "500m", "memory": "2432Mi"}
    assert container["resources"]["limits"] == {
        "cpu": "2",
        "memory": "2432Mi",
        "ephemeral-storage": "1Gi",
    }


def test_the_template_stays(run: Run) -> None:
    """What the template says of the pod is kept beside it."""
    assert run.pod["metadata"]["labels"]["team"] == "fraud"
    assert run.pod["spec"]["automountServiceAccountToken"] is False
    assert run.pod["spec"]["securityContext"]["runAsNonRoot"] is True
    context = run.container["securityContext"]
    assert context["readOnlyRootFilesystem"] is True
    # Spark adds this one from 4.3 on.
    assert context.get("allowPrivilegeEscalation", False) is False


def test_volumes(run: Run) -> None:
    """The checkpoint's claim, the mounted secret, the template's own scratch space, in which Spark
    works, and none beside it; no configuration of Spark's."""
    volumes = {volume["name"]: volume for volume in run.pod["spec"]["volumes"]}
    mounts = {mount["name"]: mount["mountPath"] for mount in run.container["volumeMounts"]}
    assert len(set(mounts.values())) == len(run.container["volumeMounts"])
    assert volumes["checkpoint"]["persistentVolumeClaim"]["claimName"] == "cep-checkpoint"
    assert mounts["checkpoint"] == str(run.folder)
    assert mounts["truststore-volume"] == "/etc/truststore"
    assert volumes["spark-local-dir-1"] == SCRATCH
    variables = {one["name"]: one.get("value") for one in run.container["env"]}
    assert variables["SPARK_LOCAL_DIRS"] == str(run.folder / "scratch")
    assert not any("configMap" in volume for volume in volumes.values())


def test_secrets_are_referred_to(run: Run) -> None:
    """None stands in the pod, but for the one that Spark makes for its own connections."""
    variables = {one["name"]: one for one in run.container["env"]}
    assert variables["S3_ID"]["valueFrom"]["secretKeyRef"] == {"name": "s3", "key": "id"}
    assert "_SPARK_AUTH_SECRET" in variables
    text = json.dumps(run.pod)
    assert STORE not in text
    assert LOGIN not in text


def test_the_rights_that_are_needed(run: Run) -> None:
    """Pods are all that the driver asks for."""
    assert {place for _, place in run.api.asked} == {"pods"}
