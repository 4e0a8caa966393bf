"""The application: what it does besides answering, and what it keeps to itself."""

import sys

import pytest
from tests.service.bank import Bank, application
from tests.service.lives import closings
from tests.without_clocks import PATIENCE

from evenhand.service.app import SWITCH_INTERVAL


def test_turns_are_short_while_the_service_runs_and_as_before_afterwards(tmp_path):
    before = sys.getswitchinterval()
    bank = Bank(tmp_path / "ledger.sqlite")
    during = sys.getswitchinterval()
    bank.close()
    assert during == pytest.approx(SWITCH_INTERVAL)
    assert sys.getswitchinterval() == before


def test_canaries_are_in_no_log(bank, caplog):
    caplog.set_level("DEBUG")
    canary = "canary-group-9d"
    bank.post("/v1/decisions", application(group=canary))
    bank.post("/v1/decisions", application(group=[canary]))
    bank.post("/v1/groups", {"key": "k1", "group": canary + "2"})
    text = caplog.text
    assert canary not in text
    assert bank.all not in text


def test_a_crash_says_nothing_about_itself(bank, caplog, monkeypatch):
    canary = "canary-7c"

    def crash(*_):
        raise RuntimeError(canary)

    monkeypatch.setattr(bank.service.decider, "prepare", crash)
    found = bank.post("/v1/decisions", application(group=canary))
    assert found.status_code == 503
    assert canary not in found.text + caplog.text


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
