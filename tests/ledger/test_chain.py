"""The short ways give the same bytes as the long ones: texts as `canonical`, keyed hashes as
`hmac`, random bytes each given out once.
"""

import hashlib
import hmac
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.ledger.helpers import decided, person

from evenhand.canonical import canonical
from evenhand.ledger import Application, Terms, chain
from evenhand.ledger.chain import LOOKUPS, lookup_values
from evenhand.ledger.decision_draw import decision_text, text_agrees
from evenhand.ledger.keyring import KeyedHash, Reserve, Sealed
from evenhand.ledger.records import Drawn
from evenhand.ledger.standalone_verifier import uniform
from evenhand.service import render

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
PROBABILITY = st.floats(0.0, 1.0)
HEX = st.binary(min_size=32, max_size=32).map(bytes.hex)
DRAWN = st.builds(
    Drawn, seq=st.integers(1), at=FINITE, tenant=TEXT, key=TEXT, person=TEXT, product=TEXT, window=TEXT, u=PROBABILITY,
    acceptance=PROBABILITY | st.integers(0, 1), accept=st.booleans(), policy=TEXT, epoch=st.integers(0),
    audit_weight=PROBABILITY | st.just(0), audit=st.booleans(), first=st.booleans(),
    mode=st.sampled_from(["live", "shadow", "killed"]),
)  # fmt: skip


@given(DRAWN, HEX, HEX, st.lists(HEX, min_size=5, max_size=5))
def test_the_text_of_a_decision(drawn, key, slot, digests):
    commit = dict(zip(("features", "group", "reply", "who"), digests[1:], strict=True))
    hidden = {"seq", "at", "key", "person"}
    body = {name: value for name, value in drawn._asdict().items() if name not in hidden}
    body |= {
        "propensity": drawn.propensity,
        "key": key,
        "slot": slot,
        "commit": commit,
        "sealed": digests[0],
    }
    assert decision_text(drawn, key, slot, Sealed(commit, digests[0], b"")) == canonical(body)


def stored(drawn, key, slot, digests):
    """(text of a decision, its columns and its fingerprint as a parser finds them)."""
    commit = dict(zip(("features", "group", "reply", "who"), digests[1:], strict=True))
    text = decision_text(drawn, key, slot, Sealed(commit, digests[0], b""))
    return text, [*lookup_values("decision", json.loads(text)), digests[0]]


@given(DRAWN, HEX, HEX, st.lists(HEX, min_size=5, max_size=5))
def test_a_text_agrees_with_its_own_columns(drawn, key, slot, digests):
    text, (*columns, fingerprint) = stored(drawn, key, slot, digests)
    assert text_agrees(text, tuple(columns), fingerprint)


@given(DRAWN, HEX, HEX, st.lists(HEX, min_size=5, max_size=5), st.data())
def test_a_text_agrees_with_no_other_columns(drawn, key, slot, digests, data):
    """Also not with a name that goes on as the text does after it: `bank","u":0.5,"window":"w1`."""
    text, values = stored(drawn, key, slot, digests)
    place = data.draw(st.integers(0, 6))
    if isinstance(values[place], bool):
        values[place] = data.draw(st.sampled_from([not values[place], 7, None, "true"]))
    else:
        literal = canonical(values[place])
        after = text[text.index(literal) + len(literal) :]
        longer = [values[place] + '"' + after[: end + 1] for end in range(len(after))]
        values[place] = data.draw(
            st.sampled_from([*longer, values[place] + "0", None, 1, b"x"])
            | TEXT.filter(lambda other: other != values[place])
        )
    assert not text_agrees(text, tuple(values[:-1]), values[-1])


@given(
    st.lists(FINITE, min_size=1, max_size=4),
    st.none() | st.tuples(FINITE, FINITE),
    st.none() | FINITE | st.booleans(),
)
def test_what_the_conflict_check_compares(features, prices, group):
    asked = Application("bank", "k", "Zoë", "loan", features, group=group, prices=prices)
    assert asked.asked == canonical(
        ["Zoë", "loan", features, group, None if prices is None else list(prices)]
    )


@given(st.binary(min_size=1, max_size=64), st.binary(max_size=300))
def test_a_keyed_hash_is_hmac(key, message):
    assert KeyedHash(key)(message) == hmac.digest(key, message, "sha256")


def test_random_bytes_are_given_out_once():
    source = iter([bytes([number]) * 16 for number in range(9)])
    reserve = Reserve(lambda _: next(source), piece=16)
    assert [reserve(size) for size in (10, 6, 1, 16, 4)] == [
        b"\0" * 10,
        b"\0" * 6,
        b"\1",
        b"\2" * 16,
        b"\3" * 4,
    ]


@given(DRAWN)
def test_the_answer_of_the_service(drawn):
    names = ("accept", "at", "audit", "epoch", "key", "mode", "policy", "propensity", "window")
    document = {name: getattr(drawn, name) for name in names} | {
        "act": drawn.mode != "shadow",
        "row": drawn.seq,
    }
    assert render(drawn) == canonical(document).encode()


@pytest.mark.parametrize("number", [1, 2, 63, 64, 65, 200])
def test_rows_of_every_size_of_a_group_are_those_of_their_bodies(ledger, policy, number):
    """A group is written in pieces of 64 rows and a rest; columns and bodies must say the same, and
    the draws be the stand-alone ones.
    """
    answers = decided(ledger, policy, range(number))
    secret = ledger.keyring.window_secret(ledger.id, answers[0].drawn.window)
    with ledger.store.reader.connect() as connection:
        rows = connection.exec_driver_sql("SELECT * FROM decisions ORDER BY seq").mappings().all()
    assert [row["seq"] for row in rows] == [answer.drawn.seq for answer in answers]
    for row, answer in zip(rows, answers, strict=True):
        body, drawn = json.loads(row["body"]), answer.drawn
        assert canonical(body) == row["body"]
        assert tuple(row[name] for name in LOOKUPS["decision"]) == lookup_values("decision", body)
        assert body["u"] == uniform(secret, drawn.tenant, drawn.person, drawn.product, drawn.window)


def test_more_people_than_one_list_holds(ledger, policy, monkeypatch):
    monkeypatch.setattr(chain, "MOST_VALUES", 7)
    first = [answer.body for answer in decided(ledger, policy, range(50))]
    again = decided(ledger, policy, range(50))
    assert [answer.body for answer in again] == first
    assert all(answer.replayed for answer in again)


def test_old_digests_of_requests_still_match(ledger, policy):
    """A key that was answered before is found again by the digest of the long way."""
    answer = ledger.decide(person(1), Terms(policy, 0.5))
    long_way = hashlib.sha256(canonical(["p1", "loan", [0.5, 2.0], "a", None]).encode()).hexdigest()
    assert hashlib.sha256(person(1).asked.encode()).hexdigest() == long_way
    assert ledger.decide(person(1), Terms(policy, 0.5)).body == answer.body
