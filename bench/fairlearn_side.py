"""fairlearn's ExponentiatedGradient, set to solve exactly our problem.

fairlearn bounds |FPR_g - FPR| for every group g against the rate of everybody; with n_g negatives
in group g and two groups

    FPR_1 - FPR = (FPR_1 - FPR_2) n_2 / (n_1 + n_2)

so |FPR_1 - FPR_2| <= gamma is the same as: all differences <= gamma max(n_1, n_2) / (n_1 + n_2).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from bench.data import Table
from evenhand import FalsePositiveRate
from evenhand.contracts import RowOracle
from evenhand.fairness.rates import GapConstraints
from evenhand.words import BoolArray, FloatArray


@dataclass(frozen=True)
class Answer:
    """What fairlearn found, measured by us: error of its mixture on all rows, |FPR gap|, and its
    oracle calls.
    """

    error: float
    gap: float
    oracle_calls: int


def difference_bound(table: Table, limit: float) -> float:
    """gamma max(n_1, n_2) / (n_1 + n_2)."""
    negatives = np.unique(table.group[table.label == -1], return_counts=True)[1]
    return float(limit * negatives.max() / negatives.sum())


def solve(table: Table, limit: float, estimator: Any) -> Any:
    """Fit fairlearn with its defaults, as a user would; this is what is timed."""
    from fairlearn.reductions import ExponentiatedGradient, FalsePositiveRateParity

    moment = FalsePositiveRateParity(difference_bound=difference_bound(table, limit))
    model = ExponentiatedGradient(estimator, moment)
    return model.fit(table.features, (table.label == 1).astype(int), sensitive_features=table.group)


def measure(model: Any, table: Table) -> Answer:
    """Evaluate the mixture on the table."""
    acceptance = np.asarray(model._pmf_predict(table.features))[:, 1]
    gap = GapConstraints.on(FalsePositiveRate(), table.sample).gaps(acceptance)
    error = float(np.where(table.label == 1, 1 - acceptance, acceptance).mean())
    return Answer(error, float(np.abs(gap).max()), int(model.n_oracle_calls_))


class ExactStump(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Our exact stump as a scikit-learn classifier, so that fairlearn searches the same class with
    the same argmin.

    `oracle` is already bound to the training rows: fairlearn pays for no sorting.
    """

    def __init__(self, oracle: RowOracle | None = None) -> None:
        self.oracle = oracle

    def __sklearn_clone__(self) -> "ExactStump":
        return ExactStump(self.oracle)

    def fit(self, X: FloatArray, y: Any, sample_weight: Any) -> "ExactStump":
        """argmin of the weighted error."""
        assert self.oracle is not None
        weight = np.asarray(sample_weight, dtype=np.float64)
        self.classes_ = np.array([0, 1])
        self.hypothesis_ = self.oracle.best(np.where(np.asarray(y) == 1, -weight, weight))
        return self

    def predict(self, X: Any) -> Any:
        """1 where the stump accepts."""
        accepted: BoolArray = self.hypothesis_.accepts(np.asarray(X, dtype=np.float64), None)
        return accepted.astype(int)
