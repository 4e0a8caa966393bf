"""A certified learner is rebuilt from the ledger bit for bit: the same people, coins and labels
give the same policies and certificates.
"""

import numpy as np
import pytest
from service.tests.ledger.helpers import PRODUCT, opened, person

from evenhand import CertifiedLearner, FalsePositiveRate
from evenhand.environments import Discrete
from evenhand.hypotheses import ACCEPT_ALL
from evenhand_service.ledger import Label, Override, Terms


class Coins:
    """Stands for a learner's generator: gives the draws of the ledger instead."""

    def __init__(self):
        self.next = np.zeros(0)

    def random(self, rows=None):
        if rows is None:
            return float(self.random(1)[0])
        found, self.next = self.next[:rows], self.next[rows:]
        assert len(found) == rows
        return found


def learner_of(environment):
    learner = CertifiedLearner(environment.hypotheses, FalsePositiveRate(), 0.1, 0.05, seed=3)
    learner.coins, learner.audit_coins = Coins(), Coins()
    return learner


def play(learner, features, group, draws, audits):
    learner.coins.next, learner.audit_coins.next = (
        np.asarray(draws),
        np.where(audits, 0.0, 1.0 - 2**-53),
    )
    return learner.decide(features, group)


def audit_weight(learner):
    policy = learner.policy
    return sum(w for h, w in zip(policy.hypotheses, policy.weights, strict=True) if h == ACCEPT_ALL)


@pytest.fixture
def environment():
    accepts = np.array([[True, False, True, False], [True, True, False, False]])
    return Discrete(
        np.array([0.3, 0.2, 0.3, 0.2]),
        np.array([0.9, 0.4, 0.8, 0.3]),
        np.array([1, 1, -1, -1]),
        accepts,
    )


def lived(ledger, environment, people):
    """A run of the service: the learner's policy decides, the ledger draws, labels come, epochs
    close.
    """
    learner, generator, done, closings = learner_of(environment), np.random.default_rng(5), 0, []
    parent = None
    while done < people:
        epoch = learner.open_epoch()
        document = {"epoch": epoch.number, "policy": learner.policy.to_json()}
        parent = ledger.publish(
            PRODUCT, document, epoch=epoch.number, parent=parent, checkpoint={}
        ).id
        size = min(learner.rounds_left, people - done)
        sample = environment.draw(size, generator)
        chance, weight = learner.acceptance(sample.features), audit_weight(learner)
        asked = [
            (
                person(done + i, features=sample.features[i], group=int(sample.group[i])),
                Terms(parent, float(chance[i]), min(weight, float(chance[i])), epoch.number),
            )
            for i in range(size)
        ]
        drawn = [answer.drawn for answer in ledger.decide_many(asked)]
        decisions = play(
            learner, sample.features, sample.group, [d.u for d in drawn], [d.audit for d in drawn]
        )
        assert [d.accept for d in decisions] == [d.accept for d in drawn]
        told = [
            (d.key, Label(int(y))) for d, y in zip(drawn, sample.label, strict=True) if d.accept
        ]
        ledger.report_many(told)
        rounds = np.arange(done, done + size)[[d.accept for d in drawn]]
        learner.observe(rounds, sample.label[[d.accept for d in drawn]])
        closings.append(ledger.head().seq)
        done += size
    return learner, closings


def rebuilt(ledger, environment, closings):
    """The trainer's way back: for each closing the rows since the one before, with the labels known
    then.
    """
    learner, after = learner_of(environment), 0
    for upto in closings:
        rows = list(ledger.history(PRODUCT, after=after, upto=upto))
        features = np.array([row.features for row in rows])
        learner.open_epoch()
        first = learner.round
        play(
            learner,
            features,
            np.array([row.group for row in rows]),
            [r.u for r in rows],
            [r.audit for r in rows],
        )
        known = [(first + i, row.label) for i, row in enumerate(rows) if row.label]
        learner.observe([i for i, _ in known], [label for _, label in known])
        after = rows[-1].seq
    return learner


def test_the_rebuilt_learner_is_the_one_that_lived(path, environment):
    with opened(path) as ledger:
        learner, closings = lived(ledger, environment, 1500)
        ledger.report(
            "k5", Override(False, "clerk")
        )  # what comes later does not change what was seen then
    with opened(path) as ledger:
        again = rebuilt(ledger, environment, closings)
    assert len(closings) > 4
    for one in (learner, again):
        one.open_epoch()
    assert [e.policy.to_json() for e in again.report.epochs] == [
        e.policy.to_json() for e in learner.report.epochs
    ]
    assert again.certificate.to_json() == learner.certificate.to_json()


def test_the_history_sees_what_was_known_then(ledger, policy, clock):
    seen = [
        answer.drawn
        for answer in ledger.decide_many([(person(n), Terms(policy, 0.5)) for n in range(50)])
    ]
    yes = [drawn for drawn in seen if drawn.accept]
    ledger.report(yes[0].key, Label(1))
    then = ledger.head().seq
    ledger.report(yes[0].key, Label(-1))
    ledger.report(yes[1].key, Label(-1))
    ledger.report(yes[2].key, Override(False, "clerk"))
    clock.now += 10
    ledger.decide(person(99), Terms(policy, 0.5))
    labels = {row.seq: row.label for row in ledger.history(PRODUCT, upto=then)}
    assert (labels[yes[0].seq], labels[yes[1].seq], len(labels)) == (1, 0, 50)
    now = {row.seq: row.status for row in ledger.history(PRODUCT, upto=then + 3)}
    assert (now[yes[0].seq], now[yes[1].seq], now[yes[2].seq], len(now)) == (
        "disputed",
        "resolved",
        "overruled",
        50,
    )
    ledger.erase("p0", "officer")
    erased = next(iter(ledger.history(PRODUCT)))
    assert (erased.erased, erased.features, erased.group, erased.u) == (True, None, None, seen[0].u)


def test_pages_do_not_lose_anybody(ledger, policy, monkeypatch):
    from evenhand_service.ledger import audit, chain, history

    monkeypatch.setattr(chain, "PAGE", 7)
    monkeypatch.setattr(history, "_PAGE", history._PAGE.limit(None).limit(7))
    ledger.decide_many([(person(n), Terms(policy, 0.5)) for n in range(50)])
    assert [row.features for row in ledger.history(PRODUCT)] == [(0.5, 2.0)] * 50
    assert audit.verify(ledger).rows == 54
