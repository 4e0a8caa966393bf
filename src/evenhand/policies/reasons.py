"""Why a person's probability of being accepted is what it is, and the least change that turns it.

For a person x and comparison people b_1, ..., b_n let

    v(S) = 1/n sum_i p(z_i),   z_i = x on the columns of S, b_i on the others

be the mean acceptance probability if only the columns S are as they are for this person. The
Shapley value of column j is the mean, over all orders of the columns, of what v gains when j joins
those before it:

    phi_j = sum over S without j of |S|! (m - |S| - 1)! / m! (v(S + j) - v(S)),   m = columns in use

The values add up to p(x) - 1/n sum_i p(b_i), a column that no rule uses has 0, and two columns that
do the same have the same. They are linear in p, so each rule of a mixture is done on its own
columns: a rule on one column costs one evaluation, a rule on m columns 2^m.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from evenhand.words import FloatArray

Acceptance = Callable[[FloatArray], FloatArray]
"""(rows, columns) -> (rows,): the probability of being accepted, or 0 and 1 for a rule."""

MOST_EVALUATIONS = 2**18
"""Above this many rows the orders of the columns are sampled, and the standard error is told."""


@dataclass(frozen=True)
class WeightedRule:
    """One part of a policy: it accepts with this probability, and looks at these columns only.

    Parameters
    ----------
    weight : float
        The share of the policy.
    accepts : callable
        (rows, columns) -> (rows,), 0 or 1 (or a probability).
    columns : tuple of int
        The columns that it may look at.
    """

    weight: float
    accepts: Acceptance
    columns: tuple[int, ...]


@dataclass(frozen=True)
class Attribution:
    """What each column did to one person's probability of being accepted.

    Parameters
    ----------
    values : array of shape (columns,)
        The Shapley values; they sum to ``acceptance - baseline``.
    baseline : float
        The mean acceptance probability of the comparison people.
    acceptance : float
        The person's own.
    standard_error : float
        0 where the values are exact; else the largest standard error of a value.
    """

    values: FloatArray
    baseline: float
    acceptance: float
    standard_error: float = 0.0


def attribution(
    rules: Sequence[WeightedRule],
    person: FloatArray,
    comparison: FloatArray,
    most_evaluations: int = MOST_EVALUATIONS,
) -> Attribution:
    """Share out a person's acceptance probability among the columns by exact Shapley values.

    Parameters
    ----------
    rules : sequence of WeightedRule
        The parts of the policy.
    person : array of shape (columns,)
        The person who is explained.
    comparison : array of shape (people, columns)
        The people whom the person is compared with.
    most_evaluations : int
        How many rows one rule may be asked about before the orders of its columns are sampled.

    Returns
    -------
    Attribution
        The value of each column, and what they add up to.

    Examples
    --------
    >>> income = WeightedRule(0.75, lambda rows: (rows[:, 0] >= 30.0).astype(float), (0,))
    >>> debt = WeightedRule(0.25, lambda rows: (rows[:, 1] < 5.0).astype(float), (1,))
    >>> people = np.array([[20.0, 1.0], [40.0, 9.0], [50.0, 2.0], [60.0, 3.0]])
    >>> reasons = attribution([income, debt], np.array([25.0, 9.0]), people)
    >>> reasons.values
    array([-0.5625, -0.1875])
    >>> reasons.acceptance, reasons.baseline
    (0.0, 0.75)
    """
    values = np.zeros(len(person))
    baseline = acceptance = 0.0
    variance = np.zeros(len(person))
    for rule in rules:
        # A column on which the comparison person equals this one cannot matter.
        used = [j for j in rule.columns if np.any(comparison[:, j] != person[j])]
        if not used:
            alone = float(rule.accepts(person[None, :])[0])
            baseline, acceptance = baseline + rule.weight * alone, acceptance + rule.weight * alone
            continue
        if len(comparison) << len(used) <= most_evaluations:
            shares, own, others = _exact(rule.accepts, person, comparison, used)
        else:
            shares, own, others, error = _sampled(
                rule.accepts, person, comparison, used, most_evaluations
            )
            variance[used] += (rule.weight * error) ** 2
        values[used] += rule.weight * shares
        baseline, acceptance = baseline + rule.weight * others, acceptance + rule.weight * own
    return Attribution(values, baseline, acceptance, float(np.sqrt(variance.max(initial=0.0))))


def _exact(
    accepts: Acceptance, person: FloatArray, comparison: FloatArray, used: Sequence[int]
) -> tuple[FloatArray, float, float]:
    m = len(used)
    worth = np.empty(1 << m)
    for subset in range(1 << m):
        rows = comparison.copy()
        known = [used[k] for k in range(m) if subset >> k & 1]
        rows[:, known] = person[known]
        worth[subset] = accepts(rows).mean()
    sizes = np.array([subset.bit_count() for subset in range(1 << m)])
    orders = [
        math.factorial(size) * math.factorial(m - size - 1) / math.factorial(m) for size in range(m)
    ]
    shares = np.empty(m)
    for k in range(m):
        without = np.flatnonzero((np.arange(1 << m) >> k & 1) == 0)
        gains = worth[without | 1 << k] - worth[without]
        shares[k] = np.dot(np.asarray(orders)[sizes[without]], gains)
    return shares, float(worth[-1]), float(worth[0])


def _sampled(
    accepts: Acceptance,
    person: FloatArray,
    comparison: FloatArray,
    used: Sequence[int],
    most_evaluations: int,
) -> tuple[FloatArray, float, float, FloatArray]:
    """Random orders, each followed by its reverse; a fixed stream, so an answer can be checked."""
    rng = np.random.default_rng(0)
    m, people = len(used), len(comparison)
    pairs = max(32, most_evaluations // (2 * people * (m + 1)))
    gains = np.zeros((pairs, m))
    for pair in range(pairs):
        order = rng.permutation(m)
        for way in (order, order[::-1]):
            rows = comparison.copy()
            before = float(accepts(rows).mean())
            others = before
            for k in way:
                rows[:, used[k]] = person[used[k]]
                after = float(accepts(rows).mean())
                gains[pair, k] += 0.5 * (after - before)
                before = after
    return gains.mean(0), before, others, gains.std(0, ddof=1) / math.sqrt(pairs)


@dataclass(frozen=True)
class Change:
    """A change of one or two columns that would have turned the decision.

    Parameters
    ----------
    columns : tuple of int
        The columns that change.
    values : tuple of float
        Their new values, within what was observed.
    acceptance : float
        The probability of being accepted then.
    size : float
        The sum of the changes, each divided by its column's spread.
    """

    columns: tuple[int, ...]
    values: tuple[float, ...]
    acceptance: float
    size: float


def least_change(
    acceptance: Acceptance,
    person: FloatArray,
    candidates: Sequence[Sequence[float]],
    comparison: FloatArray,
    coin: float,
) -> Change | None:
    """Find the least change of one column, else of two, with which the same coin accepts.

    The person is accepted iff ``coin < p(x)``. Only values within the range of the comparison
    people are proposed, and a change is measured in units of its column's spread (the standard
    deviation among them).

    Parameters
    ----------
    acceptance : callable
        (rows, columns) -> (rows,), the policy.
    person : array of shape (columns,)
        The person who was rejected.
    candidates : sequence of sequences of float
        For each column the values at which a rule changes its answer.
    comparison : array of shape (people, columns)
        The people whose values bound what is proposed.
    coin : float
        Where the person's coin fell.

    Returns
    -------
    Change or None
        None where no change of one or two columns within the observed range suffices.

    Examples
    --------
    >>> people = np.array([[20.0, 1.0], [40.0, 9.0], [50.0, 2.0], [60.0, 3.0]])
    >>> def policy(rows):
    ...     return 0.75 * (rows[:, 0] >= 30.0) + 0.25 * (rows[:, 1] < 5.0)
    >>> least_change(policy, np.array([25.0, 9.0]), [[30.0], [4.0]], people, coin=0.5).values
    (30.0,)
    """
    lower, upper, spread = comparison.min(0), comparison.max(0), comparison.std(0)
    allowed = {
        j: [v for v in set(values) if lower[j] <= v <= upper[j] and v != person[j]]
        for j, values in enumerate(candidates)
        if spread[j] > 0
    }

    def tried(columns: tuple[int, ...]) -> Iterator[Change]:
        grid = list(itertools.product(*(allowed[j] for j in columns)))
        if not grid:
            return
        rows = np.tile(person, (len(grid), 1))
        rows[:, list(columns)] = grid
        for values, p in zip(grid, acceptance(rows), strict=True):
            if coin < p:
                moved = (
                    abs(v - person[j]) / spread[j] for j, v in zip(columns, values, strict=True)
                )
                yield Change(columns, tuple(map(float, values)), float(p), float(sum(moved)))

    for together in (1, 2):
        changes = [
            c for columns in itertools.combinations(allowed, together) for c in tried(columns)
        ]
        if changes:
            return min(changes, key=lambda change: (change.size, change.columns, change.values))
    return None
