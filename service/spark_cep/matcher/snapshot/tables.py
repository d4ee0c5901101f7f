"""The tables and columns of a stored state.

Those of engines are listed by themselves (:data:`spark_cep.matcher.keys.ENGINES`). Rows of a key
stand together in each table, keys in their order, and refer to rows of the same key: numbers of
events, and of rows of other tables, count from the key's first. So any keys can be read without the
others. Of a key without instances nothing is remembered any more.
"""

from __future__ import annotations

import numpy as np

from spark_cep.columns.compilation import NONE
from spark_cep.columns.packed_columns import Layout
from spark_cep.matcher.keys import ENGINES
from spark_cep.matcher.snapshot.columns import EVENT

#: The format of its blocks.
STATE = 8

#: The tables of a state: keys, those of each engine, events.
KEYS = 0
TABLES = {
    (engine, table.name): (number, table)
    for number, (engine, table) in enumerate(
        ((engine, table) for engine, stored in enumerate(ENGINES) for table in stored.tables), 1
    )
}
INSTANCES = [TABLES[engine, "instances"][0] for engine in range(len(ENGINES))]
EVENTS_OF_STATE = len(TABLES) + 1
OF_KEYS = [*(n for n, table in TABLES.values() if table.of_keys), EVENTS_OF_STATE]
#: Table and name of each column; of keys the text, and how many rows they have in other tables.
OF_STATE: tuple[tuple[int, str | int], ...] = (
    (KEYS, "key"),
    *((KEYS, number) for number in OF_KEYS),
    *((number, name) for number, table in TABLES.values() for name in table.columns),
    *((EVENTS_OF_STATE, name) for name in (*EVENT, "payload")),
)
PLACE = {column: place for place, column in enumerate(OF_STATE)}
_FIRST = 1 + len(OF_KEYS)


def _layout() -> Layout:
    owners, counts_of = np.zeros((2, EVENTS_OF_STATE + 1), np.int64)
    counts_of[OF_KEYS] = [PLACE[KEYS, number] for number in OF_KEYS]
    linked = dict.fromkeys(OF_STATE, NONE)
    for (engine, _), (number, table) in TABLES.items():
        if not table.of_keys:
            owners[number] = INSTANCES[engine]
            counts_of[number] = PLACE[INSTANCES[engine], table.name]
        for name in table.events:
            linked[number, name] = EVENTS_OF_STATE
        for name, other in table.rows.items():
            linked[number, name] = TABLES[engine, other][0]
    columns = OF_STATE[_FIRST:-1]
    return Layout(
        owners,
        counts_of,
        _FIRST,
        np.array([table for table, _ in columns]),
        np.array([linked[column] for column in columns]),
    )


#: What belongs to keys: the columns of engines, and those of events but for the payload.
LAYOUT = _layout()
#: The places of columns among these.
IN_LAYOUT = {column: place - _FIRST for column, place in PLACE.items()}
