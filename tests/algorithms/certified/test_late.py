"""Labels that come late or never: only closed cohorts count, in order; missing labels count as the
worst case, never as negatives.
"""

import numpy as np
import pytest
from tests.late import LabelDelays, simulate_late
from tests.play import WORLD

from evenhand.fairness import FalsePositiveRate
from evenhand.learners import CertifiedLearner
from evenhand.randomness import stream
from evenhand.simulation import simulate

FPR = FalsePositiveRate()


def learner(limit=0.2, **settings):
    return CertifiedLearner(WORLD.hypotheses, FPR, limit, 0.05, **{"seed": 1, **settings})


def slow_when_good(people):
    """Bad outcomes show after 3 steps on average, good ones after 15, later still for high
    contexts.
    """
    return np.where(people.label == 1, 15.0 + people.features[:, 0], 3.0)


DELAYS = LabelDelays(slow_when_good)
LOST = LabelDelays(
    slow_when_good,
    never=lambda people: np.where((people.label == 1) & (people.group == "a"), 0.1, 0.02),
)


def test_nothing_is_learned_before_the_window_has_closed():
    told = learner(maturity=1000.0)
    for now in range(10):
        people = WORLD.draw(100, stream(now, "people"))
        decisions = told.decide(people.features, people.group, at=float(now))
        told.observe(decisions.first_round + np.arange(100), people.label, at=float(now))
    assert told.certificate.counts == ()
    assert told.learned_weight == 0


def test_cohorts_close_in_order_once_their_window_has_passed():
    run = simulate_late(learner(maturity=60.0), WORLD, 20_000, 2, DELAYS)
    closed = sum(cell.people for cell in run.learner.certificate.counts)
    assert 1000 < closed <= 20_000 - 60 * 100
    assert run.learner.learned_weight > 0.5
    assert run.worst_gap <= 0.2 + 1e-9
    assert run.learner.state.run == 1


def test_labels_that_never_come_widen_the_intervals_and_are_no_negatives():
    whole, lossy = (
        simulate_late(learner(maturity=60.0), WORLD, 20_000, 2, law).learner
        for law in (DELAYS, LOST)
    )
    widths = [np.subtract(*told.state.certified()[2:0:-1]).mean() for told in (whole, lossy)]
    assert widths[1] > widths[0] + 0.01
    assert "unresolved labels" in [note.kind for note in lossy.report.notes]
    negatives = {cell.group: cell.people for cell in lossy.certificate.counts if cell.label == -1}
    shares = {
        cell.group: negatives[cell.group] / cell.people
        for cell in lossy.certificate.counts
        if cell.label == 1
    }
    truth = {g: _odds(g) for g in ("a", "b")}
    assert all(shares[g] < 2.0 * truth[g] for g in shares)


def _odds(group):
    here = WORLD.group == group
    good = float(WORLD.probability[here] @ WORLD.positive_rate[here])
    return (WORLD.probability[here].sum() - good) / good


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(3))
def test_intervals_hold_under_delays_that_depend_on_person_and_label(seed):
    """Both with labels that are late and with labels that are lost; the truth is exact."""
    for law in (DELAYS, LOST):
        told = simulate_late(learner(maturity=40.0), WORLD, 12_000, seed, law).learner
        members, lo, hi = told.state.certified()
        truth = np.array([WORLD.gap(_alone(h)) for h in members])
        assert (lo[0] <= truth).all()
        assert (truth <= hi[0]).all()


def _alone(hypothesis):
    from evenhand.policies import Mixture

    return Mixture((hypothesis,), (1.0,))


def test_early_labels_are_a_biased_sample():
    """Why there is a window: after 5 steps the arrived labels are bad far too often."""
    generator = stream(4, "early")
    people = WORLD.draw(20_000, generator)
    arrived = DELAYS.draw(people, generator) <= 5
    assert (people.label[arrived] == -1).mean() > (people.label == -1).mean() + 0.15


@pytest.mark.slow
def test_labels_at_once_are_the_plain_protocol_in_law():
    """Without delay and with a window of one step a run is as good as without: within 35% of its
    regret.
    """
    now = LabelDelays(lambda people: np.zeros(len(people)))
    late = np.mean(
        [simulate_late(learner(maturity=1.0), WORLD, 8000, s, now).regret[-1] for s in range(6)]
    )
    plain = np.mean([simulate(learner(), WORLD, 8000, s).regret[-1] for s in range(6)])
    assert late == pytest.approx(plain, rel=0.35)


def test_the_same_seed_gives_the_same_run():
    runs = [simulate_late(learner(maturity=30.0), WORLD, 4000, 3, LOST) for _ in range(2)]
    assert (runs[0].regret == runs[1].regret).all()
