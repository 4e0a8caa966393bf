"""The requirements of algorithms, for every one of them: a step is pure, and whoever holds the
table of rounds can call it, a learner or a service.
"""

import copy
import json
from dataclasses import replace

import numpy as np
import pytest
from tests.play import WORLD, Nominated, certified, every_learner, two_phase

from evenhand import storage
from evenhand.algorithms.base import Forgets, HasNotes, Note
from evenhand.algorithms.baselines import Greedy
from evenhand.algorithms.certified.state import CertifiedState
from evenhand.hypotheses import Linear
from evenhand.rounds import Rounds, reports

LEARNERS = every_learner() | {
    "certified": certified(),
    "certified, group decides": certified(group_use="decide"),
    "certified, with a window": certified(maturity=4.0),
    "certified, nominated": certified(hypotheses=Nominated(WORLD.hypotheses), horizon=3000),
    "certified, linear rules": certified(hypotheses=Linear(), horizon=3000),
}


def written(value, hypotheses):
    """A state, an epoch or a table as text, with every number of its arrays."""
    encoder = storage.Encoder(hypotheses)
    document = encoder.encode(value)
    return json.dumps([document, {name: a.tolist() for name, a in encoder.arrays.items()}])


def blocks(rounds=1600, size=100, seed=3):
    generator = np.random.default_rng(seed)
    for start in range(0, rounds, size):
        yield start / size, WORLD.draw(size, generator)


def play_block(learner, now, people):
    """All labels of the first thousand people come, so that explorations end; then all but every
    seventh.
    """
    decisions = learner.decide(people.features, people.group, at=now)
    coming = (np.arange(len(people)) % 7 > 0) | (decisions.first_round < 1000)
    accepted = np.flatnonzero(decisions.accept & coming)
    learner.observe(decisions.first_round + accepted, people.label[accepted], at=now)


def check_that_a_step_is_pure(learner):
    """Called twice with the same arguments it gives the same answer, and changes neither state nor
    rounds; in the midst of an epoch and at its end. How many steps opened an epoch.
    """
    algorithm = learner.algorithm
    hypotheses = algorithm.hypotheses
    opened = 0
    for now, people in blocks():
        play_block(learner, now, people)
        for at_the_end in (False, True):
            rounds = copy.deepcopy(learner.rounds)
            if at_the_end:
                rounds.end_epoch_here()
            state = learner.state
            before = [written(value, hypotheses) for value in (state, rounds)]
            answers = [algorithm.step(state, rounds, now) for _ in range(2)]
            assert [written(value, hypotheses) for value in (state, rounds)] == before
            one, two = ([written(value, hypotheses) for value in answer] for answer in answers)
            assert one == two
            opened += answers[0][1] is not None
    return opened


@pytest.mark.thorough
@pytest.mark.parametrize("name", LEARNERS)
def test_a_step_is_pure(name):
    opened = check_that_a_step_is_pure(LEARNERS[name].restarted(1))
    assert opened > 0 or name in ("accept all", "uniform")


def with_a_memory(step):
    """Another length whenever it is called."""
    calls = []

    def remembering(algorithm, state, rounds, now):
        calls.append(now)
        state, epoch = step(algorithm, state, rounds, now)
        return state, epoch and replace(epoch, rounds=epoch.rounds + len(calls))

    return remembering


def with_a_pen(step):
    """Writes into the table."""

    def writing(algorithm, state, rounds, now):
        rounds["label_late"][0] = True
        return step(algorithm, state, rounds, now)

    return writing


@pytest.mark.parametrize("defect", [with_a_memory, with_a_pen])
def test_a_step_that_is_not_pure_is_found(defect, monkeypatch):
    """Negative control."""
    learner = every_learner()["unconstrained"]
    monkeypatch.setattr(Greedy, "step", defect(Greedy.step))
    with pytest.raises(AssertionError):
        check_that_a_step_is_pure(learner)


@pytest.mark.parametrize("name", LEARNERS)
def test_the_beginning_is_pure(name):
    algorithm = LEARNERS[name].algorithm
    one, two = (
        [written(value, algorithm.hypotheses) for value in algorithm.init(5)] for _ in range(2)
    )
    assert one == two


@pytest.mark.parametrize("name", LEARNERS)
def test_forgetting_and_notes_change_nothing(name):
    learner = LEARNERS[name].restarted(1)
    for now, people in blocks(900):
        play_block(learner, now, people)
    algorithm, state, rounds = (
        learner.algorithm,
        learner.state,
        learner.rounds,
    )
    lost = reports.erase(rounds, np.arange(20))
    before = [written(value, algorithm.hypotheses) for value in (state, rounds)]
    if isinstance(algorithm, Forgets):
        one, two = (algorithm.forget(state, rounds, lost) for _ in range(2))
        assert one == two
    if isinstance(algorithm, HasNotes):
        assert algorithm.notes(state, rounds) == algorithm.notes(state, rounds)
        assert all(isinstance(note, Note) for note in algorithm.notes(state, rounds))
    assert [written(value, algorithm.hypotheses) for value in (state, rounds)] == before


SERVED = {
    "two-phase": two_phase,
    "certified": certified,
    "certified, nominated": lambda: certified(hypotheses=Nominated(WORLD.hypotheses), horizon=3000),
}


@pytest.mark.parametrize("name", SERVED)
def test_a_service_that_appends_its_rows_comes_to_the_policies_of_the_learner(name):
    """Rows as a ledger holds them, appended when an epoch is over, and then a step. The state goes
    through JSON in between, as it does in a service.
    """
    learner = SERVED[name]()
    algorithm = learner.algorithm
    state, first = algorithm.init(learner.seed)
    rounds = Rounds()
    rounds.open(first)
    columns = ("epoch", "at", "accept", "acceptance", "audit", "label", "settled")
    marks = ("overruled", "erased", "group_late")
    generator = np.random.default_rng(4)
    while learner.round < 2500:
        people = WORLD.draw(learner.rounds_left, generator)
        decisions = learner.decide(people.features, people.group)
        accepted = np.flatnonzero(decisions.accept)
        learner.observe(decisions.first_round + accepted, people.label[accepted])
        if learner.round > 1000:  # who is lost in an exploration would keep it waiting
            learner.overrule(decisions.first_round + accepted[:1], False)
            learner.erase(decisions.first_round + accepted[1:2])
        new = slice(len(rounds), learner.round)
        own = learner.rounds
        rounds.append_rows(
            own.features_of(new),
            own.groups_of(new),
            {column: own[column][new] for column in (*columns, *marks)},
            None,
        )
        kept = json.loads(json.dumps(storage.state_to_json(state, learner.hypotheses)))
        state, epoch = algorithm.step(
            storage.state_from_json(kept, learner.hypotheses), rounds, None
        )
        rounds.open(epoch)
        assert learner.open_epoch() == epoch
    assert len(rounds.epochs) > 4
    assert epoch.phase in ("bandit", "certified")
    one, two = (
        # how long a drift test waits for a label is counted from the end of the call
        replace(each, drift=None) if isinstance(each, CertifiedState) else each
        for each in (state, learner.state)
    )
    assert written(one, learner.hypotheses) == written(two, learner.hypotheses)
