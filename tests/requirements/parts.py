"""The requirements of the parts of learners: policies and rates."""

from collections.abc import Iterator

import numpy as np

from evenhand.contracts import Policy
from evenhand.errors import NotSerialisable
from evenhand.fairness.rates import GapConstraints, Rate
from evenhand.hypotheses.serialise import policy_from_json
from evenhand.testing import EQUAL, check_each, require, requirement, same, through_text
from evenhand.words import FloatArray, GroupArray, LabelledSample

# policies


@requirement
def acceptance_is_a_probability(
    policy: Policy, features: FloatArray, group: GroupArray | None
) -> None:
    """0 <= acceptance <= 1, one float per row."""
    acceptance = policy.acceptance(features, group)
    shape = acceptance.shape == (len(features),)
    require(shape, f"acceptance has shape {acceptance.shape} for {len(features)} rows")
    inside = bool(np.all((acceptance >= 0) & (acceptance <= 1)))
    require(inside, f"acceptance lies in [{acceptance.min()}, {acceptance.max()}]")


@requirement
def acceptance_of_each_row_alone(
    policy: Policy, features: FloatArray, group: GroupArray | None
) -> None:
    """A row's acceptance does not depend on the other rows."""
    part = policy.acceptance(features[::-2], None if group is None else group[::-2])
    whole = policy.acceptance(features, group)[::-2]
    changed = int(np.sum(part != whole)) if part.shape == whole.shape else len(whole)
    require(changed == 0, f"{changed} of {len(whole)} rows changed on a subset")


@requirement
def policy_survives_json(policy: Policy, features: FloatArray, group: GroupArray | None) -> None:
    """pi -> JSON -> pi is the identity, or to_json raises NotSerialisable."""
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
    """Check every requirement of policies."""
    return check_each(POLICY_REQUIREMENTS, policy, features, group)


# rates


@requirement
def swapping_groups_flips_the_gap(rate: Rate, sample: LabelledSample) -> None:
    """gap(pi) on the sample with its two groups swapped = -gap(pi)."""
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
    """Accepting all applicants, or nobody, has gap 0."""
    for share in (0.0, 1.0):
        gaps = GapConstraints.on(rate, sample).gaps(np.full(len(sample), share))
        worst = float(np.abs(gaps).max())
        require(worst <= EQUAL, f"accepting {share:.0%} of all applicants has gap {worst!r}")


@requirement
def rates_are_shares(rate: Rate, sample: LabelledSample) -> None:
    """0 <= rate_j <= 1, whatever is accepted."""
    constraints = GapConstraints.on(rate, sample)
    for acceptance in _acceptances(len(sample)):
        for group, value in constraints.group_rates(acceptance)[rate.symbol].items():
            require(-EQUAL <= value <= 1 + EQUAL, f"{rate.symbol} of group {group!r} is {value!r}")


@requirement
def gap_ignores_row_order(rate: Rate, sample: LabelledSample) -> None:
    """Permuting the sample changes no gap."""
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
    """Check every requirement of rates."""
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
