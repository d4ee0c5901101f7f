"""The streams of the benchmark of formats."""

from __future__ import annotations

import json

from bench.events import logins
from bench.formats import in_json
from bench.payments import payments


def test_the_same_events_in_json() -> None:
    """With their keys, and without framing; times are texts with an offset."""
    for stream, key, time in ((logins, "user_id", 0), (payments, "card", "+00:00")):
        given, made = list(stream(3).events), in_json(stream(3))
        found = list(made.events)
        assert not made.framed
        assert [each for each, _ in found] == [each for each, _ in given]
        for text in (*(body for _, body in found), made.closing(0)[1]):
            event = json.loads(text)
            assert {each["name"] for each in made.schema["fields"]} == event.keys()
            assert key in event
            assert isinstance(event["ts"], int) or str(event["ts"]).endswith(str(time))
