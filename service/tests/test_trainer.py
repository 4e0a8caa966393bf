"""The trainer: learns from the ledger alone, publishes once per epoch, falls back, and can be
stopped, rolled back and shadowed.
"""

import dataclasses
import json

import numpy as np
import pytest
from service.tests.bank import DAY, LOAN
from service.tests.ledger.helpers import recomputed
from service.tests.shop import Shop
from service.tests.simulated_run import closings, played_by_the_library, run_epochs
from service.tests.torture.integrity import Intruder

from evenhand.canonical import canonical
from evenhand.fairness.certificate import Certificate
from evenhand_service import Product, Trainer
from evenhand_service.ledger import LeaseHeld, Row, StalePolicy, Tampered
from evenhand_service.product_changes import GuaranteeChanged
from evenhand_service.trainer import ends_of_calls, settled_labels


def test_a_life_is_learned_from_the_ledger_and_certified(bank):
    run_epochs(bank, 9)
    published = closings(bank)
    assert [p.epoch for p in published] == list(range(1, 10))
    assert [p.parent for p in published[1:]] == [p.id for p in published[:-1]]
    assert published[0].info["learned_weight"] == 0.0
    assert max(p.info["learned_weight"] for p in published) > 0.0
    for row in bank.ledger.certificates("loan"):
        certificate = Certificate.from_json(row.document)
        assert certificate.status == "certified"
        assert certificate.limit == LOAN.limit
    assert recomputed(bank.ledger, "loan") == bank.ledger.counts("loan").decisions


def test_the_library_with_the_ledger_s_coins_lives_the_same_life(bank):
    run_epochs(bank, 7)
    played, different = played_by_the_library(bank.ledger)
    certificates = {row.epoch: row.document for row in bank.ledger.certificates("loan")}
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
    wake = sleeper._read_open_rows

    def asleep(*arguments):
        bank.clock.now += 3600
        other.close()
        wake(*arguments)

    monkeypatch.setattr(sleeper, "_read_open_rows", asleep)
    with pytest.raises(StalePolicy):
        sleeper.close()
    assert [p.epoch for p in closings(bank)] == [1, 2]
    monkeypatch.undo()
    bank.clock.now += 3600
    sleeper.close()
    assert [p.epoch for p in closings(bank)] == [1, 2, 3]


def test_another_promise_does_not_continue_a_ledger(bank):
    with pytest.raises(GuaranteeChanged):
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
    with pytest.raises(Tampered, match="without"):
        shop.close()
    assert len(shop.lineage) == published
    assert shop.ledger.broken is not None
    shop.shut()


def test_two_epochs_in_one_closing_are_judged_by_the_bets_of_their_openings(tmp_path):
    """Under load people are decided under the old policy while the trainer publishes the next one,
    so the next closing holds cohorts of two epochs. Closed people who are erased in between, chosen
    by later coins, change nothing that is certified: the bets of both epochs were fixed before
    their coins.
    """
    product = Product("loan", ("score",), hypotheses="thresholds", limit=0.3, seed=6)
    ends = []
    for erased in (False, True):
        shop = Shop(tmp_path / f"{erased}.sqlite", product, seed=3)
        closed = []
        for _ in range(4):
            closed += shop.arrive(200)
            shop.repay(closed)
            shop.close()
        waiting = shop.arrive(150)
        shop.repay(waiting)
        shop.trainer.close()  # replicas go on with the old policy until they hear of the next one
        late = shop.arrive(100)
        shop.service.decider.refresh(shop.product)
        shop.clock.now += 61.0
        new = shop.arrive(200)
        shop.repay([*late, *new])
        if erased:
            shop.erase([key for key in closed if shop.truth[key] == -1][:150])
        state = shop.trainer.learner.state
        assert {shop.drawn[late[0]].epoch, shop.drawn[new[0]].epoch} <= set(state.records)
        shop.close()
        ends.append(np.stack(shop.trainer.learner.state.certified()[1:]))
        shop.shut()
    assert np.array_equal(ends[0], ends[1])


def test_patience_is_counted_from_the_end_of_the_call():
    """A batch is one call: its labels cannot come before it has returned."""
    rows = [
        Row(i, at, "w", (0.5,), "a", None, 0.1, True, 1.0, True, 1.0, "p", 1, 1, "resolved", False)
        for i, at in enumerate([1.0] * 300 + [2.0 + i for i in range(200)])
    ]
    rows = [dataclasses.replace(row, settled=1, label_at=50.0) for row in rows]
    assert ends_of_calls(rows)[:3] == [300, 300, 300]
    assert ends_of_calls(rows)[300:302] == [301, 302]
    settled = settled_labels(rows, None)
    assert settled[:300] == [1] * 300  # 100 people after the batch, time is 101
    late = [dataclasses.replace(row, label_at=150.0) for row in rows]
    assert settled_labels(late, None)[:300] == [0] * 300
    assert settled_labels(late, 5.0) == [1] * 500  # with a window the ledger has settled them


def test_without_a_window_an_epoch_closes_when_it_is_full_whatever_has_come(tmp_path):
    """As the page of the settings says. What has not come counts as the worst case, and the notes
    say of whom they speak.
    """
    product = dataclasses.replace(LOAN, maturity_days=None, groups=("north", "south"))
    shop = Shop(tmp_path / "ledger.sqlite", product)
    (begun,) = shop.lineage
    assert {note["text"].split(",")[0] for note in begun.info["notes"]} == {
        "only constants are deployed: among the 0 people whose cohorts have closed"
    }
    keys = shop.arrive(begun.info["rounds"] - 1)
    shop.repay(keys)
    assert shop.trainer.close_if_due() is None
    shop.arrive(8)  # full, and nobody has told of these
    closed = shop.trainer.close_if_due()
    assert closed is not None
    assert closed.info["closing"]["people"] == len(keys) + 8
    (lost,) = [note for note in closed.info["notes"] if note["kind"] == "unresolved labels"]
    assert lost["text"].startswith("8 labels had not come when their cohort closed")
    assert "maturity_days" in lost["text"]
