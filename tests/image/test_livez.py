"""The health check of the image, against the service's own pages."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from spark_cep.config import Observability
from spark_cep.observability.access import access_to
from spark_cep.observability.health import Health, HealthServer
from spark_cep.observability.metrics import Metrics
from tests.certificates import Authority

CHECK = Path(__file__).parents[2] / "image" / "livez.py"


def check(**environment: str) -> tuple[int, str]:
    """Exit code and words of the check."""
    done = subprocess.run(
        [sys.executable, "-I", str(CHECK)],
        env={"PATH": os.environ["PATH"], **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stderr == ""
    return done.returncode, done.stdout


def server(health: Health, **settings: Any) -> HealthServer:
    """The pages of a service in this state."""
    access = access_to(Observability.model_validate(settings))
    return HealthServer("127.0.0.1", 0, health, Metrics().registry, list, access)


def test_alive_and_stuck() -> None:
    """Exit code 0, and 1 with what the service says of itself."""
    now = 0.0
    health = Health(1_000, lambda: now)
    pages = server(health)
    pages.start()
    try:
        port = str(pages.port)
        assert check(SPARK_CEP__OBSERVABILITY__METRICS_PORT=port) == (0, "")
        health.ready()
        now = 5.0
        code, said = check(SPARK_CEP__OBSERVABILITY__METRICS_PORT=port)
    finally:
        pages.stop()
    assert code == 1
    assert said.startswith(f"http://127.0.0.1:{port}/livez: 503 ")


def test_behind_tls(tmp_path: Path) -> None:
    """The certificate names another host, which is no matter on the same machine."""
    identity = Authority(tmp_path).identity("pages", hosts=["cep.example"])
    pages = server(
        Health(60_000),
        ssl_certificate_file=str(identity.certificate),
        ssl_key_file=str(identity.key),
    )
    pages.start()
    try:
        assert check(SPARK_CEP_LIVEZ=f"https://127.0.0.1:{pages.port}/livez") == (0, "")
    finally:
        pages.stop()


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/livez", "nonsense"])
def test_nobody_there(url: str) -> None:
    """No answer, or no address."""
    code, said = check(SPARK_CEP_LIVEZ=url)
    assert code == 1
    assert said.startswith(f"{url}: ")
