"""Live and ready: what stops a replica from being sent people."""

from evenhand.service import health


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
    monkeypatch.undo()
    assert bank.client.get("/health/ready").status_code == 503  # remembered for a second
    forget(bank)
    assert bank.client.get("/health/ready").status_code == 200


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
