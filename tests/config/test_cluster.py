"""Separate executors: what Spark is told of them, key by key, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from spark_cep.config import Settings, load

K8S = "k8s://https://kubernetes.default.svc"
PODS = {"namespace": "cep", "image": "registry.example/spark-cep:0.1.0", "driver_pod": "cep-0"}
ON_KUBERNETES: dict[str, Any] = {
    "master": K8S,
    "driver": {"host": "cep-driver.cep.svc"},
    "kubernetes": PODS,
}


def settings(spark: dict[str, Any], **state: Any) -> Settings:
    """Settings with this section ``spark``."""
    return Settings.model_validate(
        {
            "kafka": {"bootstrap_servers": "k:9092"},
            "inputs": {"a": {"topics": ["a"]}},
            "registry": {"url": "http://r"},
            "state": {"checkpoint": "s3a://bucket/cep", **state},
            "spark": spark,
        }
    )


def test_a_local_master_has_no_executors() -> None:
    """The default says nothing of executors to Spark."""
    assert settings({}).cluster_conf() == {}
    assert settings({"master": "local[4]"}).cluster_conf() == {}


def test_a_standalone_master() -> None:
    """Executors by number and size; ports are Spark's choice."""
    conf = settings(
        {"master": "spark://m:7077", "executors": {"count": 3, "cores": 2, "memory": "2 GiB"}},
        rocksdb_memory="1 GiB",
    ).cluster_conf()
    assert conf == {
        "spark.executor.instances": "3",
        "spark.executor.cores": "2",
        "spark.cores.max": "6",
        "spark.executor.memory": "2048m",
        "spark.executor.memoryOverhead": "2432m",
        "spark.dynamicAllocation.enabled": "false",
    }


def test_the_least_on_kubernetes() -> None:
    """Fixed ports, no config maps, claims or services to make, authenticated connections."""
    assert settings(ON_KUBERNETES).cluster_conf() == {
        "spark.executor.instances": "2",
        "spark.executor.cores": "1",
        "spark.cores.max": "2",
        "spark.executor.memory": "1024m",
        "spark.executor.memoryOverhead": "1408m",
        "spark.dynamicAllocation.enabled": "false",
        "spark.driver.host": "cep-driver.cep.svc",
        "spark.driver.bindAddress": "0.0.0.0",  # noqa: S104
        "spark.driver.port": "7078",
        "spark.blockManager.port": "7079",
        "spark.submit.deployMode": "client",
        "spark.kubernetes.namespace": "cep",
        "spark.kubernetes.container.image": "registry.example/spark-cep:0.1.0",
        "spark.kubernetes.container.image.pullPolicy": "IfNotPresent",
        "spark.kubernetes.driver.pod.name": "cep-0",
        "spark.kubernetes.executor.disableConfigMap": "true",
        "spark.kubernetes.driver.service.deleteOnTermination": "false",
        "spark.kubernetes.driver.ownPersistentVolumeClaim": "false",
        "spark.kubernetes.driver.reusePersistentVolumeClaim": "false",
        "spark.authenticate": "true",
        "spark.network.crypto.enabled": "true",
    }


def test_everything_on_kubernetes(tmp_path: Path) -> None:
    """Each setting has its key."""
    template = tmp_path / "executor.yaml"
    template.write_text("kind: Pod\n", "utf-8")
    conf = settings(
        {
            "master": K8S,
            "driver": {
                "host": "cep-driver.cep.svc",
                "bind_address": "10.1.2.3",
                "port": 4040,
                "block_manager_port": 4041,
            },
            "executors": {"memory_overhead": "3 GiB"},
            "kubernetes": PODS
            | {
                "image_pull_policy": "Always",
                "image_pull_secrets": ["one", "two"],
                "service_account": "cep-executor",
                "pod_template_file": str(template),
                "cpu_request": "500m",
                "cpu_limit": "2",
                "secret_env": {"AWS_ACCESS_KEY_ID": "s3:id", "TOKEN": "other.name:a_b"},
                "checkpoint_claim": "cep-checkpoint",
                "checkpoint_mount": "/var/lib/spark-cep",
            },
        },
        checkpoint="/var/lib/spark-cep/checkpoint",
    ).cluster_conf()
    executor = "spark.kubernetes.executor"
    volume = f"{executor}.volumes.persistentVolumeClaim.checkpoint"
    least = settings(ON_KUBERNETES).cluster_conf()
    assert {k: v for k, v in conf.items() if least.get(k) != v} == {
        "spark.executor.memoryOverhead": "3072m",
        "spark.driver.bindAddress": "10.1.2.3",
        "spark.driver.port": "4040",
        "spark.blockManager.port": "4041",
        "spark.kubernetes.container.image.pullPolicy": "Always",
        "spark.kubernetes.container.image.pullSecrets": "one,two",
        "spark.kubernetes.authenticate.executor.serviceAccountName": "cep-executor",
        f"{executor}.podTemplateFile": str(template),
        f"{executor}.podTemplateContainerName": "executor",
        f"{executor}.request.cores": "500m",
        f"{executor}.limit.cores": "2",
        f"{executor}.secretKeyRef.AWS_ACCESS_KEY_ID": "s3:id",
        f"{executor}.secretKeyRef.TOKEN": "other.name:a_b",
        f"{volume}.options.claimName": "cep-checkpoint",
        f"{volume}.mount.path": "/var/lib/spark-cep",
        f"{volume}.mount.readOnly": "false",
    }
    assert least.keys() <= conf.keys()


def _pods(**more: Any) -> dict[str, Any]:
    return {**ON_KUBERNETES, "kubernetes": {**PODS, **more}}


@pytest.mark.parametrize(
    ("spark", "state", "said"),
    [
        ({"executors": {"count": 2}}, {}, "runs everything in one process"),
        ({"driver": {"port": 7078}}, {}, "runs everything in one process"),
        ({"kubernetes": PODS}, {}, "describes pods, and spark.master is local"),
        ({"master": "spark://m:7077", "kubernetes": PODS}, {}, "spark.master is spark://m:7077"),
        (_pods(image=None), {}, "missing, and needed with spark.master k8s"),
        (_pods(namespace=None), {}, "missing, and needed with spark.master k8s"),
        (_pods(driver_pod=None), {}, "missing, and needed with spark.master k8s"),
        ({**ON_KUBERNETES, "driver": {}}, {}, "name of its headless service"),
        ({**ON_KUBERNETES, "conf": {"spark.dynamicAllocation.enabled": True}}, {}, "between batch"),
        ({**ON_KUBERNETES, "conf": {"spark.submit.deployMode": "cluster"}}, {}, "only be client"),
        (ON_KUBERNETES, {"checkpoint": "/data/checkpoint"}, "each would have a folder /data"),
        (ON_KUBERNETES, {"checkpoint": "file:///data/checkpoint"}, "give a URI"),
        (_pods(checkpoint_claim="c"), {}, "go together"),
        (_pods(checkpoint_claim="c", checkpoint_mount="/data"), {}, "is not below spark.kube"),
        (
            _pods(checkpoint_claim="c", checkpoint_mount="/data"),
            {"checkpoint": "/database/c"},
            "is not below spark.kube",
        ),
        (
            {"master": "spark://m:7077", "executors": {"memory_overhead": "512 MiB"}},
            {"rocksdb_memory": "512 MiB"},
            "Python workers need room",
        ),
        ({"master": "spark://m:7077", "executors": {"memory": "100 MiB"}}, {}, "512 MiB or more"),
        ({"master": "spark://m:7077", "driver": {"port": 80}}, {}, "1024 to 65535"),
        (_pods(driver_pod="Cep"), {}, "a name in Kubernetes"),
        (_pods(namespace="a.b"), {}, "the name of a namespace"),
        (_pods(secret_env={"A": "secret"}), {}, "secret:key"),
        (_pods(secret_env={"1A": "s:k"}), {}, "the name of a variable"),
        (_pods(checkpoint_claim="c", checkpoint_mount="etc"), {}, "an absolute path"),
        (_pods(cpu_limit="lots"), {}, "a quantity of CPUs"),
        (_pods(pod_template_file="/nowhere"), {}, "path_not_file"),
    ],
)
def test_what_does_not_go_together_is_refused(
    spark: dict[str, Any], state: dict[str, Any], said: str
) -> None:
    """Each with a sentence that says why, or what is allowed."""
    with pytest.raises(ValidationError) as refused:
        settings(spark, **state)
    (error,) = refused.value.errors()
    assert said in error["msg"] or said == error["type"]


def test_a_refusal_names_the_place(tmp_path: Path) -> None:
    """File, line and setting, as for every other setting."""
    file = tmp_path / "config.yaml"
    file.write_text(
        "kafka: {bootstrap_servers: 'k:9092'}\ninputs: {a: {topics: [a]}}\n"
        "registry: {url: 'http://r'}\nstate: {checkpoint: s3a://b/c}\n"
        f"spark:\n  master: {K8S}\n  kubernetes:\n    namespace: cep\n    image: i\n",
        "utf-8",
    )
    with pytest.raises(
        Exception, match=r"config\.yaml:7:3: `spark\.kubernetes\.driver_pod`: missing"
    ):
        load(file, {})


def test_a_pod_knows_its_name(tmp_path: Path) -> None:
    """The driver's pod is named by a variable that Kubernetes fills."""
    file = tmp_path / "config.yaml"
    file.write_text(
        "kafka: {bootstrap_servers: 'k:9092'}\ninputs: {a: {topics: [a]}}\n"
        "registry: {url: 'http://r'}\nstate: {checkpoint: s3a://b/c}\n"
        f"spark:\n  master: {K8S}\n  driver: {{host: d}}\n"
        "  kubernetes: {namespace: cep, image: i, driver_pod: {env: POD_NAME}}\n",
        "utf-8",
    )
    conf = load(file, {"POD_NAME": "cep-0"}).cluster_conf()
    assert conf["spark.kubernetes.driver.pod.name"] == "cep-0"
