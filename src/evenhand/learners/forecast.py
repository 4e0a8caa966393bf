"""What labels will bring: how wide the intervals will be, how much weight that certifies, and what it costs.

Let a rule h accept a share f_j of the people of group j who count for a rate, and let N say who counts. A round in which x is accepted
with probability p moves the process of h for the gap between groups j and i by

    X = c_j 1[a = j] phi (h - f_j) - c_i 1[a = i] phi (h - f_i),    phi = m + 1[accepted]/p (N - m),    c_j = 1 / P[a = j, N]

If the regression m is right, its second and third absolute moments are sums over people (w their shares)

    V(p) = sum w c_a^2 (h - f_a)^2 (m^2 + m (1 - m)/p),    K(p) = sum w c_a^3 |h - f_a|^3 E|phi|^3.

Rounds bet mu / V(p) each. With I = sum of rounds / V(p), the information, and J = sum of rounds K(p) / V(p)^3, the logarithm of
the wealth against a gap that is off by U is about mu I U - mu^2 I / 2 - mu^3 J / 3. It reaches the threshold L of the bound at

    U = L / (mu I) + mu / 2 + mu^2 J / (3 I),    mu = min( sqrt(2 L / I), the boldest bet ),

which is sqrt(2 L V / n) + (2/3) L K / (V n) after many rounds with the same p. I and J add over rounds, so a forecast starts from
the width that a process has now (a rule nominated late starts from nothing) and goes on epoch by epoch: widths, then the cheapest mixture
that these widths allow, then the labels that this mixture and the audit coin will bring. None of it enters a certificate.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from math import inf, isfinite

import numpy as np

from evenhand.fairness.rates import Rate
from evenhand.learners.certified_set import cheapest_mixture
from evenhand.words import FloatArray, IntArray

SHARES, DECAYS = (0.01, 0.03, 0.1, 0.3, 1.0), (1.0, 0.5)
"""The parts of the uncertified weight that the audit coin may be given now, and how fast they may fall: share (start / t)^decay at round t."""
ENOUGH_GAIN = 0.9
"""Audits more are made only where they bring more than the rest of the gain: what is forecast is rough, what audits cost is sure."""
HALF = 0.5
"""A rate counts as certified in time if this part of the learned policy's full weight is certified within the horizon."""
BOLDEST, FIRST_BET = 0.5, 1000.0
"""A stake is at most one half, and the boldest bet is the best one for so many rounds."""
MARGIN = 0.01
"""Rates and regressions are kept this far from 0 (and rates from 1), so that no variance vanishes."""
LEAST_ACCEPTANCE, LEAST_EFFICIENCY = 1e-6, 0.1
SHORTEST, GROWTH = 50, 1.5
"""Epochs end after so many rounds at least, and after this multiple of the rounds before them."""
ENOUGH = 1e9
"""Labelled people beyond which nobody looks."""
SCALES = np.geomspace(1.0, 0.02, 9)
"""Widths, in units of the present ones, at which rules that may ever be mixed are looked for."""


@dataclass(frozen=True, eq=False)
class Trajectory:
    """What is expected of the rounds ahead under one audit share, epoch by epoch.

    rounds: where each epoch ends; start: where the first one begins; weight, audit, cost: of learned rules, of accept-all, and per
    person, in each epoch; information: (gaps, members) at the end; final: the mixture that it allows.
    """

    share: float
    start: float
    rounds: FloatArray
    weight: FloatArray
    audit: FloatArray
    cost: FloatArray
    information: FloatArray
    final: FloatArray

    def cost_until(self, round: float) -> float:
        """The expected total cost of the rounds from `start` on."""
        total = np.cumsum(np.diff(self.rounds, prepend=self.start) * self.cost)
        return float(np.interp(round, np.r_[self.start, self.rounds], np.r_[0.0, total]))

    def reaches(self, weight: float) -> float:
        """The round from which on at least this weight is expected; inf if that is not within the horizon."""
        below = np.flatnonzero(self.weight < weight - 1e-9)
        if len(below) == 0:
            return self.start
        return inf if below[-1] == len(self.weight) - 1 else float(self.rounds[below[-1]])


@dataclass(frozen=True)
class RateForecast:
    """When a rate's limit lets half of the learned weight be deployed. Rounds and people count from the first one.

    needed: labelled people (accepted whatever their features) after which the rate allows half of the weight; seen: what the rounds up
    to the horizon tell, in such people; half: the round from which half of the weight is certified under all rates, None if that is not
    within the horizon.
    """

    rate: str
    limit: float
    needed: float
    seen: float
    half: float | None
    horizon: float
    labels: bool = True

    @property
    def in_time(self) -> bool:
        """Whether this rate is expected to allow half of the weight within the horizon."""
        return self.half is not None or self.seen >= self.needed

    def describe(self) -> str:
        """One sentence."""
        people = "labelled people" if self.labels else "people"
        if self.half is not None:
            return f"{self.rate} at {self.limit:g}: half of the weight is learned after about {rounded(self.half)} rounds."
        if not isfinite(self.needed) or self.needed >= ENOUGH:
            return f"{self.rate} at {self.limit:g}: no number of {people} would certify half of the weight here."
        seen = f"you will see {rounded(self.seen)} by round {self.horizon:,.0f}"
        return f"{self.rate} at {self.limit:g} needs about {rounded(self.needed)} {people} here; {seen}."


def rounded(number: float) -> str:
    """Two digits are as much as a forecast knows: 52,000 for 51,634."""
    if number < 1:
        return "0"
    unit = 10.0 ** max(np.floor(np.log10(number)) - 1, 0)
    return f"{round(number / unit) * unit:,.0f}"


@dataclass(frozen=True, eq=False)
class Prospect:
    """Who will come, which rules may be mixed, what each costs, and how well its gaps are known now.

    weight, group, negative (n,): people, with their share, the code of their group (-1 outside) and m = P[y = -1 | x]. accepts (M, n): the
    members, accept-all and reject-all first; cost (M,): of each per person, by which the learner chooses; counted (M,): the same as far as
    it is sure, by which audits are judged. lower, upper, threshold (gaps, M): present intervals and the
    L of their processes, for each rate and pair (earlier, later) of groups. floor: of the audit coin, at round t. audits_only: the bound
    looks at audited people alone. played: (rounds, acceptance, audit coin, whose processes have seen them (M,)) of each past epoch.
    """

    weight: FloatArray
    group: IntArray
    negative: FloatArray
    accepts: FloatArray
    cost: FloatArray
    counted: FloatArray
    rates: tuple[Rate, ...]
    groups: int
    limit: float
    lower: FloatArray
    upper: FloatArray
    threshold: FloatArray
    floor: Callable[[float], float]
    audits_only: bool = False
    played: tuple[tuple[float, FloatArray, float, FloatArray], ...] = ()

    # what is known of the gaps

    @cached_property
    def _counted(self) -> list[tuple[FloatArray, bool, FloatArray, FloatArray]]:
        """For each rate: P[N | x], whether labels are needed, c (G,) and f (M, G)."""
        found = []
        for rate in self.rates:
            negatives, positives = rate.in_denominator(np.array([-1, 1])).astype(np.float64)
            m = np.clip(negatives * self.negative + positives * (1.0 - self.negative), MARGIN, 1.0)
            mass = np.stack([np.where(self.group == j, self.weight * m, 0.0) for j in range(self.groups)], axis=1)
            c = 1.0 / np.maximum(mass.sum(axis=0), 1e-9)
            found.append((m, not (negatives and positives), c, np.clip((self.accepts @ mass) * c, 0.0, 1.0)))
        return found

    @cached_property
    def gap(self) -> FloatArray:
        """(gaps, M): what the gaps are expected to be: as the regression has it, but within the middle half of the present interval."""
        rows = [
            rate.sign * (f[:, later] - f[:, earlier])
            for rate, (_, _, _, f) in zip(self.rates, self._counted, strict=True)
            for earlier, later in combinations(range(self.groups), 2)
        ]
        middle, quarter = 0.5 * (self.lower + self.upper), 0.25 * (self.upper - self.lower)
        return np.clip(np.array(rows), middle - quarter, middle + quarter)

    def moments(self, acceptance: FloatArray, audit: float) -> tuple[FloatArray, FloatArray]:
        """V and K (gaps, M) of a round in which row i is accepted with probability acceptance_i, `audit` of it by the audit coin."""
        p = np.clip(acceptance, LEAST_ACCEPTANCE, 1.0)
        second, third = [], []
        for m, labels, c, f in self._counted:
            if not labels:
                squares = cubes = np.ones_like(p)
            elif self.audits_only:
                coin = max(audit, LEAST_ACCEPTANCE)
                squares, cubes = m / coin, m / coin**2
            else:
                squares = m * m + m * (1.0 - m) / p
                seen = m * (m + (1.0 - m) / p) ** 3 + (1.0 - m) * (m / p - m) ** 3
                cubes = (1.0 - p) * m**3 + p * seen
            parts = []
            for j in range(self.groups):
                here = np.where(self.group == j, self.weight, 0.0)
                rows = np.stack([here * squares, here * cubes], axis=1)
                hit, rate = self.accepts @ rows, np.clip(f[:, j], MARGIN, 1.0 - MARGIN)
                missed = rows.sum(axis=0) - hit
                parts.append(
                    (
                        c[j] ** 2 * ((1.0 - rate) ** 2 * hit[:, 0] + rate**2 * missed[:, 0]),
                        c[j] ** 3 * ((1.0 - rate) ** 3 * hit[:, 1] + rate**3 * missed[:, 1]),
                    )
                )
            for i, j in combinations(range(self.groups), 2):
                second.append(parts[i][0] + parts[j][0])
                third.append(parts[i][1] + parts[j][1])
        return np.array(second), np.array(third)

    @cached_property
    def _all_accepted(self) -> tuple[FloatArray, FloatArray]:
        return self.moments(np.ones(len(self.weight)), 1.0)

    @cached_property
    def _boldest(self) -> FloatArray:
        """(gaps, M): the largest mu. A stake is at most BOLDEST, and the first bet is the best one for FIRST_BET rounds."""
        V = self._all_accepted[0]
        largest = np.repeat([c.max() for _, _, c, _ in self._counted], self.groups * (self.groups - 1) // 2)
        return np.minimum(BOLDEST * V / largest[:, np.newaxis], np.sqrt(2.0 * self.threshold * V / FIRST_BET))

    def widths(self, information: FloatArray, skewness: FloatArray) -> FloatArray:
        """U (gaps, M), at most 2; 0 for the constants and whatever else is known exactly."""
        known = np.maximum(information, 1e-12)
        mu = np.minimum(np.sqrt(2.0 * self.threshold / known), self._boldest)
        mu = np.maximum(mu, 1e-12)
        U = self.threshold / (mu * known) + mu / 2.0 + mu**2 * skewness / (3.0 * known)
        return np.where(self._exact, 0.0, np.minimum(U, 2.0))

    @cached_property
    def _exact(self) -> FloatArray:
        return np.asarray(self.upper - self.lower < 1e-9)

    @cached_property
    def present(self) -> tuple[FloatArray, FloatArray]:
        """I and J that explain the present half-widths, as if all people so far had been accepted: bisection, as U falls with I."""
        V, K = self._all_accepted
        ratio, half = K / V**2, 0.5 * (self.upper - self.lower)
        low, high = np.full(half.shape, -12.0), np.full(half.shape, 14.0)
        for _ in range(48):
            middle = 0.5 * (low + high)
            wide = self.widths(10.0**middle, ratio * 10.0**middle) > half
            low, high = np.where(wide, middle, low), np.where(wide, high, middle)
        found = np.where(half >= 1.0, 0.0, 10.0**high)
        return found, ratio * found

    @cached_property
    def efficiency(self) -> FloatArray:
        """(gaps, M): which part of the information that past epochs should have brought they did bring.

        A bound may be wider than its forecast, and the regression less right than it seems; a process that has seen nothing yet is
        taken for the median one.
        """
        V = self._all_accepted[0]
        expected = np.zeros_like(V)
        for rounds, acceptance, audit, saw in self.played:
            expected += saw * rounds / self.moments(acceptance, audit)[0]
        seen = (expected > 0) & (self.present[0] > 0) & ~self._exact
        part = np.divide(self.present[0], expected, out=np.ones_like(V), where=seen)
        part = np.clip(part, LEAST_EFFICIENCY, 1.0)
        usual = float(np.median(part[seen])) if seen.any() else 1.0
        return np.where(seen, part, usual)

    # what it allows

    def allowed(self, widths: FloatArray, old: FloatArray | float = 0.0, rate: int | None = None) -> FloatArray:
        """(M,): the cheapest mixture that these widths allow, under all rates or one of them.

        old: the part of the information that is there now. An interval lies around the middle of the present one at first, and around
        the expected gap once later rounds tell more than those before.
        """
        pairs = self.groups * (self.groups - 1) // 2
        rows = slice(None) if rate is None else slice(rate * pairs, (rate + 1) * pairs)
        middle = self.gap + (0.5 * (self.lower + self.upper) - self.gap) * old
        upper, lower = np.minimum(middle + widths, 1.0)[rows], np.maximum(middle - widths, -1.0)[rows]
        return cheapest_mixture(self.cost, np.concatenate([upper, -lower]), self.limit)

    def narrowed(self) -> "Prospect":
        """The same with those members alone that the cheapest mixtures consist of, for widths from the present ones down to nothing."""
        if self.accepts.shape[0] <= 12:
            return self
        V, K = self._all_accepted
        I, J = self.present
        base = np.where(I > 0, self.widths(I, J), np.sqrt(2.0 * self.threshold * V / FIRST_BET))
        used = np.zeros(len(self.cost), dtype=bool)
        used[:2] = True
        for scale in (*SCALES, 0.0):
            used |= self.allowed(np.where(self._exact, 0.0, base * scale), scale**2) > 0
        columns = {name: getattr(self, name)[:, used] for name in ("lower", "upper", "threshold")}
        played = tuple((rounds, p, audit, saw[used]) for rounds, p, audit, saw in self.played)
        return replace(self, accepts=self.accepts[used], cost=self.cost[used], counted=self.counted[used], played=played, **columns)

    @cached_property
    def full(self) -> float:
        """The learned weight of the cheapest mixture once the gaps are known."""
        return float(self.allowed(np.zeros_like(self.gap))[2:].sum())

    def placed(self, mixture: FloatArray, share: float, floor: float) -> FloatArray:
        """The mixture with the floor of the audit coin, and at least `share` of the uncertified weight on accept-all."""
        weights = (1.0 - floor) * mixture
        constants = weights[0] + weights[1]
        weights[0] = floor + max(weights[0], share * constants)
        weights[1] = max(floor + constants - weights[0], 0.0)
        return weights

    def trajectory(self, share: float, start: float, horizon: float, decay: float = 1.0) -> Trajectory:
        """The epochs from `start` to `horizon`; round t gives the audit coin share (start / t)^decay of the uncertified weight."""
        I, J = self.present
        t, rounds, learned, audit, costs = start, [], [], [], []
        known = I
        mixture = self.allowed(self.widths(I, J), 1.0)
        while t < horizon:
            length = min(max(SHORTEST, int(t * (GROWTH - 1.0))), horizon - t)
            weights = self.placed(mixture, share * (start / t) ** decay, self.floor(t))
            V, K = self.moments(weights @ self.accepts, float(weights[0]))
            told = length * self.efficiency / V
            I, J, t = I + told, J + told * K / V**2, t + length
            rounds.append(t)
            learned.append(float(weights[2:].sum()))
            audit.append(float(weights[0]))
            costs.append(float(weights @ self.counted))
            mixture = self.allowed(self.widths(I, J), known / np.maximum(I, 1e-300))
        columns = (np.array(column) for column in (rounds, learned, audit, costs))
        return Trajectory(share, start, *columns, I, mixture)

    def best(self, start: float, horizon: float) -> Trajectory:
        """The smallest share that brings ENOUGH_GAIN of what the cheapest one saves over no share at all.

        The horizon is a plan and not a fact, so that the cost is the mean of those up to it and up to a third of it.
        """
        found = [self.trajectory(0.0, start, horizon)]
        if self.counted[0] > self.counted[1]:  # else accepting is no sacrifice, and all the uncertified weight is there already
            found += [self.trajectory(share, start, horizon, decay) for share in SHARES for decay in DECAYS]
        costs = np.array([sum(one.cost_until(end) / end for end in (horizon / 3, horizon) if end > start) for one in found])
        return found[int(np.argmax(costs <= costs.min() + (1.0 - ENOUGH_GAIN) * (costs[0] - costs.min())))]

    def forecasts(self, course: Trajectory, horizon: float) -> tuple[RateForecast, ...]:
        """What to say of each rate if the rounds ahead go as in `course`."""
        half = course.reaches(HALF * self.full)
        pairs = self.groups * (self.groups - 1) // 2
        V = self._all_accepted[0]
        learned = course.final[2:] if course.final[2:].sum() > 0 else self.allowed(np.zeros_like(self.gap))[2:]
        found = []
        for r, rate in enumerate(self.rates):
            rows = slice(r * pairs, (r + 1) * pairs)
            told = (V * course.information)[rows, 2:].min(axis=0)
            seen = float(told @ learned / learned.sum()) if learned.sum() > 0 else 0.0
            labels = self._counted[r][1]
            found.append(
                RateForecast(
                    rate.name, self.limit, self.needed(r), seen, half if isfinite(half) else None, horizon, labels
                )
            )
        return tuple(found)

    def needed(self, rate: int) -> float:
        """Labelled people after which this rate alone allows half of the weight that it allows once the gaps are known; inf if none do."""
        full = float(self.allowed(np.zeros_like(self.gap), rate=rate)[2:].sum())
        V, K = self._all_accepted

        def enough(people: float) -> bool:
            widths = self.widths(people / V, people * K / V**3)
            return float(self.allowed(widths, rate=rate)[2:].sum()) >= HALF * full

        if full == 0.0 or not enough(ENOUGH):
            return inf
        low, high = 1.0, ENOUGH
        while high / low > 1.02:
            middle = float(np.sqrt(low * high))
            low, high = (low, middle) if enough(middle) else (middle, high)
        return high
