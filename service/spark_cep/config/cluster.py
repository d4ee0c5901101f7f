"""The Spark application, and separate executors: where they call the driver, how many there are,
how large, and their pods.

The driver is always the process of ``spark-cep run`` (Spark's client mode). :func:`cluster_conf` is
the only place where these settings become Spark's; what a master cannot use is refused.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, FilePath, model_validator

from spark_cep.config.quantities import (
    Properties,
    SettingsSection,
    Shown,
    Size,
    check_pair,
    revealed,
    setting,
)
from spark_cep.documents.values import contradiction, refused

DRIVER_PORT: Final = 7078
BLOCK_MANAGER_PORT: Final = 7079
"""Ports on Kubernetes unless configured; a service and a network policy can name them."""

CHECKPOINT_VOLUME: Final = "checkpoint"
CONTAINER: Final = "executor"
"""Name of the executor's container in the template of its pod."""

_MIB: Final = 2**20
_LEAST_MEMORY: Final = 512 * _MIB
_PYTHON_PER_CORE: Final = 512 * _MIB
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_DNS_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_CPUS: Final = re.compile(r"[0-9]+(\.[0-9]+)?|[0-9]+m")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SECRET_KEY: Final = re.compile(rf"({_DNS_NAME.pattern}):([-\w.]+)")
_PORTS: Final = range(1024, 65_536)
_COUNT = r"\s*[1-9][0-9]*\s*"
_LOCAL: Final = re.compile(
    rf"local(\[(\*|{_COUNT})(,{_COUNT})?\])?|local-cluster\[{_COUNT},{_COUNT},{_COUNT}\]"
)


def _matching(pattern: re.Pattern[str], allowed: str) -> AfterValidator:
    def check(value: str) -> str:
        if not pattern.fullmatch(value):
            raise refused(allowed)
        return value

    return AfterValidator(check)


def _port(value: int) -> int:
    if value not in _PORTS:
        raise refused("1024 to 65535")
    return value


def _large_enough(value: int) -> int:
    if value < _LEAST_MEMORY:
        raise refused("512 MiB or more")
    return value


Port = Annotated[int, AfterValidator(_port)]
Host = Annotated[
    str, _matching(re.compile(r"[A-Za-z0-9]([-\w.]*[A-Za-z0-9])?"), "a host's name or address")
]
ObjectName = Annotated[str, _matching(_DNS_NAME, "a name in Kubernetes: small letters, digits, -")]
Cpus = Annotated[str, _matching(_CPUS, "a quantity of CPUs, as 2, 0.5 or 500m")]
MountPath = Annotated[str, _matching(re.compile(r"/(?!.*\.\.)[^,]*"), "an absolute path")]


class Driver(SettingsSection):
    """Addresses and ports at which executors call the driver."""

    host: Host | None = setting(
        None,
        "Name or address by which executors call the driver; on Kubernetes that of its headless "
        "service. Absent: this machine's own name.",
    )
    bind_address: Host | None = setting(
        None, "Address the driver listens on; absent: `host`, on Kubernetes all."
    )
    port: Port | None = setting(
        None, f"Port of the driver; absent: any, on Kubernetes {DRIVER_PORT}."
    )
    block_manager_port: Port | None = setting(
        None,
        "Port of the block managers of driver and executors; absent: any, on Kubernetes "
        f"{BLOCK_MANAGER_PORT}.",
    )


class Executors(SettingsSection):
    """Number and size of the executors. Not for `local` masters."""

    count: int = setting(2, "Executors.", unit="executors", ge=1, le=10_000)
    cores: int = setting(1, "Tasks that one executor runs at a time.", unit="cores", ge=1, le=1024)
    memory: Annotated[Size, AfterValidator(_large_enough)] = setting(
        2**30, "Java heap of one executor."
    )
    memory_overhead: Size | None = setting(
        None,
        "What one executor takes in addition to its heap: RocksDB and Python workers. Absent: "
        "`state.rocksdb_memory`, 512 MiB for each core, and 384 MiB.",
    )


class Kubernetes(SettingsSection):
    """The executors' pods, with a master `k8s://…`. The driver runs in a pod itself."""

    namespace: Annotated[str, _matching(_NAME, "the name of a namespace")] | None = setting(
        None, "Namespace of the pods. Needed."
    )
    image: str | None = setting(
        None,
        "Image of the executors, the same as the driver's: Python and jars have the same paths "
        "in both. Needed.",
        min_length=1,
    )
    image_pull_policy: Literal["IfNotPresent", "Always", "Never"] = setting(
        "IfNotPresent", "When nodes pull the image."
    )
    image_pull_secrets: list[ObjectName] = setting(
        [], "Secrets that hold the logins of the image's registry."
    )
    driver_pod: ObjectName | None = setting(
        None,
        "Name of the driver's pod, which owns the executors' pods: they go when it goes. Needed; "
        "`{env: POD_NAME}` takes it from a variable.",
    )
    service_account: ObjectName | None = setting(
        None, "Service account of the executors, which need no rights; absent: default."
    )
    pod_template_file: FilePath | None = setting(
        None,
        "Template of an executor's pod (YAML): labels, security context, affinity, nodes, "
        f"tolerations, volumes. Its container is named `{CONTAINER}`.",
    )
    cpu_request: Cpus | None = setting(
        None, "CPUs that an executor's pod requests; absent: `executors.cores`."
    )
    cpu_limit: Cpus | None = setting(
        None, "CPUs that an executor's pod may take; absent: no limit."
    )
    secret_env: dict[
        Annotated[str, _matching(_VARIABLE, "the name of a variable")],
        Annotated[str, _matching(_SECRET_KEY, "secret:key"), Shown("secret:key")],
    ] = setting(
        {},
        "Variables of the executors whose values are keys of secrets, as `secret:key`. Logins to "
        "Kafka need none: they travel with the tasks.",
    )
    checkpoint_claim: ObjectName | None = setting(
        None,
        "Claim of a volume for all (ReadWriteMany) that holds `state.checkpoint`. Absent: the "
        "checkpoint is a URI of a shared store, or the template mounts its volume.",
    )
    checkpoint_mount: MountPath | None = setting(
        None,
        "Where the volume of `checkpoint_claim` is mounted, in the executors and in the driver's "
        "pod.",
    )

    @model_validator(mode="after")
    def _whole_claim(self) -> Kubernetes:
        check_pair(self, "checkpoint_claim", "checkpoint_mount")
        return self


def check_master(value: str) -> str:
    """``value``, if it is a master. Spark itself is asked about those that are not local."""
    if value.startswith("local") and not _LOCAL.fullmatch(value):
        raise refused("`local[N]`, `local[N,F]` with N cores (`*`: all) and F attempts at a task")
    return value


class Spark(SettingsSection):
    """The Spark application."""

    master: Annotated[str, AfterValidator(check_master), Shown("text")] = setting(
        "local[*,4]",
        "Any Spark master; `local[N,F]`: N cores, F attempts at a task.",
        min_length=1,
    )
    app_name: str = setting("spark-cep", "Name of the application.", min_length=1)
    conf: Properties = setting({}, "Any Spark settings; they win.")
    classes_folder: Path | None = setting(
        None,
        "Folder with the archive of the classes that a start loads; absent: the archive that "
        "`spark-cep prepare` has made, if there is one.",
    )
    driver: Driver = setting(Driver(), "Where executors call the driver.")
    executors: Executors = setting(Executors(), "Executors of their own.")
    kubernetes: Kubernetes = setting(Kubernetes(), "The executors' pods.")

    @model_validator(mode="after")
    def _fits_the_master(self) -> Spark:
        check_cluster(self)
        return self


def is_local(master: str) -> bool:
    """Tell whether tasks run in the driver's own process."""
    return master.startswith("local") and not master.startswith("local-cluster")


def on_kubernetes(master: str) -> bool:
    """Tell whether executors are pods."""
    return master.startswith("k8s://")


def check_cluster(settings: Spark) -> None:
    """Raise the error of settings that do not go together."""
    master, kubernetes, conf = settings.master, settings.kubernetes, revealed(settings.conf)
    if is_local(master):
        for name in ("executors", "driver"):
            if getattr(settings, name).model_fields_set:
                raise contradiction(
                    f"spark.master {master} runs everything in one process and has no executors: "
                    "remove this section, or name a cluster's master",
                    name,
                )
    if not on_kubernetes(master):
        if kubernetes.model_fields_set:
            raise contradiction(
                f"it describes pods, and spark.master is {master}: remove this section, or set "
                "spark.master to k8s://https://kubernetes.default.svc",
                "kubernetes",
            )
    else:
        _check_pods(settings)
    if str(conf.get("spark.dynamicAllocation.enabled", "false")).lower() == "true":
        raise contradiction(
            "dynamic allocation takes executors away between batches, and with them the state "
            "that they hold open and the Python workers: every batch would load both again. Set "
            "spark.executors.count",
            "conf",
        )


def _check_pods(settings: Spark) -> None:
    kubernetes = settings.kubernetes
    needed = {"namespace": kubernetes.namespace, "image": kubernetes.image}
    needed["driver_pod"] = kubernetes.driver_pod
    for name, value in needed.items():
        if value is None:
            raise contradiction(
                f"missing, and needed with spark.master {settings.master}", f"kubernetes.{name}"
            )
    if settings.driver.host is None:
        raise contradiction(
            "missing, and needed on Kubernetes: executors call the driver by the name of its "
            "headless service",
            "driver.host",
        )
    if revealed(settings.conf).get("spark.submit.deployMode", "client") != "client":
        raise contradiction(
            "the driver is this process, so spark.submit.deployMode can only be client", "conf"
        )


def check_checkpoint(settings: Spark, checkpoint: str) -> None:
    """Raise the error of a checkpoint that the executors' pods cannot reach."""
    if not on_kubernetes(settings.master):
        return
    kubernetes = settings.kubernetes
    local = "://" not in checkpoint or checkpoint.startswith("file:")
    mount = kubernetes.checkpoint_mount
    if mount is not None:
        place = Path(checkpoint.removeprefix("file:").replace("//", "/"))
        if not local or not place.is_relative_to(mount):
            raise contradiction(
                f"{checkpoint} is not below spark.kubernetes.checkpoint_mount ({mount})",
                "state.checkpoint",
            )
    elif local and kubernetes.pod_template_file is None:
        raise contradiction(
            f"executors are pods, and each would have a folder {checkpoint} of its own: give a URI "
            "of a store that all reach, or spark.kubernetes.checkpoint_claim, or mount a volume by "
            "spark.kubernetes.pod_template_file",
            "state.checkpoint",
        )


def check_overhead(settings: Spark, rocksdb_memory: int) -> None:
    """Raise the error of executors that have no room for RocksDB."""
    overhead = settings.executors.memory_overhead
    if overhead is not None and overhead <= rocksdb_memory:
        raise contradiction(
            "state.rocksdb_memory alone takes as much, and Python workers need room too: at least "
            "512 MiB more for each core",
            "spark.executors.memory_overhead",
        )


def cluster_conf(settings: Spark, rocksdb_memory: int) -> dict[str, str]:
    """Spark's settings for its executors; none with a local master. They hold no secrets."""
    if is_local(settings.master):
        return {}
    made = _executors(settings.executors, rocksdb_memory)
    kubernetes = on_kubernetes(settings.master)
    driver = settings.driver
    optional: dict[str, Any] = {
        "spark.driver.host": driver.host,
        "spark.driver.bindAddress": driver.bind_address or ("0.0.0.0" if kubernetes else None),  # noqa: S104
        "spark.driver.port": driver.port or (DRIVER_PORT if kubernetes else None),
        "spark.blockManager.port": driver.block_manager_port
        or (BLOCK_MANAGER_PORT if kubernetes else None),
    }
    if kubernetes:
        optional |= _pods(settings.kubernetes)
    return made | {name: str(value) for name, value in optional.items() if value is not None}


def _executors(executors: Executors, rocksdb_memory: int) -> dict[str, str]:
    overhead = executors.memory_overhead
    if overhead is None:
        overhead = rocksdb_memory + executors.cores * _PYTHON_PER_CORE + 384 * _MIB
    return {
        "spark.executor.instances": str(executors.count),
        "spark.executor.cores": str(executors.cores),
        # For a standalone master, which would give the job all its cores.
        "spark.cores.max": str(executors.count * executors.cores),
        "spark.executor.memory": f"{executors.memory // _MIB}m",
        "spark.executor.memoryOverhead": f"{-(-overhead // _MIB)}m",
        "spark.dynamicAllocation.enabled": "false",
    }


def _pods(kubernetes: Kubernetes) -> dict[str, Any]:
    executor = "spark.kubernetes.executor"
    template = kubernetes.pod_template_file
    made: dict[str, Any] = {
        "spark.submit.deployMode": "client",
        "spark.kubernetes.namespace": kubernetes.namespace,
        "spark.kubernetes.container.image": kubernetes.image,
        "spark.kubernetes.container.image.pullPolicy": kubernetes.image_pull_policy,
        "spark.kubernetes.container.image.pullSecrets": ",".join(kubernetes.image_pull_secrets)
        or None,
        "spark.kubernetes.driver.pod.name": kubernetes.driver_pod,
        "spark.kubernetes.authenticate.executor.serviceAccountName": kubernetes.service_account,
        f"{executor}.podTemplateFile": template,
        f"{executor}.podTemplateContainerName": CONTAINER if template is not None else None,
        f"{executor}.request.cores": kubernetes.cpu_request,
        f"{executor}.limit.cores": kubernetes.cpu_limit,
        # The image has all of it, so the driver needs no rights to these kinds of objects.
        f"{executor}.disableConfigMap": "true",
        "spark.kubernetes.driver.service.deleteOnTermination": "false",
        "spark.kubernetes.driver.ownPersistentVolumeClaim": "false",
        "spark.kubernetes.driver.reusePersistentVolumeClaim": "false",
        # What travels between driver and executors holds logins. Spark makes the secret itself.
        "spark.authenticate": "true",
        "spark.network.crypto.enabled": "true",
    }
    made |= {f"{executor}.secretKeyRef.{k}": v for k, v in kubernetes.secret_env.items()}
    if kubernetes.checkpoint_claim is not None:
        volume = f"{executor}.volumes.persistentVolumeClaim.{CHECKPOINT_VOLUME}"
        made |= {
            f"{volume}.options.claimName": kubernetes.checkpoint_claim,
            f"{volume}.mount.path": kubernetes.checkpoint_mount,
            f"{volume}.mount.readOnly": "false",
        }
    return made
