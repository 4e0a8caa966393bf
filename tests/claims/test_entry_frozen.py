"""The audit budget is spent and closings go on: a frozen policy and its certificate never change,
and no rate leaves its limit.

A frozen policy accepts some people with probability 0. Selection rates need no label, so everybody
counts; rates with labels look at no cohort of such a policy. 200 runs for each rate, 15 forced
closings of 3,000 people after the budget is spent, 0 violations: a violation probability of .023
would have shown with probability .99. Negative control: the policy is planned again at each closing
from cohorts without the people who could not be accepted; for rates with labels, with .2 instead of
1e-6 as the least probability in a forecast, for that hid it. Most runs violate.
"""

from dataclasses import fields, replace
from unittest.mock import patch

import numpy as np
import pytest
from joblib import Parallel, delayed
from tests.claims.entry import DELTA, FPR, ROUNDING, People, close_epoch, two_scores

from evenhand.algorithms.certified import hard_counts, intervals, step
from evenhand.algorithms.certified.step import Certified
from evenhand.fairness import FalseNegativeRate, SelectionRate
from evenhand.learners import CertifiedLearner

LIMIT, BUDGET, CLOSINGS, PEOPLE = 0.1, 300.0, 15, 3000
LIVES, CONTROLS = 200, 20
RATES = {"FPR": FPR, "FNR": FalseNegativeRate(), "selection rate": SelectionRate()}


class Thawed(Certified):
    """Plans again at each closing, although its budget is spent, and does not watch for drift,
    which would suspend it.
    """

    def _watch_drift(self, state, *arguments):
        return state

    def _freeze(self, *arguments):
        state, epoch = super()._freeze(*arguments)
        return replace(state, frozen=None), epoch


def life(rate, seed, *, thawed=False):
    """(worst true gap, closings that changed policy or certificate, learned weight when the budget
    was spent).
    """
    world = two_scores()
    generator = np.random.default_rng([seed, 1])
    learner = CertifiedLearner(
        world.hypotheses, RATES[rate], LIMIT, DELTA, audit_budget=BUDGET, seed=seed
    )
    if thawed:
        settings = {
            part.name: getattr(learner.algorithm, part.name)
            for part in fields(Certified)
            if part.init
        }
        learner.algorithm = Thawed(**settings)
    worst, changed, after, first, learned = 0.0, 0, 0, None, 0.0
    while after < CLOSINGS:
        epoch = learner.epoch
        worst = max(worst, float(np.abs(world.gaps(epoch.policy, learner.rates)).max()))
        if epoch.phase == "frozen":
            after += 1
            now = (epoch.policy.to_json(), learner.certificate.to_json())
            first, learned = (now, learner.learned_weight) if first is None else (first, learned)
            changed += now != first
        people = People.drawn(world, epoch.policy, PEOPLE if after else epoch.rounds, generator)
        if thawed:
            people = people.part(people.acceptance > 0)
            if not len(people.accept):
                break  # an alarm has suspended the control: nobody is accepted any more
        people.append_to(learner, world)
        close_epoch(learner)
    return worst, changed, learned


def wrong_life(rate, seed):
    def everywhere(policy, groups):
        return np.ones(len(groups), bool)

    with (
        patch.object(step, "labelled_groups", everywhere),
        patch.object(hard_counts, "labelled_groups", everywhere),
        patch.object(intervals, "LEAST_FORESEEN", 0.2),
    ):
        return life(rate, seed, thawed=True)


@pytest.mark.parametrize("rate", RATES)
def test_frozen_is_frozen(rate):
    worst, changed, _ = life(rate, 0)
    assert worst <= LIMIT
    assert changed == 0


@pytest.mark.claims
@pytest.mark.parametrize("rate", RATES)
def test_full_frozen(claims, workers, rate):
    found = np.array(Parallel(n_jobs=workers)(delayed(life)(rate, seed) for seed in range(LIVES)))
    wrong = np.array(
        Parallel(n_jobs=workers)(delayed(wrong_life)(rate, seed) for seed in range(CONTROLS))
    )
    violated, control = (
        int((found[:, 0] > LIMIT + ROUNDING).sum()),
        int((wrong[:, 0] > LIMIT + ROUNDING).sum()),
    )
    claims.add(
        f"audit budget spent, {rate}: runs with any violation, {LIVES} runs, "
        f"{CLOSINGS} closings afterwards",
        "0; no closing changes policy or certificate",
        f"{violated} (worst true gap {found[:, 0].max():.4f}; {int(found[:, 1].sum())} changes; "
        f"learned weight {found[:, 2].mean():.2f}; "
        "planned again without those who could not be accepted: "
        f"{control} of {CONTROLS}, up to {wrong[:, 0].max():.3f})",
        violated == 0 and not found[:, 1].any(),
    )
    assert violated == 0
    assert not found[:, 1].any()
    # The control must fail: its policy or certificate moves in nearly every run (it deployed a
    # constant where it does not), and where a label may be missing from one side of the rate alone,
    # its gap passes the limit in most runs.
    assert (wrong[:, 1] > 0).mean() >= 0.9
    assert rate == "FPR" or control >= CONTROLS // 2
