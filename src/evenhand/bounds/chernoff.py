"""Joint binomial intervals from audit rounds: as sharp near rates of 0 and 1 as the binomial
allows.

Hoeffding pays for the variance 1/4 whatever the rate; a rate of .02 has .02. Both bounds here
invert the law of the two groups' counts instead, together.

**Theorem.** Fix h, a rate and an ordered pair of groups (j, k); given (a, y), K_k ~ Binomial(n_k,
f_k) and K_j ~ Binomial(n_j, f_j) are independent. U_1 = P_{f_k}(K <= K_k) and U_2 = P_{f_j}(K >=
K_j) are independent p-values: P(U <= t) <= t. By `staircase`, with probability at least 1 - alpha
there is a corner (s_c, t_c) at which both U_1 > s_c and U_2 > t_c, that is f_k < up(K_k; s_c) and
f_j > low(K_j; t_c), up and low being the one-sided exact (Clopper-Pearson) limits. So

    f_k - f_j <= max over c of up(K_k; s_c) - low(K_j; t_c).

A union over R G(G-1) |H| one-sided statements gives delta.

**The Chernoff version.** P_f(K <= k) <= exp(-n KL(k/n, f)) for k/n <= f, so exp(-n KL) is a larger
p-value and gives the wider limit up(k; s) = max{f >= k/n : n KL(k/n, f) <= ln 1/s}. It needs
logarithms only.

**What does not work.** Adding the two exponents and keeping the threshold, n_k KL_k + n_j KL_j <=
ln(1/alpha), has no proof: each term is dominated by an Exp(1) variable, their sum by Gamma(2),
whose tail is (1 + L) e^-L. Testing gap_hat alone against all (f_k, f_j) of a given gap is provable
but worthless: the unknown level of the rates makes 1/4 the variance again.

**Unresolved labels.** up(k+1; n+1) >= up(k; n) >= up(k; n+1), and the mirror image for low (couple
the two binomials; for KL differentiate n KL in k and in n-k: ln(k/(n f)) <= 0 <=
ln((n-k)/(n(1-f)))). So counting as `AuditCounts` does gives the widest completion.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand.bounds.fixed_count import AuditCounts, AuditIntervals, clipped_pairs
from evenhand.bounds.slack import require_finite_class, require_probability
from evenhand.bounds.staircase import largest_rise, one_sided_share, staircase
from evenhand.words import FloatArray

UpperLimit = Callable[[FloatArray, FloatArray, FloatArray], FloatArray]
"""(accepted, people, ln tails) -> (tails, *accepted's shape): the one-sided upper limits of the
rate.
"""


@dataclass(frozen=True)
class AuditBinomial:
    """f_k - f_j <= max over corners of up(K_k; s_c) - low(K_j; t_c), with exact binomial limits:
    the sharpest of the audit bounds.
    """

    @property
    def name(self) -> str:
        """The bound's name."""
        return "joint exact binomial on audits"

    @property
    def params(self) -> Mapping[str, Any]:
        """It has none."""
        return {}

    def intervals(
        self, counts: AuditCounts, *, failure_probability: float, log_size: float, columns: int
    ) -> AuditIntervals:
        """The intervals; see the module."""
        require_finite_class(log_size, self.name)
        return _joint(counts, exact_upper, failure_probability, log_size)


@dataclass(frozen=True)
class AuditKl:
    """The same with Chernoff's bound in place of the exact tail: a little wider, logarithms only."""

    @property
    def name(self) -> str:
        """The bound's name."""
        return "joint KL on audits"

    @property
    def params(self) -> Mapping[str, Any]:
        """It has none."""
        return {}

    def intervals(
        self, counts: AuditCounts, *, failure_probability: float, log_size: float, columns: int
    ) -> AuditIntervals:
        """The intervals; see the module."""
        require_finite_class(log_size, self.name)
        return _joint(counts, kl_upper, failure_probability, log_size)


def _joint(
    counts: AuditCounts, upper: UpperLimit, failure_probability: float, log_size: float
) -> AuditIntervals:
    require_probability(failure_probability)
    stairs = staircase(one_sided_share(counts, log_size, failure_probability))
    ups = _limits(upper, counts.most, counts.most_people, stairs.log_first)
    rejected = counts.least_people - counts.least
    lows = 1.0 - _limits(
        upper, rejected, counts.least_people, stairs.log_second
    )  # low(k; t) = 1 - up(n - k; t)
    return clipped_pairs(counts, largest_rise(ups, lows))


def _limits(
    upper: UpperLimit, accepted: FloatArray, people: FloatArray, log_tails: FloatArray
) -> FloatArray:
    """(corners, *shape of accepted); each distinct (accepted, people) is solved once."""
    people = np.broadcast_to(people, accepted.shape)
    coded, where = np.unique(accepted * (people.max() + 1.0) + people, return_inverse=True)
    distinct_people = np.mod(coded, people.max() + 1.0)
    distinct_accepted = (coded - distinct_people) / (people.max() + 1.0)
    table = upper(distinct_accepted, distinct_people, log_tails)
    return np.asarray(table[:, where.reshape(accepted.shape)])


def exact_upper(accepted: FloatArray, people: FloatArray, log_tails: FloatArray) -> FloatArray:
    """The f with P(Binomial(n, f) <= k) = tail; 1 where k = n."""
    from scipy.special import betaincinv

    below = accepted < people
    limit = np.ones((len(log_tails), *accepted.shape))
    tails = np.exp(log_tails)[:, None]
    limit[:, below] = 1.0 - betaincinv((people - accepted)[below], accepted[below] + 1.0, tails)
    return limit


def kl_upper(accepted: FloatArray, people: FloatArray, log_tails: FloatArray) -> FloatArray:
    """max{f >= k/n : n KL(k/n, f) <= -ln tail}, by bisection, rounded outwards; 1 where k = n or
    the tail is 0.
    """
    start = np.divide(accepted, people, out=np.ones_like(accepted), where=people > 0)
    high = np.ones((len(log_tails), *accepted.shape))
    low, allowed = np.broadcast_to(start, high.shape), -log_tails.reshape(-1, *[1] * accepted.ndim)
    for _ in range(45):
        middle = (low + high) / 2
        inside = people_kl(accepted, people, middle) <= allowed
        low, high = np.where(inside, middle, low), np.where(inside, high, middle)
    return high


def people_kl(accepted: FloatArray, people: FloatArray, rate: FloatArray) -> FloatArray:
    """n KL(k/n, f) = k ln(k/(n f)) + (n-k) ln((n-k)/(n (1-f)))."""
    from scipy.special import rel_entr

    total = rel_entr(accepted, people * rate) + rel_entr(people - accepted, people * (1.0 - rate))
    return np.asarray(total, dtype=np.float64)
