"""Releases of the chart on a control plane."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.kubernetes.cluster import CHART, HELM, TOOLS, Cluster

LOCAL, EXECUTORS = CHART / "ci/local-values.yaml", CHART / "ci/executors-values.yaml"

needs_control_plane = pytest.mark.skipif(
    not (HELM.exists() and (TOOLS / "kube-apiserver").exists()),
    reason="no control plane is built: `make test-kubernetes` builds one and runs this",
)


def installed(api: Cluster, namespace: str, values: Path, *more: str) -> str:
    """The chart installed as ``cep`` in a new namespace, with ``more`` values set."""
    api.namespace(namespace)
    settings = [word for each in more for word in ("--set", each)]
    api.helm("install", "cep", CHART, "--namespace", namespace, "--values", values, *settings)
    return namespace


def stateful_set(api: Cluster, namespace: str) -> Any:
    """The release's only one."""
    (found,) = api.request(f"/apis/apps/v1/namespaces/{namespace}/statefulsets")["items"]
    return found


def driver_pod(api: Cluster, namespace: str) -> Any:
    """The pod that the controller makes of it."""
    name = stateful_set(api, namespace)["metadata"]["name"]
    return api.wait_for(f"/api/v1/namespaces/{namespace}/pods/{name}-0")
