"""Records and arrays as data: what is written comes back, what is not registered is not written,
and a damaged file is never taken for a learner.
"""

import json
import os
import stat
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from tests.play import WORLD, certified, play, two_phase

import evenhand as eh
from evenhand import storage
from evenhand.contracts import Hypothesis
from evenhand.errors import NotSerialisable, StorageError
from evenhand.learners import Uniform
from evenhand.rounds.stored import to_fields

# values


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


@pytest.mark.parametrize(
    "array",
    [np.zeros((0, 3)), np.eye(2), np.array([True, False]), np.array(["a", "bcd"]), np.arange(3)],
    ids=str,
)
def test_arrays_go_through_json_alone(array):
    found = storage.array_from_json(json.loads(json.dumps(storage.array_to_json(array))))
    assert found.dtype == array.dtype
    np.testing.assert_array_equal(found, array)


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "|O"},
        {"kind": "what"},
        {"shape": [7]},
        {"data": "AAAA"},
        {"data": "?"},
        {"data": 3},
    ],
)
def test_an_array_that_makes_no_sense_is_an_error(change):
    with pytest.raises(StorageError):
        storage.array_from_json({**storage.array_to_json(np.eye(2)), **change})


def test_what_is_not_registered_is_not_written():
    for value in (object(), lambda: 0, np.random.RandomState(0), Path()):
        with pytest.raises(NotSerialisable):
            storage.Encoder().encode(value)


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
    class Epoch:
        size: int

    storage.storable(Epoch)
    learner = Uniform(seed=1)
    learner.decide(np.zeros((3, 1)))
    learner.save(tmp_path / "learner")
    assert eh.load(tmp_path / "learner").round == 3
    kind = storage.Encoder().record(Epoch(3))["kind"]
    assert kind.endswith("Epoch")
    assert kind != "Epoch"


def test_no_pickle_anywhere():
    lines = Path(storage.__file__).read_text().splitlines()
    assert not [line for line in lines if "import pickle" in line or "allow_pickle=True" in line]


# a state alone


@pytest.mark.thorough
def test_a_state_goes_through_json_and_the_next_step_is_the_same():
    learner = certified()
    play(learner, 1000, 0)
    kept = json.loads(json.dumps(storage.state_to_json(learner.state, learner.hypotheses)))
    state = storage.state_from_json(kept, learner.hypotheses)
    assert storage.state_to_json(state, learner.hypotheses) == kept
    rounds = learner.rounds
    rounds.end_epoch_here()
    (_, one), (_, two) = (
        learner.algorithm.step(each, rounds, None) for each in (learner.state, state)
    )
    assert one == two


@pytest.mark.parametrize("version", [None, 0, 2, "1"])
def test_a_state_of_another_version_is_an_error(version):
    learner = certified()
    kept = storage.state_to_json(learner.state, learner.hypotheses)
    with pytest.raises(StorageError):
        storage.state_from_json({**kept, "protocol_version": version}, learner.hypotheses)


# files


def test_a_damaged_file_is_an_error_at_every_length(tmp_path):
    learner = two_phase()
    play(learner, 200, 0)
    learner.save(tmp_path / "x")
    whole = (tmp_path / "x").read_bytes()
    for cut in [0, 1, 3, 4, 10, *range(20, len(whole), max(1, len(whole) // 40))]:
        (tmp_path / "y").write_bytes(whole[:cut])
        with pytest.raises(StorageError):
            eh.load(tmp_path / "y")


@pytest.mark.thorough
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
        # the bit lay where the zip keeps nothing, a date for example
        assert found.report == learner.report


def test_files_of_another_kind_are_errors_that_name_the_file(tmp_path):
    (tmp_path / "text").write_text("not a learner")
    np.save(tmp_path / "array.npy", np.zeros(3))
    np.savez(tmp_path / "arrays.npz", a=np.zeros(3))
    np.savez(tmp_path / "other.npz", document=np.frombuffer(b'{"format": "recipe"}', np.uint8))
    np.savez(tmp_path / "list.npz", document=np.frombuffer(b"[1]", np.uint8))
    np.savez(tmp_path / "pickle.npz", document=np.array([{}], dtype=object))
    for name in ("text", "array.npy", "arrays.npz", "other.npz", "list.npz", "pickle.npz"):
        with pytest.raises(StorageError, match=name):
            eh.load(tmp_path / name)
    with pytest.raises(StorageError, match="load reads a learner that save"):
        eh.load(tmp_path / "nothing")


def test_a_table_is_no_learner():
    with pytest.raises(eh.InvalidInput, match="no file adult") as refused:
        eh.load("adult")
    assert "evenhand.read_table reads a table" in refused.value.hint


def rewritten(path, change):
    with np.load(path) as zipped:
        arrays = {name: zipped[name] for name in zipped.files}
    document = json.loads(bytes(arrays["document"]))
    change(document)
    arrays["document"] = np.frombuffer(json.dumps(document).encode(), np.uint8)
    with path.open("wb") as file:
        np.savez(file, **arrays)


GENERATOR = {"is": "generator", "state": {"is": "dict", "items": [["bit_generator", "os"]]}}


@pytest.mark.thorough
@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.update(version=4),
        lambda d: d.update(protocol_version=2),
        lambda d: d.pop("protocol_version"),
        lambda d: d.pop("state"),
        lambda d: d.pop("rounds"),
        lambda d: d.pop("models"),
        lambda d: d.update(state={"is": "dict"}),
        lambda d: d.update(state={"is": "record"}),
        lambda d: d.update(state={"is": "dict", "items": [1, 2]}),
        lambda d: d.update(settings={"is": "list", "items": 3}),
        lambda d: d.update(settings={"is": "list", "items": []}),
        lambda d: d.update(learner="Oracle"),
        lambda d: d.update(learner=3),
        lambda d: d.update(state={"is": "pickle"}),
        lambda d: d.update(state={"is": "record", "kind": "Popen", "fields": {}}),
        lambda d: d.update(state={"is": "array", "name": "zz"}),
        lambda d: d.update(state=GENERATOR),
        lambda d: d.update(state=None),
        lambda d: d.update(rounds=None),
        lambda d: d.update(shell=None),
        lambda d: d.update(shell={"is": "dict", "items": []}),
    ],
)
def test_documents_that_make_no_sense_are_errors(change, tmp_path):
    two_phase().save(tmp_path / "x")
    rewritten(tmp_path / "x", change)
    with pytest.raises(StorageError):
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
    with pytest.raises(OSError, match="space"):
        learner.save(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["x"]
    monkeypatch.undo()
    learner.save(path)
    assert eh.load(path).round == 100
    assert stat.S_IMODE(path.stat().st_mode) & 0o200


@pytest.mark.thorough
def test_saving_changes_nothing(tmp_path):
    one, two = two_phase(), two_phase()
    for seed in range(8):
        one.save(tmp_path / "x")
        assert play(one, 100, seed, block=1) == play(two, 100, seed, block=1)


def test_a_path_may_be_text(tmp_path):
    two_phase().save(str(tmp_path / "x"))
    assert eh.load(str(tmp_path / "x")).round == 0


def test_the_rounds_of_a_file_are_those_of_the_learner(tmp_path):
    learner = certified()
    people = WORLD.draw(500, np.random.default_rng(0))
    decisions = learner.decide(people.features, people.group, at=3.0)
    learner.observe(decisions.round[:400], people.label[:400])
    learner.overrule([3, 4], False)
    learner.erase([5, 6])
    learner.save(tmp_path / "x")
    found = eh.load(tmp_path / "x").rounds
    kept = learner.rounds
    for name in to_fields(storage.Rounds())["columns"]:
        np.testing.assert_array_equal(found[name], kept[name])
    np.testing.assert_array_equal(found["at"], kept["at"])
    np.testing.assert_array_equal(found.features_of(slice(None)), kept.features_of(slice(None)))
    assert found.groups_of(slice(None)).tolist() == kept.groups_of(slice(None)).tolist()
    for name in ("decided", "returned", "overdue", "has_new_labels", "epochs"):
        assert getattr(found, name) == getattr(kept, name)


# rules of one's own


@dataclass(frozen=True)
class AtLeast(Hypothesis):
    """Accept iff the first column is at least a value."""

    value: float
    columns_used = (0,)

    def accepts(self, features, group=None):
        return features[:, 0] >= self.value

    def describe(self, names=None):
        return f"accept if x0 >= {self.value}"

    def to_json(self):
        return {"kind": "at least", "value": self.value}


class Cuts(eh.ScoreThresholds):
    """A class of rules of one's own; its search is the one of score thresholds."""

    def bind(self, features, group):
        bound = super().bind(features, group)

        class Own:
            def best(self, cost):
                rule = bound.best(cost)
                return AtLeast(rule.value) if hasattr(rule, "value") else rule

        return Own()


class ReadCuts(Cuts):
    def read(self, rule):
        return AtLeast(rule["value"])


class OtherCuts(Cuts):
    def read(self, rule):
        return AtLeast(0.0)


def incumbent(hypotheses):
    """A learner that knows a rule of this kind, and has begun."""
    learner = eh.CertifiedLearner(hypotheses, "fpr", 0.3, 0.05, candidates=[AtLeast(0.5)], seed=1)
    play(learner, 1500, 1)
    assert AtLeast(0.5) in learner.state.process.members
    return learner


def test_rules_that_cannot_be_read_back_are_not_saved(tmp_path):
    with pytest.raises(NotSerialisable, match="nothing says how it is read back") as caught:
        incumbent(Cuts()).save(tmp_path / "x")
    assert "read(rule)" in caught.value.hint
    with pytest.raises(NotSerialisable, match="makes another rule"):
        incumbent(OtherCuts()).save(tmp_path / "x")
    assert list(tmp_path.iterdir()) == []


def test_a_class_reads_its_own_rules(tmp_path):
    learner = incumbent(ReadCuts())
    learner.save(tmp_path / "x")
    loaded = eh.load(tmp_path / "x", hypotheses=ReadCuts(), same_coins=True)
    assert loaded.state.process.members == learner.state.process.members
    assert loaded.policy == learner.policy
    assert play(loaded, 500, 2) == play(learner, 500, 2)
    with pytest.raises(StorageError, match="at least"):
        eh.load(tmp_path / "x", hypotheses=Cuts())
