"""Why a person's probability of being accepted is what it is, and the least change that turns it.

For a person x and comparison people b_1, ..., b_n let

    v(S) = 1/n sum_i p(z_i),   z_i = x on the columns of S, b_i on the others

be the mean acceptance probability if only the columns S are as they are for this person. The
Shapley value of column j is the mean, over all orders of the columns, of what v gains when j joins
those before it:

    phi_j = sum over S without j of |S|! (m - |S| - 1)! / m! (v(S + j) - v(S)),   m = columns in use

The values add up to p(x) - 1/n sum_i p(b_i), a column that no rule uses has 0, and two columns that
do the same have the same. They are linear in p, so each rule of a mixture is done on its own
columns, and a rule on m columns costs 2^m evaluations for each comparison person.

**Additive functions.** If f(x) = f_1(x_1) + ... + f_m(x_m), then v(S + j) - v(S) is f_j(x_j) -
1/n sum_i f_j(b_ij) for every S, and so is the mean over all S:

    phi_j = f_j(x_j) - 1/n sum_i f_j(b_ij)

No column has to be left out and nobody drawn: the values are exact against all comparison people,
at the cost of one evaluation. The probability of a mixture of rules on one column each (thresholds,
stumps) is such a function, with f_j the weight of the rules on column j that accept; and so is a
linear score w.x, with phi_j = w_j (x_j - mean_j) (`explanation.Comparison`). All other functions
are shared out over all subsets where that is cheap enough, and estimated by `walks` where not.

A column is what a person is asked for. In the matrix it may take several numbers, as a text does
(`evenhand.schema`), which then stand or fall together.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from evenhand.words import FloatArray

Acceptance = Callable[[FloatArray], FloatArray]
"""(rows, columns) -> (rows,): the probability of being accepted, or 0 and 1 for a rule."""

MOST_EVALUATIONS = 2**18
"""Above this many rows, people and orders of the columns are sampled, and the standard error is
reported."""
FEWEST_WALKS = 32
AT_ONCE = 2**14
"""Rows that a rule is asked about in one call."""
MOST_POINTS = 20_000
"""Changes of two columns that are tried, the nearest first."""


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
        The columns that it may look at: indices of the matrix, or of `places` where given.
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
    covariance : array of shape (columns, columns)
        Of the values as estimates; 0 where they are exact.
    """

    values: FloatArray
    baseline: float
    acceptance: float
    covariance: FloatArray

    @property
    def errors(self) -> FloatArray:
        """The standard error of each value."""
        return np.sqrt(np.diagonal(self.covariance))

    @property
    def standard_error(self) -> float:
        """The largest standard error of a value; 0 where all are exact."""
        return float(self.errors.max(initial=0.0))


def attribution(
    rules: Sequence[WeightedRule],
    person: FloatArray,
    comparison: FloatArray,
    most_evaluations: int = MOST_EVALUATIONS,
    places: Sequence[slice] | None = None,
    usual: float | None = None,
    seed: int = 0,
) -> Attribution:
    """Share out a person's acceptance probability among the columns by Shapley values.

    Parameters
    ----------
    rules : sequence of WeightedRule
        The parts of the policy.
    person : array of shape (columns,)
        The person who is explained.
    comparison : array of shape (people, columns)
        The people whom the person is compared with.
    most_evaluations : int
        How many rows one rule may be asked about. Rules that would need more are estimated by
        `walks`, all together.
    places : sequence of slice, optional
        Where each column stands in the matrix; without it, each number is a column.
    usual : float, optional
        The mean of the comparison people, if it is known.
    seed : int
        Of the walks.

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
    if places is None:
        places = [slice(j, j + 1) for j in range(len(person))]
    values = np.zeros(len(places))
    covariance = np.zeros((len(places), len(places)))
    baseline = 0.0
    acceptance = 0.0
    walked: list[WeightedRule] = []
    walked_columns: set[int] = set()
    for rule in rules:
        # A column on which the comparison people equal this one cannot matter.
        used = [j for j in rule.columns if np.any(comparison[:, places[j]] != person[places[j]])]
        if not used:
            alone = float(rule.accepts(person[None, :])[0])
            baseline = baseline + rule.weight * alone
            acceptance = acceptance + rule.weight * alone
            continue
        if len(used) > 1 and len(comparison) << len(used) > most_evaluations:
            walked.append(rule)
            walked_columns.update(used)
            continue
        shares, own, others = _exact(rule.accepts, person, comparison, [places[j] for j in used])
        values[used] += rule.weight * shares
        baseline = baseline + rule.weight * others
        acceptance = acceptance + rule.weight * own
    if walked:
        columns = sorted(walked_columns)

        def accepts(rows: FloatArray) -> FloatArray:
            total = np.zeros(len(rows))
            for rule in walked:
                total += rule.weight * np.asarray(rule.accepts(rows), dtype=np.float64)
            return total

        others = float(accepts(comparison).mean()) if usual is None else usual - baseline
        own = float(accepts(person[None, :])[0])
        slots = [places[j] for j in columns]
        gains, spread = walks(
            accepts, person, comparison, slots, own - others, most_evaluations, seed
        )
        values[columns] += gains
        covariance[np.ix_(columns, columns)] = spread
        baseline += others
        acceptance += own
    return Attribution(values, baseline, acceptance, covariance)


def _exact(
    accepts: Acceptance, person: FloatArray, comparison: FloatArray, slots: Sequence[slice]
) -> tuple[FloatArray, float, float]:
    m = len(slots)
    people = len(comparison)
    worth = np.empty(1 << m)
    together = max(1, AT_ONCE // people)  # a model is asked about many rows at once
    for start in range(0, 1 << m, together):
        subsets = range(start, min(start + together, 1 << m))
        rows = np.tile(comparison, (len(subsets), 1))
        for place, subset in enumerate(subsets):
            mine = slice(place * people, (place + 1) * people)
            for k in range(m):
                if subset >> k & 1:
                    rows[mine, slots[k]] = person[slots[k]]
        answers = np.asarray(accepts(rows), dtype=np.float64).reshape(len(subsets), people)
        worth[start : start + len(subsets)] = answers.mean(axis=1)
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


def walks(
    accepts: Acceptance,
    person: FloatArray,
    comparison: FloatArray,
    slots: Sequence[slice],
    total: float,
    most_evaluations: int = MOST_EVALUATIONS,
    seed: int = 0,
) -> tuple[FloatArray, FloatArray]:
    """Estimate Shapley values by walks from comparison people to the person.

    One walk takes a comparison person b_i and an order of the columns, and replaces the columns of
    b_i by those of the person in this order. What p gains when column j is replaced has the mean
    phi_j over people and orders, so that the error that is reported holds for *all* comparison
    people and not for those who were drawn. Each order is followed by its reverse, from the same
    person. The people are drawn without replacement until all had their turn.

    That the values add up to p(x) - mean p(b) is known: what their sum is off by is shared out in
    proportion to their variances.

    Parameters
    ----------
    accepts : callable
        (rows, columns) -> (rows,), the probability that is shared out.
    person : array of shape (columns,)
        The person.
    comparison : array of shape (people, columns)
        The people compared with.
    slots : sequence of slice
        Where each column in use stands in the matrix.
    total : float
        What the values add up to.
    most_evaluations : int
        How many rows are asked about.
    seed : int
        Of people and orders.

    Returns
    -------
    tuple of array
        The values, and their covariance.
    """
    rng = np.random.default_rng(seed)
    m = len(slots)
    people = len(comparison)
    pairs = max(FEWEST_WALKS, most_evaluations // (2 * (m + 1)))
    # the column that each number of a row belongs to; m for numbers that no column in use has
    owner = np.full(comparison.shape[1], m)
    for k, slot in enumerate(slots):
        owner[slot] = k
    rounds = -(-pairs // people)
    start = np.concatenate([rng.permutation(people) for _ in range(rounds)])[:pairs]
    gains = np.empty((pairs, m))
    together = max(1, AT_ONCE // (2 * (m + 1)))
    steps = np.arange(m + 1)
    for first in range(0, pairs, together):
        begun = start[first : first + together]
        rank = rng.permuted(np.tile(np.arange(m), (len(begun), 1)), axis=1)
        found = np.zeros((len(begun), m))
        for order in (rank, m - 1 - rank):
            # in step t the columns of ranks below t are the person's
            mine = order[:, None, :] < steps[None, :, None]
            mine = np.concatenate([mine, np.zeros((*mine.shape[:2], 1), dtype=bool)], axis=2)
            rows = np.where(mine[:, :, owner], person, comparison[begun][:, None, :])
            answers = np.asarray(accepts(rows.reshape(-1, len(person))), dtype=np.float64)
            steps_up = np.diff(answers.reshape(len(begun), m + 1), axis=1)
            found += 0.5 * np.take_along_axis(steps_up, order, axis=1)
        gains[first : first + together] = found
    values = gains.mean(axis=0)
    covariance = np.atleast_2d(np.cov(gains, rowvar=False)) / pairs
    variance = np.diagonal(covariance)
    if variance.sum() > 0.0:
        values = values + (total - values.sum()) * variance / variance.sum()
    return values, covariance


@dataclass(frozen=True)
class Changeable:
    """What may be proposed for one column.

    Parameters
    ----------
    place : slice
        Where it stands in the matrix.
    kind : {"number", "name", "fixed"}
        A number moves along its range, and its change is measured in units of its spread (the
        standard deviation among the comparison people). A name, as a category is one, becomes
        another one that was observed, and that counts as 1. What is fixed is never proposed.
    missing : float, optional
        The code of a missing value: it is never proposed, and giving a number where there was none
        counts as 1.
    way : {"any", "up", "down"}
        In which direction a number may move: years in a job only grow.

    Examples
    --------
    >>> Changeable(slice(0, 1)).kind
    'number'
    """

    place: slice
    kind: Literal["number", "name", "fixed"] = "number"
    missing: float | None = None
    way: Literal["any", "up", "down"] = "any"


@dataclass(frozen=True)
class Change:
    """A change of one or two columns that would have turned the decision.

    Parameters
    ----------
    columns : tuple of int
        The columns that change.
    values : tuple of float
        Their new values, within what was observed; of a column with several numbers the first.
    acceptance : float
        The probability of being accepted then.
    size : float
        The sum of the changes, each in units of its column's spread.
    row : array of shape (columns,)
        The person with these changes.
    """

    columns: tuple[int, ...]
    values: tuple[float, ...]
    acceptance: float
    size: float
    row: FloatArray = field(repr=False, compare=False)


def least_change(
    acceptance: Acceptance,
    person: FloatArray,
    borders: tuple[FloatArray, FloatArray],
    comparison: FloatArray,
    coin: float,
    columns: Sequence[Changeable] | None = None,
) -> Change | None:
    """Find the least change of one column, else of two, with which the same coin accepts.

    The person is accepted iff ``coin < p(x)``. Only values within the range of the comparison
    people are proposed. p changes where a row of the borders has w.x = c, and nowhere else; so the
    least change lies on such a line, or where two lines, or a line and the end of a range, cross.
    Numbers that are whole in every row stay whole; others are rounded, by at most a hundredth of
    the spread, such that the rounded value is accepted.

    Parameters
    ----------
    acceptance : callable
        (rows, columns) -> (rows,), the policy.
    person : array of shape (columns,)
        The person who was rejected.
    borders : (array of shape (lines, columns), array of shape (lines,))
        w and c of every line w.x = c at which a rule changes its answer. For a rule whose lines are
        not known: values to try, each as a line of its column.
    comparison : array of shape (people, columns)
        The people whose values bound what is proposed.
    coin : float
        Where the person's coin fell.
    columns : sequence of Changeable, optional
        What may be proposed for each column; without it, all are numbers.

    Returns
    -------
    Change or None
        None where no change of one or two columns within the observed range suffices.

    Examples
    --------
    >>> people = np.array([[20.0, 1.0], [40.0, 9.0], [50.0, 2.0], [60.0, 3.0]])
    >>> def policy(rows):
    ...     return 0.75 * (rows[:, 0] >= 30.0) + 0.25 * (rows[:, 1] < 5.0)
    >>> lines = np.eye(2), np.array([30.0, 5.0])
    >>> least_change(policy, np.array([25.0, 9.0]), lines, people, coin=0.5).values
    (30.0,)
    """
    if columns is None:
        columns = [Changeable(slice(j, j + 1)) for j in range(len(person))]
    space = _Space(person, borders, comparison, columns)
    for together in (1, 2):
        for chosen, points, sizes in space.changes(together):
            found = space.first_accepted(acceptance, chosen, points, sizes, coin)
            if found is not None:
                space.best = min(filter(None, (space.best, found)), key=lambda c: c.size)
        if space.best is not None:
            return space.rounded(acceptance, space.best, coin)
    return None


class _Space:
    """The values that may be proposed to one person, column by column and pair by pair."""

    def __init__(
        self,
        person: FloatArray,
        borders: tuple[FloatArray, FloatArray],
        comparison: FloatArray,
        columns: Sequence[Changeable],
    ) -> None:
        self.person = person
        self.lines = borders
        self.columns = columns
        self.best: Change | None = None
        self.spread = np.ones(len(columns))
        self.whole = np.zeros(len(columns), dtype=bool)
        self.range = np.zeros((len(columns), 2))
        # The codes of the names that may be proposed; points hold their places in it.
        self.names: dict[int, FloatArray] = {}
        self.open: list[int] = []
        for j, column in enumerate(columns):
            at = column.place.start
            present = np.ones(len(comparison), dtype=bool)
            if column.missing is not None:
                present = comparison[:, at] != column.missing
            seen = comparison[present, at]
            if column.kind == "fixed" or not len(seen):
                continue
            if column.kind == "name":
                known = np.unique(comparison[present, column.place], axis=0)
                self.names[j] = known[(known != person[column.place]).any(axis=1)]
                self.open += [j] if len(self.names[j]) else []
                continue
            if seen.min() == seen.max():  # nothing else was observed
                continue
            low = max(seen.min(), person[at]) if column.way == "up" else seen.min()
            high = min(seen.max(), person[at]) if column.way == "down" else seen.max()
            self.range[j] = (low, high)
            self.spread[j] = seen.std()
            self.whole[j] = bool(np.all(seen == np.floor(seen)) and person[at] % 1 == 0)
            self.open.append(j)

    def rows(self, chosen: tuple[int, ...], points: FloatArray) -> FloatArray:
        """The person with other values in these columns."""
        rows = np.tile(self.person, (len(points), 1))
        for k, j in enumerate(chosen):
            if j in self.names:
                rows[:, self.columns[j].place] = self.names[j][points[:, k].astype(int)]
            else:
                rows[:, self.columns[j].place.start] = points[:, k]
        return rows

    def change(self, chosen: tuple[int, ...], point: FloatArray, acceptance: float) -> Change:
        """The change to one point."""
        row = self.rows(chosen, point[None, :])[0]
        values = tuple(float(row[self.columns[j].place.start]) for j in chosen)
        size = float(self.sizes(chosen, point[None, :])[0])
        return Change(chosen, values, acceptance, size, row)

    def point(self, change: Change) -> FloatArray:
        """The point that a change goes to."""
        found = []
        for j, value in zip(change.columns, change.values, strict=True):
            if j in self.names:
                same = (self.names[j] == change.row[self.columns[j].place]).all(axis=1)
                value = float(np.argmax(same))
            found.append(value)
        return np.array(found)

    def first_accepted(
        self,
        acceptance: Acceptance,
        chosen: tuple[int, ...],
        points: FloatArray,
        sizes: FloatArray,
        coin: float,
    ) -> Change | None:
        """The nearest of the points that is accepted, if it is nearer than the best so far."""
        limit = math.inf if self.best is None else self.best.size
        order = np.argsort(sizes, kind="stable")
        order = order[sizes[order] < limit][:MOST_POINTS]
        for start in range(0, len(order), 512):
            part = order[start : start + 512]
            answers = acceptance(self.rows(chosen, points[part]))
            good = np.flatnonzero(answers > coin)
            if len(good):
                return self.change(chosen, points[part[good[0]]], float(answers[good[0]]))
        return None

    def changes(self, together: int) -> Iterator[tuple[tuple[int, ...], FloatArray, FloatArray]]:
        """(columns, points, sizes) for each column, or each pair of columns."""
        for chosen in itertools.combinations(self.open, together):
            points = self._points(chosen)
            if len(points):
                inside = np.ones(len(points), dtype=bool)
                for k, j in enumerate(chosen):
                    if j not in self.names:
                        low, high = self.range[j]
                        inside &= (points[:, k] >= low) & (points[:, k] <= high)
                points = np.unique(points[inside], axis=0)
                yield chosen, points, self.sizes(chosen, points)

    def sizes(self, chosen: tuple[int, ...], points: FloatArray) -> FloatArray:
        """How large each change is, in units of spread."""
        total = np.zeros(len(points))
        for k, j in enumerate(chosen):
            now = self.person[self.columns[j].place.start]
            if j in self.names:
                total += 1.0
            elif now == self.columns[j].missing:
                total += np.where(points[:, k] != now, 1.0, 0.0)
            else:
                total += np.abs(points[:, k] - now) / self.spread[j]
        return total

    def _points(self, chosen: tuple[int, ...]) -> FloatArray:
        if len(chosen) == 1:
            return self._values(chosen[0])[:, None]
        if any(j in self.names for j in chosen):
            pairs = itertools.product(*(self._values(j).tolist() for j in chosen))
            return np.array(list(pairs), dtype=np.float64).reshape(-1, 2)
        # lines a u + b v = d in the plane of the two columns, and the ends of their ranges
        slots = [self.columns[j].place.start for j in chosen]
        weights, right = self.lines
        a = weights[:, slots[0]]
        b = weights[:, slots[1]]
        d = right - weights @ self._without(slots)
        in_plane = (a != 0) | (b != 0)
        ends = self.range[list(chosen)]
        a = np.r_[a[in_plane], 1.0, 1.0, 0.0, 0.0]
        b = np.r_[b[in_plane], 0.0, 0.0, 1.0, 1.0]
        d = np.r_[d[in_plane], ends[0], ends[1]]
        first, second = np.triu_indices(len(a), 1)
        det = a[first] * b[second] - a[second] * b[first]
        cross = np.flatnonzero(det)
        first = first[cross]
        second = second[cross]
        det = det[cross]
        u = (d[first] * b[second] - d[second] * b[first]) / det
        v = (a[first] * d[second] - a[second] * d[first]) / det
        near = [self._nudged(j, w) for j, w in zip(chosen, (u, v), strict=True)]
        return np.concatenate(
            [np.stack([one, other], axis=1) for one in near[0].T for other in near[1].T]
        )

    def _values(self, j: int) -> FloatArray:
        """The values of one column at which the answer may change, the others being as they are."""
        if j in self.names:
            return np.arange(float(len(self.names[j])))
        at = self.columns[j].place.start
        weights, right = self.lines
        crossing = np.flatnonzero(weights[:, at])
        rest = right[crossing] - weights[crossing] @ self._without([at])
        value = rest / weights[crossing, at]
        return np.unique(self._nudged(j, np.r_[value, self.range[j]]))

    def _without(self, slots: Sequence[int]) -> FloatArray:
        rest = self.person.copy()
        rest[slots] = 0.0
        return rest

    def _nudged(self, j: int, values: FloatArray) -> FloatArray:
        """The values and their neighbours on both sides, shape (values, neighbours)."""
        if self.whole[j]:
            low = np.floor(values)
            high = np.ceil(values)
            return np.stack([low - 1, low, high, high + 1], axis=1)
        step = 1e-9 * np.maximum(1.0, np.abs(values))
        return np.stack([values - step, values, values + step], axis=1)

    def rounded(self, acceptance: Acceptance, change: Change, coin: float) -> Change:
        """The same change with fewer digits, if the rounded values are accepted too."""
        values = self.point(change)
        for k, j in enumerate(change.columns):
            if j in self.names or self.whole[j]:
                continue
            up = values[k] > self.person[self.columns[j].place.start]
            finest = math.floor(math.log10(0.01 * self.spread[j]))
            for exponent in range(finest, finest - 9, -1):
                tick = 10.0**exponent
                turned = math.ceil(values[k] / tick) if up else math.floor(values[k] / tick)
                tried = values.copy()
                tried[k] = round(turned * tick, max(-exponent, 0))
                inside = self.range[j][0] <= tried[k] <= self.range[j][1]
                if inside and acceptance(self.rows(change.columns, tried[None, :]))[0] > coin:
                    values = tried
                    break
        answer = float(acceptance(self.rows(change.columns, values[None, :]))[0])
        return self.change(change.columns, values, answer)
