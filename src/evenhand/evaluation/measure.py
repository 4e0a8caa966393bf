"""The rates of decisions that were made, whoever made them: no policy and no propensity is needed.

For each rate and group let k of n people of the rate's denominator have the event (accepted, or
rejected for the false negative rate). The interval of Clopper and Pearson,

    lower: P[Bin(n, lower) >= k] = alpha,   upper: P[Bin(n, upper) <= k] = alpha,
    alpha = failure_probability / (2 * rates * groups),

holds for all rates and groups at once with probability 1 - failure_probability, if people arrive
independently. Gaps and ratios follow from the ends of the intervals.

Where outcomes are missing, nobody is left out and nothing is guessed: each missing outcome may be
good or bad. The rate then lies in the range from the completion that makes it least to the one that
makes it largest. Both ends of Clopper and Pearson's interval grow if an event is added and fall if
a non-event is added, so the lower end for the least and the upper end for the largest completion
hold for the true one, whatever it is.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
import scipy.special

from evenhand.contracts import Json, Policy, Rate
from evenhand.errors import InvalidInput
from evenhand.fairness.rates import RateLike, as_rates
from evenhand.hypotheses import ACCEPT_ALL, REJECT_ALL
from evenhand.policies import Mixture
from evenhand.words import BoolArray, FloatArray, Group, IntArray, LabelledSample


@dataclass(frozen=True)
class GroupMeasure:
    """One rate of one group.

    Parameters
    ----------
    group : object
        The group.
    events, people : int
        How many had the event, of how many whose outcome is known (or is not needed).
    unknown : int
        People who may or may not belong to the denominator: their outcome is missing.
    least, largest : float
        The rate on these people; one number if no outcome is missing, else a range. Not a number
        if nobody belongs to the denominator.
    lower, upper : float
        The confidence interval for the population.
    """

    group: Group
    events: int
    people: int
    unknown: int
    least: float
    largest: float
    lower: float
    upper: float


@dataclass(frozen=True)
class RateMeasure:
    """One rate in all groups, its largest gap and its smallest ratio.

    Parameters
    ----------
    name, symbol : str
        The rate.
    groups : tuple of GroupMeasure
        The rate of each group.
    gap : tuple of float or None
        The largest difference between two groups on these people; None where outcomes are missing
        or a group has nobody in the denominator.
    gap_interval : tuple of float
        (lower, upper): confidence interval of the largest gap; (0, 1) if there is one group only,
        which shows nothing of a gap.
    ratio : float or None
        The smallest rate divided by the largest, on these people.
    ratio_interval : tuple of float
        (lower, upper): confidence interval of that ratio.
    """

    name: str
    symbol: str
    groups: tuple[GroupMeasure, ...]
    gap: float | None
    gap_interval: tuple[float, float]
    ratio: float | None
    ratio_interval: tuple[float, float]

    @property
    def is_identified(self) -> bool:
        """Whether no missing outcome can change the rate on these people."""
        return not any(one.unknown for one in self.groups)


@dataclass(frozen=True)
class _Measured:
    """What was measured, as a record of plain values."""

    def to_json(self) -> Json:
        """Write the measurement as plain JSON.

        Returns
        -------
        dict
            The fields.
        """
        return asdict(self)


@dataclass(frozen=True)
class Measurement(_Measured):
    """What was measured of a list of decisions.

    Parameters
    ----------
    people, accepted, outcomes : int
        How many were decided, accepted, and have a known outcome.
    failure_probability : float
        All intervals hold at once with probability 1 minus this.
    rates : tuple of RateMeasure
        The rates.
    """

    people: int
    accepted: int
    outcomes: int
    failure_probability: float
    rates: tuple[RateMeasure, ...]


@dataclass(frozen=True)
class PolicyMeasurement(_Measured):
    """What was measured of a policy on new people.

    Parameters
    ----------
    people : int
        How many they are.
    failure_probability : float
        All intervals hold at once with probability 1 minus this.
    rates : tuple of RateMeasure
        The rates.
    cost : float or None
        The cost per person; the error rate where both prices are 1.
    cost_interval : tuple of float or None
        Its confidence interval.
    """

    people: int
    failure_probability: float
    rates: tuple[RateMeasure, ...]
    cost: float | None
    cost_interval: tuple[float, float] | None

    def verdict(self, symbol: str, limit: float) -> str:
        """Tell whether the gap of a rate is within a limit.

        Parameters
        ----------
        symbol : str
            The rate.
        limit : float
            The limit.

        Returns
        -------
        {"within", "above", "not shown"}
            Within or above with probability 1 - failure_probability; or neither is shown.
        """
        lower, upper = next(rate.gap_interval for rate in self.rates if rate.symbol == symbol)
        return "within" if upper <= limit else "above" if lower > limit else "not shown"


@dataclass(frozen=True, eq=False)
class _Counts:
    """Who counts for one rate: for sure, with and without the event; and, because an outcome is
    missing, perhaps, as an event or as a miss.
    """

    name: str
    symbol: str
    events: BoolArray
    people: BoolArray
    perhaps: BoolArray
    perhaps_events: BoolArray
    perhaps_misses: BoolArray

    @classmethod
    def of(cls, rate: Rate, accepted: BoolArray, labels: FloatArray) -> "_Counts":
        """Those of a rate whose denominator hangs on the outcome, if on anything."""
        known = np.isfinite(labels)
        label: IntArray = np.where(known, labels, 1).astype(np.int64)
        if_good = np.asarray(rate.in_denominator(label))
        if_bad = np.asarray(rate.in_denominator(np.where(known, label, -1)))
        event = accepted if rate.sign > 0 else ~accepted
        sure, perhaps = if_good & if_bad, if_good ^ if_bad
        sides = (perhaps & event, perhaps & ~event)
        return cls(rate.name, rate.symbol, sure & event, sure, perhaps, *sides)

    @classmethod
    def of_good(cls, accepted: BoolArray, labels: FloatArray) -> "_Counts":
        """The share of good outcomes among the accepted: all that one-sided outcomes identify. A
        missing outcome may be the event or not.
        """
        sure, perhaps = accepted & np.isfinite(labels), accepted & ~np.isfinite(labels)
        name, event = "good outcomes among the accepted", sure & (labels == 1)
        return cls(name, "PPV", event, sure, perhaps, perhaps, perhaps)

    def compared(self, rows: dict[Group, BoolArray], alpha: float) -> RateMeasure:
        """The rate in each group, whose rows are given; each end is wrong with probability alpha at
        most.
        """
        parts = []
        for group, here in rows.items():
            k, n = int(np.sum(self.events & here)), int(np.sum(self.people & here))
            more, fewer = (
                int(np.sum(side & here)) for side in (self.perhaps_events, self.perhaps_misses)
            )
            parts.append(
                GroupMeasure(
                    group=group,
                    events=k,
                    people=n,
                    unknown=int(np.sum(self.perhaps & here)),
                    least=k / (n + fewer) if n + fewer else 1.0 if more else float("nan"),
                    largest=(k + more) / (n + more) if n + more else 0.0 if fewer else float("nan"),
                    lower=interval(k, n + fewer, alpha)[0],
                    upper=interval(k + more, n + more, alpha)[1],
                )
            )
        return _compared(self.name, self.symbol, tuple(parts))


def interval(events: int, people: int, alpha: float) -> tuple[float, float]:
    """Clopper and Pearson's interval, each end wrong with probability at most alpha.

    Parameters
    ----------
    events, people : int
        k of n.
    alpha : float
        The chance of error of each end.

    Returns
    -------
    tuple of float
        (lower, upper); (0, 1) for nobody.

    Examples
    --------
    >>> [round(end, 4) for end in interval(3, 10, 0.025)]
    [0.0667, 0.6525]
    """
    misses = people - events
    lower = scipy.special.betaincinv(events, misses + 1, alpha) if events else 0.0
    upper = scipy.special.betaincinv(events + 1, misses, 1 - alpha) if misses else 1.0
    return float(lower), float(upper)


def measure_decisions(
    accepted: BoolArray,
    group: Sequence[Group],
    label: FloatArray | None = None,
    *,
    rates: RateLike = ("selection", "fpr", "fnr"),
    failure_probability: float = 0.05,
) -> Measurement:
    """Measure rates, gaps and ratios of decisions, with exact intervals.

    Parameters
    ----------
    accepted : array of bool
        Who was accepted.
    group : sequence
        Each person's group.
    label : array of float, optional
        +1 good, -1 bad, not a number where the outcome is missing; None if none is known: then
        only rates that need no outcome are measured.
    rates : rate, name or list of them
        What to measure. With labels, the share of good outcomes among the accepted is added.
    failure_probability : float
        All intervals hold at once with probability 1 minus this.

    Returns
    -------
    Measurement
        The rates of each group, their gaps and ratios.

    Examples
    --------
    >>> accepted = np.array([True, True, False, True, False, False])
    >>> measured = measure_decisions(accepted, ["a", "a", "a", "b", "b", "b"])
    >>> measured.rates[0].name, round(measured.rates[0].gap, 3)
    ('selection rate', 0.333)
    """
    if not 0 < failure_probability < 1:
        raise InvalidInput(
            f"failure_probability is {failure_probability}; it lies between 0 and 1.",
            hint="0.05 gives intervals that hold with probability 0.95.",
        )
    accepted, belongs = np.asarray(accepted, dtype=bool), np.asarray(group, dtype=object)
    if not len(accepted) or len(belongs) != len(accepted):
        raise InvalidInput(
            f"{len(accepted)} decisions came with {len(belongs)} groups; each person has one.",
        )
    labels = np.full(len(accepted), np.nan) if label is None else np.asarray(label, dtype=float)
    known = np.isfinite(labels)
    both = np.array([1, -1])  # who counts with both outcomes needs none
    asked = [rate for rate in as_rates(rates) if known.any() or rate.in_denominator(both).all()]
    if not asked:
        raise InvalidInput(
            "no outcome is known, and all rates asked for need outcomes.",
            hint="name the column of outcomes, or measure the selection rate.",
        )
    counts = [_Counts.of(rate, accepted, labels) for rate in asked]
    if known.any():
        counts.append(_Counts.of_good(accepted, labels))
    names = sorted(set(belongs.tolist()), key=str)
    rows = {name: np.asarray(belongs == name) for name in names}
    alpha = failure_probability / (2 * len(counts) * len(rows))
    return Measurement(
        people=len(accepted),
        accepted=int(accepted.sum()),
        outcomes=int(known.sum()),
        failure_probability=failure_probability,
        rates=tuple(one.compared(rows, alpha) for one in counts),
    )


def _compared(name: str, symbol: str, parts: tuple[GroupMeasure, ...]) -> RateMeasure:
    pairs = [(a, b) for a in parts for b in parts if a is not b]
    exact = all(one.least == one.largest for one in parts) and len(parts) > 1
    values = [one.least for one in parts]
    if not pairs:
        return RateMeasure(name, symbol, parts, None, (0.0, 1.0), None, (0.0, 1.0))
    return RateMeasure(
        name=name,
        symbol=symbol,
        groups=parts,
        gap=max(values) - min(values) if exact else None,
        gap_interval=(
            max([0.0, *(a.lower - b.upper for a, b in pairs)]),
            max([0.0, *(a.upper - b.lower for a, b in pairs)]),
        ),
        ratio=min(values) / max(values) if exact and max(values) > 0 else None,
        ratio_interval=(
            min([1.0, *(a.lower / b.upper for a, b in pairs if b.upper > 0)]),
            min([1.0, *(a.upper / b.lower for a, b in pairs if b.lower > 0)]),
        ),
    )


def measure_policy(
    policy: Policy,
    people: LabelledSample,
    *,
    rates: RateLike = ("selection", "fpr", "fnr"),
    prices: tuple[float, float] | None = (1.0, 1.0),
    failure_probability: float = 0.05,
) -> PolicyMeasurement:
    """Measure a policy on people who had no part in choosing it, with exact intervals.

    A mixture accepts with probability sum_j w_j 1[h_j(x) accepts]. Each rule's rate is a share of
    people, so Clopper and Pearson's interval holds for it, and the weighted sum of the intervals of
    all rules holds for the mixture; rules that accept or reject everybody need none.

    Parameters
    ----------
    policy : Policy
        The policy, which must be a mixture of rules.
    people : LabelledSample
        New people.
    rates : rate, name or list of them
        What to measure.
    prices : tuple of float, optional
        The prices of a false accept and of a false reject; None measures no cost.
    failure_probability : float
        All intervals hold at once with probability 1 minus this.

    Returns
    -------
    PolicyMeasurement
        The rates of each group, their gaps and ratios, and the cost.

    Examples
    --------
    >>> from evenhand.policies import Mixture
    >>> from evenhand.hypotheses import ACCEPT_ALL
    >>> people = LabelledSample(np.zeros((4, 1)), list("aabb"), [1, -1, 1, -1])
    >>> measured = measure_policy(Mixture((ACCEPT_ALL,), (1.0,)), people)
    >>> measured.cost, measured.rates[0].gap
    (0.5, 0.0)
    """
    asked, groups = as_rates(rates), list(people.groups)
    share = failure_probability / (2 * (len(asked) * len(groups) + 2))
    parts = _Rule.each_of(policy, people)
    against = [replace(one, event=~one.event) for one in parts]
    alpha = share / len(parts)
    measures = []
    for rate in asked:
        counted = np.asarray(rate.in_denominator(people.label))
        measured = []
        for name in groups:
            here = counted & np.asarray(people.group == name)
            value, lower, upper = _weighted(parts if rate.sign > 0 else against, here, alpha)
            n = int(here.sum())
            measured.append(
                GroupMeasure(name, round(value * n) if n else 0, n, 0, value, value, lower, upper)
            )
        measures.append(_compared(rate.name, rate.symbol, tuple(measured)))
    cost: tuple[float, ...] | None = None
    if prices is not None:
        everybody, bad = np.ones(len(people), dtype=bool), people.label == -1
        accepts = [_Rule(one.event & bad, one.weight) for one in parts]
        rejects = [_Rule(~one.event & ~bad, one.weight) for one in parts]
        wrong = [_weighted(events, everybody, alpha) for events in (accepts, rejects)]
        cost = tuple(prices[0] * a + prices[1] * r for a, r in zip(*wrong, strict=True))
    return PolicyMeasurement(
        people=len(people),
        failure_probability=failure_probability,
        rates=tuple(measures),
        cost=None if cost is None else cost[0],
        cost_interval=None if cost is None else (cost[1], cost[2]),
    )


@dataclass(frozen=True, eq=False)
class _Rule:
    """Whom a rule of a mixture accepts (or for whom it has another event), its weight, and whether
    it is one of the two constants, whose rate is known.
    """

    event: BoolArray
    weight: float
    constant: bool = False

    @classmethod
    def each_of(cls, policy: Policy, people: LabelledSample) -> "list[_Rule]":
        """Whom each rule of a mixture accepts."""
        if not isinstance(policy, Mixture):
            raise InvalidInput(
                f"a {type(policy).__name__} is no mixture of rules, and exact intervals need one.",
                hint="log its decisions with their probabilities, and use evenhand evaluate.",
            )
        return [
            cls(
                np.asarray(rule.accepts(people.features, people.group), dtype=bool),
                float(weight),
                rule in (ACCEPT_ALL, REJECT_ALL),
            )
            for rule, weight in zip(policy.hypotheses, policy.weights, strict=True)
            if weight > 0
        ]


def _weighted(rules: list[_Rule], here: BoolArray, alpha: float) -> tuple[float, float, float]:
    """The share of events among some people, and its interval: sums over rules by weight."""
    n = int(here.sum())
    if n == 0:
        return float("nan"), 0.0, 1.0
    value = lower = upper = 0.0
    for rule in rules:
        events = int((rule.event & here).sum())
        ends = (events / n, events / n) if rule.constant else interval(events, n, alpha)
        value += rule.weight * events / n
        lower, upper = lower + rule.weight * ends[0], upper + rule.weight * ends[1]
    return value, lower, min(upper, 1.0)
