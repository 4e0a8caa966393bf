"""What a run watches for drift besides its audits: whom a deployed rule would accept, and the
labels of those whom it accepted.

Audits are few once a policy is certified. But the policy is a mixture: whoever a rule h of it
accepts is accepted with probability at least q = P[h or accept-all is drawn], whatever else is in
the mixture. Keep each accepted person with h(x) = 1 by a coin of q / p(x): each of them is kept
with the same probability q, so those kept are independent draws of D given h(x) = 1. That coin
looks at the person only through p(x), which was drawn with; their labels are a stream that is
i.i.d. while D is fixed, as is h(x) itself.
"""

from dataclasses import dataclass

import numpy as np

from evenhand.contracts import Hypothesis
from evenhand.fairness.drift import DriftMonitor
from evenhand.hypotheses.constants import ACCEPT_ALL, Constant
from evenhand.learners.certified.evidence import ClosedCohort, group_codes
from evenhand.learners.certified.intervals import acceptance_table
from evenhand.learners.storage import storable
from evenhand.policies import Mixture
from evenhand.words import BoolArray, Group

LEAST_WEIGHT = 0.05
"""A rule is watched from the time on at which it has this weight in the policy."""
MOST_RULES = 4
"""So many are watched at a time; a new one then takes the place of the one with the least weight.
"""


@storable
@dataclass(eq=False)
class WatchedRules:
    """Rules of the deployed policies, each with its streams by group: whom it accepts, and (good,
    bad, not come) of those it accepted.
    """

    coins: np.random.Generator
    rules: tuple[Hypothesis, ...] = ()
    numbers: tuple[int, ...] = ()
    since: tuple[int, ...] = ()
    """The epoch from which on each is watched: its choice may have looked at the labels of earlier
    ones.
    """
    opened: int = 0

    def watch(
        self,
        monitor: DriftMonitor,
        cohort: ClosedCohort,
        policy: Mixture,
        groups: tuple[Group, ...],
        founders: tuple[Group, ...],
        *,
        labels: bool,
    ) -> DriftMonitor:
        """The mix of groups, "other" being the last one, and whom the rules of `policy`, which was
        chosen before the cohort, accept: that needs no label. Then the labels, if they may be
        looked at.

        founders: the groups with which the run began.
        """
        rounds, codes = cohort.rounds, group_codes(cohort.group, founders)
        known = np.array([value is not None for value in cohort.group.tolist()], dtype=bool)
        counts = [float(rounds[codes == j].sum()) for j in range(len(founders))]
        monitor = monitor.watch("group mix", [*counts, float(rounds[known & (codes < 0)].sum())])
        monitor = self._open(monitor, policy, groups, cohort.epoch)
        codes = group_codes(cohort.group, groups)
        for number, accepts in zip(self.numbers, self._accepts(cohort, policy), strict=True):
            for j, group in enumerate(groups):
                here = codes == j
                chosen = float(rounds[here & accepts].sum())
                shares = [chosen, float(rounds[here].sum()) - chosen]
                monitor = monitor.watch(_stream("share", group, number), shares)
        return self.watch_labels(monitor, cohort, policy, groups) if labels else monitor

    def watch_labels(
        self,
        monitor: DriftMonitor,
        cohort: ClosedCohort,
        policy: Mixture,
        groups: tuple[Group, ...],
    ) -> DriftMonitor:
        """Labels (good, bad, not come) of the audited, who are draws of the population, and of the
        accepted with h(x) = 1, each kept with probability q / p(x).
        """
        codes, table = group_codes(cohort.group, groups), self._accepts(cohort, policy)
        for j, group in enumerate(groups):
            counts = cohort.settled_audited[:, codes == j].sum(axis=1)
            monitor = monitor.watch(f"labels of {group}", counts)
        watched = zip(self.rules, self.numbers, self.since, table, strict=True)
        for rule, number, since, accepts in watched:
            if cohort.epoch < since:
                continue
            always = policy.weight_of(rule) + policy.weight_of(ACCEPT_ALL)
            chance = np.divide(
                always, cohort.acceptance, out=np.zeros(len(accepts)), where=cohort.acceptance > 0
            )
            chance = np.where(accepts, np.minimum(chance, 1.0), 0.0)
            kept = self.coins.binomial(cohort.settled.astype(np.int64), chance).astype(np.float64)
            for j, group in enumerate(groups):
                counts = kept[:, codes == j].sum(axis=1)
                monitor = monitor.watch(_stream("labels", group, number), counts)
        return monitor

    def _accepts(self, cohort: ClosedCohort, policy: Mixture) -> BoolArray:
        """(rules, rows): whom each rule accepts."""
        shown = cohort.group if policy.group_use == "decide" else None
        return acceptance_table(self.rules, cohort.features, shown)

    def _open(
        self, monitor: DriftMonitor, policy: Mixture, groups: tuple[Group, ...], epoch: int
    ) -> DriftMonitor:
        """Watch every rule that has enough weight from now on; if they are too many, give up those
        with the least.
        """
        for rule, weight in zip(policy.hypotheses, policy.weights, strict=True):
            if weight < LEAST_WEIGHT or isinstance(rule, Constant) or rule in self.rules:
                continue
            self.opened += 1
            self.rules, self.numbers = (*self.rules, rule), (*self.numbers, self.opened)
            self.since = (*self.since, epoch)
        while len(self.rules) > MOST_RULES:
            least = int(np.argmin([policy.weight_of(rule) for rule in self.rules]))
            for group in groups:
                for what in ("labels", "share"):
                    monitor = monitor.retire(_stream(what, group, self.numbers[least]))
            self.rules = (*self.rules[:least], *self.rules[least + 1 :])
            self.numbers = (*self.numbers[:least], *self.numbers[least + 1 :])
            self.since = (*self.since[:least], *self.since[least + 1 :])
        return monitor


def _stream(what: str, group: Group, number: int) -> str:
    return f"{what} of {group} accepted by rule {number}"
