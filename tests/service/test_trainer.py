"""The trainer: learns from the ledger alone, publishes once per epoch, falls back, and can be
stopped, rolled back and shadowed.
"""

import dataclasses
import itertools

import pytest
from tests.service.attacks import session
from tests.service.bank import DAY, LOAN, application
from tests.service.lives import closings, live, played_by_the_library
from tests.without_clocks import PATIENCE

from evenhand.errors import EvenhandError
from evenhand.fairness.certificate import Certificate
from evenhand.hypotheses.serialise import policy_from_json
from evenhand.ledger import Damaged, LeaseHeld, Policy, StalePolicy, recompute
from evenhand.service import Trainer
from evenhand.service.decider import verified_mixture
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


# operations


def operate(bank, action, **more):
    found = bank.post(f"/v1/{action}", {"product": "loan", "by": "op", "note": "because", **more})
    assert found.status_code == 200, found.text
    return found.json()


def test_the_kill_switch_is_one_call_and_audited(bank):
    assert operate(bank, "kill", constant="reject")["mode"] == "killed"
    answer = bank.post("/v1/decisions", application()).json()
    assert (answer["accept"], answer["propensity"], answer["mode"]) == (False, 1.0, "killed")
    assert bank.service.trainer(LOAN).close_if_due() is None
    operate(bank, "revive")
    assert bank.post("/v1/decisions", application("k2")).json()["mode"] == "live"
    assert [e.action for e in bank.ledger.events("bank", "loan")] == ["kill", "revive"]
    assert bank.ledger.counts("bank", "loan").usable == 1


def test_rollback_returns_to_a_certified_policy_until_the_next_publication(bank):
    live(bank, 4)
    first = closings(bank)[1].id
    assert operate(bank, "rollback", policy=first)["policy"] == first
    assert bank.post("/v1/decisions", application("new")).json()["policy"] == first
    unknown = bank.post("/v1/rollback", {"product": "loan", "by": "op", "policy": "0" * 64})
    assert unknown.status_code == 422
    bank.service.trainer(LOAN).close()
    bank.service.decider.refresh(LOAN)
    assert bank.service.decider.active(LOAN).policy.epoch == 5


def test_shadow_mode_decides_and_does_not_act(bank):
    operate(bank, "shadow")
    answer = bank.post("/v1/decisions", application()).json()
    assert (answer["mode"], answer["act"]) == ("shadow", False)
    assert bank.ledger.counts("bank", "loan").usable == 0
    operate(bank, "live")
    assert bank.post("/v1/decisions", application("k2")).json()["act"] is True


# what does not verify is not loaded


def flips(policy):
    """The policy with one byte of its record changed."""
    import json

    text = json.dumps(policy.signed | {"signature": policy.signature}).encode()
    for place, bit in itertools.product(range(len(text)), (1, 32)):
        changed = bytearray(text)
        changed[place] ^= bit
        try:
            yield Policy.from_body(policy.seq, json.loads(changed))
        except (ValueError, KeyError, TypeError, AttributeError):
            continue


def test_no_flipped_byte_is_loaded(bank):
    policy = closings(bank)[0]
    loaded = 0
    for flipped in flips(policy):
        try:
            verified_mixture(flipped, bank.ledger.keyring.public_key)
            loaded += flipped != policy
        except (Damaged, EvenhandError, ValueError, TypeError, AttributeError):
            continue
    assert loaded == 0


def test_a_policy_that_does_not_verify_is_replaced_by_the_last_certified_one(bank, monkeypatch):
    live(bank, 3)
    newest = closings(bank)[-1]
    verify = Policy.verify

    def refuse(self, key):
        if self.epoch == newest.epoch:
            raise Damaged("bad")
        verify(self, key)

    monkeypatch.setattr(Policy, "verify", refuse)
    force = bank.service.decider.refresh(LOAN)
    assert force.policy.epoch == 2
    monkeypatch.setattr(
        Policy,
        "verify",
        lambda self, key: (_ for _ in ()).throw(Damaged("bad")) if self.in_lineage else None,
    )
    force = bank.service.decider.refresh(LOAN)
    assert (force.mode, policy_from_json(force.policy.document).describe()) == (
        "killed",
        "always: accept everybody",
    )


def test_swaps_under_load_keep_every_probability(bank):
    """Decisions that started under a policy are drawn by it, whatever is published meanwhile."""
    bank.arrive(100, seed=1)
    started = bank.service.decider.prepare("bank", [])
    assert started == []
    for swap in range(10):
        bank.post("/v1/kill" if swap % 2 else "/v1/revive", {"product": "loan", "by": "op"})
        bank.arrive(20, seed=swap, first=1000 + 100 * swap)
    assert recompute(bank.ledger, "bank", "loan") == 300


def test_certificate_policies_and_plan_over_http(bank):
    live(bank, 3)
    certificate = bank.get("/v1/certificate?product=loan").json()
    assert certificate["claim"].startswith("Certified with probability")
    policies = bank.get("/v1/policies?product=loan").json()
    assert policies["in_force"]["policy"] == closings(bank)[-1].id
    assert all(policy["signature"] for policy in policies["policies"])
    plan = bank.get("/v1/plan?product=loan").json()
    assert plan["epoch"] == 3
    assert plan["to_go"] > 0
    assert b"evenhand_people" in bank.get("/metrics").content


def test_what_is_expected_is_said_over_http_and_on_the_page_and_not_in_the_certificate(bank):
    live(bank, 6)
    (said,) = bank.get("/v1/plan?product=loan").json()["forecast"]
    assert said.startswith(("False positive rate at ", "Half of the weight is learned "))
    page = bank.client.get("/dashboard", headers={"Cookie": session(bank)}).text
    assert said in page
    assert "A forecast from the labels so far; it is no part of the certificate." in page
    assert "forecast" not in bank.get("/v1/certificate?product=loan").text.lower()


def test_an_explanation_names_rules_coin_and_what_would_have_changed_it(bank):
    live(bank, 9)
    rejected = next(row for row in bank.ledger.history("bank", "loan") if not row.accept)
    key = next(
        k for k in range(100_000) if bank.ledger.find("bank", f"k{k}").drawn.seq == rejected.seq
    )
    found = bank.get(f"/v1/decisions/k{key}/explanation").json()
    assert found["accept"] is False
    assert found["coin"] >= found["acceptance"]
    assert sum(part["weight"] for part in found["parts"] if part["accepts"]) == pytest.approx(
        found["acceptance"]
    )
    assert found["levers"][0]["feature"] == "score"
    assert found["levers"][0]["gain"] > 0
    assert "Chance had a say" in found["sentence"]


def test_a_replica_that_does_not_train_takes_up_what_is_published(bank):
    """`serve --no-train` only looks: every step refreshes the policy in force, and none closes an
    epoch.
    """
    import asyncio

    from evenhand.service.app import keep_up

    seen = []

    async def until_both_were_seen() -> None:
        loop, both = asyncio.get_running_loop(), asyncio.Event()

        def look(product) -> None:
            seen.append(bank.service.decider.refresh(product))
            if {found.policy.product for found in seen} >= {"loan", "card"}:
                loop.call_soon_threadsafe(both.set)

        task = asyncio.create_task(keep_up(bank.service, look))
        await asyncio.wait_for(both.wait(), PATIENCE)
        task.cancel()

    before = len(closings(bank))
    object.__setattr__(bank.service.settings, "train_every", 0.0)
    asyncio.run(until_both_were_seen())
    assert len(closings(bank)) == before
