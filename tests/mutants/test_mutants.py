"""Twelve ways to break the promise, each applied to the real code, and the check that must then
fail (it passes on the code as it is).

Three kinds of checks, all exact: the proof's steps at the bound (`bounds/betting_checks`),
the mean wealth through the learner as it is played, and what is booked and looked at when
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

from evenhand.bounds import BettingBound, Cohort, betting, betting_wealth
from evenhand.errors import EvenhandError
from evenhand.estimation.outcomes import ConstantOutcome, fit_outcomes
from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL
from evenhand.learners.certified import intervals
from evenhand.learners.certified import learner as certified
from evenhand.learners.certified import run as certification
from evenhand.learners.certified.evidence import group_codes
from evenhand.learners.certified.intervals import AuditProcess, BettingProcess
from evenhand.policies import Mixture


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
    patch.setattr(certification, "inverse_square_share", lambda total, number: total)


def only_arrived_labels(patch):
    """Accepted people without a label are left out, as if they had never come."""

    def arrived(*arguments, **columns):
        return Cohort(*arguments, **{**columns, "unresolved": 0.0})

    patch.setattr(intervals, "Cohort", arrived)


def groups_swapped(patch):
    patch.setattr(intervals, "group_codes", lambda group, groups: group_codes(group, groups[::-1]))


def floor_dropped(patch):
    """The audit coin's weight goes to reject-all: some people are never accepted."""
    real = certified.CertifiedLearner._chosen

    def without_audits(learner, *arguments):
        weights = dict.fromkeys((ACCEPT_ALL, REJECT_ALL), 0.0)
        chosen = real(learner, *arguments)
        policy = chosen.policy
        for hypothesis, weight in zip(policy.hypotheses, policy.weights, strict=True):
            target = REJECT_ALL if hypothesis == ACCEPT_ALL else hypothesis
            weights[target] = weights.get(target, 0.0) + weight
        kept = {h: w for h, w in weights.items() if w > 0}
        return replace(chosen, policy=Mixture(tuple(kept), tuple(kept.values()), policy.group_use))

    patch.setattr(certified.CertifiedLearner, "_chosen", without_audits)


def certified_on_fitting_rows(patch):
    """A newly nominated hypothesis is shown the cohorts it was fitted on."""
    seen, look, join = [], certification.CertificationRun.look, BettingProcess.join

    def remembering(life, cohort, policy):
        seen.append(cohort)
        look(life, cohort, policy)

    def judged_by_the_past(process, member, share):
        join(process, member, share)
        alone = BettingBound(process.bound.groups, process.bound.rates, 1, share)
        judge = BettingProcess(alone, (member,), alone.start())
        everywhere = np.ones(len(process.bound.groups), bool)
        for cohort in seen:
            judge.update(
                cohort, intervals.Prepared(alone.plan(judge.state), ConstantOutcome(), everywhere)
            )
        arrays, last = process.state.to_arrays(), judge.state.to_arrays()
        process.state = type(process.state)(
            **{k: np.concatenate([v[:-1], last[k]]) for k, v in arrays.items()}
        )

    patch.setattr(certification.CertificationRun, "look", remembering)
    patch.setattr(BettingProcess, "join", judged_by_the_past)


def radius_off(patch):
    """ln(1 + z) replaced by z: the squares, whose root is the radius, are forgotten."""
    real = betting_wealth.Entries.log_factors
    patch.setattr(betting_wealth.Entries, "log_factors", lambda *told: np.expm1(real(*told)))


def propensity_clipped(patch):
    """What is logged is the probability after clipping it for numerical comfort."""
    real = certified.CertifiedLearner._decide_block

    def clipped(learner, *arguments):
        block = real(learner, *arguments)
        block.acceptance = np.maximum(block.acceptance, 0.2)
        return block

    patch.setattr(certified.CertifiedLearner, "_decide_block", clipped)


def every_accept_is_an_audit(patch):
    """The audit coin depends on x: whoever is accepted counts as audited."""
    real = certified.CertifiedLearner._decide_block

    def greedy(learner, *arguments):
        block = real(learner, *arguments)
        block.audit = block.accept.copy()
        return block

    patch.setattr(certified.CertifiedLearner, "_decide_block", greedy)


def every_counted_accept_is_an_audit(patch):
    real = certified.from_counts
    patch.setattr(
        certified, "from_counts", lambda epoch, log, share, *more: real(epoch, log, 1.0, *more)
    )


def regression_on_its_own_epoch(patch):
    real = certification.CertificationRun.look

    def hindsight(life, cohort, policy):
        if cohort.epoch in life.prepared:
            life.prepared[cohort.epoch] = replace(
                life.prepared[cohort.epoch], regression=fit_outcomes(cohort.log)
            )
        real(life, cohort, policy)

    patch.setattr(certification.CertificationRun, "look", hindsight)


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


def audits_pooled(patch):
    """All audits up to now, whenever a cohort closes: the round is chosen by whatever ended the
    epochs before.
    """

    def pooled(process, cohort, outlook):
        codes = group_codes(cohort.group, process.groups)
        kinds = np.stack(
            [cohort.audited_positive, cohort.audited_negative, cohort.audited_unresolved]
        )
        accepts = process.table(cohort.features, None).astype(np.float64)
        process._add(accepts, codes, np.where(codes >= 0, kinds, 0.0).astype(np.int64))
        process._look()

    patch.setattr(AuditProcess, "update", pooled)


MUTANTS = (
    Mutant("1 delta not split", delta_not_split, union_is_paid),
    Mutant(
        "1 delta not split, every nominee",
        every_nominee_gets_all_of_delta,
        checks.check_the_ledger_adds_up,
    ),
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
    Mutant("6 radius off by sqrt 2", radius_off, wealth_is_exact_at_the_nodes),
    Mutant("7 propensity logged after clipping", propensity_clipped, checks.check_mean_wealth),
    Mutant("8 audit coin dependent on x", every_accept_is_an_audit, checks.check_audit_coin),
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
    Mutant("12 audits pooled up to a chosen round", audits_pooled, checks.check_looks_are_preset),
)


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


def test_all_twelve_are_here():
    assert {mutant.name.split()[0] for mutant in MUTANTS} == {
        str(number) for number in range(1, 13)
    }
