"""Exploring (item 1 of the outline in section 3 of the paper): accept all applicants until the
sample shows the gap of every hypothesis well enough.

The *preset sizes* N_0 < N_1 < ... are numbers of people that are fixed before the first of them
arrives: the first is the length of the exploration where one is given, and `next_size` gives the
others. Counts *suffice* if the slack beta that they give is small enough for the limit
(`ExplorationRule.target`). The sample is *exactly* the first N* arrivals, N* the first preset size
whose (group, label) counts suffice. The counts decide, never the features, and never which labels
happen to have come: so N* is fixed by the pairs (group, label) of the people in their order of
arrival, and a bound for fixed counts stays valid however late the labels are. See
docs/notes/two-phase-late-labels.md.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from evenhand import theory
from evenhand.algorithms.arrivals import Arrivals, arrivals_before
from evenhand.algorithms.base import Note
from evenhand.bounds import ClopperPearson, Dkw, JointHoeffding, SlackBound, people_needed
from evenhand.contracts import HypothesisClass
from evenhand.errors import InvalidInput, ProtocolError
from evenhand.estimation import RoundLog
from evenhand.estimation.log import is_known
from evenhand.fairness.rates import Rate
from evenhand.rounds import Rounds, counting, windows
from evenhand.shown import counted
from evenhand.words import FloatArray, Group, IntArray, LabelledSample

SlackRule = Literal["corrected", "as printed"]
"""How slack and limit relate. "corrected" constrains the empirical gap at limit - beta and so
guarantees the limit. "as printed" is the paper's set Pi: an empirical gap of gamma + beta, and
gamma + O(beta) on the population, of which no constant is claimed (gamma + 2 beta is right where
beta covers all of the class; gamma + beta is not)."""

PRINTED = "as printed"
"""The name of the paper's beta among the bounds; it needs the horizon, so it is not in `BOUNDS`."""

Verdict = Literal["enough", "too few", "open"]

BOUNDS: Mapping[str, SlackBound] = {
    "joint-hoeffding": JointHoeffding(),
    "dkw": Dkw(),
    "clopper-pearson": ClopperPearson(),
}


@dataclass(frozen=True)
class PrintedSlack:
    """The paper's beta with constant 1, sqrt(ln(|H|/delta)) / T^alpha: an order and no bound.

    It does not depend on the counts, but for that there must be some.
    """

    horizon: int
    exponent: float
    name: str = PRINTED

    @property
    def params(self) -> Mapping[str, object]:
        """T and alpha."""
        return {"bound": self.name, "horizon": self.horizon, "exponent": self.exponent}

    def slack(
        self,
        counts: ArrayLike,
        *,
        log_size: float,
        columns: int,
        delta: float,
        rates: int = 1,
    ) -> float:
        """beta; infinity where a count is 0."""
        if np.min(counts) <= 0:
            return float("inf")
        return theory.paper_slack(self.horizon, log_size, delta, self.exponent)


FIRST_SIZE = 64
"""The first preset size where no length of the exploration is given."""


def next_size(size: int) -> int:
    """The preset sizes: N_(i+1) = N_i + max(64, N_i // 20)."""
    return size + max(FIRST_SIZE, size // 20)


def as_bound(bound: str | SlackBound | None, hypotheses: HypothesisClass) -> SlackBound:
    """The bound by name or as it is; by default joint Hoeffding for finite classes and DKW for
    thresholds and stumps.
    """
    known = bound in BOUNDS if isinstance(bound, str) else hasattr(bound, "slack")
    if bound is not None and not known:
        raise InvalidInput(
            f"bound is {bound!r}; it is one of {', '.join(BOUNDS)}, {PRINTED!r}, or an object with "
            "slack().",
            argument="bound",
        )
    if bound is None:
        bound = "joint-hoeffding" if np.isfinite(hypotheses.log_size) else "dkw"
    chosen = BOUNDS[bound] if isinstance(bound, str) else bound
    if isinstance(chosen, Dkw) and not getattr(hypotheses, "one_column", False):
        raise InvalidInput(
            f"the DKW bound covers thresholds on one column, but {type(hypotheses).__name__} "
            "holds other rules, too.",
            hint="use a FiniteClass with joint-hoeffding, CertifiedLearner for rich classes, or "
            "Stumps or ScoreThresholds.",
            argument="bound",
        )
    return chosen


# the people of the sample


def sample_of(log: RoundLog) -> LabelledSample:
    """The labelled rows of an accept-all log, each with its count."""
    features = np.concatenate([log.features, log.features])
    shown = np.zeros(len(log), int) if log.group is None else log.group
    group = np.concatenate([shown, shown])
    label = np.repeat([1, -1], len(log))
    count = np.concatenate([log.positive, log.negative])
    seen = count > 0
    return LabelledSample(features[seen], group[seen], label[seen], count[seen])


def labelled_sample(arrivals: Arrivals) -> LabelledSample:
    """The people whose label and group are known; equal rows as one."""
    known = (arrivals.label != 0) & is_known(arrivals.group)
    label = arrivals.label[known]
    count = arrivals.count[known]
    ones = np.ones(len(label))
    log = RoundLog(
        arrivals.features[known],
        arrivals.group[known],
        ones,
        rejected=0 * ones,
        positive=count * (label == 1),
        negative=count * (label == -1),
    )
    return sample_of(log.aggregated())


def _labelled_only(arrivals: Arrivals) -> Arrivals:
    """The people whose label and group are known, as they came."""
    known = (arrivals.label != 0) & is_known(arrivals.group)
    return Arrivals(
        arrivals.features[known],
        arrivals.group[known],
        arrivals.label[known],
        arrivals.count[known],
    )


def possible_denominators(
    arrivals: Arrivals, rates: tuple[Rate, ...]
) -> tuple[FloatArray, FloatArray]:
    """(rates, groups) twice: the fewest and the most people in each denominator, whatever the
    missing labels turn out to be.

    Somebody who has neither label nor group may have been of any group. A label without a group
    counts for no group.
    """
    label = arrivals.label
    of_group = [arrivals.group == group for group in arrivals.groups]
    of_any_group = (label == 0) & ~is_known(arrivals.group)
    fewest = np.zeros((len(rates), len(of_group)))
    most = np.zeros((len(rates), len(of_group)))
    for r, rate in enumerate(rates):
        bad, good = rate.in_denominator(np.array([-1, 1]))
        counts = np.where(label == -1, bad, good)
        surely = np.where(label == 0, bad and good, counts) * arrivals.count
        perhaps = np.where(label == 0, bad or good, counts) * arrivals.count
        fewest[r] = [surely[members].sum() for members in of_group]
        most[r] = [perhaps[members | of_any_group].sum() for members in of_group]
    return fewest, most


def denominators(sample: LabelledSample, rates: tuple[Rate, ...]) -> FloatArray:
    """(rates, groups): how many people each rate of each group is estimated from."""
    of_group = [sample.group == group for group in sample.groups]
    counted = [sample.weight * rate.in_denominator(sample.label) for rate in rates]
    return np.array([[people[members].sum() for members in of_group] for people in counted])


# what the sample allows


@dataclass(frozen=True)
class Slack:
    """What a sample allows: beta, and the limit of the empirical gap that follows from it.

    guarantee: the gap that no policy within that limit exceeds on the population (with the slack
    rule "as printed": gamma + beta, which is the theorem's up to a constant). missing: how
    many of the sample's people have no label, each of whom made beta wider.
    """

    beta: float
    limit: float
    guarantee: float
    missing: int = 0


@dataclass(frozen=True)
class ExplorationState:
    """Where an exploration stands.

    size: the preset size that is examined next, or that the sample has. slack: None while
    exploring. groups: those of the sample, which alone are covered. unlabelled: rounds of the
    sample that had no label when it was closed, or have been lost since.
    """

    size: int
    slack: Slack | None = None
    groups: tuple[Group, ...] = ()
    unlabelled: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class ExplorationRule:
    """The rule that ends the exploration and turns its sample into a limit of the empirical gap.

    rounds: the length of the exploration where it is given; None where it stops on counts.
    """

    bound: SlackBound
    hypotheses: HypothesisClass
    rates: tuple[Rate, ...]
    limit: float | None
    comparator: float
    delta: float
    slack_rule: SlackRule
    rounds: int | None

    def start(self) -> ExplorationState:
        """Before the first person."""
        return ExplorationState(self.rounds or FIRST_SIZE)

    def explore(self, exploration: ExplorationState, rounds: Rounds) -> ExplorationState:
        """Look at the preset sizes in their order, as far as labels are complete; the first one
        whose counts suffice is the sample's.

        Which one that is depends on the pairs (group, label) of the people in their order of
        arrival, and not on when labels come.
        """
        complete = windows.first_missing(rounds)
        while exploration.size <= complete:
            arrivals = arrivals_before(rounds, exploration.size)
            verdict = self.verdict(arrivals)
            # somebody may have been erased after their label had come
            if verdict == "enough" and not arrivals.missing:
                return self._closed(exploration, arrivals)
            if verdict != "too few":
                return exploration
            exploration = replace(exploration, size=next_size(exploration.size))
        return exploration

    def _closed(self, exploration: ExplorationState, arrivals: Arrivals) -> ExplorationState:
        """These people are the sample for good; labels that come later do not enter it."""
        sample = labelled_sample(arrivals)
        slack = self.slack(sample, arrivals.missing)
        return replace(exploration, slack=slack, groups=tuple(sample.groups))

    def sample(self, exploration: ExplorationState, rounds: Rounds) -> LabelledSample:
        """The people of the sample who are left."""
        return labelled_sample(arrivals_before(rounds, exploration.size, exploration.unlabelled))

    def next_stop(self, exploration: ExplorationState, round: int) -> int:
        """The first round after `round` at which the people are as many as one of the preset
        sizes.
        """
        size = exploration.size
        while size <= round:
            size = next_size(size)
        return size

    def close(self, exploration: ExplorationState, rounds: Rounds) -> ExplorationState:
        """End the wait for labels that will not come; ProtocolError if nothing can be closed."""
        exploration = (
            self.explore(exploration, rounds) if exploration.slack is None else exploration
        )
        if exploration.slack is not None:
            raise ProtocolError("the exploration is over; it waits for no label any more.")
        size = exploration.size
        verdict: Verdict = "too few"
        while verdict == "too few":  # which it is whatever the missing labels are
            if size > rounds.decided:
                raise ProtocolError(
                    f"{rounds.decided} people have arrived, and the exploration needs at least "
                    f"{size}.",
                    hint="go on deciding; all applicants are accepted until then.",
                )
            arrivals = arrivals_before(rounds, size)
            verdict = self.verdict(arrivals)
            if verdict == "too few":
                size = next_size(size)
        if verdict == "open":
            raise ProtocolError(
                f"it depends on the {arrivals.missing} missing labels whether the first {size} "
                "people suffice.",
                hint="report some of these labels, or begin again with exploration_rounds.",
            )
        slack = self.slack(labelled_sample(arrivals), arrivals.missing)
        if not self._suffices(slack.beta, on_counts=False):
            raise ProtocolError(
                f"without {arrivals.missing} of {size} labels the slack would be "
                f"{slack.beta:.3g}, above the limit.",
                hint="report some of these labels.",
            )
        unlabelled = rounds["round"][(rounds["round"] < size) & (rounds["label"] == 0)]
        closed = self._closed(replace(exploration, size=size), arrivals)
        return replace(closed, unlabelled=tuple(unlabelled.tolist()))

    def forget(
        self, exploration: ExplorationState, rounds: Rounds, lost: IntArray
    ) -> ExplorationState:
        """After the people of these rounds were overruled or erased: they leave the sample, and
        the slack widens. (While exploring, their labels are simply missing from now on.)
        """
        if exploration.slack is None:
            return exploration
        for round in lost.tolist():
            if round < exploration.size and round not in exploration.unlabelled:
                unlabelled = (*exploration.unlabelled, round)
                left = arrivals_before(rounds, exploration.size, unlabelled)
                slack = self._widened(exploration, left)
                exploration = replace(exploration, unlabelled=unlabelled, slack=slack)
        return exploration

    # the slack

    def beta(self, sample: LabelledSample, missing: int = 0) -> float:
        """|gap on the sample - gap on D| <= beta for all hypotheses at once, with probability 1 -
        delta.

        `missing` people belong to the sample, too, but their rows are lost: they add missing /
        min_j n_j, n_j the people that are left in the smallest denominator. Putting k of n rows
        back moves a mean of numbers in [0, 1] by at most k / n.
        """
        counts = denominators(sample, self.rates)
        lost = 0.0
        if missing and counts.min() > 0:
            lost = missing / counts.min()
        return self._slack_of(counts, sample.features.shape[1]) + lost

    def _slack_of(self, counts: FloatArray, columns: int) -> float:
        if counts.shape[1] < 2:
            return float("inf")
        return self.bound.slack(
            counts, log_size=self.hypotheses.log_size, columns=columns, delta=self.delta
        )

    @property
    def target(self) -> float | None:
        """The slack at which the exploration ends: then every gamma-fair policy is allowed, and
        the limit is kept.
        """
        if self.limit is None:
            return None
        return (self.limit - self.comparator) / (2 if self.slack_rule == "corrected" else 1)

    def _needed(self, *, on_counts: bool) -> float | None:
        """The slack that the exploration must reach.

        If its length is given, it still goes on until the limit can be kept at all: with beta
        above the limit even a policy without any gap on the sample may have one above the limit on
        D.
        """
        if on_counts:
            return self.target
        return self.limit if self.slack_rule == "corrected" and self.limit != 1 else None

    def _suffices(self, beta: float, *, on_counts: bool) -> bool:
        """Whether the exploration may end with this slack."""
        needed = self._needed(on_counts=on_counts)
        return bool(np.isfinite(beta)) and (needed is None or beta <= needed)

    def verdict(self, arrivals: Arrivals) -> Verdict:
        """Whether the counts of these people suffice; "open" while that depends on labels that are
        missing.

        The answer is the one that all labels would give, so it does not depend on which of them
        have come. A bound falls when counts grow, so the fewest and the most people in each
        denominator decide.
        """
        columns = arrivals.features.shape[1]
        on_counts = self.rounds is None
        fewest, most = possible_denominators(arrivals, self.rates)
        if self._suffices(self._slack_of(fewest, columns), on_counts=on_counts):
            return "enough"
        if self._suffices(self._slack_of(most, columns), on_counts=on_counts):
            return "open"
        return "too few"

    def slack(self, sample: LabelledSample, missing: int = 0) -> Slack:
        """beta with the limit and the guarantee that follow from it."""
        beta = self.beta(sample, missing)
        if self.slack_rule == "as printed":
            return Slack(beta, self.comparator + beta, self.comparator + beta, missing)
        if self.limit is not None and self.limit >= 1:  # no policy can exceed this
            return Slack(beta, self.limit, self.limit, missing)
        guarantee = self.comparator + 2 * beta if self.limit is None else self.limit
        return Slack(beta, max(guarantee - beta, 0.0), guarantee, missing)

    def _widened(self, exploration: ExplorationState, left: Arrivals) -> Slack:
        """The slack after one more person of the sample was lost. The guarantee stays, so the
        limit falls as beta rises.

        Where nobody is left in the denominator of a group, nothing is known about its gaps but
        that no two of them differ by more than 2.
        """
        slack = exploration.slack
        assert slack is not None  # the exploration is over
        fewest, _ = possible_denominators(_labelled_only(left), self.rates)
        beta = 2.0
        if len(fewest[0]) == len(exploration.groups) and fewest.min() > 0:
            beta = min(self.beta(labelled_sample(left), slack.missing + 1), 2.0)
        limit = max(slack.limit - (beta - slack.beta), 0.0)
        return Slack(beta, limit, slack.guarantee, slack.missing + 1)

    def keeps(self, slack: Slack) -> bool:
        """Whether a policy that is within the limit on the sample keeps the guarantee."""
        if slack.guarantee >= 1 or self.slack_rule == "as printed":
            return True
        return slack.beta <= slack.guarantee

    # for people

    def notes(self, exploration: ExplorationState, rounds: Rounds) -> tuple[Note, ...]:
        """What the exploration waits for, or what its sample lacks."""
        if exploration.slack is not None:
            about_groups = self._about_groups(exploration, rounds)
            return (*self._about_sample(exploration.slack), *about_groups)
        waiting = windows.first_missing(rounds)
        if waiting < exploration.size <= rounds.decided:
            return (_waiting_for(waiting, rounds),)
        short = self.shortfall(arrivals_before(rounds, rounds.decided) if rounds.decided else None)
        return () if short is None else (Note("waiting for people", short),)

    def _about_sample(self, slack: Slack) -> list[Note]:
        notes = []
        if slack.missing > 0:
            text = (
                f"{counted(slack.missing)} of the sample, without a label or erased: the slack "
                "covers whatever is not known of them."
            )
            notes.append(Note("lost people", text))
        if not self.keeps(slack):
            text = (
                "so many people of the sample are lost that no other policy can be guaranteed to "
                "keep the limit: the policy is frozen."
            )
            notes.append(Note("frozen", text))
        return notes

    def _about_groups(self, exploration: ExplorationState, rounds: Rounds) -> list[Note]:
        covered = ", ".join(map(repr, exploration.groups))
        what = "the guarantee" if self.slack_rule == "corrected" else "the constraint"
        notes = [Note("groups", f"{what} covers the groups of the sample: {covered}.")]
        for group, people in outside_groups(exploration, rounds).items():
            text = (
                f"group {group!r} is not covered: the sample had nobody of it; decided so far: "
                f"{counted(people)} of it."
            )
            notes.append(Note("outside", text, group))
        return notes

    def shortfall(self, arrivals: Arrivals | None) -> str | None:
        """What is missing, in words; None if nothing is."""
        if arrivals is None or len(arrivals.groups) < 2:
            seen = "nobody"
            if arrivals is not None:
                seen = f"only group {', '.join(map(repr, arrivals.groups))}"
            return f"exploring: {seen} has been seen so far; a gap needs people of two groups."
        counts, _ = possible_denominators(arrivals, self.rates)
        if counts.min() == 0:
            r, j = np.argwhere(counts == 0)[0]
            people = int(arrivals.count[arrivals.group == arrivals.groups[j]].sum())
            return (
                f"exploring: group {arrivals.groups[j]!r} has {counted(people)} but 0 "
                f"{self.rates[r].denominator_name}; "
                "at least one is needed, and many more for a useful bound."
            )
        target = self._needed(on_counts=self.rounds is None)
        if target is None:
            return None
        columns = arrivals.features.shape[1]
        need = people_needed(lambda people: self._slack_of(people, columns), counts, target)
        if need.multiple <= 1:
            return None
        r, j = np.unravel_index(int(np.argmax(need.more)), need.more.shape)
        more = float(arrivals.count[arrivals.label != 0].sum()) * (need.multiple - 1)
        return (
            f"exploring: group {arrivals.groups[j]!r} has {counts[r, j]:.0f} "
            f"{self.rates[r].denominator_name} and needs about "
            f"{need.more[r, j]:.0f} more; at the present shares that is about {more:.0f} more "
            "people."
        )


def outside_groups(exploration: ExplorationState, rounds: Rounds) -> dict[Group, int]:
    """People of groups that the sample did not contain, by group: they are not covered."""
    if exploration.slack is None:
        return {}
    counts = counting.people_by_group(rounds)
    return {
        group: people
        for group, people in counts.items()
        if group is not None and group not in exploration.groups
    }


def _waiting_for(waiting: int, rounds: Rounds) -> Note:
    row = int(np.searchsorted(rounds["round"], waiting))
    never = bool(rounds["erased"][row] or rounds["overruled"][row])
    time = rounds["at"][row]
    at = "" if np.isnan(time) else f" at time {time:g},"
    lost = "; it was overruled or erased, so its label never comes" if never else ""
    return Note(
        "waiting for a label",
        f"exploring: waiting for the label of round {waiting}, which was decided{at} "
        f"{rounds.decided - waiting} rounds ago{lost}. The sample is the first people, each of "
        f"them with their label, so nobody after round {waiting} counts until it has come. "
        f"{rounds.missing_labels} labels may still come. "
        "To go on without those that never will: close_exploration().",
    )
