"""Bets are fixed before coins, through the trainer and over HTTP: two epochs close at once, after
people of closed epochs were erased by whoever knew all coins and labels.

Each run is played twice, with the same people and coins, once with the erasures; what is certified
of the rule must be equal to the last bit. Nothing here can fail by chance. A trainer that fits the
bets when it closes (the mutant) follows the erasures.
"""

from dataclasses import replace

import numpy as np
from service.tests.bank import DAY
from service.tests.enemies import MIXED, product, served
from service.tests.torture.serving import folder

from evenhand.policies import Mixture
from evenhand_service import Trainer


class Refits(Trainer):
    """The defect: what open epochs are judged by is fitted anew from the people who are left."""

    def _step(self, lease, *, whole):
        learner = self._learner
        self._read_open_rows(self.ledger.head().seq)
        algorithm, state = learner.algorithm, learner.state
        people = algorithm._closed_people(state, learner.rounds)
        records = {
            number: algorithm._record(state, learner.rounds.epochs[number - 1].mixture, people)
            for number in state.records
        }
        learner.state = replace(state, records=records)
        learner.rounds.cache.forget()  # what was counted by the records that stood before
        return super()._step(lease, whole=whole)


def certified(seed, *, erase, trainer=Trainer):
    """What is certified of the rule after two epochs have closed at once: (lower, upper) of each
    gap; how many people were erased, and how many epochs the closing closed.
    """
    loan = product(rates=("fpr",), limit=1.0, price_false_accept=1.0, maturity_days=5)
    with served(folder() / "ledger.sqlite", loan, seed=seed, world=MIXED) as bank:
        bank.service.trainers["loan"] = trainer(bank.ledger, loan, "one")
        bank.service.trainer(loan).catch_up()
        for people in (100, 400):
            known = bank.arrive(people)
            bank.repay(known)
            bank.clock.now += 6 * DAY
            bank.train()
        bank.repay(bank.arrive(800))
        bank.train()  # nobody of these has matured, so the next epoch opens beside theirs
        bank.repay(bank.arrive(800))
        bank.clock.now += 6 * DAY
        gone = [key for key, score, _, label, accept in known if accept and label == 1 - 2 * score]
        for key in gone if erase else ():
            bank.post("/v1/erasures", {"person": f"p-{key}"})
        before = bank.service.trainer(loan).learner.state.closed_to
        bank.train()
        learner = bank.service.trainer(loan).learner
        closed = {epoch for epoch, *_ in learner.rounds.spans(before, learner.state.closed_to)}
        members = learner.state.process.members
        rule = next(h for h in members if "constant" not in str(h.to_json()))
        gaps = learner.certify(Mixture((rule,), (1.0,))).gaps
        return [(gap.low, gap.high) for gap in gaps], len(gone), len(closed)


def bets_before_coins(quick):
    runs = 1 if quick else 40
    target = f"0 of {runs} certificates moved by erasures, two epochs in one closing"
    moved, erased, epochs, informative = {}, [], [], []
    for trainer in (Trainer, Refits):
        found = 0
        for seed in range(runs if trainer is Trainer else min(runs, 5)):
            plain, _, _ = certified(seed, erase=False, trainer=trainer)
            after, gone, closed = certified(seed, erase=True, trainer=trainer)
            found += not np.array_equal(plain, after)
            informative.append(any(low > -1.0 or high < 1.0 for low, high in plain))
            erased.append(gone)
            epochs.append(closed)
        moved[trainer] = found
    figure = (
        f"{moved[Trainer]} of {runs} moved, {min(erased)} to {max(erased)} people erased, "
        f"{min(epochs)} epochs closed at once; a mutant (refits): {moved[Refits]} of "
        f"{min(runs, 5)}"
    )
    held = moved[Trainer] == 0 and moved[Refits] == min(runs, 5) and min(epochs) >= 2
    # Where nobody was erased, or the certificate says nothing, nothing could be moved.
    powerful = np.mean(np.array(erased) > 0) >= 0.9 and np.mean(informative) >= 0.9
    return target, figure, held and bool(powerful) and np.mean(erased) > 20
