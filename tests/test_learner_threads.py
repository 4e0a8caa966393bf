"""Every learner may be used by several threads: each round is drawn once, and labels go to the
right person.

The lock is tried twice: under load (real threads, switched as often as the interpreter can), and at
the one place where a switch does the harm, to which the threads are brought on purpose. The second
needs no luck: without the lock it fails every time.
"""

import copy
import pickle
import sys
import time
from contextlib import contextmanager
from threading import Condition, Event, Thread, get_ident

import numpy as np
import pytest
from tests.play import WORLD, certified, every_learner, play, two_phase

import evenhand as eh
from evenhand import storage
from evenhand.learners import CertifiedLearner, Uniform
from evenhand.rounds import Rounds

THREADS = 6
LEARNERS = {"uniform": lambda: Uniform(seed=1), "two-phase": two_phase, "certified": certified}


@contextmanager
def switching_often():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def in_threads(*tasks):
    """Run all of them at once; the first error, if any."""
    errors, go = [], Event()

    def guarded(task):
        go.wait()
        try:
            task()
        except Exception as error:  # noqa: BLE001  (it is raised again by the thread that waits)
            errors.append(error)

    threads = [Thread(target=guarded, args=(task,)) for task in tasks]
    for thread in threads:
        thread.start()
    go.set()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


class NoLock:
    """A lock that keeps nobody out."""

    def acquire(self, blocking=True):
        return True

    def release(self):
        return None


class Meeting(Rounds):
    """A table in which whoever enters a round waits until every other thread is there, too, or was
    kept out by the learner's lock.

    Between the number of a round and the next one there is nothing but this entry: whoever is let
    in meanwhile draws the same round.
    """

    def __init__(self, learner, threads):
        super().__init__()
        self.open(learner.epoch)
        self.threads = threads
        self.settled = set()
        self.change = Condition()
        self.lock = learner.lock
        learner.lock = self
        learner.rounds = self

    def _here(self):
        with self.change:
            self.settled.add(get_ident())
            self.change.notify_all()

    def __enter__(self):
        if not self.lock.acquire(blocking=False):
            self._here()
            self.lock.acquire()

    def __exit__(self, *_):
        self.lock.release()

    def append_one(self, *row):
        self._here()
        with self.change:
            self.change.wait_for(lambda: len(self.settled) == self.threads)
        super().append_one(*row)


def rounds_of_a_meeting(learner):
    """The rounds that as many threads get who all call decide() at the same time."""
    Meeting(learner, THREADS)
    found = []
    in_threads(
        *[lambda: found.append(learner.decide(WORLD.features[:1], WORLD.group[:1])[0].round)]
        * THREADS
    )
    return sorted(found)


@pytest.mark.parametrize("name", LEARNERS)
def test_threads_that_decide_at_the_same_time_get_different_rounds(name):
    assert rounds_of_a_meeting(LEARNERS[name]()) == list(range(THREADS))


@pytest.mark.parametrize("name", LEARNERS)
def test_without_the_lock_they_get_the_same_round(name):
    """The negative control: all of them are inside at the same time, each with round 0."""
    learner = LEARNERS[name]()
    learner.lock = NoLock()
    assert rounds_of_a_meeting(learner) == [0] * THREADS


def people_of(thread, count):
    """People whose only feature tells the thread: context 0, 1, ..., and whose label is theirs
    alone.
    """
    generator = np.random.default_rng(thread)
    label = np.where(generator.random(count) < 0.5, 1, -1)
    return np.full((count, 1), float(thread % 6)), np.full(count, "ab"[thread % 6 // 3]), label


@pytest.mark.parametrize("name", LEARNERS)
def test_under_load_every_round_is_drawn_once_and_labels_go_to_the_right_person(name, tmp_path):
    """Four threads decide and observe, one by one and in blocks; others look, overrule, erase and
    save all the while.
    """
    learner, told, lost, done = LEARNERS[name](), {}, set(), Event()

    def work(thread):
        features, group, label = people_of(thread, 400)
        start = 0
        while start < 400:
            size = 1 + (start * 7 + thread) % 13
            part = slice(start, start + size)
            decisions = learner.decide(features[part], group[part])
            for i, decision in enumerate(decisions):
                told[decision.round] = (thread, start + i, decision.accept, int(label[start + i]))
                if decision.accept:
                    learner.observe(decision.round, int(label[start + i]))
            if start % 5 == 0 and decisions.accept.any():
                refused = int(decisions.round[decisions.accept][0])
                learner.overrule(refused, False)
                lost.add(refused)
            if start % 7 == 0:
                learner.erase(int(decisions.round[-1]))
                lost.add(int(decisions.round[-1]))
            start += len(decisions)

    def look():
        while not done.is_set():
            report = learner.report
            assert report.round == learner.report.round or report.round <= learner.round
            assert learner.rounds_left >= 0
            learner.policy.acceptance(WORLD.features, WORLD.group)
            learner.acceptance(WORLD.features, WORLD.group)
            if isinstance(learner, CertifiedLearner):
                assert learner.certificate.limit == 0.2
            time.sleep(0)

    def save():
        number = 0
        while not done.is_set():
            learner.save(tmp_path / f"{number % 2}")
            copy = eh.load(tmp_path / f"{number % 2}")
            assert len(copy.rounds) == copy.round
            number += 1

    def decide_all():
        try:
            in_threads(*[lambda thread=thread: work(thread) for thread in range(4)])
        finally:
            done.set()

    with switching_often():
        in_threads(decide_all, look, save)
    assert sorted(told) == list(range(1600))
    assert learner.round == 1600
    assert sorted(entry[:2] for entry in told.values()) == [
        (t, i) for t in range(4) for i in range(400)
    ]
    rounds = learner.rounds
    for round in range(1600):
        thread, _, accept, label = told[round]
        assert rounds["accept"][round] == accept
        assert rounds.features_of(slice(round, round + 1))[0, 0] == (
            0.0 if rounds["erased"][round] else thread % 6
        )
        assert rounds["label"][round] == (0 if round in lost or not accept else label)
    learner.decide(WORLD.features, WORLD.group)


class Watched:
    """A lock that counts who enters."""

    entered = 0

    def __enter__(self):
        self.entered += 1

    def __exit__(self, *_):
        return None


@pytest.mark.parametrize("name", LEARNERS)
def test_whatever_reads_state_and_rounds_together_holds_the_lock(name, tmp_path):
    """Between a step and its epoch they do not belong together: a certificate of that moment would
    claim the gaps of another policy.
    """
    learner = LEARNERS[name]()
    play(learner, 900, 0)
    looks = ["report", "notes", "gathered"]
    if name == "certified":
        looks += ["certificate", "trail", "forecast"]
    if name == "two-phase":
        looks += ["sample", "outside"]
    learner.lock = Watched()
    for look in looks:
        before = learner.lock.entered
        getattr(learner, look)
        assert learner.lock.entered > before, look
    calls = [lambda: learner.save(tmp_path / "x"), lambda: learner.acceptance(WORLD.features)]
    if name == "certified":
        calls.append(lambda: learner.certify(learner.policy))
    for call in calls:
        before = learner.lock.entered
        call()
        assert learner.lock.entered > before


def test_a_file_is_written_whole_while_others_decide(tmp_path, monkeypatch):
    """Whoever decides while a file is written waits until it is."""
    learner = Uniform(seed=1)
    learner.decide(WORLD.features)
    encode = storage.Encoder.encode
    waiting = []

    def interrupted(encoder, value):
        if isinstance(value, Rounds) and not waiting:
            waiting.append(Thread(target=learner.decide, args=(WORLD.features,)))
            waiting[0].start()
            waiting[0].join(timeout=0.2)
            assert waiting[0].is_alive()
        return encode(encoder, value)

    monkeypatch.setattr(storage.Encoder, "encode", interrupted)
    learner.save(tmp_path / "x")
    waiting[0].join()
    assert eh.load(tmp_path / "x").round == 6
    assert learner.round == 12


def test_learners_in_different_threads_do_not_wait_for_each_other():
    """One lock for each learner: a thread inside one learner's call meets a thread inside
    another's.
    """
    both = [Uniform(seed=0), Uniform(seed=1)]
    inside = [Event(), Event()]

    class Rendezvous(Rounds):
        def __init__(self, mine, epoch):
            super().__init__()
            self.open(epoch)
            self.mine = mine

        def append_one(self, *row):
            inside[self.mine].set()
            inside[1 - self.mine].wait()
            super().append_one(*row)

    for mine, learner in enumerate(both):
        learner.rounds = Rendezvous(mine, learner.epoch)
    in_threads(*[lambda learner=learner: learner.decide([[0.0]]) for learner in both])
    assert [learner.round for learner in both] == [1, 1]


@pytest.mark.parametrize("again", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
@pytest.mark.parametrize("name", ["two-phase", "uniform"])
def test_copies_have_a_lock_of_their_own(again, name):
    learner = every_learner()[name]
    play(learner, 200, 0)
    other = again(learner)
    assert other.lock is not learner.lock
    assert play(other, 200, 1) == play(learner, 200, 1)
