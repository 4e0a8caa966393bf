"""One mutant for each line of the requirement about cohorts: what was seen to break the guarantee,
put back into the code as it is, and the check that must then fail.

    A cohort is fixed by what was known before its coins were tossed. Afterwards a row may only lose
    information, and lost information counts at its worst.

All checks are exact (`entry_checks`) and pass on the code as it is; there is no chance in them, so
no false alarms.
"""

from dataclasses import replace

import numpy as np
import pytest
from tests.mutants import entry_checks as checks
from tests.mutants.test_mutants import Mutant

from evenhand.algorithms.arrivals import arrivals_before
from evenhand.algorithms.certified import drift, intervals, sample, step
from evenhand.algorithms.certified.drift import DriftWatch
from evenhand.algorithms.certified.evidence import Evidence
from evenhand.algorithms.certified.intervals import BettingProcess
from evenhand.algorithms.certified.rule_tables import MemberTables
from evenhand.algorithms.certified.step import Certified
from evenhand.algorithms.certified.tally import Tally
from evenhand.algorithms.exploration import ExplorationRule, labelled_sample
from evenhand.bounds import BettingState, Cohort
from evenhand.errors import EvenhandError
from evenhand.learner import EpochLearner
from evenhand.rounds import UNKNOWN, Rounds, counting, reports, windows


def rows_without_chance_dropped(patch):
    """Whoever the policy could not accept is left out."""
    real = BettingProcess.update

    def without(process, cohort, record):
        group = np.where(cohort.acceptance > 0, cohort.group.astype(object), None)
        return real(process, replace(cohort, group=group), record)

    patch.setattr(BettingProcess, "update", without)


def cohorts_chosen_by_their_rows(patch):
    """Labels of a cohort count if everybody in it happened to have a chance."""
    real = BettingProcess.update

    def lucky(process, cohort, record):
        everybody = np.full(len(record.labelled), bool((cohort.acceptance > 0).all()))
        return real(process, cohort, replace(record, labelled=everybody))

    patch.setattr(BettingProcess, "update", lucky)


def overruled_rows_dropped(patch):
    """Whoever a human decided about counts outside."""
    real = Tally.feed

    def without(tally, rounds, *arguments):
        known = rounds["group"].copy()
        rounds["group"][rounds["overruled"]] = UNKNOWN
        real(tally, rounds, *arguments)
        rounds["group"][:] = known

    patch.setattr(Tally, "feed", without)
    closed = Tally.closed

    def without_them(tally, rounds, *arguments):
        known = rounds["group"].copy()
        rounds["group"][rounds["overruled"]] = UNKNOWN
        cohort = closed(tally, rounds, *arguments)
        rounds["group"][:] = known
        return cohort

    patch.setattr(Tally, "closed", without_them)


def overruled_rows_redrawn(patch):
    """The decision of the human takes the place of the draw."""
    real = reports.overrule

    def overrule(rounds, numbers, accept, **named):
        changed = real(rounds, numbers, accept, **named)
        rounds["accept"][changed] = ~rounds["accept"][changed]
        return changed

    patch.setattr(reports, "overrule", overrule)


def erased_rows_dropped(patch):
    """Whoever is erased before the closing is left out, at no price."""

    def present(*arguments, **columns):
        nobody = {"lost_count": np.zeros(0), "lost_weight": np.zeros(0)}
        return Cohort(*arguments, **{**columns, **nobody})

    patch.setattr(intervals, "Cohort", present)


def rebuilt_without_the_erased(learner):
    """All intervals from the beginning, without the erased, with the same delta again."""
    algorithm = learner.algorithm
    rounds = learner.rounds
    state = learner.state
    process = replace(state.process, state=state.process.bound.start())
    spans = state.spans
    state = replace(state, process=process, spans=())
    for span in spans:
        epoch, first, stop = span
        cohort = counting.count(rounds, first, stop)
        if epoch >= min(state.gaps):  # the first epoch that was certified
            nobody = {name: np.zeros(0) for name in ("lost_acceptance", "lost_accepted")}
            left = replace(
                cohort,
                stop=first + round(cohort.rounds.sum()),
                lost_rejected=np.zeros(0),
                **nobody,
            )
            people = algorithm._closed_people(state, rounds)
            record = algorithm._record(state, rounds.mixture(epoch), people)
            state = replace(state, process=state.process.update(left, record))
        state = replace(state, spans=(*state.spans, span))
    learner.state = state


def rebuilt_after_erasure(patch):
    real = EpochLearner.erase

    def erase(learner, *told, **more):
        real(learner, *told, **more)
        rebuilt_without_the_erased(learner)

    patch.setattr(EpochLearner, "erase", erase)


def rebuilt_on_loading(patch):
    real = EpochLearner.restore

    def restore(learner, stored):
        real(learner, stored)
        rebuilt_without_the_erased(learner)

    patch.setattr(EpochLearner, "restore", restore)


def bets_fixed_at_the_closing(patch):
    """The record of a cohort is written when it closes, from the people who are left by then."""
    real = step.close
    algorithms = []

    def remembering(algorithm, *arguments):
        algorithms.append(algorithm)
        return of_algorithm(algorithm, *arguments)

    def hindsight(state, cohort, rounds):
        people = algorithms[-1]._closed_people(state, rounds)
        record = algorithms[-1]._record(state, rounds.mixture(cohort.epoch), people)
        return real(replace(state, records={cohort.epoch: record}), cohort, rounds)

    of_algorithm = Certified.step
    patch.setattr(Certified, "step", remembering)
    patch.setattr(step, "close", hindsight)


def two_epochs_share_a_record(patch):
    """People whose epoch has ended are judged by the record of the epoch that is open now."""
    real = step.close

    def newest(state, cohort, rounds):
        record = state.records.get(max(state.records, default=0))
        if record is None:
            return real(state, cohort, rounds)
        return real(replace(state, records={cohort.epoch: record}), cohort, rounds)

    patch.setattr(step, "close", newest)


def late_labels_are_learned(patch):
    """The loss learns from labels that came after the closing, too."""
    real = sample.resolved_rows

    def learned(rounds, first, stop):
        late = rounds["label_late"].copy()
        rounds["label_late"][:] = False
        found = real(rounds, first, stop)
        rounds["label_late"][:] = late
        return found

    patch.setattr(sample, "resolved_rows", learned)


def late_labels_are_counted(patch):
    """Counts of a closed cohort hold the labels that came after the closing."""
    patch.setattr(
        counting,
        "label_at_closing",
        lambda rounds, rows: np.where(rounds["overruled"][rows], 0, rounds["label"][rows]),
    )


def late_labels_are_come(patch):
    """For the drift test, too, a label has come if it is there when the cohort closes."""
    patch.setattr(windows, "window_open", lambda rounds, *arguments: True)
    patch.setattr(reports, "enter_label", lambda rounds, *arguments, **named: False)


def a_single_late_label_is_come(patch):
    """The same of labels that come one by one."""
    real = reports.enter_label

    def enter_label(rounds, round, label, **named):
        entered = real(rounds, round, label, **named)
        rounds["settled"][round] = label
        return entered

    patch.setattr(reports, "enter_label", enter_label)


def a_single_late_label_is_learned(patch):
    """A label that comes alone counts in its cohort, though that has closed."""
    real = reports.enter_label

    def enter_label(rounds, round, label, *, now, window, closed):
        return real(rounds, round, label, now=now, window=window, closed=0)

    patch.setattr(reports, "enter_label", enter_label)


def settled_categories_change(patch):
    """Whoever is overruled after the window has no category any more."""
    real = reports._drop_labels
    patch.setattr(reports, "_drop_labels", lambda rounds, rows, unsettled: real(rounds, rows, rows))


def categories_depend_on_the_look(patch):
    """Without a window everybody is looked at at once; who has no label yet has not come."""
    patch.setattr(drift, "settled_before", lambda rounds, first, now, window: rounds.returned)


def incomplete_cohorts_passed_over(patch):
    """Without a window the streams take cohorts that have all their labels, and pass over the
    others.
    """
    real = DriftWatch._fed

    def hurried(watch, cohort, policy, groups):
        missing = cohort.settled[2].sum() > 0
        return watch if missing else real(watch, cohort, policy, groups)

    categories_depend_on_the_look(patch)
    patch.setattr(DriftWatch, "_fed", hurried)


def streams_wait_for_every_label(patch):
    """Without a window nobody is looked at before every earlier label has come."""

    def complete(rounds, first, now, window):
        return min(rounds.returned, windows.first_missing(rounds))

    patch.setattr(drift, "settled_before", complete)


def exploration_takes_what_has_come(patch):
    """The paper's sample is whatever labels are there when enough people have come."""

    def hurried(rule, exploration, rounds):
        if rounds.decided < exploration.size:
            return exploration
        arrivals = arrivals_before(rounds, rounds.decided)
        sample = labelled_sample(arrivals)
        if not np.isfinite(rule.beta(sample)):
            return exploration
        unlabelled = tuple(rounds["round"][rounds["label"] == 0].tolist())
        return replace(
            exploration,
            size=rounds.decided,
            slack=rule.slack(sample),
            groups=tuple(sample.groups),
            unlabelled=unlabelled,
        )

    patch.setattr(ExplorationRule, "explore", hurried)


def outcomes_bring_groups(patch):
    """A group that is reported with the outcome counts from then on."""
    real = EpochLearner.observe

    def observe(learner, *told, group=None, **more):
        real(learner, *told, group=group, **more)
        if group is not None:
            learner.report_group(told[0], group)

    patch.setattr(EpochLearner, "observe", observe)


def late_groups_are_not_counted(patch):
    """The certificate does not say for how many the group came after the coin."""
    real = counting.marked
    patch.setattr(
        counting, "marked", lambda rounds, *span: {**real(rounds, *span), "late_groups": {}}
    )


def rare_groups_forgotten(patch):
    """The groups of the first people are all there will ever be."""
    patch.setattr(step, "join_groups", lambda state, round: state)


def groups_join_with_old_wealth(patch):
    """The pairs of a group that joins begin with what its partners have gathered before."""
    real = BettingState.with_group

    def rich(state):
        grown = real(state)
        return replace(grown, wealth_before=np.zeros_like(grown.wealth_before))

    patch.setattr(BettingState, "with_group", rich)


def every_value_is_a_group(patch):
    """One person is enough for a group, and everybody waits until it has its first people."""
    patch.setattr(
        Evidence, "groups", property(lambda evidence: tuple(sorted(evidence.seen, key=str)))
    )


def frozen_policies_change(patch):
    """A closing after the budget is spent chooses the best policy again."""
    real = Certified.step

    def thawed(algorithm, state, rounds, now):
        return real(algorithm, replace(state, frozen=None), rounds, now)

    patch.setattr(Certified, "step", thawed)


def accepted_rows_first(patch):
    """People who are decided together are written down with the accepted first."""
    real = Rounds.append

    def sorted_rows(rounds, *, features, group, accept, acceptance, audit, **same):
        order = np.argsort(~accept, kind="stable")
        columns = {"accept": accept, "acceptance": acceptance, "audit": audit}
        columns = {name: column[order] for name, column in columns.items()}
        real(rounds, features=features[order], group=group[order], **columns, **same)

    patch.setattr(Rounds, "append", sorted_rows)


def newest_rows_first(patch):
    """People who are taken over from a ledger are written down in another order than they came."""
    real = Rounds.append_rows

    def reversed_rows(rounds, features, group, columns, prices):
        columns = {name: column[::-1] for name, column in columns.items()}
        real(rounds, features[::-1], group[::-1], columns, prices)

    patch.setattr(Rounds, "append_rows", reversed_rows)


def the_record_remembers_people(patch):
    """The regression of an epoch keeps the people whom it was fitted to."""
    real = step.fit_outcomes

    def remembering(log):
        fitted = real(log)
        object.__setattr__(fitted, "people", log)
        return fitted

    patch.setattr(step, "fit_outcomes", remembering)


def closed_cohorts_are_kept(patch):
    """A closed cohort stays in the state, beside its sums."""
    real = step.close

    def hoarding(state, cohort, rounds):
        closed = real(state, cohort, rounds)
        return replace(closed, gaps={**closed.gaps, -cohort.first: cohort})

    patch.setattr(step, "close", hoarding)


def tables_are_remembered_by_their_rows(patch):
    """Who accepts whom is remembered with the people who were asked about."""
    real = MemberTables.on

    def remembering(tables, features, group):
        tables.known[features.tobytes()] = table = real(tables, features, group)
        return table

    patch.setattr(MemberTables, "on", remembering)


LINES = {
    "bets are fixed before the coins": (
        Mutant(
            "bets fixed at the closing",
            bets_fixed_at_the_closing,
            checks.check_bets_are_fixed_before_the_coins,
        ),
        Mutant(
            "two epochs share a record",
            two_epochs_share_a_record,
            checks.check_bets_belong_to_the_epoch,
        ),
    ),
    "rows stand in the order of arrival": (
        Mutant(
            "accepted rows first",
            accepted_rows_first,
            checks.check_rows_are_in_the_order_of_arrival,
        ),
        Mutant(
            "newest rows first",
            newest_rows_first,
            checks.check_rows_are_in_the_order_of_arrival,
        ),
    ),
    "the state keeps nobody": (
        Mutant(
            "the record remembers people",
            the_record_remembers_people,
            checks.check_the_state_keeps_nobody,
        ),
        Mutant(
            "closed cohorts are kept", closed_cohorts_are_kept, checks.check_the_state_keeps_nobody
        ),
        Mutant(
            "tables are remembered by their rows",
            tables_are_remembered_by_their_rows,
            checks.check_the_state_keeps_nobody,
        ),
    ),
    "the policy could not accept it": (
        Mutant(
            "rows with p = 0 dropped",
            rows_without_chance_dropped,
            checks.check_selection_counts_all_applicants,
        ),
        Mutant(
            "cohorts chosen by their rows",
            cohorts_chosen_by_their_rows,
            checks.check_labels_count_by_policy,
        ),
    ),
    "a human overrules it": (
        Mutant("overruled rows dropped", overruled_rows_dropped, checks.check_overruled_rows_stay),
        Mutant("overruled rows redrawn", overruled_rows_redrawn, checks.check_overruled_rows_stay),
    ),
    "erased before the cohort closes": (
        Mutant("erased rows dropped", erased_rows_dropped, checks.check_erased_rows_are_paid_for),
    ),
    "erased after the cohort closed": (
        Mutant("rebuilt with the full delta", rebuilt_after_erasure, checks.check_closed_sums_stay),
        Mutant("rebuilt on loading", rebuilt_on_loading, checks.check_closed_sums_stay),
    ),
    "a label arrives after the closing": (
        Mutant(
            "late labels are learned",
            late_labels_are_learned,
            checks.check_labels_after_the_closing_stay_outside,
        ),
        Mutant(
            "a single late label is learned",
            a_single_late_label_is_learned,
            checks.check_labels_after_the_closing_stay_outside,
        ),
        Mutant(
            "late labels are counted",
            late_labels_are_counted,
            checks.check_labels_after_the_closing_stay_outside,
        ),
    ),
    "a label arrives after its maturity window": (
        Mutant(
            "late counts as come for drift",
            late_labels_are_come,
            checks.check_categories_are_settled_in_the_window,
        ),
        Mutant(
            "settled categories change",
            settled_categories_change,
            checks.check_categories_are_settled_in_the_window,
        ),
    ),
    "labels are missing and there is no window (drift)": (
        Mutant(
            "categories depend on the look",
            categories_depend_on_the_look,
            checks.check_streams_wait_in_order,
        ),
        Mutant(
            "incomplete cohorts passed over",
            incomplete_cohorts_passed_over,
            checks.check_streams_wait_in_order,
        ),
        Mutant(
            "a missing label silences the streams",
            streams_wait_for_every_label,
            checks.check_a_missing_label_silences_nothing,
        ),
        Mutant(
            "a label after the patience counts as come",
            late_labels_are_come,
            checks.check_a_missing_label_silences_nothing,
        ),
        Mutant(
            "a single label after the patience counts as come",
            a_single_late_label_is_come,
            checks.check_a_missing_label_silences_nothing,
        ),
    ),
    "labels are missing and there is no window (exploration)": (
        Mutant(
            "two-phase takes what has come",
            exploration_takes_what_has_come,
            checks.check_exploration_takes_first_arrivals,
        ),
    ),
    "its group is reported after the coin": (
        Mutant(
            "the outcome brings the row in",
            outcomes_bring_groups,
            checks.check_groups_reported_with_outcomes_stay_outside,
        ),
        Mutant(
            "late groups are not counted",
            late_groups_are_not_counted,
            checks.check_groups_reported_with_outcomes_stay_outside,
        ),
    ),
    "its group is rare": (
        Mutant("a rare group forgotten", rare_groups_forgotten, checks.check_rare_groups_join),
        Mutant(
            "a group joins with old wealth",
            groups_join_with_old_wealth,
            checks.check_groups_join_with_nothing,
        ),
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
"""Each line of the requirement with its mutants."""
MUTANTS = [mutant for mutants in LINES.values() for mutant in mutants]


@pytest.mark.thorough
@pytest.mark.parametrize(
    "check",
    list(dict.fromkeys(mutant.check for mutant in MUTANTS)),
    ids=lambda check: check.__name__,
)
def test_the_code_passes(check):
    check()


@pytest.mark.thorough
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
