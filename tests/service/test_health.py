"""Live and ready: what stops a replica from being sent people."""

import asyncio
import threading

from tests.service.bank import LOAN

from evenhand.service import Settings, health


def forget(bank):
    """The answer that is remembered for a second."""
    bank.service.health._told = None


def test_a_sound_service_is_live_and_ready_and_says_words_alone(bank):
    assert bank.client.get("/health/live").json() == {"status": "ok"}
    told = bank.client.get("/health/ready")
    assert told.status_code == 200
    assert told.json() == {
        "ready": True,
        "database": "ok",
        "disk": "ok",
        "refresh": "ok",
        "certificate": "ok",
        "witness": "none",
    }


def test_who_is_stopping_or_old_or_full_is_not_ready(bank, monkeypatch):
    bank.service.health.draining = True
    refused = bank.client.get("/health/ready")
    assert (refused.status_code, refused.json()["stopping"]) == (503, "yes")
    assert bank.client.get("/health/live").status_code == 200
    bank.service.health.draining = False

    monkeypatch.setattr(bank.service.decider, "refresh_limit", -1.0)
    forget(bank)
    assert bank.client.get("/health/ready").json()["refresh"] == "old"
    monkeypatch.undo()

    monkeypatch.setattr(health, "LEAST_ROOM", 2**70)
    forget(bank)
    assert bank.client.get("/health/ready").json()["disk"] == "full"


def test_a_database_that_is_away_is_not_ready(bank, monkeypatch):
    def away():
        raise OSError

    monkeypatch.setattr(bank.ledger, "head", away)
    refused = bank.client.get("/health/ready")
    assert (refused.status_code, refused.json()["database"]) == (503, "unreachable")
    assert bank.client.get("/health/live").status_code == 200
    assert bank.client.get("/health").status_code == 503
    monkeypatch.undo()
    assert bank.client.get("/health/ready").status_code == 503  # remembered for a second
    forget(bank)
    assert bank.client.get("/health/ready").status_code == 200
    assert bank.client.get("/health").status_code == 200


def test_a_look_that_a_database_keeps_waiting_is_the_only_one(bank, monkeypatch):
    """Asking needs no key: if every question took a thread of its own, strangers could take all of
    them from those who decide.
    """
    looks, answers = [], threading.Event()

    def wait():
        looks.append(1)
        answers.wait()

    monkeypatch.setattr(health, "LOOKED_FOR", 0.0)
    monkeypatch.setattr(health, "PATIENCE", 0.01)
    monkeypatch.setattr(bank.ledger, "head", wait)
    watched = health.Health(bank.ledger, bank.service.decider, Settings((LOAN,)))

    async def ask():
        try:
            found = await asyncio.gather(*(watched.ready() for _ in range(20)))
            found += [await watched.ready() for _ in range(3)]
            return {words["database"] for words in found}
        finally:
            answers.set()

    assert asyncio.run(ask()) == {"unreachable"}
    assert len(looks) == 1


def test_after_a_restore_nobody_is_sent_here_before_the_gap_is_confirmed(bank):
    bank.ledger.mark_restored("op")
    refused = bank.client.get("/health/ready")
    assert (refused.status_code, refused.json()["gap"]) == (503, "unconfirmed")
    tenants = sorted({product.tenant for product in bank.service.settings.products})
    for tenant in ("somebody else", *tenants):
        bank.ledger.confirm_gap("op", "looked", tenant=tenant)
        forget(bank)
        last = tenant == tenants[-1]
        word = None if last else "of some" if tenant in tenants else "unconfirmed"
        assert bank.client.get("/health/ready").json().get("gap") == word
