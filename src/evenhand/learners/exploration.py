"""Step 1 of the paper: accept everybody until the sample tells the gap of every hypothesis well
enough.

The sample is *exactly* the first N* arrivals, N* the first of the preset sizes N_0 < N_1 < ...
whose (group, label) counts suffice. The counts decide, never the features, and never which labels
happen to have come: so N* is fixed by the pairs (group, label) of the people in their order of
arrival, and a bound for fixed counts stays valid however late the labels are. See
docs/two-phase-late-labels.md.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from evenhand.bounds import ClopperPearson, Dkw, JointHoeffding, SlackBound, people_needed
from evenhand.contracts import HypothesisClass
from evenhand.errors import InvalidInput
from evenhand.estimation import RoundLog
from evenhand.estimation.log import is_known
from evenhand.fairness.rates import Rate
from evenhand.learners.storage import storable
from evenhand.words import FloatArray, Group, GroupArray, IntArray, LabelledSample

Reading = Literal["evenhand", "paper"]
"""How slack and limit relate: "evenhand" constrains the empirical gap at gamma' - beta and so
promises gamma'; "paper" is the main theorem's literal claim, an empirical gap of gamma + beta and a
promise of gamma + beta, which does not hold."""

Verdict = Literal["enough", "too few", "open"]

BOUNDS: Mapping[str, SlackBound] = {
    "joint-hoeffding": JointHoeffding(),
    "dkw": Dkw(),
    "clopper-pearson": ClopperPearson(),
}


def as_bound(bound: str | SlackBound | None, hypotheses: HypothesisClass) -> SlackBound:
    """The bound by name or as it is; by default joint Hoeffding for finite classes and DKW for
    thresholds and stumps.
    """
    if isinstance(bound, str) and bound not in BOUNDS:
        raise InvalidInput(
            f"bound is {bound!r}; it is one of {', '.join(BOUNDS)}, or an object with slack()."
        )
    if bound is None:
        bound = "joint-hoeffding" if np.isfinite(hypotheses.log_size) else "dkw"
    chosen = BOUNDS[bound] if isinstance(bound, str) else bound
    if isinstance(chosen, Dkw) and not getattr(hypotheses, "one_column", False):
        raise InvalidInput(
            f"the DKW bound covers thresholds on one column, but {type(hypotheses).__name__} "
            "holds other rules, too.",
            hint="use a FiniteClass with joint-hoeffding, CertifiedLearner for rich classes, or "
            "Stumps or ScoreThresholds.",
        )
    return chosen


def sample_of(log: RoundLog) -> LabelledSample:
    """The labelled rows of an accept-all log, each with its count."""
    features = np.concatenate([log.features, log.features])
    shown = np.zeros(len(log), int) if log.group is None else log.group
    group = np.concatenate([shown, shown])
    label = np.repeat([1, -1], len(log))
    count = np.concatenate([log.positive, log.negative])
    seen = count > 0
    return LabelledSample(features[seen], group[seen], label[seen], count[seen])


def forgotten(
    sample: LabelledSample, features: FloatArray, group: Group, label: int
) -> LabelledSample:
    """The sample without one of its people. A row of which nobody is left is wiped."""
    same = (sample.features == features).all(axis=1)
    same &= (sample.group == group) & (sample.label == label)
    row = int(np.flatnonzero(same & (sample.weight > 0))[0])
    count, rows = sample.weight.copy(), sample.features.copy()
    count[row] -= 1
    rows[row] *= count[row] > 0
    return LabelledSample(rows, sample.group, sample.label, count)


FIRST_SIZE = 64
"""The first preset size where no length of the exploration is given."""


def next_size(size: int) -> int:
    """The preset sizes: N_(i+1) = N_i + max(64, N_i // 20). N_0 is the length that was given, else
    64.
    """
    return size + max(FIRST_SIZE, size // 20)


@dataclass(frozen=True, eq=False)
class Arrivals:
    """What is known of the people of an exploration, all of them accepted, from the first one on; a
    row stands for `count` people.

    label: 0 where it is missing, because it has not come, or the person was overruled or erased;
    group: None where it is unknown or erased; features: in parts, which are put together when a
    sample is taken.
    """

    features: tuple[FloatArray, ...]
    group: GroupArray
    label: IntArray
    count: FloatArray

    @property
    def missing(self) -> int:
        """How many people have no label."""
        return int(self.count[self.label == 0].sum())

    @property
    def groups(self) -> tuple[Group, ...]:
        """The groups in the order in which they were first seen."""
        return tuple(dict.fromkeys(group for group in self.group.tolist() if group is not None))

    def denominators(self, rates: tuple[Rate, ...]) -> tuple[FloatArray, FloatArray]:
        """(rates, groups) twice: the fewest and the most people in each denominator, whatever the
        missing labels turn out to be.

        Somebody who has neither label nor group may have been of any group. A label without a group
        counts for no group.
        """
        of = [self.group == group for group in self.groups]
        anybody = (self.label == 0) & ~is_known(self.group)
        fewest, most = np.zeros((2, len(rates), len(of)))
        for r, rate in enumerate(rates):
            bad, good = rate.in_denominator(np.array([-1, 1]))
            counts = np.where(self.label == -1, bad, good)
            surely = np.where(self.label == 0, bad and good, counts) * self.count
            perhaps = np.where(self.label == 0, bad or good, counts) * self.count
            fewest[r] = [surely[members].sum() for members in of]
            most[r] = [perhaps[members | anybody].sum() for members in of]
        return fewest, most

    def sample(self) -> LabelledSample:
        """The people whose label and group are known; equal rows as one."""
        known = (self.label != 0) & is_known(self.group)
        label, count = self.label[known], self.count[known]
        ones = np.ones(len(label))
        return sample_of(
            RoundLog(
                np.concatenate(self.features)[known],
                self.group[known],
                ones,
                rejected=0 * ones,
                positive=count * (label == 1),
                negative=count * (label == -1),
            ).aggregated()
        )


def denominators(sample: LabelledSample, rates: tuple[Rate, ...]) -> FloatArray:
    """(rates, groups): how many people each rate of each group is estimated from."""
    of = [sample.group == group for group in sample.groups]
    counted = [sample.weight * rate.in_denominator(sample.label) for rate in rates]
    return np.array([[people[members].sum() for members in of] for people in counted])


@storable
@dataclass(frozen=True)
class Slack:
    """What an exploration sample allows: beta, and the limit for the empirical gap that it implies.

    missing: how many of the sample's people have no label, each of whom made beta wider.
    """

    beta: float
    limit: float
    promise: float
    missing: int = 0


@dataclass(frozen=True, eq=False)
class Explorer:
    """The rule that ends the exploration and turns its sample into a limit of the empirical gap."""

    bound: SlackBound
    hypotheses: HypothesisClass
    rates: tuple[Rate, ...]
    promised: float | None
    comparator: float
    failure_probability: float
    reading: Reading

    def beta(self, sample: LabelledSample, missing: int = 0) -> float:
        """|gap on the sample - gap on D| <= beta for all hypotheses at once, with probability 1 -
        delta.

        `missing` people belong to the sample, too, but their rows are lost: they add missing /
        min_j n_j, n_j the people that are left in the smallest denominator. Putting k of n rows
        back moves a mean of numbers in [0, 1] by at most k / n.
        """
        counts = denominators(sample, self.rates)
        lost = missing / counts.min() if missing and counts.min() > 0 else 0.0
        return self._slack_of(counts, sample.features.shape[1]) + lost

    def _slack_of(self, counts: FloatArray, columns: int) -> float:
        if counts.shape[1] < 2:
            return float("inf")
        size, delta = self.hypotheses.log_size, self.failure_probability
        return self.bound.slack(counts, log_size=size, columns=columns, failure_probability=delta)

    @property
    def target(self) -> float | None:
        """The slack at which the exploration ends: then every gamma-fair policy is allowed, and
        gamma' is kept.
        """
        if self.promised is None:
            return None
        return (self.promised - self.comparator) / (2 if self.reading == "evenhand" else 1)

    def needed(self, *, on_counts: bool) -> float | None:
        """The slack that the exploration must reach. If its length is given, it still goes on until
        the promise can be kept at all:

        with beta above gamma' even a policy without any gap on the sample may have one above gamma'
        on D.
        """
        if on_counts:
            return self.target
        return self.promised if self.reading == "evenhand" and self.promised != 1 else None

    def suffices(self, beta: float, *, on_counts: bool) -> bool:
        """Whether the exploration may end with this slack."""
        needed = self.needed(on_counts=on_counts)
        return bool(np.isfinite(beta)) and (needed is None or beta <= needed)

    def verdict(self, arrivals: Arrivals, *, on_counts: bool) -> Verdict:
        """Whether the counts of these people suffice; "open" while that depends on labels that are
        missing.

        The answer is the one that all labels would give, so it does not depend on which of them
        have come. A bound falls when counts grow, so the fewest and the most people in each
        denominator decide.
        """
        columns = arrivals.features[0].shape[1]
        counts = arrivals.denominators(self.rates)
        fewest, most = (self._slack_of(people, columns) for people in counts)
        if self.suffices(fewest, on_counts=on_counts):
            return "enough"
        return "open" if self.suffices(most, on_counts=on_counts) else "too few"

    def slack(self, sample: LabelledSample, missing: int = 0) -> Slack:
        """beta with the limit and the promise that follow from it."""
        beta = self.beta(sample, missing)
        if self.reading == "paper":
            return Slack(beta, self.comparator + beta, self.comparator + beta, missing)
        if self.promised is not None and self.promised >= 1:  # no policy can break this promise
            return Slack(beta, self.promised, self.promised, missing)
        promise = self.promised if self.promised is not None else self.comparator + 2 * beta
        return Slack(beta, max(promise - beta, 0.0), promise, missing)

    def narrowed(self, slack: Slack, sample: LabelledSample) -> Slack:
        """The slack after one more person of the sample was lost. The promise stays, so the limit
        falls as beta rises.

        Where nobody is left in the denominator of a group, nothing is known about its gaps but that
        no two of them differ by more than 2.
        """
        people = Arrivals((sample.features,), sample.group, sample.label, sample.weight)
        left, _ = people.denominators(self.rates)
        beta = min(self.beta(sample, slack.missing + 1), 2.0) if left.min() > 0 else 2.0
        limit = max(slack.limit - (beta - slack.beta), 0.0)
        return Slack(beta, limit, slack.promise, slack.missing + 1)

    def keeps(self, slack: Slack) -> bool:
        """Whether a policy that is within the limit on the sample keeps the promise."""
        return slack.beta <= slack.promise or slack.promise >= 1 or self.reading == "paper"

    def shortfall(self, arrivals: Arrivals | None, *, on_counts: bool = True) -> str | None:
        """What is missing, in words; None if nothing is."""
        if arrivals is None or len(arrivals.groups) < 2:
            seen = "nobody"
            if arrivals is not None:
                seen = f"only group {', '.join(map(repr, arrivals.groups))}"
            return f"exploring: {seen} has been seen so far; a gap needs people of two groups."
        counts, _ = arrivals.denominators(self.rates)
        if counts.min() == 0:
            r, j = np.argwhere(counts == 0)[0]
            people = int(arrivals.count[arrivals.group == arrivals.groups[j]].sum())
            return (
                f"exploring: group {arrivals.groups[j]!r} has {people} people but 0 "
                f"{self.rates[r].denominator_name}; "
                "at least one is needed, and many more for a useful bound."
            )
        target = self.needed(on_counts=on_counts)
        if target is None:
            return None
        columns = arrivals.features[0].shape[1]
        need = people_needed(lambda people: self._slack_of(people, columns), counts, target)
        if need.multiple <= 1:
            return None
        r, j = np.unravel_index(int(np.argmax(need.more)), need.more.shape)
        more = float(arrivals.count[arrivals.label != 0].sum()) * (need.multiple - 1)
        return (
            f"exploring: group {arrivals.groups[j]!r} has {counts[r, j]:.0f} "
            f"{self.rates[r].denominator_name} and needs about "
            f"{need.more[r, j]:.0f} more; at the present shares that is about {more:.0f} more "
            "people."
        )
