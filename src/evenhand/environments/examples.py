"""Populations to try things on, all exact tables: those of the paper's lower bound, those on which
the figures of the documents were measured, a lender's, and some that are hard for a certificate (a
tiny group, labels of one kind nearly missing, a gap exactly at the limit, a region that no rule
accepts), small enough for thousands of simulated runs.
"""

import numpy as np

from evenhand.contracts import Params
from evenhand.environments.population import Discrete
from evenhand.errors import InvalidInput
from evenhand.randomness import stream
from evenhand.shares import require_share
from evenhand.theory import LARGEST_LOWER_BOUND_GAP
from evenhand.words import BoolArray, FloatArray

CONTEXTS = 12
"""Contexts of each group of the populations that are hard for a certificate."""
RULES = 40
"""Their rules, besides the two constants."""
SCORE_BINS = 10
RENT_BANDS = 3
BAND_POINTS = (0, 1, 2, 3, 4, 6)
"""How many bins of score one band of rent history is worth, in the six families of scorecards."""


def _logistic(value: FloatArray) -> FloatArray:
    # not scipy.special.expit: its last bits differ, and the digests of these populations are stored
    return np.asarray(1 / (1 + np.exp(-value)))


def _bell(position: FloatArray, mean: float, spread: float = 0.22) -> FloatArray:
    density = np.exp(-0.5 * ((position - mean) / spread) ** 2)
    return np.asarray(density / density.sum())


# the paper's lower bound


class LowerBound(Discrete):
    """Section 4 of the paper: two populations look alike, and one of two rules is fair on each.

    Parameters
    ----------
    which : {1, 2}
        D1 or D2.
    gap : float
        gamma, at most 1/16. The two populations look alike for about 1/gamma^2 rounds.

    Raises
    ------
    InvalidInput
        If there is no such instance.

    Notes
    -----
    4 contexts x 2 groups of 1/8 each; H = {reject all, accept all, h1, h2}::

        P[y = +1]     x1            x2            x3  x4        accepts      x1  x2  x3  x4
        a = -1        1/2 + 4 gamma 1/2 - 4 gamma 1   0         h1           yes no  yes no
        a = +1, D1    1/2 - 4 gamma 1/2 + 4 gamma 1   0         h2, a = -1   yes no  yes no
        a = +1, D2    1/2 + 4 gamma 1/2 - 4 gamma 1   0         h2, a = +1   no  yes yes no

    On D1: loss(h2) = 1/4 - 2 gamma, gap(h2) = 0, loss(h1) = 1/4, gap(h1) = 4 gamma; on D2 with h1
    and h2 exchanged. The class must stay these four: with the group classifiers added, the gap of
    h1 could be cancelled.

    Examples
    --------
    >>> from evenhand.environments import LowerBound
    >>> world = LowerBound(which=1, gap=1 / 16)
    >>> world.optimum(limit=0.0)[0]
    0.125
    """

    def __init__(self, which: int, gap: float) -> None:
        if which not in (1, 2):
            raise InvalidInput(f"which is {which!r}; section 4 has two distributions, 1 and 2.")
        if not 0 < gap <= LARGEST_LOWER_BOUND_GAP:
            raise InvalidInput(
                f"the gap of the lower-bound instance is {gap}; it must lie in (0, 1/16], "
                "or P[y = +1] leaves [1/4, 3/4].",
                hint="with gap = T^(-alpha) this means T >= 16^(1/alpha): "
                "65,536 for alpha = 1/4, 4,096 for alpha = 1/3.",
            )
        self.which = which
        self.rate_gap = float(gap)
        up = 0.5 + 4 * gap
        down = 0.5 - 4 * gap
        minus = [up, down, 1.0, 0.0]
        plus = [down, up, 1.0, 0.0] if which == 1 else minus
        first = [True, False, True, False]
        second = [False, True, True, False]
        accepts = [[False] * 8, [True] * 8, first + first, first + second]
        group = np.repeat([-1, 1], 4)
        super().__init__(np.full(8, 1 / 8), minus + plus, group, accepts, name="lower bound")

    @property
    def params(self) -> Params:
        """Which distribution, and its gap."""
        return {"environment": self.name, "which": self.which, "gap": self.rate_gap}


def hard(horizon: float, scale: float = 0.3) -> LowerBound:
    """The lower-bound population with two losses that differ by the order of T^(-1/4) only.

    It is meant for an allowed gap of 1.

    Parameters
    ----------
    horizon : float
        T, the number of rounds that will be played.
    scale : float
        The gap of the instance is scale T^(-1/4).

    Returns
    -------
    LowerBound
        D1 of section 4 of the paper with that gap.

    Examples
    --------
    >>> from evenhand.environments import hard
    >>> round(hard(horizon=10_000).rate_gap, 3)
    0.03
    """
    if not horizon > 0:
        raise InvalidInput(f"the horizon is {horizon}; it must be a positive number of rounds.")
    return LowerBound(1, scale * horizon**-0.25)


# the populations of the documents' figures


def random_population(seed: int = 0, contexts: int = 50, hypotheses: int = 200) -> Discrete:
    """100 contexts in two groups and 204 noisy linear rules.

    The groups are 60% and 40% of the people; the second has fewer positives.

    Parameters
    ----------
    seed : int
        The seed of the shares, the scores and the rules.
    contexts : int
        Contexts of each group.
    hypotheses : int
        Noisy rules, besides the constants and the two group classifiers.

    Returns
    -------
    Discrete
        The population.

    Examples
    --------
    >>> from evenhand.environments import random_population
    >>> random_population(seed=0).accepts.shape
    (204, 100)
    """
    generator = np.random.default_rng(seed)
    share = np.concatenate(
        [part * generator.dirichlet(np.full(contexts, 2.0)) for part in (0.6, 0.4)]
    )
    group = np.repeat([-1, 1], contexts)
    score = np.concatenate([generator.normal(mean, 1.2, contexts) for mean in (0.3, -0.5)])
    rules = [np.zeros(2 * contexts, bool), np.ones(2 * contexts, bool), group == 1, group == -1]
    for _ in range(hypotheses):
        noise = generator.choice([0.5, 1.0, 2.0, 4.0])
        cut = generator.normal(0, 0.7)
        tilt = generator.normal(0, 0.4)
        rules.append(score + generator.normal(0, noise, 2 * contexts) - cut + tilt * group > 0)
    return Discrete(share, _logistic(1.5 * score), group, np.array(rules), name=f"random {seed}")


def threshold_population(bins: int = 50, cuts: int = 21) -> Discrete:
    """A score in 50 bins for each of two groups, and all pairs of one threshold per group.

    The groups are 65% and 35% of the people.

    Parameters
    ----------
    bins : int
        Bins of the score.
    cuts : int
        Thresholds of each group; the class has all pairs of them.

    Returns
    -------
    Discrete
        The population.

    Examples
    --------
    >>> from evenhand.environments import threshold_population
    >>> threshold_population().accepts.shape
    (441, 100)
    """
    score = (np.arange(bins) + 0.5) / bins
    share = np.concatenate(
        [part * _bell(score, mean) for part, mean in ((0.65, 0.58), (0.35, 0.42))]
    )
    rate = np.concatenate([_logistic(9 * (score - 0.48)), _logistic(7 * (score - 0.56))])
    grid = np.linspace(0, 1, cuts)
    pairs = [np.concatenate([score > first, score > second]) for first in grid for second in grid]
    return Discrete(share, rate, np.repeat([-1, 1], bins), np.array(pairs), name="thresholds")


def lending() -> Discrete:
    """A lender's two regions: a credit score, the rent history, and 98 scorecards.

    Leaning on the score alone loses least and treats the south's bad risks differently from the
    north's.

    10 bins of a credit score x 3 bands of rent history x {"north", "south"}: 60 contexts. Context
    30 r + 3 s + b is region r, score bin s, rent band b (0: none, 2: long and on time). 70% of the
    applicants live in the north; 67% of the north and 41% of the south would repay. The south has
    lower scores but longer rent histories. A scorecard accepts if score bin + points x rent band
    reaches a cut-off, and never looks at the region.

    Losing least (.260) means to lean on the score: the south's false positive rate is then .18
    below the north's. Scorecards that give more points for rent cost little more and close the gap:
    .284 at an allowed gap of .05, .291 at .02, .296 at 0. Accepting all applicants loses .409.

    Returns
    -------
    Discrete
        The population.

    Examples
    --------
    >>> from evenhand.environments import lending
    >>> world = lending()
    >>> [round(world.optimum(limit)[0], 3) for limit in (1, 0.05, 0)]
    [0.26, 0.284, 0.296]
    """
    score, band = np.divmod(np.arange(SCORE_BINS * RENT_BANDS, dtype=np.float64), RENT_BANDS)
    bins = np.arange(SCORE_BINS, dtype=np.float64)
    shares = []
    rates = []
    # each region: scores are bell-shaped, repayment is logistic in score and rent history
    for part, mean, bands, shift in (
        (0.7, 6.0, (0.45, 0.35, 0.20), 0.3),
        (0.3, 3.8, (0.25, 0.35, 0.40), -0.2),
    ):
        shares.append(
            part * np.repeat(_bell(bins, mean, 2.2), RENT_BANDS) * np.tile(bands, SCORE_BINS)
        )
        rates.append(_logistic(0.6 * (score - 4.5) + 0.6 * (band - 1.0) + shift))
    # all cut-offs of each family of scorecards, over both regions
    totals = [score + worth * band for worth in BAND_POINTS]
    cards = [np.tile(total >= cut, 2) for total in totals for cut in range(int(total.max()) + 2)]
    group = np.repeat(["north", "south"], SCORE_BINS * RENT_BANDS)
    return Discrete(
        np.concatenate(shares), np.concatenate(rates), group, np.array(cards), name="lending"
    )


# populations that are hard for a certificate


def small_group(share: float = 0.05, seed: int = 0) -> Discrete:
    """Two groups of which the second is tiny: its denominators decide how long everything takes.

    Parameters
    ----------
    share : float
        The second group's share of the people.
    seed : int
        The seed of the shares, the scores and the rules.

    Returns
    -------
    Discrete
        The population.

    Examples
    --------
    >>> from evenhand.environments import small_group
    >>> world = small_group(0.05)
    >>> round(float(world.probability[world.group == 1].sum()), 6)
    0.05
    """
    require_share("share", share, "(0, 1)")
    scores = _scores(seed)
    name = f"a group of {share:.0%}"
    return _population(scores, _logistic(1.5 * scores), (1 - share, share), seed, name)


def rare_labels(label: int, rate: float = 0.04, seed: int = 0) -> Discrete:
    """Hardly anybody has one of the labels.

    Parameters
    ----------
    label : {-1, 1}
        The rare label: with -1 hardly anybody counts for false positives, with +1 for false
        negatives.
    rate : float
        About how many have it.
    seed : int
        The seed of the shares, the scores and the rules.

    Returns
    -------
    Discrete
        The population.

    Examples
    --------
    >>> from evenhand.environments import rare_labels
    >>> world = rare_labels(-1, 0.04)
    >>> bool(world.probability @ (1 - world.positive_rate) < 0.08)
    True
    """
    if label not in (-1, 1) or not 0 < rate <= 0.5:
        raise InvalidInput(
            f"label {label} with rate {rate}; "
            "labels are -1 and +1, a rare one has a rate in (0, 1/2]."
        )
    scores = _scores(seed)
    likely = np.exp(0.8 * label * scores)
    rare = np.clip(rate * likely / likely.mean(), 0.002, 0.5)
    positive = rare if label == 1 else 1 - rare
    return _population(scores, positive, (0.6, 0.4), seed, f"P[y = {label:+d}] near 0")


def at_the_limit(limit: float) -> Discrete:
    """The best fair rule has a gap of exactly the limit; a cheaper one, out of reach, .03 more.

    The gap is that of the false positive rate. Each group is half of the people, 40% of it
    negative. Contexts: good, slice A (`limit` of the group's negatives), slice B (3% of them),
    rest. The rules accept good in both groups, and of the second group also nothing, A, or A and B.

    Parameters
    ----------
    limit : float
        The gap, at most 0.15.

    Returns
    -------
    Discrete
        The population.

    Examples
    --------
    >>> from evenhand.environments import at_the_limit
    >>> world = at_the_limit(0.1)
    >>> round(world.gap(world.optimum(0.1)[1]), 9), round(world.gap(world.optimum(1.0)[1]), 9)
    (0.1, 0.13)
    """
    if not 0 < limit <= 0.15:
        raise InvalidInput(f"the limit is {limit}; this population exists for limits in (0, 0.15].")
    negatives = 0.2 * np.array([0.1, limit, 0.03, 0.87 - limit])
    # A is worth more per negative than B
    mass = np.array([0.2, negatives[1] / 0.3, negatives[2] / 0.35, 0.0])
    mass[3] = 0.5 - mass.sum()
    first = [True, False, False, False]
    second = (first, [True, True, False, False], [True, True, True, False])
    rules = [[False] * 8, [True] * 8, *(first + rule for rule in second)]
    rates = np.tile(1 - negatives / mass, 2)
    group = np.repeat([-1, 1], 4)
    return Discrete(np.tile(mass, 2), rates, group, rules, name=f"a gap exactly at {limit:g}")


def avoided_region(share: float = 0.2, seed: int = 0) -> Discrete:
    """Some people are in contexts that every rule rejects: only audits ever see their labels.

    Most of these labels are negative.

    Parameters
    ----------
    share : float
        The share of these people.
    seed : int
        The seed of the scores and the rules.

    Returns
    -------
    Discrete
        The population.

    Examples
    --------
    >>> from evenhand.environments import avoided_region
    >>> world = avoided_region(0.2)
    >>> avoided = ~world.accepts[2:].any(axis=0)
    >>> round(float(world.probability[avoided].sum()), 6)
    0.2
    """
    require_share("share", share, "(0, 1)")
    scores = _scores(seed)
    region = np.tile(np.arange(CONTEXTS) < CONTEXTS // 4, 2)
    avoided = np.tile([0.1, 0.25], (CONTEXTS, 1)).T.ravel()
    positive = np.where(region, avoided, _logistic(1.5 * scores))
    shares = np.where(region, share / region.sum(), (1 - share) / (~region).sum())
    rules = _rules(scores, seed) & ~region
    rules[1] = True
    return Discrete(shares, positive, GROUPS, rules, name="a region that no rule accepts")


def score_ladder(
    bins: int = 30,
    *,
    share: float = 0.4,
    shift: float = 0.15,
    base: float = 0.5,
    steepness: float = 9.0,
) -> Discrete:
    """A score in steps for two groups; thresholds on column 0 are scorecards.

    Context 2 s + g is step s of group g.

    Parameters
    ----------
    bins : int
        Steps of the score.
    share : float
        The second group's share of the people.
    shift : float
        How much lower the scores of the second group lie.
    base : float
        The score at which half would be good.
    steepness : float
        How fast the chance of a good outcome rises with the score.

    Returns
    -------
    Discrete
        The population.

    Examples
    --------
    >>> from evenhand.environments import score_ladder
    >>> score_ladder(10).accepts.shape
    (11, 20)
    """
    step = (np.arange(bins) + 0.5) / bins
    bells = [part * _bell(step, mean) for part, mean in ((1 - share, 0.55), (share, 0.55 - shift))]
    rates = [_logistic(steepness * (step - base - later)) for later in (0.0, 0.03)]
    mass, rate = (np.stack(columns, axis=1).ravel() for columns in (bells, rates))
    rules = np.arange(2 * bins) >= 2 * np.arange(bins + 1)[:, np.newaxis]
    return Discrete(mass, rate, np.tile([-1, 1], bins), rules, name="score ladder")


GROUPS = np.repeat([-1, 1], CONTEXTS)


def _scores(seed: int) -> FloatArray:
    generator = stream(seed, "difficult", "scores")
    return np.concatenate([generator.normal(mean, 1.2, CONTEXTS) for mean in (0.3, -0.4)])


def _population(
    scores: FloatArray, positive_rate: FloatArray, shares: tuple[float, float], seed: int, name: str
) -> Discrete:
    generator = stream(seed, "difficult", "shares")
    mass = np.concatenate([share * generator.dirichlet(np.full(CONTEXTS, 3.0)) for share in shares])
    return Discrete(mass, positive_rate, GROUPS, _rules(scores, seed), name=name)


def _rules(scores: FloatArray, seed: int) -> BoolArray:
    """Reject all, accept all, and noisy cuts of the score; the first half of them lean towards one
    of the groups.
    """
    generator = stream(seed, "difficult", "rules")
    rules = [np.zeros(len(scores), bool), np.ones(len(scores), bool)]
    for number in range(RULES):
        noise = generator.choice([0.3, 1.0, 2.0])
        cut = generator.normal(0, 0.6)
        tilt = generator.normal(0, 0.5)
        lean = tilt * GROUPS if number < RULES // 2 else 0.0
        rules.append(scores + generator.normal(0, noise, len(scores)) + lean > cut)
    return np.array(rules)
