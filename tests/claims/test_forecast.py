"""The forecast of the round from which half of the learned weight is certified, against runs.

Nothing is simulated for it. The populations have finite classes: in each epoch ahead the policy
with the least J is chosen, as the learner would, and every random quantity is replaced by what is
expected of it (`algorithms/certified/priced_course.py`). The tables have linear rules, for which
the plan knows the table as an out-of-fold score in bins, and the forecast by which the learner
decides how many people to audit (`algorithms/certified/forecast.py`). Three rates; T = 3e5.

The policy changes at the end of an epoch, and each epoch ends after 1.25 times the rounds before
it, so that "within a factor of 1.5" is within one epoch of the median run, and two epochs are a
factor of 1.56. The tables are those on which `FITTED_RULES` was chosen (with 100 or 1,000 instead
of 30 their row would miss): no fresh test. Quick tier: one population, one run; a forecast that
ignores the rules (every rule as if it tossed a fair coin), and one that forgets that J chooses,
miss it by far.
"""

from functools import lru_cache
from math import inf, isfinite
from types import SimpleNamespace

import numpy as np
import pytest
from joblib import Parallel, delayed

from evenhand import (
    CertifiedLearner,
    FalseNegativeRate,
    FalsePositiveRate,
    Linear,
    Prices,
    SelectionRate,
    simulate,
)
from evenhand.algorithms.certified.choose import PRICED_SCHEDULE, SCHEDULE
from evenhand.algorithms.certified.cost_posterior import MOST_PRIOR, PooledCosts
from evenhand.algorithms.certified.deployable import CertifiedSet
from evenhand.algorithms.certified.evidence import FIRST_PEOPLE, group_codes
from evenhand.algorithms.certified.forecast import Prospect, epoch_length
from evenhand.algorithms.certified.priced_course import expected_course
from evenhand.algorithms.certified.prior import likely_delta_parts
from evenhand.algorithms.certified.settings import FIRST_NOMINATED, FIRST_ROUNDS
from evenhand.algorithms.certified.state import LATER_GROUPS
from evenhand.bounds import BettingBound
from evenhand.environments import LowerBound, Replay, random_population, threshold_population
from evenhand.hypotheses import ACCEPT_ALL, REJECT_ALL
from evenhand.hypotheses.finite import TableRow
from evenhand.planning.launch import certified_learner, share_of_delta
from evenhand.planning.population import LaunchTerms, PlannedPopulation, from_table
from evenhand.simulation.record import learned_weight
from evenhand.tables import DataUnavailable, read_table

DELTA, ROUNDS, SEEDS = 0.05, 300_000, 5
FACTOR = 1.5 * (1 + 1e-3)
"""Rounds are whole numbers, so that factors between epochs hold only nearly."""
RATES = {"FPR": FalsePositiveRate(), "FNR": FalseNegativeRate(), "selection rate": SelectionRate()}
POPULATIONS = {
    **{f"random {seed}": (lambda seed=seed: random_population(seed)) for seed in range(6)},
    "thresholds": threshold_population,
    "lower bound": lambda: LowerBound(1, 0.05),
}
TABLES = ("adult", "compas", "taiwan", "gmsc")


def expected(planned, terms):
    """What the certified learner would expect on the planned population after its first rounds.

    Nothing is simulated: the regression is right, costs and gaps are known, and every process
    starts from nothing.
    """
    world = planned.world
    known = planned.learnable
    learner = certified_learner(terms, known, share_of_delta(planned, terms, len(known)))
    schedule = SCHEDULE if planned.fitted else PRICED_SCHEDULE
    groups = world.population_sample().groups
    rules = np.array([row for row in world.accepts if row.any() and not row.all()])
    if not len(rules):
        return ()
    pairs = len(terms.rates) * len(groups) * (len(groups) - 1) // 2
    accepts = np.array([np.ones(len(world)), np.zeros(len(world)), *rules], dtype=np.float64)
    start = first_look(planned, terms)
    costs = known_costs(world, rules, terms, start)
    delta = (1.0 - LATER_GROUPS) * learner.guarantee.run_delta(1)
    parts = expected_delta_parts(world, costs, terms)
    bound = BettingBound(groups, terms.rates, len(rules), delta, delta_parts=tuple(delta * parts))
    thresholds = bound.pair_thresholds.T
    # nothing is known of a rule's gap, and the two constants have none
    upper = np.tile(np.r_[0.0, 0.0, np.ones(len(rules))], (pairs, 1))
    cost = accepts @ cost_of_each(world, terms)[0]
    prospect = Prospect(
        weight=world.probability,
        group=group_codes(world.group, groups),
        negative=1.0 - world.positive_rate,
        accepts=accepts,
        cost=cost,
        sure_cost=cost,
        rates=terms.rates,
        groups=len(groups),
        limit=terms.limit,
        lower=0.0 - upper,
        upper=upper,
        threshold=np.pad(np.tile(thresholds, (len(terms.rates), 1)), ((0, 0), (2, 0))),
        floor=lambda t: schedule.exploration_floor(int(t)),
    )
    horizon = float(terms.horizon)
    start = min(start, horizon - 1.0)
    if planned.fitted:
        prospect = prospect.narrowed()
        return prospect.forecasts(prospect.course(start, horizon), horizon)
    of_cells = np.concatenate([np.repeat([[1.0], [0.0]], len(costs.cost), axis=1), costs.accepts])
    members = (ACCEPT_ALL, REJECT_ALL, *(TableRow(tuple(rule)) for rule in rules))
    deployable = CertifiedSet(members, of_cells, 0.0 - upper, upper, terms.limit, "certify_only")
    course = expected_course(prospect, costs, deployable, start, horizon)
    return prospect.forecasts(course, horizon)


def cost_of_each(world, terms):
    """(contexts,) each: what accepting everyone of a context costs, and how that grows with the
    probability of a bad outcome.
    """
    bad = float(np.max(terms.prices.false_accept))
    good = float(np.max(terms.prices.false_reject))
    negative = 1.0 - world.positive_rate
    cost = world.probability * (negative * bad - world.positive_rate * good)
    return cost, world.probability * (bad + good)


def known_costs(world, rules, terms, start):
    """The costs by which a learner chooses that knows them after its first people, up to the noise
    of as many labels as it ever imagines; people whom no rule tells apart are one cell.
    """
    _, first, cell = np.unique(rules, axis=1, return_index=True, return_inverse=True)
    cell = cell.ravel()

    def total(column):
        return np.bincount(cell, weights=column)

    cost, stake = cost_of_each(world, terms)
    fraction = total(world.probability)
    return PooledCosts(
        accepts=rules[:, first].astype(bool),
        of_past=cell,
        cost=total(cost),
        stake=total(stake),
        chance=total(world.probability * (1.0 - world.positive_rate)) / fraction,
        labels=MOST_PRIOR + start * fraction,
        fraction=fraction,
        acceptance=np.ones(len(fraction)),
    )


def expected_delta_parts(world, costs, terms):
    """How such a learner shares delta among the rules, on average over its draws: those of a single
    seed move the forecast by an epoch.
    """
    past = SimpleNamespace(group=np.asarray(world.group), weight=world.probability)
    groups = world.population_sample().groups
    parts = [
        likely_delta_parts(
            costs, past, terms.rates, groups, terms.limit, np.random.default_rng(seed)
        )
        for seed in range(10)
    ]
    return np.mean(parts, axis=0)


def first_look(planned, terms):
    """The round after which the learner first estimates rates: enough people of the rarest kind
    have come.
    """
    start = float(FIRST_ROUNDS)
    if planned.fitted:
        start = float(np.clip(float(terms.horizon) // 100, FIRST_ROUNDS, FIRST_NOMINATED))
    rarest = float(planned.denominators(terms.rates).min())
    while start * rarest < FIRST_PEOPLE and start < terms.horizon:
        start += epoch_length(start)
    return start


def forecast(population, rate, limit, rounds):
    """The forecast round, or inf."""
    told = expected(population, LaunchTerms(limit, DELTA, rounds, (RATES[rate],)))
    return inf if not told or told[0].half is None else told[0].half


def lived(world, hypotheses, rate, limit, rounds, seed):
    """The round from which on a run has at least half of the full learned weight, or inf."""
    learner = CertifiedLearner(hypotheses, RATES[rate], limit, DELTA, horizon=rounds)
    run = simulate(learner, world, rounds, seed, limit)
    full = learned_weight(world.optimum(limit, (RATES[rate],), Prices())[1])
    below = np.flatnonzero([learned_weight(policy) < 0.5 * full - 1e-9 for policy in run.policies])
    return inf if below[-1] == len(run.policies) - 1 else float(run.rounds[below[-1]])


def agrees(foretold, halves):
    """Within a factor of 1.5 of the median run, or both not within the horizon."""
    median = float(np.median(halves))
    if not (isfinite(foretold) and isfinite(median)):
        return foretold == median
    return 1 / FACTOR <= foretold / median <= FACTOR


@lru_cache(maxsize=2)
def population(name):
    return PlannedPopulation(world := POPULATIONS[name](), len(world.hypotheses), name)


class IgnoresTheRule(Prospect):
    """Every rule as if it accepted half of the people, whoever they are."""

    def moments(self, acceptance):
        fields = {name: getattr(self, name) for name in Prospect.__dataclass_fields__}
        blind = {**fields, "accepts": np.full_like(self.accepts, 0.5)}
        return IgnoresTheRule.__base__(**blind).moments(acceptance)


def test_a_run_is_foretold_and_a_forecast_that_ignores_the_rule_misses_it(monkeypatch):
    name, rounds = "thresholds", 10_000
    world = population(name).world
    halves = [lived(world, world.hypotheses, "selection rate", 0.05, rounds, 0)]
    assert agrees(forecast(population(name), "selection rate", 0.05, rounds), halves)
    monkeypatch.setitem(globals(), "Prospect", IgnoresTheRule)
    assert not agrees(forecast(population(name), "selection rate", 0.05, rounds), halves)


@pytest.mark.thorough
def test_a_forecast_that_forgets_that_labels_have_a_price_misses_a_run(monkeypatch):
    """Negative control: the cheapest mixture in each epoch instead of the one with the least J."""
    name, rounds = "thresholds", 10_000
    world = population(name).world
    halves = [lived(world, world.hypotheses, "FPR", 0.05, rounds, 0)]
    assert agrees(forecast(population(name), "FPR", 0.05, rounds), halves)

    def cheapest(prospect, costs, deployable, start, horizon):
        return prospect.trajectory(0.0, start, horizon)

    monkeypatch.setitem(globals(), "expected_course", cheapest)
    assert not agrees(forecast(population(name), "FPR", 0.05, rounds), halves)


def test_what_is_not_within_the_horizon_is_foretold():
    name, rounds = "random 0", 20_000
    world = population(name).world
    assert lived(world, world.hypotheses, "FNR", 0.01, rounds, 0) == inf
    assert forecast(population(name), "FNR", 0.01, rounds) == inf


def population_case(name, rate, limit):
    world = population(name).world
    halves = [lived(world, world.hypotheses, rate, limit, ROUNDS, seed) for seed in range(SEEDS)]
    return name, rate, limit, forecast(population(name), rate, limit, ROUNDS), halves


def table_case(name):
    table = read_table(name).encoded()
    world = Replay.of_table(table, Linear())
    terms = LaunchTerms(0.05, 0.05, ROUNDS, tuple(RATES.values()))
    planned = from_table(table.sample, Linear(), "certify_only", None, terms)
    found = []
    for rate in RATES:
        halves = [lived(world, Linear(), rate, 0.05, ROUNDS, seed) for seed in range(SEEDS)]
        found.append((name, rate, 0.05, forecast(planned, rate, 0.05, ROUNDS), halves))
    return found


def plain(round):
    """None where it is not within the horizon."""
    return round if isfinite(round) else None


def judged(claims, title, cases, target=0.8):
    """Enter and return the share within a factor of 1.5, and the share of right answers to "within
    the horizon?".
    """
    close = float(np.mean([agrees(foretold, halves) for *_, foretold, halves in cases]))
    right = float(
        np.mean(
            [isfinite(foretold) == isfinite(np.median(halves)) for *_, foretold, halves in cases]
        )
    )
    missed = [
        f"{name} {rate} at {limit:g}: {foretold:,.0f} for {np.median(halves):,.0f}"
        for name, rate, limit, foretold, halves in cases
        if not agrees(foretold, halves)
    ]
    claims.add(
        f"forecast of the round with half of the weight, {title}: "
        f"within a factor of 1.5 of the median of {SEEDS} runs",
        "shown as it is" if target is None else f">= {target:.0%} of the cases",
        f"{close:.0%} of {len(cases)}" + (f" (not: {'; '.join(missed)})" if missed else ""),
        target is None or close >= target,
        raw=[
            [name, rate, plain(foretold), [plain(half) for half in halves]]
            for name, rate, _, foretold, halves in cases
        ],
    )
    claims.add(
        f"forecast, {title}: whether that is within the horizon",
        ">= 95% right",
        f"{right:.0%}",
        right >= 0.95,
    )
    return close, right


def all_populations(workers, limit):
    asked = [(name, rate, limit) for name in POPULATIONS for rate in RATES]
    return Parallel(n_jobs=workers)(delayed(population_case)(*case) for case in asked)


@pytest.mark.claims
def test_full_populations(claims, workers):
    close, right = judged(
        claims, "8 populations, 3 rates, limit 0.05", all_populations(workers, 0.05)
    )
    assert close >= 0.8
    assert right >= 0.95


@pytest.mark.claims
def test_full_small_limit(claims, workers):
    """At a limit of .01 some rates are certified late or not within the horizon; how close the
    others are is shown as it is.
    """
    cases = all_populations(workers, 0.01)
    _, right = judged(claims, "8 populations, 3 rates, limit 0.01", cases, target=None)
    assert right >= 0.95


@pytest.mark.claims_tables
def test_full_tables(claims, workers):
    try:
        for name in TABLES:
            read_table(name)
    except DataUnavailable as error:
        pytest.skip(f"a table cannot be had: {error}")
    cases = [
        case
        for found in Parallel(n_jobs=workers)(delayed(table_case)(name) for name in TABLES)
        for case in found
    ]
    close, right = judged(claims, "4 tables, 3 rates, limit 0.05", cases)
    assert close >= 0.8
    assert right >= 0.95
