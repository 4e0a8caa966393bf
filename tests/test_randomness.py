"""Seed streams and keyed draws: named, independent, and computed as they say."""

import hashlib
import hmac

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kstest

from evenhand.randomness import KeyedHash, keyed_uniform, stream


def test_a_stream_is_its_seed_and_its_name():
    numbers = stream(7, "coins", 3).random(5)
    np.testing.assert_array_equal(numbers, stream(7, "coins", 3).random(5))
    for other in (stream(8, "coins", 3), stream(7, "audits", 3), stream(7, "coins", 4), stream(7)):
        assert not np.array_equal(numbers, other.random(5))


def test_names_do_not_run_into_each_other():
    assert stream(1, "a", "b").random() != stream(1, "ab").random()
    assert stream(1, 1, 2).random() != stream(1, 12).random()


def test_streams_of_one_seed_are_independent():
    """The correlation of 20,000 numbers is below 5/sqrt(n); false alarm 6e-7."""
    one, other = stream(1, "one").random(20_000), stream(1, "other").random(20_000)
    assert abs(np.corrcoef(one, other)[0, 1]) < 5 / np.sqrt(20_000)


def by_hand(secret, *parts):
    """The first 53 bits of HMAC-SHA256, each part after its length in four bytes."""
    code = hmac.new(secret, digestmod=hashlib.sha256)
    for part in parts:
        code.update(len(part.encode()).to_bytes(4, "big"))
        code.update(part.encode())
    bits = "".join(f"{byte:08b}" for byte in code.digest())
    return int(bits[:53], 2) / 2**53


@given(st.binary(max_size=100), st.binary(max_size=300))
def test_a_keyed_hash_is_hmac(key, message):
    assert KeyedHash(key)(message) == hmac.digest(key, message, "sha256")


@settings(max_examples=60, deadline=None)
@given(st.binary(min_size=1, max_size=40), st.lists(st.text(max_size=20), max_size=5))
def test_a_keyed_draw_can_be_computed_by_hand(secret, parts):
    drawn = keyed_uniform(secret, *parts)
    assert drawn == by_hand(secret, *parts) == keyed_uniform(KeyedHash(secret), *parts)
    assert 0 <= drawn < 1


@pytest.mark.parametrize(
    ("one", "other"), [(("a", "bc"), ("ab", "c")), (("a",), ("a", "")), ((), ("",))]
)
def test_no_two_lists_of_parts_collide(one, other):
    assert keyed_uniform(b"secret", *one) != keyed_uniform(b"secret", *other)


def test_keyed_draws_are_uniform():
    """Kolmogorov-Smirnov on 4,000 draws with a fixed key; it sees a shift of .04."""
    draws = [keyed_uniform(b"secret", "person", str(i)) for i in range(4_000)]
    assert kstest(draws, "uniform").pvalue > 1e-3
