"""Simulated runs of a launch: what each way to decide would cost on the planned population, with
the spread over runs.

Runs are simulated by their counts, so a run of a million people takes about a second. The union
over a class enters every bound as ln(M / delta) alone; a class of M rules is therefore simulated by
the m rules of the population with delta m / M.
"""

from dataclasses import dataclass
from math import ceil, inf, log
from typing import Any

import numpy as np

from evenhand.bounds import BettingBound, JointHoeffding, people_needed
from evenhand.contracts import Environment
from evenhand.learners import CertifiedLearner, EpochLearner
from evenhand.learners.certified.evidence import FIRST_PEOPLE, group_codes
from evenhand.learners.certified.forecast import Prospect, RateForecast, epoch_length
from evenhand.learners.certified.learner import FIRST_FITTED, FIRST_ROUNDS
from evenhand.learners.certified.run import LATER_GROUPS
from evenhand.planning.population import LaunchTerms, PlannedPopulation
from evenhand.simulate import promises, simulate
from evenhand.simulate.record import audit_weight, learned_weight, value_at
from evenhand.words import FloatArray

POINTS = 72
"""Rounds at which curves are kept."""


@dataclass(frozen=True, eq=False)
class SimulatedRuns:
    """Several runs of one learner on a grid of rounds, one row per run.

    cost: cumulative expected cost; weight: share of the policy that is not a constant; audit: the
    weight of accept-all; gap: the true one; audited: people whom the audit coin accepted.
    """

    rounds: FloatArray
    cost: FloatArray
    weight: FloatArray
    audit: FloatArray
    gap: FloatArray
    worst_gap: FloatArray
    audited: FloatArray
    promised: bool


def simulate_runs(
    learner: EpochLearner, world: Environment, terms: LaunchTerms, seeds: range
) -> SimulatedRuns:
    """Play the learner once per seed."""
    horizon = terms.horizon
    # from the first epoch to the horizon, dense at both ends
    grid = np.r_[np.geomspace(min(100, horizon), horizon, POINTS), np.linspace(1, horizon, 24)]
    rounds = np.unique(grid.round())
    columns: dict[str, list[Any]] = {
        name: [] for name in ("cost", "weight", "audit", "gap", "worst_gap", "audited", "promised")
    }
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
        columns["promised"].append(promises(run.learner, terms.limit))
    promised = all(columns.pop("promised"))
    arrays = {name: np.array(values) for name, values in columns.items()}
    return SimulatedRuns(rounds=rounds, promised=promised, **arrays)


def share_of_delta(planned: PlannedPopulation, terms: LaunchTerms, rules: int) -> float:
    """The failure probability with which so many rules stand for the whole class."""
    return terms.failure_probability * min(1.0, rules / planned.rules)


def launched(
    planned: PlannedPopulation, terms: LaunchTerms
) -> tuple[CertifiedLearner, Environment]:
    """The learner that is to be launched, and the people it is played on: the class itself on the
    table itself where that is affordable, else the rules of the population on its kinds of people.
    """
    table = planned.table
    if table is None or not table.affordable(terms.horizon):
        return certified_learner(planned, terms), planned.world
    optimum = planned.world.optimum(terms.limit, terms.rates, terms.prices)
    table.people.know_optimum(terms.limit, terms.rates, terms.prices, *optimum)
    learner = CertifiedLearner(
        table.hypotheses,
        terms.rates,
        terms.limit,
        table.share * terms.failure_probability,
        horizon=terms.horizon,
        prices=terms.prices,
        group_use=table.group_use,
        audit_budget=terms.audit_budget,
        seed=0,
    )
    return learner, table.people


def certified_learner(planned: PlannedPopulation, terms: LaunchTerms) -> CertifiedLearner:
    """The learner that is to be launched, on the rules of the population."""
    return CertifiedLearner(
        planned.learnable,
        terms.rates,
        terms.limit,
        share_of_delta(planned, terms, len(planned.learnable)),
        horizon=terms.horizon,
        prices=terms.prices,
        audit_budget=terms.audit_budget,
        seed=0,
    )


def explorer(
    kind: type[EpochLearner], planned: PlannedPopulation, terms: LaunchTerms, exploration: int
) -> EpochLearner:
    """A learner of the paper's kind that accepts everybody for `exploration` rounds first."""
    settings: dict[str, Any] = {
        "hypotheses": planned.world.hypotheses,
        "rate": terms.rates,
        "allowed_gap": terms.limit,
        "failure_probability": share_of_delta(planned, terms, len(planned.world.hypotheses)),
        "horizon": terms.horizon,
        "prices": terms.prices,
        "bound": JointHoeffding(),
        "exploration_rounds": exploration,
        "seed": 0,
    }
    return kind(**settings)


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
    log_size, delta = log(size), share_of_delta(planned, terms, size)

    def beta(counts: FloatArray) -> float:
        return JointHoeffding().slack(
            counts, log_size=log_size, columns=1, failure_probability=delta
        )

    need = people_needed(beta, np.maximum(planned.denominators(terms.rates), 1e-9), slack)
    return float(ceil(need.multiple)) if np.isfinite(need.multiple) else inf


def forecast(planned: PlannedPopulation, terms: LaunchTerms) -> tuple[RateForecast, ...]:
    """What the certified learner would expect on the planned population after its first rounds: the
    forecast by which it audits.

    Nothing is simulated: the regression is right, costs and gaps are known, and every process
    starts from nothing.
    """
    learner, world = certified_learner(planned, terms), planned.world
    groups = world.population_sample().groups
    rules = [row for row in world.accepts if row.any() and not row.all()]
    if not rules:
        return ()
    pairs = len(terms.rates) * len(groups) * (len(groups) - 1) // 2
    accepts = np.array([np.ones(len(world)), np.zeros(len(world)), *rules], dtype=np.float64)
    false_accept, false_reject = (
        float(np.max(price)) for price in (terms.prices.false_accept, terms.prices.false_reject)
    )
    negative = 1.0 - world.positive_rate
    cost = accepts @ (
        world.probability * (negative * false_accept - world.positive_rate * false_reject)
    )
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
        floor=lambda t: learner.schedule.exploration_floor(int(t)),
    ).narrowed()
    start, horizon = _first_look(planned, terms), float(terms.horizon)
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
