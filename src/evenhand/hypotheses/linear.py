"""Linear rules: a weighted logistic surrogate finds the direction, then the exact cheapest cut-off
is found along it.

    w = argmin sum_i v_i ln(1 + exp(-s_i (w.x_i + w_0)))
               + penalty/2 Var(w.x) + 1/2 sum_j (4 + 20/k_j) (r_j w_j)^2 / n,
        s_i = -sign(c_i), v_i = |c_i| / sum|c|, n = (sum|c|)^2 / sum c^2
    t = argmin sum_i c_i 1[w.x_i >= t]

Neither penalty knows units: a column in cents instead of euros has a weight of a hundredth, and the
rule is the same. The first is small, and keeps the score finite where people can be separated. By
itself it would leave a rare column free: the variance that a 0/1 column adds to the score is
w_j^2 k_j / n if it is 1 for k_j of n people, and so is what it gains, so that its weight would not
depend on k_j, and one person could give it the weight of a column that decides (a field that one
person left blank, and repaid).

The second holds each column on a scale that does not shrink with its people. k_j people have
another value than the most common one, and r_j is their median distance from it: 1 for a column of
0 and 1, two thirds of the standard deviation for a normal one, and hardly more for one with a few
outliers. Times n, the loss is a sum over people, and the penalty a normal prior with the precision
4 + 20/k_j on the log odds that r_j is worth. For a mark that very many people have this is a
standard deviation of 1/2 (scikit-learn's default is 1; here the cut-off is fitted, too, and lies
where many people are, so that a weight moves more of them). 20/k_j is there because a few people
are not to be believed more than they can know: k_j labels have the information k_j/4 about a
weight, less than the prior below 20 people, and one person's column has a weight of at most 1/24.
For a number that most people have in a value of their own, k_j is the number of people, and the
penalty vanishes as 1/n (docs/decisions/0065-rare-columns.md).

n is Kish's effective number of people: where a few have most of the costs, they count as a few.

The fit is done in coordinates g, w = M g, in which both the covariance and the second penalty are
diagonal and the curvature is about 1/4: a dozen steps of L-BFGS suffice. It starts from zero at
every call: an answer does not depend on what was asked before. Weights are kept to nine digits:
rounding noise (another order of rows, costs times 1e12) is then not seen by the rule.

Equal rows are fitted as one row with two weights, one for each sign of its costs: the sum is the
same with fewer terms.
"""

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from evenhand.computing import compiled, one_blas_thread
from evenhand.contracts import Hypothesis, HypothesisClass, Json, Params, Partition
from evenhand.errors import InvalidInput
from evenhand.hypotheses.common import column_name, require_columns
from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL
from evenhand.hypotheses.thresholds import Cuts
from evenhand.shown import Brief
from evenhand.words import BoolArray, FloatArray, GroupArray, IntArray, as_features, as_numbers

WORTH_A_CALL = 20_000
"""Products that compiled code is called for, where it has been loaded."""
FEWEST_TERMS = 5
MOST_HIDDEN = 0.05
"""A description shows terms until those that it only names contribute less than this part."""
TILE = 2048
"""People scored at a time in NumPy: few enough for scores to stay in the cache."""
BLOCK = 50_000
"""Rows that are whitened at a time."""
SPARSE = 0.25
"""Rows of which a smaller share is not zero are scored by their entries."""
SLOPE = 3e-5
"""A fit ends where no partial derivative is larger: costs are normalised and rows whitened, so this
is a number without units.
"""
PRIOR = 4.0
FEW = 20.0
"""The precision of the prior is PRIOR + FEW / people, see above."""
MOST_STEPS = 200
PAIRS = 10
MOST_CELLS = 10_000
"""So many cut-offs along a direction are offered: more would take more memory than the rows."""


@dataclass(frozen=True, eq=False)
class LinearBatch:
    """Linear rules, asked together: w.x >= threshold.

    weights: (members, columns), threshold: (members, 1).
    """

    weights: FloatArray
    threshold: FloatArray
    columns: int

    def __call__(self, columns: FloatArray) -> BoolArray:
        """Scores are added up column by column, for one person as for many: the order of additions
        never changes.
        """
        return np.asarray(scores(columns, self.weights) >= self.threshold)

    def one(self, person: FloatArray) -> Sequence[int]:
        """As bytes, 1 for yes. numpy adds up the first axis of several members column by column; of
        one member it would add pairwise, so that the last of its running sums is taken."""
        weights, thresholds = self._by_column
        terms = weights * person.T
        score = np.add.reduce(terms) if len(thresholds) > 1 else np.add.accumulate(terms)[-1]
        accepts: BoolArray = score >= thresholds
        return accepts.tobytes()

    @cached_property
    def _by_column(self) -> tuple[FloatArray, FloatArray]:
        return np.ascontiguousarray(self.weights.T), self.threshold[:, 0].copy()


def _score_rows(columns: FloatArray, weights: FloatArray, scores: FloatArray) -> None:
    for start in range(0, columns.shape[1], TILE):
        tile = np.ascontiguousarray(columns[:, start : start + TILE])
        score = weights[:, :1] * tile[0] + 0.0  # never -0.0
        term = np.empty_like(score)
        for j in range(1, len(tile)):
            score += np.multiply(weights[:, j : j + 1], tile[j], out=term)
        scores[:, start : start + TILE] = score


@compiled(_score_rows)
def score_rows(columns: FloatArray, weights: FloatArray, scores: FloatArray) -> None:
    """scores[m, i] = sum_j weights[m, j] columns[j, i], added up column by column; a zero adds
    nothing and costs a look.
    """
    members, rows = scores.shape
    total = np.empty(members)
    for i in range(rows):
        for m in range(members):
            total[m] = 0.0
        for j in range(len(columns)):
            value = columns[j, i]
            if value != 0.0:
                for m in range(members):
                    total[m] += weights[m, j] * value
        for m in range(members):
            scores[m, i] = total[m]


def scores(columns: FloatArray, weights: FloatArray) -> FloatArray:
    """(columns, rows) and (members, columns) -> (members, rows): w.x, added up column by column.

    Unlike a BLAS product, a row's score depends on its neighbours by not one bit. Compiled code
    goes row by row and passes over zeros, which add nothing: of a person's one-hot columns nearly
    all are zero.
    """
    total = np.empty((len(weights), columns.shape[1]))
    plain = columns.size * len(weights) < WORTH_A_CALL or not np.isfinite(weights).all()
    (score_rows.in_numpy if plain else score_rows)(columns, weights, total)
    return total


@dataclass(frozen=True, repr=False)
class LinearRule(Hypothesis, Brief):
    """Accept iff a weighted sum of the columns is at least a threshold.

    Parameters
    ----------
    weights : tuple of float
        One weight per column.
    threshold : float
        Accept iff w.x >= threshold.
    spread : tuple of float
        The standard deviation of each column among the people that the rule was found on, where it
        is known. It decides nothing: with it, the rule is described by what each column
        contributes to the score, the largest first.

    Examples
    --------
    >>> import numpy as np
    >>> rule = LinearRule((2.0, -0.5), 30.0)
    >>> rule.accepts(np.array([[20.0, 10.0], [10.0, 10.0]])).tolist()
    [True, False]
    >>> rule.describe(["income", "debt"])
    'accept if 2 income - 0.5 debt >= 30'
    """

    weights: tuple[float, ...]
    threshold: float
    spread: tuple[float, ...] = field(default=(), compare=False)

    @property
    def columns_used(self) -> tuple[int, ...]:
        return tuple(column for column, weight in enumerate(self.weights) if weight != 0.0)

    def accepts(self, features: FloatArray, group: GroupArray | None = None) -> BoolArray:
        require_columns(features, len(self.weights), self.describe())
        return np.asarray(row_scores(features, self.weights) >= self.threshold)

    @staticmethod
    def together(members: "Sequence[LinearRule]") -> LinearBatch | None:
        """Several linear rules, asked together.

        Parameters
        ----------
        members : sequence of LinearRule
            The rules.

        Returns
        -------
        LinearBatch or None
            Answers as they do, bit for bit; None if they belong to rows of different widths.
        """
        widths = {len(rule.weights) for rule in members}
        if len(widths) > 1 or 0 in widths:
            return None
        thresholds = np.array([[rule.threshold] for rule in members])
        return LinearBatch(np.array([rule.weights for rule in members]), thresholds, widths.pop())

    def describe(self, names: Sequence[str] | None = None) -> str:
        used = [j for j, weight in enumerate(self.weights) if weight]
        # What a column contributes is its weight times its spread: a weight by itself has a unit.
        size = {j: abs(self.weights[j]) * (self.spread[j] if self.spread else 1.0) for j in used}
        order = sorted(used, key=lambda j: -size[j])
        total = math.fsum(size.values())
        shown = 0
        left = total
        while shown < len(order) and (shown < FEWEST_TERMS or left > MOST_HIDDEN * total):
            left -= size[order[shown]]
            shown += 1
        terms = []
        for j in order[:shown]:
            weight = self.weights[j]
            terms.append(f"{'-' if weight < 0 else '+'} {abs(weight):.4g} {column_name(j, names)}")
        text = " ".join(terms).removeprefix("+ ") or "0"
        others = [column_name(j, names) for j in order[shown:]]
        more = ""
        if others:
            share = max(left, 0.0) / total
            named = ", ".join(others[:5])
            rest = f" and {len(others) - 5} more" if len(others) > 5 else ""
            more = f" + smaller contributions ({share:.1%} together) of {named}{rest}"
        return f"accept if {text}{more} >= {self.threshold:.6g}"

    def to_json(self) -> Json:
        known = {"spread": list(self.spread)} if self.spread else {}
        weights = list(self.weights)
        return {"kind": "linear", "weights": weights, "threshold": self.threshold, **known}


def row_scores(features: FloatArray, weights: Sequence[float]) -> FloatArray:
    """w.x, added up column by column: unlike a BLAS product, a row's score depends on its
    neighbours by not one bit.
    """
    return np.asarray(scores(features.T, np.array([weights]))[0])


@dataclass(frozen=True)
class Linear(HypothesisClass):
    """Linear rules: a weighted sum of the columns against a threshold; a heuristic oracle.

    Parameters
    ----------
    penalty : float
        The weight of the score's variance in the surrogate, on normalised costs. Columns that say
        something about a few people only are penalised besides, on a scale of their own.

    Notes
    -----
    {accept iff w.x >= t}. The direction w is that of a penalised logistic regression on costs, the
    threshold is the exact cheapest one along it, so the answer is never worse than the constants on
    its own rows. The class has VC dimension d = columns + 1, and on n rows at most
    sum_{i <= d} C(n, i) behaviours (Sauer).

    Examples
    --------
    >>> import numpy as np
    >>> oracle = Linear().bind(np.array([[1.0], [2.0], [3.0]]), None)
    >>> oracle.best(np.array([1.0, -2.0, -1.0])).accepts(np.array([[0.5], [2.5]])).tolist()
    [False, True]
    """

    penalty: float = 1e-4
    exact = False
    uses_group = False

    def __post_init__(self) -> None:
        if not 0 < self.penalty < math.inf:
            raise InvalidInput(f"penalty is {self.penalty}; it must be a finite number above 0.")

    @property
    def params(self) -> Params:
        return {"class": "Linear", "penalty": self.penalty}

    def log_growth(self, rows: int, columns: int) -> float:
        return log_sauer(rows, columns + 1)

    def bind(self, features: FloatArray, group: GroupArray | None) -> "_BoundLinear":
        rows = as_features(features, may_be_empty=False)
        with one_blas_thread():
            back, prior = with_prior(whitener(rows), prior_scale(rows))
            first, index = distinct_rows(rows)
            distinct = rows if len(first) == len(rows) else rows[first]
            white = whitened(distinct, back, rows.mean(axis=0))
            spread = spread_of(rows)
        entries = None
        if np.count_nonzero(distinct) < SPARSE * distinct.size:
            row, column = np.nonzero(distinct)
            entries = (row, column, distinct[row, column])
        return _BoundLinear(distinct, index, entries, white, back, prior, self.penalty, spread)


def spread_of(rows: FloatArray) -> tuple[float, ...]:
    """The standard deviation of each column, to four digits: it is printed, and decides nothing.
    Nothing, if a column is too large to have one.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        spread = rows.std(axis=0)
    return tuple(float(f"{one:.4g}") for one in spread) if np.isfinite(spread).all() else ()


def distinct_rows(rows: FloatArray) -> tuple[IntArray, IntArray]:
    """(first, index): row i equals row first[index[i]]. Equal rows have equal scores; whether the
    reverse is true is checked.
    """
    all_rows = np.arange(len(rows))
    score = row_scores(rows, np.cos(np.arange(1.0, rows.shape[1] + 1)).tolist())
    _, first, index = np.unique(score, return_index=True, return_inverse=True)
    blocks = range(0, len(rows), BLOCK) if len(first) < len(rows) else ()
    same = [np.array_equal(rows[first[index[i : i + BLOCK]]], rows[i : i + BLOCK]) for i in blocks]
    return (first, index) if same and all(same) else (all_rows, all_rows)


def whitener(rows: FloatArray) -> FloatArray:
    """M (columns, rank) such that (rows - mean) M has covariance 1; constant and repeated columns
    add no rank.
    """
    mean = rows.mean(axis=0)
    blocks = [rows[start : start + BLOCK] for start in range(0, len(rows), BLOCK)]
    spread = np.sqrt(sum(np.square(block - mean).sum(axis=0) for block in blocks) / len(rows))
    largest = np.maximum(rows.max(axis=0), -rows.min(axis=0))
    scale = np.where(spread > 1e-12 * largest, spread, np.inf)
    products = np.zeros((rows.shape[1], rows.shape[1]))
    for block in blocks:
        standard = (block - mean) / scale
        products += standard.T @ standard
    variance, axes = np.linalg.eigh(products / len(rows))
    kept = variance > 1e-9
    return np.asarray(axes[:, kept] / np.sqrt(variance[kept]) / scale[:, np.newaxis])


def prior_scale(rows: FloatArray) -> FloatArray:
    """The root of (4 + 20/k_j) r_j^2 / rows for each column j: k_j people differ from its most
    common value, by r_j in the median.

    A value that more than half of the people have is the median. Where no value is, all are about
    equally rare, and the median will do.
    """
    found = np.zeros(rows.shape[1])
    n = len(rows)
    for j in range(rows.shape[1]):
        column = np.ascontiguousarray(rows[:, j])
        zeros = n - int(np.count_nonzero(column))
        common = 0.0
        if 2 * zeros <= n:
            # of the two middle values the more frequent one, else the point between them: a column
            # times -1 has the same answer
            low, high = np.partition(column, ((n - 1) // 2, n // 2))[[(n - 1) // 2, n // 2]]
            more = np.count_nonzero(column == low) - np.count_nonzero(column == high)
            common = (low + high) / 2 if more == 0 else low if more > 0 else high
        away = np.abs(column[column != common] - common)
        if len(away):
            found[j] = float(np.median(away)) * math.sqrt((PRIOR + FEW / len(away)) / n)
    return found


def with_prior(back: FloatArray, scale: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(M, e): coordinates w = M g in which the covariance is diag(1 / (1 + 4 e_k)), and the prior's
    precision diag(e_k / (1 + 4 e_k)). The curvature of the loss is about a quarter of the first, so
    that the whole has the curvature 1/4 along each of them.
    """
    scaled = scale[:, np.newaxis] * back
    amount, axes = np.linalg.eigh(scaled.T @ scaled)
    amount = np.maximum(amount, 0.0)
    return np.asarray(back @ (axes / np.sqrt(1.0 + 4.0 * amount))), amount


def whitened(rows: FloatArray, back: FloatArray, mean: FloatArray) -> FloatArray:
    """(rows - mean) M, column by column in memory; block by block, so that nothing of the table's
    size is needed besides.
    """
    white = np.empty((len(rows), back.shape[1]), order="F")
    for start in range(0, len(rows), BLOCK):
        white[start : start + BLOCK] = (rows[start : start + BLOCK] - mean) @ back
    return white


@dataclass(frozen=True, eq=False)
class _BoundLinear:
    """Distinct rows, which of them each row is, their entries that are not zero (where these are
    few), the distinct rows in the coordinates of the fit, the way back from weights on these to
    weights on those, the prior's precision along these coordinates, and the spread of the columns.
    """

    rows: FloatArray
    index: IntArray
    entries: tuple[IntArray, IntArray, FloatArray] | None
    white: FloatArray
    back: FloatArray
    prior: FloatArray
    penalty: float
    spread: tuple[float, ...]

    def best(self, acceptance_cost: FloatArray) -> Hypothesis:
        """Surrogate direction, exact cut-off; ties go to accept-all, reject-all, then the lowest
        cut-off.
        """
        cost, weights, cuts = self._searched(acceptance_cost)
        cheapest = cuts.cheapest(self._totals(cost))
        return cuts.rule(cheapest, lambda threshold: LinearRule(weights, threshold, self.spread))

    def partition(self, acceptance_cost: FloatArray) -> Partition:
        """The cut-offs along the surrogate direction."""
        cost, weights, cuts = self._searched(acceptance_cost)
        cheapest = cuts.cheapest(self._totals(cost)) if len(cuts.values) > MOST_CELLS else 0
        return partition_of(weights, cuts, max(cheapest - 1, 0), self.index, self.spread)

    def _searched(self, acceptance_cost: FloatArray) -> tuple[FloatArray, tuple[float, ...], Cuts]:
        """The costs, the direction, and its cuts of the distinct rows; where all costs have one
        sign, a score that is the same for all.
        """
        cost = as_numbers(acceptance_cost, len(self.index), "acceptance_cost")
        one_sided = (cost <= 0).all() or (cost >= 0).all()
        weights = (0.0,) * self.rows.shape[1] if one_sided else self.direction(cost)
        return cost, weights, Cuts.on(self.scores(weights))

    def direction(self, cost: FloatArray) -> tuple[float, ...]:
        """The weights that the surrogate finds."""
        size = np.abs(cost) / np.abs(cost).max()
        size /= size.sum()
        # rows / n of Kish: 1 if all costs are equally large
        concentration = len(size) * float(size @ size)
        penalty = (self.penalty + concentration * self.prior) / (1.0 + 4.0 * self.prior)
        wanted = self._totals(np.where(cost < 0, size, 0.0))
        unwanted = self._totals(np.where(cost > 0, size, 0.0))
        with one_blas_thread():
            weights = self.back @ fit_logistic(self.white, wanted, unwanted, penalty)
        return tuple(float(f"{weight:.9g}") for weight in weights)

    def scores(self, weights: tuple[float, ...]) -> FloatArray:
        """w.x of the distinct rows, with the bits of `row_scores`: zeros add nothing, and bincount
        adds in the order of columns.
        """
        if self.entries is None:
            return row_scores(self.rows, weights)
        row, column, value = self.entries
        products = np.array(weights)[column] * value
        score = np.bincount(row, weights=products, minlength=len(self.rows))
        return score.astype(np.float64, copy=False)

    def _totals(self, value: FloatArray) -> FloatArray:
        """The sum of `value` over the rows that each distinct row stands for."""
        return np.asarray(np.bincount(self.index, weights=value, minlength=len(self.rows)))


def partition_of(
    weights: tuple[float, ...],
    cuts: Cuts,
    border: int,
    index: IntArray | None = None,
    spread: tuple[float, ...] = (),
) -> Partition:
    """The cells of a score: its distinct values, or of more than MOST_CELLS so many runs of them,
    one of which begins at `border`.

    index: which of the scored rows each row is.
    """
    borders = np.arange(len(cuts.values))
    if len(borders) > MOST_CELLS:
        evenly = np.linspace(0, len(borders) - 1, MOST_CELLS).astype(np.int64)
        borders = np.union1d(evenly, [min(border, len(borders) - 1)])
    thresholds = cuts.values[borders]

    def rule(accept: BoolArray) -> Hypothesis:
        first = len(accept) - int(np.count_nonzero(accept))
        constant = ACCEPT_ALL if first == 0 else REJECT_ALL if first == len(accept) else None
        return constant or LinearRule(weights, float(thresholds[first]), spread)

    run = np.zeros(len(cuts.values), np.int64)
    run[borders[1:]] = 1
    cell = np.cumsum(run)[cuts.codes]
    return Partition(cell if index is None else cell[index], len(borders), True, rule)


def fit_logistic(
    white: FloatArray, wanted: FloatArray, unwanted: FloatArray, penalty: FloatArray
) -> FloatArray:
    """argmin_g min_{g_0} sum_i wanted_i ln(1 + exp(-m_i)) + unwanted_i ln(1 + exp(m_i))
    + 1/2 sum_k penalty_k g_k^2, m = g.z + g_0, from zero.
    """
    both = wanted + unwanted

    def loss_and_slope(g: FloatArray) -> tuple[float, FloatArray]:
        margin = white @ g[1:]
        margin += g[0]
        small = np.exp(-np.abs(margin))
        # ln(1 + exp(m)) = ln(1 + exp(-m)) + m, and ln(1 + exp(-m)) = ln(1 + exp(-|m|)) + max(-m, 0)
        loss = (
            both @ (np.log1p(small) - np.minimum(margin, 0.0))
            + unwanted @ margin
            + 0.5 * (penalty @ np.square(g[1:]))
        )
        pull = both * np.where(margin > 0, 1.0, small) / (1.0 + small) - wanted
        slope = np.empty_like(g)
        slope[0] = pull.sum()
        slope[1:] = pull @ white + penalty * g[1:]
        return float(loss), slope

    return minimum(loss_and_slope, np.zeros(white.shape[1] + 1))[1:]


def minimum(
    loss_and_slope: Callable[[FloatArray], tuple[float, FloatArray]], start: FloatArray
) -> FloatArray:
    """Where a smooth, strictly convex function is least, by L-BFGS with backtracking: until no
    partial derivative exceeds SLOPE.

    Nocedal and Wright, Numerical Optimization, algorithm 7.4. The first step assumes a curvature of
    1/4, that of the logistic loss in 0 on whitened rows. scipy's L-BFGS-B takes as many
    evaluations, and 1.3 times the time (docs/decisions/0019-the-fit-of-linear-rules.md).
    """
    at = start
    loss, slope = loss_and_slope(start)
    pairs: deque[tuple[FloatArray, FloatArray, float]] = deque(maxlen=PAIRS)
    scale = 4.0
    for _ in range(MOST_STEPS):
        if np.abs(slope).max() <= SLOPE:
            break
        step = -slope
        shares = []
        for move, change, inverse in reversed(pairs):
            shares.append(inverse * float(move @ step))
            step -= shares[-1] * change
        step *= scale
        for (move, change, inverse), share in zip(pairs, reversed(shares), strict=True):
            step += (share - inverse * float(change @ step)) * move
        descent = float(slope @ step)
        length = 1.0
        ahead = at + step
        lower, next_slope = loss_and_slope(at + step)
        while lower > loss + 1e-4 * length * descent and length > 1e-9:
            # the minimum of the parabola through what is known, within a tenth and a half of the
            # last length
            length *= min(
                max(-0.5 * length * descent / (lower - loss - length * descent), 0.1), 0.5
            )
            ahead = at + length * step
            lower, next_slope = loss_and_slope(ahead)
        move = ahead - at
        change = next_slope - slope
        curvature = float(move @ change)
        if curvature <= 0.0:
            break  # rounding is all that is left
        pairs.append((move, change, 1.0 / curvature))
        scale = curvature / float(change @ change)
        at = ahead
        loss = lower
        slope = next_slope
    return at


def log_sauer(rows: int, dimension: int) -> float:
    """ln sum_{i=0}^{dimension} C(rows, i), at most rows ln 2."""
    if rows <= dimension:
        return rows * math.log(2.0)
    term = total = 1
    for i in range(dimension):
        term = term * (rows - i) // (i + 1)
        total += term
    return math.log(total)
