"""A control plane for all tests here, and a release with executors."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kubernetes.cluster import Cluster, cluster
from tests.kubernetes.releases import EXECUTORS, installed


@pytest.fixture(scope="session")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A control plane."""
    with cluster(tmp_path_factory.mktemp("kubernetes")) as made:
        yield made


@pytest.fixture(scope="session")
def executors(api: Cluster) -> str:
    """The namespace of a release with executors."""
    # The operator's kinds are not installed.
    return installed(api, "executors", EXECUTORS, "metrics.serviceMonitor.enabled=false")
