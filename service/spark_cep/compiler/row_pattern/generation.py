"""Row pattern to program.

Concatenation is one part behind the other. ``x | y``: SPLIT to *x*, which JUMPs over *y*. ``x*``: a
SPLIT before *x* and one behind it, which goes back; so an iteration that took no row can leave the
loop. ``x{n,}``: *n* copies, of which the last one loops; ``x{n,m}``: *m* copies, those behind the
*n*-th each behind a SPLIT. Reluctant ones swap the arms. PERMUTE is the alternation of all orders.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

from spark_cep.compiler.row_pattern.program import (
    Done,
    End,
    Instruction,
    Jump,
    Label,
    RowPatternProgram,
    Save,
    Split,
    Start,
)
from spark_cep.pattern.sql.row_pattern import (
    Alternation,
    Anchor,
    Concatenation,
    Empty,
    Exclusion,
    PatternVariable,
    Permutation,
    Quantified,
    RowPattern,
)


def generate(pattern: RowPattern, variables: Sequence[str]) -> RowPatternProgram:
    """The program of a pattern; ``variables`` number the labels."""
    generator = _Generator(variables)
    generator.add(pattern)
    return RowPatternProgram((*generator.instructions, Done()), tuple(variables))


class _Generator:
    def __init__(self, variables: Sequence[str]) -> None:
        self.instructions: list[Instruction] = []
        self._numbers = {variable: number for number, variable in enumerate(variables)}
        self._excluded = False

    def add(self, node: RowPattern) -> None:
        """Instructions of a part, behind those there are."""
        match node:
            case PatternVariable(name=name):
                self.instructions.append(Label(self._numbers[name]))
            case Empty():
                pass
            case Anchor(sign=sign):
                self.instructions.append(Start() if sign == "^" else End())
            case Concatenation(parts=parts):
                self._one_by_one(parts)
            case Alternation(parts=parts):
                self._alternatives([(part,) for part in parts])
            case Permutation(parts=parts):
                self._alternatives(list(permutations(parts)))
            case Exclusion(part=part):
                self._exclusion(part)
            case Quantified(most=most):
                if most is None:
                    self._loop(node)
                else:
                    self._copies(node, most)

    @property
    def _here(self) -> int:
        return len(self.instructions)

    def _one_by_one(self, parts: Sequence[RowPattern]) -> None:
        for part in parts:
            self.add(part)

    def _placeholder(self) -> int:
        self.instructions.append(Jump(-1))
        return self._here - 1

    def _split(self, at: int, into: int, out: int, *, reluctant: bool) -> None:
        self.instructions[at] = Split(out, into) if reluctant else Split(into, out)

    def _alternatives(self, ways: Sequence[Sequence[RowPattern]]) -> None:
        jumps = []
        for way in ways[:-1]:
            split = self._placeholder()
            self._one_by_one(way)
            jumps.append(self._placeholder())
            self._split(split, split + 1, self._here, reluctant=False)
        self._one_by_one(ways[-1])
        for jump in jumps:
            self.instructions[jump] = Jump(self._here)

    def _exclusion(self, part: RowPattern) -> None:
        # What is excluded already need not be excluded again: edges come in pairs.
        around, self._excluded = self._excluded, True
        if not around:
            self.instructions.append(Save())
        self.add(part)
        if not around:
            self.instructions.append(Save())
        self._excluded = around

    def _loop(self, node: Quantified) -> None:
        entry = None if node.least else self._placeholder()
        body = self._here
        for _ in range(max(1, node.least)):
            body = self._here
            self.add(node.part)
        behind = self._placeholder()
        self._split(behind, body, self._here, reluctant=node.reluctant)
        if entry is not None:
            self._split(entry, body, self._here, reluctant=node.reluctant)

    def _copies(self, node: Quantified, most: int) -> None:
        for _ in range(node.least):
            self.add(node.part)
        splits = []
        for _ in range(most - node.least):
            splits.append(self._placeholder())
            self.add(node.part)
        for split in splits:
            self._split(split, split + 1, self._here, reluctant=node.reluctant)
