"""What a life watches for drift besides its audits: whom a deployed rule would accept, and the labels of those whom it accepted.

Audits are few once a policy is certified. But the policy is a mixture: whoever a rule h of it accepts is accepted with probability at
least q = P[h or accept-all is drawn], whatever else is in the mixture. Keep each accepted person with h(x) = 1 by a coin of q / p(x):
each of them is kept with the same probability q, so those kept are independent draws of D given h(x) = 1. That coin looks at
the person only through p(x), which was drawn with; their labels are a stream that is i.i.d. while D is fixed, as is h(x) itself.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand.contracts import Hypothesis
from evenhand.fairness.drift import DriftMonitor
from evenhand.hypotheses.constants import ACCEPT_ALL, Constant
from evenhand.learners.codec import storable
from evenhand.learners.cohorts import ClosedCohort
from evenhand.policies import Mixture
from evenhand.words import BoolArray, FloatArray

LEAST_WEIGHT = 0.05
"""A rule is watched from the time on at which it has this weight in the policy."""
MOST_RULES = 4
"""So many are watched at a time; a new one then takes the place of the one with the least weight."""


@storable
@dataclass(eq=False)
class WatchedRules:
    """Rules of the deployed policies. categories: 2 (good, bad), or 3 where labels may not come within their maturity window."""

    coins: np.random.Generator
    categories: int = 2
    rules: tuple[Hypothesis, ...] = ()
    numbers: tuple[int, ...] = ()
    opened: int = 0

    def watch(
        self,
        monitor: DriftMonitor,
        cohort: ClosedCohort,
        policy: Mixture,
        groups: tuple[Any, ...],
        *,
        group_decides: bool,
    ) -> DriftMonitor:
        """Feed the rules' streams from a closed cohort in which `policy`, chosen before it, was deployed."""
        monitor = self._open(monitor, policy, groups)
        codes, rounds = cohort.codes(groups), cohort.rounds
        complete = self.categories == 3 or not cohort.unresolved.any()
        for rule, number in zip(self.rules, self.numbers, strict=True):
            accepts = np.asarray(rule.accepts(cohort.features, cohort.group if group_decides else None))
            labels = self._kept(cohort, policy, rule, accepts)
            for j, group in enumerate(groups):
                here = codes == j
                if complete:
                    counts = [float(column[here].sum()) for column in labels]
                    monitor = monitor.watch(_stream("labels", group, number), counts)
                chosen = float(rounds[here & accepts].sum())
                shares = [chosen, float(rounds[here].sum()) - chosen]
                monitor = monitor.watch(_stream("share", group, number), shares)
        return monitor

    def _open(self, monitor: DriftMonitor, policy: Mixture, groups: tuple[Any, ...]) -> DriftMonitor:
        """Watch every rule that has enough weight from now on; if they are too many, give up those with the least."""
        for rule, weight in zip(policy.hypotheses, policy.weights, strict=True):
            if weight < LEAST_WEIGHT or isinstance(rule, Constant) or rule in self.rules:
                continue
            self.opened += 1
            self.rules, self.numbers = (*self.rules, rule), (*self.numbers, self.opened)
        while len(self.rules) > MOST_RULES:
            least = int(np.argmin([_weight(policy, rule) for rule in self.rules]))
            for group in groups:
                for what in ("labels", "share"):
                    monitor = monitor.retire(_stream(what, group, self.numbers[least]))
            self.rules = (*self.rules[:least], *self.rules[least + 1 :])
            self.numbers = (*self.numbers[:least], *self.numbers[least + 1 :])
        return monitor

    def _kept(
        self, cohort: ClosedCohort, policy: Mixture, rule: Hypothesis, accepts: BoolArray
    ) -> tuple[FloatArray, ...]:
        """(good, bad[, not come]) of the accepted with h(x) = 1, each kept with probability q / p(x)."""
        always = _weight(policy, rule) + _weight(policy, ACCEPT_ALL)
        chance = np.divide(always, cohort.acceptance, out=np.zeros(len(accepts)), where=cohort.acceptance > 0)
        chance = np.where(accepts, np.minimum(chance, 1.0), 0.0)
        columns = (cohort.positive, cohort.negative, cohort.unresolved)[: self.categories]
        return tuple(self.coins.binomial(column.astype(np.int64), chance).astype(np.float64) for column in columns)


def _weight(policy: Mixture, rule: Hypothesis) -> float:
    return sum(weight for h, weight in zip(policy.hypotheses, policy.weights, strict=True) if h == rule)


def _stream(what: str, group: Any, number: int) -> str:
    return f"{what} of {group} accepted by rule {number}"
