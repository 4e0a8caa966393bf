"""Every bound of the paper (sections 3 and 4 and the appendix) as a function, with its range of
validity.

The class enters as `log_size` = ln|H|. Where the paper prints O(.), the constants of its own proof
are used. Where its algebra slips, the right reading is implemented and the docstring says so.
`docs/theory.md` shows what the constants amount to.
"""

import math
from collections.abc import Sequence

from evenhand.errors import InvalidInput

LARGEST_LOWER_BOUND_GAP = 1 / 16
"""Section 4 needs gamma <= 1/16: the rates 1/2 +- 4 gamma stay in [1/4, 3/4] and KL <= 64 gamma^2.
"""

SMALLEST_LOG_HORIZON = 5.0
"""ln T must be at least this for the induction behind epsilon_t (T >= 149)."""


# --- section 3.1: the exploration phase and what its sample can tell


def gap_slack(counts: Sequence[float], log_size: float, failure_probability: float) -> float:
    """How far the gap of any hypothesis on a sample may be from its gap on D.

    Parameters
    ----------
    counts : sequence of float
        The people of the two groups in the rate's denominator (FPR: the negatives).
    log_size : float
        ln|H| of the class.
    failure_probability : float
        delta.

    Returns
    -------
    float
        beta.

    Notes
    -----
    beta = sqrt((1/n_+ + 1/n_-) ln(2|H|/delta) / 2): joint Hoeffding.

    With probability 1 - delta, |gap on the sample - gap on D| <= beta for all hypotheses, hence
    for all mixtures, at once. `counts` are the two groups' people in the rate's denominator
    (FPR: the negatives), and must not depend on features. The paper's order,
    sqrt(ln(|H|/delta)) / T^(1/4) with constant 1, does not hold: see `paper_slack`.

    Examples
    --------
    >>> round(gap_slack([1000, 2000], log_size=math.log(204), failure_probability=0.05), 4)
    0.0822
    """
    if len(counts) != 2:
        raise InvalidInput(
            f"counts has {len(counts)} entries; a gap is between two groups.",
            hint="call it once per pair.",
        )
    inverse = sum(1 / _positive(count, "a count") for count in counts)
    return math.sqrt(inverse * _log_union(log_size, failure_probability) / 2)


def paper_slack(horizon: float, log_size: float, failure_probability: float) -> float:
    """The slack that theorem 3.1 prints, with constant 1.

    Parameters
    ----------
    horizon : float
        T: the number of rounds.
    log_size : float
        ln|H| of the class.
    failure_probability : float
        delta.

    Returns
    -------
    float
        beta.

    Notes
    -----
    beta = sqrt(ln(|H|/delta)) / T^(1/4): the order in theorem 3.1, with constant 1.

    Only an order. The main theorem claims (gamma + beta)-fairness of a set with empirical gaps
    up to gamma + beta; its own lemma says gamma + 2 beta, and that is right. evenhand
    constrains the empirical gap at gamma' - beta to promise gamma'.

    Examples
    --------
    >>> round(paper_slack(1e6, log_size=math.log(204), failure_probability=0.05), 4)
    0.0912
    """
    return math.sqrt(_log_ratio(log_size, failure_probability)) / math.sqrt(
        math.sqrt(_horizon(horizon))
    )


def exploration_rounds(
    masses: Sequence[float], log_size: float, failure_probability: float, slack: float
) -> int:
    """How many people have to be accepted to learn, for a given slack.

    Parameters
    ----------
    masses : sequence of float
        p_j = P[a = j, y = -1] of the two groups (FPR).
    log_size : float
        ln|H| of the class.
    failure_probability : float
        delta.
    slack : float
        gamma' - gamma: what is promised minus what is competed with.

    Returns
    -------
    int
        T0.

    Notes
    -----
    T0 = 2 (1/p_+ + 1/p_-) ln(2|H|/delta) / (gamma' - gamma)^2, rounded up: then 2 beta <=
    gamma' - gamma.

    `masses` are p_j = P[a = j, y = -1] (FPR), `slack` is gamma' - gamma. It is the solution of
    2 beta(T0 p_+, T0 p_-) = slack, so it is met by the *expected* counts; a learner that does
    not know p_j stops on the counts themselves.

    Examples
    --------
    >>> exploration_rounds([0.25, 0.25], math.log(204), failure_probability=0.05, slack=0.1)
    14412
    """
    if len(masses) != 2:
        raise InvalidInput(
            f"masses has {len(masses)} entries; a gap is between two groups.",
            hint="call it once per pair.",
        )
    if not 0 < slack <= 1:
        raise InvalidInput(
            f"slack is {slack}; gamma' - gamma must lie in (0, 1].",
            hint="promise more than you compete with.",
        )
    inverse = sum(1 / _share(mass, "a mass") for mass in masses)
    return math.ceil(2 * inverse * _log_union(log_size, failure_probability) / slack**2)


def paper_exploration_rounds(horizon: float, log_size: float, failure_probability: float) -> int:
    """The exploration length in the proof of theorem 3.1, with constant 1.

    Parameters
    ----------
    horizon : float
        T: the number of rounds.
    log_size : float
        ln|H| of the class.
    failure_probability : float
        delta.

    Returns
    -------
    int
        T0.

    Notes
    -----
    T0 = sqrt(T ln(|H|/delta)), rounded up: the order in the proof of theorem 3.1, with constant
    1.

    Examples
    --------
    >>> paper_exploration_rounds(1e6, log_size=math.log(204), failure_probability=0.05)
    2884
    """
    return math.ceil(math.sqrt(_horizon(horizon) * _log_ratio(log_size, failure_probability)))


def tradeoff_rounds(
    horizon: float, exponent: float, log_size: float, failure_probability: float
) -> int:
    """The exploration length that trades regret for fairness.

    Parameters
    ----------
    horizon : float
        T: the number of rounds.
    exponent : float
        alpha.
    log_size : float
        ln|H| of the class.
    failure_probability : float
        delta.

    Returns
    -------
    int
        T0.

    Notes
    -----
    T0 = min(T/2, T^(2 alpha) sqrt(ln(2|H|/delta))) for alpha in [1/4, 1/2]: regret T^(2 alpha),
    slack T^(-alpha).

    alpha = 1/4 is theorem 3.1; the second remark after it states the trade-off, section 4 that
    it is tight.

    Examples
    --------
    >>> tradeoff_rounds(1e6, 0.25, log_size=math.log(204), failure_probability=0.05)
    3002
    """
    if not 0.25 <= exponent <= 0.5:
        raise InvalidInput(
            f"the trade-off exponent is {exponent}; it must lie in [1/4, 1/2].",
            hint="1/4 gives regret T^(1/2) and slack T^(-1/4); 1/2 gives slack T^(-1/2) and no "
            "useful regret.",
        )
    wanted = math.pow(_horizon(horizon), 2 * exponent) * math.sqrt(
        _log_union(log_size, failure_probability)
    )
    return math.ceil(min(horizon / 2, wanted))


def saddle_point_error(oracle_tolerance: float, total_weight: float) -> float:
    """How far the paper's FairCSC may be from the optimum (theorem 3.5).

    Parameters
    ----------
    oracle_tolerance : float
        nu: the error of the oracle, on costs that sum to one.
    total_weight : float
        sum_j |c_j^{-1} - c_j^{+1}|.

    Returns
    -------
    float
        epsilon.

    Notes
    -----
    epsilon = 4 nu sum_j |c_j^{-1} - c_j^{+1}|: how far the paper's FairCSC may be from the
    optimum (theorem 3.5).

    2 nu from the approximate saddle point, 2 nu from tightening gamma to gamma - 2 nu. Needs 0
    < nu < gamma/2 and both group classifiers in H. (In both proofs the mixture with 1[a = -1]
    can overshoot -gamma; mixing just as much as is needed repairs it.)

    Examples
    --------
    >>> saddle_point_error(0.01, total_weight=100.0)
    4.0
    """
    return (
        4
        * _positive(oracle_tolerance, "oracle_tolerance")
        * _positive(total_weight, "total_weight")
    )


# --- section 3.2: the schedule of the bandit and Algorithm 1


def policy_cover_size(log_size: float, resolution: float) -> int:
    """The size of a cover of the mixtures of two hypotheses.

    Parameters
    ----------
    log_size : float
        ln|H| of the class.
    resolution : float
        eta.

    Returns
    -------
    int
        |Pi_eta|.

    Notes
    -----
    |Pi_eta| = ceil(|H|^2 / eta): an eta-cover of the mixtures of two hypotheses.

    Examples
    --------
    >>> policy_cover_size(math.log(4), 0.01)
    1600
    """
    squared = math.exp(2 * _log_size(log_size)) / _share(resolution, "resolution")
    return math.ceil(squared * (1 - 1e-12))


def log_policies(horizon: float, log_size: float, failure_probability: float) -> float:
    """The logarithm that rules the schedule of the bandit.

    Parameters
    ----------
    horizon : float
        T: the number of rounds.
    log_size : float
        ln|H| of the class.
    failure_probability : float
        delta.

    Returns
    -------
    float
        ln(|Pi_eta| T / delta).

    Notes
    -----
    ln(|Pi_eta| T / delta) = ln(|H|^2 T^3 / delta), with eta = 1/T^2: the logarithm that rules
    the schedule.

    Examples
    --------
    >>> round(log_policies(1e6, math.log(204), 1e-3), 3)
    58.991
    """
    return (
        2 * _log_size(log_size)
        + 3 * math.log(_horizon(horizon))
        - math.log(_delta(failure_probability))
    )


def exploration_floor(
    round: float, horizon: float, log_size: float, failure_probability: float
) -> float:
    """The smallest probability of either decision in round t.

    Parameters
    ----------
    round : float
        t = 1, 2, ...
    horizon : float
        T: the number of rounds.
    log_size : float
        ln|H| of the class.
    failure_probability : float
        delta.

    Returns
    -------
    float
        mu_t, at most 1/2.

    Notes
    -----
    mu_t = min(1/2, 3.2 ln(|Pi_eta| T / delta) / sqrt(t)): the smallest probability of either
    decision.

    The paper forgets the minimum; above 1/2 the mixture mu + (1 - 2 mu) Q is no probability. At
    1/2 every decision is a fair coin.

    Examples
    --------
    >>> exploration_floor(1e3, 1e6, math.log(204), 1e-3)
    0.5
    >>> round(exploration_floor(1e6, 1e6, math.log(204), 1e-3), 4)
    0.1888
    """
    return min(
        0.5, 3.2 * log_policies(horizon, log_size, failure_probability) / math.sqrt(_round(round))
    )


def regret_scale(horizon: float) -> float:
    """The constant psi that turns estimated regret into a budget.

    Parameters
    ----------
    horizon : float
        T: the number of rounds.

    Returns
    -------
    float
        psi.

    Notes
    -----
    psi = 4 (e - 2) ln T: b(pi) = estimated regret / (psi mu).

    Examples
    --------
    >>> round(regret_scale(1e6), 2)
    39.69
    """
    return 4 * (math.e - 2) * math.log(_horizon(horizon))


def oracle_slack(oracle_tolerance: float, floor: float, horizon: float) -> float:
    """What an oracle with an error adds to the low-regret constraint.

    Parameters
    ----------
    oracle_tolerance : float
        nu: the error of the oracle, on costs that sum to one.
    floor : float
        mu_t: the exploration floor.
    horizon : float
        T: the number of rounds.

    Returns
    -------
    float
        Lambda_t.

    Notes
    -----
    Lambda_t = nu / (4 (e - 2) mu_t^2 ln T): what an oracle with normalised error nu adds to the
    low-regret constraint.

    On the completed Q it reads sum Q b <= 4 + Lambda_t. (The lemma prints sum Q (4 + b) <= 4 +
    Lambda_t, which fails once Q sums to one: the 4 of the remaining mass is missing.)

    Examples
    --------
    >>> round(oracle_slack(1e-6, floor=0.1, horizon=1e6), 8)
    2.52e-06
    """
    return _positive(oracle_tolerance, "oracle_tolerance") / (
        regret_scale(horizon) * _floor(floor) ** 2
    )


def variance_slack(oracle_tolerance: float, floor: float, horizon: float) -> float:
    """What an oracle with an error adds to the low-variance constraint.

    Parameters
    ----------
    oracle_tolerance : float
        nu: the error of the oracle, on costs that sum to one.
    floor : float
        mu_t: the exploration floor.
    horizon : float
        T: the number of rounds.

    Returns
    -------
    float
        (1 + psi mu_t) Lambda_t.

    Notes
    -----
    (1 + psi mu_t) Lambda_t: what the same oracle adds to the low-variance constraint V <= 4 +
    b.

    The costs of that call sum to at most 1/mu + 1/(psi mu^2), that is (1 + psi mu) / (psi
    mu^2); the paper drops the first term.

    Examples
    --------
    >>> round(variance_slack(1e-6, floor=0.1, horizon=1e6), 8)
    1.252e-05
    """
    return (1 + regret_scale(horizon) * floor) * oracle_slack(oracle_tolerance, floor, horizon)


def iteration_cap(floor: float, labels: int = 2) -> int:
    """Within how many steps Algorithm 1 halts.

    Parameters
    ----------
    floor : float
        mu_t: the exploration floor.
    labels : int, default 2
        K: 2 if both decisions are explored, 1 if acceptance alone is.

    Returns
    -------
    int
        The proved bound on the steps.

    Notes
    -----
    4 ln(1/(K mu)) / mu: Algorithm 1 halts within so many steps (K = 2 labels are explored, or
    1: accept only).

    The potential starts at no more than ln(1/(K mu)) / (1 - K mu), stays at least 0, and each
    step lowers it by at least mu / (4 (1 - K mu)). (The paper prints 1 / (4 (1 - 2 mu)) for a
    step: the factor mu is lost.)

    Examples
    --------
    >>> iteration_cap(0.01), iteration_cap(0.5)
    (1565, 0)
    """
    _labels(labels)
    return math.ceil(4 * math.log(1 / (labels * _floor(floor, 1 / labels))) / floor)


# --- section 3.3: regret


def first_analysed_round(horizon: float, log_size: float, failure_probability: float) -> int:
    """The round from which the regret analysis holds.

    Parameters
    ----------
    horizon : float
        T: the number of rounds.
    log_size : float
        ln|H| of the class.
    failure_probability : float
        delta.

    Returns
    -------
    int
        T_1.

    Notes
    -----
    T_1 = 8 ln(2 |H|^2 T^4 / delta), rounded up: lemma 3.8 needs t >= 8 ln(2 |Pi_eta| t^2 /
    delta), and t^2 <= T^2.

    The paper prints T^3; |Pi_eta| = |H|^2 T^2 times t^2 makes it T^4.

    Examples
    --------
    >>> first_analysed_round(1e6, math.log(204), 1e-3)
    588
    """
    return math.ceil(
        8 * (math.log(2 * horizon) + log_policies(horizon, log_size, failure_probability))
    )


def estimation_error(
    round: float, horizon: float, log_size: float, failure_probability: float
) -> float:
    """How far regret and estimated regret may be apart in round t (lemma 3.10).

    Parameters
    ----------
    round : float
        t = 1, 2, ...
    horizon : float
        T: the number of rounds.
    log_size : float
        ln|H| of the class.
    failure_probability : float
        delta.

    Returns
    -------
    float
        epsilon_t.

    Notes
    -----
    epsilon_t = 1000 ln(|H|^2 T^3 / delta) / sqrt(t): Reg <= 2 estimated Reg + epsilon_t and the
    reverse (lemma 3.10).

    Holds for t >= T_1 and ln T >= 5. Two slips: the lemma prints T^2 where its proof has
    |Pi_eta| T = |H|^2 T^3; and the proof sums epsilon_s as if it were 1000 L / s. The sum of
    1/sqrt(s) is up to 2 sqrt(t), so its last line needs 4000/ln T + 560 <= 1000, that is ln T
    >= 100/11 (T >= 8,875), not 2000/ln T + 560 <= 1000. The range survives because for smaller
    T every round has mu_t = 1/2, and then 560 may be replaced by 86 sqrt(t)/L.

    Examples
    --------
    >>> round(estimation_error(1e6, 1e6, math.log(204), 1e-3), 2)
    58.99
    """
    if math.log(_horizon(horizon)) < SMALLEST_LOG_HORIZON:
        raise InvalidInput(
            f"the horizon {horizon:g} has ln T = {math.log(horizon):.2f}; the induction behind "
            "epsilon_t needs ln T >= 5.",
            hint="use a horizon of at least 149.",
        )
    return 1000 * log_policies(horizon, log_size, failure_probability) / math.sqrt(_round(round))


def bandit_regret_bound(horizon: float, log_size: float, failure_probability: float) -> float:
    """The regret of the bandit (theorem 3.11), with the constants of its proof.

    Parameters
    ----------
    horizon : float
        T: the number of rounds.
    log_size : float
        ln|H| of the class.
    failure_probability : float
        delta.

    Returns
    -------
    float
        The bound, in the transformed loss.

    Notes
    -----
    Theorem 3.11 with the constants of its proof, in the transformed loss (in [0, 1]), with L =
    ln(|Pi_eta| T / delta):

        T_1 + 2 sqrt(T) L (1000 + 3.2 (2 psi (4 + Lambda_T) + 2)) + delta T

    Each round costs 2 psi mu_t sum Q b <= 2 psi mu_t (4 + Lambda_t), plus epsilon_t, plus 2
    mu_t for the coin; nu = 1/T. The paper has psi mu_t Lambda_t for the first term (the printed
    lemma, see `oracle_slack`). With the right one the order is ln T ln(|H| T/delta) sqrt(T):
    one ln T more than theorem 3.11 prints, still within the O~ of theorem 3.1.

    Examples
    --------
    >>> bandit_regret_bound(1e6, math.log(204), 1e-3) > 1e6
    True
    """
    log_term = log_policies(horizon, log_size, failure_probability)
    last_slack = oracle_slack(
        1 / horizon, exploration_floor(horizon, horizon, log_size, failure_probability), horizon
    )
    per_round = 3.2 * (2 * regret_scale(horizon) * (4 + last_slack) + 2) * log_term
    per_round += estimation_error(1, horizon, log_size, failure_probability)
    start = first_analysed_round(horizon, log_size, failure_probability)
    return start + 2 * math.sqrt(horizon) * per_round + failure_probability * horizon


def regret_bound(
    horizon: float, log_size: float, failure_probability: float, exploration: float
) -> float:
    """The regret of the paper's algorithm (theorem 3.1), in 0-1 loss.

    Parameters
    ----------
    horizon : float
        T: the number of rounds.
    log_size : float
        ln|H| of the class.
    failure_probability : float
        delta.
    exploration : float
        T0: the rounds of the exploration phase.

    Returns
    -------
    float
        The bound, to the best gamma-fair policy.

    Notes
    -----
    Theorem 3.1: T0 + 2 (bandit regret bound) + delta T, in 0-1 loss, to the best gamma-fair
    policy.

    Twice, because the bandit sees the halved loss; delta T for the event that the best
    gamma-fair policy is not in the set. The theorem's O~(sqrt T) takes delta <= 1/sqrt(T) and
    T0 of order sqrt(T).

    Examples
    --------
    >>> regret_bound(1e14, math.log(204), 1e-7, exploration=0) < 1e14
    True
    """
    if not 0 <= exploration <= horizon:
        raise InvalidInput(
            f"exploration is {exploration:g} of {horizon:g} rounds; it must lie between 0 and "
            "the horizon."
        )
    return (
        exploration
        + 2 * bandit_regret_bound(horizon, log_size, failure_probability)
        + failure_probability * horizon
    )


# --- when do these constants say anything?


def uniform_rounds(horizon: float, log_size: float, failure_probability: float) -> int:
    """How many rounds of the bandit are fair coins.

    Parameters
    ----------
    horizon : float
        T: the number of rounds.
    log_size : float
        ln|H| of the class.
    failure_probability : float
        delta.

    Returns
    -------
    int
        The last t with mu_t = 1/2.

    Notes
    -----
    How many bandit rounds have mu_t = 1/2, (6.4 L)^2 rounded down: until then every decision is
    a fair coin.

    With |H| = 204 and delta = 1/sqrt(T): 75,286 (T=1e4), 106,250 (1e5), 142,535 (1e6), 184,141
    (1e7). With |H| = 4, T=1e4 and delta = .01: 50,201.

    Examples
    --------
    >>> uniform_rounds(1e6, math.log(204), 1e-3)
    142535
    """
    return math.floor((6.4 * log_policies(horizon, log_size, failure_probability)) ** 2)


def idle_rounds(
    horizon: float, log_size: float, failure_probability: float, labels: int = 2
) -> int:
    """In how many rounds Algorithm 1 halts at once.

    Parameters
    ----------
    horizon : float
        T: the number of rounds.
    log_size : float
        ln|H| of the class.
    failure_probability : float
        delta.
    labels : int, default 2
        K: 2 if both decisions are explored, 1 if acceptance alone is.

    Returns
    -------
    int
        The number of rounds.

    Notes
    -----
    How many bandit rounds Algorithm 1 halts at once at Q = 0, because V(0) = 1/mu <= 2 K: (6.4
    K L)^2 rounded down.

    Until then Q is all on the empirically best policy. With |H| = 204, delta = .001, T=1e6, K =
    2: 570,143.

    Examples
    --------
    >>> idle_rounds(1e6, math.log(204), 1e-3)
    570143
    """
    return math.floor(
        (6.4 * _labels(labels) * log_policies(horizon, log_size, failure_probability)) ** 2
    )


def informative_round(horizon: float, log_size: float, failure_probability: float) -> int:
    """The first round in which the estimation error is below one.

    Parameters
    ----------
    horizon : float
        T: the number of rounds.
    log_size : float
        ln|H| of the class.
    failure_probability : float
        delta.

    Returns
    -------
    int
        The first t with epsilon_t < 1.

    Notes
    -----
    The first t with epsilon_t < 1, (1000 L)^2: before it, lemma 3.10 bounds a regret that is at
    most 1 by more than 1.

    Examples
    --------
    >>> informative_round(1e6, math.log(204), 1e-3)
    3479882269
    """
    return math.floor(estimation_error(1, horizon, log_size, failure_probability) ** 2) + 1


def informative_horizon(log_size: float, failure_probability: float | None = None) -> float:
    """The smallest horizon for which theorem 3.1 says anything.

    Parameters
    ----------
    log_size : float
        ln|H| of the class.
    failure_probability : float, optional
        delta; 1/sqrt(T) by default.

    Returns
    -------
    float
        T, to a relative 1e-6.

    Notes
    -----
    The smallest T (to 1e-6) from which theorem 3.1 says less than "regret <= T"; delta =
    1/sqrt(T) unless given.

    With |H| = 204: 1.82e12, even without exploration.

    Examples
    --------
    >>> f'{informative_horizon(math.log(204)):.3g}'
    '1.82e+12'
    """

    def informative(log_horizon: float) -> bool:
        horizon = math.exp(log_horizon)
        delta = horizon**-0.5 if failure_probability is None else failure_probability
        return regret_bound(horizon, log_size, delta, exploration=0) < horizon

    if failure_probability is not None and 3 * _delta(failure_probability) >= 1:
        raise InvalidInput(
            f"failure_probability is {failure_probability}; from 1/3 on the bound exceeds T for "
            "every T."
        )
    lower, upper = SMALLEST_LOG_HORIZON, 200.0  # bisection: `informative` becomes true once
    while upper - lower > 1e-9:
        middle = (lower + upper) / 2
        lower, upper = (lower, middle) if informative(middle) else (middle, upper)
    return math.exp(upper)


# --- section 4: the lower bound


def lower_bound_horizon(exponent: float) -> float:
    """The smallest horizon for which the lower bound holds (theorem 4.1).

    Parameters
    ----------
    exponent : float
        alpha.

    Returns
    -------
    float
        16^(1/alpha).

    Notes
    -----
    T >= 16^(1/alpha): theorem 4.1 needs gamma = T^(-alpha) <= 1/16, for alpha in (0, 1/2).

    Examples
    --------
    >>> lower_bound_horizon(0.25), round(lower_bound_horizon(1 / 3))
    (65536.0, 4096)
    """
    if not 0 < exponent < 0.5:
        raise InvalidInput(f"the exponent is {exponent}; theorem 4.1 holds for alpha in (0, 1/2).")
    return float(16 ** (1 / exponent))


def kl_divergence(gap: float) -> float:
    """How different the two populations of the lower bound are, exactly.

    Parameters
    ----------
    gap : float
        gamma, at most 1/16.

    Returns
    -------
    float
        KL(D1 || D2).

    Notes
    -----
    KL(D1 || D2) = 2 gamma ln((1 + 8 gamma) / (1 - 8 gamma)), exactly; D1 and D2 differ in 2 of
    the 8 contexts.

    Examples
    --------
    >>> round(kl_divergence(1 / 16), 4)
    0.1373
    """
    _lower_bound_gap(gap)
    return 2 * gap * math.log((1 + 8 * gap) / (1 - 8 * gap))


def kl_bound(gap: float) -> float:
    """How different the two populations of the lower bound are, at most.

    Parameters
    ----------
    gap : float
        gamma, at most 1/16.

    Returns
    -------
    float
        64 gamma^2.

    Notes
    -----
    KL(D1 || D2) <= 64 gamma^2 for gamma <= 1/16, the paper's bound (32 gamma^2 is what it tends
    to for small gamma).

    Examples
    --------
    >>> kl_bound(1 / 16)
    0.25
    """
    return 64 * _lower_bound_gap(gap) ** 2


def indistinguishable_rounds(gap: float, advantage: float = 0.01) -> float:
    """For how many rounds nobody can tell the two populations apart.

    Parameters
    ----------
    gap : float
        gamma, at most 1/16.
    advantage : float, default 0.01
        beta: the advantage over guessing with which D1 and D2 are told apart.

    Returns
    -------
    float
        K.

    Notes
    -----
    K = 2 beta^2 / (64 gamma^2): before round K nobody tells D1 from D2 with an advantage above
    beta (lemma 4.4; paper: .01).

    Examples
    --------
    >>> round(indistinguishable_rounds(0.01), 4)
    0.0312
    """
    return 2 * _share(advantage, "advantage") ** 2 / kl_bound(gap)


def regret_lower_bound(gap: float, failure_probability: float, advantage: float = 0.01) -> float:
    """The regret that no fair learner can avoid (theorem 4.1), with the paper's constants.

    Parameters
    ----------
    gap : float
        gamma, at most 1/16.
    failure_probability : float
        delta.
    advantage : float, default 0.01
        beta: the advantage over guessing with which D1 and D2 are told apart.

    Returns
    -------
    float
        The bound, in rounds.

    Notes
    -----
    Theorem 4.1 with its constants: K (1/2 - beta - 2 delta) (1/4 + 2 gamma), K =
    `indistinguishable_rounds`.

    Under D1 a gamma-fair mixture has weight at most 1/4 on h1, under D2 on h2; until round K
    one of the constants is played with probability 1/2 - beta - 2 delta (paper: .49 - 2 delta,
    delta <= .24), and costs 1/4 + 2 gamma each time. With gamma = T^(-alpha): 3.1e-6 T^(2
    alpha) rounds, so K < 1 below T = 1.02e11 (alpha = 1/4) or 1.81e8 (alpha = 1/3).

    Examples
    --------
    >>> round(regret_lower_bound(0.01, 0.05), 6)
    0.003291
    """
    played = 0.5 - advantage - 2 * _delta(failure_probability)
    if played <= 0:
        raise InvalidInput(
            f"failure_probability is {failure_probability}; with advantage {advantage} theorem "
            "4.1 needs less than "
            f"{0.25 - advantage / 2:g}.",
            hint="beyond it a learner may ignore the constraint on one of the two distributions.",
        )
    return indistinguishable_rounds(gap, advantage) * played * (0.25 + 2 * gap)


def sharp_regret_lower_bound(gap: float, failure_probability: float) -> float:
    """The regret that no fair learner can avoid, by the same argument without waste.

    Parameters
    ----------
    gap : float
        gamma, at most 1/16.
    failure_probability : float
        delta.

    Returns
    -------
    float
        The bound, in rounds.

    Notes
    -----
    The same argument without waste: (2/3) c^3 / KL(D1 || D2) (1/4 + 2 gamma), c = 1/2 - 2
    delta.

    About 1,000 times the paper's constant at delta = .05.

    What is played in round t rests on t - 1 people, so Pinsker gives an advantage of at most
    sqrt((t - 1) KL / 2), and the regret is at least (1/4 + 2 gamma) times the sum over s >= 0
    of (c - sqrt(s KL / 2))_+, which is at least its integral. Needs delta < 1/4 and a horizon
    of at least 2 c^2 / KL + 1 rounds.

    Examples
    --------
    >>> round(sharp_regret_lower_bound(0.01, 0.05), 3)
    3.592
    """
    free = 0.5 - 2 * _delta(failure_probability)
    if free <= 0:
        raise InvalidInput(
            f"failure_probability is {failure_probability}; the lower bound needs less than 1/4."
        )
    return 2 / 3 * free**3 / kl_divergence(gap) * (0.25 + 2 * gap)


# --- what arguments must be


def _log_union(log_size: float, failure_probability: float) -> float:
    return math.log(2) + _log_ratio(log_size, failure_probability)


def _log_ratio(log_size: float, failure_probability: float) -> float:
    return _log_size(log_size) - math.log(_delta(failure_probability))


def _log_size(value: float) -> float:
    if not (math.isfinite(value) and value >= 0):
        raise InvalidInput(
            f"log_size is {value}; ln|H| of a finite class is a number of at least 0.",
            hint="for an infinite class use the logarithm of its growth function.",
        )
    return value


def _delta(value: float) -> float:
    if not 0 < value < 1:
        raise InvalidInput(
            f"failure_probability is {value}; it must lie strictly between 0 and 1.",
            hint="0.05 is usual.",
        )
    return value


def _horizon(value: float) -> float:
    if not (math.isfinite(value) and value > 1):
        raise InvalidInput(f"the horizon is {value}; it must be a finite number of rounds above 1.")
    return value


def _round(value: float) -> float:
    if not value >= 1:
        raise InvalidInput(f"the round is {value}; rounds count from 1.")
    return value


def _floor(value: float, largest: float = 0.5) -> float:
    if not 0 < value <= largest:
        raise InvalidInput(f"the exploration floor is {value}; it must lie in (0, {largest:g}].")
    return value


def _labels(value: int) -> int:
    if value not in (1, 2):
        raise InvalidInput(
            f"labels is {value}; either both decisions are explored (2) or acceptance alone (1)."
        )
    return value


def _share(value: float, name: str) -> float:
    if not 0 < value <= 1:
        raise InvalidInput(f"{name} is {value}; it must lie in (0, 1].")
    return value


def _positive(value: float, name: str) -> float:
    if not (math.isfinite(value) and value > 0):
        raise InvalidInput(f"{name} is {value}; it must be a finite number above 0.")
    return value


def _lower_bound_gap(value: float) -> float:
    if not 0 < value <= LARGEST_LOWER_BOUND_GAP:
        raise InvalidInput(
            f"the gap of the lower-bound instance is {value}; it must lie in (0, 1/16].",
            hint="with gap = T^(-alpha) this means T >= 16^(1/alpha): 65,536 for alpha = 1/4, "
            "4,096 for alpha = 1/3.",
        )
    return value
