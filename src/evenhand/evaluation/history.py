"""What a log of past decisions says about another policy when nobody recorded the probabilities.

People, or a rule, decided; the outcome is known for the accepted. Without probabilities nothing can
be weighted, so the outcomes of the rejected stay unknown: a rate has a *range*, and the log narrows
only the sampling error around it (`evenhand.bounds.unrecorded` has the formulas). The range shrinks
if one is willing to assume that, within strata, the rejected are like the accepted up to a factor
Gamma in the odds of the outcome. Nobody can read Gamma off such a log, so the answer is a curve:
the range for each Gamma, and the Gamma at which the verdict changes.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import ceil, inf, isfinite, isinf, log, sqrt
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike

from evenhand.bounds.proportions import Interval
from evenhand.bounds.unrecorded import BAD, GOOD, UNKNOWN, SeenRows, gap_range, largest_root
from evenhand.bounds.unrecorded import rate_range as range_of_rate
from evenhand.contracts import Json, Policy
from evenhand.errors import InvalidInput
from evenhand.evaluation.decision_log import as_texts
from evenhand.evaluation.evaluate import MOST_GROUPS, Candidate
from evenhand.fairness.findings import Finding, Status
from evenhand.fairness.rates import FalseNegativeRate, FalsePositiveRate, RateLike, as_rates
from evenhand.shown import INK, LIMIT, MUTED_INK, Brief, Cell, Shown
from evenhand.words import BoolArray, FloatArray, GroupArray, IntArray, Prices, as_features

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GAMMAS = (1.0, 1.25, 1.5, 2.0, 3.0, 5.0, inf)
"""The factors for which ranges are shown, unless others are named."""
LOSS_PART = 0.1
"""Of delta goes to the cost; the rest to the gaps."""
MOST_STRATA = 100
FLIP_STEPS = 6
"""Halvings of the interval in which the verdict changes."""
SideRate = Literal["FPR", "FNR"]

ASSUMPTIONS = (
    "the people of the log are an independent sample of the population that the candidate will "
    "meet",
    "the candidate, the strata and the limit were chosen without looking at these rows",
    "the outcome of a person does not depend on the decisions about others",
    "{open:,} accepted people without an outcome are treated as rejected: their outcome is unknown",
)


@dataclass(frozen=True, eq=False, repr=False)
class DecisionHistory(Brief):
    """Past decisions without probabilities, one row per person.

    Parameters
    ----------
    features : array of float, shape (n, d)
        What was known of each person.
    accept : array of bool, shape (n,)
        What was decided.
    label : array of int, shape (n,)
        +1 or -1 where the outcome is known, else 0; always 0 for the rejected.
    group : array of object, shape (n,)
        Texts, None where the group is not known.
    names : tuple of str
        The names of the features.
    source : str
        Where the decisions are from, for messages.

    Examples
    --------
    >>> history = DecisionHistory.of([[3.0], [4.0]], [True, False], [1, 0], group=["a", "b"])
    >>> len(history), history.groups
    (2, ('a', 'b'))
    """

    features: FloatArray
    accept: BoolArray
    label: IntArray
    group: GroupArray
    names: tuple[str, ...]
    source: str = "the log"

    @classmethod
    def of(
        cls,
        features: ArrayLike,
        accept: ArrayLike,
        label: ArrayLike,
        *,
        group: Iterable[object],
        names: Sequence[str] | None = None,
        source: str = "the log",
    ) -> "DecisionHistory":
        """Check and convert what another program holds; labels of the rejected are dropped.

        Parameters
        ----------
        features, accept, names, source
            As in the class; names are x0, x1, ... by default.
        label : array
            NaN or 0 where none is known.
        group : iterable
            None, NaN or "" where one is missing.

        Returns
        -------
        DecisionHistory
            The decisions.

        Raises
        ------
        InvalidInput
            If columns have different lengths, or a label is neither -1 nor +1.
        """
        table = as_features(features)
        taken = np.asarray(accept, dtype=bool)
        known = np.nan_to_num(np.asarray(label, dtype=np.float64))
        for name, column in (("accept", taken), ("label", known)):
            if column.shape != (len(table),):
                raise InvalidInput(
                    f"{name} has shape {column.shape} for {len(table)} people; each needs one.",
                    argument=name,
                )
        if not len(table):
            raise InvalidInput(f"{source} has no rows; at least one decision is needed.")
        strange = known[~np.isin(known, (-1, 0, 1))]
        if len(strange):
            raise InvalidInput(
                f"a label is {strange[0]:g}; labels are -1 and +1, 0 where none is known.",
                argument="label",
            )
        labels = np.where(taken, known, 0.0).astype(np.int64)
        columns = tuple(names or (f"x{j}" for j in range(table.shape[1])))
        return cls(table, taken, labels, as_texts(group, len(table)), columns, source)

    def __len__(self) -> int:
        return len(self.features)

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups that occur, in alphabetical order."""
        return tuple(sorted({group for group in self.group.tolist() if group is not None}))


@dataclass(frozen=True)
class GapRange:
    """The range of one gap under one assumption.

    Parameters
    ----------
    rate, group, reference : str
        rate[group] - rate[reference].
    gamma : float
        The factor that is assumed; infinity for no assumption.
    lower, upper : float
        Its ends, sampling error included.
    """

    rate: str
    group: str
    reference: str
    gamma: float
    lower: float
    upper: float

    @property
    def name(self) -> str:
        """ "FPR south minus north"."""
        return f"{self.rate} {self.group} - {self.reference}"

    def finding(self, limit: float) -> Finding:
        """The gap beside its limit."""
        low = max(0.0, self.lower, -self.upper)
        assumed = "" if isinf(self.gamma) else f" (if Gamma <= {self.gamma:g})"
        return Finding(f"gap {self.name}{assumed}", low, max(self.upper, -self.lower), limit)


@dataclass(frozen=True)
class RateRange:
    """The range of one group's rate under one assumption."""

    rate: str
    group: str
    gamma: float
    lower: float
    upper: float


@dataclass(frozen=True, eq=False)
class HistoryBounds(Shown):
    """What a log without probabilities says about a policy.

    Parameters
    ----------
    candidate : str
        The policy that was asked about.
    limit, delta : float
        The limit of the gap; the probability that any range of one Gamma is wrong.
    gammas : tuple of float
        The factors for which ranges are shown, in ascending order.
    cost : Interval
        The cost per person, whatever the unknown outcomes are.
    rates : tuple of RateRange
        Each rate of each group for each Gamma; each holds by itself with probability 1 - delta.
    gaps : tuple of GapRange
        Each gap for each Gamma; those of one Gamma hold together with probability 1 - delta.
    flips_at : float or None
        Up to this Gamma every gap is shown to be within the limit; None if not even for the
        smallest.
    lottery : int or None
        How many people a lottery would have to accept to settle it, if the estimates for Gamma = 1
        are right; None where they lie on the limit.
    people, accepted, open : int
        Decisions, accepted people, accepted people without an outcome.
    assumptions : tuple of str
        What it rests on, besides Gamma.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> score = rng.normal(size=2000)
    >>> accept = score > -0.5
    >>> label = np.where(rng.random(2000) < 0.7, 1, -1)
    >>> history = DecisionHistory.of(
    ...     score[:, None], accept, np.where(accept, label, 0), group=["a", "b"] * 1000
    ... )
    >>> found = bound_history(history, Candidate.read("accept-all"), limit=0.1)
    >>> found.verdict(inf)
    'within'
    """

    candidate: str
    limit: float
    delta: float
    gammas: tuple[float, ...]
    cost: Interval
    rates: tuple[RateRange, ...]
    gaps: tuple[GapRange, ...]
    flips_at: float | None
    lottery: int | None
    people: int
    accepted: int
    open: int
    assumptions: tuple[str, ...]

    def verdict(self, gamma: float = inf) -> Status:
        """Where the gaps stand for one of the factors: within, above or not shown."""
        states = {gap.finding(self.limit).status for gap in self.gaps if gap.gamma == gamma}
        if "above" in states:
            return "above"
        return "within" if states == {"within"} else "not shown"

    def findings(
        self, limit: float | None = None, least_ratio: float | None = None
    ) -> tuple[Finding, ...]:
        """Every gap beside the limit for the largest Gamma that was asked for: what a gate judges.

        Parameters
        ----------
        limit : float, optional
            The limit of the gap; that of the bounds by default.
        least_ratio : float, optional
            Ratios are not bounded.

        Returns
        -------
        tuple of Finding
            One for each gap.

        Raises
        ------
        InvalidInput
            If a ratio is asked for.
        """
        if least_ratio is not None:
            raise InvalidInput(
                "a log without probabilities gives no ratios.",
                hint="limit the gap.",
                argument="least_ratio",
            )
        allowed = self.limit if limit is None else limit
        return tuple(gap.finding(allowed) for gap in self.gaps if gap.gamma == self.gammas[-1])

    @property
    def sentence(self) -> str:
        """The verdict in words."""
        sure = f"with probability {1 - self.delta:.6g} under the assumptions below"
        if self.flips_at == inf:
            return (
                f"Within the limit of {self.limit:g} {sure}, whatever the outcomes of the rejected "
                "people are."
            )
        if self.verdict(self.gammas[-1]) == "above":
            return f"Above the limit of {self.limit:g} {sure}, even in the best case."
        if self.flips_at is not None:
            return (
                f"Within the limit of {self.limit:g} {sure} if Gamma is at most "
                f"{self.flips_at:.2f}: within each stratum the odds of the outcome among the "
                "rejected are at most that factor away from those among the accepted. This log "
                "cannot show whether they are."
            )
        above = [gamma for gamma in self.gammas if self.verdict(gamma) == "above"]
        if above:
            return (
                f"Above the limit of {self.limit:g} {sure} if Gamma is at most {max(above):g}; "
                "this log cannot show whether it is."
            )
        return (
            f"Not shown: for no Gamma from {self.gammas[0]:g} on does this log decide whether "
            f"every gap is within {self.limit:g}."
        )

    def describe(self) -> str:
        """The verdict, the ranges for each Gamma, the lottery that would settle it, the
        assumptions.

        Returns
        -------
        str
            Several lines.
        """
        lines = [self.sentence, ""]
        lines += [
            f"  Gamma {_factor(gap.gamma):>4}  gap {gap.name}: {gap.lower:+z.3f} to "
            f"{gap.upper:+z.3f} ({gap.finding(self.limit).status})"
            for gap in self.gaps
        ]
        lines += ["", f"Cost per person: {self.cost.lower:.4f} to {self.cost.upper:.4f}."]
        if self.lottery:
            lines.append(
                f"A lottery that accepts about {self.lottery:,} people, and learns their outcomes, "
                "would settle it if the accepted are typical (Gamma = 1)."
            )
        return "\n".join([*lines, "", "Assumptions", *(f"  - {one}" for one in self.assumptions)])

    def to_json(self) -> Json:
        """Plain JSON; an infinite Gamma is the text "infinite".

        Returns
        -------
        dict
            All figures.
        """

        def ranged(one: RateRange | GapRange) -> Json:
            return {**vars(one), "gamma": _factor(one.gamma) if isinf(one.gamma) else one.gamma}

        flips = self.flips_at
        return {
            "candidate": self.candidate,
            "limit": self.limit,
            "delta": self.delta,
            "verdict": self.verdict(self.gammas[-1]),
            "sentence": self.sentence,
            "cost": {"low": self.cost.lower, "high": self.cost.upper},
            "rates": [ranged(one) for one in self.rates],
            "gaps": [ranged(one) for one in self.gaps],
            "within_up_to_gamma": "infinite" if flips is not None and isinf(flips) else flips,
            "lottery_people": self.lottery,
            "people": self.people,
            "accepted": self.accepted,
            "accepted_without_outcome": self.open,
            "assumptions": list(self.assumptions),
        }

    def _headline(self) -> str:
        return self.sentence

    def _columns(self) -> dict[str, Sequence[Cell]]:
        return {
            "gap": [one.name for one in self.gaps],
            "gamma": [one.gamma for one in self.gaps],
            "low": [one.lower for one in self.gaps],
            "high": [one.upper for one in self.gaps],
            "status": [one.finding(self.limit).status for one in self.gaps],
        }

    def _draw(self, axes: "Axes") -> None:
        places = np.arange(len(self.gammas))
        for name in dict.fromkeys(gap.name for gap in self.gaps):
            own = [gap for gap in self.gaps if gap.name == name]
            low = np.array([gap.lower for gap in own])
            high = np.array([gap.upper for gap in own])
            axes.fill_between(places, low, high, color=INK, alpha=0.15, linewidth=0)
            (line,) = axes.plot(places, high, color=INK, marker="o", markersize=3)
            axes.plot(places, low, color=INK, marker="o", markersize=3)
            line.set_label(name)
        for end in (-self.limit, self.limit):
            axes.axhline(end, color=LIMIT, linestyle=(0, (4, 2)), linewidth=1.2)
        axes.axhline(0.0, color=MUTED_INK, linewidth=0.6)
        axes.set_xticks(places, [_factor(gamma) for gamma in self.gammas])
        axes.set_xlabel("Gamma: how far the odds among the rejected may be from the accepted's")
        axes.set_ylabel("gap: from lowest to highest possible")
        allowed = f"Allowed: \u2212{self.limit:g} to {self.limit:g}"
        axes.set_title(allowed, loc="left")
        bottom, top = axes.get_ylim()
        axes.set_ylim(bottom, top + 0.25 * (top - bottom))  # room for the legend above the limit
        axes.legend(frameon=False, fontsize="small", loc="upper left", ncols=2)


def bound_history(
    history: DecisionHistory,
    policy: Candidate | Policy,
    *,
    rates: RateLike = "fpr",
    limit: float = 0.05,
    delta: float = 0.05,
    gammas: Sequence[float] = GAMMAS,
    strata: Sequence[object] | None = None,
    prices: Prices | None = None,
    groups: Sequence[str] | None = None,
) -> HistoryBounds:
    """Bound a policy's rate gaps from past decisions without probabilities.

    Parameters
    ----------
    history : DecisionHistory
        The decisions, with the outcomes of the accepted.
    policy : Candidate or Policy
        The policy that is asked about; chosen without these rows.
    rates : rate, name or list of them
        False positive and false negative rates. (A selection rate needs no outcomes: `measure`.)
    limit : float
        The limit of the gap.
    delta : float
        How likely any range of one Gamma may be wrong.
    gammas : sequence of float
        Factors from 1 on; infinity for no assumption.
    strata : sequence, optional
        What the accepted and the rejected are compared within, one value per person; people are cut
        further by what the policy does. By default that alone.
    prices : Prices, optional
        What errors cost; two numbers.
    groups : sequence of str, optional
        The groups to compare; by default all that occur.

    Returns
    -------
    HistoryBounds
        The range of each gap for each Gamma.

    Raises
    ------
    InvalidInput
        If a rate, a factor, the strata or the groups cannot be used.
    """
    sides = _sides(rates)
    if not 0 <= limit <= 1:
        raise InvalidInput(f"limit is {limit}; a gap lies between 0 and 1.", argument="limit")
    if not 0 < delta < 1:
        raise InvalidInput(f"delta is {delta}; it lies between 0 and 1.", argument="delta")
    factors = tuple(sorted({float(gamma) for gamma in gammas}))
    if not factors or factors[0] < 1 or any(np.isnan(factors)):
        raise InvalidInput(
            f"gammas is {list(gammas)}; the odds of the rejected are within a factor of at least 1 "
            "of those of the accepted.",
            hint="1 assumes that they are equal within strata; infinity assumes nothing.",
            argument="gammas",
        )
    candidate = policy if isinstance(policy, Candidate) else Candidate(policy)
    compared = history.groups if groups is None else tuple(dict.fromkeys(map(str, groups)))
    _require_groups(compared, history)
    acceptance = candidate.acceptance(history)
    people = {
        group: _seen(history, acceptance, strata, history.group == group) for group in compared
    }
    pairs = [(one, two) for n, one in enumerate(compared) for two in compared[n + 1 :]]
    alpha = delta * (1 - LOSS_PART) / (2 * len(pairs) * len(sides))
    gaps = []
    found_rates = []
    for side in sides:
        own = _on_side(people, side)
        for one, two in pairs:
            gaps += _ranges(side, (one, two), (own[one], own[two]), factors, alpha)
        for group, rows in own.items():
            for gamma in factors:
                ends = range_of_rate(rows, gamma, delta / 2)
                found_rates.append(RateRange(side, group, gamma, ends.lower, ends.upper))

    def all_within(gamma: float) -> bool:
        for side in sides:
            own = _on_side(people, side)
            for one, two in pairs:
                ends = gap_range(own[one], own[two], gamma, alpha)
                if max(ends.upper, -ends.lower) > limit:
                    return False
        return True

    return HistoryBounds(
        candidate=candidate.name,
        limit=limit,
        delta=delta,
        gammas=factors,
        cost=_cost_range(history, acceptance, prices or Prices(), delta * LOSS_PART / 2),
        rates=tuple(found_rates),
        gaps=tuple(gaps),
        flips_at=_flip(gaps, limit, all_within),
        lottery=_lottery(people, sides, pairs, limit, alpha),
        people=len(history),
        accepted=int(history.accept.sum()),
        open=int((history.accept & (history.label == 0)).sum()),
        assumptions=tuple(
            one.format(open=int((history.accept & (history.label == 0)).sum()))
            for one in ASSUMPTIONS
        ),
    )


def _sides(rates: RateLike) -> tuple[SideRate, ...]:
    found: list[SideRate] = []
    for rate in as_rates(rates):
        if isinstance(rate, FalsePositiveRate):
            found.append("FPR")
        elif isinstance(rate, FalseNegativeRate):
            found.append("FNR")
        else:
            raise InvalidInput(
                f"a log without probabilities bounds false positive and false negative rates, not "
                f"{rate!r}.",
                hint="selection rates need no outcomes: use measure.",
                argument="rates",
            )
    return tuple(dict.fromkeys(found))


def _require_groups(compared: Sequence[str], history: DecisionHistory) -> None:
    strange = [group for group in compared if group not in history.groups]
    if strange:
        raise InvalidInput(
            f"group {strange[0]!r} does not occur in {history.source}; its groups are "
            f"{', '.join(history.groups) or 'not given'}.",
            argument="groups",
        )
    if not 2 <= len(compared) <= MOST_GROUPS:
        raise InvalidInput(
            f"{history.source} has {len(compared)} groups to compare; there must be 2 to "
            f"{MOST_GROUPS}.",
            hint="name the groups to compare, or the column of the group.",
            argument="groups",
        )


def _seen(
    history: DecisionHistory,
    acceptance: FloatArray,
    strata: Sequence[object] | None,
    here: BoolArray,
) -> SeenRows:
    """The people of a group, cut by stratum and by what the policy does."""
    if strata is not None and len(strata) != len(history):
        raise InvalidInput(
            f"strata has {len(strata)} values for {len(history)} people; each needs one.",
            argument="strata",
        )
    given = ["" if strata is None else str(value) for value in strata or [""] * len(history)]
    pairs = list(zip(np.round(acceptance, 12).tolist(), given, strict=True))
    number = {pair: place for place, pair in enumerate(sorted(set(pairs)))}
    if len(number) > MOST_STRATA:
        raise InvalidInput(
            f"there are {len(number)} strata (values of the policy times values of strata); at "
            f"most {MOST_STRATA} can be used.",
            hint="cut a column with many values into a few ranges beforehand.",
            argument="strata",
        )
    place = np.array([number[pair] for pair in pairs])
    label = history.label
    seen = np.where(label == -1, BAD, np.where(label == 1, GOOD, UNKNOWN))
    return SeenRows(place[here], seen[here], np.array([pair[0] for pair in number]))


def _on_side(people: dict[str, SeenRows], side: SideRate) -> dict[str, SeenRows]:
    """The people of each group with the rate as a false positive rate."""
    return {group: rows if side == "FPR" else rows.exchanged for group, rows in people.items()}


def _ranges(
    side: SideRate,
    names: tuple[str, str],
    rows: tuple[SeenRows, SeenRows],
    gammas: tuple[float, ...],
    alpha: float,
) -> list[GapRange]:
    """One gap for every Gamma. What holds for a smaller factor is allowed by a larger one, so
    ranges are made to contain those before.
    """
    found: list[GapRange] = []
    lower, upper = inf, -inf
    for gamma in gammas:
        ends = gap_range(*rows, gamma, alpha)
        lower = min(lower, ends.lower)
        upper = max(upper, ends.upper)
        found.append(GapRange(side, *names, gamma, lower, upper))
    return found


def _flip(
    gaps: Sequence[GapRange], limit: float, all_within: Callable[[float], bool]
) -> float | None:
    """The largest Gamma for which all gaps are within the limit, up to a few halvings."""
    within = {
        gamma: all(gap.finding(limit).status == "within" for gap in gaps if gap.gamma == gamma)
        for gamma in sorted({gap.gamma for gap in gaps})
    }
    held = [gamma for gamma, holds in within.items() if holds]
    if not held:
        return None
    low = max(held)
    beyond = [gamma for gamma in within if gamma > low]
    if not beyond:
        return low
    high = min(beyond)
    if isinf(high):
        high = 100.0 * low
    for _ in range(FLIP_STEPS):
        middle = sqrt(low * high)
        low, high = (middle, high) if all_within(middle) else (low, middle)
    return low


def _cost_range(
    history: DecisionHistory, acceptance: FloatArray, prices: Prices, alpha: float
) -> Interval:
    """The cost per person, with the unknown outcomes as cheap and as expensive as they can be
    (Hoeffding).
    """
    false_accept = float(prices.false_accept)
    false_reject = float(prices.false_reject)
    if_bad = acceptance * false_accept
    if_good = (1.0 - acceptance) * false_reject
    known = history.label != 0
    seen = np.where(history.label == -1, if_bad, if_good)
    least = np.where(known, seen, np.minimum(if_bad, if_good))
    most = np.where(known, seen, np.maximum(if_bad, if_good))
    largest = max(false_accept, false_reject)
    error = largest * sqrt(log(1 / alpha) / (2 * len(history)))
    return Interval(max(0.0, float(least.mean()) - error), min(largest, float(most.mean()) + error))


def _lottery(
    people: dict[str, SeenRows],
    sides: Sequence[SideRate],
    pairs: Sequence[tuple[str, str]],
    limit: float,
    alpha: float,
) -> int | None:
    """People whom a lottery must accept: each group's m accepted people show m P(y = -1) people of
    the denominator, and a normal interval of the gap then ends at the limit. Estimates are those of
    Gamma = 1.
    """
    from scipy.special import ndtri

    z = -float(ndtri(alpha))
    needed = 0.0
    for side in sides:
        rate = {}
        base = {}
        for group, own in _on_side(people, side).items():
            share = own.counts(0, own.people) / own.people
            taken = share[:, BAD] + share[:, GOOD]
            bad = np.divide(share[:, BAD], taken, out=np.full(len(taken), 0.5), where=taken > 0)
            rate[group] = largest_root(share, own.acceptance, 1.0)
            base[group] = float((share.sum(axis=1) * bad).sum())
        for one, two in pairs:
            room = abs(abs(rate[one] - rate[two]) - limit)
            if room < 1e-3 or min(base[one], base[two]) <= 0:
                return None
            spread = sum(rate[g] * (1 - rate[g]) / base[g] for g in (one, two))
            needed = max(needed, z**2 * spread / room**2)
    return ceil(len(people) * needed) if isfinite(needed) else None


def _factor(gamma: float) -> str:
    return "infinite" if isinf(gamma) else f"{gamma:g}"
