"""What may happen to a row, and to the groups, after the coin: exact checks of the bound, each with
the mistake that it must catch.
"""

from dataclasses import replace

import numpy as np
import pytest
from tests.bounds import betting_checks as checks
from tests.bounds import exact_wealth
from tests.bounds.betting_worlds import (
    FNR,
    FPR,
    SR,
    added,
    concluded,
    random_cohort,
    random_plan,
    random_world,
    single,
    small_bound,
)

from evenhand.bounds import BettingBound, BettingState, Cohort
from evenhand.errors import InvalidInput

RATES = [(SR,), (FPR, FNR)]
"""Of all applicants, and of the people with either label; a rate alone is one of several."""


def lost(world, *, accepted, p):
    """A cohort of nobody but one person of whom only the draw is known."""
    nobody = random_cohort(world, np.random.default_rng(0), rows=0)
    everywhere = np.ones(len(world.groups), bool)
    return replace(
        nobody,
        labelled=everywhere,
        lost_count=np.ones(1),
        lost_weight=np.array([1 / p if accepted else 1.0]),
    )


class TestErased:
    @pytest.mark.parametrize("rates", RATES)
    @pytest.mark.thorough
    def test_no_factor_that_the_person_may_have_had_is_smaller_than_what_is_paid(self, rates):
        """Every context, label and rate: ln factor >= -cost, for singles and pairs."""
        for seed in range(3):
            r = np.random.default_rng(seed)
            world = random_world(seed, groups=3, contexts_per_group=1 + seed % 2)
            bound = small_bound(world, rates)
            truth = world.truth(bound.rates)
            plan = random_plan(bound, truth, r)
            for p, accepted in (
                (0.01, True),
                (0.3, True),
                (1.0, True),
                (0.01, False),
                (0.7, False),
            ):
                cost = added(bound, bound.start(), lost(world, accepted=accepted, p=p), plan).lost
                for row, m, label in np.ndindex(len(world.share), 2, 2):
                    seen = checks.what_is_seen(2 * label - 1, accepted)
                    known = single(world, row, acceptance=p, regression=m, **seen)
                    for f in (0.0, 0.02, 0.2, 0.5, 0.8, 1.0):
                        factors = exact_wealth.exact_log_wealth(
                            bound, known, plan, np.full(truth.shape, f)
                        )
                        assert (factors >= -cost[:, :, None, None, :] - 1e-12).all()

    def test_a_cost_that_forgets_the_weight_would_be_caught(self):
        """Negative control: the price of a rejected person, charged for one accepted at p = .01, is
        too small.
        """
        world = random_world(3)
        bound = small_bound(world, (FPR,))
        truth = world.truth(bound.rates)
        plan = random_plan(bound, truth, np.random.default_rng(3))
        cost = added(bound, bound.start(), lost(world, accepted=False, p=0.01), plan).lost
        rows = range(len(world.share))
        cohorts = [single(world, row, acceptance=0.01, regression=0.5, negative=1) for row in rows]
        factors = [
            exact_wealth.exact_log_wealth(bound, cohort, plan, truth).min(axis=(2, 3))
            for cohort in cohorts
        ]
        assert (np.min(factors, axis=0) < -cost - 0.01).any()

    def test_each_costs_at_most_ln_5_and_widens(self):
        world = random_world(1)
        bound = small_bound(world, (FPR,))
        plan = bound.plan(bound.start())
        state = bound.update(bound.start(), random_cohort(world, np.random.default_rng(1)), plan)
        with_lost = bound.update(state, lost(world, accepted=True, p=0.02), plan)
        more = with_lost.lost - state.lost
        assert (more > 0).all()
        assert (more <= np.log(5) + 1e-12).all()
        assert (with_lost.lost[..., 0] >= with_lost.lost[..., -1]).all()

    def test_those_who_joined_later_do_not_pay(self):
        world = random_world(1)
        bound = small_bound(world, (FPR,))
        plan = bound.plan(bound.start())
        grown = replace(bound, hypotheses=3, delta_parts=(0.01, 0.01, 0.01), started_with=(2, 2, 2))
        state = bound.start().joined(BettingState.empty(1, 1, 2, 2))
        none = Cohort(
            np.zeros((3, 0), bool),
            np.zeros(0, int),
            acceptance=np.zeros(0),
            regression=np.zeros(0),
            rejected=np.zeros(0),
            positive=np.zeros(0),
            negative=np.zeros(0),
            labelled=[True, True],
            lost_count=[1.0],
            lost_weight=[5.0],
        )
        after = added(grown, state, none, plan.grown_to(3, 2))
        assert (after.lost[:2] > 0).all()
        assert (after.lost[2] == 0).all()


class TestNobodyCouldBeAccepted:
    def cohort(self, world, **changed):
        r = np.random.default_rng(0)
        people = r.integers(5, 50, len(world.share)).astype(float)
        p = np.where(np.arange(len(world.share)) % 2 == 0, 0.0, 0.5)
        settings = dict(
            acceptance=p,
            regression=0.5,
            rejected=np.where(p == 0, people, people // 2),
            positive=np.where(p == 0, 0, people // 2),
            negative=0.0,
        )
        return Cohort(world.accepts, world.group, **{**settings, **changed})

    def test_selection_rates_look_at_all_applicants(self):
        world = random_world(2)
        bound = small_bound(world, (SR,))
        cohort = self.cohort(world, labelled=[False, False])
        state = added(bound, bound.start(), cohort, bound.plan(bound.start()))
        total = np.array([cohort.rounds[world.group == j].sum() for j in (0, 1)])
        np.testing.assert_allclose(state.mass[0, 0], total)
        np.testing.assert_allclose(
            state.hits[0, 0],
            [cohort.rounds[(world.group == j) & world.accepts[0]].sum() for j in (0, 1)],
        )

    def test_rates_with_labels_look_at_nobody(self):
        world = random_world(2)
        bound = small_bound(world, (FPR, FNR))
        cohort = self.cohort(world, labelled=[False, False])
        state = added(bound, bound.start(), cohort, bound.plan(bound.start()))
        assert not state.wealth.any()
        assert not state.mass.any()

    def test_a_labelled_cohort_with_p_of_0_is_refused(self):
        with pytest.raises(InvalidInput, match="acceptance is 0"):
            self.cohort(random_world(2))


class TestGroupsThatJoin:
    def joined(self, seed, hypotheses=2, delta=0.9):
        world = random_world(seed, groups=3, hypotheses=hypotheses)
        start = BettingBound((0, 1), (FPR,), hypotheses, delta / 2, horizons=(30.0, 3000.0))
        return world, start, start.joined_by_group(2, delta / 2)

    def test_all_processes_together_cost_what_was_booked(self):
        _, start, bound = self.joined(0, delta=0.05)
        checks.check_union(bound, 0.05)
        later = bound.joined_by_group(3, 0.001)
        checks.check_union(later, 0.051)
        shares = tuple(float(x) for x in (0.01, 0.01))
        nominated = (
            replace(start, delta_parts=shares, delta=0.05).joined_by_group(2, 0.002).joined_by(0.02)
        )
        checks.check_union(nominated, 0.042)
        assert nominated.started_with == (2, 2, 3)

    @pytest.mark.thorough
    def test_a_point_at_which_no_process_has_crossed_is_in_every_interval(self):
        assert (
            sum(self.covering(seed, lambda state: state.with_group()) for seed in range(300)) > 100
        )

    def test_a_new_pair_knows_nothing_but_the_boxes(self):
        """Negative control: without the snapshot it bets with evidence from before its share was
        booked, and is narrower.
        """
        _, start, bound = self.joined(4)
        world = random_world(4)
        state = start.update(
            start.start(),
            world.cohort(400, np.ones(4), np.full(4, 0.5), np.random.default_rng(0)),
            start.plan(start.start()),
        )

        def widest(grown):
            return concluded(bound, grown).gap_upper

        joined = state.with_group()
        forgetful = replace(joined, wealth_before=0 * joined.wealth_before)
        np.testing.assert_allclose(widest(joined)[:, :, 1], 1.0 - joined.box[0][:, :, 0])
        assert (widest(forgetful)[:, :, 1] < 1.0 - joined.box[0][:, :, 0] - 1e-3).any()

    def covering(self, seed, join):
        """As `check_covering`, with the third group joining between two cohorts; its pairs' wealth
        counts from there.
        """
        r = np.random.default_rng(seed)
        world, start, bound = self.joined(seed)
        truth = r.uniform(0.02, 0.98, (2, 1, 3))
        wild = dict(rows=int(r.integers(1, 30)), most=int(r.choice([2, 5, 60])))
        first, second = (random_cohort(world, r, **wild) for _ in range(2))
        first = replace(
            first, group=np.where(first.group == 2, -1, first.group), labelled=np.ones(2, bool)
        )
        plan_1 = random_plan(start, truth[:, :, :2], r)
        state = added(start, start.start(), first, plan_1)
        plan_2 = random_plan(bound, truth, r)
        after = added(bound, join(state), replace(second, labelled=np.ones(3, bool)), plan_2)
        after = concluded(bound, after)
        early = np.zeros((2, 1, 3, 2, 2))
        early[:, :, :2] = exact_wealth.exact_log_wealth(start, first, plan_1, truth[:, :, :2])
        late = exact_wealth.exact_log_wealth(bound, second, plan_2, truth)
        single_wealth = early + late
        calm = (single_wealth < bound.group_thresholds[:, None, :, None, None]).all(
            axis=(1, 2, 3, 4)
        )
        for at, (j, i) in enumerate(bound.pairs):
            wealth = late if j >= bound.founders else single_wealth
            for a, b in ((j, i), (i, j)):
                pair = wealth[:, :, a, 0] + wealth[:, :, b, 1]
                calm &= (pair < bound.pair_thresholds[:, at, None, None]).all(axis=(1, 2))
        gap = np.stack([truth[:, :, j] - truth[:, :, i] for j, i in bound.pairs], axis=-1)
        lower, upper = after.box
        assert (lower <= truth + checks.TOLERANCE)[calm].all()
        assert (truth <= upper + checks.TOLERANCE)[calm].all()
        assert (after.gap_lower <= gap + checks.TOLERANCE)[calm].all()
        assert (gap <= after.gap_upper + checks.TOLERANCE)[calm].all()
        return int(calm.sum())

    def test_earlier_groups_keep_what_they_have(self):
        _, start, bound = self.joined(4)
        state = start.update(
            start.start(),
            random_cohort(random_world(4), np.random.default_rng(2), rows=30, most=60),
            start.plan(start.start()),
        )
        grown = state.with_group()
        np.testing.assert_array_equal(grown.gap_lower[:, :, 0], state.gap_lower[:, :, 0])
        assert (grown.gap_upper[:, :, 1:] == 1).all()
        assert (grown.gap_lower[:, :, 1:] == -1).all()
        np.testing.assert_array_equal(bound.pair_thresholds[:, 0], start.pair_thresholds[:, 0])

    def test_pairs_keep_their_places_when_a_fourth_group_comes(self):
        _, _, bound = self.joined(0)
        four = bound.joined_by_group(3, 0.01)
        state = bound.start()
        marked = replace(state, gap_lower=np.tile(np.array([-0.1, -0.2, -0.3]), (2, 1, 1)))
        assert four.pairs == ((1, 0), (2, 0), (3, 0), (2, 1), (3, 1), (3, 2))
        assert marked.with_group().gap_lower[0, 0].tolist() == [-0.1, -0.2, -1.0, -0.3, -1.0, -1.0]

    def test_shares_are_refused_where_they_make_no_sense(self):
        _, start, _ = self.joined(0)
        with pytest.raises(InvalidInput, match=r"delta of group 2.* is 0"):
            start.joined_by_group(2, 0.0)
