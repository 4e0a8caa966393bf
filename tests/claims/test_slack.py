"""Lemma B.2: on the exploration sample every hypothesis' gap is within beta of its gap on D, all at
once, with probability 1 - delta.

The paper gives beta as O(sqrt(ln(|H|/delta)) / T^(1/4)) for T0 = Theta(sqrt(T ln(|H|/delta))): an
order, which never claimed a constant. What constant 1 in both would give is measured beside it: it
holds on the populations, and does not for rules that are independent of each other, so that a
learner that has to name a number needs a formula with its constant (joint Hoeffding).
"""

import math

import numpy as np
import pytest
from scipy.stats import binom
from tests.claims.measure import DELTA, POPULATIONS, binomial_limit, detectable, population

from evenhand import theory

NAMES = ("random", "thresholds", "lending", "D1")
PEOPLE = 4000


def deviations(name, samples, people=PEOPLE, seed=3):
    """For each sample: max over H of |empirical gap - true gap|, joint Hoeffding's beta, and the
    paper's beta as printed with constants 1, for the T of which T0 = people.
    """
    world, random = population(name), np.random.default_rng(seed)
    groups = sorted(set(world.group.tolist()))
    table = world.accepts.astype(float)
    negative = world.probability * (1 - world.positive_rate)

    def gap(weight):
        rates = [
            table @ np.where(world.group == g, weight, 0.0) / weight[world.group == g].sum()
            for g in groups
        ]
        return rates[1] - rates[0]

    found, log_size = [], world.hypotheses.log_size
    # T0 = sqrt(T ln(|H|/delta)), so T = T0^2 / ln(|H|/delta)
    horizon = people**2 / (log_size - math.log(DELTA))
    assert theory.paper_exploration_rounds(horizon * (1 - 1e-9), log_size, DELTA) == people
    printed = theory.paper_slack(horizon, log_size, DELTA)
    for _ in range(samples):
        counts = world.draw_counts(people, np.ones(len(world)), random).accepted_negative.astype(
            float
        )
        n = [counts[world.group == g].sum() for g in groups]
        found.append(
            (
                np.abs(gap(counts) - gap(negative)).max(),
                theory.gap_slack(n, log_size, DELTA),
                printed,
            )
        )
    return np.array(found)


def independent_rules(rules=204, horizon=1e6, delta=DELTA):
    """(misses of the paper's beta with constants 1, of joint Hoeffding's): rules that are
    independent coins of rate 1/2, a quarter of the people being negatives of either group. Exact.
    """
    log_size = math.log(rules)
    n = theory.paper_exploration_rounds(horizon, log_size, delta) // 4
    first, second = np.meshgrid(np.arange(n + 1), np.arange(n + 1), indexing="ij")
    chance = binom.pmf(first, n, 0.5) * binom.pmf(second, n, 0.5)
    apart = np.abs(first - second) / n
    betas = theory.paper_slack(horizon, log_size, delta), theory.gap_slack([n, n], log_size, delta)
    return tuple(1 - (1 - float(chance[apart > beta].sum())) ** rules for beta in betas)


def misses(name, samples, factor=1.0):
    found = deviations(name, samples)
    return int((found[:, 0] > factor * found[:, 1]).sum())


@pytest.mark.parametrize("name", NAMES)
def test_the_slack_covers_all_hypotheses_at_once(name):
    """400 samples; more than 35 misses refute delta = .05 with a false-alarm rate of 6e-4 each.
    Catches a miss rate of .126.

    Negative control: beta times .35 (an eighth of the logarithm) misses more often.
    """
    limit = binomial_limit(400, DELTA, 1e-3)
    assert misses(name, 400) <= limit
    assert misses(name, 400, factor=0.35) > limit


def test_the_papers_beta_with_constant_one_holds_on_a_population_and_not_in_general():
    """O(.) claims no constant; constant 1 keeps delta on the random population (400 samples, more
    than 35 misses refute .05 with a false-alarm rate of 6e-4), and misses in 11% for 204
    independent rules (exact). Joint Hoeffding keeps delta for both.
    """
    found = deviations("random", 400)
    assert (found[:, 0] > found[:, 2]).sum() <= binomial_limit(400, DELTA, 1e-3)
    printed, ours = independent_rules()
    assert printed == pytest.approx(0.11, abs=0.01)
    assert ours <= DELTA


@pytest.mark.claims
def test_full(claims):
    """4000 samples for each population: more than 244 misses refute delta (false-alarm rate 1e-3);
    a rate of .071 is caught.
    """
    samples, limit = 4000, binomial_limit(4000, DELTA, 1e-3)
    found = {name: deviations(name, samples) for name in NAMES}
    share = {name: (f[:, 0] > f[:, 1]).mean() for name, f in found.items()}
    printed = {name: (f[:, 0] > f[:, 2]).mean() for name, f in found.items()}
    short = {name: (f[:, 0] > 0.35 * f[:, 1]).mean() for name, f in found.items()}
    independent, ours = independent_rules()
    claims.add(
        f"|empirical - true gap| <= beta for all of H, {samples} samples each (lemma B.2)",
        f"misses <= {limit} for delta = .05 (catches a rate of {detectable(samples, limit):.3f})",
        ", ".join(f"{name} {round(s * samples)}" for name, s in share.items())
        + f"; 204 independent rules {ours:.1%}",
        all(s * samples <= limit for s in share.values()) and ours <= DELTA,
    )
    claims.add(
        "the paper's beta and T0 as printed, with constants 1 (O(.) never claimed a constant)",
        f"misses <= {limit} of {samples} on these populations; above delta for independent rules, "
        "so a number needs a constant",
        ", ".join(f"{name} {s:.1%}" for name, s in printed.items())
        + f"; 204 independent rules {independent:.1%}",
        all(s * samples <= limit for s in printed.values()) and independent > DELTA,
    )
    claims.add(
        "negative control: beta times .35",
        f"refuted: misses > {limit} of {samples}",
        ", ".join(f"{name} {s:.0%}" for name, s in short.items()),
        all(s * samples > limit for s in short.values()),
    )
    assert all(s * samples <= limit for s in share.values())
    assert all(s * samples <= limit for s in printed.values())
    assert all(s * samples > limit for s in short.values())
    assert set(NAMES) <= set(POPULATIONS)
