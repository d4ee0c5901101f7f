"""Files of Protobuf that tests share, and messages of them."""

from __future__ import annotations

from functools import cache
from random import Random
from typing import Any

from spark_cep.codecs.protobuf.descriptors import MessageFiles, compiled_text

EVENT = """
syntax = "proto3";
package t;
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
import "parts/place.proto";

enum Mood { NEUTRAL = 0; GOOD = 1; BAD = -5; }

message Other { string kind = 1; int64 at = 2; }

message Event {
  string kind = 1;
  optional string k = 2;
  int64 n = 3;
  double x = 4;
  float f = 5;
  bool ok = 6;
  bytes raw = 7;
  Mood mood = 8;
  int32 small = 9;
  uint32 u32 = 10;
  uint64 u64 = 11;
  sint32 s32 = 12;
  sint64 s64 = 13;
  fixed32 f32 = 14;
  fixed64 f64 = 15;
  sfixed32 sf32 = 16;
  sfixed64 sf64 = 17;
  google.protobuf.Timestamp at = 18;
  google.protobuf.StringValue note = 19;
  google.protobuf.Int64Value count = 20;
  parts.Place place = 21;
  repeated string tags = 22;
  repeated int32 numbers = 23;
  map<string, int64> attrs = 24;
  map<int32, parts.Place> places = 25;
  oneof choice { string text = 26; int64 number = 27; parts.Place where = 28; bool yes = 29; }
  optional int32 maybe = 30;
  message Item { string name = 1; repeated Mood moods = 2; optional double price = 3; }
  repeated Item items = 3000000;
  Event self = 31;
  google.protobuf.Timestamp far = 536870911;
}
"""
PLACE = """
syntax = "proto3";
package parts;
message Place {
  string city = 1;
  optional double height = 2;
  Deep deep = 3;
  message Deep { int32 c = 1; repeated string names = 2; }
}
"""
REFERENCES = {"parts/place.proto": PLACE}


@cache
def event_files() -> MessageFiles:
    """The file of events."""
    return compiled_text(EVENT, "event.proto", REFERENCES)


def event_class() -> Any:
    """The class of events."""
    return event_files().message_class("t.Event")


_TEXTS = ["", "a", "b", "ключ", "it's", "k" * 200]
_WHOLES = [0, 1, -1, 127, 128, 300, 2**31 - 1, -(2**31)]
_LONGS = [*_WHOLES, 2**40, 2**63 - 1, -(2**63)]


def some_place(random: Random) -> dict[str, Any]:
    """The fields of a place."""
    found: dict[str, Any] = {"city": random.choice(_TEXTS)}
    if random.random() < 0.5:
        found["height"] = random.choice([0.0, -2.5])
    if random.random() < 0.5:
        names = random.choices(_TEXTS, k=random.randrange(3))
        found["deep"] = {"c": random.choice(_WHOLES), "names": names}
    return found


def some_event(random: Random) -> Any:
    """A message in which any field may be missing."""

    def positive(bits: int) -> int:
        largest: int = 2**bits - 1
        return random.choice([0, 1, 300, largest])

    def time() -> dict[str, int]:
        return {
            "seconds": random.choice([0, 5, -7, 1_700_000_000]),
            "nanos": random.randrange(10**9),
        }

    fields: dict[str, Any] = {
        "kind": random.choice(_TEXTS), "k": random.choice(_TEXTS), "n": random.choice(_LONGS),
        "x": random.choice([0.0, -0.0, 1.5, 1e300]), "f": random.choice([0.0, 0.25, -3.5]),
        "ok": random.random() < 0.5, "raw": random.randbytes(random.randrange(4)),
        "mood": random.choice([0, 1, -5, 77]), "small": random.choice(_WHOLES),
        "u32": positive(32), "u64": positive(63), "s32": random.choice(_WHOLES),
        "s64": random.choice(_LONGS), "f32": positive(32), "f64": positive(63),
        "sf32": random.choice(_WHOLES), "sf64": random.choice(_LONGS), "at": time(), "far": time(),
        "note": {"value": random.choice(_TEXTS)}, "count": {"value": random.choice(_LONGS)},
        "place": some_place(random), "tags": random.choices(_TEXTS, k=random.randrange(4)),
        "numbers": random.choices(_WHOLES, k=random.randrange(4)),
        "attrs": {key: random.choice(_LONGS) for key in random.sample(_TEXTS, 2)},
        "places": {key: some_place(random) for key in random.sample(_WHOLES, 2)},
        "maybe": random.choice(_WHOLES), "self": {"kind": "inner"},
        "items": [
            {"name": random.choice(_TEXTS), "moods": random.choices([0, 1, 77], k=2)}
            for _ in range(random.randrange(3))
        ],
        **random.choice(
            [{}, {"text": "t"}, {"number": 0}, {"where": some_place(random)}, {"yes": False}]
        ),
    }  # fmt: skip
    return event_class()(**{name: v for name, v in fields.items() if random.random() < 0.7})
