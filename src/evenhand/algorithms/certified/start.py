"""Before anything is certified, and how a run of certification starts.

Constants are deployed first. Once every group has its first people, groups and hypotheses are
fixed, each is given its part of delta_r, and the intervals and the drift tests begin.
"""

from dataclasses import replace
from functools import partial
from math import log

import numpy as np

from evenhand.algorithms.certified.accepted_shares import AcceptedShares
from evenhand.algorithms.certified.choose import SCHEDULE
from evenhand.algorithms.certified.cost_posterior import PooledCosts
from evenhand.algorithms.certified.drift import DriftWatch
from evenhand.algorithms.certified.evidence import first_arrivals
from evenhand.algorithms.certified.intervals import BettingProcess
from evenhand.algorithms.certified.nominate import nominate
from evenhand.algorithms.certified.prior import likely_delta_parts
from evenhand.algorithms.certified.rule_tables import acceptance_table
from evenhand.algorithms.certified.sample import ClosedPeople
from evenhand.algorithms.certified.settings import CUTS, MOST_LOG_SIZE
from evenhand.algorithms.certified.state import CertifiedState, Guarantee
from evenhand.algorithms.own_parts import OwnPartFailed, watched
from evenhand.bounds import BettingBound
from evenhand.contracts import Enumeration, GroupUse, Hypothesis, HypothesisClass
from evenhand.estimation import RoundLog, TransformedLoss
from evenhand.estimation.outcomes import fit_outcomes
from evenhand.fairness.certificate import Suspension
from evenhand.hypotheses import Stumps
from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL, is_constant
from evenhand.policies import Mixture
from evenhand.randomness import stream
from evenhand.rounds import Counts, Epoch, Rounds
from evenhand.words import FloatArray, Group


def constant_epoch(
    state: CertifiedState,
    number: int,
    round: int,
    length: int,
    *,
    fallback: str,
    aim: float = 1.0,
) -> Epoch:
    """Before anything is certified: accept all applicants; after a suspension: the fallback,
    audited. Under a cap or a floor: the lottery at the nearest accepted share that is permitted,
    which has no gap and accepts exactly that share. aim: the accepted share that spreads a quota,
    which outranks the floor.
    """
    guarantee = state.guarantee
    accepted = 1.0
    if state.run > 1 and fallback == "reject":
        accepted = max(0.05, SCHEDULE.exploration_floor(round))
    accepted = min(max(accepted, guarantee.least), guarantee.most, aim)
    return Epoch(
        number,
        "explore",
        round,
        length,
        lottery(accepted, guarantee.group_use),
        audit=accepted,
        exploration_floor=accepted,
    )


def lottery(accepted: float, group_use: GroupUse) -> Mixture:
    """Accept with this probability, whoever the person is."""
    if accepted == 1.0:
        return Mixture((ACCEPT_ALL,), (1.0,), group_use)
    if accepted == 0.0:
        return Mixture((REJECT_ALL,), (1.0,), group_use)
    return Mixture((ACCEPT_ALL, REJECT_ALL), (accepted, 1.0 - accepted), group_use)


def warm_start(state: CertifiedState, history: RoundLog) -> CertifiedState:
    """Count audited people who were decided before the first round: which groups there are,
    and whether each has its first people.
    """
    coin = float(history.acceptance[0])  # one coin for all: every accept was an audit
    counts = Counts.of_log(0, 0, history, coin, np.random.default_rng(0))
    return replace(state, evidence=state.evidence.add(counts, None, judged=False))


class CannotStart(Exception):
    """There is no rule that could be judged: constants stay in force. It says why."""


def start(
    state: CertifiedState,
    rounds: Rounds,
    people: ClosedPeople,
    *,
    hypotheses: HypothesisClass,
    candidates: tuple[Hypothesis, ...],
    arrivals: int,
    loss: TransformedLoss,
) -> CertifiedState:
    """Fix groups and hypotheses, book delta_r, and begin: people of later epochs are judged,
    those who wait for their labels are not. CannotStart if there is no rule to judge.

    candidates: members from the start; arrivals: N_0, whose values are cuts.
    """
    guarantee = state.guarantee
    groups = guarantee.groups or state.evidence.groups
    members: tuple[Hypothesis, ...] = ()
    if not guarantee.nominates:
        members = _members(state, rounds, hypotheses, candidates, arrivals)
    ledger = state.ledger
    accepted_shares, group_accepted_shares = _first_accepted_shares(
        guarantee, state.run, members, groups
    )
    for number, part in enumerate(
        () if accepted_shares is None else (accepted_shares, group_accepted_shares)
    ):
        if part is not None and part.deltas.any():
            what = f"accepted shares of {len(part)} {('hypotheses', 'groups')[number]}"
            booked = float(part.deltas.sum())
            ledger = ledger.book(what, booked, at=rounds.decided, run=state.run)
    if not guarantee.nominates:
        what = f"betting over {len(members)} hypotheses"
        delta = guarantee.own_delta(state.run)
        ledger = ledger.book(what, delta, at=rounds.decided, run=state.run)
    drift = DriftWatch.start(
        groups,
        guarantee.false_alarm(state.run),
        state.closed_to,
        seed=guarantee.seed,
        run=state.run,
    )
    state = replace(
        state,
        groups=groups,
        # constants treat all groups alike, so a group is covered since the run began
        covered_from=dict.fromkeys(groups, state.began),
        suspensions=_resumed(state.suspensions, rounds.decided),
        ledger=ledger,
        process=_process(state, groups, members, people, loss),
        accepted_shares=accepted_shares,
        group_accepted_shares=group_accepted_shares,
        drift=drift,
        trouble=None,
    )
    if not (guarantee.nominates and candidates):
        return state
    # the first nominees; when the next ones are due does not depend on them
    return replace(
        nominate(state, candidates, rounds.decided, 0.0), nominated_at=0.0, nominated_labels=0.0
    )


def _resumed(suspensions: tuple[Suspension, ...], round: int) -> tuple[Suspension, ...]:
    """With the round from which learned rules are certified again after the last of them."""
    if not suspensions:
        return ()
    *earlier, last = suspensions
    return (*earlier, replace(last, resumed=round))


def _members(
    state: CertifiedState,
    rounds: Rounds,
    hypotheses: HypothesisClass,
    candidates: tuple[Hypothesis, ...],
    arrivals: int,
) -> tuple[Hypothesis, ...]:
    """The finite class that all later rounds are judged by: H itself, or its cuts at the values
    of exactly the first N_0 arrivals of the run, however they were grouped into calls. If there is
    no cut, or none of them is left, of the first 2 N_0, 4 N_0, ...: these numbers are preset, too.
    """
    arrived = rounds.decided - state.began
    members = _members_of(state, rounds, hypotheses, candidates, arrivals)
    while not members and 2 * arrivals <= arrived:
        arrivals *= 2
        members = _members_of(state, rounds, hypotheses, candidates, arrivals)
    if not members:
        raise CannotStart(
            f"none of the rules of {type(hypotheses).__name__} tells the first {arrivals} people "
            "apart"
        )
    return members


def _members_of(
    state: CertifiedState,
    rounds: Rounds,
    hypotheses: HypothesisClass,
    candidates: tuple[Hypothesis, ...],
    arrivals: int,
) -> tuple[Hypothesis, ...]:
    source = watched(hypotheses)
    name = type(hypotheses).__name__
    if isinstance(source, Stumps) and source.max_bins is None:
        source = Stumps(max_bins=CUTS)
    past = first_arrivals(rounds, state.began, state.began + arrivals)
    if not len(past.features):
        return candidates
    try:
        bound = source.bind(past.features, past.group if state.guarantee.group_decides else None)
        if not isinstance(bound, Enumeration):
            raise CannotStart(
                f"{name} says that it is exact, and does not list its members; from a class with "
                "exact = False rules are nominated"
            )
        size = bound.totals(np.zeros((1, len(past.features)))).shape[1]
        if size and log(size) > MOST_LOG_SIZE:
            raise CannotStart(
                f"{name} has {size:,} members, and a union over them is too wide; leave columns "
                "out, or take a class that is fitted"
            )
        every = [bound.hypothesis(i) for i in range(size)]
    except OwnPartFailed as failure:
        raise CannotStart(str(failure)) from failure
    more = [one for one in every if not is_constant(one) and one not in candidates]
    return (*candidates, *more)


def _process(
    state: CertifiedState,
    groups: tuple[Group, ...],
    members: tuple[Hypothesis, ...],
    people: ClosedPeople,
    loss: TransformedLoss,
) -> BettingProcess:
    """The intervals before they have seen anybody, with all of delta_r that is for the gaps."""
    guarantee = state.guarantee
    delta = guarantee.own_delta(state.run)
    parts: tuple[float, ...] = ()
    if not guarantee.nominates:
        parts = tuple((delta * _likely(state, groups, members, people, loss)).tolist())
    bound = BettingBound(groups, guarantee.rates, len(members), delta, delta_parts=parts)
    return BettingProcess(bound, members, bound.start(), guarantee.group_decides)


def _likely(
    state: CertifiedState,
    groups: tuple[Group, ...],
    members: tuple[Hypothesis, ...],
    people: ClosedPeople,
    loss: TransformedLoss,
) -> FloatArray:
    """The part of delta of each member: by the first people, none of whom is judged."""
    guarantee = state.guarantee
    sample = people.sample
    assert sample is not None  # cohorts have been closed
    past = people.past
    costs = PooledCosts.of(
        sample.log,
        (past.features, past.group if guarantee.group_decides else None),
        partial(acceptance_table, members),
        fit_outcomes(sample.observed),
        loss,
        sample.observed,
    )
    generator = stream(guarantee.seed, "shares of delta", state.run)
    return likely_delta_parts(costs, past, guarantee.rates, groups, guarantee.limit, generator)


def _first_accepted_shares(
    guarantee: Guarantee, run: int, members: tuple[Hypothesis, ...], groups: tuple[Group, ...]
) -> tuple[AcceptedShares | None, AcceptedShares | None]:
    """The accepted shares of hypotheses and of group classifiers at the start of a run; None
    without a cap and a floor. All of delta that is kept for them is split evenly; where hypotheses
    are nominated, half of it is for the groups, if they decide, and the rest for what will be
    nominated.
    """
    if not guarantee.limits_acceptance:
        return None, None
    sides = {
        "capped": guarantee.accept_at_most is not None,
        "floored": guarantee.accept_at_least is not None,
    }
    decide = guarantee.group_decides
    each = guarantee.acceptance_delta(run) / max(len(members) + decide * len(groups), 1)
    if guarantee.nominates:
        each = 0.5 * guarantee.acceptance_delta(run) / len(groups)
    of_members = AcceptedShares.start(np.full(len(members), each), **sides)
    if not decide:
        return of_members, None
    return of_members, AcceptedShares.start(np.full(len(groups), each), **sides)
