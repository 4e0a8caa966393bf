"""Tables that tests are made of."""

import json

import numpy as np
import pytest
from tests.play import WORLD, decide_people, report_all

from evenhand import storage
from evenhand.hypotheses.constants import ACCEPT_ALL, REJECT_ALL
from evenhand.policies import Mixture
from evenhand.randomness import stream
from evenhand.rounds import Rounds, reports
from evenhand.words import LabelledSample

PEOPLE = WORLD.draw(400, np.random.default_rng(1))
RULE = WORLD.hypotheses.bind(WORLD.features, None).hypothesis(2)
MIXED = Mixture((ACCEPT_ALL, REJECT_ALL, RULE), (0.2, 0.1, 0.7))
EVERYBODY = Mixture((ACCEPT_ALL,), (1.0,))


def first(people):
    return LabelledSample(PEOPLE.features[:people], PEOPLE.group[:people], PEOPLE.label[:people])


def table(people=60, *, policy=MIXED, told=True, **more):
    """So many people in one call, and the labels of the accepted."""
    rounds = decide_people(Rounds(), first(people), policy, stream(3, "table"), **more)
    return report_all(rounds, first(people)) if told else rounds


def written(rounds):
    """All that a file would hold, as text."""
    encoder = storage.Encoder()
    document = encoder.encode(rounds)
    arrays = {name: array.tolist() for name, array in encoder.arrays.items()}
    return json.dumps([document, arrays])


def changes_nothing(rounds, error, enter, *arguments):
    """The call raises this error, and the table is as it was."""
    before = written(rounds)
    with pytest.raises(error) as caught:
        enter(rounds, *arguments)
    assert written(rounds) == before
    return caught.value


def append_accepted(rounds, features):
    """So many people more, all of group a and all accepted."""
    people = len(features)
    rounds.append(
        epoch=1,
        features=features,
        group=np.full(people, "a"),
        accept=np.ones(people, bool),
        acceptance=np.ones(people),
    )


def of_kind(rounds, accept):
    return np.flatnonzero(rounds["accept"] == accept)


def marked_table(seed, people=400):
    """A table to which all has happened that may."""
    draw = np.random.default_rng(seed)
    rounds = table(people, told=False)
    accepted = of_kind(rounds, True)
    early, late = np.split(draw.permutation(accepted), [len(accepted) // 2])
    reports.enter_labels(
        rounds, early, PEOPLE.label[early], window_open=draw.random(len(early)) < 0.8
    )
    reports.enter_labels(rounds, late[:40], PEOPLE.label[late[:40]], closed=people)
    for numbers in (accepted, of_kind(rounds, False)):
        some = draw.choice(numbers, 30, replace=False)
        reports.overrule(rounds, some, ~rounds["accept"][some])
    reports.erase(rounds, draw.choice(people, 40, replace=False))
    return rounds
