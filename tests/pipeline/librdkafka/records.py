"""What messages are, record by record."""

from __future__ import annotations

from spark_cep.pipeline.librdkafka.messages import Messages
from spark_cep.pipeline.wire.packets import Record


def records_of(messages: Messages) -> list[Record]:
    """All of them."""
    keys, values, texts, own = (
        [*column.values(), None]
        for column in (messages.keys, messages.values, messages.texts, messages.own)
    )
    names = [(name or b"").removesuffix(b"\0").decode() for name in messages.names.values()]
    found: list[Record] = []
    for row, group in enumerate(messages.group):
        headers = [
            (names[messages.name[header]], texts[messages.text[header]])
            for header in range(messages.group_ends[group], messages.group_ends[group + 1])
        ]
        if messages.own_name >= 0 and own[row]:
            headers.append((names[messages.own_name], own[row]))
        topic = messages.topics[messages.topic[row]]
        found.append((topic, keys[messages.key[row]], values[messages.value[row]], headers))
    return found
