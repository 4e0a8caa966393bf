"""The caller's own ids: one coin and one outcome for each key, whatever is repeated."""

import copy
import json
import os
import pickle
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.errors import AlreadyObserved, LengthMismatch
from evenhand.keys import KINDS, KeyBook, as_keys, person_hashes
from evenhand.learners import AcceptAll, Uniform

WORLD = eh.environments.lending()


def certified(**settings):
    rules = {"hypotheses": eh.ScoreThresholds(), "rate": "fpr", "limit": 0.2, "delta": 0.05}
    return eh.CertifiedLearner(**{**rules, "seed": 1, **settings})


LEARNERS = {
    "certified": certified,
    "counts": lambda: certified(keep="counts"),
    "two-phase": lambda: eh.TwoPhaseLearner(eh.Stumps(), "fpr", 0.2, 0.05, 4000, seed=1),
    "uniform": lambda: Uniform(seed=1),
}


@pytest.fixture(params=list(LEARNERS))
def learner(request):
    return LEARNERS[request.param]()


def names(first, stop):
    return [f"person {number}" for number in range(first, stop)]


# deciding


def test_keys_change_no_coin(learner):
    """The same people with keys and without: the same decisions, bit for bit."""
    other = copy.deepcopy(learner)
    people = np.random.default_rng(0)
    for start in range(0, 600, 150):
        block = WORLD.draw(150, people)
        with_keys = learner.decide(block.features, block.group, key=names(start, start + 150))
        without = other.decide(block.features, block.group)
        assert with_keys.accept.tolist() == without.accept.tolist()
        assert with_keys.propensity.tolist() == without.propensity.tolist()
        assert with_keys.round.tolist() == without.round.tolist()
        accept = np.flatnonzero(without.accept)
        keys = [f"person {start + row}" for row in accept]
        learner.observe(key=keys, label=block.label[accept])
        other.observe(without.round[accept], block.label[accept])
    assert learner.report == other.report


def test_a_known_key_has_its_decision_and_tosses_no_coin(learner):
    block = WORLD.draw(40, np.random.default_rng(0))
    first = learner.decide(block.features, block.group, key=names(0, 40))
    again = learner.decide(block.features[::-1], block.group[::-1], key=names(0, 40)[::-1])
    assert learner.round == 40
    for name in ("accept", "propensity", "round", "epoch", "audit"):
        assert getattr(again, name)[::-1].tolist() == getattr(first, name).tolist()
    assert [one.round for one in again] == list(range(39, -1, -1))
    alone = learner.decide(block.features[7:8], block.group[7:8], key="person 7")
    assert list(alone) == [first[7]]


def test_of_a_block_the_unknown_are_decided_and_the_known_keep_their_decisions(learner):
    block = WORLD.draw(60, np.random.default_rng(0))
    half = slice(0, 60, 2)
    first = learner.decide(block.features[half], block.group[half], key=names(0, 60)[half])
    whole = learner.decide(block.features, block.group, key=names(0, 60))
    assert learner.round == 60
    assert whole.round[half].tolist() == first.round.tolist() == list(range(30))
    assert whole.round[1::2].tolist() == list(range(30, 60))
    assert whole.accept[half].tolist() == first.accept.tolist()
    assert [one.round for one in whole] == whole.round.tolist()


OTHERS = {
    "other features": lambda row, group: (row + 1.0, group),
    "another group": lambda row, group: (row, np.array(["c"])),
    "no group": lambda row, group: (row, None),
}


@pytest.mark.parametrize("name", list(OTHERS))
def test_a_different_person_under_a_known_key_is_an_error(name):
    learner = Uniform(seed=1)
    block = WORLD.draw(2, np.random.default_rng(0))
    learner.decide(block.features[:1], block.group[:1], key="anna")
    row, group = OTHERS[name](block.features[:1], block.group[:1])
    with pytest.raises(eh.ProtocolError, match=r"'anna'.*round 0.*other") as caught:
        learner.decide(row, group, key="anna")
    assert caught.value.argument == "key"
    assert learner.round == 1
    # nobody of a block is decided about either
    both = np.concatenate([block.features[1:], row])
    groups = None if group is None else np.array([block.group[1], *group], dtype=object)
    with pytest.raises(eh.ProtocolError, match="'anna'"):
        learner.decide(both, groups, key=["bert", "anna"])
    assert (learner.round, len(learner.keys)) == (1, 1)


def test_other_prices_under_a_known_key_are_an_error():
    learner = AcceptAll(prices=eh.Prices(2.0, 2.0), seed=1)
    learner.decide([[1.0]], ["a"], prices=eh.Prices(1.0, 1.0), key="anna")
    learner.decide([[1.0]], ["a"], prices=eh.Prices(1.0, 1.0), key="anna")
    with pytest.raises(eh.ProtocolError, match="other prices"):
        learner.decide([[1.0]], ["a"], prices=eh.Prices(1.0, 2.0), key="anna")


def test_what_is_equal_to_numpy_is_the_same_person():
    learner = Uniform(seed=1)
    first = learner.decide(np.array([[0.0, 1.0]]), np.array([1]), key=7)
    for features, group in [
        ([[-0.0, 1]], [1]),
        (np.array([[0, 1]], dtype=np.int8), np.array([1.0])),
        (np.asfortranarray([[0.0, 1.0]]), [True]),
    ]:
        assert list(learner.decide(features, group, key=np.int16(7))) == list(first)
    assert learner.round == 1


def test_frames_have_keys_too():
    people = pd.DataFrame({"city": ["Oslo", "Rome"], "age": [30, 40], "id": ["u1", "u2"]})
    learner = Uniform(seed=1)
    first = learner.decide(people[["city", "age"]], key=people["id"])
    again = learner.decide(people[["age", "city"]].iloc[1:], key=people["id"].iloc[1:])
    assert list(again) == [first[1]]
    assert learner.round == 2
    with pytest.raises(eh.ProtocolError, match="'u2'"):
        learner.decide(people[["city", "age"]].iloc[:1], key="u2")


@pytest.mark.parametrize("key", [None, 1.5, True, "", b"a", ("a", "b"), np.nan, pd.NA])
def test_a_key_is_a_text_or_a_whole_number(key):
    if key is None:
        with pytest.raises(eh.InvalidInput, match="key 1 is None"):
            as_keys(["a", None])
        return
    with pytest.raises(eh.InvalidInput, match=r"a key is a text or a whole number|2 keys"):
        Uniform(seed=1).decide([[1.0]], key=key)


def test_each_person_needs_a_key_of_its_own():
    learner = Uniform(seed=1)
    with pytest.raises(LengthMismatch, match="1 keys come with 2 people"):
        learner.decide([[1.0], [2.0]], key="anna")
    with pytest.raises(eh.InvalidInput, match="'anna' stands twice"):
        learner.decide([[1.0], [2.0]], key=["anna", "anna"])
    assert learner.round == 0
    assert len(learner.decide(np.zeros((0, 1)), key=[])) == 0
    learner.decide([[1.0], [2.0]], key=[7, "7"])  # two keys
    assert learner.round == 2


def test_a_call_that_failed_half_way_is_repeated_with_the_same_coins(monkeypatch):
    """The rest of the block meets a step that fails; those who were decided have their keys."""
    learner = certified()
    block = WORLD.draw(300, np.random.default_rng(0))
    step = type(learner.algorithm).step
    interrupted = []

    def fails_once(self, *given):
        if not interrupted:
            interrupted.append(True)
            raise KeyboardInterrupt
        return step(self, *given)

    monkeypatch.setattr(type(learner.algorithm), "step", fails_once)
    with pytest.raises(KeyboardInterrupt):
        learner.decide(block.features, block.group, key=names(0, 300))
    decided = learner.round
    assert 0 < decided < 300
    whole = learner.decide(block.features, block.group, key=names(0, 300))
    assert learner.round == 300
    assert whole.round.tolist() == list(range(300))


# what becomes of people


def test_an_outcome_goes_to_the_person_of_the_key_or_to_nobody():
    learner = AcceptAll(seed=1)
    learner.decide([[1.0], [2.0], [3.0]], key=["anna", "bert", "cleo"])
    learner.observe(key=["cleo", "anna"], label=[1, -1])
    assert learner.rounds["label"].tolist() == [-1, 0, 1]
    with pytest.raises(eh.ProtocolError, match="'dora' is unknown") as caught:
        learner.observe(key=["bert", "dora"], label=[1, 1])
    assert "save" in caught.value.hint
    assert not isinstance(caught.value, AlreadyObserved)
    with pytest.raises(AlreadyObserved, match=r"\+1 was reported before under the key 'cleo'"):
        learner.observe(key="cleo", label=1)
    with pytest.raises(AlreadyObserved, match="each other key"):
        learner.observe(key=["cleo", "anna"], label=[1, -1])
    with pytest.raises(eh.ProtocolError, match="now"):  # bert's is new, and cleo's is another one
        learner.observe(key=["bert", "cleo"], label=[1, -1])
    with pytest.raises(eh.ProtocolError, match="now") as other:
        learner.observe(key="cleo", label=-1)
    assert not isinstance(other.value, AlreadyObserved)
    with pytest.raises(eh.InvalidInput, match="stands twice"):
        learner.observe(key=["bert", "bert"], label=[1, 1])
    assert learner.rounds["label"].tolist() == [-1, 0, 1]  # what is refused changes nothing
    learner.observe(label=1, key="bert")
    assert learner.rounds["label"].tolist() == [-1, 1, 1]


def test_whom_it_is_about_is_said_once():
    learner = AcceptAll(seed=1)
    learner.decide([[1.0]], key="anna")
    for report in (
        lambda **whom: learner.observe(label=1, **whom),
        lambda **whom: learner.overrule(accept=False, **whom),
        learner.erase,
        lambda **whom: learner.report_group(group="a", **whom),
    ):
        with pytest.raises(eh.InvalidInput, match="round and key are both"):
            report(round=0, key="anna")
        with pytest.raises(eh.InvalidInput, match="neither round nor key"):
            report()
    with pytest.raises(eh.InvalidInput, match="label is missing"):
        learner.observe(key="anna")


def test_people_are_overruled_and_given_groups_by_key():
    learner, other = AcceptAll(seed=1), AcceptAll(seed=1)
    for one in (learner, other):
        one.decide([[1.0], [2.0]], key=["anna", "bert"])
    learner.overrule(key="bert", accept=False)
    learner.report_group(key=["bert", "anna"], group=["b", "a"])
    other.overrule(1, False)
    other.report_group([1, 0], ["b", "a"])
    for name in ("overruled", "group_late"):
        assert learner.rounds[name].tolist() == other.rounds[name].tolist()
    assert learner.rounds.groups_of(slice(0, 2)).tolist() == ["a", "b"]
    again = learner.decide([[2.0]], key="bert")
    assert again.accept.tolist() == [True]  # the draw, whatever a human decided


@pytest.mark.parametrize("by", ["key", "round"])
def test_the_key_of_an_erased_person_is_never_free_again(by, tmp_path):
    learner = Uniform(seed=1)
    learner.decide([[1.0], [2.0], [3.0]], ["a", "b", "a"], key=["anna", "bert", "cleo"])
    learner.erase(**({"key": "bert"} if by == "key" else {"round": 1}))
    learner.save(tmp_path / "learner")
    for one in (learner, eh.load(tmp_path / "learner")):
        for features in ([[2.0]], [[9.0]]):
            with pytest.raises(eh.ProtocolError, match="'bert' was erased"):
                one.decide(features, ["b"], key="bert")
        with pytest.raises(eh.ProtocolError, match="erased"):
            one.observe(key="bert", label=1)
        one.erase(key="bert")  # changes nothing
        assert one.round == 3
        book = one.keys
        assert book["person"].tolist()[1] == 0
        assert all(book["person"][[0, 2]])


def test_where_counts_alone_are_kept_the_decision_is_known_after_the_row_has_left(tmp_path):
    learner = certified(keep="counts", hypotheses=eh.ScoreThresholds(), limit=0.4)
    people = np.random.default_rng(0)
    firsts = []
    for start in range(0, 4000, 500):
        block = WORLD.draw(500, people)
        decisions = learner.decide(block.features, block.group, key=list(range(start, start + 500)))
        firsts.append((block, decisions))
        accept = np.flatnonzero(decisions.accept)
        learner.observe(key=[start + int(row) for row in accept], label=block.label[accept])
    assert learner.rounds.dropped > 500  # the first block has left
    learner.save(tmp_path / "learner")
    loaded = eh.load(tmp_path / "learner")
    block, first = firsts[0]
    for one in (learner, loaded):
        again = one.decide(block.features, block.group, key=list(range(500)))
        assert again.accept.tolist() == first.accept.tolist()
        assert again.propensity.tolist() == first.propensity.tolist()
        with pytest.raises(eh.ProtocolError, match="other features"):
            one.decide(block.features[:1] + 1, block.group[:1], key=0)
        with pytest.raises(eh.ProtocolError, match="counted"):
            one.observe(key=int(np.flatnonzero(first.accept)[0]), label=1)


def test_late_labels_come_by_key():
    learner = certified(maturity=10.0)
    block = WORLD.draw(50, np.random.default_rng(0))
    decisions = learner.decide(block.features, block.group, at=0.0, key=names(0, 50))
    again = learner.decide(block.features, block.group, at=5.0, key=names(0, 50))
    assert again.round.tolist() == decisions.round.tolist()
    learner.observe(key="person 3", label=int(block.label[3]), at=30.0)
    assert learner.rounds["label"][3] == block.label[3]
    with pytest.raises(eh.ProtocolError, match="backwards"):
        learner.decide(block.features[:1], block.group[:1], at=1.0, key="person 0")


def test_threads_that_ask_for_the_same_keys_get_one_coin_each():
    learner = Uniform(seed=1)
    rows = np.arange(200.0)[:, np.newaxis]

    def ask(order):
        found = learner.decide(rows[order], key=[int(row) for row in order])
        return dict(zip(order.tolist(), found.round.tolist(), strict=True))

    orders = [np.random.default_rng(seed).permutation(200) for seed in range(8)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(ask, orders))
    assert learner.round == 200
    assert all(one == found[0] for one in found)


# files and copies


def test_a_report_that_is_repeated_in_other_blocks_loses_no_outcome():
    """Some of the block came before the crash, others are new."""
    learner = AcceptAll(seed=1)
    names = ["anna", "bert", "cleo", "dora"]
    learner.decide([[1.0], [2.0], [3.0], [4.0]], ["a", "b", "a", "b"], key=names)
    learner.observe(key="bert", label=-1)
    learner.observe(key=names[:3], label=[1, -1, 1], group=["a", "b", "a"])
    assert learner.rounds["label"].tolist() == [1, -1, 1, 0]
    with pytest.raises(eh.ProtocolError):  # dora's group is wrong, and anna's outcome is known
        learner.observe(key=["anna", "dora"], label=[1, 1], group=["a", "a"])
    learner.observe(key=["anna", "dora"], label=[1, 1], group=["a", "b"])
    assert learner.rounds["label"].tolist() == [1, -1, 1, 1]


def test_keys_are_stored_as_hashes_and_go_on(learner, tmp_path):
    block = WORLD.draw(300, np.random.default_rng(0))
    first = learner.decide(block.features, block.group, key=names(0, 300))
    learner.save(tmp_path / "learner")
    assert b"person 17" not in (tmp_path / "learner").read_bytes()
    copies = [eh.load(tmp_path / "learner"), copy.deepcopy(learner)]
    copies.append(pickle.loads(pickle.dumps(learner)))
    for one in copies:
        again = one.decide(block.features, block.group, key=names(0, 300))
        assert again.accept.tolist() == first.accept.tolist()
        assert again.round.tolist() == first.round.tolist()
        assert one.round == 300
        accepted = int(np.flatnonzero(first.accept)[0])
        one.observe(key=f"person {accepted}", label=1)
        with pytest.raises(AlreadyObserved):
            one.observe(key=f"person {accepted}", label=1)
    assert learner.restarted(1).decide(block.features, block.group).round[0] == 0


def changed(fields, name):
    fields = {key: value.copy() for key, value in fields.items()}
    if name == "twice":
        fields["hash"][1] = fields["hash"][0]
    elif name == "order":
        fields["round"] = fields["round"][::-1]
    elif name == "beyond":
        fields["round"] += 1
    elif name == "impossible":
        fields["propensity"][0] = 0.0
    elif name == "short":
        fields["accept"] = fields["accept"][:-1]
    elif name == "kind":
        fields["epoch"] = fields["epoch"].astype(float)
    else:
        del fields["person"]
    return fields


@pytest.mark.parametrize(
    "name", ["twice", "order", "beyond", "impossible", "short", "kind", "gone"]
)
def test_keys_that_cannot_be_are_an_error(name, tmp_path):
    learner = Uniform(seed=1)
    learner.decide([[1.0], [2.0]], key=["anna", "bert"])
    fields = learner.keys.to_fields()
    assert len(KeyBook.from_fields(fields, 2)) == 2
    with pytest.raises(eh.InvalidInput, match="keys"):
        KeyBook.from_fields(changed(fields, name), 2)
    learner.keys.to_fields = lambda: changed(fields, name)
    learner.save(tmp_path / "x")
    with pytest.raises(eh.errors.StorageError, match="its keys"):
        eh.load(tmp_path / "x")


def test_a_person_with_a_key_takes_47_bytes_in_a_file_and_some_150_in_memory(tmp_path):
    """What the module says, measured."""
    import tracemalloc

    book, people = KeyBook(), 20_000
    keys = as_keys([f"person {number}" for number in range(people)])
    persons = person_hashes(np.arange(people * 1.0)[:, np.newaxis], None, None)
    decided = Uniform(seed=1).decide(np.zeros((people, 1)))
    tracemalloc.start()
    book.add([key._replace(hash=bytes(bytearray(key.hash))) for key in keys], persons, decided)
    held = tracemalloc.get_traced_memory()[0] / people
    tracemalloc.stop()
    stored = sum(column.nbytes for column in book.to_fields().values()) / people
    assert stored == 16 + sum(np.dtype(kind).itemsize for kind in KINDS.values()) == 47
    assert 100 < held < 220


# a process that is killed, and two processes


DECIDES = """
import sys, numpy as np, evenhand as eh
path, saved, lost = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
learner = eh.CertifiedLearner(eh.ScoreThresholds(), "fpr", 0.2, 0.05)
people = eh.environments.lending().draw(saved + lost, np.random.default_rng(0))
for number in range(saved + lost):
    row = slice(number, number + 1)
    decision, = learner.decide(people.features[row], people.group[row], key=f"k{number}")
    print(number, decision.round, int(decision.accept), flush=True)
    if number == saved - 1:
        learner.save(path)
print("waiting", flush=True)
sys.stdin.read()  # until it is killed
"""


def killed(path, saved, lost):
    """Decides, saves, decides on, and is killed before it saves again: what it had answered."""
    arguments = [sys.executable, "-c", DECIDES, str(path), str(saved), str(lost)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(arguments, text=True, **pipes) as process:
        answered = []
        for line in process.stdout:
            if line.startswith("waiting"):
                break
            answered.append([int(part) for part in line.split()])
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    assert process.returncode == -signal.SIGKILL
    return answered


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_after_a_kill_no_outcome_goes_to_another_person(tmp_path):
    """200 people are on file, 50 more had their answers and are lost. The restarted learner gives
    their round numbers to others: by number their outcomes would be taken for those of these
    others, by key they are refused.
    """
    saved, lost = 200, 50
    answered = killed(tmp_path / "learner", saved, lost)
    assert len(answered) == saved + lost
    learner = eh.load(tmp_path / "learner")
    assert learner.round == saved
    new = WORLD.draw(lost, np.random.default_rng(1))
    learner.decide(new.features, new.group, key=[f"new{number}" for number in range(lost)])
    before = WORLD.draw(saved + lost, np.random.default_rng(0))
    refused = 0
    for number, round, accept in answered:
        if not accept:
            continue
        if number >= saved:
            with pytest.raises(eh.ProtocolError, match=f"'k{number}' is unknown"):
                learner.observe(key=f"k{number}", label=int(before.label[number]))
            refused += 1
            continue
        learner.observe(key=f"k{number}", label=int(before.label[number]))
        assert learner.rounds["label"][round] == before.label[number]
        assert np.array_equal(
            learner.rounds.features_of(np.array([round])), before.features[[number]]
        )
    assert refused > 0
    assert not learner.rounds["label"][saved:].any()  # nobody has got another's outcome
    # whoever is saved and asked about again has the decision that the dead process gave
    again = learner.decide(
        before.features[:saved], before.group[:saved], key=[f"k{n}" for n in range(saved)]
    )
    assert [[n, one.round, int(one.accept)] for n, one in enumerate(again)] == answered[:saved]


GOES_ON = """
import sys, json, numpy as np, evenhand as eh
path, name, first = sys.argv[1:]
learner = eh.load(path) if first == "load" else eh.learners.Uniform(seed=1)
print("ready", flush=True)
sys.stdin.readline()
for number in range(5):
    learner.decide([[float(number)]], key=f"{name}{number}")
try:
    learner.save(path)
    print("saved", flush=True)
except eh.ProtocolError as error:
    print(json.dumps([str(error), error.hint]), flush=True)
"""


@pytest.mark.parametrize("first", ["load", "new"])
def test_of_two_processes_on_one_file_one_is_refused(first, tmp_path):
    """Both have loaded the same file (or found none), both decide, and save at the same time."""
    path = tmp_path / "learner"
    if first == "load":
        Uniform(seed=1).save(path)
    command = [sys.executable, "-c", GOES_ON, str(path)]
    streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    both = [subprocess.Popen([*command, name, first], **streams) for name in ("a", "b")]
    for one in both:
        assert one.stdout.readline() == "ready\n"
    for one in both:
        one.stdin.write("go\n")
        one.stdin.flush()
    said = [one.communicate()[0].strip() for one in both]
    assert sorted(line == "saved" for line in said) == [False, True]
    sentence, hint = json.loads(next(line for line in said if line != "saved"))
    assert "another learner, perhaps in another process" in sentence
    assert "another path, or load the file" in hint
    winner = "ab"[said.index("saved")]
    loaded = eh.load(path)
    assert loaded.round == 5
    loaded.decide([[0.0]], key=f"{winner}0")
    assert loaded.round == 5
    assert [one.name for one in tmp_path.iterdir()] == ["learner"]  # no lock, no half file


def test_many_processes_that_race_for_one_file_lose_nobody_of_the_winner(tmp_path):
    path = tmp_path / "learner"
    Uniform(seed=1).save(path)
    learners = [eh.load(path) for _ in range(16)]
    for number, one in enumerate(learners):
        one.decide([[1.0]] * (number + 1))

    def tries(one):
        try:
            one.save(path)
        except eh.ProtocolError:
            return 0
        return one.round

    with ThreadPoolExecutor(16) as pool:
        saved = [rounds for rounds in pool.map(tries, learners) if rounds]
    assert len(saved) == 1
    assert eh.load(path).round == saved[0]


def test_a_file_is_replaced_by_who_goes_on_from_it_and_by_nobody_else(tmp_path):
    path, other = tmp_path / "learner", tmp_path / "other"
    learner = Uniform(seed=1)
    learner.save(path)
    learner.save(path)  # again and again
    backup = path.read_bytes()
    learner.decide([[1.0]])
    learner.save(path)
    learner.save(other)  # a copy elsewhere
    learner.decide([[1.0]])
    learner.save(path)
    learner.save(other)
    late = eh.load(path)
    learner.save(path)  # the same once more: nobody would be lost
    learner.decide([[1.0]])
    learner.save(path)
    with pytest.raises(eh.ProtocolError, match="another learner"):
        late.save(path)
    late.save(tmp_path / "a third")  # the way out
    fresh = Uniform(seed=1)
    with pytest.raises(eh.ProtocolError, match="another learner"):
        fresh.save(path)
    path.write_bytes(backup)
    with pytest.raises(eh.ProtocolError, match="another learner"):
        learner.save(path)  # somebody put back an older file: who goes on from it is not known
    path.unlink()
    learner.save(path)
    path.rename(tmp_path / "moved")
    learner.save(tmp_path / "moved")  # the same file under another name
    with pytest.raises(eh.ProtocolError, match="another learner"):
        copy.deepcopy(fresh).save(other)
    link = tmp_path / "link"
    link.write_bytes((tmp_path / "moved").read_bytes())
    learner.save(link)


@pytest.mark.parametrize("content", [b"a,b\n1,2\n", b"PK\x03\x04 cut off"])
def test_what_is_no_learner_is_not_replaced(content, tmp_path):
    path = tmp_path / "table.csv"
    path.write_bytes(content)
    with pytest.raises(eh.ProtocolError, match="no stored learner"):
        Uniform(seed=1).save(path)
    assert path.read_bytes() == content
    path.write_bytes(b"")
    Uniform(seed=1).save(path)  # an empty file holds nobody
    assert eh.load(path).round == 0
    assert [one.name for one in Path(tmp_path).iterdir()] == ["table.csv"]
