"""Joint Hoeffding from audit rounds: the simplest interval, of the same width for every hypothesis."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand.bounds.fixed_count import AuditCounts, AuditIntervals, clipped_pairs
from evenhand.bounds.slack import inverse, require_finite_class, require_probability
from evenhand.bounds.staircase import one_sided_share
from evenhand.words import FloatArray


@dataclass(frozen=True)
class AuditHoeffding:
    """|gap_hat(h) - gap(h)| <= sqrt((1/n_j + 1/n_k) ln(R G(G-1) |H| / delta) / 2) for all h, rates
    and pairs at once.

    **Theorem** (Hoeffding 1963). Given the pairs (a, y) of the first N_k audit rows, gap_hat - gap
    is a sum of n_j + n_k independent centred terms of ranges 1/n_j and 1/n_k, so each side is
    exceeded with probability at most exp(-2 b^2 / (1/n_j + 1/n_k)). There are R G(G-1) |H|
    one-sided statements; with two groups and one rate the logarithm is ln(2|H|/delta). With
    unresolved labels the empirical rates are the pessimist's, and n counts the resolved people only
    (the complete sample has at least as many, hence a smaller width).
    """

    @property
    def name(self) -> str:
        """The bound's name."""
        return "joint Hoeffding on audits"

    @property
    def params(self) -> Mapping[str, Any]:
        """It has none."""
        return {}

    def intervals(
        self, counts: AuditCounts, *, failure_probability: float, log_size: float, columns: int
    ) -> AuditIntervals:
        """The intervals; see the class."""
        require_probability(failure_probability)
        require_finite_class(log_size, self.name)
        log_term = -one_sided_share(counts, log_size, failure_probability)
        rarity = inverse(counts.people)
        width = np.sqrt((rarity[:, None, :] + rarity[:, :, None]) * log_term / 2)
        rise = (
            _rate(counts.most, counts.most_people, 1.0)[..., None, :]
            - _rate(counts.least, counts.least_people, 0.0)[..., None]
        )
        return clipped_pairs(counts, rise + width)


def _rate(accepted: FloatArray, people: FloatArray, unknown: float) -> FloatArray:
    """accepted / people, `unknown` where there is nobody."""
    people = np.broadcast_to(people, accepted.shape)
    return np.divide(accepted, people, out=np.full_like(accepted, unknown), where=people > 0)


def audit_hoeffding_width(
    people: tuple[float, float], log_size: float, failure_probability: float
) -> float:
    """The half-width for two groups and one rate, for planning.

    >>> round(audit_hoeffding_width((1000, 2000), math.log(204), 0.05), 4)
    0.0822
    """
    return math.sqrt(
        sum(1 / n for n in people) * (math.log(2 / failure_probability) + log_size) / 2
    )
