"""The second workload: payments by card, as banks have them.

About 430 bytes an event, most of which no rule reads: nested records, one of them nullable, an
enum, a uuid, an array, a map, a note. Amounts are DECIMAL(12, 2) or DOUBLE. 80,000 cards and 3,000
merchants, 20,000 events to the second of event time, up to 0.9 s out of order. The same seed gives
the same events, and the first ones are the same however many there are.

No card pays more than 50.00, and no merchant declines, twice in the same millisecond: what comes of
events of equal times would depend on the order in which partitions are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench import avro_pieces as avro
from bench.feed import Encoded, Stream

FIRST_MICROS = 1_700_000_000_000_000
CARDS, MERCHANTS, CENTS = 80_000, 3_000, 22_000
_MICROS_BETWEEN, _DISORDER_MICROS = 50, 900_000
_HOUR_MICROS = 3_600_000_000
_COUNTRIES = ("DE", "FR", "US", "GB", "PL")
_SYSTEMS = ("ios", "android", "web")
_CURRENCIES = ("EUR", "USD", "GBP")
#: Of ten payments eight are approved.
_STATUS = ("approved",) * 8 + ("declined", None)
_APPROVED, _DECLINED, _UNKNOWN = 0, 8, 9
_CITY = "Town"
_NOTE = "x" * 300
_HARMLESS_CENTS = 5_000
_BATCH = 1 << 16

Numbers = NDArray[np.int64]


class Amount(StrEnum):
    """The type of amounts."""

    DECIMAL = "decimal"
    DOUBLE = "double"


def schema(amount: Amount, more: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    """The writer schema; ``more`` are fields at its end."""
    number: Any = "double"
    if amount is Amount.DECIMAL:
        number = {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}
    tags = {"type": "array", "items": "string"}
    attributes = {"type": "map", "values": "string"}
    currency = {"type": "enum", "name": "Currency", "symbols": list(_CURRENCIES)}
    card = _record("Card", id="string", bin="int", tags=tags)
    merchant = _record(
        "Merchant", id="string", country="string", city=["null", "string"], mcc="int"
    )
    payment = _record(
        "Payment",
        id={"type": "string", "logicalType": "uuid"},
        ts={"type": "long", "logicalType": "timestamp-micros"},
        amount=number,
        currency=currency,
        status=["null", "string"],
        card=card,
        merchant=["null", merchant],
        device=_record("Device", os="string", attrs=attributes),
        note="string",
    )
    return {**payment, "namespace": "bank", "fields": [*payment["fields"], *more]}


def _record(name: str, **fields: Any) -> dict[str, Any]:
    described = [{"name": field, "type": of} for field, of in fields.items()]
    return {"type": "record", "name": name, "fields": described}


def payments(
    count: int,
    amount: Amount = Amount.DECIMAL,
    seed: int = 5,
    more: Sequence[dict[str, Any]] = (),
    pieces: Sequence[tuple[bytes, bytes]] = ((b"", b""),),
) -> Stream:
    """``count`` payments, closed an hour later.

    ``more`` are fields behind the others. ``pieces``: what stands before an event and the values of
    ``more``, encoded; each event gets one pair by chance, the closing ones get that in the middle.
    """
    encode = _encoder(amount, pieces)
    end = FIRST_MICROS + count * _MICROS_BETWEEN + _HOUR_MICROS

    def closing(partition: int) -> Encoded:
        drawn = {name: np.zeros(1, np.int64) for name in (*_CHOICES, "more")}
        drawn |= {"number": np.full(1, partition), "micros": np.full(1, end)}
        drawn |= {"cents": np.full(1, _HARMLESS_CENTS), "status": np.full(1, _UNKNOWN)}
        drawn["card"] = np.full(1, CARDS + partition)
        drawn["more"] = np.full(1, len(pieces) // 2)
        return next(encode(drawn, bytes(16)))

    def events() -> Iterator[Encoded]:
        for drawn, ids in _batches(count, seed, len(pieces)):
            yield from encode(drawn, ids)

    return Stream(schema(amount, more), events(), closing)


#: What is drawn for each event, and from how many.
_CHOICES = {
    "age": _DISORDER_MICROS,
    "card": CARDS,
    "cents": CENTS,
    "currency": len(_CURRENCIES),
    "status": len(_STATUS),
    "merchant": MERCHANTS,
    "country": len(_COUNTRIES),
    "device": len(_SYSTEMS),
}


def _batches(count: int, seed: int, pieces: int) -> Iterator[tuple[dict[str, Numbers], bytes]]:
    """What was drawn, as columns, and the bytes of the payments' ids."""
    source = np.random.PCG64(seed)
    before = np.zeros(0, np.int64), np.zeros(0, np.int64)
    for first in range(0, count, _BATCH):
        # Always whole batches: so the first events are the same whatever the count.
        drawn = {name: _draw(source, among) for name, among in _CHOICES.items()}
        drawn["more"] = _draw(source, pieces)
        ids = source.random_raw(2 * _BATCH).tobytes()
        drawn["number"] = np.arange(first, first + _BATCH)
        # Event times begin behind FIRST_MICROS.
        drawn["micros"] = (
            FIRST_MICROS + drawn["number"] * _MICROS_BETWEEN + _DISORDER_MICROS - drawn["age"]
        )
        before = _without_equal_times(drawn, before)
        yield {name: column[: count - first] for name, column in drawn.items()}, ids


def _draw(source: np.random.PCG64, among: int) -> Numbers:
    return (source.random_raw(_BATCH) % np.uint64(among)).astype(np.int64)


def _without_equal_times(
    drawn: dict[str, Numbers], before: tuple[Numbers, Numbers]
) -> tuple[Numbers, Numbers]:
    """Make what would pay or decline for the second time in a millisecond harmless; ``before`` and
    the answer are the card and merchant with the millisecond, of the batch before and of this."""
    times = drawn["micros"] // 1000 - FIRST_MICROS // 1000
    cards = times * CARDS + drawn["card"]
    merchants = times * MERCHANTS + drawn["merchant"]
    drawn["cents"][_repeated(cards, before[0])] = _HARMLESS_CENTS
    declined = np.flatnonzero(drawn["status"] == _DECLINED)
    again = _repeated(merchants[declined], before[1])
    drawn["status"][declined[again]] = _APPROVED
    return cards, merchants[declined]


def _repeated(codes: Numbers, before: Numbers) -> NDArray[np.bool_]:
    """Which of ``codes`` came earlier."""
    again = np.ones(len(codes), np.bool_)
    again[np.unique(codes, return_index=True)[1]] = False
    return again | np.isin(codes, before)


def _encoder(
    amount: Amount, pieces: Sequence[tuple[bytes, bytes]]
) -> Callable[[dict[str, Numbers], bytes], Iterator[Encoded]]:
    """Makes keys and Avro bodies of what was drawn."""
    number = avro.decimal if amount is Amount.DECIMAL else lambda cents: avro.double(cents / 100)
    amounts = [number(cents) for cents in range(CENTS)]
    currencies = [avro.long(symbol) for symbol in range(len(_CURRENCIES))]
    status = [avro.long(0) if one is None else avro.long(1) + avro.text(one) for one in _STATUS]
    keys = [f"card-{card}" for card in range(CARDS)] + [f"closing-{n}" for n in range(64)]
    tags = avro.array([avro.text("a"), avro.text("b")])
    cards = [avro.text(key) + avro.long(n % 997) + tags for n, key in enumerate(keys)]
    # The branch of the union comes first.
    merchants = [avro.long(1) + avro.text(f"m-{n}") for n in range(MERCHANTS)]
    countries = [avro.text(country) for country in _COUNTRIES]
    codes = [avro.long(code) for code in range(900)]
    cities = [avro.long(0), *[avro.long(1) + avro.text(_CITY)] * 6]
    attributes = avro.array(
        [avro.text(k) + avro.text(v) for k, v in (("v", "1.2"), ("lang", "de"))]
    )
    tail = attributes + avro.text(_NOTE)
    systems = [avro.text(system) + tail for system in _SYSTEMS]
    length_of_id = avro.long(36)
    before, behind = [one for one, _ in pieces], [other for _, other in pieces]

    def encode(drawn: dict[str, Numbers], ids: bytes) -> Iterator[Encoded]:
        times, width = avro.longs(drawn["micros"])
        hexadecimal = ids.hex().encode()
        columns = ("number", "cents", "currency", "status", "card", "merchant", "country")
        rows = zip(*(drawn[name].tolist() for name in (*columns, "device", "more")), strict=True)
        for place, (n, cents, currency, state, card, merchant, country, device, more) in enumerate(
            rows
        ):
            i, t = 32 * place, width * place
            yield (
                keys[card],
                b"".join(
                    (
                        before[more],
                        length_of_id,
                        hexadecimal[i : i + 8],
                        b"-",
                        hexadecimal[i + 8 : i + 12],
                        b"-",
                        hexadecimal[i + 12 : i + 16],
                        b"-",
                        hexadecimal[i + 16 : i + 20],
                        b"-",
                        hexadecimal[i + 20 : i + 32],
                        times[t : t + width],
                        amounts[cents],
                        currencies[currency],
                        status[state],
                        cards[card],
                        merchants[merchant],
                        countries[country],
                        cities[n % 7],
                        codes[n % 900],
                        systems[device],
                        behind[more],
                    )
                ),
            )

    return encode
