"""Which constant, and how many audits: what to do with the mass that is not certified yet, or not known to be worth it.

Both constants are exactly fair, so the uncertified mass may go to either. Accepting shows labels and so certifies sooner; rejecting may be
cheaper. With share `alpha` of that mass accepted, a target policy whose gap is known to be below hi = gap + width may have weight
omega = min(1, limit / hi), and width falls like 1/sqrt(evidence). The share is chosen to minimise the expected total cost

    sum over the rounds ahead of (1 - omega) (alpha c_accept + (1 - alpha) c_reject) + omega c_target.
"""

from dataclasses import dataclass

import numpy as np

from evenhand.estimation import EstimatedLoss
from evenhand.words import FloatArray

SHARES = np.array([0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0])
"""The shares that are considered."""


@dataclass(frozen=True, eq=False)
class Outlay:
    """Everything the choice depends on, per person and in the units of the loss.

    gap, width: the target's estimated gap and how far its certified end is from it; evidence: rounds so far, each counted by the share
    of the evidence that it brought; acceptance: the target's on past rows, with their shares.
    """

    cost_accept: float
    cost_reject: float
    cost_target: float
    gap: float
    width: float
    limit: float
    evidence: float
    floor: float
    acceptance: FloatArray
    share: FloatArray
    ahead: float
    epoch: float = 0.0
    """Rounds for which the policy is fixed, so that evidence does not help before they are over."""
    caution: float = 0.0
    """The part of what the target saves by which a larger share must be better: the forecast of evidence is rough."""


def audit_share(outlay: Outlay) -> float:
    """The share of the uncertified mass that is accepted."""
    costs = expected_costs(outlay, SHARES)
    saved = max(min(outlay.cost_accept, outlay.cost_reject) - outlay.cost_target, 0.0)
    return float(SHARES[int(np.argmax(costs <= costs.min() + outlay.caution * saved))])


def expected_costs(outlay: Outlay, shares: FloatArray) -> FloatArray:
    """The expected cost per person over the rounds ahead, for each share that might be accepted from now on."""
    later = np.geomspace(max(outlay.ahead / 1e4, 1.0), max(outlay.ahead, 2.0), 24)
    fixed = min(outlay.epoch, later[-2])
    ends = np.r_[0.0, fixed, later[later > fixed]] if fixed > 0 else np.r_[0.0, later]
    constant = shares * outlay.cost_accept + (1 - shares) * outlay.cost_reject
    evidence, total = np.full(len(shares), outlay.evidence), np.zeros(len(shares))
    for rounds in np.diff(ends):
        omega = certified_weight(outlay, evidence)
        total += rounds * ((1 - omega) * constant + omega * outlay.cost_target)
        accepted = outlay.floor + np.multiply.outer(omega, outlay.acceptance) + ((1 - omega) * shares)[:, np.newaxis]
        evidence += rounds * evidence_rate(np.clip(accepted, 1e-6, 1.0), outlay.share)
    return np.asarray(total / ends[-1])


def certified_weight(outlay: Outlay, evidence: FloatArray) -> FloatArray:
    """omega: how much weight the target may have once that much evidence is in."""
    end = abs(outlay.gap) + outlay.width * np.sqrt(max(outlay.evidence, 1.0) / np.maximum(evidence, 1.0))
    return np.minimum(1.0, outlay.limit / np.maximum(end, 1e-12))


def evidence_rate(acceptance: FloatArray, share: FloatArray) -> FloatArray:
    """How much of a fully accepted round's evidence a round brings: one over the mean of 1/p."""
    return np.asarray(1.0 / ((1.0 / acceptance) @ share))


DOUBT, TRUST, SURE = 0.5, 1.5, 2.0
"""A learned policy that saves less than DOUBT standard errors has no weight, from TRUST of them on all that is certified; audits are
spent for what it saves beyond SURE of them."""


@dataclass(frozen=True)
class Gain:
    """What a learned policy is estimated to save per person over the better constant (0: accept, 1: reject), with its standard error.

    Without this caution estimates that are the best of many by chance are deployed, and the learner ends worse than the constant by
    more than its audits cost (false accepts 10 times as dear, 200,000 rounds: by up to 6,000).
    """

    constant: int
    saved: float
    error: float

    @classmethod
    def of(cls, acceptance: FloatArray, loss: EstimatedLoss, variances: FloatArray) -> "Gain":
        """`acceptance`: the policy's on the rows of `loss`; `variances`: those of `cost_variances`."""
        constant = 0 if loss.acceptance_cost.sum() <= 0 else 1
        change = (1.0 - constant) - acceptance
        saved, error = float(change @ loss.acceptance_cost), float(np.sqrt(variances @ change**2))
        return cls(constant, saved / loss.rounds, error / loss.rounds)

    @property
    def trusted(self) -> float:
        """How much of its weight the policy keeps: 0 up to DOUBT standard errors, 1 from TRUST on."""
        doubt, trust = self.saved - DOUBT * self.error, (TRUST - DOUBT) * self.error
        return float(np.clip(doubt / trust, 0.0, 1.0)) if trust > 0 else float(doubt > 0)

    @property
    def safe(self) -> float:
        """What it saves for sure, nearly: by this the worth of auditing for it is judged."""
        return max(self.saved - SURE * self.error, 0.0)
