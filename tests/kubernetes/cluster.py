"""A real Kubernetes control plane: etcd, kube-apiserver with RBAC and Pod Security admission, and
kube-controller-manager. There is no node: pods are made and admitted, and no container runs.
"""

from __future__ import annotations

import json
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from examples.embedded.process import free_ports

ROOT = Path(__file__).parents[2]
TOOLS = ROOT / ".work" / "kubernetes-tools"
HELM = ROOT / ".work" / "tools" / "bin" / "helm"
CHART = ROOT / "helm"
_ADMIN = "admin-of-the-test"
_SECONDS = 60.0


class RefusedError(Exception):
    """An answer of the API that is no success: status and what it says."""

    def __init__(self, status: int, body: str) -> None:
        super().__init__(f"HTTP {status}: {body}")
        self.status = status


@dataclass(frozen=True)
class Cluster:
    """The API at ``url``; ``folder`` holds the kubeconfig and what the processes say."""

    url: str
    ca_file: Path
    folder: Path

    @property
    def kubeconfig(self) -> Path:
        """For helm and the controller manager: an administrator's."""
        return self.folder / "kubeconfig"

    def request(
        self,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        method: str | None = None,
        token: str = _ADMIN,
        kind: str = "application/json",
    ) -> Any:
        """The answer to a request. Raises RefusedError."""
        request = urllib.request.Request(  # noqa: S310  the API's own address
            self.url + path,
            None if body is None else json.dumps(body).encode(),
            {"Authorization": f"Bearer {token}", "Content-Type": kind},
            method=method or ("GET" if body is None else "POST"),
        )
        context = ssl.create_default_context(cafile=str(self.ca_file))
        try:
            answered = urllib.request.urlopen(request, timeout=10, context=context)  # noqa: S310
            with answered as answer:
                text = answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                raise RefusedError(error.code, error.read().decode()) from None
        return json.loads(text) if text.startswith("{") else text

    def namespace(self, name: str) -> str:
        """A new namespace in which only pods of the profile ``restricted`` are admitted."""
        labels = {"pod-security.kubernetes.io/enforce": "restricted"}
        self.request("/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}})
        return name

    def token(self, namespace: str, account: str) -> str:
        """A token of a service account."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
        return str(self.request(path, {"spec": {"expirationSeconds": 3600}})["status"]["token"])

    def may(self, token: str, verb: str, resource: str, namespace: str, group: str = "") -> bool:
        """Whether the token's owner may do that."""
        asked = {"verb": verb, "resource": resource, "namespace": namespace, "group": group}
        answer = self.request(
            "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
            {"spec": {"resourceAttributes": asked}},
            token=token,
        )
        return bool(answer["status"]["allowed"])

    def wait_for(self, path: str) -> Any:
        """An object, once a controller has made it."""
        deadline = time.monotonic() + _SECONDS
        while True:
            try:
                return self.request(path)
            except RefusedError as error:
                if error.status != 404 or time.monotonic() > deadline:
                    raise
                time.sleep(0.2)

    def helm(
        self, *arguments: str | Path, check: bool = True, cwd: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run helm against the cluster."""
        done = subprocess.run(
            [HELM, *arguments, "--kubeconfig", self.kubeconfig],
            capture_output=True, text=True, timeout=300, check=False, cwd=cwd,
        )  # fmt: skip
        assert done.returncode == 0 or not check, done.stderr
        return done


@contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    """A running one, of this moment."""
    store, peers, api, manager = free_ports(4)
    made = Cluster(f"https://127.0.0.1:{api}", folder / "certificates" / "apiserver.crt", folder)
    key = folder / "accounts.key"
    key.write_bytes(
        rsa.generate_private_key(65537, 2048).private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
    )
    tokens = folder / "tokens.csv"
    tokens.write_text(f"{_ADMIN},admin,admin,system:masters\n", "utf-8")
    made.kubeconfig.write_text(yaml.safe_dump(_kubeconfig(made)), "utf-8")
    etcd = f"http://127.0.0.1:{store}"
    with ExitStack() as stack:

        def run(program: str, *options: str) -> None:
            stack.enter_context(_running(folder, program, options))

        run(
            "etcd", "--data-dir", str(folder / "etcd"), "--unsafe-no-fsync",
            "--listen-client-urls", etcd, "--advertise-client-urls", etcd,
            "--listen-peer-urls", f"http://127.0.0.1:{peers}",
        )  # fmt: skip
        run(
            "kube-apiserver", "--etcd-servers", etcd, "--cert-dir", str(made.ca_file.parent),
            "--secure-port", str(api), "--bind-address", "127.0.0.1",
            "--service-cluster-ip-range", "10.0.0.0/24", "--authorization-mode", "RBAC",
            "--token-auth-file", str(tokens), "--service-account-issuer", made.url,
            "--service-account-key-file", str(key), "--service-account-signing-key-file", str(key),
        )  # fmt: skip
        _await_ready(made)
        run(
            "kube-controller-manager", "--kubeconfig", str(made.kubeconfig),
            "--service-account-private-key-file", str(key), "--root-ca-file", str(made.ca_file),
            "--secure-port", str(manager), "--bind-address", "127.0.0.1", "--leader-elect=false",
        )  # fmt: skip
        made.wait_for("/api/v1/namespaces/default/serviceaccounts/default")
        yield made


@contextmanager
def _running(folder: Path, program: str, options: Sequence[str]) -> Iterator[None]:
    with (folder / f"{program}.log").open("wb") as log:
        process = subprocess.Popen(
            [TOOLS / program, *options], stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _await_ready(made: Cluster) -> None:
    deadline = time.monotonic() + _SECONDS
    while True:
        try:
            made.request("/readyz")
        except (OSError, RefusedError):
            log = made.folder / "kube-apiserver.log"
            assert time.monotonic() < deadline, log.read_text("utf-8", "replace")[-3000:]
            time.sleep(0.2)
        else:
            return


def _kubeconfig(made: Cluster) -> dict[str, Any]:
    server = {"server": made.url, "certificate-authority": str(made.ca_file)}
    context = {"cluster": "test", "user": "admin"}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": server}],
        "users": [{"name": "admin", "user": {"token": _ADMIN}}],
        "contexts": [{"name": "test", "context": context}],
        "current-context": "test",
    }
