"""Which policy is deployed next: a choice among certified mixtures, from closed cohorts alone.

**What may be deployed.** Each hypothesis h has intervals [lower_kh, upper_kh] for its true gaps
(constants: [0, 0]). A mixture pi is deployable if for every k

    sum_h pi(h) upper_kh <= limit   and   sum_h pi(h) lower_kh >= -limit.

With a cap or a floor it must also accept at most, or at least, a share of the population, for all
accepted shares that are still possible (`accepted_shares`). These are linear constraints in pi, so
the cheapest deployable policy is a small linear program over the hypotheses that have intervals.

The audit coin mu is part of the policy mu + (1 - mu) Q, and so part of gap and accepted share: Q
may have a gap of limit / (1 - mu), and may accept at most (kappa - mu) / (1 - mu).

**What is deployed.** For enumerable classes (finite ones, thresholds and stumps) it is the
certified mixture Q with the least

    J(Q) = (1 - mu) cost(Q) + sum_k g_k F(z_k),    z_k = t V_k(p) / V_k(p_bar),
    p = mu + (1 - mu) Q.A

which is derived in docs/notes/choosing-a-policy.md; fitted ones use Algorithm 1, with the
audits that `forecast` expects to pay.

    symbol   name here                 meaning
    mu       floor                     probability of the audit coin
    A        accepts (members, cells)  who accepts whom; people whom no member tells apart are one
                                       cell
    cost     costs (members,)          cost per person of accepting as each member does
    g_k      worth (K,)                what it costs per person now that k is not known
    V_k(p)   fixed a_k, spread b_kx    variance that one round leaves in k: a_k + sum_x b_kx / p_x
    p_bar    before (cells,)           probability with which people were accepted so far
    t, l, N  rounds, length, ahead     rounds so far, of the next epoch, and after it
    I        information (K,)          evidence at hand, t / V(p_bar)
    tau      target                    the cheapest mixture that the middles of the intervals call
                                       fair

**Validity.** Nothing here enters the certificate. Q is computed from closed cohorts before the
coins of its epoch are tossed. It is a mixture of members and constants that meets the limit for all
values that the intervals allow, mixing it with accept-all keeps it so, and mu > 0 keeps every
probability of being accepted above 0. So what is deployed is predictable and certified, whatever
the forecasts are worth: a poor one costs regret.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Literal

import numpy as np

from evenhand.algorithms.certified.evidence import PastPeople, group_codes
from evenhand.algorithms.certified.forecast import HALF, LITTLE, Prospect
from evenhand.algorithms.certified.nominate import PredictedOutcomes
from evenhand.algorithms.certified.simplex import MixtureProgram
from evenhand.algorithms.certified.state import AcceptedShareEnds, CertifiedState, GapEnds
from evenhand.bandit import PracticalSchedule, coordinate_descent, explored_constants
from evenhand.bandit.coordinate_descent import OracleAnswer
from evenhand.contracts import GroupUse, Hypothesis
from evenhand.estimation import EstimatedLoss, RoundLog, TransformedLoss, doubly_robust
from evenhand.estimation.log import Contexts, find_contexts
from evenhand.estimation.outcomes import PRIOR, OutcomeRegression, fit_outcomes
from evenhand.fairness.rates import Rate
from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL
from evenhand.policies import Mixture
from evenhand.randomness import stream
from evenhand.rounds import Rounds
from evenhand.words import BoolArray, FloatArray, GroupArray, IntArray, LabelledSample

# what may be deployed


@dataclass(frozen=True, eq=False)
class CertifiedSet:
    """A fair oracle over deployable mixtures. accepts: (members, rows) of 0/1 on the rows of the
    loss; lower, upper: (gaps, members).

    The constants are members number 0 (accept) and 1 (reject). accepted_shares (3, members): the
    ends and the estimate of the accepted share of each; None without a cap and a floor. most,
    least: the accepted shares that are permitted. lotteries: None, or with which probability the
    two constants accept to which weight moves whose gain may be chance; by default `most` and
    `least`. aim: the accepted share that spreads a quota over its period; expected (members,): the
    accepted share of each member, by which it is aimed at; None without a quota.
    """

    members: tuple[Hypothesis, ...]
    accepts: FloatArray
    lower: FloatArray
    upper: FloatArray
    limit: float
    group_use: GroupUse
    accepted_shares: FloatArray | None = None
    most: float = 1.0
    least: float = 0.0
    lotteries: tuple[float, float] | None = None
    aim: float = 1.0
    expected: FloatArray | None = None

    @property
    def constraints(self) -> FloatArray:
        """(2 gaps, members): rows g with sum pi(h) g_h <= limit."""
        return np.concatenate([self.upper, -self.lower])

    def beside(self, coin: float) -> "CertifiedSet":
        """What may be deployed with the rest of the probability, beside an audit coin.

        Accept-all has no gap: (1 - mu) |gap(Q)| <= limit, so Q may have limit / (1 - mu). Were Q
        held to the limit itself, a coin of mu would waste mu of it.
        """
        rest = max(1.0 - coin, 1e-12)
        if self.accepted_shares is None and self.expected is None:
            return replace(self, limit=self.limit / rest)
        most, aim = (min(max(one - coin, 0.0) / rest, 1.0) for one in (self.most, self.aim))
        least = max(self.least - coin, 0.0) / rest
        return replace(self, limit=self.limit / rest, most=most, aim=aim, least=least)

    def without_floor(self) -> "CertifiedSet":
        """The same if nobody need be accepted."""
        return replace(self, least=0.0)

    def programs(self, most_audits: float) -> tuple[MixtureProgram, MixtureProgram]:
        """The mixtures that may be deployed, accept-all having at most this weight, and those that
        the middles of the intervals call fair.
        """
        capped = np.eye(1, len(self.members))
        middle = 0.5 * (self.lower + self.upper)
        deployed = self._program(self.constraints, (capped, most_audits))
        return deployed, self._program(np.concatenate([middle, -middle]), by_estimates=True)

    def _program(
        self,
        gaps: FloatArray,
        more: tuple[FloatArray, float] | None = None,
        *,
        by_estimates: bool = False,
    ) -> MixtureProgram:
        """Rows for the gaps, one more row, and rows for the accepted shares."""
        rows = [gaps] if more is None else [gaps, more[0]]
        limits = [self.limit] * len(gaps) + ([] if more is None else [more[1]])
        lottery = None
        if self.expected is not None and self.aim < 1.0:
            rows.append(self.expected[np.newaxis])
            limits.append(self.aim)
        if self.accepted_shares is not None:
            lower, upper, estimate = self.accepted_shares
            if self.most < 1.0:
                rows.append((estimate if by_estimates else upper)[np.newaxis])
                limits.append(self.most)
            if self.least > 0.0:
                lottery = len(limits)
                rows.append(1.0 - (estimate if by_estimates else lower)[np.newaxis])
                limits.append(1.0 - self.least)
        return MixtureProgram(np.concatenate(rows), np.array(limits), lottery)

    def accepted(self, weights: FloatArray) -> AcceptedShareEnds | None:
        """Between which values the accepted share of a mixture lies; None without cap, floor."""
        if self.accepted_shares is None:
            return None
        lower, upper, _ = self.accepted_shares
        return float(lower @ weights), float(upper @ weights)

    def within(self, weights: FloatArray, coin: float) -> FloatArray:
        """A mixture whose gaps are certified, moved as little as need be to keep cap and floor:
        first weight between the constants, then towards a lottery. coin: the weight of accept-all
        that stays.
        """
        if self.expected is not None and float(self.expected @ weights) > self.aim:
            part = self.aim / float(self.expected @ weights)
            weights = part * weights
            weights[1] += 1.0 - part
        if self.accepted_shares is None:
            return weights
        lower, upper, _ = self.accepted_shares
        weights = weights.copy()
        above = float(upper @ weights) - self.most
        if above > 0:
            moved = min(above, max(weights[0] - coin, 0.0))
            weights[0] -= moved
            weights[1] += moved
        above = float(upper @ weights) - self.most
        if above > 0:  # never so after a choice among certified mixtures
            learned = float(upper[2:] @ weights[2:])
            part = max(1.0 - above / learned, 0.0)
            weights[1] += (1.0 - part) * weights[2:].sum()
            weights[2:] *= part
        below = self.least - float(lower @ weights)
        if below > 0:
            moved = min(below, weights[1], max(self.most - float(upper @ weights), 0.0))
            weights[0] += moved
            weights[1] -= moved
        now = float(lower @ weights)
        if now < self.least and self.most > now:
            part = min((self.least - now) / (self.most - now), 1.0)
            weights *= 1.0 - part
            weights[0] += part * self.most
            weights[1] += part * (1.0 - self.most)
        return weights

    def weights_of(self, policy: Mixture) -> FloatArray:
        """The weight of each member in a mixture of members."""
        places = {id(member): i for i, member in enumerate(self.members)}
        weights = np.zeros(len(self.members))
        for hypothesis, weight in zip(policy.hypotheses, policy.weights, strict=True):
            weights[places[id(hypothesis)]] += weight
        return weights

    def mixture(self, weights: FloatArray) -> Mixture:
        """The members with positive weight."""
        support = np.flatnonzero(weights > 0)
        return Mixture(
            tuple(self.members[i] for i in support),
            tuple(weights[support].tolist()),
            self.group_use,
        )

    def cheapest(self, acceptance_cost: FloatArray) -> OracleAnswer:
        """argmin over deployable pi of sum_i acceptance_cost_i P[pi(x_i) = +1]."""
        weights = self._program(self.constraints).cheapest(self.accepts @ acceptance_cost)
        support = np.flatnonzero(weights)
        return OracleAnswer(self.mixture(weights), weights[support] @ self.accepts[support])

    def cautious(self, weights: FloatArray, cost: FloatArray, variance: FloatArray) -> FloatArray:
        """Learned weight whose gain over the better constant may be chance goes to that constant.

        cost, variance: of accepting all people of a row, per person.
        """
        learned = np.concatenate([np.zeros(2), weights[2:]])
        total = float(learned.sum())
        if total == 0.0:
            return weights
        lotteries = self.lotteries or (min(self.most, self.aim), self.least)
        saving = EstimatedSaving.of(learned @ self.accepts / total, cost, variance, lotteries)
        kept = weights - (1.0 - saving.trusted) * learned
        moved = (1.0 - saving.trusted) * total
        accepting = lotteries[saving.constant]
        kept[0] += accepting * moved
        kept[1] += (1.0 - accepting) * moved
        return kept


MIN_Z = 0.5
FULL_TRUST_Z = 1.5
AUDIT_Z = 2.0
"""A learned policy that saves less than MIN_Z standard errors has no weight, from FULL_TRUST_Z of
them on all that is certified; audits are spent for what it saves beyond AUDIT_Z of them."""


@dataclass(frozen=True)
class EstimatedSaving:
    """What a learned policy is estimated to save per person over the better constant (0: accept, 1:
    reject, or the lotteries that are nearest to them), with its standard error.

    Without this caution estimates that are the best of many by chance are deployed, and the learner
    ends worse than the constant by more than its audits cost (false accepts 10 times as expensive,
    200,000 rounds: by up to 6,000).
    """

    constant: int
    saved: float
    error: float

    @classmethod
    def of(
        cls,
        acceptance: FloatArray,
        cost: FloatArray,
        variance: FloatArray,
        lotteries: tuple[float, float] = (1.0, 0.0),
    ) -> "EstimatedSaving":
        """acceptance: the policy's on some rows; cost, variance: of accepting all people of a row,
        per person; lotteries: with which probability the constants accept.
        """
        constant = 0 if cost.sum() <= 0 else 1
        change = lotteries[constant] - acceptance
        return cls(constant, float(change @ cost), float(np.sqrt(variance @ change**2)))

    @property
    def trusted(self) -> float:
        """How much of its weight the policy keeps: 0 below MIN_Z standard errors, 1 above
        FULL_TRUST_Z.
        """
        doubt = self.saved - MIN_Z * self.error
        trust = (FULL_TRUST_Z - MIN_Z) * self.error
        return float(np.clip(doubt / trust, 0.0, 1.0)) if trust > 0 else float(doubt > 0)


# what it costs, and what exploration is worth

LEAST_PRIOR = 0.5
MOST_PRIOR = 64.0
"""Bounds on the pseudo-count of the prior."""
WEIGHT_CAP = 10.0
"""Importance weights are capped here in the *costs*, where labels cannot be pooled; the certificate
never caps.
"""
COMPONENTS = 3
ITERATIONS = 8
NEWTON_STEPS = 12
LEAST_PENALTY = 1e-3
"""Of the regression over cells: principal components, iterations that find them, steps of Newton's
method, and the penalty of the intercept.
"""
DRAWS = 10
"""Cost vectors drawn from the posterior."""
MOST_STEPS = 15
"""Calls of the oracle; with SHIFTS shifts of weight after each, J is then within about a percent of
what can be gained.
"""
SHIFTS = 3
TOLERANCE = 0.01
"""Frank-Wolfe stops when J can fall by no more than this part of the g_k."""
SHARE_FLOOR = 1e-3
LEAST_CHANCE = 0.01
"""A forecast is never surer than this of an outcome, so that no variance vanishes."""
FEWEST = 1e-9
"""Smaller weights of a mixture are rounding."""


@dataclass(frozen=True, eq=False)
class PooledCosts:
    """What accepting all people in each cell costs per person of the population, and how well that
    is known.

    accepts (members, cells): people whom no member tells apart are one cell; of_past: the cell of
    each of the past people. cost, stake (cells,): the cost is cost + (m_x - chance) stake if the
    rate of bad outcomes is m_x. chance: its estimate; labels: how many labels, the imaginary ones
    included, it rests on. fraction: of the people; acceptance: with which probability they were
    accepted so far. guess, pseudo_count: what cells learn from each other, and how many labels of a
    cell that is worth; error: the standard errors of the costs where labels could not be pooled.
    One of guess and error is None.
    """

    accepts: BoolArray
    of_past: IntArray
    cost: FloatArray
    stake: FloatArray
    chance: FloatArray
    labels: FloatArray
    fraction: FloatArray
    acceptance: FloatArray
    guess: "CellGuess | None" = None
    pseudo_count: float = 0.0
    error: FloatArray | None = None

    @classmethod
    def of(
        cls,
        log: RoundLog,
        past: tuple[FloatArray, GroupArray | None],
        table: Callable[[FloatArray, GroupArray | None], BoolArray],
        regression: OutcomeRegression,
        loss: TransformedLoss,
        observed: RoundLog | None = None,
    ) -> "PooledCosts":
        """Pool the labels of each cell. Where most labels are alone in their cells, there is
        nothing to pool: the regression is then corrected by weighted labels, which stays right if
        the regression is wrong.

        past: features and group of past people; table: which member accepts which row; observed:
        the rows of the log as they were seen, where it stands for more rounds than it has.
        """
        observed = log if observed is None else observed
        accepts, contexts, of_contexts, of_past = _cells(log, past, table)
        of_log = of_contexts[contexts.index]
        size = accepts.shape[1]
        rounds = log.rounds

        def total(column: FloatArray, place: IntArray = of_log) -> FloatArray:
            return np.asarray(np.bincount(place, weights=column, minlength=size), dtype=np.float64)

        swing, of_reject = loss.per_row(log.prices, len(log.features))
        people = total(log.count)
        accepted = total(log.accepted)
        seen = total(observed.accepted)
        alone = seen[seen >= 2].sum() < seen.sum() / 2
        guess = None
        if alone:
            forecast = regression.negative_probability(log.features)
        else:
            guess = _similar_cells(accepts, people, total(log.negative), accepted)
            forecast = guess.chance[of_log]

        def mean_of(column: FloatArray, nobody: float) -> FloatArray:
            means = np.full(size, nobody)
            np.divide(total(log.count * column), people, out=means, where=people > 0)
            return means

        mean = mean_of(forecast, 0.5)
        stake = total(log.count * swing)
        residual = total(log.negative - log.accepted * forecast)
        squares = total(log.negative * (1.0 - forecast) ** 2 + log.positive * forecast**2)
        pseudo_count = _pseudo_count(residual, squares, accepted, mean)
        labels = accepted + pseudo_count
        chance = np.clip(mean + residual / labels, 0.0, 1.0)
        error = None
        cost = total(log.count * (forecast * swing - of_reject)) + (chance - mean) * stake
        if alone:
            estimated, variance = _robust(log, observed, regression, loss)
            cost = total(estimated.acceptance_cost, of_contexts)
            error = np.sqrt(total(variance, of_contexts)) / rounds
        known = (stake / rounds, chance, labels, people / rounds, mean_of(log.acceptance, 1.0))
        return cls(accepts, of_past, cost / rounds, *known, guess, pseudo_count, error)

    @property
    def variance(self) -> FloatArray:
        """(cells,): that of the cost, by the posterior."""
        if self.error is not None:
            return np.asarray(self.error**2)
        variance = self.chance * (1.0 - self.chance) / (self.labels + 1.0)
        if self.guess is not None:
            variance = variance + (self.pseudo_count / self.labels * self.guess.error) ** 2
        return np.asarray(self.stake**2 * variance)

    def with_labels(self, more: FloatArray, acceptance: FloatArray) -> "PooledCosts":
        """What would be known with so many more labels of each cell that change no estimate."""
        guess = self.guess
        if guess is not None:
            before = max(float((self.labels - self.pseudo_count).sum()), 1.0)
            guess = guess.with_labels(1.0 + float(more.sum()) / before)
        return replace(self, labels=self.labels + more, acceptance=acceptance, guess=guess)

    def drawn(self, generator: np.random.Generator, times: int) -> FloatArray:
        """(times, cells): costs drawn from their posterior."""
        if self.error is not None:
            shape = (times, len(self.cost))
            return np.asarray(self.cost + generator.standard_normal(shape) * self.error)
        drawn = self.drawn_chances(generator, times)
        return np.asarray(self.cost + (drawn - self.chance) * self.stake)

    def drawn_chances(self, generator: np.random.Generator, times: int) -> FloatArray:
        """(times, cells): rates of bad outcomes drawn from their posterior.

        Each cell's rate has a beta posterior around its estimate. The guess behind the estimates is
        drawn too: all cells share it, so its error does not average out over the cells that a rule
        accepts. Were it taken for certain, a few dozen labels would seem to settle that no rule is
        worth trying (in hiring, 7 of 60 runs then stayed at reject-all).
        """
        chance = np.broadcast_to(self.chance, (times, len(self.chance)))
        if self.guess is not None:
            off = self.guess.drawn(generator, times) - self.guess.chance
            chance = chance + self.pseudo_count / self.labels * off
        chance = np.clip(chance, 1e-6, 1.0 - 1e-6)
        return np.asarray(generator.beta(self.labels * chance, self.labels * (1.0 - chance)))


def _robust(
    log: RoundLog, observed: RoundLog, regression: OutcomeRegression, loss: TransformedLoss
) -> tuple[EstimatedLoss, FloatArray]:
    """The doubly robust loss and its variance. A row that stands for s times as many rounds as were
    seen has s times the variance of so many that were seen.
    """
    estimated, variance = doubly_robust(log, regression, loss, cap=WEIGHT_CAP)
    if log is observed:
        return estimated, variance
    scale = np.divide(log.count, observed.count, out=np.ones(len(log)), where=observed.count > 0)
    counts = {name: getattr(log, name) * scale for name in ("rejected", "positive", "negative")}
    _, larger = doubly_robust(replace(log, **counts), regression, loss, cap=WEIGHT_CAP)
    return estimated, larger


def _cells(
    log: RoundLog,
    past: tuple[FloatArray, GroupArray | None],
    table: Callable[[FloatArray, GroupArray | None], BoolArray],
) -> tuple[BoolArray, Contexts, IntArray, IntArray]:
    """People whom no member tells apart: accepts (members, cells), the contexts of the log, and the
    cell of each of these and of each of the past people.
    """
    contexts = find_contexts(log.features, log.group)
    shown = None if log.group is None else log.group[contexts.first]
    both = np.concatenate([table(log.features[contexts.first], shown), table(*past)], axis=1)
    cells = find_contexts(np.packbits(both, axis=0).T.astype(np.float64), None)
    of_contexts, of_past = np.split(cells.index, [len(contexts.first)])
    return both[:, cells.first], contexts, of_contexts, of_past


@dataclass(frozen=True, eq=False)
class CellGuess:
    """Rates of bad outcomes by the labels of all cells, logistic(z w + b), and how far the slopes w
    may be off.

    z (cells, r); slopes w (r,); intercept b; root (r, r): w + root e, e standard normal, is a draw
    of the slopes. The intercept is not drawn: the overall rate rests on all labels, and the audit
    coin tells more of it whatever is deployed.
    """

    z: FloatArray
    slopes: FloatArray
    intercept: float
    root: FloatArray

    @cached_property
    def chance(self) -> FloatArray:
        """(cells,): the guess."""
        return _logistic(self.z @ self.slopes + self.intercept)

    def drawn(self, generator: np.random.Generator, times: int) -> FloatArray:
        """(times, cells): guesses with slopes drawn from their posterior."""
        slopes = self.slopes + generator.standard_normal((times, len(self.root))) @ self.root.T
        return _logistic(slopes @ self.z.T + self.intercept)

    @property
    def error(self) -> FloatArray:
        """(cells,): standard errors of the guess, to first order in those of the slopes."""
        of_score = np.sqrt(((self.z @ self.root) ** 2).sum(axis=1))
        return np.asarray(self.chance * (1.0 - self.chance) * of_score)

    def with_labels(self, times_as_many: float) -> "CellGuess":
        """The same guess from so many times as many labels: its variance falls with them."""
        return replace(self, root=self.root / math.sqrt(times_as_many))


def _similar_cells(
    accepts: BoolArray, people: FloatArray, negative: FloatArray, labels: FloatArray
) -> CellGuess:
    """The rate of bad outcomes by the labels of cells that the class treats alike.

    Rules that are worth considering order people much alike, so that a cell without labels is no
    average one: its neighbours tell about it. With z_x the principal components of the table of
    who accepts whom (a few of them, scaled to variance 1), a ridge-penalised logistic regression,

        argmin over w, b of sum_x neg_x ln(1 + e^-s_x) + pos_x ln(1 + e^s_x) + |w|^2 / 2,
        s_x = w . z_x + b,

    by Newton's method. It is a guess: the cell's own labels correct it, by as much as cells turn
    out to differ from their guesses (`_pseudo_count`). The slopes' posterior is taken for normal,
    with the curvature at the minimum as its precision (Laplace's approximation, given b).
    """
    fraction = people / max(float(people.sum()), 1.0)
    table = accepts.astype(np.float64)
    table -= (table @ fraction)[:, np.newaxis]
    # the leading directions, by orthogonal iteration: a full decomposition costs too much
    rank = min(COMPONENTS, *table.shape)
    basis = np.linspace(-1.0, 1.0, len(table))[:, np.newaxis] ** np.arange(rank)
    weighted = table * fraction
    for _ in range(ITERATIONS):
        basis, _ = np.linalg.qr(weighted @ (table.T @ basis))
    z = table.T @ basis
    scale = np.sqrt(fraction @ z**2)
    z = np.c_[z / np.where(scale > FEWEST, scale, 1.0), np.ones(len(fraction))]
    penalty = np.append(np.ones(rank), LEAST_PENALTY)
    w = np.zeros(rank + 1)
    for _ in range(NEWTON_STEPS):
        m = _logistic(z @ w)
        slope = z.T @ (labels * m - negative) + penalty * w
        bend = (z.T * (labels * m * (1.0 - m))) @ z + np.diag(penalty)
        step = np.linalg.solve(bend, slope)
        # no coordinate moves by more than 2 at once: Newton's method may overshoot at first
        w = w - step / max(1.0, 0.5 * float(np.abs(step).max()))
    slopes = z[:, :rank]
    m = _logistic(z @ w)
    bend = (slopes.T * (labels * m * (1.0 - m))) @ slopes + np.diag(penalty[:rank])
    root = np.linalg.cholesky(np.linalg.inv(bend))
    return CellGuess(slopes, w[:rank], float(w[rank]), root)


def _logistic(score: FloatArray) -> FloatArray:
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(score, -12.0, 12.0))))


def _pseudo_count(
    residual: FloatArray, squares: FloatArray, accepted: FloatArray, mean: FloatArray
) -> float:
    """s with m (1 - m) / (s + 1) = the variance of the cells' true rates around their forecasts.

    That is the variance of a beta prior. The product of the residuals of two people of one cell has
    it as its mean, whatever noise their labels have: (residual^2 - squares) / (acc (acc - 1)).
    Cells with many labels count alike, and those with two half as much.
    """
    several = accepted >= 2
    if not several.any():
        return PRIOR
    labels = accepted[several]
    products = ((residual**2 - squares)[several] / labels**2).sum()
    spread = float(products / ((labels - 1.0) / labels).sum())
    noise = float((mean * (1.0 - mean))[several].mean())
    if not spread > 0:
        return MOST_PRIOR
    return float(np.clip(noise / spread - 1.0, LEAST_PRIOR, MOST_PRIOR))


@dataclass(frozen=True, eq=False)
class Objective:
    """J, the price of a mixture: see the top of the module.

    costs (members,), accepts (members, cells); worth g (K,), fixed a (K,), spread b (K, cells);
    before: p_bar (cells,); rounds: t, length: l, ahead: N.
    """

    costs: FloatArray
    accepts: FloatArray
    floor: float
    worth: FloatArray
    fixed: FloatArray
    spread: FloatArray
    before: FloatArray
    rounds: float
    length: float
    ahead: float

    @cached_property
    def information(self) -> FloatArray:
        """I = t / V(p_bar)."""
        return np.asarray(self.rounds / (self.fixed + self.spread @ (1.0 / self.before)))

    def value(self, weights: FloatArray) -> float:
        """J of the mixture with these weights."""
        # the integral from 0 to x of ln(1 + u) du / u is -spence(1 + x)
        from scipy.special import spence

        p = self.floor + (1.0 - self.floor) * (weights @ self.accepts)
        scale = 1.5 / (self.information * (self.fixed + self.spread @ (1.0 / p)))
        price = spence(1.0 + scale * (self.length + self.ahead)) - spence(1.0 + scale * self.length)
        return float((1.0 - self.floor) * (self.costs @ weights) + self.worth @ price / 3.0)

    def gradient(self, weights: FloatArray) -> FloatArray:
        """dJ/dQ(h) = (1 - mu) (cost(h) - sum_x h(x) pull_x)."""
        p = self.floor + (1.0 - self.floor) * (weights @ self.accepts)
        return np.asarray((1.0 - self.floor) * (self.costs - self.accepts @ self._pull(p)))

    def _slopes(self, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
        """g dF/dV and g d2F/dV2."""
        z = self.information * variance
        soon = 2.0 * z + 3.0 * self.length
        late = soon + 3.0 * self.ahead
        first = self.worth / (3.0 * variance) * np.log(late / soon)
        bend = 2.0 * z / late - 2.0 * z / soon
        return first, (self.worth / (3.0 * variance) * bend - first) / variance

    def _pull(self, p: FloatArray) -> FloatArray:
        """What one more unit of p_x is worth: sum_k g_k dF/dV_k b_kx / p_x^2."""
        first, _ = self._slopes(self.fixed + self.spread @ (1.0 / p))
        return np.asarray(first @ self.spread / p**2)

    def minimise(self, program: MixtureProgram, start: FloatArray) -> "FrankWolfeResult":
        """Frank-Wolfe. Each step asks the oracle for one more vertex, and then shifts weight among
        those found, pairwise: from the vertex that costs most at the margin to the cheapest one."""
        rest = 1.0 - self.floor
        stop = TOLERANCE * float(self.worth.sum())
        vertices = start[np.newaxis]
        weights = np.ones(1)
        rows = rest * (vertices @ self.accepts)
        prices = rest * (vertices @ self.costs)
        p = self.floor + rows[0]
        for calls in range(1, MOST_STEPS + 1):
            pull = self._pull(p)
            gradient = rest * (self.costs - self.accepts @ pull)
            vertex = program.cheapest(gradient)
            if float(weights @ (prices - rows @ pull) - gradient @ vertex) <= stop:
                return FrankWolfeResult(weights @ vertices, calls - 1, calls, halted=True)
            vertices = np.concatenate([vertices, vertex[np.newaxis]])
            weights = np.append(weights, 0.0)
            rows = np.concatenate([rows, rest * (vertex @ self.accepts)[np.newaxis]])
            prices = np.append(prices, rest * float(vertex @ self.costs))
            for _ in range(SHIFTS):
                slopes = prices - rows @ pull
                to = int(slopes.argmin())
                off = int(np.where(weights > 0, slopes, -np.inf).argmax())
                if slopes[off] - slopes[to] <= 0.3 * stop:
                    break
                most = float(weights[off])
                shift = self._shift(p, rows[to] - rows[off], float(prices[to] - prices[off]), most)
                weights[to] += shift
                weights[off] = most - shift
                p = self.floor + weights @ rows
                pull = self._pull(p)
            kept = weights > 0
            vertices = vertices[kept]
            rows = rows[kept]
            prices = prices[kept]
            weights = weights[kept] / weights[kept].sum()
        return FrankWolfeResult(weights @ vertices, MOST_STEPS, MOST_STEPS, halted=False)

    def _shift(self, p: FloatArray, move: FloatArray, price: float, most: float) -> float:
        """argmin over 0 <= s <= most of J along p + s move: Newton's method, kept between what is
        known to be too little and too much."""
        shift = 0.0
        least = 0.0
        largest = most
        for _ in range(6):
            at = p + shift * move
            relative = move / at
            slope = -(self.spread @ (relative / at))
            first, second = self._slopes(self.fixed + self.spread @ (1.0 / at))
            down = price + float(first @ slope)
            bend = float(second @ slope**2 + 2.0 * first @ (self.spread @ (relative**2 / at)))
            least, largest = (shift, largest) if down < 0 else (least, shift)
            ahead = shift - down / bend if bend > 0 else largest
            if ahead >= most and largest == most:
                ahead = most
            elif not least < ahead < largest:
                ahead = 0.5 * (least + largest)
            if abs(ahead - shift) <= 1e-3 * most:
                return ahead
            shift = ahead
        return shift


@dataclass(frozen=True, eq=False)
class FrankWolfeResult:
    """Q, and what it took: steps of Frank-Wolfe, calls of its oracle, and whether it halted by
    itself.
    """

    weights: FloatArray
    steps: int
    oracle_calls: int
    halted: bool


@dataclass(frozen=True, eq=False)
class Exploration:
    """The question which certified mixture has the least J; `deployable` has one row per cell.

    Rows of `deployable.lower` are the gaps, for each rate and pair (earlier, later) of the groups.
    group, weight, negative, cell (n,): past people by whom the variance of the certificate is
    forecast, with the code of their group, m = P[y = -1 | x] and their cell. rounds: t; length: l;
    ahead: N. most_audits: the largest weight of accept-all in Q. more_audits: whether
    exploration may raise it above that in the cheapest mixture.
    """

    deployable: CertifiedSet
    costs: PooledCosts
    rates: tuple[Rate, ...]
    groups: int
    group: IntArray
    weight: FloatArray
    negative: FloatArray
    cell: IntArray
    floor: float
    rounds: float
    length: float
    ahead: float
    most_audits: float
    more_audits: bool

    def best(self, generator: np.random.Generator) -> FrankWolfeResult:
        """That mixture. Costs are drawn from their posterior by the generator."""
        deployable = self.deployable
        costs = self.costs
        price_of = deployable.accepts @ costs.cost
        program, fair = deployable.programs(self.most_audits)
        cheapest = program.cheapest(price_of)
        target = fair.cheapest(price_of)
        drawn = costs.drawn(generator, DRAWS) @ deployable.accepts.T
        others = np.array([fair.cheapest(price) for price in drawn])
        # what is not known yet: the certificate of each gap, and the costs
        terms = self._certificate_terms(target)
        worth = [max(float(price_of @ (cheapest - target)), 0.0) * part for part, _, _ in terms]
        worth.append(max(float((drawn @ target - (drawn * others).sum(axis=1)).mean()), 0.0))
        differs = (((others - target) @ deployable.accepts) ** 2).mean(axis=0)
        noise = differs * costs.stake**2 * costs.chance * (1.0 - costs.chance)
        noise = np.divide(noise, costs.fraction, out=np.zeros_like(noise), where=costs.fraction > 0)
        fixed = [*(a for _, a, _ in terms), 0.0]
        spread = [*(b for _, _, b in terms), noise]
        real = np.array([g > 0 and b.sum() > 0 for g, b in zip(worth, spread, strict=True)])
        if not real.any():
            return FrankWolfeResult(cheapest, 0, 1, halted=True)
        fixed_coin = not self.more_audits and deployable.least == 0.0
        if fixed_coin and cheapest[0] < self.most_audits:
            program = deployable.programs(float(cheapest[0]))[0]
        solution = Objective(
            costs=price_of,
            accepts=deployable.accepts,
            floor=self.floor,
            worth=np.array(worth)[real],
            fixed=np.array(fixed)[real],
            spread=np.array(spread)[real],
            before=np.maximum(costs.acceptance, self.floor),
            rounds=self.rounds,
            length=self.length,
            ahead=self.ahead,
        ).minimise(program, cheapest)
        weights = np.where(solution.weights > FEWEST, solution.weights, 0.0)
        calls = solution.oracle_calls + DRAWS + 2
        return replace(solution, weights=weights / weights.sum(), oracle_calls=calls)

    def _certificate_terms(self, target: FloatArray) -> list[tuple[float, float, FloatArray]]:
        """(part of what is missing, a, b) for each gap whose end is above the limit under the
        target.
        """
        deployable = self.deployable
        pairs = list(combinations(range(self.groups), 2))
        above = np.maximum(deployable.upper @ target, -deployable.lower @ target)
        above = np.maximum(above - deployable.limit, 0.0)
        members = np.flatnonzero(target[2:] > 0) + 2
        if not (above > 0).any() or not len(members) or not self.weight.sum() > 0:
            return []
        part = above / above.sum()
        tau = target[members] / target[members].sum()
        decides = deployable.accepts[np.ix_(members, self.cell)]
        fraction = self.weight / self.weight.sum()
        cells = deployable.accepts.shape[1]
        terms: list[tuple[float, float, FloatArray]] = []
        for k in np.flatnonzero(above > 0):
            bad, good = self.rates[k // len(pairs)].in_denominator(np.array([-1, 1]))
            m = np.clip(bad * self.negative + good * (1.0 - self.negative), LEAST_CHANCE, 1.0)
            squares = np.zeros(len(fraction))
            for j in pairs[k % len(pairs)]:
                inside = np.where(self.group == j, fraction, 0.0)
                size = max(float(inside @ m), SHARE_FLOOR)
                deviation = decides - (decides @ (inside * m) / size)[:, np.newaxis]
                squares += tau @ deviation**2 * inside / size**2
            if bad and good:  # no label is needed
                a = float(squares.sum())
                b: FloatArray = np.zeros(cells)
            else:
                a = float(squares @ m**2)
                unsure = squares * m * (1.0 - m)
                b = np.bincount(self.cell, unsure, cells).astype(np.float64, copy=False)
            terms.append((float(part[k]), a, b))
        return terms


# what is deployed

MOST_OF_CAP = 0.5
"""The floor of the audit coin has at most this part of a cap."""
SCHEDULE = PracticalSchedule(scale=0.3)
"""mu_t = .3 / sqrt(t): for fitted classes the floor of the audit coin, and the regret that the
bandit tolerates."""
PRICED_SCHEDULE = PracticalSchedule(scale=0.15)
"""Where exploration is priced, J tosses the coin as often as labels are worth it; the floor only
keeps every probability above 0."""


@dataclass(frozen=True, eq=False)
class Outlook:
    """What was known of the rounds ahead when epoch `number` began, after `start` rounds."""

    number: int
    start: float
    horizon: float
    prospect: Prospect


@dataclass(frozen=True, eq=False)
class Choice:
    """The policy of an epoch, between which values its gaps and its accepted share lie, and what it
    took to choose it.
    """

    policy: Mixture
    gaps: GapEnds
    accepted: AcceptedShareEnds | None
    floor: float
    steps: int
    oracle_calls: int
    halted: bool


@dataclass(frozen=True, eq=False)
class PlanningInputs:
    """What is known when epoch `number` is planned, after `round` rounds: all from closed cohorts.

    log: all resolved rounds, or some that stand for all; observed: the same rows as they were seen;
    past: people who are kept for forecasts; audits: audited people, where
    hypotheses are nominated; loss: prices and their normaliser; budget_left: bad accepts that
    audits may still cost; aim: the accepted share that spreads a quota over its period.
    """

    audit_rate: float | Literal["auto"]
    horizon: int | None
    state: CertifiedState
    rounds: Rounds
    log: RoundLog
    observed: RoundLog
    past: PastPeople
    audits: list[LabelledSample]
    loss: TransformedLoss
    number: int
    round: int
    budget_left: float
    aim: float = 1.0

    @property
    def floor(self) -> float:
        """mu: the weight of accept-all that every policy has."""
        return self._floor_at(self.log.rounds)

    def _floor_at(self, rounds: float) -> float:
        if self.audit_rate != "auto":
            return float(self.audit_rate)
        guarantee = self.state.guarantee
        schedule = SCHEDULE if guarantee.nominates else PRICED_SCHEDULE
        floor = schedule.exploration_floor(max(1, int(rounds)))
        if not guarantee.nominates:
            # Whoever met a part kappa of the people would toss a coin of scale / sqrt(kappa t) for
            # them: sqrt(kappa) scale / sqrt(t) of all. A cap asks for no more.
            floor *= math.sqrt(guarantee.most)
        return min(floor, MOST_OF_CAP * min(guarantee.most, self.aim))

    @property
    def rounds_ahead(self) -> float:
        """Rounds ahead; without a horizon nine times as many as so far, and some."""
        if self.horizon is None:
            return max(float(9 * self.round + 20_000), 1.0)
        return max(float(self.horizon - self.round), 1.0)

    def _affordable(self, length: int) -> float:
        """The weight of accept-all for which an epoch's bad accepts stay within the budget."""
        evidence = self.state.evidence
        bad = evidence.negatives / evidence.accepted if evidence.accepted else 0.5
        return self.budget_left / (length * max(bad, 1e-3))

    @cached_property
    def regression(self) -> OutcomeRegression:
        """m(x) = P[y = -1 | x], from all labels."""
        return fit_outcomes(self.observed)

    # what may be deployed, and what it costs

    def _certified_set(self, accepts: BoolArray) -> CertifiedSet:
        """The certified hypotheses and the constants, whose gaps are zero, on some rows."""
        members, lower, upper = self.state.certified()
        # the same memory layout as `accepts`: the last bits of products with it depend on that
        layout: Literal["F", "C"] = "F" if accepts.flags.f_contiguous else "C"
        decides = np.empty((2 + len(accepts), accepts.shape[1]), order=layout)
        decides[0] = 1.0
        decides[1] = 0.0
        decides[2:] = accepts
        zero = np.zeros((len(lower), 2))
        guarantee = self.state.guarantee
        accepted_shares = None
        if guarantee.limits_acceptance:
            constants = np.tile([1.0, 0.0], (3, 1))
            accepted_shares = np.concatenate([constants, self.state.accepted_share_ends()], axis=1)
        expected = None
        if self.aim < 1.0 and self.past.weight.sum() > 0:
            shown = self.past.group if guarantee.group_decides else None
            fraction = self.past.weight / self.past.weight.sum()
            expected = np.r_[1.0, 0.0, self.state.table(self.past.features, shown) @ fraction]
        return CertifiedSet(
            (ACCEPT_ALL, REJECT_ALL, *members),
            decides,
            np.concatenate([zero, lower], axis=1),
            np.concatenate([zero, upper], axis=1),
            guarantee.limit,
            guarantee.group_use,
            accepted_shares,
            guarantee.most,
            guarantee.least if guarantee.least <= self.aim else 0.0,
            aim=self.aim,
            expected=expected,
        )

    @cached_property
    def pooled(self) -> tuple[PooledCosts, CertifiedSet]:
        """What accepting the people of each cell costs, and what may be deployed on them."""
        group = self.past.group if self.state.guarantee.group_decides else None
        costs = PooledCosts.of(
            self.log,
            (self.past.features, group),
            self.state.table,
            self.regression,
            self.loss,
            self.observed,
        )
        return costs, self._certified_set(costs.accepts)

    @cached_property
    def _robust(self) -> tuple[EstimatedLoss, FloatArray]:
        return _robust(self.log, self.observed, self.regression, self.loss)

    @cached_property
    def _estimated(self) -> tuple[CertifiedSet, FloatArray, FloatArray]:
        """What may be deployed, and the cost of accepting all people of each of its columns, per
        person, with its variance. Fitted classes: doubly robust with capped weights.
        """
        if not self.state.guarantee.nominates:
            costs, deployable = self.pooled
            return deployable, costs.cost, costs.variance
        loss, variances = self._robust
        accepts = self.state.table(loss.features, loss.group)
        cost = loss.acceptance_cost / loss.rounds
        variance = variances / loss.rounds**2
        return self._certified_set(accepts), cost, variance

    # choosing

    def by_price(self, length: int) -> Choice:
        """The certified mixture with the least J, and the audit coin beside it."""
        state = self.state
        floor = self.floor
        rounds = self.log.rounds
        groups = state.groups or ()
        costs, deployable = self.pooled
        codes = group_codes(self.past.group, groups)
        inside = codes >= 0
        most = (self._affordable(length) - floor) / max(1.0 - floor, 1e-12)
        most_audits = float(np.clip(most, 0.0, 1.0))
        permitted = deployable
        if deployable.beside(floor).least > most_audits:  # the audit budget outranks the floor
            permitted = deployable.without_floor()
        found = Exploration(
            permitted.beside(floor),
            costs,
            rates=state.guarantee.rates,
            groups=len(groups),
            group=codes[inside],
            weight=self.past.weight[inside],
            negative=self.regression.negative_probability(self.past.features[inside]),
            cell=costs.of_past[inside],
            floor=floor,
            rounds=rounds,
            length=float(length),
            ahead=max(self.rounds_ahead - length, 0.0),
            most_audits=most_audits,
            more_audits=self.audit_rate == "auto",
        ).best(stream(state.guarantee.seed, "pricing", self.number))
        weights = (1.0 - floor) * found.weights
        weights[0] += floor
        policy, gaps, accepted = _deployed(deployable, permitted.within(weights, floor))
        return Choice(policy, gaps, accepted, floor, found.steps, found.oracle_calls, found.halted)

    def by_descent(self, length: int) -> Choice:
        """Algorithm 1 among deployable mixtures, and then the audits: uncertified mass moves
        between the constants, within the budget of bad accepts.

        Where accepting is a sacrifice, accept-all has at least the part that minimises the
        expected total cost. What the bandit explores beyond it stays if half of the learned weight
        is expected in time, because labels also make better rules; else it is stopped.
        """
        loss, _ = self._robust
        deployable, cost, variance = self._estimated
        floor = self._floor_at(loss.rounds)
        # psi mu = .3 / sqrt(t), also where the user has fixed mu
        tolerated = SCHEDULE.exploration_floor(max(1, int(loss.rounds))) * SCHEDULE.regret_scale
        oracle = deployable.beside(floor)
        descent = coordinate_descent(
            loss, oracle, exploration_floor=floor, regret_scale=tolerated / floor, sides=1
        )
        smoothed = descent.weights.smoothed(floor, explored_constants(1))
        weights = deployable.cautious(deployable.weights_of(smoothed), cost, variance)
        if self.audit_rate == "auto":
            free = weights[0] - floor + weights[1]
            audited = weights[0] - floor
            # if accepting is a sacrifice: will it pay?
            outlook = None
            if loss.acceptance_cost.sum() > 0 and free > LITTLE:
                outlook = self.outlook
            if outlook is not None:
                best = outlook.prospect.best(outlook.start, outlook.horizon)
                in_time = np.isfinite(best.reaches(HALF * outlook.prospect.full))
                audited = (
                    max(audited, best.audit_part * free) if in_time else best.audit_part * free
                )
            audited = min(audited, max(self._affordable(length) - floor, 0.0), free)
            weights[0] = floor + audited
            weights[1] = free - audited
        kept = deployable.within(weights, floor)
        if kept[0] > self._affordable(length):  # the audit budget outranks the floor of a cap
            kept = deployable.without_floor().within(weights, floor)
        policy, gaps, accepted = _deployed(deployable, kept)
        report = descent.report
        took = (report.iterations, report.oracle_calls, report.halted)
        return Choice(policy, gaps, accepted, floor, *took)

    def without_audits(self) -> tuple[Mixture, GapEnds, AcceptedShareEnds | None]:
        """The best certified policy without accept-all, and between which values its gaps and its
        accepted share lie.
        """
        deployable, cost, variance = self._estimated
        nobody_audited = replace(deployable.without_floor(), lotteries=(0.0, 0.0))
        program, _ = nobody_audited.programs(0.0)
        cheapest = program.cheapest(deployable.accepts @ cost)
        return _deployed(deployable, nobody_audited.cautious(cheapest, cost, variance))

    # forecasting

    @cached_property
    def outlook(self) -> Outlook | None:
        """What the rounds after `round` are expected to bring; None if no past people are known."""
        if not len(self.past.weight):
            return None
        horizon = self.round + self.rounds_ahead
        return Outlook(self.number, float(self.round), horizon, self.prospect.narrowed())

    @cached_property
    def prospect(self) -> Prospect:
        """Who will come, and what is known of the members: all from closed cohorts.

        A member is sure to save what it is estimated to save, less AUDIT_Z standard errors.
        """
        state = self.state
        deployable, cost, variance = self._estimated
        process, groups = state.running
        others = len(deployable.members) - 2 - len(process.members)
        people = PredictedOutcomes.of(groups, self.past, self.audits, self.regression)
        shown = people.group if state.guarantee.group_decides else None
        constants = np.repeat([[1.0], [0.0]], len(people.weight), axis=1)
        # costs, and those that are sure
        costs = deployable.accepts @ cost
        differs = deployable.accepts @ variance
        constant = int(np.argmin(costs[:2]))
        error = np.sqrt(np.maximum(variance.sum() - differs if constant == 0 else differs, 0.0))
        saved = np.maximum(costs[constant] - costs[2:] - AUDIT_Z * error[2:], 0.0)
        # past epochs, and which processes saw them
        rounds = np.r_[0.0, 0.0, process.rounds, np.zeros(others)]
        played = []
        later = 0.0
        for epoch, first, stop in reversed(state.spans):
            saw = rounds > later
            policy = self.rounds.mixture(epoch)
            if saw.any():
                acceptance = policy.acceptance(people.features, shown)
                played.append((float(stop - first), acceptance, saw))
            later += stop - first
        return Prospect(
            weight=people.weight / people.weight.sum(),
            group=group_codes(people.group, groups),
            negative=people.negative,
            accepts=np.concatenate([constants, state.table(people.features, shown)]),
            cost=costs,
            sure_cost=np.r_[costs[:2], costs[constant] - saved],
            rates=state.guarantee.rates,
            groups=len(groups),
            limit=state.guarantee.limit,
            lower=deployable.lower,
            upper=deployable.upper,
            threshold=np.pad(process.thresholds(), ((0, 0), (2, others))),
            floor=self._floor_at,
            accepted=None if deployable.accepted_shares is None else deployable.accepted_shares[2],
            most=state.guarantee.most,
            played=tuple(played),
        )


def _deployed(
    deployable: CertifiedSet, weights: FloatArray
) -> tuple[Mixture, GapEnds, AcceptedShareEnds | None]:
    """The mixture of the members with these weights, and between which values its gaps and the
    share that it accepts lie.
    """
    gaps = (deployable.lower @ weights, deployable.upper @ weights)
    return deployable.mixture(weights), gaps, deployable.accepted(weights)
