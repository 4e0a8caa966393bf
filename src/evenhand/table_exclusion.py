"""Which gaps no mixture of an exact class reaches at the incumbent's cost: a proof for all of them.

The class lies in finitely many brackets (`hypotheses.brackets`), whose cuts come from the first
part of a table. On the second part each bracket h has a lower end c_h of its cost beyond the
incumbent's (`bounds.bounded_mean`), and an interval [l_hk, u_hk] of every gap
(`bounds.joint_binomial`), all of them at once. A mixture w of rules that costs at most y more than
the incumbent then has sum_h w_h c_h <= y, and a largest gap of at least

    g(y) = min over w of max over k of max(sum_h w_h l_hk, -sum_h w_h u_hk),   sum_h w_h c_h <= y,

a linear program. Any multipliers p_k, q_k >= 0 with sum 1 and r >= 0 prove

    g(y) >= min over h of sum_k (p_k l_hk - q_k u_hk) + r (c_h - y),

so the reported bound is this minimum at the solver's multipliers, and does not rest on the solver.
Constants have no gap, which needs no interval.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from evenhand.bounds.bounded_mean import good_stakes, least_means
from evenhand.bounds.joint_binomial import gap_ends
from evenhand.contracts import Hypothesis, Rate
from evenhand.hypotheses import ACCEPT_ALL, REJECT_ALL, GroupClassifier
from evenhand.hypotheses.brackets import Brackets
from evenhand.shown import Brief
from evenhand.table_parts import Gap, TablePart, gap_names
from evenhand.words import BoolArray, FloatArray

CURVE = 16
"""Extra costs at which the excluded region is computed."""

CONSTANTS = (ACCEPT_ALL, REJECT_ALL)


@dataclass(frozen=True, eq=False)
class Incumbent:
    """What is used today, on both parts of a table."""

    first: TablePart
    second: TablePart
    first_probability: FloatArray
    probability: FloatArray
    """The probability of accepting each person of the first part, and of the second."""
    drawn: BoolArray
    """The decisions about the second part, drawn where the incumbent tosses coins."""
    width: float
    """No two costs of one person differ by more than half of this."""


@dataclass(frozen=True, eq=False, repr=False)
class Exclusion(Brief):
    """What is proved of all mixtures of an exact class.

    Parameters
    ----------
    extra_cost, least_gap : array, shape (points,)
        Every mixture that costs at most so much more than the incumbent has a largest gap of at
        least so much; 1 where no mixture costs so little.
    least_cost : float
        No mixture costs less, beside the incumbent.
    at_extra_cost : float
        The least gap at the extra cost that was asked for.
    multipliers : dict
        What proves it: the weight of each gap's ends ("FPR b minus a >=", "FPR b minus a <="),
        and of the cost.
    incumbent_at_most : float
        The incumbent's largest gap is at most this.
    brackets : int
        Into how many brackets the class was cut.
    """

    extra_cost: FloatArray
    least_gap: FloatArray
    least_cost: float
    at_extra_cost: float
    multipliers: dict[str, float]
    incumbent_at_most: float
    brackets: int

    ALSO: ClassVar = ("possible_improvement",)

    @property
    def possible_improvement(self) -> float:
        """No mixture that costs no more than is allowed has a gap that is smaller by more."""
        return max(0.0, self.incumbent_at_most - self.at_extra_cost)


def exclude(
    brackets: Brackets,
    incumbent: Incumbent,
    rates: Sequence[Rate],
    gaps: Sequence[Gap],
    extra_cost: float,
    delta: float,
) -> Exclusion:
    """What the second part proves of all mixtures of a class, all of it at once."""
    part = incumbent.second
    groups = part.people.groups
    more: list[Hypothesis] = []
    if part.decides:
        more = [GroupClassifier(value) for value in groups]
    members = brackets.size + len(more) + len(CONSTANTS)
    # One lower end of a cost and two ends of each gap for every bracket, and the incumbent's gaps:
    # the same share for each.
    ends = (2 * len(gaps) + 1) * members
    cost_alpha = delta / ends
    gap_delta = delta * (1 - members / ends)

    cost_low = _least_costs(brackets, incumbent, more, cost_alpha)
    least, most = _denominator_counts(brackets, incumbent, rates, more)
    people = np.array(
        [
            [
                np.sum(
                    rate.in_denominator(incumbent.second.label) & (incumbent.second.group == group)
                )
                for group in groups
            ]
            for rate in rates
        ],
        dtype=np.float64,
    )
    signs = np.array([rate.sign for rate in rates], dtype=np.float64)
    # The union: every bracket and group rule, and the incumbent in the last place.
    lower, upper = gap_ends(least, most, people, signs, gap_delta)
    low = np.vstack([lower[:-1], np.zeros((2, len(gaps)))])
    high = np.vstack([upper[:-1], np.zeros((2, len(gaps)))])
    at_most = float(np.maximum(np.abs(lower[-1]), np.abs(upper[-1])).max())

    at, weights = least_gap(cost_low, low, high, extra_cost)
    names = gap_names(gaps)
    multipliers = {}
    for name, p, q in zip(names, weights[: len(names)], weights[len(names) : -1], strict=True):
        multipliers[f"{name} >="] = float(p)
        multipliers[f"{name} <="] = float(q)
    multipliers["cost"] = float(weights[-1])
    start = float(cost_low.min())
    stop = max(_free_cost(cost_low, low, high), extra_cost)
    grid = np.unique(np.append(np.linspace(start, stop, CURVE), extra_cost))
    return Exclusion(
        extra_cost=grid,
        least_gap=np.array([least_gap(cost_low, low, high, float(y))[0] for y in grid]),
        least_cost=start,
        at_extra_cost=at,
        multipliers=multipliers,
        incumbent_at_most=at_most,
        brackets=brackets.size,
    )


def _least_costs(
    brackets: Brackets, incumbent: Incumbent, more: Sequence[Hypothesis], alpha: float
) -> FloatArray:
    """A lower end of what every member of each bracket costs beyond the incumbent.

    With a the cost of accepting beyond rejecting, a h >= a^+ l - a^- u for l <= h <= u, so the
    mean of Z = a^+ l - a^- u - a p_0 is a lower bound; Z^2 = a^2 (l - p_0)^2 where a > 0 and
    a^2 (u - p_0)^2 where a < 0, which is linear in l and u.
    """
    moments = []
    for part, p0 in (
        (incumbent.first, incumbent.first_probability),
        (incumbent.second, incumbent.probability),
    ):
        a = part.accept_cost
        dear = np.where(a > 0, a, 0.0)
        cheap = np.where(a < 0, -a, 0.0)
        channels = np.array([dear, dear**2 * (1 - 2 * p0), cheap, cheap**2 * (1 - 2 * p0)])
        least, most = brackets.sums(part.sample.features, part.seen_group, channels)
        alone = np.array([part.accepts(rule) for rule in (*more, *CONSTANTS)], dtype=np.float64)
        single = channels @ alone.T
        least = np.concatenate([least, single], axis=1)
        most = np.concatenate([most, single], axis=1)
        total = least[0] - most[2] - float(a @ p0)
        squares = least[1] + most[3] + float((a**2) @ (p0**2))
        moments.append((total, np.maximum(squares, 0.0)))
    (total, squares), n = moments[0], len(incumbent.first)
    variance = np.maximum(squares / n - (total / n) ** 2, 0.0) + incumbent.width**2 / (4 * n)
    total, squares = moments[1]
    n = len(incumbent.second)
    stakes = good_stakes(variance, n, incumbent.width, alpha)
    found = least_means(total, squares, n, incumbent.width, stakes, alpha)
    return np.asarray(np.maximum(found, -incumbent.width / 2))


def _denominator_counts(
    brackets: Brackets, incumbent: Incumbent, rates: Sequence[Rate], more: Sequence[Hypothesis]
) -> tuple[FloatArray, FloatArray]:
    """(members, rates, groups): accepted people of each denominator, by l and by u; the incumbent
    comes last.
    """
    part = incumbent.second
    groups = incumbent.second.people.groups
    channels = np.array(
        [
            rate.in_denominator(part.label) & (part.group == group)
            for rate in rates
            for group in groups
        ],
        dtype=np.float64,
    )
    least, most = brackets.sums(part.sample.features, part.seen_group, channels)
    rules = [part.accepts(rule) for rule in more]
    single = channels @ np.array([*rules, incumbent.drawn], dtype=np.float64).T
    shape = (-1, len(rates), len(groups))
    return (
        np.rint(np.concatenate([least, single], axis=1)).T.reshape(shape),
        np.rint(np.concatenate([most, single], axis=1)).T.reshape(shape),
    )


def least_gap(
    cost_low: FloatArray, gap_low: FloatArray, gap_high: FloatArray, extra_cost: float
) -> tuple[float, FloatArray]:
    """A lower bound on the largest gap of every mixture that costs at most so much.

    Parameters
    ----------
    cost_low : array, shape (members,)
        Lower ends c_h of the members' costs.
    gap_low, gap_high : array, shape (members, gaps)
        The intervals [l_hk, u_hk] of the members' gaps.
    extra_cost : float
        y, the cost of a mixture at most.

    Returns
    -------
    tuple of float and array
        The bound, 1 if no mixture costs so little; and the multipliers (p, q, r) that prove it.

    Notes
    -----
    min over h of sum_k (p_k l_hk - q_k u_hk) + r (c_h - y) for p, q, r >= 0 with sum p + q = 1 is
    at most the largest gap of every mixture with sum_h w_h c_h <= y, by taking the mean over w.
    The multipliers are the solver's; the minimum is taken here.

    Examples
    --------
    >>> exact = np.array([[0.0], [0.4]])
    >>> bound, proof = least_gap(np.array([1.0, 0.0]), exact, exact, 0.25)
    >>> round(bound, 6), proof.round(6)
    (0.3, array([1. , 0. , 0.4]))
    """
    from scipy.optimize import linprog

    members, gaps = gap_low.shape
    nothing = np.zeros(2 * gaps + 1)
    if float(cost_low.min()) > extra_cost:
        return 1.0, nothing
    # The last variable is the largest gap g.
    bounds = np.vstack(
        [
            np.hstack([gap_low.T, -np.ones((gaps, 1))]),
            np.hstack([-gap_high.T, -np.ones((gaps, 1))]),
            np.append(cost_low - extra_cost, 0.0),
        ]
    )
    solved = linprog(
        np.append(np.zeros(members), 1.0),
        A_ub=bounds,
        b_ub=np.zeros(2 * gaps + 1),
        A_eq=np.append(np.ones(members), 0.0)[None, :],
        b_eq=[1.0],
        bounds=[(0, None)] * (members + 1),
        method="highs",
    )
    if solved.x is None:
        return 0.0, nothing
    multipliers = np.maximum(-np.asarray(solved.ineqlin.marginals), 0.0)
    ends = multipliers[:-1]
    if ends.sum() <= 0:
        return 0.0, nothing
    multipliers = multipliers / ends.sum()
    p = multipliers[:gaps]
    q = multipliers[gaps:-1]
    r = multipliers[-1]
    value = gap_low @ p - gap_high @ q + r * (cost_low - extra_cost)
    return max(0.0, float(value.min())), multipliers


def _free_cost(cost_low: FloatArray, gap_low: FloatArray, gap_high: FloatArray) -> float:
    """The cost from which on no gap at all is excluded."""
    from scipy.optimize import linprog

    solved = linprog(
        cost_low,
        A_ub=np.vstack([gap_low.T, -gap_high.T]),
        b_ub=np.zeros(2 * gap_low.shape[1]),
        A_eq=np.ones((1, len(cost_low))),
        b_eq=[1.0],
        bounds=(0, None),
        method="highs",
    )
    return float(np.asarray(solved.fun))
