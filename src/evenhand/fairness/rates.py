"""Group rates as signed weights on a labelled sample (section 1.1): what must be equal across groups.

Every rate is linear in acceptance. For group j, with n_j the people of the sample in the rate's denominator,

    rate_j(pi) = offset + sum_i w_ji P[pi(x_i) = +1]
    FPR_j: offset 0, w_ji = +1[a_i = j, y_i = -1] / n_j
    FNR_j: offset 1, w_ji = -1[a_i = j, y_i = +1] / n_j
    selection rate_j: offset 0, w_ji = +1[a_i = j] / n_j
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar

import numpy as np

from evenhand.errors import CannotEstimateRate, InvalidInput
from evenhand.words import BoolArray, FloatArray, IntArray, LabelledSample


@dataclass(frozen=True)
class Rate(ABC):
    """One rate per group; subclasses say who is in the denominator and with which sign acceptance enters."""

    name: ClassVar[str]
    symbol: ClassVar[str]
    denominator_name: ClassVar[str]
    sign: ClassVar[int] = 1
    offset: ClassVar[float] = 0.0

    @staticmethod
    @abstractmethod
    def in_denominator(label: IntArray) -> BoolArray:
        """Which labels count for this rate."""

    def group_weights(self, sample: LabelledSample) -> FloatArray:
        """(groups, rows): w_ji in the order of sample.groups; CannotEstimateRate if a denominator is empty."""
        require_two_groups(sample)
        counted = self.in_denominator(sample.label) * sample.weight
        weights = np.zeros((len(sample.groups), len(sample)))
        for j, group in enumerate(sample.groups):
            members = np.where(sample.group == group, counted, 0.0)
            total = members.sum()
            if total == 0:
                raise CannotEstimateRate(
                    f"group {group!r} has {sample.weight[sample.group == group].sum():g} people in the sample but 0 "
                    f"{self.denominator_name}, so its {self.name} cannot be estimated.",
                    hint=f"gather more people of group {group!r}, or constrain another rate.",
                )
            weights[j] = self.sign * members / total
        return weights


def require_two_groups(sample: LabelledSample) -> None:
    """A gap needs two groups."""
    if len(sample.groups) < 2:
        raise CannotEstimateRate(
            f"the sample has only the group {sample.groups[0]!r} ({sample.weight.sum():g} people); a gap needs two groups.",
            hint="check the group column, or add people of the other group.",
        )


@dataclass(frozen=True)
class FalsePositiveRate(Rate):
    """P(accepted | group, y = -1): the paper's constraint (gamma-EFP)."""

    name = "false positive rate"
    symbol = "FPR"
    denominator_name = "negatives (label -1)"

    @staticmethod
    def in_denominator(label: IntArray) -> BoolArray:
        """The negatives."""
        return np.asarray(label == -1)


@dataclass(frozen=True)
class FalseNegativeRate(Rate):
    """P(rejected | group, y = +1): gamma-EFN, "equal opportunity" for those who would succeed."""

    name = "false negative rate"
    symbol = "FNR"
    denominator_name = "positives (label +1)"
    sign = -1
    offset = 1.0

    @staticmethod
    def in_denominator(label: IntArray) -> BoolArray:
        """The positives."""
        return np.asarray(label == 1)


@dataclass(frozen=True)
class SelectionRate(Rate):
    """P(accepted | group): statistical parity."""

    name = "selection rate"
    symbol = "SR"
    denominator_name = "people"

    @staticmethod
    def in_denominator(label: IntArray) -> BoolArray:
        """Everybody."""
        return np.ones(len(label), dtype=bool)


@dataclass(frozen=True, eq=False)
class GapConstraints:
    """The gaps between all pairs of groups for all rates, on one sample.

    channels W: (rates * groups, rows); pairs B: (gaps, rates * groups) with entries -1, 0, +1;
    gaps(pi) = B W P[pi(x) = +1], each the rate of the later group minus that of the earlier one.
    """

    channels: FloatArray
    pairs: FloatArray
    names: tuple[str, ...]
    rates: tuple[Rate, ...]
    groups: tuple[Any, ...]

    @classmethod
    def on(cls, rates: "Rate | tuple[Rate, ...] | list[Rate]", sample: LabelledSample) -> "GapConstraints":
        """Measure `rates` on `sample`."""
        chosen = (rates,) if isinstance(rates, Rate) else tuple(rates)
        if not chosen:
            raise InvalidInput(
                "rates is empty; at least one rate must be constrained.", hint="pass [FalsePositiveRate()]."
            )
        groups = sample.groups
        channels = np.concatenate([rate.group_weights(sample) for rate in chosen])
        rows, names = [], []
        for r, rate in enumerate(chosen):
            for j, k in combinations(range(len(groups)), 2):
                row = np.zeros(len(channels))
                row[r * len(groups) + k], row[r * len(groups) + j] = 1.0, -1.0
                rows.append(row)
                names.append(f"{rate.symbol} {groups[k]} - {groups[j]}")
        return cls(channels, np.array(rows), tuple(names), chosen, groups)

    def gaps(self, acceptance: FloatArray) -> FloatArray:
        """The signed gap of each rate and pair of groups."""
        return np.asarray(self.pairs @ (self.channels @ acceptance))

    def group_rates(self, acceptance: FloatArray) -> dict[str, dict[Any, float]]:
        """{rate symbol: {group: rate}}."""
        values = (self.channels @ acceptance).reshape(len(self.rates), len(self.groups))
        return {
            rate.symbol: {group: rate.offset + float(v) for group, v in zip(self.groups, row, strict=True)}
            for rate, row in zip(self.rates, values, strict=True)
        }
