"""Rounds in aggregated form: equal rows once, with counts, and nobody missing."""

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from evenhand.errors import InvalidInput, LengthMismatch, ProtocolError
from evenhand.estimation import RoundLog
from evenhand.words import FloatArray, Group, GroupArray

GroupCounts = dict[tuple[Group, bool], float]
"""People by (group, whether the draw accepted them); None is the unknown group."""


@dataclass(frozen=True, eq=False)
class Counts:
    """Rounds first .. stop - 1 of one epoch: rows of equal features, group and probability counted
    together.

    It counts its people and cannot be made if one of them is missing.

    Attributes
    ----------
    epoch, first, stop : int
        The epoch, and the rounds.
    log : RoundLog
        The resolved rounds, for the loss.
    features, group, acceptance : array
        One entry per row; the group is None where it is unknown.
    rejected, positive, negative, unresolved : array of float
        How many people of the row were rejected; were accepted and had this label; had none.
    audited_positive, audited_negative : array of float
        How many of them the audit coin had accepted.
    settled, settled_audited : array of float, shape (3, rows)
        The accepted and the audited by what was known at the end of each person's own window:
        good, bad, not come. They serve the drift tests alone.
    lost_acceptance, lost_accepted, lost_rejected : array of float
        Erased people, by the probability under which they were drawn.
    overruled, late_groups : dict
        For the record, by group and draw.
    """

    epoch: int
    first: int
    stop: int
    log: RoundLog
    features: FloatArray
    group: GroupArray
    acceptance: FloatArray
    rejected: FloatArray
    positive: FloatArray
    negative: FloatArray
    unresolved: FloatArray
    audited_positive: FloatArray
    audited_negative: FloatArray
    settled: FloatArray
    settled_audited: FloatArray
    lost_acceptance: FloatArray = field(default_factory=lambda: np.zeros(0))
    lost_accepted: FloatArray = field(default_factory=lambda: np.zeros(0))
    lost_rejected: FloatArray = field(default_factory=lambda: np.zeros(0))
    overruled: GroupCounts = field(default_factory=dict)
    late_groups: GroupCounts = field(default_factory=dict)

    def __post_init__(self) -> None:
        columns = (
            *(self.features, self.group, self.acceptance),
            *(self.rejected, self.positive, self.negative, self.unresolved),
            *(self.audited_positive, self.audited_negative),
        )
        lengths = {len(column) for column in columns}
        by_category = (3, len(self.features))
        categories = {self.settled.shape, self.settled_audited.shape}
        if len(lengths) > 1 or categories != {by_category}:
            raise LengthMismatch(
                f"the columns of the cohort have {sorted(lengths)} rows, the categories of the "
                f"drift tests {sorted(categories)}; each column has one entry per row."
            )
        require_possible(self)

    @classmethod
    def of_log(
        cls,
        epoch: int,
        first: int,
        log: RoundLog,
        audit_share: float,
        generator: np.random.Generator,
    ) -> "Counts":
        """Rounds that were decided in aggregate. Given accepted, the audit coin had accepted with
        probability a / p(x).
        """
        nobody = np.zeros(len(log))
        share = np.divide(audit_share, log.acceptance, out=nobody.copy(), where=log.acceptance > 0)
        chance = np.minimum(share, 1.0)
        good = generator.binomial(log.positive.astype(np.int64), chance).astype(np.float64)
        bad = generator.binomial(log.negative.astype(np.int64), chance).astype(np.float64)
        return cls(
            epoch=epoch,
            first=first,
            stop=first + round(log.rounds),
            log=log,
            features=log.features,
            group=np.full(len(log), None) if log.group is None else log.group,
            acceptance=log.acceptance,
            rejected=log.rejected,
            positive=log.positive,
            negative=log.negative,
            unresolved=nobody,
            audited_positive=good,
            audited_negative=bad,
            settled=np.stack([log.positive, log.negative, nobody]),
            settled_audited=np.stack([good, bad, nobody]),
        )

    @property
    def rounds(self) -> FloatArray:
        """Rounds in each row."""
        return self.rejected + self.positive + self.negative + self.unresolved

    @property
    def lost(self) -> float:
        """Erased people."""
        return float(self.lost_accepted.sum() + self.lost_rejected.sum())


class CountedPeople(Protocol):
    """A cohort in any aggregated form."""

    @property
    def first(self) -> int: ...
    @property
    def stop(self) -> int: ...
    @property
    def lost(self) -> float: ...
    @property
    def rounds(self) -> FloatArray: ...
    @property
    def acceptance(self) -> FloatArray: ...
    @property
    def rejected(self) -> FloatArray: ...


def require_possible(cohort: CountedPeople) -> None:
    """An error if one of the cohort's people is missing, or if what it says cannot have
    happened.
    """
    people = round(float(cohort.rounds.sum() + cohort.lost))
    if people != cohort.stop - cohort.first:
        raise ProtocolError(
            f"the cohort of rounds {cohort.first} to {cohort.stop - 1} holds {people} people, not "
            f"{cohort.stop - cohort.first}; a certificate looks at all decided people, whatever "
            "became of them.",
            hint="keep overruled and erased people in their place: mark them.",
        )
    p = cohort.acceptance
    accepted = cohort.rounds - cohort.rejected
    impossible = ~((p >= 0) & (p <= 1))
    impossible |= (p == 0) & (accepted > 0)
    impossible |= (p == 1) & (cohort.rejected > 0)
    if impossible.any():
        row = int(np.argmax(impossible))
        raise InvalidInput(
            f"{accepted[row]:g} people were accepted and {cohort.rejected[row]:g} rejected, and "
            f"the probability of accepting was {p[row]:g}; that cannot have happened."
        )
