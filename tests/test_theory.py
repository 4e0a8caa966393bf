"""Every bound against the statement it is a bound of, computed the long way round."""

import json
import math
import re
from collections.abc import Callable
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom, multinomial

from evenhand import theory
from evenhand.environments import (
    Discrete,
    LowerBound,
    lending,
    random_population,
    threshold_population,
)
from evenhand.errors import InvalidInput

LOG_204 = math.log(204)
DOCS = Path(__file__).parents[1] / "docs" / "paper" / "theory.md"


def exact_miss(n: int, m: int, rate: float, slack: float) -> float:
    """P(|mean of n coins - mean of m coins| > slack), by summing over all outcomes."""
    first, second = np.meshgrid(np.arange(n + 1), np.arange(m + 1), indexing="ij")
    outcome = binom.pmf(first, n, rate) * binom.pmf(second, m, rate)
    return float(outcome[np.abs(first / n - second / m) > slack].sum())


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.8])
@pytest.mark.parametrize(("n", "m"), [(20, 30), (100, 40), (300, 300)])
def test_gap_slack_covers_each_hypothesis_with_its_share_of_delta(
    n: int, m: int, rate: float
) -> None:
    slack = theory.gap_slack([n, m], math.log(10), 0.05)
    assert exact_miss(n, m, rate, slack) <= 0.05 / 10


def test_constant_one_in_the_papers_order_is_not_enough_for_independent_rules() -> None:
    """O(.) claims no constant. With constant 1, 204 independent hypotheses of rate 1/2 and groups
    of 1/4 negatives each miss with more than delta; joint Hoeffding does not.
    """
    horizon, delta = 1e6, 0.05
    negatives = theory.paper_exploration_rounds(horizon, LOG_204, delta) // 4
    one = exact_miss(negatives, negatives, 0.5, theory.paper_slack(horizon, LOG_204, delta))
    assert 1 - (1 - one) ** 204 > 1.5 * delta
    right = exact_miss(
        negatives, negatives, 0.5, theory.gap_slack([negatives, negatives], LOG_204, delta)
    )
    assert 1 - (1 - right) ** 204 <= delta


@pytest.mark.parametrize("masses", [(0.25, 0.25), (0.05, 0.4)])
def test_exploration_rounds_is_the_first_number_whose_expected_counts_suffice(
    masses: tuple[float, float],
) -> None:
    rounds = theory.exploration_rounds(masses, LOG_204, 0.05, slack=0.1)
    enough = [
        2 * theory.gap_slack([t * p for p in masses], LOG_204, 0.05) <= 0.1
        for t in (rounds - 1, rounds)
    ]
    assert enough == [False, True]


def test_exploration_of_the_named_populations_for_a_slack_of_a_tenth() -> None:
    """About 12,000 to 17,000, whatever the population."""
    found = {}
    for name, population in (
        ("random", random_population(0)),
        ("thresholds", threshold_population()),
    ):
        negative = population.probability * (1 - population.positive_rate)
        masses = [negative[population.group == j].sum() for j in (-1, 1)]
        found[name] = theory.exploration_rounds(
            masses, population.hypotheses.log_size, 0.05, slack=0.1
        )
    assert found == {"random": 12402, "thresholds": 16536}


def test_tradeoff_rounds_are_the_paper_at_a_quarter_and_half_the_horizon_at_most() -> None:
    assert theory.tradeoff_rounds(1e6, 0.25, LOG_204, 0.05) == math.ceil(
        1000 * math.sqrt(math.log(2 * 204 / 0.05))
    )
    assert theory.tradeoff_rounds(1e6, 0.5, LOG_204, 0.05) == 500_000


@pytest.mark.parametrize("exponent", [0.25, 0.3, 0.4])
def test_the_printed_exploration_and_slack_belong_together(exponent: float) -> None:
    """With constants 1, beta sqrt(T0) = ln(|H|/delta)^(3/4) whatever T and alpha are."""
    for horizon in (1e6, 1e9):
        rounds = theory.paper_exploration_rounds(horizon, LOG_204, 1e-3, exponent)
        slack = theory.paper_slack(horizon, LOG_204, 1e-3, exponent)
        expected = (LOG_204 - math.log(1e-3)) ** 0.75
        assert slack * math.sqrt(rounds) == pytest.approx(expected, rel=1e-3)
    assert theory.paper_exploration_rounds(1e6, LOG_204, 1e-3, 0.5) == 500_000


def test_policy_cover_covers_all_pairs() -> None:
    resolution, size = 0.07, 3
    steps = math.ceil(1 / (2 * resolution))
    weights = (np.arange(steps) + 0.5) / steps
    cover = [(i, j, w) for i in range(size) for j in range(i + 1, size) for w in weights]
    assert len(cover) <= theory.policy_cover_size(math.log(size), resolution)
    for w in np.linspace(0, 1, 501):
        assert min(abs(w - v) for v in weights) <= resolution + 1e-12


def fair_weights(first: float, second: float, limit: float) -> tuple[float, float]:
    """The ends of {w : |w first + (1 - w) second| <= limit}, gaps of opposite signs."""
    ends = sorted((sign * limit - second) / (first - second) for sign in (-1, 1))
    return max(ends[0], 0.0), min(ends[1], 1.0)


def test_a_grid_of_weights_is_no_subset_of_the_fair_pairs_and_with_the_ends_it_is() -> None:
    """Pi_eta must be a subset of Pi: a pair with gaps .9 and -.85 and limit .01 has fair weights in
    [.480, .491], where a grid of tenths has none.
    """
    resolution = 0.1
    low, high = fair_weights(0.9, -0.85, 0.01)
    assert (round(low, 3), round(high, 3)) == (0.480, 0.491)
    grid = np.arange(0, 1 + resolution / 2, resolution)
    assert not ((grid >= low) & (grid <= high)).any()
    with_ends = np.r_[grid[(grid >= low) & (grid <= high)], low, high]
    for weight in np.linspace(low, high, 101):
        assert np.abs(with_ends - weight).min() <= resolution


def claim_3_7(factor: float) -> float:
    """The largest |V(pi) - V(pi')| over `factor` times the bound of claim 3.7, among mixtures of
    the same pair whose weights are eta apart: random P, and one that is as one-sided as it can be.
    """
    draw = np.random.default_rng(0)
    worst = 0.0
    for _ in range(400):
        floor, resolution = draw.uniform(0.01, 0.5), draw.uniform(0.001, 0.4)
        share = draw.dirichlet(np.ones(6))
        accepted = draw.choice([0.0, 1.0, draw.random()], 6)  # Q(+1 | x)
        smoothed = floor + (1 - 2 * floor) * np.array([accepted, 1 - accepted])
        rules = draw.integers(0, 2, (2, 6))
        v = [float(share @ np.where(rule, 1 / smoothed[0], 1 / smoothed[1])) for rule in rules]
        weight = draw.uniform(0, 1 - resolution)
        mixed = [w * v[0] + (1 - w) * v[1] for w in (weight, weight + resolution)]
        worst = max(
            worst,
            abs(mixed[0] - mixed[1]) / (factor * theory.cover_error(resolution, floor)),
            resolution
            * (1 / floor - 1 / (1 - floor))
            / (factor * theory.cover_error(resolution, floor)),
        )
    return worst


def test_claim_3_7_holds_for_mixtures_of_a_pair() -> None:
    """Exact. Negative control: a bound that has lost a factor of 4 fails."""
    assert claim_3_7(1.0) <= 1
    assert claim_3_7(0.25) > 1


def test_the_schedule_is_the_printed_one() -> None:
    cover = theory.policy_cover_size(math.log(4), 1 / 100**2)
    assert cover == 16 * 100**2
    log_term = math.log(cover * 100 / 0.05)
    assert theory.log_policies(100, math.log(4), 0.05) == pytest.approx(log_term, rel=1e-12)
    assert theory.exploration_floor(1e6, 100, math.log(4), 0.05) == pytest.approx(
        3.2 * log_term / 1000, rel=1e-12
    )
    assert theory.exploration_floor(1, 100, math.log(4), 0.05) == 0.5


def normalised_cost(
    generator: np.random.Generator, floor: float, scale: float, rows: int = 50
) -> float:
    """sum |c^{+1} - c^{-1}| of the costs with which Algorithm 1 calls the oracle, over psi mu^2."""
    smoothed = generator.choice([floor, 1 - floor], rows)
    logged, accepted = floor, generator.random(rows) < 0.5
    estimated = (generator.random(rows) < 0.9) / (logged * rows * scale * floor)
    accept = -1 / (rows * smoothed) + np.where(accepted, estimated, 0)
    reject = -1 / (rows * (1 - smoothed)) + np.where(accepted, 0, estimated)
    return float(np.abs(accept - reject).sum()) * scale * floor**2


def test_oracle_costs_exceed_the_papers_total_and_keep_ours() -> None:
    floor, horizon = 0.2, 1e6
    scale = theory.regret_scale(horizon)
    generator = np.random.default_rng(0)
    totals = [normalised_cost(generator, floor, scale) for _ in range(200)]
    ours = theory.variance_slack(1e-6, floor, horizon) / theory.oracle_slack(1e-6, floor, horizon)
    assert ours == pytest.approx(1 + scale * floor)
    assert 1 < max(totals) <= ours


Predicate = Callable[[np.ndarray], float]


def plain_coordinate_descent(
    floor: float, labels: int, budget: np.ndarray, contexts: int
) -> list[float]:
    """Algorithm 1 over all deterministic policies of a few equally likely contexts; the potential
    after each step.
    """
    policies = np.array(list(product([0.0, 1.0], repeat=contexts)))
    weights = np.zeros(len(policies))
    potentials = []
    while True:
        total = float(weights @ (2 * labels + budget))
        weights = weights * (2 * labels / total) if total > 2 * labels else weights
        accept = floor + (1 - labels * floor) * weights @ policies
        reject = floor + (1 - labels * floor) * weights @ (1 - policies)
        potentials.append(potential(weights, accept, reject, floor, labels, budget))
        value = (policies / accept + (labels == 2) * (1 - policies) / reject).mean(axis=1)
        square = (policies / accept**2 + (labels == 2) * (1 - policies) / reject**2).mean(axis=1)
        excess = value - (2 * labels + budget)
        worst = int(np.argmax(excess))
        if excess[worst] <= 0:
            return potentials
        weights[worst] += (value[worst] + excess[worst]) / (
            2 * (1 - labels * floor) * square[worst]
        )


def potential(
    weights: np.ndarray,
    accept: np.ndarray,
    reject: np.ndarray,
    floor: float,
    labels: int,
    budget: np.ndarray,
) -> float:
    if labels == 1:
        return float(-np.log(accept).mean() / (1 - floor) + weights @ (1 + budget / 2))
    entropy = sum((0.5 * np.log(0.5 / q) + q - 0.5).mean() for q in (accept, reject))
    return float(entropy / (1 - 2 * floor) + weights @ budget / 4)


@pytest.mark.parametrize("labels", [1, 2])
@pytest.mark.parametrize("floor", [0.01, 0.05, 0.2])
def test_coordinate_descent_halts_within_the_cap_and_the_potential_falls_as_stated(
    floor: float, labels: int
) -> None:
    budget = np.random.default_rng(1).exponential(2.0, 2**5)
    budget[0] = 0.0
    potentials = plain_coordinate_descent(floor, labels, budget, 5)
    assert len(potentials) - 1 <= theory.iteration_cap(floor, labels)
    assert potentials[0] <= math.log(1 / (labels * floor)) / (1 - labels * floor) + 1e-12
    assert min(potentials) >= 0
    falls = -np.diff(potentials)
    assert (falls >= floor / (4 * (1 - labels * floor)) - 1e-12).all()


def test_the_papers_fall_of_the_potential_is_too_large() -> None:
    """Negative control: a step does not always lower the potential by 1 / (4 (1 - 2 mu))."""
    budget = np.random.default_rng(1).exponential(2.0, 2**5)
    potentials = plain_coordinate_descent(0.01, 2, budget, 5)
    assert len(potentials) > 2
    assert (-np.diff(potentials)).min() < 1 / (4 * (1 - 2 * 0.01))


def test_the_printed_low_regret_lemma_fails_once_q_is_completed() -> None:
    """Q = 0 but for weight w = 4 / (4 + b) on one policy meets the program; completed, sum Q (4 +
    b) = 8 - 4 w > 4.
    """
    budget = 12.0
    weight = 4 / (4 + budget)
    assert weight * (4 + budget) + (1 - weight) * 4 == pytest.approx(8 - 4 * weight)
    assert 8 - 4 * weight > 4 + theory.oracle_slack(1e-6, 0.1, 1e6)
    assert weight * budget <= 4


def induction_step(
    horizon: float, t: int, log_size: float = LOG_204, clipped: bool = True
) -> tuple[float, float]:
    """What the induction of lemma 3.10 arrives at in round t, and epsilon_t, both over ln(|Pi_eta|
    T / delta).
    """
    log_term = theory.log_policies(horizon, log_size, 0.05)
    earlier = 1000 * (1 / np.sqrt(np.arange(1, t))).sum()
    floor = (
        theory.exploration_floor(t, horizon, log_size, 0.05)
        if clipped
        else 3.2 * log_term / math.sqrt(t)
    )
    rate = floor / 3.2
    deviation = 190 * (math.e - 2) * rate / log_term + (log_term + math.log(4)) / log_term / (
        t * rate
    )
    return 2 / (math.log(horizon) * t) * earlier + 4 * deviation, 1000 / math.sqrt(t)


@pytest.mark.parametrize("horizon", [149, 1_000, 8_000, 9_000, 1e5, 1e6])
@pytest.mark.parametrize("size", [2, 204, 1e9])
def test_the_induction_behind_epsilon_holds(horizon: float, size: float) -> None:
    start = min(theory.first_analysed_round(horizon, math.log(size), 0.05), horizon - 1)
    for t in np.unique(np.geomspace(start, horizon, 40).astype(int)):
        reached, allowed = induction_step(horizon, int(t), math.log(size))
        assert reached <= allowed


def test_the_printed_last_line_of_the_induction_fails_without_clipping_mu() -> None:
    """Negative control: ln T = 6 is allowed by the paper; with its unclipped mu_t the line does not
    close, from 100/11 on it does.
    """
    for log_horizon, closes in ((6.0, False), (9.5, True)):
        reached, allowed = induction_step(
            math.exp(log_horizon), int(math.exp(log_horizon)), clipped=False
        )
        assert bool(reached <= allowed) is closes


@pytest.mark.parametrize("rounds", [1e3, 1e5, 1e9])
@pytest.mark.parametrize("log_cover", [5.0, 40.0])
def test_lemma_3_8_is_the_special_case_of_lemma_b_7(rounds: float, log_cover: float) -> None:
    """At the smallest mu that lemma 3.8 allows, and above it, the middle terms are within 162.6;
    at half of it they are not.
    """
    delta, resolution = 0.01, 1e-9
    term = math.log(2) + log_cover + 2 * math.log(rounds) - math.log(delta)
    assert rounds >= 8 * term
    smallest = math.sqrt(term / (2 * rounds))

    def middle(floor: float) -> float:
        whole = theory.variance_bound(0.0, rounds, floor, log_cover, delta, resolution)
        return whole - 2 * theory.cover_error(resolution, floor)

    for floor in np.geomspace(smallest, 0.5, 20):
        assert middle(float(floor)) <= 162.6
    if log_cover == 40.0:
        assert middle(smallest / 2) > 162.6


def variance_misses(bound: Callable[[float], float], samples: int = 300) -> int:
    """In how many samples of t = 200 some V(P, pi, mu) exceeds bound(V_hat): two contexts, one of
    them rare and hardly ever accepted there, and all four rules.
    """
    draw, rounds, floor = np.random.default_rng(1), 200, 5e-4
    share = np.array([0.99, 0.01])
    accepted = np.array([0.5, 0.0])
    smoothed = floor + (1 - 2 * floor) * np.array([1 - accepted, accepted])
    missed = 0
    for _ in range(samples):
        seen = draw.multinomial(rounds, share) / rounds
        missed += any(
            (share * inverse).sum() > bound(float((seen * inverse).sum()))
            for rule in product([0, 1], repeat=2)
            for inverse in [1 / smoothed[list(rule), [0, 1]]]
        )
    return missed


def test_lemma_b_7_covers_a_context_that_was_not_seen() -> None:
    """300 samples, none missed. Negative controls: 6.4 V_hat alone misses whenever the rare context
    was not seen (13%), V_hat itself about every second time.
    """

    def printed(empirical: float) -> float:
        return theory.variance_bound(empirical, 200, 5e-4, math.log(4), 0.05, 1e-9)

    assert variance_misses(printed) == 0
    assert variance_misses(lambda empirical: 6.4 * empirical) > 20
    assert variance_misses(lambda empirical: empirical) > 100


def freedman_miss(
    chance: Callable[[float], float], rate: float, delta: float, constant: float = math.e - 2
) -> float:
    """P[sum > constant lambda V + ln(1/delta)/lambda], exactly, over all paths of 14 steps: +1 with
    probability p, else -p/(1 - p), p depending on the sum so far.
    """
    paths = [(1.0, 0.0, 0.0)]
    for _ in range(14):
        later = []
        for weight, total, variance in paths:
            p = chance(total)
            more = variance + p / (1 - p)
            later.append((weight * p, total + 1, more))
            later.append((weight * (1 - p), total - p / (1 - p), more))
        paths = later
    return sum(
        weight
        for weight, total, variance in paths
        if total > constant * rate * variance - math.log(delta) / rate
    )


@pytest.mark.parametrize("delta", [0.3, 0.05])
@pytest.mark.parametrize("rate", [0.2, 0.5, 1.0])
def test_freedmans_inequality_on_martingales_that_look_at_their_past(
    rate: float, delta: float
) -> None:
    """Lemma B.8, by enumeration: R = 1."""
    for chance in (lambda _: 0.5, lambda _: 0.1, lambda total: 0.6 if total > 0 else 0.2):
        assert freedman_miss(chance, rate, delta) <= delta
    assert theory.freedman_bound(7.0, delta, rate) == pytest.approx(
        (math.e - 2) * rate * 7 + math.log(1 / delta) / rate
    )


def test_freedmans_inequality_fails_with_a_smaller_constant() -> None:
    """Negative control: .2 instead of e - 2, on 400 fair coins (exact binomial tail)."""
    flips, rate, delta = 400, 0.24, 0.01
    for constant, misses in ((math.e - 2, False), (0.2, True)):
        limit = constant * rate * flips + math.log(1 / delta) / rate
        heads = (flips + limit) / 2
        assert bool(binom.sf(math.floor(heads), flips, 0.5) > delta) is misses


def loss_misses(weighted: bool, logs: int = 200) -> tuple[int, float]:
    """In how many logs some |L - L_hat| exceeds the first line of the proof of lemma 3.9, Freedman
    with the true V and a union over the policies; and that delta. Two-sided estimates of all rules
    on three contexts, 4,000 rounds each.
    """
    draw, rounds, floor, delta = np.random.default_rng(2), 4000, 0.1, 0.05
    share, good = np.array([0.5, 0.3, 0.2]), np.array([0.8, 0.5, 0.3])
    accept = floor + (1 - 2 * floor) * np.array([0.9, 0.5, 0.05])
    rules = np.array(list(product([0.0, 1.0], repeat=3)))
    loss = rules @ (share * (1 - good)) + (1 - rules) @ (share * 0.5)
    variance = rules @ (share / accept) + (1 - rules) @ (share / (1 - accept))
    log_term = math.log(2 * len(rules) / delta)
    rate = np.minimum(floor, np.sqrt(log_term / ((math.e - 2) * variance * rounds)))
    allowed = (math.e - 2) * rate * variance + log_term / (rate * rounds)
    missed = 0
    for _ in range(logs):
        context = draw.choice(3, rounds, p=share)
        taken = draw.random(rounds) < accept[context]
        label = draw.random(rounds) < good[context]
        chance = np.where(taken, accept[context], 1 - accept[context]) if weighted else 0.5
        cost = np.where(taken, ~label, 0.5) / chance
        agree = rules[:, context] == taken
        missed += bool((np.abs((agree * cost).mean(axis=1) - loss) > allowed).any())
    return missed, delta


def test_the_deviation_behind_lemma_3_9_covers_all_policies_at_once() -> None:
    """200 logs; more than 20 misses refute delta = .05 with a false-alarm rate of 1e-3. Negative
    control: without importance weights nearly every log misses. And 188.2 = 6.4 x 4 + 162.6.
    """
    missed, delta = loss_misses(weighted=True)
    assert missed <= binom.ppf(1 - 1e-3, 200, delta)
    assert loss_misses(weighted=False)[0] > 150
    assert pytest.approx(188.2) == 6.4 * 4 + 162.6
    assert theory.loss_deviation(1e4, 59.0, 0.05, 3.0) == pytest.approx(
        (math.e - 2) * 0.05 * 191.2 + 59 / (0.05 * 1e4)
    )


def test_the_first_analysed_round_is_where_the_variance_lemma_begins_for_good() -> None:
    horizon, delta = 1e5, 0.05
    start = theory.first_analysed_round(horizon, LOG_204, delta)
    cover = 204**2 * horizon**2
    last = 8 * math.log(2 * cover * horizon**2 / delta)
    assert start - 1 < last <= start


@pytest.mark.parametrize("horizon", [1e4, 1e6])
def test_regret_bound_dominates_the_sum_over_rounds_and_wastes_little(horizon: float) -> None:
    delta = horizon**-0.5
    t = np.arange(1, int(horizon))
    log_term = math.log(204**2 * horizon**3 / delta)
    floor = np.minimum(0.5, 3.2 * log_term / np.sqrt(t))
    scale = 4 * (math.e - 2) * math.log(horizon)
    slack = 1 / horizon / (scale * floor**2)
    unclipped = 3.2 * log_term / np.sqrt(t)
    total = float(
        (2 * scale * unclipped * (4 + slack) + 2 * unclipped + 1000 * log_term / np.sqrt(t)).sum()
    )
    bound = theory.bandit_regret_bound(horizon, LOG_204, delta)
    assert total <= bound <= 1.05 * total
    assert theory.regret_bound(horizon, LOG_204, delta, 1000) == pytest.approx(
        1000 + 2 * bound + delta * horizon
    )


@pytest.mark.parametrize("horizon", [1e4, 1e6, 1e7])
def test_uniform_and_idle_rounds_are_the_last_of_their_kind(horizon: float) -> None:
    delta = 0.05

    def floor(t: float) -> float:
        return theory.exploration_floor(t, horizon, LOG_204, delta)

    uniform = theory.uniform_rounds(horizon, LOG_204, delta)
    assert floor(uniform) == 0.5 > floor(uniform + 1)
    idle = theory.idle_rounds(horizon, LOG_204, delta)
    assert 1 / floor(idle) <= 4 < 1 / floor(idle + 1)
    assert theory.idle_rounds(horizon, LOG_204, delta, labels=1) == uniform


def test_the_vacuous_ranges_that_the_design_quotes() -> None:
    assert theory.uniform_rounds(1e4, math.log(4), 0.01) == 50_201
    assert theory.uniform_rounds(1e6, LOG_204, 1e-3) == 142_535
    assert theory.idle_rounds(1e6, LOG_204, 1e-3) == 570_143
    assert theory.informative_horizon(LOG_204) == pytest.approx(1.8214e12, rel=1e-3)


def test_informative_places_are_where_the_bounds_cross() -> None:
    first = theory.informative_round(1e6, LOG_204, 1e-3)
    assert (
        theory.estimation_error(first, 1e6, LOG_204, 1e-3)
        < 1
        <= theory.estimation_error(first - 1, 1e6, LOG_204, 1e-3)
    )
    horizon = theory.informative_horizon(LOG_204)
    for factor, informative in ((1.001, True), (0.999, False)):
        place = horizon * factor
        assert (theory.regret_bound(place, LOG_204, place**-0.5, 0) < place) is informative


@pytest.mark.parametrize("gap", [1 / 16, 0.03, 1e-3])
def test_kl_divergence_is_the_sum_over_the_table(gap: float) -> None:
    first, second = (
        LowerBound(1, gap).population_sample().weight,
        LowerBound(2, gap).population_sample().weight,
    )
    seen = first > 0
    direct = float((first[seen] * np.log(first[seen] / second[seen])).sum())
    assert theory.kl_divergence(gap) == pytest.approx(direct, rel=1e-9)
    assert direct <= theory.kl_bound(gap)


def exact_distance(gap: float, rounds: int) -> float:
    """Total variation of `rounds` draws of D1 and D2; a draw says nothing (3/4), speaks for D1, or
    for D2.
    """
    speaks = (1 + 8 * gap) / 8
    counts = np.array(
        [(i, j, rounds - i - j) for i in range(rounds + 1) for j in range(rounds + 1 - i)]
    )
    one = multinomial.pmf(counts, rounds, [speaks, 0.25 - speaks, 0.75])
    two = multinomial.pmf(counts, rounds, [0.25 - speaks, speaks, 0.75])
    return float(np.abs(one - two).sum() / 2)


@pytest.mark.parametrize("gap", [1 / 16, 0.02])
@pytest.mark.parametrize("rounds", [1, 5, 40])
def test_pinsker_bounds_the_exact_distance_of_so_many_people(gap: float, rounds: int) -> None:
    """Lemma 4.2 (one person) and corollary 4.3. Negative control: a third of it is exceeded."""
    distance = exact_distance(gap, rounds)
    assert distance <= theory.distinguishing_advantage(gap, rounds)
    assert exact_distance(gap, 1) > theory.distinguishing_advantage(gap, 1) / 3


@pytest.mark.parametrize(("gap", "advantage"), [(1 / 16, 0.9), (0.03, 0.3), (0.02, 0.12)])
def test_nobody_tells_the_two_distributions_apart_before_round_k(
    gap: float, advantage: float
) -> None:
    rounds = math.floor(theory.indistinguishable_rounds(gap, advantage))
    assert rounds >= 1
    assert exact_distance(gap, rounds) <= advantage


def test_the_regret_lower_bound_is_the_papers_arithmetic() -> None:
    gap, delta = 0.01, 0.05
    assert theory.regret_lower_bound(gap, delta) == pytest.approx(
        0.01**2 / (32 * gap**2) * (0.49 - 0.1) * 0.27
    )


def test_the_sharp_lower_bound_is_below_the_sum_it_comes_from() -> None:
    gap, delta = 0.01, 0.05
    earlier = np.arange(200_000)
    constants = np.maximum(0.5 - 2 * delta - np.sqrt(earlier * theory.kl_divergence(gap) / 2), 0)
    total = float(constants.sum() * (0.25 + 2 * gap))
    assert total / 1.05 <= theory.sharp_regret_lower_bound(gap, delta) <= total
    assert theory.sharp_regret_lower_bound(gap, delta) > 900 * theory.regret_lower_bound(gap, delta)


def binary_kl(q: float, delta: float) -> float:
    return q * math.log(q / delta) + (1 - q) * math.log((1 - q) / (1 - delta))


@pytest.mark.parametrize("delta", [0.05, 1e-3])
def test_the_confident_lower_bound_is_below_the_sum_it_comes_from(delta: float) -> None:
    """q_s by bisection, round by round."""
    gap = 0.02
    total, rounds = 0.0, 0
    while True:
        low, high = delta, 1 - 1e-12
        while high - low > 1e-10:
            middle = (low + high) / 2
            known = binary_kl(middle, delta) <= rounds * theory.kl_divergence(gap)
            low, high = (middle, high) if known else (low, middle)
        if low >= 1 - delta:
            break
        total += (1 - delta - low) * (1 / 8 + 1.5 * gap)
        rounds += 1
    bound = theory.confident_regret_lower_bound(gap, delta)
    assert total / 1.1 <= bound <= total
    assert rounds - 1 <= binary_kl(1 - delta, delta) / theory.kl_divergence(gap)
    assert bound > 8 * theory.sharp_regret_lower_bound(gap, delta)


def test_lower_bound_horizons() -> None:
    assert [round(theory.lower_bound_horizon(a)) for a in (1 / 4, 1 / 3)] == [65_536, 4_096]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: theory.gap_slack([10], 1.0, 0.1), "two groups"),
        (lambda: theory.gap_slack([10, 0], 1.0, 0.1), "above 0"),
        (lambda: theory.gap_slack([10, 10], math.inf, 0.1), "growth function"),
        (lambda: theory.gap_slack([10, 10], 1.0, 0.0), "delta is 0.0"),
        (lambda: theory.exploration_rounds([0.1, 0.1], 1.0, 0.1, 0.0), "slack is 0.0"),
        (lambda: theory.exploration_rounds([0.1], 1.0, 0.1, 0.1), "two groups"),
        (lambda: theory.exploration_rounds([0.1, 1.5], 1.0, 0.1, 0.1), "1.5"),
        (lambda: theory.tradeoff_rounds(1e5, 0.2, 1.0, 0.1), r"\[1/4, 1/2\]"),
        (lambda: theory.tradeoff_rounds(0.5, 0.3, 1.0, 0.1), "horizon"),
        (lambda: theory.paper_slack(1e5, 1.0, 0.1, 0.6), r"\[1/4, 1/2\]"),
        (lambda: theory.paper_exploration_rounds(1e5, 1.0, 0.1, 0.2), r"\[1/4, 1/2\]"),
        (lambda: theory.saddle_point_calls(0.0), "oracle_tolerance"),
        (lambda: theory.saddle_point_calls(0.1, budget=-1.0), "budget"),
        (lambda: theory.exploration_floor(0, 1e5, 1.0, 0.1), "rounds"),
        (lambda: theory.oracle_slack(0.0, 0.1, 1e5), "oracle_tolerance"),
        (lambda: theory.oracle_slack(0.1, 0.6, 1e5), "floor is 0.6"),
        (lambda: theory.iteration_cap(0.1, labels=3), "labels is 3"),
        (lambda: theory.iteration_cap(0.6), "floor is 0.6"),
        (lambda: theory.estimation_error(10, 100, 1.0, 0.1), "149"),
        (lambda: theory.regret_bound(1e5, 1.0, 0.1, 2e5), "horizon"),
        (lambda: theory.informative_horizon(1.0, 0.4), "1/3"),
        (lambda: theory.lower_bound_horizon(0.5), "alpha"),
        (lambda: theory.kl_divergence(0.07), "1/16"),
        (lambda: theory.indistinguishable_rounds(0.01, 0), "advantage"),
        (lambda: theory.regret_lower_bound(0.01, 0.245), "0.245"),
        (lambda: theory.sharp_regret_lower_bound(0.01, 0.25), "1/4"),
        (lambda: theory.confident_regret_lower_bound(0.01, 0.5), "1/2"),
        (lambda: theory.cover_error(0.0, 0.1), "resolution"),
        (lambda: theory.variance_bound(1.0, 10, 0.6, 1.0, 0.1, 0.1), "floor is 0.6"),
        (lambda: theory.freedman_bound(1.0, 0.1, 0.0), "rate"),
        (lambda: theory.loss_deviation(0.0, 1.0, 0.1), "rounds"),
        (lambda: theory.saddle_point_error(0.1, -1), "total_weight"),
        (lambda: theory.policy_cover_size(1.0, 0), "resolution"),
        (lambda: theory.distinguishing_advantage(0.01, -1), "rounds is -1"),
    ],
)
def test_arguments_out_of_range_are_refused_by_name(call: Callable[[], object], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        call()


def test_saddle_point_error() -> None:
    assert theory.saddle_point_error(0.01, 50.0) == pytest.approx(2.0)


def vacuity_row(horizon: float) -> str:
    delta = horizon**-0.5
    cells = [
        f"1e{round(math.log10(horizon))}",
        f"{theory.paper_exploration_rounds(horizon, LOG_204, delta):,}",
        f"{theory.tradeoff_rounds(horizon, 0.25, LOG_204, delta):,}",
        f"{theory.uniform_rounds(horizon, LOG_204, delta):,}",
        f"{theory.idle_rounds(horizon, LOG_204, delta):,}",
        f"{theory.exploration_floor(horizon, horizon, LOG_204, delta):.3f}",
        f"{theory.estimation_error(horizon, horizon, LOG_204, delta):.3g}",
        f"{theory.regret_bound(horizon, LOG_204, delta, 0) / horizon:.3g}",
    ]
    return "| " + " | ".join(cells) + " |"


@pytest.mark.parametrize("horizon", [1e4, 1e5, 1e6, 1e7, 1e8])
def test_the_table_in_the_docs_is_what_the_functions_say(horizon: float) -> None:
    assert vacuity_row(horizon) in DOCS.read_text(encoding="utf-8")


def test_the_docs_name_every_public_function() -> None:
    text = DOCS.read_text(encoding="utf-8")
    public = [
        n
        for n, f in vars(theory).items()
        if callable(f) and getattr(f, "__module__", "") == theory.__name__ and n[0] != "_"
    ]
    assert [name for name in public if f"`{name}" not in text] == []
    assert len(public) >= 20


def exploration_for_a_tenth(population: Discrete) -> str:
    negative = population.probability * (1 - population.positive_rate)
    groups = sorted(set(population.group.tolist()))
    masses = [float(negative[population.group == g].sum()) for g in groups]
    log_size = population.hypotheses.log_size
    return f"{theory.exploration_rounds(masses, log_size, 0.05, slack=0.1):,}"


def scientific(value: float, digits: int = 3) -> str:
    """2 digits as the page writes them: 1.82e12, not 1.82e+12."""
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def short(value: float, digits: int) -> str:
    return f"{value:.{digits}g}".removeprefix("0")


LOG_4, LOG_441 = math.log(4), math.log(441)


@cache
def figures() -> dict[str, str]:
    """What each figure of the page is, and the figure as it is computed now."""
    sharp = theory.sharp_regret_lower_bound

    def until(horizon: float, log_size: float) -> str:
        return f"{theory.uniform_rounds(horizon, log_size, horizon**-0.5):,}"

    paper_k = theory.indistinguishable_rounds(0.01) * 0.01**2
    return {
        "T0 on random": exploration_for_a_tenth(random_population(0)),
        "T0 on thresholds": exploration_for_a_tenth(threshold_population()),
        "T0 on lending": exploration_for_a_tenth(lending()),
        "T0 on the instance": exploration_for_a_tenth(LowerBound(1, 1 / 16)),
        "a coin until, |H| = 4, 1e4": until(1e4, LOG_4),
        "a coin until, |H| = 4, 1e7": until(1e7, LOG_4),
        "idle until": f"{theory.idle_rounds(1e6, LOG_204, 1e-3):,}",
        "informative round, 1e4": scientific(theory.informative_round(1e4, LOG_204, 1e-2), 2),
        "informative round, 1e7": scientific(theory.informative_round(1e7, LOG_204, 1e7**-0.5), 2),
        "informative horizon, 4": scientific(theory.informative_horizon(LOG_4)),
        "informative horizon, 204": scientific(theory.informative_horizon(LOG_204)),
        "informative horizon, 441": scientific(theory.informative_horizon(LOG_441)),
        "slack of 1,000 and 2,000": short(theory.gap_slack([1000, 2000], LOG_204, 0.05), 2),
        "K over T^(2 alpha)": scientific(paper_k, 2),
        "one round, 1/4": scientific(paper_k**-2),
        "one round, 1/3": scientific(paper_k**-1.5),
        "sharp, 1/4, 1e6": short(sharp(1e6**-0.25, 0.05), 2),
        "sharp, 1/3, 1e6": short(sharp(1e6 ** (-1 / 3), 0.05), 2),
        "sharp, 1/3, 1e8": short(sharp(1e8 ** (-1 / 3), 0.05), 2),
        "sharp, 1/4, 1e8, over T^(1/2)": f"{sharp(1e8**-0.25, 0.05) / 1e4:.1e}",
        "where 100/11 is": f"{math.ceil(math.exp(100 / 11)):,}".replace(",", "{,}"),
        "from 16^4 on": f"{round(theory.lower_bound_horizon(1 / 4)):,}",
        "from 16^3 on": f"{round(theory.lower_bound_horizon(1 / 3)):,}",
    }


@pytest.mark.parametrize("name", figures())
def test_each_figure_of_the_page_is_what_is_computed(name: str) -> None:
    assert figures()[name] in DOCS.read_text(encoding="utf-8")


def test_what_learners_pay_on_the_instance_is_what_was_measured() -> None:
    text = DOCS.read_text(encoding="utf-8")
    rows = json.loads((DOCS.parents[1] / "measured" / "claims.json").read_text())["rows"]
    about = [row for row in rows if "regret / T^" in row["row"]]
    paper = [row for row in about if "theorem 4.1" in row["row"]]
    certified = [row for row in about if row["row"].startswith("certified")]
    assert len(paper) == len(certified) == 2
    for row in paper:
        ratios = [float(one) for one in re.findall(r"[\d.]+", row["figure"].split("(")[0])]
        assert f"{min(ratios)} to {max(ratios)}" in text
    ratios = [float(one) for row in certified for one in re.findall(r"([\d.]+)\+-", row["figure"])]
    assert f"{min(ratios):.1f} to {max(ratios):.1f}" in text


def test_a_figure_that_nobody_computes_is_seen() -> None:
    """Every number in the prose that looks like a figure (a comma, an exponent, a leading point, or
    a decimal) is among those that are computed, measured, or part of a formula.
    """
    text = DOCS.read_text(encoding="utf-8")
    assert strange_figures(text) == set()
    assert strange_figures(text + " and 17,123 or .77") == {"17,123", ".77"}


SETTINGS = {"1e4", "1e5", "1e6", "1e7", "1e8", ".1", ".02", ".05", "1,000", "2,000"}
"""Horizons, slacks, deltas and counts that the page chooses."""


def strange_figures(text: str) -> set[str]:
    prose = "\n".join(line for line in text.splitlines() if not line.startswith("|"))
    prose = re.sub(r"\$[^$]*\$|`[^`]*`|\]\([^)]*\)", " ", prose)
    prose = re.sub(
        r"(?i)(theorem|lemma|claim|section|remark|corollary|slips?) (B\.)?\d+(\.\d+)?", "", prose
    )
    shape = r"(?<![\w.])(\d{1,3}(?:,\d{3})+|\d+(?:\.\d+)?e-?\d+|\d*\.\d+)(?![\w])"
    known = SETTINGS | set(figures().values())
    measured = {"23.0", "31.7", "20.7", "22.6", "2.3", "2.6"}
    return set(re.findall(shape, prose)) - known - measured
