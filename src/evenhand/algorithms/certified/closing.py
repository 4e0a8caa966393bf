"""Closing cohorts: the people of one epoch whose labels have matured are counted once.

`count_open` keeps sums over the rounds that are to close next, `matured` cuts them by epoch, and
`close` adds one cohort to all that is known.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from evenhand.algorithms.certified.accepted_shares import AcceptedShares
from evenhand.algorithms.certified.evidence import group_codes
from evenhand.algorithms.certified.intervals import EpochRecord
from evenhand.algorithms.certified.rule_tables import RuleSlots
from evenhand.algorithms.certified.sample import (
    ClosedRounds,
    KeptCounts,
    closed_rounds,
    remember,
    still_needed,
)
from evenhand.algorithms.certified.state import CertifiedState
from evenhand.algorithms.certified.tally import OPEN, OpenCohorts, TalliedCohort
from evenhand.rounds import Counts, Rounds, counting, windows
from evenhand.words import BoolArray

NO_RULES = RuleSlots(())


def count_open(state: CertifiedState, rounds: Rounds, now: float | None) -> CertifiedState:
    """Sums over the rounds that have matured and are not closed, with those since the last
    look: all of them will close together. Where rows are kept the sums can be counted anew from
    them, so they are left in the table's memory; where rows leave they are part of the state.
    """
    cohorts = _open_cohorts(state, rounds, now)
    if rounds.keep == "rows":
        return state
    return replace(state, kept=KeptCounts(closed_of(state, rounds), cohorts))


def _open_cohorts(state: CertifiedState, rounds: Rounds, now: float | None) -> OpenCohorts:
    slots = rule_slots(state)
    cohorts: OpenCohorts | None
    if rounds.keep == "rows":
        # taken out while they are added to: if that is interrupted, they are counted anew
        _, cohorts = rounds.cache.take_prefix(OPEN)
    else:
        cohorts = None if state.kept is None else state.kept.open
    other_rules = cohorts is not None and cohorts.slots not in (None, slots)
    if cohorts is None or cohorts.since != state.closed_to or other_rules:
        cohorts = OpenCohorts(state.closed_to, state.closed_to)
    elif rounds.keep == "counts":
        cohorts = cohorts.copy()
    records = state.records.items()
    judged = {number: record.regression for number, record in records if record.bets is not None}
    stop = windows.matured(rounds, now, state.guarantee.maturity)
    cohorts.feed(rounds, stop, slots, judged, group_decides=state.guarantee.group_decides)
    if rounds.keep == "rows":
        rounds.cache.keep_prefix(OPEN, cohorts.fed_to, cohorts)
    return cohorts


def closed_of(state: CertifiedState, rounds: Rounds) -> ClosedRounds:
    """What planning keeps of the closed cohorts of this run."""
    if rounds.keep == "rows":
        return closed_rounds(
            rounds,
            state.spans,
            rule_slots(state),
            before=state.first_run,
            fixed=not state.guarantee.nominates,
        )
    if state.kept is None:
        return ClosedRounds.none(rounds, before=state.first_run)
    return state.kept.closed


def _with_closed(state: CertifiedState, rounds: Rounds, closed: ClosedRounds) -> CertifiedState:
    """The same with what planning keeps, where rows leave; else the table remembers it."""
    if rounds.keep == "rows":
        remember(rounds, closed, before=state.first_run)
        return state
    return replace(state, kept=KeptCounts(closed))


def count_between_cuts(state: CertifiedState, rounds: Rounds) -> CertifiedState:
    """Where rows leave: the exact counts between cuts, while the rows of all cohorts are there."""
    if rounds.keep == "rows" or state.guarantee.nominates:
        return state
    closed = closed_of(state, rounds).with_between_cuts(rounds, rule_slots(state))
    return _with_closed(state, rounds, closed)


def matured(
    state: CertifiedState, rounds: Rounds, now: float | None
) -> Iterator[Counts | TalliedCohort]:
    """The prefix of rounds whose window has passed, cut by epoch.

    A prefix, because closing whoever is ready would select people with quick labels.
    """
    cohorts = _open_cohorts(state, rounds, now)
    slots = rule_slots(state)
    for span in cohorts.spans:
        _, first, stop = span
        tally = cohorts.tallies.get(first)
        yield (
            counting.count(rounds, first, stop)
            if tally is None
            else tally.closed(rounds, span, slots)
        )


def close(state: CertifiedState, cohort: Counts | TalliedCohort, rounds: Rounds) -> CertifiedState:
    """Look at a closed cohort exactly once, by the record that opened its epoch: a second look
    with a newer record would not be predictable. A cohort without a record (a constant or a
    lottery was deployed, before intervals started) only counts towards the start.
    """
    record = state.records.get(cohort.epoch)
    process = state.process
    contradictions = state.contradictions
    judged = False
    if process is not None and record is not None:
        judged = record.bets is not None
        process = process.update(cohort, record)
        contradictions = int(process.intervals()[2].sum())
    accepted_shares = state.accepted_shares
    group_accepted_shares = state.group_accepted_shares
    if accepted_shares is not None and record is not None:
        accepted_shares, group_accepted_shares = _with_accepted_shares_of(state, cohort, record)
    span = (cohort.epoch, cohort.first, cohort.stop)
    closed = closed_of(state, rounds).with_cohort(rounds, span, rule_slots(state), cohort)
    state = replace(
        state,
        process=process,
        contradictions=contradictions,
        accepted_shares=accepted_shares,
        group_accepted_shares=group_accepted_shares,
        evidence=state.evidence.add(cohort, state.groups, judged=judged),
        closed_to=cohort.stop,
        spans=(*state.spans, span),
    )
    return _with_closed(state, rounds, closed)


def _with_accepted_shares_of(
    state: CertifiedState, cohort: Counts | TalliedCohort, record: EpochRecord
) -> tuple[AcceptedShares, AcceptedShares | None]:
    """The accepted shares of rules, with a closed cohort: all its people count."""
    process, groups = state.running
    assert state.accepted_shares is not None
    decide = state.guarantee.group_decides
    rounds = cohort.rounds
    # where rules see the group, what they say about one that nobody has named is not known
    codes = group_codes(cohort.group, groups)
    inside = codes >= 0 if decide else np.ones(len(rounds), dtype=bool)
    if isinstance(cohort, TalliedCohort):
        accepted = cohort.chosen(inside)
    else:
        shown = cohort.group[inside] if decide else None
        accepted = process.table(cohort.features[inside], shown) @ rounds[inside]
    doubtful = float(rounds[~inside].sum()) + cohort.lost
    people = float(rounds[inside].sum())
    of_members = state.accepted_shares.update(accepted[: record.n_members], people, doubtful)
    if not decide or state.group_accepted_shares is None:
        return of_members, None
    known = np.array([value is not None for value in cohort.group.tolist()], dtype=bool)
    own = codes[known] == np.arange(len(record.labelled))[:, np.newaxis]
    doubtful = float(rounds[~known].sum()) + cohort.lost
    people = float(rounds[known].sum())
    return of_members, state.group_accepted_shares.update(own @ rounds[known], people, doubtful)


def join_groups(state: CertifiedState, round: int) -> CertifiedState:
    """A group that has turned up since the start, and has a few people by now, joins."""
    if state.process is None or not state.guarantee.reserved(state.run):
        return state
    for group in state.evidence.groups:
        if group not in (state.groups or ()):
            state = state.joined_by_group(group, round)
    return state


def rule_slots(state: CertifiedState) -> RuleSlots:
    """Where the rules of the certificate cut; no rules before intervals start."""
    return NO_RULES if state.process is None else state.process.slots


def needed_rows(state: CertifiedState, rounds: Rounds) -> BoolArray | None:
    """Where counts alone are kept: which rows of the table are still needed; None: all of
    them.
    """
    cohorts = None if state.kept is None else state.kept.open
    if state.process is None or state.drift is None or cohorts is None:
        return None
    if cohorts.since != state.closed_to:
        return None  # a cohort has just been closed: at the next look
    return still_needed(rounds, closed_of(state, rounds), cohorts, state.drift.fed_to)
