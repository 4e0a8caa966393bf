"""Canonical JSON: the one text of a value by RFC 8785 (JCS), so that equal values have equal hashes
and that an auditor can redo them in any language.

Names are sorted by their UTF-16 code units, there are no spaces, texts are UTF-8 with nothing
escaped that need not be, and numbers are written as ECMAScript writes them: 1.0 is `1`, 1e16 is
`10000000000000000`, 1e-7 is `1e-7`. Integers beyond 2^53 - 1 that are the text of no double, NaN
and infinities are refused.

`canonical` takes Python's encoder where that writes the same, and `_written` otherwise; a test
compares both with the package rfc8785. Where the ledger writes such a text by a shorter way still,
another test compares.
"""

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from json.encoder import encode_basestring
from math import isfinite
from typing import Any

_encode = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=False
).encode
_NUMBERS = re.compile(r"[0-9](?:\.0(?![0-9])|e|[0-9]{15})")
_LETTERS = re.compile(r"[\ud800-\U0010ffff]")
"""Where Python's text could be another one: floats without a fraction or with an exponent, long
integers, and letters whose order in UTF-16 is not that of their numbers."""
MOST = 2**53 - 1
"""The largest integer up to which doubles have no gaps."""


text_literal = encode_basestring
"""`canonical` of a text and nothing else, for places that write thousands of them a second."""


def number_literal(number: float) -> str:
    """Return the canonical text of a float, as ECMAScript writes it.

    Parameters
    ----------
    number : float
        A finite number.

    Returns
    -------
    str
        The shortest digits that give the number back, with an exponent below 1e-6 and from 1e21 on.

    Raises
    ------
    ValueError
        If it is NaN or infinite.

    Examples
    --------
    >>> [number_literal(x) for x in (1.0, -0.0, 0.5, 1e16, 1e21, 1e-6, 2.5e-7)]
    ['1', '0', '0.5', '10000000000000000', '1e+21', '0.000001', '2.5e-7']
    """
    text = float.__repr__(number)
    if "e" not in text:
        if text[-2:] == ".0":
            return "0" if number == 0.0 else text[:-2]
        if not isfinite(number):
            raise ValueError(f"Out of range float values are not JSON compliant: {text}")
        return text
    # digits * 10^(place - number of digits), where `place` is that of the decimal point
    mantissa, _, exponent = text.partition("e")
    sign = "-" if mantissa[0] == "-" else ""
    whole, _, rest = mantissa.lstrip("-").partition(".")
    digits = whole + rest
    place = int(exponent) + 1
    if len(digits) <= place <= 21:
        return f"{sign}{digits}{'0' * (place - len(digits))}"
    if 0 < place <= 21:
        return f"{sign}{digits[:place]}.{digits[place:]}"
    if -6 < place <= 0:
        return f"{sign}0.{'0' * -place}{digits}"
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{fraction}e{place - 1:+d}"


def _integer_literal(number: int) -> str:
    text = int.__repr__(number)
    # beyond, only what a double was written as: Python's parser makes it an integer
    if not -MOST <= number <= MOST and (
        abs(number) >= 10**21 or number_literal(float(number)) != text
    ):
        raise ValueError(f"{text} is not JSON compliant: it is the text of no double.")
    return text


_SHORT: dict[type, Callable[[Any], str]] = {
    str: text_literal,
    int: _integer_literal,
    float: number_literal,
    bool: {False: "false", True: "true"}.__getitem__,
    type(None): {None: "null"}.__getitem__,
}
"""Scalars, without the preparations of the encoder: a tenth of the time."""


def canonical(value: object) -> str:
    """Return the canonical JSON text of a value.

    Parameters
    ----------
    value : object
        Anything that JSON can write: None, bool, int up to 2^53 - 1, finite float, str, lists,
        tuples and dictionaries (with texts as keys) of such values.

    Returns
    -------
    str
        The text of RFC 8785; its bytes are those of UTF-8. Two values that JSON cannot tell apart
        have the same text.

    Raises
    ------
    ValueError
        If a number is NaN, infinite, or a large integer that is the text of no double.
    TypeError
        If a value cannot be written as JSON.

    Examples
    --------
    >>> print(canonical({"b": [1.0, 2.5], "a": "Zoë"}))
    {"a":"Zoë","b":[1,2.5]}
    """
    short = _SHORT.get(type(value))
    if short is not None:
        return short(value)
    text = _encode(value)
    if _NUMBERS.search(text) or not (text.isascii() or _LETTERS.search(text) is None):
        return _written(value)
    return text


def _written(value: object) -> str:
    """RFC 8785 word by word."""
    short = _SHORT.get(type(value))
    if short is not None:
        return short(value)
    if isinstance(value, Mapping):
        parts = [
            f"{text_literal(name)}:{_written(value[name])}" for name in sorted(value, key=_utf_16)
        ]
        return f"{{{','.join(parts)}}}"
    if isinstance(value, list | tuple):
        return f"[{','.join(map(_written, value))}]"
    if isinstance(value, float):  # numpy's
        return number_literal(float(value))
    if isinstance(value, str):
        return text_literal(str(value))
    if isinstance(value, int):
        return _integer_literal(int(value))
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


def _utf_16(name: str) -> bytes:
    return name.encode("utf-16-be")


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
    >>> canonical_digest({"b": 1, "a": [0.5]}) == canonical_digest({"a": [0.5], "b": 1.0})
    True
    """
    return hashlib.sha256(canonical(value).encode()).hexdigest()
