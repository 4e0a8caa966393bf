"""A population of finitely many contexts, each with its share, its group and P[y = +1]; everything
about it is exact.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from evenhand.contracts import Policy
from evenhand.environments.optimum import enumerated_optimum
from evenhand.environments.truth import TablePopulation, require_rows
from evenhand.errors import InvalidInput, LengthMismatch
from evenhand.fairness import Rate
from evenhand.hypotheses import FiniteClass
from evenhand.policies import Mixture
from evenhand.words import (
    FloatArray,
    GroupArray,
    IntArray,
    LabelledSample,
    Prices,
    as_group,
    as_numbers,
)


@dataclass(frozen=True, eq=False)
class ContextCounts:
    """What happened in a block of rounds with one policy, per context; the labels of the rejected
    are not known.
    """

    rejected: IntArray
    accepted_positive: IntArray
    accepted_negative: IntArray

    @property
    def accepted(self) -> IntArray:
        """The accepted of each context."""
        return self.accepted_positive + self.accepted_negative

    @property
    def rounds(self) -> int:
        """All rounds of the block."""
        return int(self.rejected.sum() + self.accepted.sum())


class Discrete(TablePopulation):
    """Context i has probability[i], P[y = +1 | i] = positive_rate[i], group[i], features [[i]];
    accepts[h, i]: does h accept it?
    """

    def __init__(
        self,
        probability: ArrayLike,
        positive_rate: ArrayLike,
        group: ArrayLike,
        accepts: ArrayLike,
        *,
        name: str = "discrete",
    ) -> None:
        super().__init__()
        self.name = name
        self.probability = _as_distribution(probability)
        contexts = len(self.probability)
        self.positive_rate = _as_probabilities(positive_rate, contexts, "positive_rate")
        self.group: GroupArray = as_group(group, contexts)
        self.features: FloatArray = np.arange(contexts, dtype=np.float64)[:, np.newaxis]
        self.accepts = np.asarray(accepts)
        if self.accepts.ndim != 2 or self.accepts.shape[1] != contexts:
            raise LengthMismatch(
                f"accepts has shape {self.accepts.shape}; with {contexts} contexts it must be (hypotheses, {contexts})."
            )
        self.hypotheses: FiniteClass = FiniteClass.from_table(self.accepts)
        self._population = self._table()
        self._require_two_groups()

    def __len__(self) -> int:
        return len(self.probability)

    @property
    def params(self) -> Mapping[str, Any]:
        """Name, sizes, groups and a digest of all numbers."""
        numbers = hashlib.sha256(
            self.probability.tobytes() + self.positive_rate.tobytes()
        ).hexdigest()[:16]
        return {
            "environment": self.name,
            "contexts": len(self),
            "hypotheses": len(self.hypotheses),
            "groups": list(self._population.groups),
            "digest": numbers,
        }

    def sample(self, rows: int, generator: np.random.Generator) -> LabelledSample:
        """`rows` independent people, event by event."""
        context = generator.choice(len(self), size=require_rows(rows), p=self.probability)
        label = np.where(generator.random(rows) < self.positive_rate[context], 1, -1)
        return LabelledSample(self.features[context], self.group[context], label)

    def draw_counts(
        self, rounds: int, acceptance: ArrayLike, generator: np.random.Generator
    ) -> ContextCounts:
        """The counts of `rounds` rounds in which context i is accepted with probability
        acceptance[i], in O(contexts).

        People per context are multinomial, the accepted among them binomial, the positive among
        those binomial: the same law as counting event by event.
        """
        accepting = _as_probabilities(acceptance, len(self), "acceptance")
        if rounds < 0:
            raise InvalidInput(f"rounds is {rounds}; a block has at least 0 rounds.")
        people = np.zeros(len(self), dtype=np.int64)
        possible = self.probability > 0
        people[possible] = generator.multinomial(rounds, self.probability[possible])
        accepted = generator.binomial(people, accepting)
        positive = generator.binomial(accepted, self.positive_rate)
        return ContextCounts(people - accepted, positive, accepted - positive)

    def _table(self) -> LabelledSample:
        """Context i with y = +1 counts p_i eta_i people, with y = -1 p_i (1 - eta_i)."""
        positive = self.probability * self.positive_rate
        count = np.concatenate([positive, self.probability - positive])
        label = np.repeat([1, -1], len(self))
        return LabelledSample(np.tile(self.features, (2, 1)), np.tile(self.group, 2), label, count)

    def _truth(self, policy: Policy) -> tuple[LabelledSample, FloatArray]:
        return self._population, np.tile(policy.acceptance(self.features, self.group), 2)

    def _best(
        self, allowed_gap: float, rates: tuple[Rate, ...], prices: Prices
    ) -> tuple[float, Mixture]:
        constraints = self._constraints(rates, self._population)
        return enumerated_optimum(
            self._population,
            self.hypotheses,
            constraints,
            self._row_prices(prices, self._population),
            allowed_gap,
        )

    def _row_prices(self, prices: Prices, sample: LabelledSample) -> Prices:
        """One entry per context becomes one per (label, context)."""
        both = (
            np.tile(as_numbers(price, len(self), "a price"), 2)
            for price in (prices.false_accept, prices.false_reject)
        )
        return Prices(*both)

    def _require_two_groups(self) -> None:
        if len(self._population.groups) < 2:
            raise InvalidInput(
                f"all people are of group {self._population.groups[0]!r}; a gap needs at least two groups.",
                hint="every group needs a context of positive probability.",
            )


def _as_distribution(value: ArrayLike) -> FloatArray:
    array = np.asarray(value, dtype=np.float64)
    if array.ndim != 1 or len(array) == 0:
        raise LengthMismatch(
            f"probability has shape {array.shape}; it needs one entry per context."
        )
    checked = _as_probabilities(array, len(array), "probability")
    total = float(checked.sum())
    if abs(total - 1.0) > 1e-9:
        raise InvalidInput(
            f"probability sums to {total:.12g}; the shares of all contexts must sum to 1.",
            hint="divide by the sum.",
        )
    return np.asarray(checked / total)


def _as_probabilities(value: ArrayLike, rows: int, name: str) -> FloatArray:
    """(rows,) numbers in [0, 1]; rounding up to 1e-12 outside is rounded back."""
    array = as_numbers(value, rows, name)
    outside = (array < -1e-12) | (array > 1 + 1e-12)
    if outside.any():
        where = int(np.argmax(outside))
        raise InvalidInput(f"{name}[{where}] is {array[where]}; probabilities lie in [0, 1].")
    return np.clip(array, 0.0, 1.0)
