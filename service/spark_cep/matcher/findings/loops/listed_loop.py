"""The events that timeouts list, compiled: a long loop that runs out of time at each of its events
would otherwise be written again with each of them."""

from __future__ import annotations

from spark_cep.columns.compilation import compiled, inlined

#: Of each step a timeout lists so many of the first events, and as many of the last.
LISTED_AT_EACH_END = 50


@inlined
def list_places(steps, first, end, counts, places):
    """Write the places, counted from ``first``, of the events before ``end`` that are listed, given
    the step of each; returns how many there are. ``counts``: two numbers for each step."""
    count = end - first
    if count <= 2 * LISTED_AT_EACH_END:
        for place in range(count):
            places[place] = place
        return count
    for at in range(len(counts)):
        counts[at] = 0
    for at in range(first, end):
        counts[2 * steps[at]] += 1
    count = 0
    for at in range(first, end):
        step = steps[at]
        left = counts[2 * step] - counts[2 * step + 1]
        if counts[2 * step + 1] < LISTED_AT_EACH_END or left <= LISTED_AT_EACH_END:
            places[count] = at - first
            count += 1
        counts[2 * step + 1] += 1
    return count


@compiled
def list_chains(ends, steps, events, counts, places, listed_ends, listed_steps, listed_events):
    """Write the listed part of each chain, and where it ends."""
    done = 0
    for number in range(len(ends)):
        first = ends[number - 1] if number else 0
        count = list_places(steps, first, ends[number], counts, places)
        for each in range(count):
            listed_steps[done + each] = steps[first + places[each]]
            listed_events[done + each] = events[first + places[each]]
        done += count
        listed_ends[number] = done
