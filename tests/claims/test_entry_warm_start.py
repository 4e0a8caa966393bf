"""What `warm_start(audited=True)` does: the history counts towards the start, and the certificate
looks at later people alone.

On `two_scores`, with a history of 20,000 audited people of a population in which the rule's gap is
0 (in truth it is .205): 40 runs of 50,000 people, 0 violations and 0 intervals that miss a true
gap; a probability of .11 of either would have shown with probability .99. With a truthful history
of `three_groups` all groups are named as soon as learning begins, after the first 100 people of a
run. Negative controls: the same people looked at by the intervals as if this learner had decided
about them, and most runs violate; the history with audited=False, and the rare group is named
later.
"""

import numpy as np
import pytest
from joblib import Parallel, delayed
from tests.claims.certified import missed
from tests.claims.engines import Counts
from tests.claims.entry import DELTA, FPR, ROUNDING, People, close_epoch, two_scores
from tests.claims.test_entry_groups import GROUPS, three_groups

from evenhand.environments import Discrete
from evenhand.estimation import RoundLog
from evenhand.learners import CertifiedLearner

LIMIT, HISTORY, ROUNDS, LIVES, CONTROLS = 0.1, 20_000, 50_000, 40, 12


def elsewhere():
    """The people of another place: both groups have the same scores."""
    here = two_scores()
    return Discrete(
        np.full(4, 0.25), here.positive_rate, here.group, here.accepts, name="elsewhere"
    )


def history(world, seed):
    """Everybody was accepted."""
    everybody = np.ones(len(world))
    counts = world.draw_counts(HISTORY, everybody, np.random.default_rng([seed, 8]))
    columns = (counts.rejected, counts.accepted_positive, counts.accepted_negative)
    return RoundLog(
        world.features, world.group, everybody, *(column.astype(float) for column in columns)
    )


def life(seed, rounds=ROUNDS):
    """(worst true gap, whether an interval missed, learned weight)."""
    world = two_scores()
    learner = CertifiedLearner(world.hypotheses, FPR, LIMIT, DELTA, seed=seed)
    learner.warm_start(history(elsewhere(), seed), audited=True)
    play, worst = Counts(world, np.random.default_rng([seed, 9])), 0.0
    while learner.round < rounds:
        learner.open_epoch()
        worst = max(worst, float(np.abs(world.gaps(learner.policy)).max()))
        play(learner, min(learner.rounds_left, rounds - learner.round))
    return worst, missed(learner, world), learner.learned_weight


def believed(seed):
    """The worst true gap of a run whose second cohort are those people."""
    world, generator = two_scores(), np.random.default_rng([seed, 9])
    learner = CertifiedLearner(world.hypotheses, FPR, LIMIT, DELTA, seed=seed)
    worst = 0.0
    for place, rounds in ((world, 100), (elsewhere(), HISTORY), (world, 1000)):
        worst = max(worst, float(np.abs(world.gaps(learner.policy)).max()))
        people = People.drawn(place, learner.policy, rounds, generator)
        people.append_to(learner, world)
        close_epoch(learner)
    return worst


def named_at(seed, audited):
    """When all three groups are named."""
    world = three_groups()
    learner = CertifiedLearner(world.hypotheses, FPR, LIMIT, DELTA, seed=seed)
    learner.warm_start(history(world, seed), audited=audited)
    play = Counts(world, np.random.default_rng([seed, 9]))
    while set(learner.certificate.groups) != set(GROUPS):
        play(learner, learner.rounds_left)
        learner.open_epoch()
    return learner.round


def test_the_certificate_does_not_look_at_the_history():
    worst, wrong, _ = life(0, 10_000)
    assert worst <= LIMIT
    assert not wrong
    assert believed(0) > LIMIT  # the control must fail


def test_the_history_counts_towards_the_start():
    assert named_at(0, audited=True) == 100
    assert named_at(0, audited=False) > 100  # the control must fail


@pytest.mark.claims
def test_full_warm_start(claims, workers):
    found = np.array(
        Parallel(n_jobs=workers)(delayed(life)(seed) for seed in range(LIVES)), dtype=float
    )
    control = np.array(
        Parallel(n_jobs=workers)(delayed(believed)(seed) for seed in range(CONTROLS))
    )
    violated, wrong = (
        int((found[:, 0] > LIMIT + ROUNDING).sum()),
        int((control > LIMIT + ROUNDING).sum()),
    )
    claims.add(
        "warm start with audited people of another population: violations; intervals missed, "
        f"{LIVES} runs of 50,000",
        "0; 0",
        f"{violated} (worst true gap {found[:, 0].max():.4f}); {int(found[:, 1].sum())} "
        f"(learned weight {found[:, 2].mean():.2f}; "
        f"looked at by the intervals instead: {wrong} of {CONTROLS} violate, "
        f"up to {control.max():.3f})",
        violated == 0 and not found[:, 1].any(),
    )
    soon, later = (
        Parallel(n_jobs=workers)(delayed(named_at)(seed, audited) for seed in range(LIVES))
        for audited in (True, False)
    )
    claims.add(
        "warm start: people until all of three groups (60/39/1%) are named, audited history",
        "100 (the first epoch)",
        f"{max(soon)} at most (not audited: median {np.median(later):.0f})",
        max(soon) == 100,
    )
    assert violated == 0
    assert not found[:, 1].any()
    assert wrong >= CONTROLS // 2  # the control must fail
    assert max(soon) == 100
    assert np.median(later) > 100  # the control must fail
