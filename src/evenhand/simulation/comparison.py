"""Comparisons: several learners on one population, and the figures that describe them.

Everything here summarises runs that a sweep made: the learners of a comparison side by side
(`compare`), what a longer exploration buys and costs (`tradeoff`), and what a guaranteed limit
costs (`guarantee_cost`).

The trade-off of the paper's main theorem: exploring T^(2 alpha) rounds buys a gap of order
T^(-alpha). For each exponent alpha in [1/4, 1/2] and each horizon T, over seeds:

    excess gap    max over the learner's set Pi of |gap on D|, minus gamma;
                  theory: slope -alpha in T
    cost          regret of the exploration, plus the bandit's regret to the best policy in Pi;
                  theory: slope 2 alpha (up to 1)
    least cost    what no learner with that excess gap avoids on the worst population (theorem 4.1)

The cost of a guarantee, per person:

    best without a limit + price of the limit    + price of learning and certifying it
    = opt(1)             + (opt(limit) - opt(1)) + (mean loss of the learner - opt(limit))
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from math import sqrt
from typing import TYPE_CHECKING

import numpy as np
import scipy

from evenhand import theory
from evenhand.contracts import Environment, HypothesisClass, Json, Learner, Params
from evenhand.environments.population import TablePopulation
from evenhand.errors import InvalidInput
from evenhand.fairness.rates import RateLike
from evenhand.learners import CertifiedLearner, TwoPhaseLearner
from evenhand.shares import require_delta, require_promise
from evenhand.shown import Brief, Cell, Shown, plain, plain_fields
from evenhand.simulation.record import RunRecord, constant_costs
from evenhand.simulation.run import Engine
from evenhand.simulation.sweep import Progress, RunTask, sweep
from evenhand.words import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

EXPONENTS = (1 / 4, 1 / 3, 1 / 2)
HORIZONS = 5
"""How many horizons, from T/10 to 10 T."""
TABLES = "lending, random, thresholds, lower-bound or hard"
LIMITS = (0.02, 0.04, 0.07, 0.12, 0.2)
MOST_SEEDS = 3
"""Maximum number of runs per limit: the figure shows a trend, not a claim."""


@dataclass(frozen=True)
class Summary:
    """One learner of a comparison in one row: means over its runs.

    Parameters
    ----------
    name : str
        The learner's name.
    runs : int
        How many runs there were.
    regret, regret_error : float
        The mean regret, and the standard error of the mean (None for a single run).
    regret_over_constant, regret_over_constant_error : float or None
        The same as a share of the better constant's regret; None where that constant is optimal.
    regret_in_set : float or None
        The mean regret to the best policy of the learner's own set.
    cost : float
        The mean loss per person.
    worst_gap : float
        The largest |true gap| of any run.
    runs_above : int
        Runs in which any policy was above the limit.
    runs_above_upper : float
        The 95% upper confidence limit (Clopper and Pearson) for the chance of that, from these runs
        alone.
    rounds_above : float
        The mean share of rounds above the limit.
    accepted_share, audit_share, explored_rounds, oracle_calls, seconds : float
        Means over the runs.
    guaranteed : bool
        Whether the learner's own bound covers the limit in every run.
    exploring : int
        Runs that never left the exploration.
    """

    name: str
    runs: int
    regret: float
    regret_error: float | None
    regret_over_constant: float | None
    regret_over_constant_error: float | None
    regret_in_set: float | None
    cost: float
    worst_gap: float
    runs_above: int
    runs_above_upper: float
    rounds_above: float
    accepted_share: float
    audit_share: float
    explored_rounds: float
    oracle_calls: float
    seconds: float
    guaranteed: bool
    exploring: int


@dataclass(frozen=True, eq=False, repr=False)
class LearnerRuns(Brief):
    """All runs of one learner in a comparison.

    Parameters
    ----------
    name : str
        The learner's name.
    params : mapping
        Its settings, without the seed.
    runs : tuple of RunRecord
        One run per seed.
    """

    name: str
    params: Params
    runs: tuple[RunRecord, ...]

    def regret_curves(self, rounds: FloatArray) -> FloatArray:
        """Return the cumulative regret of each run.

        Parameters
        ----------
        rounds : array of float
            After how many rounds.

        Returns
        -------
        array of float
            (runs, rounds).
        """
        return np.array([run.regret_at(rounds) for run in self.runs])

    def summary(self, limit: float) -> Summary:
        """Return the means over the runs.

        Parameters
        ----------
        limit : float
            The gap above which a round counts as a violation.

        Returns
        -------
        Summary
            One row.
        """
        runs = self.runs
        regret = [float(run.regret[-1]) for run in runs]
        relative = [run.regret_over_constant for run in runs]
        inside = [run.regret_in_set for run in runs]
        shares = [run.share_above(limit) for run in runs]
        runs_above = sum(share > 0 for share in shares)
        return Summary(
            name=self.name,
            runs=len(runs),
            regret=float(np.mean(regret)),
            regret_error=_standard_error(regret),
            regret_over_constant=_mean(relative),
            regret_over_constant_error=_standard_error(relative),
            regret_in_set=_mean(inside),
            cost=float(np.mean([run.cost for run in runs])),
            worst_gap=max(run.worst_gap for run in runs),
            runs_above=runs_above,
            runs_above_upper=upper_limit(runs_above, len(runs)),
            rounds_above=float(np.mean(shares)),
            accepted_share=float(np.mean([run.accepted_share for run in runs])),
            audit_share=float(np.mean([run.audit_share for run in runs])),
            explored_rounds=float(np.mean([run.explored for run in runs])),
            oracle_calls=float(np.mean([run.oracle_calls for run in runs])),
            seconds=float(np.mean([run.seconds for run in runs])),
            guaranteed=all(run.guaranteed for run in runs),
            exploring=sum(run.phases[-1] == "explore" for run in runs),
        )


def _mean(values: Sequence[float | None]) -> float | None:
    """The mean of the values that are known."""
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def _standard_error(values: Sequence[float | None]) -> float | None:
    """The standard error of the mean of the values that are known; None for a single one."""
    known = [value for value in values if value is not None]
    if len(known) < 2:
        return None
    return float(np.std(known, ddof=1) / sqrt(len(known)))


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Shown, Brief):
    """Several learners on one population: `to_frame` has a row for each run, `plot` the regret.

    Parameters
    ----------
    environment : mapping
        The population's `params`.
    rounds : int
        Rounds of each run.
    seeds : tuple of int
        The seeds of each learner's runs.
    limit : float
        gamma', the gap that counts as a violation when it is exceeded.
    delta : float
        The share of runs in which a certified learner may exceed it.
    regret_gap : float
        Regret is measured against the best policy with gaps of at most this.
    optimum : float
        The loss of that policy.
    constant : float
        The loss of the better constant: accepting or rejecting all applicants.
    learners : tuple of LearnerRuns
        All runs.

    Examples
    --------
    >>> from evenhand.environments import lending
    >>> from evenhand.learners import AcceptAll
    >>> comparison = compare(
    ...     {"accept-all": AcceptAll()}, lending(), rounds=100, seeds=[0],
    ...     limit=0.1, delta=0.05, regret_gap=0.1,
    ... )
    >>> again = Comparison.from_json(comparison.to_json())
    >>> again.summaries == comparison.summaries
    True
    >>> comparison.to_frame()[["learner", "seed", "accepted_share"]].values.tolist()
    [['accept-all', 0, 1.0]]
    """

    environment: Params
    rounds: int
    seeds: tuple[int, ...]
    limit: float
    delta: float
    regret_gap: float
    optimum: float
    constant: float
    learners: tuple[LearnerRuns, ...]

    @property
    def summaries(self) -> tuple[Summary, ...]:
        """One row per learner."""
        return tuple(learner.summary(self.limit) for learner in self.learners)

    def _headline(self) -> str:
        name = self.environment.get("environment", "a population")
        return (
            f"{len(self.learners)} learners on {name}: {self.rounds:,} rounds, "
            f"{len(self.seeds)} runs each, limit {self.limit:g}"
        )

    def _columns(self) -> dict[str, Sequence[Cell]]:
        each = [(learner.name, run) for learner in self.learners for run in learner.runs]
        return {
            "learner": [name for name, _ in each],
            "seed": [run.seed for _, run in each],
            "regret": [float(run.regret[-1]) for _, run in each],
            "regret_over_constant": [run.regret_over_constant for _, run in each],
            "cost": [run.cost for _, run in each],
            "worst_gap": [run.worst_gap for _, run in each],
            "rounds_above": [run.share_above(self.limit) for _, run in each],
            "certified": [run.guaranteed for _, run in each],
            "accepted_share": [run.accepted_share for _, run in each],
            "explored": [run.explored for _, run in each],
            "oracle_calls": [run.oracle_calls for _, run in each],
            "seconds": [run.seconds for _, run in each],
        }

    def _draw(self, axes: "Axes") -> None:
        rounds = np.linspace(0, self.rounds, 101)[1:]
        for learner in self.learners:
            curves = learner.regret_curves(rounds)
            (line,) = axes.plot(rounds, curves.mean(axis=0), linewidth=2, label=learner.name)
            if len(curves) > 1:
                band = (curves.min(axis=0), curves.max(axis=0))
                axes.fill_between(rounds, *band, color=line.get_color(), alpha=0.15, linewidth=0)
        axes.set_xlabel("round")
        axes.set_ylabel(f"regret to the best policy with a gap of {self.regret_gap:g}")
        axes.legend(frameon=False, fontsize="small")

    def to_json(self) -> Json:
        """Return the comparison as plain JSON.

        Returns
        -------
        dict
            The settings, the summaries, and every run.
        """
        document = plain_fields(self)
        learners = document.pop("learners")
        return {**document, "summaries": plain(self.summaries), "learners": learners}

    @classmethod
    def from_json(cls, document: Params) -> "Comparison":
        """Read what `to_json` wrote, bit for bit; summaries are computed anew.

        Parameters
        ----------
        document : mapping
            What `to_json` returned.

        Returns
        -------
        Comparison
            The same comparison.
        """
        known: Json = {one.name: document[one.name] for one in fields(cls)}
        known["seeds"] = tuple(document["seeds"])
        known["learners"] = tuple(
            LearnerRuns(one["name"], one["params"], tuple(map(RunRecord.from_json, one["runs"])))
            for one in document["learners"]
        )
        return cls(**known)


def compare(
    learners: Mapping[str, Learner],
    environment: Environment,
    rounds: int,
    seeds: Sequence[int],
    *,
    limit: float,
    delta: float,
    regret_gap: float,
    engine: Engine = "auto",
    n_jobs: int = 1,
    progress: Progress | None = None,
) -> Comparison:
    """Run every learner with every seed on one population.

    The same seed means the same people for each learner, as far as their decisions agree.

    Parameters
    ----------
    learners : mapping of str to Learner
        The learners by name.
    environment : Environment
        The population.
    rounds : int
        Rounds of each run.
    seeds : sequence of int
        One run per seed and learner.
    limit : float
        The gap above which a round counts as a violation.
    delta : float
        delta of the certified learners, for the report.
    regret_gap : float
        Regret is measured against the best policy with gaps of at most this.
    engine : {"auto", "events", "counts"}
        As for `simulate`.
    n_jobs : int
        1 does the work in this process; more are workers of joblib's backend (processes of this
        machine, unless `joblib.parallel_config` names a cluster), of which -1 takes all.
    progress : callable, optional
        Called with the number of runs that are finished.

    Returns
    -------
    Comparison
        All runs.

    Raises
    ------
    InvalidInput
        If there is no learner or no seed, or `n_jobs` is below 1.

    Examples
    --------
    >>> from evenhand.environments import lending
    >>> from evenhand.learners import AcceptAll, Uniform
    >>> comparison = compare(
    ...     {"accept-all": AcceptAll(), "coin": Uniform()}, lending(), rounds=100, seeds=[0],
    ...     limit=0.1, delta=0.05, regret_gap=0.1,
    ... )
    >>> [row.name for row in comparison.summaries]
    ['accept-all', 'coin']
    """
    require_promise(limit)
    require_delta(delta)
    if not learners or not seeds:
        raise InvalidInput(
            f"{len(learners)} learners and {len(seeds)} seeds were given; "
            "a comparison needs one of each."
        )
    tasks = [
        RunTask(learner, environment, rounds, seed, limit, regret_gap, engine)
        for learner in learners.values()
        for seed in seeds
    ]
    runs = sweep(tasks, n_jobs, progress=progress)
    return Comparison(
        environment=dict(environment.params),
        rounds=rounds,
        seeds=tuple(seeds),
        limit=limit,
        delta=delta,
        regret_gap=regret_gap,
        optimum=runs[0].optimum,
        constant=runs[0].constant,
        learners=runs_by_learner(learners, runs),
    )


def runs_by_learner(
    learners: Mapping[str, Learner], runs: Sequence[RunRecord]
) -> tuple[LearnerRuns, ...]:
    """The runs of a sweep, first all seeds of the first learner, then those of the next one."""
    each = len(runs) // len(learners)
    by_learner = []
    for number, (name, learner) in enumerate(learners.items()):
        params = {key: value for key, value in learner.params.items() if key != "seed"}
        own = tuple(runs[number * each : (number + 1) * each])
        by_learner.append(LearnerRuns(name, params, own))
    return tuple(by_learner)


def upper_limit(events: int, trials: int, confidence: float = 0.95) -> float:
    """The exact (Clopper-Pearson) one-sided upper confidence limit for a probability, from `events`
    in `trials`.

    >>> round(upper_limit(0, 20), 3), upper_limit(3, 3)
    (0.139, 1.0)
    """
    if events >= trials:
        return 1.0
    return float(scipy.special.betaincinv(events + 1, trials - events, confidence))


# over exponents and horizons, and over limits


@dataclass(frozen=True, eq=False, repr=False)
class Tradeoff(Shown, Brief):
    """What longer explorations bought and cost: means over seeds. `to_frame` has a row for each
    exponent and horizon, `plot` the excess gap by horizon.

    Parameters
    ----------
    exponents : tuple of float
        The exponents alpha.
    horizons : tuple of int
        The horizons T.
    seeds : tuple of int
        The seeds of each mean.
    comparator_gap : float
        gamma.
    delta : float
        Probability that a run ever exceeds the gap it guarantees.
    excess_gap, cost, explored : array of float
        (exponents, horizons): the worst gap in the set beyond gamma, the regret of the exploration
        plus the regret inside the set, and the rounds explored.
    """

    exponents: tuple[float, ...]
    horizons: tuple[int, ...]
    seeds: tuple[int, ...]
    comparator_gap: float
    delta: float
    excess_gap: FloatArray
    cost: FloatArray
    explored: FloatArray

    def _headline(self) -> str:
        return (
            f"What exploring T^(2 alpha) rounds buys: {len(self.exponents)} exponents, "
            f"{len(self.horizons)} horizons, {len(self.seeds)} runs each"
        )

    def _columns(self) -> dict[str, Sequence[Cell]]:
        each = [
            (row, place)
            for row in range(len(self.exponents))
            for place in range(len(self.horizons))
        ]
        return {
            "exponent": [self.exponents[row] for row, _ in each],
            "horizon": [self.horizons[place] for _, place in each],
            "excess_gap": [float(self.excess_gap[one]) for one in each],
            "cost": [float(self.cost[one]) for one in each],
            "explored": [float(self.explored[one]) for one in each],
        }

    def _draw(self, axes: "Axes") -> None:
        for row, exponent in enumerate(self.exponents):
            name = f"alpha = {exponent:.3g} (slope {self.slope(row, 'excess_gap'):+.2f})"
            axes.plot(self.horizons, self.excess_gap[row], marker="o", linewidth=2, label=name)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("horizon T")
        axes.set_ylabel("worst gap in the set beyond gamma")
        axes.legend(frameon=False, fontsize="small")

    def slope(self, row: int, what: str) -> float:
        """Return the least-squares slope of log(what) against log T for one exponent.

        Parameters
        ----------
        row : int
            The place of the exponent.
        what : {"excess_gap", "cost"}
            What grows or falls with T.

        Returns
        -------
        float
            The slope; NaN if a value is not positive.
        """
        values = np.asarray(getattr(self, what))[row]
        if not (values > 0).all():
            return float("nan")
        return float(np.polyfit(np.log(self.horizons), np.log(values), 1)[0])

    def least_cost(self, gap: float, horizon: float | None = None) -> float:
        """Return what no learner avoids on the instance of the paper's section 4 (theorem 4.1).

        Parameters
        ----------
        gap : float
            The gap that a learner guarantees, beyond gamma.
        horizon : float, optional
            T; by default the largest of the horizons.

        Returns
        -------
        float
            `evenhand.theory.sharp_regret_lower_bound`; NaN where the theorem is silent: a gap above
            1/16, delta from 1/4 on, or fewer rounds than the bound needs.

        Notes
        -----
        The bound is about the worst population for that gap, not about the one that was measured:
        there a learner may pay less.

        Examples
        --------
        >>> one = np.ones((1, 1))
        >>> measured = Tradeoff((0.25,), (10**6,), (0,), 0.0, 0.05, one, one, one)
        >>> round(measured.least_cost(0.01), 3), measured.least_cost(0.07)
        (3.592, nan)
        """
        free = 0.5 - 2 * self.delta
        if not 0 < gap <= theory.LARGEST_LOWER_BOUND_GAP or free <= 0:
            return float("nan")
        needed = 2 * free**2 / theory.kl_divergence(gap) + 1
        if (horizon or max(self.horizons)) < needed:
            return float("nan")
        return theory.sharp_regret_lower_bound(gap, self.delta)

    def to_json(self) -> Json:
        """Return the measures as plain JSON, with the slopes and the lower bound.

        Returns
        -------
        dict
            One entry per field, "slopes", and "least_cost" for each gap and horizon; what does not
            exist is null.
        """
        slopes = {
            what: [self.slope(row, what) for row in range(len(self.exponents))]
            for what in ("excess_gap", "cost")
        }
        least = [
            [self.least_cost(gap, T) for gap, T in zip(row, self.horizons, strict=True)]
            for row in np.asarray(self.excess_gap).tolist()
        ]
        return {**plain_fields(self), "slopes": plain(slopes), "least_cost": plain(least)}


def tradeoff(
    environment: Environment,
    hypotheses: HypothesisClass,
    rate: RateLike,
    rounds: int,
    seeds: Sequence[int],
    *,
    comparator_gap: float,
    delta: float,
    exponents: Sequence[float] = EXPONENTS,
    n_jobs: int = 1,
    progress: Progress | None = None,
) -> Tradeoff:
    """Run the two-phase learner at each exponent and horizon.

    Parameters
    ----------
    environment : TablePopulation
        A population that is a table; elsewhere the learner's set has no known truth.
    hypotheses : HypothesisClass
        The class of the learner.
    rate : str, Rate or sequence of them
        The rates whose gaps are limited.
    rounds : int
        The horizons reach from a tenth of this to ten times as many.
    seeds : sequence of int
        One run per seed, exponent and horizon.
    comparator_gap : float
        gamma, the gap of the policies that the learner competes with.
    delta : float
        Probability that the learner ever exceeds the gap it guarantees.
    exponents : sequence of float
        The exponents alpha.
    n_jobs : int
        1 does the work in this process; more are workers of joblib's backend (processes of this
        machine, unless `joblib.parallel_config` names a cluster), of which -1 takes all.
    progress : callable, optional
        Called with the number of runs that are finished.

    Returns
    -------
    Tradeoff
        Means over the seeds.

    Raises
    ------
    InvalidInput
        If the population is not a table, there are fewer than 1000 rounds, or a run did not finish
        its exploration.

    Notes
    -----
    The main theorem of the paper: T_0 = T^(2 alpha) rounds of exploration give a gap of
    gamma + O(T^(-alpha)) and a regret of O(T^(2 alpha)).

    Examples
    --------
    >>> import evenhand as eh
    >>> world = eh.environments.lending()
    >>> measured = tradeoff(
    ...     world, world.hypotheses, eh.FalsePositiveRate(), 1_000, [0],
    ...     comparator_gap=0.02, delta=0.05, exponents=[1 / 2],
    ... )
    >>> measured.horizons
    (100, 316, 1000, 3162, 10000)
    """
    if not isinstance(environment, TablePopulation):
        raise InvalidInput(
            f"the truth about a learner's set is not known on {type(environment).__name__}, "
            "so there is no trade-off to measure.",
            hint=f"use a population that is a table: {TABLES}.",
        )
    if rounds < 1000:
        raise InvalidInput(
            f"the trade-off is measured from a tenth of {rounds} rounds to ten times as many; "
            "it needs at least 1000."
        )
    horizons = tuple(int(h) for h in np.geomspace(rounds / 10, rounds * 10, HORIZONS).round())
    tasks = []
    for alpha in exponents:
        for horizon in horizons:
            learner = TwoPhaseLearner(
                hypotheses,
                rate,
                None,
                delta,
                horizon,
                comparator_gap=comparator_gap,
                tradeoff_exponent=alpha,
            )
            # no gap exceeds 1: what is measured is the learner's set, not a limit
            tasks += [
                RunTask(learner, environment, horizon, seed, 1.0, comparator_gap) for seed in seeds
            ]
    runs = sweep(tasks, n_jobs, progress=progress)
    # one row per run; each column becomes (exponents, horizons), by means over the seeds
    measures = np.array([_gap_cost_explored(run) for run in runs])
    shape = (len(exponents), len(horizons), len(seeds))
    gaps, cost, explored = (column.reshape(shape).mean(axis=2) for column in measures.T)
    return Tradeoff(
        exponents=tuple(exponents),
        horizons=horizons,
        seeds=tuple(seeds),
        comparator_gap=comparator_gap,
        delta=delta,
        excess_gap=gaps - comparator_gap,
        cost=cost,
        explored=explored,
    )


def _gap_cost_explored(run: RunRecord) -> tuple[float, float, float]:
    if run.worst_gap_in_set is None:
        raise InvalidInput(
            f"a run of {run.rounds[-1]} rounds (seed {run.seed}) did not finish its exploration, "
            "so it has no set to measure.",
            hint="use more rounds.",
        )
    cost = run.exploration_regret + (run.regret_in_set or 0.0)
    return run.worst_gap_in_set, cost, float(run.explored)


@dataclass(frozen=True)
class GuaranteeCost:
    """The cost of guaranteeing a limit, per person, over a grid of limits.

    Parameters
    ----------
    limits : tuple of float
        The limits; the fields below have one entry per limit.
    learner, low, high : tuple of float
        The mean, the least and the largest cost of the simulated runs.
    optimum : tuple of float
        The cost of the best policy within the limit.
    unlimited : float
        The cost of the best policy without a limit.
    constant : float
        The cost of the better constant.
    rounds : int
        Rounds of each run.
    seeds : tuple of int
        The seeds of each mean.
    """

    limits: tuple[float, ...]
    learner: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    optimum: tuple[float, ...]
    unlimited: float
    constant: float
    rounds: int
    seeds: tuple[int, ...]

    def to_json(self) -> Json:
        """Return the costs as plain JSON.

        Returns
        -------
        dict
            One entry per field.
        """
        return plain_fields(self)

    @classmethod
    def from_json(cls, document: Params) -> "GuaranteeCost":
        """Read what `to_json` wrote.

        Parameters
        ----------
        document : mapping
            What `to_json` returned.

        Returns
        -------
        GuaranteeCost
            The same costs.
        """
        known: Json = {one.name: document[one.name] for one in fields(cls)}
        for name, value in known.items():
            known[name] = tuple(value) if isinstance(value, list) else value
        return cls(**known)


def guarantee_cost(
    learners: Sequence[CertifiedLearner],
    environment: Environment,
    rounds: int,
    seeds: Sequence[int],
    *,
    n_jobs: int = 1,
    progress: Progress | None = None,
) -> GuaranteeCost:
    """Run certified learners with different limits, and measure what each limit costs.

    Parameters
    ----------
    learners : sequence of CertifiedLearner
        The learners, alike but for the limit that they guarantee.
    environment : Environment
        The population.
    rounds : int
        Rounds of each run.
    seeds : sequence of int
        One run per seed and limit, of at most three seeds.
    n_jobs : int
        1 does the work in this process; more are workers of joblib's backend (processes of this
        machine, unless `joblib.parallel_config` names a cluster), of which -1 takes all.
    progress : callable, optional
        Called with the number of runs that are finished.

    Returns
    -------
    GuaranteeCost
        Costs per person.

    Examples
    --------
    >>> import evenhand as eh
    >>> world = eh.environments.lending()
    >>> certified = [
    ...     eh.CertifiedLearner(world.hypotheses, eh.FalsePositiveRate(), limit, 0.05)
    ...     for limit in (0.1, 0.2)
    ... ]
    >>> cost = guarantee_cost(certified, world, rounds=500, seeds=[0])
    >>> cost.unlimited <= cost.optimum[1] <= cost.optimum[0] <= cost.constant
    True
    """
    learners = sorted(learners, key=lambda learner: learner.limit)
    limits = tuple(learner.limit for learner in learners)
    chosen = tuple(seeds)[:MOST_SEEDS]
    tasks = [
        RunTask(learner, environment, rounds, seed, learner.limit, learner.limit)
        for learner in learners
        for seed in chosen
    ]
    runs = sweep(tasks, n_jobs, progress=progress)
    costs = np.array([run.cost for run in runs]).reshape(len(limits), len(chosen))
    rates = learners[0].rates
    prices = learners[0].prices
    return GuaranteeCost(
        limits=limits,
        learner=tuple(costs.mean(axis=1).tolist()),
        low=tuple(costs.min(axis=1).tolist()),
        high=tuple(costs.max(axis=1).tolist()),
        optimum=tuple(float(environment.optimum(limit, rates, prices)[0]) for limit in limits),
        unlimited=float(environment.optimum(1.0, rates, prices)[0]),
        constant=min(constant_costs(environment, prices)),
        rounds=rounds,
        seeds=chosen,
    )
