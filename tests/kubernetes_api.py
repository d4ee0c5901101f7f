"""As much of a Kubernetes API server, and of a node, as Spark's own master for it talks to.

Pods are kept as Spark sends them. Their containers are run as processes of this machine, by the
image's own entry point, with the variables of the pod and nothing else of the test's surroundings.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pyspark

from supply_chain.java import find_java

ENTRYPOINT = Path(__file__).parents[1] / "image" / "entrypoint.sh"
_PATH = re.compile(r"/api/v1/namespaces/(?P<namespace>[^/]+)/pods(/(?P<name>[^/]+))?")

Pod = dict[str, Any]


@dataclass
class KubernetesApi:
    """What was asked for, and what runs. ``secrets``: values by name and key."""

    folder: Path
    secrets: Mapping[tuple[str, str], str]
    url: str = ""
    pods: dict[str, Pod] = field(default_factory=dict)
    created: list[Pod] = field(default_factory=list)
    asked: set[tuple[str, str]] = field(default_factory=set)
    _running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def answer(self, method: str, target: str, body: Any) -> tuple[int, Any]:
        """Status and object of one request."""
        address = urlsplit(target)
        found = _PATH.fullmatch(address.path)
        self.asked.add((method, "pods" if found else address.path))
        if found is None:
            return 403, _status(403, f"{address.path} is forbidden")
        name = found["name"]
        with self._lock:
            if method == "POST":
                return 201, self._create(body, found["namespace"])
            labels = parse_qs(address.query).get("labelSelector", [""])[0]
            chosen = [name] if name else self._with(labels)
            if name and name not in self.pods:
                return 404, _status(404, f"pod {name} not found")
            if method == "PATCH" and name:
                self.pods[name]["metadata"].setdefault("labels", {}).update(
                    (body.get("metadata") or {}).get("labels") or {}
                )
            if method == "DELETE":
                for each in chosen:
                    self._delete(each)
                return 200, _status(200, "deleted")
            if name:
                return 200, self._seen(name)
            items = [self._seen(each) for each in chosen]
            return 200, {
                "kind": "PodList",
                "apiVersion": "v1",
                "metadata": {"resourceVersion": "1"},
                "items": items,
            }

    def add_driver(self, name: str) -> None:
        """A pod that is there before: the driver's own."""
        self.pods[name] = {
            "kind": "Pod",
            "apiVersion": "v1",
            "metadata": {"name": name, "uid": "driver-uid", "namespace": "cep"},
            "spec": {"containers": []},
            "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
        }

    def stop(self) -> None:
        """End all containers."""
        with self._lock:
            for name in list(self._running):
                self._delete(name)

    def _create(self, pod: Pod, namespace: str) -> Pod:
        pod["metadata"]["namespace"] = namespace
        self.created.append(json.loads(json.dumps(pod)))
        name = pod["metadata"]["name"]
        pod["metadata"] |= {"uid": f"uid-{name}", "resourceVersion": "1"}
        pod["status"] = {"phase": "Pending"}
        self.pods[name] = pod
        self._running[name] = start_container(pod, self.folder, self._secret)
        return pod

    def _secret(self, name: str, key: str) -> str:
        return self.secrets[name, key]

    def _seen(self, name: str) -> Pod:
        process = self._running.get(name)
        if process is not None:
            self.pods[name]["status"] = status_of(process)
        return self.pods[name]

    def _with(self, selector: str) -> list[str]:
        wanted = [pair.partition("=")[::2] for pair in selector.split(",") if "=" in pair]
        return [
            name
            for name, pod in self.pods.items()
            if all(
                (pod["metadata"].get("labels", {}).get(key.rstrip("!")) == value) != ("!" in key)
                for key, value in wanted
            )
        ]

    def _delete(self, name: str) -> None:
        self.pods.pop(name, None)
        process = self._running.pop(name, None)
        if process is not None:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(10)
            process.kill()
            process.wait()


def start_container(
    pod: Pod, folder: Path, secret: Callable[[str, str], str]
) -> subprocess.Popen[bytes]:
    """Run the pod's container as a process, by the image's entry point; what it says is in
    ``folder``. ``secret``: the value of a secret's key."""
    name, container = pod["metadata"]["name"], pod["spec"]["containers"][0]

    def value(variable: Mapping[str, Any]) -> str:
        source = variable.get("valueFrom")
        if source is None:
            return str(variable.get("value", ""))
        if "secretKeyRef" in source:
            return secret(source["secretKeyRef"]["name"], source["secretKeyRef"]["key"])
        known = {"status.podIP": "127.0.0.1", "metadata.name": name}
        return str(known[source["fieldRef"]["fieldPath"]])

    with (folder / f"{name}.log").open("wb") as log:
        return subprocess.Popen(
            [str(ENTRYPOINT), *container["args"]],
            env=_image() | {one["name"]: value(one) for one in container["env"]},
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )


def status_of(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    """The status of the pod whose container this is."""
    code = process.poll()
    state = {"running": {}} if code is None else {"terminated": {"exitCode": abs(code)}}
    phase = "Running" if code is None else "Failed" if code else "Succeeded"
    return {"phase": phase, "containerStatuses": [{"name": "executor", "state": state}]}


def _image() -> dict[str, str]:
    """The variables of the image, for the paths of this machine."""
    tools = [Path(sys.executable).parent, find_java().parent, Path("/usr/bin"), Path("/bin")]
    given = {
        "PATH": ":".join(map(str, tools)),
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "PYTHONSAFEPATH": "1",
    }
    passed_on = ("JAVA_HOME", "PYTHONPATH", "NUMBA_CACHE_DIR")
    return given | {name: os.environ[name] for name in passed_on if name in os.environ}


def _status(code: int, message: str) -> dict[str, Any]:
    success = "Success" if code < 400 else "Failure"
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": success,
        "code": code,
        "message": message,
    }


@contextmanager
def kubernetes_api(
    folder: Path, secrets: Mapping[tuple[str, str], str] | None = None
) -> Iterator[KubernetesApi]:
    """A running one; what containers say is in ``folder``."""
    api = KubernetesApi(folder, secrets or {})

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _respond(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            text = self.rfile.read(length)
            status, made = api.answer(self.command, self.path, json.loads(text) if text else {})
            answer = json.dumps(made).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _respond

        def log_message(self, *_: Any) -> None:
            """Nothing: what was asked is kept."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    api.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, name="kubernetes-api")
    thread.start()
    try:
        yield api
    finally:
        api.stop()
        server.shutdown()
        thread.join()
        server.server_close()
