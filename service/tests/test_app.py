"""The application: what it does besides answering, and what it keeps to itself."""

import asyncio
import runpy
import sys
import threading
from pathlib import Path

import pytest
from service.tests.bank import LOAN, Bank, application
from service.tests.simulated_run import closings
from tests.without_clocks import PATIENCE, until

from evenhand_service import SCOPES
from evenhand_service.app import SWITCH_INTERVAL, make_api, repeat
from evenhand_service.ledger import LedgerUnavailable
from evenhand_service.request_guard import PUBLIC

ROOT = Path(__file__).parents[2]


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


class Often(Bank):
    """A bank that looks at its ledger all the time."""

    def __init__(self, path):
        super().__init__(path, refresh_limit=0.003)


def test_the_background_task_survives_every_error_logs_and_counts_it(tmp_path, caplog):
    """Not only the errors of this package: a driver raises its own when its database goes away."""
    errors = [RuntimeError("canary"), KeyError("canary"), LedgerUnavailable("the disk is full.")]
    raised = list(errors)
    bank = Often(tmp_path / "ledger.sqlite")
    keep_up, seen = bank.service.decider.keep_up, threading.Event()

    def fail_first():
        if errors:
            raise errors.pop()
        keep_up()
        seen.set()

    steps = {"looking": fail_first}

    async def looked():
        count = bank.service.metrics.failed_refreshes
        task = asyncio.create_task(repeat(steps, 0.0, count))
        await asyncio.to_thread(seen.wait, PATIENCE)
        task.cancel()

    asyncio.run(looked())
    assert seen.is_set()
    for word in ("RuntimeError", "KeyError", "disk is full"):
        assert word in caplog.text
    assert "canary" not in caplog.text
    text = bank.get("/metrics").text
    bank.close()
    assert f"evenhand_failed_refreshes_total {len(raised)}.0" in text


def test_a_replica_that_does_not_train_takes_up_what_is_published(tmp_path):
    """`serve --no-train` only looks: what another process publishes is taken up, and no epoch is
    closed.
    """
    bank = Often(tmp_path / "ledger.sqlite")
    closed = len(closings(bank))
    first = closings(bank)[-1]
    newest = bank.ledger.publish(
        "loan", first.document | {}, epoch=2, parent=first.id, checkpoint={},
        info={"guarantee": LOAN.guarantee},
    )  # fmt: skip
    until(lambda: bank.service.decider.active(LOAN).policy.seq == newest.seq, "the new policy")
    bank.close()
    assert newest.epoch == closed + 1


def test_the_page_of_the_http_interface_is_written_from_the_document():
    page = runpy.run_path(str(ROOT / "scripts" / "write_http.py"))["page"]()
    kept = (ROOT / "service" / "docs" / "http.md").read_text(encoding="utf-8")
    assert kept == page, "run scripts/write_http.py"
    for path, operations in make_api().openapi()["paths"].items():
        for method in operations:
            assert f"### {method.upper()} {path}\n" in page


def test_every_route_but_the_probes_names_its_scope():
    scopes = {
        path: operation.get("security", [{"key": []}])[0]["key"]
        for path, operations in make_api().openapi()["paths"].items()
        for operation in operations.values()
    }
    assert {path for path, found in scopes.items() if not found} == set(PUBLIC) & set(scopes)
    assert {scope for found in scopes.values() for scope in found} == set(SCOPES)
