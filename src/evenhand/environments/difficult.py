"""Populations made to be difficult for a certificate: a tiny group, labels of one kind nearly
missing, a gap exactly at the limit, a region that no rule accepts. All are exact tables, small
enough for thousands of simulated lives."""

import numpy as np

from evenhand.environments.discrete import Discrete
from evenhand.errors import InvalidInput
from evenhand.randomness import stream
from evenhand.words import BoolArray, FloatArray

CONTEXTS = 12
"""Contexts of each group."""
RULES = 40


def small_group(share: float = 0.05, seed: int = 0) -> Discrete:
    """Two groups, the second with only `share` of the people: its denominators decide how long
    everything takes.
    """
    if not 0 < share < 1:
        raise InvalidInput(f"the small group's share is {share}; it lies strictly between 0 and 1.")
    scores = _scores(seed, (0.3, -0.4))
    return _population(
        scores, _logistic(1.5 * scores), (1 - share, share), seed, f"a group of {share:.0%}"
    )


def rare_labels(label: int, rate: float = 0.04, seed: int = 0) -> Discrete:
    """Only about `rate` of the people have `label`: with -1 hardly anybody counts for false
    positives, with +1 for false negatives.
    """
    if label not in (-1, 1) or not 0 < rate <= 0.5:
        raise InvalidInput(
            f"label {label} with rate {rate}; labels are -1 and +1, a rare one has a rate in (0, 1/2]."
        )
    scores = _scores(seed, (0.3, -0.4))
    likely = np.exp(0.8 * label * scores)
    rare = np.clip(rate * likely / likely.mean(), 0.002, 0.5)
    return _population(
        scores, rare if label == 1 else 1 - rare, (0.6, 0.4), seed, f"P[y = {label:+d}] near 0"
    )


def at_the_limit(limit: float) -> Discrete:
    """The best fair rule has a false positive gap of exactly `limit`; a cheaper one, out of reach,
    has .03 more.

    Each group is half of the people, 40% of it negative. Contexts: good, slice A (`limit` of the
    group's negatives), slice B (3% of them), rest. The rules accept good in both groups, and of the
    second group also nothing, A, or A and B.
    """
    if not 0 < limit <= 0.15:
        raise InvalidInput(f"the limit is {limit}; this population exists for limits in (0, 0.15].")
    negatives = 0.2 * np.array([0.1, limit, 0.03, 0.87 - limit])
    mass = np.array(
        [0.2, negatives[1] / 0.3, negatives[2] / 0.35, 0.0]
    )  # A is worth more per negative than B
    mass[3] = 0.5 - mass.sum()
    first = [True, False, False, False]
    second = ([True, False, False, False], [True, True, False, False], [True, True, True, False])
    rules = [[False] * 8, [True] * 8, *(first + rule for rule in second)]
    rates = np.tile(1 - negatives / mass, 2)
    return Discrete(
        np.tile(mass, 2), rates, np.repeat([-1, 1], 4), rules, name=f"a gap exactly at {limit:g}"
    )


def avoided_region(share: float = 0.2, seed: int = 0) -> Discrete:
    """`share` of the people are in contexts that every rule rejects: only audits ever see their
    labels, most of them negative.
    """
    if not 0 < share < 1:
        raise InvalidInput(f"the region's share is {share}; it lies strictly between 0 and 1.")
    scores = _scores(seed, (0.3, -0.4))
    region = np.tile(np.arange(CONTEXTS) < CONTEXTS // 4, 2)
    positive = np.where(
        region, np.tile([0.1, 0.25], (CONTEXTS, 1)).T.ravel(), _logistic(1.5 * scores)
    )
    shares = np.where(region, share / region.sum(), (1 - share) / (~region).sum())
    rules = _rules(scores, seed) & ~region
    rules[1] = True
    return Discrete(shares, positive, _groups(), rules, name="a region that no rule accepts")


def score_ladder(
    bins: int = 30,
    *,
    share: float = 0.4,
    shift: float = 0.15,
    base: float = 0.5,
    steepness: float = 9.0,
) -> Discrete:
    """A score in `bins` steps for two groups; context 2 s + g is step s of group g, so that
    thresholds on column 0 are scorecards.

    share: of the second group, whose scores lie `shift` lower; base: the score at which half would
    be good.
    """
    step = (np.arange(bins) + 0.5) / bins
    bells = [part * _bell(step, mean) for part, mean in ((1 - share, 0.55), (share, 0.55 - shift))]
    mass = np.stack(bells, axis=1).ravel()
    rate = np.stack(
        [_logistic(steepness * (step - base)), _logistic(steepness * (step - base - 0.03))], axis=1
    ).ravel()
    rules = np.arange(2 * bins) >= 2 * np.arange(bins + 1)[:, np.newaxis]
    return Discrete(mass, rate, np.tile([-1, 1], bins), rules, name="score ladder")


def _population(
    scores: FloatArray, positive_rate: FloatArray, shares: tuple[float, float], seed: int, name: str
) -> Discrete:
    generator = stream(seed, "difficult", "shares")
    mass = np.concatenate([share * generator.dirichlet(np.full(CONTEXTS, 3.0)) for share in shares])
    return Discrete(mass, positive_rate, _groups(), _rules(scores, seed), name=name)


def _scores(seed: int, means: tuple[float, float]) -> FloatArray:
    generator = stream(seed, "difficult", "scores")
    return np.concatenate([generator.normal(mean, 1.2, CONTEXTS) for mean in means])


def _groups() -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.repeat([-1, 1], CONTEXTS)


def _rules(scores: FloatArray, seed: int) -> BoolArray:
    """Reject all, accept all, and noisy cuts of the score; the first half of them lean towards one
    of the groups.
    """
    generator = stream(seed, "difficult", "rules")
    rules = [np.zeros(len(scores), bool), np.ones(len(scores), bool)]
    for number in range(RULES):
        noise, cut, tilt = (
            generator.choice([0.3, 1.0, 2.0]),
            generator.normal(0, 0.6),
            generator.normal(0, 0.5),
        )
        lean = tilt * _groups() if number < RULES // 2 else 0.0
        rules.append(scores + generator.normal(0, noise, len(scores)) + lean > cut)
    return np.array(rules)


def _bell(position: FloatArray, mean: float) -> FloatArray:
    density = np.exp(-0.5 * ((position - mean) / 0.22) ** 2)
    return np.asarray(density / density.sum())


def _logistic(value: FloatArray) -> FloatArray:
    return np.asarray(1 / (1 + np.exp(-value)))
