"""What a certified learner refuses to be told."""

import sys

import numpy as np
import pytest
from tests.learners.certified.test_learner import learner, played
from tests.learners.play import WORLD

from evenhand.errors import BadLabel, InvalidInput, ProtocolError
from evenhand.hypotheses import Linear, ScoreThresholds
from evenhand.words import Prices


class TestRefusals:
    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"limit": 0.0}, "allowed_gap is 0.0"),
            ({"limit": -0.1}, "allowed_gap is -0.1"),
            ({"limit": 1.5}, "allowed_gap is 1.5"),
            ({"delta": 0.0}, "failure_probability"),
            ({"delta": 1.0}, "failure_probability"),
            ({"audit_rate": 0.0}, "audit_rate is 0.0"),
            ({"audit_rate": "often"}, "audit_rate is 'often'"),
            ({"audit_budget": -1}, "audit_budget is -1"),
            ({"fallback": "wait"}, "fallback is 'wait'"),
            ({"maturity": 0}, "maturity is 0"),
            ({"horizon": 0}, "horizon is 0"),
            ({"bound": "bootstrap"}, "bound is 'bootstrap'"),
            ({"bound": "dkw"}, "covers thresholds on a column"),
            ({"hypotheses": Linear(), "bound": "betting"}, "too rich for a union"),
            ({"hypotheses": Linear(), "bound": "kl"}, "too rich for a union"),
            ({"hypotheses": ScoreThresholds(per_group=True)}, "looks at the group"),
        ],
    )
    def test_settings(self, settings, message):
        with pytest.raises(InvalidInput, match=message):
            learner(**settings)

    def test_negative_prices(self):
        with pytest.raises(InvalidInput, match="price"):
            learner(prices=Prices(-1.0, 1.0))

    def test_labels_of_the_rejected_unknown_rounds_and_contradictions(self):
        told = played(learner(), 3000)
        decisions = told.decide(WORLD.features, WORLD.group)
        while decisions.accept.all():
            decisions = told.decide(WORLD.features, WORLD.group)
        rejected = decisions.first_round + int(np.argmin(decisions.accept))
        with pytest.raises(ProtocolError, match="was rejected"):
            told.observe(rejected, 1)
        with pytest.raises(ProtocolError, match="is unknown"):
            told.observe(10**9, 1)
        accepted = decisions.first_round + int(np.argmax(decisions.accept))
        told.observe(accepted, -1)
        told.observe(accepted, -1)
        with pytest.raises(ProtocolError, match="observed before"):
            told.observe(accepted, 1)
        with pytest.raises(BadLabel):
            told.observe(accepted, 0)

    def test_a_group_that_contradicts_the_one_told_before(self):
        told = learner()
        decision = told.decide(WORLD.features[:1], WORLD.group[:1])[0]
        with pytest.raises(ProtocolError, match="another group"):
            told.observe(decision.round, 1, group="b")

    def test_time(self):
        told = learner(maturity=5.0)
        with pytest.raises(InvalidInput, match="needs the time"):
            told.decide(WORLD.features, WORLD.group)
        told.decide(WORLD.features, WORLD.group, at=3.0)
        with pytest.raises(ProtocolError, match="backwards"):
            told.decide(WORLD.features, WORLD.group, at=2.0)


def test_models_that_cannot_be_saved_are_refused_before_the_first_person(monkeypatch):
    """A certificate names a fitted model by its saved bytes."""
    from sklearn.linear_model import LogisticRegression

    monkeypatch.setitem(sys.modules, "skops.io", None)
    with pytest.raises(InvalidInput, match="saved with skops, which is not installed"):
        learner(hypotheses=LogisticRegression())


def test_late_outcomes_without_a_window_are_told_the_way_out():
    rng, made, late = np.random.default_rng(0), learner(ScoreThresholds()), []
    for _ in range(12):
        score, group = rng.random((200, 1)), rng.choice(["a", "b"], 200)
        decisions = made.decide(score, group)
        late.append((decisions.round[decisions.accept], score[decisions.accept, 0] > 0.4))
        if len(late) > 3:
            rounds, good = late.pop(0)
            made.observe(rounds, np.where(good, 1, -1))
    assert any("maturity=, with at=" in note for note in made.notes)
