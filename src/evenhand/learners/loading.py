"""`load`: a stored learner continues where it was, bit for bit; a file in which somebody has
changed something is refused.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import fields
from math import inf
from typing import Any

import numpy as np

from evenhand.bounds import BettingState
from evenhand.contracts import HypothesisClass
from evenhand.errors import InvalidInput, StorageError
from evenhand.fairness.certificate import RULES
from evenhand.learners import storage
from evenhand.learners.certified.cohorts import ClosedCohort
from evenhand.learners.certified.intervals import AuditProcess, AuditTotals, BettingProcess
from evenhand.learners.certified.learner import CertifiedLearner
from evenhand.learners.certified.run import Past, Promise, Tally
from evenhand.learners.codec import storable
from evenhand.learners.epochs import STORED_LEARNERS, EpochLearner, plain
from evenhand.learners.older_rules import take_over

_COUNT, _PROBABILITY, _GAP = (0.0, inf), (0.0, 1.0), (-1.0, 1.0)
_RANGES: dict[type, dict[tuple[float, float], str]] = {
    BettingState: {_PROBABILITY: "lower upper", _GAP: "gap_lower gap_upper", _COUNT: "rounds"},
    AuditTotals: {_GAP: "lo hi", _COUNT: "accepted doubtful_accepted people doubtful audits look"},
    ClosedCohort: {_PROBABILITY: "acceptance", _COUNT: "rejected positive negative unresolved"},
    Tally: {_COUNT: "people unknown accepted negatives unresolved audited_negatives"},
    Past: {_COUNT: "weight"},
}
"""What the numbers of stored records can be: counts, probabilities, gaps."""
for _record, _named in _RANGES.items():
    storable(
        _record,
        **{_field: _range for _range, _names in _named.items() for _field in _names.split()},
    )
_RESTORE = "somebody has changed the file: restore it from a copy, or make a new learner with the settings you want."


def load(
    path: str | os.PathLike[str], *, hypotheses: HypothesisClass | None = None
) -> EpochLearner:
    """The learner that `save` stored: the same coins, the same policies, the same report from here
    on.

    Parameters
    ----------
    path
        The file. One that was written under older rules opens, too: a certified learner then begins a
        new life, on people decided from here on; see docs/operating.md.
    hypotheses
        Needed where the class is made of Python functions or foreign models, which cannot be stored as data.

    Raises
    ------
    StorageError
        If the file is no stored learner, is damaged, or was changed: if its settings are not those with which the learner was made or
        those of its promise, or if a stored number is not finite or out of its range.
    """
    stored = storage.read(path, hypotheses)
    if stored.learner not in STORED_LEARNERS:
        raise StorageError(
            f"{path} holds a {stored.learner!r}; known are {', '.join(sorted(STORED_LEARNERS))}.",
            hint="import the module that defines it first.",
        )
    if stored.decoder is None:
        _require_same(
            stored.settings, stored.state.get("_settings", {}), "the learner was made with"
        )
    try:
        learner = STORED_LEARNERS[stored.learner](**stored.settings)
    except (InvalidInput, TypeError) as error:
        raise StorageError(
            f"the settings in {path} make no {stored.learner}: {error}", hint=_RESTORE
        ) from error
    if stored.decoder is not None:
        take_over(learner, stored.state, stored.decoder, stored.rules)
        return learner
    fresh, state = learner._state(), stored.state
    if fresh.keys() != state.keys():
        other = ", ".join(sorted(fresh.keys() ^ state.keys()))
        raise StorageError(
            f"{path} is damaged: {other} is missing from its state, or does not belong there."
        )
    for name, value in fresh.items():
        kinds = {type(value), type(state[name])} - {type(None)}
        if len(kinds) > 1 and not kinds <= {int, float}:
            raise StorageError(
                f"{path} is damaged: {name} is of kind {type(state[name]).__name__}.", hint=_RESTORE
            )
    try:
        learner._restore(state)
        learner._rules = (
            RULES if stored.rules == 2 else learner._rules
        )  # without a certificate rules 3 are rules 2
        if stored.settings.get("seed") is not None:
            drawn = "the learner has drawn its coins with"
            _require_same({"seed": stored.settings["seed"]}, {"seed": learner.seed}, drawn)
        if isinstance(learner, CertifiedLearner):
            _require_same(
                _promised(learner._promise()),
                _promised(learner._life.promise),
                "the learner has promised",
            )
        wrong = next(_unsound(learner), None)
    except (ArithmeticError, AttributeError, LookupError, TypeError) as error:
        wrong = f"something in its state is of another kind ({error})"
    if wrong is not None:
        raise StorageError(f"{path} is no sound learner: {wrong}.", hint=_RESTORE)
    return learner


def _require_same(told: Mapping[str, Any], kept: Mapping[str, Any], law: str) -> None:
    for name in sorted({*told, *kept}):
        now, then = plain(told.get(name)), plain(kept.get(name))
        if now != then or (name in told) != (name in kept):
            raise StorageError(f"the setting {name} is {now!r}, but {law} {then!r}.", hint=_RESTORE)


def _promised(promise: Promise) -> dict[str, Any]:
    """What is promised, by the names of the settings."""
    names = {"limit": "allowed_gap", "rates": "rate"}
    return {
        names.get(part.name, part.name): getattr(promise, part.name) for part in fields(promise)
    }


def _unsound(learner: EpochLearner) -> Iterator[str]:
    """What cannot be in a learner that has lived by the rules.

    Numbers are finite and in their ranges already; see `codec`.
    """
    epochs, blocks = learner._epochs, learner._book.blocks
    if (
        [epoch.number for epoch in epochs] != list(range(1, len(epochs) + 1))
        or learner._left < 0
        or not epochs
    ):
        yield "its epochs are not numbered 1, 2, ..., or end before the present round"
    if blocks and blocks[-1].first + len(blocks[-1].accept) > learner.round:
        yield f"its book goes beyond round {learner.round}"
    if not isinstance(learner, CertifiedLearner):
        return
    life, process = learner._life, learner._life.process
    if life.ledger.failure_probability != life.promise.failure_probability:
        yield f"the delta ledger is about {life.ledger.failure_probability}, not {life.promise.failure_probability}"
    if process is not None and life.groups is None:
        yield "it has intervals but no groups"
    if isinstance(process, BettingProcess):
        if len(process.members) != process.bound.hypotheses:
            yield f"it has {len(process.members)} hypotheses, and a bound for {process.bound.hypotheses}"
        yield from _other_shapes(process.state, process.bound.start())
    if isinstance(process, AuditProcess):
        yield from _other_shapes(
            process.totals,
            AuditTotals.none(len(process.members), len(process.rates), len(process.groups)),
        )
    past = life.tally.past
    if not len(past.features) == len(past.group) == len(past.weight):
        yield "what it remembers of past people has columns of different lengths"
    for number, (low, high) in learner._records.items():
        if (
            low.shape != high.shape
            or (np.abs(low) > 1 + 1e-9).any()
            or (np.abs(high) > 1 + 1e-9).any()
        ):
            yield f"the certified gaps of epoch {number} leave [-1, 1]"
    for cohort in learner._queue:
        rows = len(cohort.features)
        for part in fields(cohort):
            column, needed = (
                getattr(cohort, part.name),
                (3, rows) if part.name.startswith("settled") else (rows,),
            )
            if part.name.startswith("lost_"):
                needed = cohort.lost_acceptance.shape
            if (
                isinstance(column, np.ndarray)
                and part.name != "features"
                and column.shape != needed
            ):
                yield f"{part.name} of a cohort of epoch {cohort.epoch} has shape {column.shape} instead of {needed}"
    for number, prepared in life.prepared.items():
        regression: Any = prepared.regression
        columns = [np.shape(getattr(regression, part.name)) for part in fields(regression)]
        if len({shape[0] for shape in columns if shape}) > 1:
            yield f"the regression that was prepared for epoch {number} has columns of different lengths"
        plan, groups = prepared.plan, len(life.groups or ())
        if plan is not None:
            groups = plan.inverse_share.shape[1]
            bets = len(process.bound.horizons) if isinstance(process, BettingProcess) else 0
            if plan.bets.shape[2] != bets:
                yield f"the plan that was prepared for epoch {number} has {plan.bets.shape[2]} bets instead of {bets}"
        if len(prepared.labelled) != groups:
            yield f"epoch {number} was prepared for {len(prepared.labelled)} groups instead of {groups}"


def _other_shapes(kept: Any, needed: Any) -> Iterator[str]:
    for part in fields(needed):
        shapes = [np.shape(getattr(record, part.name)) for record in (kept, needed)]
        if shapes[0] != shapes[1]:
            yield f"{part.name} has shape {shapes[0]}, and the bound needs {shapes[1]}"
