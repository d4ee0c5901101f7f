"""The back-ends that the contracts are held against: the embedded servers, and containers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kafka_access import KafkaAccess

BACK_ENDS = ["embedded", pytest.param("docker", marks=pytest.mark.docker)]
_KAFKA_IMAGE = "confluentinc/cp-kafka:7.9.0"
_REGISTRY_IMAGE = "apicurio/apicurio-registry-mem:2.6.13.Final"
_REGISTRY_PORT = 8080
_REGISTRY_PATH = "/apis/ccompat/v7"


@pytest.fixture(scope="session")
def docker_engine() -> None:
    """Skips where no Docker engine answers."""
    import docker
    from docker.errors import DockerException

    try:
        client = docker.from_env(timeout=5)
        client.ping()
    except DockerException:
        pytest.skip("no Docker engine answers")
    client.close()


@pytest.fixture(scope="session")
def docker_kafka(docker_engine: None) -> Iterator[KafkaAccess]:
    """A broker in a container."""
    from testcontainers.community.kafka import KafkaContainer

    container = (
        KafkaContainer(_KAFKA_IMAGE)
        .with_kraft()
        .with_env("KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR", "1")
        .with_env("KAFKA_TRANSACTION_STATE_LOG_MIN_ISR", "1")
        .with_env("KAFKA_AUTO_CREATE_TOPICS_ENABLE", "false")
    )
    with container:
        yield KafkaAccess(container.get_bootstrap_server())


@pytest.fixture(scope="session")
def docker_registry(docker_engine: None) -> Iterator[str]:
    """The URL of a registry in a container."""
    from testcontainers.core.container import DockerContainer
    from testcontainers.core.wait_strategies import HttpWaitStrategy

    ready = HttpWaitStrategy(_REGISTRY_PORT, f"{_REGISTRY_PATH}/subjects").for_status_code(200)
    container = DockerContainer(_REGISTRY_IMAGE).with_exposed_ports(_REGISTRY_PORT)
    with container.waiting_for(ready):
        host, port = container.get_container_host_ip(), container.get_exposed_port(_REGISTRY_PORT)
        yield f"http://{host}:{port}{_REGISTRY_PATH}"


@pytest.fixture(params=BACK_ENDS)
def broker(request: pytest.FixtureRequest) -> KafkaAccess:
    """One broker of each back-end."""
    found: KafkaAccess = request.getfixturevalue(f"{request.param}_kafka")
    return found


@pytest.fixture(params=BACK_ENDS)
def registry_url(request: pytest.FixtureRequest) -> str:
    """One registry of each back-end."""
    return str(request.getfixturevalue(f"{request.param}_registry"))
