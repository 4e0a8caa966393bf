"""The truth of a population that is a table: rows (x, a, y), each standing for a share of the
people.

loss(pi) = sum_i w_i (1[y_i = +1] false_reject P[pi(x_i) = -1] + 1[y_i = -1] false_accept P[pi(x_i) = +1]),  sum_i w_i = 1
gaps(pi) = the gaps of `fairness.rates` with these weights
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from evenhand.contracts import HypothesisClass, Policy
from evenhand.errors import InvalidInput
from evenhand.faircsc.oracle import require_limit
from evenhand.fairness import FalsePositiveRate, GapConstraints, Rate
from evenhand.fairness.rates import as_rates
from evenhand.policies import Mixture
from evenhand.words import FloatArray, LabelledSample, Prices

FALSE_POSITIVES = FalsePositiveRate()
ZERO_ONE = Prices()


class Population(ABC):
    """Loss, gaps and optimum from a table of truth; subclasses say which table, and how the optimum
    is found.
    """

    hypotheses: HypothesisClass | None
    """The class that belongs to it, if any."""

    def __init__(self) -> None:
        self._optima: dict[Any, tuple[float, Mixture]] = {}

    @property
    @abstractmethod
    def params(self) -> Mapping[str, Any]:
        """What distinguishes this population from another."""

    @abstractmethod
    def sample(self, rows: int, generator: np.random.Generator) -> LabelledSample:
        """`rows` independent people."""

    @abstractmethod
    def _truth(self, policy: Policy) -> tuple[LabelledSample, FloatArray]:
        """A table whose weights sum to one and on whose rows the policy is constant, and its
        acceptance there.
        """

    @abstractmethod
    def _best(
        self, allowed_gap: float, rates: tuple[Rate, ...], prices: Prices
    ) -> tuple[float, Mixture]:
        """The cheapest fair mixture."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {', '.join(f'{k}={v}' for k, v in self.params.items() if k != 'environment')}>"

    def fresh(self) -> Self:
        """Itself: independent draws have no past."""
        return self

    def draw(self, rounds: int, generator: np.random.Generator) -> LabelledSample:
        """The next `rounds` people."""
        return self.sample(rounds, generator)

    def loss(self, policy: Policy, prices: Prices = ZERO_ONE) -> float:
        """The population's loss of a policy; 0-1 loss unless prices are given."""
        sample, acceptance = self._truth(policy)
        return loss_on(sample, acceptance, self._row_prices(prices, sample))

    def gaps(self, policy: Policy, rates: Rate | Sequence[Rate] = FALSE_POSITIVES) -> FloatArray:
        """The signed gap of each rate and pair of groups, later group minus earlier."""
        sample, acceptance = self._truth(policy)
        return self._constraints(as_rates(rates), sample).gaps(acceptance)

    def gap(self, policy: Policy, rate: Rate = FALSE_POSITIVES) -> float:
        """The one signed gap of two groups."""
        found = self.gaps(policy, rate)
        if len(found) != 1:
            raise InvalidInput(
                f"there are {len(found)} gaps, one for each pair of groups; gap() is for two groups.",
                hint="use gaps().",
            )
        return float(found[0])

    def optimum(
        self,
        allowed_gap: float,
        rate: Rate | Sequence[Rate] = FALSE_POSITIVES,
        prices: Prices = ZERO_ONE,
    ) -> tuple[float, Mixture]:
        """(loss, policy) of the best mixture whose gaps are all within `allowed_gap`; computed once
        for each question.
        """
        limit, rates = require_limit(allowed_gap), as_rates(rate)
        key = _question(limit, rates, prices)
        if key not in self._optima:
            self._optima[key] = self._best(limit, rates, prices)
        return self._optima[key]

    def know_optimum(
        self,
        allowed_gap: float,
        rate: Rate | Sequence[Rate],
        prices: Prices,
        loss: float,
        policy: Mixture,
    ) -> None:
        """Take an optimum that was found elsewhere, so that it is not searched for again."""
        self._optima[_question(require_limit(allowed_gap), as_rates(rate), prices)] = (loss, policy)

    def _constraints(self, rates: tuple[Rate, ...], sample: LabelledSample) -> GapConstraints:
        return GapConstraints.on(rates, sample)

    def _row_prices(self, prices: Prices, sample: LabelledSample) -> Prices:
        """Prices with one entry per row of the table of truth, or two numbers."""
        for price in (prices.false_accept, prices.false_reject):
            if not isinstance(price, float) and price.shape != (len(sample),):
                raise InvalidInput(
                    f"a price has shape {price.shape}; give one number, or one entry for each of {len(sample)} rows."
                )
        return prices


class TablePopulation(Population):
    """One fixed table of truth; what depends on the table and the rates alone is computed once."""

    _population: LabelledSample

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[tuple[Rate, ...], GapConstraints] = {}

    def population_sample(self) -> LabelledSample:
        """The population as a labelled sample whose counts sum to one: its rates are the
        population's.
        """
        return self._population

    def _constraints(self, rates: tuple[Rate, ...], sample: LabelledSample) -> GapConstraints:
        if rates not in self._known:
            self._known[rates] = super()._constraints(rates, sample)
        return self._known[rates]


def _question(limit: float, rates: tuple[Rate, ...], prices: Prices) -> Any:
    return (
        limit,
        rates,
        *(np.asarray(price).tobytes() for price in (prices.false_accept, prices.false_reject)),
    )


def loss_on(sample: LabelledSample, acceptance: FloatArray, prices: Prices) -> float:
    """sum_i w_i (1[y_i = +1] false_reject (1 - acceptance_i) + 1[y_i = -1] false_accept
    acceptance_i).
    """
    missed = np.where(sample.label == 1, prices.false_reject * (1.0 - acceptance), 0.0)
    mistaken = np.where(sample.label == -1, prices.false_accept * acceptance, 0.0)
    return float(sample.weight @ (missed + mistaken))


def require_rows(rows: int) -> int:
    """A draw has at least one row."""
    if rows < 1:
        raise InvalidInput(f"{rows} people were asked for; a draw has at least one.")
    return int(rows)
