import inspect
import pickle

import pytest

from evenhand import errors
from evenhand.errors import (
    EvenhandError,
    Infeasible,
    InvalidInput,
    NotFinite,
    NotSerialisable,
    UnsuitableEstimator,
)
from evenhand.schema import Column

TREE = [
    kind
    for _, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, Exception) and not issubclass(kind, Warning)
]


@pytest.mark.parametrize("kind", TREE, ids=lambda k: k.__name__)
def test_every_error_hangs_on_the_tree_and_in_its_picture(kind):
    assert issubclass(kind, EvenhandError)
    assert kind.__name__ in errors.__doc__
    assert kind.__doc__


def test_the_hint_is_printed_after_the_message():
    error = InvalidInput("x is 3.", hint="use 2.")
    assert str(error) == "x is 3. Hint: use 2."
    assert error.hint == "use 2."
    assert InvalidInput("x is 3.").hint is None


def test_a_requirement_is_printed_between_the_message_and_the_hint():
    error = InvalidInput("x is 3", requirement="x is at most 2", hint="use 2.", argument="x")
    assert str(error) == "x is 3; x is at most 2. Hint: use 2."
    assert error.sentence == "x is 3; x is at most 2."
    fields = (error.message, error.requirement, error.hint, error.argument)
    assert fields == ("x is 3", "x is at most 2", "use 2.", "x")


@pytest.mark.parametrize("text", ["Hint: this is no hint", "a; b", "--label is no option"])
def test_a_text_that_looks_like_a_part_is_no_part(text):
    error = InvalidInput(text, hint=text)
    assert (error.message, error.sentence, error.hint) == (text, text, text)
    assert error.requirement is None
    assert error.argument is None


def test_an_error_of_a_schema_names_the_column_the_row_and_the_value():
    column = Column("age", "category", ("young", "old"))
    with pytest.raises(InvalidInput) as caught:
        column.encode(["old", "in row 0; the column"])
    error = caught.value
    assert (error.column, error.row, error.value) == ("age", 1, "'in row 0; the column'")
    assert error.requirement == "it must be one of 'young', 'old'"
    with pytest.raises(NotFinite) as caught:
        Column("age").encode([3.0, None])
    error = caught.value
    assert (error.column, error.row, error.value) == ("age", 1, "missing")


def test_an_error_survives_a_process_border():
    error = InvalidInput("x is 3", requirement="x is 2", hint="use 2.", argument="x", row=4)
    copy = pickle.loads(pickle.dumps(error))
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)


def test_errors_are_also_what_python_users_catch():
    assert issubclass(InvalidInput, ValueError)
    assert issubclass(UnsuitableEstimator, TypeError)
    assert issubclass(NotSerialisable, TypeError)
    assert Infeasible("no", certificate=0.5).certificate == 0.5
