"""An account as plain data, for JSON."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from spark_cep.why.account import (
    Account,
    Moment,
    PartialAccount,
    PartialEnding,
    Passed,
    SeenEvent,
    Turn,
    Unmet,
)
from spark_cep.why.times import instant_text


def account_data(account: Account) -> dict[str, Any]:
    """The account; times are ISO 8601, in UTC."""
    starts = account.starts
    return {
        "rule": account.rule_id,
        "version": account.rule_version,
        "key": account.key,
        "watermark": instant_text(account.watermark),
        "matches": account.matches,
        "timeouts": account.timeouts,
        "dead_letters": account.failures,
        "earlier_moments": account.dropped_moments,
        "moments": [_moment(each) for each in account.moments],
        "partial_matches": [partial_data(each) for each in account.partials.values()],
        "starts": {
            "events": starts.events,
            "events_of_all_keys": starts.all_events,
            "events_without_key": starts.without_key,
            "types": starts.types,
            "missing_types": starts.missing_types,
            "keys_like": starts.keys_like,
            "conditions": [
                {
                    "step": each.step,
                    "condition": each.text,
                    "true_of": each.true_of,
                    "not_true_of": [_values(values) for values in each.values],
                }
                for each in starts.conditions
            ],
        },
    }


def _moment(moment: Moment) -> dict[str, Any]:
    found: dict[str, Any] = {"time": instant_text(moment.time)}
    if moment.event is not None:
        found["event"] = event_data(moment.event)
    if moment.state is not None:
        found["state"] = moment.state.value
    if moment.note:
        found["note"] = moment.note
    return found | {
        "turns": [_turn(each) for each in moment.turns],
        "started": [{"step": step, "partial_match": number} for step, number in moment.started],
        "not_started": [_passed(each) for each in moment.not_started],
        "matches": moment.matches,
    }


def event_data(event: SeenEvent) -> dict[str, Any]:
    """An event with the columns that the rule reads."""
    return {
        "number": event.number,
        **_at(event.at),
        "time": instant_text(event.time),
        "type": event.type,
        "values": _values(event.values),
    }


def _turn(turn: Turn) -> dict[str, Any]:
    return {
        "partial_match": turn.partial,
        "held": turn.held,
        "took": [{"step": step, "partial_match": number} for step, number in turn.took],
        "passed": [_passed(each) for each in turn.passed],
        "stays": turn.stays,
        "ending": None if turn.ending is None else _ending(turn.ending),
    }


def _passed(passed: Passed) -> dict[str, Any]:
    found: dict[str, Any] = {"step": passed.step, "unmet": [_unmet(u) for u in passed.unmet]}
    return found | ({"unknown": True} if passed.unknown else {})


def _unmet(unmet: Unmet) -> dict[str, Any]:
    return {"condition": unmet.text, "true": unmet.holds, "values": _values(unmet.values)}


def _ending(ending: PartialEnding) -> dict[str, Any]:
    return {
        "reason": ending.reason.value,
        "time": instant_text(ending.time),
        "detail": ending.detail,
        "event": None if ending.event is None else _at(ending.event),
        "step": ending.step,
        "conditions": [_unmet(each) for each in ending.conditions],
        "result": ending.result,
    }


def partial_data(partial: PartialAccount) -> dict[str, Any]:
    """A partial match, with its end or what it waits for."""
    steps = {
        step: [{"number": each.number, **_at(each.at)} for each in events]
        for step, events in partial.steps.items()
    }
    return {
        "number": partial.number,
        "parted_from": partial.parent,
        "steps": steps,
        "deadline": None if partial.deadline is None else instant_text(partial.deadline),
        "waits_for": partial.waits_for,
        "forbids": partial.forbids,
        "match_at_deadline": partial.absence,
        "held_back": partial.held_back,
        "ending": None if partial.ending is None else _ending(partial.ending),
    }


def _at(at: Sequence[Any]) -> dict[str, Any]:
    topic, partition, offset = at
    return {"topic": topic, "partition": partition, "offset": offset}


def _values(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _plain(value) for name, value in values.items()}


def _plain(value: Any) -> Any:
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            # JSON has neither NaN nor infinity.
            return value if value - value == 0 else str(value)
        case Decimal() | date() | datetime():
            return str(value)
        case bytes():
            return b64encode(value).decode()
        case Mapping():
            return {str(name): _plain(inner) for name, inner in value.items()}
        case list() | tuple():
            return [_plain(inner) for inner in value]
    return str(value)
