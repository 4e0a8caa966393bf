"""Learners that were stored under older rules: they open and show their record, and go on under the
rules of now.

Nothing that they had looked at is computed again. What a certified learner had booked of delta
stays booked; its certificate no longer stands, and a new life starts from the reserve, on people
decided from here on. The other learners keep their policies; a report says under which rules they
began.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from evenhand.contracts import Json
from evenhand.errors import StorageError
from evenhand.fairness.certificate import OLD_RULES
from evenhand.learners.certified.learner import CertifiedLearner
from evenhand.learners.codec import Decoder
from evenhand.learners.epochs import EpochLearner
from evenhand.learners.rounds import Block, RoundBook


def take_over(
    learner: EpochLearner, state: Mapping[str, Json], decoder: Decoder, rules: int
) -> None:
    """Let a fresh learner with the same settings go on where one of older rules was stored.

    Parameters
    ----------
    learner
        Made with the settings of the file; it has not been played.
    state
        The stored state, entry by entry as it was encoded.
    decoder
        Reads these entries.
    rules
        Those of the file.
    """
    try:
        certified = isinstance(learner, CertifiedLearner)
        left = (
            ("_life", "_queue", "_history", "_book", "_frozen_certificate", "_rules")
            if certified
            else ("_book",)
        )
        known = {name: decoder.decode(value) for name, value in state.items() if name not in left}
        known["_book"] = _book(
            state["_book"]["fields"]["blocks"]["items"], decoder, known, closed=certified
        )
        if not isinstance(learner, CertifiedLearner):
            learner._restore(known)
            learner._rules = 1
            return
        life, epochs = state["_life"]["fields"], known.pop("_epochs")
        ledger = decoder.decode(life["ledger"])
        policies = [epoch.policy for epoch in epochs]
        learner.succeed(
            policies, ledger.entries, known["_round"], OLD_RULES[rules], lives=int(life["number"])
        )
        learner._life.tally.audited_negatives = float(life["tally"]["fields"]["audited_negatives"])
        learner._restore(known)
        learner._epochs[:-1] = epochs
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise StorageError(
            f"the file was written under rules {rules} and is malformed: {error!r}.",
            hint="restore it from a copy.",
        ) from error


def _book(
    blocks: list[Json], decoder: Decoder, known: Mapping[str, Any], *, closed: bool
) -> RoundBook:
    """The rounds decided so far; features were not kept of those that had been handed over. closed:
    all have been, for the new life.
    """
    found = []
    for stored in blocks:
        columns = {name: decoder.decode(value) for name, value in stored["fields"].items()}
        rows = len(columns["accept"])
        if len(columns["features"]) != rows:
            columns["features"] = np.zeros((rows, known["_columns"] or 1))
        if closed:
            columns["logged"] = np.ones(rows, bool)
        found.append(Block(**columns))
    return RoundBook(found)
