"""What the schemas refuse: bodies that are not what the API takes."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from service.tests.bank import application

from evenhand_service import schemas

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


# the quick way is the slow way

JSONISH = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats()
    | st.text(st.characters(exclude_categories=()), max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)
SOUND = {"key": "k", "person": "p", "product": "loan", "features": [1, 2.5], "group": "g"}


@example("features", [2**53 + 1], False)  # no double holds it
@example("features", [2**53 - 1, -(2**53) + 1], False)
@given(st.sampled_from([*SOUND, "prices", "extra"]), JSONISH, st.booleans())
def test_what_is_read_quickly_is_what_pydantic_reads(name, value, dropped):
    """Whatever the quick reader takes, pydantic takes, and reads as the same values; so only
    pydantic's refusals are ever told."""
    document = {**SOUND, name: value}
    if dropped:
        document.pop(name)
    body = json.dumps(document).encode("utf-8", "surrogatepass")
    quick = schemas.read_fast(body)
    batch = schemas.read_fast(b'{"decisions":[' + body + b"]}", many=True)
    assert (quick is None) == (batch is None)
    if quick is not None:
        slow = schemas.DecisionRequest.model_validate(json.loads(body))
        for field in ("key", "person", "product", "features", "group", "prices"):
            one, other = getattr(quick[0], field), getattr(slow, field)
            assert (one, type(one)) == (other, type(other))


@pytest.mark.parametrize(
    "change",
    [{"key": ""}, {"key": "k" * 201}, {"person": "a\u202eb"}, {"features": []}, {"group": 2.0**60},
     {"features": [1e301]}, {"features": [True]}, {"features": ["1"]}, {"group": ""},
     {"features": [1.0] * 1001}, {"more": 1}, {"key": None}, {"group": ["a"]}],
)  # fmt: skip
def test_what_breaks_a_law_is_not_read_quickly(change):
    assert schemas.read_fast(json.dumps({**SOUND, **change}).encode()) is None
    assert schemas.read_fast(json.dumps(SOUND).encode()) is not None


def test_batches_have_their_limit_here_too():
    one = json.dumps(SOUND)
    for number, read in ((0, False), (1, True), (1000, True), (1001, False)):
        body = f'{{"decisions":[{",".join([one] * number)}]}}'.encode()
        assert (schemas.read_fast(body, many=True) is not None) == read
