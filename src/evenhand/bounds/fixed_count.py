"""Certifying from audit rounds only, at preset counts: the contract of those bounds, what they eat
and what they answer.

A coin that is independent of the person decides "audit" (accept). Whatever the learner did before,
the next audited person is a fresh draw of D, so audit rows *indexed by audit count* are i.i.d.
labelled draws of D. A bound of this family looks at exactly the first N_1 < N_2 < ... audit rows,
the N_k preset, and spends delta_k on look k.

**Why preset.** Given all pairs (a, y) of the first N_k audit rows, the features are independent
draws from D given (a, y); each fixed-n theorem applies with n_rj the people of group j in the
denominator of rate r. "All audits up to now" would be a sample whose size may have been chosen by
its own features (an audit share that falls to zero when the interval misses the truth), and no
fixed-n theorem covers that. A share that is preset, or reacts to the pairs (a, y) alone, is
harmless.

**Unresolved labels.** A person whose label never came may or may not belong to a denominator. The
upper limit of a rate counts all accepted unresolved people in and all rejected ones out, the lower
limit the reverse. Each limit used here rises when an accepted person is added and falls when a
rejected one is, so the interval contains the one that the complete sample would have given.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from evenhand.bounds.slack import denominators
from evenhand.errors import InvalidInput, LengthMismatch
from evenhand.fairness.delta_ledger import inverse_square_share
from evenhand.words import BoolArray, FloatArray


@dataclass(frozen=True, eq=False)
class AuditCounts:
    """Acceptances of M hypotheses on the first N_k audit rows, as the pessimist counts them.

    `most` / `most_people` (M, rates, groups): accepted people and denominators with every accepted
    unresolved person in; `least` / `least_people`: with every rejected unresolved person in
    instead. Without unresolved labels they agree. `signs` (rates,): +1 where acceptance raises the
    rate (FPR, selection), -1 where it lowers it (FNR).
    """

    most: FloatArray
    most_people: FloatArray
    least: FloatArray
    least_people: FloatArray
    people: FloatArray
    signs: FloatArray

    @classmethod
    def of(
        cls,
        accepted: ArrayLike,
        people: ArrayLike,
        *,
        signs: ArrayLike | None = None,
        unresolved_accepted: ArrayLike | None = None,
        unresolved: ArrayLike | None = None,
    ) -> Self:
        """`accepted` (M, rates * groups), `people` (rates, groups); `unresolved*` in the same
        shapes, default none.

        The columns of `accepted` are those of `GapConstraints.channels`: rate by rate, group by
        group.
        """
        denominator = denominators(people)
        counted = _per_hypothesis(accepted, denominator)
        if (counted < 0).any() or (counted > denominator).any():
            raise InvalidInput(
                "accepted has entries outside 0 ... people: a count of accepted people in the denominator."
            )
        doubtful = np.zeros_like(denominator) if unresolved is None else denominators(unresolved)
        taken = (
            np.zeros_like(counted)
            if unresolved_accepted is None
            else _per_hypothesis(unresolved_accepted, denominator)
        )
        if (taken < 0).any() or (taken > doubtful).any():
            raise InvalidInput(
                "unresolved_accepted has entries outside 0 ... unresolved.",
                hint="pass both, or neither.",
            )
        return cls(
            most=counted + taken,
            most_people=denominator + taken,
            least=counted,
            least_people=denominator + doubtful - taken,
            people=denominator,
            signs=np.ones(len(denominator))
            if signs is None
            else np.asarray(signs, dtype=np.float64),
        )

    @property
    def groups(self) -> int:
        """How many groups."""
        return int(self.people.shape[1])

    @property
    def rates(self) -> int:
        """How many rates."""
        return int(self.people.shape[0])


def _per_hypothesis(counts: ArrayLike, denominator: FloatArray) -> FloatArray:
    """(M, rates * groups) or (M, rates, groups) -> (M, rates, groups)."""
    array = np.asarray(counts, dtype=np.float64)
    if array.ndim < 2 or math.prod(array.shape[1:]) != denominator.size:
        raise LengthMismatch(
            f"accepted has shape {array.shape}; it must be (hypotheses, {denominator.size}), one column per rate and group."
        )
    return array.reshape(len(array), *denominator.shape)


@dataclass(frozen=True, eq=False)
class AuditIntervals:
    """low, high (M, gaps) in the order of `GapConstraints`: rate by rate, pair by pair, later group
    minus earlier group.
    """

    low: FloatArray
    high: FloatArray

    def intersect(self, other: "AuditIntervals") -> "AuditIntervals":
        """What both allow; for looks whose failure probabilities were booked separately."""
        return AuditIntervals(np.maximum(self.low, other.low), np.minimum(self.high, other.high))

    @property
    def empty(self) -> BoolArray:
        """Where nothing is left: evidence that an assumption is broken. Suspend; never take a
        midpoint.
        """
        return np.asarray(self.low > self.high)


@runtime_checkable
class FixedCountBound(Protocol):
    """Intervals for the gaps of all hypotheses at once, from one preset look at the audit rows.

    Laws: with probability at least 1 - failure_probability every gap of every hypothesis *of the
    class* lies in its interval, whatever D; intervals lie in [-1, 1]; exchanging two groups mirrors
    them; the rate of a group with an empty denominator may be anything in [0, 1]. The constants'
    exact [0, 0] is the caller's to set.
    """

    @property
    def name(self) -> str:
        """The bound's name in reports and certificates."""
        ...

    @property
    def params(self) -> Mapping[str, Any]:
        """What distinguishes it from another bound, as plain values."""
        ...

    def intervals(
        self, counts: AuditCounts, *, failure_probability: float, log_size: float, columns: int
    ) -> AuditIntervals:
        """The intervals. `log_size` is ln|H| of the class fixed before the data, not of the rows in
        `counts`.

        (A list of cut-offs found in the audited features is not fixed before the data; DKW covers
        those.)
        """
        ...


@dataclass(frozen=True)
class PresetLooks:
    """N_k = ceil(first * growth^(k-1)) audit rows at look k, with delta_k = 6 delta / (pi^2 k^2);
    they sum to delta.

    >>> looks = PresetLooks(first=200, growth=1.5)
    >>> [looks.count(k) for k in (1, 2, 3)], looks.reached(299), looks.reached(300)
    ([200, 300, 450], 1, 2)
    """

    first: int = 200
    growth: float = 1.5

    def __post_init__(self) -> None:
        if self.first < 1 or not 1 < self.growth < math.inf:
            raise InvalidInput(
                f"looks start at {self.first} and grow by {self.growth}; they need >= 1 and a factor above 1."
            )

    def count(self, look: int) -> int:
        """N_k, for look k = 1, 2, ..."""
        return max(math.ceil(self.first * self.growth ** (look - 1)), self.first + look - 1)

    def share(self, look: int, failure_probability: float) -> float:
        """delta_k."""
        return inverse_square_share(failure_probability, look)

    def reached(self, audits: int) -> int:
        """The last look that so many closed audit rows allow; 0 if none."""
        look = 0
        while self.count(look + 1) <= audits:
            look += 1
        return look


def clipped_pairs(counts: AuditCounts, rises: FloatArray) -> AuditIntervals:
    """Intervals from one-sided limits of acceptance differences, clipped to [-1, 1] and turned by
    the rates' signs.

    rises (M, rates, groups, groups): rises[..., j, k] is an upper limit of f_k - f_j. So f_k - f_j
    lies in [-rises[..., k, j], rises[..., j, k]]; a rate with sign -1 has the gap f_j - f_k.
    """
    high = [np.minimum(rises[:, r, j, k], 1.0) for r, j, k in _turned(counts)]
    low = [np.maximum(-rises[:, r, k, j], -1.0) for r, j, k in _turned(counts)]
    return AuditIntervals(np.stack(low, axis=1), np.stack(high, axis=1))


def _turned(counts: AuditCounts) -> Iterator[tuple[int, int, int]]:
    """(rate, from, to) of each gap."""
    for r, sign in enumerate(counts.signs):
        for j, k in combinations(range(counts.groups), 2):
            yield (r, j, k) if sign > 0 else (r, k, j)
