"""What operators see: live and ready, metrics that name nobody, and one line of JSON for each
request, with nothing personal in it.
"""

import asyncio
import io
import json
import logging
import threading

import pytest
from service.tests.bank import LOAN, Bank, application

from evenhand_service import Settings, monitoring
from evenhand_service.ledger import LedgerUnavailable, SystemClock
from evenhand_service.ledger.outcome_status import RunningCounts
from evenhand_service.monitoring import JsonFormatter, RequestLog, log_as_json

# health


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

    monkeypatch.setattr(monitoring, "LEAST_ROOM", 2**70)
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

    monkeypatch.setattr(monitoring, "LOOKED_FOR", 0.0)
    monkeypatch.setattr(monitoring, "PATIENCE", 0.01)
    monkeypatch.setattr(bank.ledger, "head", wait)
    watched = monitoring.Health(bank.ledger, bank.service.decider, Settings((LOAN,)))

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
    bank.ledger.confirm_gap("op", "looked")
    forget(bank)
    assert "gap" not in bank.client.get("/health/ready").json()


# metrics


def value(bank, line, token=None):
    found = [row for row in bank.get("/metrics", token).text.splitlines() if row.startswith(line)]
    return float(found[0].split()[-1]) if found else None


def test_every_answer_is_counted_by_its_kind(bank):
    bank.post("/v1/decisions", application())
    bank.post("/v1/decisions", application())
    bank.post("/v1/decisions", application(product="nothing"))
    batch = [application("a"), application("b"), application("b", features=[1, 2])]
    bank.post("/v1/decisions/batch", {"decisions": batch})
    assert value(bank, 'evenhand_decisions_total{accept="true",mode="live"}') == 3
    assert value(bank, "evenhand_replayed_total") == 1
    assert value(bank, "evenhand_refused_total") == 2
    assert value(bank, "evenhand_decision_seconds_count") == 4


def test_reports_are_counted_by_their_result(bank):
    bank.post("/v1/decisions", application())
    for key in ("k1", "k1", "unknown"):
        bank.post("/v1/outcomes", {"key": key, "label": 1})
    for result in ("recorded", "repeated", "refused"):
        assert value(bank, f'evenhand_outcomes_total{{result="{result}"}}') == 1


def test_a_product_shows_where_its_decisions_stand(bank):
    bank.post("/v1/decisions", application(group="north"))
    assert value(bank, 'evenhand_people{product="loan",standing="usable"}') == 1
    assert value(bank, 'evenhand_policy_weight{part="audit",product="loan"}') == 1
    assert value(bank, 'evenhand_epoch{product="loan"}') == 1
    text = bank.get("/metrics").text
    assert "north" not in text
    assert "p-k1" not in text


def test_a_large_ledger_is_counted_a_part_at_a_time(bank, monkeypatch):
    """Nobody has looked yet; each look reads 40 rows, whether Prometheus or the background looks,
    and in the end the counts are those of one look at everything.
    """
    bank.repay(*bank.arrive(60, seed=1))
    whole = RunningCounts("loan")
    with bank.ledger.store.reader.connect() as connection:
        expected = whole.look(connection, bank.ledger.head().seq, bank.ledger.keyring)
    for place in ("monitoring", "state"):
        monkeypatch.setattr(f"evenhand_service.{place}.ROWS_AT_ONCE", 40)
    left = []
    while not left or left[-1] > 0:
        bank.service.count(LOAN)
        left.append(value(bank, 'evenhand_uncounted_rows{product="loan"}'))
    assert len(left) > 1
    assert left == sorted(left, reverse=True)
    assert value(bank, 'evenhand_people{product="loan",standing="usable"}') == expected.usable
    assert bank.ledger.counts("loan") == expected


def test_what_an_operator_is_woken_for_is_a_gauge(bank):
    bank.arrive(30, seed=1)
    bank.post("/v1/shadow", {"product": "loan", "by": "op"})
    text = bank.get("/metrics").text
    told = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert told['evenhand_mode{mode="shadow",product="loan"}'] == "1.0"
    assert told['evenhand_mode{mode="live",product="loan"}'] == "0.0"
    assert told['evenhand_certificate_suspended{product="loan"}'] == "0.0"
    assert told["evenhand_database_up"] == "1.0"
    assert told["evenhand_failed_commits"] == "0.0"
    assert float(told["evenhand_refresh_age_seconds"]) >= 0
    assert float(told['evenhand_policy_age_seconds{product="loan"}']) >= 0


def test_a_database_that_is_away_is_a_gauge_too(bank, monkeypatch):
    def away():
        raise OSError

    monkeypatch.setattr(bank.ledger, "head", away)
    text = bank.service.metrics.text(bank.service.health).decode()
    assert "evenhand_database_up 0.0" in text
    assert "evenhand_people{" not in text


def test_the_lag_of_labels_is_that_of_the_product(bank):
    assert "evenhand_label_lag_seconds{" not in bank.get("/metrics").text
    bank.post("/v1/decisions", application("k1"))
    bank.clock.now += 10
    bank.post("/v1/outcomes", {"key": "k1", "label": 1})
    bank.clock.now += 30
    text = bank.get("/metrics").text
    assert 'evenhand_label_lag_seconds{product="loan"} 30.0' in text
    assert 'evenhand_label_lag_seconds{product="card"}' not in text


# the log of requests

SCOPE = {"method": "GET", "client": ("10.0.0.1", 5000)}


class Lines(RequestLog):
    """A log whose lines can be read at once."""

    def __init__(self):
        self.out = io.StringIO()
        super().__init__(self.out)

    def request(self, *given):
        super().request(*given)
        self.flush()

    @property
    def read(self):
        return [json.loads(line) for line in self.out.getvalue().splitlines()]


def test_every_request_is_a_line_without_person_key_or_group(bank):
    bank.service.request_log = log = Lines()
    secret = {"key": "canary-key", "person": "canary-person", "group": "canary-group"}
    told = [
        bank.post("/v1/decisions", {**application(), **secret}),
        bank.get("/v1/decisions/canary-key"),
        bank.get("/v1/decisions/canary-key/explanation"),
        bank.post("/v1/decisions", {**application(), **secret, "features": "canary"}),
        bank.get("/v1/head", token="eh_canary"),
        bank.client.get("/health"),
        bank.get("/canary-path"),
    ]
    assert "canary" not in log.out.getvalue()
    assert [line["status"] for line in log.read] == [one.status_code for one in told]
    assert [line["id"] for line in log.read] == [one.headers["x-request-id"] for one in told]
    assert len({line["id"] for line in log.read}) == len(told)
    assert [line["route"] for line in log.read][:2] == ["/v1/decisions", "/v1/decisions/{key}"]


def test_who_fails_to_log_in_is_told_with_the_address(bank):
    bank.service.request_log = log = Lines()
    bank.get("/v1/head", token="eh_wrong")
    bank.client.post("/dashboard/login", content="key=eh_wrong")
    bank.get("/v1/head")
    events = [(line["event"], "client" in line) for line in log.read]
    assert events == [("login_failed", True), ("login_failed", True), ("request", False)]
    assert "eh_wrong" not in log.out.getvalue()


def test_lines_are_written_together():
    out = io.StringIO()

    async def some():
        log = RequestLog(out)
        for number in range(3):
            log.request(f"{number}", SCOPE, 200, 0.001)
        assert out.getvalue() == ""
        log.flush()

    asyncio.run(some())
    assert [json.loads(line)["id"] for line in out.getvalue().splitlines()] == ["0", "1", "2"]


def test_other_lines_are_json_without_tracebacks():
    out = io.StringIO()
    before = {name: logging.getLogger(name).handlers[:] for name in ("evenhand", "uvicorn")}
    try:
        log_as_json(lambda: logging.StreamHandler(out))
        log_as_json(lambda: logging.StreamHandler(out))
        try:
            raise ValueError("canary")
        except ValueError:
            logging.getLogger("evenhand_service").exception("it failed")
    finally:
        for name, handlers in before.items():
            logging.getLogger(name).handlers[:] = handlers
            logging.getLogger(name).propagate = True
    (line,) = out.getvalue().splitlines()
    assert json.loads(line)["message"] == "it failed"
    assert JsonFormatter is not None


def test_a_stranger_behind_a_trusted_proxy_is_told_with_both_addresses():
    async def tell(log):
        for status, told in (
            (401, "9.9.9.9"),
            (401, "10.0.0.1"),
            (200, "9.9.9.9"),
            (429, "x" * 99),
        ):
            log.request("1", SCOPE, status, 0.1, told)
        return [(line.get("client"), line.get("forwarded")) for line in log.read]

    assert asyncio.run(tell(Lines())) == [
        ("10.0.0.1", "9.9.9.9"),
        ("10.0.0.1", None),
        (None, None),
        ("10.0.0.1", "x" * 64),
    ]


# a wrong clock


class Clocks:
    """The time of day and the time since boot of one machine, turned by hand."""

    def __init__(self):
        self.wall = 1_800_000_000.0
        self.elapsed = 5.0

    def system(self):
        return SystemClock(wall=lambda: self.wall, elapsed=lambda: self.elapsed)


@pytest.mark.parametrize("days", [40, 0.01])
def test_who_refuses_every_decision_because_of_the_clock_is_not_ready(tmp_path, days):
    clocks = Clocks()
    bank = Bank(tmp_path / "ledger.sqlite", clock=clocks.system())
    try:
        assert bank.post("/v1/decisions", application("before")).status_code == 200
        assert bank.client.get("/health/ready").status_code == 200
        assert value(bank, "evenhand_clock_wrong") == 0
        clocks.wall += days * 86400.0
        refused = bank.post("/v1/decisions", application("ahead"))
        assert (refused.status_code, "the clock of" in refused.json()["detail"]) == (503, True)
        forget(bank)
        ready = bank.client.get("/health/ready")
        assert (ready.status_code, ready.json()["clock"]) == (503, "wrong")
        assert bank.client.get("/health/live").status_code == 200
        assert value(bank, "evenhand_clock_wrong") == 1
        clocks.wall -= days * 86400.0
        forget(bank)
        assert bank.post("/v1/decisions", application("right")).status_code == 200
        assert "clock" not in bank.client.get("/health/ready").json()
    finally:
        bank.close()


def test_a_replica_behind_the_database_s_clock_is_not_ready(tmp_path, postgres_url):
    """The database is ahead of this machine, by ten days: which of the two is wrong nobody knows,
    and nothing is drawn.
    """
    clock = SystemClock()
    bank = Bank(postgres_url, clock=clock)
    try:
        assert bank.client.get("/health/ready").status_code == 200
        today = clock._wall
        clock._wall = lambda: today() - 10 * 86400.0
        refused = bank.post("/v1/decisions", application("behind"))
        assert (refused.status_code, "the clock of" in refused.json()["detail"]) == (503, True)
        forget(bank)
        ready = bank.client.get("/health/ready")
        assert (ready.status_code, ready.json()["clock"]) == (503, "wrong")
    finally:
        bank.close()


def test_ready_and_decide_ask_the_same(bank, monkeypatch):
    """Whatever a draw would be refused for: the witnesses that must take a head, too."""
    bank.ledger.draw_only_if(lambda: LedgerUnavailable("no witness has taken a head."))
    assert bank.post("/v1/decisions", application()).status_code == 503
    ready = bank.client.get("/health/ready")
    assert (ready.status_code, ready.json()["witness"]) == (503, "required")
    bank.ledger.draw_only_if(lambda: None)
    forget(bank)
    assert bank.post("/v1/decisions", application()).status_code == 200
    assert bank.client.get("/health/ready").status_code == 200
