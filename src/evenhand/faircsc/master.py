"""The linear program over columns that are already known, and its polished basic solution.

    minimise sum_h w_h cost(h)  subject to  |sum_h w_h gap_k(h)| <= limit for all k,  sum_h w_h = 1,  w >= 0

A basic solution has at most 1 + rank(tight constraints) columns (section B.1 of the paper,
"support_size", for one constraint).
"""

from dataclasses import dataclass

import numpy as np

from evenhand.words import FloatArray

ROUNDING = 1e-13
"""What a limit may be exceeded by; beyond it, weight moves to a constant."""
TIGHT = 1e-8
"""How near to the limit a constraint must be to count as tight before polishing."""


@dataclass(frozen=True, eq=False)
class MasterSolution:
    """Weights per column, the optimal cost, and the signed multiplier of each constraint."""

    weights: FloatArray
    cost: float
    multipliers: FloatArray


def solve_master(costs: FloatArray, gaps: FloatArray, limit: float) -> MasterSolution | None:
    """The cheapest mixture of m columns under K gap constraints (gaps: (K, m)); None if there is no
    feasible one.
    """
    from scipy.optimize import linprog

    result = linprog(
        costs,
        A_ub=np.concatenate([gaps, -gaps]),
        b_ub=np.full(2 * len(gaps), limit),
        A_eq=np.ones((1, len(costs))),
        b_eq=[1.0],
        method="highs-ds",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if result.x is None:
        return None
    upper, lower = np.split(np.asarray(result.ineqlin.marginals), 2)
    weights = polish(np.asarray(result.x), gaps, limit)
    return MasterSolution(weights, float(costs @ weights), lower - upper)


def polish(weights: FloatArray, gaps: FloatArray, limit: float) -> FloatArray:
    """Re-solve the equations of the basis, so that tight constraints hold to rounding and not to a
    solver's tolerance.

    On the support S and the tight constraints A: sum_S w = 1, sum_S w gap_A = limit (with the
    side's sign).
    """
    support = np.flatnonzero(weights > 1e-9)
    values = gaps[:, support] @ weights[support]
    tight = np.flatnonzero(np.abs(values) >= limit - TIGHT)
    system = np.concatenate([np.ones((1, len(support))), gaps[np.ix_(tight, support)]])
    target = np.concatenate([[1.0], np.sign(values[tight]) * limit])
    solved, *_ = np.linalg.lstsq(system, target, rcond=None)
    polished = np.zeros_like(weights)
    accurate = np.abs(system @ solved - target).max() <= 1e-13 and solved.min() >= 0
    polished[support] = solved if accurate else weights[support]
    return np.asarray(polished / polished.sum())


def mix_towards_constant(
    weights: FloatArray, gaps: FloatArray, limit: float, constant: int
) -> FloatArray:
    """Give weight to an exactly fair column until no gap exceeds the limit: gaps scale with the
    remaining weight.
    """
    worst = float(np.abs(gaps @ weights).max())
    if worst <= limit + ROUNDING:
        return weights
    keep = limit / worst
    mixed = keep * weights
    mixed[constant] += 1.0 - keep
    return mixed
