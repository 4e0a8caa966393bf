"""People are erased, and chosen by decision and outcome: neither the guarantee nor the delta ledger
changes, and learning goes on.

In a cohort that is still open each erased person counts at its worst; the sums of closed cohorts
stay, and only the loss forgets. On `two_scores`, 150,000 people: at a tenth of the run 10 people
whose cohort is open are erased, at two thirds 1,000 of closed cohorts; all were accepted, belong to
group a, had good scores and turned out bad, so that without them the gap looks smaller. 40 runs, 0
violations: a violation probability of .11 would have shown with probability .99. Negative control:
the learner is rebuilt without the erased, with the full delta again, and its next policy violates
in most runs.
"""

import numpy as np
import pytest
from joblib import Parallel, delayed
from tests.claims.entry import DELTA, FPR, ROUNDING, People, close_epoch, two_scores

from evenhand.learners import CertifiedLearner

LIMIT, ROUNDS, LIVES, CONTROLS = 0.1, 150_000, 40, 12
BEFORE, AFTER = 10, 1000


def fresh(seed):
    return CertifiedLearner(two_scores().hypotheses, FPR, LIMIT, DELTA, seed=seed)


def life(seed, *, erase=True, rounds=ROUNDS):
    """(learner, worst true gap, the people of each epoch, who of them was erased, the epoch in
    which the many were).
    """
    world, generator, fates = (
        two_scores(),
        np.random.default_rng([seed, 1]),
        np.random.default_rng([seed, 2]),
    )
    learner, worst, played, late = fresh(seed), 0.0, [], 0
    wanted, gone = (
        np.zeros(rounds, bool),
        np.zeros(rounds, bool),
    )  # whom somebody who wants to mislead would have erased
    while learner.round < rounds:
        epoch = learner.open_epoch()
        worst = max(worst, float(np.abs(world.gaps(epoch.policy, learner.rates)).max()))
        if erase and not late and epoch.first_round > 0.6 * rounds:
            late, closed = (
                epoch.number,
                np.flatnonzero(wanted[: epoch.first_round] & ~gone[: epoch.first_round]),
            )
            chosen = fates.permutation(closed)[:AFTER]
            learner.erase(chosen)
            gone[chosen] = True
        first, size = learner.round, min(learner.rounds_left, rounds - learner.round)
        context = generator.choice(len(world), size=size, p=world.probability)
        outcome = np.where(generator.random(size) < world.positive_rate[context], 1, -1)
        decisions = learner.decide(world.features[context], world.group[context])
        learner.observe(first + np.flatnonzero(decisions.accept), outcome[decisions.accept])
        acceptance = epoch.policy.acceptance(world.features, None)[context]
        people = People(
            context, world.group[context], acceptance, decisions.accept, decisions.audit, outcome
        )
        played.append((epoch, people))
        wanted[first : first + size] = people.accept & (outcome == -1) & (context == 1)
        if erase and not gone.any() and learner.round > 0.1 * rounds:
            chosen = first + np.flatnonzero(wanted[first : first + size])[:BEFORE]
            learner.erase(chosen)
            gone[chosen] = True
    return learner, worst, played, gone, late


def rebuilt(seed, rounds=ROUNDS):
    """The true gap of the next policy of a learner that is built again, when the many are erased,
    from the people who are left.
    """
    _, _, played, gone, late = life(seed, rounds=rounds)
    again = fresh(seed)
    world = two_scores()
    past = [(epoch, people) for epoch, people in played if epoch.number < late]
    for (epoch, people), (following, _) in zip(past, [*past[1:], (None, None)], strict=True):
        left = people.part(~gone[epoch.first_round : epoch.first_round + len(people.accept)])
        left.append_to(again, world)
        close_epoch(again, published=None if following is None else following.policy)
    return float(np.abs(world.gaps(again.policy, again.rates)).max())


def summary(seed, *, erase=True, rounds=ROUNDS):
    """(worst true gap, learned weight at the end, delta booked, erased people of open and of closed
    cohorts, suspended).
    """
    learner, worst, _, gone, _ = life(seed, erase=erase, rounds=rounds)
    learner.open_epoch()
    lost = learner.certificate.erased
    return (
        worst,
        learner.learned_weight,
        learner.certificate.spent,
        lost,
        gone.sum() - lost,
        learner.state.run > 1,
    )


def test_a_run_with_erasures_keeps_the_limit_its_bookings_and_its_learning():
    found, plain = summary(0, rounds=30_000), summary(0, erase=False, rounds=30_000)
    assert found[0] <= LIMIT
    assert found[1] > 0.8 * plain[1]
    assert found[2] == plain[2]
    assert found[3] == BEFORE
    assert found[4] > 0


@pytest.mark.claims
def test_full_erased(claims, workers):
    found = np.array(
        Parallel(n_jobs=workers)(delayed(summary)(seed) for seed in range(LIVES)), dtype=float
    )
    plain = np.array(
        Parallel(n_jobs=workers)(delayed(summary)(seed, erase=False) for seed in range(LIVES)),
        dtype=float,
    )
    control = np.array(Parallel(n_jobs=workers)(delayed(rebuilt)(seed) for seed in range(CONTROLS)))
    violated, wrong = (
        int((found[:, 0] > LIMIT + ROUNDING).sum()),
        int((control > LIMIT + ROUNDING).sum()),
    )
    claims.add(
        f"erased: {BEFORE} people before and {AFTER} after closing, by decision and outcome: "
        f"runs with any violation, {LIVES} runs",
        "0",
        f"{violated} (worst true gap {found[:, 0].max():.4f}; "
        f"rebuilt without them instead: {wrong} of {CONTROLS}, up to {control.max():.4f})",
        violated == 0,
    )
    same = bool((found[:, 2] == plain[:, 2]).all())
    claims.add(
        "erased: delta booked, and learned weight over that of the same runs without erasures",
        "unchanged; learning goes on (>= .9)",
        f"{'unchanged' if same else 'CHANGED'}; {found[:, 1].mean() / plain[:, 1].mean():.3f}",
        same and found[:, 1].mean() >= 0.9 * plain[:, 1].mean(),
    )
    assert violated == 0
    assert same
    # the attack took place: in a run that learns little there are fewer such people to erase
    assert np.mean(found[:, 3] == BEFORE) >= 0.9
    assert np.mean(found[:, 4] == AFTER) >= 0.9
    assert found[:, 1].mean() >= 0.9 * plain[:, 1].mean()
    assert wrong >= CONTROLS // 2  # the control must fail
