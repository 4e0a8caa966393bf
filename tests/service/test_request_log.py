"""One line of JSON for each request, and nothing personal in it."""

import asyncio
import io
import json
import logging

from tests.service.bank import application

from evenhand.service.request_log import JsonFormatter, RequestLog, log_as_json

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
            logging.getLogger("evenhand.service").exception("it failed")
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
