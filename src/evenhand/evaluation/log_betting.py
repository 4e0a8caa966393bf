"""Confidence sequences from one-sided logs: for the loss of a policy, and for the gaps between its
rates.

The loss. With prices divided by the larger one, so that fa, fr <= 1, the loss of pi on a person is

    loss = base + d N,    N = 1[y = -1],   base = fr (1 - pi),   d = fa pi - fr (1 - pi)

with 0 <= loss <= 1. Let phi = m' + 1[accepted]/p (N - m') and Z = base + d phi. Given person and
past, E[phi] = N (the coin is fresh), so E[Z | past] is the loss theta of pi. For a bet lambda in
[0, 1/2] that is fixed before the block,

    W(theta) = prod (1 - lambda (Z - theta))

is a martingale at the true theta. It stays positive while theta >= l, because m' is clamped so that
Z <= l + R, R = 1/(2 lambda); with r = l + R - base and w = 1/p,

    d > 0:  m' = max(m, (w - r/d)/(w - 1)),    d < 0:  m' = min(m, r/(|d| (w - 1)))

(R >= 1 >= base, base + d: both are in [0, 1]). ln(1 - z) >= -z - k(z) z^2 with `curvature`, taken
at z = lambda (Z - l)+, gives sums that do not depend on theta:

    ln W(theta) >= theta b - a - (c - 2 theta e + theta^2 h)
    a = sum lambda Z,  b = sum lambda,  (c, e, h) = sum k lambda^2 (Z^2, Z, 1)

Ville: the true theta is in {ln W >= L} at any time with probability at most e^-L, so what lies
between the two roots of the quadratic is cut off the top of the interval. The lower end is the same
for 1 - loss. Two sides and K bets share delta: L = ln(2 K / delta). A label that has not arrived
takes the value that makes W smallest. m costs width, never validity, as long as earlier rows made
it.

The gaps. The betting bound of `evenhand.bounds` bets on h in {0, 1}; a person whom pi accepts with
probability q is two parts of a round. For a fixed policy with acceptance q = pi(x), f = E[N q] /
E[N], use in the place of a factor the mixture (the up side; the low side with exchanged signs)

    q (1 - g phi_1 (1 - f)) + (1 - q)(1 + g phi_0 f)

where phi_1, phi_0 are the clamped estimates of `betting` for h = 1 and h = 0. Both have mean N
given person and past, so the mean is 1 - g E[N (q - f)] = 1 at the truth, and both brackets are at
least 1/2: again a martingale. The logarithm is concave, hence

    ln(mixture) >= q ln(1 - g phi_1 (1 - f)) + (1 - q) ln(1 + g phi_0 f)

which is what `betting` adds up when the row enters with count q and h = 1, and again with count 1 -
q and h = 0. So nothing new is proved or computed: a log becomes cohorts with fractional counts.
Constants in the mixture are taken out first (`Candidate.spread`).
"""

from dataclasses import dataclass, replace

import numpy as np

from evenhand.bounds import BettingBound, BettingState, Cohort, EpochPlan, Forecast
from evenhand.bounds.betting import HORIZONS
from evenhand.computing import compiled
from evenhand.errors import InvalidInput
from evenhand.evaluation.decision_log import DecisionLog
from evenhand.words import BoolArray, FloatArray, IntArray, Prices

ROUNDING = 1e-12
SMALLEST_VARIANCE = 1e-3
MOST_FORESEEN = 5000
"""People of the block before, who stand for the next ones when bets are chosen."""
AT_ONCE = 20_000
"""Rows that are added at a time in NumPy."""


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

    @classmethod
    def of(cls, log: DecisionLog, at: slice, policy: FloatArray, m: FloatArray) -> "LossRows":
        """The rows `at` of the log; policy is that of all rows, m that of these."""
        return cls(
            policy[at],
            1.0 / log.acceptance[at],
            m,
            log.accept[at],
            log.label[at] == -1,
            log.open[at],
            log.count[at],
        )


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
    delta: float
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
        return float(np.log(2 * len(self.horizons) / self.delta))

    def start(self) -> LossState:
        """Nothing seen."""
        return LossState(np.zeros((5, 2, len(self.horizons))))

    def bets(self, state: LossState) -> FloatArray:
        """lambda_k = min( sqrt(2 L/(n_k V1)) min(1, V1/V), 1/2 ): V of Z so far, V1 what it would
        be if all applicants were accepted.
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
        accept, reject = (
            float(price) / self.unit
            for price in (self.prices.false_accept, self.prices.false_reject)
        )
        base = reject * (1.0 - rows.policy)
        slope = accept * rows.policy - base
        sums = state.sums.copy()
        bets = self.bets(state)
        seen = (rows.inverse, rows.regression, rows.count)
        happened = np.stack([rows.accepted, rows.negative, rows.open])
        above = np.stack([base, slope, *seen])
        below = np.stack([1.0 - base, -slope, *seen])
        add_rows(above, happened, state.lower, bets, sums[:, 0])
        add_rows(below, happened, 1.0 - state.upper, bets, sums[:, 1])
        upper = largest_consistent(sums[:, 0], self.threshold, state.upper)
        lower = 1.0 - largest_consistent(sums[:, 1], self.threshold, 1.0 - state.lower)
        # what serves the estimate and the planning alone
        known = rows.accepted & ~rows.open
        phi = rows.regression + np.where(
            known, rows.inverse * (rows.negative - rows.regression), 0.0
        )
        z = base + slope * phi
        certain = base**2 + phi * ((base + slope) ** 2 - base**2)
        return LossState(
            sums,
            lower=max(state.lower, lower),
            upper=min(state.upper, upper),
            total=state.total + float(rows.count @ z),
            squares=state.squares + float(rows.count @ z**2),
            certain_squares=state.certain_squares + float(rows.count @ certain),
            rounds=state.rounds + float(rows.count.sum()),
        )


# the loop in which every row adds to the sums of each side and bet, beside its NumPy form


def _add_rows(
    rows: FloatArray, happened: BoolArray, low: float, bets: FloatArray, sums: FloatArray
) -> None:
    for start in range(0, rows.shape[1], AT_ONCE):
        part = slice(start, start + AT_ONCE)
        at, d, w, regression, n = rows[:, part]
        known, negative, open = happened[:, part]
        bad = np.where(open, d > 0.0, negative)
        weighs = w > 1.0
        rising = weighs & (d > 0.0)
        falling = weighs & (d < 0.0)
        up = np.where(rising, d, 1.0)
        beyond = np.where(weighs, w - 1.0, 1.0)
        down = np.where(falling, d * beyond, 1.0)
        for k, bet in enumerate(bets):
            room = low + 0.5 / bet - at
            tight = rising & (d * w > room)
            raised = np.maximum(regression, np.minimum(1.0, (w - room / up) / beyond))
            lowered = np.where(falling, np.minimum(regression, -room / down), regression)
            m = np.where(tight, raised, lowered)
            phi = np.where(bad, w - m * (w - 1.0), -m * (w - 1.0))
            z = at + np.minimum(d * np.where(known, phi, m), room)
            u = np.maximum(0.0, np.minimum(0.5, bet * (z - low)))
            curve = n * bet * bet * (0.5 + u * (1 / 3 + u * (0.25 + u * (0.2 + u / 3))))
            terms = (n * bet * z, n * bet, curve * z * z, curve * z, curve)
            for row, term in enumerate(terms):  # added one after the other, as the loop does
                sums[row, k] = np.cumsum(np.concatenate([sums[row, k : k + 1], term]))[-1]


@compiled(_add_rows)
def add_rows(
    rows: FloatArray, happened: BoolArray, low: float, bets: FloatArray, sums: FloatArray
) -> None:
    """sums (5, K) += a, b, c, e, h of the side that rejects high losses, for losses of at least
    `low`; see the equations above.

    rows: (5, n), base, slope, inverse propensity, regression and count of each row; happened: (3,
    n), whether it was accepted, has a bad outcome, is still open.
    """
    for i in range(rows.shape[1]):
        base = rows[0, i]
        d = rows[1, i]
        w = rows[2, i]
        n = rows[4, i]
        accepted = happened[0, i]
        negative = happened[1, i]
        open = happened[2, i]
        for k in range(len(bets)):
            bet = bets[k]
            m = rows[3, i]
            phi = 0.0
            room = low + 0.5 / bet - base
            if w > 1.0 and d > 0.0 and d * w > room:
                m = max(m, min(1.0, (w - room / d) / (w - 1.0)))
            elif w > 1.0 and d < 0.0:
                m = min(m, -room / (d * (w - 1.0)))
            if not accepted:
                phi = m
            elif (d > 0.0) if open else negative:
                phi = w - m * (w - 1.0)
            else:
                phi = -m * (w - 1.0)
            # the clamp keeps d phi within its room; the minimum is for rounding alone
            z = base + min(d * phi, room)
            u = max(0.0, min(0.5, bet * (z - low)))
            # k(u) = (-ln(1-u) - u)/u^2 is at most this for 0 <= u <= 1/2: the rest of its series is
            # at most u^4/(6(1-u))
            curve = n * bet * bet * (0.5 + u * (1 / 3 + u * (0.25 + u * (0.2 + u / 3))))
            sums[0, k] += n * bet * z
            sums[1, k] += n * bet
            sums[2, k] += curve * z * z
            sums[3, k] += curve * z
            sums[4, k] += curve


def largest_consistent(sums: FloatArray, threshold: float, top: float) -> float:
    """The top of the interval after cutting off {theta : theta b - a - (c - 2 theta e + theta^2 h)
    >= L}, for each of the K bets.

    Only a cut that reaches the top may be made: the quadratic says nothing above its larger root.
    """
    a, b, c, e, h = sums
    slope = b + 2.0 * e
    offset = a + c + threshold
    disc = slope**2 - 4.0 * h * offset
    for k in np.flatnonzero((disc >= 0) & (slope > 0)).tolist():
        far = slope[k] + np.sqrt(disc[k])
        first = 2.0 * offset[k] / far
        last = far / (2.0 * h[k])
        if first < top <= last:
            top = float(first) + ROUNDING
    return top


def cohort_of(
    log: DecisionLog, at: slice, policy: FloatArray, group: IntArray, regression: FloatArray
) -> Cohort:
    """The rows `at` of the log, each twice: h = 1 with count pi, h = 0 with count 1 - pi. policy
    and regression are those rows'.
    """
    weight = np.concatenate([log.count[at] * policy, log.count[at] * (1.0 - policy)])
    rows = np.flatnonzero(weight > 0)
    accepts = np.repeat([True, False], len(policy))[rows]
    accepted = np.tile(log.accept[at], 2)[rows]
    label = np.tile(log.label[at], 2)[rows]
    people = weight[rows]
    return Cohort(
        accepts[np.newaxis],
        np.tile(group[at], 2)[rows],
        acceptance=np.tile(log.acceptance[at], 2)[rows],
        regression=np.tile(regression, 2)[rows],
        rejected=np.where(accepted, 0.0, people),
        positive=np.where(label == 1, people, 0.0),
        negative=np.where(label == -1, people, 0.0),
        unresolved=np.where(accepted & (label == 0), people, 0.0),
    )


@dataclass(frozen=True, eq=False)
class LoggedGaps:
    """One candidate's processes; `step` returns the process after a block, with bets fixed from the
    blocks before it.
    """

    bound: BettingBound
    state: BettingState
    last: Cohort | None = None

    @classmethod
    def start(cls, bound: BettingBound) -> "LoggedGaps":
        """Nothing seen."""
        return cls(bound, bound.start())

    def step(self, cohort: Cohort) -> "LoggedGaps":
        """Add a block; a process that has contradicted itself claims nothing any more."""
        state = self.bound.update(self.state, cohort, self.plan())
        return replace(self, state=state, last=cohort)

    def plan(self) -> EpochPlan:
        """The bets for the next block: the people of the last one stand for those to come."""
        if self.last is None:
            return self.bound.plan(self.state, None)
        every = slice(None, None, max(1, len(self.last) // MOST_FORESEEN))
        forecast = Forecast(
            self.last.accepts[:, every],
            self.last.group[every],
            weight=self.last.rounds[every],
            acceptance=self.last.acceptance[every],
            regression=self.last.regression[every],
        )
        return self.bound.plan(self.state, forecast)

    @property
    def estimates(self) -> FloatArray:
        """(R, G): self-normalised doubly robust rates sum pi phi / sum phi of acceptance; NaN where
        the denominator is not positive.
        """
        hits = self.state.hits[0]
        mass = self.state.mass[0]
        inside = np.clip(hits, 0.0, np.maximum(mass, 0.0))
        return np.asarray(np.divide(inside, mass, out=np.full(mass.shape, np.nan), where=mass > 0))
