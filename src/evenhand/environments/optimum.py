"""The best fair mixture of a class that can be written down: a linear program over all its
hypotheses and the two constants.

    minimise sum_h w_h loss(h)  subject to  |sum_h w_h gap_k(h)| <= limit for all k,  sum_h w_h = 1,  w >= 0

It does not share code with `faircsc`, so that each can be tested by the other.
"""

from typing import cast

import numpy as np

from evenhand.contracts import Enumeration, HypothesisClass
from evenhand.environments.truth import loss_on
from evenhand.fairness import GapConstraints
from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL
from evenhand.policies import Mixture
from evenhand.words import FloatArray, LabelledSample, Prices


def enumerated_optimum(
    sample: LabelledSample,
    hypotheses: HypothesisClass,
    constraints: GapConstraints,
    prices: Prices,
    limit: float,
) -> tuple[float, Mixture]:
    """(loss, mixture) of the linear program, with every member's loss and gaps summed over the
    weighted rows of `sample`.
    """
    bound = cast(Enumeration, hypotheses.bind(sample.features, None))
    cost = sample.weight * prices.acceptance_cost(sample.label)
    totals = bound.totals(np.vstack([cost, constraints.channels]))
    members = totals.shape[1]
    costs = np.concatenate([totals[0], [float(cost.sum()), 0.0]])
    gaps = np.hstack([constraints.pairs @ totals[1:], np.zeros((len(constraints.pairs), 2))])
    weights = _cheapest_mixture(costs, gaps, limit)
    chosen = np.flatnonzero(weights)
    parts = tuple(
        bound.hypothesis(int(h)) if h < members else (ACCEPT_ALL, REJECT_ALL)[int(h) - members]
        for h in chosen
    )
    nobody = loss_on(sample, np.zeros(len(sample)), prices)
    return nobody + float(costs @ weights), Mixture(parts, tuple(weights[chosen].tolist()))


def _cheapest_mixture(costs: FloatArray, gaps: FloatArray, limit: float) -> FloatArray:
    """The weights of the linear program above; gaps: (constraints, hypotheses), the last hypothesis
    has all gaps zero.

    One hypothesis is preferred to a mixture of the same cost; no gap exceeds the limit by more than
    rounding.
    """
    from scipy.optimize import linprog

    scale = float(np.abs(costs).max()) or 1.0
    found = linprog(
        costs / scale,
        A_ub=np.vstack([gaps, -gaps]),
        b_ub=np.full(2 * len(gaps), limit),
        A_eq=np.ones((1, len(costs))),
        b_eq=[1.0],
        method="highs-ds",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    weights = _within_limit(
        _polished(np.maximum(np.asarray(found.x), 0.0), gaps, limit), gaps, limit
    )
    fair = np.abs(gaps).max(axis=0) <= limit
    best = int(np.argmin(np.where(fair, costs, np.inf)))
    return (
        np.eye(1, len(costs), best)[0]
        if costs[best] <= costs @ weights + 1e-13 * scale
        else weights
    )


def _polished(weights: FloatArray, gaps: FloatArray, limit: float) -> FloatArray:
    """Solve the equations of the basis again: on the support, sum w = 1 and w . gap = +-limit where
    the solver had it tight.
    """
    support = np.flatnonzero(weights > 1e-9)
    reached = gaps[:, support] @ weights[support]
    tight = np.flatnonzero(np.abs(reached) >= limit - 1e-8)
    system = np.vstack([np.ones(len(support)), gaps[np.ix_(tight, support)]])
    target = np.concatenate([[1.0], np.sign(reached[tight]) * limit])
    solved = np.linalg.lstsq(system, target, rcond=None)[0]
    exact = solved.min() >= 0 and np.abs(system @ solved - target).max() <= 1e-13
    polished = np.zeros_like(weights)
    polished[support] = solved if exact else weights[support]
    return np.asarray(polished / polished.sum())


def _within_limit(weights: FloatArray, gaps: FloatArray, limit: float) -> FloatArray:
    """Move weight to the last hypothesis, whose gaps are zero, until no gap exceeds the limit."""
    worst = float(np.abs(gaps @ weights).max())
    if worst <= limit + 1e-13:
        return weights
    kept = weights * (limit / worst)
    kept[-1] += 1.0 - kept.sum()
    return kept
