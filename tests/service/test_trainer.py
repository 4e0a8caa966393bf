"""The trainer: learns from the ledger alone, publishes once per epoch, falls back, and can be
stopped, rolled back and shadowed.
"""

import dataclasses
import json

import pytest
from tests.service.bank import DAY, LOAN
from tests.service.lives import closings, live, played_by_the_library
from tests.service.shop import Shop
from tests.torture.integrity import Intruder

from evenhand.canonical import canonical
from evenhand.fairness.certificate import Certificate
from evenhand.ledger import LeaseHeld, StalePolicy, Tampered, recompute
from evenhand.service import Trainer
from evenhand.service.trainer import PromiseChanged


def test_a_life_is_learned_from_the_ledger_and_certified(bank):
    live(bank, 9)
    published = closings(bank)
    assert [p.epoch for p in published] == list(range(1, 10))
    assert [p.parent for p in published[1:]] == [p.id for p in published[:-1]]
    assert published[0].info["learned_weight"] == 0.0
    assert max(p.info["learned_weight"] for p in published) > 0.0
    for row in bank.ledger.certificates("bank", "loan"):
        certificate = Certificate.from_json(row.document)
        assert certificate.status == "certified"
        assert certificate.limit == LOAN.limit
    assert recompute(bank.ledger, "bank", "loan") == bank.ledger.counts("bank", "loan").decisions


def test_the_library_with_the_ledger_s_coins_lives_the_same_life(bank):
    live(bank, 7)
    played, different = played_by_the_library(bank.ledger)
    certificates = {row.epoch: row.document for row in bank.ledger.certificates("bank", "loan")}
    published = {
        policy.epoch: (policy.document, certificates[policy.epoch]) for policy in closings(bank)
    }
    assert different == 0
    assert len(played) >= 6
    assert played == {epoch: published[epoch] for epoch in played}


def test_two_trainers_never_publish_the_same_epoch(bank):
    bank.arrive(100, seed=5)
    bank.clock.now += 3600
    one, two = (Trainer(bank.ledger, LOAN, name) for name in ("one", "two"))
    one.catch_up()
    one.close()
    with pytest.raises(LeaseHeld):
        two.close()
    bank.clock.now += 3600
    two.close()
    assert [p.epoch for p in closings(bank)] == [1, 2, 3]


def test_who_stops_gives_the_right_to_train_back(bank):
    bank.arrive(100, seed=5)
    bank.clock.now += 3600
    one, two = (Trainer(bank.ledger, LOAN, name) for name in ("one", "two"))
    two.release()  # it holds nothing
    one.close()
    two.release()
    with pytest.raises(LeaseHeld):
        two.close()
    one.release()
    two.close()
    one.release()  # what another holds stays with it
    with pytest.raises(LeaseHeld):
        one.close()
    assert [p.epoch for p in closings(bank)] == [1, 2, 3]


def test_a_trainer_that_was_asleep_is_fenced_off(bank, monkeypatch):
    bank.arrive(100, seed=5)
    bank.clock.now += 3600
    sleeper, other = (Trainer(bank.ledger, LOAN, name) for name in ("sleeper", "other"))
    wake = sleeper._close

    def asleep(*arguments):
        bank.clock.now += 3600
        other.close()
        wake(*arguments)

    monkeypatch.setattr(sleeper, "_close", asleep)
    with pytest.raises(StalePolicy):
        sleeper.close()
    assert [p.epoch for p in closings(bank)] == [1, 2]
    monkeypatch.undo()
    bank.clock.now += 3600
    sleeper.close()
    assert [p.epoch for p in closings(bank)] == [1, 2, 3]


def test_another_promise_does_not_continue_a_ledger(bank):
    with pytest.raises(PromiseChanged):
        Trainer(bank.ledger, dataclasses.replace(LOAN, limit=0.3), "x").catch_up()


def test_labels_count_only_once_they_have_matured(bank):
    bank.arrive(100, seed=5)
    trainer = bank.service.trainer(LOAN)
    trainer.close()
    assert trainer.learner.certificate.window == (0, 0)
    bank.clock.now += 6 * DAY
    trainer.close()
    assert trainer.learner.certificate.window == (0, 100)


@pytest.mark.parametrize("seq", [2, 900_000_000], ids=["below the head", "beyond it"])
def test_nothing_is_learned_from_a_label_that_was_put_into_the_database(tmp_path, seq):
    """By somebody without the keyring: nothing is published, and the ledger stops."""
    where = tmp_path / "ledger.sqlite"
    shop = Shop(where, LOAN)
    keys = shop.arrive(40)
    shop.repay(keys[:20])
    shop.close()
    later = shop.arrive(40)
    shop.repay(later[:20])
    intruder = Intruder(where)
    at, digest, body = intruder.run("SELECT at, hash, body FROM outcomes").fetchone()
    decision = shop.drawn[later[30]].seq
    told = canonical(json.loads(body) | {"decision": decision, "value": "-1"})
    intruder.run(
        "INSERT INTO outcomes (seq, at, decision, report, value, body, hash) "
        "VALUES (?, ?, ?, 'label', '-1', ?, ?)",
        *(seq, at, decision, told, bytes(digest)),
    )
    intruder.connection.commit()
    intruder.connection.close()
    shop.clock.now += 40 * DAY
    published = len(shop.lineage)
    with pytest.raises(Tampered, match="without the keyring"):
        shop.close()
    assert len(shop.lineage) == published
    assert shop.ledger.broken is not None
    shop.shut()
