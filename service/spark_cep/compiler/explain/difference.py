"""The difference of two versions of a rule in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from spark_cep.compiler.explain.wording import skip_in_words, window_in_words
from spark_cep.durations import format_duration
from spark_cep.errors import printable
from spark_cep.pattern.document.canonical import to_data
from spark_cep.pattern.expressions.canonical import name
from spark_cep.pattern.sql.query import Query
from spark_cep.pattern.tree import Emit, Limits, PreviousVersion, Rule

#: Fields of steps, and what is said of them.
_OF_STEPS = {
    "after": "it comes `{}`",
    "where": "its condition is {}",
    "of_type": "its events are of type {}",
    "times": "it is taken {} times",
    "gap": "its repetitions are less than {} apart",
    "loop": "its repetitions are {}",
    "until": "it is repeated until {}",
}
_DEFAULTS = {"where": "true", "times": "1", "loop": "relaxed", "of_type": "any"}
_Value = str | None


def difference(before: Rule, after: Rule) -> list[str]:
    """The sentences that lead from one version to the other; none where their results are the
    same. Descriptions are passed over."""
    return [printable(line) for line in _lines(before, after)]


def _lines(old: Rule, new: Rule) -> Iterator[str]:
    if old.enabled != new.enabled:
        yield "it is switched on" if new.enabled else "it is switched off"
    if old.shadow != new.shadow:
        yield "it is in shadow mode now" if new.shadow else "it is live now, no longer a shadow"
    if (old.query is None) != (new.query is None):
        yield f"it is a rule {'in SQL' if new.query else 'of steps'} now: nothing can be compared"
        return
    if old.query is not None and new.query is not None:
        yield from _queries(old.query, new.query)
    else:
        yield from _changed("the inputs are", _listed(old.events), _listed(new.events), "any")
        keys = [_listed(e.canonical for e in rule.key) for rule in (old, new)]
        yield from _changed("the key is", keys[0], keys[1], "none, all events together")
        yield from _steps(to_data(old)["pattern"], to_data(new)["pattern"])
        windows = [window_in_words(rule.within) for rule in (old, new)]
        yield from _changed("the window is", windows[0], windows[1], "without end")
        skips = (skip_in_words(rule.after_match) for rule in (old, new))
        yield from _changed("after a match it is", *skips)
        yield from _emitted(old.emit, new.emit)
    yield from _changed(
        "the cooldown is", _duration(old.cooldown_ms), _duration(new.cooldown_ms), "none"
    )
    yield from _named("annotation", old.annotations, new.annotations)
    yield from _limits(old.limits, new.limits)
    if new.previous_version is not PreviousVersion.RESTART:
        yield f"partial matches of the version before: {new.previous_version.value}"


def _changed(what: str, before: _Value, after: _Value, none: str = "none") -> Iterator[str]:
    if before != after:
        yield f"{what} {after or none}; it was {before or none}"


def _listed(parts: Any) -> str:
    return ", ".join(parts)


def _duration(ms: int | None) -> str | None:
    return None if ms is None else format_duration(ms)


def _steps(
    before: list[dict[str, Any]], after: list[dict[str, Any]], group: str = ""
) -> Iterator[str]:
    """Yield the changes of the steps of a pattern, or of a group of it."""
    old, new = ({step["step"]: step for step in steps} for steps in (before, after))
    for step in old:
        if step not in new:
            yield f"step `{step}`{group} is gone"
    previous = None
    for step, fields in new.items():
        if step not in old:
            place = "at the beginning" if previous is None else f"behind `{previous}`"
            yield f"step `{step}`{group} is new, {place}: {_described(fields)}"
        else:
            yield from _step(step, old[step], fields)
        previous = step
    kept = [step for step in old if step in new]
    order = [step for step in new if step in old]
    if kept != order:
        yield f"the steps{group} come in the order {_listed(order)}; it was {_listed(kept)}"


def _step(step: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    for field, words in _OF_STEPS.items():
        before, after = (
            str(each.get(field, _DEFAULTS.get(field, "nothing"))) for each in (old, new)
        )
        if before != after:
            yield f"step `{step}`: {words.format(after)}; before: {before}"
    for field, words in (("optional", "optional"), ("greedy", "greedy")):
        if old.get(field) != new.get(field):
            yield f"step `{step}` is {words if new.get(field) else f'no longer {words}'}"
    inner = [each.get("group") or [] for each in (old, new)]
    yield from _steps(inner[0], inner[1], f" of the group `{step}`")


def _described(fields: Mapping[str, Any]) -> str:
    parts = [words.format(fields[field]) for field, words in _OF_STEPS.items() if field in fields]
    parts += [word for word in ("optional", "greedy") if fields.get(word)]
    if "group" in fields:
        parts.append(f"a group of {_listed(each['step'] for each in fields['group'])}")
    return _listed(parts) or "any event"


def _emitted(old: Emit, new: Emit) -> Iterator[str]:
    yield from _named(
        "measure",
        {name: each.canonical for name, each in old.measures.items()},
        {name: each.canonical for name, each in new.measures.items()},
    )
    events = (e if isinstance(e, str) else _listed(e) for e in (old.events, new.events))
    yield from _changed("of events it emits", *events)


def _named(what: str, old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[str]:
    for each in old.keys() - new.keys():
        yield f"{what} `{each}` is gone"
    for each, text in new.items():
        if each not in old:
            yield f"{what} `{each}` is new: {text}"
        elif old[each] != text:
            yield f"{what} `{each}` is {text}; it was {old[each]}"


def _limits(old: Limits, new: Limits) -> Iterator[str]:
    for field in ("partial_matches", "events", "matches", "work"):
        before, after = getattr(old, field), getattr(new, field)
        if before != after:
            yield f"limits.{field} is {after:,}; it was {before:,}"
    if old.on_limit != new.on_limit:
        yield f"at a limit it does `{new.on_limit.value}`; before: `{old.on_limit.value}`"


def _queries(old: Query, new: Query) -> Iterator[str]:
    """Yield the differences between two statements."""
    both = old, new
    yield from _changed("the input is", old.input, new.input)
    wheres = [None if q.where is None else q.where.canonical for q in both]
    yield from _changed("rows are events where", wheres[0], wheres[1], "true")
    yield from _changed("PARTITION BY is", *(_listed(map(name, q.partition)) for q in both))
    yield from _changed("ORDER BY is", *(_listed(map(str, q.order)) for q in both))
    yield from _changed("PATTERN is", str(old.pattern), str(new.pattern))
    defined = ({n: each.canonical for n, each in q.defines.items()} for q in both)
    yield from _named("the condition of", *defined)
    measured = ({each.name: each.expression.canonical for each in q.measures} for q in both)
    yield from _named("measure", *measured)
    yield from _changed("of rows it puts out", old.rows.lower(), new.rows.lower())
    skips = (f"{q.skip.lower()} {' or '.join(q.target)}".strip() for q in both)
    yield from _changed("after a match it skips", *skips)
    yield from _changed(
        "the window is", _duration(old.within_ms), _duration(new.within_ms), "without end"
    )
    columns = (_listed(output.name for output in q.outputs) for q in both)
    yield from _changed("the columns of the result are", *columns)
