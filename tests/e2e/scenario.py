"""One job of a test: its topics, schemas, records and rules in, its decoded outputs out.

A scenario has topics, a rules folder and a checkpoint that no other scenario shares. It is run to
the end of its input (:meth:`Scenario.run`, as often as the test likes, from the same checkpoint) or
in a thread until a condition on its outputs holds (:meth:`Scenario.running`).
"""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import fastavro
import yaml
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from pyspark.sql import SparkSession

from spark_cep.codecs.registry.framing import frame
from spark_cep.config import Settings
from spark_cep.observability.metrics import Metrics
from spark_cep.pipeline.driver.observe.progress import BatchReport
from spark_cep.pipeline.driver.service import Service
from spark_cep.pipeline.spark.starting import StartingSpark
from spark_cep.pipeline.wire.reports import Count
from tests.e2e.outputs import Outputs
from tests.kafka_access import KafkaAccess, Sent

_SECONDS = 90.0


class Scenario:
    """A job and everything around it."""

    def __init__(
        self,
        kafka: KafkaAccess,
        registry: str,
        spark: SparkSession | StartingSpark | None,
        folder: Path,
    ) -> None:
        self.kafka = kafka
        self.folder = folder
        self.rules_folder = folder / "rules"
        self.rules_folder.mkdir(parents=True)
        self.reports: list[BatchReport] = []
        self._failures: list[BaseException] = []
        self._metrics = Metrics()
        self._registry_url = registry
        self._registry = SchemaRegistryClient({"url": registry})
        self._spark = spark
        self._name = f"t{uuid.uuid4().hex[:10]}"
        self.inputs: dict[str, dict[str, Any]] = {}
        self._schemas: dict[int, Any] = {}
        self._sent: Counter[tuple[str, int]] = Counter()

    # What the job reads.

    def input(self, name: str, *, partitions: int = 1, **settings: Any) -> str:
        """Make a topic and an input that reads it; the topic's name."""
        topic = self.topic(name)
        self.kafka.create_topics({topic: partitions})
        self.inputs[name] = {"topics": [topic], "event_time": "ts", **settings}
        return topic

    def topic(self, name: str) -> str:
        """The full name of one of this scenario's topics."""
        return f"{self._name}.{name}"

    def register_as_it_is(self, name: str, schema: object) -> int:
        """Register what may be no schema, as for the values of a topic; its id. Raises
        SchemaRegistryError where the registry refuses it."""
        subject = f"{self.topic(name)}-value"
        return int(self._registry.register_schema(subject, Schema(json.dumps(schema), "AVRO")))

    def register_text(self, name: str, text: str, kind: str) -> int:
        """Register a schema of another type than Avro for the values of an input's topic; its
        id."""
        subject = f"{self.topic(name)}-value"
        return int(self._registry.register_schema(subject, Schema(text, kind)))

    def register(self, name: str, schema: Mapping[str, Any] | Sequence[Any]) -> int:
        """Register a schema for the values of an input's topic; its id."""
        schema_id = self.register_as_it_is(name, schema)
        self._schemas[schema_id] = fastavro.parse_schema(json.loads(json.dumps(schema)))
        return schema_id

    def avro(self, schema_id: int, datum: Any) -> bytes:
        """A value of the schema, framed."""
        body = BytesIO()
        fastavro.schemaless_writer(body, self._schemas[schema_id], datum)
        return frame(schema_id, body.getvalue())

    def send(self, name: str, *records: Sent) -> list[int]:
        """Produce to an input's topic, in this order; the records' offsets."""
        offsets = []
        for record in records:
            offsets.append(self._sent[name, record.partition])
            self._sent[name, record.partition] += 1
        self.kafka.send(self.topic(name), records)
        return offsets

    def rule(self, document: str | Mapping[str, Any]) -> None:
        """Add a rule, as YAML or as its content."""
        content = yaml.safe_load(document) if isinstance(document, str) else dict(document)
        file = self.rules_folder / f"{content['id']}.yaml"
        file.write_text(yaml.safe_dump(content, sort_keys=False), "utf-8")

    # The job.

    def document(self, **sections: Mapping[str, Any]) -> dict[str, Any]:
        """The configuration; ``sections`` add to those of the scenario or change them."""
        document: dict[str, Any] = {
            "kafka": {"bootstrap_servers": self.kafka.bootstrap},
            "inputs": self.inputs,
            "outputs": {
                "topics": {
                    kind: self.topic(kind) for kind in (*Outputs.KINDS, "rule_status", "rule_audit")
                },
                "create_topics": {"partitions": 1, "replication": 1},
            },
            "registry": {"url": self._registry_url, "max_attempts": 2},
            "time": {"allowed_disorder": "0 ms"},
            "state": {
                "checkpoint": str(self.folder / "checkpoint"),
                "bucket_size": "1 KiB",
                "state_partitions": 1,
            },
            "trigger": {"mode": "available_now"},
            "lifecycle": {"stop_grace": "1 minute"},
            "rules": {
                "folder": str(self.rules_folder),
                "overrides_topic": self.topic("rule_overrides"),
            },
            "observability": {"metrics_port": 0, "log_level": "warning"},
        }
        for name, section in sections.items():
            document[name] = {**document.get(name, {}), **section}
        # Another checkpoint is another job.
        job = f"{self._name}.{Path(document['state']['checkpoint']).name}"
        document["outputs"] = {"transactional_id_prefix": job, **document["outputs"]}
        return document

    def service(
        self,
        *,
        on_batch: Callable[[BatchReport], None] | None = None,
        **sections: Mapping[str, Any],
    ) -> Service:
        """A service of its own, not yet running; ``on_batch`` is called instead of keeping its
        reports."""
        settings = Settings.model_validate(self.document(**sections))
        if isinstance(self._spark, SparkSession):
            partitions = str(settings.state.state_partitions)
            self._spark.conf.set("spark.sql.shuffle.partitions", partitions)
        self._metrics = Metrics()
        on_batch = on_batch or self.reports.append
        return Service(settings, self._metrics, on_batch=on_batch, spark=self._spark)

    def run(self, **sections: Mapping[str, Any]) -> Outputs:
        """Run to the end of the input, from the checkpoint if there is one; the outputs so far."""
        self.service(on_batch=None, **sections).run()
        return self.outputs()

    def decide(self, **sections: Mapping[str, Any]) -> Outputs:
        """Run to the end of the input and of time, so that nothing stays open."""
        trigger = {"mode": "available_now", "at_end_of_input": "decide"}
        return self.run(trigger=trigger, **sections)

    @contextmanager
    def running(self, **sections: Mapping[str, Any]) -> Iterator[Service]:
        """Run without end in a thread, until the block is left; errors of the job are raised."""
        trigger = {"mode": "continuous", "latency": "100 ms"}
        service = self.service(on_batch=None, **{"trigger": trigger, **sections})
        self._failures.clear()

        def target() -> None:
            try:
                service.run()
            except BaseException as error:  # noqa: BLE001  raised again below
                self._failures.append(error)

        thread = threading.Thread(target=target, name="service")
        thread.start()
        try:
            yield service
        finally:
            service.stop()
            thread.join(_SECONDS)
            self._raise_failure()
        assert not thread.is_alive(), "the service did not stop"

    def _raise_failure(self) -> None:
        if self._failures:
            raise self._failures[0]

    def wait_for(self, condition: Callable[[Outputs], Any], seconds: float = _SECONDS) -> Outputs:
        """Read the outputs until ``condition`` holds of them."""
        deadline = time.monotonic() + seconds
        while True:
            outputs = self.outputs()
            if condition(outputs):
                return outputs
            assert time.monotonic() < deadline, f"timed out; there is: {outputs}"
            time.sleep(0.25)

    def wait_until_failed(self, seconds: float = _SECONDS) -> None:
        """Wait until the job has ended with an error."""
        deadline = time.monotonic() + seconds
        while not self._failures:
            assert time.monotonic() < deadline, "timed out waiting for an error"
            time.sleep(0.05)

    def wait_for_records(self, count: int, seconds: float = _SECONDS) -> None:
        """Wait until batches with this many records in all are done."""
        deadline = time.monotonic() + seconds
        while self.total(Count.RECORDS) < count:
            self._raise_failure()
            assert time.monotonic() < deadline, f"timed out waiting for {count} records"
            time.sleep(0.05)

    def total(self, what: Count) -> int:
        """A count of the batches so far, summed up."""
        return sum(report.total(what) for report in self.reports)

    @property
    def metrics(self) -> Metrics:
        """All metrics of the last service."""
        return self._metrics

    def metric(self, name: str, **labels: str) -> float | None:
        """The value of a metric of the last service."""
        return self._metrics.registry.get_sample_value(name, labels)

    def outputs(self, **topics: str) -> Outputs:
        """All that the output topics hold; ``topics`` names those that are not the usual ones."""
        return Outputs.read(self.kafka, lambda kind: topics.get(kind) or self.topic(kind))
