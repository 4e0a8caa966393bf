"""The requirements of the parts of learners: policies, rates and confidence bounds."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from evenhand.bounds import AuditCounts
from evenhand.contracts import FixedCountBound, Policy
from evenhand.errors import NotSerialisable
from evenhand.fairness.rates import GapConstraints, Rate
from evenhand.hypotheses.serialise import policy_from_json
from evenhand.testing.requirements import (
    EQUAL,
    check_each,
    require,
    requirement,
    same,
    through_text,
)
from evenhand.words import FloatArray, GroupArray, LabelledSample

DELTA = 0.2
RUNS = 400
MOST_MISSES = 0.27
"""A bound that misses in a fifth of all runs stays below this share of 400 with probability .999.
"""


# policies


@requirement
def acceptance_is_a_probability(
    policy: Policy, features: FloatArray, group: GroupArray | None
) -> None:
    """0 <= acceptance <= 1, one float per row.

    Examples
    --------
    >>> import numpy as np
    >>> import evenhand as eh
    >>> from evenhand.hypotheses import ACCEPT_ALL
    >>> policy = eh.policies.Mixture((ACCEPT_ALL,), (1.0,))
    >>> acceptance_is_a_probability(policy, np.zeros((4, 1)), None)
    """
    acceptance = policy.acceptance(features, group)
    shape = acceptance.shape == (len(features),)
    require(shape, f"acceptance has shape {acceptance.shape} for {len(features)} rows")
    inside = bool(np.all((acceptance >= 0) & (acceptance <= 1)))
    require(inside, f"acceptance lies in [{acceptance.min()}, {acceptance.max()}]")


@requirement
def acceptance_of_each_row_alone(
    policy: Policy, features: FloatArray, group: GroupArray | None
) -> None:
    """A row's acceptance does not depend on the other rows.

    Examples
    --------
    >>> import numpy as np
    >>> import evenhand as eh
    >>> from evenhand.hypotheses import ACCEPT_ALL
    >>> policy = eh.policies.Mixture((ACCEPT_ALL,), (1.0,))
    >>> acceptance_of_each_row_alone(policy, np.zeros((4, 1)), None)
    """
    part = policy.acceptance(features[::-2], None if group is None else group[::-2])
    whole = policy.acceptance(features, group)[::-2]
    changed = int(np.sum(part != whole)) if part.shape == whole.shape else len(whole)
    require(changed == 0, f"{changed} of {len(whole)} rows changed on a subset")


@requirement
def policy_survives_json(policy: Policy, features: FloatArray, group: GroupArray | None) -> None:
    """pi -> JSON -> pi is the identity, or to_json raises NotSerialisable.

    Examples
    --------
    >>> import numpy as np
    >>> import evenhand as eh
    >>> from evenhand.hypotheses import ACCEPT_ALL
    >>> policy = eh.policies.Mixture((ACCEPT_ALL,), (1.0,))
    >>> policy_survives_json(policy, np.zeros((4, 1)), None)
    """
    try:
        data = policy.to_json()
    except NotSerialisable:
        return
    read = policy_from_json(through_text(data))
    equal = read.to_json() == data and same(
        read.acceptance(features, group), policy.acceptance(features, group)
    )
    require(equal, f"{data} came back as {read.to_json()}")


POLICY_REQUIREMENTS = (
    acceptance_is_a_probability,
    acceptance_of_each_row_alone,
    policy_survives_json,
)


def check_policy(
    policy: Policy, features: FloatArray, group: GroupArray | None = None
) -> tuple[str, ...]:
    """Check every requirement of policies.

    Parameters
    ----------
    policy : Policy
        The policy.
    features : array of float
        The people that it is asked about.
    group : array, optional
        Their groups.

    Returns
    -------
    tuple of str
        The names of the requirements.

    Raises
    ------
    RequirementBroken
        At the first requirement that does not hold.

    Examples
    --------
    >>> import numpy as np
    >>> import evenhand as eh
    >>> from evenhand.hypotheses import ACCEPT_ALL
    >>> from evenhand.testing import check_policy
    >>> len(check_policy(eh.policies.Mixture((ACCEPT_ALL,), (1.0,)), np.zeros((4, 1))))
    3
    """
    return check_each(POLICY_REQUIREMENTS, policy, features, group)


# rates


@requirement
def swapping_groups_flips_the_gap(rate: Rate, sample: LabelledSample) -> None:
    """gap(pi) on the sample with its two groups swapped = -gap(pi).

    Examples
    --------
    >>> import evenhand as eh
    >>> people = eh.LabelledSample([[0.0]] * 4, ["a", "a", "b", "b"], [1, -1, 1, -1])
    >>> swapping_groups_flips_the_gap(eh.FalsePositiveRate(), people)
    """
    one = sample.groups[0]
    two = sample.groups[-1]
    exchanged = sample.group.copy()
    exchanged[sample.group == one] = two
    exchanged[sample.group == two] = one
    swapped = LabelledSample(sample.features, exchanged, sample.label, sample.count)
    both = [GapConstraints.on(rate, people) for people in (sample, swapped)]
    for acceptance in _acceptances(len(sample)):
        rates = [constraints.group_rates(acceptance)[rate.symbol] for constraints in both]
        gap, other = (by_group[two] - by_group[one] for by_group in rates)
        require(abs(gap + other) <= EQUAL, f"gap {gap!r} became {other!r}")


@requirement
def constants_have_no_gap(rate: Rate, sample: LabelledSample) -> None:
    """Accepting all applicants, or nobody, has gap 0.

    Examples
    --------
    >>> import evenhand as eh
    >>> people = eh.LabelledSample([[0.0]] * 4, ["a", "a", "b", "b"], [1, -1, 1, -1])
    >>> constants_have_no_gap(eh.FalsePositiveRate(), people)
    """
    for share in (0.0, 1.0):
        gaps = GapConstraints.on(rate, sample).gaps(np.full(len(sample), share))
        worst = float(np.abs(gaps).max())
        require(worst <= EQUAL, f"accepting {share:.0%} of all applicants has gap {worst!r}")


@requirement
def rates_are_shares(rate: Rate, sample: LabelledSample) -> None:
    """0 <= rate_j <= 1, whatever is accepted.

    Examples
    --------
    >>> import evenhand as eh
    >>> people = eh.LabelledSample([[0.0]] * 4, ["a", "a", "b", "b"], [1, -1, 1, -1])
    >>> rates_are_shares(eh.FalsePositiveRate(), people)
    """
    constraints = GapConstraints.on(rate, sample)
    for acceptance in _acceptances(len(sample)):
        for group, value in constraints.group_rates(acceptance)[rate.symbol].items():
            require(-EQUAL <= value <= 1 + EQUAL, f"{rate.symbol} of group {group!r} is {value!r}")


@requirement
def gap_ignores_row_order(rate: Rate, sample: LabelledSample) -> None:
    """Permuting the sample changes no gap.

    Examples
    --------
    >>> import evenhand as eh
    >>> people = eh.LabelledSample([[0.0]] * 4, ["a", "a", "b", "b"], [1, -1, 1, -1])
    >>> gap_ignores_row_order(eh.FalsePositiveRate(), people)
    """
    order = np.random.default_rng(1).permutation(len(sample))
    count = None if sample.count is None else sample.count[order]
    rows = (sample.features[order], sample.group[order], sample.label[order], count)
    before, after = (GapConstraints.on(rate, one) for one in (sample, LabelledSample(*rows)))
    for acceptance in _acceptances(len(sample)):
        off = np.abs(before.gaps(acceptance) - after.gaps(acceptance[order]))
        require(float(off.max()) <= EQUAL, f"a gap moved by {off.max():.3g}")


RATE_REQUIREMENTS = (
    swapping_groups_flips_the_gap,
    constants_have_no_gap,
    rates_are_shares,
    gap_ignores_row_order,
)


def check_rate(
    rate: Rate, *, sample: LabelledSample | None = None, seed: int = 0
) -> tuple[str, ...]:
    """Check every requirement of rates.

    Parameters
    ----------
    rate : Rate
        The rate.
    sample : LabelledSample, optional
        People of two groups with both labels; by default 80 drawn people.
    seed : int
        The seed of the drawn people.

    Returns
    -------
    tuple of str
        The names of the requirements.

    Raises
    ------
    RequirementBroken
        At the first requirement that does not hold.

    Examples
    --------
    >>> import evenhand as eh
    >>> from evenhand.testing import check_rate
    >>> len(check_rate(eh.FalsePositiveRate()))
    4
    """
    return check_each(RATE_REQUIREMENTS, rate, draw_sample(seed) if sample is None else sample)


def draw_sample(seed: int, rows: int = 80) -> LabelledSample:
    """Two groups, both labels in each."""
    draw = np.random.default_rng(seed)
    group = np.resize(["a", "b", "b"], rows)
    label = np.where(draw.random(rows) < 0.5, 1, -1)
    label[:6] = [1, 1, -1, -1, -1, 1]
    return LabelledSample(draw.normal(size=(rows, 2)), group, label)


def _acceptances(rows: int) -> Iterator[FloatArray]:
    draw = np.random.default_rng(0)
    yield draw.random(rows)
    yield (draw.random(rows) < 0.5).astype(np.float64)


# bounds


def _limits(bound: FixedCountBound, counts: AuditCounts) -> tuple[FloatArray, FloatArray]:
    log_size = float(np.log(len(counts.most)))
    found = bound.intervals(counts, delta=DELTA, log_size=log_size, columns=1)
    return np.asarray(found.lower), np.asarray(found.upper)


@requirement
def limits_lie_in_range(bound: FixedCountBound, counts: AuditCounts) -> None:
    """-1 <= lower <= upper <= 1, one interval for each hypothesis, rate and pair of groups.

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


@requirement
def exchanging_groups_mirrors_the_limits(bound: FixedCountBound, counts: AuditCounts) -> None:
    """[lower, upper] of two groups becomes [-upper, -lower] when they are exchanged.

    Examples
    --------
    >>> from evenhand.bounds import AuditHoeffding
    >>> counts = AuditCounts.of([[30, 20]], [[40, 50]])
    >>> exchanging_groups_mirrors_the_limits(AuditHoeffding(), counts)
    """
    columns = ("most", "most_people", "least", "least_people", "people")
    turned = replace(counts, **{name: getattr(counts, name)[..., ::-1] for name in columns})
    lower, upper = _limits(bound, counts)
    other_lower, other_upper = _limits(bound, turned)
    off = max(np.abs(lower + other_upper).max(), np.abs(upper + other_lower).max())
    require(off <= EQUAL, f"a limit is off by {off:.3g}")


@requirement
def doubtful_people_widen_the_limits(bound: FixedCountBound, counts: AuditCounts) -> None:
    """People whose label has not come make no interval narrower, and some of them wider.

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
    lower, upper = _limits(bound, counts)
    wide_lower, wide_upper = _limits(bound, doubtful)
    narrower = max(float((wide_lower - lower).max()), float((upper - wide_upper).max()))
    require(narrower <= EQUAL, f"an interval became narrower by {narrower:.3g}")
    more = float((wide_upper - wide_lower).sum() - (upper - lower).sum())
    require(more > EQUAL, f"all widths together grew by {more:.3g}")


@requirement
def gaps_are_covered(bound: FixedCountBound, counts: AuditCounts) -> None:
    """With probability at least 1 - delta every gap lies in its interval.

    It is asked for rates of two groups that are drawn with as many people as there were audits of
    the first group.

    Examples
    --------
    >>> from evenhand.bounds import AuditHoeffding
    >>> gaps_are_covered(AuditHoeffding(), AuditCounts.of([[30, 20]], [[40, 50]]))
    """
    size = int(counts.people[0, 0])
    draw = np.random.default_rng(7)
    people = np.full((1, 2), size)
    truth = np.array([[[0.3, 0.5]], [[0.05, 0.02]], [[0.9, 0.8]]])
    gap = truth[:, 0, 1] - truth[:, 0, 0]
    misses = 0
    for _ in range(RUNS):
        lower, upper = _limits(bound, AuditCounts.of(draw.binomial(size, truth), people))
        misses += bool(((gap < lower[:, 0]) | (gap > upper[:, 0])).any())
    figures = f"{misses} of {RUNS} runs missed a gap at delta {DELTA}"
    require(misses <= MOST_MISSES * RUNS, figures)


@requirement
def the_same_counts_have_the_same_limits(bound: FixedCountBound, counts: AuditCounts) -> None:
    """A bound draws nothing by chance, remembers nothing, and changes no count.

    Examples
    --------
    >>> from evenhand.bounds import AuditHoeffding
    >>> counts = AuditCounts.of([[30, 20]], [[40, 50]])
    >>> the_same_counts_have_the_same_limits(AuditHoeffding(), counts)
    """
    kept = counts.most.copy()
    first = _limits(bound, counts)
    again = _limits(bound, counts)
    equal = all(same(one, two) for one, two in zip(first, again, strict=True))
    require(equal and same(kept, counts.most), "another call gave another answer")


BOUND_REQUIREMENTS = (
    limits_lie_in_range,
    exchanging_groups_mirrors_the_limits,
    doubtful_people_widen_the_limits,
    gaps_are_covered,
    the_same_counts_have_the_same_limits,
)


def check_bound(bound: FixedCountBound, *, seed: int = 0) -> tuple[str, ...]:
    """Run every requirement of confidence bounds.

    Parameters
    ----------
    bound : FixedCountBound
        The bound.
    seed : int
        Of the counts that are drawn.

    Returns
    -------
    tuple of str
        The names of the requirements.

    Raises
    ------
    RequirementBroken
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
    return check_each(
        BOUND_REQUIREMENTS, bound, AuditCounts.of(accepted, people, signs=[1.0, -1.0])
    )
