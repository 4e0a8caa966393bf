"""Deciding over HTTP: one key one answer, refusals as problem documents, nothing stored half."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.service.bank import DAY, Bank, application

from evenhand.ledger import recompute, verify


def test_an_answer_names_its_probability_and_policy(bank):
    answer = bank.post("/v1/decisions", application(group="north"))
    assert answer.status_code == 200
    body = answer.json()
    assert body["accept"] is True
    assert (body["propensity"], body["epoch"], body["mode"], body["act"]) == (1.0, 1, "live", True)
    assert bank.get("/v1/decisions/k1").content == answer.content


@pytest.mark.parametrize("days", [0, 1, 400, 2000])
def test_a_retry_gets_the_same_bytes(bank, days):
    first = bank.post("/v1/decisions", application())
    bank.clock.now += days * DAY
    again = bank.post("/v1/decisions", application())
    assert again.content == first.content
    assert again.headers["evenhand-replayed"] == "true"


def test_features_by_name_are_the_same_application(bank):
    first = bank.post("/v1/decisions", application())
    again = bank.post("/v1/decisions", application() | {"features": {"score": 0.5}})
    assert again.content == first.content


def test_the_same_key_with_another_body_is_a_conflict(bank):
    bank.post("/v1/decisions", application())
    for other in (application(features=[0.6]), application(person="q"), application(group="south")):
        refused = bank.post("/v1/decisions", other)
        assert refused.status_code == 409
        assert refused.headers["content-type"] == "application/problem+json"
        assert refused.json()["type"] == "urn:evenhand:problem:conflict"


def test_a_hundred_identical_requests_at_once_draw_once(bank):
    bank.post("/v1/decisions", application("warm"))
    with ThreadPoolExecutor(20) as pool:
        found = list(
            pool.map(lambda _: bank.post("/v1/decisions", application()).content, range(100))
        )
    assert len(set(found)) == 1
    assert bank.ledger.counts("bank", "loan").decisions == 2


def test_a_batch_answers_in_order_and_refuses_one_by_one(bank):
    bank.post("/v1/decisions", application("b"))
    asked = [
        application("a"),
        application("b", features=[9.0]),
        application("c", features=[1, 2]),
        application("d"),
    ]
    found = bank.post("/v1/decisions/batch", {"decisions": asked}).json()["decisions"]
    assert [one.get("status", 200) for one in found] == [200, 409, 422, 200]
    assert [one.get("key") for one in found] == ["a", None, None, "d"]
    assert bank.ledger.counts("bank", "loan").decisions == 3


BAD = {
    "label missing features": {"key": "k", "person": "p", "product": "loan"},
    "unknown field": application() | {"hint": 1},
    "text as number": application(features=["1"]),
    "bool as number": application(features=[True]),
    "too many": application(features=[1.0, 2.0]),
    "empty key": application("", person="p"),
    "control character": application("a\x00b"),
    "lone surrogate": application("a\ud800"),
    "huge integer group": application(group=10**40),
    "nested group": application(group=["a"]),
    "long name": application("k" * 201),
    "unknown product": application(product="nothing"),
    "wrong names": application() | {"features": {"income": 1.0}},
    "prices nobody asked for": application(prices={"false_accept": 1, "false_reject": 1}),
    "a list": [1, 2],
}


@pytest.mark.parametrize("body", BAD.values(), ids=BAD)
def test_bad_applications_are_refused_whole(bank, body):
    before = bank.ledger.head().seq
    refused = bank.post("/v1/decisions", body)
    assert refused.status_code in (404, 422)
    problem = refused.json()
    assert refused.headers["content-type"] == "application/problem+json"
    assert problem["detail"]
    assert problem["hint"]
    assert problem["status"] == refused.status_code
    assert bank.ledger.head().seq == before


@pytest.mark.parametrize("text", ["NaN", "Infinity", "1e999", "-1e999"])
def test_numbers_must_be_finite(bank, text):
    raw = f'{{"key":"k","person":"p","product":"loan","features":[{text}]}}'
    headers = {"Authorization": f"Bearer {bank.all}", "Content-Type": "application/json"}
    refused = bank.client.post("/v1/decisions", content=raw, headers=headers)
    assert refused.status_code == 422
    assert refused.json()["field"].startswith("features")


@pytest.mark.parametrize("raw", [b"", b"{", b"\xff\xfe", b'{"key": ' + b"9" * 5000 + b"}", b"nul"])
def test_what_is_no_json_is_refused(bank, raw):
    headers = {"Authorization": f"Bearer {bank.all}", "Content-Type": "application/json"}
    assert bank.client.post("/v1/decisions", content=raw, headers=headers).status_code in (400, 422)


def test_no_problem_repeats_a_group(bank):
    canary = "canary-group-7f"
    for body in (
        application(group=[canary]),
        application(group={"a": canary}),
        application(features=[canary], group=canary),
        application(group=canary * 30),
        {"key": "k", "group": canary},
    ):
        assert canary not in bank.post("/v1/decisions", body).text


def test_every_probability_recomputes_from_its_policy_and_the_chain_verifies(bank):
    bank.arrive(120, seed=1)
    assert recompute(bank.ledger, "bank", "loan") == 120
    assert verify(bank.ledger, deep=True).ok


def test_a_person_who_comes_back_inside_the_window_meets_the_same_coin(bank):
    for key in ("a", "b"):
        bank.post("/v1/decisions", application(key, person="p"))
    drawn = [bank.ledger.find("bank", key).drawn for key in ("a", "b")]
    assert drawn[0].u == drawn[1].u
    assert [d.usable for d in drawn] == [True, False]


def test_a_restart_finds_the_same_answers(tmp_path):
    path = tmp_path / "ledger.sqlite"
    bank = Bank(path)
    first = bank.post("/v1/decisions", application()).content
    policies = [p.id for p in bank.ledger.policies("bank", "loan")]
    bank.close()
    again = Bank(path, bank.clock)
    assert again.post("/v1/decisions", application()).content == first
    assert [p.id for p in again.ledger.policies("bank", "loan")] == policies
    again.close()


def test_erased_people_are_gone(bank):
    bank.post("/v1/decisions", application())
    assert bank.post("/v1/erasures", {"person": "p-k1", "by": "op"}).json() == {"decisions": 1}
    for refused in (bank.post("/v1/decisions", application()), bank.get("/v1/decisions/k1")):
        assert refused.status_code == 410
    assert bank.post("/v1/outcomes", {"key": "k1", "label": 1}).status_code == 410
