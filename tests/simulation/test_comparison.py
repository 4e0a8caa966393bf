"""Comparisons: the number of processes changes nothing, summaries are what they say, JSON comes
back bit for bit.
"""

import json
from dataclasses import asdict, replace

import numpy as np
import pytest

import evenhand as eh
from evenhand.environments import Scores, lending
from evenhand.learners import (
    AcceptAll,
    ExploreThenCommit,
    FairOnGathered,
    TwoPhaseLearner,
    Unconstrained,
)
from evenhand.simulation import (
    Comparison,
    LearnerRuns,
    compare,
    simulate,
)
from evenhand.simulation.comparison import upper_limit
from evenhand.simulation.record import guarantees, record

RATE = eh.FalsePositiveRate()
ROUNDS = 6000
SETTINGS = {"limit": 0.3, "delta": 0.05, "regret_gap": 0.1}


def learners(world) -> dict:
    two_phase = TwoPhaseLearner(world.hypotheses, RATE, 0.3, 0.05, ROUNDS, comparator_gap=0.02)
    return {
        "two-phase": two_phase,
        "fair-on-gathered": FairOnGathered(world.hypotheses, RATE, 0.3),
        "accept-all": AcceptAll(),
    }


@pytest.fixture(scope="module")
def world():
    return lending()


@pytest.fixture(scope="module")
def comparison(world) -> Comparison:
    return compare(learners(world), world, ROUNDS, range(3), **SETTINGS)


def without_time(found: Comparison) -> str:
    document = found.to_json()
    for row in document["summaries"]:
        del row["seconds"]
    for one in document["learners"]:
        for run in one["runs"]:
            del run["seconds"]
    return json.dumps(document, allow_nan=False)


def test_parallel_is_serial_bit_for_bit(world, comparison):
    """Would catch: a stream shared between tasks, an answer filed under another seed, threads that
    change a sum.
    """
    assert without_time(
        compare(learners(world), world, ROUNDS, range(3), **SETTINGS, n_jobs=2)
    ) == without_time(comparison)


def test_a_learner_s_runs_do_not_depend_on_its_company(world, comparison):
    alone = compare({"two-phase": learners(world)["two-phase"]}, world, ROUNDS, [2], **SETTINGS)
    assert (
        alone.learners[0].runs[0].regret.tolist() == comparison.learners[0].runs[2].regret.tolist()
    )


def test_json_round_trip(comparison):
    text = json.dumps(comparison.to_json(), allow_nan=False)
    again = Comparison.from_json(json.loads(text))
    assert json.dumps(again.to_json(), allow_nan=False) == text
    assert again.summaries == comparison.summaries


def test_progress_counts_every_run(world):
    counted: list[int] = []
    compare({"accept-all": AcceptAll()}, world, 10, range(4), **SETTINGS, progress=counted.append)
    assert counted == [1, 2, 3, 4]


def test_summary_against_the_runs_themselves(world, comparison):
    runs = [
        simulate(learners(world)["fair-on-gathered"], world, ROUNDS, seed, 0.1) for seed in range(3)
    ]
    row = next(row for row in comparison.summaries if row.name == "fair-on-gathered")
    last = np.array([run.regret[-1] for run in runs])
    assert row.regret == pytest.approx(last.mean(), abs=1e-9)
    assert row.regret_error == pytest.approx(last.std(ddof=1) / np.sqrt(3))
    assert row.worst_gap == max(run.worst_gap for run in runs)
    assert row.rounds_above == pytest.approx(np.mean([run.share_above(0.3) for run in runs]))
    assert row.accepted_share == pytest.approx(
        np.mean([run.accepted.sum() for run in runs]) / ROUNDS
    )
    assert row.explored_rounds == 256
    assert not row.guaranteed


def test_one_run_has_no_standard_error(world):
    found = compare({"accept-all": AcceptAll()}, world, 10, [7], **SETTINGS)
    assert found.summaries[0].regret_error is None
    json.dumps(found.to_json(), allow_nan=False)


def test_a_record_has_the_figures_of_the_run(world):
    run = simulate(learners(world)["two-phase"], world, ROUNDS, 1, 0.1)
    kept = record(run, world, 0.3)
    assert kept.cost == pytest.approx((run.lengths * run.losses).sum() / ROUNDS)
    assert kept.constant == pytest.approx(0.4275, abs=0.1)
    assert kept.regret_over_constant == pytest.approx(
        (kept.cost - kept.optimum) / (kept.constant - kept.optimum)
    )
    at = np.linspace(1, ROUNDS, 97)
    assert kept.regret_at(at) == pytest.approx([run.regret_at(t) for t in at])
    assert kept.accepted.sum() == run.accepted.sum()
    assert kept.worst_gap == run.worst_gap
    assert kept.share_above(0.1) == pytest.approx(run.share_above(0.1))
    assert kept.explored == run.rounds[run.phases.index("bandit") - 1]


def test_who_is_certified(world):
    """Would catch: calling a limit certified that the slack does not reach."""
    made = learners(world)
    runs = {name: simulate(one, world, ROUNDS, 0, 0.1) for name, one in made.items()}
    runs["unconstrained"] = simulate(Unconstrained(world.hypotheses, RATE), world, ROUNDS, 0, 0.1)
    literal = TwoPhaseLearner(
        world.hypotheses, RATE, 0.3, 0.05, ROUNDS, comparator_gap=0.02, slack_rule="as printed"
    )
    runs["paper"] = simulate(literal, world, ROUNDS, 0, 0.1)
    said = {name: guarantees(run.learner, 0.3) for name, run in runs.items()}
    assert said == {
        "two-phase": True,
        "fair-on-gathered": False,
        "accept-all": True,
        "unconstrained": False,
        "paper": False,
    }
    assert not guarantees(runs["two-phase"].learner, 0.29)
    assert guarantees(runs["unconstrained"].learner, 1.0)


def test_a_population_without_a_table_has_no_truth_about_sets():
    world = Scores()
    made = ExploreThenCommit(
        world.hypotheses, RATE, 0.9, 0.05, 800, comparator_gap=0.02, exploration_rounds=400
    )
    found = compare({"commit": made}, world, 800, [0], limit=0.9, delta=0.05, regret_gap=0.1)
    assert found.summaries[0].regret_in_set is None


@pytest.mark.parametrize(("given", "seeds"), [({}, [0]), ({"accept-all": AcceptAll()}, [])])
def test_nothing_to_compare(world, given, seeds):
    with pytest.raises(eh.InvalidInput):
        compare(given, world, 10, seeds, **SETTINGS)


def test_no_process(world):
    with pytest.raises(eh.InvalidInput, match="jobs"):
        compare({"accept-all": AcceptAll()}, world, 10, [0], **SETTINGS, n_jobs=0)


def test_exactly_at_the_limit_is_not_above(world):
    run = compare({"accept-all": AcceptAll()}, world, 10, [0], **SETTINGS).learners[0].runs[0]
    halves = {"rounds": np.array([5, 10]), "losses": np.zeros(2), "regret": np.zeros(2)}
    halves |= {"audit": np.zeros(2), "learned": np.zeros(2), "phases": ("a", "b")}
    exact = replace(run, gaps=np.array([0.15, 0.15 + 1e-12]), **halves)
    above = replace(run, gaps=np.array([0.1, 0.2]), **halves)
    row = LearnerRuns("x", {}, (exact, above)).summary(0.15)
    assert (row.runs_above, row.rounds_above) == (1, 0.25)
    assert asdict(row)["runs_above_upper"] == upper_limit(1, 2)


def test_upper_limit_is_exact():
    """P[Binomial(n, limit) <= events] = 5%."""
    from scipy.stats import binom

    for events, trials in ((0, 20), (3, 20), (19, 20)):
        assert binom.cdf(events, trials, upper_limit(events, trials)) == pytest.approx(0.05)


def test_a_comparison_is_a_frame_with_a_row_for_each_run(comparison):
    axes_of = pytest.importorskip("matplotlib.pyplot")
    found = comparison
    frame = found.to_frame()
    assert len(frame) == 3 * len(found.learners)
    means = frame.groupby("learner", sort=False)["regret"].mean()
    assert means.tolist() == pytest.approx([row.regret for row in found.summaries])
    assert frame["seed"].tolist()[:3] == [0, 1, 2]
    axes = found.plot()
    names = [text.get_text() for text in axes.get_legend().get_texts()]
    assert names == [one.name for one in found.learners]
    axes_of.close(axes.figure)


def test_a_run_that_was_kept_is_a_frame_and_a_picture(comparison):
    axes_of = pytest.importorskip("matplotlib.pyplot")
    run = comparison.learners[0].runs[0]
    frame = run.to_frame()
    assert frame["round"].tolist() == run.rounds.tolist()
    assert frame["learned"].tolist() == run.learned.tolist()
    axes = run.plot()
    assert axes.get_ylabel() == "true gap of the deployed policy"
    axes_of.close(axes.figure)
