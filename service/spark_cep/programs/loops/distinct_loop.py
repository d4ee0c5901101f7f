"""Sets of 64-bit values that share what they have in common: for COUNT(DISTINCT).

A set is a row of ``BRANCH``, the root of a tree that asks for one bit of a value after the other,
the highest first, where the set's values differ. A set with one value more is a new root whose path
to this value is new; all else is shared with the set before it. Values are mixed, so paths are
short.
"""

from __future__ import annotations

import numpy as np

from spark_cep.columns.compilation import NONE, compiled, inlined, record

#: Where ``bit`` of a value is 0 it is below ``left``, else below ``right``; a leaf has no bit but a
#: value, mixed. ``mark`` and ``place`` are the collector's own.
BRANCH = record(value="i8", bit="i4", left="i4", right="i4", mark="i4", place="i4")
#: So many rows at most does a value need.
MOST_BRANCHES = 66


@inlined
def mixed(value):
    """A number that no other value has, and whose bits look random."""
    bits = np.uint64(value)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.int64(bits ^ (bits >> np.uint64(31)))


@inlined
def _bit(value, bit):
    return (value >> bit) & 1


@compiled
def with_value(root, value, branches, count, own):
    """The root of a set with one value more, ``root`` where the set has it, and the number of rows
    used then; ``count``: those used before. ``root`` is ``NONE`` for the empty set. ``own``:
    nobody else has this set, it may be changed."""
    value = mixed(value)
    if root == NONE:
        _leaf(value, branches[count])
        return np.int64(count), np.int64(count + 1)
    row = np.int64(root)
    while branches[row].bit != NONE:
        row = branches[row].right if _bit(value, branches[row].bit) else branches[row].left
    differing = value ^ branches[row].value
    if differing == 0:
        return np.int64(root), np.int64(count)
    bit = np.int64(63)
    while not _bit(differing, bit):
        bit -= 1
    leaf = np.int64(count)
    count += 1
    _leaf(value, branches[leaf])
    top, parent, side = np.int64(NONE), np.int64(NONE), np.int64(0)
    row = np.int64(root)
    while branches[row].bit > bit:
        here = row
        if not own:
            here = np.int64(count)
            count += 1
            branches[here].bit = branches[row].bit
            branches[here].left = branches[row].left
            branches[here].right = branches[row].right
        if parent == NONE:
            top = here
        else:
            _link(branches[parent], side, here)
        parent, side = here, _bit(value, branches[row].bit)
        row = np.int64(branches[row].right if side else branches[row].left)
    fork = np.int64(count)
    count += 1
    branches[fork].bit = bit
    right = _bit(value, bit)
    branches[fork].left = row if right else leaf
    branches[fork].right = leaf if right else row
    if parent == NONE:
        top = fork
    else:
        _link(branches[parent], side, fork)
    return top, np.int64(count)


@inlined
def _leaf(value, branch):
    branch.bit = NONE
    branch.value = value


@inlined
def _link(branch, side, row):
    if side:
        branch.right = row
    else:
        branch.left = row


@compiled
def mark_set(root, branches, mark, todo):
    """Mark the rows of a set. ``todo`` has room for ``MOST_BRANCHES`` rows."""
    if root == NONE or branches[root].mark == mark:
        return
    count = 1
    todo[0] = root
    while count:
        count -= 1
        row = todo[count]
        branches[row].mark = mark
        if branches[row].bit != NONE:
            for child in (branches[row].left, branches[row].right):
                if branches[child].mark != mark:
                    todo[count] = child
                    count += 1


@compiled
def keep_marked(branches, count, mark):
    """Move the marked rows together, to where their ``place`` then says; returns how many."""
    place = 0
    for row in range(count):
        if branches[row].mark == mark:
            branches[row].place = place
            place += 1
    for row in range(count):
        if branches[row].mark == mark and branches[row].bit != NONE:
            branches[row].left = branches[branches[row].left].place
            branches[row].right = branches[branches[row].right].place
    return place


@compiled
def close_up(branches, count, mark):
    """Put the marked rows at their places."""
    for row in range(count):
        if branches[row].mark == mark:
            to = branches[row].place
            branches[to].value = branches[row].value
            branches[to].bit = branches[row].bit
            branches[to].left = branches[row].left
            branches[to].right = branches[row].right
            branches[to].mark = 0
            if to < row:
                branches[row].mark = 0
