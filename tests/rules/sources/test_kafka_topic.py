"""Rules from a Kafka topic: keys, transactions, topics that are refused or made again."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from examples.embedded import EmbeddedBroker
from spark_cep.errors import ConfigurationError, RuleSetError, RulesTopicUnavailableError
from spark_cep.rules.sources import compacted_topic
from spark_cep.rules.sources.configured import source_of
from spark_cep.rules.sources.source import RuleSource
from tests.rules.sources.test_configured import versions
from tests.rules.sources.test_folder import rule
from tests.rules.stores import KafkaStore, settings

pytestmark = pytest.mark.kafka


@pytest.fixture
def topic() -> str:
    """One that no other test has."""
    return f"rules-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def store(broker: EmbeddedBroker, topic: str) -> KafkaStore:
    """An empty topic."""
    return KafkaStore(broker, topic)


@pytest.fixture
def source(store: KafkaStore) -> Iterator[RuleSource]:
    """A source of the topic."""
    with closing(store.source()) as made:
        yield made


def problems(source: RuleSource) -> dict[str, tuple[str, str | None]]:
    """What is wrong and what would be right, by place."""
    return {
        str(problem.source): (problem.message, problem.allowed)
        for file in source.read() or ()
        for problem in file.problems
    }


@pytest.mark.parametrize(
    "code",
    [
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.OFFSET_NOT_AVAILABLE,
    ],
)
def test_a_leader_that_is_not_there_yet(
    store: KafkaStore, topic: str, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the topic was made a moment ago: it is asked again."""
    store.put("a", rule("a"))
    refusals = [KafkaException(KafkaError(code))] * 2

    class Early(Consumer):
        def get_watermark_offsets(self, *given: Any, **named: Any) -> Any:
            if refusals:
                raise refusals.pop()
            return super().get_watermark_offsets(*given, **named)

    monkeypatch.setattr(compacted_topic, "Consumer", Early)
    with closing(store.source()) as source:
        assert versions(source.read()) == {"a": 1}
    assert not refusals


def test_an_error_between_records(store: KafkaStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was fetched behind it is read again."""
    for name in "abc":
        store.put(name, rule(name))

    class Failed:
        def error(self) -> KafkaError:
            return KafkaError(KafkaError.NOT_LEADER_FOR_PARTITION)

        def offset(self) -> None:
            return None

    failures = [Failed()]

    class Cut(Consumer):
        def consume(self, *given: Any) -> Any:
            found: list[Any] = [*super().consume(*given)]
            if len(found) > 1 and failures:
                found[1:1] = [failures.pop()]
            return found

    monkeypatch.setattr(compacted_topic, "Consumer", Cut)
    with closing(store.source()) as source:
        assert versions(source.read()) == {"a": 1, "b": 1, "c": 1}
    assert not failures


def test_keys(store: KafkaStore, source: RuleSource, topic: str) -> None:
    """A key is the id of the rule, which need not say it again; each that is wrong is a problem
    with its offset."""
    store.put("a", rule("a").replace("id: a\n", ""))
    assert versions(source.read()) == {"a": 1}
    store.put("b", rule("other"))
    store.send(b"\xff", rule("c").encode())
    store.send(b"", rule("d").encode())
    store.send(b"e", b"id: \xff")
    store.send(b"f", b"")
    store.send(b"g", f"{rule('g')}---\n{rule('h')}".encode())
    assert problems(source) == {
        f"{topic}/0/1": ("the id is other, and the entry stands for b", "`id: b`, or no `id`"),
        f"{topic}/0/2": ("the key is not UTF-8: byte 0 cannot be read", "text in UTF-8"),
        f"{topic}/0/3": ("the record has no key", "the rule's id as the key"),
        f"{topic}/0/4": ("the value is not UTF-8: byte 4 cannot be read", "text in UTF-8"),
        f"{topic}/0/5": ("there is no rule", "a rule or more"),
        f"{topic}/0/6": ("the id is h, and the entry stands for g", "`id: g`, or no `id`"),
    }


def test_a_transaction_is_one_change(
    store: KafkaStore, source: RuleSource, broker: EmbeddedBroker, topic: str
) -> None:
    """What is not committed is not there, and nobody waits for it; what is aborted never was."""

    def new_writer() -> Producer:
        client = {"bootstrap.servers": broker.bootstrap, "transactional.id": topic, "log_level": 0}
        writer = Producer(client)
        writer.init_transactions(30)
        return writer

    store.put("a", rule("a"))
    assert versions(source.read()) == {"a": 1}
    for end in (Producer.abort_transaction, Producer.commit_transaction):
        writer = new_writer()
        writer.begin_transaction()
        for name in ("b", "c"):
            writer.produce(topic, rule(name), name)
        assert writer.flush(30) == 0
        assert source.read() is None
        end(writer, 30)
        # The broker may answer before it writes the marker, for which the next writer waits.
        new_writer()
        found = source.read()
    assert versions(found) == {"a": 1, "b": 1, "c": 1}
    assert source.read() is None


@pytest.mark.parametrize(
    ("partitions", "config", "told", "allowed"),
    [
        (2, {"cleanup.policy": "compact"}, "the topic has 2 partitions", "one, so that"),
        (1, {}, "cleanup.policy of the topic is delete, and rules would expire", "=compact"),
        (1, {"cleanup.policy": "compact,delete"}, "is compact,delete, and rules", "=compact"),
    ],
)
def test_topics_that_cannot_hold_rules(
    broker: EmbeddedBroker,
    topic: str,
    partitions: int,
    config: dict[str, str],
    told: str,
    allowed: str,
) -> None:
    """Are refused with what is wrong; and one that does not exist is not created."""
    given: dict[str, Any] = {"kafka": {"topic": topic}, "source": "kafka"}
    given["cluster"] = {"bootstrap_servers": broker.bootstrap}
    with closing(source_of(settings(**given))) as source:
        for _ in range(2):
            with pytest.raises(RuleSetError, match="there is no such topic"):
                source.read()
        broker.create_topics({topic: partitions}, config)
        with pytest.raises(RuleSetError) as caught:
            source.read()
    (problem,) = caught.value.problems
    assert told in problem.message
    assert allowed in str(problem.allowed)


def test_a_topic_that_is_made_again(
    store: KafkaStore, source: RuleSource, broker: EmbeddedBroker, topic: str
) -> None:
    """Holds what it holds now, and no more what it held."""
    for name in "abc":
        store.put(name, rule(name))
    assert versions(source.read()) == {"a": 1, "b": 1, "c": 1}
    admin = broker.admin()  # must outlive the future
    admin.delete_topics([topic], operation_timeout=30)[topic].result(30)
    with pytest.raises(RuleSetError, match="there is no such topic"):
        source.read()
    again = KafkaStore(broker, topic)
    again.put("d", rule("d"))
    assert versions(source.read()) == {"d": 1}


def test_a_topic_that_is_made_again_between_two_reads(
    store: KafkaStore, source: RuleSource, broker: EmbeddedBroker, topic: str
) -> None:
    """With more records than before, or as many: offsets alone would not show it."""
    store.put("a", rule("a"))
    assert versions(source.read()) == {"a": 1}
    for names in ("bcd", "efg"):
        admin = broker.admin()  # must outlive the future
        admin.delete_topics([topic], operation_timeout=30)[topic].result(30)
        again = KafkaStore(broker, topic)
        for name in names:
            again.put(name, rule(name))
        assert versions(source.read()) == dict.fromkeys(names, 1)
    assert source.read() is None


def test_properties_win_and_stay_hidden(broker: EmbeddedBroker, topic: str) -> None:
    """The topic may be on another cluster, with another login; errors do not show it."""
    secret = "p4ssw0rd"
    login = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "u",
        "sasl.password": secret,
    }
    given = {"topic": topic, "timeout": "2 s", "properties": {**login, "client.id": "me"}}
    cluster = {"bootstrap_servers": broker.bootstrap}
    made = settings(source="kafka", kafka=given, cluster=cluster)
    assert secret not in str(made) + made.model_dump_json()
    with closing(source_of(made)) as source, pytest.raises(RuleSetError) as caught:
        source.read()
    assert secret not in str(caught.value)
    given["properties"] = {"no.such.property": "1"}
    with (
        closing(source_of(settings(source="kafka", kafka=given, cluster=cluster))) as source,
        pytest.raises(ConfigurationError, match=r"rules\.kafka\.properties: No such config"),
    ):
        source.read()


@pytest.mark.parametrize(
    ("code", "passes"),
    [(KafkaError._TRANSPORT, True), (KafkaError._AUTHENTICATION, False), (KafkaError._SSL, False)],
)
def test_a_login_that_is_refused(
    topic: str, code: int, monkeypatch: pytest.MonkeyPatch, *, passes: bool
) -> None:
    """Is not waited for, unlike a broker that does not answer; the client says the reason beside a
    time-out."""

    class Refused(AdminClient):
        def __init__(self, config: dict[str, Any]) -> None:
            super().__init__(config)
            self._heard = config["error_cb"]

        def describe_topics(self, *_: Any, **__: Any) -> Any:
            self._heard(KafkaError(code, "no"))
            self._heard(KafkaError(KafkaError._ALL_BROKERS_DOWN))
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))

    monkeypatch.setattr(compacted_topic, "AdminClient", Refused)
    made = settings(source="kafka", kafka={"topic": topic, "timeout": "1 s"})
    with closing(source_of(made)) as source, pytest.raises(RuleSetError) as caught:
        source.read()
    assert isinstance(caught.value, RulesTopicUnavailableError) is passes


def test_a_close_waits_for_no_read(store: KafkaStore, broker: EmbeddedBroker) -> None:
    """The client is not closed under a read that waits for an answer, as at a stop of the job while
    Kafka is unavailable."""
    source = store.source()
    assert source.read() == []
    broker.pause()
    try:
        with ThreadPoolExecutor(1) as reader:
            reading = reader.submit(source.read)
            time.sleep(0.2)
            began = time.monotonic()
            source.close()
            assert time.monotonic() - began < 1
            assert not reading.done()
            with pytest.raises(RuleSetError):
                reading.result(30)
    finally:
        broker.resume()


def test_too_many_records(
    store: KafkaStore, source: RuleSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Are an error at each read, until there are fewer."""
    monkeypatch.setattr("spark_cep.rules.sources.source.MOST_ENTRIES", 1)
    store.put("a", rule("a"))
    assert versions(source.read()) == {"a": 1}
    store.put("b", rule("b"))
    for _ in range(2):
        with pytest.raises(RuleSetError, match=r"holds 2 records[\s\S]*at most 1"):
            source.read()
    store.remove("a")
    assert versions(source.read()) == {"b": 1}
