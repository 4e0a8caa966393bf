"""The laws of confidence bounds."""

import numpy as np

from evenhand.bounds import AuditCounts
from evenhand.contracts import FixedCountBound
from evenhand.testing.laws import EQUAL, law, require, same
from evenhand.words import FloatArray

DELTA = 0.2
LIVES = 400
MOST_MISSES = 0.27
"""A bound that misses in a fifth of all lives stays below this share of 400 with probability .999.
"""


def _limits(bound: FixedCountBound, counts: AuditCounts) -> tuple[FloatArray, FloatArray]:
    log_size = float(np.log(len(counts.most)))
    found = bound.intervals(counts, failure_probability=DELTA, log_size=log_size, columns=1)
    return np.asarray(found.lower), np.asarray(found.upper)


@law
def limits_lie_in_range(bound: FixedCountBound, counts: AuditCounts) -> None:
    """-1 <= lower <= upper <= 1, one interval for each hypothesis, rate and pair of groups.

    Parameters
    ----------
    bound : FixedCountBound
        The bound.
    counts : AuditCounts
        What it is asked about.

    Raises
    ------
    LawBroken
        If the law does not hold.

    Examples
    --------
    >>> from evenhand.bounds import AuditHoeffding
    >>> limits_lie_in_range(AuditHoeffding(), AuditCounts.of([[30, 20]], [[40, 50]]))
    """
    lower, upper = _limits(bound, counts)
    shape = (len(counts.most), counts.rates * counts.groups * (counts.groups - 1) // 2)
    right = lower.shape == upper.shape == shape
    require(right, f"the shapes are {lower.shape} and {upper.shape}")
    inside = bool(((lower >= -1) & (lower <= upper) & (upper <= 1)).all())
    require(inside, f"they lie between {lower.min()} and {upper.max()}")


@law
def exchanging_groups_mirrors_the_limits(bound: FixedCountBound, counts: AuditCounts) -> None:
    """[lower, upper] of two groups becomes [-upper, -lower] when they are exchanged.

    Parameters
    ----------
    bound : FixedCountBound
        The bound.
    counts : AuditCounts
        What it is asked about.

    Raises
    ------
    LawBroken
        If the law does not hold.

    Examples
    --------
    >>> from evenhand.bounds import AuditHoeffding
    >>> counts = AuditCounts.of([[30, 20]], [[40, 50]])
    >>> exchanging_groups_mirrors_the_limits(AuditHoeffding(), counts)
    """
    turned = AuditCounts(
        counts.most[..., ::-1],
        counts.most_people[..., ::-1],
        counts.least[..., ::-1],
        counts.least_people[..., ::-1],
        counts.people[..., ::-1],
        counts.signs,
    )
    (lower, upper), (other_lower, other_upper) = _limits(bound, counts), _limits(bound, turned)
    off = max(np.abs(lower + other_upper).max(), np.abs(upper + other_lower).max())
    require(off <= EQUAL, f"a limit is off by {off:.3g}")


@law
def doubtful_people_widen_the_limits(bound: FixedCountBound, counts: AuditCounts) -> None:
    """People whose label has not come make no interval narrower, and some of them wider.

    Parameters
    ----------
    bound : FixedCountBound
        The bound.
    counts : AuditCounts
        What it is asked about.

    Raises
    ------
    LawBroken
        If the law does not hold.

    Examples
    --------
    >>> from evenhand.bounds import AuditHoeffding
    >>> doubtful_people_widen_the_limits(AuditHoeffding(), AuditCounts.of([[30, 20]], [[40, 50]]))
    """
    doubtful = AuditCounts.of(
        counts.least,
        counts.people,
        signs=counts.signs,
        unresolved_accepted=np.ones_like(counts.least),
        unresolved=2 * np.ones_like(counts.people),
    )
    (lower, upper), (wide_lower, wide_upper) = _limits(bound, counts), _limits(bound, doubtful)
    narrower = max(float((wide_lower - lower).max()), float((upper - wide_upper).max()))
    require(narrower <= EQUAL, f"an interval became narrower by {narrower:.3g}")
    more = float((wide_upper - wide_lower).sum() - (upper - lower).sum())
    require(more > EQUAL, f"all widths together grew by {more:.3g}")


@law
def gaps_are_covered(bound: FixedCountBound, counts: AuditCounts) -> None:
    """With probability at least 1 - failure_probability every gap lies in its interval.

    It is asked for rates of two groups that are drawn with as many people as there were audits of
    the first group.

    Parameters
    ----------
    bound : FixedCountBound
        The bound.
    counts : AuditCounts
        What it is asked about.

    Raises
    ------
    LawBroken
        If the law does not hold.

    Examples
    --------
    >>> from evenhand.bounds import AuditHoeffding
    >>> gaps_are_covered(AuditHoeffding(), AuditCounts.of([[30, 20]], [[40, 50]]))
    """
    size = int(counts.people[0, 0])
    draw, people = np.random.default_rng(7), np.full((1, 2), size)
    truth = np.array([[[0.3, 0.5]], [[0.05, 0.02]], [[0.9, 0.8]]])
    gap, misses = truth[:, 0, 1] - truth[:, 0, 0], 0
    for _ in range(LIVES):
        lower, upper = _limits(bound, AuditCounts.of(draw.binomial(size, truth), people))
        misses += bool(((gap < lower[:, 0]) | (gap > upper[:, 0])).any())
    figures = f"{misses} of {LIVES} lives missed a gap at a failure probability of {DELTA}"
    require(misses <= MOST_MISSES * LIVES, figures)


@law
def the_same_counts_have_the_same_limits(bound: FixedCountBound, counts: AuditCounts) -> None:
    """A bound draws nothing by chance, remembers nothing, and changes no count.

    Parameters
    ----------
    bound : FixedCountBound
        The bound.
    counts : AuditCounts
        What it is asked about.

    Raises
    ------
    LawBroken
        If the law does not hold.

    Examples
    --------
    >>> from evenhand.bounds import AuditHoeffding
    >>> counts = AuditCounts.of([[30, 20]], [[40, 50]])
    >>> the_same_counts_have_the_same_limits(AuditHoeffding(), counts)
    """
    kept = counts.most.copy()
    first, again = _limits(bound, counts), _limits(bound, counts)
    equal = all(same(one, two) for one, two in zip(first, again, strict=True))
    require(equal and same(kept, counts.most), "another call gave another answer")


BOUND_LAWS = (
    limits_lie_in_range,
    exchanging_groups_mirrors_the_limits,
    doubtful_people_widen_the_limits,
    gaps_are_covered,
    the_same_counts_have_the_same_limits,
)


def check_bound(bound: FixedCountBound, *, seed: int = 0) -> tuple[str, ...]:
    """Run every law of confidence bounds.

    Parameters
    ----------
    bound : FixedCountBound
        The bound.
    seed : int
        Of the counts that are drawn.

    Returns
    -------
    tuple of str
        The names of the laws.

    Raises
    ------
    LawBroken
        If one of them does not hold.

    Examples
    --------
    >>> from evenhand.bounds import AuditHoeffding
    >>> check_bound(AuditHoeffding())[3]
    'gaps_are_covered'
    """
    draw = np.random.default_rng(seed)
    people = draw.integers(30, 90, size=(2, 2))
    accepted = np.floor(draw.random((5, 2, 2)) * (people + 1))
    counts = AuditCounts.of(accepted, people, signs=[1.0, -1.0])
    for one in BOUND_LAWS:
        one(bound, counts)
    return tuple(one.__name__ for one in BOUND_LAWS)
