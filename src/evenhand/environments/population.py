"""The truth about a population that is a table: rows (x, a, y), each standing for a share of the
people; and the best fair mixture on it.

loss(pi) = sum_i w_i (1[y_i = +1] false_reject P[pi(x_i) = -1]
                      + 1[y_i = -1] false_accept P[pi(x_i) = +1]),   sum_i w_i = 1
gaps(pi) = the gaps of `fairness.rates` with these weights
optimum  = min over mixtures of sum_h w_h loss(h)
           subject to |sum_h w_h gap_k(h)| <= limit for all k,  sum_h w_h = 1,  w >= 0

The linear program of the optimum does not share code with `faircsc`, so that each can be tested by
the other.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Self, cast

import numpy as np

from evenhand.contracts import Enumeration, HypothesisClass, Params, Policy
from evenhand.errors import InvalidInput
from evenhand.faircsc.oracle import require_limit
from evenhand.fairness import FalsePositiveRate, GapConstraints, Rate
from evenhand.fairness.rates import as_rates
from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL
from evenhand.policies import Mixture
from evenhand.words import FloatArray, LabelledSample, Prices

FALSE_POSITIVES = FalsePositiveRate()
ZERO_ONE = Prices()
ROUNDING = 1e-12
_Question = tuple[float, tuple[Rate, ...], bytes, bytes]
"""A limit, the rates, and both prices."""


class Population(ABC):
    """A population whose loss, gaps and optimum follow from a table of truth.

    Subclasses say which table (`_truth`), and how the optimum is found (`_best`).

    Examples
    --------
    >>> from evenhand.environments import Population, Scores
    >>> isinstance(Scores(), Population)
    True
    """

    hypotheses: HypothesisClass | None
    """The class that belongs to it, if any."""

    def __init__(self) -> None:
        self._optima: dict[_Question, tuple[float, Mixture]] = {}

    @property
    @abstractmethod
    def params(self) -> Params:
        """What distinguishes this population from another, as plain values."""

    @abstractmethod
    def draw(self, rounds: int, generator: np.random.Generator) -> LabelledSample:
        """Draw people.

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
        shown = (f"{name}={value}" for name, value in self.params.items() if name != "environment")
        return f"<{type(self).__name__} {', '.join(shown)}>"

    def fresh(self) -> Self:
        """Return the population at its beginning.

        Returns
        -------
        Population
            The population itself: independent draws have no past.
        """
        return self

    def loss(self, policy: Policy, prices: Prices = ZERO_ONE) -> float:
        """Return the population's loss of a policy.

        Parameters
        ----------
        policy : Policy
            The policy.
        prices : Prices, optional
            What errors cost; by default both cost 1.

        Returns
        -------
        float
            The expected cost per person.
        """
        sample, acceptance = self._truth(policy)
        return loss_on(sample, acceptance, self._row_prices(prices, sample))

    def gaps(self, policy: Policy, rates: Rate | Sequence[Rate] = FALSE_POSITIVES) -> FloatArray:
        """Return the signed gaps of a policy.

        Parameters
        ----------
        policy : Policy
            The policy.
        rates : Rate or sequence of Rate, optional
            The rates; by default the false positive rate.

        Returns
        -------
        array of float
            One gap for each rate and pair of groups, later group minus earlier.
        """
        sample, acceptance = self._truth(policy)
        return self._constraints(as_rates(rates), sample).gaps(acceptance)

    def gap(self, policy: Policy, rate: Rate = FALSE_POSITIVES) -> float:
        """Return the one signed gap of two groups.

        Parameters
        ----------
        policy : Policy
            The policy.
        rate : Rate, optional
            The rate; by default the false positive rate.

        Returns
        -------
        float
            The rate of the later group minus that of the earlier one.

        Raises
        ------
        InvalidInput
            If there are more than two groups.
        """
        gaps = self.gaps(policy, rate)
        if len(gaps) != 1:
            raise InvalidInput(
                f"there are {len(gaps)} gaps, one for each pair of groups; "
                "gap() is for two groups.",
                hint="use gaps().",
            )
        return float(gaps[0])

    def optimum(
        self,
        allowed_gap: float,
        rate: Rate | Sequence[Rate] = FALSE_POSITIVES,
        prices: Prices = ZERO_ONE,
    ) -> tuple[float, Mixture]:
        """Return the best mixture whose gaps are all within a limit.

        It is computed once for each question. A heuristic search may find under one limit what it
        misses under a wider one, so the answer is the cheapest of those found for this limit and
        for tighter ones.

        Parameters
        ----------
        allowed_gap : float
            The limit.
        rate : Rate or sequence of Rate, optional
            The rates whose gaps are limited; by default the false positive rate.
        prices : Prices, optional
            What errors cost; by default both cost 1.

        Returns
        -------
        (float, Mixture)
            The loss, and the mixture.
        """
        limit, rates = require_limit(allowed_gap), as_rates(rate)
        key = _question(limit, rates, prices)
        if key not in self._optima:
            self._optima[key] = self._best(limit, rates, prices)
        best = self._optima[key]
        for asked, found in self._optima.items():
            if asked[0] < limit and asked[1:] == key[1:] and found[0] < best[0] - ROUNDING:
                best = found
        return best

    def know_optimum(
        self,
        allowed_gap: float,
        rate: Rate | Sequence[Rate],
        prices: Prices,
        loss: float,
        policy: Mixture,
    ) -> None:
        """Take an optimum that was found elsewhere, so that it is not searched for again.

        Parameters
        ----------
        allowed_gap, rate, prices
            The question, as for `optimum`.
        loss, policy
            What `optimum` returned there.
        """
        self._optima[_question(require_limit(allowed_gap), as_rates(rate), prices)] = (loss, policy)

    def _constraints(self, rates: tuple[Rate, ...], sample: LabelledSample) -> GapConstraints:
        return GapConstraints.on(rates, sample)

    def _best_of_class(
        self, table: LabelledSample, allowed_gap: float, rates: tuple[Rate, ...], prices: Prices
    ) -> tuple[float, Mixture]:
        """(loss, mixture) of the linear program over all members of the class and the two
        constants, with losses and gaps summed over the weighted rows of a table.
        """
        assert self.hypotheses is not None  # a class that can be enumerated
        constraints, priced = self._constraints(rates, table), self._row_prices(prices, table)
        bound = cast(Enumeration, self.hypotheses.bind(table.features, None))
        cost = table.weight * priced.acceptance_cost(table.label)
        totals = bound.totals(np.vstack([cost, constraints.channels]))
        members = totals.shape[1]
        costs = np.concatenate([totals[0], [float(cost.sum()), 0.0]])
        gaps = np.hstack([constraints.pairs @ totals[1:], np.zeros((len(constraints.pairs), 2))])
        weights = cheapest_mixture(costs, gaps, allowed_gap)
        chosen = np.flatnonzero(weights)
        parts = tuple(
            bound.hypothesis(int(h)) if h < members else (ACCEPT_ALL, REJECT_ALL)[int(h) - members]
            for h in chosen
        )
        nobody = loss_on(table, np.zeros(len(table)), priced)
        return nobody + float(costs @ weights), Mixture(parts, tuple(weights[chosen].tolist()))

    def _row_prices(self, prices: Prices, sample: LabelledSample) -> Prices:
        """Prices with one entry per row of the table of truth, or two numbers."""
        for price in (prices.false_accept, prices.false_reject):
            if not isinstance(price, float) and price.shape != (len(sample),):
                raise InvalidInput(
                    f"a price has shape {price.shape}; give one number, "
                    f"or one entry for each of {len(sample)} rows."
                )
        return prices


class TablePopulation(Population):
    """A population with one fixed table of truth.

    What depends on the table and the rates alone is computed once.

    Examples
    --------
    >>> from evenhand.environments import Scores, TablePopulation, lending
    >>> isinstance(lending(), TablePopulation), isinstance(Scores(), TablePopulation)
    (True, False)
    >>> round(float(lending().population_sample().weight.sum()), 9)
    1.0
    """

    _population: LabelledSample

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[tuple[Rate, ...], GapConstraints] = {}

    def population_sample(self) -> LabelledSample:
        """Return the population as a labelled sample.

        Returns
        -------
        LabelledSample
            Its counts sum to one, so its rates are the population's.
        """
        return self._population

    def _constraints(self, rates: tuple[Rate, ...], sample: LabelledSample) -> GapConstraints:
        if rates not in self._known:
            self._known[rates] = super()._constraints(rates, sample)
        return self._known[rates]


def _question(limit: float, rates: tuple[Rate, ...], prices: Prices) -> _Question:
    accept, reject = (
        np.asarray(price).tobytes() for price in (prices.false_accept, prices.false_reject)
    )
    return limit, rates, accept, reject


def loss_on(sample: LabelledSample, acceptance: FloatArray, prices: Prices) -> float:
    """The loss of the module's equation."""
    missed = np.where(sample.label == 1, prices.false_reject * (1.0 - acceptance), 0.0)
    mistaken = np.where(sample.label == -1, prices.false_accept * acceptance, 0.0)
    return float(sample.weight @ (missed + mistaken))


def require_rows(rows: int) -> int:
    """A draw has at least one row."""
    if rows < 1:
        raise InvalidInput(f"{rows} people were asked for; a draw has at least one.")
    return int(rows)


def cheapest_mixture(costs: FloatArray, gaps: FloatArray, limit: float) -> FloatArray:
    """The weights of the linear program; gaps: (constraints, hypotheses), all of them zero for the
    last hypothesis.

    One hypothesis is preferred to a mixture of the same cost; no gap exceeds the limit by more than
    rounding.
    """
    from scipy.optimize import linprog

    scale = float(np.abs(costs).max()) or 1.0
    solution = linprog(
        costs / scale,
        A_ub=np.vstack([gaps, -gaps]),
        b_ub=np.full(2 * len(gaps), limit),
        A_eq=np.ones((1, len(costs))),
        b_eq=[1.0],
        method="highs-ds",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    weights: FloatArray = np.maximum(np.asarray(solution.x, dtype=np.float64), 0.0)
    # solve the equations of the basis again: on the support, sum w = 1 and w . gap = +-limit where
    # the solver had it tight
    support = np.flatnonzero(weights > 1e-9)
    reached = gaps[:, support] @ weights[support]
    tight = np.flatnonzero(np.abs(reached) >= limit - 1e-8)
    system = np.vstack([np.ones(len(support)), gaps[np.ix_(tight, support)]])
    target = np.concatenate([[1.0], np.sign(reached[tight]) * limit])
    solved = np.linalg.lstsq(system, target, rcond=None)[0]
    exact = solved.min() >= 0 and np.abs(system @ solved - target).max() <= 1e-13
    polished = np.zeros_like(weights)
    polished[support] = solved if exact else weights[support]
    weights = polished / polished.sum()
    worst = float(np.abs(gaps @ weights).max())
    if worst > limit + 1e-13:
        # move weight to the last hypothesis until no gap exceeds the limit
        weights = weights * (limit / worst)
        weights[-1] += 1.0 - weights.sum()
    fair = np.abs(gaps).max(axis=0) <= limit
    best = int(np.argmin(np.where(fair, costs, np.inf)))
    if costs[best] <= costs @ weights + 1e-13 * scale:
        return np.asarray(np.eye(1, len(costs), best)[0])
    return weights
