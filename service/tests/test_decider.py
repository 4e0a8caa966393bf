"""Which policy decides, and how an application becomes an answer."""

import asyncio
import itertools
import threading
from types import SimpleNamespace

import pytest
from service.tests.bank import LOAN, Bank, application, without_basis
from service.tests.ledger.helpers import recomputed
from service.tests.simulated_run import closings, run_epochs
from service.tests.torture.integrity import Intruder
from tests.without_clocks import PATIENCE, until

from evenhand.errors import EvenhandError
from evenhand.hypotheses import REJECT_ALL
from evenhand.hypotheses.serialise import policy_from_json
from evenhand.policies import Mixture
from evenhand_service.decider import verified_mixture
from evenhand_service.ledger import Damaged, PolicyRecord

REJECT = Mixture((REJECT_ALL,), (1.0,))


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
    assert [e.action for e in bank.ledger.events("loan")] == ["kill", "revive"]
    assert bank.ledger.counts("loan").usable == 1


def test_rollback_returns_to_a_certified_policy_until_the_next_publication(bank):
    run_epochs(bank, 4)
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
    assert bank.ledger.counts("loan").usable == 0
    operate(bank, "live")
    assert bank.post("/v1/decisions", application("k2")).json()["act"] is True


def flips(policy):
    """The policy with one byte of its record changed."""
    import json

    text = json.dumps(policy.signed | {"signature": policy.signature}).encode()
    for place, bit in itertools.product(range(len(text)), (1, 32)):
        changed = bytearray(text)
        changed[place] ^= bit
        try:
            yield PolicyRecord.from_body(policy.seq, json.loads(changed))
        except (ValueError, KeyError, TypeError, AttributeError, Damaged):
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
    run_epochs(bank, 3)
    newest = closings(bank)[-1]
    verify = PolicyRecord.verify

    def refuse(self, key):
        if self.epoch == newest.epoch:
            raise Damaged("bad")
        verify(self, key)

    monkeypatch.setattr(PolicyRecord, "verify", refuse)
    force = bank.service.decider.refresh(LOAN)
    assert force.policy.epoch == 2
    monkeypatch.setattr(
        PolicyRecord,
        "verify",
        lambda self, key: (_ for _ in ()).throw(Damaged("bad")) if self.in_lineage else None,
    )
    force = bank.service.decider.refresh(LOAN)
    assert (force.mode, policy_from_json(force.policy.document).describe()) == (
        "killed",
        "always: accept all applicants",
    )


def test_swaps_under_load_keep_every_probability(bank):
    """Decisions that started under a policy are drawn by it, whatever is published meanwhile."""
    bank.arrive(100, seed=1)
    started = bank.service.decider.prepare([])
    assert started == []
    for swap in range(10):
        bank.post("/v1/kill" if swap % 2 else "/v1/revive", {"product": "loan", "by": "op"})
        bank.arrive(20, seed=swap, first=1000 + 100 * swap)
    assert recomputed(bank.ledger, "loan") == 300


# what is active inside the transaction


@pytest.fixture
def replicas(postgres_url):
    """Two replicas that look at their ledger every twenty minutes, unless they must."""
    made = [Bank(postgres_url, refresh_limit=3600.0) for _ in range(2)]
    yield made
    for bank in made:
        bank.close()


@pytest.mark.parametrize(
    ("action", "mode"),
    [("kill", "killed"), ("shadow", "shadow"), ("revive", "live"), ("live", "live")],
)
def test_a_switch_holds_on_every_replica_when_it_is_acknowledged(replicas, action, mode):
    one, other = replicas
    if mode == "live":
        before = {"revive": "kill", "live": "shadow"}[action]
        one.post(f"/v1/{before}", {"product": "loan", "by": "op"})
        assert other.post("/v1/decisions", application("before")).json()["mode"] != "live"
    else:
        assert other.post("/v1/decisions", application("before")).json()["mode"] == "live"
    assert one.post(f"/v1/{action}", {"product": "loan", "by": "op"}).json()["mode"] == mode
    found = other.post("/v1/decisions", application("after")).json()
    assert (found["mode"], found["act"]) == (mode, mode != "shadow")
    again = one.post("/v1/decisions", application("after"))
    assert again.json() == found
    assert again.headers["evenhand-replayed"] == "true"


def test_a_policy_of_another_replica_decides_at_once(replicas):
    one, other = replicas
    first = closings(one)[-1]
    other.post("/v1/decisions", application("before"))
    newest = one.ledger.publish(
        "loan", REJECT.to_json(), epoch=2, parent=first.id, checkpoint={},
        info={"guarantee": LOAN.guarantee},
    )  # fmt: skip
    batch = {"decisions": [application("a"), application("b", features=[1.0, 2.0])]}
    found = other.post("/v1/decisions/batch", batch).json()["decisions"]
    assert (found[0]["policy"], found[0]["accept"]) == (newest.id, False)
    assert found[1]["status"] == 422


def test_a_decider_that_does_not_compare_is_caught(replicas, monkeypatch):
    """The negative control: terms without a basis."""
    one, other = replicas
    other.post("/v1/decisions", application("before"))
    monkeypatch.setattr("evenhand_service.decider.Terms", without_basis)
    one.post("/v1/kill", {"product": "loan", "by": "op"})
    assert other.post("/v1/decisions", application("after")).json()["mode"] == "live"


def test_a_replica_that_cannot_look_for_too_long_refuses(bank, monkeypatch):
    decider = bank.service.decider
    now = time_of(decider, monkeypatch)

    def away():
        raise RuntimeError("canary")

    monkeypatch.setattr(bank.ledger, "basis", away)
    assert bank.post("/v1/decisions", application("k1")).status_code == 200
    now[0] += 31.0
    refused = bank.post("/v1/decisions", application("k2"))
    assert refused.status_code == 503
    assert "for 31 s this replica could not see what decides" in refused.json()["detail"]
    assert "another replica" in refused.json()["hint"]
    monkeypatch.undo()
    assert bank.post("/v1/decisions", application("k2")).status_code == 200


def time_of(decider, monkeypatch):
    """The seconds since the decider last looked, turned by hand."""
    now = [0.0]
    monkeypatch.setattr(type(decider), "refresh_age", property(lambda self: now[0]))
    return now


def test_many_who_ask_at_once_share_a_look_that_begins_after_they_came(bank):
    looks = []

    async def story():
        decider = bank.service.decider
        decider.ledger = SlowLook(bank.ledger, looks)
        first = [asyncio.ensure_future(decider.current()) for _ in range(50)]
        await asyncio.to_thread(until, lambda: len(looks) == 1, "the first look")
        late = [asyncio.ensure_future(decider.current()) for _ in range(50)]
        await asyncio.sleep(0)
        assert not any(task.done() for task in late)
        decider.ledger.gate.set()
        await asyncio.gather(*first, *late)

    asyncio.run(story())
    assert len(looks) == 2


class SlowLook:
    """A ledger of several replicas, each look at which waits for a sign."""

    def __init__(self, ledger, looks):
        self.ledger, self.looks, self.gate = ledger, looks, threading.Event()
        self.store = SimpleNamespace(path=None)

    def basis(self):
        self.looks.append(1)
        self.gate.wait(PATIENCE)
        return self.ledger.basis()


@pytest.mark.parametrize("deleted", [False, True], ids=["a row added", "a row deleted"])
def test_a_killed_product_stays_killed_whatever_stands_in_the_database(tmp_path, deleted):
    """The service stops, says so, and is not ready; nor is one that starts on that database. The
    row of the kill is deleted, or one that revives the product is added, without the keyring.
    """
    where = tmp_path / "ledger.sqlite"
    bank = Bank(where)
    assert bank.post("/v1/kill", {"product": "loan"}).json()["mode"] == "killed"
    assert bank.post("/v1/decisions", application("k1")).json()["mode"] == "killed"
    intruder = Intruder(where)
    if deleted:
        intruder.unguard()
        intruder.run("DELETE FROM events WHERE action = 'kill'")
    else:
        intruder.run(
            "INSERT INTO events (seq, at, product, action, body, hash) SELECT 900, at, "
            "product, 'revive', replace(body, '\"kill\"', '\"revive\"'), hash FROM events "
            "WHERE action = 'kill'"
        )
    intruder.connection.commit()
    intruder.connection.close()
    for _ in range(2):
        bank.post("/v1/shadow", {"product": "card"})
        answer = bank.post("/v1/decisions", application("k2"))
        assert answer.status_code == 503
        assert "without the keyring" in answer.json()["detail"]
        bank.service.health._told = None
        ready = bank.client.get("/health/ready")
        assert (ready.status_code, ready.json()["database"]) == (503, "broken")
        bank.close()
        bank = Bank(where, known=bank)
    bank.close()
