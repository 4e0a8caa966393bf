"""Every field of a Run against a recomputation that loops over contexts and rounds."""

import numpy as np
import pytest
from scipy.optimize import linprog
from tests.simulate.test_engines import learner_of, log_of
from tests.without_clocks import calls, peak

from evenhand.environments import lending, random_population
from evenhand.simulate import simulate


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


def test_progress_is_told_after_each_epoch():
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
