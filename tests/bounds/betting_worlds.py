"""Small populations with a known truth, and plans and cohorts on them, for the tests of the betting
bound.
"""

from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from evenhand.bounds import BettingBound, Cohort, EpochPlan, Forecast
from evenhand.fairness import FalseNegativeRate, FalsePositiveRate, SelectionRate

FPR, FNR, SR = FalsePositiveRate(), FalseNegativeRate(), SelectionRate()


def added(bound, state, cohort, plan):
    """The state with a cohort in its sums, from which nothing is concluded yet."""
    return state.with_cohort(bound.rates, cohort, plan.bets, plan.inverse_share)


def concluded(bound, state):
    """What the sums of a state say about rates and gaps."""
    return state.narrowed(bound.group_thresholds, bound.pair_thresholds, bound.founders)


@dataclass(frozen=True, eq=False)
class World:
    """Context i has share[i], P[y = +1 | i] = positive_rate[i] and a group code; accepts (M, n)."""

    share: np.ndarray
    positive_rate: np.ndarray
    group: np.ndarray
    accepts: np.ndarray

    @property
    def groups(self):
        return tuple(range(int(self.group.max()) + 1))

    def truth(self, rates):
        """P(h accepts | group, in the denominator): (M, R, G)."""
        result = np.zeros((len(self.accepts), len(rates), len(self.groups)))
        for (r, rate), j in product(enumerate(rates), self.groups):
            negative, positive = rate.in_denominator(np.array([-1, 1]))
            mass = (
                self.share
                * (negative * (1 - self.positive_rate) + positive * self.positive_rate)
                * (self.group == j)
            )
            result[:, r, j] = self.accepts @ mass / mass.sum()
        return result

    def gaps(self, bound):
        """The true gaps of the rates as the user knows them: (M, R, pairs)."""
        f = self.truth(bound.rates)
        sign = np.array([rate.sign for rate in bound.rates])[:, None]
        return np.stack([f[:, :, j] - f[:, :, i] for j, i in bound.pairs], axis=-1) * sign

    def draw(self, rounds, acceptance, generator):
        """(people, accepted, positive) counts per context."""
        people = generator.multinomial(rounds, self.share)
        accepted = generator.binomial(people, acceptance)
        return people, accepted, generator.binomial(accepted, self.positive_rate)

    def cohort(self, rounds, acceptance, regression, generator):
        """A closed cohort with all labels."""
        people, accepted, positive = self.draw(rounds, acceptance, generator)
        return Cohort(
            self.accepts,
            self.group,
            acceptance=acceptance,
            regression=regression,
            rejected=people - accepted,
            positive=positive,
            negative=accepted - positive,
        )


def random_world(seed, groups=2, contexts_per_group=2, hypotheses=2):
    r = np.random.default_rng(seed)
    contexts = groups * contexts_per_group
    return World(
        r.dirichlet(np.ones(contexts) * 2),
        r.uniform(0.1, 0.9, contexts),
        np.repeat(np.arange(groups), contexts_per_group),
        r.random((hypotheses, contexts)) < 0.5,
    )


def random_plan(bound, truth, r):
    """A legal plan with wild numbers; the first bet is too large for every class."""
    shape = truth.shape
    c = 1 / r.uniform(0.02, 1, shape[1:])
    cap = 2.0 / c.max(axis=1)[:, None]
    bets = -np.sort(-r.uniform(0.005, 1, (shape[0], shape[1], len(bound.horizons))) * cap, axis=2)
    bets[..., 0] = cap[:, 0]
    return EpochPlan(c, bets, 0.0, len(bets))


def random_cohort(world, r, rows=30, most=5):
    """Rows that need not come from any population: few labels, or many, at probabilities down to
    .01, with a wild regression.
    """
    at = r.integers(0, len(world.share), rows)
    acceptance = r.choice([0.01, 0.05, 0.3, 0.9, 1.0], rows)
    counts = r.integers(0, most, (4, rows)) * (r.random((4, rows)) < r.uniform(0.05, 0.9, (4, 1)))
    return Cohort(
        world.accepts[:, at],
        np.where(r.random(rows) < 0.1, -1, world.group[at]),
        acceptance=acceptance,
        regression=r.choice([0.0, 0.2, 0.5, 1.0], rows),
        rejected=np.where(acceptance == 1, 0, counts[0]),
        positive=counts[1],
        negative=counts[2],
        unresolved=counts[3],
    )


def single(
    world,
    row,
    *,
    acceptance,
    regression,
    group=None,
    rejected=0,
    positive=0,
    negative=0,
    unresolved=0,
):
    """One round in context `row`."""
    return Cohort(
        world.accepts[:, [row]],
        [world.group[row] if group is None else group],
        acceptance=acceptance,
        regression=regression,
        rejected=rejected,
        positive=positive,
        negative=negative,
        unresolved=unresolved,
    )


def lifetime(bound, world, policy, regression, rounds, r, first=300, growth=1.5):
    """Play epochs and yield the intervals after each; policy(epoch) and regression(epoch) know no
    data, so they are predictable.
    """
    state, seen, played, epoch, size = bound.start(), np.zeros(len(world.share)), 0, 0, first
    while played < rounds:
        acceptance, m = policy(epoch), regression(epoch)
        forecast = Forecast(
            world.accepts, world.group, weight=seen, acceptance=acceptance, regression=m
        )
        plan = bound.plan(state, forecast if epoch else None)
        cohort = world.cohort(min(size, rounds - played), acceptance, m, r)
        state = bound.update(state, cohort, plan)
        seen, played, epoch, size = (
            seen + cohort.rounds,
            played + int(cohort.rounds.sum()),
            epoch + 1,
            int(size * growth),
        )
        yield bound.intervals(state)


def covers(intervals, gaps):
    return bool(
        ((intervals.lower <= gaps) & (gaps <= intervals.upper)).all()
        and not intervals.contradiction.any()
    )


def small_bound(world, rates=(FPR,), horizons=(30.0, 3000.0), delta=0.05):
    return BettingBound(world.groups, rates, len(world.accepts), delta, horizons=horizons)


def dropping_unresolved(cohort):
    return replace(cohort, unresolved=np.zeros(len(cohort)))
