"""How fast: group commit against single commits in one run, and verification per million rows."""

import threading
import time

import pytest
from tests.ledger.helpers import opened, person, published

from evenhand.ledger import Terms, verify

pytestmark = pytest.mark.torture


def clients(ledger, policy, number, each, name):
    """Decisions per second of `number` clients, each of whom waits for its answer before it asks again."""

    def ask(client):
        for i in range(each):
            ledger.decide(person(f"{name}-{client}-{i}"), Terms(policy, 0.5))

    threads = [threading.Thread(target=ask, args=(client,)) for client in range(number)]
    begun = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return number * each / (time.perf_counter() - begun)


def test_those_who_wait_together_are_faster(path):
    with opened(path) as ledger:
        policy = published(ledger)
        alone, together = clients(ledger, policy, 1, 300, "alone"), clients(ledger, policy, 64, 60, "together")
        begun = time.perf_counter()
        for batch in range(40):
            ledger.decide_many([(person(f"batch-{batch}-{i}"), Terms(policy, 0.5)) for i in range(100)])
        batches = 4000 / (time.perf_counter() - begun)
    print(f"decisions per second: 1 client {alone:.0f}, 64 clients {together:.0f}, batches of 100 {batches:.0f}")
    assert together >= 3 * alone


def test_a_million_rows_are_verified_in_20_seconds_and_a_restart_takes_one(path):
    """Measured on 100,000 rows in seconds of this process, for others may use the machine."""
    with opened(path) as ledger:
        policy = published(ledger)
        for batch in range(100):
            ledger.decide_many([(person(f"{batch}-{i}"), Terms(policy, 0.5)) for i in range(1000)])
    begun = time.perf_counter()
    ledger = opened(path)
    restart, begun = time.perf_counter() - begun, time.process_time()
    found = verify(ledger, ledger.signed_head())
    seconds = (time.process_time() - begun) / found.rows * 1e6
    ledger.close()
    print(f"restart {restart:.3f} s; verify {seconds:.1f} s per 1e6 rows")
    assert found.ok
    assert restart < 1
    assert seconds <= 20
