"""Is there a rule with a smaller gap that costs no more than the incumbent?

The incumbent is a policy, or the decisions that stand in a table of people whose outcomes are all
known. Two answers can be shown, and each needs its own kind of evidence.

**Yes: one that was found, tested on other people.**

1. A draw splits the table. On the first part alternatives are searched: `solve_fair` at shares of
   the incumbent's gap, and the rules in these solutions. What they promise there only ranks them;
   the best few are fixed, in this order, together with the incumbent's largest gap k* and its sign
   s.
2. On the second part an alternative is *better* if all of the following are shown, each at level
   alpha; if it is not better, one of them is false, so no share of alpha is lost on their number
   (intersection-union). With gap^0 of the incumbent and gap' of the alternative,

       cost' - cost^0 <= extra_cost,
       s gap^0_k* - s gap'_k* > 0,
       s gap^0_k* + s gap'_k* > 0,   s gap^0_k* -+ gap'_k > 0  (k != k*).

   The second line is about people who are treated differently: with u_j the share of group j that
   has the incumbent's event alone, v_j that of the alternative's alone, gap^0 - gap' =
   (u_b - u_a) - (v_b - v_a), two exact differences of proportions (`bounds.proportions`). Costs
   are compared person by person (`bounds.bounded_mean`).
3. The alternatives are tested in their order, until one fails: a false "better" needs that the
   first one that is not better passes, which has probability alpha at most.

Policies that toss coins are judged by one draw per person, the same for incumbent and alternative,
so that all counts are binomial.

**No: a proof for a whole exact class** (thresholds, stumps, finite classes), in
`table_exclusion`. For a fitted class there is none: the best that was found is reported, and that
the search excludes nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import sqrt
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from evenhand.bounds.bounded_mean import good_stakes, least_means
from evenhand.bounds.proportions import Interval, difference_interval
from evenhand.contracts import GroupUse, HypothesisClass, Policy, Rate
from evenhand.errors import CannotEstimateRate, InvalidInput
from evenhand.faircsc import solve_fair
from evenhand.fairness.rates import RateLike, as_rates, require_certifiable
from evenhand.hypotheses.brackets import Brackets, brackets_of
from evenhand.hypotheses.named import as_class
from evenhand.media import Told
from evenhand.people import as_probabilities, require_row_order
from evenhand.policies import Mixture
from evenhand.randomness import stream
from evenhand.result import (
    Amount,
    Between,
    Cell,
    Column,
    Point,
    Points,
    Result,
    Table,
    with_rows,
)
from evenhand.shares import require_delta, require_share
from evenhand.shown import Brief
from evenhand.table_exclusion import Exclusion, Incumbent, exclude
from evenhand.table_parts import (
    FIT_SHARE,
    AcceptanceCosts,
    Gap,
    TablePart,
    counted_rows,
    decision_counts,
    gap_counts,
    gap_names,
    gaps_of,
    split_table,
)
from evenhand.words import BoolArray, FloatArray, LabelledSample, Prices

SHARES = (1.0, 0.75, 0.5, 0.25, 0.0)
"""Alternatives are searched at these shares of the incumbent's gap."""

TIE = 0.1
"""Standard errors that a mixture has to promise more than a single rule."""

ALIKE = 0.01
"""Alternatives that differ in a smaller share of all decisions are not tested both."""

POINTS = 6
"""So many points of what is excluded are in the table."""

Verdict = Literal["found", "none", "open"]

ASSUMPTIONS = (
    "The rows are people drawn independently from the population, and all outcomes are known.",
    "The incumbent was chosen without these people.",
)


@dataclass(frozen=True, eq=False, repr=False)
class Alternative(Brief):
    """A rule beside the incumbent, on people who had no part in choosing it.

    Parameters
    ----------
    policy : Mixture
        The rule, or mixture of rules.
    cost_difference : float
        What it costs per person more than the incumbent (negative: less).
    cost_interval : tuple of float
        The interval of that difference.
    gap : float
        Its largest gap.
    gap_interval : tuple of float
        The interval of its largest gap.
    costs_at_most : float
        It costs at most so much more than the incumbent: what its test shows.
    smaller_by : float
        Its largest gap is smaller than the incumbent's by at least this much; negative if that is
        not shown.
    better : bool
        Whether it is shown to be better: a smaller gap at no more than the allowed extra cost.
    """

    policy: Mixture
    cost_difference: float
    cost_interval: tuple[float, float]
    gap: float
    gap_interval: tuple[float, float]
    costs_at_most: float
    smaller_by: float
    better: bool


@dataclass(frozen=True, eq=False, repr=False)
class Alternatives(Told, Brief):
    """Whether there is a rule with a smaller gap that costs no more than the incumbent.

    Parameters
    ----------
    verdict : {"found", "none", "open"}
        "found": an alternative is shown to be better. "none": it is proved that no mixture of the
        class makes the gap smaller by `least_improvement`. "open": neither is shown.
    alternatives : tuple of Alternative
        What was tested, in the order of the tests.
    exclusion : Exclusion or None
        What is proved of the whole class; None for a class that is fitted.
    incumbent_cost : float
        The incumbent's cost per person, on the tested people; the error rate where both prices
        are 1.
    incumbent_gap : float
        Its largest gap on the tested people.
    incumbent_gap_interval : tuple of float
        The interval of its largest gap.
    searched : array, shape (points, 2)
        (largest gap, cost beyond the incumbent's) on the tested people of all that the search
        found.
    gaps : tuple of str
        The names of the gaps; the largest of them counts.
    extra_cost : float
        What an alternative may cost more than the incumbent, per person.
    least_improvement : float
        The reduction of the gap from which on an alternative matters.
    delta : float
        The verdict is wrong with probability at most this; and all intervals hold at once with
        probability 1 minus this, as a statement of its own.
    fitted_on, tested_on : int
        How many people the search looked at, and how many others the tests.
    class_name : str
        The class that was searched.
    notes : tuple of str
        What must be known.
    columns : tuple of str, optional
        The names of the columns, for rules in words.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> skill, luck = rng.random((2, 6000))
    >>> group = rng.choice(["f", "m"], 6000)
    >>> repaid = np.where(rng.random(6000) < skill, 1, -1)
    >>> score = skill + 0.5 * (group == "m") + luck
    >>> from evenhand.hypotheses import Stumps
    >>> people = LabelledSample(np.column_stack([score, skill]), group, repaid)
    >>> found = alternatives(Stumps(), people, score >= 1.25)
    >>> found.verdict, found.best.policy.describe(["score", "skill"])
    ('found', 'always: accept if skill >= 0.5167557209')
    """

    verdict: Verdict
    alternatives: tuple[Alternative, ...]
    exclusion: Exclusion | None
    incumbent_cost: float
    incumbent_gap: float
    incumbent_gap_interval: tuple[float, float]
    searched: FloatArray
    gaps: tuple[str, ...]
    extra_cost: float
    least_improvement: float
    delta: float
    fitted_on: int
    tested_on: int
    class_name: str
    notes: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = field(default=ASSUMPTIONS)
    columns: tuple[str, ...] | None = None

    ALSO: ClassVar = ("sentence",)

    @property
    def best(self) -> Alternative | None:
        """The first alternative that is shown to be better; None if there is none."""
        return next((one for one in self.alternatives if one.better), None)

    @property
    def sentence(self) -> str:
        """The verdict in a sentence."""
        sure = f"with probability at least {1 - self.delta:g}"
        more = "no more than" if self.extra_cost == 0 else f"at most {self.extra_cost:g} more than"
        if self.best is not None:
            return (
                f"Found, {sure}: an alternative that costs {more} the incumbent, and whose largest "
                f"gap is smaller by at least {self.best.smaller_by:.3f}."
            )
        if self.exclusion is None:
            return (
                f"Open: no alternative is shown to be better, and a search among {self.class_name} "
                "is no proof that there is none."
            )
        least = self.exclusion.at_extra_cost
        shown = (
            f"every mixture of {self.class_name} that costs {more} the incumbent has a largest "
            f"gap of at least {least:.3f}"
            if least < 1
            else f"no mixture of {self.class_name} costs {more} the incumbent"
        )
        if self.verdict == "none":
            return (
                f"None, {sure}: {shown}; none makes the incumbent's gap smaller by more than "
                f"{self.exclusion.possible_improvement:.3f}."
            )
        if least == 0:
            return (
                f"Open: no alternative is shown to be better, and no gap is excluded for mixtures "
                f"of {self.class_name} that cost {more} the incumbent."
            )
        return (
            f"Open: no alternative is shown to be better. Proved, {sure}: {shown}; gaps between "
            f"that and the incumbent's {self.incumbent_gap:.3f} are not excluded."
        )

    def result(self, names: Sequence[str] | None = None) -> Result:
        """What is said of the answer.

        Parameters
        ----------
        names : sequence of str, optional
            The names of the columns; by default those of the record.

        Returns
        -------
        Result
            The tables "rules" (the incumbent first), "words" and "excluded".
        """
        return _told(self, names or self.columns)

    @property
    def meaning(self) -> str:
        """What the figures claim, in a sentence."""
        claim = (
            f"The verdict is wrong with probability at most {self.delta:g}; all intervals hold at "
            f"once with probability {1 - self.delta:g}, as a statement of its own."
        )
        return " ".join((claim, *self.notes))


TITLES = {"found": "A better alternative", "none": "No better alternative", "open": "Open"}


def _told(record: Alternatives, names: Sequence[str] | None) -> Result:
    words = {
        f"alternative {number}": "; ".join(one.policy.describe(names).splitlines())
        for number, one in enumerate(record.alternatives, 1)
    }
    excluded = record.exclusion
    facts: dict[str, Cell] = {
        "incumbent's cost per person": Amount(record.incumbent_cost, "cost"),
        "incumbent's gap": Amount(record.incumbent_gap, "share"),
        "gap": f"the largest of {', '.join(record.gaps)}",
        "searched on": record.fitted_on,
        "tested on": record.tested_on,
    }
    if excluded is not None:
        least = Amount(excluded.least_cost, "extra")
        facts["no mixture costs less, beside the incumbent, than"] = least
    return Result(
        kind="alternatives",
        title="Alternatives to the incumbent",
        record=record,
        answer=_answer(record),
        facts=facts,
        tables=with_rows(
            _rules(record),
            Table.of_names("words", "The alternatives in words", words),
            _excluded(record),
        ),
        figures=(_figure(record),),
        assumptions=(*record.assumptions, record.meaning),
    )


def _answer(record: Alternatives) -> tuple[str, ...]:
    here = [
        str(number)
        for number, one in enumerate(record.alternatives, 1)
        if one.gap < record.incumbent_gap and one.cost_difference <= record.extra_cost
    ]
    if not record.alternatives:
        return (record.sentence, "The search found no alternative.")
    if record.best is not None or not here:
        return (record.sentence,)
    # A reader must not take "not shown" for "there is none".
    seen = (
        f"On the {record.tested_on:,} people of the test, a smaller gap at no more than the cost "
        f"allowed is seen for alternative {', '.join(here)}; it is not shown for the population."
    )
    return record.sentence, seen


def _rules(record: Alternatives) -> Table:
    """The incumbent beside the alternatives; costs of these are those beyond the incumbent's."""
    gap, ends = record.incumbent_gap, Between(*record.incumbent_gap_interval)
    rows: list[tuple[Cell, ...]] = [("incumbent", None, None, gap, ends, None, None)]
    for number, one in enumerate(record.alternatives, 1):
        cost = one.cost_difference, Between(*one.cost_interval)
        shown = "shown" if one.better else "not shown"
        ends = Between(*one.gap_interval)
        rows.append((f"alternative {number}", *cost, one.gap, ends, one.smaller_by, shown))
    columns = (
        Column("rule", "rule"),
        Column("cost_difference", "extra cost", "extra"),
        Column("cost_interval", "in the population", "extra"),
        Column("gap", "gap here", "share"),
        Column("gap_interval", "in the population", "share"),
        Column("smaller_by", "smaller by at least", "difference"),
        Column("better", "better", "status"),
    )
    note = (
        f"Gap: the largest of {', '.join(record.gaps)}. The search saw {record.fitted_on:,} "
        f"people; these figures are of {record.tested_on:,} others. Extra cost: per person, beyond "
        "the incumbent's."
    )
    return Table("rules", "The incumbent and its alternatives", columns, tuple(rows), note)


def _excluded(record: Alternatives) -> Table:
    """What is proved of all mixtures of the class, at a few costs."""
    columns = (
        Column("extra_cost", "at a cost of at most", "extra"),
        Column("least_gap", "the gap is at least", "share"),
    )
    title = f"Proved for all mixtures of {record.class_name}, at once"
    found = record.exclusion
    if found is None:
        return Table("excluded", title, columns, ())
    telling = np.flatnonzero((found.least_gap > 0) & (found.least_gap < 1))
    if not len(telling):
        return Table("excluded", title, columns, ())
    places = np.unique(np.linspace(0, len(telling) - 1, POINTS).round().astype(int))
    rows = [(float(found.extra_cost[at]), float(found.least_gap[at])) for at in telling[places]]
    return Table("excluded", title, columns, tuple(rows), "Costs: beyond the incumbent's.")


def _figure(record: Alternatives) -> Points:
    points = [Point("incumbent", record.incumbent_gap, 0.0, record.incumbent_gap_interval)]
    points += [
        Point(
            f"alternative {number}{', better' if one.better else ''}",
            one.gap,
            one.cost_difference,
            one.gap_interval,
            one.cost_interval,
        )
        for number, one in enumerate(record.alternatives, 1)
    ]
    line: tuple[tuple[float, float], ...] = ()
    found = record.exclusion
    if found is not None:
        # Below its lower end no mixture is, whatever its gap.
        reached = found.extra_cost >= found.least_cost
        curve = zip(found.least_gap[reached], found.extra_cost[reached], strict=True)
        line = ((1.0, found.least_cost), *((float(x), float(y)) for x, y in curve))
    return Points(
        f"{TITLES[record.verdict]}: to the left and not above the dashed line is better",
        f"largest gap ({', '.join(record.gaps[:2])}{', ...' * (len(record.gaps) > 2)})",
        "cost per person beyond the incumbent's",
        tuple(points),
        note="Points: on the people of the test. Lines: where it lies in the population.",
        faded=tuple((float(x), float(y)) for x, y in record.searched),
        excluded=line,
        highest=record.extra_cost,
    )


def alternatives(
    hypotheses: object,
    people: LabelledSample,
    incumbent: Policy | ArrayLike,
    *,
    rates: RateLike = "fpr",
    prices: Prices | None = None,
    extra_cost: float = 0.0,
    least_improvement: float = 0.02,
    delta: float = 0.05,
    candidates: int = 3,
    randomise: bool = True,
    group_use: GroupUse = "certify_only",
    fit_share: float = FIT_SHARE,
    max_calls: int | None = None,
    seed: int = 0,
) -> Alternatives:
    """Search for rules with a smaller gap that cost no more than the incumbent, and test them.

    Parameters
    ----------
    hypotheses : hypothesis class, its name, or scikit-learn classifier
        Where to search. For thresholds, stumps and finite classes it is also proved which gaps no
        mixture reaches.
    people : LabelledSample
        The table: people drawn independently from the population, all outcomes known. A row with a
        count stands for that number of people.
    incumbent : policy, or array_like of shape (rows,)
        What is used today: a policy that was chosen without these people, or its decisions about
        them: True and False, 1 and 0, +1 and -1, or the probability of being accepted. A score is
        no probability: pass `score >= cutoff`.
    rates : str, Rate or sequence of them, default "fpr"
        The rates whose largest gap is to become smaller.
    prices : Prices, optional
        What errors cost; 1 and 1 by default.
    extra_cost : float, default 0
        How much more than the incumbent an alternative may cost, per person.
    least_improvement : float, default 0.02
        The verdict is "none" if it is proved that no mixture makes the gap smaller by more.
    delta : float, default 0.05
        Probability that the verdict is wrong.
    candidates : int, default 3
        The largest number of alternatives to test.
    randomise : bool, default True
        Whether an alternative may be a mixture; if not, single rules are tested.
    group_use : {"certify_only", "decide"}
        Whether the group is only measured, or may influence an alternative's decisions.
    fit_share : float, default 1/3
        The share of the table that the search looks at; fixed before the table is looked at.
    max_calls : int, optional
        A bound on the oracle calls of each fit.
    seed : int, default 0
        Seed of the split of the table and of all draws; fixed before the table is looked at, too.

    Returns
    -------
    Alternatives
        The verdict, with `describe`, `to_frame`, `plot` and `to_json`.

    Raises
    ------
    InvalidInput
        If a setting is impossible, a decision is not a probability, or a count is not a whole
        number.
    CannotEstimateRate
        If there is one group only.

    Examples
    --------
    >>> from evenhand.hypotheses import ScoreThresholds
    >>> rng = np.random.default_rng(1)
    >>> score = rng.random((4000, 1))
    >>> repaid = np.where(rng.random(4000) < score[:, 0], 1, -1)
    >>> loans = LabelledSample(score, rng.choice(["f", "m"], 4000), repaid)
    >>> found = alternatives(ScoreThresholds(), loans, score[:, 0] >= 0.5)
    >>> found.verdict, found.exclusion.at_extra_cost
    ('open', 0.0)
    """
    require_delta(delta)
    require_share("fit_share", fit_share, "(0, 1)")
    _require_settings(extra_cost, least_improvement, candidates)
    asked = as_rates(rates)
    require_certifiable(asked)
    rules = as_class(hypotheses)
    row = counted_rows(people, "tests count people, not survey weights")
    gaps = gaps_of(asked, people.groups)
    probability = _incumbent(incumbent, people)
    costs = AcceptanceCosts.of(prices or Prices(), people)

    first_rows = split_table(len(row), fit_share, seed)
    first = TablePart(people, row[first_rows], costs, group_use)
    second = TablePart(people, row[~first_rows], costs, group_use)
    if not len(first) or not len(second):
        raise InvalidInput(
            f"the table has {len(row)} people, too few for a search and a test on others.",
            hint="bring more people, or another fit_share.",
            argument="fit_share",
        )
    judge = _Judge(first, second, probability, gaps, people, costs, seed)

    # The first part alone says what is tested, in which order, and where the class is cut.
    found = _search(rules, judge, asked, randomise, group_use, max_calls)
    chosen = judge.ranked(found, extra_cost)[:candidates]
    brackets = brackets_of(
        rules, first.sample.features, first.group if group_use == "decide" else None
    )

    # From here on the second part is looked at. With a proof for the class, the tests of single
    # alternatives and the proof have half of delta each.
    share = delta if brackets is None else delta / 2
    tested: list[Alternative] = []
    ends = 2 * len(gaps) * (1 + len(chosen)) + 2 * len(chosen)
    for policy in chosen:
        before = all(one.better for one in tested)
        one = judge.tested(policy, share, delta / ends, extra_cost, before)
        tested.append(one)
    exclusion = None
    if brackets is not None:
        exclusion = exclude(brackets, judge.incumbent, asked, gaps, extra_cost, delta / 2)
    low, high = judge.largest(judge.drawn, delta / ends)
    verdict: Verdict = "open"
    if any(one.better for one in tested):
        verdict = "found"
    elif exclusion is not None and exclusion.possible_improvement <= least_improvement:
        verdict = "none"
    return Alternatives(
        verdict=verdict,
        alternatives=tuple(tested),
        exclusion=exclusion,
        incumbent_cost=second.cost(judge.probability),
        incumbent_gap=judge.gap(judge.drawn),
        incumbent_gap_interval=(low, high),
        searched=np.array([judge.place(one) for one in found]).reshape(-1, 2),
        gaps=gap_names(gaps),
        extra_cost=float(extra_cost),
        least_improvement=float(least_improvement),
        delta=float(delta),
        fitted_on=len(first),
        tested_on=len(second),
        class_name=_name(rules),
        notes=_notes(prices, brackets, found),
    )


def _require_settings(extra_cost: float, least_improvement: float, candidates: int) -> None:
    if not np.isfinite(extra_cost):
        raise InvalidInput(
            f"extra_cost is {extra_cost}; it is a finite cost per person.", argument="extra_cost"
        )
    require_share("least_improvement", least_improvement, "[0, 1]")
    if candidates < 1:
        raise InvalidInput(
            f"candidates is {candidates}; at least one alternative is tested.",
            argument="candidates",
        )


def _incumbent(incumbent: Policy | ArrayLike, people: LabelledSample) -> FloatArray:
    """The incumbent's probability of accepting each row."""
    if isinstance(incumbent, Mixture) or hasattr(incumbent, "acceptance"):
        return np.asarray(incumbent.acceptance(people.features, people.group), dtype=np.float64)
    require_row_order(incumbent, len(people), "incumbent")
    return as_probabilities(incumbent, len(people), "incumbent")


def _name(rules: HypothesisClass) -> str:
    named = str(rules.params.get("class", type(rules).__name__))
    words = {
        "Stumps": "single cuts of a column",
        "ScoreThresholds": "thresholds of the score",
        "FiniteClass": "the listed rules",
        "Linear": "linear rules",
        "Estimator": "fitted models",
    }
    return words.get(named, f"rules of {named}")


def _notes(
    prices: Prices | None, brackets: Brackets | None, found: Sequence[Mixture]
) -> tuple[str, ...]:
    notes = []
    if prices is not None and (np.ndim(prices.false_accept) or np.ndim(prices.false_reject)):
        notes.append("No person's price is taken to exceed the largest one of the table.")
    if brackets is None:
        notes.append("The class is searched, not enumerated: what was not found is not excluded.")
    if not found:
        notes.append("The first part is too small to search on: it lacks people of a group.")
    return tuple(notes)


def _search(
    rules: HypothesisClass,
    judge: "_Judge",
    rates: Sequence[Rate],
    randomise: bool,
    group_use: GroupUse,
    max_calls: int | None,
) -> list[Mixture]:
    """Mixtures at shares of the incumbent's gap on the first part, and the rules in them."""
    schema = judge.people.schema
    mixtures: list[Mixture] = []
    for share in SHARES:
        try:
            solution = solve_fair(
                judge.first.problem,
                rules,
                rates,
                judge.first.sample,
                share * judge.first_gap,
                group_use=group_use,
                max_calls=max_calls,
            )
        except CannotEstimateRate:
            return []
        mixtures.append(solution.policy)
    singles = [
        Mixture((rule,), (1.0,), group_use, schema)
        for mixture in mixtures
        for rule, weight in zip(mixture.hypotheses, mixture.weights, strict=True)
        if weight > 0
    ]
    distinct: list[Mixture] = []
    for one in [*mixtures, *singles] if randomise else singles:
        if one not in distinct:
            distinct.append(one)
    return distinct


class _Judge:
    """The incumbent on both parts, and what an alternative is beside it."""

    def __init__(
        self,
        first: TablePart,
        second: TablePart,
        probability: FloatArray,
        gaps: Sequence[Gap],
        people: LabelledSample,
        costs: AcceptanceCosts,
        seed: int,
    ) -> None:
        self.first = first
        self.second = second
        self.people = people
        self.gaps = gaps
        self.first_probability = probability[first.rows]
        self.probability = probability[second.rows]
        # One coin per person, the same for incumbent and alternatives: where both toss coins they
        # then differ as seldom as they can.
        self.coins = stream(seed, "coins of alternatives").random(len(second))
        self.drawn: BoolArray = self.coins < self.probability
        # twice the largest size of a cost: costs lie on both sides of 0
        self.width = 2 * float(np.abs(costs.accept).max(initial=0.0)) or 1.0
        before = self._gaps(first, self.first_probability)
        self.first_gap = float(np.abs(before).max())
        self.largest_gap = int(np.abs(before).argmax())
        self.sign = 1 if before[self.largest_gap] >= 0 else -1

    @property
    def incumbent(self) -> Incumbent:
        """The incumbent on both parts."""
        return Incumbent(
            self.first,
            self.second,
            self.first_probability,
            self.probability,
            self.drawn,
            self.width,
        )

    def acceptance(self, policy: Mixture, part: TablePart) -> FloatArray:
        """The probability of accepting each person of a part."""
        total = np.zeros(len(part))
        for rule, weight in zip(policy.hypotheses, policy.weights, strict=True):
            if weight > 0:
                total += weight * part.accepts(rule)
        return np.clip(total, 0.0, 1.0)

    def _gaps(self, part: TablePart, acceptance: FloatArray) -> FloatArray:
        """Every gap of a policy on a part; 0 where a group has nobody."""
        found = []
        for rate, b, a in self.gaps:
            counted = np.asarray(rate.in_denominator(part.label))
            mean = []
            for group in (b, a):
                here = counted & np.asarray(part.group == group)
                mean.append(float(acceptance[here].mean()) if here.any() else np.nan)
            found.append(rate.sign * (mean[0] - mean[1]))
        return np.asarray(np.nan_to_num(np.array(found)))

    def gap(self, acceptance: FloatArray | BoolArray) -> float:
        """The largest gap on the second part."""
        return float(np.abs(self._gaps(self.second, np.asarray(acceptance, float))).max())

    def place(self, policy: Mixture) -> tuple[float, float]:
        """(largest gap, cost beyond the incumbent's) on the second part."""
        accepted = self.acceptance(policy, self.second)
        cost = self.second.cost(accepted) - self.second.cost(self.probability)
        return self.gap(accepted), cost

    def ranked(self, found: Sequence[Mixture], extra_cost: float) -> list[Mixture]:
        """The most promising first: by how many standard errors the weaker of the two conditions,
        cost and gap, is expected to be met on the second part.
        """
        promise = []
        n = len(self.second) / len(self.first)
        for policy in found:
            accepted = self.acceptance(policy, self.first)
            difference = self.first.accept_cost * (accepted - self.first_probability)
            cost_error = sqrt(
                (difference.var() + self.width**2 / len(self.first)) / len(self.second)
            )
            cost = (extra_cost - difference.mean()) / cost_error
            gap = self.first_gap - np.abs(self._gaps(self.first, accepted)).max()
            rate, b, a = self.gaps[self.largest_gap]
            variance = 0.0
            for group in (b, a):
                here = np.asarray(rate.in_denominator(self.first.label))
                here = here & np.asarray(self.first.group == group)
                apart = (accepted - self.first_probability)[here]
                people = max(int(here.sum()), 1)
                variance += (apart.var() if len(apart) else 1.0) / people + 1 / people**2
            # A lottery is harder to use than a rule: it has to promise more.
            lottery = TIE if len(policy.weights) > 1 else 0.0
            promise.append(min(cost, gap / sqrt(variance / n)) - lottery)
        chosen: list[tuple[Mixture, FloatArray]] = []
        for k in np.argsort(-np.asarray(promise), kind="stable"):
            accepted = self.acceptance(found[k], self.first)
            # Two that decide alike are one question; the second would only cost a test.
            if all(np.abs(accepted - other).mean() >= ALIKE for _, other in chosen):
                chosen.append((found[k], accepted))
        return [policy for policy, _ in chosen]

    def intervals(self, accepted: BoolArray, alpha: float) -> list[Interval]:
        """The exact interval of every gap of drawn decisions, each end at alpha."""
        counts = decision_counts(self.gaps, accepted, self.second)
        return [difference_interval(*one, min(alpha, 0.5)) for one in counts]

    def largest(self, accepted: BoolArray, alpha: float) -> tuple[float, float]:
        """The interval of the largest gap."""
        ends = self.intervals(accepted, alpha)
        low = max(max(0.0, one.lower, -one.upper) for one in ends)
        return low, max(max(abs(one.lower), abs(one.upper)) for one in ends)

    def smaller_by(self, accepted: BoolArray, alpha: float) -> float:
        """A lower end of s gap^0_k* - max_k |gap'_k|, at alpha.

        It is the smallest of the lower ends of s gap^0_k* -+ gap'_k, each at alpha: if one of them
        is above its truth, it need not be the smallest, but the smallest is never above the truth
        of the one that decides.
        """
        half = min(alpha / 2, 0.5)
        s = self.sign
        old = self.intervals(self.drawn, half)[self.largest_gap]
        old_low = old.lower if s > 0 else -old.upper
        new = self.intervals(accepted, half)
        lows = [self._difference(accepted, half)]
        for k, one in enumerate(new):
            lows.append(old_low + (one.lower if s > 0 else -one.upper))
            if k != self.largest_gap:
                lows.append(old_low - (one.upper if s > 0 else -one.lower))
        return min(lows)

    def _difference(self, accepted: BoolArray, half: float) -> float:
        """A lower end of s (gap^0 - gap') at k*: s ((u_b - u_a) - (v_b - v_a)), each difference of
        the people who are treated differently at half of alpha.
        """
        k = self.largest_gap

        def old_alone(rate: Rate) -> BoolArray:
            return self.drawn & ~accepted if rate.sign > 0 else ~self.drawn & accepted

        def new_alone(rate: Rate) -> BoolArray:
            return ~self.drawn & accepted if rate.sign > 0 else self.drawn & ~accepted

        u = difference_interval(*gap_counts(self.gaps, old_alone, self.second)[k], half)
        v = difference_interval(*gap_counts(self.gaps, new_alone, self.second)[k], half)
        return u.lower - v.upper if self.sign > 0 else v.lower - u.upper

    def cost_ends(self, policy: Mixture, alpha: float) -> tuple[float, float, float]:
        """The cost beyond the incumbent's, and its two ends, each at alpha."""
        before = self.acceptance(policy, self.first) - self.first_probability
        variance = np.array([(self.first.accept_cost * before).var()])
        # The first part may show no difference where there is a little.
        variance = variance + self.width**2 / (4 * len(self.first))
        values = self.second.accept_cost * (self.acceptance(policy, self.second) - self.probability)
        people = len(values)
        stake = good_stakes(variance, people, self.width, alpha)
        squares = np.array([float(values @ values)])
        total = np.array([float(values.sum())])
        low = float(least_means(total, squares, people, self.width, stake, alpha)[0])
        high = -float(least_means(-total, squares, people, self.width, stake, alpha)[0])
        bound = self.width / 2
        return float(values.mean()), max(low, -bound), min(high, bound)

    def tested(
        self, policy: Mixture, share: float, alpha: float, extra_cost: float, before: bool
    ) -> Alternative:
        """An alternative with its test at level `share`, and its intervals, each end at alpha."""
        accepted: BoolArray = self.coins < self.acceptance(policy, self.second)
        difference, _, at_most = self.cost_ends(policy, share)
        _, cheap, dear = self.cost_ends(policy, alpha)
        smaller = self.smaller_by(accepted, share)
        return Alternative(
            policy=policy,
            cost_difference=difference,
            cost_interval=(cheap, dear),
            gap=self.gap(accepted),
            gap_interval=self.largest(accepted, alpha),
            costs_at_most=at_most,
            smaller_by=smaller,
            better=before and at_most <= extra_cost and smaller > 0,
        )
