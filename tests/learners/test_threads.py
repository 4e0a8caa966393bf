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
from tests.learners.play import FPR, WORLD, everybody, play, two_phase

import evenhand as eh
from evenhand.learners import CertifiedLearner, EpochLearner, Uniform
from evenhand.learners.epochs import Epoch
from evenhand.learners.rounds import RoundBook
from evenhand.policies import Mixture

THREADS = 6


def certified(**settings):
    return CertifiedLearner(WORLD.hypotheses, FPR, 0.2, 0.05, **{"seed": 1, **settings})


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


class Meeting(RoundBook):
    """A book in which whoever enters a round waits until every other thread is there, too, or was
    kept out by the learner's lock.

    Between the number of a round and the next one there is nothing but this entry: whoever is let
    in meanwhile draws the same round.
    """

    def __init__(self, learner, threads):
        super().__init__()
        self.threads, self.settled, self.change = threads, set(), Condition()
        self.lock, learner._lock, learner.state.book = learner._lock, self, self

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

    def add(self, block):
        self._here()
        with self.change:
            self.change.wait_for(lambda: len(self.settled) == self.threads)
        super().add(block)


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
    learner._lock = NoLock()
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
            assert sum(len(block.accept) for block in copy.state.book.blocks) == copy.round
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
    for block in learner.state.book.blocks:
        for row in range(len(block.accept)):
            round = block.first + row
            thread, _, accept, label = told[round]
            assert block.accept[row] == accept
            assert block.features[row, 0] == (0.0 if block.erased[row] else thread % 6)
            assert block.label[row] == (0 if round in lost or not accept else label)
    learner.decide(WORLD.features, WORLD.group)


def test_learners_in_different_threads_do_not_wait_for_each_other():
    """One lock for each learner: a thread inside one learner's call meets a thread inside
    another's.
    """
    both = [Uniform(seed=0), Uniform(seed=1)]
    inside = [Event(), Event()]

    class Rendezvous(RoundBook):
        def __init__(self, mine):
            super().__init__()
            self.mine = mine

        def add(self, block):
            inside[self.mine].set()
            inside[1 - self.mine].wait()
            super().add(block)

    for mine, learner in enumerate(both):
        learner.state.book = Rendezvous(mine)
    in_threads(*[lambda learner=learner: learner.decide([[0.0]]) for learner in both])
    assert [learner.round for learner in both] == [1, 1]


def test_the_public_methods_of_a_learner_of_one_s_own_hold_the_lock():
    class Mine(EpochLearner):
        needs_group = False

        def __init__(self, *, seed=None):
            from evenhand.words import Prices

            super().__init__(
                prices=Prices(), group_use="certify_only", seed=seed, settings={"seed": seed}
            )

        def _plan(self, number, round):
            return Epoch(
                number, "fixed", round, 2**62, Mixture((eh.hypotheses.ACCEPT_ALL,), (1.0,))
            )

        def method(self):
            return self._lock._is_owned()

        @property
        def looked_at(self):
            return self._lock._is_owned()

        def _private(self):
            return self._lock._is_owned()

    learner = Mine(seed=0)
    assert learner.method()
    assert learner.looked_at
    assert not learner._private()
    assert Mine.method.__name__ == "method"


@pytest.mark.parametrize(
    "again", [copy.deepcopy, copy.copy, lambda one: pickle.loads(pickle.dumps(one))]
)
@pytest.mark.parametrize("name", ["two-phase", "uniform"])
def test_copies_have_a_lock_of_their_own(again, name):
    learner = everybody()[name]
    play(learner, 200, 0)
    other = again(learner)
    assert other._lock is not learner._lock
    if again is not copy.copy:
        assert play(other, 200, 1) == play(learner, 200, 1)


def test_a_loaded_learner_has_a_lock_of_its_own(tmp_path):
    learner = two_phase()
    learner.save(tmp_path / "x")
    assert eh.load(tmp_path / "x")._lock is not learner._lock
