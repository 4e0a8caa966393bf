import itertools
import json
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from tests.learners.play import FPR, WORLD, everybody, play, two_phase, world

import evenhand as eh
from evenhand.bandit import PracticalSchedule
from evenhand.bounds import ClopperPearson
from evenhand.errors import InvalidInput, NotSerialisable, StorageError
from evenhand.fairness import FalseNegativeRate, SelectionRate
from evenhand.hypotheses import (
    ACCEPT_ALL,
    Estimator,
    FiniteClass,
    Linear,
    ScoreThresholds,
    Stumps,
    Threshold,
    class_from_json,
    class_to_json,
)
from evenhand.learners import Uniform, storage
from evenhand.learners.epochs import LearnerState
from evenhand.randomness import stream
from evenhand.words import Prices


def continues(learner, path, seed, **how):
    """Whether the learner and its loaded copy go on alike for 1500 rounds."""
    learner.save(path)
    copy = eh.load(path)
    assert type(copy) is type(learner)
    assert copy.report == learner.report
    assert copy.params == learner.params
    assert play(copy, 1500, seed, **how) == play(learner, 1500, seed, **how)
    assert copy.report == learner.report


@pytest.mark.parametrize("rounds", [0, 1, 64, 333, 1500])
@pytest.mark.parametrize("name", list(everybody()))
def test_a_loaded_learner_continues_bit_for_bit(name, rounds, tmp_path):
    learner = everybody()[name]
    play(learner, rounds, 1, told=0.8)
    continues(learner, tmp_path / "learner.npz", 2, told=0.8)


@pytest.mark.parametrize(
    "settings",
    [
        {"schedule": "theory"},
        {"schedule": PracticalSchedule(0.3, 2.0)},
        {"bound": "clopper-pearson"},
        {"bound": ClopperPearson()},
        {"rate": [FPR, FalseNegativeRate(), SelectionRate()], "allowed_gap": 0.6},
        {"prices": Prices(2.0, 0.5)},
        {"prices": Prices(np.array([2.0, 3.0]), 0.5)},
        {"reading": "paper"},
        {"tradeoff_exponent": 0.3, "allowed_gap": None},
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
    block = next(block for block in copy.state.book.blocks if not block.resolved.all())
    copy.observe(block.first + int(np.argmin(block.resolved)), 1)
    assert copy.report.missing_labels == pending - 1


@pytest.mark.parametrize("names", [(-1, 1), ("north", "south"), (True, False)])
def test_groups_of_any_kind_survive(names, tmp_path):
    env = world(names)
    learner = two_phase(hypotheses=env.hypotheses)
    play(learner, 500, 1, environment=env)
    continues(learner, tmp_path / "x", 2, environment=env)


def test_groups_as_objects_survive(tmp_path):
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
    copy = eh.load(tmp_path / "x")
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

    learner = two_phase(hypotheses=CONTINUOUS[name], allowed_gap=0.8, comparator_gap=0.1)
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
    with pytest.raises(NotSerialisable, match=r"load\(path, hypotheses=\.\.\.\)"):
        eh.load(tmp_path / "x")
    with pytest.raises(StorageError, match="was stored with"):
        eh.load(tmp_path / "x", hypotheses=Stumps())
    copy = eh.load(tmp_path / "x", hypotheses=learner.hypotheses)
    assert copy.report == learner.report
    other = eh.load(tmp_path / "x", hypotheses=rules())
    expected = play(learner, 600, 2)
    assert play(copy, 600, 2) == expected
    assert play(other, 600, 2) == expected


@pytest.mark.parametrize(
    "hypotheses",
    [
        WORLD.hypotheses,
        *CONTINUOUS.values(),
        ScoreThresholds(2, per_group=True),
        Linear(0.5),
        Estimator(DecisionTreeClassifier(max_depth=3)),
        Estimator(LogisticRegression(C=0.1)),
        Estimator(make_pipeline(StandardScaler(), LogisticRegression())),
        Estimator(RandomForestClassifier(n_estimators=3)),
    ],
    ids=repr,
)
def test_classes_go_through_json(hypotheses):
    data = class_to_json(hypotheses)
    read = class_from_json(json.loads(json.dumps(data)))
    if "classifier_params" in read.params:  # a pipeline's parts are named by their addresses
        assert repr(read.classifier) == repr(hypotheses.classifier)
    else:
        assert read.params == hypotheses.params
        assert class_to_json(read) == data


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
    learner = certified(hypotheses=Estimator(classifier), allowed_gap=0.6)
    play(learner, 4000, 1)
    kinds = {type(rule).__name__ for rule in learner.policy.hypotheses}
    assert "Fitted" in kinds  # one of its models decides
    learner.save(tmp_path / "x")
    copy = eh.load(tmp_path / "x")
    assert play(copy, 300, 2) == play(learner, 300, 2)


@pytest.mark.parametrize(
    "hypotheses",
    [
        rules(),
        Estimator(make_pipeline(FunctionTransformer(lambda rows: rows), LogisticRegression())),
    ],
    ids=lambda h: type(h).__name__,
)
def test_what_is_no_data_says_so(hypotheses):
    with pytest.raises(NotSerialisable, match="hypotheses="):
        class_to_json(hypotheses)


def test_classes_of_one_s_own_are_handed_over_again():
    class Mine(Stumps):
        pass

    with pytest.raises(NotSerialisable, match="Mine is a class of your own"):
        class_to_json(Mine())


@pytest.mark.parametrize(
    "where",
    [
        ("os", "system"),
        ("sklearn.base", "clone"),
        ("sklearn.linear_model", "Ridge"),
        ("sklearnish.evil", "X"),
    ],
)
def test_nothing_but_classifiers_of_scikit_learn_is_made_from_a_name(where):
    with pytest.raises(InvalidInput, match="is no classifier of scikit-learn"):
        class_from_json({"kind": "estimator", "module": where[0], "name": where[1], "settings": {}})


def test_a_damaged_file_is_refused_at_every_length(tmp_path):
    learner = two_phase()
    play(learner, 200, 0)
    learner.save(tmp_path / "x")
    whole = (tmp_path / "x").read_bytes()
    for cut in [0, 1, 3, 4, 10, *range(20, len(whole), max(1, len(whole) // 40))]:
        (tmp_path / "y").write_bytes(whole[:cut])
        with pytest.raises(StorageError):
            eh.load(tmp_path / "y")


def test_a_flipped_bit_is_never_loaded_as_another_learner(tmp_path):
    learner = two_phase()
    play(learner, 200, 0)
    learner.save(tmp_path / "x")
    whole = (tmp_path / "x").read_bytes()
    draw = np.random.default_rng(0)
    for place in draw.integers(0, len(whole), 150):
        broken = bytearray(whole)
        broken[place] ^= 1 << int(draw.integers(8))
        (tmp_path / "y").write_bytes(bytes(broken))
        try:
            found = eh.load(tmp_path / "y")
        except StorageError:
            continue
        assert (
            found.report == learner.report
        )  # the bit lay where the zip keeps nothing, a date for example


def test_files_of_another_kind_are_refused(tmp_path):
    (tmp_path / "text").write_text("not a learner")
    np.save(tmp_path / "array.npy", np.zeros(3))
    np.savez(tmp_path / "arrays.npz", a=np.zeros(3))
    np.savez(tmp_path / "other.npz", document=np.frombuffer(b'{"format": "recipe"}', np.uint8))
    np.savez(tmp_path / "list.npz", document=np.frombuffer(b"[1]", np.uint8))
    np.savez(tmp_path / "pickle.npz", document=np.array([{}], dtype=object))
    for name in ("text", "array.npy", "arrays.npz", "other.npz", "list.npz", "pickle.npz"):
        with pytest.raises(StorageError, match=name):
            eh.load(tmp_path / name)
    with pytest.raises(FileNotFoundError):
        eh.load(tmp_path / "nothing")


def rewritten(path, change):
    with np.load(path) as zipped:
        arrays = {name: zipped[name] for name in zipped.files}
    document = json.loads(bytes(arrays["document"]))
    change(document)
    arrays["document"] = np.frombuffer(json.dumps(document).encode(), np.uint8)
    with path.open("wb") as file:
        np.savez(file, **arrays)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (
            lambda d: d.update(version=4),
            "version 4 of the format, under rules 3; this evenhand reads version 3, rules 3",
        ),
        (lambda d: d.update(rules=1), "under rules 1; this evenhand reads version 3, rules 3"),
        (lambda d: d.pop("rules"), "under rules None"),
        (lambda d: d.pop("state"), "lacks state"),
        (lambda d: d.update(state={"is": "dict"}), "malformed"),
        (lambda d: d.update(state={"is": "record"}), "malformed"),
        (lambda d: d.update(state={"is": "dict", "items": [1, 2]}), "malformed"),
        (lambda d: d.update(settings={"is": "list", "items": 3}), "malformed"),
        (lambda d: d.update(learner="Oracle"), "holds a 'Oracle'"),
        (lambda d: d.update(state={"is": "pickle"}), "kind 'pickle'"),
        (
            lambda d: d.update(state={"is": "record", "kind": "Popen", "fields": {}}),
            "'Popen', which is not registered",
        ),
        (lambda d: d.update(state={"is": "array", "name": "zz"}), "malformed"),
        (
            lambda d: d.update(
                state={
                    "is": "generator",
                    "state": {"is": "dict", "items": [["bit_generator", "os"]]},
                }
            ),
            "'os' is not a bit generator",
        ),
    ],
)
def test_documents_that_make_no_sense_are_refused(change, match, tmp_path):
    two_phase().save(tmp_path / "x")
    rewritten(tmp_path / "x", change)
    with pytest.raises(StorageError, match=match):
        eh.load(tmp_path / "x")


def test_saving_replaces_at_once_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "x"
    learner = two_phase()
    learner.save(path)
    before = path.read_bytes()
    play(learner, 100, 0)

    def full(*_, **__):
        raise OSError("no space left on device")

    monkeypatch.setattr(storage.os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        learner.save(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["x"]
    monkeypatch.undo()
    learner.save(path)
    assert eh.load(path).round == 100
    assert stat.S_IMODE(path.stat().st_mode) & 0o200


def test_saving_changes_nothing(tmp_path):
    one, two = two_phase(), two_phase()
    for seed in range(8):
        one.save(tmp_path / "x")
        assert play(one, 100, seed, block=1) == play(two, 100, seed, block=1)


def test_a_path_may_be_text(tmp_path):
    two_phase().save(str(tmp_path / "x"))
    assert eh.load(str(tmp_path / "x")).round == 0
    assert Path(tmp_path / "x").exists()


class Counting(Uniform):
    """A learner of one's own that remembers more than its settings."""

    def __init__(self, **settings):
        super().__init__(**settings)
        self._seen = 0

    def decide(self, *args, **named):
        self._seen += 1
        return super().decide(*args, **named)


class Remembering(Counting):
    def _state(self):
        return super()._state() | {"_seen": self._seen}


def test_state_that_would_be_forgotten_is_refused_and_declared_state_is_kept(tmp_path):
    with pytest.raises(NotSerialisable, match="keeps _seen"):
        Counting(seed=1).save(tmp_path / "x")
    learner = Remembering(seed=1)
    play(learner, 100, 0)
    learner.save(tmp_path / "x")
    copy = eh.load(tmp_path / "x")
    assert type(copy) is Remembering
    assert copy._seen == 2


@dataclass(eq=False, kw_only=True)
class CountingState(LearnerState):
    seen: int = 0


class Recording(Uniform):
    """A learner of one's own with a state of its own."""

    def _first_state(self, seed):
        return CountingState(seed=seed, coins=stream(seed, "coins"))

    def decide(self, *args, **named):
        self.state.seen += 1
        return super().decide(*args, **named)


def test_a_state_of_one_s_own_is_stored_field_by_field(tmp_path):
    learner = Recording(seed=1)
    play(learner, 100, 0)
    learner.save(tmp_path / "x")
    copy = eh.load(tmp_path / "x")
    assert type(copy.state) is CountingState
    assert copy.state.seen == learner.state.seen == 2
    assert learner._state()["_seen"] == 2
    assert play(copy, 100, 1) == play(learner, 100, 1)


@dataclass(frozen=True)
class Pair:
    left: object
    right: object


VALUES = [
    None,
    True,
    3,
    2**70,
    0.1,
    "text",
    [1, [2.5, None]],
    (1, ("a", 2)),
    {1, 2},
    {"a": 1, 2: (3,), (4, 5): None},
    Pair(1, (2, "x")),
]


@pytest.mark.parametrize("value", VALUES, ids=str)
def test_values_go_through_text_and_back(value):
    storage.storable(Pair)
    encoder = storage.Encoder()
    text = json.dumps(encoder.encode(value))
    found = storage.Decoder(encoder.arrays).decode(json.loads(text))
    assert found == value
    assert type(found) is type(value)


def test_arrays_and_generators_go_through_text_and_back():
    generator = np.random.default_rng(3)
    generator.random(5)
    odd = np.empty(2, dtype=object)
    odd[:] = [(1, 2), "x"]
    encoder = storage.Encoder()
    text = json.dumps(
        encoder.encode([np.float64(0.5), np.eye(2), np.array(["a", "bcd"]), odd, generator])
    )
    assert storage.not_finite(json.loads(text), encoder.arrays, "here") is None
    number, eye, texts, objects, again = storage.Decoder(encoder.arrays).decode(json.loads(text))
    assert number == 0.5
    assert np.array_equal(eye, np.eye(2))
    assert texts.tolist() == ["a", "bcd"]
    assert objects.tolist() == [(1, 2), "x"]
    assert again.random() == generator.random()


def test_what_is_not_registered_is_not_written():
    for value in (object(), lambda: 0, np.random.RandomState(0), Path()):
        with pytest.raises(NotSerialisable, match="without pickle"):
            storage.Encoder().encode(value)


def test_no_pickle_anywhere():
    source = Path(storage.__file__).parent
    for module in ("storage.py", "loading.py"):
        lines = [
            line
            for line in (source / module).read_text().splitlines()
            if "import pickle" in line or "allow_pickle=True" in line
        ]
        assert not lines


# files that somebody has changed


def certified(**settings):
    given = dict(
        hypotheses=WORLD.hypotheses, rate=FPR, allowed_gap=0.2, failure_probability=0.05, seed=1
    )
    return eh.CertifiedLearner(**{**given, **settings})


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
        learner.tell_group(decisions.round[:10], sample.group[:10])
        accepted = np.flatnonzero(decisions.accept)[:-3]
        learner.observe(decisions.first_round + accepted, sample.label[accepted])
        learner.overrule(decisions.first_round + accepted[:2], False)
        learner.erase(decisions.first_round + accepted[2:4])
    return learner


def counted():
    """Rounds that were played as counts and have not been looked at yet."""
    return eh.simulate(certified(), WORLD, 1500, 1).learner


def promised(**settings):
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
    assert len(learner.state.run.process.members) > 0
    return learner


LIVED = {
    "betting": lambda: lived(certified()),
    "waiting": lambda: lived(certified(maturity=3.0), at=True),
    "audits": lambda: lived(certified(bound="kl")),
    "nominated": nominated,
    "group decides": lambda: promised(group_use="decide"),
    "counted": counted,
    "two-phase": promised,
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

    def refused(self, *match, document=None, **arrays):
        with pytest.raises(StorageError) as caught:
            self.load(document, **arrays)
        for part in match:
            assert part in str(caught.value)


@pytest.fixture(params=LIVED)
def changed(request, tmp_path):
    return Changed(LIVED[request.param](), tmp_path / "x")


def test_an_unchanged_file_is_loaded(changed):
    assert changed.load().report == eh.load(changed.path).report


def test_a_number_that_is_not_finite_is_refused_in_every_array(changed):
    """In the last entry of each of them, wherever it is kept."""
    held = [
        name for name, array in changed.arrays.items() if array.dtype.kind == "f" and array.size
    ]
    for name, bad in zip(held, itertools.cycle([np.nan, np.inf, -np.inf]), strict=False):
        broken = changed.arrays[name].copy()
        broken.reshape(-1)[-1] = bad
        changed.refused("every stored number is finite", str(bad), **{name: broken})
    assert len(held) > 5


def floats(data):
    """(container, key) of every float in a document."""
    for key, item in data.items() if isinstance(data, dict) else enumerate(data):
        if isinstance(item, float):
            yield data, key
        elif isinstance(item, dict | list):
            yield from floats(item)


def test_a_number_that_is_not_finite_is_refused_in_every_place_of_the_document(changed):
    document = changed.document
    places = list(floats(document["state"])) + list(floats(document["settings"]))
    for container, key in places[:: max(1, len(places) // 40)]:
        kept, container[key] = container[key], float("nan")
        changed.refused("every stored number is finite", document=document)
        container[key] = kept
    assert len(places) > 5


def test_an_array_of_another_length_is_refused(changed):
    held = [name for name, array in changed.arrays.items() if array.ndim and len(array)]
    for place, name in enumerate(held):
        array = changed.arrays[name]
        changed.refused(**{name: array[:-1] if place % 2 else np.concatenate([array, array[-1:]])})


OTHER = {
    "allowed_gap": 0.4,
    "failure_probability": 0.2,
    "rate": {"is": "record", "kind": "SelectionRate", "fields": {}},
    "bound": "hoeffding",
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


def setting(document, name, *, kept=False):
    """The entry of a setting, in the settings or in what the state repeats of them."""
    held = document["settings"]
    if kept:
        held = next(value for key, value in document["state"]["items"] if key == "_settings")
    return next(entry for entry in held["items"] if entry[0] == name)


@pytest.mark.parametrize("name", OTHER)
def test_a_setting_that_was_changed_is_refused_with_both_values(name, tmp_path):
    changed = Changed(LIVED["betting"](), tmp_path / "x")
    for kept in (False, True):
        document = changed.document
        setting(document, name, kept=kept)[1] = OTHER[name]
        changed.refused(
            f"the setting {name} is ", "but the learner was made with ", document=document
        )


@pytest.mark.parametrize(
    "name",
    [
        "allowed_gap",
        "failure_probability",
        "rate",
        "bound",
        "group_use",
        "maturity",
        "drift_false_alarm",
        "seed",
    ],
)
def test_a_setting_that_was_changed_everywhere_but_in_the_promise_is_refused(name, tmp_path):
    changed = Changed(LIVED["betting"](), tmp_path / "x")
    document = changed.document
    for kept in (False, True):
        setting(document, name, kept=kept)[1] = OTHER[name]
    changed.refused(f"the setting {name} is ", document=document)


def test_a_promise_that_was_changed_alone_is_refused(tmp_path):
    changed = Changed(LIVED["betting"](), tmp_path / "x")
    document = changed.document
    state = dict(document["state"]["items"])
    promise = state["_life"]["fields"]["promise"]["fields"]
    for name, other in {
        "limit": 0.5,
        "failure_probability": 0.2,
        "seed": 5,
        "bound": "kl",
        "maturity": 3.0,
    }.items():
        kept, promise[name] = promise[name], other
        named = {"limit": "allowed_gap"}.get(name, name)
        changed.refused(f"the setting {named} is ", "the learner has promised", document=document)
        promise[name] = kept
    assert changed.load(document).round == 1250


def test_settings_of_other_learners_are_held_against_what_they_were_made_with(tmp_path):
    changed = Changed(LIVED["two-phase"](), tmp_path / "x")
    for name, other in {
        "allowed_gap": 0.9,
        "failure_probability": 0.3,
        "horizon": 9,
        "comparator_gap": 0.1,
    }.items():
        document = changed.document
        setting(document, name)[1] = other
        changed.refused(
            f"the setting {name} is {other}, but the learner was made with", document=document
        )


def test_settings_that_were_added_or_taken_away_are_refused(tmp_path):
    changed = Changed(LIVED["betting"](), tmp_path / "x")
    document = changed.document
    document["settings"]["items"].append(["colour", "blue"])
    changed.refused("the setting colour is 'blue'", document=document)
    document = changed.document
    document["settings"]["items"] = [
        entry for entry in document["settings"]["items"] if entry[0] != "maturity"
    ]
    changed.refused("the setting maturity", document=document)


def test_state_that_does_not_belong_there_or_is_of_another_kind_is_refused(tmp_path):
    changed = Changed(LIVED["betting"](), tmp_path / "x")
    document = changed.document
    document["state"]["items"].append(["decide", "nobody"])
    changed.refused("decide is missing from its state, or does not belong there", document=document)
    for name, other in {
        "_round": "many",
        "_epochs": 3,
        "_life": None,
        "_book": [],
        "_coins": 5,
        "_records": "none",
    }.items():
        document = changed.document
        next(entry for entry in document["state"]["items"] if entry[0] == name)[1] = other
        changed.refused(document=document)


def test_intervals_and_boxes_outside_of_what_is_possible_are_refused(tmp_path):
    changed = Changed(LIVED["betting"](), tmp_path / "x")
    document = changed.document
    state = dict(document["state"]["items"])["_life"]["fields"]["process"]["fields"]["state"][
        "fields"
    ]
    for name, low, high in (
        ("lower", 0, 1),
        ("upper", 0, 1),
        ("gap_lower", -1, 1),
        ("gap_upper", -1, 1),
    ):
        for outside in (low - 0.01, high + 0.01):
            place = state[name]["name"]
            broken = changed.arrays[place].copy()
            broken.reshape(-1)[0] = outside
            changed.refused(
                f"{name} of the stored BettingState leaves [{low}, {high}]", **{place: broken}
            )


def test_a_learner_that_went_wrong_is_not_stored_over_a_good_file(tmp_path):
    learner = LIVED["betting"]()
    learner.save(tmp_path / "x")
    before = (tmp_path / "x").read_bytes()
    learner.state.certified_gaps[1] = (np.array([np.nan]), np.array([0.0]))
    with pytest.raises(
        NotSerialisable,
        match=r"state\._records\.1\[0\] contains nan; every number of a stored learner is finite",
    ):
        learner.save(tmp_path / "x")
    assert (tmp_path / "x").read_bytes() == before


@pytest.mark.parametrize("name", LIVED)
def test_a_learner_that_has_lived_continues_bit_for_bit(name, tmp_path):
    learner = LIVED[name]()
    learner.save(tmp_path / "x")
    copy = eh.load(tmp_path / "x")
    generator = np.random.default_rng(5)
    columns = learner.state.columns
    for now in range(20, 30):
        x = generator.integers(0, 6, (100, columns)).astype(float)
        told = {"at": float(now)} if learner.maturity is not None else {}
        group, label = generator.choice(["a", "b"], 100), generator.choice([1, -1], 100)
        both = [one.decide(x, group, **told) for one in (learner, copy)]
        assert (both[0].accept == both[1].accept).all()
        assert both[0].propensity.tobytes() == both[1].propensity.tobytes()
        for one in (learner, copy):
            one.observe(both[0].round[both[0].accept], label[both[0].accept])
    assert copy.report == learner.report


def test_groups_of_many_people_are_stored_as_numbers():
    """An array of objects takes eight bytes for each person, not a line of text."""
    groups = np.array(["a", None, 1, True, 1.0, "a"] * 1000, dtype=object)
    encoder = storage.Encoder()
    text = json.dumps(encoder.encode(groups))
    assert len(text) < 200
    found = storage.Decoder(encoder.arrays).decode(json.loads(text))
    assert [(type(v), v) for v in found] == [(type(v), v) for v in groups]


def test_a_class_of_yours_may_be_called_like_one_of_ours(tmp_path):
    """It is stored under its module's name, and ours is found as before."""

    @dataclass(frozen=True)
    class Block:
        size: int

    storage.storable(Block)
    learner = Uniform(seed=1)
    learner.decide(np.zeros((3, 1)))
    learner.save(tmp_path / "learner")
    assert eh.load(tmp_path / "learner").round == 3
    assert storage.Encoder().record(Block(3))["kind"].endswith("Block")
    assert storage.Encoder().record(Block(3))["kind"] != "Block"
