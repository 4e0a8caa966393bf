"""From numbers, or from a table, to a launch plan: the runs are simulated, and a verdict says in
one sentence with numbers whether the launch is worth it; if it is held back, the advice says which
limit or volume would do.

Runs are simulated by their counts, so a run of a million people takes about a second. The union
over a class enters every bound as ln(M / delta) alone; a class of M rules is therefore simulated by
the m rules of the population with delta m / M.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil, inf, log

import numpy as np

from evenhand.algorithms.certified.evidence import FIRST_PEOPLE, group_codes
from evenhand.algorithms.certified.forecast import Prospect, RateForecast, epoch_length
from evenhand.algorithms.certified.state import LATER_GROUPS
from evenhand.algorithms.certified.step import FIRST_FITTED, FIRST_ROUNDS
from evenhand.algorithms.settings import require_number
from evenhand.bounds import BettingBound, JointHoeffding, people_needed
from evenhand.bounds.slack import require_probability
from evenhand.contracts import Environment, GroupUse, HypothesisClass
from evenhand.environments import Discrete
from evenhand.errors import InvalidInput
from evenhand.fairness import FalsePositiveRate
from evenhand.fairness.rates import Rate, as_rates, require_certifiable
from evenhand.learners import CertifiedLearner, EpochLearner, ExploreThenCommit, TwoPhaseLearner
from evenhand.planning.plan import Answer, Course, Curve, LaunchPlan, Milestone, Spread
from evenhand.planning.population import (
    GroupName,
    LaunchTerms,
    PlannedPopulation,
    from_numbers,
    from_table,
    separation_of,
)
from evenhand.policies import Mixture
from evenhand.simulation import guarantees, simulate
from evenhand.simulation.record import audit_weight, constant_costs, learned_weight, value_at
from evenhand.words import FloatArray, LabelledSample, Prices

FALSE_POSITIVES = FalsePositiveRate()
CONSTANTS = ("accepting everybody", "rejecting everybody")
WIDER = (1.5, 2.0, 3.0, 4.0, 6.0, 8.0)
"""Multiples of the limit that are tried when a launch is held back by it."""
LONGER = (3.0, 10.0, 30.0)
"""Multiples of the horizon, likewise."""
MOST_ROUNDS = 10_000_000
POINTS = 72
"""Rounds at which curves are kept."""
FIRST = 200
"""Ahead by then is ahead from the start."""
HELD_BACK = 0.5
NOTHING = 0.1
"""Below these shares of the learned policy's full weight a launch counts as held back, and
practically nothing as certified (also if the weight itself is below their product: a limit of .001
allows .001 of any rule without evidence)."""


def plan(
    *,
    limit: float,
    delta: float = 0.05,
    group_shares: Mapping[GroupName, float],
    bad_rates: Mapping[GroupName, float] | float,
    separation: float | None = None,
    auc: float | None = None,
    score_shifts: Mapping[GroupName, float] | None = None,
    group_use: GroupUse = "certify_only",
    rules: int | None = None,
    horizon: int | None = None,
    per_day: float | None = None,
    days: float | None = None,
    prices: Prices | None = None,
    rate: Rate | Sequence[Rate] = FALSE_POSITIVES,
    audit_budget: float | None = None,
    accept_at_most: float | None = None,
    lives: int = 8,
    seed: int = 0,
) -> LaunchPlan:
    """Plan a launch from a few numbers about the people who will come.

    Parameters
    ----------
    limit : float
        The gap that no policy may exceed.
    delta : float
        delta.
    group_shares : mapping of group to float
        Each group's share of the people.
    bad_rates : float or mapping of group to float
        The share of bad outcomes, of all or of each group.
    separation : float, optional
        The distance between the mean scores of good and bad in standard deviations.
    auc : float, optional
        The area under the score's ROC curve, instead of `separation`.
    score_shifts : mapping of group to float, optional
        How much the scores of each group are shifted; by default so that a score means the same
        chance of a good outcome in every group.
    group_use : {"certify_only", "decide"}
        Whether the rules may look at the group.
    rules : int, optional
        How many rules the class has, for all of which the promise must hold at once.
    horizon : int, optional
        People in all.
    per_day, days : float, optional
        People per day and days, instead of `horizon`.
    prices : Prices, optional
        What errors cost.
    rate : Rate or sequence of Rate
        The rates whose gaps are limited.
    audit_budget : float, optional
        How many bad outcomes the audits may cost at most.
    accept_at_most : float, optional
        The capacity: the share of the people whom every policy may accept at most.
    lives : int
        How many runs are simulated.
    seed : int
        The seed of the first of them.

    Returns
    -------
    LaunchPlan
        What the launch is expected to cost and to bring.

    Raises
    ------
    InvalidInput
        If a number is missing or impossible.

    Examples
    --------
    >>> import evenhand as eh
    >>> launch = eh.plan(
    ...     limit=0.1, group_shares={"a": 0.6, "b": 0.4}, bad_rates={"a": 0.4, "b": 0.5},
    ...     separation=1.5, horizon=5_000, lives=2,
    ... )
    >>> launch.answer, launch.constant
    ('worth it', 'accepting everybody')
    """
    if (separation is None) == (auc is None):
        raise InvalidInput(
            "give either separation or auc: how well the features tell good from bad.",
            hint="separation=1.0 is an AUC of .76.",
        )
    apart = separation if separation is not None else separation_of(auc if auc is not None else 0.5)
    population = from_numbers(group_shares, bad_rates, apart, score_shifts, group_use, rules)
    people = _require_horizon(horizon, per_day, days)
    terms = _terms(limit, delta, people, prices, rate, audit_budget, accept_at_most)
    return _Launch(population, terms, _require_seeds(lives, seed)).plan(per_day)


def plan_from_sample(
    sample: LabelledSample,
    hypotheses: HypothesisClass,
    *,
    limit: float,
    delta: float = 0.05,
    horizon: int | None = None,
    per_day: float | None = None,
    days: float | None = None,
    prices: Prices | None = None,
    rate: Rate | Sequence[Rate] = FALSE_POSITIVES,
    group_use: GroupUse = "certify_only",
    rules: int | None = None,
    audit_budget: float | None = None,
    accept_at_most: float | None = None,
    lives: int = 8,
    seed: int = 0,
) -> LaunchPlan:
    """Plan a launch from past people with known outcomes: the table stands for the population.

    If past people were accepted by a rule, the table stands for those whom the rule accepts; plan
    with that in mind.

    Parameters
    ----------
    sample : LabelledSample
        The past people.
    hypotheses : HypothesisClass
        The class of rules.
    limit, delta, horizon, per_day, days, prices, rate, group_use, rules, audit_budget
        As for `plan`.
    accept_at_most : float, optional
        As for `plan`.
    lives, seed : int
        As for `plan`.

    Returns
    -------
    LaunchPlan
        What the launch is expected to cost and to bring.

    Raises
    ------
    InvalidInput
        If a number is missing or impossible.

    Examples
    --------
    >>> import numpy as np
    >>> import evenhand as eh
    >>> people = eh.environments.Scores().draw(400, np.random.default_rng(0))
    >>> launch = eh.plan_from_sample(
    ...     people, eh.ScoreThresholds(), limit=0.2, horizon=2_000, lives=1
    ... )
    >>> launch.population["source"]
    'all 400 rows'
    """
    people = _require_horizon(horizon, per_day, days)
    terms = _terms(limit, delta, people, prices, rate, audit_budget, accept_at_most)
    population = from_table(sample, hypotheses, group_use, rules, terms)
    return _Launch(population, terms, _require_seeds(lives, seed)).plan(per_day)


def _terms(
    limit: float,
    delta: float,
    horizon: int,
    prices: Prices | None,
    rate: Rate | Sequence[Rate],
    audit_budget: float | None,
    accept_at_most: float | None,
) -> LaunchTerms:
    if not 0 < limit <= 1:
        raise InvalidInput(
            f"limit is {limit}; the gap that may never be exceeded is a number in (0, 1]."
        )
    require_probability(delta)
    both = prices or Prices()
    if not (isinstance(both.false_accept, float) and isinstance(both.false_reject, float)):
        raise InvalidInput(
            "a plan takes two prices, not one per person.",
            hint="give the average price of each error.",
        )
    rates = as_rates(rate)
    require_certifiable(rates)
    if accept_at_most is not None:
        require_number(
            "accept_at_most",
            accept_at_most,
            lambda share: 0 < share <= 1,
            "the share of the people who are accepted at most is a number in (0, 1]",
            "0.2 accepts one person in five at most.",
        )
    return LaunchTerms(limit, delta, horizon, rates, both, audit_budget, accept_at_most)


def _require_horizon(horizon: int | None, per_day: float | None, days: float | None) -> int:
    if horizon is None:
        if per_day is None or days is None:
            raise InvalidInput(
                "the volume is missing.", hint="give horizon (people in all), or per_day and days."
            )
        horizon = round(per_day * days)
    elif days is not None:
        raise InvalidInput(
            f"both horizon ({horizon}) and days ({days}) are given.", hint="leave one of them out."
        )
    if per_day is not None and not per_day > 0:
        raise InvalidInput(f"per_day is {per_day}; it is a number of people above 0.")
    if not 200 <= horizon <= MOST_ROUNDS:
        few = "below 200 people nothing can be learned and certified."
        raise InvalidInput(
            f"the horizon is {horizon:,} people; a plan covers 200 to {MOST_ROUNDS:,}.",
            hint=few if horizon < 200 else "plan a shorter life.",
        )
    return int(horizon)


def _require_seeds(lives: int, seed: int) -> range:
    if lives < 1:
        raise InvalidInput(f"lives is {lives}; at least one life must be simulated.")
    return range(seed, seed + lives)


# simulated runs


@dataclass(frozen=True, eq=False)
class SimulatedRuns:
    """Several runs of one learner on a grid of rounds, one row per run.

    cost: cumulative expected cost; weight: share of the policy that is not a constant; audit: the
    weight of accept-all; gap: the true one; audited: people whom the audit coin accepted;
    budget_notes: what learners say whose audit budget was too small to begin.
    """

    rounds: FloatArray
    cost: FloatArray
    weight: FloatArray
    audit: FloatArray
    gap: FloatArray
    worst_gap: FloatArray
    audited: FloatArray
    promised: bool
    budget_notes: tuple[str, ...] = ()


def simulate_runs(
    learner: EpochLearner, world: Environment, terms: LaunchTerms, seeds: range
) -> SimulatedRuns:
    """Play the learner once per seed."""
    horizon = terms.horizon
    # from the first epoch to the horizon, dense at both ends
    grid = np.r_[np.geomspace(min(100, horizon), horizon, POINTS), np.linspace(1, horizon, 24)]
    rounds = np.unique(grid.round())
    columns: dict[str, list[FloatArray | float]] = defaultdict(list)
    notes: list[str] = []
    for seed in seeds:
        run = simulate(learner, world, horizon, seed, terms.limit)
        total = np.cumsum(run.lengths * run.losses)
        weight = np.array([learned_weight(policy) for policy in run.policies])
        # once the audit budget is spent ("frozen"), accept-all is a constant like the other
        audits = zip(run.policies, run.phases, strict=True)
        audit = np.array([audit_weight(policy) * (phase != "frozen") for policy, phase in audits])
        columns["cost"].append(np.interp(rounds, np.r_[0, run.rounds], np.r_[0.0, total]))
        for name, values in (("weight", weight), ("audit", audit), ("gap", run.gaps)):
            columns[name].append(value_at(run.rounds, values, rounds))
        columns["worst_gap"].append(run.worst_gap)
        columns["audited"].append(float(run.lengths @ audit))
        columns["promised"].append(guarantees(run.learner, terms.limit))
        notes += [note.text for note in run.learner.notes if note.kind == "budget too small"]
    promised = all(columns.pop("promised"))
    arrays = {name: np.array(values) for name, values in columns.items()}
    return SimulatedRuns(rounds=rounds, promised=promised, budget_notes=tuple(notes), **arrays)


def share_of_delta(planned: PlannedPopulation, terms: LaunchTerms, rules: int) -> float:
    """The failure probability with which so many rules stand for the whole class."""
    return terms.delta * min(1.0, rules / planned.rules)


def launched(
    planned: PlannedPopulation, terms: LaunchTerms
) -> tuple[CertifiedLearner, Environment]:
    """The learner that is to be launched, and the people it is played on: the class itself on the
    table itself where that is affordable, else the rules of the population on its kinds of people.
    """
    rules = planned.learnable
    table = planned.table
    if table is None or not table.affordable(terms.horizon):
        delta = share_of_delta(planned, terms, len(rules))
        return certified_learner(terms, rules, delta), planned.world
    optimum = best_within(planned.world, terms, terms.limit)
    table.people.know_optimum(terms.limit, terms.rates, terms.prices, *optimum)
    delta = table.share * terms.delta
    return certified_learner(terms, table.hypotheses, delta, table.group_use), table.people


def best_within(world: Discrete, terms: LaunchTerms, limit: float) -> tuple[float, Mixture]:
    """The best policy within a limit, and within the capacity if there is one."""
    if terms.most == 1.0:
        return world.optimum(limit, terms.rates, terms.prices)
    return world.optimum_within(limit, terms.rates, terms.prices, terms.most)


def certified_learner(
    terms: LaunchTerms, rules: HypothesisClass, delta: float, group_use: GroupUse = "certify_only"
) -> CertifiedLearner:
    """The learner that is to be launched, with a class and the delta that it may spend."""
    return CertifiedLearner(
        rules,
        terms.rates,
        terms.limit,
        delta,
        horizon=terms.horizon,
        prices=terms.prices,
        group_use=group_use,
        audit_budget=terms.audit_budget,
        accept_at_most=terms.accept_at_most,
        seed=0,
    )


def explorer(
    kind: type[TwoPhaseLearner] | type[ExploreThenCommit],
    planned: PlannedPopulation,
    terms: LaunchTerms,
    exploration: int,
) -> TwoPhaseLearner | ExploreThenCommit:
    """A learner that accepts all applicants for `exploration` rounds first."""
    return kind(
        planned.world.hypotheses,
        terms.rates,
        terms.limit,
        share_of_delta(planned, terms, len(planned.world.hypotheses)),
        terms.horizon,
        prices=terms.prices,
        bound=JointHoeffding(),
        exploration_rounds=exploration,
        seed=0,
    )


def two_phase_exploration(planned: PlannedPopulation, terms: LaunchTerms) -> float:
    """T0 of the paper's algorithm: until twice the slack fits between the limit and half of it, the
    gap that it competes with.
    """
    return _rounds_until(planned, terms, terms.limit / 4)


def commit_exploration(planned: PlannedPopulation, terms: LaunchTerms) -> float:
    """T0 of explore-then-commit: T^(2/3), but at least until half of the limit is left for the
    policy.
    """
    least = float(ceil(terms.horizon ** (2 / 3)))
    return max(least, _rounds_until(planned, terms, terms.limit / 2))


def _rounds_until(planned: PlannedPopulation, terms: LaunchTerms, slack: float) -> float:
    """Expected people to accept until the slack is that small; infinity if it never is."""
    size = len(planned.world.hypotheses)
    log_size = log(size)
    delta = share_of_delta(planned, terms, size)

    def beta(counts: FloatArray) -> float:
        return JointHoeffding().slack(counts, log_size=log_size, columns=1, delta=delta)

    need = people_needed(beta, np.maximum(planned.denominators(terms.rates), 1e-9), slack)
    return float(ceil(need.multiple)) if np.isfinite(need.multiple) else inf


def forecast(planned: PlannedPopulation, terms: LaunchTerms) -> tuple[RateForecast, ...]:
    """What the certified learner would expect on the planned population after its first rounds: the
    forecast by which it audits.

    Nothing is simulated: the regression is right, costs and gaps are known, and every process
    starts from nothing.
    """
    world = planned.world
    known = planned.learnable
    learner = certified_learner(terms, known, share_of_delta(planned, terms, len(known)))
    groups = world.population_sample().groups
    rules = [row for row in world.accepts if row.any() and not row.all()]
    if not rules:
        return ()
    pairs = len(terms.rates) * len(groups) * (len(groups) - 1) // 2
    accepts = np.array([np.ones(len(world)), np.zeros(len(world)), *rules], dtype=np.float64)
    bad = float(np.max(terms.prices.false_accept))
    good = float(np.max(terms.prices.false_reject))
    negative = 1.0 - world.positive_rate
    cost = accepts @ (world.probability * (negative * bad - world.positive_rate * good))
    delta = (1.0 - LATER_GROUPS) * learner.guarantee.share(1)
    thresholds = BettingBound(groups, terms.rates, len(rules), delta).pair_thresholds.T
    # nothing is known of a rule's gap, and the two constants have none
    upper = np.tile(np.r_[0.0, 0.0, np.ones(len(rules))], (pairs, 1))
    prospect = Prospect(
        weight=world.probability,
        group=group_codes(world.group, groups),
        negative=negative,
        accepts=accepts,
        cost=cost,
        sure_cost=cost,
        rates=terms.rates,
        groups=len(groups),
        limit=terms.limit,
        lower=0.0 - upper,
        upper=upper,
        threshold=np.pad(np.tile(thresholds, (len(terms.rates), 1)), ((0, 0), (2, 0))),
        floor=lambda t: min(learner.schedule.exploration_floor(int(t)), 0.5 * terms.most),
        accepted=accepts @ world.probability if terms.most < 1.0 else None,
        most=terms.most,
    ).narrowed()
    start = _first_look(planned, terms)
    horizon = float(terms.horizon)
    return prospect.forecasts(prospect.course(min(start, horizon - 1.0), horizon), horizon)


def _first_look(planned: PlannedPopulation, terms: LaunchTerms) -> float:
    """The round after which the learner first estimates rates: enough people of the rarest kind
    have come.
    """
    start = float(FIRST_ROUNDS)
    if planned.fitted:
        start = float(np.clip(float(terms.horizon) // 100, FIRST_ROUNDS, FIRST_FITTED))
    rarest = float(planned.denominators(terms.rates).min())
    while start * rarest < FIRST_PEOPLE and start < terms.horizon:
        start += epoch_length(start)
    return start


# the plan


@dataclass(frozen=True, eq=False)
class _Launch:
    """A launch on a population, its simulated runs, and what follows from them."""

    population: PlannedPopulation
    terms: LaunchTerms
    seeds: range

    @cached_property
    def constant_costs(self) -> tuple[float, float]:
        """Of accepting everybody, or as many as the capacity allows, and of rejecting everybody."""
        accept, reject = constant_costs(self.population.world, self.terms.prices)
        most = self.terms.most
        return most * accept + (1.0 - most) * reject, reject

    @property
    def constant_cost(self) -> float:
        return min(self.constant_costs)

    @property
    def constant(self) -> str:
        """The better constant, in words."""
        accepts = self.constant_costs.index(self.constant_cost) == 0
        if accepts and self.terms.most < 1.0:
            return f"accepting {self.terms.most:.0%} by lot"
        return CONSTANTS[0 if accepts else 1]

    def optimum_cost(self, limit: float) -> float:
        """What the best policy within a limit costs per person."""
        return best_within(self.population.world, self.terms, limit)[0]

    @cached_property
    def full_weight(self) -> float:
        """The weight of the learned rules in the best policy within the limit."""
        return learned_weight(best_within(self.population.world, self.terms, self.terms.limit)[1])

    @cached_property
    def runs(self) -> SimulatedRuns:
        """The runs of the certified learner."""
        learner, world = launched(self.population, self.terms)
        return simulate_runs(learner, world, self.terms, self.seeds)

    @cached_property
    def weights(self) -> FloatArray:
        """(runs, rounds): the certified weight in units of the full weight."""
        if self.full_weight == 0:
            return np.zeros_like(self.runs.weight)
        return np.minimum(self.runs.weight / self.full_weight, 1.0)

    @property
    def final_share(self) -> float:
        return float(np.median(self.weights[:, -1]))

    @property
    def possible(self) -> float:
        """What the best policy within the limit would save over the horizon."""
        saved = self.constant_cost - self.optimum_cost(self.terms.limit)
        return self.terms.horizon * saved

    @property
    def saving(self) -> FloatArray:
        """What each run saved."""
        return self.terms.horizon * self.constant_cost - self.runs.cost[:, -1]

    @property
    def unit(self) -> str:
        """What costs are counted in."""
        prices = self.terms.prices
        return "errors" if prices.false_accept == prices.false_reject == 1.0 else "units of cost"

    @property
    def answer(self) -> Answer:
        """Clear, where the interval of one more run's saving lies on one side of zero."""
        if self.possible <= 1e-9 * self.terms.horizon:
            return "nothing to gain"
        band = Spread.of_next(self.saving)
        if band.low > 0:
            return "worth it"
        return "close call" if band.high > 0 else "not worth it"

    @property
    def break_even(self) -> int | None:
        """The round from which the mean cost stays below the best constant's; None if it is above
        at the horizon.
        """
        rounds = self.runs.rounds
        ahead = rounds * self.constant_cost - self.runs.cost.mean(axis=0)
        if ahead[-1] <= 0:
            return None
        behind = np.flatnonzero(ahead <= 0)
        return int(rounds[0 if len(behind) == 0 else behind[-1] + 1])

    def plan(self, per_day: float | None) -> LaunchPlan:
        runs = self.runs
        terms = self.terms
        world = self.population.world
        price = float(np.max(terms.prices.false_accept))
        bad = float(world.probability @ (1 - world.positive_rate))
        beyond = self.constant_costs[0] - self.constant_cost
        possible = self.possible
        saving = self.saving
        return LaunchPlan(
            limit=terms.limit,
            delta=terms.delta,
            horizon=terms.horizon,
            per_day=per_day,
            population=self.population.facts(),
            prices=(price, float(np.max(terms.prices.false_reject))),
            lives=len(self.seeds),
            constant=self.constant,
            constant_cost=self.constant_cost,
            best_cost=self.optimum_cost(terms.limit),
            free_cost=self.optimum_cost(1.0),
            full_weight=self.full_weight,
            audited=Spread.of(runs.audited),
            audited_bad=Spread.of(runs.audited * bad),
            bill=Spread.of(runs.audited * bad * price),
            bill_beyond_constant=Spread.of(runs.audited * beyond),
            half=Milestone.of(0.5, runs.rounds, self.weights),
            full=Milestone.of(0.95, runs.rounds, self.weights),
            saving=Spread.of_next(saving),
            saving_share=float(saving.mean() / possible) if possible > 0 else 0.0,
            break_even=self.break_even,
            final_share=self.final_share,
            answer=self.answer,
            verdict=self.verdict(),
            advice=self.advice(),
            rounds=runs.rounds,
            weight=Curve.of(self.weights),
            audit=Curve.of(runs.audit),
            gap=Curve.of(runs.gap),
            courses=self.courses(),
            forecast=forecast(self.population, terms),
            accept_at_most=terms.accept_at_most,
        )

    def courses(self) -> tuple[Course, ...]:
        """The certified learner, and the other ways to decide."""
        population = self.population
        terms = self.terms
        best = self.optimum_cost(terms.limit)
        courses = [_course("certified", 0.0, self.runs, terms, best)]
        for name, kind, rounds in (
            ("two-phase", TwoPhaseLearner, two_phase_exploration(population, terms)),
            ("explore-then-commit", ExploreThenCommit, commit_exploration(population, terms)),
        ):
            if terms.most < 1.0:
                why = f"it accepts everybody first, and {terms.most:.0%} may be accepted"
                courses.append(Course(name, rounds, promised=True, infeasible=why))
                continue
            if rounds > terms.horizon / 2:
                people = f"{rounds:,.0f} people" if np.isfinite(rounds) else "no number of people"
                why = f"it would have to accept {people} first, more than half of {terms.horizon:,}"
                courses.append(Course(name, rounds, promised=True, infeasible=why))
                continue
            learner = explorer(kind, population, terms, int(rounds))
            runs = simulate_runs(learner, population.world, terms, self.seeds)
            courses.append(_course(name, rounds, runs, terms, best))
        return tuple(courses)

    def verdict(self) -> str:
        """One sentence with numbers."""
        terms = self.terms
        possible = self.possible
        if self.answer == "nothing to gain":
            return (
                f"Nothing to gain: within a gap of {terms.limit:g} no mixture of the rules is "
                f"cheaper than {self.constant}, at any volume."
            )
        saving = self.saving
        even = self.break_even
        mean = float(saving.mean())
        size = f"{abs(mean):,.0f} {self.unit} {'less' if mean > 0 else 'more'} than {self.constant}"
        expected = f"over {terms.horizon:,} people the certified learner is expected to cost {size}"
        best = "the best policy within the limit would save"
        if self.answer == "worth it":
            start = "the start" if (even or 0) <= FIRST else f"about {even:,} people on"
            share = f"{mean / possible:.0%} of the {possible:,.0f} that {best}"
            return f"Worth it: {expected} ({share}), and is ahead from {start}."
        opening = "A close call" if self.answer == "close call" else "Not worth it at this volume"
        cheaper = f"it is cheaper in {int((saving > 0).sum())} of {len(saving)} simulation runs"
        return f"{opening}: {expected}; {cheaper}, and {best} {possible:,.0f}."

    def advice(self) -> tuple[str, ...]:
        """What holds the launch back, and which limit or volume would do: the first that succeeds
        in two simulated runs.
        """
        terms = self.terms
        share = self.final_share
        if self.answer == "nothing to gain":
            return self._advice_without_gain()
        if self.runs.budget_notes:
            return self.runs.budget_notes[:1]
        if self.answer == "worth it" and share >= HELD_BACK:
            return ()
        own = terms.limit
        volume = terms.horizon
        limits = (replace(terms, limit=own * k) for k in WIDER if own * k <= 1)
        volumes = (int(volume * k) for k in LONGER if volume * k <= MOST_ROUNDS)
        wider = next(filter(self._succeeds, limits), None)
        longer = next(filter(self._succeeds, (replace(terms, horizon=n) for n in volumes)), None)
        sentences = []
        if share < HELD_BACK:
            little = share < NOTHING or np.median(self.runs.weight[:, -1]) < NOTHING * HELD_BACK
            part = "practically nothing" if little else f"{share:.0%}"
            sentences.append(
                f"Of the learned policy's weight {part} is certified within "
                f"{terms.horizon:,} people; the rest stays on constants."
            )
        ways = [f"a limit of about {wider.limit:.2g} at this volume"] if wider is not None else []
        ways += [f"about {longer.horizon:,} people at this limit"] if longer is not None else []
        if ways:
            goal = "at least half of the weight certified, and cheaper than the best constant"
            return (*sentences, f"What would do ({goal}): {', or '.join(ways)}.")
        widest = min(terms.limit * WIDER[-1], 1.0)
        longest = min(terms.horizon * LONGER[-1], MOST_ROUNDS)
        return (
            *sentences,
            f"Neither a limit of {widest:.2g} nor {longest:,.0f} people would do; features that "
            "tell good from bad better would.",
        )

    def _advice_without_gain(self) -> tuple[str, ...]:
        own = self.terms.limit
        for limit in (min(own * k, 1.0) for k in (*WIDER, 1 / own)):
            gain = self.constant_cost - self.optimum_cost(limit)
            if gain > 1e-9:
                return (
                    f"From a limit of about {limit:.2g} on there is something to gain: "
                    f"{gain:.2g} {self.unit} per person.",
                )
        return (
            "At these prices the rules cannot beat the constant even without a limit; "
            "check prices and features.",
        )

    def _succeeds(self, terms: LaunchTerms) -> bool:
        """Whether a launch with other terms is ahead of the constant, and not held back, in two
        simulated runs.
        """
        first = self.seeds.start
        other = _Launch(self.population, terms, range(first, first + 2))
        if other.full_weight == 0:
            return False
        ahead = terms.horizon * self.constant_cost - other.runs.cost[:, -1]
        enough = np.median(other.runs.weight[:, -1]) >= HELD_BACK * other.full_weight
        return bool((ahead > 0).all() and enough)


def _course(
    name: str, explored: float, runs: SimulatedRuns, terms: LaunchTerms, best: float
) -> Course:
    return Course(
        name=name,
        explored=explored,
        promised=runs.promised,
        regret=Spread.of(runs.cost[:, -1] - terms.horizon * best),
        total=Spread.of(runs.cost[:, -1]),
        worst_gap=float(runs.worst_gap.max()),
        cost=Curve.of(runs.cost),
    )
