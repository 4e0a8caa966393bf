"""Rules that cannot be read from a file leave the policy; everything else goes on."""

import json

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.play import WORLD

import evenhand as eh
from evenhand import storage
from evenhand.hypotheses import models
from evenhand.hypotheses.constants import Unread
from evenhand.hypotheses.estimator import Fitted


def lived(rounds=4000, **settings):
    """A learner with pipelines in its policy."""
    rules = eh.Estimator(make_pipeline(StandardScaler(), LogisticRegression()))
    learner = eh.CertifiedLearner(
        rules, "fpr", **{"limit": 0.6, "delta": 0.05, "seed": 1} | settings
    )
    go_on(learner, rounds, 1)
    return learner


def go_on(learner, rounds, seed):
    people = np.random.default_rng(seed)
    for _ in range(0, rounds, 200):
        block = WORLD.draw(200, people)
        decisions = learner.decide(block.features, block.group)
        accept = np.flatnonzero(decisions.accept)
        learner.observe(decisions.round[accept], block.label[accept])


def fitted_in(learner):
    return [rule for rule in learner.state.process.members if isinstance(rule, Fitted)]


@pytest.fixture
def cannot_read(monkeypatch):
    """Makes the libraries that are installed unable to read some models, by their hash."""

    def make(*hashes):
        honest = models.load_model

        def load_model(stored, trusted=()):
            if stored.sha256 in hashes:
                raise models.UnreadableModel("its tree has nodes of another kind.")
            return honest(stored, trusted)

        monkeypatch.setattr("evenhand.hypotheses.estimator.load_model", load_model)

    return make


@pytest.fixture
def other_versions(monkeypatch):
    """From here on another scikit-learn is installed."""
    now = {**storage.installed_versions(), "scikit-learn": "99.0"}
    return lambda: monkeypatch.setattr(storage, "installed_versions", lambda: now)


@pytest.mark.parametrize("which", ["all", "one"])
def test_evidence_bookings_and_certificate_go_on_without_what_cannot_be_read(
    which, cannot_read, tmp_path
):
    learner = lived()
    rules = fitted_in(learner)
    assert learner.learned_weight > 0
    assert len(rules) > 1
    learner.save(tmp_path / "learner")
    deployed = {rule._stored.sha256 for rule in learner.policy.hypotheses if hasattr(rule, "model")}
    lost = {rule._stored.sha256 for rule in rules} if which == "all" else set(sorted(deployed)[:1])
    cannot_read(*lost)
    loaded = eh.load(tmp_path / "learner")

    # the policy is another one, of constants and rules that are left
    assert loaded.epoch.number == learner.epoch.number + 1
    assert not any(
        getattr(rule, "_stored", None) and rule._stored.sha256 in lost
        for rule in loaded.policy.hypotheses
    )
    assert (loaded.learned_weight == 0) == (which == "all")
    note = next(one for one in loaded.notes if one.kind == "unread rules")
    assert "nodes of another kind" in note.text
    lower, upper = loaded.state.gaps[loaded.epoch.number]
    assert max(-lower.min(), upper.max()) <= 0.6 + 1e-9

    # places, bookings, sums and the intervals of all others are as they were
    assert loaded.state.ledger.delta == learner.state.ledger.delta
    booked = [one.to_json() for one in learner.bookings]
    assert [one.to_json() for one in loaded.bookings][: len(booked)] == booked
    assert loaded.state.evidence.people == learner.state.evidence.people
    places = [isinstance(rule, Unread) for rule in loaded.state.process.members]
    assert sum(places) == len(lost)
    kept = np.flatnonzero(~np.array(places))[: len(rules)]
    before, after = (one.state.process.intervals()[:2] for one in (learner, loaded))
    for old, new in zip(before, after, strict=True):
        assert np.array_equal(old[:, kept[kept < old.shape[1]]], new[:, kept[kept < old.shape[1]]])
    assert loaded.certificate.status == learner.certificate.status == "certified"

    # nothing is concluded about the places any more, and nothing is contradicted
    go_on(loaded, 3000, 2)
    go_on(learner, 3000, 2)
    gone = np.flatnonzero(places)
    low, high, contradiction = loaded.state.process.intervals()
    assert (low[:, gone] == -1).all()
    assert (high[:, gone] == 1).all()
    assert not contradiction.any()
    assert loaded.state.run == 1
    assert loaded.state.closed_to > 5000
    assert loaded.certificate.status == "certified"
    names = [one.to_json() for one in loaded.bookings]
    assert len({json.dumps(one) for one in names}) == len(names)
    others = [rule for rule in loaded.state.process.members if not isinstance(rule, Unread)]
    assert which == "one" or len(others) > 0  # new rules have been nominated

    # and it is stored as it is, also where the models can be read again
    loaded.save(tmp_path / "again")
    cannot_read()
    again = eh.load(tmp_path / "again")
    assert [isinstance(rule, Unread) for rule in again.state.process.members][
        : len(places)
    ] == places
    assert again.acceptance(WORLD.draw(50, np.random.default_rng(3)).features).tolist() == (
        loaded.acceptance(WORLD.draw(50, np.random.default_rng(3)).features).tolist()
    )


SETTINGS = [
    pytest.param({"accept_at_most": 0.5}, id="a cap"),
    pytest.param({"keep": "counts"}, id="counts"),
    pytest.param({"maturity": 5.0}, id="late labels", marks=pytest.mark.slow),
    pytest.param({"audit_budget": 300.0}, id="a budget", marks=pytest.mark.slow),
]


@pytest.mark.parametrize("settings", SETTINGS)
def test_under_all_settings_it_goes_on(settings, cannot_read, tmp_path):
    timed = "maturity" in settings
    rules = eh.Estimator(make_pipeline(StandardScaler(), LogisticRegression()))
    learner = eh.CertifiedLearner(rules, "fpr", 0.6, 0.05, seed=1, **settings)

    def play(one, blocks, first):
        people = np.random.default_rng(first)
        for number in range(first, first + blocks):
            block = WORLD.draw(200, people)
            when = {"at": float(number)} if timed else {}
            decisions = one.decide(block.features, block.group, **when)
            accept = np.flatnonzero(decisions.accept)
            one.observe(decisions.round[accept], block.label[accept], **when)

    play(learner, 25, 0)
    assert fitted_in(learner)
    learner.save(tmp_path / "learner")
    cannot_read(*[rule._stored.sha256 for rule in fitted_in(learner)])
    loaded = eh.load(tmp_path / "learner")
    assert loaded.learned_weight == 0
    play(loaded, 15, 25)
    assert loaded.state.run == 1
    assert loaded.round == 40 * 200
    assert "unread rules" in [one.kind for one in loaded.report.notes]
    loaded.save(tmp_path / "again")
    eh.load(tmp_path / "again")


def test_a_rule_that_decides_otherwise_leaves_the_policy(other_versions, tmp_path):
    """It can be read, and nobody would notice; the last people on file do."""
    learner = lived()
    learner.save(tmp_path / "learner")
    other_versions()
    with pytest.warns(UserWarning, match=r"scikit-learn .* \(here 99.0\).*decide alike"):
        alike = eh.load(tmp_path / "learner")
    assert not any(isinstance(rule, Unread) for rule in alike.state.process.members)
    assert alike.policy == learner.policy
    alike.save(tmp_path / "again")

    changed = fitted_in(learner)[0].model[-1]
    honest = Fitted.from_json.__func__

    def otherwise(cls, data):
        rule = honest(cls, data)
        if np.array_equal(rule.model[-1].coef_, changed.coef_):
            rule.model[-1].intercept_ = rule.model[-1].intercept_ + 0.5
        return rule

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(storage.HYPOTHESES, "fitted", lambda data: otherwise(Fitted, data))
        with pytest.warns(UserWarning, match="1 cannot be used here and leave the policy"):
            loaded = eh.load(tmp_path / "learner")
    gone = [rule for rule in loaded.state.process.members if isinstance(rule, Unread)]
    assert len(gone) == 1
    assert "decides otherwise here about" in gone[0].reason
    assert "of 512 people" in gone[0].reason


def test_a_model_that_breaks_when_it_is_asked_leaves_the_policy(other_versions, tmp_path):
    """As a scaler that lacks an attribute of the other version, and answers nothing: also where
    the rule rejected all of the last people.
    """
    learner = lived()
    learner.save(tmp_path / "learner")
    other_versions()
    with pytest.MonkeyPatch.context() as patch:

        def fails(self, X):
            raise AttributeError("'StandardScaler' object has no attribute '_new'")

        patch.setattr(StandardScaler, "transform", fails)
        with pytest.warns(UserWarning, match="leave the policy"):
            loaded = eh.load(tmp_path / "learner")
        assert loaded.learned_weight == 0
    go_on(loaded, 400, 2)


def test_under_the_same_versions_nobody_is_asked_again(tmp_path, recwarn, monkeypatch):
    learner = lived()
    learner.save(tmp_path / "learner")
    asked = []
    monkeypatch.setattr(storage, "_said_by", lambda *_: asked.append(1))
    eh.load(tmp_path / "learner")
    assert not asked
    assert not recwarn.list


def test_bytes_that_were_changed_are_an_error_and_no_unread_rule(tmp_path):
    """Only what is sound and cannot be read leaves its place; the enemy gets an error."""
    learner = lived()
    learner.save(tmp_path / "learner")
    with np.load(tmp_path / "learner") as members:
        arrays = dict(members)
    document = json.loads(bytes(arrays["document"]))
    stored = next(iter(document["models"].values()))
    stored["data"] = stored["data"][:-8] + "AAAAAAA="
    arrays["document"] = np.frombuffer(json.dumps(document).encode(), dtype=np.uint8)
    with (tmp_path / "changed").open("wb") as file:
        np.savez(file, **arrays)
    with pytest.raises(eh.errors.StorageError, match="hash"):
        eh.load(tmp_path / "changed")


def test_other_learners_say_which_versions_to_install(cannot_read, tmp_path):
    from evenhand.learners import FairOnGathered

    learner = FairOnGathered(
        make_pipeline(StandardScaler(), LogisticRegression()), "fpr", 0.3, seed=1
    )
    go_on(learner, 1000, 1)
    hashes = [rule._stored.sha256 for rule in learner.policy.hypotheses if hasattr(rule, "model")]
    assert hashes
    learner.save(tmp_path / "learner")
    cannot_read(*hashes)
    with pytest.raises(eh.errors.StorageError, match="install the versions"):
        eh.load(tmp_path / "learner")
