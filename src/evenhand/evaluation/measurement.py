"""The rates of decisions that were made, whoever made them: no policy and no propensity is needed.

For each rate and group let k of n people of the rate's denominator have the event (accepted, or
rejected for the false negative rate). Two families of intervals are shown, and each holds as a
whole with probability 1 - delta, if people arrive independently:

- **comparisons.** The difference (or the ratio) of two groups' rates has an exact interval
  (`evenhand.bounds.proportions`), each end wrong with probability alpha = delta / (2 K), K the
  number of comparisons that are shown: rates times pairs of groups. Fewer pairs, narrower
  intervals: name a reference group, or the pairs.
- **rates.** Each rate of each group has Clopper and Pearson's interval,
  alpha = delta / (2 * rates * groups).

Where outcomes are missing, nobody is left out and nothing is guessed: each missing outcome may be
good or bad. In the population the rate then lies between two numbers that are binomial shares: the
largest is P(S1 | S1 or S2) with S1 the events and the missing outcomes that may be events, S2 the
known misses; the smallest has the missing outcomes among the misses. The interval of a difference
compares the smallest of one group with the largest of the other.

A file that grows and is looked at again and again needs confidence sequences (`watch=True`), which
hold at all looks at once: `evenhand.bounds.sequences` has them. Nobody knows beforehand how many
groups will turn up, so delta is not divided by their number. With R rates and G groupings, which
the call fixes, the j-th group to turn up gets, of delta / (R G),

    for its rate                          6 / (pi j)^2
    for each pair with a group before it  6 / (pi (j - 1))^2 / (j - 1),    j >= 2

and half of that for either end. Since 1 + 1/4 + 1/9 + ... = pi^2 / 6, either line sums to at most 1
over all groups that have come or will. Levels depend on the order of the groups alone: no later row
changes them, and given everybody's group they are fixed, while decisions and outcomes are still
independent. So each interval is one process at one level, wrong at any look with at most that
probability, and by the union bound each family holds for all groups at all looks. With a reference
there is one pair for each other group: the k-th of them gets 6 / (pi k)^2. Pairs that are named
are known beforehand and share equally.

Rows are only added, each for good: differences pair the i-th person of one group with the i-th of
the other, and an outcome that came later would change who is paired.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from math import inf, isnan, nan, pi
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from evenhand.bounds.proportions import (
    Interval,
    difference_interval,
    proportion_interval,
    ratio_interval,
)
from evenhand.bounds.sequences import difference_sequence, proportion_sequence
from evenhand.contracts import Policy, Rate
from evenhand.errors import InvalidInput
from evenhand.evaluation.measured import measured
from evenhand.fairness.acceptance import Acceptance
from evenhand.fairness.certificate import plain_label
from evenhand.fairness.rates import RateLike, as_rates, require_certifiable
from evenhand.findings import Finding, judge, size_of
from evenhand.hypotheses import ACCEPT_ALL, REJECT_ALL
from evenhand.media import Told
from evenhand.people import (
    GroupColumn,
    YesNo,
    columns_of_groups,
    distinct_groups,
    groupings_of,
    number_of_people,
    read_decisions,
    read_outcomes,
    require_same_order,
)
from evenhand.policies import Mixture
from evenhand.result import Result
from evenhand.shares import require_delta
from evenhand.shown import Brief, counted
from evenhand.words import BoolArray, FloatArray, Group, GroupArray, IntArray, LabelledSample

Compare = Literal["difference", "ratio", "both"]
"""What is compared: differences of rates, ratios, or both."""

CROSSING = " x "
"""Between the names of two groupings that are crossed; their groups are joined by a comma."""


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
class PairMeasure:
    """One rate of a group compared with that of another.

    Parameters
    ----------
    group, reference : object
        The two groups.
    difference : float or None
        rate[group] - rate[reference] on these people; None where outcomes are missing or nobody
        belongs to the denominator.
    difference_interval : tuple of float or None
        Its exact interval; None if differences were not asked for.
    ratio : float or None
        rate[group] / rate[reference] on these people.
    ratio_interval : tuple of float or None
        Its exact interval; None if ratios were not asked for.
    """

    group: Group
    reference: Group
    difference: float | None
    difference_interval: tuple[float, float] | None
    ratio: float | None
    ratio_interval: tuple[float, float] | None

    @property
    def name(self) -> str:
        """Who is compared with whom."""
        return f"{self.group} minus {self.reference}"


@dataclass(frozen=True)
class RateMeasure:
    """One rate in all groups of a grouping, and the comparisons of its groups.

    Parameters
    ----------
    name, symbol : str
        The rate.
    groups : tuple of GroupMeasure
        The rate of each group.
    pairs : tuple of PairMeasure
        The comparisons.
    grouping : str
        The name of the grouping; empty if there is one only.
    asked : bool
        Whether it was asked for; a gate judges nothing else.
    """

    name: str
    symbol: str
    groups: tuple[GroupMeasure, ...]
    pairs: tuple[PairMeasure, ...]
    grouping: str = ""
    asked: bool = True

    ALSO: ClassVar = ("gap", "gap_interval", "ratio", "ratio_interval")

    @property
    def counted(self) -> str:
        """Whom the rate is a share of."""
        of = {"FPR": "bad outcomes", "FNR": "good outcomes", "PPV": "accepted people"}
        return of.get(self.symbol, "people")

    @property
    def is_identified(self) -> bool:
        """Whether no missing outcome can change the rate on these people."""
        return not any(one.unknown for one in self.groups)

    @property
    def largest_pair(self) -> PairMeasure | None:
        """The pair with the largest difference on these people, where it is determined."""
        known = [pair for pair in self.pairs if pair.difference is not None]
        if len(known) < len(self.pairs) or not known:
            return None
        return max(known, key=lambda pair: abs(pair.difference or 0.0))

    @property
    def gap(self) -> float | None:
        """The largest difference between two compared groups on these people."""
        pair = self.largest_pair
        return None if pair is None or pair.difference is None else abs(pair.difference)

    @property
    def gap_interval(self) -> tuple[float, float]:
        """The interval of the largest difference, out of those of all pairs; (0, 1) if there is
        none, which shows nothing.
        """
        ends = [pair.difference_interval for pair in self.pairs if pair.difference_interval]
        if not ends:
            return 0.0, 1.0
        return (
            max(0.0, *(max(low, -high) for low, high in ends)),
            max(max(abs(low), abs(high)) for low, high in ends),
        )

    @property
    def ratio(self) -> float | None:
        """The smallest ratio of two compared groups on these people, at most 1."""
        known = [pair.ratio for pair in self.pairs if pair.ratio is not None]
        if len(known) < len(self.pairs) or not known:
            return None
        return min(min(one, 1 / one) if one > 0 else 0.0 for one in known)

    @property
    def ratio_interval(self) -> tuple[float, float] | None:
        """The interval of the smallest ratio, out of those of all pairs; None if ratios were not
        asked for.
        """
        ends = [pair.ratio_interval for pair in self.pairs if pair.ratio_interval]
        if not ends:
            return None
        lower = min(min(low, 1 / high if high < inf else 0.0) for low, high in ends)
        return min(1.0, lower), min(1.0, *(min(_inverse(low), high) for low, high in ends))


def _inverse(value: float) -> float:
    return 1 / value if value > 0 else inf


@dataclass(frozen=True, repr=False)
class Measurement(Told, Brief):
    """What was measured of decisions, or of a policy on new people.

    Parameters
    ----------
    people : int
        How many were decided.
    accepted : float
        How many of them were accepted; in expectation if a policy tosses coins.
    outcomes : int
        How many have a known outcome.
    delta : float
        All comparisons hold at once with probability 1 minus this; so do all rates.
    rates : tuple of RateMeasure
        The rates, grouping by grouping.
    set_aside : tuple of str
        Groups that are shown and not compared, because they have too few people.
    watch : bool
        Whether the intervals are those of confidence sequences, which hold at all looks at once.
    cost : float or None
        The cost per person of a policy; the error rate where both prices are 1.
    cost_interval : tuple of float or None
        Its confidence interval.
    acceptance : Acceptance or None
        Whom a policy accepts of these people by group and outcome, and what it saves there.
    read : tuple of str
        How columns were read that were written neither as -1 and +1 nor in truth values.

    Examples
    --------
    >>> accepted = np.array([True] * 30 + [False] * 20 + [True] * 12 + [False] * 38)
    >>> measured = measure(accepted, ["a"] * 50 + ["b"] * 50)
    >>> measured.verdict(limit=0.1)
    'above'
    >>> measured.result(limit=0.1).verdict.headline.split(":")[0]
    'ABOVE what is allowed (at most 0.1)'
    """

    people: int
    accepted: float
    outcomes: int
    delta: float
    rates: tuple[RateMeasure, ...]
    set_aside: tuple[str, ...] = ()
    watch: bool = False
    cost: float | None = None
    cost_interval: tuple[float, float] | None = None
    acceptance: Acceptance | None = field(default=None, repr=False)
    read: tuple[str, ...] = ()

    ALSO: ClassVar = ("meaning",)

    def findings(
        self, limit: float | None = None, least_ratio: float | None = None
    ) -> tuple[Finding, ...]:
        """Every comparison beside what is allowed: what `evenhand.evaluation.gates` judges.

        Parameters
        ----------
        limit : float, optional
            The largest difference that is allowed.
        least_ratio : float, optional
            The smallest ratio that is allowed.

        Returns
        -------
        tuple of Finding
            One for each comparison of a rate that was asked for. Good outcomes among the accepted,
            which are shown beside FPR and FNR, are not among them.

        Raises
        ------
        InvalidInput
            If neither is given, what is limited was not measured, or nobody was rejected.
        """
        if limit is None and least_ratio is None:
            raise InvalidInput(
                "nothing is allowed or forbidden: there is neither a limit nor a least ratio.",
                hint="limit=0.05, or least_ratio=0.8.",
                argument="limit",
            )
        if self._accepted_alone:
            raise InvalidInput(
                f"all {self.people:,} people here were accepted: every gap is 0, and a "
                "verdict would say nothing about those who were rejected.",
                hint="bring the rejected people, too; their outcomes may be missing.",
                argument="accepted",
            )
        found = []
        for rate in self.rates:
            if not rate.asked:
                continue
            where = f"{rate.symbol} by {rate.grouping}" if rate.grouping else rate.symbol
            for pair in rate.pairs:
                if limit is not None and pair.difference_interval is not None:
                    size = size_of(*pair.difference_interval)
                    found.append(Finding(f"gap {where} {pair.name}", *size, limit))
                if least_ratio is not None and pair.ratio_interval is not None:
                    low, high = pair.ratio_interval
                    what = f"ratio {where} {pair.group} over {pair.reference}"
                    ends = min(low, _inverse(high)), min(1.0, high, _inverse(low))
                    found.append(Finding(what, *ends, least_ratio, at_least=True))
        kinds = {one.at_least for one in found}
        if (limit is not None and self._compares and False not in kinds) or (
            least_ratio is not None and self._compares and True not in kinds
        ):
            missing = "ratios" if True not in kinds else "differences"
            raise InvalidInput(
                f"{missing} were not measured, so nothing can be said about them.",
                hint='measure with compare="both".',
                argument="compare",
            )
        return tuple(found)

    @property
    def _compares(self) -> bool:
        return any(rate.pairs for rate in self.rates)

    def verdict(
        self,
        symbol: str | None = None,
        limit: float | None = None,
        least_ratio: float | None = None,
    ) -> str:
        """Whether gaps are within a limit, and ratios not below one.

        Parameters
        ----------
        symbol : str, optional
            One rate, "FPR"; by default all that were asked for.
        limit : float, optional
            The largest difference that is allowed.
        least_ratio : float, optional
            The smallest ratio that is allowed.

        Returns
        -------
        {"within", "above", "not shown"}
            Within or above with probability 1 - delta; or neither is shown.
        """
        rates = self.rates
        if symbol is not None:
            rates = tuple(replace(one, asked=True) for one in rates if one.symbol == symbol)
        return judge(replace(self, rates=rates).findings(limit, least_ratio))

    def result(self, limit: float | None = None, least_ratio: float | None = None) -> Result:
        """What is said of the measurement.

        Parameters
        ----------
        limit : float, optional
            The largest difference that is allowed.
        least_ratio : float, optional
            The smallest ratio that is allowed.

        Returns
        -------
        Result
            With a verdict if something is allowed; the tables "pairs" and "rates".
        """
        return measured(self, limit, least_ratio)

    @property
    def _accepted_alone(self) -> bool:
        """Whether the rejected are not there. A policy that accepts all applicants, which has a
        cost, is measured on all of them.
        """
        return self.accepted == self.people and self.cost is None

    @property
    def meaning(self) -> str:
        """What the intervals mean, and whom they are about."""
        looks = added = of_whom = ""
        if self.watch:
            looks = ", at all looks at the growing table and for groups that turn up later,"
            added = " Rows are only added, and no row changes once it was looked at."
        if self._accepted_alone:
            of_whom = (
                " Everybody here was accepted: the figures speak of accepted people only, and "
                "equal rates say nothing about who was."
            )
        return (
            f"All comparisons hold at once with probability {1 - self.delta:g}{looks} for the "
            "population that these people were drawn from independently; so do all rates of "
            f"single groups, as a statement of their own.{added}{of_whom}"
        )


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
    asked: bool = True

    @classmethod
    def of(cls, rate: Rate, accepted: BoolArray, labels: FloatArray) -> "_Counts":
        """Those of a rate whose denominator hangs on the outcome, if on anything."""
        known = np.isfinite(labels)
        label: IntArray = np.where(known, labels, 1).astype(np.int64)
        if_good = np.asarray(rate.in_denominator(label))
        if_bad = np.asarray(rate.in_denominator(np.where(known, label, -1)))
        event = accepted if rate.sign > 0 else ~accepted
        sure = if_good & if_bad
        perhaps = if_good ^ if_bad
        sides = (perhaps & event, perhaps & ~event)
        return cls(rate.name, rate.symbol, sure & event, sure, perhaps, *sides)

    @classmethod
    def of_good(cls, accepted: BoolArray, labels: FloatArray) -> "_Counts":
        """The share of good outcomes among the accepted: all that one-sided outcomes identify. A
        missing outcome may be the event or not.
        """
        sure = accepted & np.isfinite(labels)
        perhaps = accepted & ~np.isfinite(labels)
        name = "good outcomes among the accepted"
        event = sure & (labels == 1)
        return cls(name, "PPV", event, sure, perhaps, perhaps, perhaps, asked=False)

    def cell(self, group: Group, here: BoolArray) -> "_Cell":
        """The counts of one group, whose rows are given."""
        k = int(np.sum(self.events & here))
        n = int(np.sum(self.people & here))
        more = int(np.sum(self.perhaps_events & here))
        fewer = int(np.sum(self.perhaps_misses & here))
        unknown = int(np.sum(self.perhaps & here))
        least = self.events[here & (self.people | self.perhaps_misses)]
        largest = (self.events | self.perhaps_events)[here & (self.people | self.perhaps_events)]
        return _Cell(group, k, n, unknown, (k, n + fewer), (k + more, n + more), least, largest)


@dataclass(frozen=True, eq=False)
class _Cell:
    """The counts of one rate in one group: those that make the rate smallest, and largest."""

    group: Group
    events: int
    people: int
    unknown: int
    least: tuple[int, int]
    largest: tuple[int, int]
    least_in_order: BoolArray
    """The events that make the rate smallest, in order of arrival."""
    largest_in_order: BoolArray

    @property
    def range(self) -> tuple[float, float]:
        """The smallest and the largest rate on these people."""
        k, n = self.least
        more, among = self.largest
        if not n and not among:
            return nan, nan
        return (k / n if n else 1.0), (more / among if among else 0.0)

    def measured(self, alpha: float, watch: bool) -> GroupMeasure:
        """The rate, each end of its interval wrong with probability at most alpha."""
        of = proportion_sequence if watch else proportion_interval
        least = of(*self.least, alpha)
        largest = least if self.largest == self.least else of(*self.largest, alpha)
        counted = (self.group, self.events, self.people, self.unknown)
        return GroupMeasure(*counted, *self.range, least.lower, largest.upper)

    def against(self, other: "_Cell", alpha: float, compare: Compare, watch: bool) -> PairMeasure:
        """This group compared with another."""
        low, high = self.range
        other_low, other_high = other.range
        known = low == high and other_low == other_high
        differences: Interval | None = None
        ratios: Interval | None = None
        if watch:
            differences = difference_sequence(self.least_in_order, other.largest_in_order, alpha)
            if self.unknown or other.unknown:
                most = difference_sequence(self.largest_in_order, other.least_in_order, alpha)
                differences = Interval(differences.lower, most.upper)
        elif compare != "ratio":
            differences = Interval(
                difference_interval(*self.least, *other.largest, alpha).lower,
                difference_interval(*self.largest, *other.least, alpha).upper,
            )
        if compare != "difference":
            ratios = Interval(
                ratio_interval(*self.least, *other.largest, alpha).lower,
                ratio_interval(*self.largest, *other.least, alpha).upper,
            )
        return PairMeasure(
            self.group,
            other.group,
            low - other_low if known else None,
            differences,
            low / other_low if known and other_low > 0 else None,
            ratios,
        )


@dataclass(frozen=True)
class _Levels:
    """The probability with which the interval of each group's rate, and that of each comparison,
    may be wrong: for one rate in one grouping.
    """

    rates: Mapping[Group, float]
    pairs: Mapping[tuple[Group, Group], float]

    @classmethod
    def equal(
        cls,
        groups: Iterable[Group],
        compared: Iterable[tuple[Group, Group]],
        rate: float,
        pair: float,
    ) -> "_Levels":
        """The same for all."""
        return cls(dict.fromkeys(groups, rate), dict.fromkeys(compared, pair))

    @classmethod
    def watched(
        cls,
        belongs: np.ndarray,
        compared: Iterable[tuple[Group, Group]],
        reference: Group,
        named: Sequence[tuple[Group, Group]] | None,
        part: float,
    ) -> "_Levels":
        """By the order in which the groups turned up, which no later row changes; both sums are at
        most `part`, however many groups will come.
        """
        arrived = list(dict.fromkeys(belongs.tolist()))
        place = {one: number for number, one in enumerate(arrived, 1)}
        others = [one for one in arrived if one != reference]
        rank = {one: number for number, one in enumerate(others, 1)}
        pairs = {}
        for first, second in compared:
            if named is not None:
                share = 1 / len(named)
            elif reference is not None:
                share = _share(rank[first])
            else:
                before = max(place[first], place[second]) - 1
                share = _share(before) / before
            pairs[first, second] = part * share
        return cls({one: part * _share(number) for one, number in place.items()}, pairs)


def _share(number: int) -> float:
    """The share of the first, second, ... of those to come; all of them sum to 1."""
    return 6 / (pi * number) ** 2


def measure(
    accepted: ArrayLike,
    group: GroupColumn | Mapping[str, GroupColumn],
    label: ArrayLike | None = None,
    *,
    rates: RateLike = ("selection", "fpr", "fnr"),
    compare: Compare = "difference",
    reference: Group = None,
    pairs: Sequence[tuple[Group, Group]] | None = None,
    fewest: int = 1,
    crossings: bool = True,
    watch: bool = False,
    delta: float = 0.05,
) -> Measurement:
    """Measure decisions that were made: rates, and exact intervals of their gaps and ratios.

    Parameters
    ----------
    accepted : array_like, shape (people,)
        Who was accepted: True and False, 1 and 0, or +1 and -1. For scores `score >= cutoff`, for
        words `decision == "yes"`.
    group : array_like, or mapping from a name to an array_like
        Each person's group; several groupings by name, {"sex": ..., "race": ...}.
    label : array_like, optional
        The outcome, written as `accepted` is, 1 for good; NaN, None or NA where it is missing.
        Where 1 is the bad outcome, pass `label == 0`. None if none is known: then only rates that
        need no outcome are measured.
    rates : rate, name or list of them
        What to measure. If false positive and negative rates are both asked for, the share of good
        outcomes among the accepted is added: all that outcomes of the accepted alone determine.
    compare : {"difference", "ratio", "both"}
        What to compare. All comparisons that are shown share delta.
    reference : object, optional
        Compare every group with this one only; fewer comparisons, narrower intervals.
    pairs : list of tuple, optional
        Compare these pairs (group, reference) only.
    fewest : int
        Groups with fewer people than this are shown and not compared.
    crossings : bool
        With several groupings, whether all of them are crossed, too (women of race b, ...).
    watch : bool
        Whether the table grows and is looked at again and again: all intervals then hold at all
        looks at once, and for groups that turn up later. The rows stand in order of arrival; they
        are only added, and none changes. Name the pairs if you know them: that is narrower.
    delta : float
        All comparisons hold at once with probability 1 minus this.

    Returns
    -------
    Measurement
        The rates of each group and their comparisons; with `describe`, `to_frame`, `plot` and
        `to_json`.

    Raises
    ------
    InvalidInput
        If a column can be read in two ways or none, a decision or a group is missing, the lengths
        differ, columns of pandas have different indexes, a rate needs outcomes that are not there,
        delta is not between 0 and 1, or a group that is named does not occur.

    Examples
    --------
    >>> accepted = np.array([True, True, False, True, False, False])
    >>> measured = measure(accepted, ["a", "a", "a", "b", "b", "b"])
    >>> measured.rates[0].name, round(measured.rates[0].gap, 3)
    ('selection rate', 0.333)
    """
    require_delta(delta)
    if watch and compare != "difference":
        raise InvalidInput(
            f'a confidence sequence is there for differences, and compare is "{compare}".',
            hint='watch=True with compare="difference".',
            argument="compare",
        )
    rows_in_all = number_of_people(accepted, "accepted")
    require_same_order({"accepted": accepted, **columns_of_groups(group), "label": label})
    decisions = read_decisions(accepted, rows_in_all)
    outcomes = None if label is None else read_outcomes(label, rows_in_all)
    read = tuple(one.read for one in (decisions, outcomes) if one is not None and not one.plain)
    accepts: BoolArray = decisions.sign > 0
    groupings = _crossed(groupings_of(group, rows_in_all), crossings)
    counts, known, planned = _asked_counts(rates, accepts, outcomes)

    # Who is compared with whom is fixed by the names and sizes of groups alone.
    rows = {
        name: {one: np.asarray(belongs == one) for one in sorted(distinct_groups(belongs), key=str)}
        for name, belongs in groupings.items()
    }
    wanted = {}
    set_aside = []
    for name, groups in rows.items():
        sizes = {one: int(here.sum()) for one, here in groups.items()}
        small = [one for one, people in sizes.items() if people < fewest]
        of = f" ({name})" if name else ""
        set_aside += [f"{one}{of} has {counted(sizes[one])}, fewer than {fewest}" for one in small]
        compared = [one for one in sizes if one not in small]
        wanted[name] = _pairs(compared, reference, pairs)
    _require_named(rows, reference, pairs)

    measured = []
    for name, groups in rows.items():
        if watch:
            part = delta / (planned * len(rows))
            levels = _Levels.watched(groupings[name], wanted[name], reference, pairs, part)
        else:
            comparisons = len(counts) * sum(map(len, wanted.values())) * (1 + (compare == "both"))
            each = len(counts) * sum(map(len, rows.values()))
            levels = _Levels.equal(groups, wanted[name], delta / each, delta / max(comparisons, 1))
        for one in counts:
            cells = {label_: one.cell(label_, here) for label_, here in groups.items()}
            measured.append(
                RateMeasure(
                    one.name,
                    one.symbol,
                    tuple(
                        cell.measured(levels.rates[label_] / 2, watch)
                        for label_, cell in cells.items()
                    ),
                    tuple(
                        cells[first].against(
                            cells[second], levels.pairs[first, second] / 2, compare, watch
                        )
                        for first, second in wanted[name]
                    ),
                    name,
                    one.asked,
                )
            )
    return Measurement(
        people=rows_in_all,
        accepted=int(accepts.sum()),
        outcomes=int(known.sum()),
        delta=delta,
        rates=tuple(measured),
        set_aside=tuple(set_aside),
        watch=watch,
        read=read,
    )


def _crossed(groupings: dict[str, GroupArray], crossings: bool) -> dict[str, GroupArray]:
    """The groupings, and the crossing of all of them where there are several."""
    if len(groupings) < 2 or not crossings:
        return groupings
    joined = [", ".join(map(str, one)) for one in zip(*groupings.values(), strict=True)]
    return {**groupings, CROSSING.join(groupings): np.array(joined, dtype=object)}


def _asked_counts(
    rates: RateLike, accepted: BoolArray, outcomes: YesNo | None
) -> tuple[list[_Counts], BoolArray, int]:
    """Who counts for each rate that is asked for and can be measured; whose outcome is known; and
    how many rates there are once outcomes are known, if they ever are.
    """
    named = as_rates(rates)
    require_certifiable(named)
    labels = np.full(len(accepted), np.nan) if outcomes is None else outcomes.sign
    known = np.isfinite(labels)
    both = np.array([1, -1])  # who counts with both outcomes needs none
    without = [rate for rate in named if rate.in_denominator(both).all()]
    asked = list(named) if known.any() else without
    if not asked:
        raise InvalidInput(
            "no outcome is known, and all rates asked for need outcomes.",
            hint="name the column of outcomes, or measure the selection rate.",
        )
    counts = [_Counts.of(rate, accepted, labels) for rate in asked]
    # One rate asked for is one rate shown: nothing else shares its delta.
    adds_good = {"FPR", "FNR"} <= {rate.symbol for rate in named}
    if known.any() and adds_good:
        counts.append(_Counts.of_good(accepted, labels))
    planned = len(without) if outcomes is None else len(named) + adds_good
    return counts, known, planned


def _pairs(
    groups: Sequence[Group],
    reference: Group,
    pairs: Sequence[tuple[Group, Group]] | None,
) -> list[tuple[Group, Group]]:
    """Who is compared with whom: (group, reference)."""
    if pairs is not None:
        return [(a, b) for a, b in pairs if a in groups and b in groups]
    if reference is not None:
        return [(one, reference) for one in groups if one != reference and reference in groups]
    return [(second, first) for first, second in combinations(groups, 2)]


def _require_named(
    rows: Mapping[str, Mapping[Group, BoolArray]],
    reference: Group,
    pairs: Sequence[tuple[Group, Group]] | None,
) -> None:
    """Raise an error if a group that is named occurs in no grouping."""
    known = [one for groups in rows.values() for one in groups]
    named = [reference] if reference is not None else []
    named += [one for pair in pairs or () for one in pair]
    for one in named:
        if one not in known:
            raise InvalidInput(
                f"the group {one!r} is to be compared and does not occur.",
                hint=f"the groups are {', '.join(map(str, known[:12]))}.",
                argument="reference" if pairs is None else "pairs",
            )


def measure_policy(
    policy: Policy,
    people: LabelledSample,
    *,
    rates: RateLike = ("selection", "fpr", "fnr"),
    prices: tuple[float, float] | None = (1.0, 1.0),
    delta: float = 0.05,
) -> Measurement:
    """Measure a policy on people who had no part in choosing it, with exact intervals.

    A mixture accepts with probability sum_j w_j 1[h_j(x) accepts]. The gap of each rule is a
    difference of two proportions with an exact interval, and the weighted sum of the intervals of
    all rules holds for the mixture; rules that accept or reject all applicants have no gap and need
    none. Rates and cost alike.

    Parameters
    ----------
    policy : Policy
        The policy, which must be a mixture of rules.
    people : LabelledSample
        New people; a row with a count stands for so many of them, independent as all others.
    rates : rate, name or list of them
        What to measure.
    prices : tuple of float, optional
        The prices of a false accept and of a false reject; None measures no cost.
    delta : float
        All gaps hold at once with probability 1 minus this; so do all rates, and the cost.

    Returns
    -------
    Measurement
        The rates of each group, their gaps, and the cost.

    Raises
    ------
    InvalidInput
        If the policy is no mixture of rules, delta is not between 0 and 1, or a count is not a
        whole number.

    Examples
    --------
    >>> from evenhand.policies import Mixture
    >>> from evenhand.hypotheses import ACCEPT_ALL
    >>> people = LabelledSample(np.zeros((4, 1)), list("aabb"), [1, -1, 1, -1])
    >>> measured = measure_policy(Mixture((ACCEPT_ALL,), (1.0,)), people)
    >>> measured.cost, measured.rates[0].gap
    (0.5, 0.0)
    """
    require_delta(delta)
    count = people.require_whole_counts("an exact interval counts people")
    asked = as_rates(rates)
    require_certifiable(asked)
    groups = people.groups
    rules = _Rule.each_of(policy, people)
    rejecting = [replace(rule, event=~rule.event) for rule in rules]
    # Two ends for each comparison; each rule that is no constant has its own intervals.
    learned = max(1, sum(not rule.constant for rule in rules))
    wanted = [(second, first) for first, second in combinations(groups, 2)]
    alpha = delta / (2 * max(1, len(asked) * len(wanted))) / learned
    alpha_rates = delta / (2 * len(asked) * len(groups)) / learned
    alpha_cost = delta / (2 * 2) / len(rules)  # of constants only rates are known, not errors

    measures = []
    for rate in asked:
        in_denominator = np.asarray(rate.in_denominator(people.label))
        events = rules if rate.sign > 0 else rejecting
        counted = {
            name: np.where(in_denominator & np.asarray(people.group == name), count, 0)
            for name in groups
        }
        measured = []
        for name in groups:
            value, lower, upper = _weighted(events, counted[name], alpha_rates)
            n = int(counted[name].sum())
            expected = 0 if isnan(value) else round(value * n)
            measured.append(GroupMeasure(name, expected, n, 0, value, value, lower, upper))
        shares = {one.group: one.least for one in measured}
        compared = tuple(_weighted_pair(events, counted, shares, pair, alpha) for pair in wanted)
        measures.append(RateMeasure(rate.name, rate.symbol, tuple(measured), compared))

    cost: tuple[float, ...] | None = None
    if prices is not None:
        bad = people.label == -1
        false_accepts = [_Rule(rule.event & bad, rule.weight) for rule in rules]
        false_rejects = [_Rule(~rule.event & ~bad, rule.weight) for rule in rules]
        accepted = _weighted(false_accepts, count, alpha_cost)
        rejected = _weighted(false_rejects, count, alpha_cost)
        cost = tuple(prices[0] * a + prices[1] * r for a, r in zip(accepted, rejected, strict=True))
    chance = sum(rule.weight * float(count[rule.event].sum()) for rule in rules)
    return Measurement(
        people=int(count.sum()),
        accepted=chance,
        outcomes=int(count.sum()),
        delta=delta,
        rates=tuple(measures),
        cost=None if cost is None else cost[0],
        cost_interval=None if cost is None else (cost[1], cost[2]),
        acceptance=_acceptance(rules, people, count, prices),
    )


def _acceptance(
    rules: "list[_Rule]",
    people: LabelledSample,
    count: IntArray,
    prices: tuple[float, float] | None,
) -> Acceptance:
    """Whom a policy accepts, by group and outcome."""
    chance = np.zeros(len(people))
    for rule in rules:
        chance += rule.weight * rule.event
    costs = None
    if prices is not None:
        rejecting = np.where(people.label == -1, 0.0, prices[1])
        costs = (np.where(people.label == -1, prices[0], 0.0) - rejecting, rejecting)
    return Acceptance.of(
        np.minimum(chance, 1.0),
        people.group,
        people.label,
        groups={group: plain_label(group) for group in people.groups},
        learned_weight=sum(rule.weight for rule in rules if not rule.constant),
        count=count,
        costs=costs,
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


def _weighted(rules: list[_Rule], count: IntArray, alpha: float) -> tuple[float, float, float]:
    """The share of events among `count` people of each row, and its interval: sums over rules by
    weight.
    """
    n = int(count.sum())
    if n == 0:
        return nan, 0.0, 1.0
    value = lower = upper = 0.0
    for rule in rules:
        events = int(count[rule.event].sum())
        share = events / n
        ends = (share, share) if rule.constant else proportion_interval(events, n, alpha)
        value += rule.weight * share
        lower += rule.weight * ends[0]
        upper += rule.weight * ends[1]
    return value, lower, min(upper, 1.0)


def _weighted_pair(
    rules: list[_Rule],
    counted: Mapping[Group, IntArray],
    shares: Mapping[Group, float],
    pair: tuple[Group, Group],
    alpha: float,
) -> PairMeasure:
    """The difference of two groups' rates and its interval: sums over rules by weight."""
    first = counted[pair[0]]
    second = counted[pair[1]]
    lower = upper = 0.0
    for rule in rules:
        if rule.constant:
            continue
        ends = difference_interval(
            int(first[rule.event].sum()),
            int(first.sum()),
            int(second[rule.event].sum()),
            int(second.sum()),
            alpha,
        )
        lower += rule.weight * ends.lower
        upper += rule.weight * ends.upper
    value = shares[pair[0]] - shares[pair[1]]
    known = not isnan(value)
    ratio = shares[pair[0]] / shares[pair[1]] if known and shares[pair[1]] > 0 else None
    return PairMeasure(*pair, value if known else None, (lower, upper), ratio, None)
