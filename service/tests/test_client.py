"""The client, against a service in a process of its own, and with answers that are lost on the way.
"""  # fmt: skip

import contextlib
import socket
import threading

import pytest
from service.tests.ports import free_port
from service.tests.torture.serving import Process, folder

from evenhand_service.client import (
    Application,
    Client,
    Decision,
    Outcome,
    Prices,
    Problem,
    Recorded,
    Unreachable,
)


@pytest.fixture(scope="module")
def process():
    with Process(folder()).running() as running:
        yield running


@pytest.fixture
def client(process):
    with Client(f"http://127.0.0.1:{process.port}", process.token, sleep=Waits()) as made:
        yield made


class Waits(list):
    """Remembers how long it should have slept."""

    def __call__(self, seconds):
        self.append(seconds)


def application(key, **more):
    return Application(**{"key": key, "person": key, "product": "loan", "features": [0.5], **more})


def accepted(client, name):
    """A key of somebody who was accepted, and one of somebody who was not."""
    drawn = client.decide_many(application(f"{name}{i}") for i in range(30))
    return next(d.key for d in drawn if d.accept), next(d.key for d in drawn if not d.accept)


def test_a_decision_is_typed_and_the_same_for_ever(client):
    decision = client.decide(application("typed", group="north"))
    assert isinstance(decision, Decision)
    assert (decision.key, decision.mode, decision.act) == ("typed", "live", True)
    assert decision == client.decide(application("typed", group="north"))
    assert decision == client.decision("typed")
    named = client.decide(application("by name", features={"score": 0.5}))
    assert client.decision("by name") == named


def test_keys_may_hold_anything_that_a_path_could_misread(client):
    decision = client.decide(application("a/b?c=d%2F é"))
    assert client.decision("a/b?c=d%2F é") == decision


def test_a_batch_of_many_is_sent_in_pieces_and_answered_in_order(client):
    asked = [application(f"many{i}") for i in range(1203)]
    asked[7] = application("many6", person="somebody else")
    found = client.decide_many(asked)
    assert [one.key for one in found if isinstance(one, Decision)] == [
        one.key for i, one in enumerate(asked) if i != 7
    ]
    assert (found[7].kind, found[7].status) == ("conflict", 409)


def test_reports_are_recorded_once(client):
    yes, no = accepted(client, "report")
    assert client.report(yes, 1).result == "recorded"
    assert client.report(yes, 1).result == "repeated"
    recorded, quarantined = client.report_many([Outcome(yes, 1), Outcome(no, 1)])
    assert isinstance(recorded, Recorded)
    assert quarantined.kind == "quarantined"
    assert client.report_group(no, "south").status
    assert client.override(yes, accept=False, note="fraud").overruled


def test_a_refusal_is_a_problem_with_fields(client):
    client.decide(application("refused"))
    for asked, kind in (
        (application("refused", person="other"), "conflict"),
        (application("x", product="nothing"), "not-found"),
        (application("x", features=["text"]), "invalid"),
        (application("x", prices=Prices(1.0, 1.0)), "invalid"),
        (application(""), "invalid"),
    ):
        with pytest.raises(Problem) as refused:
            client.decide(asked)
        assert refused.value.kind == kind
        assert refused.value.hint
    assert refused.value.field == "key"
    assert client.sleep == []  # nothing of this gets better by waiting


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_a_value_that_is_no_number_is_a_problem_that_names_the_field(client, value):
    for asked, field in (
        (application("nan", features=[value]), "features"),
        (application("nan", features={"score": value}), "features"),
        (application("nan", group=value), "group"),
        (application("nan", prices=Prices(value, 1.0)), "prices.false_accept"),
    ):
        with pytest.raises(Problem) as refused:
            client.decide(asked)
        assert (refused.value.kind, refused.value.field) == ("invalid", field)
    with pytest.raises(Problem) as refused:
        client.decide_many([application("sound"), application("nan", features=[value])])
    assert refused.value.field == "decisions.1.features"
    with pytest.raises(Problem, match=r"not found|unknown|no decision"):
        client.decision("sound")  # a body that cannot be read decides about nobody


def test_everything_else_is_read_and_sent_as_it_is(client):
    assert client.ready()
    assert client.get("/v1/head")["seq"] > 0
    assert client.post("/v1/shadow", {"product": "loan"})["mode"] == "shadow"
    assert not client.decide(application("shadow")).act
    assert client.post("/v1/live", {"product": "loan"})["mode"] == "live"


class LosingProxy:
    """Passes requests on to a service; the first `lost` connections are closed when their answer
    begins. asked: connections on which an answer began (it may come in several parts).
    """

    def __init__(self, port, lost):
        self.target, self.lost, self.asked = port, lost, 0
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.server.accept()
                threading.Thread(target=self._pass, args=(client,), daemon=True).start()

    def _pass(self, client):
        def forward():
            with contextlib.suppress(OSError):
                while request := client.recv(2**20):
                    service.sendall(request)

        with client, socket.create_connection(("127.0.0.1", self.target)) as service:
            threading.Thread(target=forward, daemon=True).start()
            with contextlib.suppress(OSError):
                answer = service.recv(2**20)
                self.asked += 1
                if self.asked <= self.lost:
                    client.shutdown(socket.SHUT_RDWR)
                    return
                while answer:
                    client.sendall(answer)
                    answer = service.recv(2**20)


def test_an_answer_that_was_lost_is_asked_for_again_and_is_the_same(process, client):
    """The decision was made and is durable; the client repeats until it hears it."""
    proxy = LosingProxy(process.port, lost=3)
    through = Client(f"http://127.0.0.1:{proxy.port}", process.token, sleep=Waits())
    decision = through.decide(application("lost"))
    assert proxy.asked == 4
    assert decision == client.decision("lost")
    assert len(through.sleep) == 3
    assert through.sleep == sorted(through.sleep)
    yes, _ = accepted(client, "lost")
    again = LosingProxy(process.port, lost=1)
    late = Client(f"http://127.0.0.1:{again.port}", process.token, sleep=Waits())
    assert late.report(yes, -1).result == "repeated"  # the first report was heard
    assert client.report(yes, -1).result == "repeated"


def test_what_is_not_repeatable_is_sent_once(process):
    proxy = LosingProxy(process.port, lost=1)
    client = Client(f"http://127.0.0.1:{proxy.port}", process.token, sleep=Waits())
    with pytest.raises(Unreachable, match="in 1 tries"):
        client.post("/v1/shadow", {"product": "loan"})
    assert proxy.asked == 1
    client.post("/v1/live", {"product": "loan"})


def test_a_service_that_is_away_is_said_so_after_some_tries(process):
    client = Client(f"http://127.0.0.1:{free_port()}", process.token, tries=3, sleep=Waits())
    with pytest.raises(Unreachable, match="ConnectionRefusedError"):
        client.decide(application("away"))
    assert len(client.sleep) == 2
    assert not client.ready()


def test_a_key_that_sends_too_much_waits_as_long_as_it_is_told():
    """The service of this test takes 10 bytes a second of a key, and 4,096 at once: the allowance
    does not come back within the minutes that a busy machine may need for the requests.
    """
    more = "bytes_per_second = 10\nmax_body = 4096\n"
    with Process(folder(), more=more).running() as slow:
        waits = Waits()
        client = Client(f"http://127.0.0.1:{slow.port}", slow.token, tries=2, sleep=waits)
        many = [application(f"slow{i}") for i in range(20)]
        client.decide_many(many)
        with pytest.raises(Problem) as refused:
            client.decide_many(many * 2)
        assert refused.value.kind == "too-many"
        assert waits
        assert all(wait >= 1.0 for wait in waits)
        assert client.decide(application("after")).key == "after"  # what is left is enough for it


@pytest.mark.parametrize("url", ["decisions.bank.example", "ftp://x", "http://", "http://x/path"])
def test_a_url_is_that_of_a_service(url):
    with pytest.raises(ValueError, match=f"url is '{url}'"):
        Client(url, "eh_x")


def test_threads_have_connections_of_their_own(client):
    found = []

    def ask(number):
        found.append(client.decide(application(f"thread{number}")).key)

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert sorted(found) == [f"thread{i}" for i in range(8)]


def test_the_key_is_in_no_representation(client, process):
    assert process.token not in repr(client)
