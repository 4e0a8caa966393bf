"""What labels will bring: the widths of intervals, the weight that they certify, and the cost.

Let a rule h accept a share f_j of those people of group j who count for a rate, and let N say who
counts. A round in which x is accepted with probability p moves the process of h for the gap between
groups j and i by

    X = c_j 1[a = j] phi (h - f_j) - c_i 1[a = i] phi (h - f_i),
    phi = m + 1[accepted]/p (N - m),    c_j = 1 / P[a = j, N].

If the regression m is right, the second and third absolute moments of X are sums over people, w
their shares:

    V(p) = sum w c_a^2 (h - f_a)^2 (m^2 + m (1 - m)/p),    K(p) = sum w c_a^3 |h - f_a|^3 E|phi|^3.

A round bets mu / V(p). With the information I = sum of 1 / V(p) over rounds, and J = sum of K(p) /
V(p)^3, the logarithm of the wealth against a gap that is off by U is about mu I U - mu^2 I / 2 -
mu^3 J / 3. It reaches the threshold L of the bound at

    U = L / (mu I) + mu / 2 + mu^2 J / (3 I),    mu = min( sqrt(2 L / I), the boldest bet ),

which is sqrt(2 L V / n) + (2/3) L K / (V n) after n rounds with one p, if n is large. I and J add
over rounds. So a forecast starts from the width that a process has now (a rule that was nominated
late starts from nothing) and goes on epoch by epoch: widths, the cheapest mixture that they allow,
and the labels that this mixture and the audit coin will bring. Nothing here enters a certificate.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, product
from math import inf, isfinite

import numpy as np

from evenhand.algorithms.certified.simplex import MixtureProgram
from evenhand.fairness.rates import Rate
from evenhand.words import BoolArray, FloatArray, IntArray

SHARES = (0.01, 0.03, 0.1, 0.3, 1.0)
DECAYS = (1.0, 0.5)
"""The parts of the uncertified weight that the audit coin may be given at first, and the powers
of 1/t by which they may fall."""
WORTHWHILE = 0.9
"""The smallest part is taken that brings this part of the largest gain: what audits bring is
forecast, what they cost is sure."""
LITTLE = 0.02
"""With less uncertified weight than this there is nothing to audit with."""
HALF = 0.5
"""The limit is certified in time if this part of the learned policy's full weight is certified
within the horizon."""
BOLDEST = 0.5
FIRST_BET = 1000.0
"""A stake is at most one half, and the boldest bet is the best one for so many rounds."""
MARGIN = 0.01
LEAST_ACCEPTANCE = 1e-6
LEAST_EFFICIENCY = 0.1
"""Rates and regressions are kept MARGIN away from 0 (and rates from 1), so that no variance
vanishes. Acceptance and efficiency have least values, too."""
SHORTEST = 50
GROWTH = 1.25
"""An epoch has at least so many rounds, and ends after this multiple of the rounds before it."""
SCALES = (*np.geomspace(1.0, 0.02, 9), 0.0)
"""Widths, in units of the present ones, at which members are looked for that may ever be mixed."""
MOST_PEOPLE = 1e9
"""Who needs more labelled people than this needs too many."""

Evidence = tuple[FloatArray, FloatArray]
"""I and J, each (gaps, M)."""


def epoch_length(rounds: float) -> int:
    """Rounds of the epoch that begins after so many rounds."""
    return max(SHORTEST, int(rounds * (GROWTH - 1.0)))


@dataclass(frozen=True, eq=False)
class Trajectory:
    """What is expected of the rounds ahead, epoch by epoch.

    audit_part: of the uncertified weight, what the audit coin has in the first epoch, which begins
    after `start` rounds. rounds: where each epoch ends; weight, cost: the weight of learned rules,
    and the cost per person. information (gaps, M): at the end; final (M,): the mixture that it
    allows.
    """

    audit_part: float
    start: float
    rounds: FloatArray
    weight: FloatArray
    cost: FloatArray
    information: FloatArray
    final: FloatArray

    def cost_until(self, round: float) -> float:
        """The expected cost of the rounds from `start` on, all together."""
        total = np.cumsum(np.diff(self.rounds, prepend=self.start) * self.cost)
        return float(np.interp(round, np.r_[self.start, self.rounds], np.r_[0.0, total]))

    def reaches(self, weight: float) -> float:
        """The round from which on learned rules have at least this weight; inf if that is not
        within the horizon."""
        below = np.flatnonzero(self.weight < weight - 1e-9)
        if len(below) == 0:
            return self.start
        return inf if below[-1] == len(self.weight) - 1 else float(self.rounds[below[-1]])


@dataclass(frozen=True)
class RateForecast:
    """How far a rate's evidence will come. Rounds and people count from the first one.

    needed: labelled people, accepted whatever their features, with whom this rate would allow half
    of the learned weight; seen: what all rounds up to the horizon tell about it, in such people.
    half: the round from which on half of the weight is certified under all rates; None if that is
    not within the horizon. round: where the forecast was made. labels: whether the rate needs
    labels at all.
    """

    rate: str
    limit: float
    needed: float
    seen: float
    half: float | None
    round: float
    horizon: float
    labels: bool = True

    @property
    def in_time(self) -> bool:
        """Whether this rate is expected to allow half of the weight within the horizon."""
        return self.half is not None or self.seen >= self.needed

    def describe(self) -> str:
        """One sentence."""
        people = "labelled people" if self.labels else "people"
        limit = f"{self.rate[0].upper()}{self.rate[1:]} at {self.limit:g}"
        if self.needed > MOST_PEOPLE:
            return f"{limit}: no number of {people} would do here."
        need = f"{limit} needs about {_two_digits(self.needed)} {people} here"
        return f"{need}; you will see {_two_digits(self.seen)} by round {self.horizon:,.0f}."


def sentences(forecasts: Sequence[RateForecast]) -> tuple[str, ...]:
    """When half of the weight will be learned, or else what each rate lacks that will not be
    certified in time."""
    if not forecasts:
        return ()
    half = forecasts[0].half
    if half is not None and half <= forecasts[0].round:
        return ("Half of the weight is learned by now.",)
    if half is not None:
        return (f"Half of the weight is learned after about {_two_digits(half)} rounds.",)
    lacking = [one for one in forecasts if not one.in_time]
    return tuple(one.describe() for one in lacking or forecasts)


def _two_digits(number: float) -> str:
    """As much as a forecast knows: "52,000" for 51,634."""
    if number < 1.0:
        return "0"
    unit = 10.0 ** max(np.floor(np.log10(number)) - 1.0, 0.0)
    return f"{round(number / unit) * unit:,.0f}"


@dataclass(frozen=True, eq=False)
class Prospect:
    """Who will come, which rules may be mixed, what each costs, and how well its gaps are known.

    weight, group, negative (n,): people, with their share, the code of their group (-1 outside) and
    m = P[y = -1 | x]. accepts (M, n): members, accept-all and reject-all first. cost (M,): of each,
    per person, as the learner estimates it and chooses by it; sure_cost (M,): the same without what
    may be chance, by which audits are judged. lower, upper, threshold (gaps, M): the present
    intervals and the L of their processes, for each rate and pair (earlier, later) of groups.
    floor: that of the audit coin at round t. accepted (M,), most: the accepted share of each
    member, and the cap; None without one. played: of each past epoch its rounds and acceptance
    (n,), and which processes saw it.
    """

    weight: FloatArray
    group: IntArray
    negative: FloatArray
    accepts: FloatArray
    cost: FloatArray
    sure_cost: FloatArray
    rates: tuple[Rate, ...]
    groups: int
    limit: float
    lower: FloatArray
    upper: FloatArray
    threshold: FloatArray
    floor: Callable[[float], float]
    accepted: FloatArray | None = None
    most: float = 1.0
    played: tuple[tuple[float, FloatArray, BoolArray], ...] = ()

    # widths

    @cached_property
    def _pairs(self) -> list[tuple[int, int]]:
        """(earlier, later) for each pair of groups."""
        return list(combinations(range(self.groups), 2))

    def _of_rate(self, values: FloatArray, rate: int) -> FloatArray:
        """(..., pairs, M): those of (..., gaps, M) that are one rate's."""
        shape = (*values.shape[:-2], len(self.rates), len(self._pairs), values.shape[-1])
        return values.reshape(shape)[..., rate, :, :]

    @cached_property
    def _by_group(self) -> FloatArray:
        """(n, G): the weights of one group's people in each column."""
        inside = self.group[:, np.newaxis] == np.arange(self.groups)
        return np.where(inside, self.weight[:, np.newaxis], 0.0)

    @cached_property
    def _counting(self) -> list[tuple[FloatArray, bool, FloatArray, FloatArray]]:
        """For each rate: P[N | x], whether N depends on the label, c (G,) and f (M, G)."""
        rates = []
        for rate in self.rates:
            negatives, positives = rate.in_denominator(np.array([-1, 1])).astype(np.float64)
            m = np.clip(negatives * self.negative + positives * (1.0 - self.negative), MARGIN, 1.0)
            mass = self._by_group * m[:, np.newaxis]
            c = 1.0 / np.maximum(mass.sum(axis=0), 1e-9)
            f = np.clip((self.accepts @ mass) * c, 0.0, 1.0)
            rates.append((m, not (negatives and positives), c, f))
        return rates

    def moments(self, acceptance: FloatArray) -> tuple[FloatArray, FloatArray]:
        """V and K (..., gaps, M) of a round in which row i is accepted with probability
        acceptance (..., i).
        """
        p = np.clip(acceptance, LEAST_ACCEPTANCE, 1.0)
        second: list[FloatArray] = []
        third: list[FloatArray] = []
        for m, labels, c, f in self._counting:
            if not labels:  # phi = 1
                squares = cubes = np.ones_like(p)
            else:
                squares = m * m + m * (1.0 - m) / p
                accepted = m * (m + (1.0 - m) / p) ** 3 + (1.0 - m) * (m / p - m) ** 3
                cubes = (1.0 - p) * m**3 + p * accepted
            rate = np.clip(f, MARGIN, 1.0 - MARGIN)
            for power, moment, of_gap in ((2, squares, second), (3, cubes, third)):
                rows = self._by_group * moment[..., np.newaxis]
                accepted = self.accepts @ rows
                rejected = rows.sum(axis=-2, keepdims=True) - accepted
                of_group = c**power * ((1.0 - rate) ** power * accepted + rate**power * rejected)
                of_gap += [of_group[..., i] + of_group[..., j] for i, j in self._pairs]
        return np.stack(second, axis=-2), np.stack(third, axis=-2)

    @cached_property
    def _labelled(self) -> tuple[FloatArray, FloatArray]:
        """V and K of a round in which all are accepted."""
        return self.moments(np.ones(len(self.weight)))

    @cached_property
    def _exact(self) -> BoolArray:
        """(gaps, M): gaps that need no evidence, those of the constants first of all."""
        return np.asarray(self.upper - self.lower < 1e-9)

    @cached_property
    def _boldest(self) -> FloatArray:
        """(gaps, M): the largest mu."""
        V = self._labelled[0]
        largest = np.repeat([c.max() for _, _, c, _ in self._counting], len(self._pairs))
        first_bet = np.sqrt(2.0 * self.threshold * V / FIRST_BET)
        return np.asarray(np.minimum(BOLDEST * V / largest[:, np.newaxis], first_bet))

    def widths(self, information: FloatArray, skewness: FloatArray) -> FloatArray:
        """U (gaps, M) from I and J, at most 2; 0 where no evidence is needed."""
        information = np.maximum(information, 1e-12)
        mu = np.minimum(np.sqrt(2.0 * self.threshold / information), self._boldest)
        mu = np.maximum(mu, 1e-12)
        U = self.threshold / (mu * information) + mu / 2.0 + mu**2 * skewness / (3.0 * information)
        return np.where(self._exact, 0.0, np.minimum(U, 2.0))

    @cached_property
    def present(self) -> tuple[FloatArray, FloatArray]:
        """I and J (gaps, M) that explain the present half-widths if all were accepted: by
        bisection, because U falls with I."""
        V, K = self._labelled
        ratio = K / V**2
        half = 0.5 * (self.upper - self.lower)
        low = np.full(half.shape, -12.0)
        high = np.full(half.shape, 14.0)
        for _ in range(40):
            middle = 0.5 * (low + high)
            wide = self.widths(10.0**middle, ratio * 10.0**middle) > half
            low = np.where(wide, middle, low)
            high = np.where(wide, high, middle)
        information = np.where(half < 1.0, 10.0**high, 0.0)
        return information, ratio * information

    @cached_property
    def efficiency(self) -> FloatArray:
        """(gaps, M): the information that past epochs brought, over what they should have brought.

        A bound may be wider than the formula, and the regression less right than it seems. A
        process that has seen nothing yet is taken for the median one.
        """
        expected = np.zeros_like(self.gap)
        for rounds, acceptance, saw in self.played:
            expected += saw * rounds / self.moments(acceptance)[0]
        seen = (expected > 0) & (self.present[0] > 0) & ~self._exact
        part = np.divide(self.present[0], expected, out=np.ones_like(expected), where=seen)
        part = np.clip(part, LEAST_EFFICIENCY, 1.0)
        return np.where(seen, part, np.median(part[seen]) if seen.any() else 1.0)

    # what they allow

    @cached_property
    def gap(self) -> FloatArray:
        """(gaps, M): what the regression expects, kept in the middle half of the interval."""
        foretold = [
            rate.sign * (f[:, later] - f[:, earlier])
            for rate, (_, _, _, f) in zip(self.rates, self._counting, strict=True)
            for earlier, later in self._pairs
        ]
        middle = 0.5 * (self.lower + self.upper)
        quarter = 0.25 * (self.upper - self.lower)
        return np.clip(np.array(foretold), middle - quarter, middle + quarter)

    def _middle(self, old: FloatArray | float) -> FloatArray:
        """(..., gaps, M): where intervals lie if `old` of the information is there already: around
        the middle of the present one at first, and around the expected gap once later rounds have
        shown more."""
        return np.asarray(self.gap + (0.5 * (self.lower + self.upper) - self.gap) * old)

    def intervals(
        self, information: FloatArray, skewness: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """lower, upper (gaps, M) once I and J have grown to these."""
        middle = self._middle(self.present[0] / np.maximum(information, 1e-300))
        widths = self.widths(information, skewness)
        return np.maximum(middle - widths, -1.0), np.minimum(middle + widths, 1.0)

    def allowed(
        self, widths: FloatArray, old: FloatArray | float = 0.0, rate: int | None = None
    ) -> FloatArray:
        """(..., M): the cheapest mixture that widths (..., gaps, M) allow, under all rates or one.

        old: the part of the information that is there already.
        """
        middle = self._middle(old)
        ends = [np.minimum(middle + widths, 1.0), np.minimum(widths - middle, 1.0)]
        if rate is not None:
            ends = [self._of_rate(end, rate) for end in ends]
        constraints = np.concatenate(ends, axis=-2)
        if self.accepted is None:
            return MixtureProgram(constraints, self.limit).cheapest(self.cost)
        accepted = np.broadcast_to(self.accepted, (*constraints.shape[:-2], 1, len(self.accepted)))
        limits = np.append(np.full(constraints.shape[-2], self.limit), self.most)
        program = MixtureProgram(np.concatenate([constraints, accepted], axis=-2), limits)
        return program.cheapest(self.cost)

    @cached_property
    def _known(self) -> FloatArray:
        """(M,): the cheapest mixture once the gaps are known."""
        return self.allowed(np.zeros_like(self.gap))

    @property
    def full(self) -> float:
        """The weight of learned rules then."""
        return float(self._known[2:].sum())

    def narrowed(self) -> "Prospect":
        """The same with those members alone of which mixtures may consist while the widths fall
        from the present ones to nothing."""
        information, skewness = self.present
        first = np.sqrt(2.0 * self.threshold * self._labelled[0] / FIRST_BET)
        base = np.where(information > 0, self.widths(information, skewness), first)
        scale = np.array(SCALES)[:, np.newaxis, np.newaxis]
        mixtures = self.allowed(np.where(self._exact, 0.0, scale * base), scale**2)
        used = np.asarray((mixtures > 0).any(axis=0))
        used[:2] = True
        played = tuple((rounds, p, saw[used]) for rounds, p, saw in self.played)
        members = {name: getattr(self, name)[used] for name in ("accepts", "cost", "sure_cost")}
        if self.accepted is not None:
            members["accepted"] = self.accepted[used]
        gaps = {name: getattr(self, name)[:, used] for name in ("lower", "upper", "threshold")}
        return replace(self, played=played, **members, **gaps)

    # the rounds ahead

    def trajectory(
        self,
        audit_part: float,
        start: float,
        horizon: float,
        decay: float = 1.0,
        evidence: Evidence | None = None,
    ) -> Trajectory:
        """Epochs from `start` to `horizon` with a given course of the audit coin.

        At round t it has audit_part (start / t)^decay of the uncertified weight. evidence: I and J
        at `start`, those of the present intervals by default.
        """

        def falling(t: float, _: Evidence) -> FloatArray:
            return np.array([audit_part * (start / t) ** decay])

        return self._foreseen(falling, start, horizon, evidence)[0]

    def best(self, start: float, horizon: float, evidence: Evidence | None = None) -> Trajectory:
        """The trajectory of the smallest audit_part that brings WORTHWHILE of the largest gain over
        none.

        A horizon is a plan and not a fact: the cost is the mean of those per person up to the
        horizon and up to a third of it.
        """
        floor = self.floor(start)
        courses = [(0.0, 1.0)]
        uncertified = (1.0 - floor) * float(self._mixed(*(evidence or self.present))[..., :2].sum())
        # else it is accepted anyway, or there is none
        if self.cost[0] > self.cost[1] and uncertified > LITTLE:
            courses += product(SHARES, DECAYS)
        part, decay = np.array(courses).T
        ahead = self._foreseen(lambda t, _: part * (start / t) ** decay, start, horizon, evidence)
        ends = [end for end in (horizon / 3.0, horizon) if end > start]
        costs = np.array([sum(one.cost_until(end) / end for end in ends) for one in ahead])
        most = costs.min() + (1.0 - WORTHWHILE) * (costs[0] - costs.min())
        return ahead[int(np.argmax(costs <= most))]

    def course(self, start: float, horizon: float) -> Trajectory:
        """Epochs up to `horizon` with the best audit_part chosen anew in each, as learners do."""

        def choose(t: float, evidence: Evidence) -> FloatArray:
            return np.array([self.best(t, horizon, evidence).audit_part])

        return self._foreseen(choose, start, horizon, None)[0]

    def _foreseen(
        self,
        choose: Callable[[float, Evidence], FloatArray],
        start: float,
        horizon: float,
        evidence: Evidence | None,
    ) -> list[Trajectory]:
        """A trajectory for each audit_part that `choose` returns at every round; in one pass."""
        information, skewness = evidence or self.present
        t = start
        parts = []
        rounds = []
        learned = []
        costs = []
        mixture = self._mixed(information, skewness)
        while t < horizon:
            length = min(epoch_length(t), horizon - t)
            floor = self.floor(t)
            parts.append(choose(t, (information, skewness)))
            weights = (1.0 - floor) * np.broadcast_to(mixture, (len(parts[-1]), len(self.cost)))
            constants = weights[:, 0] + weights[:, 1]
            weights[:, 0] = floor + np.maximum(weights[:, 0], parts[-1] * constants)
            if self.accepted is not None:
                remaining = np.maximum(self.most - weights[:, 2:] @ self.accepted[2:], 0.0)
                weights[:, 0] = np.minimum(weights[:, 0], remaining)
            weights[:, 1] = np.maximum(floor + constants - weights[:, 0], 0.0)
            V, K = self.moments(weights @ self.accepts)
            gained = length * self.efficiency / V
            information = information + gained
            skewness = skewness + gained * K / V**2
            t += length
            rounds.append(t)
            learned.append(weights[:, 2:].sum(axis=1))
            costs.append(weights @ self.sure_cost)
            mixture = self._mixed(information, skewness)
        ends = np.array(rounds)
        weight = np.array(learned)
        cost = np.array(costs)
        return [
            Trajectory(
                float(part), start, ends, weight[:, k], cost[:, k], information[k], mixture[k]
            )
            for k, part in enumerate(parts[0])
        ]

    def _mixed(self, information: FloatArray, skewness: FloatArray) -> FloatArray:
        """The cheapest mixture with this evidence."""
        old = self.present[0] / np.maximum(information, 1e-300)
        return self.allowed(self.widths(information, skewness), old)

    def forecasts(self, course: Trajectory, horizon: float) -> tuple[RateForecast, ...]:
        """What to say of each rate if the rounds ahead go as in `course`; nothing if no learned
        rule is cheaper than a constant."""
        if self.full == 0.0:
            return ()
        reached = course.reaches(HALF * self.full)
        half = reached if isfinite(reached) else None
        mixed = course.final[2:] if course.final[2:].any() else self._known[2:]
        forecasts = []
        for r, rate in enumerate(self.rates):
            people = self._of_rate(self._labelled[0] * course.information, r)[:, 2:]
            seen = float(people.min(axis=0) @ mixed / mixed.sum())
            labels = self._counting[r][1]
            rounds = half, course.start, horizon
            one = RateForecast(rate.name, self.limit, self.needed(r), seen, *rounds, labels)
            forecasts.append(one)
        return tuple(forecasts)

    def needed(self, rate: int) -> float:
        """Labelled people with whom one rate alone allows half of the weight that it allows once
        the gaps are known; inf if none do."""
        V, K = self._labelled
        full = float(self.allowed(np.zeros_like(self.gap), rate=rate)[2:].sum())

        def enough(people: float) -> bool:
            widths = self.widths(people / V, people * K / V**3)
            return float(self.allowed(widths, rate=rate)[2:].sum()) >= HALF * full

        if full == 0.0 or not enough(MOST_PEOPLE):
            return inf
        low = 1.0
        high = MOST_PEOPLE
        while high > 1.02 * low:
            middle = float(np.sqrt(low * high))
            low, high = (low, middle) if enough(middle) else (middle, high)
        return high
