"""The ledger as one object: windows that are committed to before the first draw and revealed after
their end, and what a closed ledger says.
"""

import hashlib

import pytest
from service.tests.ledger.helpers import DAY, KEYRING, decided, opened, person, published

from evenhand_service.ledger import (
    LedgerUnavailable,
    NotFound,
    Terms,
    TooEarly,
)
from evenhand_service.ledger.chain import chain_rows


def test_the_hash_of_the_secret_is_in_the_chain_before_the_first_draw(ledger, policy):
    window = decided(ledger, policy, [1])[0].drawn.window
    with ledger.store.reader.connect() as connection:
        kinds = [kind for _, kind, _ in chain_rows(connection)]
    assert kinds.index("window") < kinds.index("decision")
    assert ledger.windows()[0].name == window
    assert (
        ledger.windows()[0].commitment
        == hashlib.sha256(KEYRING.window_secret(ledger.id, window)).hexdigest()
    )


def test_a_secret_is_revealed_after_the_window_and_that_is_recorded(ledger, policy, clock):
    window = ledger.window()
    with pytest.raises(TooEarly):
        ledger.reveal(window.name, "auditor")
    with pytest.raises(NotFound):
        ledger.reveal("w0", "auditor")
    clock.now = window.ends
    assert hashlib.sha256(ledger.reveal(window.name, "auditor")).hexdigest() == window.commitment
    assert ledger.events()[-1].info == {"window": window.name}
    assert ledger.window().name != window.name


def test_one_window_however_many_decisions(ledger, policy, clock):
    decided(ledger, policy, range(10))
    clock.now += 40 * DAY
    decided(ledger, policy, range(10, 20))
    assert len(ledger.windows()) == 2


def test_a_closed_ledger_says_so(path, clock):
    ledger = opened(path, clock)
    policy = published(ledger)
    future = ledger.submit([(person(1), Terms(policy, 0.5))])
    ledger.close()
    assert future.result()[0].drawn.person == "p1"
    with pytest.raises(LedgerUnavailable):
        ledger.decide(person(2), Terms(policy, 0.5))
