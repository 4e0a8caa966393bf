"""A small population and the ways in which learners are played on it in these tests."""

import numpy as np

from evenhand.contracts import HypothesisClass
from evenhand.environments import Discrete
from evenhand.fairness import FalsePositiveRate
from evenhand.learners import (
    AcceptAll,
    CertifiedLearner,
    Exp4,
    ExploreThenCommit,
    FairOnGathered,
    PairedRounds,
    TwoPhaseLearner,
    Unconstrained,
    Uniform,
)
from evenhand.rounds import FOREVER, Epoch, reports

FPR = FalsePositiveRate()


def world(names=("a", "b")):
    """Six contexts, three in each of two groups; eight hypotheses."""
    accepts = np.array(
        [
            [1, 1, 1, 1, 1, 1],
            [0, 0, 0, 0, 0, 0],
            [1, 1, 0, 1, 1, 0],
            [1, 0, 0, 1, 0, 0],
            [1, 1, 0, 1, 0, 0],
            [1, 0, 0, 1, 1, 0],
            [1, 1, 1, 1, 1, 0],
            [1, 1, 0, 1, 1, 1],
        ],
        bool,
    )
    group = np.repeat(np.array(names), 3)
    return Discrete(
        [0.2, 0.2, 0.15, 0.15, 0.15, 0.15],
        [0.9, 0.55, 0.2, 0.8, 0.45, 0.1],
        group,
        accepts,
        name="six",
    )


WORLD = world()


class Nominated(HypothesisClass):
    """The rules of another class, of which it says that there are a million: they are nominated."""

    log_size = float(np.log(1e6))

    def __init__(self, given):
        self.given = given
        self.exact = given.exact
        self.uses_group = given.uses_group

    @property
    def params(self):
        return {"class": "nominated", "given": self.given.params}

    def bind(self, features, group):
        return self.given.bind(features, group)


def two_phase(**changed):
    settings = dict(
        hypotheses=WORLD.hypotheses,
        rate=FPR,
        limit=0.4,
        delta=0.1,
        horizon=3000,
        comparator_gap=0.02,
        seed=5,
    )
    return TwoPhaseLearner(**{**settings, **changed})


def certified(**changed):
    settings = dict(hypotheses=WORLD.hypotheses, rate=FPR, limit=0.2, delta=0.05, seed=1)
    return CertifiedLearner(**{**settings, **changed})


def every_learner():
    """Every learner of the paper's part of the package, small enough to be quick."""
    common = dict(
        hypotheses=WORLD.hypotheses,
        rate=FPR,
        limit=0.4,
        delta=0.1,
        horizon=3000,
        comparator_gap=0.02,
        seed=5,
    )
    greedy = dict(hypotheses=WORLD.hypotheses, rate=FPR, limit=0.1, first_rounds=100, seed=5)
    return {
        "two-phase": TwoPhaseLearner(**common),
        "two-phase, two-sided": TwoPhaseLearner(**common, estimator="two-sided"),
        "two-phase, group decides": TwoPhaseLearner(**common, group_use="decide"),
        "explore-then-commit": ExploreThenCommit(**common, same_exploration=True),
        "EXP4": Exp4(**common, grid=3),
        "paired rounds": PairedRounds(**common, grid=3),
        "unconstrained": Unconstrained(**greedy),
        "fair on gathered": FairOnGathered(**greedy),
        "accept all": AcceptAll(seed=5),
        "uniform": Uniform(seed=5),
    }


def play(learner, rounds, seed, *, block=50, environment=WORLD, told=1.0, prices=None):
    """Blocks of people, labels told with probability `told`; everything that came out, as bytes and
    numbers.
    """
    people = np.random.default_rng(seed)
    seen = []
    while rounds > 0:
        sample = environment.draw(min(block, rounds), people)
        given = {} if prices is None else {"prices": prices(sample)}
        decisions = learner.decide(sample.features, sample.group, **given)
        accepted = np.flatnonzero(decisions.accept)
        accepted = accepted[people.random(len(accepted)) < told]
        learner.observe(decisions.first_round + accepted, sample.label[accepted])
        seen.append(
            (decisions.accept.tobytes(), decisions.propensity.tobytes(), decisions.epoch.tobytes())
        )
        rounds -= len(sample)
    return seen


def decide_people(rounds, people, policy, generator, *, epoch=None, audit=0.2, **more):
    """People of an epoch of their own, decided by `policy` and written into the table, as a learner
    does it. Nobody has a label yet.
    """
    number = len(rounds.epochs) + 1 if epoch is None else epoch
    if number > len(rounds.epochs):
        rounds.open(Epoch(number, "played", rounds.decided, FOREVER, policy, audit=audit))
    acceptance = policy.acceptance(people.features, people.group)
    accept = generator.random(len(people)) < acceptance
    rounds.append(
        epoch=number,
        features=people.features,
        group=people.group,
        accept=accept,
        acceptance=acceptance,
        audit=accept & (generator.random(len(people)) < audit / np.maximum(acceptance, audit)),
        **more,
    )
    rounds.returned = rounds.decided
    return rounds


def report_all(rounds, people, first=0):
    """The labels of all accepted people, who are those of the rounds from `first` on."""
    accepted = np.flatnonzero(rounds["accept"][first : first + len(people)])
    reports.enter_labels(rounds, first + accepted, people.label[accepted])
    return rounds
