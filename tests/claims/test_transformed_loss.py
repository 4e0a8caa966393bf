"""Proposition 2.4: apple tasting becomes a bandit. The transformed loss keeps every difference
between policies, halved, and both importance-weighted estimates of it are right on average although
the labels of the rejected are never seen."""

import numpy as np
import pytest
from tests.claims.measure import FPR, make, population

from evenhand.estimation import RoundLog, TransformedLoss, one_sided, two_sided
from evenhand.policies import Mixture
from evenhand.simulation import simulate

NAMES = ("random", "thresholds", "lending", "D1")


class NotAdded(TransformedLoss):
    """A defect: the price of a false reject is not added to an accepted y = -1."""

    @property
    def of_false_accept(self):
        return self.prices.false_accept / self.normaliser


def transformed(world, acceptance, loss):
    """E over (context, label, decision) of the transformed loss, by enumeration of all outcomes."""
    total = 0.0
    for label, chance in ((1, world.positive_rate), (-1, 1 - world.positive_rate)):
        for accept, taken in ((True, acceptance), (False, 1 - acceptance)):
            value = loss.of(np.full(len(world), accept), np.full(len(world), label))
            total += float(np.sum(world.probability * chance * taken * value))
    return total


def worst_mismatch(name, loss, policies=50):
    """The largest |2 transformed loss - 0-1 loss - P[y = -1]| over random mixtures of the class."""
    world, random = population(name), np.random.default_rng(1)
    negative = float(world.probability @ (1 - world.positive_rate))
    found = []
    for _ in range(policies):
        acceptance = random.dirichlet(np.ones(len(world.accepts)) * 0.1) @ world.accepts
        rate = world.positive_rate
        zero_one = float(world.probability @ (acceptance * (1 - rate) + (1 - acceptance) * rate))
        found.append(abs(2 * transformed(world, acceptance, loss) - zero_one - negative))
    return max(found)


@pytest.mark.parametrize("name", NAMES)
def test_the_transformed_loss_is_the_zero_one_loss_plus_a_constant_halved(name):
    """Exact.

    Catches a wrong entry of the loss table of 1e-12. Negative control: the table without the added
    price.
    """
    assert worst_mismatch(name, TransformedLoss()) <= 1e-12
    assert worst_mismatch(name, NotAdded()) > 0.01


@pytest.mark.parametrize("name", NAMES)
def test_regret_in_zero_one_loss_is_twice_the_transformed_regret(name):
    """Exact, on the policies of a run.

    Catches a relative error of 1e-9 in the factor; with a factor of 1 it must fail.
    """
    world = population(name)
    run = simulate(make("two-phase", world, 20_000, exploration_rounds=2000), world, 20_000, 5)
    best = world.optimum(0.02, FPR)[1].acceptance(world.features)
    loss = TransformedLoss()
    regret = sum(
        length
        * (
            transformed(world, policy.acceptance(world.features), loss)
            - transformed(world, best, loss)
        )
        for length, policy in zip(run.lengths, run.policies, strict=True)
    )
    assert loss.original_regret(regret) == pytest.approx(run.regret[-1], rel=1e-9)
    assert regret != pytest.approx(run.regret[-1], rel=1e-2)


def errors_in_standard_errors(estimate, *, sides, explored, repeats=400):
    """(mean L_hat - transformed loss) / s.e.

    for four policies, from logs of a coin with .3 to .9 and `explored` accept-all rounds.
    """
    world, random = population("lending"), np.random.default_rng(7)
    chance = random.uniform(0.3, 0.9, len(world))
    policies = [
        np.zeros(len(world)),
        np.ones(len(world)),
        random.random(len(world)),
        world.accepts[40].astype(float),
    ]
    found = []
    for _ in range(repeats):
        logs = (
            [
                _played(
                    world, np.full(len(world), 1.0 if sides == 1 else 1 - 1e-12), explored, random
                )
            ]
            if explored
            else []
        )
        loss = estimate(RoundLog.concatenate([*logs, _played(world, chance, 2000, random)]))
        contexts = loss.features[:, 0].astype(int)
        found.append([loss.of(policy[contexts]) for policy in policies])
    truth = [transformed(world, policy, TransformedLoss()) for policy in policies]
    spread = np.std(found, axis=0, ddof=1) / np.sqrt(repeats)
    return np.abs(np.mean(found, axis=0) - truth) / np.maximum(spread, 1e-12)


def _played(world, acceptance, rounds, random):
    counts = world.draw_counts(rounds, acceptance, random)
    return RoundLog(
        world.features,
        None,
        acceptance,
        counts.rejected,
        counts.accepted_positive,
        counts.accepted_negative,
    )


def test_both_estimates_are_right_on_average():
    """Seeded; false-alarm rate with fresh seeds 5e-6 (eight means within 5 standard errors).
    Catches a bias of .003 (5 s.e. + power).
    """
    assert errors_in_standard_errors(one_sided, sides=1, explored=500).max() < 5
    assert errors_in_standard_errors(two_sided, sides=2, explored=0).max() < 5


def test_exploration_rows_would_bias_the_two_sided_estimate():
    """Negative control of the check above: with accept-all rows in the two-sided estimate,
    rejecting looks cheap.
    """
    assert errors_in_standard_errors(two_sided, sides=2, explored=500).max() > 20


def test_the_mixture_is_the_average_of_its_parts():
    """L~ is linear in the policy: what lets a bandit over mixtures be a bandit at all. Exact to
    1e-12.
    """
    world = population("D1")
    parts = [world.hypotheses.bind(world.features, None).hypothesis(h) for h in range(4)]
    weights = (0.1, 0.2, 0.3, 0.4)
    whole = transformed(
        world, Mixture(tuple(parts), weights).acceptance(world.features), TransformedLoss()
    )
    single = [
        transformed(world, h.accepts(world.features).astype(float), TransformedLoss())
        for h in parts
    ]
    assert whole == pytest.approx(float(np.dot(weights, single)), abs=1e-12)
