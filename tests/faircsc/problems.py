"""Small FairCSC problems with an independent, stupid-exact solver: enumerate all pairs of
hypotheses.
"""

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from scipy.optimize import linprog

import evenhand as eh
from evenhand.contracts import HypothesisClass


@dataclass(frozen=True)
class Problem:
    """A cost-sensitive problem over contexts, with the table of hypotheses and a separate labelled
    sample.
    """

    table: np.ndarray
    contexts: np.ndarray
    cost: np.ndarray
    sample_contexts: np.ndarray
    sample_group: np.ndarray
    sample_label: np.ndarray

    @property
    def problem(self) -> eh.CostSensitiveProblem:
        half = np.abs(self.cost)
        return eh.CostSensitiveProblem(
            self.contexts[:, None].astype(float),
            None,
            cost_if_rejected=half,
            cost_if_accepted=half + self.cost,
        )

    @property
    def sample(self) -> eh.LabelledSample:
        return eh.LabelledSample(
            self.sample_contexts[:, None].astype(float), self.sample_group, self.sample_label
        )

    @property
    def hypotheses(self) -> eh.FiniteClass:
        return eh.FiniteClass.from_table(self.table)

    def points(self, rates: list[Any]) -> tuple[np.ndarray, np.ndarray]:
        """(costs, gaps) of every row of the table, summed in a loop; costs are normalised and
        relative to reject-all.
        """
        costs, gaps = [], []
        for accepts in self.table:
            costs.append(
                sum(c for c, x in zip(self.cost, self.contexts, strict=True) if accepts[x])
                / np.abs(self.cost).sum()
            )
            gaps.append([gap for rate in rates for gap in self._gaps(accepts, rate)])
        return np.array(costs), np.array(gaps).T

    def _gaps(self, accepts: np.ndarray, rate: Any) -> list[float]:
        values = []
        for group in sorted(set(self.sample_group.tolist())):
            counted = [
                bool(accepts[x])
                for x, a, y in zip(
                    self.sample_contexts, self.sample_group, self.sample_label, strict=True
                )
                if a == group and rate.in_denominator(np.array([y]))[0]
            ]
            accepted = sum(counted) / len(counted)
            values.append(1 - accepted if isinstance(rate, eh.FalseNegativeRate) else accepted)
        return [values[k] - values[j] for j, k in combinations(range(len(values)), 2)]


def random_problem(
    seed: int, hypotheses: int = 12, contexts: int = 15, groups: int = 2, rows: int = 60
) -> Problem:
    """A random table with both constants in it."""
    r = np.random.default_rng(seed)
    table = np.r_[
        [np.ones(contexts, bool), np.zeros(contexts, bool)],
        r.random((hypotheses - 2, contexts)) < r.random((hypotheses - 2, 1)),
    ]
    sample_group = np.r_[np.repeat(np.arange(groups), 2), r.integers(0, groups, rows)]
    sample_label = np.r_[np.tile([-1, 1], groups), r.choice([-1, 1], rows)]
    return Problem(
        table,
        r.integers(0, contexts, rows),
        r.normal(size=rows),
        r.integers(0, contexts, rows + 2 * groups),
        sample_group,
        sample_label,
    )


def best_pair(costs: np.ndarray, gaps: np.ndarray, limit: float) -> float:
    """min cost over all mixtures of at most two points with |gap| <= limit, by enumeration."""
    best = costs[np.abs(gaps) <= limit].min(initial=np.inf)
    for i, j in combinations(range(len(costs)), 2):
        for bound in (limit, -limit):
            if gaps[i] != gaps[j] and 0 <= (weight := (bound - gaps[j]) / (gaps[i] - gaps[j])) <= 1:
                best = min(best, weight * costs[i] + (1 - weight) * costs[j])
    return float(best)


def highs(costs: np.ndarray, gaps: np.ndarray, limit: float) -> float:
    """The same by linear programming over the full class, for any number of constraints."""
    gaps = np.atleast_2d(gaps)
    result = linprog(
        costs,
        A_ub=np.r_[gaps, -gaps],
        b_ub=np.full(2 * len(gaps), limit),
        A_eq=np.ones((1, len(costs))),
        b_eq=[1.0],
    )
    return float(result.fun)


class OracleOnly(HypothesisClass):
    """A class of which the solver sees nothing but its CSC oracle; `exact` may be denied, too."""

    def __init__(self, inner: HypothesisClass, exact: bool = True) -> None:
        self.inner, self.exact, self.uses_group = inner, exact, inner.uses_group

    @property
    def params(self) -> dict[str, Any]:
        return {"inner": dict(self.inner.params)}

    @property
    def log_size(self) -> float:
        return self.inner.log_size

    def log_growth(self, rows: int, columns: int) -> float:
        return self.inner.log_growth(rows, columns)

    def bind(self, features: np.ndarray, group: np.ndarray | None) -> Any:
        bound = self.inner.bind(features, group)

        class Best:
            def best(self, acceptance_cost: np.ndarray) -> Any:
                return bound.best(acceptance_cost)

        return Best()
