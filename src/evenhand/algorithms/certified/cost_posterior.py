"""What accepting people costs, and how well that is known: a posterior over cells.

People whom no member tells apart are one cell, and the labels of a cell are pooled. Cells learn
from each other: a regression over all labels guesses the rate of bad outcomes of each, and the
cell's own labels correct the guess (`CellGuess`). Where most labels are alone in their cells,
costs are doubly robust estimates with normal errors instead.

Nothing here enters a certificate: a poor estimate costs regret.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from evenhand.estimation import EstimatedLoss, RoundLog, TransformedLoss, doubly_robust
from evenhand.estimation.log import Contexts, find_contexts
from evenhand.estimation.outcomes import PRIOR, OutcomeRegression
from evenhand.words import BoolArray, FloatArray, GroupArray, IntArray

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
LEAST_SCALE = 1e-9
"""A component that varies less is rounding."""


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
            estimated, variance = robust_costs(log, observed, regression, loss)
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


def robust_costs(
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
    z = np.c_[z / np.where(scale > LEAST_SCALE, scale, 1.0), np.ones(len(fraction))]
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
