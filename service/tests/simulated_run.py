"""A run of a bank, and the same run played by the library: the ledger's U in place of the
learner's coins.
"""

import numpy as np
from service.tests.bank import DAY, LOAN


def run_epochs(bank, epochs, *, seed=0, days=4.0):
    """People come until so many epochs have been published; labels arrive two days later."""
    trainer, first, waiting = bank.service.trainer(LOAN), 0, []
    while trainer.learner.epoch.number < epochs:
        epoch = trainer.learner.epoch
        missing = max(epoch.first_round + epoch.rounds - bank.ledger.counts("loan").usable, 1)
        waiting.append(bank.arrive(missing, seed=[seed, first], first=first, days=days))
        first += missing
        bank.clock.now += 2 * DAY
        bank.repay(*waiting[-1])
        bank.service.train(LOAN)


def closings(bank):
    """The published policies, oldest first."""
    return [p for p in bank.ledger.policies("loan") if p.in_lineage]


class LedgerCoins:
    """Stands in for the learner's coins: the U of the ledger, in the order of the people."""

    def __init__(self, numbers):
        self.numbers, self.place = list(numbers), 0

    def random(self, size=None):
        if size is None:  # one number instead of an array, as numpy's generators do
            return float(self.random(1)[0])
        found = self.numbers[self.place : self.place + size]
        self.place += size
        return np.array(found)


def played_by_the_library(ledger, product=LOAN):
    """decide() and observe() of a plain CertifiedLearner, fed with the same people, times, labels
    and U: {epoch: (policy, certificate)} and how many decisions differ from the ledger's."""
    rows = list(ledger.history(product.name))
    closed = {
        p.epoch: p.info["closing"]["at"] for p in ledger.policies(product.name) if p.in_lineage
    }
    learner, found, different = product.learner(), {}, 0
    learner.coins = LedgerCoins(row.u for row in rows)
    learner.coins_from_seed = False
    learner.audit_coins = LedgerCoins(
        row.u / row.acceptance if row.acceptance > 0 else 0.0 for row in rows
    )
    for place, row in enumerate(rows):
        if learner.rounds_left == 0:
            learner.now = closed[row.epoch]
        decision = learner.decide([row.features], np.array([row.group], dtype=object), at=row.at)[0]
        different += (decision.accept, decision.audit, decision.epoch) != (
            row.accept,
            row.audit,
            row.epoch,
        )
        if row.epoch not in found:
            found[row.epoch] = (learner.policy.to_json(), learner.certificate.to_json())
        if row.accept:
            learner.observe(place, row.label)
    return found, different
