"""Learners as somebody else could write them: one on nothing but the contracts, with one broken
variant for each requirement at the entry points, and one that is an algorithm handed to
`EpochLearner`.

The first accepts all applicants with the same probability, which follows from all that it knows
about the rounds so far: the share of good labels, the groups, and (so that a trace of anybody can
be seen) the features.
"""

import threading
from dataclasses import dataclass, field

import numpy as np
from tests.requirements.reports import THREADS

from evenhand.errors import BadLabel, InvalidInput, ProtocolError
from evenhand.estimation import TransformedLoss
from evenhand.fairness import FalsePositiveRate
from evenhand.hypotheses import ACCEPT_ALL, REJECT_ALL
from evenhand.learner import EpochLearner
from evenhand.policies import Mixture
from evenhand.rounds import Epoch, learning
from evenhand.words import Decisions

EPOCH = 40


@dataclass
class Person:
    """One round, of which call of decide(); label 0 while it is unknown."""

    features: np.ndarray
    group: object
    accept: bool
    call: int
    label: int = 0
    refused: bool = False
    erased: bool = False


@dataclass(frozen=True)
class Report:
    missing_labels: int


class OwnLearner:
    group_use = "certify_only"

    def __init__(self, seed=0):
        self.seed = seed
        self.coins = np.random.default_rng(seed)
        self.people, self.calls = [], 0
        self.epoch, self.policy = 1, Mixture((ACCEPT_ALL, REJECT_ALL), (0.8, 0.2))
        self.lock = threading.RLock()

    def restarted(self, seed):
        return type(self)(seed)

    @property
    def params(self):
        return {"learner": type(self).__name__, "seed": self.seed}

    @property
    def round(self):
        return len(self.people)

    @property
    def rounds_left(self):
        return self.epoch * EPOCH - len(self.people)

    @property
    def report(self):
        return Report(sum(person.accept and not person.label for person in self.people))

    # deciding

    def decide(self, features, group=None):
        with self.lock:
            rows, groups = np.asarray(features, float), self.groups_of(group, len(features))
            first, epochs, chances = self.round, [], []
            self.calls += 1
            for row, value in zip(rows, groups, strict=True):
                if self.rounds_left == 0:
                    self.epoch, self.policy = self.epoch + 1, self.planned()
                chance = self.policy.weights[0]
                self.people.append(
                    Person(row.copy(), value, bool(self.coins.random() < chance), self.calls)
                )
                epochs.append(self.epoch)
                chances.append(chance)
            return self.decisions(first, np.array(chances), np.array(epochs))

    def decisions(self, first, chances, epochs):
        accept = np.array([person.accept for person in self.people[first:]])
        propensity = np.where(accept, chances, 1 - chances)
        return Decisions(accept, propensity, first, epochs, np.zeros(len(accept), bool))

    def groups_of(self, group, rows):
        if group is None:
            return [None] * rows
        if len(group) != rows:
            raise InvalidInput("one group per row")
        return [
            None if self.unknown(value) else value
            for value in np.asarray(group, dtype=object).tolist()
        ]

    def unknown(self, value):
        return value is None or type(value).__name__ == "NAType" or value != value

    def planned(self):
        """From all rounds so far: the share of good labels, a little of the groups, and very little
        of the features.
        """
        good, all_known = self.good_and_known()
        groups = [person.group for person in self.people if person.group is not None]
        size = max((groups.count(value) for value in set(groups)), default=0)
        traces = sum(float(np.tanh(person.features).sum()) for person in self.people)
        share = (
            (2 + good) / (3 + all_known)
            + 0.1 * size / len(self.people)
            + 1e-3 * np.tanh(traces / 100)
        )
        accept = float(np.clip(share, 0.1, 0.9))
        return Mixture((ACCEPT_ALL, REJECT_ALL), (accept, 1 - accept))

    def good_and_known(self):
        labels = [person.label for person in self.people if person.label]
        return labels.count(1), len(labels)

    # reports

    def observe(self, round, label):
        with self.lock:
            rounds, labels = np.atleast_1d(round).tolist(), np.atleast_1d(label).tolist()
            told = {}
            for one, value in zip(rounds, labels, strict=True):
                self.check(one, value)
                if told.setdefault(one, value) != value:
                    raise ProtocolError(f"round {one} has two labels")
            for one, value in told.items():
                self.take(one, value)

    def check(self, round, label):
        person = self.person(round)
        if label not in (-1, 1):
            raise BadLabel(f"the label of round {round} is {label}")
        if not person.accept or person.refused:
            raise ProtocolError(f"round {round} was rejected")
        if person.label == -label:
            raise ProtocolError(f"round {round} has another label")

    def take(self, round, label):
        self.people[round].label = label

    def person(self, round):
        if not 0 <= round < len(self.people):
            raise ProtocolError(f"round {round} is unknown")
        if self.people[round].erased:
            raise ProtocolError(f"round {round} was erased")
        return self.people[round]

    def overrule(self, round, accept):
        with self.lock:
            people = [self.person(one) for one in np.atleast_1d(round).tolist()]
            for person, decided in zip(people, np.atleast_1d(accept).tolist(), strict=True):
                if person.accept and not decided:
                    person.refused, person.label = True, 0

    def erase(self, round):
        with self.lock:
            rounds = np.atleast_1d(round).tolist()
            if not 0 <= min(rounds) <= max(rounds) < len(self.people):
                raise ProtocolError(f"one of rounds {rounds} is unknown")
            for one in rounds:
                self.people[one] = self.nobody(self.people[one])

    def nobody(self, person):
        return Person(np.zeros(len(person.features)), None, person.accept, person.call, erased=True)

    def report_group(self, round, group):
        with self.lock:
            pairs = list(
                zip(np.atleast_1d(round).tolist(), np.atleast_1d(group).tolist(), strict=True)
            )
            for one, value in pairs:
                self.check_group(self.person(one).group, value, one)
            for one, value in pairs:
                self.people[one].group = value

    def check_group(self, known, told, round):
        if known not in (None, told):
            raise ProtocolError(f"round {round} has group {known}")


# an algorithm of one's own


@dataclass(frozen=True)
class ShareOfGood:
    """Accept with the share of good outcomes so far. The state: rounds that were learned from."""

    rates: tuple = (FalsePositiveRate(),)
    loss: TransformedLoss = field(default_factory=TransformedLoss)
    hypotheses: None = None
    group_use: str = "certify_only"
    needs_group: str = "never"
    maturity: None = None

    def reading(self, schema):
        return self

    def init(self, seed):
        return 0, self.epoch(1, 0, 0.8)

    def step(self, state, rounds, now):
        known = learning.resolved_before(rounds, rounds.decided)
        if known == state:
            return state, None
        log = learning.log(rounds, with_group=False)
        share = (1 + log.positive.sum()) / (2 + log.accepted.sum())
        return known, self.epoch(rounds.epoch.number + 1, rounds.decided, share)

    def epoch(self, number, round, share):
        policy = Mixture((ACCEPT_ALL, REJECT_ALL), (share, 1 - share))
        return Epoch(number, "share", round, EPOCH, policy)


class ByShare(EpochLearner):
    def __init__(self, *, seed=None):
        super().__init__(ShareOfGood(), seed=seed, settings={"seed": seed})


# one broken learner for each requirement


class Dropping(OwnLearner):
    """A label that comes after eight more calls of decide() and 150 people is thrown away."""

    def take(self, round, label):
        if self.calls - self.people[round].call <= 8 or self.round - round <= 150:
            super().take(round, label)


class Hasty(OwnLearner):
    """Divides by the number of good labels, which may be none."""

    def planned(self):
        good, known = self.good_and_known()
        assert known == 0 or (known - good) / good >= 0
        return super().planned()


class Miscounting(OwnLearner):
    """The report knows the last 200 people alone."""

    @property
    def report(self):
        return Report(sum(person.accept and not person.label for person in self.people[-200:]))


class Double(OwnLearner):
    """A label that is told twice counts twice."""

    def __init__(self, seed=0):
        super().__init__(seed)
        self.told = 0

    def take(self, round, label):
        self.told += label == self.people[round].label == 1
        super().take(round, label)

    def good_and_known(self):
        good, known = super().good_and_known()
        return good + self.told, known + self.told


class Recent(OwnLearner):
    """The label that was told last counts ten times."""

    last = 0

    def take(self, round, label):
        self.last = round if not self.people[round].label else self.last
        super().take(round, label)

    def good_and_known(self):
        good, known = super().good_and_known()
        last = self.people[self.last].label
        return good + 9 * (last == 1), known + 9 * (last != 0)


class Piecemeal(OwnLearner):
    """A report of which one is refused enters those before it."""

    def observe(self, round, label):
        for one, value in zip(
            np.atleast_1d(round).tolist(), np.atleast_1d(label).tolist(), strict=True
        ):
            super().observe(one, value)


class Stubborn(OwnLearner):
    """The label that was told before a human refused stays."""

    def overrule(self, round, accept):
        kept = [
            (one, self.person(one).label)
            for one in np.atleast_1d(round).tolist()
            if 0 <= one < self.round
        ]
        super().overrule(round, accept)
        for one, label in kept:
            self.people[one].label = label


class Trusting(OwnLearner):
    """The label of a refused person is taken afterwards."""

    def check(self, round, label):
        person = self.person(round)
        refused, person.refused = person.refused, False
        try:
            super().check(round, label)
        finally:
            person.refused = refused


class Flattered(OwnLearner):
    """A reject that a human accepts becomes an accept, and its label is learned from."""

    def overrule(self, round, accept):
        super().overrule(round, accept)
        for one, decided in zip(
            np.atleast_1d(round).tolist(), np.atleast_1d(accept).tolist(), strict=True
        ):
            self.people[one].accept |= decided


class Nervous(OwnLearner):
    """Whoever is overruled loses the label, also if the human agrees."""

    def overrule(self, round, accept):
        super().overrule(round, accept)
        for one in np.atleast_1d(round).tolist():
            self.people[one].label = 0


class Halfway(OwnLearner):
    """An overruling of which one is refused has changed those before it."""

    def overrule(self, round, accept):
        for one, decided in zip(
            np.atleast_1d(round).tolist(), np.atleast_1d(accept).tolist(), strict=True
        ):
            super().overrule(one, decided)


class Keeping(OwnLearner):
    """Erases the label and the group, and keeps the features."""

    def nobody(self, person):
        return Person(person.features, None, person.accept, person.call, erased=True)


class Shelving(OwnLearner):
    """An erased person's label still counts."""

    def nobody(self, person):
        return Person(
            np.zeros(len(person.features)),
            None,
            person.accept,
            person.call,
            person.label,
            erased=True,
        )


class Reviving(OwnLearner):
    """An erased round takes a label again."""

    def person(self, round):
        if not 0 <= round < len(self.people):
            raise ProtocolError(f"round {round} is unknown")
        return self.people[round]


class Eager(OwnLearner):
    """An erasure of which one is refused has erased those before it."""

    def erase(self, round):
        for one in np.atleast_1d(round).tolist():
            super().erase(one)


class Literal(OwnLearner):
    """NaN is a group like any other."""

    def unknown(self, value):
        return value is None


class Sorting(OwnLearner):
    """Knows the groups of the first epoch and no others."""

    def planned(self):
        known = {person.group for person in self.people[:EPOCH]}
        sizes = dict.fromkeys(known, 0)
        for person in self.people[EPOCH:]:
            if person.group is not None:
                sizes[person.group] += 1
        return super().planned()


class Fickle(OwnLearner):
    """The group that was told last counts."""

    def check_group(self, known, told, round):
        pass


class Cut(OwnLearner):
    """In a call that goes on beyond the end of an epoch, rounds are counted from the epoch's
    beginning.
    """

    def decisions(self, first, chances, epochs):
        found = super().decisions(first, chances, epochs)
        if len(epochs) <= EPOCH:
            return found
        return Decisions(found.accept, found.propensity, first + EPOCH, found.epoch, found.audit)


class Racing(OwnLearner):
    """Reads the counter, and uses it after another thread did the same.

    (Each of the requirement's threads waits once for the others.)
    """

    def __init__(self, seed=0):
        super().__init__(seed)
        self.meeting, self.met = threading.Barrier(THREADS), threading.local()

    def decide(self, features, group=None):
        if threading.current_thread() is threading.main_thread():
            return super().decide(features, group)
        first = self.round
        if not getattr(self.met, "once", False):
            self.met.once = True
            self.meeting.wait()
        found = super().decide(features, group)
        return Decisions(found.accept, found.propensity, first, found.epoch, found.audit)


BROKEN = {
    Dropping: "late_labels_find_their_round",
    Hasty: "missing_labels_stop_nobody",
    Miscounting: "missing_labels_stop_nobody",
    Double: "repeated_reports_change_nothing",
    Recent: "the_order_of_reports_is_irrelevant",
    Piecemeal: "refused_reports_change_nothing",
    Stubborn: "refused_accepts_teach_nothing",
    Trusting: "refused_accepts_teach_nothing",
    Flattered: "accepted_rejects_stay_rejected",
    Nervous: "agreeing_humans_change_nothing",
    Halfway: "agreeing_humans_change_nothing",
    Keeping: "erased_people_leave_no_trace",
    Shelving: "erased_people_leave_no_trace",
    Reviving: "erased_rounds_stay_erased",
    Eager: "erased_rounds_stay_erased",
    Literal: "missing_groups_are_the_same",
    Sorting: "new_groups_stop_nobody",
    Fickle: "late_groups_are_reported_once",
    Cut: "a_large_block_counts_all_applicants",
    Racing: "threads_share_the_rounds",
}
"""Each broken learner with the one requirement that it breaks."""
