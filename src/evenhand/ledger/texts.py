"""Canonical texts of texts, numbers and scalars, by a shorter way than the encoder.

Law: each equals `canonical` of its value; `tests/ledger/test_texts.py` compares them on arbitrary values.
"""

from collections.abc import Sequence
from json.encoder import encode_basestring_ascii

from evenhand.ledger.verifier import canonical


def quoted(text: str) -> str:
    """A text in quotation marks, in ASCII."""
    return encode_basestring_ascii(text)


def number_text(value: float) -> str:
    """One number."""
    return float.__repr__(value) if type(value) is float else canonical(value)


def numbers_text(values: Sequence[float] | None) -> str:
    """A list of finite numbers, or null."""
    return "null" if values is None else f"[{','.join(map(number_text, values))}]"


def scalar_text(value: object) -> str:
    """A text, a number, a truth value or null."""
    return "null" if value is None else canonical(value)
