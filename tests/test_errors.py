import inspect

import pytest

from evenhand import errors
from evenhand.errors import (
    EvenhandError,
    Infeasible,
    InvalidInput,
    NotSerialisable,
    UnsuitableEstimator,
)

TREE = [
    kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, Exception)
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


def test_errors_are_also_what_python_users_catch():
    assert issubclass(InvalidInput, ValueError)
    assert issubclass(UnsuitableEstimator, TypeError)
    assert issubclass(NotSerialisable, TypeError)
    assert Infeasible("no", certificate=0.5).certificate == 0.5
