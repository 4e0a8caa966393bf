"""The truth about a population that is a table: rows (x, a, y), each standing for a share of the
people; and the best fair mixture on it. `Discrete` has finitely many contexts, each with its share,
its group and P[y = +1]; `Replay` is a labelled table, whose rows are drawn again and again, or
streamed once.

loss(pi) = sum_i w_i (1[y_i = +1] false_reject P[pi(x_i) = -1]
                      + 1[y_i = -1] false_accept P[pi(x_i) = +1]),   sum_i w_i = 1
gaps(pi) = the gaps of `fairness.rates` with these weights
optimum  = min over mixtures of sum_h w_h loss(h)
           subject to |sum_h w_h gap_k(h)| <= limit for all k,  sum_h w_h = 1,  w >= 0

The linear program of the optimum does not share code with `faircsc`, so that each can be tested by
the other. The optimum of `Replay` is that of `faircsc`: its class need not be enumerable.
"""

import copy
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from evenhand.contracts import Enumeration, GroupUse, HypothesisClass, Params, Policy
from evenhand.errors import InvalidInput, LengthMismatch
from evenhand.faircsc import solve_fair
from evenhand.faircsc.columns import without_rounding
from evenhand.fairness import FalsePositiveRate, GapConstraints, Rate
from evenhand.fairness.rates import RateLike, as_rates
from evenhand.hypotheses import ClassLike, FiniteClass, as_class
from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL
from evenhand.people import as_group
from evenhand.policies import Mixture
from evenhand.randomness import stream
from evenhand.shares import require_limit
from evenhand.shown import Brief
from evenhand.tables import Table
from evenhand.words import FloatArray, GroupArray, IntArray, LabelledSample, Prices, as_numbers

FALSE_POSITIVES = FalsePositiveRate()
ZERO_ONE = Prices()
ROUNDING = 1e-12
_Question = tuple[float, tuple[Rate, ...], bytes, bytes]
"""A limit, the rates, and both prices."""


class Population(ABC):
    """A population whose loss, gaps and optimum follow from a table of truth.

    Subclasses say which table (`_truth`), and which one the optimum is found on (`_rows`).

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
        self._optima_within: dict[tuple[_Question, float, float], tuple[float, Mixture]] = {}

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
    def _rows(self) -> LabelledSample:
        """A table on which the members of the class are compared."""

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
        limit: float,
        rate: RateLike = FALSE_POSITIVES,
        prices: Prices = ZERO_ONE,
    ) -> tuple[float, Mixture]:
        """Return the best mixture whose gaps are all within a limit.

        It is computed once for each question. A heuristic search may find under one limit what it
        misses under a wider one, so the answer is the cheapest of those found for this limit and
        for tighter ones.

        Parameters
        ----------
        limit : float
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
        limit = require_limit(limit)
        rates = as_rates(rate)
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
        limit: float,
        rate: RateLike,
        prices: Prices,
        loss: float,
        policy: Mixture,
        shares: tuple[float, float] | None = None,
    ) -> None:
        """Take an optimum that was found elsewhere, so that it is not searched for again.

        Parameters
        ----------
        limit, rate, prices
            The question, as for `optimum`.
        loss, policy
            What `optimum` returned there.
        shares : (float, float), optional
            The smallest and the largest share, if that is what `optimum_within` returned.
        """
        question = _question(require_limit(limit), as_rates(rate), prices)
        if shares is None:
            self._optima[question] = (loss, policy)
        else:
            self._optima_within[(question, *shares)] = (loss, policy)

    def _constraints(self, rates: tuple[Rate, ...], sample: LabelledSample) -> GapConstraints:
        return GapConstraints.on(rates, sample)

    def _best(self, limit: float, rates: tuple[Rate, ...], prices: Prices) -> tuple[float, Mixture]:
        """(loss, mixture) of the linear program over all members of the class and the two
        constants, with losses and gaps summed over the weighted rows of the table.
        """
        return self._solved(limit, rates, prices, None)

    def optimum_within(
        self,
        limit: float,
        rate: RateLike,
        prices: Prices,
        most: float,
        least: float = 0.0,
    ) -> tuple[float, Mixture]:
        """Return the best mixture within a limit that accepts a permitted share of the people.

        It is computed once for each question.

        Parameters
        ----------
        limit, rate, prices
            As for `optimum`.
        most, least : float
            The largest and the smallest share.

        Returns
        -------
        (float, Mixture)
            The loss, and the mixture.

        Raises
        ------
        InvalidInput
            If the class cannot be enumerated.
        """
        limit = require_limit(limit)
        rates = as_rates(rate)
        key = (_question(limit, rates, prices), least, most)
        if key not in self._optima_within:
            self._optima_within[key] = self._solved(limit, rates, prices, (least, most))
        return self._optima_within[key]

    def _solved(
        self,
        limit: float,
        rates: tuple[Rate, ...],
        prices: Prices,
        shares: tuple[float, float] | None,
    ) -> tuple[float, Mixture]:
        assert self.hypotheses is not None  # a class that can be enumerated
        table = self._rows()
        constraints = self._constraints(rates, table)
        priced = self._row_prices(prices, table)
        bound = self.hypotheses.bind(table.features, None)
        if not isinstance(bound, Enumeration):
            raise InvalidInput(
                f"{type(self.hypotheses).__name__} cannot be enumerated, so the best policy within "
                "a cap is not known.",
                hint="compare with another learner instead.",
            )
        cost = table.weight * priced.acceptance_cost(table.label)
        totals = bound.totals(np.vstack([cost, constraints.channels]))
        members = totals.shape[1]
        costs = np.concatenate([totals[0], [float(cost.sum()), 0.0]])
        # accept-all has the gaps of its weights, none for rates that can be certified
        of_all = without_rounding(constraints.gaps(np.ones(len(table))))
        nobody_gaps = np.zeros(len(of_all))
        gaps = np.column_stack([constraints.pairs @ totals[1:], of_all, nobody_gaps])
        if shares is None:
            weights = cheapest_mixture(costs, gaps, limit)
        else:
            people = bound.totals(table.weight[np.newaxis])[0] / table.weight.sum()
            accepted = np.concatenate([people, [1.0, 0.0]])
            weights = cheapest_within(costs, gaps, limit, accepted, shares)
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

    _rows = population_sample

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


def cheapest_within(
    costs: FloatArray,
    gaps: FloatArray,
    limit: float,
    accepted: FloatArray,
    shares: tuple[float, float],
) -> FloatArray:
    """The weights of the linear program with a cap and a floor; accepted (hypotheses,): the share
    that each accepts.
    """
    from scipy.optimize import linprog

    least, most = shares
    scale = float(np.abs(costs).max()) or 1.0
    solution = linprog(
        costs / scale,
        A_ub=np.vstack([gaps, -gaps, accepted, -accepted]),
        b_ub=np.concatenate([np.full(2 * len(gaps), limit), [most, -least]]),
        A_eq=np.ones((1, len(costs))),
        b_eq=[1.0],
        method="highs-ds",
    )
    weights = np.maximum(np.asarray(solution.x, dtype=np.float64), 0.0)
    weights = np.where(weights > 1e-12, weights, 0.0)
    return np.asarray(weights / weights.sum())


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


# finitely many contexts


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
    >>> loss, policy = world.optimum(limit=1.0)
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
        those binomial: the same distribution as counting event by event.

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


# a labelled table


class Replay(TablePopulation):
    """A table of people as a population: its rows are drawn with replacement, or each once.

    Loss and gaps of a policy are those on the whole table.

    Parameters
    ----------
    sample : LabelledSample
        The table; rows are drawn in proportion to their counts.
    streamed : bool
        Whether each row comes once, in the order of the table, instead of with replacement.
    hypotheses : HypothesisClass or str, optional
        The class of rules, or its name; `optimum` needs it, and is exact for an exact class.
    group_use : {"certify_only", "decide"}
        Whether the rules of the optimum may look at the group.
    seed : int, optional
        Shuffles the order of a stream.
    name : str
        What the population is called in reports.

    Raises
    ------
    InvalidInput
        If there is one group only, a table with counts is streamed, or a seed has nothing to
        shuffle.

    Examples
    --------
    >>> import numpy as np
    >>> from evenhand.environments import Replay
    >>> from evenhand.words import LabelledSample
    >>> table = LabelledSample([[1.0], [2.0], [3.0], [4.0]], ["a", "a", "b", "b"], [-1, 1, -1, 1])
    >>> world = Replay(table, streamed=True)
    >>> world.draw(3, np.random.default_rng(0)).label.tolist(), world.remaining
    ([-1, 1, -1], 1)
    >>> world.fresh().remaining
    4
    """

    def __init__(
        self,
        sample: LabelledSample,
        *,
        streamed: bool = False,
        hypotheses: ClassLike | None = None,
        group_use: GroupUse = "certify_only",
        seed: int | None = None,
        name: str = "replay",
    ) -> None:
        super().__init__()
        sample.require_two_groups()
        if streamed and not (sample.weight == 1).all():
            raise InvalidInput(
                "a table with counts cannot be streamed once.",
                hint="repeat the rows, or use streamed=False.",
            )
        if seed is not None and not streamed:
            raise InvalidInput(
                f"seed is {seed}, but only a stream has an order to shuffle.",
                hint="pass streamed=True, or no seed.",
            )
        self.name = name
        self.streamed = streamed
        self.seed = seed
        self.hypotheses = None if hypotheses is None else as_class(hypotheses)
        self.group_use = group_use
        self._table = sample
        self._population = LabelledSample(
            sample.features, sample.group, sample.label, sample.weight / sample.weight.sum()
        )
        self._order: IntArray = (
            np.arange(len(sample))
            if seed is None
            else stream(seed, "replay").permutation(len(sample))
        )
        self._position = 0

    @classmethod
    def of_table(
        cls,
        table: Table,
        hypotheses: ClassLike | None = None,
        group_use: GroupUse = "certify_only",
    ) -> Self:
        """Take a table for a population.

        Rows are drawn with replacement, so its own rates are the exact truth.

        Parameters
        ----------
        table : Table
            What `evenhand.tables.read_table(...).encoded()` returns.
        hypotheses : HypothesisClass or str, optional
            The class whose best policy is the optimum.
        group_use : {"certify_only", "decide"}
            Whether the group may influence decisions.

        Returns
        -------
        Replay
            The population.

        Examples
        --------
        >>> from evenhand.tables import read_table
        >>> len(Replay.of_table(read_table("lending").encoded()))
        1200
        """
        return cls(table.sample, hypotheses=hypotheses, group_use=group_use, name=table.name)

    def __len__(self) -> int:
        return len(self._table)

    @property
    def params(self) -> Params:
        """Name, size, groups, and how rows are drawn."""
        return {
            "environment": self.name,
            "rows": len(self),
            "columns": self._table.features.shape[1],
            "groups": list(self._table.groups),
            "streamed": self.streamed,
            "seed": self.seed,
        }

    @property
    def remaining(self) -> int | None:
        """How many rows of a stream are left; None for a table that is drawn with replacement."""
        return len(self) - self._position if self.streamed else None

    def fresh(self) -> Self:
        """Return the same table at its beginning.

        Returns
        -------
        Replay
            A stream starts again at its first row.
        """
        again = copy.copy(self)
        again._position = 0
        return again

    def draw(self, rounds: int, generator: np.random.Generator) -> LabelledSample:
        """Draw the next people.

        Parameters
        ----------
        rounds : int
            How many people.
        generator : numpy.random.Generator
            The source of chance; a stream needs none.

        Returns
        -------
        LabelledSample
            The people with their labels.

        Raises
        ------
        InvalidInput
            If a stream has too few rows left.
        """
        require_rows(rounds)
        table = self._table
        left = len(self) - self._position
        if not self.streamed:
            rows = generator.choice(len(self), size=rounds, p=self._population.weight)
        elif rounds <= left:
            rows = self._order[self._position : self._position + rounds]
            self._position += rounds
        else:
            raise InvalidInput(
                f"{rounds} people were asked for, "
                f"but {left} of the {len(self)} rows of the stream are left.",
                hint="use at most as many rounds as there are rows, "
                "or streamed=False to draw with replacement.",
            )
        return LabelledSample(table.features[rows], table.group[rows], table.label[rows])

    def _truth(self, policy: Policy) -> tuple[LabelledSample, FloatArray]:
        table = self._population
        return table, policy.acceptance(table.features, table.group)

    def _best(self, limit: float, rates: tuple[Rate, ...], prices: Prices) -> tuple[float, Mixture]:
        if self.hypotheses is None:
            raise InvalidInput(
                "this table has no hypothesis class, so there is no best policy.",
                hint="pass hypotheses=...",
            )
        table = self._population
        priced = self._row_prices(prices, table)
        problem = priced.problem(table.features, table.group, table.label, table.count)
        best = solve_fair(problem, self.hypotheses, rates, table, limit, group_use=self.group_use)
        return best.cost, best.policy
