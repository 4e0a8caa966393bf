"""The audit budget holds for every outcome: whatever labels say, however late they come, if they
come at all, and however people are grouped into calls.

Nothing here fails by chance: the budget is a bound for every outcome, so a single run above it
refutes it. What is counted is the truth: everybody whom the audit coin accepted and whose outcome
is bad, whether the label was ever reported or not.
"""

import heapq

import numpy as np
import pytest
from joblib import Parallel, delayed
from tests.claims.certified import scenario

from evenhand.algorithms.certified.step import Certified
from evenhand.learners import CertifiedLearner

BUDGETS, BLOCKS = (5, 20, 50), (1, 7, 100, 1000, 5000)
RUNS = 1000
PEOPLE = 3000


def bad_audits(seed, budget, block, *, lag=200.0, lost=0.05, people=PEOPLE, maturity=True):
    """The largest number of truly bad audits in one run, with labels that come late and never; some
    people are erased and some decisions overruled.
    """
    _, world = scenario(("lending", "random", "a group of 5%")[seed % 3])
    draw = np.random.default_rng(seed)
    sample = world.draw(people, draw)
    delay = draw.exponential(lag, people)
    delay[draw.random(people) < lost] = np.inf
    window = {"maturity": 3.0 * lag} if maturity else {}
    told = CertifiedLearner(
        world.hypotheses, "fpr", 0.1, 0.05, audit_budget=budget, seed=seed, **window
    )
    waiting: list[tuple[float, int]] = []
    gone = set()
    start = 0
    worst = 0
    while start < people:
        now = {"at": float(start)} if maturity else {}
        while waiting and waiting[0][0] <= start:
            _, round = heapq.heappop(waiting)
            if round not in gone:
                told.observe(round, int(sample.label[round]), **now)
        rows = slice(start, min(start + block, people))
        decisions = told.decide(sample.features[rows], sample.group[rows], **now)
        accepted = start + np.flatnonzero(decisions.accept)
        for round in accepted.tolist():
            if np.isfinite(delay[round]):
                heapq.heappush(waiting, (rows.stop + delay[round], round))
        if len(accepted) and seed % 4 == 0:
            one = int(accepted[0])
            (told.erase if seed % 8 else lambda r: told.overrule(r, False))(one)
            gone.add(one)
        start = rows.stop
        table = told.rounds
        refused = table["overruled"] & table["accept"]
        worst = max(worst, int((table["audit"] & ~refused & (sample.label[:start] == -1)).sum()))
    return worst


def test_it_is_never_exceeded():
    """Each budget and block once."""
    for seed, (budget, block) in enumerate((b, n) for b in BUDGETS for n in (1, 100, 5000)):
        assert bad_audits(seed, budget, block, people=1200) <= budget
        assert bad_audits(seed, budget, block, people=600, maturity=False) <= budget


def test_what_may_be_spent_is_spent():
    assert bad_audits(1, 50, 1, lag=5.0, lost=0.0) >= 40


def test_control_labels_on_their_way_that_do_not_count_exceed_it(monkeypatch):
    """Seen to fail: only labels that have come are on the bill."""

    def optimistic(self, rounds, now):
        return max(self.audit_budget - (rounds.audit_bill - rounds.audits_pending), 0), np.inf

    monkeypatch.setattr(Certified, "remaining", optimistic)
    assert max(bad_audits(seed, 5, 100, people=600) for seed in (1, 2, 3)) > 5


def test_control_a_block_that_is_tossed_at_once_exceeds_it(monkeypatch):
    """Seen to fail: coins are not stopped at the one that uses up the budget."""
    from evenhand import learner

    monkeypatch.setattr(learner, "_first_full", lambda room, audit, accept: len(accept))
    assert bad_audits(1, 5, 1000, people=1000) > 5


@pytest.mark.claims
@pytest.mark.parametrize("budget", BUDGETS)
def test_full_never_exceeded(claims, workers, budget):
    jobs = [(seed, budget, BLOCKS[seed % len(BLOCKS)]) for seed in range(RUNS)]
    found = Parallel(n_jobs=workers)(delayed(bad_audits)(*job) for job in jobs)
    above = sum(bad > budget for bad in found)
    claims.add(
        f"audit budget {budget}: runs above it, late and lost labels, blocks of 1 to 5,000",
        f"0 of {RUNS}",
        f"{above}; the most bad audits {max(found)}, in the mean {np.mean(found):.1f}",
        above == 0,
    )
    assert above == 0
