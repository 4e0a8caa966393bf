"""Closed cohorts: rounds whose maturity window has passed, accepted and rejected alike, as the certificate and the loss see them."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evenhand.estimation import RoundLog
from evenhand.estimation.contexts import find_contexts
from evenhand.learners.codec import storable
from evenhand.learners.rounds import Block
from evenhand.words import FloatArray, GroupArray, IntArray

OUTSIDE = -1
"""The code of people whose group is unknown, or none of the certificate's: they count outside of it."""


@storable
@dataclass(frozen=True, eq=False)
class ClosedCohort:
    """Rows of rounds of one epoch. `log`: the resolved ones, for the loss; the columns: all of them, for the certificate.

    group: as told, None where unknown. audited_*: how many of the accepted rounds the audit coin had accepted.
    """

    epoch: int
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

    @property
    def rounds(self) -> FloatArray:
        """Rounds in each row."""
        return self.rejected + self.positive + self.negative + self.unresolved

    def codes(self, groups: tuple[Any, ...]) -> IntArray:
        """0..G-1 for the certificate's groups, -1 for everybody else."""
        found = np.full(len(self.features), OUTSIDE, dtype=np.int64)
        for code, value in enumerate(groups):
            found[self.group == value] = code
        return found


def from_counts(epoch: int, log: RoundLog, audit_share: float, generator: np.random.Generator) -> ClosedCohort:
    """Rounds that were played in aggregate: given accepted, the audit coin had accepted with probability a / p(x)."""
    chance = np.divide(audit_share, log.acceptance, out=np.zeros(len(log)), where=log.acceptance > 0)
    chance = np.minimum(chance, 1.0)
    positive, negative = log.positive.astype(np.int64), log.negative.astype(np.int64)
    group = np.full(len(log), None) if log.group is None else log.group
    return ClosedCohort(
        epoch=epoch,
        log=log,
        features=log.features,
        group=group,
        acceptance=log.acceptance,
        rejected=log.rejected,
        positive=log.positive,
        negative=log.negative,
        unresolved=np.zeros(len(log)),
        audited_positive=generator.binomial(positive, chance).astype(np.float64),
        audited_negative=generator.binomial(negative, chance).astype(np.float64),
        audited_unresolved=np.zeros(len(log)),
    )


def from_block(block: Block) -> ClosedCohort:
    """Rounds that were played one by one, rows of equal features, group and acceptance counted together."""
    group = np.full(len(block.accept), None) if block.group is None else block.group
    unknown = any(value is None for value in group.tolist())
    known = (
        replace(block, group=None) if unknown else block
    )  # only a group that decides is shown to the loss, and that one is known
    codes = _codes(group)
    contexts = find_contexts(block.features, None, codes, block.acceptance)
    pending = block.accept & (block.label == 0)
    kinds = {
        "rejected": ~block.accept,
        "positive": block.accept & (block.label == 1),
        "negative": block.accept & (block.label == -1),
        "unresolved": pending,
    }
    audit = np.zeros(len(block.accept), bool) if block.audit is None else block.audit
    columns = {name: contexts.total(mask.astype(np.float64)) for name, mask in kinds.items()}
    audited = {
        f"audited_{name}": contexts.total((kinds[name] & audit).astype(np.float64))
        for name in ("positive", "negative", "unresolved")
    }
    first = contexts.first
    return ClosedCohort(
        epoch=block.epoch,
        log=known.log(block.resolved),
        features=block.features[first],
        group=group[first],
        acceptance=block.acceptance[first],
        **columns,
        **audited,
    )


def _codes(group: GroupArray) -> FloatArray:
    seen: dict[Any, int] = {}
    return np.array([seen.setdefault(value, len(seen)) for value in group.tolist()], dtype=np.float64)
