"""A population of finitely many contexts, each with its share, its group and P[y = +1]; everything
about it is exact.
"""

import hashlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evenhand.contracts import Params, Policy
from evenhand.environments.population import TablePopulation, require_rows
from evenhand.errors import InvalidInput, LengthMismatch
from evenhand.fairness import Rate
from evenhand.hypotheses import FiniteClass
from evenhand.policies import Mixture
from evenhand.shown import Brief
from evenhand.words import (
    FloatArray,
    GroupArray,
    IntArray,
    LabelledSample,
    Prices,
    as_group,
    as_numbers,
)


@dataclass(frozen=True, eq=False, repr=False)
class ContextCounts(Brief):
    """What happened in a block of rounds with one policy; the labels of the rejected are not known.

    Parameters
    ----------
    rejected : array of int
        The rejected of each context.
    accepted_positive, accepted_negative : array of int
        The accepted of each context with label +1 and with label -1.

    Examples
    --------
    >>> import numpy as np
    >>> counts = ContextCounts(np.array([3, 0]), np.array([1, 4]), np.array([0, 2]))
    >>> counts.accepted.tolist(), counts.rounds
    ([1, 6], 10)
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
    """A population of finitely many contexts; the features of context i are [[i]].

    Parameters
    ----------
    probability : array of float
        The share of each context; the shares sum to 1.
    positive_rate : array of float
        P[y = +1] in each context.
    group : array
        The group of each context; there are at least two groups.
    accepts : array of bool
        (hypotheses, contexts): which hypothesis accepts which context.
    name : str
        What the population is called in reports.

    Raises
    ------
    InvalidInput
        If the shares do not sum to 1, a number is no probability, or there is one group only.

    Examples
    --------
    >>> from evenhand.environments import Discrete
    >>> world = Discrete(
    ...     probability=[0.3, 0.2, 0.3, 0.2], positive_rate=[0.9, 0.2, 0.6, 0.1],
    ...     group=["a", "a", "b", "b"], accepts=[[True, False, True, False]],
    ... )
    >>> loss, policy = world.optimum(allowed_gap=1.0)
    >>> round(loss, 3), round(world.gap(policy), 3)
    (0.21, 0.242)
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
                f"accepts has shape {self.accepts.shape}; "
                f"with {contexts} contexts it must be (hypotheses, {contexts})."
            )
        self.hypotheses: FiniteClass = FiniteClass.from_table(self.accepts)
        # context i with y = +1 counts p_i eta_i people, with y = -1 p_i (1 - eta_i)
        positive = self.probability * self.positive_rate
        self._population = LabelledSample(
            np.tile(self.features, (2, 1)),
            np.tile(self.group, 2),
            np.repeat([1, -1], contexts),
            np.concatenate([positive, self.probability - positive]),
        )
        if len(self._population.groups) < 2:
            raise InvalidInput(
                f"all people are of group {self._population.groups[0]!r}; "
                "a gap needs at least two groups.",
                hint="every group needs a context of positive probability.",
            )

    def __len__(self) -> int:
        return len(self.probability)

    @property
    def params(self) -> Params:
        """Name, sizes, groups and a digest of all numbers."""
        numbers = self.probability.tobytes() + self.positive_rate.tobytes()
        return {
            "environment": self.name,
            "contexts": len(self),
            "hypotheses": len(self.hypotheses),
            "groups": list(self._population.groups),
            "digest": hashlib.sha256(numbers).hexdigest()[:16],
        }

    def draw(self, rounds: int, generator: np.random.Generator) -> LabelledSample:
        """Draw independent people, event by event.

        Parameters
        ----------
        rounds : int
            How many people.
        generator : numpy.random.Generator
            The source of chance.

        Returns
        -------
        LabelledSample
            The people with their true labels.
        """
        context = generator.choice(len(self), size=require_rows(rounds), p=self.probability)
        label = np.where(generator.random(rounds) < self.positive_rate[context], 1, -1)
        return LabelledSample(self.features[context], self.group[context], label)

    def draw_counts(
        self, rounds: int, acceptance: ArrayLike, generator: np.random.Generator
    ) -> ContextCounts:
        """Draw the counts of many rounds with one policy, in O(contexts).

        People per context are multinomial, the accepted among them binomial, the positive among
        those binomial: the same law as counting event by event.

        Parameters
        ----------
        rounds : int
            How many rounds.
        acceptance : array of float
            The probability with which each context is accepted.
        generator : numpy.random.Generator
            The source of chance.

        Returns
        -------
        ContextCounts
            What happened in each context.
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

    def _truth(self, policy: Policy) -> tuple[LabelledSample, FloatArray]:
        return self._population, np.tile(policy.acceptance(self.features, self.group), 2)

    def _best(
        self, allowed_gap: float, rates: tuple[Rate, ...], prices: Prices
    ) -> tuple[float, Mixture]:
        return self._best_of_class(self._population, allowed_gap, rates, prices)

    def _row_prices(self, prices: Prices, sample: LabelledSample) -> Prices:
        """One entry per context becomes one per (label, context)."""
        both = (
            np.tile(as_numbers(price, len(self), "a price"), 2)
            for price in (prices.false_accept, prices.false_reject)
        )
        return Prices(*both)


def _as_distribution(value: ArrayLike) -> FloatArray:
    shares = np.asarray(value, dtype=np.float64)
    if shares.ndim != 1 or len(shares) == 0:
        raise LengthMismatch(
            f"probability has shape {shares.shape}; it needs one entry per context."
        )
    shares = _as_probabilities(shares, len(shares), "probability")
    total = float(shares.sum())
    if abs(total - 1.0) > 1e-9:
        raise InvalidInput(
            f"probability sums to {total:.12g}; the shares of all contexts must sum to 1.",
            hint="divide by the sum.",
        )
    return np.asarray(shares / total)


def _as_probabilities(value: ArrayLike, rows: int, name: str) -> FloatArray:
    """(rows,) numbers in [0, 1]; rounding up to 1e-12 outside is rounded back."""
    array = as_numbers(value, rows, name)
    outside = (array < -1e-12) | (array > 1 + 1e-12)
    if outside.any():
        where = int(np.argmax(outside))
        raise InvalidInput(f"{name}[{where}] is {array[where]}; probabilities lie in [0, 1].")
    return np.clip(array, 0.0, 1.0)
