"""A table of past people as the population of a plan."""

import numpy as np

from evenhand.contracts import Enumeration, GroupUse, HypothesisClass
from evenhand.environments import Discrete
from evenhand.errors import InvalidInput
from evenhand.hypotheses import Estimator, Linear, ScoreThresholds, Stumps
from evenhand.planning.population import (
    BINS,
    MOST_RULES,
    THRESHOLD_RULES,
    PlannedPopulation,
    binned,
    paid_rules,
)
from evenhand.words import BoolArray, FloatArray, GroupArray, IntArray, LabelledSample

MOST_CONTEXTS = 600
"""Rows at most that stand for a table with many columns."""
STUMP_BINS = 12
STUMP_CUTS = 64
"""Cuts per column that the certified learner starts with."""
FITTED_RULES = 30
"""What the fourth nominated rule costs, as the size of a finite class: pi^2 N^2 / 6. Half of the
weight is on the first few of them. Chosen with four tables in view, on which 1,000 made forecasts
too late (decision 0011)."""


def from_table(
    sample: LabelledSample, hypotheses: HypothesisClass, group_use: GroupUse, rules: int | None
) -> PlannedPopulation:
    """The table as a population. Thresholds: its score in bins; finite classes and stumps: its
    rows; fitted classes: an out-of-fold score of the same kind of model in bins."""
    sample.require_two_groups()
    if isinstance(hypotheses, ScoreThresholds):
        world = _score_bins(
            sample,
            sample.features[:, hypotheses.column],
            "decide" if hypotheses.per_group else group_use,
        )
        return PlannedPopulation(
            world,
            paid_rules(rules, THRESHOLD_RULES, world),
            f"{len(sample):,} rows, their score in bins",
        )
    source = Stumps(max_bins=STUMP_BINS) if isinstance(hypotheses, Stumps) else hypotheses
    bound = (
        None if isinstance(hypotheses, Linear | Estimator) else source.bind(sample.features, None)
    )
    if isinstance(bound, Enumeration):
        world = _rows(sample, _members(bound, sample))
        size = (
            2 * STUMP_CUTS * sample.features.shape[1]
            if isinstance(hypotheses, Stumps)
            else len(world.hypotheses)
        )
        return PlannedPopulation(
            world,
            paid_rules(rules, size, world),
            f"{len(sample):,} rows, {len(world)} kinds of people",
        )
    world = _score_bins(sample, _out_of_fold(sample, hypotheses), group_use)
    told = f"{len(sample):,} rows, an out-of-fold score in bins"
    return PlannedPopulation(world, paid_rules(rules, FITTED_RULES, world), told, fitted=True)


def _score_bins(sample: LabelledSample, score: FloatArray, group_use: GroupUse) -> Discrete:
    """The table's score in bins of about equal size, with the table's own rates in each."""
    edges = np.unique(np.quantile(score, np.arange(1, BINS) / BINS))
    code = np.searchsorted(edges, score, side="right")
    code = np.unique(code, return_inverse=True)[1]
    if code.max() < 1:
        raise InvalidInput(
            "the score has the same value for everybody; there is nothing to decide by."
        )
    cells = code.max() + 1
    place = cells * np.array([sample.groups.index(value) for value in sample.group.tolist()]) + code
    size = cells * len(sample.groups)
    masses = [
        np.bincount(place, sample.weight * (sample.label == y), size)
        .astype(np.float64)
        .reshape(len(sample.groups), cells)
        for y in (1, -1)
    ]
    return binned(masses[0], masses[1], list(sample.groups), group_use, "table")


def _members(bound: Enumeration, sample: LabelledSample) -> BoolArray:
    """(members, rows): the class on the table, constants left out, at most MOST_RULES of them
    evenly spread.
    """
    size = bound.totals(np.zeros((1, len(sample)))).shape[1]
    chosen = np.unique(np.linspace(0, size - 1, min(size, MOST_RULES)).astype(int))
    table = np.array([bound.hypothesis(int(i)).accepts(sample.features, None) for i in chosen])
    kept = table[table.any(axis=1) & ~table.all(axis=1)]
    if len(kept) == 0:
        raise InvalidInput(
            "every rule of the class accepts everybody or nobody on this table; there is nothing to learn."
        )
    return np.asarray(np.unique(kept, axis=0))


def _rows(sample: LabelledSample, accepts: BoolArray) -> Discrete:
    """Rows that no rule tells apart are one context; if rows are too many, every k-th (by group and
    label) stands for its neighbours.
    """
    codes = np.array([sample.groups.index(value) for value in sample.group.tolist()])
    order = np.lexsort((sample.label, codes))
    rows: IntArray = np.arange(len(sample))
    if len(rows) > MOST_CONTEXTS:
        rows = order[np.linspace(0, len(order) - 1, MOST_CONTEXTS).astype(int)]
    patterns = np.concatenate([codes[np.newaxis, rows], accepts[:, rows]]).T
    _, first, place = np.unique(patterns, axis=0, return_index=True, return_inverse=True)
    weight = sample.weight[rows]
    mass = np.bincount(place.ravel(), weight)
    good = np.bincount(place.ravel(), weight * (sample.label[rows] == 1))
    group: GroupArray = sample.group[rows][first]
    return Discrete(mass / mass.sum(), good / mass, group, accepts[:, rows][:, first], name="table")


def _out_of_fold(sample: LabelledSample, hypotheses: HypothesisClass) -> FloatArray:
    """Scores of models that did not see the person: five folds."""
    from sklearn.linear_model import LogisticRegression  # heavy: loaded for fitted classes alone
    from sklearn.model_selection import cross_val_predict
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    own = hypotheses.classifier if isinstance(hypotheses, Estimator) else None
    model = (
        own
        if own is not None and hasattr(own, "predict_proba")
        else make_pipeline(StandardScaler(), LogisticRegression())
    )
    if min((sample.label == y).sum() for y in (1, -1)) < 5:
        raise InvalidInput(
            "fewer than 5 good or 5 bad outcomes are in the table; a score cannot be fitted."
        )
    return np.asarray(
        cross_val_predict(model, sample.features, sample.label, cv=5, method="predict_proba")[:, 1]
    )
