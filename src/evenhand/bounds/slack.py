"""Uniform slack: one number that separates the empirical from the true gap of every hypothesis at
once (lemma B.2 of the paper).

The two-phase learner accepts all applicants for a while and then trusts the sample. What it may
trust is `slack`: with probability at least 1 - delta, for all h in H, all rates and all pairs of
groups together,

    |gap_hat(h) - gap(h)| <= beta.

Gaps are linear in the policy, so the same beta holds for every mixture of hypotheses.

**What is conditioned on.** n_rj is the number of people of group j in the denominator of rate r
(for false positive rates the negatives of the group). Given all pairs (a, y) of the sample, the
features are independent draws from D given (a, y), so for a fixed h each n_rj fhat_rj(h) is
binomial (n_rj, f_rj(h)), independent between groups. **Stopping on counts.** A rule that ends the
exploration by looking at the pairs (a, y) alone is a function of what is conditioned on: given the
whole sequence of pairs its stopping time is a constant, and the binomial distributions above are
untouched. A rule that looks at features is not covered.
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from evenhand.errors import InvalidInput
from evenhand.shares import require_delta
from evenhand.shown import Brief
from evenhand.words import FloatArray, IntArray


@runtime_checkable
class SlackBound(Protocol):
    """A bound on |gap_hat - gap| that is uniform over hypotheses, rates and pairs of groups.

    Subclass it, or write the same members, to bring your own.

    Notes
    -----
    Requirements: `slack` falls when every count grows; it is infinity where a count is 0; it
    depends on counts, never on features.

    Examples
    --------
    >>> isinstance(JointHoeffding(), SlackBound)
    True
    """

    @property
    def name(self) -> str:
        """The name of the bound in reports and certificates."""
        ...

    @property
    def params(self) -> Mapping[str, object]:
        """What distinguishes the bound from another one, as plain values."""
        return {}

    def slack(
        self,
        counts: ArrayLike,
        *,
        log_size: float,
        columns: int,
        delta: float,
        rates: int = 1,
    ) -> float:
        """The slack beta for the people in each denominator.

        Parameters
        ----------
        counts : array_like, shape (rates, groups)
            The people of each group who are in the denominator of each rate.
        log_size : float
            ln|H|; infinity for an infinite class.
        columns : int
            How many feature columns a threshold may look at.
        delta : float
            delta: the probability with which the bound may fail.
        rates : int, default 1
            How many rates share delta, if they are more than the rows of `counts`.

        Returns
        -------
        float
            beta; infinity where a count is 0.
        """
        ...


class ClassSize(NamedTuple):
    """How large a class is: ln|H|, and the columns that a threshold may look at."""

    log_size: float
    columns: int


class _CheckedSlack(SlackBound):
    """A bound that checks what it is given; `_beta` is its formula."""

    def slack(
        self,
        counts: ArrayLike,
        *,
        delta: float,
        log_size: float,
        columns: int,
        rates: int = 1,
    ) -> float:
        """The slack beta. See `SlackBound.slack`."""
        people = denominators(counts)
        require_delta(delta)
        size = ClassSize(log_size, columns)
        return self._beta(people, delta, size, max(rates, len(people)))

    @abstractmethod
    def _beta(self, people: FloatArray, delta: float, size: ClassSize, rates: int) -> float:
        """beta for the people (rates, groups) in each denominator."""


@dataclass(frozen=True)
class JointHoeffding(_CheckedSlack):
    """Hoeffding's inequality for the difference of two groups: the default for finite classes.

    Notes
    -----
    beta = max over pairs of sqrt((1/n_j + 1/n_k) ln(2 |H| pairs R / delta) / 2).

    **Theorem** (Hoeffding 1963, theorem 2). Given (a, y), gap_hat(h) - gap(h) is a sum of n_j + n_k
    independent centred terms, n_j of range 1/n_j and n_k of range 1/n_k, so P(|gap_hat - gap| >= b)
    <= 2 exp(-2 b^2 / (1/n_j + 1/n_k)). A union over |H|, pairs and rates gives delta. One joint
    bound instead of one per group saves up to a factor sqrt 2.

    Examples
    --------
    >>> beta = JointHoeffding().slack(
    ...     [1000, 2000], log_size=math.log(204), columns=1, delta=0.05
    ... )
    >>> round(beta, 4)
    0.0822
    """

    name = "joint Hoeffding"

    def _beta(self, people: FloatArray, delta: float, size: ClassSize, rates: int) -> float:
        require_finite_class(size.log_size, self.name)
        groups = people.shape[1]
        pairs = groups * (groups - 1) / 2
        log_term = math.log(2 * pairs * rates / delta) + size.log_size
        return _worst_pair(
            inverse(people), lambda first, second: math.sqrt((first + second) * log_term / 2)
        )


@dataclass(frozen=True)
class Dkw(_CheckedSlack):
    """The Dvoretzky-Kiefer-Wolfowitz inequality: for thresholds on a column only.

    Notes
    -----
    beta = max over pairs of e_j + e_k, e_j = sqrt(ln(2 columns G R / delta) / (2 n_j)).

    **Theorem** (Dvoretzky, Kiefer, Wolfowitz 1956 with the constant of Massart 1990). For n
    independent draws of a real variable with any distribution, P(sup_t |F_hat(t) - F(t)| > e) <= 2
    exp(-2 n e^2). "Accept if x_c >= t", with > instead of >=, and the reverse directions accept
    with probability 1 - F(t-), 1 - F(t), F(t), F(t-): the same supremum bounds them all, for every
    t at once. A union over columns, groups and rates gives delta, and no |H|. Because each group
    has its own bound, thresholds that differ between groups are covered too. A hypothesis that is
    not a threshold on one column is not.

    Examples
    --------
    >>> beta = Dkw().slack([1000, 2000], log_size=math.inf, columns=1, delta=0.05)
    >>> round(beta, 4)
    0.0799
    """

    name = "DKW"

    def _beta(self, people: FloatArray, delta: float, size: ClassSize, rates: int) -> float:
        require_columns(size.columns)
        tests = size.columns * people.shape[1] * rates
        log_term = math.log(2 * tests / delta)
        errors = np.sqrt(inverse(people) * log_term / 2)
        return _worst_pair(errors, lambda first, second: first + second)


@dataclass(frozen=True)
class ClopperPearson(_CheckedSlack):
    """Exact binomial limits of each group: better where the groups are of very unequal size.

    Notes
    -----
    beta = max over pairs of e_j + e_k, e_j = max over k of U(k) - k/n_j, U the exact upper
    binomial limit.

    **Theorem** (Clopper, Pearson 1934). For k ~ Binomial(n, f), U(k) the f with P(Binomial(n, f) <=
    k) = alpha/2, and L(k) = 1 - U(n-k), P(L(k) <= f <= U(k)) >= 1 - alpha. With alpha = delta /
    (|H| G R) a union gives all hypotheses, groups and rates at once. The widest case over k makes
    the slack uniform; by the symmetry L(k) = 1 - U(n-k) the upper side decides. Exact per group,
    yet the sum of two exact intervals is wider than one joint interval unless the counts of the
    groups are very unequal.

    Examples
    --------
    >>> beta = ClopperPearson().slack(
    ...     [1000, 2000], log_size=math.log(204), columns=1, delta=0.05
    ... )
    >>> round(beta, 4)
    0.1044
    """

    name = "Clopper-Pearson"

    def _beta(self, people: FloatArray, delta: float, size: ClassSize, rates: int) -> float:
        require_finite_class(size.log_size, self.name)
        tests = people.shape[1] * rates
        tail = delta / (2 * tests) * math.exp(-size.log_size)
        errors = np.array([[_widest_error(int(n), tail) for n in row] for row in people])
        return _worst_pair(errors, lambda first, second: first + second)


@lru_cache(maxsize=4096)
def _widest_error(n: int, tail: float) -> float:
    """max over k of U(k) - k/n with P(Binomial(n, U(k)) <= k) = tail, by branch and bound.

    U rises with k, so on a cell [k1, k2] the value is at most U(k2) - k1/n: cells that cannot hold
    the maximum are dropped, the others are cut in four until every cell is a single k. The result
    is the exact maximum.
    """
    from scipy.special import betaincinv

    if n == 0:
        return math.inf
    first, last = _cut(np.array([0]), np.array([n - 1]), 64)
    while True:
        limit = np.asarray(1.0 - betaincinv(n - last, last + 1.0, tail), dtype=np.float64)
        keep = limit - first / n >= (limit - last / n).max()
        first = first[keep]
        last = last[keep]
        limit = limit[keep]
        if (first == last).all():
            return float((limit - last / n).max())
        first, last = _cut(first, last, 4)


def _cut(first: IntArray, last: IntArray, parts: int) -> tuple[IntArray, IntArray]:
    """Each range of integers [first, last] as up to `parts` ranges that do not overlap."""
    steps = np.arange(parts)
    size = (last - first + 1)[:, None]
    starts = first[:, None] + steps * size // parts
    stops = first[:, None] + (steps + 1) * size // parts - 1
    real = starts <= stops
    return starts[real], stops[real]


@dataclass(frozen=True, repr=False)
class Shortfall(Brief):
    """How far a sample is from a target.

    Infinity where no multiple helps: a count is 0 (its share is unknown), or the target is not
    positive.

    Parameters
    ----------
    multiple : float
        The sample has to be so many times as large.
    counts : array, shape (rates, groups)
        The people in each denominator of that larger sample.
    more : array, shape (rates, groups)
        How many of them are missing.

    Examples
    --------
    >>> people_needed(lambda counts: 1 / counts.min(), [[5, 10]], 0.1).counts
    array([[10., 19.]])
    """

    multiple: float
    counts: FloatArray
    more: FloatArray


def people_needed(
    slack: Callable[[FloatArray], float], counts: ArrayLike, target: float
) -> Shortfall:
    """The smallest common multiple of the counts at which the slack is at most `target`.

    Parameters
    ----------
    slack : callable
        The slack of counts of shape (rates, groups); it falls when they grow.
    counts : array_like, shape (rates, groups)
        The people in each denominator now.
    target : float
        The slack that is to be reached.

    Returns
    -------
    Shortfall
        The multiple, found by bisection to a relative 1e-6; infinity if 1e12 is not enough.

    Examples
    --------
    >>> def slack(counts):
    ...     settings = dict(log_size=3.0, columns=1, delta=0.05)
    ...     return JointHoeffding().slack(counts, **settings)
    >>> short = people_needed(slack, [[100, 50]], 0.1)
    >>> short.counts, short.more
    (array([[1003.,  502.]]), array([[903., 452.]]))
    """
    people = denominators(counts)

    def enough(multiple: float) -> bool:
        return slack(np.ceil(people * multiple)) <= target

    if not (target > 0 and people.min() > 0):
        upper = math.inf
    elif enough(1.0):
        upper = 1.0
    else:
        upper = 2.0
        while upper <= 1e12 and not enough(upper):
            upper *= 2.0
        lower = upper / 2
        upper = upper if upper <= 1e12 else math.inf
        while upper / lower > 1 + 1e-6 and math.isfinite(upper):
            middle = math.sqrt(lower * upper)
            lower, upper = (lower, middle) if enough(middle) else (middle, upper)
    total = np.ceil(people * upper) if math.isfinite(upper) else np.full_like(people, math.inf)
    return Shortfall(upper, total, total - people)


def denominators(counts: ArrayLike) -> FloatArray:
    """(rates, groups) counts of people, at least two groups, none negative; one row stands for one
    rate.
    """
    people = np.atleast_2d(np.asarray(counts, dtype=np.float64))
    if people.ndim != 2 or people.shape[1] < 2:
        raise InvalidInput(
            f"counts has shape {people.shape}; it must be (rates, groups) with at least two groups."
        )
    if not np.isfinite(people).all() or (people < 0).any():
        raise InvalidInput(
            f"counts contains {people.min()}; counts of people are finite and at least 0."
        )
    return people


def require_finite_class(log_size: float, name: str) -> None:
    """Refuse an infinite class: a union over hypotheses needs finitely many."""
    if not math.isfinite(log_size) or log_size < 0:
        raise InvalidInput(
            f"{name} pays for a union over all hypotheses, but the class has ln|H| = {log_size}.",
            hint="use Dkw() for thresholds and stumps, or a finite class (FiniteClass).",
        )


def require_columns(columns: int) -> None:
    """Refuse less than one column: DKW pays for each column that a threshold may look at."""
    if columns < 1:
        raise InvalidInput(
            f"columns is {columns}; DKW needs the number of feature columns, at least 1."
        )


def inverse(people: FloatArray) -> FloatArray:
    """1/n, infinity for n = 0."""
    return np.divide(1.0, people, out=np.full_like(people, math.inf), where=people > 0)


def _worst_pair(values: FloatArray, joined: Callable[[float, float], float]) -> float:
    """max over rates and pairs of groups of joined(value_j, value_k)."""
    return max(
        float(joined(row[j], row[k])) for row in values for j, k in combinations(range(len(row)), 2)
    )
