"""Learners saved under rules 1 open, show their record, and go on: nothing is recomputed, and no
part of delta is spent twice.
"""

import json
import lzma
from pathlib import Path

import numpy as np
import pytest
from tests.fixtures import rules1
from tests.learners.play import WORLD

import evenhand as eh
from evenhand.environments import random_population
from evenhand.errors import ProtocolError, StorageError
from evenhand.learners import CertifiedLearner
from evenhand.learners.storage import Stored, read
from evenhand.randomness import stream

RECORD = rules1.record("learners")
CERTIFIED = [name for name in rules1.LEARNERS if name.startswith("certified")]
OTHERS = [name for name in rules1.LEARNERS if name not in CERTIFIED]


def stored(name, folder) -> Stored:
    return read(rules1.learner_file(name, folder))


@pytest.mark.parametrize("name", CERTIFIED)
def test_a_certified_learner_starts_a_new_life_from_the_reserve(name, tmp_path):
    learner, record = eh.load(rules1.learner_file(name, tmp_path)), RECORD[name]
    assert learner.round == record["round"]
    assert learner.report.epochs[-2].policy.to_json() == record["policy"]
    assert learner.learned_weight == 0
    certificate = learner.certificate
    assert certificate.status == "suspended"
    assert "issued under rules 1" in certificate.reason
    if record["certificate"] is not None:
        assert certificate.spent == pytest.approx(record["certificate"]["spent"])
    assert any("rules 1" in note for note in learner.report.notes)


@pytest.mark.parametrize("name", ["certified-table", "certified-suspended", "certified-frozen"])
def test_it_learns_again_from_people_decided_since(name, tmp_path):
    learner = eh.load(rules1.learner_file(name, tmp_path))
    before = len(learner.bookings)
    generator = np.random.default_rng(3)
    while learner.round < RECORD[name]["round"] + 1500:
        people = WORLD.draw(100, generator)
        decisions = learner.decide(people.features, people.group)
        accepted = np.flatnonzero(decisions.accept)
        learner.observe(decisions.first_round + accepted, people.label[accepted])
    assert len(learner.bookings) == before + 1
    assert learner.certificate.status == "certified"
    assert learner.certificate.spent <= learner.failure_probability
    assert learner.certificate.window[0] >= RECORD[name]["round"]
    learner.save(tmp_path / "again")
    assert eh.load(tmp_path / "again").policy == learner.policy


@pytest.mark.parametrize("name", OTHERS)
def test_the_other_learners_keep_their_policies_and_say_how_they_began(name, tmp_path):
    learner, record = eh.load(rules1.learner_file(name, tmp_path)), RECORD[name]
    assert not isinstance(learner, CertifiedLearner)
    assert learner.policy.to_json() == record["policy"]
    assert learner.report.notes[0].startswith("this learner began under rules 1")
    people = WORLD.draw(50, np.random.default_rng(1))
    assert len(learner.decide(people.features, people.group)) == 50
    learner.save(tmp_path / "again")
    assert (
        eh.load(tmp_path / "again").report.notes[0].startswith("this learner began under rules 1")
    )


def test_an_exploration_of_rules_1_begins_again(tmp_path):
    learner = eh.load(rules1.learner_file("two-phase-exploring", tmp_path))
    assert learner.sample is None
    assert learner.state.first == learner.round == RECORD["two-phase-exploring"]["round"]


def test_labels_of_people_decided_before_are_still_checked(tmp_path):
    learner = eh.load(rules1.learner_file("certified-pending", tmp_path))
    with pytest.raises(ProtocolError):
        learner.observe(learner.round, 1)


def test_a_damaged_one_is_refused(tmp_path):
    from tests.learners.test_storage import rewritten

    path = rules1.learner_file("certified-table", tmp_path)
    rewritten(
        path, lambda d: d["state"].update(items=[i for i in d["state"]["items"] if i[0] != "_life"])
    )
    with pytest.raises(StorageError, match="rules 1 and is malformed"):
        eh.load(path)


class TestRules2:
    """Learners saved by `scripts/make_rules2_fixtures.py`; between rules 2 and 3 the bound was
    replaced.
    """

    here = Path(__file__).parents[1] / "fixtures" / "rules2"

    def load(self, name, folder):
        path = folder / name
        path.write_bytes(lzma.decompress((self.here / f"{name}.xz").read_bytes()))
        return eh.load(path), json.loads((self.here / "record.json").read_text())[name]

    @pytest.mark.parametrize("name", ["certified", "frozen"])
    def test_a_new_life_succeeds_it_and_what_was_booked_stays_booked(self, name, tmp_path):
        learner, record = self.load(name, tmp_path)
        assert (learner.round, learner.state.run.number) == (record["round"], 2)
        assert [[entry.process, entry.share] for entry in learner.bookings] == record["bookings"]
        assert learner.epoch.phase == "explore"
        assert "rules 2" in learner.certificate.reason
        world, people = random_population(7, contexts=20, hypotheses=12), stream(2, "people")
        while learner.epoch.phase == "explore":
            came = world.draw(min(100, max(learner.rounds_left, 1)), people)
            decisions = learner.decide(came.features, came.group)
            accepted = np.flatnonzero(decisions.accept)
            learner.observe(decisions.first_round + accepted, came.label[accepted])
            assert learner.round < 10_000
        assert sum(entry.share for entry in learner.bookings) <= learner.failure_probability
        learner.save(tmp_path / "again")
        assert eh.load(tmp_path / "again").round == learner.round

    def test_a_learner_without_a_certificate_goes_on(self, tmp_path):
        learner, record = self.load("two-phase", tmp_path)
        assert (learner.round, learner.epoch.phase) == (record["round"], record["phase"])
        assert not any("rules" in note for note in learner.report.notes)
