"""The cheapest mixture under linear constraints: the simplex method on a tableau.

The programs have few rows (two per gap), up to some hundred columns, and a vertex to start from:
a constant rule has no gap. One pivot is then a handful of NumPy calls, which is less than a general
solver needs before its first one (docs/decisions/0018-one-simplex.md).
"""

import numpy as np

from evenhand.words import FloatArray

ACCEPT = 0
REJECT = 1
"""The numbers of the members that accept and that reject all applicants."""
ROUNDING = 1e-12
PIVOT_GAIN = 1e-12
"""A reduced cost (relative to the largest cost) above minus this is no gain."""
LEAST_PIVOT = 1e-12
"""Smaller entries of the entering column are rounding; nothing is divided by them."""
TIE = 1e-14
"""Ratios that are closer are the same: of these the first one counts."""
MOST_PIVOTS = 400
"""From half of them on the first column with a gain enters (Bland's rule), against cycles among
tied vertices.
"""
FRESH_TABLEAU = 20
"""After so many pivots the tableau is computed anew from the system, so that rounding errors do not
add up.
"""


class MixtureProgram:
    """min costs . w subject to constraints @ w <= limits, w >= 0, sum w = 1, for one cost vector
    after another.

    constraints: (..., rows, members). Leading axes are separate programs with the same costs: they
    are pivoted together, because a NumPy call costs hardly more for ten small tableaus than for
    one. limits: one number, or one per row, none below 0. Member 1 has zeros in every row, and
    member 0 in every row but those that bound its own weight and the accepted share.

    lottery: None, or the number of a row that says that enough people are accepted. In it member 0
    has a zero and member 1 a one, so that member 1 alone breaks it; the lottery of the two that
    meets it exactly must meet all others.

    The first cost vector starts at the cheaper one of the two members, or at the lottery. Each
    later one starts where the last one ended, which is feasible for any costs.
    """

    def __init__(
        self, constraints: FloatArray, limits: float | FloatArray, lottery: int | None = None
    ) -> None:
        *self.leading, rows, members = constraints.shape
        self.constraints = constraints
        self.limits = np.broadcast_to(np.asarray(limits, dtype=np.float64), (rows,))
        self.stack = constraints.reshape(-1, rows, members)
        count = len(self.stack)
        self.programs = np.arange(count)

        # Columns: the members, a slack for each row, the right-hand side. Row 0 is sum w = 1.
        self.system = np.zeros((count, rows + 1, members + rows + 1))
        self.system[:, 0, :members] = 1.0
        self.system[:, 0, -1] = 1.0
        self.system[:, 1:, :members] = self.stack
        self.system[:, 1:, members:-1] = np.eye(rows)
        self.system[:, 1:, -1] = self.limits

        # The tableau is the system solved for its basic columns, and below it the reduced costs.
        # The columns of member 1 and of the slacks are unit vectors from the start.
        self.basis = np.empty((count, rows + 1), dtype=np.int64)
        self.basis[:, 0] = REJECT
        self.basis[:, 1:] = np.arange(members, members + rows)
        self.tableau = np.zeros((count, rows + 2, members + rows + 1))
        self.tableau[:, :-1] = self.system
        self.behind = TIE * np.arange(rows + 1)
        self.started = False
        self.pivots = 0
        self.lottery = lottery
        if lottery is not None:
            self.started = True
            self.basis[:, 1 + lottery] = ACCEPT
            self.tableau[:, :-1] = self._solved(self.system)

    def cheapest(self, costs: FloatArray) -> FloatArray:
        """The weights (..., members); in each program at most one more than it has constraints is
        above 0.
        """
        members = len(costs)
        if not self.started:
            self.started = True
            if costs[ACCEPT] <= costs[REJECT] and (self.stack[:, :, ACCEPT] <= self.limits).all():
                self._start_at_accept_all()
        prices = np.zeros(self.system.shape[2])
        prices[:members] = costs / (float(np.abs(costs).max()) or 1.0)
        self._reduce(prices)
        for pivot in range(MOST_PIVOTS):
            if not self._pivot(bland=pivot >= MOST_PIVOTS // 2):
                break
            self.pivots += 1
            if self.pivots % FRESH_TABLEAU == 0:
                self.tableau[:, :-1] = self._solved(self.system)
                self._reduce(prices)
        return self._weights().reshape(*self.leading, members)

    def _start_at_accept_all(self) -> None:
        """Exchange reject-all for accept-all, whose column is 1 in row 0, too."""
        bound = self.system[:, 1:, ACCEPT, np.newaxis]
        self.tableau[:, 1:-1] -= bound * self.system[:, :1]
        self.basis[:, 0] = ACCEPT

    def _solved(self, right: FloatArray) -> FloatArray:
        """The systems with these right-hand sides, solved for their basic columns."""
        basic = self.system[self.programs[:, np.newaxis], :, self.basis].swapaxes(1, 2)
        return np.asarray(np.linalg.solve(basic, right))

    def _reduce(self, prices: FloatArray) -> None:
        """Reduced costs: what a column costs beyond the basic columns that it would replace."""
        replaced = prices[self.basis][:, np.newaxis] @ self.tableau[:, :-1]
        self.tableau[:, -1] = prices - replaced[:, 0]

    def _pivot(self, *, bland: bool) -> bool:
        """Exchange one basic column of each program that is not at its optimum yet; False if all
        of them are.
        """
        reduced = self.tableau[:, -1, :-1]
        entering = (reduced < -PIVOT_GAIN).argmax(axis=1) if bland else reduced.argmin(axis=1)
        (going,) = (reduced[self.programs, entering] < -PIVOT_GAIN).nonzero()
        if len(going) == 0:
            return False
        # Most often all programs go on: then their tableaus are changed in place.
        tableau = self.tableau
        if len(going) < len(tableau):
            tableau = tableau[going]
            entering = entering[going]
        each = self.programs[: len(going)]

        # The basic column whose value falls to 0 first leaves. Ties are frequent where two members
        # share all weight; they go to the first row, so that rounding does not decide.
        direction = tableau[each, :, entering]
        fall = direction[:, :-1]
        values = np.maximum(tableau[:, :-1, -1], 0.0)
        ratios = np.full(fall.shape, np.inf)
        np.divide(values, fall, out=ratios, where=fall > LEAST_PIVOT)
        leaving = (ratios + self.behind).argmin(axis=1)
        self.basis[going, leaving] = entering

        # A step of Gauss-Jordan: the entering column becomes a unit vector.
        row = tableau[each, leaving] / fall[each, leaving, np.newaxis]
        tableau -= direction[:, :, np.newaxis] * row[:, np.newaxis]
        tableau[each, leaving] = row
        if tableau is not self.tableau:
            self.tableau[going] = tableau
        return True

    def _weights(self) -> FloatArray:
        """The basic solutions. Where rounding left one outside, weight moves to reject-all, or to
        the lottery, which have no gap.
        """
        # Not from the tableau, where each pivot leaves its rounding: Frank-Wolfe meets a vertex
        # several times, and should find the same bits again.
        values = self._solved(self.system[:, :, -1:])[:, :, 0]
        solution = np.zeros((len(values), self.system.shape[2]))
        solution[self.programs[:, np.newaxis], self.basis] = np.where(
            values > ROUNDING, values, 0.0
        )
        weights = solution[:, : self.stack.shape[2]]
        weights /= weights.sum(axis=1, keepdims=True)
        used = (self.stack @ weights[:, :, np.newaxis])[:, :, 0]
        over = used > self.limits + ROUNDING
        if over.any() and self.lottery is not None:
            return self._nearer_to_the_lottery(weights, used)
        if over.any():
            kept = np.divide(self.limits, used, out=np.ones_like(used), where=over).min(axis=1)
            weights *= kept[:, np.newaxis]
            weights[:, REJECT] += 1.0 - kept
        return weights

    def _nearer_to_the_lottery(self, weights: FloatArray, used: FloatArray) -> FloatArray:
        """The mixtures moved towards a lottery until no row is exceeded: the largest part of each
        that stays within all limits. The lottery accepts with a probability in the middle of those
        that all rows allow.
        """
        assert self.lottery is not None
        accept = self.stack[:, :, ACCEPT]
        reject = self.stack[:, :, REJECT]
        least = 1.0 - float(self.limits[self.lottery])
        rises = accept > reject
        allowed = np.divide(self.limits - reject, accept - reject, where=rises, out=accept * 0 + 1)
        accepted = 0.5 * (least + np.maximum(np.minimum(allowed.min(axis=1), 1.0), least))
        at_lottery = reject + accepted[:, np.newaxis] * (accept - reject)
        room = np.maximum(self.limits - at_lottery, 0.0)
        over = used > self.limits + ROUNDING
        kept = np.divide(room, used - at_lottery, out=np.ones_like(used), where=over).min(axis=1)
        moved = weights * kept[:, np.newaxis]
        moved[:, ACCEPT] += (1.0 - kept) * accepted
        moved[:, REJECT] += (1.0 - kept) * (1.0 - accepted)
        return np.asarray(moved)
