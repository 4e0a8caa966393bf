"""`load`: a stored learner continues where it was, bit for bit; a file in which somebody has
changed something is refused.

Learners that were stored under older rules open, too, and go on under the rules of now. Nothing
that they had looked at is computed again. What a certified learner had booked of delta stays
booked; its certificate no longer stands, and a new run starts from the reserve, on people decided
from here on. The other learners keep their policies; a report says under which rules they began.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass

import numpy as np

from evenhand.contracts import HypothesisClass, Json
from evenhand.errors import InvalidInput, StorageError
from evenhand.fairness.certificate import OLD_RULES, RULES
from evenhand.hypotheses.models import trusting
from evenhand.learners import storage
from evenhand.learners.certified.intervals import AuditProcess, AuditTotals, BettingProcess
from evenhand.learners.certified.learner import CertifiedLearner
from evenhand.learners.certified.run import CertificationRun, Guarantee
from evenhand.learners.epochs import STORED_LEARNERS, EpochLearner, plain
from evenhand.learners.rounds import Block, RoundBook

_RESTORE = (
    "somebody has changed the file: restore it from a copy, or make a new learner with the "
    "settings you want."
)


def load(
    path: str | os.PathLike[str],
    *,
    hypotheses: HypothesisClass | None = None,
    trusted: Iterable[str] = (),
) -> EpochLearner:
    """The learner that `save` stored: the same coins, policies and report from here on.

    Parameters
    ----------
    path : str or path
        The file. One that was written under older rules opens, too: a certified learner then begins
        a new run, on people decided from here on; see docs/operating.md.
    hypotheses : HypothesisClass, optional
        Needed where the class is made of Python functions or foreign models, which cannot be stored
        as data.
    trusted : iterable of str
        Full names of types of your own in stored models, which may be loaded; see
        `evenhand.hypotheses.models.load_model`.

    Returns
    -------
    EpochLearner
        A learner of the kind that was stored.

    Raises
    ------
    StorageError
        If the file is no stored learner, is damaged, or was changed: if its settings are not those
        with which the learner was made or those of its guarantee, or if a stored number is not
        finite or out of its range.

    Examples
    --------
    >>> import tempfile
    >>> from evenhand.learners import Uniform
    >>> learner = Uniform(seed=1)
    >>> decisions = learner.decide([[1.0], [2.0]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     learner.save(f"{folder}/learner")
    ...     copy = load(f"{folder}/learner")
    >>> copy.round, copy.report == learner.report
    (2, True)
    """
    with trusting(trusted):
        stored = storage.read(path, hypotheses)
    if stored.learner not in STORED_LEARNERS:
        raise StorageError(
            f"{path} holds a {stored.learner!r}; known are {', '.join(sorted(STORED_LEARNERS))}.",
            hint="import the module that defines it first.",
        )
    if stored.decoder is None:
        made_with = stored.state.get("_settings", {})
        _require_same(stored.settings, made_with, "the learner was made with")
    try:
        learner = STORED_LEARNERS[stored.learner](**stored.settings)
    except (InvalidInput, TypeError) as error:
        raise StorageError(
            f"the settings in {path} make no {stored.learner}: {error}", hint=_RESTORE
        ) from error
    if stored.decoder is not None:
        _take_over(learner, stored.state, stored.decoder, stored.rules)
        return learner
    try:
        wrong = _restored(learner, stored) or next(_unsound(learner), None)
    except (ArithmeticError, AttributeError, LookupError, TypeError) as error:
        wrong = f"something in its state is of another kind ({error})"
    if wrong is not None:
        raise StorageError(f"{path} is no sound learner: {wrong}.", hint=_RESTORE)
    return learner


def _restored(learner: EpochLearner, stored: storage.Stored) -> str | None:
    """Give a fresh learner the stored state; what is wrong with it."""
    fresh, state = learner._state(), stored.state
    kept = {name: value for name, value in state.items() if name != "_schema"}
    fresh.pop("_schema", None)
    if fresh.keys() != kept.keys():
        other = ", ".join(sorted(fresh.keys() ^ kept.keys()))
        return f"{other} is missing from its state, or does not belong there"
    for name, value in fresh.items():
        kinds = {type(value), type(state[name])} - {type(None)}
        if len(kinds) > 1 and not kinds <= {int, float}:
            return f"{name} is of kind {type(state[name]).__name__}"
    learner._restore(state)
    if stored.rules == 2:  # without a certificate rules 3 are rules 2
        learner.state.rules = RULES
    if stored.settings.get("seed") is not None:
        drawn = "the learner has drawn its coins with"
        _require_same({"seed": stored.settings["seed"]}, {"seed": learner.seed}, drawn)
    if isinstance(learner, CertifiedLearner):
        given, kept = _promised(learner.guarantee), _promised(learner.state.run.guarantee)
        _require_same(given, kept, "the learner has promised")
    return None


def _require_same(given: Mapping[str, object], kept: Mapping[str, object], law: str) -> None:
    for name in sorted({*given, *kept}):
        now, then = plain(given.get(name)), plain(kept.get(name))
        if now != then or (name in given) != (name in kept):
            raise StorageError(f"the setting {name} is {now!r}, but {law} {then!r}.", hint=_RESTORE)


def _promised(guarantee: Guarantee) -> Json:
    """What is guaranteed, by the names of the settings."""
    settings, parts = {"limit": "allowed_gap", "rates": "rate"}, [p.name for p in fields(guarantee)]
    return {settings.get(name, name): getattr(guarantee, name) for name in parts}


# what cannot be in a learner that has lived by the rules; numbers are finite and in their ranges


def _unsound(learner: EpochLearner) -> Iterator[str]:
    epochs, blocks = learner.state.epochs, learner.state.book.blocks
    numbers = [epoch.number for epoch in epochs]
    if not epochs or numbers != list(range(1, len(epochs) + 1)) or learner.rounds_left < 0:
        yield "its epochs are not numbered 1, 2, ..., or end before the present round"
    if blocks and blocks[-1].first + len(blocks[-1].accept) > learner.round:
        yield f"its book goes beyond round {learner.round}"
    if not isinstance(learner, CertifiedLearner):
        return
    yield from _unsound_run(learner.state.run)
    for number, gaps in learner.state.certified_gaps.items():
        if gaps[0].shape != gaps[1].shape or any((np.abs(end) > 1 + 1e-9).any() for end in gaps):
            yield f"the certified gaps of epoch {number} leave [-1, 1]"
    for cohort in learner.state.queue:
        rows = len(cohort.features)
        for part in fields(cohort):
            column: object = getattr(cohort, part.name)
            needed: tuple[int, ...] = (rows,)
            if part.name.startswith("settled"):
                needed = (3, rows)
            elif part.name.startswith("lost_"):
                needed = cohort.lost_acceptance.shape
            if not isinstance(column, np.ndarray) or part.name == "features":
                continue
            if column.shape != needed:
                what = f"{part.name} of a cohort of epoch {cohort.epoch}"
                yield f"{what} has shape {column.shape} instead of {needed}"


def _unsound_run(run: CertificationRun) -> Iterator[str]:
    process, past, groups = run.process, run.evidence.past, run.groups or ()
    delta, booked = run.guarantee.failure_probability, run.ledger.failure_probability
    if booked != delta:
        yield f"the delta ledger is about {booked}, not {delta}"
    if process is not None and run.groups is None:
        yield "it has intervals but no groups"
    bets = 0
    if isinstance(process, BettingProcess):
        bets, members = len(process.bound.horizons), len(process.members)
        if members != process.bound.hypotheses:
            yield f"it has {members} hypotheses, and a bound for {process.bound.hypotheses}"
        yield from _other_shapes(process.state, process.bound.start())
    if isinstance(process, AuditProcess):
        sizes = len(process.members), len(process.rates), len(process.groups)
        yield from _other_shapes(process.totals, AuditTotals.none(*sizes))
    if not len(past.features) == len(past.group) == len(past.weight):
        yield "what it remembers of past people has columns of different lengths"
    for number, prepared in run.prepared.items():
        regression: object = prepared.regression
        parts = fields(regression) if is_dataclass(regression) else ()
        columns = [np.shape(getattr(regression, part.name)) for part in parts]
        if len({shape[0] for shape in columns if shape}) > 1:
            what = f"the regression that was prepared for epoch {number}"
            yield f"{what} has columns of different lengths"
        plan, size = prepared.plan, len(groups)
        if plan is not None:
            size = plan.inverse_share.shape[1]
            if (own := plan.bets.shape[2]) != bets:
                what = f"the plan that was prepared for epoch {number}"
                yield f"{what} has {own} bets instead of {bets}"
        if (labelled := len(prepared.labelled)) != size:
            yield f"epoch {number} was prepared for {labelled} groups instead of {size}"


def _other_shapes(kept: object, needed: storage.DataRecord) -> Iterator[str]:
    for part in fields(needed):
        shapes = [np.shape(getattr(record, part.name)) for record in (kept, needed)]
        if shapes[0] != shapes[1]:
            yield f"{part.name} has shape {shapes[0]}, and the bound needs {shapes[1]}"


# older rules


def _take_over(
    learner: EpochLearner, state: Mapping[str, Json], decoder: storage.Decoder, rules: int
) -> None:
    """Let a fresh learner with the same settings go on where one of older rules was stored.

    state: entry by entry as it was encoded; the decoder reads these entries.
    """
    certified = isinstance(learner, CertifiedLearner)
    left = {"_book"}
    if certified:
        left |= {"_life", "_queue", "_history", "_frozen_certificate", "_rules"}
    try:
        known = {name: decoder.decode(value) for name, value in state.items() if name not in left}
        blocks = []
        for stored in state["_book"]["fields"]["blocks"]["items"]:
            columns = {name: decoder.decode(value) for name, value in stored["fields"].items()}
            rows = len(columns["accept"])
            if len(columns["features"]) != rows:  # not kept of rounds that had been handed over
                columns["features"] = np.zeros((rows, known["_columns"] or 1))
            if certified:  # for the new run, all have been
                columns["logged"] = np.ones(rows, bool)
            blocks.append(Block(**columns))
        known["_book"] = RoundBook(blocks)
        if not isinstance(learner, CertifiedLearner):
            learner._restore(known)
            learner.state.rules = 1
            return
        run, epochs = state["_life"]["fields"], known.pop("_epochs")
        bookings, policies = decoder.decode(run["ledger"]).entries, [e.policy for e in epochs]
        lives = int(run["number"])
        learner.succeed(policies, bookings, known["_round"], OLD_RULES[rules], lives=lives)
        audited = float(run["tally"]["fields"]["audited_negatives"])
        learner.state.run.evidence.audited_negatives = audited
        learner._restore(known)
        learner.state.epochs[:-1] = epochs
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise StorageError(
            f"the file was written under rules {rules} and is malformed: {error!r}.",
            hint="restore it from a copy.",
        ) from error
