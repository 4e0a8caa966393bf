"""A step that was interrupted repeats exactly, and no answer depends on what the table remembers:
the next state, the epoch, the decisions and the certificate are the same to the last bit.

The interruption is raised inside the step, at a line of evenhand's own code that is counted from
the beginning of the step, so that every stretch of it is hit.
"""

import copy
import json
import sys
from dataclasses import dataclass

import numpy as np
import pytest
from tests.algorithms.certified.test_tally import CLASSES, people
from tests.algorithms.test_base import LEARNERS, written
from tests.play import WORLD, Nominated, two_phase

import evenhand
from evenhand import CertifiedLearner, Linear
from evenhand.algorithms.certified import evidence, sample
from evenhand.computing import computing_in
from evenhand.hypotheses import estimator

OWN = evenhand.__path__[0]
CUTS = Nominated(CLASSES["thresholds"])
BLOCK = 200
POINTS = 3
"""Interruptions of each step: so many evenly spread, drawn from all lines, and drawn from the first
ones, which count the cohorts.
"""


class Interrupted(BaseException):
    """Neither an Exception nor anything that a step may catch, as KeyboardInterrupt."""


@dataclass
class Lines:
    """Counts the lines of evenhand's own code, and raises at one of them."""

    stop: int | None = None
    kind: type[BaseException] = Interrupted
    seen: int = 0

    def __call__(self, frame, event, _):
        if not frame.f_code.co_filename.startswith(OWN):
            return None
        if event == "line":
            self.seen += 1
            if self.seen == self.stop:
                raise self.kind("here")
        return self

    def __enter__(self):
        sys.settrace(self)
        return self

    def __exit__(self, *_):
        sys.settrace(None)


@pytest.fixture(autouse=True)
def few_rows(monkeypatch):
    """Samples of a few hundred people, so that short runs are long ones; and a step has as many
    lines whenever it is called.
    """
    monkeypatch.setattr(sample, "most_rows", lambda _: 150)
    monkeypatch.setattr(evidence, "MOST_NEW", 256)
    monkeypatch.setattr(sample, "MOST_NEW", 256)
    with computing_in("numpy"):
        yield


def certified(keep="rows", hypotheses=CLASSES["thresholds"], **settings):
    return CertifiedLearner(hypotheses, "fpr", 0.3, 0.1, seed=3, keep=keep, **settings)


MADE = {
    "thresholds, rows": lambda: certified(),
    "thresholds, counts": lambda: certified("counts"),
    "stumps, rows": lambda: certified(hypotheses=CLASSES["stumps"]),
    "finite, counts, late": lambda: certified("counts", CLASSES["finite"], maturity=3.0),
    "thresholds, rows, late": lambda: certified(maturity=3.0),
    "linear, rows": lambda: certified(hypotheses=Linear(), horizon=9000),
    "linear, counts": lambda: certified("counts", Linear(), horizon=9000),
    "cap": lambda: certified(accept_at_most=0.6),
    "nominated thresholds": lambda: certified("rows", CUTS, horizon=9000),
    "nominated thresholds, counts": lambda: certified("counts", CUTS, horizon=9000),
}


def played(learner, calls=22, seed=11):
    """Blocks of people; one label in ten never comes, and those of the last block have not come
    yet: they are returned. With a window labels come one block later.
    """
    generator = np.random.default_rng(seed)
    lag = 0 if learner.guarantee.maturity is None else 1
    waiting = []
    for call in range(calls):
        rows, group, label = people(generator, BLOCK)
        decisions = learner.decide(rows, group, at=(learner.now or 0.0) + 1.0)
        waiting.append((decisions, label))
        if len(waiting) > lag and call < calls - 1:
            past, its_label = waiting.pop(0)
            known = past.accept & (generator.random(BLOCK) < 0.9)
            learner.observe(past.round[known], its_label[known])
    return learner, waiting[-1]


def step(learner):
    return learner.algorithm.step(learner.state, learner.rounds, learner.now)


def stepped(learner):
    """What a step leads to, as text."""
    return [written(value, learner.algorithm.hypotheses) for value in step(learner)]


def interrupted(learner, line, kind=Interrupted):
    """Its step, which does not come to its end."""
    with pytest.raises(kind), Lines(line, kind):
        step(learner)
    assert not estimator._unread_rejected.get(), "whom a model cannot read is rejected for ever"


def at_a_look(learner):
    """In the midst of an epoch."""
    return copy.deepcopy(learner)


def at_the_end(learner):
    """An epoch is over."""
    learner = copy.deepcopy(learner)
    learner.rounds.end_epoch_here()
    return learner


def points(make):
    """Lines of the step of such a learner at which it is interrupted."""
    step(make())  # imports what is imported at the first step
    learner = make()
    with Lines() as lines:
        step(learner)
    generator = np.random.default_rng(lines.seen)
    early = max(lines.seen // 20, 1)
    spread = np.linspace(1, lines.seen, POINTS).astype(int)
    drawn = [generator.integers(1, last + 1, POINTS) for last in (lines.seen, early)]
    return sorted({*spread.tolist(), *np.concatenate(drawn).tolist()})


@pytest.mark.thorough
@pytest.mark.parametrize("name", MADE)
def test_an_interrupted_step_repeats_exactly(name):
    """Interrupted, then told the labels that have come since: like one that was not interrupted."""
    learner, (decisions, label) = played(MADE[name]())
    known = np.flatnonzero(decisions.accept)
    for there in (at_a_look, at_the_end):
        whole = there(learner)
        whole.observe(decisions.round[known], label[known])
        expected = stepped(whole)
        assert step(whole)[0].first_run
        before = written(learner.state, learner.hypotheses)
        for number, line in enumerate(points(lambda there=there: there(learner))):
            one = there(learner)
            interrupted(one, line, (Interrupted, KeyboardInterrupt, MemoryError)[number % 3])
            assert written(one.state, one.hypotheses) == before, line
            one.observe(decisions.round[known], label[known])
            assert stepped(one) == expected, line


@pytest.mark.parametrize("name", MADE)
def test_what_the_table_remembers_can_be_forgotten(name):
    learner, (decisions, label) = played(MADE[name]())
    known = np.flatnonzero(decisions.accept)
    learner.observe(decisions.round[known], label[known])
    for there in (at_a_look, at_the_end):
        one, two = there(learner), there(learner)
        two.rounds.cache.forget()
        assert stepped(one) == stepped(two)
        assert one.report.forecast == two.report.forecast


@pytest.mark.thorough
@pytest.mark.parametrize("name", MADE)
def test_a_learner_that_is_interrupted_and_stored_decides_as_one_that_is_not(name, tmp_path):
    """decide() is interrupted while it closes an epoch; then the learner is stored and loaded."""
    learner, (decisions, label) = played(MADE[name]())
    known = np.flatnonzero(decisions.accept)
    one, two = at_the_end(learner), at_the_end(learner)
    line = points(lambda: at_the_end(learner))[-3]
    with pytest.raises(Interrupted), Lines(line):
        one.open_epoch()
    one.save(tmp_path / "learner.evenhand")
    one = evenhand.load(
        tmp_path / "learner.evenhand", hypotheses=learner.hypotheses, same_coins=True
    )
    decided = []
    for each in (one, two):
        each.observe(decisions.round[known], label[known])
        each, _ = played(each, 8, seed=12)
        table = each.rounds
        decided.append([table["accept"].tolist(), table["acceptance"].tolist()])
        decided[-1].append(json.dumps(each.certificate.to_json()))
    assert decided[0] == decided[1]


OTHERS = {
    **{name: learner for name, learner in LEARNERS.items() if not name.startswith("certified")},
    "two-phase, every round": two_phase(
        limit=None, exploration_rounds=150, epochs="every-round", horizon=1000
    ),
}


@pytest.mark.thorough
@pytest.mark.parametrize("name", OTHERS)
def test_so_do_the_steps_of_all_others(name):
    learner = OTHERS[name].restarted(1)
    generator = np.random.default_rng(2)
    for _ in range(9):
        block = WORLD.draw(40, generator)
        decisions = learner.decide(block.features, block.group)
        accepted = np.flatnonzero(decisions.accept)
        learner.observe(decisions.round[accepted], block.label[accepted])
    expected = stepped(at_the_end(learner))
    for line in points(lambda: at_the_end(learner)):
        one = at_the_end(learner)
        interrupted(one, line)
        assert stepped(one) == expected, line
    two = at_the_end(learner)
    two.rounds.cache.forget()
    assert stepped(two) == expected
