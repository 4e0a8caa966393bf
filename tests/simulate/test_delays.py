"""Labels on their way: laws of the delays, the mailbox, and what the simulator refuses."""

import numpy as np
import pytest
from tests.learners.play import FPR, WORLD

from evenhand.errors import InvalidInput
from evenhand.learners import CertifiedLearner
from evenhand.randomness import stream
from evenhand.simulate import LabelDelays, simulate_late
from evenhand.simulate.delays import Mailbox

PEOPLE = WORLD.sample(4000, stream(1, "people"))


def test_delays_depend_on_person_and_label():
    law = LabelDelays(
        lambda p: np.where(p.label == 1, 10.0, 2.0),
        never=lambda p: np.where(p.group == "a", 0.5, 0.0),
    )
    delay = law.draw(PEOPLE, stream(2, "delays"))
    lost = np.isinf(delay)
    assert not lost[PEOPLE.group == "b"].any()
    assert lost[PEOPLE.group == "a"].mean() == pytest.approx(0.5, abs=0.05)
    come = ~lost
    assert delay[come & (PEOPLE.label == 1)].mean() == pytest.approx(10, rel=0.15)
    assert delay[come & (PEOPLE.label == -1)].mean() == pytest.approx(2, rel=0.15)


@pytest.mark.parametrize(("mean", "never"), [(-1.0, 0.0), (1.0, 1.5), (1.0, -0.1)])
def test_impossible_laws_are_refused(mean, never):
    law = LabelDelays(lambda p: np.full(len(p), mean), never=lambda p: np.full(len(p), never))
    with pytest.raises(InvalidInput, match="below 0, or a probability"):
        law.draw(PEOPLE, stream(3, "delays"))


def test_the_mailbox_delivers_in_order_and_once():
    box = Mailbox()
    box.post(np.array([3.0, 1.0, np.inf]), np.array([0, 1, 2]), np.array([1, -1, 1]))
    assert box.arrived(0.5) == []
    assert box.arrived(3.0) == [(1, -1), (0, 1)]
    assert box.arrived(99.0) == []


def test_a_run_is_complete_and_reproducible():
    learner = CertifiedLearner(WORLD.hypotheses, FPR, 0.2, 0.05, maturity=5.0)
    law = LabelDelays(lambda p: np.full(len(p), 2.0))
    runs = [simulate_late(learner, WORLD, 1500, 4, law, per_step=70) for _ in range(2)]
    assert runs[0].rounds[-1] == 1500
    assert (runs[0].accepted == runs[1].accepted).all()
    assert learner.round == 0
    with pytest.raises(InvalidInput, match="at least 1"):
        simulate_late(learner, WORLD, 0, 4, law)
