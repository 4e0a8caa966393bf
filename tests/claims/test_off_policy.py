"""Off-policy evaluation: from selectively labelled logs, loss and FPR gap of another policy are
covered at every row at once.

Logs are made by a learner that adapts: at rows 500, 1,000, ..., 8,000 it refits its score on the
labels it has seen, and accepts with a probability that follows it, at least .05. Two populations
with an exact truth: `lending` (60 contexts, a mixture of two scorecards as the candidate) and
COMPAS (rows drawn with replacement, a linear rule). A log misses if the truth of the loss or of the
gap leaves its interval at any block. The theorem allows delta = .05.

Full tier, 200 logs each: correct code (miss rate at most .05) is refused with probability at most
1e-3 (exact binomial limit: 21); a miss rate of .17 is caught with probability .99. Quick tier, 16
logs: limit 4; a miss rate of .6 is caught with probability .99. Negative controls, which must fail
the same check: the estimate from accepted people alone (with a Hoeffding interval at one time and
delta), these people as a log in which everybody was accepted, and all propensities taken as equal.
The last one fails on `lending` alone: on COMPAS the regression is so good that it repairs wrong
weights, which is what "doubly robust" means.
"""

from dataclasses import replace
from functools import lru_cache
from itertools import pairwise

import numpy as np
import pytest
from joblib import Parallel, delayed
from scipy.stats import binom

from evenhand import FalsePositiveRate, Prices
from evenhand.computing import one_blas_thread
from evenhand.environments import Replay, lending
from evenhand.estimation import RoundLog
from evenhand.estimation.outcomes import fit_logistic_outcomes
from evenhand.evaluation import Candidate, DecisionLog
from evenhand.evaluation import evaluate as whole
from evenhand.evaluation.evaluate import LogEvaluator
from evenhand.hypotheses import Linear
from evenhand.hypotheses.finite import TableRow
from evenhand.policies import Mixture
from evenhand.tables import DataUnavailable, read_table
from evenhand.words import CostSensitiveProblem

DELTA, ROWS, FLOOR = 0.05, 12_000, 0.05
REFITS = (500, 1000, 2000, 4000, 8000)
MUTANTS = 40
"""Logs on which the broken versions are tried too."""
PRICES = Prices(2.0, 1.0)
FPR = FalsePositiveRate()
WORLDS = ("lending", "compas")


@lru_cache(maxsize=2)
def world(name):
    """(population, candidate, features as the learner sees them from those of a row)."""
    if name == "lending":
        population = lending()
        cards = tuple(TableRow(tuple(population.accepts[i].tolist())) for i in (49, 91))
        return population, Mixture(cards, (0.6, 0.4))
    table = read_table("compas").encoded()
    population = Replay.of_table(table)
    held = table.subset(1500, seed=5)
    fitted = Linear().best(
        CostSensitiveProblem(
            held.features, None, (held.label == 1).astype(float), (held.label == -1).astype(float)
        )
    )
    return population, Mixture((fitted,), (1.0,))


def available(name):
    try:
        return world(name)
    except DataUnavailable as error:
        pytest.skip(f"the table {name} cannot be had: {error}")


def seen_as(name, features):
    """Contexts of `lending` as score bin, rent band and region; rows of COMPAS as they are."""
    if name != "lending":
        return features
    context = features[:, 0]
    return np.column_stack([context % 30 // 3, context % 3, context // 30])


def adaptive_log(name, seed, rows=ROWS):
    """People in blocks; the acceptance of each block follows a logistic score of the labels seen
    before it.
    """
    population, _ = world(name)
    rng = np.random.default_rng([seed, 20])
    drawn = population.draw(rows, rng)
    shown, coin = seen_as(name, drawn.features), rng.random(rows)
    p = np.full(rows, 0.6)
    for start, stop in pairwise((*REFITS, rows)):
        past, now = slice(0, start), slice(start, stop)
        accept = coin[past] < p[past]
        past_log = RoundLog.from_rounds(shown[past], accept, drawn.label[past][accept], p[past])
        with one_blas_thread():
            bad = fit_logistic_outcomes(past_log).negative_probability(shown[now])
        p[now] = FLOOR + (0.95 - FLOOR) / (1 + np.exp(12 * (bad - 0.45)))
    accept = coin < p
    return DecisionLog.of(
        drawn.features, accept, p, np.where(accept, drawn.label, 0), group=drawn.group
    )


def truth(name):
    population, candidate = world(name)
    return population.loss(candidate, PRICES), population.gap(candidate, FPR)


def course(log, candidate):
    """Loss and gap with their intervals at every block, without the check of the propensities
    (broken ones are to be judged too).
    """
    judge = LogEvaluator(log, Candidate(candidate), (FPR,), log.groups, PRICES, DELTA, named=False)
    return judge.evaluation(0.05).course


def misses(found, loss, gap):
    """(loss, gap): did the truth leave its interval at any block?"""
    one, two = found.loss, found.gaps[:, 0]
    outside = [
        ((curve[:, 1] > value + 1e-9) | (curve[:, 2] < value - 1e-9)).any()
        for curve, value in ((one, loss), (two, gap))
    ]
    return [bool(value) for value in outside]


def naive(log, candidate):
    """What is computed from the accepted alone: rates on those who were accepted, with Hoeffding's
    interval at level delta.
    """
    pi = candidate.acceptance(log.features)
    rates, width = [], 0.0
    for group in log.groups:
        here = (log.label == -1) & (log.group == group)
        rates.append(pi[here].mean())
        width += 1 / here.sum()
    half = np.sqrt(width * np.log(2 / DELTA) / 2)
    return rates[1] - rates[0], half


def broken(log, how):
    if how == "rejected left out":
        seen = log.accept
        return DecisionLog.of(
            log.features[seen],
            log.accept[seen],
            np.ones(seen.sum()),
            log.label[seen],
            group=log.group[seen],
        )
    p = {"equal": np.full(len(log), log.accept.mean()), "1 - p": 1 - log.acceptance}[how]
    return replace(log, acceptance=p)


def measured(name, seed):
    """(misses of loss and gap, widths of both, naive miss and width, misses with equal
    propensities, without the rejected).
    """
    _, candidate = world(name)
    log, (loss, gap) = adaptive_log(name, seed), truth(name)
    found = course(log, candidate)
    ends = found.loss[-1, 2] - found.loss[-1, 1], found.gaps[-1, 0, 2] - found.gaps[-1, 0, 1]
    guess, half = naive(log, candidate)
    mutants = [
        seed < MUTANTS and any(misses(course(broken(log, how), candidate), loss, gap))
        for how in ("equal", "rejected left out")
    ]
    return [*misses(found, loss, gap), *ends, abs(guess - gap) > half, 2 * half, *mutants]


def limit(logs):
    """The largest number of misses that a miss rate of delta exceeds
    with probability at most 1e-3.
    """
    return int(binom.isf(1e-3, logs, DELTA))


def judge(found, logs):
    """The check: at most `limit` logs miss the loss or the gap."""
    return int((found[:, 0] | found[:, 1]).sum()), limit(logs)


def controls(name):
    """Columns of the flags: accepted people alone, rejected ones left out, and on `lending` equal
    propensities.
    """
    return (2, 4, 3) if name == "lending" else (2, 4)


def figures(name, logs, workers=1):
    runs = Parallel(n_jobs=workers)(delayed(measured)(name, seed) for seed in range(logs))
    columns = np.array(runs, dtype=float)
    flags = columns[:, [0, 1, 4, 6, 7]].astype(bool)
    return flags, columns[:, [2, 3, 5]].mean(axis=0)


@pytest.mark.slow
@pytest.mark.parametrize("name", WORLDS)
def test_intervals_cover_and_the_mutants_do_not(name):
    """16 logs."""
    available(name)
    flags, _ = figures(name, 16)
    missed, most = judge(flags, 16)
    assert missed <= most
    for control in controls(name):
        assert flags[:, control].sum() > most


def test_propensities_that_do_not_fit_are_refused_before_anything_is_said():
    log = adaptive_log("lending", 0)
    with pytest.raises(ValueError, match="probabilities"):
        whole(broken(log, "1 - p"), world("lending")[1])


@pytest.mark.claims
@pytest.mark.parametrize("name", WORLDS)
def test_full(claims, workers, name):
    """200 logs of 12,000 rows; the broken propensities on 40 of them, where the limit is 7."""
    available(name)
    flags, (loss, gap, other) = figures(name, 200, workers)
    missed, most = judge(flags, 200)
    claims.add(
        f"off-policy intervals from logs, {name}: truth of loss or FPR gap left its interval "
        f"at any row, 200 logs of {ROWS:,}",
        f"at most {most} (delta {DELTA:g}, binomial limit 1e-3)",
        f"{missed} ({flags[:, 0].sum()} loss, {flags[:, 1].sum()} gap); mean "
        f"width of loss {loss:.3f}, of gap {gap:.3f}; accepted people alone: "
        f"{flags[:, 2].sum()} of 200 miss with width {other:.3f}; of {MUTANTS}: "
        f"equal propensities {flags[:, 3].sum()}, rejected left out {flags[:, 4].sum()}",
        missed <= most,
    )
    assert missed <= most
    assert flags[:, 2].sum() > most
    assert min(flags[:, control].sum() for control in controls(name)) > limit(MUTANTS)
