"""What may be deployed, what it costs, and what is deployed.

The cheapest deployable mixture equals HiGHS on the same program; pooled costs and the price of
exploration equal slow and obvious computations, and what is left out of the formula is missed;
audits, budgets and prices move decisions, and nothing else does.
"""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.stats import ttest_ind
from tests.algorithms.certified.test_step import learner, played
from tests.play import WORLD

from evenhand import CertifiedLearner, FalseNegativeRate, FalsePositiveRate, SelectionRate, simulate
from evenhand.algorithms.certified import cost_posterior
from evenhand.algorithms.certified.cost_posterior import PooledCosts
from evenhand.algorithms.certified.deployable import CertifiedSet
from evenhand.algorithms.certified.objective import (
    TOLERANCE,
    Exploration,
    FrankWolfeResult,
    Objective,
)
from evenhand.algorithms.certified.simplex import MixtureProgram
from evenhand.environments import random_population
from evenhand.errors import InvalidInput
from evenhand.estimation import RoundLog, TransformedLoss
from evenhand.estimation.outcomes import fit_outcomes
from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL, GroupClassifier
from evenhand.randomness import stream
from evenhand.words import Prices

FPR = FalsePositiveRate()


# what may be deployed


def test_the_answer_is_a_mixture_of_members_with_its_acceptance():
    members = (ACCEPT_ALL, REJECT_ALL, GroupClassifier(1), GroupClassifier(2))
    accepts = np.array([[1.0] * 3, [0.0] * 3, [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
    ends = np.array([[0.0, 0.0, 0.4, -0.4]])
    found = CertifiedSet(members, accepts, ends, ends, 0.1, "decide").cheapest(
        np.array([-1.0, 0.5, -1.0])
    )
    assert found.policy.hypotheses == (ACCEPT_ALL, GroupClassifier(1))
    np.testing.assert_allclose(found.policy.weights, (0.75, 0.25))
    np.testing.assert_allclose(found.acceptance, [1.0, 0.75, 1.0])
    assert REJECT_ALL not in found.policy.hypotheses


# what it costs, and what exploration is worth


def objective(seed, members=6, cells=5, terms=3):
    draw = np.random.default_rng(seed)
    accepts = (draw.random((members, cells)) < 0.5).astype(float)
    accepts[0], accepts[1] = 1.0, 0.0
    return Objective(
        costs=draw.normal(size=members) * 0.1,
        accepts=accepts,
        floor=0.05,
        worth=draw.random(terms) * 0.1,
        fixed=draw.random(terms),
        spread=draw.random((terms, cells)),
        before=0.2 + 0.8 * draw.random(cells),
        rounds=2000.0,
        length=1000.0,
        ahead=20_000.0,
    )


def program(asked, seed, limit=0.3):
    draw = np.random.default_rng(100 + seed)
    gaps = draw.uniform(-1, 1, size=len(asked.costs))
    gaps[:2] = 0.0
    return MixtureProgram(np.array([gaps, -gaps]), limit)


# the price


def slow_value(asked, weights):
    """J by its definition: the integral is taken numerically."""
    p = asked.floor + (1 - asked.floor) * (weights @ asked.accepts)
    total = (1 - asked.floor) * float(asked.costs @ weights)
    for g, a, b in zip(asked.worth, asked.fixed, asked.spread, strict=True):
        z = asked.rounds * (a + b @ (1 / p)) / (a + b @ (1 / asked.before))
        ahead, _ = quad(
            lambda r, z=z: np.log(1 + 1.5 * r / z) / r, asked.length, asked.length + asked.ahead
        )
        total -= g * ahead / 3
    return total


@pytest.mark.parametrize("seed", range(5))
def test_the_value_is_the_integral(seed):
    asked = objective(seed)
    weights = np.random.default_rng(seed).dirichlet(np.ones(6))
    assert asked.value(weights) == pytest.approx(slow_value(asked, weights), abs=1e-8)


@pytest.mark.parametrize("seed", range(5))
def test_the_gradient_is_that_of_the_value(seed):
    asked = objective(seed)
    weights, step = np.random.default_rng(seed).dirichlet(np.ones(6)), 1e-6
    for member, slope in enumerate(asked.gradient(weights)):
        move = step * np.eye(6)[member]
        assert slope == pytest.approx(
            (asked.value(weights + move) - asked.value(weights - move)) / (2 * step), abs=1e-6
        )


def test_the_slope_is_what_evidence_will_save():
    """dF/dV by its derivation: a round's -dV/V^2 of evidence saves (g / 2I) / (1 + 3r / 2z) in each
    later round r.
    """
    g, evidence, variance, length, ahead = 0.02, 40.0, 3.0, 500.0, 7_000.0
    asked = replace(
        objective(0, terms=1),
        worth=np.array([g]),
        fixed=np.array([1.0]),
        length=length,
        ahead=ahead,
    )
    asked.__dict__["information"] = np.array([evidence])
    z = evidence * variance
    saved, _ = quad(lambda r: g / (2 * evidence) / (1 + 1.5 * r / z), length, length + ahead)
    first, second = asked._slopes(np.array([variance]))
    assert first[0] == pytest.approx(saved / variance**2, rel=1e-9)
    step = 1e-5
    around = [asked._slopes(np.array([variance + move]))[0][0] for move in (-step, step)]
    assert second[0] == pytest.approx((around[1] - around[0]) / (2 * step), rel=1e-6)


@pytest.mark.parametrize("seed", range(10))
def test_the_value_is_convex(seed):
    asked, draw = objective(seed), np.random.default_rng(seed)
    one, two = draw.dirichlet(np.ones(6) / 2, size=2)
    ends = asked.value(one), asked.value(two)
    for part in (0.25, 0.5, 0.75):
        between = asked.value(part * one + (1 - part) * two)
        assert between <= part * ends[0] + (1 - part) * ends[1] + 1e-12


@pytest.mark.parametrize("seed", range(12))
def test_the_least_value_is_found(seed):
    """Within TOLERANCE of the g of what a general solver finds from many starts; all weights are
    allowed.
    """
    asked = objective(seed)
    oracle = program(asked, seed)
    found = asked.minimise(oracle, oracle.cheapest(asked.costs)).weights
    assert found.min() >= 0
    assert found.sum() == pytest.approx(1)
    rows = oracle.constraints.reshape(-1, len(found))
    assert (rows @ found <= 0.3 + 1e-9).all()
    allowed = [
        {"type": "eq", "fun": lambda w: w.sum() - 1},
        {"type": "ineq", "fun": lambda w: 0.3 - rows @ w},
    ]
    starts = np.random.default_rng(seed).dirichlet(np.ones(6), size=4)
    best = min(
        minimize(
            asked.value, start, jac=asked.gradient, bounds=[(0, 1)] * 6, constraints=allowed
        ).fun
        for start in starts
    )
    assert asked.value(found) <= best + 1.1 * TOLERANCE * asked.worth.sum()


# what is not known yet


def certified_set(accepts, lower, upper, limit):
    """Members of which nothing is asked but what is told here, after the two constants."""
    rows = np.concatenate(
        [np.ones((1, accepts.shape[1])), np.zeros((1, accepts.shape[1])), accepts]
    )
    lower, upper = (np.pad(ends, ((0, 0), (2, 0))) for ends in (lower, upper))
    return CertifiedSet((ACCEPT_ALL,) * len(rows), rows, lower, upper, limit, "certify_only")


@pytest.mark.parametrize(
    "rate", [FPR, FalseNegativeRate(), SelectionRate()], ids=lambda rate: rate.name
)
def test_the_variance_of_the_certificate_is_that_of_its_increments(rate):
    """Every person, coin and label is enumerated; the regression is right, as supposed."""
    draw = np.random.default_rng(3)
    cells, group = np.repeat(np.arange(4), 2), np.tile([0, 1], 4)
    weight, bad = draw.dirichlet(np.ones(8)), draw.uniform(0.2, 0.8, size=8)
    accepts = np.array([[1, 0, 1, 0], [0, 1, 1, 0]], dtype=float)
    target, p = np.array([0.2, 0.1, 0.5, 0.2]), draw.uniform(0.3, 0.9, size=4)
    ends = np.array([[0.9, 0.8]])
    deployable = certified_set(accepts, -ends, ends, 0.05)
    question = Exploration(
        deployable,
        None,
        (rate,),
        2,
        group,
        weight,
        bad,
        cells,
        floor=0.1,
        rounds=1.0,
        length=1.0,
        ahead=1.0,
        most_audits=1.0,
        more_audits=True,
    )
    (gap,) = question._gaps(target, extra_cost=0.3)
    assert gap.worth == 0.3
    counts = rate.in_denominator(np.array([-1, 1]))
    m = counts[0] * bad + counts[1] * (1 - bad)
    learned, expected = target[2:] / target[2:].sum(), 0.0
    for share, rule in zip(learned, accepts, strict=True):
        size = np.array([(weight * m)[group == j].sum() for j in (0, 1)])
        f = np.array([(weight * m * rule[cells])[group == j].sum() for j in (0, 1)]) / size
        for i, accepted, label in product(range(8), (0, 1), (0, 1)):
            inside = counts[label]
            chance = p[cells[i]]
            odds = (chance if accepted else 1 - chance) * ((1 - bad[i]) if label else bad[i])
            phi = m[i] + accepted / chance * (inside - m[i])
            if counts.all():
                phi = 1.0
            change = phi * (rule[cells[i]] - f[group[i]]) / size[group[i]]
            expected += share * weight[i] * odds * change**2
    assert gap.fixed + gap.spread @ (1 / p) == pytest.approx(expected, rel=1e-9)


# pooled costs


def table(features, _):
    """Three members over two columns: they tell the first column apart, never the second."""
    first = features[:, 0]
    return np.array([first > 0, first > 1, first < 1])


def log_of(seed, people=400, prices=None):
    """Two epochs with different acceptance; features repeat."""
    draw = np.random.default_rng(seed)
    features = np.c_[draw.integers(0, 3, people), draw.integers(0, 2, people)].astype(float)
    bad = draw.random(people) < 0.2 + 0.2 * features[:, 0]
    p = np.where(np.arange(people) < people // 2, 1.0, 0.2 + 0.3 * (features[:, 0] > 0))
    accepted = draw.random(people) < p
    zeros = np.zeros(people)
    return RoundLog(
        features=features,
        group=None,
        acceptance=p,
        positive=np.where(accepted & ~bad, 1.0, zeros),
        negative=np.where(accepted & bad, 1.0, zeros),
        rejected=np.where(accepted, 0.0, 1.0),
        **({} if prices is None else {"prices": prices}),
    )


def pooled(log, table, people=1):
    past = log.features[:people], None
    return PooledCosts.of(log, past, table, fit_outcomes(log), TransformedLoss())


def test_costs_are_pooled_over_people_whom_no_member_tells_apart():
    log = log_of(1)
    costs = pooled(log, table, people=400)
    assert len(costs.cost) == 3
    of_log = costs.of_past[: len(log)]
    guesses = cost_posterior._similar_cells(
        costs.accepts,
        *(
            np.bincount(of_log, weights=column)
            for column in (log.count, log.negative, log.accepted)
        ),
    )
    for x in range(3):
        rows = log.features[:, 0] == x
        (cell,) = set(costs.of_past[rows])
        bad, good = log.negative[rows].sum(), log.positive[rows].sum()
        guess = guesses.chance[cell]
        imaginary = costs.labels[cell] - bad - good
        share = (bad + imaginary * guess) / (bad + good + imaginary)
        assert costs.chance[cell] == pytest.approx(share)
        assert costs.cost[cell] == pytest.approx(rows.sum() * (share - (1 - share)) / len(log) / 2)
        assert costs.fraction[cell] == pytest.approx(rows.mean())
        assert costs.acceptance[cell] == pytest.approx(log.acceptance[rows].mean())
    assert (costs.accepts[:, costs.of_past] == table(log.features, None)).all()


def test_people_who_are_told_apart_must_not_be_pooled():
    """Negative control: who pools all people is far from the true costs, because the accepted are
    no sample of them all.
    """
    errors = {"cells": [], "one pool": []}
    for seed in range(5):
        log = log_of(seed, people=20_000)
        in_cells = pooled(log, table)
        all_in_one = pooled(log, lambda features, _: np.ones((1, len(features)), dtype=bool))
        truth = 2 * (0.2 + 0.2 * log.features[:, 0]) - 1
        errors["cells"].append(abs(in_cells.cost.sum() - truth.mean() / 2))
        errors["one pool"].append(abs(all_in_one.cost.sum() - truth.mean() / 2))
    assert max(errors["cells"]) < 0.006 < min(errors["one pool"])


@pytest.mark.parametrize("worth", [2.0, 8.0, 30.0])
def test_what_a_forecast_is_worth_is_found(worth):
    """4,000 cells whose true shares are spread like a beta variable of so many people."""
    draw = np.random.default_rng(1)
    mean, accepted = 0.3, draw.integers(1, 60, size=4_000).astype(float)
    bad = draw.binomial(
        accepted.astype(int), draw.beta(worth * mean, worth * (1 - mean), size=4_000)
    ).astype(float)
    residual, squares = bad - accepted * mean, bad * (1 - mean) ** 2 + (accepted - bad) * mean**2
    found = cost_posterior._pseudo_count(residual, squares, accepted, np.full(4_000, mean))
    assert found == pytest.approx(worth, rel=0.15)


def test_the_posterior_has_the_variance_that_is_reported():
    log = log_of(2)
    costs = pooled(log, table)
    drawn = costs.drawn(np.random.default_rng(0), 20_000)
    np.testing.assert_allclose(drawn.mean(axis=0), costs.cost, atol=4e-3)
    np.testing.assert_allclose(drawn.var(axis=0), costs.variance, rtol=0.1)


def test_the_error_of_the_guess_is_shared_by_all_cells():
    """The total cost of ten cells varies by more than independent cells would let it: their guess
    is wrong in all of them at once. The control takes the guess for certain.
    """
    accepts = np.arange(10) >= np.arange(1, 10)[:, np.newaxis]
    people = np.full(10, 20.0)
    guess = cost_posterior._similar_cells(accepts, people, np.full(10, 2.0), np.full(10, 3.0))
    costs = PooledCosts(
        accepts,
        np.zeros(0, dtype=int),
        np.zeros(10),
        np.full(10, 0.1),
        guess.chance,
        np.full(10, 64.0 + 3.0),
        np.full(10, 0.1),
        np.ones(10),
        guess,
        pseudo_count=64.0,
    )
    upper_half = np.arange(10) >= 5
    spreads = [
        one.drawn(np.random.default_rng(0), 20_000)[:, upper_half].sum(axis=1).std()
        for one in (costs, replace(costs, guess=None))
    ]
    assert spreads[0] > 2 * spreads[1]
    # with a hundred times the labels the guess is known ten times as well
    later = costs.with_labels(np.full(10, 99 * 3.0), np.ones(10))
    np.testing.assert_allclose(later.guess.error, guess.error / 10)


def test_where_nobody_comes_twice_weighted_labels_correct_the_regression():
    draw = np.random.default_rng(0)
    log = replace(log_of(3), features=draw.normal(size=(400, 2)))
    many = np.sort(draw.normal(size=800))

    def steps(features, _):
        return np.array([features[:, 0] > cut for cut in many])

    costs = pooled(log, steps)
    assert costs.error is not None
    np.testing.assert_allclose(costs.variance, costs.error**2)
    drawn = costs.drawn(np.random.default_rng(0), 4_000)
    np.testing.assert_allclose(drawn.std(axis=0), costs.error, rtol=0.1, atol=1e-12)


# in the learner


def asked(seed, **more):
    """One choice of a mixture, from made-up intervals."""
    draw = np.random.default_rng(seed)
    accepts = (draw.random((8, 5)) < 0.5).astype(float)
    middle, half = draw.uniform(-0.3, 0.3, size=(1, 8)), draw.uniform(0.05, 0.5, size=(1, 8))
    deployable = certified_set(accepts, middle - half, middle + half, 0.1)
    share, chance = draw.dirichlet(np.ones(5)), draw.random(5)
    costs = PooledCosts(
        accepts > 0,
        np.zeros(0, dtype=int),
        share * (2 * chance - 1) / 2,
        share,
        chance,
        draw.uniform(5, 50, 5),
        share,
        draw.uniform(0.2, 1, 5),
    )
    people = (draw.integers(0, 2, 40), np.ones(40), draw.random(40), draw.integers(0, 5, 40))
    settings = {
        "floor": 0.02,
        "rounds": 1000.0,
        "length": 500.0,
        "ahead": 30_000.0,
        "most_audits": 1.0,
        "more_audits": True,
    }
    question = Exploration(deployable, costs, (FPR,), 2, *people, **settings | more)
    return deployable, costs, question.best(np.random.default_rng(seed))


@pytest.mark.parametrize("seed", range(15))
@pytest.mark.parametrize(
    "more",
    [{}, {"most_audits": 0.1}, {"more_audits": False}, {"most_audits": 0.0}],
    ids=str,
)
def test_what_is_chosen_is_certified(seed, more):
    deployable, costs, found = asked(seed, **more)
    assert found.weights.min() >= 0
    assert found.weights.sum() == pytest.approx(1)
    assert (deployable.constraints @ found.weights <= deployable.limit + 1e-9).all()
    assert found.weights[0] <= more.get("most_audits", 1.0) + 1e-9
    if more.get("more_audits") is False:
        cheapest = MixtureProgram(deployable.constraints, deployable.limit).cheapest(
            deployable.accepts @ costs.cost
        )
        assert found.weights[0] <= cheapest[0] + 1e-9


def test_the_longer_the_rounds_ahead_the_more_is_explored():
    spent = []
    for ahead in (0.0, 10_000.0, 10_000_000.0):
        costs = [(asked(seed, ahead=ahead), asked(seed, ahead=0.0)) for seed in range(15)]
        spent.append(
            sum(
                float((now[2].weights - none[2].weights) @ now[0].accepts @ now[1].cost)
                for now, none in costs
            )
        )
    assert spent[0] == pytest.approx(0)
    assert 0 < spent[1] < spent[2]


def regret(world, seeds=(0, 1, 2), rounds=30_000, **settings):
    return sum(
        simulate(
            CertifiedLearner(world.hypotheses, FPR, 0.07, 0.05, seed=seed, **settings),
            world,
            rounds,
            seed,
            0.07,
        ).regret[-1]
        for seed in seeds
    )


@pytest.mark.slow
def test_a_learner_that_explores_nothing_regrets_more(monkeypatch):
    """Negative control: without the price of what is not known the cheapest certified mixture is
    deployed at once.
    """
    worlds = [random_population(seed) for seed in (5, 6)]
    priced = sum(regret(world) for world in worlds)
    monkeypatch.setattr(
        Objective, "minimise", lambda self, _, start: FrankWolfeResult(start, 0, 1, True)
    )
    assert sum(regret(world) for world in worlds) > 1.1 * priced


def test_prices_of_ten_to_one_are_learned():
    """False accepts are ten times as dear: reject-all is a good start, and is left."""
    world = random_population(9, contexts=20, hypotheses=60)
    learner = CertifiedLearner(world.hypotheses, FPR, 0.07, 0.05, prices=Prices(10.0, 1.0), seed=0)
    run = simulate(learner, world, 100_000, 0, 0.07)
    assert run.learner.learned_weight > 0.2
    assert run.worst_gap <= 0.07


# what is deployed


class TestWhatItDeploys:
    def test_a_limit_that_is_never_certified_leaves_constants_at_work(self):
        run = simulate(learner(limit=1e-6), WORLD, 20_000, 0)
        assert run.worst_gap <= 1e-6
        assert run.learner.learned_weight < 1e-3
        assert run.learner.certificate.status == "certified"

    def test_looking_changes_nothing(self):
        first, second = played(learner(), 1000), played(learner(), 1000)
        for _ in range(3):
            first.acceptance(WORLD.features), first.certificate, first.report, first.policy
        one, other = (x.decide(WORLD.features, WORLD.group) for x in (first, second))
        assert (one.accept == other.accept).all()
        assert (one.propensity == other.propensity).all()

    def test_ten_thousand_group_flips_change_no_bit(self):
        told = simulate(
            learner(random_population(3).hypotheses, limit=0.1), random_population(3), 20_000, 0
        ).learner
        contexts = stream(1, "flips").integers(0, 100, 10_000).astype(float)[:, None]
        group = np.where(stream(2, "flips").random(10_000) < 0.5, -1, 1)
        flipped, hidden = told.acceptance(contexts, -group), told.acceptance(contexts)
        assert (told.acceptance(contexts, group) == flipped).all()
        assert (flipped == hidden).all()
        assert np.ptp(flipped) > 0

    def test_two_runs_that_differ_in_the_groups_of_one_decision_decide_alike(self):
        """Within an epoch the coin and the probability do not see the group."""
        first, second = played(learner(), 900), played(learner(), 900)
        one = first.decide(WORLD.features, WORLD.group)
        other = second.decide(WORLD.features, WORLD.group[::-1])
        assert (one.accept == other.accept).all()
        assert (one.propensity == other.propensity).all()

    def test_a_fixed_audit_rate_is_kept_and_shown(self):
        told = played(learner(audit_rate=0.1), 4000)
        weights = dict(zip(told.policy.hypotheses, told.policy.weights, strict=True))
        assert weights[ACCEPT_ALL] == pytest.approx(0.1, abs=0.02)
        assert told.learned_weight > 0.85
        decisions = told.decide(np.repeat(WORLD.features, 40, axis=0), np.repeat(WORLD.group, 40))
        audits = np.array([decision.audit for decision in decisions])
        assert 0.02 < audits.mean() < 0.25
        assert not (audits & ~decisions.accept).any()

    def test_the_audit_budget_freezes_the_policy_when_it_is_spent(self):
        told = played(learner(audit_budget=30, audit_rate=0.2), 5000)
        assert told.epoch.phase == "frozen"
        assert "frozen" in [note.kind for note in told.report.notes]
        assert told.certificate.status == "certified"
        assert not any(
            decision.audit
            for decision in told.decide(WORLD.features, WORLD.group)
            if not decision.accept
        )

    def test_a_budget_that_is_spent_before_the_start(self):
        told = played(learner(audit_budget=1), 1000)
        assert told.policy.weight_of(REJECT_ALL) == 1.0
        assert "budget too small" in [note.kind for note in told.report.notes]
        assert told.certificate.status == "certified"

    @pytest.mark.thorough
    def test_the_bad_accepts_of_audits_stay_within_the_budget(self):
        """For every outcome; and what may be spent is spent."""
        world = random_population(0)
        for budget in (300, 600):
            run = simulate(
                learner(world.hypotheses, limit=0.02, audit_budget=budget), world, 20_000, 0
            )
            assert 0.5 * budget <= run.learner.rounds.audit_bill <= budget
        free = simulate(learner(world.hypotheses, limit=0.02), world, 20_000, 0)
        assert free.learner.rounds.audit_bill > 2_000

    @pytest.mark.thorough
    def test_prices_move_decisions(self):
        shares = [
            simulate(learner(prices=prices, limit=0.3), WORLD, 20_000, 0).accepted[-1]
            for prices in (Prices(5.0, 1.0), Prices(), Prices(1.0, 5.0))
        ]
        assert shares[0] < shares[1] < shares[2]

    def test_prices_per_person(self):
        """Whoever would cost ten times as much when bad is accepted less often; prices never enter
        the certificate.
        """

        def dear(people):
            return Prices(np.where(people.features[:, 0] % 3 == 1, 9.0, 1.0), np.ones(len(people)))

        plain = played(
            learner(limit=0.5, prices=Prices(5.0, 5.0)),
            8000,
            prices=lambda p: Prices(np.ones(len(p)), np.ones(len(p))),
        )
        told = played(learner(limit=0.5, prices=Prices(5.0, 5.0)), 8000, prices=dear)
        at = WORLD.features[[1]]
        assert told.acceptance(at)[0] < plain.acceptance(at)[0]
        with pytest.raises(InvalidInput) as caught:
            told.decide(WORLD.features, WORLD.group)
        assert caught.value.argument == "prices"

    @pytest.mark.slow
    def test_counts_and_events_have_the_same_law(self):
        """24 runs each of 2,000 rounds: equal means; false alarm 1e-4 each, catches a shift of 1.6
        standard deviations.
        """
        runs = {
            engine: [
                simulate(learner(limit=0.15), WORLD, 2000, s, engine=engine) for s in range(24)
            ]
            for engine in ("counts", "events")
        }
        for figure in (
            lambda run: run.regret[-1],
            lambda run: run.learner.learned_weight,
            lambda run: run.accepted.sum(),
        ):
            first, second = (
                [float(figure(run)) for run in runs[engine]] for engine in ("counts", "events")
            )
            assert ttest_ind(first, second, equal_var=False).pvalue > 1e-4


# a guess for each cell


def test_the_guess_of_a_cell_is_that_of_the_penalised_regression():
    """Against a general optimiser, on principal components by a full decomposition."""
    draw = np.random.default_rng(3)
    score = draw.normal(size=30)
    accepts = score + draw.normal(0, 0.7, (12, 30)) > draw.normal(0, 0.7, (12, 1))
    people = draw.integers(1, 50, 30).astype(float)
    labels = np.floor(people / 3)
    negative = draw.binomial(labels.astype(int), 1 / (1 + np.exp(2 * score))).astype(float)
    share = people / people.sum()
    centred = accepts - (accepts @ share)[:, np.newaxis]
    _, _, components = np.linalg.svd(centred * np.sqrt(share), full_matrices=False)
    z = np.c_[(components[: cost_posterior.COMPONENTS] / np.sqrt(share)).T, np.ones(30)]
    penalty = np.append(np.ones(cost_posterior.COMPONENTS), cost_posterior.LEAST_PENALTY)

    def objective(w):
        s = z @ w
        fit = negative @ np.logaddexp(0, -s) + (labels - negative) @ np.logaddexp(0, s)
        return fit + penalty @ w**2 / 2

    w = minimize(objective, np.zeros(z.shape[1]), tol=1e-12).x
    found = cost_posterior._similar_cells(accepts, people, negative, labels)
    m = 1 / (1 + np.exp(-z @ w))
    assert found.chance == pytest.approx(m, abs=0.02)
    # Laplace: the slopes vary by the inverse of the objective's curvature, given the intercept
    slopes = z[:, :-1]
    bend = slopes.T @ (slopes * (labels * m * (1 - m))[:, np.newaxis]) + np.eye(
        cost_posterior.COMPONENTS
    )
    of_score = np.einsum("ij,jk,ik->i", slopes, np.linalg.inv(bend), slopes)
    assert found.error == pytest.approx(m * (1 - m) * np.sqrt(of_score), rel=0.25)
    drawn = found.drawn(np.random.default_rng(0), 4_000)
    assert drawn.std(axis=0) == pytest.approx(found.error, rel=0.3)


def test_a_cell_without_labels_is_guessed_by_its_neighbours_not_by_all():
    """A ladder of ten cells, bad from the middle down; the top one has no labels."""
    accepts = np.arange(10) >= np.arange(1, 10)[:, np.newaxis]
    labels = np.append(np.full(9, 20.0), 0.0)
    negative = labels * (np.arange(10) < 5)
    guess = cost_posterior._similar_cells(accepts, np.full(10, 20.0), negative, labels)
    assert guess.chance[-1] < 0.3 < 0.5 < negative.sum() / labels.sum()


# the limit beside an audit coin


@pytest.mark.parametrize("coin", [0.0, 0.05, 0.25])
def test_an_audit_coin_wastes_nothing_of_the_limit(coin):
    """The policy with its coin meets the limit exactly; held to the limit before the coin is mixed
    in (the control), it leaves a part of `coin` unused.
    """
    upper = np.array([[0.0, 0.0, 0.2]])
    deployable = CertifiedSet((None,) * 3, np.array([[1.0], [0.0], [0.5]]), -upper, upper, 0.1, "x")
    costs = np.array([1.0, 1.0, 0.0])
    for permitted, used in (
        (deployable.beside_audit_coin(coin), 0.1),
        (deployable, 0.1 * (1 - coin)),
    ):
        mixed = (1 - coin) * permitted.programs(1.0)[0].cheapest(costs)
        assert float(upper[0] @ mixed) == pytest.approx(used)
