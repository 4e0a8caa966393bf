"""A confidence sequence for the loss of a policy from one-sided logs: betting on the doubly robust
loss of each person.

With prices divided by the larger one, so that fa, fr <= 1, the loss of pi on a person is

    loss = base + d N,    N = 1[y = -1],   base = fr (1 - pi),   d = fa pi - fr (1 - pi),        0 <= loss <= 1

Let phi = m' + 1[accepted]/p (N - m') and Z = base + d phi. Given person and past, E[phi] = N (the
coin is fresh), so E[Z | past] is the loss theta of pi. For a bet lambda in [0, 1/2] that is fixed
before the block,

    W(theta) = prod (1 - lambda (Z - theta))

is a martingale at the true theta. It stays positive while theta >= l, because m' is clamped so that
Z <= l + R, R = 1/(2 lambda):

    d > 0:  m' = max(m, (w - r/d)/(w - 1)),    d < 0:  m' = min(m, r/(|d| (w - 1))),    r = l + R - base,  w = 1/p

(R >= 1 >= base, base + d: both are in [0, 1]). ln(1 - z) >= -z - k(z) z^2 with `curvature`, taken
at z = lambda (Z - l)+, gives sums that do not depend on theta:

    ln W(theta) >= theta b - a - (c - 2 theta e + theta^2 h),    a = sum lambda Z, b = sum lambda,  (c, e, h) = sum k lambda^2 (Z^2, Z, 1)

Ville: the true theta is in {ln W >= L} at any time with probability at most e^-L, so what lies
between the two roots of the quadratic is cut off the top of the interval. The lower end is the same
for 1 - loss. Two sides and K bets share delta: L = ln(2 K / delta). A label that has not arrived
takes the value that makes W smallest. m costs width, never validity, as long as earlier rows made
it.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from evenhand.bounds.betting import HORIZONS
from evenhand.errors import InvalidInput
from evenhand.words import BoolArray, FloatArray, Prices

ROUNDING = 1e-12
SMALLEST_VARIANCE = 1e-3


@dataclass(frozen=True, eq=False)
class LossRows:
    """One block of the log as the loss sees it: pi, w = 1/p, m, what happened, and how many
    decisions each row stands for.
    """

    policy: FloatArray
    inverse: FloatArray
    regression: FloatArray
    accepted: BoolArray
    negative: BoolArray
    open: BoolArray
    count: FloatArray


@dataclass(frozen=True, eq=False)
class LossState:
    """sums (5, side, K): a, b, c, e, h; the interval [lower, upper] of the loss; sums that serve
    the estimate and the planning alone.
    """

    sums: FloatArray
    lower: float = 0.0
    upper: float = 1.0
    total: float = 0.0
    squares: float = 0.0
    certain_squares: float = 0.0
    rounds: float = 0.0

    @property
    def contradiction(self) -> bool:
        """Whether no loss is consistent with the log: an assumption is broken."""
        return self.lower > self.upper + ROUNDING

    @property
    def estimate(self) -> float:
        """The doubly robust mean of Z, in units of the larger price."""
        return self.total / self.rounds if self.rounds else float("nan")


@dataclass(frozen=True)
class LossBound:
    """The process: prices, delta, and the numbers of rounds n_k for which the K bets are best."""

    prices: Prices
    failure_probability: float
    horizons: tuple[float, ...] = HORIZONS

    def __post_init__(self) -> None:
        if not (
            isinstance(self.prices.false_accept, float)
            and isinstance(self.prices.false_reject, float)
        ):
            raise InvalidInput(
                "the prices have one entry per person; evaluation takes two numbers."
            )
        if self.unit == 0:
            raise InvalidInput(
                "both prices are 0, so every policy costs nothing.",
                hint="give at least one price above 0.",
            )

    @property
    def unit(self) -> float:
        """The larger price: the loss is measured in it."""
        return max(float(self.prices.false_accept), float(self.prices.false_reject))

    @property
    def threshold(self) -> float:
        """L = ln(2 K / delta)."""
        return float(np.log(2 * len(self.horizons) / self.failure_probability))

    def start(self) -> LossState:
        """Nothing seen."""
        return LossState(np.zeros((5, 2, len(self.horizons))))

    def bets(self, state: LossState) -> FloatArray:
        """lambda_k = min( sqrt(2 L/(n_k V1)) min(1, V1/V), 1/2 ): V of Z so far, V1 what it would
        be if everybody were accepted.
        """
        mean = state.estimate if state.rounds else 0.5
        certain = max(
            (state.certain_squares + 2.5) / (state.rounds + 10.0) - mean**2, SMALLEST_VARIANCE
        )
        seen = max((state.squares + 2.5) / (state.rounds + 10.0) - mean**2, certain)
        wished = (
            np.sqrt(2.0 * self.threshold / (np.array(self.horizons) * certain)) * certain / seen
        )
        return np.asarray(np.minimum(wished, 0.5))

    def update(self, state: LossState, rows: LossRows) -> LossState:
        """Add a block with the bets that the state before it decides, then narrow the interval."""
        from evenhand.evaluation import _loss_kernel  # numba is heavy: only those who bet load it

        add: Callable[..., None] = _loss_kernel.add_rows
        base, slope = self._line(rows.policy)
        sums, bets = state.sums.copy(), self.bets(state)
        seen = (rows.inverse, rows.regression, rows.accepted, rows.negative, rows.open, rows.count)
        add(base, slope, *seen, state.lower, bets, sums[:, 0])
        add(1.0 - base, -slope, *seen, 1.0 - state.upper, bets, sums[:, 1])
        return self._narrowed(self._remembered(replace(state, sums=sums), rows, base, slope))

    def _line(self, policy: FloatArray) -> tuple[FloatArray, FloatArray]:
        """base and d."""
        fa, fr = (
            float(self.prices.false_accept) / self.unit,
            float(self.prices.false_reject) / self.unit,
        )
        return fr * (1.0 - policy), fa * policy - fr * (1.0 - policy)

    def _narrowed(self, state: LossState) -> LossState:
        upper = largest_consistent(state.sums[:, 0], self.threshold, state.upper)
        lower = 1.0 - largest_consistent(state.sums[:, 1], self.threshold, 1.0 - state.lower)
        return replace(state, upper=min(state.upper, upper), lower=max(state.lower, lower))

    def _remembered(
        self, state: LossState, rows: LossRows, base: FloatArray, slope: FloatArray
    ) -> LossState:
        m, w = rows.regression, rows.inverse
        known = rows.accepted & ~rows.open
        phi = m + np.where(known, w * (rows.negative - m), 0.0)
        z = base + slope * phi
        certain = base**2 + phi * ((base + slope) ** 2 - base**2)
        return replace(
            state,
            total=state.total + float(rows.count @ z),
            squares=state.squares + float(rows.count @ z**2),
            certain_squares=state.certain_squares + float(rows.count @ certain),
            rounds=state.rounds + float(rows.count.sum()),
        )


def largest_consistent(sums: FloatArray, threshold: float, top: float) -> float:
    """The top of the interval after cutting off {theta : theta b - a - (c - 2 theta e + theta^2 h)
    >= L}, for each of the K bets.

    Only a cut that reaches the top may be made: the quadratic says nothing above its larger root.
    """
    a, b, c, e, h = sums
    slope, offset = b + 2.0 * e, a + c + threshold
    disc = slope**2 - 4.0 * h * offset
    for k in np.flatnonzero((disc >= 0) & (slope > 0)).tolist():
        far = slope[k] + np.sqrt(disc[k])
        first, last = 2.0 * offset[k] / far, far / (2.0 * h[k])
        if first < top <= last:
            top = float(first) + ROUNDING
    return top
