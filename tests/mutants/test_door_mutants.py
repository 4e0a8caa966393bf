"""One mutant for each line of the law of cohorts: what was seen to break the promise, put back, and
the check that must then fail.

    A cohort is fixed by what was known before its coins were tossed. Afterwards a row may only lose
    information, and lost information counts at its worst.

All checks are exact (`door_checks`) and pass on the code as it is; there is no chance in them, so
no false alarms.
"""

from dataclasses import replace

import numpy as np
import pytest
from tests.mutants import door_checks as checks
from tests.mutants.test_mutants import Mutant

from evenhand.bounds import Cohort
from evenhand.errors import EvenhandError
from evenhand.estimation import RoundLog
from evenhand.learners import CertifiedLearner, TwoPhaseLearner
from evenhand.learners.certified import intervals
from evenhand.learners.certified import learner as certified
from evenhand.learners.certified.evidence import EvidenceCounts
from evenhand.learners.certified.intervals import BettingProcess
from evenhand.learners.certified.run import CertificationRun
from evenhand.learners.exploration import sample_of


def rows_without_chance_dropped(patch):
    """Whoever the policy could not accept is left out."""
    real = BettingProcess.update

    def without(process, cohort, prepared):
        group = np.where(cohort.acceptance > 0, cohort.group.astype(object), None)
        return real(process, replace(cohort, group=group), prepared)

    patch.setattr(BettingProcess, "update", without)


def cohorts_chosen_by_their_rows(patch):
    """Labels of a cohort count if everybody in it happened to have a chance."""
    real = BettingProcess.update

    def lucky(process, cohort, prepared):
        everybody = np.full(len(prepared.labelled), bool((cohort.acceptance > 0).all()))
        real(process, cohort, replace(prepared, labelled=everybody))

    patch.setattr(BettingProcess, "update", lucky)


def overruled_rows_dropped(patch):
    """Whoever a human decided about counts outside."""
    real = certified.from_block

    def without(block):
        group = (
            np.full(len(block.accept), None) if block.group is None else block.group.astype(object)
        )
        return real(replace(block, group=np.where(block.overruled, None, group)))

    patch.setattr(certified, "from_block", without)


def erased_rows_dropped(patch):
    """Whoever is erased before the closing is left out, at no price."""

    def present(*arguments, **columns):
        return Cohort(
            *arguments, **{**columns, "lost_count": np.zeros(0), "lost_weight": np.zeros(0)}
        )

    patch.setattr(intervals, "Cohort", present)


def rebuilt_without_the_erased(learner):
    """Everything from the beginning, without those who were erased, with the whole failure
    probability again.
    """
    fresh, kept = learner.restarted(learner.seed), 0
    for number, (_, first, stop) in enumerate(learner.state.run.closed):
        block = learner.state.book.between(first, stop)
        here = ~block.erased
        names = (
            "accept",
            "acceptance",
            "label",
            "logged",
            "audit",
            "overruled",
            "erased",
            "settled",
            "group_late",
        )
        columns = {name: getattr(block, name)[here] for name in ("features", "group", *names)}
        kept += int(here.sum())
        policy = learner.state.epochs[number + 1].policy
        fresh.replay(
            [replace(block, first=kept - int(here.sum()), **columns)], kept, published=policy
        )
    fresh.state.run.closed, fresh.state.run.next_round = (
        learner.state.run.closed,
        learner.state.run.next_round,
    )
    learner.state.run = fresh.state.run


def rebuilt_after_erasure(patch):
    real = CertifiedLearner.erase

    def erase(learner, round):
        real(learner, round)
        rebuilt_without_the_erased(learner)

    patch.setattr(CertifiedLearner, "erase", erase)


def rebuilt_on_resuming(patch):
    real = CertifiedLearner.resume

    def resume(learner, checkpoint, policies, closed):
        real(learner, checkpoint, policies, closed)
        learner.state.book.blocks = list(closed)
        rebuilt_without_the_erased(learner)

    patch.setattr(CertifiedLearner, "resume", resume)


def late_labels_are_come(patch):
    """For the drift test, too, a label has come if it is there when the cohort closes."""
    real = certified.from_block
    patch.setattr(certified, "from_block", lambda block: real(replace(block, settled=block.label)))


def incomplete_cohorts_passed_over(patch):
    """Without a window the label streams take the cohorts that have all their labels, and pass over
    the others.
    """
    real = CertificationRun.look

    def hurried(life, cohort, policy):
        real(life, cohort, policy)
        if life.awaiting:
            life.awaiting.clear()
            if cohort.complete:
                life.watch_labels(cohort, policy)

    patch.setattr(CertificationRun, "look", hurried)


def exploration_takes_what_has_come(patch):
    """The paper's sample is whatever labels are there when enough people have come."""

    def hurried(learner):
        found = [block for block in learner.state.book.blocks if len(block.accept)]
        if learner.sample is not None or learner.round < learner.exploration_rounds:
            return
        logs = [block.log(block.resolved) for block in found if block.resolved.any()]
        sample = sample_of(RoundLog.concatenate(logs).aggregated())
        if np.isfinite(learner.explorer.beta(sample)):
            state = learner.state
            state.sample, state.slack = sample, learner.explorer.slack(sample)

    patch.setattr(TwoPhaseLearner, "_examine", hurried)


def outcomes_bring_groups(patch):
    """A group that is told with the outcome counts from then on."""
    real = CertifiedLearner.observe

    def observe(learner, round, label, *, group=None, at=None):
        real(learner, round, label, group=group, at=at)
        if group is not None:
            learner.tell_group(round, group)

    patch.setattr(CertifiedLearner, "observe", observe)


def groups_told_late_are_not_counted(patch):
    """The certificate does not say for how many the group came after the coin."""
    real = certified.from_block
    patch.setattr(
        certified,
        "from_block",
        lambda block: real(replace(block, group_late=np.zeros_like(block.group_late))),
    )


def rare_groups_forgotten(patch):
    """The groups of the first people are all there will ever be."""
    patch.setattr(CertificationRun, "join_groups", lambda life, round: None)


def every_value_is_a_group(patch):
    """One person is enough for a group, and everybody waits until it has its first people."""
    patch.setattr(
        EvidenceCounts, "groups", property(lambda tally: tuple(sorted(tally.seen, key=str)))
    )


def frozen_policies_change(patch):
    """A closing after the budget is spent chooses the best policy again."""
    real, look = CertifiedLearner._choose, CertificationRun.look

    def thawed(learner, number, round):
        if round > 0:
            learner.state.run.frozen, learner.state.frozen_certificate = False, None
        return real(learner, number, round)

    def looking(life, cohort, policy):
        life.frozen = False
        look(life, cohort, policy)

    patch.setattr(CertifiedLearner, "_choose", thawed)
    patch.setattr(CertificationRun, "look", looking)


LINES = {
    "the policy could not accept it": (
        Mutant(
            "rows with p = 0 dropped",
            rows_without_chance_dropped,
            checks.check_selection_counts_everybody,
        ),
        Mutant(
            "cohorts chosen by their rows",
            cohorts_chosen_by_their_rows,
            checks.check_labels_count_by_policy,
        ),
    ),
    "a human overrules it": (
        Mutant("overruled rows dropped", overruled_rows_dropped, checks.check_overruled_rows_stay),
    ),
    "erased before the cohort closes": (
        Mutant("erased rows dropped", erased_rows_dropped, checks.check_erased_rows_are_paid_for),
    ),
    "erased after the cohort closed": (
        Mutant("rebuilt with the full delta", rebuilt_after_erasure, checks.check_closed_sums_stay),
        Mutant("rebuilt on resuming", rebuilt_on_resuming, checks.check_closed_sums_stay),
    ),
    "a label arrives after its maturity window": (
        Mutant(
            "late counts as come for drift",
            late_labels_are_come,
            checks.check_categories_are_settled_in_the_window,
        ),
    ),
    "labels lack and there is no window (drift)": (
        Mutant(
            "incomplete cohorts passed over",
            incomplete_cohorts_passed_over,
            checks.check_streams_wait_in_order,
        ),
    ),
    "labels lack and there is no window (exploration)": (
        Mutant(
            "two-phase takes what has come",
            exploration_takes_what_has_come,
            checks.check_exploration_takes_first_arrivals,
        ),
    ),
    "its group is told after the coin": (
        Mutant(
            "the outcome brings the row in",
            outcomes_bring_groups,
            checks.check_groups_told_with_outcomes_stay_outside,
        ),
        Mutant(
            "late groups are not counted",
            groups_told_late_are_not_counted,
            checks.check_groups_told_with_outcomes_stay_outside,
        ),
    ),
    "its group is rare": (
        Mutant("a rare group forgotten", rare_groups_forgotten, checks.check_rare_groups_join),
    ),
    "its group is mistyped": (
        Mutant(
            "a typing error stops everything",
            every_value_is_a_group,
            checks.check_typing_errors_stop_nobody,
        ),
    ),
    "the audit budget is spent": (
        Mutant("frozen goes on changing", frozen_policies_change, checks.check_frozen_is_frozen),
    ),
}
"""Each line of the law with its mutants."""
MUTANTS = [mutant for mutants in LINES.values() for mutant in mutants]


@pytest.mark.parametrize(
    "check",
    list(dict.fromkeys(mutant.check for mutant in MUTANTS)),
    ids=lambda check: check.__name__,
)
def test_the_code_passes(check):
    check()


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_mutant_is_caught(mutant, monkeypatch):
    mutant.breaks(monkeypatch)
    with pytest.raises((AssertionError, EvenhandError)):
        mutant.check()


def test_every_line_has_a_mutant_and_every_check_a_line():
    assert all(LINES.values())
    written = {
        name
        for name in dir(checks)
        if name.startswith("check_") and callable(getattr(checks, name))
    }
    assert written == {mutant.check.__name__ for mutant in MUTANTS}
