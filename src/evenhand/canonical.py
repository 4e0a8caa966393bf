"""Canonical JSON: the one text of a value, so that equal values have equal hashes.

Names are sorted, there are no spaces, everything is ASCII, and NaN and infinities are refused.
`canonical` is the definition; where the ledger writes such a text by a shorter way, a test compares
the two.
"""

import hashlib
import json
from collections.abc import Callable
from json.encoder import encode_basestring_ascii
from typing import Any

_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False).encode


text_literal = encode_basestring_ascii
"""`canonical` of a text and nothing else, for places that write thousands of them a second."""

_SHORT: dict[type, Callable[[Any], str]] = {
    str: text_literal,
    int: int.__repr__,
    bool: {False: "false", True: "true"}.__getitem__,
    type(None): {None: "null"}.__getitem__,
}
"""What the encoder does with scalars, without its preparations: a tenth of the time."""


def canonical(value: object) -> str:
    """Return the canonical JSON text of a value.

    Parameters
    ----------
    value : object
        Anything that `json` can write: None, bool, int, finite float, str, and lists, tuples and
        dictionaries (with texts as keys) of such values.

    Returns
    -------
    str
        The text, in ASCII. Two values that JSON cannot tell apart have the same text.

    Raises
    ------
    ValueError
        If a number is NaN or infinite.
    TypeError
        If a value cannot be written as JSON.

    Examples
    --------
    >>> print(canonical({"b": [1, 2.5], "a": "Zoë"}))
    {"a":"Zo\\u00eb","b":[1,2.5]}
    """
    if type(value) is float and value - value == 0.0:  # the encoder refuses what is not finite
        return float.__repr__(value)
    return _SHORT.get(type(value), _encode)(value)


def canonical_digest(value: object) -> str:
    """Return the SHA-256 of the canonical JSON text of a value, in hexadecimal.

    Parameters
    ----------
    value : object
        Anything that `canonical` can write.

    Returns
    -------
    str
        64 hexadecimal digits.

    Examples
    --------
    >>> canonical_digest({"b": 1, "a": [0.5]}) == canonical_digest({"a": [0.5], "b": 1})
    True
    """
    return hashlib.sha256(_encode(value).encode()).hexdigest()
