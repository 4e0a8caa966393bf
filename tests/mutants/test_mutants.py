"""Eleven ways to break the guarantee, each applied to the real code, and the check that must then
fail (it passes on the code as it is).

Three kinds of checks, all exact: the proof's steps at the bound (`bounds/betting_checks`),
the mean wealth through the learner as it is used, and what is booked and looked at when
(`checks`). False alarms: none, there is no chance in them.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from unittest.mock import PropertyMock

import numpy as np
import pytest
from tests.bounds import betting_checks
from tests.bounds.betting_worlds import FPR, random_plan, random_world, small_bound
from tests.mutants import checks

from evenhand.algorithms.certified import intervals, nominate, step
from evenhand.algorithms.certified.evidence import group_codes
from evenhand.algorithms.certified.intervals import BettingProcess, EpochRecord
from evenhand.algorithms.certified.step import Certified
from evenhand.bounds import BettingBound, Cohort, EpochPlan, betting, betting_wealth
from evenhand.errors import EvenhandError
from evenhand.estimation.outcomes import ConstantOutcome, fit_outcomes
from evenhand.fairness.delta_ledger import DeltaLedger
from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL
from evenhand.learner import EpochLearner
from evenhand.policies import Mixture
from evenhand.rounds import Counts, Rounds, counting, windows


@dataclass(frozen=True)
class Mutant:
    """What is broken, how, and the check that sees it."""

    name: str
    breaks: Callable[[pytest.MonkeyPatch], None]
    check: Callable[[], object]


def union_is_paid():
    betting_checks.check_union(BettingBound((0, 1, 2), (FPR,), 4, 0.05), 0.05)


def covering_holds():
    for seed in range(120):
        betting_checks.check_covering(seed)


def wealth_is_exact_at_the_nodes():
    betting_checks.check_wealth_at_the_nodes(0, (FPR,))


def factors_are_bounded():
    world = random_world(0)
    plan = random_plan(small_bound(world), world.truth((FPR,)), np.random.default_rng(0))
    betting_checks.check_factors_are_bounded(plan, world, 0, 0.01, 0.0)


def delta_not_split(patch):
    patch.setattr(
        BettingBound, "joint_threshold", PropertyMock(return_value=np.full(4, np.log(1 / 0.05)))
    )


def every_nominee_gets_all_of_delta(patch):
    patch.setattr(nominate, "inverse_square_share", lambda total, number: total)


def delta_not_booked(patch):
    """Processes start without a booking."""
    patch.setattr(DeltaLedger, "book", lambda ledger, *arguments, **named: ledger)


def only_arrived_labels(patch):
    """Accepted people without a label are left out, as if they had never come."""

    def arrived(*arguments, taken=None, **columns):
        if taken is not None:
            come = np.array([1, 1, 1, 0])
            by_slot = taken.by_slot * come[:, np.newaxis]
            taken = replace(taken, rounds=taken.rounds * come, by_slot=by_slot)
        return Cohort(*arguments, **{**columns, "unresolved": 0.0, "taken": taken})

    patch.setattr(intervals, "Cohort", arrived)


def groups_swapped(patch):
    patch.setattr(intervals, "group_codes", lambda group, groups: group_codes(group, groups[::-1]))


def floor_dropped(patch):
    """The audit coin's weight goes to reject-all: some people are never accepted."""
    real = Certified._cheapest

    def without_audits(algorithm, *arguments):
        state, choice = real(algorithm, *arguments)
        policy = choice.policy
        weights = {REJECT_ALL: 0.0}
        for hypothesis, weight in zip(policy.hypotheses, policy.weights, strict=True):
            target = REJECT_ALL if hypothesis == ACCEPT_ALL else hypothesis
            weights[target] = weights.get(target, 0.0) + weight
        rules = Mixture(tuple(weights), tuple(weights.values()), policy.group_use)
        return state, replace(choice, policy=rules)

    patch.setattr(Certified, "_cheapest", without_audits)


def certified_on_fitting_rows(patch):
    """A newly nominated hypothesis is shown the cohorts it was fitted on."""
    seen = []
    close = step.close
    join = BettingProcess.joined_by

    def remembering(state, cohort, rounds):
        seen.append(cohort)
        return close(state, cohort, rounds)

    def judged_by_the_past(process, member, share):
        joined = join(process, member, share)
        bound = BettingBound(process.bound.groups, process.bound.rates, 1, share)
        judge = BettingProcess(bound, (member,), bound.start())
        everywhere = np.ones(len(bound.groups), bool)
        for cohort in seen:
            record = EpochRecord(bound.plan(judge.state), ConstantOutcome(), everywhere)
            judge = judge.update(cohort, record)
        last = vars(judge.state)
        spliced = {
            name: np.concatenate([array[:-1], last[name]])
            for name, array in vars(joined.state).items()
        }
        return joined._with(joined.bound, type(joined.state)(**spliced))

    patch.setattr(step, "close", remembering)
    patch.setattr(BettingProcess, "joined_by", judged_by_the_past)


def nominees_bet_on_open_epochs(patch):
    """Who joins while an epoch is open bets on its people as the others do, in hindsight."""
    real = EpochPlan.grown_to

    def hindsight(plan, members, groups):
        grown = real(plan, members, groups)
        bets = grown.bets.copy()
        bets[plan.hypotheses :] = bets[0]
        return replace(grown, bets=bets)

    patch.setattr(EpochPlan, "grown_to", hindsight)


def cohorts_closed_again(patch):
    """Every closing takes all rounds from the first on."""

    def everything(state, rounds, now):
        spans = rounds.spans(0, windows.matured(rounds, now, state.guarantee.maturity))
        return [counting.count(rounds, first, stop) for _, first, stop in spans]

    patch.setattr(step, "matured", everything)


def radius_off(patch):
    """ln(1 + z) replaced by z: the squares, whose root is the radius, are forgotten."""
    real = betting_wealth.Entries.log_factors
    patch.setattr(betting_wealth.Entries, "log_factors", lambda *given: np.expm1(real(*given)))


def propensity_clipped(patch):
    """What is written down is the probability after clipping it for numerical comfort."""
    append = Rounds.append
    append_one = Rounds.append_one

    def clipped(rounds, *, acceptance, **columns):
        append(rounds, acceptance=np.maximum(acceptance, 0.2), **columns)

    def clipped_one(rounds, epoch, features, group, accept, acceptance, *more):
        append_one(rounds, epoch, features, group, accept, max(acceptance, 0.2), *more)

    patch.setattr(Rounds, "append", clipped)
    patch.setattr(Rounds, "append_one", clipped_one)


def every_accept_is_an_audit(patch):
    """The audit coin depends on x: whoever is accepted counts as audited."""
    block = EpochLearner._decide_block

    def greedy(learner, *arguments):
        decisions = block(learner, *arguments)
        learner.rounds["audit"][:] = learner.rounds["accept"]
        return replace(decisions, audit=decisions.accept)

    patch.setattr(EpochLearner, "_decide_block", greedy)


def a_single_accept_is_an_audit(patch):
    """The same, of people who come alone."""
    append_one = Rounds.append_one

    def greedy(rounds, epoch, features, group, accept, acceptance, audit, *more):
        append_one(rounds, epoch, features, group, accept, acceptance, accept, *more)

    patch.setattr(Rounds, "append_one", greedy)


def every_counted_accept_is_an_audit(patch):
    real = Counts.of_log.__func__

    def greedy(cls, epoch, first, log, audit_share, generator):
        return real(cls, epoch, first, log, 1.0, generator)

    patch.setattr(Counts, "of_log", classmethod(greedy))


def regression_on_its_own_epoch(patch):
    """The regression of a cohort is fitted to the cohort itself when it closes."""
    real = step.close

    def hindsight(state, cohort, rounds):
        record = state.records.get(cohort.epoch)
        if record is not None:
            cohort = counting.count(rounds, cohort.first, cohort.stop)
            fitted = replace(record, regression=fit_outcomes(cohort.log))
            state = replace(state, records={**state.records, cohort.epoch: fitted})
        return real(state, cohort, rounds)

    patch.setattr(step, "close", hindsight)


def clamp_left_out(patch):
    patch.setattr(betting_wealth, "THETA", 1e9)


def cell_out_with_one_end(patch):
    """A cell is out as soon as one of its ends is: what lies above the chord is forgotten."""

    def hasty(wealth, threshold, lower, upper):
        out = (wealth > threshold[..., np.newaxis, np.newaxis]).any(axis=(1, 2))
        gone = out[:, betting_wealth.LEFT_NODE] | out[:, betting_wealth.LEFT_NODE + 1]
        lower[gone], upper[gone] = np.inf, -np.inf

    patch.setattr(betting, "narrow_cells", hasty)


def pair_mixes_its_bets(patch):
    real = betting.largest_gaps

    def mixed(wealth_j, wealth_i, *cells):
        best = [
            np.broadcast_to(w.max(axis=1, keepdims=True), w.shape).copy()
            for w in (wealth_j, wealth_i)
        ]
        return real(*best, *cells)

    patch.setattr(betting, "largest_gaps", mixed)


MUTANTS = (
    Mutant("1 delta not split", delta_not_split, union_is_paid),
    Mutant(
        "1 delta not split, every nominee",
        every_nominee_gets_all_of_delta,
        checks.check_the_ledger_adds_up,
    ),
    Mutant("1 delta not booked", delta_not_booked, checks.check_the_ledger_adds_up),
    Mutant(
        "2 only arrived labels used",
        only_arrived_labels,
        checks.check_mean_wealth_with_missing_labels,
    ),
    Mutant("3 groups swapped", groups_swapped, checks.check_mean_wealth),
    Mutant("4 propensity floor dropped", floor_dropped, checks.check_everybody_may_be_accepted),
    Mutant(
        "5 certified on fitting rows",
        certified_on_fitting_rows,
        checks.check_nominees_are_judged_by_later_people,
    ),
    Mutant(
        "5 nominees bet on open epochs",
        nominees_bet_on_open_epochs,
        checks.check_nominees_ignore_epochs_opened_before,
    ),
    Mutant(
        "5 cohorts closed again",
        cohorts_closed_again,
        checks.check_people_are_counted_once,
    ),
    Mutant("6 radius off by sqrt 2", radius_off, wealth_is_exact_at_the_nodes),
    Mutant("7 propensity logged after clipping", propensity_clipped, checks.check_mean_wealth),
    Mutant("8 audit coin dependent on x", every_accept_is_an_audit, checks.check_audit_coin),
    Mutant(
        "8 audit coin dependent on x, one by one",
        a_single_accept_is_an_audit,
        checks.check_audit_coin,
    ),
    Mutant(
        "8 audit coin dependent on x, in counts",
        every_counted_accept_is_an_audit,
        checks.check_audit_coin,
    ),
    Mutant(
        "9 regression fitted on its own epoch",
        regression_on_its_own_epoch,
        checks.check_mean_wealth,
    ),
    Mutant("10 clamp left out", clamp_left_out, factors_are_bounded),
    Mutant("11 a cell is out with one of its ends", cell_out_with_one_end, covering_holds),
    Mutant(
        "11 a pair mixes its bets", pair_mixes_its_bets, betting_checks.check_a_pair_uses_one_bet
    ),
)


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


def test_all_eleven_are_here():
    assert {mutant.name.split()[0] for mutant in MUTANTS} == {
        str(number) for number in range(1, 12)
    }
