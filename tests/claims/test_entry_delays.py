"""Late labels on a fixed population are no drift; delays that change are, by design.

With a maturity window what the drift tests see of a person is settled at the end of the person's
own window, so it does not matter how long after it a cohort closes: exponential delays with a mean
of three windows, for everybody or by label and group. Without a window it is settled when the label
comes, and at the latest after PATIENCE later arrivals; people are fed in the order of arrival, so
it does not matter when somebody looks; slow labels are the bad ones. That holds if the delays,
counted in arrivals, are independent draws of one law. The theorem says at most 1e-3 false alarms
per run; 300 runs of 20,000 people with a window, and 300 without, show none: one would have
probability .26 at that rate, and a rate of .0153 would have shown with probability .99. Delays that
become three times as short in the middle of a run (50 runs, all to be flagged): a detection rate of
.91 is caught with .99. Negative controls: settled when the cohort closes, nearly every run is
suspended; without a window settled at the look, nearly every run is suspended in which looks come
sooner from the middle on.
"""

from contextlib import ExitStack, nullcontext
from unittest.mock import patch

import numpy as np
import pytest
from joblib import Parallel, delayed
from tests.claims.entry import DELTA, FPR, People, close_epoch
from tests.claims.test_certified_drift import world
from tests.late import LabelDelays, simulate_late

from evenhand.algorithms.certified import drift, step
from evenhand.learners import CertifiedLearner
from evenhand.rounds import NEVER, reports, windows

WINDOW, STEP, ROUNDS = 10.0, 50, 20_000
LIVES, CONTROLS, CHANGED = 300, 20, 50
DELAYS = {
    "nothing": LabelDelays(lambda people: np.full(len(people), 3 * WINDOW)),
    "label and group": LabelDelays(
        lambda people: (
            3
            * WINDOW
            * np.where(people.label == 1, 1.5, 0.5)
            * np.where(people.group == 1, 1.4, 0.6)
        )
    ),
}
BAD_ARE_SLOW = LabelDelays(lambda people: np.where(people.label == 1, 1.0, 3 * WINDOW))


class Changing:
    """Delays with a mean of three windows for the first `people`,
    of one window for all later ones.
    """

    def __init__(self, people):
        self.before = people

    def draw(self, people, generator):
        mean = WINDOW if self.before <= 0 else 3 * WINDOW
        self.before -= len(people)
        return mean * generator.exponential(size=len(people))


def suspended(seed, delays, maturity=WINDOW, rounds=ROUNDS):
    """What the first certificate was suspended for, or nothing."""
    learner = CertifiedLearner(world().hypotheses, FPR, 0.1, DELTA, maturity=maturity)
    return simulate_late(learner, world(), rounds, seed, delays, per_step=STEP).learner.state.ended


def settled_at_closing():
    """Wrong: a label that came after its window, but before the closing, counts as come; and
    nobody looks before the closing.
    """
    stack = ExitStack()
    stack.enter_context(patch.object(windows, "window_open", lambda rounds, *arguments: True))
    stack.enter_context(patch.object(step, "next_look", lambda round: NEVER))
    return stack


def settled_at_the_look():
    """Wrong: whoever has no label when somebody looks has none."""
    return patch.object(drift, "settled_before", lambda rounds, first, now, window: rounds.returned)


def suspended_wrongly(seed, delays, rounds=ROUNDS):
    with settled_at_closing():
        return suspended(seed, delays, rounds=rounds)


def suspended_by_closings(seed, wrong=False):
    """No window, a service's closings: four of 1,500 people each, then 40 of 30.

    Good outcomes are known after half an arrival in the mean, bad ones after 200.
    """
    here = world()
    generator = np.random.default_rng([seed, 7])
    learner = CertifiedLearner(here.hypotheses, FPR, 0.1, DELTA, audit_rate=0.6, seed=seed)
    rounds = learner.rounds
    pending = np.zeros((0, 3), int)  # (due, round, label)
    with settled_at_the_look() if wrong else nullcontext():
        for people in [1500] * 4 + [30] * 40:
            for _ in range(people // 30):
                drawn = People.drawn(here, learner.policy, 30, generator)
                delay = np.where(drawn.outcome == 1, 0.5, 200.0) * generator.exponential(size=30)
                numbers = learner.round + np.arange(30)
                drawn.append_to(learner, here, come=np.zeros(30, bool))
                due = np.stack([numbers + np.ceil(delay), numbers, drawn.outcome], axis=1)
                pending = np.concatenate([pending, due[drawn.accept].astype(int)])
                come = pending[:, 0] <= learner.round
                _, reported, labels = pending[come].T
                pending = pending[~come]
                window_open = windows.window_open(rounds, reported, None, None)
                closed = learner.epoch.closed
                reports.enter_labels(
                    rounds, reported, labels, window_open=window_open, closed=closed
                )
            close_epoch(learner)
    return learner.state.ended


@pytest.mark.parametrize("law", DELAYS)
def test_late_labels_are_no_drift(law):
    assert not suspended(0, DELAYS[law])


def test_settled_at_closing_they_would_be():
    """Negative control of the test above."""
    assert suspended_wrongly(0, DELAYS["nothing"])


def test_without_a_window_it_does_not_matter_when_somebody_looks():
    assert not suspended_by_closings(0)
    assert suspended_by_closings(0, wrong=True)  # the control must fail


def test_delays_that_change_are_drift():
    assert "labels of" in " ".join(suspended(0, Changing(ROUNDS // 2)))


@pytest.mark.claims
def test_full_late_labels(claims, workers):
    half = LIVES // 2
    found = {
        law: Parallel(n_jobs=workers)(delayed(suspended)(seed, delays) for seed in range(half))
        for law, delays in DELAYS.items()
    }
    wrong = Parallel(n_jobs=workers)(
        delayed(suspended_wrongly)(seed, DELAYS["nothing"]) for seed in range(CONTROLS)
    )
    alarms = sum(bool(ended) for those in found.values() for ended in those)
    control = sum(bool(ended) for ended in wrong)
    claims.add(
        f"drift, window, delays with a mean of three windows depending on {' / '.join(DELAYS)}: "
        f"false alarms, {half} runs each",
        "none (theorem: 1e-3 per run)",
        f"{alarms} (settled at the closing instead: {control} of {CONTROLS})",
        alarms == 0,
    )
    assert alarms == 0
    assert control >= CONTROLS // 2  # the control must fail


@pytest.mark.claims
def test_full_late_labels_without_a_window(claims, workers):
    half = LIVES // 2
    late = Parallel(n_jobs=workers)(
        delayed(suspended)(seed, BAD_ARE_SLOW, None) for seed in range(half)
    )
    closings = Parallel(n_jobs=workers)(
        delayed(suspended_by_closings)(seed) for seed in range(half)
    )
    wrong = Parallel(n_jobs=workers)(
        delayed(suspended_by_closings)(seed, wrong=True) for seed in range(CONTROLS)
    )
    alarms, control = (
        sum(bool(ended) for ended in late + closings),
        sum(bool(ended) for ended in wrong),
    )
    claims.add(
        f"drift, no window, bad labels are slow: false alarms, {half} runs person by person, "
        f"{half} with closings that come sooner",
        "none (theorem: 1e-3 per run)",
        f"{alarms} (settled at the look instead: {control} of {CONTROLS})",
        alarms == 0,
    )
    assert alarms == 0
    assert control >= CONTROLS // 2  # the control must fail


@pytest.mark.claims
def test_full_changed_delays(claims, workers):
    found = Parallel(n_jobs=workers)(
        delayed(suspended)(seed, Changing(ROUNDS // 2)) for seed in range(CHANGED)
    )
    flagged = sum("labels of" in " ".join(ended) for ended in found)
    claims.add(
        "drift: delays three times as short from the middle of a run on are an alarm, "
        f"named after the labels, {CHANGED} runs",
        str(CHANGED),
        str(flagged),
        flagged == CHANGED,
    )
    assert flagged == CHANGED
