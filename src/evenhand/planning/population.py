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

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt
from typing import Any, cast

import numpy as np
import scipy

from evenhand.contracts import Enumeration, GroupUse, Hypothesis, HypothesisClass, Rate
from evenhand.environments import Discrete
from evenhand.environments.population import ZERO_ONE
from evenhand.errors import InvalidInput
from evenhand.estimation.log import find_contexts, numbered
from evenhand.faircsc import FairCSC, bind_fair
from evenhand.hypotheses import Estimator, Linear, ScoreThresholds, Stumps
from evenhand.words import BoolArray, FloatArray, GroupArray, IntArray, LabelledSample, Prices

BINS = 30
"""Bins of the score, of equal mass in the whole population."""
MOST_RULES = 225
"""Rules at most where every group has a threshold of its own."""
THRESHOLD_RULES = 100
"""Thresholds on a continuous score that a learner starts with: about one for each of its first
people.
"""
MOST_CONTEXTS = 4_000
"""Kinds of people above which fewer of the rules that spread evenly over the class are kept."""
FRONTIER = (0.0, 0.5, 1.0, 2.0, 4.0)
"""Multiples of the limit at which the rules of the cheapest policy are looked for, besides no limit
at all.
"""
STUMP_CUTS = 64
"""Cuts per column that the certified learner starts with."""
FEW_RULES = 16
"""Thresholds that spread evenly over a fitted score, besides those of the cheapest policies."""
FITTED_RULES = 30
"""What the fourth nominated rule costs, as the size of a finite class: pi^2 N^2 / 6. Half of the
weight is on the first few of them. Chosen with four tables in view, on which 1,000 made forecasts
too late (decision 0011)."""


@dataclass(frozen=True)
class LaunchTerms:
    """What is promised and what errors cost: the limit, delta, T, the rates and the prices."""

    limit: float
    failure_probability: float
    horizon: int
    rates: tuple[Rate, ...]
    prices: Prices = ZERO_ONE
    audit_budget: float | None = None


@dataclass(frozen=True, eq=False)
class PlannedPopulation:
    """A population, how many rules the union bound must pay for, and where it comes from; fitted:
    whether the rules will be fitted.
    """

    world: Discrete
    rules: int
    source: str
    fitted: bool = False

    def denominators(self, rates: Any) -> FloatArray:
        """(rates, groups): P[a = j, in the denominator of the rate]."""
        table = self.world.population_sample()
        return np.array(
            [
                [
                    (table.weight * rate.in_denominator(table.label))[table.group == group].sum()
                    for group in table.groups
                ]
                for rate in rates
            ]
        )

    def facts(self) -> dict[str, Any]:
        """What a plan says about its population, as plain values."""
        table = self.world.population_sample()
        members = {group: table.group == group for group in table.groups}
        mass = {group: float(table.weight[mine].sum()) for group, mine in members.items()}
        bad = {
            group: float(table.weight[mine & (table.label == -1)].sum())
            for group, mine in members.items()
        }
        return {
            "source": self.source,
            "group_shares": {str(group): share for group, share in mass.items()},
            "bad_rates": {str(group): bad[group] / mass[group] for group in mass},
            "rules": self.rules,
        }


def from_numbers(
    group_shares: Mapping[Any, float],
    bad_rates: Mapping[Any, float] | float,
    separation: float,
    score_shifts: Mapping[Any, float] | None,
    group_use: GroupUse,
    rules: int | None,
) -> PlannedPopulation:
    """The population of the module's formula, its score in bins."""
    laws = _laws(group_shares, bad_rates, separation, score_shifts)
    share, bad_rate, shift = (np.array(column)[:, np.newaxis] for column in zip(*laws, strict=True))
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


def _laws(
    group_shares: Mapping[Any, float],
    bad_rates: Mapping[Any, float] | float,
    separation: float,
    score_shifts: Mapping[Any, float] | None,
) -> list[tuple[float, float, float]]:
    """(share, bad rate, shift of the score) of each group, or what is wrong with them."""
    shares = {group: float(share) for group, share in group_shares.items()}
    total, possible = sum(shares.values()), all(0 < share < 1 for share in shares.values())
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
        if not 0 < rate < 1:
            raise InvalidInput(
                f"the bad rate of group {group!r} is {rate}; it must lie strictly between 0 and 1.",
                hint="if you have never seen a bad outcome, "
                "plan with a rate that would not surprise you.",
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
        raise InvalidInput(
            f"auc is {auc}; features that tell anything have an AUC between 0.5 and 1."
        )
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
) -> PlannedPopulation:
    """The table as a population, with all its rows. Fitted classes: thresholds on an out-of-fold
    score of the same kind of model. Where every group has a threshold of its own: the score in
    bins.
    """
    sample.require_two_groups()
    people, fitted = f"all {len(sample):,} rows", False
    scored = isinstance(hypotheses, ScoreThresholds)
    if isinstance(hypotheses, ScoreThresholds) and (hypotheses.per_group or group_use == "decide"):
        world = _score_bins(sample, sample.features[:, hypotheses.column], "decide")
        size = paid_rules(rules, THRESHOLD_RULES, world)
        return PlannedPopulation(world, size, f"{people}, their score in bins")
    fair = None
    if not isinstance(hypotheses, Linear | Estimator):
        fair = bind_fair(hypotheses, sample.features, None, terms.rates, sample, terms.limit)
    if fair is None or not isinstance(fair.oracle, Enumeration):
        fitted, people = True, f"{people}, an out-of-fold score"
        score = _out_of_fold(sample, hypotheses)[:, np.newaxis]
        sample = LabelledSample(score, sample.group, sample.label, sample.weight)
        fair = bind_fair(ScoreThresholds(), score, None, terms.rates, sample, terms.limit)
    most = FEW_RULES if fitted else THRESHOLD_RULES if scored else MOST_RULES
    world = _rows(sample, fair, terms, most)
    size = len(world.hypotheses)
    if isinstance(hypotheses, Stumps):
        size = 2 * STUMP_CUTS * sample.features.shape[1]
    elif fitted or scored:
        size = FITTED_RULES if fitted else THRESHOLD_RULES
    source = f"{people}, {len(world):,} kinds of people, {len(world.accepts)} rules"
    return PlannedPopulation(world, paid_rules(rules, size, world), source, fitted=fitted)


def _codes(sample: LabelledSample) -> IntArray:
    """The place of each row's group."""
    values, code = numbered(sample.group)
    place = {group: code for code, group in enumerate(sample.groups)}
    return np.array([place[value] for value in values])[code]


def _score_bins(sample: LabelledSample, score: FloatArray, group_use: GroupUse) -> Discrete:
    """The table's score in bins of about equal size, with the table's own rates in each."""
    edges = np.unique(np.quantile(score, np.arange(1, BINS) / BINS))
    code = np.unique(np.searchsorted(edges, score, side="right"), return_inverse=True)[1]
    cells = int(code.max()) + 1
    if cells < 2:
        raise InvalidInput(
            "the score has the same value for everybody; there is nothing to decide by."
        )
    place, shape = cells * _codes(sample) + code, (len(sample.groups), cells)
    good, bad = (
        np.bincount(place, sample.weight * (sample.label == y), shape[0] * cells)
        .astype(np.float64)
        .reshape(shape)
        for y in (1, -1)
    )
    return binned(good, bad, list(sample.groups), group_use, "table")


def _rows(sample: LabelledSample, fair: FairCSC, terms: LaunchTerms, most: int) -> Discrete:
    """All rows; those that no rule of the plan tells apart are one kind of people.

    The plan has the rules of the cheapest policies within limits around the one that is planned
    for, and without a limit, so that the best policy is that of `solve`; and as many others, evenly
    spread over the class and at most `most`, as leave at most MOST_CONTEXTS kinds of people.
    """
    bound = cast(Enumeration, fair.oracle)
    size = bound.totals(np.zeros((1, len(sample)))).shape[1]
    best: list[Hypothesis] = []
    if size > most:
        limits = sorted({min(1.0, multiple * terms.limit) for multiple in FRONTIER} | {1.0})
        problem = terms.prices.problem(sample.features, sample.group, sample.label)
        solved = fair.solve_at(limits, problem.acceptance_cost)
        best = [rule for solution in solved for rule in solution.policy.hypotheses]
    codes, spread = _codes(sample), min(size, 4 if best else most)
    accepts, first, place = _kinds(sample, codes, best, bound, size, spread)
    while best and spread < min(size, most):  # more rules, while the kinds are not too many
        spread = min(size, 2 * spread, most)
        more = _kinds(sample, codes, best, bound, size, spread)
        if len(more[1]) > MOST_CONTEXTS:
            break
        accepts, first, place = more
    mass = np.bincount(place, sample.weight)
    good = np.bincount(place, sample.weight * (sample.label == 1))
    group: GroupArray = sample.group[first]
    return Discrete(mass / mass.sum(), good / mass, group, accepts[:, first], name="table")


def _kinds(
    sample: LabelledSample,
    codes: IntArray,
    best: list[Hypothesis],
    bound: Enumeration,
    size: int,
    spread: int,
) -> tuple[BoolArray, IntArray, IntArray]:
    """What `best` and `spread` others say: (rules, rows); the first row of each kind of people, and
    the kind of each row.
    """
    members = np.unique(np.linspace(0, size - 1, spread).astype(int))
    rules = [*best, *(bound.hypothesis(int(member)) for member in members)]
    table = np.array([rule.accepts(sample.features, None) for rule in rules])
    table = table[table.any(axis=1) & ~table.all(axis=1)]
    if len(table) == 0:
        raise InvalidInput(
            "every rule of the class accepts everybody or nobody on this table; "
            "there is nothing to learn."
        )
    # each rule once, in the order of their answers
    different = {answers.tobytes(): rule for rule, answers in enumerate(np.packbits(table, axis=1))}
    accepts = table[[different[answers] for answers in sorted(different)]]
    # the group and the answers of all rules, as a few bytes per row
    answers = np.packbits(accepts, axis=0).T
    pattern = np.column_stack([codes, answers]).astype(np.float64)
    kinds = find_contexts(pattern, None)
    order = np.lexsort(pattern[kinds.first].T[::-1])
    return accepts, kinds.first[order], np.argsort(order)[kinds.index]


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
    good: FloatArray, bad: FloatArray, groups: list[Any], group_use: GroupUse, name: str
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
    table = (
        _pairs(count, bins) if group_use == "decide" else np.tile(_cuts(bins, bins - 1), (1, count))
    )
    return Discrete(mass / mass.sum(), rate, group, table, name=name)


def _cuts(bins: int, cuts: int) -> BoolArray:
    """(cuts, bins): accept from a bin on; neither everybody nor nobody."""
    places = np.unique(np.linspace(1, bins - 1, cuts).round().astype(int))
    return np.asarray(np.arange(bins) >= places[:, np.newaxis])


def _pairs(groups: int, bins: int) -> BoolArray:
    """Every combination of one cut per group (constants of a group included), on a grid coarse
    enough for MOST_RULES.
    """
    per_group = max(3, int(MOST_RULES ** (1 / groups)))
    cuts = np.vstack(
        [np.ones((1, bins), bool), _cuts(bins, per_group - 2), np.zeros((1, bins), bool)]
    )
    grid = np.stack(np.meshgrid(*[np.arange(len(cuts))] * groups, indexing="ij"), axis=-1).reshape(
        -1, groups
    )
    table = np.concatenate([cuts[grid[:, j]] for j in range(groups)], axis=1)
    return np.asarray(table[(table.any(axis=1)) & (~table.all(axis=1))])


def paid_rules(rules: int | None, default: int, world: Discrete) -> int:
    """The size of the class that the promise must hold for, at least that of the simulated one."""
    if rules is not None and rules < 1:
        raise InvalidInput(
            f"rules is {rules}; a class has at least one rule besides the constants."
        )
    return max(rules if rules is not None else default, len(world.hypotheses))
