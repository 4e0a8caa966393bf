"""Canonical JSON: one text for one value, that of RFC 8785, however it is put together."""

import hashlib
import json
import struct

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from evenhand.canonical import (
    MOST,
    canonical,
    canonical_digest,
    number_literal,
    text_literal,
)

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
SCALAR = st.none() | st.booleans() | st.integers(-MOST, MOST) | FINITE | TEXT
VALUE = st.recursive(
    SCALAR,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


@given(VALUE)
def test_it_can_be_read_back_and_written_again(value):
    text = canonical(value)
    assert json.loads(text, parse_int=float) == value  # every number is a double
    assert canonical(json.loads(text)) == text


@given(st.dictionaries(TEXT, SCALAR, max_size=5), st.randoms())
def test_the_order_of_the_names_does_not_matter(value, random):
    shuffled = dict(random.sample(list(value.items()), len(value)))
    assert canonical(shuffled) == canonical(value)
    assert canonical_digest(shuffled) == hashlib.sha256(canonical(value).encode()).hexdigest()


def test_there_are_no_spaces_and_letters_stand_as_they_are():
    assert canonical({"b": [1.0, 2.5, None], "a": "Zoë "}) == '{"a":"Zoë ","b":[1,2.5,null]}'


@given(VALUE)
def test_it_is_rfc_8785_as_another_package_writes_it(value):
    assert canonical(value).encode() == rfc8785.dumps(value)


@given(st.integers(0, 2**64 - 1))
def test_every_double_is_written_as_ecmascript_does(bits):
    number = struct.unpack(">d", bits.to_bytes(8, "big"))[0]
    if number - number == 0.0:
        assert number_literal(number).encode() == rfc8785.dumps(number)
        assert float(number_literal(number)) == number


@pytest.mark.parametrize(
    ("bits", "text"),
    [
        ("0000000000000000", "0"),
        ("8000000000000000", "0"),
        ("0000000000000001", "5e-324"),
        ("ffefffffffffffff", "-1.7976931348623157e+308"),
        ("4340000000000001", "9007199254740994"),
        ("44b52d02c7e14af5", "9.999999999999997e+22"),
        ("44b52d02c7e14af6", "1e+23"),
        ("444b1ae4d6e2ef4f", "999999999999999900000"),
        ("444b1ae4d6e2ef50", "1e+21"),
        ("3eb0c6f7a0b5ed8d", "0.000001"),
        ("3eb0c6f7a0b5ed8c", "9.999999999999997e-7"),
        ("41b3de4355555554", "333333333.33333325"),
        ("becbf647612f3696", "-0.0000033333333333333333"),
    ],
)
def test_the_samples_of_the_rfc(bits, text):
    """Appendix B."""
    assert number_literal(struct.unpack(">d", bytes.fromhex(bits))[0]) == text


def test_names_are_sorted_by_utf_16():
    """The sample of section 3.2.3."""
    names = ["\u20ac", "\r", "\ufb33", "1", "\U0001f600", "\u0080", "\u00f6"]
    text = canonical(dict.fromkeys(names, 0))
    assert list(json.loads(text)) == [
        "\r",
        "1",
        "\u0080",
        "\u00f6",
        "\u20ac",
        "\U0001f600",
        "\ufb33",
    ]


@pytest.mark.parametrize("number", [MOST + 2, -MOST - 2, 10**30])
def test_integers_that_are_the_text_of_no_double_are_refused(number):
    for value in (number, [number], {"x": (number,)}):
        with pytest.raises(ValueError, match="JSON"):
            canonical(value)
    assert canonical([MOST, -MOST]) == f"[{MOST},{-MOST}]"


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_what_is_not_json_is_refused(number):
    with pytest.raises(ValueError, match="JSON"):
        canonical({"x": [number]})
    with pytest.raises(ValueError, match="JSON"):
        canonical(number)
    with pytest.raises(TypeError):
        canonical({"x": object()})


@given(TEXT)
def test_texts_alone(text):
    assert text_literal(text) == canonical(text)
