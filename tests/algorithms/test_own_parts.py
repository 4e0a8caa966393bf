"""A learner that was constructed never dies: whatever a class, a rule or a model of the user's
does, and whatever people look like, the policy in force stays, a note says why, and evidence goes
on.
"""

import math

import numpy as np
import pytest

from evenhand import CertifiedLearner, Estimator, ScoreThresholds, Stumps, TwoPhaseLearner
from evenhand.algorithms.certified import start as certified_start
from evenhand.algorithms.certified.choose import PlanningInputs
from evenhand.algorithms.own_parts import OwnPartFailed, can_be_enumerated, watched
from evenhand.contracts import Hypothesis, HypothesisClass
from evenhand.errors import EvenhandError, NotFinite
from evenhand.hypotheses import ACCEPT_ALL, REJECT_ALL, FiniteClass
from evenhand.hypotheses.thresholds import Threshold

BLOCK = 50


class Broken(ValueError):
    """What a part of the user's raises."""


class HalfPlane(Hypothesis):
    """Accept iff w . x >= 0. fails: rows from this first column on cannot be judged."""

    def __init__(self, weights, fails=np.inf):
        self.weights = np.asarray(weights, dtype=np.float64)
        self.fails = fails

    def accepts(self, features, group=None):
        if (features[:, 0] > self.fails).any():
            raise Broken("too large a number")
        return features @ self.weights >= 0.0

    def describe(self, names=None):
        return f"accept if x . {self.weights.tolist()} >= 0"

    def to_json(self):
        return {"kind": "half-plane", "weights": self.weights.tolist()}


RULES = [HalfPlane([np.cos(turn), np.sin(turn)]) for turn in np.linspace(0.0, 6.0, 8)]


class HalfPlanes(HypothesisClass):
    """Eight half-planes, exact. calls: the numbers of calls of the oracle that fail."""

    exact = True
    uses_group = False
    params = {"name": "half-planes"}  # noqa: RUF012  (a toy)

    def __init__(self, rules=RULES, *, calls=()):
        self.rules = rules
        self.calls = calls
        self.asked = 0

    @property
    def log_size(self):
        return math.log(len(self.rules))

    def log_growth(self, rows, columns):
        return self.log_size

    def bind(self, features, group):
        if features.shape[1] != 2:
            raise Broken("two columns")
        return BoundHalfPlanes(self, features)


class BoundHalfPlanes:
    def __init__(self, given, features):
        self.given = given
        self.table = np.stack([rule.accepts(features) for rule in given.rules])

    def best(self, acceptance_cost):
        self.given.asked += 1
        if self.given.calls == "all" or self.given.asked in self.given.calls:
            raise Broken("no answer today")
        return self.given.rules[int(np.argmin(self.table @ acceptance_cost))]


class Listed(HalfPlanes):
    """The same, with all members listed."""

    def bind(self, features, group):
        return ListedHalfPlanes(self, features)


class ListedHalfPlanes(BoundHalfPlanes):
    def totals(self, channels):
        return channels @ self.table.T

    def hypothesis(self, member):
        return self.given.rules[member]


class Model:
    """A classifier whose fit fails."""

    _estimator_type = "classifier"

    def get_params(self, deep=True):
        return {}

    def set_params(self, **params):
        return self

    def fit(self, rows, label, sample_weight=None):
        raise Broken("no convergence")

    def predict(self, rows):
        return np.ones(len(rows))


def people(generator, number, columns=2):
    group = np.where(generator.random(number) < 0.5, "a", "b")
    rows = generator.normal(size=(number, columns))
    chance = 1.0 / (1.0 + np.exp(-2.0 * rows[:, 0]))
    return rows, group, np.where(generator.random(number) < chance, 1, -1)


def play(learner, blocks=60, *, seed=1, changed=lambda rows, group, label: None, then=None):
    """Blocks of people; `changed` changes them in place, `then` is called after each block."""
    generator = np.random.default_rng(seed)
    for _ in range(blocks):
        rows, group, label = people(generator, BLOCK)
        changed(rows, group, label)
        decisions = learner.decide(rows, group)
        learner.observe(decisions.round[decisions.accept], label[decisions.accept])
        if then is not None:
            then(learner)
    return learner


def certified(hypotheses, **settings):
    return CertifiedLearner(hypotheses, "fpr", 0.2, 0.1, seed=1, **settings)


def texts(learner):
    return [note.text for note in learner.report.notes if note.kind == "no rules"]


def constants_alone(learner):
    return all(rule in (ACCEPT_ALL, REJECT_ALL) for rule in learner.policy.hypotheses)


# people


def constant_until(round):
    """The first column is 1 for all people before this round."""
    seen = [0]

    def changed(rows, group, label):
        if seen[0] < round:
            rows[:] = 1.0
        seen[0] += len(rows)

    return changed


@pytest.mark.parametrize("hypotheses", [ScoreThresholds(0), Stumps()])
def test_a_score_that_is_constant_among_the_first_people_only_delays_the_start(hypotheses):
    learner = play(certified(hypotheses), 12, changed=constant_until(700))
    assert constants_alone(learner)
    (text,) = texts(learner)
    assert "tells the first 400 people apart" in text
    play(learner, 30, seed=2)
    assert texts(learner) == []
    assert learner.state.process.members
    assert learner.certificate.status == "certified"


def test_a_score_that_never_varies_leaves_constants_in_force():
    learner = play(certified(ScoreThresholds(0)), changed=constant_until(10**6))
    assert constants_alone(learner)
    assert len(texts(learner)) == 1


@pytest.mark.parametrize("rules", [[ACCEPT_ALL, REJECT_ALL], [ACCEPT_ALL]])
def test_a_class_of_constants_leaves_constants_in_force(rules):
    learner = play(certified(FiniteClass(rules)))
    assert constants_alone(learner)
    assert len(texts(learner)) == 1


def test_the_first_people_may_all_be_erased():
    def then(learner):
        if learner.round == 2 * BLOCK:
            learner.erase(np.arange(2 * BLOCK))

    learner = play(certified(ScoreThresholds(0)), then=then)
    assert learner.state.process.members
    assert texts(learner) == []


def test_one_group_alone_is_named():
    def changed(rows, group, label):
        group[:] = "a"

    learner = play(certified(ScoreThresholds(0)), 20, changed=changed)
    assert constants_alone(learner)
    (note,) = (note for note in learner.report.notes if note.kind == "waiting for people")
    assert "1 of the groups" in note.text


@pytest.mark.parametrize("outcome", [-1, 1])
def test_labels_that_are_all_the_same_leave_constants_in_force(outcome):
    def changed(rows, group, label):
        label[:] = outcome

    play(certified(ScoreThresholds(0)), 20, changed=changed)
    play(CertifiedLearner(ScoreThresholds(0), "selection", 0.2, 0.1, seed=1), 20, changed=changed)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_features_that_are_no_numbers_are_refused_and_the_next_people_are_not(bad):
    learner = play(certified(ScoreThresholds(0)), 5)
    rows, group, _ = people(np.random.default_rng(5), 4)
    rows[2, 0] = bad
    with pytest.raises(NotFinite):
        learner.decide(rows, group)
    assert learner.round == 5 * BLOCK
    play(learner, 5, seed=6)


# a class of the user's


def test_rules_are_nominated_from_a_class_that_does_not_list_them():
    assert can_be_enumerated(HalfPlanes()) is False
    assert can_be_enumerated(Listed()) is True
    learner = play(certified(HalfPlanes(), horizon=4000), 80)
    assert learner.nominates
    assert 0 < len(learner.state.process.members) < len(RULES)
    learner = play(certified(Listed()))
    assert not learner.nominates
    assert len(learner.state.process.members) == len(RULES)


class ListedAtFirst(Listed):
    """It lists its members on the two rows that it is tried on, and on no others."""

    def bind(self, features, group):
        few = len(features) == 2
        return super().bind(features, group) if few else HalfPlanes.bind(self, features, group)


def test_a_class_that_does_not_list_its_members_when_they_are_needed_leaves_constants(monkeypatch):
    learner = play(certified(ListedAtFirst()))
    assert constants_alone(learner)
    assert "exact = False" in texts(learner)[0]
    monkeypatch.setattr(certified_start, "MOST_LOG_SIZE", 1.0)
    learner = play(certified(Listed()))
    assert constants_alone(learner)
    assert f"{len(RULES)} members" in texts(learner)[0]


@pytest.mark.parametrize("calls", [(1,), (2, 3), "all"])
def test_an_oracle_that_fails_leaves_the_last_policy_and_evidence_goes_on(calls):
    learner = certified(HalfPlanes(calls=calls), horizon=4000)
    said = []
    play(learner, 80, then=lambda one: said.extend(texts(one)))
    assert "the class HalfPlanes raised Broken: no answer today" in said[0]
    assert learner.state.evidence.people > 3000
    assert bool(learner.state.process.members) is (calls != "all")
    assert constants_alone(learner) is (calls == "all")
    assert bool(texts(learner)) is (calls == "all")


def test_a_class_that_fails_when_it_is_bound_leaves_constants():
    class Fails(Listed):
        def bind(self, features, group):
            if len(features) > 2:
                raise Broken("no rows today")
            return super().bind(features, group)

    learner = play(certified(Fails()))
    assert constants_alone(learner)
    assert "no rows today" in texts(learner)[0]
    assert learner.state.evidence.people > 2000


def test_a_rule_that_cannot_judge_people_any_more_ends_the_run():
    """Nobody can say whom it accepts: what was certified about it cannot be continued. Here it has
    no weight in the policy, so it is asked when cohorts are counted.
    """
    rules = [*RULES[:4], HalfPlane(RULES[4].weights, fails=5.0)]
    learner = play(certified(Listed(rules)), 60)
    assert rules[4] in learner.state.process.members
    assert rules[4] not in learner.policy.hypotheses

    def changed(rows, group, label):
        rows[0, 0] = 6.0

    play(learner, 20, seed=2, changed=changed)
    (note,) = (note for note in learner.report.notes if note.kind == "suspended")
    assert "a rule of the kind HalfPlane raised Broken: too large a number" in note.text
    assert constants_alone(learner)
    assert learner.state.run > 1
    # the class cannot be asked about the first people of the new run either
    assert len(texts(learner)) == 1
    assert play(learner, 20, seed=3).state.evidence.people > 1000


def test_a_rule_of_the_policy_that_cannot_judge_a_person_refuses_the_call():
    """Before anybody is decided about: the next people are decided as ever."""
    learner = play(certified(Listed([HalfPlane(rule.weights, fails=5.0) for rule in RULES])), 60)
    rows, group, _ = people(np.random.default_rng(4), 4)
    with pytest.raises(Broken):
        learner.decide(np.where(rows == rows[0, 0], 6.0, rows), group)
    assert learner.round == 60 * BLOCK
    play(learner, 20, seed=5)


def test_a_model_that_cannot_be_fitted_leaves_constants_in_force():
    learner = play(certified(Estimator(Model()), horizon=4000), 80)
    assert constants_alone(learner)
    assert "cannot be fitted: no convergence" in texts(learner)[0]
    assert learner.state.evidence.people > 3000


def test_errors_of_evenhand_itself_are_not_caught(monkeypatch):
    """The control: a mistake in planning is raised, and the step can be repeated."""
    learner = play(certified(ScoreThresholds(0)), 10)
    with monkeypatch.context() as patch:
        patch.setattr(PlanningInputs, "by_price", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            play(learner, 20, seed=3)
    play(learner, 20, seed=4)


def test_what_a_watched_class_answers_is_what_it_answers():
    rows, _, label = people(np.random.default_rng(3), 100)
    plain, seen = Listed().bind(rows, None), watched(Listed()).bind(rows, None)
    cost = -label.astype(float)
    assert seen.best(cost) is plain.best(cost)
    assert seen.totals(cost[np.newaxis]).tolist() == plain.totals(cost[np.newaxis]).tolist()
    assert watched(ScoreThresholds(0)).__class__ is ScoreThresholds
    with pytest.raises(OwnPartFailed, match="two columns"):
        watched(HalfPlanes()).bind(rows[:, :1], None)


# the paper's learner


@pytest.mark.parametrize("hypotheses", [HalfPlanes(calls="all"), HalfPlanes(calls=(1, 2, 3))])
def test_a_two_phase_learner_keeps_its_policy_while_the_oracle_fails(hypotheses):
    learner = TwoPhaseLearner(
        hypotheses, "fpr", 0.6, 0.2, 6000, seed=1, comparator_gap=0.1, exploration_rounds=800
    )
    said = []
    play(learner, 60, then=lambda one: said.extend(texts(one)))
    assert "no answer today" in said[0]
    always = hypotheses.calls == "all"
    assert constants_alone(learner) is always
    assert bool(texts(learner)) is always


# any other way


def played_or_refused(seed):
    """A learner with settings and people by the dice; what it says if it is refused."""
    dice = np.random.default_rng(seed)
    columns = 2
    rules = [ACCEPT_ALL, REJECT_ALL, Threshold(0, 0.0, columns)]
    classes = [
        ScoreThresholds(0),
        Stumps(max_bins=3),
        FiniteClass(rules[: int(dice.integers(1, 4))]),
        Listed(),
    ]
    settings = {
        "accept_at_most": dice.choice([None, 0.3, 0.9]),
        "audit_budget": dice.choice([None, 5.0, 200.0]),
        "keep": str(dice.choice(["rows", "counts"])),
        "fallback": str(dice.choice(["accept", "reject"])),
    }
    rate = [
        str(one) for one in dice.choice(["fpr", "fnr", "selection"], dice.integers(1, 4), False)
    ]
    learner = CertifiedLearner(
        classes[int(dice.integers(4))],
        rate,
        float(dice.choice([0.02, 0.3])),
        0.5,
        seed=seed,
        **{name: None if value is None else value for name, value in settings.items()},
    )
    kinds = dice.choice([0, 0, 0, 1, 2], 6)
    label_kind, group_kind, feature_kind = kinds[:3]

    def changed(rows, group, label):
        if label_kind == 1:
            label[:] = 1
        if label_kind == 2:
            label[:] = np.where(group == "a", 1, -1)
        if group_kind == 1:
            group[:] = "a"
        if group_kind == 2:
            group[1:] = "a"
        if feature_kind == 1:
            rows[:] = np.round(rows[:, :1] > 3)
        if feature_kind == 2:
            rows[:, 0] = group == "a"

    def then(learner):
        if settings["keep"] == "rows" and kinds[3] == 1:
            learner.erase(np.arange(max(0, learner.round - 30), learner.round))
        if settings["keep"] == "rows" and kinds[4] == 1 and learner.round <= 150:
            learner.erase(np.arange(learner.round))

    play(learner, 16, seed=seed, changed=changed, then=then)
    assert learner.round == 16 * BLOCK
    return learner


@pytest.mark.parametrize("seed", range(30))
def test_no_people_and_no_settings_stop_a_learner(seed):
    learner = played_or_refused(seed)
    assert learner.certificate.to_json()
    assert learner.report.notes is not None


def test_errors_of_parts_are_no_errors_of_evenhand():
    """They never reach a user: step catches them."""
    assert not issubclass(OwnPartFailed, EvenhandError)
