"""The one place that turns decided rounds into a cohort that a certificate may look at.

    A cohort is fixed by what was known before its coins were tossed. Afterwards a row may only lose
    information, and lost information counts at its worst.

So a cohort is a run of consecutive rounds, all of them: `ClosedCohort` counts its people and
refuses to exist if one of rounds first .. stop - 1 is missing, and whoever looks at cohorts
(`run.Life`) refuses one that does not begin where the last one ended. What became of a person after
the coin only moves them between columns:

    drawn accept, label known                    positive or negative
    drawn accept, label missing or overruled     unresolved: the worst case
    drawn reject, overruled or not               rejected
    erased                                       lost: draw and probability stay on record, everything else is the worst case
    group unknown, or none of the certificate's  outside, counted there
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from evenhand.errors import ProtocolError
from evenhand.estimation import RoundLog
from evenhand.estimation.log import find_contexts
from evenhand.hypotheses.constants import ACCEPT_ALL, GroupClassifier
from evenhand.learners.codec import storable
from evenhand.learners.rounds import Block
from evenhand.policies import Mixture
from evenhand.words import BoolArray, FloatArray, GroupArray, IntArray

OUTSIDE = -1
"""The code of people whose group is unknown, or none of the certificate's: they count outside of
it.
"""

GroupCounts = dict[tuple[Any, bool], float]
"""People by (group, whether the draw accepted them); None is the unknown group."""


@storable
@dataclass(frozen=True, eq=False)
class ClosedCohort:
    """Rounds first .. stop - 1 of one epoch, rows of equal features, group and probability counted
    together.

    log: the resolved rounds, for the loss. group: as told, None where unknown. audited_*: how many
    of the accepted rounds the audit coin had accepted. settled, settled_audited (3, rows): the same
    accepted and audited rounds by what was known at the end of each person's own maturity window:
    good, bad, not come; they serve the drift tests alone. lost_*: erased people, by the probability
    under which they were drawn. overruled, late_groups: for the record, by group and draw.
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
    audited_unresolved: FloatArray
    settled: FloatArray
    settled_audited: FloatArray
    lost_acceptance: FloatArray = field(default_factory=lambda: np.zeros(0))
    lost_accepted: FloatArray = field(default_factory=lambda: np.zeros(0))
    lost_rejected: FloatArray = field(default_factory=lambda: np.zeros(0))
    lost_audited: float = 0.0
    overruled: GroupCounts = field(default_factory=dict)
    late_groups: GroupCounts = field(default_factory=dict)
    complete: bool = True
    """Whether every accepted round has its label, was overruled or erased."""

    def __post_init__(self) -> None:
        people = round(float(self.rounds.sum() + self.lost))
        if people != self.stop - self.first:
            raise ProtocolError(
                f"the cohort of rounds {self.first} to {self.stop - 1} holds {people} people, not {self.stop - self.first}; "
                "a certificate looks at everybody who was decided, whatever became of them.",
                hint="keep overruled and erased people in their place: mark them, do not leave them out.",
            )

    @property
    def rounds(self) -> FloatArray:
        """Rounds in each row."""
        return self.rejected + self.positive + self.negative + self.unresolved

    @property
    def lost(self) -> float:
        """Erased people."""
        return float(self.lost_accepted.sum() + self.lost_rejected.sum())

    def codes(self, groups: tuple[Any, ...]) -> IntArray:
        """0..G-1 for the certificate's groups, -1 for everybody else."""
        return group_codes(self.group, groups)


def group_codes(group: GroupArray, groups: tuple[Any, ...]) -> IntArray:
    """0..G-1 for the listed groups, -1 for everybody else, the unknown among them."""
    found = np.full(len(group), OUTSIDE, dtype=np.int64)
    for code, value in enumerate(groups):
        found[group == value] = code
    return found


def accept_weight(policy: Mixture, group: Any = None) -> float:
    """With which probability the policy accepts whoever comes: the weight of accept-all, and of
    "accept iff this group" in a group.
    """
    everybody = (ACCEPT_ALL,) if group is None else (ACCEPT_ALL, GroupClassifier(group))
    return sum(w for h, w in zip(policy.hypotheses, policy.weights, strict=True) if h in everybody)


def labelled_groups(policy: Mixture, groups: tuple[Any, ...]) -> BoolArray:
    """(G,): in which groups labels of a cohort of this policy may be looked at.

    Where nobody is accepted with probability 0 the coin shows everybody's label sooner or later.
    That is decided by the policy, before the coins, never by the rows that came: to skip a cohort
    because somebody in it had p = 0 would keep the lucky ones.
    """
    decides = policy.group_use == "decide"
    return np.array(
        [accept_weight(policy, group if decides else None) > 0 for group in groups], dtype=bool
    )


def from_counts(
    epoch: int, log: RoundLog, audit_share: float, generator: np.random.Generator, first: int = 0
) -> ClosedCohort:
    """Rounds that were played in aggregate: given accepted, the audit coin had accepted with
    probability a / p(x).
    """
    chance = np.divide(
        audit_share, log.acceptance, out=np.zeros(len(log)), where=log.acceptance > 0
    )
    chance = np.minimum(chance, 1.0)
    audited = [
        generator.binomial(column.astype(np.int64), chance)
        for column in (log.positive, log.negative)
    ]
    good, bad = (column.astype(np.float64) for column in audited)
    nobody = np.zeros(len(log))
    return ClosedCohort(
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
        audited_unresolved=nobody,
        settled=np.stack([log.positive, log.negative, nobody]),
        settled_audited=np.stack([good, bad, nobody]),
    )


def from_block(block: Block) -> ClosedCohort:
    """Rounds that were played one by one."""
    here = ~block.erased
    group = np.full(len(block.accept), None) if block.group is None else block.group
    label = np.where(block.overruled, 0, block.label)
    features = block.features if here.all() else block.features[here]
    contexts = find_contexts(features, group[here], block.acceptance[here])

    def count(which: BoolArray) -> FloatArray:
        return contexts.total(which[here].astype(np.float64))

    audit = np.zeros(len(block.accept), bool) if block.audit is None else block.audit
    kinds = {"positive": label == 1, "negative": label == -1, "unresolved": label == 0}
    categories = [block.settled == 1, block.settled == -1, block.settled == 0]
    first = np.flatnonzero(here)[contexts.first]
    gone = np.flatnonzero(block.erased)
    chances, which = np.unique(block.acceptance[gone], return_inverse=True)
    return ClosedCohort(
        epoch=block.epoch,
        first=block.first,
        stop=block.first + len(block.accept),
        log=block.log(block.resolved),
        features=features if len(contexts) == len(features) else features[contexts.first],
        group=group[first],
        acceptance=block.acceptance[first],
        rejected=count(~block.accept),
        **{name: count(block.accept & mask) for name, mask in kinds.items()},
        **{f"audited_{name}": count(audit & mask) for name, mask in kinds.items()},
        settled=np.stack([count(block.accept & mask) for mask in categories]),
        settled_audited=np.stack([count(audit & mask) for mask in categories]),
        lost_acceptance=chances,
        lost_accepted=_summed(which, block.accept[gone], len(chances)),
        lost_rejected=_summed(which, ~block.accept[gone], len(chances)),
        lost_audited=float(audit[gone].sum()),
        overruled=_by_group(group, block.accept, block.overruled & here),
        late_groups=_by_group(group, block.accept, block.group_late & here),
        complete=not (block.accept & here & (label == 0) & ~block.overruled).any(),
    )


def _summed(place: IntArray, which: BoolArray, size: int) -> FloatArray:
    return np.bincount(place, weights=which.astype(np.float64), minlength=size).astype(np.float64)


def _by_group(group: GroupArray, accept: BoolArray, which: BoolArray) -> GroupCounts:
    found: GroupCounts = {}
    for value, drawn in zip(group[which].tolist(), accept[which].tolist(), strict=True):
        found[value, drawn] = found.get((value, drawn), 0.0) + 1.0
    return found
