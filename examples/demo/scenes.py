"""The stories in the stream: who does what when, and the traffic around them.

Times are seconds since the beginning of the stream. Users, sensors and orders of the stories appear
in no background traffic, so each story can be followed by its key.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from decimal import Decimal
from functools import cache

from examples.demo.stream import (
    BEGINNING,
    LOG_LINE,
    LOGIN_1,
    LOGIN_2,
    LOGIN_3,
    ORDER,
    SENSOR_READING,
    TOPICS,
    Damage,
    Item,
    Schema,
    Wave,
    later,
    wave,
)

FAIL, OK = "login_fail", "login_ok"
#: Between a stream and the next: longer than the stream, and any rule's window.
_ROUND_MS = 1_200_000
_PLACE = {"building": "north", "floor": 2}
_HISTORY = (
    "success fail fail success fail success fail success fail fail success end".split()  # noqa: SIM905
)
_COSTS = (("a", 200), ("a", 10), ("a", 120), ("a", 50), ("b", 90), ("b", 150), ("a", 101))


def log(at: float, user: str, status: str) -> Item:
    """A line of a user's log."""
    return Item(LOG_LINE, user, _ms(at), {"user_id": user, "status": status})


def cost(at: float, name: str, value: float) -> Item:
    """A reading of a sensor."""
    fields = {"name": name, "cost": float(value), "place": _PLACE}
    return Item(SENSOR_READING, name, _ms(at), fields)


def login(at: float, user: str, what: str, schema: Schema = LOGIN_1, ip: str = "") -> Item:
    """A login, written with one of the three schemas."""
    fields = {"user_id": user, "event_type": what, "ip": ip or "198.51.100.7"}
    if schema in (LOGIN_2, LOGIN_3):
        fields["country"] = "NO"
    if schema == LOGIN_3:
        fields["device"] = "phone"
    return Item(schema, user, _ms(at), fields)


def placed(at: float, order: str, amount: str) -> Item:
    """An order."""
    fields = {"order_id": order, "customer": f"c-{order[2:]}", "amount": Decimal(amount)}
    fields["items"] = ["book", "pen"]
    return Item(ORDER, order, _ms(at), fields, type="demo.OrderPlaced")


def paid(at: float, order: str) -> Item:
    """The payment of an order."""
    return Item(ORDER, order, _ms(at), {"order_id": order, "method": "card"}, type="demo.OrderPaid")


def user_1001(at: float) -> Iterator[Item]:
    """Twelve lines of a log, one a second; any failure between a success and the end counts."""
    for second, status in enumerate(_HISTORY):
        yield log(at + second, "1001", status)


def costs_of_a_and_b(at: float) -> Iterator[Item]:
    """Seven costs, one every four seconds. ``b`` never has another one."""
    for number, (name, value) in enumerate(_COSTS):
        yield cost(at + 4 * number, name, value)


def attempts(
    user: str, fails: tuple[float, ...], ok: float | None, *schemas: Schema
) -> Iterator[Item]:
    """Failed logins and perhaps a good one, written with ``schemas`` in turn."""
    times = [(at, FAIL) for at in fails] + ([] if ok is None else [(ok, OK)])
    for number, (at, what) in enumerate(times):
        schema = schemas[number % len(schemas)] if schemas else LOGIN_1
        yield login(at, user, what, schema, ip=f"203.0.113.{number + 1}")


def damaged(at: float) -> Iterator[Item]:
    """One record of each kind that cannot be processed."""
    yield _broken(log(at, "2001", "view"), Damage.PLAIN_JSON)
    yield _broken(log(at + 3, "2002", "view"), Damage.UNKNOWN_SCHEMA)
    yield _broken(login(at + 6, "grace", OK), Damage.CUT_SHORT)
    yield _broken(cost(at + 9, "pump-1", 7), Damage.RANDOM_BYTES)
    yield Item(
        LOG_LINE,
        None,
        _ms(at + 12),
        {"user_id": None, "status": "fail"},
        damage=Damage.NO_KEY,
    )
    yield _broken(cost(at + 15, "pump-2", 5), Damage.WRONG_CLOCK)


def tombstones(at: float) -> Iterator[Item]:
    """Records without a value: someone's deletion in a compacted topic."""
    yield Item(LOGIN_1, "grace", _ms(at), None)
    yield Item(ORDER, "o-101", _ms(at + 5), None)


def late(item: Item, arrival: float) -> Item:
    """The same record, arriving long after its time."""
    return Item(item.schema, item.key, item.time, item.fields, _ms(arrival) - item.time, item.type)


def traffic(start: float, end: float, logins: tuple[Schema, ...], seed: int) -> Iterator[Item]:
    """Ordinary life: it starts partial matches now and then, and completes none."""
    chance = random.Random(seed)
    for number, second in enumerate(range(int(start), int(end))):
        user = f"20{number % 8:02d}"
        yield log(second + 0.1, user, "success" if number < 8 else "view")
        pump = f"pump-{number % 4 + 1}"
        yield cost(second + 0.45, pump, chance.randrange(20, 95) / 10)
        if number % 4 == 2:
            schema = chance.choice(logins)
            user = chance.choice(("alice", "bob", "dave", "grace"))
            yield login(second + 0.7, user, chance.choice((OK, OK, "logout")), schema)


def waves(number: int = 0) -> tuple[Wave, ...]:
    """The whole stream; with a ``number``, what is the same again so many times later."""
    return tuple(later(each, number * _ROUND_MS) for each in _waves()) if number else _waves()


@cache
def _waves() -> tuple[Wave, ...]:
    old, both, all_three = (LOGIN_1,), (LOGIN_1, LOGIN_2), (LOGIN_1, LOGIN_2, LOGIN_3)
    return (
        wave(
            "ordinary traffic; mallory guesses a password, carol only mistypes hers",
            [
                *traffic(0, 40, old, 1),
                *attempts("mallory", (6, 8, 11, 13), 17.5),
                *attempts("carol", (20,), 24.5),
                placed(3.3, "o-101", "20.00"),
                placed(9.3, "o-102", "59.90"),
                placed(15.3, "o-103", "7.25"),
                paid(18.3, "o-101"),
                paid(31.3, "o-103"),
            ],
            seed=11,
        ),
        wave(
            "user 1001 logs in, fails, ends; trent's logins come from old and new writers",
            [
                *traffic(40, 80, both, 2),
                *user_1001(45),
                *attempts("trent", (50, 53, 57), 62.5, LOGIN_1, LOGIN_2),
                cost(66, "mixer", 40),
                cost(69, "mixer", 130),
                cost(72, "mixer", 5),
                placed(48.3, "o-104", "310.00"),
                paid(70.3, "o-104"),
                placed(60.3, "o-105", "12.50"),
            ],
            seed=12,
        ),
        wave(
            "broken records of six kinds, two tombstones, and events as ever",
            [
                *traffic(80, 120, both, 3),
                *damaged(88.6),
                *tombstones(97.6),
                *attempts("eve", (90, 94, 99), None),
                *attempts("peggy", (100, 104), 112.5, LOGIN_2),
                placed(85.3, "o-106", "99.00"),
                paid(101.3, "o-105"),
            ],
            seed=13,
        ),
        wave(
            "costs of a and b; logins in a schema, and a large order for a rule, that did not exist"
            " when the job started",
            [
                *traffic(120, 160, all_three, 4),
                *costs_of_a_and_b(122.2),
                *attempts("oscar", (125, 127, 130, 131), 140.5, LOGIN_2, LOGIN_3),
                placed(130.3, "o-107", "45.00"),
            ],
            seed=14,
            registers=(LOGIN_3,),
            adds="large-order",
        ),
        wave(
            "late events, one in each topic: each would have changed a result in its time",
            [
                *traffic(160, 200, all_three, 5),
                late(log(50.5, "1001", "fail"), 166),
                late(cost(67.5, "mixer", 300), 172),
                late(login(102, "peggy", FAIL), 178),
                late(paid(110, "o-106"), 184),
            ],
            seed=15,
        ),
        wave(
            "ten minutes later: o-107 is paid too late, and what was due is decided",
            [
                *(log(840 + n, f"20{n:02d}", "view") for n in range(8)),
                *(cost(840.4 + n, f"pump-{n % 4 + 1}", 4) for n in range(8)),
                *(login(840.7 + n, user, OK, LOGIN_3) for n, user in enumerate(("alice", "bob"))),
                paid(842, "o-107"),
            ],
            seed=16,
        ),
    )


def topics() -> list[str]:
    """The input topics, in the order in which they are shown."""
    return list(TOPICS)


def _broken(item: Item, damage: Damage) -> Item:
    return Item(item.schema, item.key, item.time, item.fields, type=item.type, damage=damage)


def _ms(seconds: float) -> int:
    return BEGINNING + round(seconds * 1000)
