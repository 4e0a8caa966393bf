"""Exact checks of the certified learner as it is played: from decide() through book, cohort and
life into the bound.

`mean_wealth` puts one person, every possible one, through a learner in the middle of its life and
adds up the wealth of every betting process at the true rates: it must be 1 in the mean (at most 1
where labels may be missing). Whatever is handed over wrongly on the way (group, propensity,
regression, missing labels) shifts the mean. No Monte Carlo.
"""

import copy
from unittest.mock import patch

import numpy as np
from tests.bounds import exact_wealth
from tests.bounds.betting_checks import pair_log_wealth
from tests.bounds.betting_worlds import added

from evenhand.bounds import BettingBound
from evenhand.bounds.betting_wealth import counts_labels
from evenhand.environments import Discrete
from evenhand.fairness import FalsePositiveRate, SelectionRate
from evenhand.learners import CertifiedLearner
from evenhand.learners.certified.intervals import AuditProcess
from evenhand.randomness import stream

FPR, SR = FalsePositiveRate(), SelectionRate()
TOLERANCE = 1e-9


def world():
    """Six contexts, two groups, three rules that are not constant; some people are hardly ever
    accepted.
    """
    rules = [
        [1, 1, 1, 1, 1, 1],
        [0] * 6,
        [1, 1, 0, 1, 0, 0],
        [1, 0, 0, 1, 1, 0],
        [1, 0, 0, 1, 0, 0],
    ]
    rates, group = [0.9, 0.5, 0.15, 0.8, 0.4, 0.1], np.repeat(["a", "b"], 3)
    return Discrete([0.2, 0.2, 0.15, 0.15, 0.15, 0.15], rates, group, np.array(rules, bool))


class Coin:
    """Falls as told, one at a time or several together, as numpy's generators do."""

    def __init__(self, value):
        self.value = value

    def random(self, size=None):
        if size is None:
            return float(self.random(1)[0])
        return np.full(size, self.value) if np.isscalar(self.value) else self.value[:size]


def learner_at_work(rounds=600, limit=0.3, rate=FPR, **settings):
    """A learner at the start of an epoch in which acceptance probabilities differ and are small for
    some.
    """
    told = {"audit_rate": 0.08, "seed": 3, "groups": ("a", "b"), **settings}
    learner = CertifiedLearner(world().hypotheses, rate, limit, 0.05, **told)
    people = stream(1, "people")
    while learner.round < rounds or learner.rounds_left:
        play(learner, world().draw(min(50, max(learner.rounds_left, 1)), people))
    learner.open_epoch()
    return learner


def play(learner, people):
    """Decide and tell all labels; a learner with a maturity window is told the time, which is the
    number of people so far.
    """
    timed = {} if getattr(learner, "maturity", None) is None else {"at": float(learner.round)}
    decisions = learner.decide(people.features, people.group, **timed)
    accepted = np.flatnonzero(decisions.accept)
    learner.observe(decisions.first_round + accepted, people.label[accepted])
    return decisions


def true_rates(learner):
    """P(h accepts | group, y = -1), or P(h accepts | group) for the selection rate: (members, 1,
    groups), groups as in the certificate.
    """
    here, process = world(), learner.state.run.process
    accepts = np.stack([h.accepts(here.features) for h in process.members])
    mass = here.probability * (1.0 if learner.rates == (SR,) else 1 - here.positive_rate)
    by_group = [
        accepts @ np.where(here.group == g, mass, 0.0) / mass[here.group == g].sum()
        for g in ("a", "b")
    ]
    return np.stack(by_group, axis=1)[:, np.newaxis]


def everything_that_can_happen(learner, arrives):
    """(probability, context, accepted, label or 0 if it never comes) of one more person."""
    here = world()
    acceptance = learner.policy.acceptance(here.features)
    for context, label in np.ndindex(6, 2):
        good = here.positive_rate[context] if label else 1 - here.positive_rate[context]
        chance, p = here.probability[context] * good, float(acceptance[context])
        come = 1.0 if arrives is None else arrives[context, label]
        outcomes = ((1 - p, False, 0), (p * come, True, 2 * label - 1), (p * (1 - come), True, 0))
        yield from (
            (chance * share, context, accepted, y)
            for share, accepted, y in outcomes
            if chance * share > 0
        )


def as_told(learner, decision, label):
    """The label is told, if there is one."""
    if decision.accept and label:
        learner.observe(decision.round, label)


def looked_at(learner, context, accepted, label, report=as_told):
    """What the bound is shown of one person, about whom `report` tells: (bound, cohort, plan)."""
    clone, shown = copy.deepcopy(learner), []
    clone.state.coins = Coin(0.0 if accepted else 1.0 - 1e-16)
    real = BettingBound.update
    with patch.object(
        BettingBound,
        "update",
        lambda b, state, cohort, plan: (
            shown.append((b, cohort, plan)) or real(b, state, cohort, plan)
        ),
    ):
        here = world()
        decision = clone.decide(here.features[[context]], here.group[[context]])[0]
        assert decision.accept == accepted
        report(clone, decision, label)
        clone._collect()
    return shown[-1]


def wealth_of(bound, cohort, plan, truth):
    """W after the cohort: (single processes, pairs). Labels count in the groups where they may be
    looked at; the erased are paid for.
    """
    log_wealth = exact_wealth.exact_log_wealth(bound, cohort, plan, truth)
    for r, rate in enumerate(bound.rates):
        if not counts_labels(rate).all():
            log_wealth[:, r, ~cohort.labelled] = 0.0
    lost = added(bound, bound.start(), cohort, plan).lost
    singles = log_wealth - lost[:, :, np.newaxis, np.newaxis]
    return np.exp(singles), np.exp(pair_log_wealth(bound, log_wealth) - lost[:, :, np.newaxis])


def mean_wealth(learner, arrives=None):
    """The mean of W over one more person: (single processes, pairs)."""
    truth = true_rates(learner)
    singles, pairs = 0.0, 0.0
    for chance, *outcome in everything_that_can_happen(learner, arrives):
        single, pair = wealth_of(*looked_at(learner, *outcome), truth)
        singles, pairs = singles + chance * single, pairs + chance * pair
    return singles, pairs


def check_mean_wealth():
    """E[W] = 1 for every process, when all labels come."""
    for wealth in mean_wealth(learner_at_work()):
        np.testing.assert_allclose(wealth, 1.0, atol=TOLERANCE)


def check_mean_wealth_with_missing_labels():
    """E[W] <= 1 when labels come with a probability that depends on the person and on the label."""
    arrives = np.array([[0.9, 0.2], [0.5, 1.0], [0.1, 0.7], [1.0, 0.3], [0.4, 0.4], [0.2, 0.9]])
    for wealth in mean_wealth(learner_at_work(), arrives):
        assert wealth.max() <= 1 + TOLERANCE


def check_everybody_may_be_accepted():
    """No probability of being accepted is below the audit coin's."""
    learner = learner_at_work()
    assert learner.acceptance(world().features).min() >= learner.epoch.exploration_floor > 0


def check_audit_coin():
    """P[audited | x] is the same for everybody, one by one and in counts."""
    learner, here = learner_at_work(), world()
    acceptance = learner.acceptance(here.features)
    for context in range(6):
        clone = copy.deepcopy(learner)
        clone.state.coins, clone.state.audit_coins = Coin(0.0), Coin((np.arange(40) + 0.5) / 40)
        rows = min(40, clone.rounds_left)
        clone.state.audit_coins.value = (np.arange(rows) + 0.5) / rows
        audited = clone.decide(
            np.repeat(here.features[[context]], rows, axis=0),
            np.repeat(here.group[[context]], rows),
        )
        share = np.mean([decision.audit for decision in audited]) * acceptance[context]
        assert abs(share - learner._audit_weight) <= acceptance[context] / rows
    people = stream(2, "counts")
    counts = here.draw_counts(learner.rounds_left, acceptance, people)
    check_audit_counts(learner, acceptance, counts)


def check_audit_counts(learner, acceptance, counts):
    """The same for rounds played as counts: the generator is asked with chance a / p."""
    from evenhand.estimation import RoundLog

    here, asked = world(), []

    class Spy:
        def binomial(self, number, chance):
            asked.append(np.broadcast_to(chance, np.shape(number)) * acceptance)
            return number

    clone = copy.deepcopy(learner)
    clone.state.audit_coins = Spy()
    clone.absorb(
        RoundLog(
            here.features,
            here.group,
            acceptance,
            counts.rejected,
            counts.accepted_positive,
            counts.accepted_negative,
        )
    )
    for chances in asked:
        np.testing.assert_allclose(chances, learner._audit_weight, atol=1e-12)


def check_nominees_are_judged_by_later_people():
    """The evidence of the N-th nominated hypothesis counts rounds after its booking alone."""
    learner = learner_at_work(3000, 0.03, bound="nominate")
    state, ledger = learner.state.run.process.state, learner.state.run.ledger
    closed = learner.epoch.first_round
    assert len(state) >= 2
    for rounds, booking in zip(state.rounds, ledger.entries, strict=True):
        assert rounds == closed - booking.at


def check_looks_are_preset():
    """An audit-only bound looks at exactly N_1 < N_2 < ...

    audits, each with its own share of delta.
    """
    looks = []
    real = AuditProcess._look

    def spied(process):
        real(process)
        looks.append((process._sums.look, process._sums.audits, process.looks))

    with patch.object(AuditProcess, "_look", spied):
        learner_at_work(8000, bound="hoeffding", audit_rate=0.5)
    assert len(looks) >= 4
    for number, (look, audits, preset) in enumerate(looks, start=1):
        assert (look, audits) == (number, preset.count(number))


def check_the_ledger_adds_up():
    """Shares of all processes sum to delta at most, and each threshold pays for its own share."""
    learner = learner_at_work(3000, 0.03, bound="nominate")
    bound, entries = learner.state.run.process.bound, learner.state.run.ledger.entries
    tests_of_pairs, tests_of_boxes = 2 * len(bound.horizons), 4 * len(bound.horizons)
    paid = tests_of_pairs * np.exp(-bound.joint_threshold) + tests_of_boxes * np.exp(
        -bound.box_threshold
    )
    shares = np.array([entry.share for entry in entries])
    assert (paid <= shares * (1 + 1e-9)).all()
    assert shares.sum() <= learner.failure_probability
