"""How delta is shared among the rules of a class: more for those that are likely to be deployed.

A rule with the part d of delta has intervals of a width in proportion to sqrt(ln(1/d) + const). All
rules together may spend delta, in any proportion that is fixed before the people arrive who are
judged. Equal parts pay for rules that nobody will ever want. Here a rule's part is

    d_h = delta ( EVEN / M + (1 - EVEN) E[ w_h / sum w ] )

where w is the learned part of the cheapest mixture that the limit allows when every gap is known up
to the half-width s sqrt(V_h), V_h = sum_j f_j (1 - f_j) / P[a = j, N]. The mean is over draws of
the outcomes from their posterior after the first rounds, and over s from wide to narrow: early the
rules with a small variance are mixed, late those with a small cost.

**Validity.** The parts are a function of the people of the first rounds, none of whom is judged.
The union bound (docs/guarantee/proof.md) holds for any parts that sum to delta.
"""

from itertools import combinations

import numpy as np

from evenhand.algorithms.certified.cost_posterior import PooledCosts
from evenhand.algorithms.certified.evidence import PastPeople, group_codes
from evenhand.algorithms.certified.simplex import MixtureProgram
from evenhand.fairness.rates import Rate
from evenhand.words import FloatArray, Group

EVEN = 0.2
"""The part of delta that is shared evenly."""
DRAWS = 20
SCALES = np.sqrt(20.0 / np.geomspace(1e3, 1e6, 7))
"""Half-widths over sqrt(V): sqrt(2 L / t) for L = 10 and t from a thousand to a million."""

LITTLE = 1e-9
"""Less learned weight than this is rounding."""
LEAST_MASS = 1e-3
LEAST_VARIANCE = 0.01
"""A denominator is at least this part of the people, and f (1 - f) at least so much, so that no
rule looks certain after a few people."""


def likely_delta_parts(
    costs: PooledCosts,
    past: PastPeople,
    rates: tuple[Rate, ...],
    groups: tuple[Group, ...],
    limit: float,
    generator: np.random.Generator,
) -> FloatArray:
    """(M,) of sum 1: the part of delta of each rule. costs, past: of the people so far."""
    members = len(costs.accepts)
    even = np.full(members, 1.0 / members)
    codes = group_codes(past.group, groups)
    inside = codes >= 0
    if not inside.any():
        return even
    size = costs.accepts.shape[1]
    weight = past.weight / past.weight[inside].sum()
    by_group = np.stack(
        [
            np.bincount(costs.of_past[codes == j], weights=weight[codes == j], minlength=size)
            for j in range(len(groups))
        ]
    )
    accepts = costs.accepts.astype(np.float64)
    constants = np.repeat([[1.0], [0.0]], size, axis=1)
    rules = np.concatenate([constants, accepts])
    total = np.zeros(members)
    for m in costs.drawn_chances(generator, DRAWS):
        cost = rules @ (costs.cost + (m - costs.chance) * costs.stake)
        middles = []
        spreads = []
        for rate in rates:
            bad, good = rate.in_denominator(np.array([-1, 1]))
            counted = by_group * (bad * m + good * (1.0 - m))
            mass = np.maximum(counted.sum(axis=1), LEAST_MASS)
            f = np.clip((rules @ counted.T) / mass, 0.0, 1.0)
            variance = np.maximum(f * (1.0 - f), LEAST_VARIANCE) / mass
            for i, j in combinations(range(len(groups)), 2):
                middles.append(f[:, j] - f[:, i])
                spreads.append(np.sqrt(variance[:, j] + variance[:, i]))
        middle = np.array(middles)
        spread = np.array(spreads)
        # the gaps of constants are known
        middle[:, :2] = 0.0
        spread[:, :2] = 0.0
        wide = SCALES[:, np.newaxis, np.newaxis] * spread
        upper = np.minimum(middle + wide, 1.0)
        lower = np.maximum(middle - wide, -1.0)
        mixed = MixtureProgram(np.concatenate([upper, -lower], axis=1), limit).cheapest(cost)[:, 2:]
        learned = mixed.sum(axis=1, keepdims=True)
        fractions = np.divide(mixed, learned, out=np.zeros_like(mixed), where=learned > LITTLE)
        total += fractions.sum(axis=0)
    if not total.sum() > 0:
        return even
    parts: FloatArray = EVEN * even + (1.0 - EVEN) * total / total.sum()
    return parts
