"""One continuous score: normal given group and label, with base rates that differ between groups.

    score | a = j, y ~ Normal(mean_jy, spread_j)
    P[y = +1 | a = j] = base_rate_j,   P[a = j] = share_j

A mixture of rules is a step function of the score. Between two steps its acceptance is constant, so
loss and gaps are finite sums of normal probabilities: exact, once the steps are known.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy

from evenhand.contracts import Params, Policy
from evenhand.environments.population import Population, require_rows
from evenhand.errors import InvalidInput
from evenhand.hypotheses import ScoreThresholds
from evenhand.shares import require_share
from evenhand.words import FloatArray, GroupArray, LabelledSample, Prices

GRID = 4096
"""Cells of equal mass (per group and label) in which steps are looked for; two steps that cancel
within one cell are missed.
"""
CUTS = 512
"""Thresholds per group and label among which `optimum` chooses."""


@dataclass(frozen=True)
class ScoreGroup:
    """One group of `Scores`.

    Parameters
    ----------
    share : float
        The group's share of the people.
    base_rate : float
        The share of positives in the group.
    positive_mean, negative_mean : float
        The mean score of people with label +1, and with label -1.
    spread : float
        The standard deviation of both.

    Raises
    ------
    InvalidInput
        If a share is not strictly between 0 and 1, or a number is not finite.

    Examples
    --------
    >>> from evenhand.environments import ScoreGroup
    >>> group = ScoreGroup(share=0.6, base_rate=0.65, positive_mean=0.9, negative_mean=-0.6)
    >>> round(group.mass(1), 3), group.mean(-1)
    (0.39, -0.6)
    """

    share: float
    base_rate: float
    positive_mean: float
    negative_mean: float
    spread: float = 1.0

    def __post_init__(self) -> None:
        for name in ("share", "base_rate"):
            require_share(name, getattr(self, name), "(0, 1)")
        if not (
            np.isfinite([self.positive_mean, self.negative_mean, self.spread]).all()
            and self.spread > 0
        ):
            raise InvalidInput(
                f"means {self.positive_mean}, {self.negative_mean} and spread {self.spread} "
                "must be finite, spread above 0."
            )

    def mean(self, label: int) -> float:
        """Return the mean score of a label.

        Parameters
        ----------
        label : {-1, 1}
            The label.

        Returns
        -------
        float
            The mean.
        """
        return self.positive_mean if label == 1 else self.negative_mean

    def mass(self, label: int) -> float:
        """Return the share of the people who are in the group and have a label.

        Parameters
        ----------
        label : {-1, 1}
            The label.

        Returns
        -------
        float
            P[a = j, y = label].
        """
        return self.share * (self.base_rate if label == 1 else 1.0 - self.base_rate)

    def quantiles(self, label: int, cells: int) -> FloatArray:
        """Return the borders between cells of equal mass of one label's scores.

        Parameters
        ----------
        label : {-1, 1}
            The label.
        cells : int
            How many cells.

        Returns
        -------
        array of float
            cells - 1 borders.
        """
        return np.asarray(
            self.mean(label) + self.spread * scipy.special.ndtri(np.arange(1, cells) / cells)
        )

    def masses(self, edges: FloatArray, label: int) -> FloatArray:
        """Return the masses of the intervals between consecutive edges.

        Parameters
        ----------
        edges : array of float
            The edges, sorted; infinite ones are allowed.
        label : {-1, 1}
            The label.

        Returns
        -------
        array of float
            P[a = j, y = label, score in the interval], one per interval.
        """
        return np.asarray(
            self.mass(label) * np.diff(scipy.special.ndtr((edges - self.mean(label)) / self.spread))
        )


DEFAULT_GROUPS = {-1: ScoreGroup(0.6, 0.65, 0.9, -0.6), 1: ScoreGroup(0.4, 0.4, 0.5, -1.1)}
"""The second group has fewer positives and lower scores."""


class Scores(Population):
    """One continuous score, normal given group and label; the rules are thresholds on it.

    Parameters
    ----------
    groups : mapping of group to ScoreGroup, optional
        The distribution of each group; by default two groups of which the second has fewer
        positives and lower scores.
    name : str
        What the population is called in reports.

    Raises
    ------
    InvalidInput
        If there is one group only, or the shares do not sum to 1.

    Examples
    --------
    >>> from evenhand.environments import Scores
    >>> world = Scores()
    >>> round(world.optimum(limit=1.0)[0], 3), round(world.optimum(limit=0.05)[0], 3)
    (0.208, 0.306)
    """

    def __init__(
        self, groups: Mapping[Any, ScoreGroup] | None = None, *, name: str = "scores"
    ) -> None:
        super().__init__()
        self.name = name
        self.groups = dict(DEFAULT_GROUPS if groups is None else groups)
        total = sum(part.share for part in self.groups.values())
        if len(self.groups) < 2 or abs(total - 1.0) > 1e-9:
            raise InvalidInput(
                f"{len(self.groups)} groups have shares that sum to {total:.12g}; "
                "at least two must sum to 1."
            )
        self.hypotheses: ScoreThresholds = ScoreThresholds()
        self._names: GroupArray = np.asarray(list(self.groups))

    @property
    def params(self) -> Params:
        """The distribution of each group."""
        return {
            "environment": self.name,
            "groups": {str(group): asdict(part) for group, part in self.groups.items()},
        }

    def draw(self, rounds: int, generator: np.random.Generator) -> LabelledSample:
        """Draw independent people.

        Parameters
        ----------
        rounds : int
            How many people.
        generator : numpy.random.Generator
            The source of chance.

        Returns
        -------
        LabelledSample
            The people with their true labels.
        """
        parts = list(self.groups.values())
        share, base_rate, negative_mean, positive_mean, spread = np.array(
            [
                (part.share, part.base_rate, part.negative_mean, part.positive_mean, part.spread)
                for part in parts
            ]
        ).T
        member = generator.choice(len(parts), size=require_rows(rounds), p=share / share.sum())
        label = np.where(generator.random(rounds) < base_rate[member], 1, -1)
        mean = np.where(label == 1, positive_mean[member], negative_mean[member])
        score = mean + spread[member] * generator.standard_normal(rounds)
        return LabelledSample(score[:, np.newaxis], self._names[member], label)

    def _truth(self, policy: Policy) -> tuple[LabelledSample, FloatArray]:
        # fine quantiles, and numbers beyond which no double-precision probability is left
        far = [
            part.mean(label) + side * part.spread
            for part in self.groups.values()
            for label in (1, -1)
            for side in (-40.0, 40.0)
        ]
        grid = np.unique(np.concatenate([far, self._cut_points(GRID)]))

        def acceptance(member: int, score: FloatArray) -> FloatArray:
            return policy.acceptance(score[:, np.newaxis], self._names[np.full(len(score), member)])

        members = range(len(self.groups))
        table = self._table([step_points(partial(acceptance, k), grid) for k in members])
        return table, policy.acceptance(table.features, table.group)

    def _rows(self) -> LabelledSample:
        return self._table([self._cut_points(CUTS)] * len(self.groups))

    def _row_prices(self, prices: Prices, sample: LabelledSample) -> Prices:
        if not (isinstance(prices.false_accept, float) and isinstance(prices.false_reject, float)):
            raise InvalidInput(
                "prices per person need people; this population is continuous.",
                hint="give two numbers.",
            )
        return prices

    def _cut_points(self, cells: int) -> FloatArray:
        """The quantiles of every group and label, sorted."""
        pairs = ((part, label) for part in self.groups.values() for label in (1, -1))
        return np.unique(np.concatenate([part.quantiles(label, cells) for part, label in pairs]))

    def _table(self, cuts: list[FloatArray]) -> LabelledSample:
        """One row per group, label and interval between the group's cuts, weighted with its
        probability, placed at its left end.
        """
        score = []
        member = []
        label = []
        count = []
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
    left = grid[:-1]
    right = grid[1:]
    points: list[FloatArray] = []
    while True:
        value = function(left)
        changed = value != function(right)
        if not changed.any():
            return np.unique(np.concatenate([*points, np.zeros(0)]))
        left = left[changed]
        right = right[changed]
        value = value[changed]
        # bisect: the smallest number in each (left, right] at which the function is not `value`
        before = left
        after = right
        while True:
            middle = before + (after - before) / 2
            if ((middle <= before) | (middle >= after)).all():
                break
            same = function(middle) == value
            before = np.where(same, middle, before)
            after = np.where(same, after, middle)
        left = after
        points.append(left)
