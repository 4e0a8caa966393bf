"""Named populations: those on which the figures of the documents were measured, and a lender's."""

import numpy as np

from evenhand.environments.discrete import Discrete
from evenhand.environments.lower_bound import LowerBound
from evenhand.errors import InvalidInput
from evenhand.words import BoolArray, FloatArray


def random_population(seed: int = 0, contexts: int = 50, hypotheses: int = 200) -> Discrete:
    """100 contexts in two groups and 204 noisy linear rules.

    50 contexts in each of two groups (60% and 40%), 204 noisy linear rules; the
    second group has fewer positives.
    """
    generator = np.random.default_rng(seed)
    share = np.concatenate(
        [part * generator.dirichlet(np.full(contexts, 2.0)) for part in (0.6, 0.4)]
    )
    group = np.repeat([-1, 1], contexts)
    score = np.concatenate([generator.normal(mean, 1.2, contexts) for mean in (0.3, -0.5)])
    rules = [np.zeros(2 * contexts, bool), np.ones(2 * contexts, bool), group == 1, group == -1]
    for _ in range(hypotheses):
        noise, cut, tilt = (
            generator.choice([0.5, 1.0, 2.0, 4.0]),
            generator.normal(0, 0.7),
            generator.normal(0, 0.4),
        )
        rules.append(score + generator.normal(0, noise, 2 * contexts) - cut + tilt * group > 0)
    return Discrete(share, _logistic(1.5 * score), group, np.array(rules), name=f"random {seed}")


def threshold_population(bins: int = 50, cuts: int = 21) -> Discrete:
    """A score in 50 bins for each of two groups, and all pairs of one threshold per group.

    a score in 50 bins for each of two groups (65% and 35%); all 441 pairs of one
    threshold per group.
    """
    score = (np.arange(bins) + 0.5) / bins
    share = np.concatenate(
        [part * _bell(score, mean, 0.22) for part, mean in ((0.65, 0.58), (0.35, 0.42))]
    )
    rate = np.concatenate([_logistic(9 * (score - 0.48)), _logistic(7 * (score - 0.56))])
    grid = np.linspace(0, 1, cuts)
    pairs = [np.concatenate([score > first, score > second]) for first in grid for second in grid]
    return Discrete(share, rate, np.repeat([-1, 1], bins), np.array(pairs), name="thresholds")


def hard(horizon: float, scale: float = 0.3) -> LowerBound:
    """The population of the lower bound with two losses that differ by the order of T^(-1/4) only.

    D1 of section 4 with gap = scale T^(-1/4), to be run with allowed gap 1: two losses that
    differ by only that order.
    """
    if not horizon > 0:
        raise InvalidInput(f"the horizon is {horizon}; it must be a positive number of rounds.")
    return LowerBound(1, scale * horizon**-0.25)


SCORE_BINS = 10
RENT_BANDS = 3
BAND_POINTS = (0, 1, 2, 3, 4, 6)
"""How many bins of score one band of rent history is worth, in the six families of scorecards."""


def lending() -> Discrete:
    """A lender's two regions: a credit score, the rent history, and 98 scorecards.

    10 bins of a credit score x 3 bands of rent history x {"north",
    "south"}: 60 contexts.

    Context 30 r + 3 s + b is region r, score bin s, rent band b (0: none, 2: long and on time). 70%
    of the applicants live in the north; 67% of the north and 41% of the south would repay. The
    south has lower scores but longer rent histories. A scorecard accepts if score bin + points x
    rent band reaches a cut-off, and never looks at the region (98 of them).

    Losing least (.260) means to lean on the score: the south's false positive rate is then .18
    below the north's. Scorecards that give more points for rent cost little more and close the gap:
    .284 at an allowed gap of .05, .291 at .02, .296 at 0. Accepting everybody loses .409.
    """
    north = _region(0.7, 6.0, (0.45, 0.35, 0.20), 0.3)
    south = _region(0.3, 3.8, (0.25, 0.35, 0.40), -0.2)
    share, rate = (np.concatenate(parts) for parts in zip(north, south, strict=True))
    return Discrete(
        share,
        rate,
        np.repeat(["north", "south"], SCORE_BINS * RENT_BANDS),
        _scorecards(),
        name="lending",
    )


def _bins() -> tuple[FloatArray, FloatArray]:
    """The score bin and the rent band of one region's contexts."""
    score, band = np.divmod(np.arange(SCORE_BINS * RENT_BANDS, dtype=np.float64), RENT_BANDS)
    return score, band


def _region(
    part: float, mean: float, bands: tuple[float, ...], shift: float
) -> tuple[FloatArray, FloatArray]:
    """(share, repayment rate) of one region's contexts: scores are bell-shaped, repayment is
    logistic in score and rent history.
    """
    score, band = _bins()
    share = (
        part
        * np.repeat(_bell(np.arange(SCORE_BINS, dtype=np.float64), mean, 2.2), RENT_BANDS)
        * np.tile(bands, SCORE_BINS)
    )
    return share, _logistic(0.6 * (score - 4.5) + 0.6 * (band - 1.0) + shift)


def _scorecards() -> BoolArray:
    """All cut-offs of each family of scorecards, as a table over both regions."""
    score, band = _bins()
    totals = [score + worth * band for worth in BAND_POINTS]
    return np.array(
        [np.tile(total >= cut, 2) for total in totals for cut in range(int(total.max()) + 2)]
    )


def _bell(position: FloatArray, mean: float, spread: float) -> FloatArray:
    density = np.exp(-0.5 * ((position - mean) / spread) ** 2)
    return np.asarray(density / density.sum())


def _logistic(value: FloatArray) -> FloatArray:
    return np.asarray(1 / (1 + np.exp(-value)))
