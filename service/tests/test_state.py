"""What the routes share: every product has a policy before the first request."""

import logging

from service.tests.bank import CARD, DAY, LOAN


def test_every_product_begins_with_a_policy_and_two_constants(bank):
    for product in (LOAN, CARD):
        policies = bank.ledger.policies(product.name)
        constants = {p.info["constant"] for p in policies if not p.in_lineage}
        assert constants == {"accept", "reject"}
        assert [p.epoch for p in policies if p.in_lineage] == [1]
        assert bank.service.decider.active(product).mode == "live"


def test_to_begin_again_changes_nothing(bank):
    before = bank.ledger.head().seq
    bank.service.begin()
    assert bank.ledger.head().seq == before


def test_training_publishes_and_decides_by_what_was_published(bank, caplog):
    caplog.set_level(logging.INFO)
    bank.service.train(LOAN)
    assert bank.service.decider.active(LOAN).policy.epoch == 1
    epoch = bank.service.trainer(LOAN).learner.epoch
    bank.repay(*bank.arrive(epoch.first_round + epoch.rounds, seed=1))
    bank.clock.now += 6 * DAY
    bank.service.train(LOAN)
    assert bank.service.decider.active(LOAN).policy.epoch == 2
    assert "product loan: epoch 2 published" in caplog.text


def test_a_process_that_began_holds_no_lease(bank):
    """It may never train: another one does so at once."""
    lease = bank.ledger.acquire_lease("train/loan", "another process", 60.0)
    assert lease.holder == "another process"
