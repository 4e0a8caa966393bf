"""Drift tests: streams of categories that are i.i.d. while the population does not change
(`evenhand.fairness.drift` has the tests).

Besides the mix of groups and the labels of audited people, the rules of the deployed policies are
watched: whom each accepts, and the labels of those whom it accepted; audits are few once a policy
is certified. The policy is a mixture: a person whom a rule h of it accepts is accepted with
probability at least q = P[h or accept-all is drawn], whatever else is in the mixture. Keep each
accepted person with h(x) = 1 by a coin of q / p(x): each of them is kept with the same probability
q, so those kept are independent draws of D given h(x) = 1. That coin looks at the person only
through p(x), which was drawn with.

**When.** Rounds are fed in the order of arrival, each once its category (good, bad, not come) is
settled: at the end of the person's own maturity window; without a window as soon as the label has
come, and at the latest after PATIENCE later arrivals, when it counts as "not come". So a label that
never comes silences nothing, and the categories do not depend on when somebody looks. The tests are
looked at at preset counts of people, however long an epoch is.
"""

from dataclasses import dataclass, replace

import numpy as np

from evenhand.algorithms.certified.evidence import group_codes
from evenhand.algorithms.certified.rule_tables import acceptance_table
from evenhand.contracts import Hypothesis
from evenhand.fairness.drift import DriftMonitor, Stream
from evenhand.hypotheses.constants import ACCEPT_ALL, Unread, is_constant
from evenhand.policies import Mixture
from evenhand.randomness import stream
from evenhand.rounds import Counts, Rounds, counting, windows
from evenhand.words import BoolArray, Group

LEAST_WEIGHT = 0.05
"""A rule is watched from the time on at which it has this weight in the policy."""
MOST_RULES = 4
"""So many are watched at a time; a new one then takes the place of the one with the least weight.
"""
FIRST_LOOK = 250
LOOKS_PER_DOUBLING = 50
LATEST_LOOK = 10_000
"""The tests are looked at at least every 250 people, or every 2% of those decided so far, and every
10,000 people however many there were: nothing that is new since then takes long.
"""


def next_look(round: int) -> int:
    """The next preset count of people at which the tests are looked at."""
    return round + min(max(FIRST_LOOK, round // LOOKS_PER_DOUBLING), LATEST_LOOK)


@dataclass(frozen=True)
class WatchedRule:
    """A rule of the deployed policies: its number among all that were ever watched, and the epoch
    from which on its labels count (its choice may have looked at the labels of earlier ones).
    """

    rule: Hypothesis
    number: int
    since: int


@dataclass(frozen=True, eq=False)
class DriftWatch:
    """The streams of a run.

    monitor: the tests. founders: the groups with which the run began. rules: those that are
    watched now; opened: how many ever were. fed_to: rounds before this one have been fed.
    """

    monitor: DriftMonitor
    founders: tuple[Group, ...]
    fed_to: int
    seed: int
    run: int
    rules: tuple[WatchedRule, ...] = ()
    opened: int = 0

    @classmethod
    def start(
        cls, groups: tuple[Group, ...], false_alarm: float, first: int, *, seed: int, run: int
    ) -> "DriftWatch":
        """Nobody has been fed; the first one is the person of round `first`."""
        categories = {Stream("group mix"): len(groups) + 1}
        categories |= {Stream("labels", group): 3 for group in groups}
        monitor = DriftMonitor.start(categories, false_alarm)
        return cls(monitor, groups, first, seed, run)

    def feed(
        self, rounds: Rounds, groups: tuple[Group, ...], now: float | None, maturity: float | None
    ) -> "DriftWatch":
        """After the rounds that have been settled since the last time."""
        stop = settled_before(rounds, self.fed_to, now, maturity)
        watch = self
        for epoch, first, last in rounds.spans(self.fed_to, stop):
            cohort = counting.count(rounds, first, last)
            watch = watch._fed(cohort, rounds.mixture(epoch), groups)
        return replace(watch, fed_to=max(stop, self.fed_to))

    def _fed(self, cohort: Counts, policy: Mixture, groups: tuple[Group, ...]) -> "DriftWatch":
        """After one cohort. What needs no label first: the mix of groups, "other" being the last
        category, and whom the rules accept.
        """
        rounds = cohort.rounds
        codes = group_codes(cohort.group, self.founders)
        known = np.array([value is not None for value in cohort.group.tolist()], dtype=bool)
        mix = [float(rounds[codes == j].sum()) for j in range(len(self.founders))]
        mix.append(float(rounds[known & (codes < 0)].sum()))
        monitor = self.monitor.watch(Stream("group mix"), mix)
        watch = replace(self, monitor=monitor)._with_rules_of(policy, groups, cohort.epoch)
        monitor = watch.monitor
        codes = group_codes(cohort.group, groups)
        table = watch._accepts(cohort, policy)
        for watched, accepts in zip(watch.rules, table, strict=True):
            for j, group in enumerate(groups):
                here = codes == j
                chosen = float(rounds[here & accepts].sum())
                counts = [chosen, float(rounds[here].sum()) - chosen]
                monitor = monitor.watch(Stream("share", group, watched.number), counts)
        # labels of the audited, who are draws of the population
        for j, group in enumerate(groups):
            counts = cohort.settled_audited[:, codes == j].sum(axis=1)
            monitor = monitor.watch(Stream("labels", group), counts)
        # labels of the accepted with h(x) = 1, each kept with probability q / p(x)
        coins = stream(self.seed, "watched", self.run, cohort.first)
        for watched, accepts in zip(watch.rules, table, strict=True):
            if cohort.epoch < watched.since:
                continue
            q = policy.weight_of(watched.rule) + policy.weight_of(ACCEPT_ALL)
            p = cohort.acceptance
            chance = np.divide(q, p, out=np.zeros(len(accepts)), where=p > 0)
            chance = np.where(accepts, np.minimum(chance, 1.0), 0.0)
            kept = coins.binomial(cohort.settled.astype(np.int64), chance).astype(np.float64)
            for j, group in enumerate(groups):
                counts = kept[:, codes == j].sum(axis=1)
                monitor = monitor.watch(Stream("labels", group, watched.number), counts)
        return replace(watch, monitor=monitor)

    def _accepts(self, cohort: Counts, policy: Mixture) -> BoolArray:
        """(rules, rows): whom each rule accepts."""
        shown = cohort.group if policy.group_use == "decide" else None
        rules = tuple(watched.rule for watched in self.rules)
        return acceptance_table(rules, cohort.features, shown)

    def _with_rules_of(
        self, policy: Mixture, groups: tuple[Group, ...], epoch: int
    ) -> "DriftWatch":
        """Watch every rule that has enough weight from now on; if they are too many, give up those
        with the least.
        """
        rules = list(self.rules)
        opened = self.opened
        monitor = self.monitor
        for rule, weight in zip(policy.hypotheses, policy.weights, strict=True):
            known = rule in [watched.rule for watched in rules]
            if weight >= LEAST_WEIGHT and not is_constant(rule) and not known:
                opened += 1
                rules.append(WatchedRule(rule, opened, epoch))
        while len(rules) > MOST_RULES:
            least = int(np.argmin([policy.weight_of(watched.rule) for watched in rules]))
            monitor = _given_up(monitor, rules.pop(least), groups)
        return replace(self, monitor=monitor, rules=tuple(rules), opened=opened)

    def without_unread(self, groups: tuple[Group, ...]) -> "DriftWatch":
        """Rules that could not be read are not watched any more."""
        monitor = self.monitor
        for watched in self.rules:
            if isinstance(watched.rule, Unread):
                monitor = _given_up(monitor, watched, groups)
        left = tuple(one for one in self.rules if not isinstance(one.rule, Unread))
        return replace(self, monitor=monitor, rules=left)

    def rule_of(self, name: Stream) -> Hypothesis | None:
        """The rule that a stream is about."""
        for watched in self.rules:
            if watched.number == name.rule:
                return watched.rule
        return None


def _given_up(
    monitor: DriftMonitor, given_up: WatchedRule, groups: tuple[Group, ...]
) -> DriftMonitor:
    """The tests without the streams of a rule."""
    for group in groups:
        monitor = monitor.retire(Stream("labels", group, given_up.number))
        monitor = monitor.retire(Stream("share", group, given_up.number))
    return monitor


def settled_before(table: Rounds, first: int, now: float | None, window: float | None) -> int:
    """The first round from `first` on whose category (good, bad, not come) is not settled.

    With a window: it has not passed. Without one: the label of an accepted person has not come and
    fewer than PATIENCE people have been decided since. Rounds are taken in the order of arrival, so
    what is settled early waits for what is not.
    """
    if window is not None:
        return windows.matured(table, now, window)
    rows = table.rows_between(first, table.returned)
    waiting = table["accept"][rows] & (table["settled"][rows] == 0)
    waiting &= windows.patient(table, rows)
    if waiting.any():
        return int(table["round"][rows][int(np.argmax(waiting))])
    return table.returned
