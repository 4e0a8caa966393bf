"""A regression m(x) of P[y = -1 | x] from the labels of accepted people.

Within one context x the accepted are a random sample (the coin looked at x alone), so no weighting
is needed. The certificate uses m only to reduce variance: a bad regression costs width, never
validity, as long as m was fitted on earlier rounds.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol
from weakref import WeakKeyDictionary

import numpy as np

from evenhand.computing import one_blas_thread
from evenhand.errors import LengthMismatch
from evenhand.estimation.log import RoundLog, find_contexts
from evenhand.words import FloatArray, IntArray

MOST_CONTEXTS = 5000
COVERED = 0.9
"""A table of contexts is used where it knows this share of the people; elsewhere a regression must
foretell them.
"""
MOST_ROWS = 20_000
"""Rows of a logistic fit: more would not make a better forecast."""
MOST_STEPS = 60
SLOPE = 1e-4
"""A logistic fit ends after so many steps, or where no partial derivative is larger for a person: m
is then right to 4e-4 on average.
"""
PRIOR = 4.0
"""Imaginary people, with the overall rate, added to each context."""


class OutcomeRegression(Protocol):
    """m: features -> [0, 1]."""

    def negative_probability(self, features: FloatArray) -> FloatArray:
        """P[y = -1 | x] for each row."""
        ...


@dataclass(frozen=True)
class ConstantOutcome:
    """The same probability for all applicants."""

    rate: float = 0.5

    def negative_probability(self, features: FloatArray) -> FloatArray:
        """The rate."""
        return np.full(len(features), self.rate)


@dataclass(frozen=True, eq=False)
class TabularOutcome:
    """Contexts with their own rate (shrunk to the overall one); rows never seen get the overall
    rate.

    contexts (n, columns), rates (n,). No context stands for a single person.
    """

    contexts: FloatArray
    rates: FloatArray
    overall: float

    def __post_init__(self) -> None:
        if len(self.contexts) != len(self.rates):
            raise LengthMismatch(
                f"{len(self.contexts)} contexts come with {len(self.rates)} rates."
            )

    def negative_probability(self, features: FloatArray) -> FloatArray:
        """The context's rate."""
        table = self._table
        rows = np.ascontiguousarray(features + 0.0)
        return np.array([table.get(row.tobytes(), self.overall) for row in rows])

    @cached_property
    def _table(self) -> dict[bytes, float]:
        rows = np.ascontiguousarray(self.contexts + 0.0)
        return {row.tobytes(): rate for row, rate in zip(rows, self.rates.tolist(), strict=True)}


@dataclass(frozen=True, eq=False)
class LogisticOutcome:
    """A regularised logistic regression on standardised features."""

    mean: FloatArray
    scale: FloatArray
    weights: FloatArray
    intercept: float

    def __post_init__(self) -> None:
        if not self.mean.shape == self.scale.shape == self.weights.shape:
            raise LengthMismatch(
                f"{len(self.weights)} weights come with {len(self.mean)} means and "
                f"{len(self.scale)} scales."
            )

    def negative_probability(self, features: FloatArray) -> FloatArray:
        """1 / (1 + exp(-(w .

        z + b))), with the scale in the weights: the rows themselves are not standardised.
        """
        weights = self.weights / self.scale
        score = features @ weights + (self.intercept - self.mean @ weights)
        return np.asarray(1.0 / (1.0 + np.exp(-np.clip(score, -30, 30))))


_FITTED: "WeakKeyDictionary[RoundLog, OutcomeRegression]" = WeakKeyDictionary()
"""A log never changes, so what was fitted to it is remembered as long as it exists."""


def fit_outcomes(log: RoundLog | None) -> OutcomeRegression:
    """Tabular where contexts repeat, logistic elsewhere, the overall rate where there is nothing to
    fit.
    """
    if log is None or log.accepted.sum() == 0:
        return ConstantOutcome()
    if log not in _FITTED:
        _FITTED[log] = _fitted(log)
    return _FITTED[log]


def _fitted(log: RoundLog) -> OutcomeRegression:
    seen = log.where(log.accepted > 0)
    contexts = find_contexts(seen.features, None)
    negative = contexts.total(seen.negative)
    accepted = contexts.total(seen.accepted)
    overall = float(negative.sum() / accepted.sum())
    if len(accepted) <= MOST_CONTEXTS and accepted.sum() >= 1.5 * len(accepted):
        # The share of all rounds, rejected ones included, whose context has a label. The policy
        # chose who has one: for the rest the overall rate of the accepted would be far off.
        of_all = find_contexts(log.features, None)
        rounds = of_all.total(log.count)
        labelled = of_all.total(log.accepted) > 0
        if float(rounds[labelled].sum() / rounds.sum()) >= COVERED:
            several = accepted > 1
            rates = (negative + PRIOR * overall) / (accepted + PRIOR)
            return TabularOutcome(seen.features[contexts.first[several]], rates[several], overall)
    if min(negative.sum(), (accepted - negative).sum()) < 10:
        return ConstantOutcome(overall)
    rows = spread(len(accepted), MOST_ROWS)
    labels = negative[rows], (accepted - negative)[rows]
    return _logistic(seen.features[contexts.first[rows]], *labels)


def spread(rows: int, most: int) -> IntArray:
    """The numbers of all rows, or of `most` of them at equal steps."""
    return np.arange(rows) if rows <= most else np.linspace(0, rows - 1, most).astype(np.int64)


def fit_logistic_outcomes(log: RoundLog) -> LogisticOutcome | None:
    """The logistic regression alone; None where fewer than ten labels of a kind are there."""
    seen = log.where(log.accepted > 0)
    if min(seen.negative.sum(), seen.positive.sum()) < 10:
        return None
    rows = spread(len(seen), MOST_ROWS)
    return _logistic(seen.features[rows], seen.negative[rows], seen.positive[rows])


def _logistic(features: FloatArray, negative: FloatArray, positive: FloatArray) -> LogisticOutcome:
    """argmin over (w, b) of sum_i n_i ln(1 + exp(-s_i)) + p_i ln(1 + exp(s_i)) + |w|^2 / 2, s = w .

    z + b.
    """
    from scipy.optimize import minimize

    mean = features.mean(axis=0)
    scale = features.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    rows = np.c_[(features - mean) / scale, np.ones(len(features))]

    labels = negative + positive

    def objective(w: FloatArray) -> tuple[float, FloatArray]:
        score = rows @ w
        small = np.exp(-np.abs(score))
        # ln(1 + exp(s)) = ln(1 + exp(-s)) + s, and ln(1 + exp(-s)) = ln(1 + exp(-|s|)) + max(-s, 0)
        value = labels @ (np.log1p(small) - np.minimum(score, 0.0)) + positive @ score
        value = value + w[:-1] @ w[:-1] / 2
        slope = rows.T @ (labels * np.where(score > 0, 1.0, small) / (1.0 + small) - negative)
        slope[:-1] += w[:-1]
        return float(value), slope

    with one_blas_thread():
        found = minimize(
            objective,
            np.zeros(rows.shape[1]),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": MOST_STEPS, "gtol": SLOPE * float(labels.sum())},
        )
    return LogisticOutcome(mean, scale, np.asarray(found.x[:-1]), float(found.x[-1]))
