"""A mixture made ready for many questions: rules of one kind are asked together.

    P[pi(x) = +1] = min(1, w_1 1[h_1(x) = +1] + w_2 1[h_2(x) = +1] + ...)

This is the one definition of the sum, to the last bit: rules of one kind stand together, kinds in order of first appearance, and the
terms are added one after the other. A person's probability is therefore the same alone and among a million others.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evenhand.contracts import Batch, Hypothesis
from evenhand.words import BoolArray, FloatArray, GroupArray


@dataclass(frozen=True, eq=False)
class Part:
    """Rules of one kind with their weights; `batch` is None for kinds that can only be asked one by one."""

    hypotheses: tuple[Hypothesis, ...]
    weights: tuple[float, ...]
    batch: Batch | None

    def accepts(self, features: FloatArray, columns: FloatArray, group: GroupArray | None) -> Sequence[BoolArray]:
        """(rules, rows); `columns` are the features transposed."""
        if self.batch is None or self.batch.columns not in (None, len(columns)):
            return [hypothesis.accepts(features, group) for hypothesis in self.hypotheses]
        return self.batch(columns)  # type: ignore[return-value]  # an array of arrays is a sequence of them

    def accepts_one(self, person: FloatArray, columns: FloatArray, group: GroupArray | None) -> list[bool]:
        """The same for a single row, as Python's own bools."""
        if self.batch is None or self.batch.columns not in (None, len(columns)):
            return [bool(hypothesis.accepts(person, group)[0]) for hypothesis in self.hypotheses]
        return self.batch(columns)[:, 0].tolist()  # type: ignore[no-any-return]  # numpy's tolist is untyped


@dataclass(frozen=True, eq=False)
class Compiled:
    """The parts of a mixture, in the order in which they are added up."""

    parts: tuple[Part, ...]

    @classmethod
    def of(cls, hypotheses: Sequence[Hypothesis], weights: Sequence[float]) -> "Compiled":
        """Sort the rules by kind."""
        kinds: dict[type, list[tuple[Hypothesis, float]]] = {}
        for hypothesis, weight in zip(hypotheses, weights, strict=True):
            kinds.setdefault(type(hypothesis), []).append((hypothesis, weight))
        return cls(tuple(_part(*zip(*members, strict=True)) for members in kinds.values()))

    def acceptance(self, features: FloatArray, group: GroupArray | None) -> FloatArray:
        """The sum above for each row; the rows have been checked."""
        if len(features) == 1:
            return np.array([min(self._one(features, group), 1.0)])
        columns = np.ascontiguousarray(features.T)
        total, term = np.zeros(len(features)), np.empty(len(features))
        for part in self.parts:
            for weight, accepts in zip(part.weights, part.accepts(features, columns, group), strict=True):
                total += np.multiply(accepts, weight, out=term)
        return np.minimum(total, 1.0, out=total)

    def _one(self, features: FloatArray, group: GroupArray | None) -> float:
        """The same sum in Python's floats, which are numpy's."""
        total, columns = 0.0, features.T
        for part in self.parts:
            for weight, accepts in zip(part.weights, part.accepts_one(features, columns, group), strict=True):
                if accepts:
                    total += weight
        return total


def _part(hypotheses: tuple[Hypothesis, ...], weights: tuple[float, ...]) -> Part:
    together = getattr(type(hypotheses[0]), "together", None)
    return Part(hypotheses, weights, together(hypotheses) if together else None)
