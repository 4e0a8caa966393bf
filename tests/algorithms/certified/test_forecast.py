"""The forecast of widths agrees with the bound that it is about; forecasts that forget a part of
the formula do not.
"""

from dataclasses import replace
from itertools import pairwise
from math import inf

import numpy as np
import pytest

from evenhand import (
    CertifiedLearner,
    FalseNegativeRate,
    FalsePositiveRate,
    LabelledSample,
    Linear,
    Prices,
    SelectionRate,
    load,
    simulate,
)
from evenhand.algorithms.certified.forecast import (
    DECAYS,
    HALF,
    Prospect,
    RateForecast,
    Trajectory,
    sentences,
)
from evenhand.bounds import BettingBound, Cohort, Forecast
from evenhand.environments import LowerBound, Replay, random_population, small_group
from evenhand.hypotheses import ACCEPT_ALL

RATES = {"FPR": FalsePositiveRate(), "FNR": FalseNegativeRate(), "selection rate": SelectionRate()}
WORLD = random_population(3, contexts=15, hypotheses=30)
TABLE = np.array([row for row in WORLD.accepts if row.any() and not row.all()])
CODES = (WORLD.group == 1).astype(np.int64)


def floor(t):
    return 0.3 / np.sqrt(t)


def prospect(
    rate="FPR", world=WORLD, half=None, prices=(1.0, 1.0), limit=0.05, kind=Prospect, **more
):
    """Everything is known of the population; the intervals have the given half-width around the
    true gaps.
    """
    table = np.array([row for row in world.accepts if row.any() and not row.all()])
    rates = (RATES[rate],) if isinstance(rate, str) else rate
    negative, gaps = 1 - world.positive_rate, len(rates)
    accepts = np.concatenate([np.repeat([[1.0], [0.0]], len(world), axis=1), table])
    cost = accepts @ (world.probability * (negative * prices[0] - world.positive_rate * prices[1]))
    bound = BettingBound((-1, 1), rates, len(table), 0.05)
    ends = np.concatenate([np.zeros((gaps, 2)), np.ones((gaps, len(table)))], axis=1)
    made = kind(
        weight=world.probability,
        group=(world.group == 1).astype(np.int64),
        negative=negative,
        accepts=accepts,
        cost=cost,
        sure_cost=cost,
        rates=rates,
        groups=2,
        limit=limit,
        lower=-ends,
        upper=ends,
        threshold=np.pad(np.tile(bound.pair_thresholds.T, (gaps, 1)), ((0, 0), (2, 0))),
        floor=floor,
        **more,
    )
    if half is None:
        return made
    return replace(
        made,
        lower=np.clip(made.gap - half * ends, -1, 1),
        upper=np.clip(made.gap + half * ends, -1, 1),
    )


def widths_of_the_bound(rate, acceptance, rounds):
    """Half-widths of the bound itself, fed with the expected counts of epochs that grow as those of
    a learner.
    """
    bound = BettingBound((-1, 1), (RATES[rate],), len(TABLE), 0.05)
    state, seen, negative = bound.start(), 100, 1 - WORLD.positive_rate
    p = np.full(len(WORLD), acceptance)
    while seen < rounds:
        length = min(seen // 2, rounds - seen)
        people = length * WORLD.probability
        told = Forecast(TABLE, CODES, weight=WORLD.probability, acceptance=p, regression=negative)
        cohort = Cohort(
            TABLE,
            CODES,
            acceptance=p,
            regression=negative,
            rejected=people * (1 - p),
            positive=people * p * WORLD.positive_rate,
            negative=people * p * negative,
        )
        state = bound.update(state, cohort, bound.plan(state, told))
        seen += length
    found = bound.intervals(state)
    return 0.5 * (found.upper - found.lower)[:, 0, 0], float(rounds - 100)


def foretold_widths(told, acceptance, rounds):
    V, K = told.moments(np.full(len(WORLD), acceptance))
    return told.widths(rounds / V, rounds * K / V**3)[0, 2:]


class IgnoresTheRule(Prospect):
    def moments(self, acceptance):
        fields = {name: getattr(self, name) for name in Prospect.__dataclass_fields__}
        blind = {**fields, "accepts": np.full_like(self.accepts, 0.5)}
        return Prospect(**blind).moments(acceptance)


class IgnoresTheRegression(Prospect):
    """Plain importance weights: phi = 1[accepted]/p N."""

    def moments(self, acceptance):
        p = acceptance.mean()
        V, K = super().moments(np.ones_like(acceptance))  # phi = N
        return V / p, K / p**2


class IgnoresTheCoin(Prospect):
    def moments(self, acceptance):
        return super().moments(np.ones_like(acceptance))


class IgnoresTheTail(Prospect):
    def moments(self, acceptance):
        V, K = super().moments(acceptance)
        return V, np.zeros_like(K)


# widths


@pytest.mark.thorough
@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("acceptance", [1.0, 0.2, 0.05])
@pytest.mark.parametrize("rounds", [4_000, 40_000])
def test_widths_are_those_of_the_bound(rate, acceptance, rounds):
    real, seen = widths_of_the_bound(rate, acceptance, rounds)
    ratio = foretold_widths(prospect(rate), acceptance, seen) / real
    assert 0.8 < np.median(ratio) < 1.25
    assert np.quantile(np.abs(np.log(ratio)), 0.9) < np.log(1.5)


@pytest.mark.parametrize(
    ("mutant", "rate", "acceptance", "rounds"),
    [
        (IgnoresTheRule, "FPR", 1.0, 40_000),
        (IgnoresTheRegression, "FNR", 0.05, 40_000),
        (IgnoresTheCoin, "FPR", 0.05, 40_000),
        (IgnoresTheTail, "FPR", 0.05, 4_000),
    ],
)
def test_a_forecast_that_forgets_a_part_is_found_out(mutant, rate, acceptance, rounds):
    """Negative controls of the test above: each is farther off than the whole formula."""
    real, seen = widths_of_the_bound(rate, acceptance, rounds)
    error, more = (
        np.median(
            np.abs(np.log(foretold_widths(prospect(rate, kind=kind), acceptance, seen) / real))
        )
        for kind in (Prospect, mutant)
    )
    assert more > np.log(1.15)
    assert more > 1.5 * error


def test_the_present_width_is_where_a_forecast_starts():
    told = prospect(half=0.2)
    information, skewness = told.present
    assert told.widths(information, skewness)[:, 2:] == pytest.approx(
        np.full((1, len(TABLE)), 0.2), rel=1e-6
    )
    assert (told.widths(information, skewness)[:, :2] == 0).all()  # constants need no evidence


def test_a_rule_that_was_nominated_late_starts_from_nothing():
    known, fresh = prospect(half=0.1), prospect()
    first = known.trajectory(0.0, 5_000, 20_000)
    assert first.weight[0] > 0.4
    late = fresh.trajectory(0.0, 5_000, 20_000)
    assert late.weight[0] == pytest.approx(0.05, abs=0.01)  # the limit over a half-width of 1
    assert late.reaches(HALF * fresh.full) > first.reaches(HALF * known.full)
    assert (fresh.present[0][:, 2:] == 0).all()


def test_information_adds():
    """One epoch of n rounds and two of n/2 lead to the same width."""
    told = prospect()
    V, K = told.moments(np.full(len(WORLD), 0.3))
    once = told.widths(8_000 / V, 8_000 * K / V**3)
    twice = told.widths(4_000 / V + 4_000 / V, 2 * 4_000 * K / V**3)
    assert once == pytest.approx(twice)
    assert (once[:, 2:] < told.widths(4_000 / V, 4_000 * K / V**3)[:, 2:]).all()


def test_it_learns_how_much_of_its_forecast_comes_true():
    """Epochs that told a third of what they should have told: the next ones are expected to do the
    same.
    """
    told = prospect(half=0.2)
    V = told.moments(np.ones(len(WORLD)))[0]
    rounds = float(np.median((told.present[0] * V)[:, 2:]))
    saw = np.ones(len(told.cost), dtype=bool)
    as_foretold = replace(told, played=((rounds, np.ones(len(WORLD)), saw),))
    slower = replace(told, played=((3 * rounds, np.ones(len(WORLD)), saw),))
    assert np.median(as_foretold.efficiency[:, 2:]) == pytest.approx(1.0, abs=0.01)
    assert np.median(slower.efficiency[:, 2:]) == pytest.approx(1 / 3, rel=0.01)
    ends = [
        one.trajectory(0.0, 1_000, 50_000).reaches(HALF * one.full) for one in (as_foretold, slower)
    ]
    assert ends[0] < ends[1]


def test_narrowing_to_the_members_that_matter_changes_little():
    whole = prospect(half=0.3)
    few = whole.narrowed()
    assert len(few.cost) < len(whole.cost)
    full, short = (one.trajectory(0.0, 1_000, 100_000) for one in (whole, few))
    assert short.cost_until(100_000) == pytest.approx(full.cost_until(100_000), rel=0.05)
    assert 1 / 1.51 < short.reaches(HALF * few.full) / full.reaches(HALF * whole.full) < 1.51
    assert few.full == pytest.approx(whole.full)


# audits


def test_audits_are_for_what_will_pay():
    """Where rejecting is far cheaper, labels cost something: some are bought early in a long life,
    none in a life without a future.
    """
    dear = prospect(prices=(3.0, 1.0))
    assert dear.cost[0] > dear.cost[1]
    bought = dear.best(500, 300_000)
    assert bought.audit_part > 0
    assert bought.cost_until(300_000) < dear.trajectory(0.0, 500, 300_000).cost_until(300_000)
    assert dear.best(500, 700).audit_part == 0.0


def test_courses_that_are_compared_together_are_those_that_are_foreseen_alone():
    dear = prospect(prices=(3.0, 1.0))
    best = dear.best(500, 300_000)
    alone = [dear.trajectory(best.audit_part, 500, 300_000, decay) for decay in DECAYS]
    assert any(
        best.weight == pytest.approx(one.weight) and best.cost == pytest.approx(one.cost)
        for one in alone
    )


def test_where_accepting_is_cheaper_there_is_nothing_to_choose():
    cheap = prospect(prices=(1.0, 3.0))
    assert cheap.cost[0] < cheap.cost[1]
    assert cheap.best(500, 300_000).audit_part == 0.0


def test_audits_are_not_made_for_a_gain_that_may_be_chance():
    told = prospect(prices=(3.0, 1.0))
    none = np.r_[told.cost[:2], np.full(len(told.cost) - 2, told.cost[:2].min())]
    assert replace(told, sure_cost=none).best(500, 300_000).audit_part == 0.0


def test_a_course_chooses_anew_in_every_epoch():
    dear = prospect(prices=(3.0, 1.0)).narrowed()
    course = dear.course(500, 100_000)
    assert course.rounds[-1] == 100_000
    assert (np.diff(course.rounds) > 0).all()
    assert course.audit_part == dear.best(500, 100_000).audit_part
    assert course.cost_until(100_000) <= dear.trajectory(0.0, 500, 100_000).cost_until(100_000)


# sentences


def test_a_trajectory_shows_when_a_weight_is_reached_for_good():
    columns = (np.array(column) for column in ([150.0, 225.0, 337.0], [0.1, 0.6, 0.7], [0.2] * 3))
    told = Trajectory(0.0, 100.0, *columns, np.zeros((1, 2)), np.zeros(2))
    assert told.reaches(0.5) == 150.0
    assert told.reaches(0.05) == 100.0
    assert told.reaches(0.9) == inf
    assert told.cost_until(225.0) == pytest.approx(25.0)


@pytest.mark.parametrize("rate", RATES)
def test_the_people_it_asks_for_are_those_it_takes(rate):
    """If everybody is accepted, half of the weight comes when as many people as needed have been
    seen, up to the end of an epoch.
    """
    told = prospect(rate)
    needed, t = told.needed(0), 100.0
    information = skewness = np.zeros_like(told.gap)
    V, K = told.moments(np.ones(len(WORLD)))
    while told.allowed(told.widths(information, skewness))[2:].sum() < HALF * told.full:
        information, skewness, t = information + t / 2 / V, skewness + t / 2 * K / V**3, 1.5 * t
    assert needed <= t - 100 <= 1.6 * needed + 100


def test_sentences():
    lacks = RateForecast("false negative rate", 0.05, 51_634.0, 3_071.0, None, 1_000.0, 100_000.0)
    has = RateForecast(
        "selection rate", 0.05, 2_000.0, 99_000.0, None, 1_000.0, 100_000.0, labels=False
    )
    said = (
        "False negative rate at 0.05 needs about 52,000 labelled people here; you will see 3,100 "
        "by round 100,000."
    )
    assert sentences([lacks, has]) == (said,)
    assert not lacks.in_time
    assert has.in_time
    assert sentences([has]) == (
        "Selection rate at 0.05 needs about 2,000 people here; you will see 99,000 by round "
        "100,000.",
    )
    soon = replace(lacks, half=12_921.0)
    assert soon.in_time
    assert sentences([soon]) == ("Half of the weight is learned after about 13,000 rounds.",)
    assert sentences([replace(lacks, half=1_000.0)]) == ("Half of the weight is learned by now.",)
    assert (
        replace(lacks, needed=inf).describe()
        == "False negative rate at 0.05: no number of labelled people would do here."
    )
    assert sentences([]) == ()


def test_nothing_is_said_where_no_rule_is_cheaper_than_a_constant():
    told = prospect(prices=(1.0, 1e6))
    assert told.full == 0.0
    assert told.forecasts(told.trajectory(0.0, 500, 5_000), 5_000) == ()


def test_each_rate_is_told_apart():
    both = prospect((FalsePositiveRate(), SelectionRate()))
    told = both.forecasts(both.course(100, 1_000), 1_000)
    assert [one.rate for one in told] == ["false positive rate", "selection rate"]
    assert [one.labels for one in told] == [True, False]
    assert told[1].seen == pytest.approx(900, rel=0.02)  # every round tells whom a rule accepts
    assert told[0].seen < told[1].seen


# in the learner


def life(limit, rounds, horizon, world, rate="FNR", **more):
    learner = CertifiedLearner(world.hypotheses, RATES[rate], limit, 0.05, horizon=horizon, **more)
    return simulate(learner, world, rounds, 0, limit)


def hopeless_life():
    """False accepts are dear, one group is small, and the limit far too small for so few people."""
    rng = np.random.default_rng(1)
    quality, group = rng.normal(size=2_000), rng.choice(["a", "b"], 2_000, p=[0.8, 0.2])
    features = np.c_[quality + 0.5 * rng.normal(size=2_000), rng.normal(size=(2_000, 2))]
    world = Replay(
        LabelledSample(features, group, np.where(quality > 0.2, 1, -1)), hypotheses=Linear()
    )
    return life(0.005, 4_000, 20_000, world, prices=Prices(2.0, 1.0))


@pytest.fixture(scope="module")
def hopeless():
    return hopeless_life()


def test_audits_stop_where_the_limit_cannot_be_certified_in_time(hopeless):
    """Only the floor of the coin remains."""
    last = hopeless.learner.epoch
    assert last.policy.weights[last.policy.hypotheses.index(ACCEPT_ALL)] == pytest.approx(
        last.exploration_floor
    )


def test_a_learner_that_always_hopes_audits_more(hopeless, monkeypatch):
    """Negative control: with every trajectory in time, what the bandit explores stays."""
    monkeypatch.setattr(Trajectory, "reaches", lambda *_: 0.0)
    hoping = hopeless_life()
    audits = [
        sum(
            length * policy.weights[policy.hypotheses.index(ACCEPT_ALL)]
            for length, policy in zip(run.lengths, run.policies, strict=True)
        )
        for run in (hopeless, hoping)
    ]
    assert audits[0] < 0.9 * audits[1]


def test_the_report_says_what_is_lacking(hopeless):
    (said,) = hopeless.learner.report.forecast
    assert said.startswith("False negative rate at 0.005 needs about ")
    assert said.endswith(" by round 20,000.")
    (told,) = hopeless.learner.forecast
    assert told.half is None
    assert told.seen < told.needed
    assert told.horizon == 20_000


def test_enumerated_classes_report_what_is_lacking_too():
    (said,) = life(0.005, 4_000, 20_000, small_group(0.2)).learner.report.forecast
    assert said.startswith("False negative rate at 0.005 needs about ")


def test_the_report_says_when_half_of_the_weight_comes():
    run = life(0.1, 150, 20_000, LowerBound(1, 1 / 16), rate="FPR")
    (said,) = run.learner.report.forecast
    assert said.startswith("Half of the weight is learned after about ")
    later = life(0.1, 15_000, 20_000, LowerBound(1, 1 / 16), rate="FPR")
    assert later.learner.report.forecast == ("Half of the weight is learned by now.",)


def test_before_the_start_nothing_is_said():
    learner = CertifiedLearner(WORLD.hypotheses, RATES["FPR"], 0.05, 0.05)
    assert learner.forecast == ()
    assert learner.report.forecast == ()


def test_fixed_audits_have_a_forecast_too():
    run = life(0.05, 3_000, 10_000, WORLD, rate="FPR", audit_rate=0.2)
    assert len(run.learner.report.forecast) == 1


def test_groups_that_decide_have_a_forecast_too():
    run = life(0.05, 1_000, 10_000, WORLD, rate="FPR", group_use="decide")
    assert len(run.learner.report.forecast) == 1


def test_to_look_at_the_forecast_changes_nothing():
    looked, other = (
        CertifiedLearner(WORLD.hypotheses, RATES["FNR"], 0.05, 0.05, horizon=5_000, seed=1)
        for _ in range(2)
    )
    for _ in range(8):
        for learner in (looked, other):
            sample = WORLD.draw(300, np.random.default_rng(learner.round))
            decided = learner.decide(sample.features, sample.group)
            accepted = np.flatnonzero(decided.accept)
            learner.observe(decided.first_round + accepted, sample.label[accepted])
        assert isinstance(looked.report.forecast, tuple)
    assert looked.policy.to_json() == other.policy.to_json()


def test_a_loaded_learner_says_the_same(tmp_path, hopeless):
    hopeless.learner.save(tmp_path / "learner")
    again = load(tmp_path / "learner", hypotheses=hopeless.learner.hypotheses)
    assert again.report.forecast == hopeless.learner.report.forecast


def test_only_people_of_closed_cohorts_enter():
    """A forecast that is made in the middle of an epoch is the one that was made when it began."""
    learner = CertifiedLearner(WORLD.hypotheses, RATES["FPR"], 0.05, 0.05, horizon=5_000, seed=1)
    sample = WORLD.draw(700, np.random.default_rng(0))
    told = []
    for first in range(0, 700, 50):
        part = slice(first, first + 50)
        decided = learner.decide(sample.features[part], sample.group[part])
        accepted = np.flatnonzero(decided.accept)
        learner.observe(decided.first_round + accepted, sample.label[part][accepted])
        told.append((learner.epoch.number, learner.forecast))
    for (number, one), (other, two) in pairwise(told):
        if number == other:
            assert one == two


def test_fitted_classes_are_foretold_from_their_nominees():
    rng = np.random.default_rng(1)
    quality, group = rng.normal(size=2_000), rng.choice(["a", "b"], 2_000)
    features = np.c_[quality + 0.5 * rng.normal(size=2_000), rng.normal(size=(2_000, 2))]
    world = Replay(
        LabelledSample(features, group, np.where(quality > 0.2, 1, -1)), hypotheses=Linear()
    )
    learner = CertifiedLearner(Linear(), FalsePositiveRate(), 0.1, 0.05, horizon=20_000)
    learner = simulate(learner, world, 3_000, 0, 0.1).learner
    (told,) = learner.forecast
    assert told.needed < 20_000
    assert told.half is not None
    assert sentences((told,)) == learner.report.forecast
