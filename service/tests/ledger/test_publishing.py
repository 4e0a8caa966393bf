"""One publication per epoch, whoever sleeps; the kill switch, the way back, and what is signed."""

import dataclasses
import threading

import pytest
from service.tests.ledger.helpers import KEYRING, PRODUCT, Clock, coin, opened, published

from evenhand_service.ledger import (
    Damaged,
    Invalid,
    LeaseHeld,
    NotFound,
    PolicyRecord,
    StalePolicy,
    verify,
)
from evenhand_service.ledger.refusals import Refusal


def test_a_publication_follows_the_last_one_or_is_refused(where):
    with opened(where) as ledger:
        first = published(ledger)
        second = ledger.publish(
            PRODUCT,
            coin(0.6),
            epoch=2,
            parent=first,
            checkpoint={},
            certificate={"limit": 0.1},
        )
        for epoch, parent in ((2, first), (3, first), (4, second.id), (3, None)):
            with pytest.raises(StalePolicy):
                ledger.publish(PRODUCT, coin(0.7), epoch=epoch, parent=parent, checkpoint={})
        assert [policy.epoch for policy in ledger.policies(PRODUCT)] == [1, 2]
        assert [row.document for row in ledger.certificates(PRODUCT)] == [{"limit": 0.1}]
        assert ledger.policy(second.id) == second
        assert ledger.active(PRODUCT).policy == second
        with pytest.raises(NotFound):
            ledger.policy("0" * 64)


def test_the_same_policy_may_be_published_for_two_epochs(ledger):
    first = published(ledger)
    again = ledger.publish(PRODUCT, coin(0.5), epoch=2, parent=first, checkpoint={})
    assert again.id == first
    assert ledger.active(PRODUCT).policy.epoch == 2


def test_a_lease_changes_hands_when_it_expires_and_fences_the_sleeper(where):
    clock = Clock()
    with opened(where, clock) as ledger:
        sleeper = ledger.acquire_lease("trainer", "one", 60)
        assert ledger.acquire_lease("trainer", "one", 60).token == sleeper.token
        with pytest.raises(LeaseHeld):
            ledger.acquire_lease("trainer", "two", 60)
        clock.now += 61
        awake = ledger.acquire_lease("trainer", "two", 60)
        assert awake.token == sleeper.token + 1
        with pytest.raises(StalePolicy):
            published(ledger, lease=sleeper)
        published(ledger, lease=awake)
        assert len(ledger.policies(PRODUCT)) == 1


@pytest.mark.parametrize("epochs", [5])
def test_four_trainers_on_postgresql_publish_each_epoch_once(postgres_url, epochs):
    ledgers = [opened(postgres_url) for _ in range(4)]
    try:
        threads = [threading.Thread(target=_train, args=(ledger, epochs)) for ledger in ledgers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [p.epoch for p in ledgers[0].policies(PRODUCT)] == list(range(1, epochs + 1))
        assert verify(ledgers[1], deep=True).ok
    finally:
        for ledger in ledgers:
            ledger.close()


def _train(ledger, epochs):
    while len(lineage := ledger.policies(PRODUCT)) < epochs:
        parent = lineage[-1].id if lineage else None
        try:
            ledger.publish(
                PRODUCT,
                coin(0.1 + 0.1 * len(lineage)),
                epoch=len(lineage) + 1,
                parent=parent,
                checkpoint={},
            )
        except StalePolicy:
            continue


def test_kill_revive_rollback_and_shadow(ledger):
    first = published(ledger, certificate={"limit": 0.1})
    second = ledger.publish(PRODUCT, coin(0.6), epoch=2, parent=first, checkpoint={}).id
    everybody = ledger.register(PRODUCT, coin(1.0)).id

    def now():
        found = ledger.active(PRODUCT)
        return found.policy.id, found.mode

    assert now() == (second, "live")
    ledger.operate(PRODUCT, "kill", "operator", "smoke", policy=everybody)
    assert now() == (everybody, "killed")
    third = ledger.publish(PRODUCT, coin(0.7), epoch=3, parent=second, checkpoint={}).id
    assert now() == (everybody, "killed")
    ledger.operate(PRODUCT, "revive", "operator")
    assert now() == (third, "live")
    ledger.operate(PRODUCT, "rollback", "operator", policy=first)
    assert now() == (first, "live")
    ledger.operate(PRODUCT, "shadow", "operator")
    assert now() == (first, "shadow")
    ledger.operate(PRODUCT, "live", "operator")
    fourth = ledger.publish(PRODUCT, coin(0.8), epoch=4, parent=third, checkpoint={}).id
    assert now() == (fourth, "live")
    actions = [e.action for e in ledger.events(PRODUCT)]
    assert actions == ["kill", "revive", "rollback", "shadow", "live"]


def test_operators_cannot_name_what_does_not_exist(ledger, policy):
    before = ledger.head()
    for action, target, error in (
        ("kill", "f" * 64, NotFound),
        ("rollback", policy, Invalid),
        ("dance", None, Invalid),
    ):
        with pytest.raises(error):
            ledger.operate(PRODUCT, action, "operator", policy=target)
    assert ledger.head() == before
    assert ledger.active("nothing") is None


def test_every_change_of_a_policy_breaks_its_signature(ledger):
    policy = ledger.publish(
        PRODUCT,
        coin(0.5),
        epoch=1,
        parent=None,
        checkpoint={},
        certificate={"a": 1},
        info={"b": 2},
    )
    policy.verify(KEYRING.public_key)
    changes = {
        "id": "x",
        "product": "x",
        "epoch": 9,
        "parent": "x",
        "document": {},
        "info": {},
        "certificate": "x",
    }
    for name, value in (changes | {"in_lineage": False, "signature": "00" * 64}).items():
        with pytest.raises(Damaged):
            dataclasses.replace(policy, **{name: value}).verify(KEYRING.public_key)
    body = policy.signed | {"signature": policy.signature}
    assert PolicyRecord.from_body(policy.seq, body) == policy


@pytest.mark.parametrize("version", [None, 0, 2])
def test_a_policy_of_another_protocol_is_an_error(ledger, version):
    published(ledger)
    (policy,) = ledger.policies(PRODUCT)
    body = policy.signed | {"info": {"protocol_version": version}, "signature": policy.signature}
    with pytest.raises(Damaged, match=f"protocol version {version!r}"):
        PolicyRecord.from_body(policy.seq, body)


def test_a_policy_must_be_json(ledger):
    for document in ({"x": float("nan")}, {"x": object()}):
        with pytest.raises(Refusal):
            ledger.publish(PRODUCT, document, epoch=1, parent=None, checkpoint={})
