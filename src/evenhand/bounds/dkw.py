"""DKW from audit rounds: for thresholds on a score or a column, all cut-offs at once, without |H|."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand.bounds.fixed_count import AuditCounts, AuditIntervals, clipped_pairs
from evenhand.bounds.slack import inverse, require_columns, require_probability
from evenhand.bounds.staircase import largest_rise, staircase
from evenhand.words import FloatArray


@dataclass(frozen=True)
class AuditDkw:
    """f_k - f_j <= fhat_k - fhat_j + max over corners of e_k(s_c) + e_j(t_c), e(t) = sqrt(ln(2/t) /
    (2n)).

    **Theorem** (Dvoretzky, Kiefer, Wolfowitz; Massart's constant; any law). D_j = sup over cut-offs
    of |fhat_j - f_j| has P(D_j > e) <= 2 exp(-2 n_j e^2), so min(1, 2 exp(-2 n_j D_j^2)) is a
    p-value; given (a, y) the D_j of two groups are independent. By `staircase` some corner has D_k
    < e_k(s_c) and D_j < e_j(t_c) with probability 1 - alpha, and then both sides of the gap hold
    for every cut-off, either direction, > or >=, also with cut-offs that differ between groups. A
    union over columns, rates and *unordered* pairs: alpha = delta / (columns R G(G-1)/2). Rows of
    `AuditCounts` may be thresholds found in the data.
    """

    @property
    def name(self) -> str:
        """The bound's name."""
        return "joint DKW on audits"

    @property
    def params(self) -> Mapping[str, Any]:
        """It has none."""
        return {}

    def intervals(
        self, counts: AuditCounts, *, failure_probability: float, log_size: float, columns: int
    ) -> AuditIntervals:
        """The intervals; see the class. `log_size` is not used."""
        require_probability(failure_probability)
        require_columns(columns)
        tests = columns * counts.rates * counts.groups * (counts.groups - 1) / 2
        stairs = staircase(math.log(failure_probability / tests))
        ups = np.minimum(
            _rate(counts.most, counts.most_people) + _error(counts.people, stairs.log_first), 1.0
        )
        lows = np.maximum(
            _rate(counts.least, counts.least_people) - _error(counts.people, stairs.log_second), 0.0
        )
        return clipped_pairs(counts, largest_rise(ups, lows))


def _error(people: FloatArray, log_tails: FloatArray) -> FloatArray:
    """e(t) = sqrt(ln(2/t) / (2n)), infinity where n = 0: (corners, 1, rates, groups)."""
    return np.sqrt((math.log(2) - log_tails)[:, None, None, None] * inverse(people) / 2)


def _rate(accepted: FloatArray, people: FloatArray) -> FloatArray:
    people = np.broadcast_to(people, accepted.shape)
    return np.divide(accepted, people, out=np.zeros_like(accepted), where=people > 0)
