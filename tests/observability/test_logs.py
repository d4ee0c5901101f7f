"""What log lines look like, from structlog and from Python's own logging, and what they hide."""

from __future__ import annotations

import io
import json
import logging
import re
import threading
import warnings
from collections.abc import Iterator
from typing import Any
from unittest.mock import Mock

import pytest
import structlog
from py4j import protocol
from py4j.java_gateway import GatewayClient
from pydantic import SecretStr

from spark_cep.observability import logs
from spark_cep.observability.logs import bound, configure, identify, logger


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        """It is."""
        return True


@pytest.fixture(autouse=True)
def _restore() -> Iterator[None]:
    """Logging is as it was, after each test."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.captureWarnings(capture=False)
    structlog.reset_defaults()
    structlog.contextvars.clear_contextvars()


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    """The lines as JSON."""
    return [json.loads(line) for line in stream.getvalue().splitlines()]


@pytest.mark.parametrize("level", ["info", "error"])
def test_the_last_line(level: logs.Level) -> None:
    """Whatever the level, and whoever else logs after it."""
    out = io.StringIO()
    configure(level, "json", out)
    logs.only("service.last")
    logger("service.last").info("ended")
    logger("service.other").error("after")
    logging.getLogger("library").critical("after")
    assert [line["event"] for line in lines(out)] == ["ended"]
    logging.getLogger("service.last").setLevel(logging.NOTSET)


def test_which_form_lines_have() -> None:
    """JSON, or text for people."""
    configure("info", "json", io.StringIO())
    assert logs.as_json()
    configure("info", "auto", Terminal())
    assert not logs.as_json()


def test_json_lines_with_bound_values() -> None:
    """A line has time, level, logger, event, its own values and what is bound, and no more."""
    out = io.StringIO()
    configure("info", "json", out)
    with bound(query="q", run="r", batch=7, rule="fraud"):
        logger("service.test").info("batch_done", rows=3)
    logger("service.test").debug("unseen")
    logger("service.test").warning("after")
    first, second = lines(out)
    assert first.pop("timestamp").endswith("Z")
    assert first == {
        "event": "batch_done",
        "level": "info",
        "logger": "service.test",
        "query": "q",
        "run": "r",
        "batch": 7,
        "rule": "fraud",
        "rows": 3,
    }
    assert "query" not in second


def test_other_libraries_come_out_the_same_way() -> None:
    """Python's own logging, its extras, exceptions and warnings are JSON lines too."""
    out = io.StringIO()
    configure("debug", "json", out)
    logging.getLogger("pyspark.sql").info("started %s", "it", extra={"port": 1})
    logging.getLogger("py4j.clientserver").info("chatter")
    try:
        int("password=hunter2")
    except ValueError:
        logging.getLogger("other").exception("broke")
        logger("own").exception("failed")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(capture=False)
        logging.captureWarnings(capture=True)
        warnings.warn("beware", stacklevel=1)
    said = lines(out)
    assert [one["event"] for one in said[:3]] == ["library_log", "library_log", "failed"]
    assert [one["message"] for one in said[:2]] == ["started it", "broke"]
    assert (said[0]["logger"], said[0]["port"]) == ("pyspark.sql", 1)
    assert all("password=**" in one["exception"] for one in said[1:3])
    assert said[3]["logger"] == "py.warnings"
    assert "hunter2" not in out.getvalue()


def test_secrets_are_masked_by_name_type_and_in_texts() -> None:
    """No way of logging a secret that we know of shows it."""
    out = io.StringIO()
    configure("info", "json", out)
    logger("x").info(
        "all_ways",
        password="hunter2",
        api_token="hunter2",
        held=SecretStr("hunter2"),
        nested={"sasl.jaas.config": "hunter2", "list": [{"client_secret": "hunter2"}]},
        url="http://user:hunter2@host/",
        jaas='PlainLoginModule required username="u" password="hun\\"ter2";',
        text="token: hunter2, Authorization: Bearer hunter2",
        ssl_key_location="/run/key.pem",
        key="user-1",
    )
    logging.getLogger("y").warning("connect with secret='hunter2'")
    assert "hunter2" not in out.getvalue()
    assert "ter2" not in out.getvalue()
    assert lines(out)[0]["ssl_key_location"] == "/run/key.pem"
    assert lines(out)[0]["key"] == "user-1"


def test_texts_of_others_move_no_cursor_of_a_terminal() -> None:
    """Control characters are shown as escapes; lines of a traceback stay lines."""
    out = Terminal()
    configure("info", "console", out)
    logger("x").info("hello\x1b[2J", key="a\x1b]0;b", text="two\u202e")
    try:
        raise ValueError("three\x9b31m")
    except ValueError:
        logging.getLogger("y").exception("four\x08")
    shown = out.getvalue()
    for text in ("hello\\x1b[2J", "a\\x1b]0;b", "two\\u202e", "three\\x9b31m", "four\\x08"):
        assert text in shown
    assert sum("Traceback" in line for line in shown.splitlines()) == 1


def test_form_follows_the_stream() -> None:
    """auto is text on a terminal and JSON elsewhere; console is text anywhere."""
    for stream, chosen, is_json in (
        (Terminal(), "auto", False),
        (io.StringIO(), "auto", True),
        (io.StringIO(), "console", False),
        (Terminal(), "json", True),
    ):
        configure("info", chosen, stream)  # type: ignore[arg-type]
        logger("x").info("hello", n=1)
        assert stream.getvalue().startswith("{") == is_json
        assert "hello" in stream.getvalue()


def test_threads_bind_for_themselves() -> None:
    """What one thread binds does not appear on another's lines."""
    out = io.StringIO()
    configure("info", "json", out)
    with bound(batch=1):
        other = threading.Thread(target=lambda: logger("x").info("elsewhere"))
        other.start()
        other.join()
    assert "batch" not in lines(out)[0]


def test_values_that_json_does_not_know() -> None:
    """A value of any type is written as text instead of failing the line."""
    out = io.StringIO()
    configure("info", "json", out)
    logger("x").info("odd", value=object(), items={1, 2}, raw=b"x")
    assert lines(out)[0]["items"] == [1, 2]


def test_the_run_of_a_process_is_on_every_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """On every thread and on lines of libraries; what a thread binds itself goes before."""
    monkeypatch.setattr(logs, "_PROCESS", {})
    out = io.StringIO()
    configure("info", "json", out)
    identify("r-1")
    other = threading.Thread(target=lambda: logging.getLogger("x").info("elsewhere"))
    other.start()
    other.join()
    with bound(run="r-2"):
        logger("x").info("here")
    assert [line["run"] for line in lines(out)] == ["r-1", "r-2"]


def test_a_terminal_has_short_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time of day, level, event and what a person reads; a library's name stays."""
    monkeypatch.setenv("NO_COLOR", "1")
    out = Terminal()
    configure("info", "console", out)
    phases = {"imports": 1.39, "commit": 0.2}
    with bound(query="q" * 36, run="r" * 12, batch=7):
        logger("service.test").info("started", seconds=9.3, phases=phases, meanwhile={"x": 1.0})
    logging.getLogger("pyspark.sql").warning("odd")
    plain = re.sub(r"\x1b\[[0-9;]*m", "", out.getvalue())
    first, second = plain.splitlines()
    assert re.fullmatch(
        r"\d\d:\d\d:\d\d \[info\] started seconds=9\.3"
        r" phases='imports 1\.39, commit 0\.2' batch=7",
        " ".join(first.split()),
    )
    assert "pyspark.sql" in second
    assert "message=odd" in second


def test_a_call_that_java_does_not_hear_is_no_line() -> None:
    """py4j logs it, with its trace, as the root logger; its caller gets the error."""
    out = io.StringIO()
    configure("info", "json", out)
    client = GatewayClient()
    failing = Mock(side_effect=protocol.Py4JNetworkError("Answer from Java side is empty"))
    client.deque.append(Mock(send_command=failing))
    assert client.send_command("c", retry=False) == protocol.ERROR
    logging.getLogger().warning("of somebody else")
    (line,) = lines(out)
    assert line["message"] == "of somebody else"


def test_levels_by_logger() -> None:
    """A logger and those below it have a level of their own, until logging is set up again."""
    for levels, shown in (
        ({"spark_cep.rules": "debug", "org.apache.spark": "error", "py4j": "info"}, "acf"),
        ({}, "bce"),
    ):
        out = io.StringIO()
        configure("info", "json", out, levels)  # type: ignore[arg-type]  # levels, as texts
        logger("spark_cep.rules.sources").debug("a")
        logging.getLogger("org.apache.spark.sql").warning("b")
        logger("spark_cep.other").info("c")
        logger("spark_cep.other").debug("d")
        logging.getLogger("py4j").warning("e" if not levels else "f")
        told = [line.get("message", line["event"]) for line in lines(out)]
        assert told == list(shown)
