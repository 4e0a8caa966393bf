"""What the schemas refuse: bodies that are not what the API takes."""

import pytest
from service.tests.bank import application

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
    assert refused.status_code in (400, 404, 422)
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


@pytest.mark.parametrize("label", [0, 2, "1", True, None, 1.5, [1]])
def test_labels_are_plus_or_minus_one(bank, label):
    bank.post("/v1/decisions", application())
    refused = bank.post("/v1/outcomes", {"key": "k1", "label": label})
    assert refused.status_code == 422
    assert refused.json()["field"] == "label"


def test_a_batch_has_at_most_a_thousand(bank):
    refused = bank.post(
        "/v1/decisions/batch", {"decisions": [application(f"k{i}") for i in range(1001)]}
    )
    assert refused.status_code == 422
    assert bank.ledger.counts("loan").decisions == 0
