"""The rule in docs/expressions.md that measures distances on the globe finds what it should."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

from spark_cep.testkit import RuleTest

PAGE = Path(__file__).parents[2] / "docs" / "expressions.md"
SCHEMA = {
    "type": "record",
    "name": "Payment",
    "fields": [
        {"name": "card", "type": "string"},
        {"name": "city", "type": "string"},
        {"name": "lat", "type": "double"},
        {"name": "lon", "type": "double"},
        {"name": "ts", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ],
}
BERLIN, HAMBURG, TOKYO = (52.52, 13.405), (53.551, 9.994), (35.682, 139.769)
MORNING = datetime(2026, 1, 1, 9, tzinfo=UTC)


def test_impossible_travel(tmp_path: Path) -> None:
    """Berlin to Hamburg in an hour is possible, Berlin to Tokyo (8,900 km) in nine is not."""
    (text,) = re.findall(
        r"```yaml\n(id: impossible-travel\n.*?)```", PAGE.read_text("utf-8"), re.DOTALL
    )
    rule = tmp_path / "rule.yaml"
    rule.write_text(text, "utf-8")
    test = RuleTest(rule, schema=SCHEMA, start=MORNING)
    travels = [("a", HAMBURG, 1), ("b", TOKYO, 9), ("c", TOKYO, 10)]
    for card, _, _ in travels:
        test.send(card=card, city="Berlin", lat=BERLIN[0], lon=BERLIN[1], ts=MORNING)
    for card, (lat, lon), hours in travels:
        then = MORNING + timedelta(hours=hours)
        city = "Hamburg" if lat == HAMBURG[0] else "Tokyo"
        test.send(card=card, city=city, lat=lat, lon=lon, ts=then, at=then)
    test.advance("1 day")
    (match,) = test.matches
    assert match.measures == {
        "cities": ["Berlin", "Tokyo"],
        "places": 2,
        "between": timedelta(hours=9),
        "hour_in_berlin": 19,
    }
