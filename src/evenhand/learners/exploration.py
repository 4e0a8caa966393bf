"""Step 1 of the paper: accept everybody until the sample tells the gap of every hypothesis well enough.

The exploration ends on *counts* of (group, label), never on features, so that a bound for fixed counts stays valid.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from evenhand.contracts import HypothesisClass
from evenhand.errors import InvalidInput
from evenhand.estimation import RoundLog
from evenhand.fairness.bounds.slack import ClopperPearson, Dkw, JointHoeffding, SlackBound, people_needed
from evenhand.fairness.rates import Rate
from evenhand.learners.codec import storable
from evenhand.words import FloatArray, LabelledSample

Reading = Literal["evenhand", "paper"]
"""How slack and limit relate: "evenhand" constrains the empirical gap at gamma' - beta and so promises gamma'; "paper" is the main
theorem's literal claim, an empirical gap of gamma + beta and a promise of gamma + beta, which does not hold."""

BOUNDS: Mapping[str, SlackBound] = {
    "joint-hoeffding": JointHoeffding(),
    "dkw": Dkw(),
    "clopper-pearson": ClopperPearson(),
}


def as_bound(bound: str | SlackBound | None, hypotheses: HypothesisClass) -> SlackBound:
    """The bound by name or as it is; by default joint Hoeffding for finite classes and DKW for thresholds and stumps."""
    if isinstance(bound, str) and bound not in BOUNDS:
        raise InvalidInput(f"bound is {bound!r}; it is one of {', '.join(BOUNDS)}, or an object with slack().")
    if bound is None:
        bound = "joint-hoeffding" if np.isfinite(hypotheses.log_size) else "dkw"
    chosen = BOUNDS[bound] if isinstance(bound, str) else bound
    if isinstance(chosen, Dkw) and not getattr(hypotheses, "one_column", False):
        raise InvalidInput(
            f"the DKW bound covers thresholds on one column, but {type(hypotheses).__name__} holds other rules, too.",
            hint="use a FiniteClass with joint-hoeffding, CertifiedLearner for rich classes, or Stumps or ScoreThresholds.",
        )
    return chosen


def sample_of(log: RoundLog) -> LabelledSample:
    """The labelled rows of an accept-all log, each with its count."""
    features = np.concatenate([log.features, log.features])
    group = np.concatenate([log.group, log.group]) if log.group is not None else np.zeros(len(features), int)
    label = np.repeat([1, -1], len(log))
    count = np.concatenate([log.positive, log.negative])
    seen = count > 0
    return LabelledSample(features[seen], group[seen], label[seen], count[seen])


def denominators(sample: LabelledSample, rates: tuple[Rate, ...]) -> FloatArray:
    """(rates, groups): how many people each rate of each group is estimated from."""
    return np.array(
        [
            [
                (sample.weight * rate.in_denominator(sample.label))[sample.group == group].sum()
                for group in sample.groups
            ]
            for rate in rates
        ]
    )


@storable
@dataclass(frozen=True)
class Slack:
    """What an exploration sample allows: beta, and the limit for the empirical gap that it implies."""

    beta: float
    limit: float
    promise: float


@dataclass(frozen=True, eq=False)
class Explorer:
    """The rule that ends the exploration and turns its sample into a limit for the empirical gap."""

    bound: SlackBound
    hypotheses: HypothesisClass
    rates: tuple[Rate, ...]
    promised: float | None
    comparator: float
    failure_probability: float
    reading: Reading

    def arguments(self, columns: int) -> dict[str, Any]:
        """What every bound is told."""
        return {
            "log_size": self.hypotheses.log_size,
            "columns": columns,
            "failure_probability": self.failure_probability,
        }

    def beta(self, sample: LabelledSample) -> float:
        """|gap on the sample - gap on D| <= beta for all hypotheses at once, with probability 1 - delta."""
        if len(sample.groups) < 2:
            return float("inf")
        return self.bound.slack(denominators(sample, self.rates), **self.arguments(sample.features.shape[1]))

    @property
    def target(self) -> float | None:
        """The slack at which the exploration ends: then every gamma-fair policy is allowed, and gamma' is kept."""
        if self.promised is None:
            return None
        return (self.promised - self.comparator) / (2 if self.reading == "evenhand" else 1)

    def needed(self, *, on_counts: bool) -> float | None:
        """The slack that the exploration must reach. If its length is given, it still goes on until the promise can be kept at all:

        with beta above gamma' even a policy without any gap on the sample may have one above gamma' on D.
        """
        if on_counts:
            return self.target
        return self.promised if self.reading == "evenhand" and self.promised != 1 else None

    def suffices(self, sample: LabelledSample, *, on_counts: bool) -> bool:
        """Whether the exploration may end with this sample."""
        beta, needed = self.beta(sample), self.needed(on_counts=on_counts)
        return bool(np.isfinite(beta)) and (needed is None or beta <= needed)

    def slack(self, sample: LabelledSample) -> Slack:
        """beta with the limit and the promise that follow from it."""
        beta = self.beta(sample)
        if self.reading == "paper":
            return Slack(beta, self.comparator + beta, self.comparator + beta)
        if self.promised is not None and self.promised >= 1:  # no policy can break this promise
            return Slack(beta, self.promised, self.promised)
        promise = self.promised if self.promised is not None else self.comparator + 2 * beta
        return Slack(beta, max(promise - beta, 0.0), promise)

    def shortfall(self, sample: LabelledSample | None, *, on_counts: bool = True) -> str | None:
        """What is missing, in words; None if nothing is."""
        if sample is None or len(sample.groups) < 2:
            seen = "nobody" if sample is None else f"only group {sample.groups[0]!r}"
            return f"exploring: {seen} has been seen so far; a gap needs people of two groups."
        counts = denominators(sample, self.rates)
        if counts.min() == 0:
            r, j = np.argwhere(counts == 0)[0]
            people = int(sample.weight[sample.group == sample.groups[j]].sum())
            return (
                f"exploring: group {sample.groups[j]!r} has {people} people but 0 {self.rates[r].denominator_name}; "
                "at least one is needed, and many more for a useful bound."
            )
        target = self.needed(on_counts=on_counts)
        if target is None:
            return None
        need = people_needed(self.bound, counts, target, **self.arguments(sample.features.shape[1]))
        if need.multiple <= 1:
            return None
        r, j = np.unravel_index(int(np.argmax(need.more)), need.more.shape)
        arrivals = float(sample.weight.sum()) * (need.multiple - 1)
        return (
            f"exploring: group {sample.groups[j]!r} has {counts[r, j]:.0f} {self.rates[r].denominator_name} and needs about "
            f"{need.more[r, j]:.0f} more; at the present shares that is about {arrivals:.0f} more people."
        )
