"""The job on a real API server: with the rights of the chart's account alone, Spark makes
executors, and they do the work."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from examples.embedded.process import free_ports
from tests.e2e.command import running
from tests.e2e.outputs import found
from tests.e2e.scenario import Scenario
from tests.e2e.stream import Stream, at, sequence
from tests.kafka_access import KafkaAccess
from tests.kubernetes.cluster import Cluster
from tests.kubernetes.node import node
from tests.kubernetes.releases import driver_pod, needs_control_plane

pytestmark = [
    pytest.mark.kafka, pytest.mark.spark, needs_control_plane, pytest.mark.timeout(900)
]  # fmt: skip

IMAGE = "registry.example/spark-cep:0.1.0"
RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "runAsNonRoot": True,
    "capabilities": {"drop": ["ALL"]},
    "seccompProfile": {"type": "RuntimeDefault"},
}


def test_executors_of_a_real_cluster(
    api: Cluster, executors: str, kafka: KafkaAccess, registry: str, tmp_path: Path
) -> None:
    """The pods are admitted by the profile ``restricted``, watched, owned by the driver's pod, and
    gone when the job has ended."""
    scenario = Scenario(kafka, registry, None, tmp_path)
    scenario.rule(sequence("ab", "a", "followed_by b", within="1 minute"))
    Stream(scenario).send(("k", "a", 0), ("k", "b", 1), ("k", "a", 2), ("k", "x", 90))
    driver = driver_pod(api, executors)
    account = driver["spec"]["serviceAccountName"]
    token, template = tmp_path / "token", tmp_path / "pod.yaml"
    token.write_text(api.token(executors, account), "utf-8")
    (tmp_path / "scratch").mkdir()
    template.write_text(yaml.safe_dump(_template(tmp_path / "scratch")), "utf-8")
    port, blocks = free_ports(2)
    document = scenario.document(
        trigger={"mode": "available_now", "at_end_of_input": "decide"},
        spark={
            "master": f"k8s://{api.url}",
            "driver": {
                "host": "127.0.0.1",
                "bind_address": "127.0.0.1",
                "port": port,
                "block_manager_port": blocks,
            },
            "executors": {"count": 1, "cores": 2, "memory": "512 MiB"},
            "kubernetes": {
                "namespace": executors,
                "image": IMAGE,
                "driver_pod": driver["metadata"]["name"],
                "service_account": f"{account}-executor",
                "pod_template_file": str(template),
            },
            "conf": {
                "spark.kubernetes.authenticate.caCertFile": str(api.ca_file),
                "spark.kubernetes.authenticate.oauthTokenFile": str(token),
                "spark.local.dir": str(tmp_path / "scratch"),
                "spark.sql.warehouse.dir": str(tmp_path / "warehouse"),
            },
        },
        observability={
            "metrics_host": "127.0.0.1", "metrics_port": free_ports(1)[0], "log_format": "json",
        },
    )  # fmt: skip
    with node(api, executors, tmp_path) as machine, running(tmp_path, document) as command:
        code = command.wait(400)
        assert code == 0, command.end_of_log()
        left = api.request(f"/api/v1/namespaces/{executors}/pods?labelSelector=spark-role")
    assert scenario.outputs().of("ab") == (
        [found("ab", "k", at(1), a=0, b=1)],
        [found("ab", "k", at(62), a=2)],
    )
    (pod,) = machine.seen.values()
    assert [each["uid"] for each in pod["metadata"]["ownerReferences"]] == [
        driver["metadata"]["uid"]
    ]
    assert pod["spec"]["serviceAccountName"] == f"{account}-executor"
    assert left["items"] == []


def _template(scratch: Path) -> dict[str, object]:
    volume = {"name": "spark-local-dir-1", "emptyDir": {"sizeLimit": "1Gi"}}
    container = {
        "name": "executor",
        "securityContext": RESTRICTED,
        "volumeMounts": [{"name": volume["name"], "mountPath": str(scratch)}],
    }
    spec = {
        "automountServiceAccountToken": False, "volumes": [volume], "containers": [container],
    }  # fmt: skip
    return {"apiVersion": "v1", "kind": "Pod", "spec": spec}
