"""Rules that could not be read from a file, and what stays of them.

`storage` puts `Unread`, which rejects all applicants, in the place of a fitted rule that the
installed libraries cannot read, or read otherwise. The place is kept: the N-th nominated rule has
the N-th part of delta, and no part is given twice. What was known of the rule is forgotten and
nothing is bet on its place any more (a wealth that stays 1 proves nothing), so its part of delta
pays for what was claimed before, and for nothing later. That the place itself has no gap, and
accepts nobody, is no estimate (`CertifiedState.certified`).
"""

from dataclasses import replace
from typing import Any

import numpy as np

from evenhand.algorithms.certified.accepted_shares import AcceptedShares
from evenhand.algorithms.certified.intervals import BettingProcess, EpochRecord
from evenhand.algorithms.certified.state import CertifiedState
from evenhand.bounds import BettingState
from evenhand.hypotheses.constants import Unread
from evenhand.words import BoolArray


def unread_left_out(state: CertifiedState) -> CertifiedState:
    """The state without anything that was known of rules that could not be read."""
    process = state.process
    if process is None:
        return state
    gone = np.array([isinstance(rule, Unread) for rule in process.members], dtype=bool)
    if not gone.any():
        return state
    shares = state.accepted_shares
    drift = state.drift
    return replace(
        state,
        process=replace(process, state=_forgotten(process, gone)),
        records={number: _nothing_bet(record, gone) for number, record in state.records.items()},
        accepted_shares=None if shares is None else _nothing_claimed(shares, gone),
        drift=None if drift is None else drift.without_unread(state.groups or ()),
    )


def _forgotten(process: BettingProcess, gone: BoolArray) -> BettingState:
    """The sums of these rules as before the first round; rounds and mass count people alone."""
    bound = process.bound
    new = BettingState.empty(
        len(process.members),
        len(bound.rates),
        len(bound.groups),
        len(bound.horizons),
        len(bound.joins),
    ).to_arrays()
    kept: dict[str, Any] = {}
    for name, array in process.state.to_arrays().items():
        which = gone.reshape(-1, *[1] * (array.ndim - 1))
        kept[name] = array if name in ("rounds", "mass") else np.where(which, new[name], array)
    return BettingState(**kept)


def _nothing_bet(record: EpochRecord, gone: BoolArray) -> EpochRecord:
    """The record of an open epoch; rules that were nominated later have no bets in it."""
    if record.bets is None:
        return record
    bets = record.bets.bets.copy()
    bets[gone[: len(bets)]] = 0.0
    return replace(record, bets=replace(record.bets, bets=bets))


def _nothing_claimed(shares: AcceptedShares, gone: BoolArray) -> AcceptedShares:
    """The accepted shares, with a part of delta of 0 for these rules."""
    new = AcceptedShares.start(np.zeros(len(gone)), capped=shares.capped, floored=shares.floored)
    names = ("deltas", "people", "most", "least", "lower", "upper")
    own = {name: np.where(gone, getattr(new, name), getattr(shares, name)) for name in names}
    return replace(shares, **own)
