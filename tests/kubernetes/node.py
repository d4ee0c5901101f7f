"""A node of the control plane: it runs executors' containers as processes of this machine."""

from __future__ import annotations

import base64
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.kubernetes.cluster import Cluster, RefusedError
from tests.kubernetes_api import start_container, status_of

_LOOK_EVERY_SECONDS = 0.25
_MERGE = "application/merge-patch+json"


class Node:
    """Looks for executors' pods of a namespace and tells the API what becomes of them; ``seen``:
    every pod, as it was when it was first seen."""

    def __init__(self, api: Cluster, namespace: str, folder: Path) -> None:
        self.seen: dict[str, Any] = {}
        self._api = api
        self._namespace = namespace
        self._folder = folder
        self._path = f"/api/v1/namespaces/{namespace}/pods"
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._told: dict[str, str] = {}

    def look(self) -> None:
        """Start what is new, tell what has changed, end what is gone."""
        found = self._api.request(f"{self._path}?labelSelector=spark-role%3Dexecutor")["items"]
        pods = {pod["metadata"]["name"]: pod for pod in found}
        for name, pod in pods.items():
            if name not in self.seen:
                self.seen[name] = pod
                self._running[name] = start_container(pod, self._folder, self._secret)
        for name, process in list(self._running.items()):
            if name not in pods or "deletionTimestamp" in pods[name]["metadata"]:
                self._end(name)
                continue
            status = status_of(process)
            if self._told.get(name) != status["phase"]:
                self._told[name] = status["phase"]
                with suppress(RefusedError):
                    self._tell(name, status | {"podIP": "127.0.0.1"})

    def stop(self) -> None:
        """End all containers."""
        for name in list(self._running):
            self._end(name)

    def _tell(self, name: str, status: Any) -> None:
        path = f"{self._path}/{name}/status"
        self._api.request(path, {"status": status}, method="PATCH", kind=_MERGE)

    def _secret(self, name: str, key: str) -> str:
        found = self._api.request(f"/api/v1/namespaces/{self._namespace}/secrets/{name}")
        return base64.b64decode(found["data"][key]).decode()

    def _end(self, name: str) -> None:
        process = self._running.pop(name)
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(10)
        process.kill()
        process.wait()


@contextmanager
def node(api: Cluster, namespace: str, folder: Path) -> Iterator[Node]:
    """A node at work; what containers say is in ``folder``."""
    made = Node(api, namespace, folder)
    ended = threading.Event()

    def work() -> None:
        while not ended.wait(_LOOK_EVERY_SECONDS):
            made.look()

    thread = threading.Thread(target=work, name="node")
    thread.start()
    try:
        yield made
    finally:
        ended.set()
        thread.join()
        made.stop()
