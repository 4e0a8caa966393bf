"""From numbers, or from a table, to a launch plan: the runs are simulated, and show whether the
launch is worth it; if it is held back, the advice says which
limit or volume would do.

All that a plan foretells comes from the same runs, so that it cannot contradict itself. Runs are
simulated by their counts, so a run of a million people takes about a second; person by person where
single people count (an audit budget, a quota), and on a table itself. The union over a class enters
every bound as ln(M / delta) alone; a class of M rules is therefore simulated by the m rules of the
population with delta m / M.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil, inf, log

import numpy as np

from evenhand.algorithms.certified.candidates import as_candidates
from evenhand.algorithms.certified.quota import Quota
from evenhand.bounds import JointHoeffding, people_needed
from evenhand.contracts import GroupUse, Hypothesis, HypothesisClass
from evenhand.environments import Discrete
from evenhand.environments.population import TablePopulation
from evenhand.errors import InvalidInput
from evenhand.fairness import FalsePositiveRate
from evenhand.fairness.rates import RateLike, as_rates, require_certifiable
from evenhand.hypotheses import ClassLike, ScoreThresholds, as_class
from evenhand.learners import CertifiedLearner, EpochLearner, ExploreThenCommit, TwoPhaseLearner
from evenhand.planning.launch_plan import (
    HELD_BACK,
    Advice,
    Answer,
    Course,
    Curve,
    LaunchPlan,
    Milestone,
    Spread,
    answer_of,
    constant_in_words,
)
from evenhand.planning.population import (
    GroupName,
    LaunchTerms,
    PlannedPopulation,
    from_numbers,
    from_table,
    separation_of,
)
from evenhand.policies import Mixture
from evenhand.shares import require_delta, require_promise
from evenhand.simulation import Run, guarantees, simulate
from evenhand.simulation.record import audit_weight, constant_costs, learned_weight, value_at
from evenhand.words import FloatArray, LabelledSample, Prices

FALSE_POSITIVES = FalsePositiveRate()
WIDER = (1.5, 2.0, 3.0, 4.0, 6.0, 8.0)
"""Multiples of the limit that are tried when a launch is held back by it."""
LONGER = (3.0, 10.0, 30.0)
"""Multiples of the horizon, likewise."""
MOST_ROUNDS = 10_000_000
MOST_PERIODS = 1_000
"""Periods of a quota up to which longer runs are tried: each may end an epoch of its own."""
POINTS = 72
"""Rounds at which curves are kept."""
Progress = Callable[[str, int, int], None]
"""Called with what is simulated, the number of people so far, and how many there will be."""


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
    rate: RateLike = FALSE_POSITIVES,
    audit_budget: float | None = None,
    accept_at_most: float | None = None,
    accept_at_least: float | None = None,
    quota: Quota | None = None,
    runs: int = 8,
    seed: int = 0,
    progress: Progress | None = None,
) -> LaunchPlan:
    """Plan a launch from a few numbers about the people who will come.

    Parameters
    ----------
    limit : float
        The gap that no policy may exceed.
    delta : float
        Probability that the limit is ever exceeded over the whole run.
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
        How many rules the class has, for all of which the guarantee must hold at once.
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
        The capacity: the largest share of the people that a policy may accept.
    accept_at_least : float, optional
        The floor: the smallest share of the people that a policy may accept, unless the quota or
        the audit budget forbids it.
    quota : Quota, optional
        How many people may be accepted in each period, as a hard count; a period is counted in
        days, of which `per_day` says how many people come, unless the quota says it itself.
    runs : int
        How many runs are simulated.
    seed : int
        The seed of the first of them.
    progress : callable, optional
        Called with what is simulated, the number of people so far, and how many there will be.

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
    ...     separation=1.5, horizon=10_000, runs=2,
    ... )
    >>> launch.answer, launch.constant
    ('worth it', 'accepting all applicants')
    """
    if (separation is None) == (auc is None):
        raise InvalidInput(
            "give either separation or auc: how well the features tell good from bad.",
            hint="separation=1.0 is an AUC of .76.",
        )
    apart = separation if separation is not None else separation_of(auc if auc is not None else 0.5)
    population = from_numbers(group_shares, bad_rates, apart, score_shifts, group_use, rules)
    people = _require_horizon(horizon, per_day, days)
    terms = _require_terms(
        LaunchTerms(
            limit=limit,
            delta=delta,
            horizon=people,
            rates=as_rates(rate),
            prices=prices or Prices(),
            audit_budget=audit_budget,
            accept_at_most=accept_at_most,
            accept_at_least=accept_at_least,
            quota=_in_people(quota, per_day),
        )
    )
    seeds = _require_seeds(runs, seed)
    return _Launch(population, terms, seeds, progress or _silently).plan(per_day)


def plan_from_sample(
    sample: LabelledSample,
    hypotheses: ClassLike,
    *,
    limit: float,
    delta: float = 0.05,
    horizon: int | None = None,
    per_day: float | None = None,
    days: float | None = None,
    prices: Prices | None = None,
    rate: RateLike = FALSE_POSITIVES,
    group_use: GroupUse = "certify_only",
    rules: int | None = None,
    audit_budget: float | None = None,
    accept_at_most: float | None = None,
    accept_at_least: float | None = None,
    quota: Quota | None = None,
    candidates: Sequence[object] | None = None,
    runs: int = 8,
    seed: int = 0,
    progress: Progress | None = None,
) -> LaunchPlan:
    """Plan a launch from past people with known outcomes: the table stands for the population.

    If past people were accepted by a rule, the table stands for those whom the rule accepts; plan
    with that in mind.

    Parameters
    ----------
    sample : LabelledSample
        The past people.
    hypotheses : HypothesisClass, str or classifier
        The class of rules, or its name ("stumps").
    limit, delta, horizon, per_day, days, prices, rate, group_use, rules
        As for `plan`.
    audit_budget, accept_at_most, accept_at_least, quota
        As for `plan`.
    candidates : sequence, optional
        The incumbent's rules, members from the first round on: as for `CertifiedLearner`.
    runs, seed, progress
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
    >>> launch = eh.planning.plan_from_sample(
    ...     people, eh.ScoreThresholds(), limit=0.2, horizon=2_000, runs=1
    ... )
    >>> launch.population["source"]
    'all 400 rows'
    """
    people = _require_horizon(horizon, per_day, days)
    terms = _require_terms(
        LaunchTerms(
            limit=limit,
            delta=delta,
            horizon=people,
            rates=as_rates(rate),
            prices=prices or Prices(),
            audit_budget=audit_budget,
            accept_at_most=accept_at_most,
            accept_at_least=accept_at_least,
            quota=_in_people(quota, per_day),
        )
    )
    seeds = _require_seeds(runs, seed)
    report = progress or _silently
    report("reading the table", 0, 1)
    rules_of_today = as_candidates(candidates)
    population = from_table(sample, as_class(hypotheses), group_use, rules, terms, rules_of_today)
    return _Launch(population, terms, seeds, report).plan(per_day)


def _require_terms(terms: LaunchTerms) -> LaunchTerms:
    """The same terms; InvalidInput if a number is impossible."""
    require_promise(terms.limit)
    require_delta(terms.delta)
    prices = terms.prices
    if not (isinstance(prices.false_accept, float) and isinstance(prices.false_reject, float)):
        raise InvalidInput(
            "a plan takes two prices, not one per person.",
            hint="give the average price of each error.",
        )
    require_certifiable(terms.rates)
    # cap, floor and budget are the learner's own settings, and so are their errors
    certified_learner(terms, ScoreThresholds(), terms.delta)
    return terms


def _in_people(quota: Quota | None, per_day: float | None) -> Quota | None:
    """The quota with people as its unit of time, as simulations have it."""
    if quota is None:
        return None
    if not isinstance(quota, Quota):
        raise InvalidInput(
            f"quota is {quota!r}",
            requirement="it says how many people may be accepted in each period",
            hint="use evenhand.Quota(count, period), for example Quota(50, period=1.0).",
            argument="quota",
        )
    people = quota.people
    if people is None and per_day is not None and per_day > 0:
        people = quota.period * per_day
    if people is None:
        raise InvalidInput(
            f"the quota is {quota.count} in a period of {quota.period:g}",
            requirement="a plan has to know how many people come in a period",
            hint="give per_day, with the period in days, or Quota(..., people=...).",
            argument="quota",
        )
    if people < 1:
        raise InvalidInput(
            f"{people:g} people come in a period of the quota",
            requirement="a quota is counted over at least one person",
            hint="choose a longer period.",
            argument="quota",
        )
    return Quota(quota.count, float(people), float(people))


def _silently(what: str, done: int, total: int) -> None:
    """The progress is not reported."""


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
            hint=few if horizon < 200 else "plan a shorter run.",
        )
    return int(horizon)


def _require_seeds(runs: int, seed: int) -> range:
    if runs < 1:
        raise InvalidInput(f"runs is {runs}; at least one run must be simulated.")
    return range(seed, seed + runs)


# simulated runs


@dataclass(frozen=True, eq=False)
class SimulatedRuns:
    """Several runs of one learner on a grid of rounds, one row per run.

    cost: cumulative expected cost; weight: share of the policy that is not a constant; audit: the
    weight of accept-all; gap: the true one; accepted: the share of the people whom the policy
    accepts; audited, bad_audits: people whom the audit coin has accepted so far, and those of them
    with a bad outcome; deployed: (first round, weight) of each policy of each run; budget_notes:
    what learners say whose audit budget was too small to begin.
    """

    rounds: FloatArray
    cost: FloatArray
    weight: FloatArray
    audit: FloatArray
    gap: FloatArray
    accepted: FloatArray
    audited: FloatArray
    bad_audits: FloatArray
    worst_gap: FloatArray
    guaranteed: bool
    deployed: tuple[tuple[FloatArray, FloatArray], ...]
    budget_notes: tuple[str, ...] = ()

    def reached(self, weight: float) -> FloatArray:
        """(runs,): after how many people the learned rules of each run have this weight for good;
        infinity if that is not within the horizon.
        """
        found = []
        for first, weights in self.deployed:
            below = np.flatnonzero(weights < weight - 1e-9)
            after = 0 if len(below) == 0 else int(below[-1]) + 1
            found.append(float(first[after]) if after < len(weights) else inf)
        return np.array(found)


def simulate_runs(
    learner: EpochLearner,
    world: TablePopulation,
    terms: LaunchTerms,
    seeds: range,
    what: str,
    progress: Progress = _silently,
) -> SimulatedRuns:
    """Simulate the learner once per seed. what: how the progress calls it."""
    horizon = terms.horizon
    # from the first epoch to the horizon, dense at both ends
    grid = np.r_[np.geomspace(min(100, horizon), horizon, POINTS), np.linspace(1, horizon, 24)]
    rounds = np.unique(grid.round())
    population = world.population_sample()
    people = population.weight / population.weight.sum()
    bad = float(people @ (population.label == -1))
    columns: dict[str, list[FloatArray | float]] = defaultdict(list)
    deployed = []
    notes: list[str] = []
    for number, seed in enumerate(seeds):
        name = f"{what}, run {number + 1} of {len(seeds)}"

        def report(done: int, name: str = name) -> None:
            progress(name, done, horizon)

        report(0)
        run = simulate(learner, world, horizon, seed, terms.limit, progress=report)
        total = np.cumsum(run.lengths * run.losses)
        weight = _planned_weights(run)
        # once the audit budget is spent ("frozen"), accept-all is a constant like the other
        audits = zip(run.policies, run.phases, strict=True)
        audit = np.array([audit_weight(policy) * (phase != "frozen") for policy, phase in audits])
        share = np.array(
            [
                float(people @ policy.acceptance(population.features, population.group))
                for policy in run.policies
            ]
        )
        audited, bad_audits = _audits(run, audit, bad, rounds)
        columns["cost"].append(np.interp(rounds, np.r_[0, run.rounds], np.r_[0.0, total]))
        for column, values in (
            ("weight", weight),
            ("audit", audit),
            ("gap", run.gaps),
            ("accepted", share),
        ):
            columns[column].append(value_at(run.rounds, values, rounds))
        columns["audited"].append(audited)
        columns["bad_audits"].append(bad_audits)
        columns["worst_gap"].append(run.worst_gap)
        columns["guaranteed"].append(guarantees(run.learner, terms.limit))
        deployed.append((np.r_[0.0, run.rounds[:-1]], weight))
        notes += [note.text for note in run.learner.notes if note.kind == "budget too small"]
    guaranteed = all(columns.pop("guaranteed"))
    arrays = {name: np.array(values) for name, values in columns.items()}
    return SimulatedRuns(
        rounds=rounds,
        guaranteed=guaranteed,
        deployed=tuple(deployed),
        budget_notes=tuple(notes),
        **arrays,
    )


def _planned_weights(run: Run[EpochLearner]) -> FloatArray:
    """The weight of learned rules in each policy. While a quota is used up all applicants are
    rejected; the policy to come back to keeps its weight.
    """
    weights: list[float] = []
    for policy, phase in zip(run.policies, run.phases, strict=True):
        back = phase == "quota used up" and len(weights) > 0
        weights.append(weights[-1] if back else learned_weight(policy))
    return np.array(weights)


def _audits(
    run: Run[EpochLearner], audit: FloatArray, bad: float, rounds: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """People whom the audit coin has accepted by each of these rounds, and those of them with a bad
    outcome: expected, or counted where a budget of theirs is kept.
    """
    if run.learner.has_hard_counts:
        table = run.learner.rounds
        counted = table["audit"] & table["accept"]
        both = np.array([counted, counted & (table["label"] == -1)])
        so_far = np.concatenate([np.zeros((2, 1)), np.cumsum(both, axis=1)], axis=1)
        people, with_bad_outcome = so_far[:, rounds.astype(np.int64)]
        return people, with_bad_outcome
    total = np.cumsum(run.lengths * audit)
    people = np.interp(rounds, np.r_[0, run.rounds], np.r_[0.0, total])
    return people, bad * people


def share_of_delta(planned: PlannedPopulation, terms: LaunchTerms, rules: int) -> float:
    """The failure probability with which so many rules stand for the whole class."""
    return terms.delta * min(1.0, rules / planned.rules)


def launched(
    planned: PlannedPopulation, terms: LaunchTerms
) -> tuple[CertifiedLearner, TablePopulation]:
    """The learner that is to be launched, and the people it is played on: the class itself on the
    table itself where that is affordable, else the rules of the population on its kinds of people.
    """
    rules = planned.learnable
    table = planned.table
    if table is None or not table.affordable(terms.horizon):
        delta = share_of_delta(planned, terms, len(rules))
        return certified_learner(terms, rules, delta), planned.world
    best = best_within(planned.world, terms, terms.limit)
    table.people.know_optimum(terms.limit, terms.rates, terms.prices, *best, shares=terms.shares)
    learner = certified_learner(
        terms, table.hypotheses, table.share * terms.delta, table.group_use, table.candidates
    )
    return learner, table.people


def best_within(world: Discrete, terms: LaunchTerms, limit: float) -> tuple[float, Mixture]:
    """The best policy within a limit that accepts a permitted share."""
    if terms.shares is None:
        return world.optimum(limit, terms.rates, terms.prices)
    return world.optimum_within(limit, terms.rates, terms.prices, terms.most, terms.least)


def certified_learner(
    terms: LaunchTerms,
    rules: HypothesisClass,
    delta: float,
    group_use: GroupUse = "certify_only",
    candidates: Sequence[Hypothesis] = (),
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
        accept_at_least=terms.accept_at_least,
        quota=terms.quota,
        candidates=candidates,
        seed=0,
    )


def exploring_learner(
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


# the plan


@dataclass(frozen=True, eq=False)
class _Launch:
    """A launch on a population, its simulated runs, and what follows from them."""

    population: PlannedPopulation
    terms: LaunchTerms
    seeds: range
    progress: Progress = _silently

    @cached_property
    def lotteries(self) -> dict[float, float]:
        """What it costs per person to accept a share of the people, whoever they are: the largest
        share that is permitted, and the smallest one.
        """
        accept, reject = constant_costs(self.population.world, self.terms.prices)
        shares = (self.terms.most, self.terms.least)
        return {share: share * accept + (1.0 - share) * reject for share in shares}

    @property
    def constant_cost(self) -> float:
        return min(self.lotteries.values())

    @property
    def constant_share(self) -> float:
        """The share of the people whom the better constant accepts."""
        return min(self.lotteries, key=self.lotteries.__getitem__)

    @property
    def constant(self) -> str:
        """The better constant, in words."""
        return constant_in_words(self.constant_share)

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
        return simulate_runs(
            learner, world, self.terms, self.seeds, "certified learner", self.progress
        )

    @cached_property
    def weights(self) -> FloatArray:
        """(runs, rounds): the certified weight in units of the full weight."""
        if self.full_weight == 0:
            return np.zeros_like(self.runs.weight)
        return np.minimum(self.runs.weight / self.full_weight, 1.0)

    def milestone(self, share: float) -> Milestone:
        """When this share of the full weight is certified for good."""
        reached_at = np.full(len(self.seeds), inf)
        if self.full_weight > 0:
            reached_at = self.runs.reached(share * self.full_weight)
        return Milestone.of(share, reached_at, self.terms.horizon)

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
        """By the interval of the saving, unless there is nothing to gain at all."""
        if self.possible <= 1e-9 * self.terms.horizon:
            return "nothing to gain"
        return answer_of(self.saving)

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
        price = float(np.max(terms.prices.false_accept))
        accept, reject = constant_costs(self.population.world, terms.prices)
        # a person who is audited, instead of decided about by the better constant
        beyond = (1.0 - self.constant_share) * (accept - reject)
        possible = self.possible
        saving = self.saving
        quota = terms.quota
        return LaunchPlan(
            limit=terms.limit,
            delta=terms.delta,
            horizon=terms.horizon,
            per_day=per_day,
            population=self.population.facts(),
            prices=(price, float(np.max(terms.prices.false_reject))),
            runs=len(self.seeds),
            constant_share=self.constant_share,
            constant_cost=self.constant_cost,
            best_cost=self.optimum_cost(terms.limit),
            free_cost=self.optimum_cost(1.0),
            full_weight=self.full_weight,
            audited=Spread.of(runs.audited[:, -1]),
            audited_bad=Spread.of(runs.bad_audits[:, -1]),
            bill=Spread.of(price * runs.bad_audits[:, -1]),
            bill_beyond_constant=Spread.of(beyond * runs.audited[:, -1]),
            half=self.milestone(0.5),
            full=self.milestone(0.95),
            saving=Spread.of_next(saving),
            saving_share=float(saving.mean() / possible) if possible > 0 else 0.0,
            break_even=self.break_even,
            final_share=self.final_share,
            final_weight=float(np.median(runs.weight[:, -1])),
            runs_that_save=int((saving > 0).sum()),
            answer=self.answer,
            advice=self.advice(),
            rounds=runs.rounds,
            weight=Curve.of(self.weights),
            audit=Curve.of(runs.audit),
            gap=Curve.of(runs.gap),
            accepted=Curve.of(runs.accepted),
            bill_so_far=Curve.of(price * runs.bad_audits),
            courses=self.courses(),
            accept_at_most=terms.accept_at_most,
            accept_at_least=terms.accept_at_least,
            quota=None if quota is None else (int(quota.count), float(quota.period)),
            audit_budget=terms.audit_budget,
            incumbent=self.population.incumbent,
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
            why = self._infeasible(rounds)
            if why is not None:
                courses.append(Course(name, rounds, guaranteed=True, infeasible=why))
                continue
            learner = exploring_learner(kind, population, terms, int(rounds))
            world = population.world
            runs = simulate_runs(learner, world, terms, self.seeds, name, self.progress)
            courses.append(_course(name, rounds, runs, terms, best))
        return tuple(courses)

    def _infeasible(self, rounds: float) -> str | None:
        """Why a learner that accepts all applicants for so many rounds first cannot be launched."""
        terms = self.terms
        if terms.most < 1.0:
            return f"it accepts all applicants first, and {terms.most:.0%} may be accepted"
        if terms.least > 0.0:
            return f"it knows no floor, and {terms.least:.0%} must be accepted"
        if rounds > terms.horizon / 2:
            people = f"{rounds:,.0f} people" if np.isfinite(rounds) else "no number of people"
            return f"it would have to accept {people} first, more than half of {terms.horizon:,}"
        return None

    def advice(self) -> Advice:
        """What would help a launch that is held back."""
        terms = self.terms
        if self.answer == "nothing to gain":
            return self._advice_without_gain()
        if self.runs.budget_notes:
            return Advice(note=self.runs.budget_notes[0])
        if self.answer in ("worth it", "probably worth it") and self.final_share >= HELD_BACK:
            return Advice()
        own = terms.limit
        volume = terms.horizon
        # a wider limit allows whatever a narrower one allows, so the first that succeeds is found
        # by halving; longer runs cost more, so these are tried one after the other
        limits = [replace(terms, limit=own * k) for k in WIDER if own * k <= 1]
        longest = MOST_ROUNDS if terms.quota is None else MOST_PERIODS * terms.quota.period
        volumes = [int(volume * k) for k in LONGER if volume * k <= longest]
        wider = _first(limits, self._succeeds)
        longer = next(filter(self._succeeds, (replace(terms, horizon=n) for n in volumes)), None)
        return Advice(
            sought=True,
            limit=None if wider is None else wider.limit,
            horizon=None if longer is None else longer.horizon,
            widest_limit=max((one.limit for one in limits), default=own),
            longest_horizon=max(volumes, default=volume),
        )

    def _advice_without_gain(self) -> Advice:
        own = self.terms.limit
        for limit in (min(own * k, 1.0) for k in (*WIDER, 1 / own)):
            gain = self.constant_cost - self.optimum_cost(limit)
            if gain > 1e-9:
                return Advice(gain_from=limit, gain=gain)
        return Advice()

    def _succeeds(self, terms: LaunchTerms) -> bool:
        """Whether a launch with other terms is ahead of the constant, and not held back, in two
        simulated runs; the second one is not needed where the first one fails.
        """
        full = learned_weight(best_within(self.population.world, terms, terms.limit)[1])
        if full == 0:
            return False
        learner, world = launched(self.population, terms)
        what = f"a limit of {terms.limit:.2g}, {terms.horizon:,} people"
        for seed in (self.seeds.start, self.seeds.start + 1):
            one = range(seed, seed + 1)
            run = simulate_runs(learner, world, terms, one, what, self.progress)
            ahead = terms.horizon * self.constant_cost - run.cost[0, -1]
            if ahead <= 0 or run.weight[0, -1] < HELD_BACK * full:
                return False
        return True


def _first(
    rising: Sequence[LaunchTerms], succeeds: Callable[[LaunchTerms], bool]
) -> LaunchTerms | None:
    """The first that succeeds, where all after one that succeeds do too; None if none does."""
    if not rising or not succeeds(rising[-1]):
        return None
    low = 0
    high = len(rising) - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if succeeds(rising[middle]) else (middle + 1, high)
    return rising[high]


def _course(
    name: str, explored: float, runs: SimulatedRuns, terms: LaunchTerms, best: float
) -> Course:
    return Course(
        name=name,
        explored=explored,
        guaranteed=runs.guaranteed,
        regret=Spread.of(runs.cost[:, -1] - terms.horizon * best),
        total=Spread.of(runs.cost[:, -1]),
        worst_gap=float(runs.worst_gap.max()),
        cost=Curve.of(runs.cost),
    )
