"""Both engines run the same learner code and agree in distribution; each run follows from its seed
alone.
"""

import numpy as np
import pytest
from scipy.stats import chi2_contingency, ks_2samp

from evenhand.environments import Discrete, LowerBound, Replay, lending, random_population
from evenhand.errors import InvalidInput
from evenhand.estimation import RoundLog
from evenhand.fairness import FalsePositiveRate
from evenhand.learners import ExploreThenCommit, FairOnGathered, TwoPhaseLearner, Uniform
from evenhand.simulate import simulate

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
    logs = [log for _, log in learner._history.logs] + [log for _, log in learner._book.harvest()]
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


@pytest.mark.parametrize("name", ["one-sided", "two-sided", "commit", "gathered"])
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
    people = world.sample(500, np.random.default_rng(0))
    with pytest.raises(InvalidInput, match="at least one round"):
        simulate(learner, world, 0, 1)
    with pytest.raises(InvalidInput, match='"auto", "events" or "counts"'):
        simulate(learner, world, 10, 1, engine="fast")
    with pytest.raises(InvalidInput, match="needs a Discrete environment"):
        simulate(learner, Replay(people, hypotheses=world.hypotheses), 10, 1, engine="counts")
    assert isinstance(world, Discrete)
