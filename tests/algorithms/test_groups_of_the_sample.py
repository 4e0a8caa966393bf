"""Learners that take their groups from a sample say which groups these are, and who is outside.

Group c is one person in a thousand. Where the sample of 800 people has none of them (45% of the
runs), nothing is known of c, and the policies may be above the limit for it: 7 of 20 runs with
fixed seeds are, exactly those. Where it has some, they are too few, and the exploration goes on.
The guarantee is about the groups of the sample, with delta = .1 a run; all 20 keep it.
"""

import numpy as np
import pytest

from evenhand.environments import Discrete
from evenhand.learners import ExploreThenCommit, TwoPhaseLearner

LIMIT, DELTA, EXPLORATION, ROUNDS = 0.4, 0.1, 800, 3000
WITHOUT_C = 0
"""A seed whose sample has nobody of c; some of them come later."""
LEARNERS = [TwoPhaseLearner, ExploreThenCommit]


def world(share_of_c=0.001):
    """Low and high scores; the rule accepts high ones, and in c the low ones."""
    share = np.repeat([0.5 * (1 - share_of_c), 0.5 * (1 - share_of_c), share_of_c], 2)
    good = [0.2, 0.8, 0.2, 0.8, 0.2, 0.8]
    accepts = np.array([[False, True, False, True, True, False]])
    return Discrete(0.5 * share, good, np.repeat(["a", "b", "c"], 2), accepts, name="rare c")


def played(kind, seed, rounds=ROUNDS):
    """(learner, how many people of c came after the sample, whether one was in it)."""
    population = world()
    learner = kind(
        population.hypotheses,
        "fpr",
        LIMIT,
        DELTA,
        50_000,
        exploration_rounds=EXPLORATION,
        seed=seed,
    )
    people = np.random.default_rng([seed, 1])
    groups = np.zeros(0, dtype=object)
    while learner.round < rounds:
        sample = population.draw(100, people)
        decisions = learner.decide(sample.features, sample.group)
        learner.observe(decisions.round[decisions.accept], sample.label[decisions.accept])
        groups = np.append(groups, sample.group)
    return learner, int((groups[EXPLORATION:] == "c").sum()), "c" in groups[:EXPLORATION]


def gaps_between(policy, groups):
    """The largest true gap between two of these groups."""
    population = world()
    acceptance = policy.acceptance(population.features, population.group)
    bad = population.probability * (1.0 - population.positive_rate)
    rates = [
        float((bad * acceptance)[population.group == g].sum() / bad[population.group == g].sum())
        for g in groups
    ]
    return max(rates) - min(rates)


@pytest.mark.parametrize("kind", LEARNERS)
def test_groups_are_known_when_the_exploration_ends(kind):
    learner, _, _ = played(kind, WITHOUT_C, rounds=EXPLORATION // 2)
    assert learner.groups is None
    learner, later, _ = played(kind, WITHOUT_C)
    assert later > 0
    assert set(learner.groups) == {"a", "b"}
    assert learner.outside == {"c": later}


@pytest.mark.parametrize("kind", LEARNERS)
def test_the_report_names_who_is_outside_and_how_many_came(kind):
    learner, later, _ = played(kind, WITHOUT_C)
    outside = [note for note in learner.report.notes if note.kind == "outside"]
    assert [note.group for note in outside] == ["c"]
    assert f"{later}" in outside[0].text
    covered = next(note.text for note in learner.report.notes if note.kind == "groups")
    assert "'a'" in covered
    assert "'b'" in covered


@pytest.mark.thorough
@pytest.mark.parametrize("kind", LEARNERS)
def test_the_guarantee_is_about_the_groups_that_are_named(kind):
    above = 0
    for seed in range(20):
        learner, later, sampled = played(kind, seed)
        deployed = [epoch.policy for epoch in learner.report.epochs]
        if sampled:
            assert learner.groups is None  # they are too few, and everybody is accepted
            assert max(gaps_between(policy, "abc") for policy in deployed) <= LIMIT
            continue
        assert set(learner.groups) == {"a", "b"}
        assert learner.outside == ({"c": later} if later else {})
        assert max(gaps_between(policy, "ab") for policy in deployed) <= LIMIT
        above += max(gaps_between(policy, "abc") for policy in deployed) > LIMIT
    assert above == 7  # for somebody who is not named it does not hold


@pytest.mark.parametrize("kind", LEARNERS)
def test_it_is_kept_in_a_file(kind, tmp_path):
    import evenhand as eh

    learner, _, _ = played(kind, WITHOUT_C)
    learner.save(tmp_path / "learner")
    again = eh.load(tmp_path / "learner")
    assert set(again.groups) == {"a", "b"}
    assert again.outside == learner.outside
