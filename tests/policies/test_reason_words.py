"""The institution's words: what is found, and what such a document cannot say."""

import pytest

from evenhand.errors import InvalidInput
from evenhand.policies.reason_words import ReasonText, ReasonWords, joined

DOCUMENT = """
protected = ["age"]
fixed = ["defaults"]
only_up = ["years"]

[[reason]]
column = "debt"
direction = "high"
code = "R07"
text = "Debt is high."

[[reason]]
column = "debt"
text = "Debt."

[[reason]]
column = "housing"
value = "rent"
text = "Renting."
"""


def test_the_most_specific_wording_is_taken():
    words = ReasonWords.from_toml(DOCUMENT)
    assert words.find("debt", "high", 0.7) == ReasonText(
        "debt", "Debt is high.", "high", None, "R07"
    )
    assert words.find("debt", "low", 0.1).text == "Debt."
    assert words.find("housing", "any", "rent").text == "Renting."
    assert words.find("housing", "any", "own") is None
    assert words.find("score", "low", 1.0) is None
    assert (words.protected, words.fixed, words.only_up) == (("age",), ("defaults",), ("years",))
    words.require_columns(["debt", "housing", "defaults", "years"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[reason]", "is no TOML"),
        ("words = 1", "'words', which means nothing"),
        ('protected = "age"', "list of columns"),
        ("reason = 3", "no list of tables"),
        ('[[reason]]\ntext = "x"', "reason 1 has no column"),
        ('[[reason]]\ncolumn = "x"', "reason 1 has no text"),
        ('[[reason]]\ncolumn = "x"\ntext = " "', "has no text"),
        ('[[reason]]\ncolumn = "x"\ntext = "y"\nway = "up"', "'way', which means nothing"),
        ('[[reason]]\ncolumn = "x"\ntext = "y"\ndirection = "up"', "one of low, high, any"),
        ('protected = ["x"]\n[[reason]]\ncolumn = "x"\ntext = "y"', "protected column"),
        ('[[reason]]\ncolumn = "x"\ntext = "y"\n' * 2, "worded twice"),
        ('only_up = ["x"]\nonly_down = ["x"]', "in only_up and in only_down"),
    ],
)
def test_what_cannot_be_said_raises_an_error(text, message):
    with pytest.raises(InvalidInput, match=message):
        ReasonWords.from_toml(text, "words.toml")


def test_unknown_and_protected_columns_raise_an_error():
    words = ReasonWords.from_toml(DOCUMENT)
    with pytest.raises(InvalidInput, match="no such column"):
        words.require_columns(["debt"])
    with pytest.raises(InvalidInput, match="is the group and protected"):
        words.require_columns(["debt", "housing", "defaults", "years"], protected=["housing"])


def test_names_in_a_sentence():
    assert [joined(["a"]), joined(["a", "b"]), joined("abc")] == ["a", "a and b", "a, b and c"]
