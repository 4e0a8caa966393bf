"""One continuous score: normal given group and label, with base rates that differ between groups.

    score | a = j, y ~ Normal(mean_jy, spread_j),  P[y = +1 | a = j] = base_rate_j,  P[a = j] = share_j

A mixture of rules is a step function of the score. Between two steps its acceptance is constant, so
loss and gaps are finite sums of normal probabilities: exact, once the steps are known.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy

from evenhand.contracts import Policy
from evenhand.environments.optimum import enumerated_optimum
from evenhand.environments.truth import Population, require_rows
from evenhand.errors import InvalidInput
from evenhand.fairness import Rate
from evenhand.hypotheses import ScoreThresholds
from evenhand.policies import Mixture
from evenhand.words import FloatArray, GroupArray, LabelledSample, Prices

GRID = 4096
"""Cells of equal mass (per group and label) in which steps are looked for; two steps that cancel
within one cell are missed.
"""
CUTS = 512
"""Thresholds per group and label among which `optimum` chooses."""


@dataclass(frozen=True)
class ScoreGroup:
    """One group: its share of the people, its share of positives, and the normal law of the score
    of each label.
    """

    share: float
    base_rate: float
    positive_mean: float
    negative_mean: float
    spread: float = 1.0

    def __post_init__(self) -> None:
        for name in ("share", "base_rate"):
            if not 0 < getattr(self, name) < 1:
                raise InvalidInput(
                    f"{name} is {getattr(self, name)}; it must lie strictly between 0 and 1."
                )
        if not (
            np.isfinite([self.positive_mean, self.negative_mean, self.spread]).all()
            and self.spread > 0
        ):
            raise InvalidInput(
                f"means {self.positive_mean}, {self.negative_mean} and spread {self.spread} must be finite, spread above 0."
            )

    def mean(self, label: int) -> float:
        """The mean score of a label."""
        return self.positive_mean if label == 1 else self.negative_mean

    def mass(self, label: int) -> float:
        """P[a = j, y = label]."""
        return self.share * (self.base_rate if label == 1 else 1.0 - self.base_rate)

    def quantiles(self, label: int, cells: int) -> FloatArray:
        """The borders between cells of equal mass of one label's scores."""
        return np.asarray(
            self.mean(label) + self.spread * scipy.special.ndtri(np.arange(1, cells) / cells)
        )

    def masses(self, edges: FloatArray, label: int) -> FloatArray:
        """P[a = j, y = label, score in each interval between consecutive edges]."""
        return np.asarray(
            self.mass(label) * np.diff(scipy.special.ndtr((edges - self.mean(label)) / self.spread))
        )


DEFAULT_GROUPS = {-1: ScoreGroup(0.6, 0.65, 0.9, -0.6), 1: ScoreGroup(0.4, 0.4, 0.5, -1.1)}
"""The second group has fewer positives and lower scores."""


class Scores(Population):
    """One continuous score, normal given group and label; the rules are thresholds on it."""

    def __init__(
        self, groups: Mapping[Any, ScoreGroup] | None = None, *, name: str = "scores"
    ) -> None:
        super().__init__()
        self.name, self.groups = name, dict(DEFAULT_GROUPS if groups is None else groups)
        total = sum(part.share for part in self.groups.values())
        if len(self.groups) < 2 or abs(total - 1.0) > 1e-9:
            raise InvalidInput(
                f"{len(self.groups)} groups have shares that sum to {total:.12g}; at least two must sum to 1."
            )
        self.hypotheses: ScoreThresholds = ScoreThresholds()
        self._names: GroupArray = np.asarray(list(self.groups))

    @property
    def params(self) -> Mapping[str, Any]:
        """The law of each group."""
        return {
            "environment": self.name,
            "groups": {str(group): asdict(part) for group, part in self.groups.items()},
        }

    def sample(self, rows: int, generator: np.random.Generator) -> LabelledSample:
        """`rows` independent people."""
        parts = list(self.groups.values())
        share = np.array([part.share for part in parts])
        member = generator.choice(len(parts), size=require_rows(rows), p=share / share.sum())
        label = np.where(
            generator.random(rows) < np.array([part.base_rate for part in parts])[member], 1, -1
        )
        mean = np.array([[part.negative_mean, part.positive_mean] for part in parts])[
            member, (label + 1) // 2
        ]
        score = mean + np.array([part.spread for part in parts])[
            member
        ] * generator.standard_normal(rows)
        return LabelledSample(score[:, np.newaxis], self._names[member], label)

    def _truth(self, policy: Policy) -> tuple[LabelledSample, FloatArray]:
        grid = self._search_grid()
        steps = [
            step_points(partial(self._accept, policy, k), grid) for k in range(len(self.groups))
        ]
        table = self._table(steps)
        return table, policy.acceptance(table.features, table.group)

    def _best(
        self, allowed_gap: float, rates: tuple[Rate, ...], prices: Prices
    ) -> tuple[float, Mixture]:
        table = self._table([self._cut_points(CUTS)] * len(self.groups))
        return enumerated_optimum(
            table,
            self.hypotheses,
            self._constraints(rates, table),
            self._row_prices(prices, table),
            allowed_gap,
        )

    def _row_prices(self, prices: Prices, sample: LabelledSample) -> Prices:
        if not (isinstance(prices.false_accept, float) and isinstance(prices.false_reject, float)):
            raise InvalidInput(
                "prices per person need people; this population is continuous.",
                hint="give two numbers.",
            )
        return prices

    def _accept(self, policy: Policy, member: int, score: FloatArray) -> FloatArray:
        return policy.acceptance(score[:, np.newaxis], self._names[np.full(len(score), member)])

    def _search_grid(self) -> FloatArray:
        """Fine quantiles, and ends beyond which no double-precision probability is left."""
        ends = [
            part.mean(y) + side * part.spread
            for part in self.groups.values()
            for y in (1, -1)
            for side in (-40.0, 40.0)
        ]
        return np.unique(np.concatenate([ends, self._cut_points(GRID)]))

    def _cut_points(self, cells: int) -> FloatArray:
        """The quantiles of every group and label, sorted."""
        return np.unique(
            np.concatenate(
                [part.quantiles(y, cells) for part in self.groups.values() for y in (1, -1)]
            )
        )

    def _table(self, cuts: list[FloatArray]) -> LabelledSample:
        """One row per group, label and interval between the group's cuts, weighted with its
        probability, placed at its left end.
        """
        score, member, label, count = [], [], [], []
        for k, (part, inner) in enumerate(zip(self.groups.values(), cuts, strict=True)):
            below = min((float(c[0]) for c in cuts if len(c)), default=0.0) - 1.0
            for y in (1, -1):
                score.append(np.concatenate([[below], inner]))
                member.append(np.full(len(inner) + 1, k))
                label.append(np.full(len(inner) + 1, y))
                count.append(part.masses(np.concatenate([[-np.inf], inner, [np.inf]]), y))
        rows = np.concatenate(score)[:, np.newaxis]
        return LabelledSample(
            rows, self._names[np.concatenate(member)], np.concatenate(label), np.concatenate(count)
        )


def step_points(function: Callable[[FloatArray], FloatArray], grid: FloatArray) -> FloatArray:
    """Where a step function changes, to the last bit: each cell of the grid whose ends differ is
    bisected until it is used up.

    >>> step_points(lambda x: (x >= 0.3) + 0.5 * (x >= 0.31), np.array([0.0, 1.0])).tolist()
    [0.3, 0.31]
    """
    left, right = grid[:-1], grid[1:]
    found: list[FloatArray] = []
    while True:
        value = function(left)
        changed = value != function(right)
        if not changed.any():
            return np.unique(np.concatenate([*found, np.zeros(0)]))
        left, right, value = left[changed], right[changed], value[changed]
        left = _first_change(function, left, right, value)
        found.append(left)


def _first_change(
    function: Callable[[FloatArray], FloatArray],
    left: FloatArray,
    right: FloatArray,
    value: FloatArray,
) -> FloatArray:
    """The smallest number in each (left, right] found by bisection at which the function is not
    `value`.
    """
    while True:
        middle = left + (right - left) / 2
        if ((middle <= left) | (middle >= right)).all():
            return right
        same = function(middle) == value
        left, right = np.where(same, middle, left), np.where(same, right, middle)
