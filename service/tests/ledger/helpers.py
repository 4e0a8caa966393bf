"""A small bank for the tests of the ledger: a clock that is turned by hand, a keyring with a known
root, one published policy.
"""

import hashlib
import os
from collections import Counter

import numpy as np

from evenhand.hypotheses import ACCEPT_ALL, REJECT_ALL, policy_from_json
from evenhand.policies import Mixture
from evenhand_service.ledger import Application, Keyring, Ledger, Terms, WindowPlan

DAY = 86400.0
KEYRING = Keyring(bytes(range(32)))
PRODUCT = "loan"


class Clock:
    """Seconds since the epoch, turned by hand."""

    def __init__(self, now=1_800_000_000.0):
        self.now = now

    def __call__(self):
        return self.now


_NAMED = Counter()


class KnownName:
    """Random bytes, except the first sixteen, which name a new ledger. Its coins follow from its
    name and the keyring, so that each test sees the same coins in every run.
    """

    def __init__(self):
        test = os.environ.get("PYTEST_CURRENT_TEST", "").partition(" ")[0]
        _NAMED[test] += 1
        self._name = hashlib.sha256(f"{test} {_NAMED[test]}".encode()).digest()[:16]

    def __call__(self, size):
        name, self._name = self._name, None
        return name if name and size == 16 else os.urandom(size)


def coin(acceptance):
    """Accept with that probability, whoever it is."""
    return Mixture((ACCEPT_ALL, REJECT_ALL), (acceptance, 1.0 - acceptance)).to_json()


def opened(where, clock=None, kind=Ledger, **options):
    told = {"clock": clock or Clock(), "windows": WindowPlan(30 * DAY), "entropy": KnownName()}
    return kind.open(where, keyring=KEYRING, **{**told, **options})


def published(ledger, acceptance=0.5, **options):
    """The id of the first policy."""
    return ledger.publish(
        PRODUCT, coin(acceptance), epoch=1, parent=None, checkpoint={}, **options
    ).id


def person(number, *, key=None, product=PRODUCT, features=(0.5, 2.0), group="a", **options):
    name = f"k{number}" if key is None else key
    return Application(name, f"p{number}", product, features, group=group, **options)


def decided(ledger, policy, numbers, acceptance=0.5, **options):
    """Answers for people with those numbers."""
    terms = Terms(policy, acceptance, **options)
    answers = ledger.decide_many([(person(number), terms) for number in numbers])
    for answer in answers:
        assert not isinstance(answer, Exception), answer
    return answers


def recomputed(ledger, product):
    """Of how many decisions (acceptance as the row says it, as the policy that the row names says
    it) agree bit for bit; asked one by one, without the people who were erased.
    """
    policies = {
        record.id: policy_from_json(record.document, models=ledger.models(record.document))
        for record in ledger.policies(product)
    }
    agree = 0
    for row in ledger.history(product, usable_only=False):
        if row.features is not None:
            policy = policies[row.policy]
            group = np.array([row.group], dtype=object) if policy.group_use == "decide" else None
            agree += float(policy.acceptance([row.features], group)[0]) == row.acceptance
    return agree
