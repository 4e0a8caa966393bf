"""Two neighbours of the paper's algorithm, carried over to its set of fair policies.

Both explore as the paper does, and then deploy mixtures of policies in the set Pi of the
exploration's sample (and accept-all), so the paper's guarantee covers them as it covers the
two-phase learner. What differs is how they learn which of these policies is best.

**EXP4.AT** (Raman, Subedi, Raman and Tewari, COLT 2024: apple tasting against an adversary).
Exponential weights for experts when the label is seen after an accept alone. Both losses of such a
round are then known, and only accepts need to be explored:

    loss_hat_t(yhat) = 1[yhat != y_t] 1[accepted] / p_t
    P_i proportional to exp(-eta sum_t loss_hat_t(i)),     p_t = eta + (1 - eta) sum_i P_i pi_i(+|x)

Subtracting loss_hat_t(-1) from both losses changes no weight: the loss of an expert is then
pi_i(+|x) d_t / p_t with d_t = -y_t, which is the one-sided estimate. As p_t >= eta, eta |d_t| / p_t
<= 1, and e^z <= 1 + z + z^2 for z <= 1 gives for N experts, eta <= 1/2 and any order of the people

    regret <= ln N / eta + eta sum_t E[sum_i P_i pi_i(+|x_t) / p_t] + eta T
           <= ln N / eta + 3 eta T  =  2 sqrt(3 T ln N)          at eta = sqrt(ln N / (3 T))

in 0-1 loss. The experts are the members of the fair net (`evenhand.algorithms.fair_net`). The
bound is for weights that are renewed after every round (growth=0); that the *net* is fair still
needs people from one population.

**Inverse gap weighting** (SquareCB: Foster and Rakhlin 2020; in epochs: Simchi-Levi and Xu 2022)
within Pi: see `bench.rivals.inverse_gap`. A regression of outcomes is fitted once per epoch to
the labels of accepted people, without weights; gamma_t = 1 / (psi mu_t), by which the two programs
ask for the same variance.
"""

from functools import partial
from math import sqrt

from bench.rivals.inverse_gap import inverse_gap_weights
from evenhand.algorithms.exponential_weights import (
    Exploit,
    WeightedNet,
    grid_of,
    largest_step,
    renewal_length,
    require_net,
)
from evenhand.algorithms.two_phase import TwoPhase, TwoPhaseState
from evenhand.bandit import explored_constants
from evenhand.bandit.schedule import LARGEST_FLOOR
from evenhand.errors import InvalidInput
from evenhand.estimation.loss import doubly_robust
from evenhand.estimation.outcomes import fit_outcomes
from evenhand.rounds import Epoch, Rounds


def exp4_at(grid: int | None, growth: float) -> Exploit:
    """EXP4.AT on the net of fair pairs; the settings of `exponential_weights.exp4`."""
    require_net(grid, growth)
    return partial(_exp4_at, grid, growth)


def _exp4_at(
    grid: int | None, growth: float, paper: TwoPhase, state: TwoPhaseState, rounds: Rounds
) -> Epoch:
    log = paper.bandit_log(state, rounds)
    assert log is not None  # one-sided: the exploration's rounds are in it
    loss = paper.estimated_loss(log)
    net = WeightedNet.of(paper.fair_oracle(state, rounds, loss), loss, grid_of(grid, paper))
    eta = min(LARGEST_FLOOR, sqrt(net.log_size / (3 * paper.horizon)))
    # the net's losses are transformed: in units in which |d_t| <= 1, 0-1 loss is twice as large
    policy = net.smoothed(eta / largest_step(paper), eta, 1)
    length = renewal_length(paper, rounds, growth)
    number = rounds.epoch.number + 1
    return Epoch(number, "exp4-at", rounds.decided, length, policy, exploration_floor=eta)


def inverse_gap(paper: TwoPhase, state: TwoPhaseState, rounds: Rounds) -> Epoch:
    """One fit of the regression, and inverse gap weighting in the fair set; epochs double."""
    log = paper.bandit_log(state, rounds)
    assert log is not None  # one-sided: the exploration's rounds are in it
    # d_hat alone: no weighted label corrects it
    loss, _ = doubly_robust(log, fit_outcomes(log), paper.loss, cap=0.0)
    floor = paper.floors.exploration_floor(max(1, int(loss.rounds)))
    found = inverse_gap_weights(
        loss,
        paper.fair_oracle(state, rounds, loss),
        gap_weight=1.0 / (paper.floors.regret_scale * floor),
        exploration_floor=floor,
    )
    return Epoch(
        rounds.epoch.number + 1,
        "inverse-gap",
        rounds.decided,
        renewal_length(paper, rounds, 1.0),
        found.weights.smoothed(floor, explored_constants(1)),
        exploration_floor=floor,
        iterations=found.fair_calls,
        oracle_calls=found.oracle_calls,
        halted=found.halted,
    )


def require_one_sided(paper: TwoPhase, learner: str) -> None:
    """These learners explore accepts alone, and never look at the group."""
    if paper.sides != 1:
        raise InvalidInput(
            f"estimator is {paper.estimator!r}",
            requirement=f"{learner} explores and weights accepts alone",
            hint='use estimator="one-sided", or Exp4 for both.',
            argument="estimator",
        )
