"""The run that is expected where exploration is priced: finite classes, thresholds and stumps.

`forecast` says which widths a given acceptance brings. What is deployed meanwhile it knows for
fitted classes alone: the cheapest mixture, and an audit coin. All other classes deploy the mixture
with the least J (`choose`), which also accepts where labels are worth something, and rejects where
none are missing; so labels come earlier or later than under the cheapest mixture. Here J chooses
in each epoch ahead, and every random quantity is replaced by what is expected of it:

    U         = U(I, J),                                     the widths, as in `forecast`
    Q         = the mixture with the least J among those that [g - U, g + U] certify,
    p         = mu + (1 - mu) Q.A,                           whom the next l rounds accept
    I        += e l / V(p),     J += e l K(p) / V(p)^3,
    n_x      += l P[x] p_x,     p_bar_x = (t p_bar_x + l p_x) / (t + l),
    s -+ d    = s -+ d_0 sqrt(t_0 / t),                      under a cap or a floor

with g the expected gaps, e the efficiency (part of the expected information that came so far), n_x
the labels of cell x, by which costs are known, p_bar_x with which probability its people were
accepted, and s -+ d the ends of the accepted shares: every arrival counts for them, so they fall
like one over the root of the rounds.

Left out is chance: in the middles of the intervals, and in the first look at costs, by which delta
is shared among the rules. Runs have .8 to 1.25 times the weight that is expected here; where the
weight rises slowly that is two epochs. Nothing here enters a certificate or a decision.
"""

from dataclasses import replace
from math import inf

import numpy as np

from evenhand.algorithms.certified.cost_posterior import PooledCosts
from evenhand.algorithms.certified.deployable import CertifiedSet
from evenhand.algorithms.certified.forecast import Prospect, Trajectory, epoch_length
from evenhand.algorithms.certified.objective import Exploration
from evenhand.estimation.log import find_contexts
from evenhand.words import FloatArray, IntArray


def expected_course(
    prospect: Prospect,
    costs: PooledCosts,
    deployable: CertifiedSet,
    start: float,
    horizon: float,
    *,
    more_audits: bool = True,
    budget: float = inf,
) -> Trajectory:
    """Epochs from `start` to `horizon`, each with the mixture of the least J.

    prospect: all members, not narrowed; costs, deployable: what is known of costs, and what may be
    deployed, at `start`. more_audits: as for `Exploration`. budget: bad accepts that audits may
    still cost.
    """
    cell = _cells_of(deployable.accepts, prospect.accepts)
    inside = prospect.group >= 0
    bad = max(float(prospect.weight @ prospect.negative), 1e-3)
    information, skewness = prospect.present
    generator = np.random.default_rng(0)
    t = start
    policies: list[FloatArray] = []
    floors: list[float] = []
    rounds: list[float] = []
    while t < horizon:
        length = min(epoch_length(t), horizon - t)
        floor = prospect.floor(t)
        # what may be deployed by then
        lower, upper = prospect.intervals(information, skewness)
        certified = _with_narrower_shares(
            replace(deployable, lower=lower, upper=upper), np.sqrt(start / t)
        )
        # what will be deployed
        found = Exploration(
            certified,
            costs,
            rates=prospect.rates,
            groups=prospect.groups,
            group=prospect.group[inside],
            weight=prospect.weight[inside],
            negative=prospect.negative[inside],
            cell=cell[inside],
            floor=floor,
            rounds=t,
            length=length,
            ahead=max(horizon - t - length, 0.0),
            more_audits=more_audits,
        ).with_audit_coin(budget / (length * bad), generator)
        weights = found.weights
        # what that brings: evidence about gaps, and labels that make costs known
        V, K = prospect.moments(weights @ prospect.accepts)
        gained = length * prospect.efficiency / V
        information = information + gained
        skewness = skewness + gained * K / V**2
        p = weights @ deployable.accepts
        costs = costs.with_labels(
            length * costs.fraction * p, (t * costs.acceptance + length * p) / (t + length)
        )
        budget = max(budget - length * bad * float(weights[0]), 0.0)
        t += length
        policies.append(weights)
        floors.append(floor)
        rounds.append(t)
    deployed = np.array(policies)
    uncertified = deployed[0, :2].sum() - floors[0]
    audits = deployed[0, 0] - floors[0]
    return Trajectory(
        audit_part=float(audits / uncertified) if uncertified > 0 else 0.0,
        start=start,
        rounds=np.array(rounds),
        weight=deployed[:, 2:].sum(axis=1),
        cost=deployed @ prospect.sure_cost,
        information=information,
        final=deployed[-1],
    )


def _cells_of(of_cells: FloatArray, of_people: FloatArray) -> IntArray:
    """The cell of each person: the one that the same members accept. (members, cells) and (members,
    people)."""
    both = np.concatenate([of_cells, of_people], axis=1) > 0
    kinds = find_contexts(np.packbits(both, axis=0).T.astype(np.float64), None)
    cells = of_cells.shape[1]
    place = np.empty(len(kinds.first), dtype=np.int64)
    place[kinds.index[:cells]] = np.arange(cells)
    return place[kinds.index[cells:]]


def _with_narrower_shares(deployable: CertifiedSet, part: float) -> CertifiedSet:
    """The same once the ends of the accepted shares are this part as far from their estimates."""
    if deployable.accepted_shares is None:
        return deployable
    estimate = deployable.accepted_shares[2]
    shares = estimate + part * (deployable.accepted_shares - estimate)
    return replace(deployable, accepted_shares=shares)
