"""From numbers, or from a table, to a launch plan."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from evenhand.bounds.slack import require_probability
from evenhand.contracts import GroupUse, HypothesisClass
from evenhand.errors import InvalidInput
from evenhand.fairness import FalsePositiveRate
from evenhand.fairness.rates import Rate, as_rates
from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL
from evenhand.learners import EpochLearner
from evenhand.planning.lives import (
    LaunchTerms,
    Lives,
    certified,
    commit_exploration,
    explore_then_commit,
    foreseen,
    live,
    two_phase,
    two_phase_exploration,
)
from evenhand.planning.plan import Course, Curve, LaunchPlan, Milestone, Spread
from evenhand.planning.population import Planned, from_numbers, separation_of
from evenhand.planning.tables import from_table
from evenhand.planning.verdict import MOST_ROUNDS, Stakes, advice, answer, break_even, verdict
from evenhand.policies import Mixture
from evenhand.simulate.record import learned_weight
from evenhand.words import LabelledSample, Prices

FALSE_POSITIVES = FalsePositiveRate()


def plan(
    *,
    limit: float,
    failure_probability: float = 0.05,
    group_shares: Mapping[Any, float],
    bad_rates: Mapping[Any, float] | float,
    separation: float | None = None,
    auc: float | None = None,
    score_shifts: Mapping[Any, float] | None = None,
    horizon: int | None = None,
    per_day: float | None = None,
    days: float | None = None,
    prices: Prices | None = None,
    rate: Rate | Sequence[Rate] = FALSE_POSITIVES,
    group_use: GroupUse = "certify_only",
    rules: int | None = None,
    audit_budget: float | None = None,
    lives: int = 8,
    seed: int = 0,
) -> LaunchPlan:
    """What a launch is expected to cost and to bring, from a few numbers about the people who will
    come.

    separation: the distance between the mean scores of good and bad in standard deviations (or the
    score's AUC); horizon: people in all, or per_day and days; rules: how many rules the class has,
    which the promise must hold for at once; lives: simulated lives.

    >>> import evenhand as eh
    >>> told = eh.plan(limit=.1, group_shares={"a": .6, "b": .4}, bad_rates={"a": .4, "b": .5}, separation=1.5, horizon=5_000, lives=2)
    >>> told.answer, told.constant
    ('worth it', 'accepting everybody')
    """
    if (separation is None) == (auc is None):
        raise InvalidInput(
            "give either separation or auc: how well the features tell good from bad.",
            hint="separation=1.0 is an AUC of .76.",
        )
    apart = separation if separation is not None else separation_of(auc if auc is not None else 0.5)
    population = from_numbers(group_shares, bad_rates, apart, score_shifts, group_use, rules)
    terms = _terms(limit, failure_probability, horizon, per_day, days, prices, rate, audit_budget)
    return _plan(population, terms, per_day, _seeds(lives, seed))


def plan_from_sample(
    sample: LabelledSample,
    hypotheses: HypothesisClass,
    *,
    limit: float,
    failure_probability: float = 0.05,
    horizon: int | None = None,
    per_day: float | None = None,
    days: float | None = None,
    prices: Prices | None = None,
    rate: Rate | Sequence[Rate] = FALSE_POSITIVES,
    group_use: GroupUse = "certify_only",
    rules: int | None = None,
    audit_budget: float | None = None,
    lives: int = 8,
    seed: int = 0,
) -> LaunchPlan:
    """The same from past people with known outcomes: the table stands for the population.

    If past people were accepted by a rule, the table stands for those whom the rule accepts; plan
    with that in mind.
    """
    population = from_table(sample, hypotheses, group_use, rules)
    terms = _terms(limit, failure_probability, horizon, per_day, days, prices, rate, audit_budget)
    return _plan(population, terms, per_day, _seeds(lives, seed))


def _plan(
    population: Planned, terms: LaunchTerms, per_day: float | None, seeds: range
) -> LaunchPlan:
    world, price = population.world, float(np.max(terms.prices.false_accept))
    costs = {
        name: world.loss(Mixture((rule,), (1.0,)), terms.prices) for name, rule in CONSTANTS.items()
    }
    constant = min(costs, key=lambda name: costs[name])
    best, policy = world.optimum(terms.limit, terms.rates, terms.prices)
    full = learned_weight(policy)
    lives = live(certified(population, terms), population, terms, seeds)
    shares = np.minimum(lives.weight / full, 1.0) if full > 0 else np.zeros_like(lives.weight)
    stakes = Stakes(terms, constant, costs[constant], best, lives, float(np.median(shares[:, -1])))
    bad = float(world.probability @ (1 - world.positive_rate))
    return LaunchPlan(
        limit=terms.limit,
        failure_probability=terms.failure_probability,
        horizon=terms.horizon,
        per_day=per_day,
        population=_facts(population),
        prices=(price, float(np.max(terms.prices.false_reject))),
        lives=len(seeds),
        constant=constant,
        constant_cost=costs[constant],
        best_cost=best,
        free_cost=world.optimum(1.0, terms.rates, terms.prices)[0],
        full_weight=full,
        audited=Spread.of(lives.audited),
        audited_bad=Spread.of(lives.audited * bad),
        bill=Spread.of(lives.audited * bad * price),
        bill_beyond_constant=Spread.of(
            lives.audited * (costs["accepting everybody"] - costs[constant])
        ),
        half=Milestone.of(0.5, lives.rounds, shares),
        full=Milestone.of(0.95, lives.rounds, shares),
        saving=Spread.of(stakes.saving),
        saving_share=float(stakes.saving.mean() / stakes.possible) if stakes.possible > 0 else 0.0,
        break_even=break_even(stakes),
        final_share=stakes.final_share,
        answer=answer(stakes),
        verdict=verdict(stakes),
        advice=advice(population, stakes),
        rounds=lives.rounds,
        weight=Curve.of(shares),
        audit=Curve.of(lives.audit),
        gap=Curve.of(lives.gap),
        courses=(
            _course("certified", lives, terms, best),
            *_others(population, terms, seeds, best),
        ),
        forecast=foreseen(population, terms),
    )


CONSTANTS = {"accepting everybody": ACCEPT_ALL, "rejecting everybody": REJECT_ALL}


def _facts(population: Planned) -> dict[str, Any]:
    table = population.world.population_sample()
    mass = {g: float(table.weight[table.group == g].sum()) for g in table.groups}
    bad = {
        g: float(table.weight[(table.group == g) & (table.label == -1)].sum() / mass[g])
        for g in table.groups
    }
    return {
        "source": population.source,
        "group_shares": {str(g): share for g, share in mass.items()},
        "bad_rates": {str(g): rate for g, rate in bad.items()},
        "rules": population.rules,
    }


# the other ways to decide


def _others(population: Planned, terms: LaunchTerms, seeds: range, best: float) -> list[Course]:
    asked = {
        "two-phase": (two_phase_exploration(population, terms), two_phase),
        "explore-then-commit": (commit_exploration(population, terms), explore_then_commit),
    }
    return [
        _explorer(name, rounds, make, population, terms, seeds, best)
        for name, (rounds, make) in asked.items()
    ]


def _explorer(
    name: str,
    rounds: float,
    make: Callable[[Planned, LaunchTerms, int], EpochLearner],
    population: Planned,
    terms: LaunchTerms,
    seeds: range,
    best: float,
) -> Course:
    if rounds > terms.horizon / 2:
        people = "no number of people" if not np.isfinite(rounds) else f"{rounds:,.0f} people"
        why = f"it would have to accept {people} first, more than half of {terms.horizon:,}"
        return Course(name, rounds, promised=True, infeasible=why)
    lives = live(make(population, terms, int(rounds)), population, terms, seeds)
    return replace(_course(name, lives, terms, best), explored=rounds)


def _course(name: str, lives: Lives, terms: LaunchTerms, best: float) -> Course:
    return Course(
        name=name,
        explored=0.0,
        promised=lives.promised,
        regret=Spread.of(lives.cost[:, -1] - terms.horizon * best),
        total=Spread.of(lives.cost[:, -1]),
        worst_gap=float(lives.worst_gap.max()),
        cost=Curve.of(lives.cost),
    )


# laws


def _terms(
    limit: float,
    failure_probability: float,
    horizon: int | None,
    per_day: float | None,
    days: float | None,
    prices: Prices | None,
    rate: Rate | Sequence[Rate],
    audit_budget: float | None,
) -> LaunchTerms:
    if not 0 < limit <= 1:
        raise InvalidInput(
            f"limit is {limit}; the gap that may never be exceeded is a number in (0, 1]."
        )
    require_probability(failure_probability)
    told = prices or Prices()
    if not (isinstance(told.false_accept, float) and isinstance(told.false_reject, float)):
        raise InvalidInput(
            "a plan takes two prices, not one per person.",
            hint="give the average price of each error.",
        )
    rates = as_rates(rate)
    return LaunchTerms(
        limit, failure_probability, _horizon(horizon, per_day, days), rates, told, audit_budget
    )


def _horizon(horizon: int | None, per_day: float | None, days: float | None) -> int:
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
        raise InvalidInput(
            f"the horizon is {horizon:,} people; a plan covers 200 to {MOST_ROUNDS:,}.",
            hint="below 200 people nothing can be learned and certified."
            if horizon < 200
            else "plan a shorter life.",
        )
    return int(horizon)


def _seeds(lives: int, seed: int) -> range:
    if lives < 1:
        raise InvalidInput(f"lives is {lives}; at least one life must be simulated.")
    return range(seed, seed + lives)
