"""Traces: spans for deciding, outcomes and training, with nobody in them; nothing where they are
off.
"""

import json
import os
import re
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from fastapi import FastAPI
from service.tests.bank import Bank, application
from starlette.testclient import TestClient

from evenhand.errors import InvalidInput
from evenhand_service import routes, traces

SECRETS = {
    "key": "application-of-Eve",
    "person": "Eve-from-Ulm",
    "group": "group-of-Eve",
    "feature": "6174.25",
}
"""What must be in no span; of each only this part could have come from the request."""


@pytest.fixture
def memory():
    """Spans as they end."""
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter = InMemorySpanExporter()
    traces.start(exporter)
    yield exporter
    traces.stop()


@pytest.fixture
def traced(tmp_path, memory):
    """A bank whose requests are traced, as `make_server` does it."""
    bank = Bank(tmp_path / "ledger.sqlite")
    app = traces.TracedRequests(bank.app)
    bank.client = TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False)
    yield bank
    bank.close()


def a_day(bank):
    """Decide, repeat, contradict, report, ask for what is not there, train; and what was said."""
    eve = application(SECRETS["key"], person=SECRETS["person"], group=SECRETS["group"])
    eve["features"] = [float(SECRETS["feature"])]
    answers = [
        bank.post("/v1/decisions", eve),
        bank.post("/v1/decisions", {**eve, "features": [1.0]}),  # a conflict
        bank.post("/v1/decisions/batch", {"decisions": [eve, eve]}),
        bank.post("/v1/decisions", {**eve, "features": SECRETS["group"]}),  # refused by name
        bank.post("/v1/outcomes", {"key": SECRETS["key"], "label": 1}),
        bank.post("/v1/outcomes", {"key": SECRETS["person"], "label": 1}),  # no such decision
        bank.get(f"/v1/decisions/{SECRETS['key']}/explanation"),
        bank.get(f"/nowhere/{SECRETS['key']}"),
        bank.call(SECRETS["person"], "/v1/keys"),
        bank.post("/v1/train", {"product": "loan", "by": SECRETS["person"]}),
    ]
    return [answer.status_code for answer in answers]


def by_name(memory):
    found = {}
    for span in memory.get_finished_spans():
        found.setdefault(span.name, []).append(span)
    return found


def leaks(memory):
    """What the spans give away: everything in them, as text, against what the requests held."""
    text = "\n".join(span.to_json() for span in memory.get_finished_spans())
    return sorted(name for name, secret in SECRETS.items() if secret in text)


def test_the_spans_of_a_day(traced, memory):
    assert a_day(traced) == [200, 409, 200, 422, 200, 404, 200, 404, 405, 200]
    spans = by_name(memory)
    decided = spans["evenhand.decide"]
    assert [dict(span.attributes) for span in decided] == [
        {"evenhand.applications": number} for number in (1, 1, 2)
    ]
    requests = spans["POST /v1/decisions"] + spans["POST /v1/decisions/batch"]
    assert {span.parent.span_id for span in decided} < {one.context.span_id for one in requests}
    assert [dict(span.attributes) for span in spans["evenhand.observe"]] == [
        {"evenhand.reports": 1}
    ] * 2
    (trained,) = spans["evenhand.train"]
    assert dict(trained.attributes) == {"evenhand.product": "loan", "evenhand.epoch": 2}
    (request,) = spans["POST /v1/train"]
    assert trained.context.trace_id == request.context.trace_id
    refused = spans["POST /v1/decisions"][1]
    assert dict(refused.attributes) == {
        "http.request.method": "POST",
        "http.response.status_code": 409,
        "http.route": "/v1/decisions",
    }
    assert {"GET /v1/decisions/{key}/explanation", "GET", "_OTHER /v1/keys"} <= set(spans)


def test_nobody_is_in_a_span(traced, memory):
    a_day(traced)
    assert leaks(memory) == []


def test_a_span_that_names_somebody_is_noticed(traced, memory, monkeypatch):
    """The negative control: spans that keep the words of what they were given."""

    def careless(part, **facts):
        return traces._recorded(traces._tracer, part, {**facts, "asked": asked[0]})

    asked = [""]
    decide = traced.service.decider.decide

    async def watched(given, still_allowed):
        asked[0] = str(given)
        with careless("again"):
            return await decide(given, still_allowed)

    monkeypatch.setattr(traced.service.decider, "decide", watched)
    a_day(traced)
    assert leaks(memory) == ["feature", "group", "key", "person"]


def test_the_framework_s_own_spans_are_off(tmp_path, memory, monkeypatch):
    """FastAPI makes spans and logs of its own wherever there is a provider; ours has none of them,
    and would show the path with the key in it.
    """
    from opentelemetry import trace

    pytest.importorskip("fastapi.telemetry", reason="this FastAPI has no telemetry")
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: traces._provider)
    bank = Bank(tmp_path / "ledger.sqlite")
    bank.get(f"/v1/decisions/{SECRETS['key']}/explanation")
    assert memory.get_finished_spans() == ()
    bank.close()
    app = FastAPI(telemetry={"tracer_provider": traces._provider})  # the negative control
    app.get("/{key}")(lambda key: key)
    TestClient(app).get(f"/{SECRETS['key']}")
    assert leaks(memory) == ["key"]


def test_a_failure_is_told_by_its_type(memory):
    with pytest.raises(KeyError), traces.span("train", product="loan"):
        raise KeyError(SECRETS["person"])
    (span,) = memory.get_finished_spans()
    assert span.attributes["error.type"] == "KeyError"
    assert span.status.status_code.name == "ERROR"
    assert span.events == ()
    assert leaks(memory) == []


def test_a_caller_s_trace_goes_on(traced, memory):
    trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
    headers = {"traceparent": f"00-{trace}-{parent}-01", "baggage": f"who={SECRETS['person']}"}
    traced.client.get("/health/live", headers=headers)
    traced.client.get("/health/live", headers={"traceparent": "00-nonsense"})
    known, alone = by_name(memory)["GET /health/live"]
    assert format(known.context.trace_id, "032x") == trace
    assert format(known.parent.span_id, "016x") == parent
    assert alone.parent is None
    assert leaks(memory) == []


class Collector(BaseHTTPRequestHandler):
    """Takes what an exporter sends."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.taken.append((self.path, body))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


def test_spans_arrive_at_a_collector(monkeypatch, tmp_path):
    """OpenTelemetry's own exporter, over a real socket."""
    import gzip

    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    with HTTPServer(("127.0.0.1", 0), Collector) as collector:
        collector.taken = []
        threading.Thread(target=collector.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{collector.server_port}"
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
        monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test")
        with traces.tracing(True), traces.span("decide", applications=3):
            pass
        collector.shutdown()
    ((path, body),) = collector.taken
    assert path == "/v1/traces"
    document = ExportTraceServiceRequest()
    document.ParseFromString(gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body)
    (resource,) = document.resource_spans
    told = {one.key: one.value.string_value for one in resource.resource.attributes}
    assert told["service.name"] == "evenhand"
    assert told["deployment.environment"] == "test"
    (span,) = resource.scope_spans[0].spans
    assert span.name == "evenhand.decide"


def test_off_means_that_nothing_is_made():
    assert traces.span("decide", applications=1) is traces.span("train") is traces.NOTHING
    assert routes.span is traces.span


@pytest.mark.thorough
def test_off_means_that_nothing_is_imported(tmp_path):
    """A fresh process decides, observes and trains without the SDK and without an exporter, and
    although the variables of OpenTelemetry and of FastAPI ask for both.
    """
    code = """
import sys
from pathlib import Path
for name in ("sdk", "exporter", "instrumentation"):
    sys.modules[f"opentelemetry.{name}"] = None  # as if they were not installed
from service.tests.bank import Bank, application
bank = Bank(Path(sys.argv[1]))
assert bank.post("/v1/decisions", application("k1")).status_code == 200
assert bank.post("/v1/outcomes", {"key": "k1", "label": 1}).status_code == 200
assert bank.post("/v1/train", {"product": "loan", "by": "you"}).status_code == 200
bank.close()
print([name for name in sys.modules if name.startswith("opentelemetry.sdk.")])
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "ledger.sqlite")],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "FASTAPI_OTEL_AUTO_CONFIGURE": "true"},
    )
    assert done.stdout == "[]\n", done.stderr


def test_without_the_extra_the_way_out_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(InvalidInput, match=re.escape("evenhand-service[traces]")):
        traces.start()
    assert traces.span("decide") is traces.NOTHING


def test_a_span_is_readable(memory):
    with traces.span("observe", reports=2) as note:
        note(quarantined=1)
    (span,) = memory.get_finished_spans()
    document = json.loads(span.to_json())
    assert document["attributes"] == {"evenhand.reports": 2, "evenhand.quarantined": 1}
