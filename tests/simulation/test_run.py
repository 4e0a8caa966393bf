"""Runs: every field against a recomputation that loops over contexts and rounds; both engines agree
in distribution.
"""

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import chi2_contingency, ks_2samp
from tests.without_clocks import calls, peak

from evenhand.environments import Discrete, LowerBound, Replay, lending, random_population
from evenhand.errors import InvalidInput
from evenhand.estimation import RoundLog
from evenhand.fairness import FalsePositiveRate
from evenhand.learners import (
    ExploreThenCommit,
    FairOnGathered,
    TwoPhaseLearner,
    Uniform,
)
from evenhand.simulation import simulate

FPR = FalsePositiveRate()
ALARM = 1e-4
"""The false-alarm rate of each comparison, were the seeds fresh."""


def learner_of(name, world, horizon=3000):
    if name == "gathered":
        return FairOnGathered(world.hypotheses, FPR, 0.05)
    kind = ExploreThenCommit if name == "commit" else TwoPhaseLearner
    sides = "two-sided" if name == "two-sided" else "one-sided"
    return kind(
        world.hypotheses,
        FPR,
        None,
        0.05,
        horizon,
        comparator_gap=0.02,
        exploration_rounds=400,
        estimator=sides,
    )


def log_of(learner):
    """Everything a learner has seen, harvested or not."""
    logs = [log for _, log in learner.gathered]
    return RoundLog.concatenate(logs)


def table_of(learner, contexts):
    """(contexts, 3): rejected, accepted positive, accepted negative."""
    log, table = log_of(learner), np.zeros((contexts, 3))
    rows = log.features[:, 0].astype(int)
    for column, counts in enumerate((log.rejected, log.positive, log.negative)):
        np.add.at(table[:, column], rows, counts)
    return table


def homogeneity(first, second):
    """The p-value of the chi-square test that two tables of counts have one law; cells that both
    left empty are dropped.
    """
    pair = np.stack([first.ravel(), second.ravel()])
    return chi2_contingency(pair[:, pair.sum(axis=0) > 0]).pvalue


@pytest.mark.parametrize(
    "world", [lending(), random_population(), LowerBound(1, 0.05)], ids=lambda w: w.name
)
def test_counts_of_context_decision_and_label_have_the_same_law(world):
    """60,000 rounds of a coin. False-alarm rate 1e-4. Catches an acceptance probability that is off
    by .03 (60 contexts, power .9)."""
    tables = [
        table_of(simulate(Uniform(), world, 60_000, 3, engine=e).learner, len(world))
        for e in ("events", "counts")
    ]
    assert all(table.sum() == 60_000 for table in tables)
    assert homogeneity(*tables) > ALARM


def test_the_chi_square_test_sees_a_wrong_acceptance_probability():
    """Negative control: .46 instead of .5."""
    world = lending()
    exact = table_of(simulate(Uniform(), world, 60_000, 3, engine="events").learner, len(world))
    counts = world.draw_counts(60_000, np.full(len(world), 0.46), np.random.default_rng(1))
    assert (
        homogeneity(
            exact,
            np.stack([counts.rejected, counts.accepted_positive, counts.accepted_negative], axis=1),
        )
        < ALARM
    )


@pytest.mark.parametrize(
    "name",
    ["one-sided", pytest.param("two-sided", marks=pytest.mark.slow), "commit", "gathered"],
)
def test_runs_have_the_same_law(name):
    """60 runs per engine; regret, acceptances and worst gap by Kolmogorov-Smirnov, false-alarm rate
    1e-4 each. Catches a shift of one standard deviation with probability .9."""
    world = LowerBound(1, 1 / 16) if name == "gathered" else lending()
    told = {"comparator_gap": 0.02}
    runs = {
        engine: [
            simulate(learner_of(name, world), world, 1500, first + s, engine=engine, **told)
            for s in range(60)
        ]
        for engine, first in (("events", 0), ("counts", 10_000))
    }
    for figure in (lambda r: r.regret[-1], lambda r: r.accepted.sum(), lambda r: r.gaps.max()):
        assert (
            ks_2samp(*([figure(run) for run in runs[e]] for e in ("events", "counts"))).pvalue
            > ALARM
        )


def test_the_test_of_runs_sees_another_learner():
    """Negative control: two-sided events against one-sided counts."""
    world = lending()
    found = [
        [simulate(learner_of(n, world), world, 1500, s, engine=e).regret[-1] for s in range(40)]
        for n, e in (("two-sided", "events"), ("one-sided", "counts"))
    ]
    assert ks_2samp(*found).pvalue < ALARM


@pytest.mark.parametrize("engine", ["events", "counts"])
def test_one_seed_gives_one_run(engine):
    world = lending()
    learner = learner_of("one-sided", world)
    first, again, other = (
        simulate(learner, world, 3000, seed, engine=engine) for seed in (5, 5, 6)
    )
    for name in ("rounds", "regret", "gaps", "losses", "accepted"):
        assert np.array_equal(getattr(first, name), getattr(again, name))
    assert not np.array_equal(first.accepted, other.accepted)
    assert first.seed == 5


def test_the_seed_of_the_learner_given_and_earlier_runs_do_not_matter():
    world = lending()
    plain = simulate(learner_of("one-sided", world), world, 3000, 5)
    used = learner_of("one-sided", world).restarted(99)
    simulate(used, world, 1000, 1)
    assert np.array_equal(simulate(used, world, 3000, 5).regret, plain.regret)


def test_the_learner_given_stays_fresh():
    world = lending()
    learner = learner_of("one-sided", world)
    run = simulate(learner, world, 3000, 5)
    assert learner.round == 0
    assert run.learner.round == 3000


@pytest.mark.parametrize("engine", ["events", "counts"])
def test_a_longer_run_begins_like_a_shorter_one(engine):
    """The horizon of the learner is the same; only the number of rounds played differs, and the
    shorter one ends with an epoch.
    """
    world = lending()
    learner = learner_of("one-sided", world)
    long = simulate(learner, world, 3000, 5, engine=engine)
    short = simulate(learner, world, int(long.rounds[4]), 5, engine=engine)
    assert np.array_equal(short.regret, long.regret[:5])


def test_refusals():
    world = lending()
    learner = learner_of("one-sided", world)
    people = world.draw(500, np.random.default_rng(0))
    with pytest.raises(InvalidInput, match="round"):
        simulate(learner, world, 0, 1)
    with pytest.raises(InvalidInput, match=r"auto.*events.*counts"):
        simulate(learner, world, 10, 1, engine="fast")
    with pytest.raises(InvalidInput, match="Discrete"):
        simulate(learner, Replay(people, hypotheses=world.hypotheses), 10, 1, engine="counts")
    assert isinstance(world, Discrete)


# Every field of a Run against a recomputation that loops over contexts and rounds


@pytest.fixture(params=["events", "counts"])
def played(request):
    world = lending()
    return world, simulate(learner_of("one-sided", world), world, 2500, 11, engine=request.param)


def slow_loss(world, policy):
    total = 0.0
    for i in range(len(world)):
        accept = float(policy.acceptance(world.features[i : i + 1])[0])
        total += world.probability[i] * (
            accept * (1 - world.positive_rate[i]) + (1 - accept) * world.positive_rate[i]
        )
    return total


def slow_gap(world, policy):
    accept = policy.acceptance(world.features)
    rates = []
    for group in ("north", "south"):
        members = [i for i in range(len(world)) if world.group[i] == group]
        negative = sum(world.probability[i] * (1 - world.positive_rate[i]) for i in members)
        rates.append(
            sum(world.probability[i] * (1 - world.positive_rate[i]) * accept[i] for i in members)
            / negative
        )
    return abs(rates[0] - rates[1])


def slow_optimum(world, gamma):
    table = np.vstack(
        [world.accepts, np.zeros(len(world), bool), np.ones(len(world), bool)]
    ).astype(float)
    cost = world.probability * (1 - 2 * world.positive_rate)
    negative = world.probability * (1 - world.positive_rate)
    north, south = (
        np.where(world.group == g, negative, 0) / negative[world.group == g].sum()
        for g in ("north", "south")
    )
    gaps = table @ (south - north)
    found = linprog(
        table @ cost, A_ub=[gaps, -gaps], b_ub=[gamma] * 2, A_eq=np.ones((1, len(table))), b_eq=[1]
    )
    return float(found.fun + world.probability @ world.positive_rate)


def test_losses_gaps_optimum_and_regret(played):
    world, run = played
    assert run.losses == pytest.approx(
        [slow_loss(world, policy) for policy in run.policies], abs=1e-12
    )
    assert run.gaps == pytest.approx(
        [slow_gap(world, policy) for policy in run.policies], abs=1e-12
    )
    assert run.optimum == pytest.approx(slow_optimum(world, 0.02), abs=1e-9)
    total, regret = 0.0, []
    for t in range(run.rounds[-1]):
        epoch = int(np.argmax(run.rounds > t))
        total += run.losses[epoch] - run.optimum
        if t + 1 in run.rounds:
            regret.append(total)
    assert run.regret == pytest.approx(regret, abs=1e-6)


def test_rounds_lengths_and_phases(played):
    _, run = played
    assert run.rounds[-1] == 2500
    assert list(run.lengths[:3]) == [400, 64, 64]
    assert list(run.lengths[3:]) == [128, 256, 512, 1024, 52]
    assert run.phases == ("explore",) + ("bandit",) * 7
    assert len(run.policies) == len(run.phases) == len(run.accepted)


def test_acceptances_are_those_of_the_learners_log(played):
    _, run = played
    log = log_of(run.learner)
    assert log.rounds == 2500
    assert run.accepted.sum() == log.accepted.sum()
    assert run.accepted[0] == 400


def test_oracle_calls_are_the_sum_over_epochs(played):
    _, run = played
    assert run.oracle_calls == sum(epoch.oracle_calls for epoch in run.learner.report.epochs) > 0


def test_regret_between_epochs_share_above_and_worst(played):
    _, run = played
    middle = (run.rounds[2] + run.rounds[3]) / 2
    assert run.regret_at(middle) == pytest.approx((run.regret[2] + run.regret[3]) / 2)
    assert run.regret_at(0) == 0
    assert run.worst_gap == max(run.gaps)
    limit = float(np.median(run.gaps))
    above = sum(n for n, gap in zip(run.lengths, run.gaps, strict=True) if gap > limit)
    assert run.share_above(limit) == pytest.approx(above / 2500)
    assert run.share_above(1.0) == 0


def test_the_comparator_may_be_chosen(played):
    world, run = played
    free = simulate(learner_of("one-sided", world), world, 2500, 11, 1.0, engine="counts")
    assert free.optimum < run.optimum
    assert free.optimum == pytest.approx(slow_optimum(world, 1.0), abs=1e-9)


def test_progress_is_reported_after_each_epoch():
    world, told = lending(), []
    run = simulate(learner_of("one-sided", world), world, 2500, 11, progress=told.append)
    assert told == list(run.rounds)


def test_the_count_level_engine_costs_epochs_not_rounds():
    """T = 1e7 costs at most 3 times T = 1e5, in epochs, oracle calls, rows in the log, function
    calls and bytes held at once.

    Negative control: ten times as many rounds cost the event-level engine more than 3 times the
    bytes. The same in seconds: `make bench`.
    """
    world = random_population()

    def play(rounds, engine="counts"):
        return simulate(learner_of("one-sided", world, rounds), world, rounds, 2, engine=engine)

    figures = []
    play(1_000)  # imports are not its work
    for horizon in (100_000, 10_000_000):
        run = play(horizon)
        work = calls(play, horizon), peak(play, horizon)
        figures.append((len(run.rounds), run.oracle_calls, len(log_of(run.learner)), *work))
    for small, large in zip(*figures, strict=True):
        assert large <= 3 * small
    assert figures[1][0] - figures[0][0] <= 8
    assert peak(play, 30_000, "events") > 3 * peak(play, 3_000, "events")
