"""What may be deployed: mixtures of hypotheses whose gaps are certified.

Each hypothesis h has intervals [lower_kh, upper_kh] for its true gaps (constants: [0, 0]). A
mixture pi is deployable if for every k

    sum_h pi(h) upper_kh <= limit   and   sum_h pi(h) lower_kh >= -limit.

With a cap or a floor it must also accept at most, or at least, a share of the population, for all
accepted shares that are still possible (`accepted_shares`). These are linear constraints in pi, so
the cheapest deployable policy is a small linear program over the hypotheses that have intervals.

The audit coin mu is part of the policy mu + (1 - mu) Q, and so part of gap and accepted share: Q
may have a gap of limit / (1 - mu), and may accept at most (kappa - mu) / (1 - mu).
"""

from dataclasses import dataclass, replace

import numpy as np

from evenhand.algorithms.certified.simplex import MixtureProgram
from evenhand.algorithms.certified.state import AcceptedShareEnds
from evenhand.bandit.coordinate_descent import OracleAnswer
from evenhand.contracts import GroupUse, Hypothesis
from evenhand.policies import Mixture
from evenhand.words import FloatArray

MIN_Z = 0.5
FULL_TRUST_Z = 1.5
"""A learned policy that saves less than MIN_Z standard errors has no weight, from FULL_TRUST_Z of
them on all that is certified."""


@dataclass(frozen=True, eq=False)
class CertifiedSet:
    """A fair oracle over deployable mixtures. accepts: (members, rows) of 0/1 on the rows of the
    loss; lower, upper: (gaps, members).

    The constants are members number 0 (accept) and 1 (reject). accepted_shares (3, members): the
    ends and the estimate of the accepted share of each; None without a cap and a floor. most,
    least: the accepted shares that are permitted. lotteries: None, or with which probability the
    two constants accept to which weight moves whose gain may be chance; by default `most` and
    `least`. aim: the accepted share that spreads a quota over its period; expected (members,): the
    accepted share of each member, by which it is aimed at; None without a quota.
    """

    members: tuple[Hypothesis, ...]
    accepts: FloatArray
    lower: FloatArray
    upper: FloatArray
    limit: float
    group_use: GroupUse
    accepted_shares: FloatArray | None = None
    most: float = 1.0
    least: float = 0.0
    lotteries: tuple[float, float] | None = None
    aim: float = 1.0
    expected: FloatArray | None = None

    @property
    def constraints(self) -> FloatArray:
        """(2 gaps, members): rows g with sum pi(h) g_h <= limit."""
        return np.concatenate([self.upper, -self.lower])

    def beside_audit_coin(self, coin: float) -> "CertifiedSet":
        """What may be deployed with the rest of the probability, beside an audit coin.

        Accept-all has no gap: (1 - mu) |gap(Q)| <= limit, so Q may have limit / (1 - mu). Were Q
        held to the limit itself, a coin of mu would waste mu of it.
        """
        rest = max(1.0 - coin, 1e-12)
        if self.accepted_shares is None and self.expected is None:
            return replace(self, limit=self.limit / rest)
        most, aim = (min(max(one - coin, 0.0) / rest, 1.0) for one in (self.most, self.aim))
        least = max(self.least - coin, 0.0) / rest
        return replace(self, limit=self.limit / rest, most=most, aim=aim, least=least)

    def without_floor(self) -> "CertifiedSet":
        """The same if nobody need be accepted."""
        return replace(self, least=0.0)

    def programs(self, most_audits: float) -> tuple[MixtureProgram, MixtureProgram]:
        """The mixtures that may be deployed, accept-all having at most this weight, and those that
        the middles of the intervals call fair.
        """
        capped = np.eye(1, len(self.members))
        middle = 0.5 * (self.lower + self.upper)
        deployed = self._program(self.constraints, (capped, most_audits))
        return deployed, self._program(np.concatenate([middle, -middle]), by_estimates=True)

    def _program(
        self,
        gaps: FloatArray,
        more: tuple[FloatArray, float] | None = None,
        *,
        by_estimates: bool = False,
    ) -> MixtureProgram:
        """Rows for the gaps, one more row, and rows for the accepted shares."""
        rows = [gaps] if more is None else [gaps, more[0]]
        limits = [self.limit] * len(gaps) + ([] if more is None else [more[1]])
        lottery = None
        if self.expected is not None and self.aim < 1.0:
            rows.append(self.expected[np.newaxis])
            limits.append(self.aim)
        if self.accepted_shares is not None:
            lower, upper, estimate = self.accepted_shares
            if self.most < 1.0:
                rows.append((estimate if by_estimates else upper)[np.newaxis])
                limits.append(self.most)
            if self.least > 0.0:
                lottery = len(limits)
                rows.append(1.0 - (estimate if by_estimates else lower)[np.newaxis])
                limits.append(1.0 - self.least)
        return MixtureProgram(np.concatenate(rows), np.array(limits), lottery)

    def accepted(self, weights: FloatArray) -> AcceptedShareEnds | None:
        """Between which values the accepted share of a mixture lies; None without cap, floor."""
        if self.accepted_shares is None:
            return None
        lower, upper, _ = self.accepted_shares
        return float(lower @ weights), float(upper @ weights)

    def repair_cap(self, weights: FloatArray, coin: float) -> FloatArray:
        """A mixture whose gaps are certified, moved as little as need be to keep cap and floor:
        first weight between the constants, then towards a lottery. coin: the weight of accept-all
        that stays.
        """
        if self.expected is not None and float(self.expected @ weights) > self.aim:
            part = self.aim / float(self.expected @ weights)
            weights = part * weights
            weights[1] += 1.0 - part
        if self.accepted_shares is None:
            return weights
        lower, upper, _ = self.accepted_shares
        weights = weights.copy()
        above = float(upper @ weights) - self.most
        if above > 0:
            moved = min(above, max(weights[0] - coin, 0.0))
            weights[0] -= moved
            weights[1] += moved
        above = float(upper @ weights) - self.most
        if above > 0:  # never so after a choice among certified mixtures
            learned = float(upper[2:] @ weights[2:])
            part = max(1.0 - above / learned, 0.0)
            weights[1] += (1.0 - part) * weights[2:].sum()
            weights[2:] *= part
        below = self.least - float(lower @ weights)
        if below > 0:
            moved = min(below, weights[1], max(self.most - float(upper @ weights), 0.0))
            weights[0] += moved
            weights[1] -= moved
        now = float(lower @ weights)
        if now < self.least and self.most > now:
            part = min((self.least - now) / (self.most - now), 1.0)
            weights *= 1.0 - part
            weights[0] += part * self.most
            weights[1] += part * (1.0 - self.most)
        return weights

    def weights_of(self, policy: Mixture) -> FloatArray:
        """The weight of each member in a mixture of members."""
        places = {id(member): i for i, member in enumerate(self.members)}
        weights = np.zeros(len(self.members))
        for hypothesis, weight in zip(policy.hypotheses, policy.weights, strict=True):
            weights[places[id(hypothesis)]] += weight
        return weights

    def mixture(self, weights: FloatArray) -> Mixture:
        """The members with positive weight."""
        support = np.flatnonzero(weights > 0)
        return Mixture(
            tuple(self.members[i] for i in support),
            tuple(weights[support].tolist()),
            self.group_use,
        )

    def cheapest(self, acceptance_cost: FloatArray) -> OracleAnswer:
        """argmin over deployable pi of sum_i acceptance_cost_i P[pi(x_i) = +1]."""
        weights = self._program(self.constraints).cheapest(self.accepts @ acceptance_cost)
        support = np.flatnonzero(weights)
        return OracleAnswer(self.mixture(weights), weights[support] @ self.accepts[support])

    def cautious(self, weights: FloatArray, cost: FloatArray, variance: FloatArray) -> FloatArray:
        """Learned weight whose gain over the better constant may be chance goes to that constant.

        cost, variance: of accepting all people of a row, per person.
        """
        learned = np.concatenate([np.zeros(2), weights[2:]])
        total = float(learned.sum())
        if total == 0.0:
            return weights
        lotteries = self.lotteries or (min(self.most, self.aim), self.least)
        saving = EstimatedSaving.of(learned @ self.accepts / total, cost, variance, lotteries)
        kept = weights - (1.0 - saving.trusted) * learned
        moved = (1.0 - saving.trusted) * total
        accepting = lotteries[saving.constant]
        kept[0] += accepting * moved
        kept[1] += (1.0 - accepting) * moved
        return kept


@dataclass(frozen=True)
class EstimatedSaving:
    """What a learned policy is estimated to save per person over the better constant (0: accept, 1:
    reject, or the lotteries that are nearest to them), with its standard error.

    Without this caution estimates that are the best of many by chance are deployed, and the learner
    ends worse than the constant by more than its audits cost (false accepts 10 times as expensive,
    200,000 rounds: by up to 6,000).
    """

    constant: int
    saved: float
    error: float

    @classmethod
    def of(
        cls,
        acceptance: FloatArray,
        cost: FloatArray,
        variance: FloatArray,
        lotteries: tuple[float, float] = (1.0, 0.0),
    ) -> "EstimatedSaving":
        """acceptance: the policy's on some rows; cost, variance: of accepting all people of a row,
        per person; lotteries: with which probability the constants accept.
        """
        constant = 0 if cost.sum() <= 0 else 1
        change = lotteries[constant] - acceptance
        return cls(constant, float(change @ cost), float(np.sqrt(variance @ change**2)))

    @property
    def trusted(self) -> float:
        """How much of its weight the policy keeps: 0 below MIN_Z standard errors, 1 above
        FULL_TRUST_Z.
        """
        doubt = self.saved - MIN_Z * self.error
        trust = (FULL_TRUST_Z - MIN_Z) * self.error
        return float(np.clip(doubt / trust, 0.0, 1.0)) if trust > 0 else float(doubt > 0)
