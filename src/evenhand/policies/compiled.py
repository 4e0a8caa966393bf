"""A mixture made ready for many questions: rules of one kind are asked together.

    P[pi(x) = +1] = min(1, w_1 1[h_1(x) = +1] + w_2 1[h_2(x) = +1] + ...)

This is the one definition of the sum, to the last bit: rules of one kind stand together, kinds in
order of first appearance, and the terms are added one after the other. A person's probability is
therefore the same alone and among a million others.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import compress
from operator import add

import numpy as np

from evenhand.contracts import Batch, Hypothesis
from evenhand.errors import InvalidInput
from evenhand.words import BoolArray, FloatArray, GroupArray

ANY_WIDTH, NO_WIDTH = 0, -1
TILE = 4096
"""People who are decided about at a time: few enough for the cache, enough to make numpy worth
while.
"""


@dataclass(frozen=True, eq=False)
class CompiledPart:
    """Rules of one kind with their weights; `batch` is None for kinds that can only be asked one by
    one.
    """

    hypotheses: tuple[Hypothesis, ...]
    weights: tuple[float, ...]
    batch: Batch | None

    def accepts(self, features: FloatArray, group: GroupArray | None) -> Iterable[BoolArray]:
        """The answers of each rule."""
        return self.one_by_one(features, group) if self.batch is None else self.batch(features.T)

    def one_by_one(self, features: FloatArray, group: GroupArray | None) -> list[BoolArray]:
        """Ask every rule itself."""
        return [hypothesis.accepts(features, group) for hypothesis in self.hypotheses]


@dataclass(frozen=True, eq=False)
class Compiled:
    """The parts of a mixture, in the order in which they are added up; `width`: the number of
    columns that they ask for.
    """

    parts: tuple[CompiledPart, ...]
    width: int

    @classmethod
    def of(cls, hypotheses: Sequence[Hypothesis], weights: Sequence[float]) -> "Compiled":
        """Sort the rules by kind."""
        kinds: dict[type, list[tuple[Hypothesis, float]]] = {}
        for hypothesis, weight in zip(hypotheses, weights, strict=True):
            kinds.setdefault(type(hypothesis), []).append((hypothesis, weight))
        parts = tuple(_part(*zip(*members, strict=True)) for members in kinds.values())
        widths = {
            part.batch.columns
            for part in parts
            if part.batch is not None and part.batch.columns is not None
        }
        return cls(parts, NO_WIDTH if len(widths) > 1 else max(widths, default=ANY_WIDTH))

    def acceptance(self, features: FloatArray, group: GroupArray | None) -> FloatArray:
        """The sum above for each row; the rows have been checked."""
        if len(features) == 1:
            return np.array([self.acceptance_of_one(features, group)])
        if self.width not in (ANY_WIDTH, features.shape[1]):
            self._complain(features, group)
        total = np.zeros(len(features))
        for start in range(0, len(features), TILE):
            rows = slice(start, start + TILE)
            try:
                self._add_up(features[rows], None if group is None else group[rows], total[rows])
            except InvalidInput:
                self._complain(features, group)
                raise
        return np.minimum(total, 1.0, out=total)

    def _add_up(self, features: FloatArray, group: GroupArray | None, total: FloatArray) -> None:
        term = np.empty(len(features))
        for part in self.parts:
            for weight, accepts in zip(part.weights, part.accepts(features, group), strict=True):
                total += np.multiply(accepts, weight, out=term)

    def acceptance_of_one(self, person: FloatArray, group: GroupArray | None) -> float:
        """The same for a single row, in Python's floats, which are numpy's."""
        if self.width not in (ANY_WIDTH, person.shape[1]):
            self._complain(person, group)
        total = 0.0
        for part in self.parts:
            answers = (
                part.batch.one(person)
                if part.batch is not None
                else [bool(answer[0]) for answer in part.one_by_one(person, group)]
            )
            total = reduce(add, compress(part.weights, answers), total)
        return total if total < 1.0 else 1.0

    def _complain(self, features: FloatArray, group: GroupArray | None) -> None:
        """Some rule refuses these rows: let it say so itself, about all of them at once."""
        for part in self.parts:
            part.one_by_one(features, group)


def _part(hypotheses: tuple[Hypothesis, ...], weights: tuple[float, ...]) -> CompiledPart:
    together = getattr(type(hypotheses[0]), "together", None)
    return CompiledPart(hypotheses, weights, together(hypotheses) if together else None)
