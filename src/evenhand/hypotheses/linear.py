"""Linear rules: a weighted logistic surrogate finds the direction, then the exact cheapest cut-off is found along it.

    g = argmin sum_i v_i ln(1 + exp(-s_i (g.z_i + g_0))) + penalty/2 |g|^2,   s_i = -sign(c_i), v_i = |c_i| / sum|c|
    t = argmin sum_i c_i 1[w.x_i >= t],   w = M g,   z = M^T (x - mean) whitened: mean 0, covariance 1

On whitened rows |g|^2 is the variance of the score, so units and correlations of columns do not matter, and a dozen steps
of L-BFGS suffice. The fit starts from zero at every call: an answer does not depend on what was asked before. Weights are
kept to nine digits: rounding noise (another order of rows, costs times 1e12) is then not seen by the rule.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand.contracts import Hypothesis, HypothesisClass, Json, RowOracle
from evenhand.errors import InvalidInput
from evenhand.hypotheses._batches import LinearBatch
from evenhand.hypotheses._rows import checked_costs, checked_rows, column_name, require_columns
from evenhand.hypotheses._threads import one_blas_thread
from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL
from evenhand.hypotheses.thresholds import Cuts
from evenhand.words import BoolArray, FloatArray, GroupArray

BLOCK = 50_000
"""Rows that are whitened at a time."""
LARGE = 4_000_000
"""Bytes above which a table is not copied for the sake of faster columns."""


@dataclass(frozen=True)
class LinearRule:
    """Accept iff w.x >= threshold."""

    weights: tuple[float, ...]
    threshold: float

    def accepts(self, features: FloatArray, group: GroupArray | None = None) -> BoolArray:
        """w.x >= threshold."""
        require_columns(features, len(self.weights), self.describe())
        return np.asarray(row_scores(features, self.weights) >= self.threshold)

    @staticmethod
    def together(members: "Sequence[LinearRule]") -> LinearBatch | None:
        """Several linear rules on rows of the same width, asked together."""
        widths = {len(rule.weights) for rule in members}
        if len(widths) > 1 or 0 in widths:
            return None
        thresholds = np.array([[rule.threshold] for rule in members])
        return LinearBatch(np.array([rule.weights for rule in members]), thresholds, widths.pop())

    def describe(self, names: Sequence[str] | None = None) -> str:
        """ "accept if 2 income - 0.5 debt >= 30", the five largest weights first."""
        order = sorted((j for j, w in enumerate(self.weights) if w), key=lambda j: -abs(self.weights[j]))
        terms = [
            f"{'-' if self.weights[j] < 0 else '+'} {abs(self.weights[j]):.4g} {column_name(j, names)}"
            for j in order[:5]
        ]
        text = " ".join(terms).removeprefix("+ ") or "0"
        more = f" + {len(order) - 5} smaller terms" if len(order) > 5 else ""
        return f"accept if {text}{more} >= {self.threshold:.6g}"

    def to_json(self) -> Json:
        """Plain JSON."""
        return {"kind": "linear", "weights": list(self.weights), "threshold": self.threshold}


def row_scores(features: FloatArray, weights: Sequence[float]) -> FloatArray:
    """w.x, added up column by column: unlike a BLAS product, a row's score depends on its neighbours by not one bit."""
    score = np.zeros(len(features))
    for column, weight in zip(features.T, weights, strict=True):
        if weight:
            score += weight * column
    return score


@dataclass(frozen=True)
class Linear(HypothesisClass):
    """{accept iff w.x >= t}; a heuristic oracle, never worse than the constants on its own rows."""

    penalty: float = 1e-4
    exact = False
    uses_group = False

    def __post_init__(self) -> None:
        if not 0 < self.penalty < math.inf:
            raise InvalidInput(f"penalty is {self.penalty}; it must be a finite number above 0.")

    @property
    def params(self) -> Mapping[str, Any]:
        """Class and penalty."""
        return {"class": "Linear", "penalty": self.penalty}

    @property
    def log_size(self) -> float:
        """Infinite: weights are real."""
        return math.inf

    def log_growth(self, rows: int, columns: int) -> float:
        """Sauer: ln sum_{i <= d} C(rows, i) for the VC dimension d = columns + 1."""
        return log_sauer(rows, columns + 1)

    def bind(self, features: FloatArray, group: GroupArray | None) -> RowOracle:
        """Whiten once."""
        rows = checked_rows(features)
        with one_blas_thread():
            back = whitener(rows)
            white = whitened(rows, back)
        kept = rows if rows.nbytes > LARGE else np.asfortranarray(rows)
        return _BoundLinear(kept, white, back, self.penalty)


def whitener(rows: FloatArray) -> FloatArray:
    """M (columns, rank) such that (rows - mean) M has covariance 1; constant and repeated columns add no rank."""
    mean, blocks = rows.mean(axis=0), [rows[start : start + BLOCK] for start in range(0, len(rows), BLOCK)]
    spread = np.sqrt(sum(np.square(block - mean).sum(axis=0) for block in blocks) / len(rows))
    largest = np.maximum(rows.max(axis=0), -rows.min(axis=0))
    scale = np.where(spread > 1e-12 * largest, spread, np.inf)
    products = np.zeros((rows.shape[1], rows.shape[1]))
    for block in blocks:
        standard = (block - mean) / scale
        products += standard.T @ standard
    variance, axes = np.linalg.eigh(products / len(rows))
    kept = variance > 1e-9
    return np.asarray(axes[:, kept] / np.sqrt(variance[kept]) / scale[:, np.newaxis])


def whitened(rows: FloatArray, back: FloatArray) -> FloatArray:
    """(rows - mean) M, column by column in memory; block by block, so that nothing of the table's size is needed besides."""
    white, mean = np.empty((len(rows), back.shape[1]), order="F"), rows.mean(axis=0)
    for start in range(0, len(rows), BLOCK):
        white[start : start + BLOCK] = (rows[start : start + BLOCK] - mean) @ back
    return white


@dataclass(frozen=True, eq=False)
class _BoundLinear:
    """Rows as they are, whitened rows, and the way back from weights on these to weights on those."""

    rows: FloatArray
    white: FloatArray
    back: FloatArray
    penalty: float

    def best(self, acceptance_cost: FloatArray) -> Hypothesis:
        """Surrogate direction, exact cut-off; ties go to accept-all, reject-all, then the lowest cut-off."""
        cost = checked_costs(acceptance_cost, len(self.rows))
        if (cost <= 0).all():
            return ACCEPT_ALL
        if (cost >= 0).all():
            return REJECT_ALL
        weights = self._direction(cost)
        cuts = Cuts.on(row_scores(self.rows, weights))
        member = cuts.cheapest(cost)
        return cuts.constant(member) or LinearRule(weights, cuts.value(member))

    def _direction(self, cost: FloatArray) -> tuple[float, ...]:
        size = np.abs(cost) / np.abs(cost).max()
        with one_blas_thread():
            weights = self.back @ fit_logistic(self.white, -np.sign(cost), size / size.sum(), self.penalty)
        return tuple(float(f"{w:.9g}") for w in weights)


def fit_logistic(white: FloatArray, sign: FloatArray, weight: FloatArray, penalty: float) -> FloatArray:
    """argmin_g min_{g_0} sum_i weight_i ln(1 + exp(-sign_i (g.z_i + g_0))) + penalty/2 |g|^2, from zero."""
    from scipy.optimize import minimize  # heavy: loaded only by those who fit

    def loss_and_gradient(g: FloatArray) -> tuple[float, FloatArray]:
        margin = sign * (white @ g[1:] + g[0])
        small = np.exp(-np.abs(margin))
        loss = weight @ (np.log1p(small) + np.maximum(-margin, 0.0)) + 0.5 * penalty * (g[1:] @ g[1:])
        pull = weight * sign * np.where(margin > 0, small, 1.0) / (1.0 + small)
        return float(loss), np.concatenate([[-pull.sum()], penalty * g[1:] - pull @ white])

    start = np.zeros(white.shape[1] + 1)
    found = minimize(loss_and_gradient, start, jac=True, method="L-BFGS-B", options={"maxiter": 200, "gtol": 1e-6})
    return np.asarray(found.x[1:], dtype=np.float64)


def log_sauer(rows: int, dimension: int) -> float:
    """ln sum_{i=0}^{dimension} C(rows, i), at most rows ln 2."""
    if rows <= dimension:
        return rows * math.log(2.0)
    term = total = 1
    for i in range(dimension):
        term = term * (rows - i) // (i + 1)
        total += term
    return math.log(total)
