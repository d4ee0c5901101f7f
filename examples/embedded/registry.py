"""A schema registry with the Confluent API (Apicurio, in memory) as a child process.

Guarantees: :attr:`EmbeddedRegistry.url` is what a Confluent client takes as its URL; the ids that
the registry gives out are those of the five-byte prefix. Schemas are kept in memory alone: a
registry that was stopped or killed starts empty, at the same URL.
"""

from __future__ import annotations

import tarfile
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

from examples.embedded.process import HOST, ChildProcess, free_ports, listening
from examples.embedded.server import EmbeddedServer
from spark_cep.errors import StartError
from supply_chain.jars import resolve
from supply_chain.java import find_java

_JVM = (
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-XX:-UsePerfData",
)


class EmbeddedRegistry(EmbeddedServer):
    """One registry: ``with EmbeddedRegistry(folder, jars) as registry: … registry.url …``."""

    def __init__(
        self, folder: Path, jars_folder: Path, *, port: int | None = None, heap: str = "384m"
    ) -> None:
        super().__init__(folder, "registry")
        self.port = port or free_ports(1)[0]
        self.url = f"http://{HOST}:{self.port}/apis/ccompat/v7"
        self._jars_folder = jars_folder
        self._heap = heap

    def _ready(self) -> bool:
        if not listening(self.port):
            return False
        try:
            with urllib.request.urlopen(f"{self.url}/subjects", timeout=5) as answer:  # noqa: S310
                return bool(answer.status == 200)
        except (urllib.error.URLError, TimeoutError, ConnectionError):
            return False

    def _prepare(self) -> ChildProcess:
        temporary = self.folder / "tmp"
        temporary.mkdir(parents=True, exist_ok=True)
        application = self._unpacked()
        runners = sorted(application.glob("*-runner.jar"))
        if not runners:
            raise StartError(f"the registry's archive has no *-runner.jar; see {application}")
        command = [
            str(find_java()),
            f"-Xmx{self._heap}",
            *_JVM,
            f"-Djava.io.tmpdir={temporary}",
            f"-Dquarkus.http.host={HOST}",
            f"-Dquarkus.http.port={self.port}",
            "-jar",
            str(runners[0]),
        ]
        return ChildProcess("the schema registry", command, self.log, folder=self.folder)

    def _unpacked(self) -> Path:
        """The unpacked archive; a folder of this name is always whole."""
        archive = resolve("registry", self._jars_folder)[0]
        application = self.folder / archive.name.removesuffix(".tar.gz")
        if not application.exists():
            scratch = Path(tempfile.mkdtemp(prefix=".unpack-", dir=self.folder))
            with tarfile.open(archive) as content:
                content.extractall(scratch, filter="data")
            scratch.rename(application)
        return application
