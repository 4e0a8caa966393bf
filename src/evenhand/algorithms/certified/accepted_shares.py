"""How large a share of the population each rule accepts: what a cap (`accept_at_most`) and a floor
(`accept_at_least`) are certified by.

Sel(h) = P[h(x) = 1] is a number between ends that hold at all times at once
(`evenhand.bounds.accepted_share`). Every arrival of a cohort counts, whatever its group, its coin
and its label: nothing of them is needed. Where h(x) is not known any more (the person was erased
before the cohort closed, or the group is unknown and the rule looks at it), h = 1 counts for the
cap and h = 0 for the floor.

Sel is linear in the mixture, so that

    sum_h pi(h) upper_h <= accept_at_most,    sum_h pi(h) lower_h >= accept_at_least

(1 for accept-all, 0 for reject-all) keep both for all accepted shares that are still possible. A
lottery, "accept with probability kappa, whoever you are", has no gap and the accepted share kappa,
exactly.
"""

from dataclasses import dataclass, replace

import numpy as np

from evenhand.bounds.accepted_share import largest_shares, smallest_shares
from evenhand.words import FloatArray


@dataclass(frozen=True, eq=False)
class AcceptedShares:
    """Counts and ends of some rules, one entry each.

    deltas: with which probability each rule's ends may ever be wrong; 0 where nothing is claimed.
    capped, floored: which ends are needed; both of them share it. people: arrivals that were
    counted. most, least: those of them whom the rule may, and must, have accepted. lower, upper:
    the ends, intersected for ever.
    """

    deltas: FloatArray
    capped: bool
    floored: bool
    people: FloatArray
    most: FloatArray
    least: FloatArray
    lower: FloatArray
    upper: FloatArray

    @classmethod
    def start(cls, deltas: FloatArray, *, capped: bool, floored: bool) -> "AcceptedShares":
        """Nobody has been seen."""
        nobody = np.zeros(len(deltas))
        return cls(
            np.asarray(deltas, dtype=np.float64),
            capped,
            floored,
            *(nobody, nobody, nobody, nobody),
            np.ones(len(deltas)),
        )

    def __len__(self) -> int:
        return len(self.deltas)

    def joined_by(self, delta: float) -> "AcceptedShares":
        """One more rule, the last one; it is judged by later arrivals only."""
        new = AcceptedShares.start(np.array([delta]), capped=self.capped, floored=self.floored)

        def both(name: str) -> FloatArray:
            return np.concatenate([getattr(self, name), getattr(new, name)])

        return replace(
            self,
            deltas=both("deltas"),
            people=both("people"),
            most=both("most"),
            least=both("least"),
            lower=both("lower"),
            upper=both("upper"),
        )

    def update(self, accepted: FloatArray, people: float, doubtful: float) -> "AcceptedShares":
        """After one closed cohort. accepted (m,): how many of its `people` the first m rules
        accept; the others came after it. doubtful: people of whom that is not known.
        """
        judged = len(accepted)
        later = len(self) - judged
        chosen = np.pad(accepted, (0, later))
        doubt = np.pad(np.full(judged, doubtful), (0, later))
        all_people = np.pad(np.full(judged, people), (0, later))
        seen = replace(
            self,
            people=self.people + all_people + doubt,
            most=self.most + chosen + doubt,
            least=self.least + chosen,
        )
        alpha = self.deltas / (self.capped + self.floored)
        upper = self.upper
        lower = self.lower
        if self.capped:
            upper = np.minimum(upper, largest_shares(seen.most, seen.people, alpha))
        if self.floored:
            lower = np.maximum(lower, smallest_shares(seen.least, seen.people, alpha))
        return replace(seen, lower=lower, upper=upper)

    @property
    def estimate(self) -> FloatArray:
        """The accepted share of each rule so far; 1/2 of nobody. It serves the planning alone."""
        return np.clip((self.least + 0.5) / (self.people + 1.0), self.lower, self.upper)

    @property
    def contradictions(self) -> int:
        """Rules for which no accepted share is left: some assumption is broken."""
        return int((self.lower > self.upper).sum())
