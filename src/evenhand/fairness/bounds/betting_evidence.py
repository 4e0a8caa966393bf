"""From running sums to boxes and gaps: every process says one linear inequality about the rates, and all of them hold at once.

S = A + B, q(f) = (1-f)^2 Q1 + f^2 Q0 <= alpha + beta f on the box [l, u] (its chord, because q is convex). Unless a process has crossed
its threshold L,

    up: f (S - beta) <= A + alpha + L,    low: f (S + beta) >= A - alpha - L,
    joint: f_j (S - beta)_j^up - f_i (S + beta)_i^low <= L + (A + alpha)_j^up - (A - alpha)_i^low

L grows by what people of whom nothing is known any more may have cost. The pairs of a group that joined later use the sums since then.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from evenhand.fairness.bounds.betting_records import LOW, UP, BettingState
from evenhand.fairness.bounds.half_plane import largest_difference
from evenhand.words import FloatArray

BOX_PASSES = 4


def chord(state: BettingState) -> tuple[FloatArray, FloatArray]:
    """alpha, beta (M, R, G, side, K) with q(f) = (1-f)^2 Q1 + f^2 Q0 <= alpha + beta f on the box, equal at both its ends.

    beta = (q(u) - q(l)) / (u - l) = Q0 (l + u) - Q1 (2 - l - u),   alpha = q(l) - beta l = Q1 (1 - l u) - Q0 l u
    """
    q0, q1 = state.quadratic[..., 0, :], state.quadratic[..., 1, :]
    lower, upper = state.lower[..., np.newaxis, np.newaxis], state.upper[..., np.newaxis, np.newaxis]
    return q1 * (1.0 - lower * upper) - q0 * lower * upper, q0 * (lower + upper) - q1 * (2.0 - lower - upper)


def evidence(state: BettingState) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """(a, t, b, v), each (M, R, G, K): up says a f <= t + L, low says b f >= v - L, for f in the box.

    a = S - beta, t = A + alpha of the up side; b = S + beta, v = A - alpha of the low side.
    """
    alpha, beta = chord(state)
    accepted = state.linear[..., 1, :]
    total = state.linear.sum(axis=-2)
    return (
        total[..., UP, :] - beta[..., UP, :],
        accepted[..., UP, :] + alpha[..., UP, :],
        total[..., LOW, :] + beta[..., LOW, :],
        accepted[..., LOW, :] - alpha[..., LOW, :],
    )


def narrowed_boxes(state: BettingState, threshold: FloatArray) -> BettingState:
    """u <- min(u, (t + L)/a) where a > 0, l <- max(l, (v - L)/b) where b > 0; best over the bets, a few passes. threshold: (M, G)."""
    L = threshold[:, np.newaxis, :, np.newaxis] + state.lost[:, :, np.newaxis, :]
    for _ in range(BOX_PASSES):
        a, t, b, v = evidence(state)
        upper, lower = upper_end(a, t + L).min(axis=-1), lower_end(b, v - L).max(axis=-1)
        state = replace(state, upper=np.minimum(state.upper, upper), lower=np.maximum(state.lower, lower))
    return state


def upper_end(a: FloatArray, limit: FloatArray) -> FloatArray:
    """The largest f with a f <= limit: limit / a where a > 0; otherwise no upper end follows."""
    return np.asarray(np.divide(limit, a, out=np.full(a.shape, np.inf), where=a > 0))


def lower_end(b: FloatArray, limit: FloatArray) -> FloatArray:
    """The smallest f with b f >= limit: limit / b where b > 0; otherwise no lower end follows."""
    return np.asarray(np.divide(limit, b, out=np.full(b.shape, -np.inf), where=b > 0))


def narrowed_gaps(
    state: BettingState, threshold: FloatArray, pairs: Sequence[tuple[int, int]], founders: int
) -> BettingState:
    """gap <= max f_j - f_i over the boxes with a_j f_j - b_i f_i <= L + t_j - v_i, for every bet; lower end: exchange j and i.

    threshold: (M, pairs). Groups from number `founders` on joined later, one after the other.
    """
    lower, upper = state.gap_lower.copy(), state.gap_upper.copy()
    known = {-1: evidence(state)}
    for join in range(state.linear_before.shape[1]):
        since = replace(
            state,
            linear=state.linear - state.linear_before[:, join],
            quadratic=state.quadratic - state.quadratic_before[:, join],
        )
        known[join] = evidence(since)
    for at, (later, earlier) in enumerate(pairs):
        told, L = known[max(later - founders, -1)], threshold[:, at, np.newaxis, np.newaxis] + state.lost
        upper[:, :, at] = np.minimum(upper[:, :, at], _largest_gap(state, told, L, later, earlier))
        lower[:, :, at] = np.maximum(lower[:, :, at], -_largest_gap(state, told, L, earlier, later))
    return replace(state, gap_lower=lower, gap_upper=upper)


def _largest_gap(
    state: BettingState, known: tuple[FloatArray, ...], threshold: FloatArray, j: int, i: int
) -> FloatArray:
    a, t, b, v = known
    l_j, u_j, l_i, u_i = (side[:, :, group, np.newaxis] for group in (j, i) for side in (state.lower, state.upper))
    limit = threshold + t[:, :, j] - v[:, :, i]
    return np.asarray(largest_difference(l_j, u_j, l_i, u_i, a[:, :, j], b[:, :, i], limit).min(axis=-1))


def without_contradictions(state: BettingState) -> BettingState:
    """A hypothesis with an empty box or gap is flagged for good, and nothing is claimed about it: [0, 1] and [-1, 1]."""
    empty = (state.lower > state.upper).any(axis=(1, 2)) | (state.gap_lower > state.gap_upper).any(axis=(1, 2))
    broken = empty | state.contradiction
    if not broken.any():
        return state
    per_hypothesis = broken[:, np.newaxis, np.newaxis]
    return replace(
        state,
        lower=np.where(per_hypothesis, 0.0, state.lower),
        upper=np.where(per_hypothesis, 1.0, state.upper),
        gap_lower=np.where(per_hypothesis, -1.0, state.gap_lower),
        gap_upper=np.where(per_hypothesis, 1.0, state.gap_upper),
        contradiction=broken,
    )
