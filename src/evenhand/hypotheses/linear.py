"""Linear rules: a weighted logistic surrogate finds the direction, then the exact cheapest cut-off is found along it.

    b = argmin sum_i v_i ln(1 + exp(-s_i b.z_i)) + penalty/2 |b|^2,   s_i = -sign(c_i), v_i = |c_i| / sum|c|
    t = argmin sum_i c_i 1[w.x_i >= t],                               w = b / scale, z the standardised x

The fit starts from zero at every call, so an answer does not depend on what was asked before. Weights are kept to nine
digits: rounding noise (another order of rows, costs times 1e12) is then not seen by the rule.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand.contracts import Hypothesis, HypothesisClass, Json, RowOracle
from evenhand.errors import InvalidInput
from evenhand.hypotheses._rows import checked_costs, checked_rows, column_name, require_columns
from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL
from evenhand.hypotheses.thresholds import Cuts
from evenhand.words import BoolArray, FloatArray, GroupArray


@dataclass(frozen=True)
class LinearRule:
    """Accept iff w.x >= threshold."""

    weights: tuple[float, ...]
    threshold: float

    def accepts(self, features: FloatArray, group: GroupArray | None = None) -> BoolArray:
        """w.x >= threshold."""
        require_columns(features, len(self.weights), self.describe())
        return np.asarray(row_scores(features, self.weights) >= self.threshold)

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
        """Standardise once."""
        rows = checked_rows(features)
        centre, spread = rows.mean(axis=0), rows.std(axis=0)
        varies = spread > 1e-12 * np.abs(rows).max(axis=0)
        scale = np.where(varies, spread, 1.0)
        standard = np.where(varies, (rows - centre) / scale, 0.0)
        return _BoundLinear(rows, np.column_stack([standard, np.ones(len(rows))]), scale, self.penalty)


@dataclass(frozen=True, eq=False)
class _BoundLinear:
    """Rows as they are, rows standardised with a column of ones, and the scale between them."""

    rows: FloatArray
    design: FloatArray
    scale: FloatArray
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
        size = np.abs(cost)
        slopes = fit_logistic(self.design, -np.sign(cost), size / size.sum(), self.penalty)[:-1]
        slopes[np.abs(slopes) < 1e-9 * np.abs(slopes).max(initial=0.0)] = 0.0
        return tuple(float(f"{w:.9g}") for w in slopes / self.scale)


@dataclass(frozen=True, eq=False)
class _LogisticLoss:
    """loss(b) = sum_i weight_i ln(1 + exp(-sign_i b.z_i)) + 1/2 sum_j ridge_j b_j^2."""

    design: FloatArray
    sign: FloatArray
    weight: FloatArray
    ridge: FloatArray

    def __call__(self, slopes: FloatArray) -> float:
        misfit = self.weight @ np.logaddexp(0.0, -self.sign * (self.design @ slopes))
        return float(misfit + 0.5 * (self.ridge * slopes) @ slopes)

    def newton_step(self, slopes: FloatArray) -> tuple[FloatArray, float]:
        """Hessian^-1 gradient, and gradient . step, which is twice the fall that the step promises."""
        wrong = 0.5 * (1.0 - np.tanh(0.5 * self.sign * (self.design @ slopes)))  # P[the other label]
        gradient = self.ridge * slopes - (self.weight * self.sign * wrong) @ self.design
        curvature = (self.design.T * (self.weight * wrong * (1.0 - wrong))) @ self.design
        step = np.asarray(np.linalg.solve(curvature + np.diag(self.ridge), gradient), dtype=np.float64)
        return step, float(gradient @ step)

    def downhill(self, slopes: FloatArray, step: FloatArray) -> FloatArray:
        """slopes minus the longest of step, step/2, step/4, ... that does not raise the loss."""
        here = self(slopes)
        for halvings in range(30):
            there = slopes - step * 0.5**halvings
            if self(there) <= here:
                return there
        return slopes


def fit_logistic(design: FloatArray, sign: FloatArray, weight: FloatArray, penalty: float) -> FloatArray:
    """argmin of the logistic loss with ridge = penalty by Newton's method; the last entry, the intercept, is free."""
    loss = _LogisticLoss(design, sign, weight, np.append(np.full(design.shape[1] - 1, penalty), 1e-12))
    slopes = np.zeros(design.shape[1])
    for _ in range(50):
        step, fall = loss.newton_step(slopes)
        if fall <= 1e-14:
            break
        slopes = loss.downhill(slopes, step)
    return slopes


def log_sauer(rows: int, dimension: int) -> float:
    """ln sum_{i=0}^{dimension} C(rows, i), at most rows ln 2."""
    if rows <= dimension:
        return rows * math.log(2.0)
    term = total = 1
    for i in range(dimension):
        term = term * (rows - i) // (i + 1)
        total += term
    return math.log(total)
