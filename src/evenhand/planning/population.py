"""The population that a plan is simulated on: a score in bins per group, from a few numbers or
from a table of past people.

From numbers. With d the separation (the distance between the mean scores of good and bad, in
standard deviations),

    x | y ~ Normal(+-d/2, 1),   score = x + shift_j in group j,
    P[y = -1 | a = j] = bad_rate_j,   P[a = j] = share_j.

By default shift_j = ln((1 - bad_rate_j) / bad_rate_j) / d: then a score means the same chance of a
good outcome in every group. Where bad rates differ, such a score has different false positive
rates, so a limit costs something; shifts of 0 are the easy case in which no threshold has a gap.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import sqrt
from typing import TypeVar, cast

import numpy as np
import scipy

from evenhand.algorithms.certified.candidates import require_readable
from evenhand.algorithms.certified.quota import Quota
from evenhand.algorithms.certified.settings import CUTS, FIRST_ROUNDS
from evenhand.contracts import Enumeration, GroupUse, Hypothesis, HypothesisClass, Json, Rate
from evenhand.environments import Discrete, Replay
from evenhand.environments.population import ZERO_ONE, loss_on
from evenhand.errors import InvalidInput
from evenhand.estimation.log import find_contexts, numbered
from evenhand.faircsc import FairCSC, bind_fair
from evenhand.fairness import GapConstraints
from evenhand.findings import ROUNDING
from evenhand.hypotheses import Estimator, FiniteClass, Linear, ScoreThresholds, Stumps
from evenhand.hypotheses.thresholds import Threshold
from evenhand.shares import require_share
from evenhand.words import BoolArray, FloatArray, GroupArray, IntArray, LabelledSample, Prices

GroupName = TypeVar("GroupName", bound=Hashable)

BINS = 30
"""Bins of the score, of equal mass in the whole population."""
MOST_RULES = 225
"""Rules at most where every group has a threshold of its own."""
THRESHOLD_RULES = 100
"""Thresholds on a continuous score that a learner starts with: about one for each of its first
people.
"""
MOST_PLAYED = 5e7
"""Rules times distinct people up to which the runs of a plan are played on the table itself (some
seconds a run); above, by the counts of its kinds of people.
"""
MOST_CONTEXTS = 4_000
"""Kinds of people above which fewer of the rules that spread evenly over the class are kept."""
FRONTIER = (0.0, 0.5, 1.0, 2.0, 4.0)
"""Multiples of the limit at which the rules of the cheapest policy are looked for, besides no limit
at all.
"""
FEW_RULES = 16
"""Thresholds that spread evenly over a fitted score, besides those of the cheapest policies."""
FITTED_RULES = 30
"""What the fourth nominated rule costs, as the size of a finite class: pi^2 N^2 / 6. Half of the
weight is on the first few of them. Chosen with four tables in view, on which 1,000 made forecasts
too late (decision 0011)."""


@dataclass(frozen=True)
class LaunchTerms:
    """What is guaranteed and what errors cost: the limit, delta, T, the rates, the prices, and who
    may be accepted. quota: with people as its unit of time, as in simulations.
    """

    limit: float
    delta: float
    horizon: int
    rates: tuple[Rate, ...]
    prices: Prices = ZERO_ONE
    audit_budget: float | None = None
    accept_at_most: float | None = None
    accept_at_least: float | None = None
    quota: Quota | None = None

    @property
    def most(self) -> float:
        """The largest share of the people that may be accepted, in the long run."""
        cap = 1.0 if self.accept_at_most is None else self.accept_at_most
        return cap if self.quota is None else min(cap, self.quota.count / self.quota.period)

    @property
    def least(self) -> float:
        """The smallest share; a quota outranks it."""
        return 0.0 if self.accept_at_least is None else min(self.accept_at_least, self.most)

    @property
    def shares(self) -> tuple[float, float] | None:
        """The smallest and the largest share; None where every share is permitted."""
        return None if (self.least, self.most) == (0.0, 1.0) else (self.least, self.most)


class KindsOfPeople(Discrete):
    """Kinds of people of a table. A kind has its number, by which the rules of the plan know it,
    and the mean of the table's columns over its people.

    The certified learner foretells outcomes from the features. If it saw the number alone, it would
    learn far less than it will from the columns, and the plan would be too pessimistic (Adult at
    20,000 people: a saving of -50 instead of 435; runs on the table itself save 474).
    """

    def __init__(
        self,
        probability: FloatArray,
        positive_rate: FloatArray,
        group: GroupArray,
        accepts: BoolArray,
        columns: FloatArray,
    ) -> None:
        super().__init__(probability, positive_rate, group, accepts, name="table")
        self.features = np.column_stack([self.features, columns])


@dataclass(frozen=True, eq=False)
class TableItself:
    """A table whose people come again, and the class that will be launched: a run on them is the
    launch itself, but for the people.
    """

    people: Replay
    hypotheses: HypothesisClass
    group_use: GroupUse
    rules: int
    """With how many rules a run starts."""
    share: float = 1.0
    """Of delta: below 1 where more rules than that are to be paid for."""
    candidates: tuple[Hypothesis, ...] = ()
    """The incumbent's rules, members from the first round on."""

    def affordable(self, horizon: int) -> bool:
        """Whether runs are short and rules few enough to play them person by person."""
        return self.rules * min(horizon, len(self.people.population_sample())) <= MOST_PLAYED


@dataclass(frozen=True)
class Incumbent:
    """What a rule of today does on the table: the share that it accepts, what it costs per person,
    and its largest |gap|.

    Parameters
    ----------
    rule : str
        The rule in words.
    accepted : float
        The share of the people whom it accepts.
    cost : float
        What it costs per person.
    gap : float
        Its largest |gap| between two groups, over all rates of the plan.

    Examples
    --------
    >>> Incumbent("accept if score >= 600", 0.31, 0.2, 0.07).describe(0.05)
    'accept if score >= 600: accepts 31%, costs 0.2 a person, gap 0.070 (above the limit)'
    """

    rule: str
    accepted: float
    cost: float
    gap: float

    def describe(self, limit: float) -> str:
        """Write the figures as text.

        Parameters
        ----------
        limit : float
            The limit of the plan.

        Returns
        -------
        str
            One line.
        """
        above = self.gap > limit + ROUNDING
        stands = "above the limit" if above else "within the limit"
        figures = f"accepts {self.accepted:.0%}, costs {self.cost:.3g} a person"
        return f"{self.rule}: {figures}, gap {self.gap:.3f} ({stands})"


@dataclass(frozen=True, eq=False)
class PlannedPopulation:
    """A population, how many rules the union bound must pay for, and where it comes from.

    fitted: whether the rules will be fitted. reachable: which rules of the population a learner can
    have, None for all; the others are there for the best policy alone. table: the table itself,
    where runs may be played on it. incumbent: what the incumbent's rules do on it.
    """

    world: Discrete
    rules: int
    source: str
    fitted: bool = False
    reachable: BoolArray | None = None
    table: TableItself | None = None
    incumbent: tuple["Incumbent", ...] = ()

    @cached_property
    def learnable(self) -> FiniteClass:
        """The rules of the population that a learner can have."""
        if self.reachable is None:
            return self.world.hypotheses
        return FiniteClass.from_table(self.world.accepts[self.reachable])

    def denominators(self, rates: tuple[Rate, ...]) -> FloatArray:
        """(rates, groups): P[a = j, in the denominator of the rate]."""
        table = self.world.population_sample()
        mass = [table.weight * rate.in_denominator(table.label) for rate in rates]
        return np.array(
            [[one[table.group == group].sum() for group in table.groups] for one in mass]
        )

    def facts(self) -> Json:
        """What a plan says about its population, as plain values."""
        table = self.world.population_sample()
        shares = {}
        bad_rates = {}
        for group in table.groups:
            mine = table.group == group
            shares[str(group)] = share = float(table.weight[mine].sum())
            bad_rates[str(group)] = float(table.weight[mine & (table.label == -1)].sum()) / share
        facts = {"source": self.source, "group_shares": shares, "bad_rates": bad_rates}
        return {**facts, "rules": self.rules}


def from_numbers(
    group_shares: Mapping[GroupName, float],
    bad_rates: Mapping[GroupName, float] | float,
    separation: float,
    score_shifts: Mapping[GroupName, float] | None,
    group_use: GroupUse,
    rules: int | None,
) -> PlannedPopulation:
    """The population of the module's formula, its score in bins."""
    groups = _score_distributions(group_shares, bad_rates, separation, score_shifts)
    share, bad_rate, shift = (
        np.array(column)[:, np.newaxis] for column in zip(*groups, strict=True)
    )
    # bins of equal mass in the whole population, by interpolating its distribution function
    grid = np.linspace(-12 - separation, 12 + separation, 4001) + np.mean(shift)
    below_bad, below_good = (
        scipy.special.ndtr(grid - side * separation / 2 - shift) for side in (-1, 1)
    )
    total = (share * (bad_rate * below_bad + (1 - bad_rate) * below_good)).sum(axis=0)
    edges = np.r_[-np.inf, np.interp(np.arange(1, BINS) / BINS, total, grid), np.inf]
    bad, good = (
        share * part * np.diff(scipy.special.ndtr(edges - side * separation / 2 - shift))
        for side, part in ((-1, bad_rate), (1, 1 - bad_rate))
    )
    world = binned(good, bad, list(group_shares), group_use, "planned")
    source = f"a score with separation {separation:.3g} (AUC {auc_of(separation):.3f})"
    return PlannedPopulation(world, paid_rules(rules, THRESHOLD_RULES, world), source)


def _score_distributions(
    group_shares: Mapping[GroupName, float],
    bad_rates: Mapping[GroupName, float] | float,
    separation: float,
    score_shifts: Mapping[GroupName, float] | None,
) -> list[tuple[float, float, float]]:
    """(share, bad rate, shift of the score) of each group, or what is wrong with them."""
    shares = {group: float(share) for group, share in group_shares.items()}
    total = sum(shares.values())
    possible = all(0 < share < 1 for share in shares.values())
    if len(shares) < 2 or not possible or abs(total - 1) > 1e-6:
        raise InvalidInput(
            f"group_shares is {shares}; at least two groups, each with a share between 0 and 1 "
            f"that sum to 1 (they sum to {total:g})."
        )
    rates = dict(bad_rates) if isinstance(bad_rates, Mapping) else dict.fromkeys(shares, bad_rates)
    if set(rates) != set(shares):
        raise InvalidInput(
            f"bad_rates names the groups {list(rates)}, group_shares {list(shares)}; "
            "they must be the same."
        )
    for group, rate in rates.items():
        require_share(
            f"bad_rates of group {group!r}",
            rate,
            "(0, 1)",
            "if you have never seen a bad outcome, plan with a rate that would not surprise you.",
        )
    if not 0 < separation < 10:
        raise InvalidInput(
            f"separation is {separation}; it is the distance between the mean scores of good and "
            "bad, in standard deviations, above 0.",
            hint="1 is an AUC of .76, 2 one of .92; or give auc instead.",
        )
    shifts = score_shifts
    if shifts is None:
        shifts = {g: float(scipy.special.logit(1 - r) / separation) for g, r in rates.items()}
    if set(shifts) != set(rates):
        raise InvalidInput(
            f"score_shifts names the groups {list(shifts)}; the groups are {list(shares)}."
        )
    return [(share / total, float(rates[g]), float(shifts[g])) for g, share in shares.items()]


def separation_of(auc: float) -> float:
    """The separation at which a random good person has a higher score than a random bad one with
    probability `auc`.

    >>> round(separation_of(0.76), 2)
    1.0
    """
    if not 0.5 < auc < 1:
        raise InvalidInput(f"auc is {auc}; informative features have an AUC between 0.5 and 1.")
    return float(sqrt(2) * scipy.special.ndtri(auc))


def auc_of(separation: float) -> float:
    """The inverse of `separation_of`."""
    return float(scipy.special.ndtr(separation / sqrt(2)))


def from_table(
    sample: LabelledSample,
    hypotheses: HypothesisClass,
    group_use: GroupUse,
    rules: int | None,
    terms: LaunchTerms,
    candidates: tuple[Hypothesis, ...] = (),
) -> PlannedPopulation:
    """The table as a population, with all its rows. Fitted classes: thresholds on an out-of-fold
    score of the same kind of model. Where every group has a threshold of its own: the score in
    bins. candidates: the incumbent's rules.
    """
    sample.require_two_groups()
    sample = _somebody(sample)
    shown = sample.group if group_use == "decide" else None
    require_readable(candidates, sample.features, shown)
    # the rows may be replaced by scores below, so the incumbent is asked now
    today = _decisions(candidates, sample, shown)
    incumbent = tuple(
        _incumbent(rule, decides, sample, terms)
        for rule, decides in zip(candidates, today, strict=True)
    )
    people = f"all {len(sample):,} rows"
    if sample.count is not None:
        people = f"{people} ({sample.weight.sum():,.6g} people)"
    fitted = False
    scored = isinstance(hypotheses, ScoreThresholds)
    if isinstance(hypotheses, ScoreThresholds) and (hypotheses.per_group or group_use == "decide"):
        if candidates:
            raise InvalidInput(
                f"candidates has {len(candidates)} rules, and a plan with a threshold for each "
                "group sees the score in bins",
                requirement="each bin must be accepted or rejected as a whole",
                hint="plan with another class, or without candidates.",
                argument="candidates",
            )
        world = _score_bins(sample, sample.features[:, hypotheses.column], "decide")
        size = paid_rules(rules, THRESHOLD_RULES, world)
        return PlannedPopulation(world, size, f"{people}, their score in bins")
    fair = None
    table = None
    cut = None
    if not isinstance(hypotheses, Linear | Estimator):
        fair = bind_fair(hypotheses, sample.features, None, terms.rates, sample, terms.limit)
    if fair is None or not isinstance(fair.oracle, Enumeration):
        fitted = True
        size = FITTED_RULES
        # the people of one row may be in several folds, so they are listed one by one
        each = np.repeat(
            np.arange(len(sample)), sample.require_whole_counts("a score is fitted to people")
        )
        sample = LabelledSample(sample.features[each], sample.group[each], sample.label[each])
        today = today[:, each]
        score = _out_of_fold(sample, hypotheses)[:, np.newaxis]
        sample = LabelledSample(score, sample.group, sample.label)
        fair = bind_fair(ScoreThresholds(), score, None, terms.rates, sample, terms.limit)
    else:
        first = _first_people(sample, hypotheses)
        size = first.totals(np.zeros((1, FIRST_ROUNDS))).shape[1]
        share = 1.0 if rules is None else min(1.0, size / rules)
        table = TableItself(Replay(sample), hypotheses, group_use, size, share, candidates)
        if isinstance(hypotheses, Stumps):
            cut = _cut(sample, first, size)
    most = FEW_RULES if fitted else THRESHOLD_RULES if scored else MOST_RULES
    planned = ScoreThresholds() if fitted else hypotheses
    world, reachable = _rows(sample, fair, planned, terms, most, cut, _different(today))
    paid = paid_rules(rules, size, world)
    source = people
    if table is None or not table.affordable(terms.horizon):
        people = f"{people}, an out-of-fold score" if fitted else people
        source = f"{people}, {len(world):,} kinds of people, {len(world.accepts)} rules"
    return PlannedPopulation(world, paid, source, fitted, reachable, table, incumbent)


def _decisions(
    rules: Sequence[Hypothesis], sample: LabelledSample, group: GroupArray | None
) -> BoolArray:
    """(rules, rows): whom each rule accepts."""
    table = np.array([rule.accepts(sample.features, group) for rule in rules], dtype=bool)
    return table.reshape(len(rules), len(sample))


def _different(table: BoolArray) -> BoolArray:
    """Without the rules that accept all applicants or nobody."""
    return np.asarray(table[table.any(axis=1) & ~table.all(axis=1)])


def _incumbent(
    rule: Hypothesis, accepts: BoolArray, sample: LabelledSample, terms: LaunchTerms
) -> Incumbent:
    weight = sample.weight / sample.weight.sum()
    decided = accepts.astype(np.float64)
    gaps = GapConstraints.on(terms.rates, sample).gaps(decided)
    people = LabelledSample(sample.features, sample.group, sample.label, weight)
    cost = loss_on(people, decided, terms.prices)
    return Incumbent(
        rule.describe(), float(weight @ decided), cost, float(np.abs(gaps).max(initial=0.0))
    )


def _somebody(sample: LabelledSample) -> LabelledSample:
    """The sample without the rows that stand for nobody."""
    if sample.weight.all():
        return sample
    rows = np.flatnonzero(sample.weight)
    columns = (sample.features[rows], sample.group[rows], sample.label[rows], sample.weight[rows])
    return LabelledSample(*columns, schema=sample.schema)


def _first_people(sample: LabelledSample, hypotheses: HypothesisClass) -> Enumeration:
    """The class at the values of a learner's first people, who are drawn from the table: the rules
    that it starts with. A column of two values has two stumps, not 2 CUTS of them.
    """
    shares = sample.weight / sample.weight.sum()
    rows = np.random.default_rng(0).choice(len(sample), FIRST_ROUNDS, p=shares)
    every_cut = isinstance(hypotheses, Stumps) and hypotheses.max_bins is None
    rules = Stumps(max_bins=CUTS) if every_cut else hypotheses
    return cast(Enumeration, rules.bind(sample.features[rows], None))


def _cut(sample: LabelledSample, first: Enumeration, size: int) -> LabelledSample:
    """The table as its stumps at the first people's values see it: which of these values each cell
    has reached.
    """
    values: list[set[float]] = [set() for _ in sample.features.T]
    for rule in (first.hypothesis(member) for member in range(size)):
        if isinstance(rule, Threshold):
            values[rule.column].add(rule.value)
    columns = [
        np.searchsorted(np.array(sorted(reached)), column, side="right").astype(np.float64)
        for reached, column in zip(values, sample.features.T, strict=True)
    ]
    return LabelledSample(np.column_stack(columns), sample.group, sample.label, sample.weight)


def _codes(sample: LabelledSample) -> IntArray:
    """The place of each row's group."""
    values, code = numbered(sample.group)
    place = {group: code for code, group in enumerate(sample.groups)}
    return np.array([place[value] for value in values])[code]


def _score_bins(sample: LabelledSample, score: FloatArray, group_use: GroupUse) -> Discrete:
    """The table's score in bins of about equal size, with the table's own rates in each."""
    # an edge is the lowest score that at least so many of the people do not exceed
    order = np.argsort(score, kind="stable")
    below = np.cumsum(sample.weight[order])
    place = np.searchsorted(below, np.arange(1, BINS) / BINS * below[-1])
    edges = np.unique(score[order][place])
    code = np.unique(np.searchsorted(edges, score, side="right"), return_inverse=True)[1]
    cells = int(code.max()) + 1
    if cells < 2:
        raise InvalidInput(
            "the score has the same value for all people; there is nothing to decide by."
        )
    place = cells * _codes(sample) + code
    groups = len(sample.groups)
    counts = (
        np.bincount(place, sample.weight * (sample.label == y), groups * cells) for y in (1, -1)
    )
    good, bad = (count.astype(np.float64).reshape(groups, cells) for count in counts)
    return binned(good, bad, list(sample.groups), group_use, "table")


def _rows(
    sample: LabelledSample,
    fair: FairCSC,
    hypotheses: HypothesisClass,
    terms: LaunchTerms,
    most: int,
    cut: LabelledSample | None,
    today: BoolArray,
) -> tuple[Discrete, BoolArray | None]:
    """All rows; those that no rule of the plan tells apart are one kind of people. And which of its
    rules a learner can have.

    The plan has the rules of the cheapest policies within limits around the one that is planned
    for, and without a limit, so that the best policy is that of `solve`; and as many others, evenly
    spread over the class and at most `most`, as leave at most MOST_CONTEXTS kinds of people. With
    `cut`, a learner has only what tells the rows of `cut` apart, and the cheapest rules of that.
    today (rules, rows): whom the incumbent's rules accept; a learner has them in any case.
    """
    codes = _codes(sample)
    size = _size(fair, len(sample))
    best = _cheapest(sample, fair, hypotheses, terms) if size > most else []
    known = _answers(best, sample)
    seen = sample
    if cut is not None and best:
        seen = cut
        fair = bind_fair(Stumps(), cut.features, None, terms.rates, cut, terms.limit)
        best = _cheapest(cut, fair, Stumps(), terms)
        size = _size(fair, len(cut))
    bound = cast(Enumeration, fair.oracle)
    spread = min(size, 4 if best else most)
    found = None
    while True:  # more rules, while the kinds are not too many
        members = np.unique(np.linspace(0, size - 1, spread).astype(int))
        rules = [*best, *(bound.hypothesis(int(member)) for member in members)]
        kinds = _Kinds.of(codes, known, np.concatenate([_answers(rules, seen), today]))
        if found is not None and len(kinds.first) > MOST_CONTEXTS:
            break
        found = kinds
        if not best or spread >= min(size, most):
            break
        spread = min(size, 2 * spread, most)
    place = found.place
    mass = np.bincount(place, sample.weight)
    good = np.bincount(place, sample.weight * (sample.label == 1))
    columns = [np.bincount(place, sample.weight * column) / mass for column in sample.features.T]
    # numbered at random, so that nothing about a kind follows from its number
    order = np.random.default_rng(0).permutation(len(mass))
    first = found.first[order]
    mass = mass[order]
    good = good[order]
    world = KindsOfPeople(
        probability=mass / mass.sum(),
        positive_rate=good / mass,
        group=sample.group[first],
        accepts=found.accepts[:, first],
        columns=np.column_stack(columns)[order],
    )
    return world, None if found.reachable.all() else found.reachable


def _size(fair: FairCSC, rows: int) -> int:
    return int(cast(Enumeration, fair.oracle).totals(np.zeros((1, rows))).shape[1])


def _cheapest(
    sample: LabelledSample, fair: FairCSC, hypotheses: HypothesisClass, terms: LaunchTerms
) -> list[Hypothesis]:
    """The rules of the cheapest policies within limits around the one that is planned for, each of
    which accepts a permitted share. fair: of the class `hypotheses`, bound to the sample.
    """
    limits = sorted({min(1.0, multiple * terms.limit) for multiple in FRONTIER} | {1.0})
    if terms.shares is not None:
        world = Replay(sample, hypotheses=hypotheses)
        within = (terms.rates, terms.prices, terms.most, terms.least)
        found = [world.optimum_within(limit, *within)[1] for limit in limits]
        return [rule for policy in found for rule in policy.hypotheses]
    problem = terms.prices.problem(sample.features, sample.group, sample.label, sample.count)
    solved = fair.solve_at(limits, problem.acceptance_cost)
    return [rule for solution in solved for rule in solution.policy.hypotheses]


def _answers(rules: Sequence[Hypothesis], sample: LabelledSample) -> BoolArray:
    """(rules, rows): whom each rule accepts, but for those that accept all applicants or nobody."""
    return _different(_decisions(rules, sample, None))


@dataclass(frozen=True, eq=False)
class _Kinds:
    """Rows that the same rules accept: accepts (rules, rows), each rule once, and which of them a
    learner can have; the first row of each kind of people, and the kind of each row.
    """

    accepts: BoolArray
    reachable: BoolArray
    first: IntArray
    place: IntArray

    @classmethod
    def of(cls, codes: IntArray, known: BoolArray, reachable: BoolArray) -> "_Kinds":
        """codes: the groups of the rows; known, reachable: the answers of rules."""
        table = np.concatenate([known, reachable])
        if len(table) == 0:
            raise InvalidInput(
                "every rule of the class accepts all applicants or nobody on this table; "
                "there is nothing to learn."
            )
        # each rule once, in the order of their answers
        packed = [answers.tobytes() for answers in np.packbits(table, axis=1)]
        different = dict(zip(packed, range(len(packed)), strict=True))
        mine = packed[len(known) :]
        accepts = table[[different[answers] for answers in sorted(different)]]
        reached = np.isin(np.array(sorted(different), dtype=object), mine)
        # the group and the answers of all rules, as a few bytes per row
        pattern = np.column_stack([codes, np.packbits(accepts, axis=0).T]).astype(np.float64)
        kinds = find_contexts(pattern, None)
        order = np.lexsort(pattern[kinds.first].T[::-1])
        return cls(accepts, reached, kinds.first[order], np.argsort(order)[kinds.index])


def _out_of_fold(sample: LabelledSample, hypotheses: HypothesisClass) -> FloatArray:
    """Scores of models that did not see the person: five folds."""
    from sklearn.linear_model import LogisticRegression  # heavy: loaded for fitted classes alone
    from sklearn.model_selection import cross_val_predict
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    if min((sample.label == y).sum() for y in (1, -1)) < 5:
        raise InvalidInput(
            "fewer than 5 good or 5 bad outcomes are in the table; a score cannot be fitted."
        )
    own = hypotheses.classifier if isinstance(hypotheses, Estimator) else None
    usual = make_pipeline(StandardScaler(), LogisticRegression())
    model = own if own is not None and hasattr(own, "predict_proba") else usual
    scores = cross_val_predict(model, sample.features, sample.label, cv=5, method="predict_proba")
    return np.asarray(scores[:, 1])


# thresholds


def binned(
    good: FloatArray, bad: FloatArray, groups: list[Hashable], group_use: GroupUse, name: str
) -> Discrete:
    """good, bad: (groups, bins) masses. One threshold for all groups, or, where the group may
    decide, one for each.
    """
    mass = (good + bad).ravel()
    rate = np.divide(good.ravel(), mass, out=np.full(mass.shape, 0.5), where=mass > 0)
    count, bins = good.shape
    labels = np.empty(len(groups), dtype=object)
    labels[:] = groups
    group = np.repeat(labels if len({type(g) for g in groups}) > 1 else np.array(groups), bins)
    if group_use == "decide":
        # every combination of one cut per group (constants of a group included), on a grid coarse
        # enough for MOST_RULES
        inner = _cuts(bins, max(3, int(MOST_RULES ** (1 / count))) - 2)
        cuts = np.vstack([np.ones((1, bins), bool), inner, np.zeros((1, bins), bool)])
        table = np.array([np.concatenate(chosen) for chosen in product(cuts, repeat=count)])
        table = table[table.any(axis=1) & ~table.all(axis=1)]
    else:
        table = np.tile(_cuts(bins, bins - 1), (1, count))
    return Discrete(mass / mass.sum(), rate, group, table, name=name)


def _cuts(bins: int, cuts: int) -> BoolArray:
    """(cuts, bins): accept from a bin on; neither all applicants nor nobody."""
    places = np.unique(np.linspace(1, bins - 1, cuts).round().astype(int))
    return np.asarray(np.arange(bins) >= places[:, np.newaxis])


def paid_rules(rules: int | None, default: int, world: Discrete) -> int:
    """The size of the class that the guarantee holds for, at least that of the simulated one."""
    if rules is not None and rules < 1:
        raise InvalidInput(
            f"rules is {rules}; a class has at least one rule besides the constants."
        )
    return max(rules if rules is not None else default, len(world.hypotheses))
