"""How bytes become a request: counted, parsed by one parser, and no member twice."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from service.tests.bank import application

from evenhand_service import bodies, schemas
from evenhand_service.bodies import MOST_VALUES, counted, parsed
from evenhand_service.problems import ProblemError

SOUND = {"key": "k", "person": "p", "product": "loan", "features": [1, 2.5], "group": "g"}
JSONISH = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.sampled_from('a,:"\\[{}é\n'), max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)


def refusal(model, body):
    with pytest.raises(ProblemError) as refused:
        parsed(model, body if isinstance(body, bytes) else json.dumps(body).encode())
    return refused.value.document


# counting


def members(value):
    """The stupid-exact count: members of all objects, and values after the first."""
    if isinstance(value, dict):
        inner = [members(one) for one in value.values()]
        own = (len(value), max(len(value) - 1, 0))
    elif isinstance(value, list):
        inner = [members(one) for one in value]
        own = (0, max(len(value) - 1, 0))
    else:
        return 0, 0
    return own[0] + sum(m for m, _ in inner), own[1] + sum(v for _, v in inner)


@example(["\\", '\\"', "a:b,c", {"\\\\": ":"}], 1, True)
@given(JSONISH, st.integers(1, 40), st.booleans())
def test_members_are_counted_as_a_parser_would(value, piece, escaped):
    body = json.dumps(value, ensure_ascii=escaped).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bodies, "PIECE", piece)
        assert counted(body) == members(value)


def test_beyond_the_limit_the_rest_is_not_looked_at():
    body = json.dumps({f"x{i}": 1 for i in range(100_000)}).encode()
    assert 10 < counted(body, most=10)[0] < 10_000
    assert counted(body)[0] == 100_000


@pytest.mark.parametrize("part", [b'\\"', b'"a', b'"', b'["', b"\\", b'"\\', b"[", b'{"a":'])
def test_hostile_bodies_are_looked_at_once(part):
    """By an expression that begins anew at every quote, or every backslash, this would take hours.
    """  # fmt: skip
    assert counted(part * (2**21 // len(part)))[0] in (0, 1, 2**21 // len(part))


@pytest.mark.parametrize(
    ("model", "body", "most"),
    [
        (schemas.DecisionRequest, {**SOUND, **{f"x{i}": 1 for i in range(1100)}}, "1100 members"),
        (
            schemas.OutcomeBatch,
            {"outcomes": [{"key": "k", "label": 1, **{f"x{i}": 1 for i in range(20)}}] * 1000},
            "20000 members",
        ),
        (schemas.DecisionBatch, {"decisions": [{**SOUND, "features": [0] * 400}] * 501}, "values"),
        (schemas.Erasure, {f"x{i}": 1 for i in range(101)}, "100 members"),
    ],
)
def test_too_many_members_or_values_are_refused_before_they_are_validated(
    model, body, most, monkeypatch
):
    monkeypatch.setattr(model, "model_validate_json", lambda body: 1 / 0)
    document = refusal(model, body)
    assert document["type"].endswith("too-many-members")
    assert most in document["requirement"]


def test_colons_and_commas_in_texts_are_no_members():
    text = ":," * (MOST_VALUES // 40)
    asked = parsed(
        schemas.DecisionBatch,
        json.dumps({"decisions": [{**SOUND, "features": [text[:10_000]]}] * 60}).encode(),
    )
    assert len(asked.decisions) == 60


def test_the_largest_request_that_is_promised_is_within_the_limits():
    named = {f"feature {i}": 0.5 for i in range(1000)}
    prices = {"false_accept": 1, "false_reject": 1}
    one = {**SOUND, "features": named, "prices": prices}
    assert parsed(schemas.DecisionRequest, json.dumps(one).encode()).members == 1008
    many = {"decisions": [{**SOUND, "prices": prices, "features": [0.5] * 190}] * 1000}
    assert len(parsed(schemas.DecisionBatch, json.dumps(many).encode()).decisions) == 1000


# no member twice


def pairs(text):
    """Whether some object of a text names a member twice, by Python's parser."""
    seen = []

    def look(found):
        seen.append(len({name for name, _ in found}) < len(found))
        return dict(found)

    json.loads(text, object_pairs_hook=look)
    return any(seen)


TWICE = {
    "a field": '{"key":"k","person":"p","product":"loan","features":[1],"person":"q"}',
    "the same again": '{"key":"k","key":"k","person":"p","product":"loan","features":[1]}',
    "written otherwise": '{"key":"k","\\u006bey":"l","person":"p","product":"loan","features":[1]}',
    "a feature": '{"key":"k","person":"p","product":"loan","features":{"a":1,"a":2}}',
    "a price": '{"key":"k","person":"p","product":"loan","features":[1],'
    '"prices":{"false_accept":1,"false_reject":1,"false_accept":9}}',
    "beside a colon": '{"key":"a:b","key":"c","person":"p","product":"loan","features":[1]}',
}


@pytest.mark.parametrize("text", TWICE.values(), ids=TWICE)
def test_no_member_stands_there_twice(text):
    for model, body in (
        (schemas.DecisionRequest, text),
        (schemas.DecisionBatch, f'{{"decisions":[{json.dumps(SOUND)},{text}]}}'),
    ):
        assert pairs(body)
        document = refusal(model, body.encode())
        assert (document["status"], document["requirement"]) == (400, "names of members are unique")


@pytest.mark.parametrize(
    ("model", "body"),
    [
        (schemas.OutcomeBatch, '{"outcomes":[{"key":"k","label":1,"label":-1}]}'),
        (schemas.SettlementReport, '{"key":"k","label":1,"note":"a","note":"b"}'),
        (schemas.NewKey, '{"scopes":["audit"],"scopes":["admin"]}'),
        (
            schemas.LaunchQuestion,
            '{"product":"loan","group_shares":{"a":0.5,"b":0.5,"b":0.1},'
            '"bad_rates":{"a":0.1,"b":0.2},"auc":0.7,"horizon":5000}',
        ),
    ],
)
def test_neither_in_any_other_request(model, body):
    assert refusal(model, body.encode())["requirement"] == "names of members are unique"


@given(st.text(st.sampled_from('k:,"\\{é'), min_size=1, max_size=20), st.booleans())
def test_texts_with_any_signs_are_no_second_members(name, escaped):
    body = json.dumps({**SOUND, "key": name, "features": {name: 1}}, ensure_ascii=escaped)
    assert parsed(schemas.DecisionRequest, body.encode()).key == name


@pytest.mark.parametrize(
    "model", [*schemas.Body.__subclasses__(), *schemas.Signed.__subclasses__()]
)
def test_every_model_counts_its_own_members(model):
    """`members` is written by hand where it has to be quick: it is what Python's parser finds."""
    filled = {
        schemas.PricesBody: {"false_accept": 1, "false_reject": 2},
        schemas.DecisionRequest: {**SOUND, "features": {"a": 1, "b": 2}},
        schemas.DecisionBatch: {"decisions": [SOUND, {**SOUND, "prices": None}]},
        schemas.OutcomeReport: {"key": "k", "label": 1},
        schemas.OutcomeBatch: {"outcomes": [{"key": "k", "label": 1}] * 3},
        schemas.Signed: {"by": "b", "note": "n"},
        schemas.OverrideReport: {"key": "k", "accept": True, "by": "b"},
        schemas.SettlementReport: {"key": "k", "label": -1},
        schemas.GroupBody: {"key": "k", "group": 2},
        schemas.Operation: {"product": "loan", "constant": "accept"},
        schemas.Erasure: {"person": "p"},
        schemas.Confirmation: {"note": "looked"},
        schemas.NewKey: {"scopes": ["audit"]},
        schemas.KeyRotation: {},
        schemas.LaunchQuestion: {
            "product": "loan",
            "group_shares": {"a": 0.5, "b": 0.5},
            "bad_rates": {"a": 0.1, "b": 0.2},
            "auc": 0.7,
            "horizon": 5000,
        },
    }[model]
    assert parsed(model, json.dumps(filled).encode()).members == members(filled)[0]


# JSON, in UTF-8


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32", "utf-8-sig", "latin-1"])
def test_a_body_is_utf_8(encoding):
    body = json.dumps({**SOUND, "person": "Zoë"}, ensure_ascii=False)
    assert refusal(schemas.DecisionRequest, body.encode(encoding))["status"] == 400
    assert parsed(schemas.DecisionRequest, body.encode()).person == "Zoë"


@pytest.mark.parametrize("depth", [12, 100, 10_000, 1_000_000])
def test_a_deep_body_is_refused(depth):
    for body in (b"[" * depth + b"]" * depth, b'{"key":' * depth + b"1" + b"}" * depth):
        assert refusal(schemas.DecisionRequest, body)["status"] in (400, 422)


@pytest.mark.parametrize(
    ("content_type", "status"),
    [
        ("application/json", 200),
        ("application/json; charset=utf-8", 200),
        ('Application/JSON;charset="UTF-8"', 200),
        ("application/jsonp", 415),
        ("application/json; charset=utf-16", 415),
        ("application/json, text/plain", 415),
        ("text/plain", 415),
        ("application/x-www-form-urlencoded", 415),
        ("", 415),
    ],
)
def test_a_body_is_said_to_be_json(bank, content_type, status):
    bank.post("/v1/decisions", application("before"))
    for path, body in (
        ("/v1/decisions", application("before")),
        ("/v1/groups", {"key": "before", "group": "north"}),
    ):
        found = bank.client.post(
            path,
            content=json.dumps(body),
            headers={"Authorization": f"Bearer {bank.all}", "Content-Type": content_type},
        )
        assert found.status_code == status, found.text


def test_only_the_first_of_a_batch_that_is_wrong_is_described():
    wrong = {**SOUND, "label": 1}
    document = refusal(schemas.DecisionBatch, {"decisions": [SOUND, wrong, wrong]})
    assert [one["field"] for one in document["errors"]] == ["decisions.1.label"]


def test_twenty_errors_are_told():
    document = refusal(schemas.DecisionRequest, {**SOUND, **{f"x{i}": 1 for i in range(500)}})
    assert len(document["errors"]) == 20
    assert document["detail"].endswith("(and 20 or more)")
