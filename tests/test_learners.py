"""The learners that people use, and `load`: a loaded learner goes on as the stored one, tosses
fresh coins unless it is asked not to, and a file that somebody has changed is an error.
"""

import inspect
import itertools
import json
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.play import FPR, WORLD, certified, every_learner, play, two_phase, world

import evenhand as eh
from evenhand import storage
from evenhand.algorithms.baselines import Fixed
from evenhand.bandit import PracticalSchedule
from evenhand.bounds import ClopperPearson
from evenhand.errors import NotSerialisable, StorageError
from evenhand.fairness import FalseNegativeRate, SelectionRate
from evenhand.hypotheses import (
    ACCEPT_ALL,
    Estimator,
    FiniteClass,
    Linear,
    ScoreThresholds,
    Stumps,
    Threshold,
)
from evenhand.learner import EpochLearner
from evenhand.learners import LEARNERS
from evenhand.policies import Mixture
from evenhand.rounds import windows
from evenhand.words import Prices


def test_help_shows_how_a_learner_is_made():
    for learner in (eh.CertifiedLearner, eh.TwoPhaseLearner):
        assert list(inspect.signature(learner).parameters)[:3] == ["hypotheses", "rate", "limit"]


# going on


def continues(learner, path, seed, **how):
    """Whether the learner and its loaded copy go on alike for 1500 rounds."""
    learner.save(path)
    copy = eh.load(path, same_coins=True)
    assert type(copy) is type(learner)
    assert copy.report == learner.report
    assert copy.params == learner.params
    assert play(copy, 1500, seed, **how) == play(learner, 1500, seed, **how)
    assert copy.report == learner.report


@pytest.mark.parametrize("rounds", [0, 64, 1500])
@pytest.mark.parametrize("name", list(every_learner()))
def test_a_loaded_learner_continues_bit_for_bit(name, rounds, tmp_path):
    learner = every_learner()[name]
    play(learner, rounds, 1, told=0.8)
    continues(learner, tmp_path / "learner.npz", 2, told=0.8)


@pytest.mark.parametrize(
    "settings",
    [
        {"schedule": "theory"},
        {"schedule": PracticalSchedule(0.3, 2.0)},
        {"bound": "clopper-pearson"},
        {"bound": ClopperPearson()},
        {"rate": [FPR, FalseNegativeRate(), SelectionRate()], "limit": 0.6},
        {"prices": Prices(2.0, 0.5)},
        {"prices": Prices(np.array([2.0, 3.0]), 0.5)},
        {"slack_rule": "as printed"},
        {"slack_rule": "as printed", "bound": "as printed", "limit": None, "comparator_gap": 0.1},
        {"method": "saddle-point"},
        {"method": "saddle-point", "oracle_tolerance": 0.05, "estimator": "two-sided"},
        {"epochs": "every-round", "exploration_rounds": 300, "limit": None},
        {
            "epochs": "every-round",
            "exploration_rounds": 300,
            "limit": None,
            "estimator": "two-sided",
            "group_use": "decide",
        },
        {"tradeoff_exponent": 0.3, "limit": None},
        {"seed": None},
    ],
    ids=str,
)
def test_every_setting_is_kept(settings, tmp_path):
    learner = two_phase(**settings)
    priced = isinstance(settings.get("prices"), Prices) and np.ndim(settings["prices"].false_accept)
    given = {"prices": lambda s: Prices(np.linspace(0, 2, len(s)), 0.5)} if priced else {}
    play(learner, 700, 1, told=0.9, **given)
    continues(learner, tmp_path / "x", 3, told=0.9, **given)


def test_one_by_one_with_prices_and_pending_labels(tmp_path):
    learner = two_phase()
    prices = lambda s: Prices(s.features[:, 0] / 6, np.full(len(s), 0.5))  # noqa: E731
    play(learner, 700, 1, block=1, told=0.5, prices=prices)
    pending = learner.report.missing_labels
    assert pending > 100
    continues(learner, tmp_path / "x", 2, block=1, told=0.5, prices=prices)
    copy = eh.load(tmp_path / "x")
    assert copy.report.missing_labels == pending
    copy.observe(windows.first_missing(copy.rounds, may_come=True), 1)
    assert copy.report.missing_labels == pending - 1


@pytest.mark.parametrize("names", [(-1, 1), ("north", "south"), (True, False)])
def test_groups_of_any_kind_survive(names, tmp_path):
    env = world(names)
    learner = two_phase(hypotheses=env.hypotheses)
    play(learner, 500, 1, environment=env)
    continues(learner, tmp_path / "x", 2, environment=env)


def test_groups_of_several_kinds_survive(tmp_path):
    class Mixed:
        @staticmethod
        def draw(rows, generator):
            found = WORLD.draw(rows, generator)
            group = np.empty(rows, dtype=object)
            group[:] = [1 if g == "a" else "b" for g in found.group]
            return type(found)(found.features, group, found.label)

    learner = two_phase()
    play(learner, 500, 1, environment=Mixed, told=0.9)
    continues(learner, tmp_path / "x", 2, environment=Mixed)


def test_rounds_played_as_counts_are_kept(tmp_path):
    run = eh.simulate(two_phase(), WORLD, 1200, seed=1)
    run.learner.save(tmp_path / "x")
    copy = eh.load(tmp_path / "x", same_coins=True)
    assert copy.report == run.learner.report
    run.learner.open_epoch()
    assert copy.open_epoch() == run.learner.epoch


CONTINUOUS = {
    "stumps": Stumps(max_bins=8),
    "thresholds": ScoreThresholds(1),
    "listed": FiniteClass(
        [ACCEPT_ALL, Threshold(0, 0.3, 3), Threshold(1, -0.2, 3, at_least=False)]
    ),
}


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_classes_are_stored_whole(name, tmp_path):
    class People:
        @staticmethod
        def draw(rows, generator):
            x = generator.normal(size=(rows, 3))
            y = np.where(x[:, 0] + x[:, 1] + generator.normal(size=rows) > 0, 1, -1)
            return eh.LabelledSample(x, generator.choice(["a", "b"], rows), y)

    learner = two_phase(hypotheses=CONTINUOUS[name], limit=0.8, comparator_gap=0.1)
    play(learner, 700, 1, environment=People)
    assert learner.epoch.phase == "bandit"
    continues(learner, tmp_path / "x", 2, environment=People)


def rules():
    return FiniteClass([lambda x, g: x[:, 0] < 2, lambda x, g: x[:, 0] % 3 < 2, ACCEPT_ALL])


def test_functions_are_handed_over_again_on_loading(tmp_path):
    learner = two_phase(hypotheses=rules())
    play(learner, 1200, 1)
    assert learner.epoch.phase == "bandit"
    learner.save(tmp_path / "x")
    with pytest.raises(NotSerialisable):
        eh.load(tmp_path / "x")
    with pytest.raises(StorageError):
        eh.load(tmp_path / "x", hypotheses=Stumps())
    copy = eh.load(tmp_path / "x", hypotheses=learner.hypotheses, same_coins=True)
    assert copy.report == learner.report
    other = eh.load(tmp_path / "x", hypotheses=rules(), same_coins=True)
    expected = play(learner, 600, 2)
    assert play(copy, 600, 2) == expected
    assert play(other, 600, 2) == expected


@pytest.mark.parametrize(
    "classifier",
    [
        make_pipeline(StandardScaler(), LogisticRegression()),
        RandomForestClassifier(n_estimators=5, max_depth=3, random_state=0),
    ],
    ids=lambda c: type(c).__name__,
)
def test_a_learner_with_a_model_of_ones_own_comes_back(tmp_path, classifier):
    """Stored with skops: the loaded learner decides as the one that was stored."""
    learner = certified(hypotheses=Estimator(classifier), limit=0.6)
    play(learner, 4000, 1)
    kinds = {type(rule).__name__ for rule in learner.policy.hypotheses}
    assert "Fitted" in kinds  # one of its models decides
    learner.save(tmp_path / "x")
    copy = eh.load(tmp_path / "x", same_coins=True)
    assert play(copy, 300, 2) == play(learner, 300, 2)


class Mostly(EpochLearner):
    """A learner of one's own: an algorithm, and the settings with which it is made again."""

    def __init__(self, chance=0.8, *, seed=None):
        policy = Mixture((ACCEPT_ALL, eh.hypotheses.REJECT_ALL), (chance, 1 - chance))
        algorithm = Fixed((FPR,), Prices(), policy)
        super().__init__(algorithm, seed=seed, settings={"chance": chance, "seed": seed})


def test_a_learner_of_one_s_own_is_loaded_once_it_is_registered(tmp_path, monkeypatch):
    learner = Mostly(0.7, seed=1)
    play(learner, 100, 0)
    learner.save(tmp_path / "x")
    with pytest.raises(StorageError):
        eh.load(tmp_path / "x")
    monkeypatch.setitem(LEARNERS, storage.stored_name(Mostly), Mostly)
    copy = eh.load(tmp_path / "x", same_coins=True)
    assert type(copy) is Mostly
    assert play(copy, 100, 1) == play(learner, 100, 1)
    assert dict(learner.restarted(2).params) == {"learner": "Mostly", "chance": 0.7, "seed": 2}


# files that somebody has changed


def lived(learner, *, at=False):
    """A learner that has seen everything: unknown and late groups, people overruled and erased,
    labels that are still out.
    """
    people = np.random.default_rng(0)
    for now in range(5):
        sample = WORLD.draw(250, people)
        told = sample.group.astype(object)
        told[::10] = None
        decisions = learner.decide(sample.features, told, **({"at": float(now)} if at else {}))
        learner.report_group(decisions.round[:10], sample.group[:10])
        accepted = np.flatnonzero(decisions.accept)[:-3]
        learner.observe(decisions.first_round + accepted, sample.label[accepted])
        learner.overrule(decisions.first_round + accepted[:2], False)
        learner.erase(decisions.first_round + accepted[2:4])
    return learner


def counted():
    """Rounds that were played as counts and have not been looked at yet."""
    return eh.simulate(certified(), WORLD, 1500, 1).learner


def explored(**settings):
    learner = two_phase(**settings)
    play(learner, 1500, 1, block=250)
    return learner


def nominated():
    """A fitted class: rules that joined one by one, and audits by which they were chosen."""
    generator = np.random.default_rng(0)
    learner = certified(hypotheses=Linear(), horizon=20_000)
    for _ in range(6):
        x = generator.normal(size=(400, 2))
        y = np.where(x[:, 0] + generator.normal(size=400) > 0, 1, -1)
        decisions = learner.decide(x, generator.choice(["a", "b"], 400))
        learner.observe(
            decisions.first_round + np.flatnonzero(decisions.accept), y[decisions.accept]
        )
    assert len(learner.state.process.members) > 0
    return learner


LIVED = {
    "betting": lambda: lived(certified()),
    "waiting": lambda: lived(certified(maturity=3.0), at=True),
    "nominated": nominated,
    "group decides": lambda: explored(group_use="decide"),
    "counted": counted,
    "two-phase": explored,
}


class Changed:
    """The parts of a stored learner, to be changed one by one."""

    def __init__(self, learner, path):
        learner.save(path)
        self.path = path
        with np.load(path) as zipped:
            self.arrays = {name: zipped[name] for name in zipped.files}
        self.text = bytes(self.arrays.pop("document")).decode()

    def load(self, document=None, **arrays):
        """As from a file with this content; many are tried, so they are not written."""
        text = self.text if document is None else json.dumps(document)
        held = {name: array.copy() for name, array in {**self.arrays, **arrays}.items()}
        with patch.object(storage, "_contents", lambda _: (json.loads(text), held)):
            return eh.load(self.path)

    @property
    def document(self):
        return json.loads(self.text)

    def is_an_error(self, *named, document=None, **arrays):
        with pytest.raises(StorageError) as caught:
            self.load(document, **arrays)
        for part in named:
            assert part in str(caught.value)


@pytest.fixture(params=LIVED)
def changed(request, tmp_path):
    return Changed(LIVED[request.param](), tmp_path / "x")


@pytest.fixture
def betting(tmp_path):
    return Changed(LIVED["betting"](), tmp_path / "x")


def test_an_unchanged_file_is_loaded(changed):
    assert changed.load().report == eh.load(changed.path).report


def test_a_number_that_is_not_finite_is_an_error_in_every_array(changed):
    """In the last entry of each of them, wherever it is kept."""
    held = [
        name for name, array in changed.arrays.items() if array.dtype.kind == "f" and array.size
    ]
    for name, bad in zip(held, itertools.cycle([np.nan, np.inf, -np.inf]), strict=False):
        broken = changed.arrays[name].copy()
        broken.reshape(-1)[-1] = bad
        changed.is_an_error(str(bad), **{name: broken})
    assert len(held) > 1


def floats(data):
    """(container, key) of every float in a document."""
    for key, item in data.items() if isinstance(data, dict) else enumerate(data):
        if isinstance(item, float):
            yield data, key
        elif isinstance(item, dict | list):
            yield from floats(item)


def test_a_number_that_is_not_finite_is_an_error_in_every_place_of_the_document(changed):
    document = changed.document
    places = [place for part in storage.PARTS for place in floats(document[part])]
    for container, key in places[:: max(1, len(places) // 40)]:
        kept, container[key] = container[key], float("nan")
        changed.is_an_error("nan", document=document)
        container[key] = kept
    assert len(places) > 5


def test_an_array_of_another_length_is_an_error(changed):
    held = [name for name, array in changed.arrays.items() if array.ndim and len(array)]
    for place, name in enumerate(held):
        array = changed.arrays[name]
        other = array[:-1] if place % 2 else np.concatenate([array, array[-1:]])
        changed.is_an_error(**{name: other})


OTHER = {
    "limit": 0.4,
    "delta": 0.2,
    "rate": {"is": "record", "kind": "SelectionRate", "fields": {}},
    "group_use": "decide",
    "maturity": 77.0,
    "drift_false_alarm": 0.5,
    "seed": 99,
    "fallback": "reject",
    "audit_rate": 0.3,
    "audit_budget": 12.0,
    "horizon": 12345,
    "groups": {"is": "list", "items": ["a", "c"]},
    "prices": {
        "is": "record",
        "kind": "Prices",
        "fields": {"false_accept": 3.0, "false_reject": 1.0},
    },
}


def entry(part, name):
    """The entry of a stored dictionary."""
    return next(entry for entry in part["items"] if entry[0] == name)


def setting(document, name, *, kept=False):
    """The entry of a setting, in the settings or in what the shell repeats of them."""
    held = entry(document["shell"], "settings")[1] if kept else document["settings"]
    return entry(held, name)


@pytest.mark.parametrize("name", OTHER)
def test_a_setting_that_was_changed_is_an_error_that_names_it(name, betting):
    for kept in (False, True):
        document = betting.document
        setting(document, name, kept=kept)[1] = OTHER[name]
        betting.is_an_error(name, document=document)


@pytest.mark.parametrize(
    "name",
    ["limit", "delta", "rate", "group_use", "maturity", "drift_false_alarm", "seed"],
)
def test_a_setting_that_was_changed_everywhere_but_in_the_guarantee_is_an_error(name, betting):
    document = betting.document
    for kept in (False, True):
        setting(document, name, kept=kept)[1] = OTHER[name]
    betting.is_an_error(name, document=document)


def test_a_guarantee_that_was_changed_alone_is_an_error(betting):
    document = betting.document
    guarantee = document["state"]["fields"]["guarantee"]["fields"]
    others = {"limit": 0.5, "delta": 0.2, "seed": 5, "nominates": True, "maturity": 3.0}
    for name, other in others.items():
        kept, guarantee[name] = guarantee[name], other
        betting.is_an_error(name, document=document)
        guarantee[name] = kept
    assert betting.load(document).round == 1250


def test_settings_of_other_learners_are_held_against_what_they_were_made_with(tmp_path):
    changed = Changed(LIVED["two-phase"](), tmp_path / "x")
    for name, other in {"limit": 0.9, "delta": 0.3, "horizon": 9, "comparator_gap": 0.1}.items():
        document = changed.document
        setting(document, name)[1] = other
        changed.is_an_error(name, document=document)


def test_settings_that_were_added_or_taken_away_are_errors(betting):
    document = betting.document
    document["settings"]["items"].append(["colour", "blue"])
    betting.is_an_error("colour", document=document)
    document = betting.document
    items = document["settings"]["items"]
    document["settings"]["items"] = [one for one in items if one[0] != "fallback"]
    betting.is_an_error("fallback", document=document)


def test_a_shell_of_another_kind_is_an_error(betting):
    document = betting.document
    document["shell"]["items"].append(["decide", "nobody"])
    betting.is_an_error("decide", document=document)
    for name, other in {
        "seed": "many",
        "coins": 5,
        "audit_coins": None,
        "now": "noon",
        "columns": 0.5,
        "priced": 3,
        "settings": [],
    }.items():
        document = betting.document
        entry(document["shell"], name)[1] = other
        betting.is_an_error(name, document=document)
        document = betting.document
        document["shell"]["items"].remove(entry(document["shell"], name))
        betting.is_an_error(name, document=document)


@pytest.mark.parametrize(
    "name", ["ledger", "process", "gaps", "groups", "evidence", "guarantee", "records"]
)
def test_a_state_whose_parts_are_of_another_kind_is_an_error(name, betting):
    for other in ("none", 3, {"is": "list", "items": []}):
        document = betting.document
        document["state"]["fields"][name] = other
        betting.is_an_error(document=document)


def test_epochs_that_cannot_follow_each_other_are_errors(betting):
    document = betting.document
    epochs = entry(document["rounds"]["fields"], "epochs")[1]["items"]
    for change in (
        lambda: epochs.reverse(),
        lambda: epochs.pop(),
        lambda: epochs[-1]["fields"].update(rounds=1),
    ):
        kept = json.dumps(epochs)
        change()
        betting.is_an_error(document=document)
        epochs[:] = json.loads(kept)
    assert betting.load(document).round == 1250


def test_intervals_and_boxes_outside_of_what_is_possible_are_errors(betting):
    process = betting.document["state"]["fields"]["process"]["fields"]
    state = process["state"]["fields"]
    for name, low, high in (
        ("lower", 0, 1),
        ("upper", 0, 1),
        ("gap_lower", -1, 1),
        ("gap_upper", -1, 1),
    ):
        for outside in (low - 0.01, high + 0.01):
            place = state[name]["name"]
            broken = betting.arrays[place].copy()
            broken.reshape(-1)[0] = outside
            betting.is_an_error(name, **{place: broken})


def test_a_learner_that_went_wrong_is_not_stored_over_a_good_file(tmp_path):
    learner = LIVED["betting"]()
    learner.save(tmp_path / "x")
    before = (tmp_path / "x").read_bytes()
    wrong = {**learner.state.gaps, 1: (np.array([np.nan]), np.array([0.0]))}
    learner.state = replace(learner.state, gaps=wrong)
    with pytest.raises(NotSerialisable):
        learner.save(tmp_path / "x")
    assert (tmp_path / "x").read_bytes() == before


@pytest.mark.parametrize("name", LIVED)
def test_a_learner_that_has_lived_continues_bit_for_bit(name, tmp_path):
    learner = LIVED[name]()
    learner.save(tmp_path / "x")
    copy = eh.load(tmp_path / "x", same_coins=True)
    generator = np.random.default_rng(5)
    columns = learner.columns
    for now in range(20, 30):
        x = generator.integers(0, 6, (100, columns)).astype(float)
        group, label = generator.choice(["a", "b"], 100), generator.choice([1, -1], 100)
        both = [one.decide(x, group, at=float(now)) for one in (learner, copy)]
        assert (both[0].accept == both[1].accept).all()
        assert both[0].propensity.tobytes() == both[1].propensity.tobytes()
        for one in (learner, copy):
            one.observe(both[0].round[both[0].accept], label[both[0].accept])
    assert copy.report == learner.report


def test_a_learner_says_in_one_line_what_it_limits_and_where_it_stands():
    learner = eh.CertifiedLearner(eh.Stumps(), "equalized_odds", 0.05, 0.05, seed=0)
    assert repr(learner).startswith("<CertifiedLearner: FPR and FNR gap at most 0.05, 0 rounds")
    assert repr(eh.learners.AcceptAll()).startswith("<AcceptAll: 0 rounds")
