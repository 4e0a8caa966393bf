"""Exact checks of the certified learner as it is used: from decide() through the table of rounds,
its counts and the step of the algorithm into the bound.

`mean_wealth` puts one person, every possible one, through a learner in the middle of its run and
adds up the wealth of every betting process at the true rates: it must be 1 in the mean (at most 1
where labels may be missing). Whatever is handed over wrongly on the way (group, propensity,
regression, missing labels) shifts the mean. No Monte Carlo.
"""

import copy
from itertools import pairwise
from unittest.mock import patch

import numpy as np
from tests.bounds import exact_wealth
from tests.bounds.betting_checks import pair_log_wealth
from tests.bounds.betting_worlds import added
from tests.play import Nominated

from evenhand.algorithms.certified.nominate import nominate
from evenhand.bounds import BettingBound
from evenhand.bounds.betting_wealth import counts_labels
from evenhand.environments import Discrete
from evenhand.estimation import RoundLog
from evenhand.fairness import FalsePositiveRate, SelectionRate
from evenhand.hypotheses.constants import ACCEPT_ALL
from evenhand.learners import CertifiedLearner
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
    """Falls as it is given, one at a time or several together, as numpy's generators do."""

    def __init__(self, value):
        self.value = value

    def random(self, size=None):
        if size is None:
            return float(self.random(1)[0])
        return np.full(size, self.value) if np.isscalar(self.value) else self.value[:size]


def learner_at_work(rounds=600, limit=0.3, rate=FPR, *, nominates=False, **settings):
    """A learner at the start of an epoch in which acceptance probabilities differ and are small for
    some.
    """
    given = {"audit_rate": 0.08, "seed": 3, "groups": ("a", "b"), **settings}
    hypotheses = world().hypotheses
    if nominates:
        hypotheses = Nominated(hypotheses)
    learner = CertifiedLearner(hypotheses, rate, limit, 0.05, **given)
    people = stream(1, "people")
    while learner.round < rounds or learner.rounds_left:
        play(learner, world().draw(min(50, max(learner.rounds_left, 1)), people))
    learner.open_epoch()
    return learner


def play(learner, people):
    """Decide and report all labels; a learner with a maturity window gets the time, which is the
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
    here = world()
    process = learner.state.process
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


def report_label(learner, decision, label):
    """The label is reported, if there is one."""
    if decision.accept and label:
        learner.observe(decision.round, label)


def closed_now(learner):
    """The epoch ends here: its cohorts close, and the next one is opened."""
    learner.rounds.end_epoch_here()
    learner.open_epoch()


def shown_to_the_bound(learner):
    """(bound, cohort, plan) of each cohort that the bound is shown when the epoch ends here."""
    shown = []
    real = BettingBound.update

    def spied(bound, state, cohort, plan):
        shown.append((bound, cohort, plan))
        return real(bound, state, cohort, plan)

    with patch.object(BettingBound, "update", spied):
        closed_now(learner)
    return shown


def looked_at(learner, context, accepted, label, report=report_label):
    """What the bound is shown of one person, about whom `report` speaks: (bound, cohort, plan)."""
    clone = copy.deepcopy(learner)
    clone.coins = Coin(0.0 if accepted else 1.0 - 1e-16)
    here = world()
    decision = clone.decide(here.features[[context]], here.group[[context]])[0]
    assert decision.accept == accepted
    report(clone, decision, label)
    return shown_to_the_bound(clone)[-1]


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
    """P[audited | x] is the same for all applicants, one by one and in counts."""
    learner = learner_at_work()
    here = world()
    acceptance = learner.acceptance(here.features)
    share = learner.policy.weight_of(ACCEPT_ALL)
    rows = min(40, learner.rounds_left)
    grid = (np.arange(rows) + 0.5) / rows
    for context in range(6):
        together = copy.deepcopy(learner)
        together.coins = Coin(0.0)
        together.audit_coins = Coin(grid)
        audited = together.decide(
            np.repeat(here.features[[context]], rows, axis=0),
            np.repeat(here.group[[context]], rows),
        ).audit
        assert abs(audited.mean() * acceptance[context] - share) <= acceptance[context] / rows
        # the same one by one: the audit coin decides by share / p
        for coin, expected in ((0.99, True), (1.01, False)):
            alone = copy.deepcopy(learner)
            alone.coins = Coin(0.0)
            alone.audit_coins = Coin(coin * share / acceptance[context])
            decision = alone.decide(here.features[[context]], here.group[[context]])
            assert decision.audit[0] == expected == alone.rounds["audit"][-1]
    counts = here.draw_counts(learner.rounds_left, acceptance, stream(2, "counts"))
    check_audit_counts(learner, acceptance, counts)


def check_audit_counts(learner, acceptance, counts):
    """The same for rounds decided as counts: the generator is asked with chance a / p."""
    here = world()
    asked = []

    class Spy:
        def binomial(self, number, chance):
            asked.append(np.broadcast_to(chance, np.shape(number)) * acceptance)
            return number

    clone = copy.deepcopy(learner)
    clone.audit_coins = Spy()
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
    assert asked
    for chances in asked:
        np.testing.assert_allclose(chances, learner.policy.weight_of(ACCEPT_ALL), atol=1e-12)


def check_nominees_are_judged_by_later_people():
    """The evidence of the N-th nominated hypothesis counts rounds after its booking alone."""
    learner = learner_at_work(3000, 0.03, nominates=True)
    state = learner.state.process.state
    closed = learner.epoch.first_round
    assert len(state.rounds) >= 2
    for rounds, booking in zip(state.rounds, learner.bookings, strict=True):
        assert rounds == closed - booking.at


def check_nominees_ignore_epochs_opened_before():
    """People of an epoch that was open at the nomination and closes after it change nothing for
    the nominee: no bet on them was fixed before their coins.
    """
    learner = learner_at_work(3000, 0.03, nominates=True)
    play(learner, world().draw(learner.rounds_left, stream(2, "people")))
    bound = learner.hypotheses.bind(learner.rounds.features_of(slice(100)), None)
    members = (bound.hypothesis(0),)
    before = learner.state.process.state.wealth
    learner.state = nominate(learner.state, members[:1], learner.round, labels=1e9)
    learner.open_epoch()
    wealth = learner.state.process.state.wealth
    assert len(wealth) == len(before) + 1
    assert (wealth[:-1] != before).any()
    assert (wealth[-1] == 0).all()


def check_people_are_counted_once():
    """The closed cohorts are all rounds up to one, each once, by arrival."""
    state = learner_at_work().state
    borders = [(first, stop) for _, first, stop in state.spans]
    assert borders[0][0] == 0
    assert borders[-1][1] == state.closed_to == state.evidence.people > 0
    assert all(stop == first for (_, stop), (first, _) in pairwise(borders))


def check_the_ledger_adds_up():
    """Shares of all processes sum to delta at most, and each threshold pays for its own share."""
    learner = learner_at_work(3000, 0.03, nominates=True)
    bound = learner.state.process.bound
    bets = len(bound.horizons)
    paid = 2 * bets * np.exp(-bound.joint_threshold) + 4 * bets * np.exp(-bound.box_threshold)
    assert len(learner.bookings) == len(paid) >= 2
    shares = np.array([booking.share for booking in learner.bookings])
    assert (paid <= shares * (1 + 1e-9)).all()
    assert shares.sum() <= learner.delta
