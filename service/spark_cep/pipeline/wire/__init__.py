"""Packets between the parts of a batch: one module of types for each direction.

The driver tells all tasks about the batch (``task_properties``) and the key groups about time
(``control``). Decoding tasks send ``packets`` and ``event_packets`` to key groups, key groups
send ``packets`` to writers, and all three send ``reports`` to the driver. A decoding task that
meets schemas which the plan does not know fails with them (``new_schemas``).

The bytes live within one batch only and carry no format number; ``tests/golden/wire`` keeps a
sample of each kind.
"""
