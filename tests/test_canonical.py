"""Canonical JSON: one text for one value, and the same text however it is put together."""

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.canonical import (
    canonical,
    canonical_digest,
    text_literal,
)
from evenhand.ledger import standalone_verifier as verifier

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
SCALAR = st.none() | st.booleans() | st.integers() | FINITE | TEXT
VALUE = st.recursive(
    SCALAR,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


@given(VALUE)
def test_it_can_be_read_back_and_written_again(value):
    text = canonical(value)
    assert text.isascii()
    assert json.loads(text) == value
    assert canonical(json.loads(text)) == text


@given(st.dictionaries(TEXT, SCALAR, max_size=5), st.randoms())
def test_the_order_of_the_names_does_not_matter(value, random):
    shuffled = dict(random.sample(list(value.items()), len(value)))
    assert canonical(shuffled) == canonical(value)
    assert canonical_digest(shuffled) == hashlib.sha256(canonical(value).encode()).hexdigest()


def test_there_are_no_spaces_and_no_letters_outside_ascii():
    assert canonical({"b": [1, 2.5, None], "a": "Zoë "}) == '{"a":"Zo\\u00eb ","b":[1,2.5,null]}'


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_what_is_not_json_is_refused(number):
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical({"x": [number]})
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical(number)
    with pytest.raises(TypeError):
        canonical({"x": object()})


@given(VALUE)
def test_scalars_take_a_shorter_way_to_the_text_of_the_encoder(value):
    long_way = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    assert canonical(value) == long_way


@given(TEXT)
def test_texts_alone(text):
    assert text_literal(text) == canonical(text)


@given(VALUE)
def test_the_stand_alone_verifier_writes_the_same(value):
    assert verifier.canonical(value) == canonical(value)
