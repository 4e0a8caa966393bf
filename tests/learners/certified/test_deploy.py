"""What is deployed: audits, budgets and prices move decisions, and nothing else does."""

import numpy as np
import pytest
from scipy.stats import ttest_ind
from tests.learners.certified.test_learner import learner, played
from tests.learners.play import WORLD

from evenhand.environments import random_population
from evenhand.errors import InvalidInput
from evenhand.hypotheses.constants import ACCEPT_ALL
from evenhand.randomness import stream
from evenhand.simulate import simulate
from evenhand.words import Prices


class TestWhatItDeploys:
    def test_a_limit_that_is_never_certified_leaves_constants_at_work(self):
        run = simulate(learner(limit=1e-6), WORLD, 20_000, 0)
        assert run.worst_gap <= 1e-6
        assert run.learner.learned_weight < 1e-3
        assert run.learner.certificate.status == "certified"

    def test_looking_changes_nothing(self):
        first, second = played(learner(), 1000), played(learner(), 1000)
        for _ in range(3):
            first.acceptance(WORLD.features), first.certificate, first.report, first.policy
        one, other = (x.decide(WORLD.features, WORLD.group) for x in (first, second))
        assert (one.accept == other.accept).all()
        assert (one.propensity == other.propensity).all()

    def test_ten_thousand_group_flips_change_no_bit(self):
        told = simulate(
            learner(random_population(3).hypotheses, limit=0.1), random_population(3), 20_000, 0
        ).learner
        contexts = stream(1, "flips").integers(0, 100, 10_000).astype(float)[:, None]
        group = np.where(stream(2, "flips").random(10_000) < 0.5, -1, 1)
        flipped, hidden = told.acceptance(contexts, -group), told.acceptance(contexts)
        assert (told.acceptance(contexts, group) == flipped).all()
        assert (flipped == hidden).all()
        assert np.ptp(flipped) > 0

    def test_two_lives_that_differ_in_groups_told_for_one_decision_decide_alike(self):
        """Within an epoch the coin and the probability do not see the group."""
        first, second = played(learner(), 900), played(learner(), 900)
        one = first.decide(WORLD.features, WORLD.group)
        other = second.decide(WORLD.features, WORLD.group[::-1])
        assert (one.accept == other.accept).all()
        assert (one.propensity == other.propensity).all()

    def test_a_fixed_audit_rate_is_kept_and_shown(self):
        told = played(learner(audit_rate=0.1), 4000)
        weights = dict(zip(told.policy.hypotheses, told.policy.weights, strict=True))
        assert weights[ACCEPT_ALL] == pytest.approx(0.1, abs=0.02)
        assert told.learned_weight > 0.85
        decisions = told.decide(np.repeat(WORLD.features, 40, axis=0), np.repeat(WORLD.group, 40))
        audits = np.array([decision.audit for decision in decisions])
        assert 0.02 < audits.mean() < 0.25
        assert not (audits & ~decisions.accept).any()

    def test_the_audit_budget_freezes_the_policy_when_it_is_spent(self):
        told = played(learner(audit_budget=30, audit_rate=0.2), 5000)
        assert told.epoch.phase == "frozen"
        assert any("budget is spent" in note for note in told.report.notes)
        assert told.certificate.status == "certified"
        assert not any(
            decision.audit
            for decision in told.decide(WORLD.features, WORLD.group)
            if not decision.accept
        )

    def test_a_budget_that_is_spent_from_the_start(self):
        told = played(learner(audit_budget=0), 1000)
        assert told.epoch.phase == "frozen"
        assert told.certificate.status == "certified"

    def test_the_bad_accepts_of_audits_stay_within_the_budget(self):
        """Up to what one epoch's audits, planned with the expected share of bad outcomes, may
        exceed by chance.
        """
        world = random_population(0)
        for budget in (300, 600):
            run = simulate(
                learner(world.hypotheses, limit=0.02, audit_budget=budget), world, 20_000, 0
            )
            assert 0.5 * budget <= run.learner.state.run.evidence.audited_negatives <= 1.1 * budget
        free = simulate(learner(world.hypotheses, limit=0.02), world, 20_000, 0)
        assert free.learner.state.run.evidence.audited_negatives > 2_000

    def test_prices_move_decisions(self):
        shares = [
            simulate(learner(prices=prices, limit=0.3), WORLD, 20_000, 0).accepted[-1]
            for prices in (Prices(5.0, 1.0), Prices(), Prices(1.0, 5.0))
        ]
        assert shares[0] < shares[1] < shares[2]

    def test_prices_per_person(self):
        """Whoever would cost ten times as much when bad is accepted less often; prices never enter
        the certificate.
        """

        def dear(people):
            return Prices(np.where(people.features[:, 0] % 3 == 1, 9.0, 1.0), np.ones(len(people)))

        plain = played(
            learner(limit=0.5, prices=Prices(5.0, 5.0)),
            8000,
            prices=lambda p: Prices(np.ones(len(p)), np.ones(len(p))),
        )
        told = played(learner(limit=0.5, prices=Prices(5.0, 5.0)), 8000, prices=dear)
        at = WORLD.features[[1]]
        assert told.acceptance(at)[0] < plain.acceptance(at)[0]
        with pytest.raises(InvalidInput, match="prices"):
            told.decide(WORLD.features, WORLD.group)

    def test_counts_and_events_have_the_same_law(self):
        """24 runs each of 2,000 rounds: equal means; false alarm 1e-4 each, catches a shift of 1.6
        standard deviations.
        """
        runs = {
            engine: [
                simulate(learner(limit=0.15), WORLD, 2000, s, engine=engine) for s in range(24)
            ]
            for engine in ("counts", "events")
        }
        for figure in (
            lambda run: run.regret[-1],
            lambda run: run.learner.learned_weight,
            lambda run: run.accepted.sum(),
        ):
            first, second = (
                [float(figure(run)) for run in runs[engine]] for engine in ("counts", "events")
            )
            assert ttest_ind(first, second, equal_var=False).pvalue > 1e-4
