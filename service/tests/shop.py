"""One product behind the desk, without HTTP: people apply, repay, are overruled and erased, and
epochs are closed.
"""

import asyncio
import random
import shutil
from functools import partial

import numpy as np
from service.tests.bank import DAY, KEYRING, PEOPLE, Clock

from evenhand_service import LedgerKeys, Settings, Trainer, render
from evenhand_service.ledger import GroupReport, Label, Ledger, Override, WindowPlan
from evenhand_service.ledger.audit import backup
from evenhand_service.ledger.decision_draw import erase
from evenhand_service.schemas import DecisionRequest
from evenhand_service.state import Service


class Shop:
    """`people` draws (features, group, label); `chosen` is the shop's own source of chance."""

    def __init__(self, where, product, *, people=PEOPLE, seed=0, clock=None, first=0):
        self.product, self.people, self.clock = product, people, clock or Clock()
        plan = WindowPlan(30 * DAY)
        entropy = random.Random(seed).randbytes  # the same shop, the same coins
        self.ledger = Ledger.open(
            where, keyring=KEYRING, clock=self.clock, windows=plan, render=render, entropy=entropy
        )
        self.service = Service(self.ledger, Settings(products=(product,)), LedgerKeys(self.ledger))
        self.service.begin()
        self.chosen, self.number = np.random.default_rng(seed), first
        self.truth, self.group, self.drawn, self.gone = {}, {}, {}, set()

    @property
    def trainer(self):
        return self.service.trainer(self.product)

    @property
    def lineage(self):
        return [p for p in self.ledger.policies(self.product.name) if p.in_lineage]

    def arrive(self, people, *, told=1.0, days=1.0):
        """Their keys. The group is told at once for a share `told` of them."""
        sample = self.people.draw(people, self.chosen)
        asked, keys = [], []
        for row in range(people):
            key, group = f"k{self.number}", str(sample.group[row])
            known = group if self.chosen.random() < told else None
            features = sample.features[row].tolist()
            features += [float(self.chosen.integers(5))] * (
                len(self.product.features) - len(features)
            )
            asked.append(
                DecisionRequest(
                    key=key,
                    person=f"p{self.number}",
                    product=self.product.name,
                    features=features,
                    group=known,
                )
            )
            self.truth[key], self.group[key] = int(sample.label[row]), group
            keys.append(key)
            self.number += 1
        for start in range(0, people, 500):
            part = slice(start, start + 500)
            for key, answer in zip(
                keys[part],
                asyncio.run(self.service.decider.decide(asked[part])),
                strict=True,
            ):
                self.drawn[key] = answer.drawn
            self.clock.now += days * DAY * 500 / max(people, 500)
        return keys

    def tell(self, keys, report):
        """`report(key)` for those of them who still are there; what is refused is refused."""
        told = [(key, report(key)) for key in keys if key not in self.gone]
        if told:
            self.ledger.report_many(told)

    def repay(self, keys, share=1.0):
        self.tell(
            [k for k in keys if self.drawn[k].accept and self.chosen.random() < share],
            lambda key: Label(self.truth[key]),
        )

    def overrule(self, keys):
        self.tell(keys, lambda key: Override(not self.drawn[key].accept, "clerk"))

    def name_groups(self, keys):
        self.tell(keys, lambda key: GroupReport(self.group[key]))

    def erase(self, keys):
        """In one transaction, for there may be many."""
        chosen = [key for key in dict.fromkeys(keys) if key not in self.gone]
        self.gone.update(chosen)
        people = [key.replace("k", "p") for key in chosen]
        forget = partial(erase, keyring=KEYRING, by="officer")
        self.ledger._write(
            lambda transaction: [forget(transaction, person=person) for person in people], tidy=True
        )

    def close(self, trainer=None):
        published = (trainer or self.trainer).close()
        self.service.decider.refresh(self.product)
        self.clock.now += 61.0  # the lease of whoever closed has expired
        return published

    def shut(self):
        self.ledger.close()


def twin_closes(shop, folder):
    """What a trainer that has just started publishes on a copy of the ledger, made now: (policy,
    certificate, checkpoint).
    """
    place = folder / "twin"
    shutil.rmtree(place, ignore_errors=True)
    copy = backup(shop.ledger, place) / "ledger.sqlite"
    with Ledger.open(
        copy, keyring=KEYRING, clock=Clock(shop.clock.now), windows=WindowPlan(30 * DAY)
    ) as ledger:
        return record(ledger, Trainer(ledger, shop.product, "twin").close())


def record(ledger, policy):
    """The policy, its certificate and its checkpoint."""
    rows = ledger.certificates(policy.product)
    return (
        policy.document,
        next(r.document for r in reversed(rows) if r.epoch == policy.epoch),
        ledger.checkpoint(policy),
    )
